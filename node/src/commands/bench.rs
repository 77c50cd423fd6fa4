//! `quorumwire bench`: a closed-loop load over the memcached or the Redis protocol, and what it measured. Works
//! with any memcached or Redis server.
mod connection;
mod cpu;
mod load;
mod protocol;

use super::progress::while_doing;
use super::status::columns;
use crate::options::{Refused, reachable_argument};
use anyhow::{Context as _, bail};
use cpu::CpuTime;
use hdrhistogram::Histogram;
use load::{Load, Measured, Phase};
use protocol::Protocol;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CONNECTIONS_MAX: u64 = 4096;
const IN_FLIGHT_MAX: u64 = 4096;
const OPERATIONS_MAX: u64 = 1_000_000_000;
const SECONDS_MAX: u64 = 3600;
/// How long a run that counts operations may take if nobody says otherwise.
const SECONDS_FOR_OPERATIONS: u64 = 600;
/// How long a run takes if nobody says otherwise.
const SECONDS: u64 = 10;
const VALUE_BYTES_MAX: u64 = 1 << 20;
const KEYS_MAX: u64 = 10_000_000;
const THREADS_MAX: u64 = 64;
const WAIT_MAX: i64 = 9;
/// How often storing the keys to read is tried: leadership may move meanwhile.
const FILL_TRIES_MAX: usize = 5;
/// Latencies above this are counted as this, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Every connection keeps a fixed number of requests in flight: the next is sent when one is answered.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire bench --connections 1 --in-flight 1             # latency
  quorumwire bench --addr 127.0.0.1:11211,127.0.0.1:11212 --seconds 30 --json
  quorumwire bench --protocol redis --addr 127.0.0.1:6379 --wait 1
  quorumwire bench --write-percent 10 --server-pids 4242,4243,4244")]
pub struct Arguments {
    /// Where to connect; connections take turns
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        default_value = "127.0.0.1:11211",
        value_delimiter = ',',
        value_parser = reachable_argument
    )]
    addr: Vec<String>,
    /// What the servers speak
    #[arg(long, value_name = "WORD", value_parser = ["memcached", "redis"], default_value = "memcached")]
    protocol: String,
    /// With --protocol redis: a write counts once so many replicas beside the one asked have it, by Redis' WAIT
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=WAIT_MAX))]
    wait: u8,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    connections: u64,
    /// Requests in flight per connection
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..=IN_FLIGHT_MAX))]
    in_flight: u64,
    /// End after so many requests [default: end by time]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=OPERATIONS_MAX))]
    operations: Option<u64>,
    /// End after so many seconds at the latest [default: 10; with --operations 600]
    #[arg(long, value_name = "S",
          value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: Option<u64>,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..=VALUE_BYTES_MAX))]
    value_bytes: u64,
    /// Number of different keys; which one is next is random
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    keys: u64,
    /// Of 100 requests so many write (set), the others read (get); keys to read are stored first
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    write_percent: u8,
    /// Threads of this client; connections are shared out among them
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    threads: u64,
    /// Processes whose CPU time per request is measured
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    server_pids: Vec<u32>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn protocol(&self) -> Protocol {
        match self.protocol.as_str() {
            "redis" => Protocol::Redis { wait: self.wait },
            _ => Protocol::Memcached,
        }
    }
}

/// Runs the load and shows what it measured; exit code 1 if no request succeeded.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.wait > 0 && arguments.protocol() == Protocol::Memcached {
        let allowed = "0, unless --protocol is redis";
        bail!(Refused::flag("wait", arguments.wait.to_string(), allowed));
    }
    let addresses = resolve(&arguments.addr)?;
    if arguments.write_percent < 100 {
        fill(arguments, &addresses)?;
    }
    let servers = CpuTime::of(&arguments.server_pids)?;
    let client = CpuTime::of(&[std::process::id()])?;
    let measured = run_phase(arguments, &addresses, Phase::Measure)?;
    let client = CpuTime::of(&[std::process::id()])?.since(&client);
    let servers = CpuTime::of(&arguments.server_pids)?.since(&servers);
    let summary = Summary {
        measured,
        client,
        servers: (!arguments.server_pids.is_empty()).then_some(servers),
    };
    if arguments.json {
        println!("{}", summary.as_json());
    } else {
        print!("{}", summary.as_text());
    }
    Ok(if summary.measured.latencies_ns.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Stores every key, all of them again if any was refused.
fn fill(arguments: &Arguments, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    let mut errors = BTreeMap::new();
    for _ in 0..FILL_TRIES_MAX {
        let filled = run_phase(arguments, addresses, Phase::Fill)?;
        if filled.latencies_ns.len() == arguments.keys {
            return Ok(());
        }
        errors = filled.errors;
    }
    bail!("storing the keys to read failed {FILL_TRIES_MAX} times: {errors:?}")
}

fn resolve(addresses: &[String]) -> anyhow::Result<Vec<SocketAddr>> {
    let resolved = addresses.iter().map(|text| {
        let mut found = text
            .to_socket_addrs()
            .with_context(|| format!("looking up {text}"))?;
        found
            .next()
            .with_context(|| format!("{text} has no address"))
    });
    resolved.collect()
}

/// One thread per share of the connections. Says meanwhile how far they are.
fn run_phase(
    arguments: &Arguments,
    addresses: &[SocketAddr],
    phase: Phase,
) -> anyhow::Result<Measured> {
    let loads = shares(arguments, addresses, phase)?;
    let (operations, duration) = limits(arguments, phase);
    let answered = loads.first().map(|load| Arc::clone(&load.answered));
    let end = Instant::now() + duration;
    let show = move || {
        let done = answered.as_ref().map_or(0, |it| it.load(Ordering::Relaxed));
        let left = end.saturating_duration_since(Instant::now());
        how_far(phase, done, operations, left)
    };
    let outcomes: Vec<anyhow::Result<Measured>> = while_doing(show, || {
        thread::scope(|scope| {
            let threads: Vec<_> = loads
                .into_iter()
                .map(|load| scope.spawn(move || load.run()))
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|outcome| outcome.expect("the load does not panic"))
                .collect()
        })
    });
    let mut total = Measured::new()?;
    for outcome in outcomes {
        total.add(outcome?)?;
    }
    Ok(total)
}

/// How many requests a phase has, if they are counted, and how long it takes at most.
fn limits(arguments: &Arguments, phase: Phase) -> (Option<u64>, Duration) {
    let operations = match phase {
        Phase::Fill => Some(arguments.keys),
        Phase::Measure => arguments.operations,
    };
    let seconds = arguments.seconds.unwrap_or(match operations {
        Some(_) => SECONDS_FOR_OPERATIONS,
        None => SECONDS,
    });
    (operations, Duration::from_secs(seconds))
}

/// In one line, for people; errors are no operations.
fn how_far(phase: Phase, done: u64, operations: Option<u64>, left: Duration) -> String {
    let what = match phase {
        Phase::Fill => "storing the keys to read",
        Phase::Measure => "measuring",
    };
    let left = left.as_millis().div_ceil(1000);
    match operations {
        Some(all) => format!("{what}: {done} of {all} operations, at most {left} s left"),
        None => format!("{what}: {done} operations, {left} s left"),
    }
}

/// Shares connections and operations out among the threads, evenly, the rest to the first.
fn shares(
    arguments: &Arguments,
    addresses: &[SocketAddr],
    phase: Phase,
) -> anyhow::Result<Vec<Load>> {
    let (operations, duration) = limits(arguments, phase);
    let answered = Arc::new(AtomicU64::new(0));
    let connections = arguments.connections;
    let quota = |n: u64| operations.map(|all| all / connections + u64::from(n < all % connections));
    let first_key = |n: u64| {
        let all = operations.unwrap_or(0);
        n * (all / connections) + n.min(all % connections)
    };
    let thread_count = arguments.threads.min(connections);
    let mut loads: Vec<Load> = Vec::new();
    for _ in 0..thread_count {
        loads.push(Load {
            protocol: arguments.protocol(),
            phase,
            duration,
            answered: Arc::clone(&answered),
            in_flight: usize::try_from(arguments.in_flight)?,
            keys: arguments.keys,
            value_bytes: usize::try_from(arguments.value_bytes)?,
            write_percent: arguments.write_percent,
            connections: Vec::new(),
        });
    }
    for n in 0..connections {
        let turn = usize::try_from(n)?;
        let load = &mut loads[usize::try_from(n % thread_count)?];
        load.connections.push(load::Share {
            number: n,
            address: addresses[turn % addresses.len()],
            operations: quota(n),
            first_key: first_key(n),
        });
    }
    Ok(loads)
}

struct Summary {
    measured: Measured,
    client: CpuTime,
    servers: Option<CpuTime>,
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
        let latencies: &Histogram<u64> = &self.measured.latencies_ns;
        let at = |quantile: f64| latencies.value_at_quantile(quantile) as f64 / 1e3;
        [
            ("p50", at(0.5)),
            ("p90", at(0.9)),
            ("p99", at(0.99)),
            ("p999", at(0.999)),
            ("max", latencies.max() as f64 / 1e3),
            ("mean", latencies.mean() / 1e3),
        ]
    }

    fn as_json(&self) -> serde_json::Value {
        let latencies: serde_json::Map<String, serde_json::Value> = self
            .latencies()
            .into_iter()
            .map(|(name, microseconds)| (name.to_owned(), json!(microseconds)))
            .collect();
        let servers = self.servers.as_ref();
        json!({
            "operations": self.measured.latencies_ns.len(),
            "seconds": self.measured.elapsed.as_secs_f64(),
            "operations_per_second": self.per_second(),
            "latency_us": latencies,
            "misses": self.measured.misses,
            "errors": self.measured.errors,
            "client_cpu_us_per_operation": self.cpu_per_operation(&self.client),
            "server_cpu_us_per_operation": servers.map(|cpu| self.cpu_per_operation(cpu)),
        })
    }

    fn as_text(&self) -> String {
        let measured = &self.measured;
        let mut rows = vec![
            vec![
                "operations".to_owned(),
                measured.latencies_ns.len().to_string(),
            ],
            vec![
                "duration".to_owned(),
                format!("{:.3} s", measured.elapsed.as_secs_f64()),
            ],
            vec![
                "throughput".to_owned(),
                format!("{:.0} /s", self.per_second()),
            ],
        ];
        for (name, microseconds) in self.latencies() {
            rows.push(vec![
                format!("latency {name}"),
                format!("{microseconds:.1} us"),
            ]);
        }
        rows.push(vec![
            "client CPU".to_owned(),
            format!("{:.2} us/operation", self.cpu_per_operation(&self.client)),
        ]);
        if let Some(servers) = &self.servers {
            rows.push(vec![
                "server CPU".to_owned(),
                format!("{:.2} us/operation", self.cpu_per_operation(servers)),
            ]);
        }
        if measured.misses > 0 {
            rows.push(vec!["misses".to_owned(), measured.misses.to_string()]);
        }
        for (kind, count) in &measured.errors {
            rows.push(vec![format!("failed: {kind}"), count.to_string()]);
        }
        columns(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_many_operations_are_done_and_how_long_it_may_take() {
        let left = Duration::from_millis(7_900);
        assert_eq!(
            how_far(Phase::Fill, 5, Some(1000), left),
            "storing the keys to read: 5 of 1000 operations, at most 8 s left"
        );
        assert_eq!(
            how_far(Phase::Measure, 12_345, None, left),
            "measuring: 12345 operations, 8 s left"
        );
    }
}
