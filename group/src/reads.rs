//! Reads that wait: for a read index round, for entries to be applied, or for time to answer them.
use crate::forwarding::REQUEST_TIMEOUT;
use crate::group::{Gate, Group};
use crate::requester::{Follower, Requester};
use bytes::Bytes;
use quorumwire_control::{Input, Now, Refusal, Ticket};
use quorumwire_interfaces::{Application, DataPlane, Index, Reason, counters};
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
    asked: BTreeMap<Ticket, (Index, Reader<R>)>,
    /// For this entry to be applied, or for time.
    waiting: Vec<(Index, Reader<R>)>,
    /// Some of those that wait could be answered, and wait for time.
    pub has_late: bool,
    /// Of what followers' reads that wait ask.
    follower_bytes: usize,
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

    fn ask(&mut self, ticket: Ticket, must_apply: Index, reader: Reader<R>) {
        self.follower_bytes += reader.follower_bytes();
        self.asked.insert(ticket, (must_apply, reader));
    }

    fn take_asked(&mut self, ticket: Ticket) -> Option<(Index, Reader<R>)> {
        let taken = self.asked.remove(&ticket)?;
        self.follower_bytes -= taken.1.follower_bytes();
        Some(taken)
    }

    fn wait(&mut self, index: Index, reader: Reader<R>) {
        self.follower_bytes += reader.follower_bytes();
        self.waiting.push((index, reader));
    }

    fn take_waiting(&mut self, which: impl Fn(Index) -> bool) -> Vec<(Index, Reader<R>)> {
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
    const fn follower_bytes(&self) -> usize {
        match self {
            Self::Here(_) => 0,
            Self::Follower(read) => read.line.len(),
        }
    }
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// A number for a question to the replica, or for somebody who waits for an answer of this group.
    pub fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// How many numbers were given.
    #[must_use]
    pub const fn tickets_given(&self) -> u64 {
        self.last_ticket
    }

    /// Asks the replica for an index that a linearizable read may be answered at. The round that it may take
    /// begins when it is flushed.
    pub fn ask_read_index(&mut self, ticket: Ticket) {
        self.reads.counters.rounds_asked += 1;
        self.step(Input::Read(ticket));
        self.wants_flush = true;
    }

    /// Has a read index round begun for a read that must show everything up to `must_apply`.
    pub fn ask_round(&mut self, must_apply: Index, reader: Reader<O::Reader>) -> Ticket {
        let ticket = self.next_ticket();
        self.reads.ask(ticket, must_apply, reader);
        self.ask_read_index(ticket);
        ticket
    }

    /// This read waits for an entry to be applied.
    pub fn wait_for(&mut self, index: Index, reader: Reader<O::Reader>) {
        self.reads.wait(index, reader);
    }

    /// This read could be answered, and waits for time.
    pub fn wait_for_time(&mut self, index: Index, reader: Reader<O::Reader>) {
        self.wait_for(index, reader);
        self.reads.has_late = true;
    }

    /// The round of this ticket has come back: whose it is, and what is to be applied first; `None`: no
    /// read's.
    pub(crate) fn take_granted(
        &mut self,
        ticket: Ticket,
        index: Index,
    ) -> Option<(Index, Reader<O::Reader>)> {
        let (must_apply, reader) = self.reads.take_asked(ticket)?;
        Some((index.max(must_apply), reader))
    }

    /// The round of this ticket was refused: whose it is. A follower is told.
    pub(crate) fn take_ungranted(
        &mut self,
        ticket: Ticket,
        refusal: &Refusal,
    ) -> Ungranted<O::Reader> {
        let Some((_, reader)) = self.reads.take_asked(ticket) else {
            return Ungranted::NoRead;
        };
        let is_busy = matches!(refusal, Refusal::Busy { .. });
        match reader {
            Reader::Here(reader) => {
                self.stalled |= is_busy; // not at once, which would be as much in vain
                Ungranted::Here(reader)
            }
            Reader::Follower(read) => {
                let reason = if is_busy {
                    Reason::Busy
                } else {
                    Reason::NotLeader
                };
                self.refuse_follower(read.from, reason);
                Ungranted::Follower
            }
        }
    }

    /// Those that waited for what is applied now, or for time.
    pub fn take_ready(&mut self) -> Vec<(Index, Reader<O::Reader>)> {
        self.reads.has_late = false;
        let applied = self.applied;
        self.reads.take_waiting(|index| index <= applied)
    }

    /// If the log's time stands still: those here that wait for it. Followers are told.
    pub(crate) fn take_overdue(&mut self) -> Vec<O::Reader> {
        if !self.time_stands_still() {
            return Vec::new();
        }
        let barrier = self.clock.barrier;
        let overdue = self.reads.take_waiting(|index| index == barrier);
        let mut here = Vec::new();
        for (_, reader) in overdue {
            match reader {
                Reader::Here(reader) => here.push(reader),
                Reader::Follower(read) => self.refuse_follower(read.from, Reason::Overdue),
            }
        }
        here
    }

    /// A follower's read that has leave to be answered at `index`: back if that is now. Otherwise it waits,
    /// or is refused.
    pub(crate) fn follower_read_at(
        &mut self,
        index: Index,
        read: FollowerRead,
    ) -> Option<FollowerRead> {
        match self.gate_granted(index, true, &read.line) {
            Gate::Open | Gate::NoLease | Gate::NotLeader => Some(read),
            Gate::Wait(index) => {
                self.wait_for(index, Reader::Follower(read));
                None
            }
            Gate::Overdue => {
                self.refuse_follower(read.from, Reason::Overdue);
                None
            }
        }
    }

    /// Followers have given these up.
    pub(crate) fn forget_late_reads(&mut self) {
        let now = self.now;
        self.reads.keep(|reader| match reader {
            Reader::Follower(read) => now.0.saturating_sub(read.at.0) <= REQUEST_TIMEOUT,
            Reader::Here(_) => true,
        });
    }
}
