//! When the requests of an open loop are due: evenly spaced in all, connections take turns. Only arithmetic,
//! so what is due and not yet sent takes no room, however much it is.
use std::time::Duration;

const NS_PER_SECOND: u128 = 1_000_000_000;

/// How fast requests fall due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests per second, of all connections together.
    pub per_second: u64,
    /// How many connections take turns.
    pub connections: u64,
}

impl Pace {
    /// When a connection's request is due, from the beginning; both are counted from 0.
    pub fn due(self, connection: u64, request: u64) -> Duration {
        let place = u128::from(request) * u128::from(self.connections) + u128::from(connection);
        let ns = place * NS_PER_SECOND / u128::from(self.per_second);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How many requests of a connection are due before so much time is over.
    pub fn count_before(self, connection: u64, time: Duration) -> u64 {
        let all = (time.as_nanos() * u128::from(self.per_second)).div_ceil(NS_PER_SECOND);
        let own = all.saturating_sub(u128::from(connection));
        u64::try_from(own.div_ceil(u128::from(self.connections))).unwrap_or(u64::MAX)
    }

    /// How long it takes until so many are due.
    pub fn time_of(self, operations: u64) -> Duration {
        let ns = u128::from(operations) * NS_PER_SECOND;
        let ns = ns.div_ceil(u128::from(self.per_second));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_and_all_is_evenly_spaced() {
        let pace = Pace {
            per_second: 1000,
            connections: 3,
        };
        let mut all: Vec<_> = (0..3)
            .flat_map(|connection| (0..4).map(move |request| pace.due(connection, request)))
            .collect();
        all.sort_unstable();
        let expected: Vec<_> = (0..12).map(Duration::from_millis).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn as_many_are_due_as_the_rate_says_whatever_the_shares() {
        for (per_second, connections, time_ms) in [
            (1, 8, 1500),
            (7, 3, 1000),
            (1000, 64, 1001),
            (999_983, 7, 3_600_000),
        ] {
            let pace = Pace {
                per_second,
                connections,
            };
            let time = Duration::from_millis(time_ms);
            let counts = (0..connections).map(|one| pace.count_before(one, time));
            let all = (per_second * time_ms).div_ceil(1000);
            assert_eq!(counts.sum::<u64>(), all, "{pace:?}");
            for one in 0..connections {
                let count = pace.count_before(one, time);
                assert!(count == 0 || pace.due(one, count - 1) < time, "{pace:?}");
                assert!(pace.due(one, count) >= time, "{pace:?}");
            }
            assert!(pace.time_of(all) >= time);
        }
    }
}
