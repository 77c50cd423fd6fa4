//! How far acceptors may forget: what all learners have kept (CAANS, section 3.1), or, where learners have
//! the rest from each other, enough of them.
use crate::deployment::{Deployment, INSTANCE_MAX};
use crate::mutants::mutant;

/// What each learner has said it has kept.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// None: nothing was heard of it.
    kept: Vec<Option<u64>>,
    /// So many have to have kept what is forgotten.
    copies: usize,
    /// Declared lost by the operator, or trimmed before this host began.
    trimmed: u64,
}

impl Checkpoints {
    /// Nobody has said anything yet, and instances up to this one are forgotten.
    #[must_use]
    pub fn new(deployment: &Deployment, trimmed: u64) -> Self {
        Self {
            kept: vec![None; usize::from(deployment.learners)],
            copies: usize::from(deployment.copies),
            trimmed,
        }
    }

    /// A learner has kept everything up to here. The instance that everybody may forget up to, if that is
    /// news. A learner that says less than before came back with an older checkpoint; what is forgotten stays
    /// so.
    pub fn note(&mut self, learner: u8, kept: u64) -> Option<u64> {
        if kept > INSTANCE_MAX {
            return None;
        }
        *self.kept.get_mut(usize::from(learner))? = Some(kept);
        let enough = if mutant("trims-what-some-have") {
            self.kept.iter().copied().max()
        } else {
            self.needed().map(|(_, kept)| kept)
        };
        self.trim_to(enough.flatten().unwrap_or(0))
    }

    /// Up to here values are lost to learners that have not kept them: the operator says so. As
    /// [`note`](Self::note).
    pub fn trim_to(&mut self, upto: u64) -> Option<u64> {
        let upto = upto.min(INSTANCE_MAX);
        let is_news = upto > self.trimmed;
        self.trimmed = self.trimmed.max(upto);
        is_news.then_some(upto)
    }

    /// Who has kept least of those that are needed, and how far: to be blamed where a window is full. One
    /// that was not heard of has kept what is forgotten, at least. Nobody if that is so of several: it is
    /// not known which of them has kept least.
    #[must_use]
    pub fn last(&self) -> Option<(u8, u64)> {
        let unheard = self.kept.iter().filter(|it| it.is_none()).count();
        match self.needed()? {
            (_, None) if unheard > 1 => None,
            (learner, kept) => Some((learner, kept.unwrap_or(0).max(self.trimmed))),
        }
    }

    fn needed(&self) -> Option<(u8, Option<u64>)> {
        let mut numbered: Vec<_> = (0_u8..).zip(self.kept.iter().copied()).collect();
        numbered
            .sort_by_key(|(learner, kept)| (std::cmp::Reverse(*kept), std::cmp::Reverse(*learner)));
        numbered.get(self.copies.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(copies: u8) -> Deployment {
        Deployment {
            group: 7,
            acceptors: 3,
            coordinators: 1,
            learners: 3,
            copies,
            window: 16,
        }
    }

    #[test]
    fn what_enough_have_is_forgotten_where_learners_have_the_rest_from_each_other() {
        let mut checkpoints = Checkpoints::new(&deployment(2), 0);
        assert_eq!(checkpoints.note(0, 9), None, "one copy is not enough");
        assert_eq!(checkpoints.last(), None, "of two nothing was heard");
        assert_eq!(checkpoints.note(2, 5), Some(5));
        assert_eq!(checkpoints.last(), Some((2, 5)));
        assert_eq!(checkpoints.note(1, 7), Some(7));
        assert_eq!(checkpoints.note(0, 3), None, "an older checkpoint");
    }

    #[test]
    fn what_all_have_is_forgotten_and_who_keeps_it_is_named() {
        let mut checkpoints = Checkpoints::new(&deployment(3), 2);
        assert_eq!(checkpoints.note(0, 9), None);
        assert_eq!(checkpoints.note(1, 5), None);
        assert_eq!(checkpoints.last(), Some((2, 2)), "at least that");
        assert_eq!(checkpoints.note(2, 7), Some(5));
        assert_eq!(checkpoints.note(2, 8), None);
        assert_eq!(checkpoints.last(), Some((1, 5)));
        assert_eq!(checkpoints.note(1, 3), None, "an older checkpoint");
        assert_eq!(checkpoints.note(1, 8), Some(8));
        assert_eq!(checkpoints.note(3, 99), None, "there is no such learner");
        assert_eq!(checkpoints.note(1, u64::MAX), None, "nor such an instance");
        assert_eq!(checkpoints.last(), Some((1, 8)));
        assert_eq!(checkpoints.trim_to(20), Some(20));
        assert_eq!(checkpoints.note(1, 12), None);
        assert_eq!(checkpoints.trim_to(u64::MAX), Some(INSTANCE_MAX));
    }
}
