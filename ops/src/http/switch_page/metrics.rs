//! A switch's report as text in `OpenMetrics`. Names and help of gauges stand here, those of counters where
//! they are counted.
use super::super::metrics::{
    PREFIX, encode_counter, encode_gauge, encode_seconds, page_of, rows_of,
};
use crate::counters::HELP;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use quorumwire_paxos_process::{SwitchReport, WindowReport, declared_counters, declared_of_planes};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// By the counter's name in reports; without those that servers have, too.
static OF_SWITCHES: LazyLock<BTreeMap<String, &'static str>> = LazyLock::new(|| {
    let mut help = BTreeMap::new();
    declared_counters(&mut |counter, _| {
        help.insert(format!("switch_{}", counter.name), counter.help);
    });
    let of_planes = declared_of_planes();
    help.insert(format!("plane_{}", of_planes.name), of_planes.help);
    help
});

fn help_of(name: &str) -> Option<&'static str> {
    OF_SWITCHES.get(name).or_else(|| HELP.get(name)).copied()
}

/// The text of `/metrics`, in `OpenMetrics`.
pub fn text(report: SwitchReport) -> Result<String, fmt::Error> {
    page_of(Box::new(ReportCollector(report)))
}

/// What `docs/metrics.md` says of switches.
pub fn documentation() -> Result<String, fmt::Error> {
    let all = SwitchReport {
        window: Some(WindowReport::default()),
        counters: OF_SWITCHES.keys().map(|name| (name.clone(), 0)).collect(),
        ..SwitchReport::default()
    };
    let own = [format!("{PREFIX}_switch"), format!("{PREFIX}_plane_")];
    let rows = rows_of(&text(all)?)?;
    let is_own = |row: &&str| own.iter().any(|it| row.starts_with(&format!("| `{it}")));
    let rows: String = rows.split_inclusive('\n').filter(is_own).collect();
    let (health, of_planes) = (format!("{PREFIX}_http_"), format!("{PREFIX}_plane_"));
    Ok(format!(
        "\n## Of a switch\n\n\
         What `quorumwire switch` with `--listen-http` says there ([paxos.md](paxos.md#status-and-metrics)). Beside\n\
         these it has those of its port, which begin with `{health}`, and those of its plane and its socket, which\n\
         begin with `{of_planes}`: they are described above. Counters of boxes and planes are at most a second old.\n\
         The figures of the window are there while the switch coordinates or votes.\n\n\
         | metric | type | what it says |\n|---|---|---|\n{rows}"
    ))
}

#[derive(Debug)]
struct ReportCollector(SwitchReport);

impl Collector for ReportCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let report = &self.0;
        encode_identity(&mut encoder, report)?;
        encode_gauges(&mut encoder, report)?;
        if let Some(window) = &report.window {
            encode_window(&mut encoder, window)?;
        }
        for (name, count) in &report.counters {
            encode_counter(&mut encoder, name, help_of(name), *count)?;
        }
        Ok(())
    }
}

fn encode_identity(encoder: &mut DescriptorEncoder<'_>, report: &SwitchReport) -> fmt::Result {
    let durability = report.durability.as_deref().unwrap_or("none");
    let labels = [
        ("deployment", report.deployment.as_str()),
        ("role", report.role.as_str()),
        ("number", &report.number.to_string()),
        ("durability", durability),
        ("plane", report.plane.name.as_str()),
        ("version", report.version.as_str()),
    ];
    let mut switch = encoder.encode_descriptor(
        "switch",
        "Identity and version of this switch, and how it works",
        None,
        MetricType::Info,
    )?;
    switch.encode_info(&labels)
}

/// -1 for none.
fn encode_number(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    number: Option<u8>,
) -> fmt::Result {
    let gauge = ConstGauge::new(number.map_or(-1, i64::from));
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

#[allow(clippy::cast_precision_loss)] // A microsecond more or less after 285 years.
fn encode_gauges(encoder: &mut DescriptorEncoder<'_>, report: &SwitchReport) -> fmt::Result {
    let is_engaged = report.plane.state == "engaged";
    let plain: [(&str, &str, u64); 6] = [
        (
            "switch_ready",
            "1 if it coordinates, is a backup of somebody who does, or votes",
            u64::from(report.ready),
        ),
        (
            "switch_coordinates",
            "1 if this switch gives values their instances",
            u64::from(report.coordinates),
        ),
        (
            "switch_round",
            "Of a coordinator the round that it is in or knows of, of an acceptor the one that it has promised",
            report.round,
        ),
        (
            "switch_life",
            "Life of an acceptor, 0 as the deployment begins",
            report.life.unwrap_or(0),
        ),
        (
            "switch_plane_engaged",
            "1 if a plane takes what is common by itself, 0 if the switch's process takes all packets",
            u64::from(is_engaged),
        ),
        (
            "switch_faults",
            "Faults at this moment; /v1/status has their texts",
            report.faults.len() as u64,
        ),
    ];
    for (name, help, value) in plain {
        encode_gauge(encoder, name, help, None, value)?;
    }
    let who = "Number of the coordinator that coordinates as far as this switch knows, -1 for none";
    encode_number(encoder, "switch_coordinator", who, report.coordinator)?;
    let longest = "Longest time that making votes durable took once";
    let gauge = ConstGauge::new(report.longest_sync_us as f64 / 1e6);
    let (name, unit) = ("switch_sync_longest", Some(&Unit::Seconds));
    gauge.encode(encoder.encode_descriptor(name, longest, unit, gauge.metric_type())?)?;
    let silent = "Since the switch's loop has said how it does; it does so every 100 ms";
    for (name, help, milliseconds) in [
        ("switch_silent", silent, report.silent_ms),
        ("uptime", "Time since the process started", report.uptime_ms),
    ] {
        let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
        encode_seconds(encoder, name, help, milliseconds)?;
    }
    Ok(())
}

fn encode_window(encoder: &mut DescriptorEncoder<'_>, window: &WindowReport) -> fmt::Result {
    for (name, help, value) in [
        (
            "switch_window_instances",
            "Instances that can be open",
            window.instances,
        ),
        (
            "switch_window_free",
            "Values that have room in the window; 0: a learner has to checkpoint",
            window.free,
        ),
        (
            "switch_first_open_instance",
            "First instance that is not forgotten",
            window.first_open,
        ),
        (
            "switch_next_instance",
            "Of a coordinator what the next value gets, of an acceptor the one behind the highest it has voted for",
            window.next_instance,
        ),
        (
            "switch_checkpointed_instance",
            "Up to where all learners have checkpointed, as far as this switch has heard",
            window.checkpointed.unwrap_or(0),
        ),
    ] {
        encode_gauge(encoder, name, help, None, value)?;
    }
    let who = "Number of the learner that has checkpointed least, -1 if unknown";
    encode_number(encoder, "switch_slowest_learner", who, window.filled_by)
}

#[cfg(test)]
#[path = "../switch_metrics_test.rs"]
mod tests;
