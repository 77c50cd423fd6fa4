//! What whoever reads the log relies on, whatever a leader's wall clock is set to: its time moves slowly, and
//! a tick says by how much it differs from the time of day. How a leader's clock comes to it is looked at
//! beside its code.
use quorumwire_control::{LogClock, Now};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(1_700_000_000);
const HOUR: Duration = Duration::from_hours(1);

/// The test, which planted bugs must fail.
#[test]
pub(crate) fn the_logs_time_moves_slowly_and_says_what_day_it_is() {
    for set_to in [DAY + HOUR, DAY.saturating_sub(HOUR)] {
        let (begun, later) = (Now::default(), Now(Duration::from_secs(10)));
        let mut clock = LogClock::begin(begun, DAY, 0);
        clock.look(begun, set_to, 0);
        let passed = clock.time(later).saturating_sub(DAY);
        let expected = if set_to > DAY { 11 } else { 9 };
        assert_eq!(passed, Duration::from_secs(expected), "within a tenth");
        let tick = clock.tick(begun, true);
        let day_ms = tick.wall_ms.map(u128::from);
        assert_eq!(day_ms, Some(set_to.as_millis()), "the time of day");
    }
}
