//! Cuts one request out of a connection's bytes: an array of strings, or a line. The same result however
//! the bytes were split on their way. Executes nothing.
use std::borrow::Cow;

use super::words::{Length, length};
use super::{
    INLINE_BYTES_MAX, REQUEST_BYTES_MAX, Skip, WORD_BYTES_SKIPPED_MAX, WORDS_MAX,
    WORDS_SKIPPED_MAX, Words, inline,
};
use crate::{TLS_HANDSHAKE, VALUE_BYTES_MAX, WhyRefused};

/// What stands at the start of a connection's bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Parsed<'a> {
    /// Not a whole request yet.
    Incomplete {
        /// There is no request in it before the buffer holds this many bytes; more than it holds, at
        /// most [`REQUEST_BYTES_MAX`]. That it will never be one may show earlier.
        needed: usize,
    },
    /// Nothing to answer: an empty line, or an array of nothing.
    Nothing {
        /// How many bytes it took.
        consumed: usize,
    },
    /// A request.
    Request {
        /// How many bytes it took.
        consumed: usize,
        /// What it says.
        words: Words<'a>,
    },
    /// A request that is longer than it may be: it is answered, and the next one stands behind it.
    TooLong {
        /// How many bytes it took.
        consumed: usize,
        /// What else belongs to it, and is to be thrown away as it comes.
        skip: Skip,
        /// The answer, which names the limit.
        reply: Vec<u8>,
    },
    /// Something that is answered, and then the connection is closed: where the next request starts is
    /// not known. It took all bytes there are.
    Refused(Broken),
}

/// What is no request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// The answer; empty if there is to be none.
    pub reply: Cow<'static, [u8]>,
    /// Why it is.
    pub why: WhyRefused,
}

impl Broken {
    fn malformed(text: &str) -> Self {
        Self::of(WhyRefused::Malformed, text)
    }

    pub(super) fn too_long(text: &str) -> Self {
        Self::of(WhyRefused::TooLong, text)
    }

    fn of(why: WhyRefused, text: &str) -> Self {
        let reply = format!("-ERR Protocol error: {text}\r\n").into_bytes();
        Self {
            reply: Cow::Owned(reply),
            why,
        }
    }

    /// Like in Redis, a line's end in an answer is a blank.
    fn marker(found: u8) -> Self {
        let mut reply = b"-ERR Protocol error: expected '$', got '".to_vec();
        reply.push(match found {
            b'\r' | b'\n' => b' ',
            other => other,
        });
        reply.extend_from_slice(b"'\r\n");
        Self {
            reply: Cow::Owned(reply),
            why: WhyRefused::Malformed,
        }
    }

    const fn tls() -> Self {
        Self {
            reply: Cow::Borrowed(b"-ERR this port speaks no TLS\r\n"),
            why: WhyRefused::Tls,
        }
    }

    /// Nothing is said to a browser.
    const fn silent() -> Self {
        Self {
            reply: Cow::Borrowed(b""),
            why: WhyRefused::NotServed,
        }
    }
}

/// Bytes of the shortest word.
const WORD_BYTES_LEAST: usize = b"$0\r\n\r\n".len();

/// Names that a browser could be made to send here by somebody else's page. They are no commands, and
/// what follows them must not be run.
const OF_BROWSERS: [&[u8]; 2] = [b"post", b"host:"];

/// Looks for a request at the start of `buffer`. Takes time linear in the number of words, if it is an
/// array, whatever their lengths; and `needed` is such that a request of many pieces, looked at again
/// only as often as it asks for, costs little more than one look per word.
#[must_use]
pub fn parse(buffer: &[u8]) -> Parsed<'_> {
    let parsed = match buffer.first() {
        None => return Parsed::Incomplete { needed: 1 },
        Some(b'*') => array(buffer),
        Some(&TLS_HANDSHAKE) => Parsed::Refused(Broken::tls()),
        Some(_) => line(buffer),
    };
    match &parsed {
        Parsed::Request { words, .. } if is_of_browsers(words) => Parsed::Refused(Broken::silent()),
        Parsed::Request { .. }
        | Parsed::Incomplete { .. }
        | Parsed::Nothing { .. }
        | Parsed::TooLong { .. }
        | Parsed::Refused(_) => parsed,
    }
}

fn is_of_browsers(words: &Words<'_>) -> bool {
    let first = words.get(0).unwrap_or_default();
    OF_BROWSERS
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name))
}

fn array(buffer: &[u8]) -> Parsed<'_> {
    let (number, start) = match length(buffer, b'*') {
        Length::Known { number, end } => (number, end),
        Length::Incomplete => {
            let needed = buffer.len() + 1;
            return Parsed::Incomplete { needed };
        }
        Length::TooLong => return Parsed::Refused(Broken::too_long("too big mbulk count string")),
        Length::NoNumber | Length::NoMarker(_) => {
            return Parsed::Refused(Broken::malformed("invalid multibulk length"));
        }
    };
    match usize::try_from(number) {
        Err(_) if number > 0 => Parsed::Refused(Broken::too_long("invalid multibulk length")),
        Ok(0) | Err(_) => Parsed::Nothing { consumed: start },
        Ok(count @ ..=WORDS_MAX) => words(buffer, count, start),
        Ok(count @ ..=WORDS_SKIPPED_MAX) => {
            let text = format!("request of {count} words is longer than {WORDS_MAX} words");
            too_long(start, Skip::new(0, count), &text)
        }
        Ok(_) => Parsed::Refused(Broken::too_long("invalid multibulk length")),
    }
}

/// The words of an array that begin at `start`.
fn words(buffer: &[u8], count: usize, start: usize) -> Parsed<'_> {
    let mut place = start;
    for missing in (0..count).rev() {
        let rest_bytes_least = missing * WORD_BYTES_LEAST;
        let (bytes, end) = match header(&buffer[place..]) {
            Ok(Some(known)) => known,
            Ok(None) => {
                let least = place + WORD_BYTES_LEAST + rest_bytes_least;
                let needed = least.max(buffer.len() + 1);
                if needed > REQUEST_BYTES_MAX {
                    return too_long(place, Skip::new(0, missing + 1), &request_too_long());
                }
                return Parsed::Incomplete { needed };
            }
            Err(broken) => return Parsed::Refused(broken),
        };
        let word_start = place + end;
        let word_end = word_start + bytes;
        place = word_end + 2;
        if bytes > VALUE_BYTES_MAX {
            let skip = Skip::new(bytes + 2, missing);
            return too_long(word_start, skip, &string_too_long(bytes));
        }
        if place + rest_bytes_least > REQUEST_BYTES_MAX {
            let skip = Skip::new(bytes + 2, missing);
            return too_long(word_start, skip, &request_too_long());
        }
        if place > buffer.len() {
            let needed = place + rest_bytes_least;
            return Parsed::Incomplete { needed };
        }
        if &buffer[word_end..place] != b"\r\n" {
            return Parsed::Refused(Broken::malformed("expected the end of a string"));
        }
    }
    Parsed::Request {
        consumed: place,
        words: Words::checked(&buffer[..place], count, start),
    }
}

/// How many bytes the word has that begins here, and where its line ends; `None`: that is not there yet.
/// Longer than Redis lets any string be is nothing that anybody can mean.
pub(super) fn header(text: &[u8]) -> Result<Option<(usize, usize)>, Broken> {
    let (number, end) = match length(text, b'$') {
        Length::Known { number, end } => (number, end),
        Length::Incomplete => return Ok(None),
        Length::TooLong => return Err(Broken::too_long("too big bulk count string")),
        Length::NoNumber => return Err(Broken::malformed("invalid bulk length")),
        Length::NoMarker(found) => return Err(Broken::marker(found)),
    };
    match usize::try_from(number) {
        Ok(bytes @ ..=WORD_BYTES_SKIPPED_MAX) => Ok(Some((bytes, end))),
        Ok(_) => Err(Broken::too_long("invalid bulk length")),
        Err(_) => Err(Broken::malformed("invalid bulk length")),
    }
}

fn string_too_long(bytes: usize) -> String {
    format!("string of {bytes} bytes is longer than {VALUE_BYTES_MAX} bytes (proto-max-bulk-len)")
}

fn request_too_long() -> String {
    format!("request is longer than {REQUEST_BYTES_MAX} bytes")
}

fn too_long(consumed: usize, skip: Skip, text: &str) -> Parsed<'static> {
    Parsed::TooLong {
        consumed,
        skip,
        reply: format!("-ERR {text}\r\n").into_bytes(),
    }
}

fn line(buffer: &[u8]) -> Parsed<'_> {
    let near = &buffer[..buffer.len().min(INLINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', near) else {
        if near.len() == INLINE_BYTES_MAX {
            return Parsed::Refused(Broken::too_long("too big inline request"));
        }
        let needed = buffer.len() + 1;
        return Parsed::Incomplete { needed };
    };
    let consumed = end + 1;
    match inline::split(&buffer[..end]) {
        None => Parsed::Refused(Broken::malformed("unbalanced quotes in request")),
        Some(words) if words.is_empty() => Parsed::Nothing { consumed },
        Some(words) if is_head_of_browsers(&words) => Parsed::Refused(Broken::silent()),
        Some(words) => Parsed::Request {
            consumed,
            words: Words::from_words(&words),
        },
    }
}

/// Whether a line is the first of an HTTP request, whatever its method: at a name that it has made ours, a
/// page may choose one that is a command.
fn is_head_of_browsers(words: &[Vec<u8>]) -> bool {
    matches!(words, [_, _, version] if version.starts_with(b"HTTP/"))
}
