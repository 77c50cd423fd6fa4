//! What the load has measured: of one thread, then of all together.
use super::{LATENCY_NS_MAX, gaps::WriteGaps};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Different reasons told apart; a server may put anything into them.
pub const ERROR_REASONS_MAX: usize = 32;
pub const OTHER_REASONS: &str = "other reasons";
/// Digits of latencies that are right, and of those in an interval.
const DIGITS: u8 = 3;
const DIGITS_OF_INTERVAL: u8 = 2;
/// So few latencies are told exactly.
const FEW_MAX: usize = 1000;
/// Requests of an open loop that the servers did not keep up with.
pub const NOT_SENT: &str = "not sent in time";

/// What was measured.
#[derive(Debug)]
pub struct Measurements {
    /// Of every request that succeeded, nanoseconds.
    pub latencies_ns: Histogram<u64>,
    /// The same exactly, as long as they are few.
    few_ns: Vec<u64>,
    /// Reads that found nothing; they count as success.
    pub misses: u64,
    /// Requests that failed, by reason.
    pub errors: BTreeMap<String, u64>,
    /// When it began.
    pub begun: Instant,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// For how long requests were made.
    pub ran: Duration,
    /// Requests of an open loop that were due and not sent yet when the time was up.
    pub unsent_at_end: u64,
    /// The same interval by interval, if that was asked for.
    pub intervals: Option<Intervals>,
    /// Where successful writes are told, if that was asked for.
    pub gaps: Option<Arc<WriteGaps>>,
}

impl Measurements {
    /// Nothing yet.
    pub fn new(begun: Instant) -> anyhow::Result<Self> {
        Ok(Self {
            latencies_ns: Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)?,
            few_ns: Vec::new(),
            misses: 0,
            errors: BTreeMap::new(),
            begun,
            elapsed: Duration::ZERO,
            ran: Duration::ZERO,
            unsent_at_end: 0,
            intervals: None,
            gaps: None,
        })
    }

    /// Takes what another thread measured at the same time.
    pub fn add(&mut self, other: Self) -> anyhow::Result<()> {
        self.latencies_ns.add(&other.latencies_ns)?;
        let room = FEW_MAX.saturating_sub(self.few_ns.len());
        self.few_ns.extend(other.few_ns.into_iter().take(room));
        self.misses += other.misses;
        for (reason, count) in other.errors {
            self.count_errors(&reason, count);
        }
        self.elapsed = self.elapsed.max(other.elapsed);
        self.ran = self.ran.max(other.ran);
        self.unsent_at_end += other.unsent_at_end;
        match (&mut self.intervals, other.intervals) {
            (Some(own), Some(others)) => own.add(others)?,
            (None, Some(others)) => self.intervals = Some(others),
            (_, None) => {}
        }
        self.gaps = self.gaps.take().or(other.gaps);
        Ok(())
    }

    /// Counts a request that succeeded, from when it was due.
    pub fn succeeded(&mut self, due: Instant, now: Instant) {
        let latency = now.saturating_duration_since(due);
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let ns = ns.clamp(1, LATENCY_NS_MAX);
        self.latencies_ns.saturating_record(ns);
        if self.few_ns.len() < FEW_MAX {
            self.few_ns.push(ns);
        }
        let at = now.saturating_duration_since(self.begun);
        if let Some(interval) = self.intervals.as_mut().and_then(|all| all.at(at)) {
            let recorded = interval.latencies_ns.record(ns);
            recorded.expect("it grows as it needs to");
        }
    }

    /// So much of the requests that succeeded took at most this long, in nanoseconds.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )] // A rank among few.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.few_ns.len() as u64 != self.latencies_ns.len() {
            return self.latencies_ns.value_at_quantile(quantile);
        }
        let mut few = self.few_ns.clone();
        few.sort_unstable();
        let rank = (quantile * few.len() as f64).ceil() as usize;
        few.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// The mean of the requests that succeeded, in nanoseconds.
    #[allow(clippy::cast_precision_loss)] // Latencies are far shorter than what would lose digits.
    pub fn mean_ns(&self) -> f64 {
        if self.few_ns.is_empty() || self.few_ns.len() as u64 != self.latencies_ns.len() {
            return self.latencies_ns.mean();
        }
        self.few_ns.iter().sum::<u64>() as f64 / self.few_ns.len() as f64
    }

    /// How many requests failed, without those that were never sent, and the most frequent reason with its
    /// count.
    pub fn failures(&self) -> Option<(u64, &str, u64)> {
        let sent = || self.errors.iter().filter(|(why, _)| *why != NOT_SENT);
        let (why, most) = sent().max_by_key(|(_, count)| **count)?;
        Some((sent().map(|(_, count)| count).sum(), why, *most))
    }

    /// Counts requests that failed.
    pub fn failed(&mut self, reason: &str, count: u64, now: Instant) {
        self.count_errors(reason, count);
        let at = now.saturating_duration_since(self.begun);
        if count > 0
            && let Some(interval) = self.intervals.as_mut().and_then(|all| all.at(at))
        {
            interval.errors += count;
        }
    }

    fn count_errors(&mut self, reason: &str, count: u64) {
        if count == 0 {
            return;
        }
        let known = self.errors.contains_key(reason) || self.errors.len() < ERROR_REASONS_MAX;
        let reason = if known { reason } else { OTHER_REASONS };
        if let Some(counted) = self.errors.get_mut(reason) {
            *counted += count;
        } else {
            self.errors.insert(reason.to_owned(), count);
        }
    }
}

/// What was answered interval by interval, from the beginning to the run's end. What comes after that,
/// because it was in flight then, is in none.
#[derive(Clone, Debug)]
pub struct Intervals {
    /// How long each is.
    pub length: Duration,
    /// When the last one ends at the latest.
    until: Duration,
    /// Those up to the last one in which something was answered.
    list: Vec<Interval>,
}

/// What was answered in a while.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Of every request that succeeded.
    pub latencies_ns: Histogram<u32>,
    /// How many failed.
    pub errors: u64,
}

impl Interval {
    fn new() -> Self {
        Self {
            latencies_ns: Histogram::new(DIGITS_OF_INTERVAL).expect("so many digits are allowed"),
            errors: 0,
        }
    }
}

impl Intervals {
    /// Of this length, until then; the caller sees to it that these are not too many.
    pub fn new(length: Duration, until: Duration) -> Self {
        Self {
            length,
            until,
            list: Vec::new(),
        }
    }

    /// The interval in which this moment is; `None` after the last.
    fn at(&mut self, moment: Duration) -> Option<&mut Interval> {
        if moment >= self.until {
            return None;
        }
        let place = usize::try_from(moment.as_nanos() / self.length.as_nanos()).ok()?;
        while self.list.len() <= place {
            self.list.push(Interval::new());
        }
        self.list.get_mut(place)
    }

    fn add(&mut self, other: Self) -> anyhow::Result<()> {
        while self.list.len() < other.list.len() {
            self.list.push(Interval::new());
        }
        for (own, other) in self.list.iter_mut().zip(other.list) {
            own.latencies_ns.add(&other.latencies_ns)?;
            own.errors += other.errors;
        }
        Ok(())
    }

    /// All that were begun in so much time, those without answers included, each with when it ended.
    pub fn ended(&self, ran: Duration) -> Vec<(Duration, Interval)> {
        let ran = ran.min(self.until);
        let mut begin = Duration::ZERO;
        let mut ended = Vec::new();
        while begin < ran {
            let end = (begin + self.length).min(self.until);
            let interval = self.list.get(ended.len()).cloned();
            ended.push((end, interval.unwrap_or_else(Interval::new)));
            begin += self.length;
        }
        ended
    }
}

#[cfg(test)]
#[path = "measured_test.rs"]
mod tests;
