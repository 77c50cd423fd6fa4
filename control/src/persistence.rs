//! What was given to the disk and what has arrived there. Does not decide what to write.
use crate::mutants::mutant;
use crate::{Entry, HardState, Output, Ticket};
use quorumwire_interfaces::Index;
use std::collections::VecDeque;

/// Work given out and not yet reported as durable, oldest first.
#[derive(Debug)]
pub(crate) struct Persistence {
    last_ticket: Ticket,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The hard state last given out.
    pub(crate) given: HardState,
    /// The hard state on disk.
    pub(crate) durable: HardState,
    /// Last index given out, of the log as it is now.
    pub(crate) given_index: Index,
    /// Last index on disk, of the log as it is now.
    pub(crate) persisted_index: Index,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    /// Once this ticket is durable, the log is durable up to here. Lowered when the log is cut:
    /// what arrives on disk then is not what stands in the log now.
    upto: Index,
    hard_state: HardState,
    bytes: usize,
}

impl Persistence {
    pub(crate) fn new(stored: HardState, last_index: Index) -> Self {
        Self {
            last_ticket: Ticket(0),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            given: stored,
            durable: stored,
            given_index: last_index,
            persisted_index: last_index,
        }
    }

    /// Bytes of entries on their way to the disk.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Gives out entries (behind `given_index`), and the hard state if it changed. The commit index
    /// alone is no reason to write: it goes along with the next entries.
    pub(crate) fn give(
        &mut self,
        hard_state: HardState,
        entries: Vec<Entry>,
        outputs: &mut Vec<Output>,
    ) {
        let promised = hard_state.term != self.given.term || hard_state.vote != self.given.vote;
        if promised || !entries.is_empty() {
            self.put(hard_state, entries, outputs);
        }
    }

    /// Gives out the hard state for its commit index alone, which no entry will come to carry.
    pub(crate) fn give_commit_index(&mut self, hard_state: HardState, outputs: &mut Vec<Output>) {
        self.put(hard_state, Vec::new(), outputs);
    }

    fn put(&mut self, hard_state: HardState, entries: Vec<Entry>, outputs: &mut Vec<Output>) {
        let changed = hard_state != self.given;
        let bytes = entries.iter().map(|entry| entry.record().len()).sum();
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            assert_eq!(
                first.index,
                self.given_index.next(),
                "entries given to disk with a gap"
            );
            self.given_index = last.index;
        }
        self.last_ticket.0 += 1;
        self.given = hard_state;
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting {
            ticket: self.last_ticket,
            upto: self.given_index,
            hard_state,
            bytes,
        });
        outputs.push(Output::Persist {
            ticket: self.last_ticket,
            hard_state: changed.then_some(hard_state),
            entries,
        });
    }

    /// The disk has everything up to this ticket.
    pub(crate) fn persisted(&mut self, ticket: Ticket) {
        while let Some(waiting) = self.waiting.front() {
            if waiting.ticket > ticket {
                break;
            }
            self.persisted_index = self.persisted_index.max(waiting.upto);
            self.durable = waiting.hard_state;
            self.waiting_bytes -= waiting.bytes;
            self.waiting.pop_front();
        }
    }

    /// The log was cut from this index on.
    pub(crate) fn truncated_from(&mut self, index: Index) {
        let kept = index.previous();
        self.given_index = self.given_index.min(kept);
        self.persisted_index = self.persisted_index.min(kept);
        if mutant("async-persist-aba") {
            return;
        }
        for waiting in &mut self.waiting {
            waiting.upto = waiting.upto.min(kept);
        }
    }

    /// A durable snapshot stands for everything up to here, and the log behind it is empty.
    pub(crate) fn replaced_by_snapshot(&mut self, last_index: Index) {
        for waiting in &mut self.waiting {
            waiting.upto = Index(0);
        }
        self.given_index = last_index;
        self.persisted_index = last_index;
    }

    /// A durable snapshot stands for everything up to here; the log goes on.
    pub(crate) fn covered_by_snapshot(&mut self, last_index: Index) {
        self.persisted_index = self.persisted_index.max(last_index.min(self.given_index));
    }
}
