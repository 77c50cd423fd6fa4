//! Reads that wait: for a read index round, for entries to be applied, or for time to answer them.
use crate::forwards::REQUEST_TIMEOUT;
use crate::group::{Gate, Group};
use crate::requester::Requester;
use crate::waiting::{FollowerRead, Reader, Ungranted};
use quorumwire_control::{Input, Refusal, Ticket};
use quorumwire_interfaces::{Application, DataPlane, Index, Reason};

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
