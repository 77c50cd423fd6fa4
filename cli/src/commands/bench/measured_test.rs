//! Everything that is measured is counted once, in its interval, and what is kept is limited.
use super::*;

fn measured(begun: Instant) -> Measurements {
    let mut measured = Measurements::new(begun).unwrap();
    let second = Duration::from_secs(1);
    measured.intervals = Some(Intervals::new(Duration::from_millis(300), second));
    measured
}

#[test]
fn each_answer_is_in_the_interval_in_which_it_came() {
    let begun = Instant::now();
    let at = |ms: u64| begun + Duration::from_millis(ms);
    let (mut one, mut other) = (measured(begun), measured(begun));
    one.succeeded(at(0), at(299));
    one.succeeded(at(0), at(300));
    one.failed("busy", 2, at(310));
    other.succeeded(at(305), at(310));
    other.failed("busy", 1, at(950));
    other.succeeded(at(999), at(1000)); // in flight when the time was up
    let mut total = Measurements::new(begun).unwrap();
    total.add(one).unwrap();
    total.add(other).unwrap();
    assert_eq!((total.latencies_ns.len(), total.errors["busy"]), (4, 3));
    let intervals = total.intervals.unwrap();
    let ended = intervals.ended(Duration::from_secs(6));
    let counts: Vec<_> = ended
        .iter()
        .map(|(end, it)| (end.as_millis(), it.latencies_ns.len(), it.errors))
        .collect();
    assert_eq!(
        counts,
        [(300, 1, 0), (600, 2, 2), (900, 0, 0), (1000, 0, 1)]
    );
    assert_eq!(intervals.ended(Duration::from_millis(601)).len(), 3);
    assert_eq!(intervals.ended(Duration::ZERO).len(), 0);
}

#[test]
fn a_latency_beyond_the_largest_counts_as_that() {
    let begun = Instant::now();
    let mut measured = measured(begun);
    let hour = Duration::from_hours(1);
    measured.begun += hour;
    measured.succeeded(begun, begun + hour);
    let ended = measured.intervals.unwrap().ended(hour);
    for max in [measured.latencies_ns.max(), ended[0].1.latencies_ns.max()] {
        assert!(
            (LATENCY_NS_MAX..LATENCY_NS_MAX / 50 * 51).contains(&max),
            "{max}"
        );
    }
}

#[test]
fn reasons_are_limited() {
    let now = Instant::now();
    let mut measured = Measurements::new(now).unwrap();
    for n in 0..100 {
        measured.failed(&format!("reason {n}"), 1, now);
    }
    assert_eq!(measured.errors.len(), ERROR_REASONS_MAX + 1);
    assert_eq!(
        measured.errors[OTHER_REASONS],
        100 - ERROR_REASONS_MAX as u64
    );
    assert_eq!(measured.errors.values().sum::<u64>(), 100);
}
