//! Reads that wait: for a read index round, for entries to be applied, or for time to answer them.
use crate::asker::{Asker, Follower};
use crate::forwarding::REQUEST_TIMEOUT;
use crate::group::{Gate, Group};
use bytes::Bytes;
use quorumwire_control::{Input, Now, Refusal, Ticket};
use quorumwire_interfaces::{DataPlane, Index, Reason, StateMachine, counters};
use std::collections::BTreeMap;

/// Reads that followers have passed on and that may wait here.
pub(crate) const FOLLOWER_READS_MAX: usize = 16 << 10;

/// A read that waits.
#[derive(Debug)]
pub enum Reader<R> {
    /// Of somebody here.
    Here(R),
    /// Of a follower.
    Follower(FollowerRead),
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
    /// Counted since the start.
    pub counters: ReadCounters,
}

impl<R> Default for Reads<R> {
    fn default() -> Self {
        Self {
            asked: BTreeMap::new(),
            waiting: Vec::new(),
            has_late: false,
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

    /// Forgets the reads that nobody wants any more.
    pub fn keep(&mut self, is_wanted: impl Fn(&Reader<R>) -> bool) {
        self.asked.retain(|_, (_, reader)| is_wanted(reader));
        self.waiting.retain(|(_, reader)| is_wanted(reader));
    }
}

impl<S: StateMachine, O: Asker, P: DataPlane + ?Sized> Group<S, O, P> {
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

    /// Asks the replica for an index that a linearizable read may be answered at. The round that it may take begins
    /// when it is flushed.
    pub fn ask_read_index(&mut self, ticket: Ticket) {
        self.reads.counters.rounds_asked += 1;
        self.step(Input::Read(ticket));
        self.wants_flush = true;
    }

    /// Has a read index round begun for a read that must show everything up to `must_apply`.
    pub fn ask_round(&mut self, must_apply: Index, reader: Reader<O::Reader>) -> Ticket {
        let ticket = self.next_ticket();
        self.reads.asked.insert(ticket, (must_apply, reader));
        self.ask_read_index(ticket);
        ticket
    }

    /// This read waits for an entry to be applied.
    pub fn wait_for(&mut self, index: Index, reader: Reader<O::Reader>) {
        self.reads.waiting.push((index, reader));
    }

    /// This read could be answered, and waits for time.
    pub fn wait_for_time(&mut self, index: Index, reader: Reader<O::Reader>) {
        self.wait_for(index, reader);
        self.reads.has_late = true;
    }

    /// The round of this ticket has come back: whose it is, and what is to be applied first; `None`: no read's.
    pub fn take_granted(
        &mut self,
        ticket: Ticket,
        index: Index,
    ) -> Option<(Index, Reader<O::Reader>)> {
        let (must_apply, reader) = self.reads.asked.remove(&ticket)?;
        Some((index.max(must_apply), reader))
    }

    /// The round of this ticket was refused: whose it is of those here; `None`: no read's. A follower is told.
    pub fn take_ungranted(
        &mut self,
        ticket: Ticket,
        refusal: &Refusal,
    ) -> Option<Option<O::Reader>> {
        let (_, reader) = self.reads.asked.remove(&ticket)?;
        let is_busy = matches!(refusal, Refusal::Busy { .. });
        Some(match reader {
            Reader::Here(reader) => {
                self.stalled |= is_busy; // not at once, which would be as much in vain
                Some(reader)
            }
            Reader::Follower(read) => {
                let reason = if is_busy {
                    Reason::Busy
                } else {
                    Reason::NotLeader
                };
                self.refuse_follower(read.from, reason);
                None
            }
        })
    }

    /// Those that waited for what is applied now, or for time.
    pub fn take_ready(&mut self) -> Vec<(Index, Reader<O::Reader>)> {
        self.reads.has_late = false;
        let applied = self.applied;
        let is_ready = |(index, _): &mut (Index, _)| *index <= applied;
        self.reads.waiting.extract_if(.., is_ready).collect()
    }

    /// If the log's time stands still: those here that wait for it. Followers are told.
    pub fn take_overdue(&mut self) -> Vec<O::Reader> {
        if !self.time_stands_still() {
            return Vec::new();
        }
        let barrier = self.clock.barrier;
        let is_overdue = |(index, _): &mut (Index, _)| *index == barrier;
        let overdue: Vec<_> = self.reads.waiting.extract_if(.., is_overdue).collect();
        let mut here = Vec::new();
        for (_, reader) in overdue {
            match reader {
                Reader::Here(reader) => here.push(reader),
                Reader::Follower(read) => self.refuse_follower(read.from, Reason::Overdue),
            }
        }
        here
    }

    /// A follower's read that has leave to be answered at `index`: back if that is now. Otherwise it waits, or is refused.
    pub fn follower_read_at(&mut self, index: Index, read: FollowerRead) -> Option<FollowerRead> {
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
    pub fn forget_late_reads(&mut self) {
        let now = self.now;
        self.reads.keep(|reader| match reader {
            Reader::Follower(read) => now.0.saturating_sub(read.at.0) <= REQUEST_TIMEOUT,
            Reader::Here(_) => true,
        });
    }
}
