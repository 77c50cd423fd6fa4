//! What was measured, as one JSON object.
use hdrhistogram::Histogram;
use serde_json::json;
use std::io::{self, Write as _};
use std::time::Duration;

/// Longer answers count as this long.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// An empty histogram of nanoseconds, to three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("constants that fit")
}

/// What went wrong beside what was answered.
#[derive(Clone, Copy, Default)]
pub struct Failures {
    /// Requests that were sent again.
    pub sent_again: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Answers that nobody waited for, or that were not understood.
    pub not_awaited: u64,
}

/// Nanoseconds of the kernel's clock, how many answers there had been, and the last index of each replica.
pub type Look = (u64, u64, Vec<u64>);

/// Prints a run.
pub fn print(
    latencies: &Histogram<u64>,
    elapsed: Duration,
    failures: Failures,
    trace: &[Look],
) -> io::Result<()> {
    let us = |quantile: f64| {
        let nanoseconds = latencies.value_at_quantile(quantile);
        Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6
    };
    let seconds = elapsed.as_secs_f64();
    let printed = json!({
        "operations": latencies.len(),
        "seconds": seconds,
        "p50_us": us(0.5),
        "p90_us": us(0.9),
        "p99_us": us(0.99),
        "p999_us": us(0.999),
        "max_us": us(1.0),
        "sent_again": failures.sent_again,
        "refused": failures.refused,
        "not_awaited": failures.not_awaited,
        "trace": trace,
    });
    writeln!(io::stdout(), "{printed}")
}
