//! How long replicas have differed: when the leader waits no longer for who has said nothing there.
use crate::outputs::Place;
use std::collections::BTreeMap;
use std::time::Duration;

/// What differs is looked at this often.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(200);
/// A voter that has said nothing of a window on which others differ is not waited for any longer.
const UNDECIDED_AFTER: Duration = Duration::from_secs(10);
/// Windows on which replicas differ whose time is taken.
const TIMED_MAX: usize = 1024;

/// The time of a leader's.
#[derive(Default)]
pub struct Comparison {
    not_before: Duration,
    /// When it was first seen that replicas differ there.
    since: BTreeMap<Place, Duration>,
}

impl Comparison {
    /// Whether it is time to look. It is looked then.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.not_before;
        if is_due {
            self.not_before = now + LOOKED_AT_EVERY;
        }
        is_due
    }

    /// Whoever leads next begins anew.
    pub fn forget(&mut self) {
        self.since.clear();
    }

    /// Notes on which windows replicas differ now, with nobody told yet. Whatever is timed already goes on,
    /// so that none waits for ever behind others.
    pub fn see(&mut self, open: impl Iterator<Item = Place>, now: Duration) {
        let mut new = Vec::new();
        let mut since = BTreeMap::new();
        for place in open {
            match self.since.get(&place) {
                Some(at) => {
                    since.insert(place, *at);
                }
                None if new.len() < TIMED_MAX => new.push(place),
                None => {}
            }
        }
        let room = TIMED_MAX - since.len();
        since.extend(new.into_iter().take(room).map(|place| (place, now)));
        self.since = since;
    }

    /// Whether nobody is waited for there.
    pub fn is_overdue(&self, place: Place, now: Duration) -> bool {
        let since = self.since.get(&place);
        since.is_some_and(|since| now.saturating_sub(*since) >= UNDECIDED_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replicas_differ_in_is_overdue_after_a_while() {
        let mut comparison = Comparison::default();
        let at = |seconds: u64| Duration::from_secs(100 + seconds);
        let (first, second) = ((1, 0), (1, 1536));
        comparison.see([first].into_iter(), at(0));
        comparison.see([first, second].into_iter(), at(4));
        assert!(!comparison.is_overdue(first, at(9)));
        assert!(comparison.is_overdue(first, at(10)) && !comparison.is_overdue(second, at(10)));
        // They agree there, and differ again later.
        comparison.see([second].into_iter(), at(11));
        comparison.see([first, second].into_iter(), at(12));
        assert!(comparison.is_overdue(second, at(14)) && !comparison.is_overdue(first, at(14)));
    }

    /// Of many the first are timed, and go on being timed when others come in front of them.
    #[test]
    fn no_window_waits_for_ever_behind_others() {
        let mut comparison = Comparison::default();
        let at = |seconds: u64| Duration::from_secs(100 + seconds);
        let places = |from: u64| (from..4000).map(|byte| (2, byte));
        comparison.see(places(1000), at(20));
        assert_eq!(comparison.since.len(), TIMED_MAX);
        comparison.see(places(0), at(29));
        comparison.see(places(1000), at(30));
        assert!(comparison.is_overdue((2, 1000), at(30)));
        assert!(!comparison.is_overdue((2, 3000), at(30)));
        // They are decided: those behind them come to their turn.
        comparison.see(places(3000), at(31));
        comparison.see(places(3000), at(41));
        assert!(comparison.is_overdue((2, 3999), at(41)));
    }
}
