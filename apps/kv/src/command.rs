//! What the log carries for the store: one write, as bytes. Knows the layout, not the meaning.
//!
//! All numbers are big-endian. The first byte holds the format version in its upper half and the
//! operation in its lower half; a value or a list of keys is what is left at the end.
//!
//! ```text
//! set, add, replace   op key_length:1 flags:4 exptime:8 key value
//! cas                 op key_length:1 flags:4 exptime:8 unique:8 key value
//! append, prepend     op key_length:1 key value
//! incr, decr          op key_length:1 delta:8 key
//! touch               op key_length:1 exptime:8 key
//! delete              op key_length:1 key
//! gat, gats           op exptime:8 keys
//! flush_all           op delay:8
//! memory              op what:1 limit:8
//! script              as `redis/script.rs` tells
//! mg, ms, md, ma      op kind:1 key_length:1 flags_length:2 key flags value
//! ```
//!
//! Of `what`, 1 says that it is only for a store whose memory limit was never set, 2 that the limit is set, 4
//! that the policy is set, 8 that it is to evict, 16 that the answer is one of Redis' protocol.
//!
//! The key and the flags of a meta command stand there as the client wrote them; only `ms` has a value.
use bytes::BufMut;

use crate::memcached::{COMMAND_LINE_BYTES_MAX, Meta, MetaKind};
use crate::redis::{Script, shows_time};
use crate::shared::{MEMCACHED_COMMAND_HEAD_BYTES, MEMCACHED_COMMAND_SET};
use crate::{COMMAND_BYTES_MAX, Key, Keys, MemoryPolicy, VALUE_BYTES_MAX};

/// The most bytes that stand around a value: those of `ms`, whose line is not longer than a line may be.
pub(crate) const FRAME_BYTES_MAX: usize = META_HEADER_BYTES + COMMAND_LINE_BYTES_MAX;

const META_HEADER_BYTES: usize = 1 + 1 + 1 + 2;
const _: () = assert!(FRAME_BYTES_MAX >= 1 + 1 + 4 + 8 + 8 + crate::KEY_BYTES_MAX); // those of `cas`

/// Upper half of the first byte of every command.
const FORMAT: u8 = 0x10;
const _: () = assert!(MEMCACHED_COMMAND_SET & 0xf0 == FORMAT); // planes write it
const _: () = assert!(MEMCACHED_COMMAND_HEAD_BYTES == 1 + 1 + 4 + 8); // op, key_length, flags, exptime

/// A time as memcached's clients write it, in seconds: 0 is never, negative is at once, up to
/// [`RELATIVE_MAX`](Exptime::RELATIVE_MAX) counts from now, and more is a point in Unix time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exptime(pub i64);

impl Exptime {
    /// The longest time from now, in seconds: thirty days.
    pub const RELATIVE_MAX: i64 = 30 * 24 * 60 * 60;
}

/// An item as a client wrote it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Written<'a> {
    /// Its name.
    pub key: Key<'a>,
    /// The client's own 32 bits.
    pub flags: u32,
    /// When it ends.
    pub exptime: Exptime,
    /// Its bytes, at most [`VALUE_BYTES_MAX`].
    pub value: &'a [u8],
}

/// A write. What each does is what memcached's command of that name does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command<'a> {
    /// `set`: store, whatever was there.
    Set(Written<'a>),
    /// `add`: store if there is nothing.
    Add(Written<'a>),
    /// `replace`: store if there is something.
    Replace(Written<'a>),
    /// `cas`: store if there is the item that a `gets` showed with this unique number.
    Cas {
        /// What to store.
        item: Written<'a>,
        /// The number the item must still have.
        unique: u64,
    },
    /// `append`: add bytes behind the value.
    Append {
        /// The item's name.
        key: Key<'a>,
        /// The bytes to add.
        value: &'a [u8],
    },
    /// `prepend`: add bytes before the value.
    Prepend {
        /// The item's name.
        key: Key<'a>,
        /// The bytes to add.
        value: &'a [u8],
    },
    /// `incr`: add to a decimal number, modulo 2^64.
    Increment {
        /// The item's name.
        key: Key<'a>,
        /// What to add.
        delta: u64,
    },
    /// `decr`: subtract from a decimal number, down to 0.
    Decrement {
        /// The item's name.
        key: Key<'a>,
        /// What to subtract.
        delta: u64,
    },
    /// `touch`: give an item a new end.
    Touch {
        /// The item's name.
        key: Key<'a>,
        /// Its new end.
        exptime: Exptime,
    },
    /// `delete`: remove an item.
    Delete {
        /// The item's name.
        key: Key<'a>,
    },
    /// `gat` and `gats`: read items and give them a new end.
    GetAndTouch {
        /// The items' names.
        keys: Keys<'a>,
        /// Their new end.
        exptime: Exptime,
        /// Whether the answer shows unique numbers, as `gats` does.
        with_unique: bool,
    },
    /// `flush_all`: remove everything, now (0 or negative) or at a later time.
    FlushAll {
        /// When.
        delay: Exptime,
    },
    /// How much memory items may take: `cache_memlimit`, `CONFIG SET maxmemory`.
    Memory(MemoryChange),
    /// What a Redis client asked for: one command, or a transaction.
    Redis(Script<'a>),
    /// A meta command: `mg` with a change, `ms`, `md` or `ma`.
    Meta {
        /// Its line.
        meta: Meta<'a>,
        /// The value of an `ms`, else empty.
        value: &'a [u8],
    },
}

/// What is to be changed of the [`MemoryLimit`](crate::MemoryLimit).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryChange {
    /// Only if it was never set.
    pub if_never_set: bool,
    /// Its bytes; 0: none.
    pub limit_bytes: Option<u64>,
    /// Its policy.
    pub policy: Option<MemoryPolicy>,
    /// Whether the answer is one of Redis' protocol, else it is one of memcached's.
    pub for_redis: bool,
}

/// Why bytes are not a [`Command`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// They are of a format this version does not speak.
    #[error("unknown command format {0:#04x}")]
    Format(u8),
    /// There is no such operation. Never: each of the sixteen is one.
    #[error("unknown operation {0}")]
    Operation(u8),
    /// They end too early.
    #[error("command cut short")]
    Truncated,
    /// There are more than the operation has.
    #[error("bytes behind the command")]
    Trailing,
    /// A key is too long, or one in a list of keys has control characters.
    #[error("not a key")]
    Key,
    /// The kind, the key or the flags of a meta command are none.
    #[error("not a meta command")]
    Meta,
    /// A value or a list of keys is longer than [`VALUE_BYTES_MAX`].
    #[error("command too long")]
    Length,
    /// What a memory limit is to be is none.
    #[error("not a memory limit")]
    Memory,
    /// What a Redis client asked for is not in the form of such requests.
    #[error("not a script of commands")]
    Script,
}

mod meta_kind {
    pub const GET: u8 = 1;
    pub const SET: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const ARITHMETIC: u8 = 4;
}

mod memory_bit {
    pub const IF_NEVER_SET: u8 = 1;
    pub const LIMIT: u8 = 2;
    pub const POLICY: u8 = 4;
    pub const EVICT: u8 = 8;
    pub const FOR_REDIS: u8 = 16;
}

mod operation {
    pub const MEMORY: u8 = 0;
    pub const SET: u8 = super::MEMCACHED_COMMAND_SET & !super::FORMAT;
    pub const ADD: u8 = 2;
    pub const REPLACE: u8 = 3;
    pub const CAS: u8 = 4;
    pub const APPEND: u8 = 5;
    pub const PREPEND: u8 = 6;
    pub const INCREMENT: u8 = 7;
    pub const DECREMENT: u8 = 8;
    pub const TOUCH: u8 = 9;
    pub const DELETE: u8 = 10;
    pub const GAT: u8 = 11;
    pub const GATS: u8 = 12;
    pub const FLUSH_ALL: u8 = 13;
    pub const SCRIPT: u8 = 15;
    pub const META: u8 = 14;
}

impl<'a> Command<'a> {
    /// Appends the command's bytes to `out`. Allocates nothing itself.
    pub fn encode(&self, out: &mut impl BufMut) {
        out.put_u8(FORMAT | self.operation());
        match *self {
            Self::Set(item) | Self::Add(item) | Self::Replace(item) => {
                put_written_head(out, &item);
                out.put_slice(item.key.bytes());
                out.put_slice(item.value);
            }
            Self::Cas { item, unique } => {
                put_written_head(out, &item);
                out.put_u64(unique);
                out.put_slice(item.key.bytes());
                out.put_slice(item.value);
            }
            Self::Append { key, value } | Self::Prepend { key, value } => {
                out.put_u8(key.length());
                out.put_slice(key.bytes());
                out.put_slice(value);
            }
            Self::Increment { key, delta } | Self::Decrement { key, delta } => {
                out.put_u8(key.length());
                out.put_u64(delta);
                out.put_slice(key.bytes());
            }
            Self::Touch { key, exptime } => {
                out.put_u8(key.length());
                out.put_i64(exptime.0);
                out.put_slice(key.bytes());
            }
            Self::Delete { key } => {
                out.put_u8(key.length());
                out.put_slice(key.bytes());
            }
            Self::GetAndTouch { keys, exptime, .. } => {
                out.put_i64(exptime.0);
                out.put_slice(keys.text());
            }
            Self::FlushAll { delay } => out.put_i64(delay.0),
            Self::Memory(change) => {
                out.put_u8(change.bits());
                out.put_u64(change.limit_bytes.unwrap_or(0));
            }
            Self::Redis(script) => script.encode(out),
            Self::Meta { meta, value } => put_meta(out, &meta, value),
        }
    }

    /// How many bytes [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        1 + match *self {
            Self::Set(item) | Self::Add(item) | Self::Replace(item) => {
                1 + 4 + 8 + item.key.bytes().len() + item.value.len()
            }
            Self::Cas { item, .. } => 1 + 4 + 8 + 8 + item.key.bytes().len() + item.value.len(),
            Self::Append { key, value } | Self::Prepend { key, value } => {
                1 + key.bytes().len() + value.len()
            }
            Self::Increment { key, .. } | Self::Decrement { key, .. } | Self::Touch { key, .. } => {
                1 + 8 + key.bytes().len()
            }
            Self::Delete { key } => 1 + key.bytes().len(),
            Self::GetAndTouch { keys, .. } => 8 + keys.text().len(),
            Self::FlushAll { .. } => 8,
            Self::Memory(_) => 1 + 8,
            Self::Redis(script) => script.encoded_bytes(),
            Self::Meta { meta, value } => {
                META_HEADER_BYTES - 1 + meta.name().len() + meta.flags_text().len() + value.len()
            }
        }
    }

    /// Reads a command from bytes that [`encode`](Self::encode) wrote, or tells why they are none.
    /// Borrows, copies nothing.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() > COMMAND_BYTES_MAX {
            return Err(DecodeError::Length);
        }
        let mut fields = Fields(bytes);
        let [first] = fields.array()?;
        if first & 0xf0 != FORMAT {
            return Err(DecodeError::Format(first));
        }
        let command = match first & 0x0f {
            operation::SET => Self::Set(fields.written()?),
            operation::ADD => Self::Add(fields.written()?),
            operation::REPLACE => Self::Replace(fields.written()?),
            operation::CAS => fields.cas()?,
            operation::APPEND => {
                let (key, value) = fields.key_and_value()?;
                Self::Append { key, value }
            }
            operation::PREPEND => {
                let (key, value) = fields.key_and_value()?;
                Self::Prepend { key, value }
            }
            operation::INCREMENT => {
                let (key, delta) = fields.key_and_number()?;
                Self::Increment {
                    key,
                    delta: u64::from_be_bytes(delta),
                }
            }
            operation::DECREMENT => {
                let (key, delta) = fields.key_and_number()?;
                Self::Decrement {
                    key,
                    delta: u64::from_be_bytes(delta),
                }
            }
            operation::TOUCH => {
                let (key, exptime) = fields.key_and_number()?;
                Self::Touch {
                    key,
                    exptime: Exptime(i64::from_be_bytes(exptime)),
                }
            }
            operation::DELETE => {
                let [length] = fields.array()?;
                Self::Delete {
                    key: fields.key(length)?,
                }
            }
            operation::GAT => fields.get_and_touch(false)?,
            operation::GATS => fields.get_and_touch(true)?,
            operation::FLUSH_ALL => Self::FlushAll {
                delay: fields.exptime()?,
            },
            operation::MEMORY => fields.memory()?,
            operation::SCRIPT => return Script::decode(fields.0).map(Self::Redis),
            operation::META => fields.meta()?,
            other => return Err(DecodeError::Operation(other)),
        };
        fields.end()?;
        Ok(command)
    }

    /// Whether the answer may show what time it is, or what time is left: then the log says it just before.
    #[must_use]
    pub fn shows_time(&self) -> bool {
        match self {
            Self::Meta { meta, .. } => meta.letters().has(b't'),
            Self::Redis(script) => script.each_command().any(|words| shows_time(&words)),
            Self::Set(_)
            | Self::Add(_)
            | Self::Replace(_)
            | Self::Append { .. }
            | Self::Prepend { .. }
            | Self::Cas { .. }
            | Self::Increment { .. }
            | Self::Decrement { .. }
            | Self::Touch { .. }
            | Self::Delete { .. }
            | Self::GetAndTouch { .. }
            | Self::FlushAll { .. }
            | Self::Memory(_) => false,
        }
    }

    /// Whether these bytes are a [`Memory`](Self::Memory) command, well formed or not.
    #[must_use]
    pub fn is_memory(bytes: &[u8]) -> bool {
        bytes.first() == Some(&(FORMAT | operation::MEMORY))
    }

    /// Whether these bytes are a [`Redis`](Self::Redis) command, well formed or not.
    pub(crate) fn is_script(bytes: &[u8]) -> bool {
        bytes.first() == Some(&(FORMAT | operation::SCRIPT))
    }

    const fn operation(&self) -> u8 {
        match self {
            Self::Set(_) => operation::SET,
            Self::Add(_) => operation::ADD,
            Self::Replace(_) => operation::REPLACE,
            Self::Cas { .. } => operation::CAS,
            Self::Append { .. } => operation::APPEND,
            Self::Prepend { .. } => operation::PREPEND,
            Self::Increment { .. } => operation::INCREMENT,
            Self::Decrement { .. } => operation::DECREMENT,
            Self::Touch { .. } => operation::TOUCH,
            Self::Delete { .. } => operation::DELETE,
            Self::GetAndTouch {
                with_unique: false, ..
            } => operation::GAT,
            Self::GetAndTouch {
                with_unique: true, ..
            } => operation::GATS,
            Self::FlushAll { .. } => operation::FLUSH_ALL,
            Self::Memory(_) => operation::MEMORY,
            Self::Redis(_) => operation::SCRIPT,
            Self::Meta { .. } => operation::META,
        }
    }
}

impl MemoryChange {
    const fn bits(self) -> u8 {
        let policy = match self.policy {
            None => 0,
            Some(MemoryPolicy::Refuse) => memory_bit::POLICY,
            Some(MemoryPolicy::Evict) => memory_bit::POLICY | memory_bit::EVICT,
        };
        policy
            | if self.if_never_set {
                memory_bit::IF_NEVER_SET
            } else {
                0
            }
            | if self.limit_bytes.is_some() {
                memory_bit::LIMIT
            } else {
                0
            }
            | if self.for_redis {
                memory_bit::FOR_REDIS
            } else {
                0
            }
    }

    /// What was written so; `None` if nothing is.
    fn from_bits(bits: u8, limit_bytes: u64) -> Option<Self> {
        let has = |bit: u8| bits & bit != 0;
        let policy = if has(memory_bit::EVICT) {
            MemoryPolicy::Evict
        } else {
            MemoryPolicy::Refuse
        };
        let change = Self {
            if_never_set: has(memory_bit::IF_NEVER_SET),
            limit_bytes: has(memory_bit::LIMIT).then_some(limit_bytes),
            policy: has(memory_bit::POLICY).then_some(policy),
            for_redis: has(memory_bit::FOR_REDIS),
        };
        let is_whole = change.bits() == bits && change.limit_bytes.unwrap_or(0) == limit_bytes;
        is_whole.then_some(change)
    }
}

fn put_written_head(out: &mut impl BufMut, item: &Written<'_>) {
    out.put_u8(item.key.length());
    out.put_u32(item.flags);
    out.put_i64(item.exptime.0);
}

fn put_meta(out: &mut impl BufMut, meta: &Meta<'_>, value: &[u8]) {
    let (name, flags) = (meta.name(), meta.flags_text());
    out.put_u8(match meta.kind() {
        MetaKind::Get => meta_kind::GET,
        MetaKind::Set => meta_kind::SET,
        MetaKind::Delete => meta_kind::DELETE,
        MetaKind::Arithmetic => meta_kind::ARITHMETIC,
    });
    out.put_u8(u8::try_from(name.len()).expect("a key has at most 250 bytes"));
    out.put_u16(u16::try_from(flags.len()).expect("a line has at most 2048 bytes"));
    out.put_slice(name);
    out.put_slice(flags);
    out.put_slice(value);
}

/// The bytes of a command that are not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn key(&mut self, length: u8) -> Result<Key<'a>, DecodeError> {
        let key = self.slice(usize::from(length))?;
        Key::binary(key).ok_or(DecodeError::Key)
    }

    fn slice(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        let (slice, rest) = self
            .0
            .split_at_checked(bytes)
            .ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(slice)
    }

    fn value(&mut self) -> Result<&'a [u8], DecodeError> {
        let value = std::mem::take(&mut self.0);
        if value.len() > VALUE_BYTES_MAX {
            Err(DecodeError::Length)
        } else {
            Ok(value)
        }
    }

    fn exptime(&mut self) -> Result<Exptime, DecodeError> {
        Ok(Exptime(i64::from_be_bytes(self.array()?)))
    }

    fn written(&mut self) -> Result<Written<'a>, DecodeError> {
        let [length] = self.array()?;
        let flags = u32::from_be_bytes(self.array()?);
        let exptime = self.exptime()?;
        let key = self.key(length)?;
        Ok(Written {
            key,
            flags,
            exptime,
            value: self.value()?,
        })
    }

    fn cas(&mut self) -> Result<Command<'a>, DecodeError> {
        let [length] = self.array()?;
        let flags = u32::from_be_bytes(self.array()?);
        let exptime = self.exptime()?;
        let unique = u64::from_be_bytes(self.array()?);
        let key = self.key(length)?;
        let item = Written {
            key,
            flags,
            exptime,
            value: self.value()?,
        };
        Ok(Command::Cas { item, unique })
    }

    fn key_and_value(&mut self) -> Result<(Key<'a>, &'a [u8]), DecodeError> {
        let [length] = self.array()?;
        Ok((self.key(length)?, self.value()?))
    }

    fn key_and_number(&mut self) -> Result<(Key<'a>, [u8; 8]), DecodeError> {
        let [length] = self.array()?;
        let number = self.array()?;
        Ok((self.key(length)?, number))
    }

    fn get_and_touch(&mut self, with_unique: bool) -> Result<Command<'a>, DecodeError> {
        let exptime = self.exptime()?;
        let keys = Keys::new(self.value()?).ok_or(DecodeError::Key)?;
        Ok(Command::GetAndTouch {
            keys,
            exptime,
            with_unique,
        })
    }

    fn memory(&mut self) -> Result<Command<'a>, DecodeError> {
        let [bits] = self.array()?;
        let limit_bytes = u64::from_be_bytes(self.array()?);
        let change = MemoryChange::from_bits(bits, limit_bytes).ok_or(DecodeError::Memory)?;
        Ok(Command::Memory(change))
    }

    fn meta(&mut self) -> Result<Command<'a>, DecodeError> {
        let [kind, name_bytes] = self.array()?;
        let flags_bytes = usize::from(u16::from_be_bytes(self.array()?));
        let kind = match kind {
            meta_kind::GET => MetaKind::Get,
            meta_kind::SET => MetaKind::Set,
            meta_kind::DELETE => MetaKind::Delete,
            meta_kind::ARITHMETIC => MetaKind::Arithmetic,
            _ => return Err(DecodeError::Meta),
        };
        if flags_bytes > COMMAND_LINE_BYTES_MAX {
            return Err(DecodeError::Length);
        }
        let name = self.slice(usize::from(name_bytes))?;
        let flags = self.slice(flags_bytes)?;
        let meta = Meta::new(kind, name, flags).map_err(|_| DecodeError::Meta)?;
        let value = match kind {
            MetaKind::Set => self.value()?,
            MetaKind::Get | MetaKind::Delete | MetaKind::Arithmetic => b"",
        };
        Ok(Command::Meta { meta, value })
    }

    fn end(&self) -> Result<(), DecodeError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing)
        }
    }
}

#[cfg(test)]
mod tests;
