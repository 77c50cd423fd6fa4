//! Which term the entry at an index has, for the whole log, in the little space that takes: terms only
//! rise along a log and few of them change.
use quorumwire_interfaces::{Index, Term};

/// The terms of the entries behind a base. Indexes are consecutive and terms never fall.
#[derive(Clone, Debug)]
pub(crate) struct TermRuns {
    base: (Index, Term),
    /// First index and term of each run of equal terms, ascending.
    runs: Vec<(Index, Term)>,
    last_index: Index,
}

impl TermRuns {
    /// A log without entries that begins behind `base`.
    pub(crate) const fn new(base: (Index, Term)) -> Self {
        Self {
            base,
            runs: Vec::new(),
            last_index: base.0,
        }
    }

    /// What the log begins behind.
    pub(crate) const fn base(&self) -> (Index, Term) {
        self.base
    }

    /// The last entry, or the base if there is none.
    pub(crate) fn last(&self) -> (Index, Term) {
        let term = self.runs.last().map_or(self.base.1, |run| run.1);
        (self.last_index, term)
    }

    /// The term of the entry at `index`; also answers for the base.
    pub(crate) fn term_at(&self, index: Index) -> Option<Term> {
        if index == self.base.0 {
            return Some(self.base.1);
        }
        if index < self.base.0 || index > self.last_index {
            return None;
        }
        let behind = self.runs.partition_point(|run| run.0 <= index);
        behind.checked_sub(1).map(|run| self.runs[run].1)
    }

    /// Takes one more entry, which replaces what stood at its index and behind. The text says why it
    /// cannot stand here.
    pub(crate) fn append(&mut self, (index, term): (Index, Term)) -> Result<(), String> {
        if index <= self.base.0 || index > self.last_index.next() {
            return Err(format!(
                "entry {index} where the log begins behind {} and ends with {}",
                self.base.0, self.last_index
            ));
        }
        let before = self.term_at(index.previous()).unwrap_or_default();
        if term < before {
            return Err(format!(
                "entry {index} of term {term} behind one of term {before}"
            ));
        }
        while self.runs.last().is_some_and(|run| run.0 >= index) {
            self.runs.pop();
        }
        if self.runs.last().map_or(self.base.1, |run| run.1) != term || self.runs.is_empty() {
            self.runs.push((index, term));
        }
        self.last_index = index;
        Ok(())
    }

    /// The log begins behind `base` from now on, unless it already begins further on. Entries behind it
    /// stay if the log agrees with it. Whether they stayed.
    pub(crate) fn begin_behind(&mut self, base: (Index, Term)) -> bool {
        if base.0 < self.base.0 {
            return true;
        }
        if self.term_at(base.0) != Some(base.1) {
            *self = Self::new(base);
            return false;
        }
        let next = base.0.next();
        let behind = self.runs.partition_point(|run| run.0 <= next);
        let kept_from = behind.saturating_sub(1);
        self.runs.drain(..kept_from);
        if self.last_index < next {
            self.runs.clear();
        } else if let Some(first) = self.runs.first_mut() {
            first.0 = first.0.max(next);
        }
        self.base = base;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(entries: &[(u64, u64)]) -> TermRuns {
        let mut runs = TermRuns::new((Index(0), Term(0)));
        for &(index, term) in entries {
            runs.append((Index(index), Term(term))).unwrap();
        }
        runs
    }

    fn terms(runs: &TermRuns) -> Vec<u64> {
        (runs.base().0.0 + 1..=runs.last().0.0)
            .map(|index| runs.term_at(Index(index)).unwrap().0)
            .collect()
    }

    #[test]
    fn entries_replace_what_is_behind_them() {
        let mut runs = runs(&[(1, 1), (2, 1), (3, 2), (4, 2), (2, 3)]);
        assert_eq!(terms(&runs), [1, 3]);
        assert_eq!(runs.last(), (Index(2), Term(3)));
        assert!(runs.append((Index(4), Term(3))).is_err());
        assert!(runs.append((Index(3), Term(2))).is_err());
        assert!(runs.append((Index(0), Term(3))).is_err());
    }

    #[test]
    fn a_base_that_agrees_keeps_what_is_behind_it() {
        let entries = [(1, 1), (2, 1), (3, 2), (4, 2), (5, 4)];
        for index in 1..=5 {
            let mut runs = runs(&entries);
            let term = runs.term_at(Index(index)).unwrap();
            assert!(runs.begin_behind((Index(index), term)));
            let left: Vec<u64> = entries
                .iter()
                .filter(|entry| entry.0 > index)
                .map(|entry| entry.1)
                .collect();
            assert_eq!(terms(&runs), left, "behind {index}");
            assert_eq!(runs.last().0, Index(5));
            assert_eq!(runs.last().1, Term(4));
        }
    }

    #[test]
    fn a_base_before_the_base_changes_nothing() {
        let mut runs = runs(&[(1, 1), (2, 1), (3, 2), (4, 2)]);
        assert!(runs.begin_behind((Index(3), Term(2))));
        assert!(runs.begin_behind((Index(2), Term(9))));
        assert_eq!((runs.base(), terms(&runs)), ((Index(3), Term(2)), vec![2]));
    }

    #[test]
    fn a_base_that_disagrees_or_lies_beyond_drops_all() {
        for base in [(3, 3), (9, 4)] {
            let mut runs = runs(&[(1, 1), (2, 1), (3, 2), (4, 2)]);
            let base = (Index(base.0), Term(base.1));
            assert!(!runs.begin_behind(base));
            assert_eq!((runs.base(), runs.last()), (base, base));
        }
    }
}
