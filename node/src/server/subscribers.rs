//! Who of a group's clients is given values as they are applied here.
use super::connection_id::ConnectionId;
use quorumwire_control::Now;
use quorumwire_deliver::LEADERLESS_MAX;
use std::collections::BTreeSet;

/// Connections with a subscription.
#[derive(Debug, Default)]
pub struct Subscribers {
    /// Those that are gone stay until they are looked for.
    ids: BTreeSet<ConnectionId>,
    /// The last instance when they were last looked at.
    seen: u64,
    leaderless_since: Option<Now>,
}

impl Subscribers {
    /// One more.
    pub fn add(&mut self, id: ConnectionId) {
        self.ids.insert(id);
    }

    /// Those that are to be looked at, now that so much is decided.
    pub fn due(&mut self, last: u64) -> Vec<ConnectionId> {
        if std::mem::replace(&mut self.seen, last) == last {
            return Vec::new();
        }
        self.ids.iter().copied().collect()
    }

    /// It has none any more.
    pub fn remove(&mut self, id: ConnectionId) {
        self.ids.remove(&id);
    }

    /// All of them, if nobody has led for too long.
    pub fn take_leaderless(&mut self, now: Now, is_led: bool) -> BTreeSet<ConnectionId> {
        if is_led {
            self.leaderless_since = None;
            return BTreeSet::new();
        }
        let since = *self.leaderless_since.get_or_insert(now);
        if now.0.saturating_sub(since.0) < LEADERLESS_MAX {
            return BTreeSet::new();
        }
        std::mem::take(&mut self.ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ONE: ConnectionId = ConnectionId::new(1, 1);
    const OTHER: ConnectionId = ConnectionId::new(2, 1);

    #[test]
    fn subscribers_are_looked_at_when_something_was_decided() {
        let mut subscribers = Subscribers::default();
        subscribers.add(ONE);
        subscribers.add(OTHER);
        assert_eq!(subscribers.due(0), []);
        assert_eq!(subscribers.due(3), [ONE, OTHER]);
        assert_eq!(subscribers.due(3), []);
        subscribers.remove(ONE);
        assert_eq!(subscribers.due(4), [OTHER]);
    }

    /// A replica that is cut off would keep them waiting for ever.
    #[test]
    fn subscribers_go_elsewhere_when_nobody_has_led_for_a_while() {
        let mut subscribers = Subscribers::default();
        subscribers.add(ONE);
        let at = |ms| Now(Duration::from_millis(ms));
        assert!(subscribers.take_leaderless(at(0), false).is_empty());
        assert!(subscribers.take_leaderless(at(999), false).is_empty());
        assert!(subscribers.take_leaderless(at(1500), true).is_empty());
        assert!(subscribers.take_leaderless(at(1600), false).is_empty());
        let gone = subscribers.take_leaderless(at(2600), false);
        assert_eq!(gone.into_iter().collect::<Vec<_>>(), [ONE]);
        assert_eq!(subscribers.due(9), []);
    }
}
