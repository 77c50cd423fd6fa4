//! The Redis protocol: requests out of bytes, answers into bytes, and what is known of each command. No
//! sockets; what commands do to the store stands in the store.
//!
//! The way of a request: [`parse`] cuts its [`Words`] out of a connection's bytes, [`classify`] tells who
//! is to carry it out. A write, or a whole transaction, becomes a [`Script`] in the log; a read is
//! answered by [`Store::answer`](crate::Store::answer), at the leader, to whom its text travels as a line
//! that begins with the protocol's version.

mod argument;
mod arithmetic;
mod command;
mod connection;
mod extended;
mod fault;
mod glob;
mod inline;
mod parse;
mod read;
pub mod reply;
mod script;
mod skip;
mod spec;
mod table;
mod words;

pub use arithmetic::integer;
pub use command::answer_command;
pub use parse::{Broken, Parsed, parse};
pub use read::{Read, ReadForm, ReadKind};
pub use script::Script;
pub use skip::{Skip, Skipped};
pub use spec::{KeySpec, Kind, QUOTED_BYTES_MAX, Spec, classify, find, quoted, spec, why_refused};
pub use words::Words;

/// The answer to what has been done and has nothing to tell.
pub(crate) const OK: &[u8] = b"+OK\r\n";

/// The answer to a command that needs memory while the items take more than the memory limit.
pub(crate) const OUT_OF_MEMORY: &[u8] =
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// The answer to a transaction with such a command in it.
pub(crate) const TRANSACTION_OUT_OF_MEMORY: &[u8] =
    b"-EXECABORT Transaction discarded because of: \
    OOM command not allowed when used memory > 'maxmemory'.\r\n";

pub(crate) use connection::{NO_DATABASE, answer_in_transaction, database};
pub(crate) use extended::Extended;
pub(crate) use fault::{Answer, Fault, Outcome, repeated, too_long, within_limit};
pub(crate) use glob::{Glob, PATTERN_BYTES_MAX};

const _: () = assert!(TRANSACTION_OUT_OF_MEMORY.len() <= crate::ERROR_BYTES_MAX);

/// Longest request in bytes, as an array of words: what a connection must be able to buffer, and the
/// longest text of a [`Script`]'s watched keys and commands together.
pub const REQUEST_BYTES_MAX: usize = crate::COMMAND_BYTES_MAX - script::HEADER_BYTES;

/// Most words of one request.
pub const WORDS_MAX: usize = 1 << 17;

/// Words of a request that is refused for its length, thrown away to find the next one; with more of them the
/// connection ends. So many Redis took of one request up to version 6.
pub const WORDS_SKIPPED_MAX: usize = 1 << 20;

/// Longest of these words, in bytes: the longest string that Redis takes unless it is told otherwise.
pub const WORD_BYTES_SKIPPED_MAX: usize = 512 << 20;

/// All of these words together, in bytes: as much as Redis lets a client send at once.
pub const WORDS_BYTES_SKIPPED_MAX: usize = 1 << 30;

/// Longest request in bytes that is a line and no array, its end included.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// Most commands of one transaction.
pub const TRANSACTION_COMMANDS_MAX: usize = 2048;

/// Whether the answer to a command depends on what time it is, however little happened since a key changed.
pub(crate) fn shows_time(words: &Words<'_>) -> bool {
    const NAMES: [&[u8]; 3] = [b"ttl", b"pttl", b"time"];
    let name = words.get(0).unwrap_or_default();
    NAMES.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Whether `text` is what a pattern says, as `KEYS` has patterns; one that is too long fits nothing.
#[must_use]
pub fn fits(pattern: &[u8], text: &[u8]) -> bool {
    Glob::new(pattern).is_some_and(|pattern| pattern.matches(text))
}

/// The name of the read that shows versions of keys, for `WATCH`; at the Redis port no client can send it.
pub const VERSIONS: &[u8] = b"\0versions";

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resp {
    /// The one that connections begin with.
    V2,
    /// The one that `HELLO 3` asks for.
    V3,
}

impl Resp {
    /// Its digit.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::V2 => b'2',
            Self::V3 => b'3',
        }
    }

    /// The version with this digit.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'2' => Some(Self::V2),
            b'3' => Some(Self::V3),
            _ => None,
        }
    }
}
