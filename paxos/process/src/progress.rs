//! Whether what a coordinator proposes is decided. Acceptors vote to learners, so it hears of that from them.
use quorumwire_paxos_hosts::Since;
use std::time::Duration;

/// So long nothing is decided before that is called a fault. Learners say many times a second what they have.
pub(crate) const UNDECIDED: Duration = Duration::from_secs(2);

/// How far learners were, and since when.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    had: u64,
    since: Option<Since>,
    stands: Duration,
    is_said: bool,
}

impl Progress {
    /// `open`: the instance that learners have had, and the last one that has a value; none: it is not known.
    pub(crate) fn note(&mut self, now: Since, open: Option<(u64, u64)>) {
        let Some((had, _)) = open.filter(|(had, last)| had < last) else {
            *self = Self::default();
            return;
        };
        let since = match self.since {
            Some(since) if had == self.had => since,
            _ => now,
        };
        let stands = now.saturating_sub(since);
        let is_said = self.is_said && stands >= UNDECIDED;
        *self = Self {
            had,
            since: Some(since),
            stands,
            is_said,
        };
    }

    /// For so long learners have had no more.
    pub(crate) fn stands(&self) -> Duration {
        self.stands
    }

    /// Whether it is a fault that was not said yet.
    pub(crate) fn is_to_be_said(&mut self) -> bool {
        let is_news = self.stands >= UNDECIDED && !self.is_said;
        self.is_said |= is_news;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_proposed_and_not_decided_is_said_once() {
        let mut progress = Progress::default();
        let at = Duration::from_millis;
        progress.note(at(0), Some((5, 5)));
        progress.note(at(1000), Some((5, 6)));
        progress.note(at(2999), Some((5, 9)));
        assert!(!progress.is_to_be_said());
        progress.note(at(3000), Some((5, 9)));
        assert_eq!(progress.stands(), UNDECIDED);
        assert!(progress.is_to_be_said() && !progress.is_to_be_said());
        progress.note(at(3500), Some((5, 9)));
        assert!(!progress.is_to_be_said());
        // Something is decided; then again nothing.
        progress.note(at(3600), Some((6, 9)));
        assert_eq!(progress.stands(), Duration::ZERO);
        progress.note(at(5600), Some((6, 9)));
        assert!(progress.is_to_be_said());
        // All is decided, or somebody else coordinates.
        progress.note(at(5700), Some((9, 9)));
        progress.note(at(9000), None);
        assert_eq!(progress.stands(), Duration::ZERO);
    }
}
