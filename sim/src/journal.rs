//! The log's thread, without a thread: jobs wait, go to the disk as one batch, and are done some time
//! later. The same steps in the same order as the real one; time is the world's.
use crate::random::Random;
use quorumwire_control::{Entry, HardState, Peer, Ticket};
use quorumwire_interfaces::{Index, Term};
use quorumwire_storage::{LogJob, Wal, WalError, compactable};
use std::collections::VecDeque;

/// What is known to be durable: kept by the simulator to compare with what a restart finds.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    /// The highest term on disk.
    pub term: Term,
    /// The vote in it.
    pub vote: Option<Peer>,
    /// Everything up to here is in a snapshot.
    base: u64,
    /// Terms of the entries behind `base`.
    terms: VecDeque<Term>,
    /// What was being written when the process stopped begins here, and may or may not be there.
    pub unsure_from: Option<Index>,
}

impl Durable {
    /// What a restart has found; from now on this is what is known.
    pub fn found(hard_state: &HardState, snapshot: Index, entries: &[Entry]) -> Self {
        let mut found = Self {
            term: hard_state.term,
            vote: hard_state.vote,
            base: snapshot.0,
            terms: VecDeque::new(),
            unsure_from: None,
        };
        found.write(entries.iter().map(|entry| (entry.index, entry.term)));
        found
    }

    /// The last entry.
    #[must_use]
    pub fn last_index(&self) -> Index {
        Index(self.base + self.terms.len() as u64)
    }

    /// Whether this very entry is there.
    #[must_use]
    pub fn holds(&self, index: Index, term: Term) -> bool {
        index.0 <= self.base || self.term_at(index) == Some(term)
    }

    /// The term of an entry behind the snapshot.
    #[must_use]
    pub fn term_at(&self, index: Index) -> Option<Term> {
        let offset = index.0.checked_sub(self.base + 1)?;
        self.terms.get(usize::try_from(offset).ok()?).copied()
    }

    /// The entries behind the snapshot.
    pub fn entries(&self) -> impl Iterator<Item = (Index, Term)> + '_ {
        let first = self.base + 1;
        self.terms
            .iter()
            .zip(first..)
            .map(|(term, index)| (Index(index), *term))
    }

    fn write(&mut self, entries: impl Iterator<Item = (Index, Term)>) {
        for (index, term) in entries {
            let Some(offset) = index.0.checked_sub(self.base + 1) else {
                // The snapshot has it; what stood behind it in the log is replaced all the same.
                self.terms.clear();
                continue;
            };
            self.terms.truncate(usize::try_from(offset).unwrap_or(0));
            self.terms.push_back(term);
        }
    }

    /// A durable snapshot stands for everything up to here; the log goes on.
    pub fn covered(&mut self, (last_index, last_term): (Index, Term)) {
        if self
            .term_at(last_index)
            .is_some_and(|term| term != last_term)
        {
            self.terms.clear(); // a restart drops what does not go on from the snapshot
        }
        while self.base < last_index.0 {
            self.base += 1;
            self.terms.pop_front();
        }
    }

    /// A durable snapshot takes the log's place, unless the log goes on from it.
    pub fn begin_behind(&mut self, (index, term): (Index, Term)) {
        if !self.holds(index, term) || index > self.last_index() {
            self.terms.clear();
            self.base = self.base.max(index.0);
        }
        self.covered((index, term));
    }
}

/// Where promises are kept: a log (`sync`) or nothing (`memory`).
#[derive(Default)]
pub struct Journal {
    wal: Option<Wal>,
    waiting: VecDeque<Job>,
    batch: Vec<LogJob>,
    notes: Vec<Note>,
    /// The disk is at it.
    pub writing: bool,
    last_ticket: u64,
    /// Everything up to here is on disk.
    pub persisted: u64,
    /// What the replica has been told.
    pub told: u64,
    compact_upto: Option<Index>,
}

struct Job {
    log: LogJob,
    note: Note,
}

#[derive(Default)]
struct Note {
    hard_state: Option<HardState>,
    begin_behind: Option<(Index, Term)>,
    entries: Vec<(Index, Term)>,
}

/// What became of a batch.
pub enum WriteOutcome {
    /// It is on disk.
    Done,
    /// There is no room; it waits.
    Full,
    /// The log takes nothing any more: the process must end.
    Failed(String),
}

impl Journal {
    /// A journal over a log, or over nothing.
    #[must_use]
    pub fn new(wal: Option<Wal>) -> Self {
        Self {
            wal,
            ..Self::default()
        }
    }

    /// Whether what it is given is ever durable.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        self.wal.is_some()
    }

    /// Takes hard state and entries. `Some`: durable at once, as far as `memory` goes.
    pub fn persist(
        &mut self,
        ticket: Ticket,
        hard_state: Option<HardState>,
        entries: &[Entry],
    ) -> Option<Ticket> {
        if self.wal.is_none() {
            return Some(ticket);
        }
        self.last_ticket = ticket.0;
        self.waiting.push_back(Job {
            log: LogJob {
                ticket: ticket.0,
                hard_state: hard_state.as_ref().map(HardState::to_proto),
                begin_behind: None,
                pieces: Entry::pieces(entries),
            },
            note: Note {
                hard_state,
                begin_behind: None,
                entries: entries.iter().map(|e| (e.index, e.term)).collect(),
            },
        });
        None
    }

    /// A snapshot has been installed: the log begins behind it.
    pub fn begin_behind(&mut self, last_index: Index, last_term: Term) {
        if self.wal.is_none() {
            return;
        }
        let begin_behind = Some((last_index, last_term));
        self.waiting.push_back(Job {
            log: LogJob {
                ticket: self.last_ticket, // says nothing new about what is durable
                begin_behind,
                ..LogJob::default()
            },
            note: Note {
                begin_behind,
                ..Note::default()
            },
        });
    }

    /// Everything up to here is in a durable snapshot.
    pub fn compact(&mut self, upto: Index) {
        self.compact_upto = self.compact_upto.max(Some(upto));
    }

    /// Whether the disk has something to do and does nothing.
    #[must_use]
    pub fn wants_disk(&self) -> bool {
        self.wal.is_some() && !self.writing && self.has_work()
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.batch.is_empty() || self.compact_upto.is_some()
    }

    /// Bytes and jobs that wait.
    #[must_use]
    pub fn jobs_waiting(&self) -> usize {
        self.waiting.len() + self.batch.len()
    }

    /// The disk begins: all that waits goes into one batch, unless an older one still waits for room.
    pub fn begin(&mut self) {
        self.writing = true;
        if self.batch.is_empty() {
            for job in self.waiting.drain(..) {
                self.batch.push(job.log);
                self.notes.push(job.note);
            }
        }
    }

    /// The first index that the batch under way writes anew, if it writes any.
    #[must_use]
    pub fn unsure_from(&self) -> Option<Index> {
        let first = |note: &Note| {
            let begun = note.begin_behind.map(|base| base.0);
            begun.or(note.entries.first().map(|entry| entry.0))
        };
        self.notes.iter().filter_map(first).min()
    }

    /// The disk does the batch.
    pub fn write(&mut self, durable: &mut Durable) -> WriteOutcome {
        let Some(wal) = &mut self.wal else {
            return WriteOutcome::Done;
        };
        if !self.batch.is_empty() {
            match wal.write(&self.batch) {
                Ok(()) => {}
                Err(WalError::DiskFull { .. } | WalError::NoDescriptor) => {
                    self.compact_log();
                    return WriteOutcome::Full;
                }
                Err(WalError::Failed(problem)) => return WriteOutcome::Failed(problem),
            }
        }
        self.persisted = self.batch.last().map_or(self.persisted, |job| job.ticket);
        self.batch.clear();
        for note in self.notes.drain(..) {
            if let Some(hard_state) = note.hard_state {
                durable.term = hard_state.term;
                durable.vote = hard_state.vote;
            }
            if let Some(base) = note.begin_behind {
                durable.begin_behind(base);
            }
            durable.write(note.entries.into_iter());
        }
        self.compact_log();
        self.writing = false;
        WriteOutcome::Done
    }

    fn compact_log(&mut self) {
        if let (Some(wal), Some(upto)) = (&mut self.wal, self.compact_upto.take()) {
            let waiting = self.waiting.iter().map(|job| &job.log);
            let possible = compactable(upto, self.batch.iter().chain(waiting));
            self.compact_upto = (possible < upto).then_some(upto);
            // What cannot be removed now is removed by a later call.
            let _ = wal.compact(possible);
        }
    }

    /// The power goes, or the process dies, in the middle of the batch: whatever the disk lets through
    /// of it is written. Nobody hears of it.
    pub fn write_and_die(&mut self, random: &mut Random) {
        if self.batch.is_empty() && random.permille(500) {
            self.begin();
        }
        if let Some(wal) = &mut self.wal
            && !self.batch.is_empty()
        {
            let _ = wal.write(&self.batch);
        }
    }

    /// Segments of the log.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.wal.as_ref().map_or(0, Wal::segment_count)
    }
}

#[cfg(test)]
mod tests {
    use super::Durable;
    use quorumwire_interfaces::{Index, Term};

    #[test]
    fn what_an_entry_in_the_snapshot_replaces_is_gone() {
        let mut durable = Durable::default();
        let entries = |list: &[(u64, u64)]| -> Vec<_> {
            let entry = |(index, term): &(u64, u64)| (Index(*index), Term(*term));
            list.iter().map(entry).collect()
        };
        durable.write(entries(&[(1, 1), (2, 1), (3, 1)]).into_iter());
        // The others' second entry is committed and in a snapshot before the disk has it.
        durable.covered((Index(2), Term(1)));
        assert_eq!(durable.last_index(), Index(3));
        durable.write(entries(&[(2, 2)]).into_iter());
        assert_eq!(durable.last_index(), Index(2));
    }

    #[test]
    fn what_does_not_go_on_from_the_snapshot_is_gone() {
        let mut durable = Durable::default();
        durable.write(
            [
                (Index(1), Term(1)),
                (Index(2), Term(1)),
                (Index(3), Term(1)),
            ]
            .into_iter(),
        );
        durable.covered((Index(2), Term(2)));
        assert_eq!(durable.last_index(), Index(2));
    }
}
