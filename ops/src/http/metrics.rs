//! A replica's report as text in `OpenMetrics`. Names and help of gauges stand here, those of counters where
//! they are counted.
use super::switch_page;
use crate::counters::HELP;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use quorumwire_node::report::{
    COMMIT, DURATION_BOUNDS_US, Durations, FollowerReport, OutputDifference, ReplicaRole, Report,
    TURN, WAIT,
};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

pub const PREFIX: &str = "quorumwire";
/// Of a counter that is not declared.
const OTHER: &str = "Counted since the process started";
/// Of a report's durations.
const DURATIONS: [&str; 3] = [COMMIT, TURN, WAIT];

/// The text of `/metrics`, in `OpenMetrics`.
pub fn text(report: Report) -> Result<String, fmt::Error> {
    page_of(Box::new(ReportCollector(report)))
}

/// The text of what is collected.
pub fn page_of(collector: Box<dyn Collector>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(collector);
    let mut page = String::new();
    text::encode(&mut page, &registry)?;
    Ok(page)
}

/// The text of `docs/metrics.md`: every metric that can be on the page, as the page itself describes it.
pub fn documentation() -> Result<String, fmt::Error> {
    let all = Report {
        followers: vec![FollowerReport::default()],
        output_differences: vec![OutputDifference::default()],
        counters: HELP.keys().map(|name| (name.clone(), 0)).collect(),
        durations: DURATIONS
            .map(|name| (name.to_owned(), Durations::default()))
            .into(),
        ..Report::default()
    };
    let page = text(all)?;
    let mut told = String::from(
        "# Metrics\n\n\
         What a replica says at `GET /metrics`: as Prometheus' text (0.0.4), or as OpenMetrics if that is preferred.\n\
         Names are those of the page. Counters count since the process started. Of a histogram the page shows\n\
         `_bucket`, `_sum` and `_count`, each behind the name. The figures of followers are there on the leader only,\n\
         those of a data plane where there is one. What to watch: [operating.md](operating.md).\n\n\
         Written by `quorumwire config docs metrics`; do not edit.\n\n\
         | metric | type | what it says |\n|---|---|---|\n",
    );
    told.push_str(&rows_of(&page)?);
    told.push_str(&switch_page::documentation()?);
    Ok(told)
}

/// A row for each metric that is on the page, as it describes it.
pub fn rows_of(page: &str) -> Result<String, fmt::Error> {
    let mut told = String::new();
    let of = |line: &str, what: &str| {
        let rest = line.strip_prefix("# ")?.strip_prefix(what)?;
        let (name, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
        Some((name.to_owned(), rest.to_owned()))
    };
    let help = page.lines().filter_map(|line| of(line, "HELP"));
    let help: BTreeMap<String, String> = help.collect();
    let types = page.lines().filter_map(|line| of(line, "TYPE"));
    let types: BTreeMap<String, String> = types.collect();
    for (name, kind) in types {
        let help = help.get(&name).map_or("", String::as_str);
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        writeln!(told, "| `{name}{suffix}` | {kind} | {help} |")?;
    }
    Ok(told)
}

#[derive(Debug)]
struct ReportCollector(Report);

impl Collector for ReportCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let report = &self.0;
        encode_identity(&mut encoder, report)?;
        encode_gauges(&mut encoder, report)?;
        encode_followers(&mut encoder, report)?;
        encode_differences(&mut encoder, report)?;
        for (name, count) in &report.counters {
            encode_counter(&mut encoder, name, HELP.get(name).copied(), *count)?;
        }
        for (name, durations) in &report.durations {
            encode_durations(&mut encoder, name, durations)?;
        }
        Ok(())
    }
}

/// A counter; `help` says what it counts, if that is declared.
#[allow(clippy::cast_precision_loss)] // A microsecond more or less after 285 years.
pub fn encode_counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: Option<&str>,
    count: u64,
) -> fmt::Result {
    let help = help.unwrap_or(OTHER);
    if let Some(name) = name.strip_suffix("_microseconds") {
        let counter = ConstCounter::new(count as f64 / 1e6);
        let unit = Some(&Unit::Seconds);
        counter.encode(encoder.encode_descriptor(name, help, unit, counter.metric_type())?)
    } else {
        let counter = ConstCounter::new(count);
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
    }
}

fn encode_identity(encoder: &mut DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    let labels = [
        ("cluster", report.cluster.clone()),
        ("replica", report.id.to_string()),
        ("group", report.group.to_string()),
        ("incarnation", report.incarnation.clone()),
        ("durability", report.durability.to_string()),
        ("plane", report.plane.clone()),
        ("quorum", report.quorum.clone()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let mut replica = encoder.encode_descriptor(
        "replica",
        "Identity and version of this replica, and how it works; plane is what carries the common case now: none while \
         the server does",
        None,
        MetricType::Info,
    )?;
    replica.encode_info(&labels)?;
    let mut roles = encoder.encode_descriptor(
        "role",
        "1 for the role this replica has now, 0 for the others",
        None,
        MetricType::Gauge,
    )?;
    for role in ReplicaRole::ALL {
        let labels = [("role", role.as_str())];
        let held = i64::from(role == report.role);
        roles.encode_family(&labels)?.encode_gauge(&held)?;
    }
    Ok(())
}

fn encode_gauges(encoder: &mut DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    let leader = report.leader.map_or(-1, i64::from);
    let plain: [(&str, &str, u64); 16] = [
        ("term", "Raft term", report.term),
        (
            "commit_index",
            "Last index known to be committed",
            report.commit_index,
        ),
        ("last_index", "Last index of the log", report.last_index),
        (
            "persisted_index",
            "Last index this replica holds durably",
            report.persisted_index,
        ),
        (
            "applied_index",
            "Last index the store has applied",
            report.applied_index,
        ),
        (
            "snapshot_index",
            "Last index of the newest snapshot, 0 for none",
            report.snapshot_index,
        ),
        (
            "first_index",
            "First index still in the log",
            report.first_index,
        ),
        (
            "ready",
            "1 if a client's request would be served now, and this replica votes or is a permanent learner",
            u64::from(report.ready),
        ),
        (
            "writes_refused",
            "1 if this replica knows that no write is carried out now; /v1/status says why",
            u64::from(report.writes_refused.is_some()),
        ),
        (
            "lease",
            "1 if this replica leads and may answer reads alone",
            u64::from(report.lease),
        ),
        (
            "members",
            "Members, learners included",
            report.members.len() as u64,
        ),
        (
            "voters",
            "Members that vote",
            report.members.iter().filter(|member| member.voter).count() as u64,
        ),
        (
            "faults",
            "Faults at this moment; /v1/status has their texts",
            report.faults.len() as u64,
        ),
        ("items", "Items in the store", report.items),
        (
            "connections",
            "Clients connected, of all protocols",
            report.connections,
        ),
        (
            "client_buffer_bytes",
            "Bytes held for clients: incomplete requests, and answers they have not read",
            report.client_buffer_bytes,
        ),
    ];
    for (name, help, value) in plain {
        encode_gauge(encoder, name, help, None, value)?;
    }
    let gauge = ConstGauge::new(leader);
    let help = "Id of the replica that leads, -1 if unknown";
    gauge.encode(encoder.encode_descriptor("leader", help, None, gauge.metric_type())?)?;
    let log = "Log entries held in memory";
    encode_gauge(
        encoder,
        "log_memory",
        log,
        Some(&Unit::Bytes),
        report.log_bytes,
    )?;
    encode_memory(encoder, report)?;
    encode_times(encoder, report)
}

fn encode_times(encoder: &mut DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    let ahead = "How far the log's time is ahead of this replica's clock; negative if it is behind";
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    for (name, help, ms) in [
        (
            "uptime",
            "Time since the process started",
            signed(report.uptime_ms),
        ),
        (
            "log_time",
            "The log's time since 1970-01-01",
            signed(report.log_time_ms),
        ),
        ("log_time_ahead", ahead, report.log_time_ahead_ms),
    ] {
        encode_seconds(encoder, name, help, ms)?;
    }
    Ok(())
}

fn encode_memory(encoder: &mut DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    let limit = "Bytes that the items may take, 0 for as many as there are";
    let used = "Bytes that the items take: keys, values and 128 bytes for each item";
    let incoming = "Bytes of the snapshot being received, 0 for none";
    let incoming_done = "Bytes of it that are done: first received, then checked, then restored";
    let snapshot = report.incoming_snapshot.as_ref();
    let (done, total) = snapshot.map_or((0, 0), |it| (it.done_bytes, it.total_bytes));
    for (name, help, value) in [
        ("items", "Keys and values in the store", report.items_bytes),
        ("memory_limit", limit, report.memory_limit_bytes),
        ("memory_used", used, report.memory_used_bytes),
        ("snapshot_incoming", incoming, total),
        ("snapshot_incoming_done", incoming_done, done),
    ] {
        encode_gauge(encoder, name, help, Some(&Unit::Bytes), value)?;
    }
    Ok(())
}

/// A number.
pub fn encode_gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: u64,
) -> fmt::Result {
    // The format's integers are signed; no figure of ours comes near the end of them.
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
}

/// A time.
#[allow(clippy::cast_precision_loss)] // A millisecond more or less after 285,000 years.
pub fn encode_seconds(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    milliseconds: i64,
) -> fmt::Result {
    let gauge = ConstGauge::new(milliseconds as f64 / 1e3);
    let unit = Some(&Unit::Seconds);
    gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
}

type Figure = fn(&FollowerReport) -> u64;

/// Seen by the leader; no followers, no lines.
fn encode_followers(encoder: &mut DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    if report.followers.is_empty() {
        return Ok(());
    }
    let figures: [(&str, &str, Figure); 6] = [
        (
            "follower_match_index",
            "Last index this follower is known to hold durably",
            |follower| follower.match_index,
        ),
        (
            "follower_lag_entries",
            "Entries this follower is behind the leader's last",
            |follower| follower.lag,
        ),
        (
            "follower_active",
            "1 if this follower was heard within the election timeout",
            |follower| u64::from(follower.active),
        ),
        (
            "follower_in_snapshot",
            "1 while a snapshot is being sent to this follower",
            |follower| u64::from(follower.in_snapshot),
        ),
        (
            "follower_snapshot_sent_bytes",
            "Bytes of that snapshot that this follower has stored",
            |follower| follower.snapshot_sent_bytes,
        ),
        (
            "follower_snapshot_bytes",
            "Bytes of the snapshot being sent to this follower, 0 for none",
            |follower| follower.snapshot_bytes,
        ),
    ];
    for (name, help, figure) in figures {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for follower in &report.followers {
            let labels = [("follower", follower.id.to_string())];
            let value = i64::try_from(figure(follower)).unwrap_or(i64::MAX);
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
    }
    Ok(())
}

/// Where served programs have said different things; nowhere, no lines.
fn encode_differences(encoder: &mut DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    if report.output_differences.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(
        "served_output_difference",
        "Where the program of a replica has said something else than others: 1 while that life of the replica is a \
         member, 0 afterwards",
        None,
        MetricType::Gauge,
    )?;
    for it in &report.output_differences {
        let labels = [
            ("replica", it.replica.to_string()),
            ("connection", it.connection.to_string()),
            ("first_byte", it.first_byte.to_string()),
            ("bytes", it.bytes.to_string()),
            ("turn", it.turn.to_string()),
            ("quarantined", it.quarantined.to_string()),
            ("incarnation", it.incarnation.clone()),
        ];
        let is_member = i64::from(it.is_member);
        family.encode_family(&labels)?.encode_gauge(&is_member)?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // The format's bounds and sums are floating point.
fn encode_durations(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    durations: &Durations,
) -> fmt::Result {
    let name = name.strip_suffix("_seconds").unwrap_or(name);
    let help = format!("How long a {} took", name.replace('_', " "));
    let bounds = DURATION_BOUNDS_US
        .iter()
        .map(|bound| *bound as f64 / 1e6)
        .chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(durations.bucket_counts).collect();
    let count = durations.bucket_counts.iter().sum();
    let unit = Some(&Unit::Seconds);
    let mut histogram = encoder.encode_descriptor(name, &help, unit, MetricType::Histogram)?;
    histogram.encode_histogram::<NoLabelSet>(durations.sum_us as f64 / 1e6, count, &buckets, None)
}

#[cfg(test)]
#[path = "metrics_test.rs"]
mod tests;
