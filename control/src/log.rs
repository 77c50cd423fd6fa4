//! The log in memory: entries behind a base, contiguous. Knows nothing of terms in force, commitment
//! or disks.
use crate::Entry;
use quorumwire_interfaces::{Index, Term};
use std::collections::VecDeque;

/// Entries with consecutive indexes behind `base_index`; of the base only the term is known.
#[derive(Debug)]
pub(crate) struct Log {
    base_index: Index,
    base_term: Term,
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Log {
    pub(crate) fn new(base_index: Index, base_term: Term) -> Self {
        Self {
            base_index,
            base_term,
            entries: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The index before the first entry.
    pub(crate) fn base_index(&self) -> Index {
        self.base_index
    }

    pub(crate) fn first_index(&self) -> Index {
        self.base_index.next()
    }

    pub(crate) fn last_index(&self) -> Index {
        Index(self.base_index.0 + self.entries.len() as u64)
    }

    pub(crate) fn last_term(&self) -> Term {
        self.entries.back().map_or(self.base_term, |e| e.term)
    }

    /// Bytes of all records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Entry> {
        let offset = index.0.checked_sub(self.base_index.0 + 1)?;
        self.entries.get(usize::try_from(offset).ok()?)
    }

    /// The term at an index from the base to the last one.
    pub(crate) fn term_at(&self, index: Index) -> Option<Term> {
        if index == self.base_index {
            return Some(self.base_term);
        }
        self.get(index).map(|entry| entry.term)
    }

    /// The entries from `first` to `last`, both included, as far as they are there.
    pub(crate) fn range(&self, first: Index, last: Index) -> impl Iterator<Item = &Entry> {
        let first = first.max(self.first_index());
        let last = last.min(self.last_index());
        let start = self.offset(first);
        let end = self.offset(last.next()).max(start);
        self.entries.range(start.min(end)..end)
    }

    /// Where an index stands in `entries`; one behind the last is allowed.
    fn offset(&self, index: Index) -> usize {
        let offset = index.0.saturating_sub(self.base_index.0 + 1);
        usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.entries.len())
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        assert_eq!(entry.index, self.last_index().next(), "log has a gap");
        assert!(entry.term >= self.last_term(), "log's terms go back");
        self.bytes += entry.record().len();
        self.entries.push_back(entry);
    }

    /// Removes this entry and everything behind it.
    pub(crate) fn truncate_from(&mut self, index: Index) {
        assert!(index > self.base_index, "log cut before its base");
        while self.last_index() >= index {
            let Some(entry) = self.entries.pop_back() else {
                break;
            };
            self.bytes -= entry.record().len();
        }
    }

    /// Forgets everything; the log goes on behind this place.
    pub(crate) fn reset(&mut self, base_index: Index, base_term: Term) {
        *self = Self::new(base_index, base_term);
    }

    /// Forgets entries up to `upto`, but keeps the newest of them that fit into `tail_bytes`.
    pub(crate) fn forget(&mut self, upto: Index, tail_bytes: usize) {
        let mut kept_bytes = 0;
        let mut base = upto.min(self.last_index());
        while let Some(entry) = self.get(base) {
            kept_bytes += entry.record().len();
            if kept_bytes > tail_bytes {
                break;
            }
            base = base.previous();
        }
        while self.base_index < base {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= entry.record().len();
            self.base_index = entry.index;
            self.base_term = entry.term;
        }
    }

    /// The last index at or before `index` whose term is at most `term`: where two logs can still
    /// agree, if one of them has `term` at `index` (Raft section 5.3, fast backtracking). Stops at
    /// the base.
    pub(crate) fn last_with_term_at_most(&self, index: Index, term: Term) -> (Index, Term) {
        let mut candidate = index.min(self.last_index());
        loop {
            match self.term_at(candidate) {
                Some(found) if found > term && candidate > self.base_index => {
                    candidate = candidate.previous();
                }
                Some(found) => return (candidate, found),
                None => return (Index(0), Term(0)),
            }
        }
    }
}
