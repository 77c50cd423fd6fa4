//! Cuts one request out of a connection's bytes: no copy, no allocation, the same result however the
//! bytes were split on their way. Executes nothing.
use super::number::{signed, unsigned};
use super::{
    COMMAND_LINE_BYTES_MAX, LINE_BYTES_MAX, Local, MetaKind, Parsed, Read, RefusalReply, Request,
    are_few, reply,
};
use crate::{Command, Exptime, Key, Keys, TLS_HANDSHAKE, VALUE_BYTES_MAX, WhyRefused, Written};

mod administration;
mod meta;

/// Longest data block, in bytes, that memcached would read and throw away.
const SWALLOW_VALUE_BYTES_MAX: usize = i32::MAX as usize - 2;

/// First byte of every request of memcached's binary protocol.
const BINARY_MAGIC: u8 = 0x80;

/// Looks for a request at the start of `buffer`. Takes time linear in the request's line, and
/// constant time in its data block.
#[must_use]
pub fn parse(buffer: &[u8]) -> Parsed<'_> {
    parse_on(buffer, 0)
}

/// The same for a buffer that has grown: so many of its first bytes were searched in vain for the end of a
/// line. A long line that comes byte by byte is searched once, not once for each byte.
#[must_use]
pub fn parse_on(buffer: &[u8], searched: usize) -> Parsed<'_> {
    match buffer.first() {
        Some(&BINARY_MAGIC) => {
            return hang_up(buffer, WhyRefused::NotServed, reply::BINARY_PROTOCOL);
        }
        Some(&TLS_HANDSHAKE) => return hang_up(buffer, WhyRefused::Tls, reply::TLS),
        Some(_) | None => {}
    }
    match find_line(buffer, searched) {
        Line::Whole { bytes } => Cut::new(buffer, bytes).request(),
        Line::Incomplete => Parsed::Incomplete {
            needed: buffer.len() + 1,
            searched: buffer.len(),
        },
        Line::TooLong { reply } => hang_up(buffer, WhyRefused::TooLong, reply),
    }
}

fn hang_up<'a>(buffer: &'a [u8], why: WhyRefused, reply: &'static [u8]) -> Parsed<'a> {
    Parsed::Refused {
        consumed: buffer.len(),
        swallow: 0,
        reply,
        why,
        close: true,
    }
}

enum Line {
    /// It has this many bytes, its end included.
    Whole {
        bytes: usize,
    },
    Incomplete,
    TooLong {
        /// What its sender is told.
        reply: &'static [u8],
    },
}

fn find_line(buffer: &[u8], searched: usize) -> Line {
    let near = &buffer[..buffer.len().min(COMMAND_LINE_BYTES_MAX)];
    if let Some(end) = memchr::memchr(b'\n', near) {
        return Line::Whole { bytes: end + 1 };
    }
    if near.len() < COMMAND_LINE_BYTES_MAX {
        return Line::Incomplete;
    }
    let start = near.trim_ascii_start();
    if !start.starts_with(b"get ") && !start.starts_with(b"gets ") {
        let reply = reply::LINE_TOO_LONG;
        return Line::TooLong { reply };
    }
    let far_end = buffer.len().min(LINE_BYTES_MAX);
    let far_start = searched.clamp(near.len(), far_end);
    match memchr::memchr(b'\n', &buffer[far_start..far_end]) {
        Some(end) => Line::Whole {
            bytes: far_start + end + 1,
        },
        None if buffer.len() < LINE_BYTES_MAX => Line::Incomplete,
        None => Line::TooLong {
            reply: reply::GET_TOO_LONG,
        },
    }
}

/// More words than any command but a read has.
const WORDS_MAX: usize = 8;

/// A buffer whose first line is whole, and the words of that line.
struct Cut<'a> {
    buffer: &'a [u8],
    /// Bytes of the line, its end included.
    line_bytes: usize,
    /// The line from its first word on, without its end.
    line: &'a [u8],
    words: [&'a [u8]; WORDS_MAX],
    /// How many words the line has; [`WORDS_MAX`] may stand for more.
    word_count: usize,
}

/// How a storage command treats what is there.
#[derive(Clone, Copy)]
enum Storing {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
}

impl<'a> Cut<'a> {
    fn new(buffer: &'a [u8], line_bytes: usize) -> Self {
        let line = &buffer[..line_bytes - 1];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let blanks = line.iter().take_while(|&&byte| byte == b' ').count();
        let line = &line[blanks..];
        let mut words: [&[u8]; WORDS_MAX] = [&[]; WORDS_MAX];
        let mut word_count = 0;
        let split = line
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty());
        for (place, word) in words.iter_mut().zip(split) {
            *place = word;
            word_count += 1;
        }
        Self {
            buffer,
            line_bytes,
            line,
            words,
            word_count,
        }
    }

    fn request(&self) -> Parsed<'a> {
        match self.any_request() {
            Parsed::Refused { .. } if self.is_of_browser() => {
                hang_up(self.buffer, WhyRefused::NotServed, b"")
            }
            parsed @ (Parsed::Incomplete { .. }
            | Parsed::Request { .. }
            | Parsed::Refused { .. }) => parsed,
        }
    }

    /// Whether it is a line at the head of an HTTP request: a browser can be made to send one here by
    /// somebody else's page, with requests for us in its body. Memcached, too, looks for the version at its
    /// end; the host is named in each, whatever its first line.
    fn is_of_browser(&self) -> bool {
        let words = self.line.split(|&byte| byte == b' ');
        let mut words = words.filter(|word| !word.is_empty());
        let is_host = self.words[0].eq_ignore_ascii_case(b"host:");
        is_host
            || words
                .next_back()
                .is_some_and(|last| last.starts_with(b"HTTP/"))
    }

    fn any_request(&self) -> Parsed<'a> {
        match self.words[0] {
            b"get" => self.read(b"get".len(), false),
            b"gets" => self.read(b"gets".len(), true),
            b"set" => self.storage(Storing::Set),
            b"add" => self.storage(Storing::Add),
            b"replace" => self.storage(Storing::Replace),
            b"append" => self.storage(Storing::Append),
            b"prepend" => self.storage(Storing::Prepend),
            b"cas" => self.storage(Storing::Cas),
            b"incr" => self.count(|key, delta| Command::Increment { key, delta }),
            b"decr" => self.count(|key, delta| Command::Decrement { key, delta }),
            b"touch" => self.touch(),
            b"delete" => self.delete(),
            b"gat" => self.get_and_touch(b"gat".len(), false),
            b"gats" => self.get_and_touch(b"gats".len(), true),
            b"flush_all" => self.flush_all(),
            b"version" => self.local(Local::Version),
            b"verbosity" => self.verbosity(),
            b"cache_memlimit" => self.memory_limit(),
            b"stats" => self.stats(),
            b"quit" => self.local(Local::Quit),
            b"mn" => self.local(Local::MetaNoop),
            b"mg" => self.meta_get(),
            b"ms" => self.meta_set(),
            b"md" => self.meta_write(MetaKind::Delete),
            b"ma" => self.meta_write(MetaKind::Arithmetic),
            b"me" => self.meta_debug(),
            b"slabs" => self.slabs(),
            b"lru" => self.lru(),
            b"lru_crawler" => self.lru_crawler(),
            b"watch" => self.watch(),
            b"shutdown" => self.refuse(RefusalReply::not_served(reply::SHUTDOWN_NOT_ENABLED)),
            _ => Parsed::Refused {
                consumed: self.line_bytes,
                swallow: 0,
                reply: reply::ERROR,
                why: WhyRefused::UnknownCommand,
                close: false,
            },
        }
    }

    /// `get|gets key...`
    fn read(&self, name_bytes: usize, with_unique: bool) -> Parsed<'a> {
        if self.word_count < 2 {
            return self.refuse(reply::ERROR);
        }
        match Keys::new(&self.line[name_bytes..]) {
            Some(keys) if !are_few(keys) => {
                self.refuse(RefusalReply::too_long(reply::GET_TOO_LONG))
            }
            Some(_) => self.accept(Request::Read(Read::items(self.line, with_unique))),
            None => self.refuse(reply::BAD_FORMAT),
        }
    }

    /// `set|add|replace|append|prepend key flags exptime length [noreply]`, `cas` with a unique number
    /// behind the length, and the data block.
    fn storage(&self, how: Storing) -> Parsed<'a> {
        let words_least = match how {
            Storing::Cas => 6,
            Storing::Set | Storing::Add | Storing::Replace | Storing::Append | Storing::Prepend => {
                5
            }
        };
        if !(words_least..=words_least + 1).contains(&self.word_count) {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        let Some(value_bytes) = value_bytes(self.words[4]) else {
            return self.refuse_unless(noreply, reply::BAD_FORMAT);
        };
        let block_bytes = value_bytes + 2;
        let Some(build) = self.storage_fields(how) else {
            return self.refuse_block(block_bytes, noreply, reply::BAD_FORMAT);
        };
        if value_bytes > VALUE_BYTES_MAX {
            let too_large = RefusalReply::too_long(reply::TOO_LARGE);
            return self.refuse_block(block_bytes, noreply, too_large);
        }
        let consumed = self.line_bytes + block_bytes;
        let Some(block) = self.buffer.get(self.line_bytes..consumed) else {
            return Self::incomplete(consumed);
        };
        let Some(value) = block.strip_suffix(b"\r\n") else {
            let reply: &[u8] = if noreply { b"" } else { reply::BAD_CHUNK };
            return Parsed::Refused {
                consumed,
                swallow: 0,
                reply,
                why: WhyRefused::Malformed,
                close: false,
            };
        };
        let command = build.with_value(how, value);
        Parsed::Request {
            consumed,
            request: Request::Write { command, noreply },
        }
    }

    fn storage_fields(&self, how: Storing) -> Option<StorageFields<'a>> {
        let unique = match how {
            Storing::Cas => unsigned(self.words[5])?,
            Storing::Set | Storing::Add | Storing::Replace | Storing::Append | Storing::Prepend => {
                0
            }
        };
        Some(StorageFields {
            key: Key::new(self.words[1])?,
            flags: unsigned(self.words[2]).and_then(|flags| u32::try_from(flags).ok())?,
            exptime: Exptime(signed(self.words[3])?),
            unique,
        })
    }

    /// `incr|decr key delta [noreply]`
    fn count(&self, build: impl FnOnce(Key<'a>, u64) -> Command<'a>) -> Parsed<'a> {
        if !(3..=4).contains(&self.word_count) {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        let Some(key) = Key::new(self.words[1]) else {
            return self.refuse_unless(noreply, reply::BAD_FORMAT);
        };
        match unsigned(self.words[2]) {
            Some(delta) => self.write(build(key, delta), noreply),
            None => self.refuse_unless(noreply, reply::BAD_DELTA),
        }
    }

    /// `touch key exptime [noreply]`
    fn touch(&self) -> Parsed<'a> {
        if !(3..=4).contains(&self.word_count) {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        let Some(key) = Key::new(self.words[1]) else {
            return self.refuse_unless(noreply, reply::BAD_FORMAT);
        };
        match signed(self.words[2]) {
            Some(exptime) => self.write(
                Command::Touch {
                    key,
                    exptime: Exptime(exptime),
                },
                noreply,
            ),
            None => self.refuse_unless(noreply, reply::BAD_EXPTIME),
        }
    }

    /// `delete key [0] [noreply]`
    fn delete(&self) -> Parsed<'a> {
        let noreply = match self.words[..self.word_count] {
            [_, _] | [_, _, b"0"] => false,
            [_, _, b"noreply"] | [_, _, b"0", b"noreply"] => true,
            [_, _, _, b"noreply"] => return self.refuse_unless(true, reply::BAD_DELETE),
            [_, _, _] | [_, _, _, _] => return self.refuse(reply::BAD_DELETE),
            _ => return self.refuse(reply::ERROR),
        };
        match Key::new(self.words[1]) {
            Some(key) => self.write(Command::Delete { key }, noreply),
            None => self.refuse_unless(noreply, reply::BAD_FORMAT),
        }
    }

    /// `gat|gats exptime [key...]`
    fn get_and_touch(&self, name_bytes: usize, with_unique: bool) -> Parsed<'a> {
        if self.word_count < 2 {
            return self.refuse(reply::ERROR);
        }
        let Some(exptime) = signed(self.words[1]) else {
            return self.refuse(reply::BAD_EXPTIME);
        };
        let behind_name = &self.line[name_bytes..];
        let blanks = behind_name.iter().take_while(|&&byte| byte == b' ').count();
        match Keys::new(&behind_name[blanks + self.words[1].len()..]) {
            Some(keys) => {
                let exptime = Exptime(exptime);
                self.write(
                    Command::GetAndTouch {
                        keys,
                        exptime,
                        with_unique,
                    },
                    false,
                )
            }
            None => self.refuse(reply::BAD_FORMAT),
        }
    }

    /// `flush_all [delay] [noreply]`
    fn flush_all(&self) -> Parsed<'a> {
        if self.word_count > 3 {
            return self.refuse(reply::ERROR);
        }
        let noreply = self.noreply();
        if self.word_count == 1 + usize::from(noreply) {
            return self.write(Command::FlushAll { delay: Exptime(0) }, noreply);
        }
        match signed(self.words[1]) {
            Some(delay) => self.write(
                Command::FlushAll {
                    delay: Exptime(delay),
                },
                noreply,
            ),
            None => self.refuse_unless(noreply, reply::BAD_EXPTIME),
        }
    }

    /// Whether the last word asks for silence. Memcached looks at the last word whatever its place,
    /// and so do we.
    fn noreply(&self) -> bool {
        self.words[self.word_count - 1] == b"noreply"
    }

    /// The line is there, but not all of its data block.
    fn incomplete(needed: usize) -> Parsed<'a> {
        Parsed::Incomplete {
            needed,
            searched: 0,
        }
    }

    fn accept(&self, request: Request<'a>) -> Parsed<'a> {
        Parsed::Request {
            consumed: self.line_bytes,
            request,
        }
    }

    fn write(&self, command: Command<'a>, noreply: bool) -> Parsed<'a> {
        self.accept(Request::Write { command, noreply })
    }

    fn local(&self, local: Local<'a>) -> Parsed<'a> {
        self.accept(Request::Local(local))
    }

    fn refuse(&self, reply: impl Into<RefusalReply>) -> Parsed<'a> {
        self.refuse_unless(false, reply)
    }

    fn refuse_unless(&self, noreply: bool, reply: impl Into<RefusalReply>) -> Parsed<'a> {
        self.refuse_block(0, noreply, reply)
    }

    fn refuse_block(
        &self,
        swallow: usize,
        noreply: bool,
        reply: impl Into<RefusalReply>,
    ) -> Parsed<'a> {
        let RefusalReply { text, why } = reply.into();
        let reply: &[u8] = if noreply { b"" } else { text };
        Parsed::Refused {
            consumed: self.line_bytes,
            swallow,
            reply,
            why,
            close: false,
        }
    }
}

/// How long a data block is, without its end; `None` for what memcached refuses without reading it.
fn value_bytes(word: &[u8]) -> Option<usize> {
    let bytes = usize::try_from(signed(word)?).ok()?;
    (bytes <= SWALLOW_VALUE_BYTES_MAX).then_some(bytes)
}

/// What a storage command's line says of its item.
struct StorageFields<'a> {
    key: Key<'a>,
    flags: u32,
    exptime: Exptime,
    unique: u64,
}

impl<'a> StorageFields<'a> {
    fn with_value(self, how: Storing, value: &'a [u8]) -> Command<'a> {
        let Self {
            key,
            flags,
            exptime,
            unique,
        } = self;
        let item = Written {
            key,
            flags,
            exptime,
            value,
        };
        match how {
            Storing::Set => Command::Set(item),
            Storing::Add => Command::Add(item),
            Storing::Replace => Command::Replace(item),
            Storing::Append => Command::Append { key, value },
            Storing::Prepend => Command::Prepend { key, value },
            Storing::Cas => Command::Cas { item, unique },
        }
    }
}

#[cfg(test)]
mod tests;
