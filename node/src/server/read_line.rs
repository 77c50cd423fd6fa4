//! A read as it is kept until it is answered: its line, how far its answer has come, and what it counts for.
use quorumwire_kv::{Query, QueryForm};

/// A query's answer may be as long as several items; it stands for so many keys.
pub const KEYS_OF_A_QUERY: u32 = 4;

/// What a read counts for, in keys, that looks for keys: no write is put behind it, and no other read passed
/// on, before it is answered.
pub const KEYS_OF_A_SEARCH: u32 = 1 << 20;
/// Whether a read is answered already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerTime {
    /// It was written.
    Now,
    /// Whoever asked is told later.
    Later,
}

/// The line of a read, and what the service saw it to be when it came. That means nothing to anybody else.
#[derive(Clone, Copy, Debug)]
pub struct ReadLine<'a> {
    pub line: &'a [u8],
    pub form: QueryForm,
}

/// Where in a read its answer has come to.
#[derive(Clone, Copy)]
pub struct ReadProgress {
    pub line_bytes: u32,
    pub keys: u32,
    pub keys_done: u32,
    pub keys_at_once: u32,
    pub form: QueryForm,
}

impl<'a> ReadLine<'a> {
    /// The read that it was seen to be.
    pub fn query(self) -> Query<'a> {
        Query::of(self.form, self.line)
    }
}
