//! What is shown is what was measured, for people and for programs.
use super::super::gaps::WriteGaps;
use super::super::measured::{Intervals, NOT_SENT};
use super::*;
use std::sync::Arc;

const MS: Duration = Duration::from_millis(1);

/// Latencies of 1 to 1000 ms, each once; one failed.
fn summary() -> Summary {
    let begun = Instant::now();
    let mut measured = Measurements::new(begun).unwrap();
    measured.intervals = Some(Intervals::new(500 * MS, 2000 * MS));
    for latency in 1..=1000 {
        measured.succeeded(begun, begun + latency * MS);
    }
    measured.failed("busy", 1, begun + 1600 * MS);
    measured.elapsed = Duration::from_secs(1);
    measured.ran = 2000 * MS;
    let gaps = WriteGaps::new(begun);
    for at in [1, 2].into_iter().chain((40..2000).step_by(37)) {
        gaps.wrote(begun + at * MS);
    }
    measured.gaps = Some(Arc::new(gaps));
    Summary {
        measured,
        client: CpuTime::default(),
        servers: None,
        offered_per_second: Some(1200),
        with_cdf: true,
    }
}

#[test]
fn a_distribution_ascends_to_its_end_in_few_points() {
    let cdf = summary().cdf();
    assert!((100..=200).contains(&cdf.len()), "{} points", cdf.len());
    for pair in cdf.windows(2) {
        let [(us, part), (next_us, next_part)] = pair else {
            panic!("two of them");
        };
        assert!(us < next_us && part < next_part, "{pair:?}");
    }
    for (us, part) in &cdf {
        let expected = us / 1e6; // latencies are spread evenly up to a second
        assert!((part - expected).abs() < 0.003, "{us} us: {part}");
    }
    assert!((cdf.last().unwrap().1 - 1.0).abs() < 1e-9);
    let mut none = summary();
    none.measured.latencies_ns.clear();
    assert_eq!(none.cdf(), []);
}

#[test]
fn programs_are_told_everything_that_was_asked_for() {
    let all = summary();
    let shown = all.as_json();
    assert_eq!(shown["offered_per_second"], 1200);
    assert_eq!(
        shown["latency_cdf"].as_array().unwrap().len(),
        all.cdf().len()
    );
    let intervals = shown["intervals"].as_array().unwrap();
    let of_each = |name: &str| -> Vec<_> { intervals.iter().map(|it| it[name].clone()).collect() };
    assert_eq!(of_each("at_ms"), [500.0, 1000.0, 1500.0, 2000.0]);
    assert_eq!(of_each("operations"), [499, 500, 1, 0]);
    assert_eq!(of_each("errors"), [0, 0, 0, 1]);
    assert!(intervals[3]["p50_us"].is_null() && intervals[3]["p99_us"].is_null());
    assert!(intervals[2]["p99_us"].as_f64().unwrap() > 990e3);
    let gap = &shown["longest_gap"];
    assert!((gap["ms"].as_f64().unwrap() - 38.0).abs() < 1e-6, "{gap}");
    assert_eq!(gap["recovered"], true);
    let gaps = shown["longest_gaps"].as_array().unwrap();
    assert_eq!(gaps[0], *gap);
    // 1 ms; 38 ms; 53 of 37 ms up to 1964 ms, and 36 ms to the end.
    assert_eq!(gaps.len(), 55);
    assert!((gaps[53]["ms"].as_f64().unwrap() - 36.0).abs() < 1e-6);
    assert_eq!(gaps[53]["recovered"], false);

    let mut few = summary();
    few.with_cdf = false;
    few.measured.intervals = None;
    few.measured.gaps = None;
    few.offered_per_second = None;
    let shown = few.as_json();
    assert!(shown["offered_per_second"].is_null());
    for name in ["latency_cdf", "intervals", "longest_gap", "longest_gaps"] {
        assert!(shown.get(name).is_none(), "{name} was not asked for");
    }
}

#[test]
fn people_are_told_that_the_rate_was_not_reached_and_only_then() {
    let mut summary = summary();
    summary.measured.unsent_at_end = 10;
    assert!(!summary.as_text().contains("not reached"));
    summary.measured.unsent_at_end = 11;
    let text = summary.as_text();
    assert!(
        text.contains("rate not reached") && text.contains("11 requests were still"),
        "{text}"
    );
    assert!(text.contains("offered") && text.contains("1200 /s"));
    assert!(text.contains("38.0 ms, from "), "{text}");
    assert!(text.contains("2000 ms  0           1       -"), "{text}");
    assert!(text.contains("100.0000 %"), "{text}");
}

/// Two requests of so many that failed: three digits are too few for what is shown of them.
#[test]
fn a_run_of_which_most_failed_is_a_failure_and_says_why() {
    let begun = Instant::now();
    let mut run = summary();
    run.measured = Measurements::new(begun).unwrap();
    run.measured
        .succeeded(begun, begun + Duration::from_nanos(10_481_700));
    run.measured
        .succeeded(begun, begun + Duration::from_nanos(10_481_700));
    assert!(
        run.latencies()
            .iter()
            .all(|(_, us)| (us - 10_481.7).abs() < 1e-6)
    );
    assert_eq!(run.why_failed(), None);
    run.measured.failed("busy", 1, begun);
    run.measured.failed("too large", 104_701, begun);
    let why = run.why_failed().unwrap();
    assert!(
        why.contains("104702 of 104704") && why.contains("too large"),
        "{why}"
    );
    // What a server did not keep up with is measured, not wrong; one of 100 may fail.
    let mut run = summary();
    run.measured.failed(NOT_SENT, 5000, begun);
    run.measured.failed("busy", 9, begun);
    assert_eq!(run.why_failed(), None, "1 % failed");
    run.measured.failed("busy", 1, begun);
    assert!(run.why_failed().is_some());
}
