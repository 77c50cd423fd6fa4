//! What a run has measured, for people and for programs.
use super::cpu::CpuTime;
use super::gaps::Gap;
use super::measured::Measurements;
use crate::commands::status::columns;
use crate::commands::view::as_text;
use crate::utc;
use serde_json::json;
use std::time::{Duration, Instant};

/// Points of a distribution: so many at equal distances, then so many for each tenfold step into its tail,
/// and its end. Equal ones are shown once.
const CDF_POINTS: u32 = 150;
const CDF_TAIL_POINTS_OF_TEN: i32 = 8;
const CDF_TAIL_POINTS: i32 = 48;
/// Where more of 100 requests than this were not sent in time, people are told.
const UNSENT_PERCENT_MAX: u64 = 1;
/// Where more of 100 requests than this failed, the run did.
const FAILED_PERCENT_MAX: u64 = 1;

/// What was measured, and how it is to be shown.
pub struct Summary {
    pub measured: Measurements,
    pub client: CpuTime,
    pub servers: Option<CpuTime>,
    /// Of an open loop.
    pub offered_per_second: Option<u64>,
    pub with_cdf: bool,
}

#[allow(clippy::cast_precision_loss)] // Figures to look at.
impl Summary {
    fn per_second(&self) -> f64 {
        self.measured.latencies_ns.len() as f64 / self.measured.elapsed.as_secs_f64().max(1e-9)
    }

    /// Microseconds.
    fn cpu_per_operation(&self, cpu: &CpuTime) -> f64 {
        cpu.total.as_secs_f64() * 1e6 / (self.measured.latencies_ns.len().max(1) as f64)
    }

    /// Name and microseconds.
    fn latencies(&self) -> [(&'static str, f64); 6] {
        let at = |quantile: f64| self.measured.quantile_ns(quantile) as f64 / 1e3;
        [
            ("p50", at(0.5)),
            ("p90", at(0.9)),
            ("p99", at(0.99)),
            ("p999", at(0.999)),
            ("max", at(1.0)),
            ("mean", self.measured.mean_ns() / 1e3),
        ]
    }

    /// Microseconds, and which part of the requests was answered within them; both ascend.
    fn cdf(&self) -> Vec<(f64, f64)> {
        let latencies = &self.measured.latencies_ns;
        if latencies.is_empty() {
            return Vec::new();
        }
        let even = (1..CDF_POINTS).map(|point| f64::from(point) / f64::from(CDF_POINTS));
        let tail = (1..=CDF_TAIL_POINTS).map(|point| {
            let tens = f64::from(point) / f64::from(CDF_TAIL_POINTS_OF_TEN);
            1.0 - 10_f64.powf(-tens) / f64::from(CDF_POINTS)
        });
        let mut values: Vec<u64> = even
            .chain(tail)
            .chain([1.0])
            .map(|quantile| self.measured.quantile_ns(quantile))
            .collect();
        values.dedup();
        let point = |value: u64| (value as f64 / 1e3, latencies.quantile_below(value));
        values.into_iter().map(point).collect()
    }

    pub fn as_json(&self) -> serde_json::Value {
        let latencies: serde_json::Map<String, serde_json::Value> = self
            .latencies()
            .into_iter()
            .map(|(name, microseconds)| (name.to_owned(), json!(microseconds)))
            .collect();
        let servers = self.servers.as_ref();
        let mut summary = json!({
            "operations": self.measured.latencies_ns.len(),
            "seconds": self.measured.elapsed.as_secs_f64(),
            "operations_per_second": self.per_second(),
            "offered_per_second": self.offered_per_second,
            "latency_us": latencies,
            "misses": self.measured.misses,
            "errors": self.measured.errors,
            "client_cpu_us_per_operation": self.cpu_per_operation(&self.client),
            "server_cpu_us_per_operation": servers.map(|cpu| self.cpu_per_operation(cpu)),
        });
        if self.with_cdf {
            summary["latency_cdf"] = json!(self.cdf());
        }
        if self.measured.intervals.is_some() {
            let intervals = self.intervals().into_iter().map(|it| {
                json!({
                    "at_ms": it.at_ms,
                    "operations": it.operations,
                    "errors": it.errors,
                    "p50_us": it.p50_us,
                    "p99_us": it.p99_us,
                })
            });
            summary["intervals"] = intervals.collect();
        }
        if let Some(gaps) = &self.measured.gaps {
            let of_gap = |gap: Gap| {
                json!({
                    "from_unix_ms": gap.from_unix_ms,
                    "to_unix_ms": gap.to_unix_ms,
                    "ms": gap.ms,
                    "recovered": gap.recovered,
                })
            };
            let gaps: Vec<_> = gaps.longest(self.end()).into_iter().map(of_gap).collect();
            summary["longest_gap"] = json!(gaps.first());
            summary["longest_gaps"] = json!(gaps);
        }
        summary
    }

    fn intervals(&self) -> Vec<Row> {
        let Some(intervals) = &self.measured.intervals else {
            return Vec::new();
        };
        let ended = intervals.ended(self.measured.ran).into_iter();
        ended
            .map(|(end, interval)| {
                let latencies = &interval.latencies_ns;
                let at = |quantile: f64| {
                    let ns = latencies.value_at_quantile(quantile) as f64;
                    (!latencies.is_empty()).then_some(ns / 1e3)
                };
                Row {
                    at_ms: milliseconds(end),
                    operations: latencies.len(),
                    errors: interval.errors,
                    p50_us: at(0.5),
                    p99_us: at(0.99),
                }
            })
            .collect()
    }

    /// Why a run is a failure, although it came to its end; `None`: it is none.
    pub fn why_failed(&self) -> Option<String> {
        let succeeded = self.measured.latencies_ns.len();
        let Some((failed, why, count)) = self.measured.failures() else {
            return (succeeded == 0).then(|| "no request succeeded".to_owned());
        };
        let all = succeeded + failed;
        let is_much = u128::from(failed) * 100 > u128::from(all) * u128::from(FAILED_PERCENT_MAX);
        is_much.then(|| {
            format!(
                "{failed} of {all} requests failed, more than {FAILED_PERCENT_MAX} %; {count} of them: {}",
                as_text(why)
            )
        })
    }

    pub fn as_text(&self) -> String {
        let mut rows = self.totals();
        rows.extend(self.of_gaps());
        let mut text = columns(&rows);
        // In lines of their own: reasons are long, and would widen the others.
        for (kind, count) in &self.measured.errors {
            text.extend(["failed: ", &count.to_string(), "  ", &as_text(kind), "\n"]);
        }
        if self.with_cdf {
            text.push('\n');
            let points = self.cdf().into_iter();
            let points = points
                .map(|(us, part)| row(&format!("{us:.1} us"), format!("{:.4} %", part * 1e2)));
            let head = row("answered within", "of all".to_owned());
            text.push_str(&columns(&[vec![head], points.collect()].concat()));
        }
        if self.measured.intervals.is_some() {
            text.push('\n');
            text.push_str(&table(&self.intervals()));
        }
        text
    }

    fn totals(&self) -> Vec<Vec<String>> {
        let measured = &self.measured;
        let seconds = measured.elapsed.as_secs_f64();
        let mut rows = vec![
            row("operations", measured.latencies_ns.len().to_string()),
            row("duration", format!("{seconds:.3} s")),
            row("throughput", format!("{:.0} /s", self.per_second())),
        ];
        if let Some(offered) = self.offered_per_second {
            rows.push(row("offered", format!("{offered} /s")));
            rows.extend(self.rate_not_reached());
        }
        for (name, microseconds) in self.latencies() {
            let name = format!("latency {name}");
            rows.push(row(&name, format!("{microseconds:.1} us")));
        }
        let per_operation = |cpu| format!("{:.2} us/operation", self.cpu_per_operation(cpu));
        rows.push(row("client CPU", per_operation(&self.client)));
        if let Some(servers) = &self.servers {
            rows.push(row("server CPU", per_operation(servers)));
        }
        if measured.misses > 0 {
            rows.push(row("misses", measured.misses.to_string()));
        }
        rows
    }

    /// That the servers did not keep up, where too many requests were still to be sent when the time was up.
    fn rate_not_reached(&self) -> Option<Vec<String>> {
        let unsent = self.measured.unsent_at_end;
        let failed: u64 = self.measured.errors.values().sum();
        let all = self.measured.latencies_ns.len() + failed;
        let is_missed = u128::from(unsent) * 100 > u128::from(all) * u128::from(UNSENT_PERCENT_MAX);
        let text = format!("{unsent} requests were still to be sent when the time was up");
        is_missed.then(|| row("rate not reached", text))
    }

    fn of_gaps(&self) -> Option<Vec<String>> {
        let gaps = self.measured.gaps.as_ref()?;
        let text = gaps.longest(self.end()).first().map_or_else(
            || "there was no write".to_owned(),
            |gap| {
                let from = utc::in_words(Duration::from_secs_f64(gap.from_unix_ms.max(0.0) / 1e3));
                let to = if gap.recovered { "" } else { " to the end" };
                format!("{:.1} ms, from {from}{to}", gap.ms)
            },
        );
        Some(row("longest time between writes", text))
    }

    /// From here on nothing was asked any more.
    fn end(&self) -> Instant {
        self.measured.begun + self.measured.ran
    }
}

/// An interval, in figures.
struct Row {
    at_ms: f64,
    operations: u64,
    errors: u64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn table(intervals: &[Row]) -> String {
    let head = ["until", "operations", "errors", "p50", "p99"];
    let latency = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1} us"));
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(intervals.iter().map(|it| {
        vec![
            format!("{:.0} ms", it.at_ms),
            it.operations.to_string(),
            it.errors.to_string(),
            latency(it.p50_us),
            latency(it.p99_us),
        ]
    }));
    columns(&rows)
}

#[cfg(test)]
#[path = "summary_test.rs"]
mod tests;
