//! What a replica did between two of its reports. A process that was started anew in between has nothing to
//! be compared with, and says so by having no rates.
use super::DiskFigures;
use crate::counters::count;
use quorumwire_node::report::{DURATION_BOUNDS_US, Durations, Report};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How much later than its predecessor's clock a process may seem to have started before it counts as
/// another: answers take their time.
const START_SLACK: Duration = Duration::from_millis(1_500);

/// A protocol's name, and its counters of reads and of writes.
type Protocol = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Whoever adds a protocol adds a line.
const PROTOCOLS: [Protocol; 3] = [
    (
        "memcached",
        &["command_get_keys"],
        &[
            "command_set",
            "command_delete",
            "command_number",
            "command_touch",
            "command_flush",
        ],
    ),
    (
        "redis",
        &["command_redis_reads"],
        &["command_redis_writes", "command_redis_transactions"],
    ),
    (
        "client",
        &["client_port_queries"],
        &["client_port_commands"],
    ),
];

/// How often clients of one protocol ask.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ProtocolRates {
    /// memcached, redis, or client: that of `quorumwire-client`.
    pub name: String,
    /// Reads; none until there are two readings.
    pub reads_per_s: Option<f64>,
    /// Writes.
    pub writes_per_s: Option<f64>,
}

/// How long something took, in microseconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Latency {
    /// How often it was measured.
    pub count: u64,
    /// Half of them took at most this long.
    pub p50_us: f64,
    /// All but a hundredth took at most this long.
    pub p99_us: f64,
}

/// Two reports of one process.
#[derive(Debug)]
pub struct Span<'r> {
    before: &'r Report,
    after: &'r Report,
    seconds: f64,
}

impl<'r> Span<'r> {
    /// None if they are of two processes, or of the same moment.
    pub fn between(before: (&'r Report, Instant), after: (&'r Report, Instant)) -> Option<Self> {
        let elapsed = after.1.duration_since(before.1);
        let (before, after) = (before.0, after.0);
        let took_ms = after.uptime_ms.checked_sub(before.uptime_ms)?;
        let is_younger = Duration::from_millis(took_ms) + START_SLACK < elapsed;
        let is_other = before.incarnation != after.incarnation || is_younger;
        (took_ms > 0 && !is_other).then(|| Self {
            before,
            after,
            seconds: Duration::from_millis(took_ms).as_secs_f64(),
        })
    }

    fn growth(&self, name: &str) -> Option<u64> {
        count(self.after, name).checked_sub(count(self.before, name))
    }

    /// A counter's growth in a second.
    #[allow(clippy::cast_precision_loss)] // Nothing is counted that often in a second.
    pub fn rate(&self, name: &str) -> Option<f64> {
        Some(self.growth(name)? as f64 / self.seconds)
    }

    /// What was measured meanwhile; none if nothing was.
    pub fn latency(&self, name: &str) -> Option<Latency> {
        let after = self.after.durations.get(name)?;
        let none = Durations::default();
        let before = self.before.durations.get(name).unwrap_or(&none);
        let mut counts = after.bucket_counts;
        for (count, earlier) in counts.iter_mut().zip(before.bucket_counts) {
            *count = count.checked_sub(earlier)?;
        }
        let count = total(&counts);
        (count > 0).then(|| Latency {
            count,
            p50_us: quantile(&counts, 0.5),
            p99_us: quantile(&counts, 0.99),
        })
    }
}

/// All counted; what another replica says may be any number.
fn total(counts: &[u64; DURATION_BOUNDS_US.len() + 1]) -> u64 {
    counts.iter().fold(0, |sum, it| sum.saturating_add(*it))
}

/// Where this part of all counted is reached; within a bucket they are taken to be spread evenly. What took
/// longer than any bound took that bound.
#[allow(clippy::cast_precision_loss)] // Of bounds and counts of a few seconds nothing is lost.
fn quantile(counts: &[u64; DURATION_BOUNDS_US.len() + 1], part: f64) -> f64 {
    let rank = total(counts) as f64 * part;
    let mut below = 0.0;
    let mut lower = 0.0;
    for (count, upper) in counts.iter().zip(DURATION_BOUNDS_US) {
        let (count, upper) = (*count as f64, upper as f64);
        if count > 0.0 && below + count >= rank {
            return lower + (upper - lower) * (rank - below) / count;
        }
        below += count;
        lower = upper;
    }
    lower
}

/// Each protocol's rates.
pub fn protocols(span: Option<&Span<'_>>) -> Vec<ProtocolRates> {
    let rate = |counters: &[&str]| {
        let span = span?;
        sum(counters.iter().map(|name| span.rate(name)))
    };
    let rates = PROTOCOLS.iter().map(|(name, reads, writes)| ProtocolRates {
        name: (*name).to_owned(),
        reads_per_s: rate(reads),
        writes_per_s: rate(writes),
    });
    rates.collect()
}

/// The same of several replicas together.
pub fn sum_protocols<'p>(all: impl Iterator<Item = &'p [ProtocolRates]>) -> Vec<ProtocolRates> {
    let all: Vec<&[ProtocolRates]> = all.collect();
    let of = |name: &'static str| {
        all.iter()
            .flat_map(|it| it.iter())
            .filter(move |it| it.name == name)
    };
    let rates = PROTOCOLS.iter().map(|(name, ..)| ProtocolRates {
        name: (*name).to_owned(),
        reads_per_s: sum(of(name).map(|it| it.reads_per_s)),
        writes_per_s: sum(of(name).map(|it| it.writes_per_s)),
    });
    rates.collect()
}

/// What is known, added up; none if nothing is.
pub fn sum(rates: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    rates
        .flatten()
        .fold(None, |sum, rate| Some(sum.unwrap_or(0.0) + rate))
}

/// How the disk under the log keeps up.
#[allow(clippy::cast_precision_loss)] // Microseconds of a few seconds.
pub fn disk(span: Option<&Span<'_>>) -> DiskFigures {
    let Some(span) = span else {
        return DiskFigures::default();
    };
    let busy_us = span.growth("log_busy_microseconds").map(|it| it as f64);
    let batches = span.growth("log_batches").filter(|it| *it > 0);
    DiskFigures {
        syncs_per_s: span.rate("log_batches"),
        sync_mean_us: busy_us.zip(batches).map(|(us, count)| us / count as f64),
        bytes_per_s: span.rate("log_bytes"),
        busy: busy_us.map(|us| (us / 1e6 / span.seconds).min(1.0)),
    }
}
