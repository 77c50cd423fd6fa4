//! What a leader's clock makes of wall clocks that are wrong, were wrong, or are set.
use super::*;

const WALL: Duration = Duration::from_secs(1_700_000_000);
const YEAR: Duration = Duration::from_hours(365 * 24);

const fn now(ms: u64) -> Now {
    Now(Duration::from_millis(ms))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}

#[test]
fn time_goes_with_the_wall_clock() {
    let clock = LogClock::begin(now(5), WALL, ms(WALL) - 3_600_000);
    assert_eq!(clock.time_ms(now(5)), ms(WALL), "an idle hour has passed");
    assert_eq!(clock.time_ms(now(1005)), ms(WALL) + 1000);
    assert_eq!(clock.time_ms(now(0)), ms(WALL), "never back");
}

#[test]
fn time_that_is_ahead_runs_slower_until_both_agree() {
    for ahead in [Duration::from_secs(30), YEAR] {
        let mut clock = LogClock::begin(now(0), WALL, ms(WALL + ahead));
        let mut before = clock.time(now(0));
        for second in 1..=400 {
            let wall = WALL + Duration::from_secs(second);
            clock.look(now(second * 1000), wall, 0);
            let time = clock.time(now(second * 1000));
            let passed = time.saturating_sub(before);
            assert!(passed >= Duration::from_millis(900) && passed <= Duration::from_secs(1));
            assert_eq!(clock.ahead_ms(now(second * 1000)), {
                i64::try_from(ms(time.saturating_sub(wall))).unwrap()
            });
            before = time;
        }
        let left = ahead.saturating_sub(Duration::from_secs(40));
        let ahead_ms = clock.ahead_ms(now(400_000));
        assert_eq!(ahead_ms, i64::try_from(ms(left)).unwrap());
    }
}

/// A clock that is set while its replica leads neither ends what is to live nor stops the time.
#[test]
fn a_clock_that_is_set_moves_time_slowly() {
    for (set_to, is_ahead) in [(WALL + YEAR, false), (WALL.saturating_sub(YEAR), true)] {
        let mut clock = LogClock::begin(now(0), WALL, 0);
        for second in 0..100 {
            clock.look(now(second * 1000), set_to + Duration::from_secs(second), 0);
        }
        let passed = clock.time(now(100_000)).saturating_sub(WALL);
        let slow = if is_ahead { 90 } else { 110 };
        assert_eq!(passed, Duration::from_secs(slow));
        assert_eq!(clock.ahead_ms(now(100_000)) > 0, is_ahead);
        // Set right again: both come together, as slowly.
        for second in 100..1300 {
            clock.look(now(second * 1000), WALL + Duration::from_secs(second), 0);
        }
        assert_eq!(clock.time(now(1_300_000)), WALL + Duration::from_secs(1300));
    }
}

#[test]
fn what_the_log_had_come_to_is_adopted_when_it_is_known() {
    let mut clock = LogClock::begin(now(0), WALL, 0);
    clock.look(now(1000), WALL + Duration::from_secs(1), ms(WALL + YEAR));
    assert_eq!(clock.time_ms(now(1000)), ms(WALL + YEAR));
    assert_eq!(clock.time_ms(now(2000)), ms(WALL + YEAR) + 900);
}

#[test]
fn a_tick_says_the_wall_clock_only_if_it_may() {
    let mut clock = LogClock::begin(now(0), WALL, ms(WALL) + 30_000);
    let tick = |clock: &LogClock, tells| {
        let tick = clock.tick(now(0), tells);
        let ahead_ms = tick.ahead_ms(tick.log_time_ms);
        (tick.encode().as_ref().len(), ahead_ms)
    };
    assert_eq!(tick(&clock, true), (16, Some(30_000)));
    assert_eq!(tick(&clock, false), (8, None));
    clock = LogClock::begin(now(0), WALL, ms(WALL) + 10);
    assert_eq!(tick(&clock, true), (16, Some(0)));
}

/// The log is told what the wall clock shows when that was set back; once, and never while both only come
/// closer.
#[test]
fn a_wall_clock_that_is_set_back_is_noticed_until_the_log_knows() {
    for ahead in [Duration::ZERO, Duration::from_secs(30), YEAR] {
        let mut clock = LogClock::begin(now(0), WALL, ms(WALL + ahead));
        let mut told = clock.tick(now(0), true);
        let asks = |clock: &LogClock, at: u64, told: &Tick| {
            let ahead_ms = told.ahead_ms(told.log_time_ms).unwrap();
            clock.is_set_back(now(at), told.log_time_ms, ahead_ms)
        };
        // An hour in which nothing is told: the log's time and the wall clock come closer.
        for second in 0..3600 {
            let wall = WALL + Duration::from_secs(second);
            clock.look(now(second * 1000), wall, 0);
            assert!(!asks(&clock, second * 1000, &told), "{ahead:?} {second}");
        }
        told = clock.tick(now(3_600_000), true);
        let hour = WALL + Duration::from_hours(1);
        for (set_to, is_noticed) in [
            (hour + YEAR, false),
            (hour.saturating_sub(Duration::from_millis(10)), false),
            (hour.saturating_sub(Duration::from_millis(30)), true),
            (hour.saturating_sub(YEAR), true),
        ] {
            let mut clock = clock;
            clock.look(now(3_600_000), set_to, 0);
            assert_eq!(asks(&clock, 3_600_000, &told), is_noticed, "{ahead:?}");
            let told = clock.tick(now(3_600_000), true);
            assert!(!asks(&clock, 3_600_000, &told), "the log knows");
        }
    }
}

#[test]
fn no_time_comes_earlier_than_is_said() {
    let end_ms = ms(WALL) + 60_000;
    for wall in [WALL, WALL + YEAR, WALL.saturating_sub(YEAR)] {
        let mut clock = LogClock::begin(now(0), WALL, 0);
        clock.look(now(0), wall, 0);
        let at = clock.earliest(end_ms);
        assert!(clock.time_ms(at) <= end_ms);
        assert!(at >= now(54_000), "{at:?}");
    }
    assert_eq!(LogClock::begin(now(7), WALL, 0).earliest(0), now(7));
}
