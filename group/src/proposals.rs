//! Who waits for a write, from when it has an index in the log until it is known what stands there.
use crate::mutants::mutant;
use quorumwire_control::Now;
use quorumwire_interfaces::{Index, Term};
use std::collections::VecDeque;

/// A write of ours that is in the log and not applied yet.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<O> {
    /// The entry that carries it.
    pub index: Index,
    /// Which of that entry's commands: 0 is the first one.
    pub position: u16,
    /// The entry's.
    pub term: Term,
    /// Where the answer goes.
    pub origin: O,
    /// When it was asked for.
    pub at: Now,
}

impl<O> Proposal<O> {
    /// Its index in the log.
    #[must_use]
    pub const fn log_position(&self) -> (Index, u16) {
        (self.index, self.position)
    }
}

impl<O> Extend<Proposal<O>> for Proposals<O> {
    fn extend<I: IntoIterator<Item = Proposal<O>>>(&mut self, proposals: I) {
        proposals.into_iter().for_each(|it| self.insert(it));
    }
}

/// All that wait.
#[derive(Debug)]
pub struct Proposals<O> {
    /// Of the term we lead (or led last), places ascending.
    of_term: VecDeque<Proposal<O>>,
    /// Of earlier terms that we led: may still turn out either way.
    orphans: Vec<Proposal<O>>,
}

impl<O> Default for Proposals<O> {
    fn default() -> Self {
        Self {
            of_term: VecDeque::new(),
            orphans: Vec::new(),
        }
    }
}

impl<O> Proposals<O> {
    /// A term that we lead begins: what an earlier one proposed may stand at the same indexes as what this
    /// one will.
    pub fn begin_term(&mut self) {
        self.orphans.extend(self.of_term.drain(..));
    }

    /// One more waits. What clients ask through the plane and what was submitted to it come to light in
    /// different orders.
    pub fn insert(&mut self, proposal: Proposal<O>) {
        let is_last = |last: &Proposal<O>| last.log_position() < proposal.log_position();
        if self.of_term.back().is_none_or(is_last) {
            return self.of_term.push_back(proposal);
        }
        let at = self
            .of_term
            .partition_point(|other| other.log_position() < proposal.log_position());
        self.of_term.insert(at, proposal);
    }

    /// Those of the term that we lead, or led last, by their index.
    pub fn iter(&self) -> impl Iterator<Item = &Proposal<O>> {
        self.of_term.iter()
    }

    /// How many of these there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.of_term.len()
    }

    /// Whether there is none of these.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_term.is_empty()
    }

    /// How many wait of earlier terms. Each is looked at with every entry.
    #[must_use]
    pub fn orphan_count(&self) -> usize {
        self.orphans.len()
    }

    /// Takes out those that were asked for at a time that is too long ago: nobody can tell what becomes of
    /// them.
    pub fn take_late(&mut self, is_late: impl Fn(Now) -> bool) -> Vec<Proposal<O>> {
        let mut late = Vec::new();
        while let Some(first) = self.of_term.pop_front_if(|first| is_late(first.at)) {
            late.push(first);
        }
        late.extend(self.orphans.extract_if(.., |orphan| is_late(orphan.at)));
        late
    }
}

/// What an entry that is about to be applied settles.
#[derive(Debug)]
pub struct Settlement<O> {
    /// It holds their commands: by their position in it.
    pub own: VecDeque<Proposal<O>>,
    /// Their index went to this entry, which is another: they were not executed.
    pub displaced: Vec<Proposal<O>>,
    /// A snapshot stands for their index: nobody can tell what became of them.
    pub unknown: Vec<Proposal<O>>,
}

impl<O> Default for Settlement<O> {
    fn default() -> Self {
        Self {
            own: VecDeque::new(),
            displaced: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl<O> Settlement<O> {
    /// Takes what the entry of this index and term settles out of what waits. An entry that is cut off one
    /// log may still be committed from another one, so nothing is settled earlier.
    pub fn take(&mut self, proposals: &mut Proposals<O>, (index, term): (Index, Term)) {
        let Proposals { of_term, orphans } = proposals;
        let of_this = |it: &mut Proposal<O>| it.index <= index;
        for orphan in orphans.extract_if(.., of_this) {
            self.sort_in(orphan, (index, term));
        }
        while let Some(proposal) = of_term.pop_front_if(of_this) {
            self.sort_in(proposal, (index, term));
        }
    }

    /// Takes what a snapshot stands for whose last entry has this index.
    pub fn take_behind_snapshot(&mut self, proposals: &mut Proposals<O>, last_index: Index) {
        let Proposals { of_term, orphans } = proposals;
        let of_snapshot = |it: &mut Proposal<O>| it.index <= last_index;
        self.unknown.extend(orphans.extract_if(.., of_snapshot));
        while let Some(proposal) = of_term.pop_front_if(of_snapshot) {
            self.unknown.push(proposal);
        }
    }

    fn sort_in(&mut self, proposal: Proposal<O>, (index, term): (Index, Term)) {
        if proposal.index < index {
            self.unknown.push(proposal);
        } else if proposal.term != term && !mutant("answer-of-another-entry") {
            self.displaced.push(proposal);
        } else {
            let at = self
                .own
                .partition_point(|it| it.position <= proposal.position);
            self.own.insert(at, proposal);
        }
    }

    /// Who waits for the command at this position.
    pub fn take_own(&mut self, position: u16) -> Option<Proposal<O>> {
        self.own.pop_front_if(|it| it.position == position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TERM: Term = Term(7);

    #[test]
    fn a_snapshot_stands_for_all_up_to_its_last_entry() {
        let of_term =
            [(9, 1), (10, 0), (11, 1)].map(|(index, position)| proposal(index, position, 7));
        let mut proposals = waiting([proposal(8, 0, 5), proposal(11, 0, 5)], of_term);
        let mut settled = Settlement::default();
        settled.take_behind_snapshot(&mut proposals, Index(10));
        assert_eq!(places(&settled.unknown), [(8, 0, 5), (9, 1, 7), (10, 0, 7)]);
        assert!(settled.own.is_empty() && settled.displaced.is_empty());
        assert_eq!((proposals.len(), proposals.orphan_count()), (1, 1));
    }

    fn proposal(index: u64, position: u16, term: u64) -> Proposal<u64> {
        Proposal {
            index: Index(index),
            position,
            term: Term(term),
            origin: index * 100 + u64::from(position),
            at: Now::default(),
        }
    }

    fn waiting(
        orphans: impl IntoIterator<Item = Proposal<u64>>,
        of_term: impl IntoIterator<Item = Proposal<u64>>,
    ) -> Proposals<u64> {
        let mut all = Proposals::default();
        orphans.into_iter().for_each(|it| all.insert(it));
        all.begin_term();
        of_term.into_iter().for_each(|it| all.insert(it));
        all
    }

    fn places<'a>(proposals: impl IntoIterator<Item = &'a Proposal<u64>>) -> Vec<(u64, u16, u64)> {
        let position = |it: &Proposal<u64>| (it.index.0, it.position, it.term.0);
        proposals.into_iter().map(position).collect()
    }

    #[test]
    fn each_position_of_an_earlier_terms_bundle_is_found_at_whatever_entry_it_stands() {
        let mut orphans = vec![proposal(10, 0, 7), proposal(10, 1, 7)];
        orphans.extend((0..3).map(|position| proposal(11, position, 7)));
        orphans.extend((0..2).map(|position| proposal(12, position, 7)));
        let of_term = [proposal(11, 0, 9), proposal(11, 1, 9), proposal(13, 0, 9)];
        let mut all = waiting(orphans, of_term);
        for (index, positions) in [(10, 2), (11, 3), (12, 2)] {
            let mut settled = Settlement::default();
            settled.take(&mut all, (Index(index), TERM));
            let displaced = if index == 11 { 2 } else { 0 };
            assert_eq!(settled.displaced.len(), displaced, "{index}");
            assert!(settled.unknown.is_empty());
            for position in 0..positions {
                let found = settled.take_own(position).expect("it waits");
                assert_eq!(found.log_position(), (Index(index), position));
            }
            assert!(settled.own.is_empty());
        }
        assert_eq!(all.orphan_count(), 0);
        assert_eq!(places(all.iter()), [(13, 0, 9)]);
    }

    #[test]
    fn what_another_entry_displaced_was_not_executed_whatever_it_holds() {
        let orphans = [proposal(11, 0, 5), proposal(11, 1, 5), proposal(12, 0, 5)];
        let mut all = waiting(orphans, (0..3).map(|position| proposal(11, position, 7)));
        let mut settled = Settlement::default();
        settled.take(&mut all, (Index(11), Term(8)));
        assert!(settled.own.is_empty() && settled.unknown.is_empty());
        let expected = [(11, 0, 5), (11, 1, 5), (11, 0, 7), (11, 1, 7), (11, 2, 7)];
        assert_eq!(places(&settled.displaced), expected);
        assert_eq!((all.len(), all.orphan_count()), (0, 1));
    }

    #[test]
    fn what_a_snapshot_replaced_is_unknown_and_who_gave_up_is_missing() {
        let of_term = [(9, 0), (9, 1), (11, 1), (11, 2)]
            .map(|(index, position)| proposal(index, position, 7));
        let mut all = waiting([proposal(8, 3, 5)], of_term);
        let mut settled = Settlement::default();
        settled.take(&mut all, (Index(11), TERM));
        assert_eq!(places(&settled.unknown), [(8, 3, 5), (9, 0, 7), (9, 1, 7)]);
        assert!(settled.take_own(0).is_none());
        assert!(settled.take_own(1).is_some() && settled.take_own(2).is_some());
    }

    #[test]
    fn they_are_found_by_their_place_however_they_come_to_light() {
        let found = |order: [(u64, u16); 4]| {
            let all = waiting(
                [],
                order.map(|(index, position)| proposal(index, position, 7)),
            );
            places(all.iter())
        };
        let expected = [(4, 0, 7), (5, 0, 7), (5, 1, 7), (6, 0, 7)];
        assert_eq!(found([(4, 0), (5, 0), (5, 1), (6, 0)]), expected);
        assert_eq!(found([(6, 0), (5, 1), (5, 0), (4, 0)]), expected);
        assert_eq!(found([(5, 0), (6, 0), (5, 1), (4, 0)]), expected);
    }

    #[test]
    fn who_waits_for_too_long_is_taken_out_whatever_its_term() {
        let at = |index: u64, seconds: u64| Proposal {
            at: Now(Duration::from_secs(seconds)),
            ..proposal(index, 0, 7)
        };
        let mut all = waiting([at(3, 9), at(4, 1), at(5, 2)], [at(6, 2), at(7, 9)]);
        let is_late = |at: Now| at.0 < Duration::from_secs(5);
        let late = all.take_late(is_late);
        assert_eq!(places(&late), [(6, 0, 7), (4, 0, 7), (5, 0, 7)]);
        assert_eq!((all.len(), all.orphan_count()), (1, 1));
    }
}
