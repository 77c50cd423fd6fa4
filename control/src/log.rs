//! The log in memory: entries behind a base, contiguous. Knows nothing of terms in force, commitment
//! or disks.
use crate::Entry;
use quorumwire_interfaces::{Index, Term};
use std::collections::VecDeque;

/// Most entries forgotten in one go: their memory is given back one by one, and a snapshot covers a million.
const FORGOTTEN_AT_ONCE_MAX: usize = 8192;

/// Entries with consecutive indexes behind `base_index`; of the base only the term is known.
#[derive(Debug)]
pub(crate) struct Log {
    base_index: Index,
    base_term: Term,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// What is up to here may be forgotten.
    needed_behind: Index,
    /// Bytes of entries added since that was said.
    added_bytes: usize,
}

impl Log {
    pub(crate) fn new(base_index: Index, base_term: Term) -> Self {
        Self {
            base_index,
            base_term,
            entries: VecDeque::new(),
            bytes: 0,
            needed_behind: base_index,
            added_bytes: 0,
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
        self.added_bytes += entry.record().len();
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
            self.added_bytes = self.added_bytes.saturating_sub(entry.record().len());
        }
    }

    /// Forgets everything; the log goes on behind this place.
    pub(crate) fn reset(&mut self, base_index: Index, base_term: Term) {
        *self = Self::new(base_index, base_term);
    }

    /// Entries up to `upto` may be forgotten, but for the newest of them that fit into `tail_bytes`:
    /// [`forget_some`](Self::forget_some) does.
    pub(crate) fn may_forget(&mut self, upto: Index, tail_bytes: usize) {
        let mut kept_bytes = 0;
        let mut needed_behind = upto.min(self.last_index());
        while let Some(entry) = self.get(needed_behind) {
            kept_bytes += entry.record().len();
            if kept_bytes > tail_bytes {
                break;
            }
            needed_behind = needed_behind.previous();
        }
        self.needed_behind = self.needed_behind.max(needed_behind);
        self.added_bytes = 0;
    }

    /// What is up to here may be forgotten, as far as this log goes.
    pub(crate) fn needed_behind(&self) -> Index {
        self.needed_behind
    }

    /// Bytes of what was there when it was last said what may be forgotten, and still is.
    pub(crate) fn old_bytes(&self) -> usize {
        self.bytes.saturating_sub(self.added_bytes)
    }

    /// Forgets the oldest of those that may be forgotten, up to this one.
    pub(crate) fn forget_some(&mut self, upto: Index) {
        let upto = upto.min(self.needed_behind);
        for _ in 0..FORGOTTEN_AT_ONCE_MAX {
            let may_go = |oldest: &mut Entry| oldest.index <= upto;
            let Some(entry) = self.entries.pop_front_if(may_go) else {
                return;
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

#[cfg(test)]
mod tests {
    use super::{FORGOTTEN_AT_ONCE_MAX, Log};
    use crate::Entry;
    use bytes::Bytes;
    use quorumwire_interfaces::{Index, Term};
    use quorumwire_wire::RecordKind;

    const ENTRIES: u64 = 3 * FORGOTTEN_AT_ONCE_MAX as u64;

    /// Of the first term, with a record of the same length for each.
    fn entry(index: u64) -> Entry {
        Entry {
            index: Index(index),
            term: Term(1),
            kind: RecordKind::Command,
            block: Bytes::from_static(&[0; 64]),
            start: 0,
            end: 64,
        }
    }

    fn full() -> Log {
        let mut log = Log::new(Index(0), Term(0));
        for index in 1..=ENTRIES {
            log.push(entry(index));
        }
        log
    }

    #[test]
    fn a_long_log_is_forgotten_piece_by_piece() {
        let mut log = full();
        log.forget_some(Index(ENTRIES));
        assert_eq!(log.base_index(), Index(0), "all of it is needed");
        let tail_bytes = 10 * 64;
        log.may_forget(Index(ENTRIES - 5), tail_bytes);
        let piece = FORGOTTEN_AT_ONCE_MAX as u64;
        for done in [piece, 2 * piece, ENTRIES - 15, ENTRIES - 15] {
            log.forget_some(Index(ENTRIES));
            assert_eq!(log.base_index(), Index(done));
            assert_eq!(log.term_at(Index(done)), Some(Term(1)));
        }
        log.push(entry(ENTRIES + 1));
        assert_eq!(log.old_bytes(), 15 * 64);
        log.truncate_from(Index(ENTRIES + 1));
        assert_eq!(log.old_bytes(), 15 * 64);
        assert_eq!(log.last_index(), Index(ENTRIES));
        assert_eq!(log.bytes(), 15 * 64);
    }

    #[test]
    fn an_older_snapshot_brings_nothing_back() {
        let mut log = full();
        log.may_forget(Index(20), 0);
        log.may_forget(Index(10), 0);
        log.forget_some(Index(15));
        assert_eq!(log.base_index(), Index(15), "somebody needs the rest");
        log.forget_some(Index(ENTRIES));
        assert_eq!(log.base_index(), Index(20));
        log.push(entry(ENTRIES + 1));
        assert_eq!(log.last_index(), Index(ENTRIES + 1));
    }
}
