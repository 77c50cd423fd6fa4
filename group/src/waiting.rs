//! All reads of a group that wait: for a read index round, for entries to be applied, or for time.
use crate::requester::Follower;
use bytes::Bytes;
use quorumwire_control::{Now, Ticket};
use quorumwire_interfaces::{Index, counters};
use std::collections::BTreeMap;

/// So many reads may wait here, whosever they are: behind them followers' are refused.
const READS_MAX: usize = 16 << 10;
/// And followers' reads of so many bytes.
const FOLLOWER_READ_BYTES_MAX: usize = 64 << 20;

/// A read that waits.
#[derive(Debug)]
pub enum Reader<R> {
    /// Of somebody here.
    Here(R),
    /// Of a follower.
    Follower(FollowerRead),
}

/// Whose read it is whose round was refused.
#[derive(Debug)]
pub enum Ungranted<R> {
    /// Of somebody here.
    Here(R),
    /// Of a follower, which is told.
    Follower,
    /// The ticket is no read's.
    NoRead,
}

/// A read that a follower passed on.
#[derive(Clone, Debug)]
pub struct FollowerRead {
    /// Whose it is.
    pub from: Follower,
    /// What is asked.
    pub line: Bytes,
    /// When it came.
    pub at: Now,
}

counters! {
    /// What reads of a group have taken.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ReadCounters {
        /// Read indexes that reads wanted, for want of a lease or because `reads` is `read-index`, and
        /// backups
        pub rounds_asked: "read_indexes_asked",
    }
}

/// All reads that wait.
#[derive(Debug)]
pub struct Reads<R> {
    /// For a read index round, and what else they must show.
    pub(crate) asked: BTreeMap<Ticket, (Index, Reader<R>)>,
    /// For this entry to be applied, or for time.
    pub(crate) waiting: Vec<(Index, Reader<R>)>,
    /// Some of those that wait could be answered, and wait for time.
    pub has_late: bool,
    /// Of what followers' reads that wait ask.
    pub(crate) follower_bytes: usize,
    /// Counted since the start.
    pub counters: ReadCounters,
}

impl<R> Default for Reads<R> {
    fn default() -> Self {
        Self {
            asked: BTreeMap::new(),
            waiting: Vec::new(),
            has_late: false,
            follower_bytes: 0,
            counters: ReadCounters::default(),
        }
    }
}

impl<R> Reads<R> {
    /// Whether one waits for a read index round.
    #[must_use]
    pub fn await_round(&self) -> bool {
        !self.asked.is_empty()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.asked.len() + self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a read of a follower that asks so much may wait, too.
    pub(crate) fn has_room_for(&self, line_bytes: usize) -> bool {
        self.len() < READS_MAX && self.follower_bytes + line_bytes <= FOLLOWER_READ_BYTES_MAX
    }

    pub(crate) fn ask(&mut self, ticket: Ticket, must_apply: Index, reader: Reader<R>) {
        self.follower_bytes += reader.follower_bytes();
        self.asked.insert(ticket, (must_apply, reader));
    }

    pub(crate) fn take_asked(&mut self, ticket: Ticket) -> Option<(Index, Reader<R>)> {
        let taken = self.asked.remove(&ticket)?;
        self.follower_bytes -= taken.1.follower_bytes();
        Some(taken)
    }

    pub(crate) fn wait(&mut self, index: Index, reader: Reader<R>) {
        self.follower_bytes += reader.follower_bytes();
        self.waiting.push((index, reader));
    }

    pub(crate) fn take_waiting(
        &mut self,
        which: impl Fn(Index) -> bool,
    ) -> Vec<(Index, Reader<R>)> {
        let taken: Vec<_> = self.waiting.extract_if(.., |it| which(it.0)).collect();
        for (_, reader) in &taken {
            self.follower_bytes -= reader.follower_bytes();
        }
        taken
    }

    /// Forgets the reads that nobody wants any more.
    pub fn keep(&mut self, is_wanted: impl Fn(&Reader<R>) -> bool) {
        self.asked.retain(|_, (_, reader)| is_wanted(reader));
        self.waiting.retain(|(_, reader)| is_wanted(reader));
        let asked = self.asked.values().map(|it| &it.1);
        let kept = asked.chain(self.waiting.iter().map(|it| &it.1));
        self.follower_bytes = kept.map(Reader::follower_bytes).sum();
    }
}

impl<R> Reader<R> {
    pub(crate) const fn follower_bytes(&self) -> usize {
        match self {
            Self::Here(_) => 0,
            Self::Follower(read) => read.line.len(),
        }
    }
}
