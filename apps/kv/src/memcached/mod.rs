//! The memcached text protocol: requests out of bytes, answers into bytes. No sockets, no store.

mod number;
mod parse;
pub mod reply;

use crate::{Command, Keys};

pub(crate) use number::unsigned;
pub use parse::parse;

/// Longest request line in bytes, its end included; only `get` and `gets` may use all of it. This is
/// also what bounds the keys of one read: 32,766.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Longest line of any other request in bytes, its end included.
pub const COMMAND_LINE_BYTES_MAX: usize = 2048;

/// Longest request in bytes: what a connection must be able to buffer.
pub const REQUEST_BYTES_MAX: usize = COMMAND_LINE_BYTES_MAX + crate::VALUE_BYTES_MAX + 2;

/// What stands at the start of a connection's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parsed<'a> {
    /// Not a whole request yet.
    Incomplete {
        /// There is nothing new to find before the buffer holds this many bytes; more than it holds,
        /// at most [`REQUEST_BYTES_MAX`].
        needed: usize,
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

/// A `get` or `gets`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Read<'a> {
    line: &'a [u8],
    keys: Keys<'a>,
    with_unique: bool,
}

impl<'a> Read<'a> {
    /// The read in a line as [`line`](Self::line) gives it, or `None` if it is none.
    #[must_use]
    pub fn from_line(line: &'a [u8]) -> Option<Self> {
        let (text, with_unique) = match line.strip_prefix(b"get ") {
            Some(text) => (text, false),
            None => (line.strip_prefix(b"gets ")?, true),
        };
        let keys = Keys::new(text)?;
        keys.iter().next()?;
        Some(Self {
            line,
            keys,
            with_unique,
        })
    }

    /// The request line, from its first letter to its last key: a part of the bytes that were parsed,
    /// and what `query` takes.
    #[must_use]
    pub const fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The keys asked for, at least one, in the order to be answered.
    #[must_use]
    pub const fn keys(&self) -> Keys<'a> {
        self.keys
    }

    /// Whether the answer shows unique numbers, as `gets` does.
    #[must_use]
    pub const fn with_unique(&self) -> bool {
        self.with_unique
    }
}

/// A request about the server, not about its items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Local<'a> {
    /// `version`: answer `VERSION ...`.
    Version,
    /// `verbosity`: answer [`reply::OK`].
    Verbosity {
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
