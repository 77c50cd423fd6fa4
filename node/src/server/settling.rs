//! Who waits for a write, once the place in the log that it was given is settled.
use super::core::Proposal;
use quorumwire_interfaces::{Index, Term};
use std::collections::VecDeque;

/// What an entry that is about to be applied settles.
#[derive(Default)]
pub struct Settled {
    /// It holds their commands: by their position in it.
    pub own: VecDeque<Proposal>,
    /// Their place went to this entry, which is another: they were not executed.
    pub displaced: Vec<Proposal>,
    /// Their place was replaced by a snapshot: nobody can tell what became of them.
    pub unknown: Vec<Proposal>,
}

impl Settled {
    /// Takes what the entry of this index and term settles out of what waits: `proposals` of this term, by
    /// their place, and `orphans` of earlier terms of ours. An entry that is cut off one log may still be
    /// committed from another one, so nothing is settled earlier.
    pub fn take(
        &mut self,
        proposals: &mut VecDeque<Proposal>,
        orphans: &mut Vec<Proposal>,
        (index, term): (Index, Term),
    ) {
        let of_this = |it: &mut Proposal| it.index <= index;
        for orphan in orphans.extract_if(.., of_this) {
            self.sort_in(orphan, (index, term));
        }
        while let Some(proposal) = proposals.pop_front_if(of_this) {
            self.sort_in(proposal, (index, term));
        }
    }

    fn sort_in(&mut self, proposal: Proposal, (index, term): (Index, Term)) {
        if proposal.index < index {
            self.unknown.push(proposal);
        } else if proposal.term != term {
            self.displaced.push(proposal);
        } else {
            let at = self
                .own
                .partition_point(|it| it.position <= proposal.position);
            self.own.insert(at, proposal);
        }
    }

    /// Who waits for the command at this position.
    pub fn take_own(&mut self, position: u16) -> Option<Proposal> {
        self.own.pop_front_if(|it| it.position == position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::core::Origin;
    use quorumwire_control::Now;

    const TERM: Term = Term(7);

    fn proposal(index: u64, position: u16, term: u64) -> Proposal {
        Proposal {
            index: Index(index),
            position,
            term: Term(term),
            origin: Origin::Datagram(index * 100 + u64::from(position)),
            at: Now::default(),
        }
    }

    fn places<'a>(proposals: impl IntoIterator<Item = &'a Proposal>) -> Vec<(u64, u16, u64)> {
        let place = |it: &Proposal| (it.index.0, it.position, it.term.0);
        proposals.into_iter().map(place).collect()
    }

    #[test]
    fn each_position_of_an_earlier_terms_bundle_is_found_at_whatever_entry_it_stands() {
        let mut orphans = vec![proposal(10, 0, 7), proposal(10, 1, 7)];
        orphans.extend((0..3).map(|position| proposal(11, position, 7)));
        orphans.extend((0..2).map(|position| proposal(12, position, 7)));
        let mut proposals =
            VecDeque::from([proposal(11, 0, 9), proposal(11, 1, 9), proposal(13, 0, 9)]);
        for (index, positions) in [(10, 2), (11, 3), (12, 2)] {
            let mut settled = Settled::default();
            settled.take(&mut proposals, &mut orphans, (Index(index), TERM));
            let displaced = if index == 11 { 2 } else { 0 };
            assert_eq!(settled.displaced.len(), displaced, "{index}");
            assert!(settled.unknown.is_empty());
            for position in 0..positions {
                let found = settled.take_own(position).expect("it waits");
                assert_eq!(found.place(), (Index(index), position));
            }
            assert!(settled.own.is_empty());
        }
        assert!(orphans.is_empty());
        assert_eq!(places(&proposals), [(13, 0, 9)]);
    }

    #[test]
    fn what_another_entry_displaced_was_not_executed_whatever_it_holds() {
        let mut proposals: VecDeque<_> = (0..3).map(|position| proposal(11, position, 7)).collect();
        let mut orphans = vec![proposal(11, 0, 5), proposal(11, 1, 5), proposal(12, 0, 5)];
        let mut settled = Settled::default();
        settled.take(&mut proposals, &mut orphans, (Index(11), Term(8)));
        assert!(settled.own.is_empty() && settled.unknown.is_empty());
        let expected = [(11, 0, 5), (11, 1, 5), (11, 0, 7), (11, 1, 7), (11, 2, 7)];
        assert_eq!(places(&settled.displaced), expected);
        assert_eq!(places(&orphans), [(12, 0, 5)]);
    }

    #[test]
    fn what_a_snapshot_replaced_is_unknown_and_who_gave_up_is_missing() {
        let mut proposals: VecDeque<_> = [(9, 0), (9, 1), (11, 1), (11, 2)]
            .map(|(index, position)| proposal(index, position, 7))
            .into();
        let mut settled = Settled::default();
        settled.take(
            &mut proposals,
            &mut vec![proposal(8, 3, 5)],
            (Index(11), TERM),
        );
        assert_eq!(places(&settled.unknown), [(8, 3, 5), (9, 0, 7), (9, 1, 7)]);
        assert!(settled.take_own(0).is_none());
        assert!(settled.take_own(1).is_some() && settled.take_own(2).is_some());
    }
}
