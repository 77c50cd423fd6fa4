//! The memcached text protocol: requests out of bytes, answers into bytes. No sockets, no store.

mod base64;
mod meta;
mod number;
mod parse;
mod read;
pub mod reply;

use crate::{Command, Keys, WhyRefused};

pub(crate) use meta::{Flags, NO_KEY};
pub use meta::{Meta, MetaDebug, MetaKind};
pub(crate) use number::unsigned;
pub use parse::{parse, parse_on};
pub use read::{Read, ReadForm, ReadKind};
use reply::RefusalReply;

/// Longest request line in bytes, its end included; only `get` and `gets` may use all of it.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Most keys of one `get` or `gets`.
pub const READ_KEYS_MAX: usize = 32 << 10;

/// Longest line of any other request in bytes, its end included.
pub const COMMAND_LINE_BYTES_MAX: usize = 2048;

/// Longest request in bytes: what a connection must be able to buffer.
pub const REQUEST_BYTES_MAX: usize = COMMAND_LINE_BYTES_MAX + crate::VALUE_BYTES_MAX + 2;

/// Whether one request may ask for so many.
#[must_use]
pub fn are_few(keys: Keys<'_>) -> bool {
    let is_short = keys.text().len() < 2 * READ_KEYS_MAX; // with a blank before each, it holds no more
    is_short || keys.iter().count() <= READ_KEYS_MAX
}

/// What stands at the start of a connection's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parsed<'a> {
    /// Not a whole request yet.
    Incomplete {
        /// There is nothing new to find before the buffer holds this many bytes; more than it holds,
        /// at most [`REQUEST_BYTES_MAX`].
        needed: usize,
        /// So many bytes at its start hold no end of a line: what [`parse_on`] need not search again.
        searched: usize,
    },
    /// A request.
    Request {
        /// How many bytes it took.
        consumed: usize,
        /// What it asks for.
        request: Request<'a>,
    },
    /// Something that is answered without asking anybody.
    Refused {
        /// How many bytes it took.
        consumed: usize,
        /// How many bytes behind those belong to it and are to be thrown away, arrived or not.
        swallow: usize,
        /// The answer; empty if the client asked for none.
        reply: &'static [u8],
        /// Why it is, whatever the client is told.
        why: WhyRefused,
        /// Whether the connection cannot go on: where the next request starts is not known.
        close: bool,
    },
}

/// A whole request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Request<'a> {
    /// To be put into the log.
    Write {
        /// What to do.
        command: Command<'a>,
        /// Whether the client wants no answer.
        noreply: bool,
    },
    /// To be answered from the store.
    Read(Read<'a>),
    /// To be answered by whoever holds the connection.
    Local(Local<'a>),
}

/// A request about the server, not about its items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Local<'a> {
    /// `version`: answer `VERSION ...`.
    Version,
    /// `verbosity` and what else tunes that which is not here: answer [`reply::OK`].
    Tuning {
        /// Whether the client wants no answer.
        noreply: bool,
    },
    /// `stats`: answer `STAT name value` lines and [`reply::END`].
    Stats {
        /// Which statistics, if not the general ones: `reset` (answer [`reply::RESET`]) or a name.
        argument: Option<&'a [u8]>,
    },
    /// `quit`: close the connection when all earlier answers are out.
    Quit,
    /// `mn`, the no-op of the meta protocol: answer [`reply::META_NOOP`].
    MetaNoop,
}
