//! `quorumwire bench`: a load over the memcached or the Redis protocol, or of values on a deployment of the
//! Paxos roles, in a closed or an open loop, and what it measured. Works with any memcached or Redis server.
mod clock;
mod connection;
mod cpu;
mod gaps;
mod load;
mod measured;
mod pace;
mod protocol;
mod summary;
mod timer;
mod values;
mod way;

use super::interrupt::{Input, Interrupt};
use super::progress::while_doing;
use anyhow::{Context as _, bail};
use clock::Clock;
use cpu::CpuTime;
use gaps::WriteGaps;
use load::{CONNECT_TIMEOUT, ConnectedLoad, Load, Phase};
use measured::Measurements;
use pace::Pace;
use protocol::Protocol;
use quorumwire_client::addresses::look_up;
use quorumwire_node::options::{Refused, reachable_argument};
use quorumwire_paxos_process::{DeploymentFile, Member, MemberOptions, SUBMITTED_MAX};
use rustls::pki_types::ServerName;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use summary::Summary;
use values::ValuesLoad;
use way::{ServerAddress, Way, WayFlags};

const CONNECTIONS_MAX: u64 = 4096;
const IN_FLIGHT_MAX: u64 = 4096;
const OPERATIONS_MAX: u64 = 1_000_000_000;
const SECONDS_MAX: u64 = 3600;
/// How long storing the keys to read may take: so long, and a second for so many of them.
const FILL_SECONDS: u64 = 20;
const FILL_KEYS_PER_SECOND_MIN: u64 = 50_000;
/// How long a run that counts operations may take if nobody says otherwise.
const SECONDS_FOR_OPERATIONS: u64 = 600;
/// How long a run takes if nobody says otherwise.
const SECONDS: u64 = 10;
const VALUE_BYTES_MAX: u64 = 1 << 20;
const KEYS_MAX: u64 = 10_000_000;
const THREADS_MAX: u64 = 64;
/// Requests per second of an open loop.
const RATE_MAX: u64 = 10_000_000;
/// In how many intervals a run may be measured.
const INTERVALS_MAX: u64 = 1000;
const WAIT_MAX: i64 = 9;
/// How often storing the keys to read is tried: leadership may move meanwhile.
const FILL_TRIES_MAX: usize = 5;
/// Latencies above this are counted as this, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Puts load on servers and shows what it measured.
///
/// Without --rate every connection keeps a fixed number of requests in flight: the next is sent when one is
/// answered, so that slow servers are asked less. With --rate requests are due at fixed moments, whatever the
/// servers do, and latency counts from these moments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples, the first for latency, the second under a load that does not give way:
  quorumwire bench --connections 1 --in-flight 1
  quorumwire bench --rate 20000 --seconds 30 --cdf
  quorumwire bench --addr 127.0.0.1:11211,127.0.0.1:11212 --seconds 30 --json
  quorumwire bench --protocol redis --addr 127.0.0.1:6379 --wait 1
  quorumwire bench --protocol redis --addr 10.0.0.10:6379 --tls-ca ca.pem \\
    --account-file accounts
  quorumwire bench --write-percent 10 --server-pids 4242,4243,4244
Values on a deployment of the Paxos roles, as its learner 1, which nobody else may be:
  quorumwire bench --deployment orders.toml --learner 1 --dir learner-1 \\
    --connections 1 --in-flight 1
Kill the leader meanwhile, and see how long no write succeeded:
  quorumwire bench --addr A:11211,B:11211,C:11211 --survive --connections 3 \\
    --in-flight 1 --interval-ms 100 --json

With --rate a request waits if its connection is broken or has --in-flight
requests without answer. Its latency counts that. For 5 s after the end the load
sends what was due in time; the rest counts as failed.

With --survive the load sends a request again if its outcome is unknown. All
writes are sets, so it makes no difference which of two was carried out. After
500 ms without an answer it tries the next address, 5 ms later. Each failed try
counts as an error, by its reason. Latency counts from the first try.

Exit code 1: more than 1 % of the requests failed (without --survive), or all.")]
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
    #[command(flatten)]
    way: WayFlags,
    /// What the servers speak
    #[arg(long, value_name = "WORD", value_parser = ["memcached", "redis"], default_value = "memcached")]
    protocol: String,
    /// With --protocol redis: a write counts once so many replicas beside the one asked have it, by Redis'
    /// WAIT
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=WAIT_MAX))]
    wait: u8,
    /// Propose values in this deployment of the Paxos roles (its file), and measure until they are learned
    #[arg(long, value_name = "FILE", requires = "dir",
          conflicts_with_all = ["addr", "protocol", "wait", "keys", "write_percent", "threads", "authorities", "account_file"])]
    deployment: Option<PathBuf>,
    /// With --deployment: which of its learners this process is
    #[arg(long, value_name = "N", default_value_t = 0, requires = "deployment")]
    learner: u8,
    /// With --deployment: that learner's folder, made if it is missing
    #[arg(long, value_name = "DIR", requires = "deployment")]
    dir: Option<PathBuf>,
    /// With --deployment: look for packets this long before sleeping, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0, requires = "deployment",
          value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    busy_poll_us: u64,
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
    /// Measure for so many seconds, or end before with --operations; storing the keys to read comes on top
    /// [default: 10; with --operations 600]
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
    /// So many requests per second in all, evenly spaced, connections taking turns: latency counts from when
    /// each was due [default: the next when one is answered]
    #[arg(long, value_name = "OPS",
          value_parser = clap::value_parser!(u64).range(1..=RATE_MAX))]
    rate: Option<u64>,
    /// Go on when connections break, servers refuse or say nothing: try again at the next address; measure
    /// the longest time between two successful writes
    #[arg(long)]
    survive: bool,
    /// Show how many of the requests were answered within how long: 200 points at most
    #[arg(long)]
    cdf: bool,
    /// Show intervals of so many milliseconds by themselves, 1000 at most; what is answered after the end is
    /// in none
    #[arg(long, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX * 1000))]
    interval_ms: Option<u64>,
    /// Processes whose CPU time per request is measured
    #[arg(
        long,
        value_name = "PID,...",
        value_delimiter = ',',
        conflicts_with = "survive"
    )]
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

    /// When requests of a phase are due; keys are stored as fast as they are taken.
    fn pace(&self, phase: Phase) -> Option<Pace> {
        match phase {
            Phase::Fill => None,
            Phase::Measure => self.rate.map(|per_second| Pace {
                per_second,
                connections: self.connections,
            }),
        }
    }

    /// What no single option is wrong by.
    fn check(&self) -> anyhow::Result<()> {
        if self.wait > 0 && self.protocol() == Protocol::Memcached {
            let allowed = "0, unless --protocol is redis";
            bail!(Refused::flag("wait", self.wait.to_string(), allowed));
        }
        let under_way = self.connections * self.in_flight;
        if self.deployment.is_some() && under_way > SUBMITTED_MAX as u64 {
            let given = self.in_flight.to_string();
            let allowed = format!(
                "with --deployment and --connections {}: at most {} in all",
                self.connections, SUBMITTED_MAX
            );
            bail!(Refused::flag("in-flight", given, allowed));
        }
        if let Some(interval_ms) = self.interval_ms {
            let (_, duration) = limits(self, Phase::Measure);
            let at_least = duration.as_millis().div_ceil(INTERVALS_MAX.into());
            if u128::from(interval_ms) < at_least {
                let seconds = duration.as_secs_f64();
                let allowed = format!(
                    "{at_least} or more, for {INTERVALS_MAX} intervals at most in {seconds} s"
                );
                bail!(Refused::flag(
                    "interval-ms",
                    interval_ms.to_string(),
                    allowed
                ));
            }
        }
        Ok(())
    }
}

/// Runs the load and shows what it measured; an error if too much of it failed.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    Interrupt::listen_and(Input::Ignored, |cause| cause.end_process())?;
    let target = target(arguments)?;
    let servers = CpuTime::of(&arguments.server_pids)?;
    let client = CpuTime::of(&[std::process::id()])?;
    let measured = match target {
        Target::Servers(addresses) => run_phase(arguments, &addresses, Phase::Measure)?,
        Target::Deployment(member) => run_values(arguments, member)?,
    };
    let client = CpuTime::of(&[std::process::id()])?.since(&client);
    let servers = CpuTime::of(&arguments.server_pids)?.since(&servers);
    let summary = Summary {
        measured,
        client,
        servers: (!arguments.server_pids.is_empty()).then_some(servers),
        offered_per_second: arguments.rate,
        with_cdf: arguments.cdf,
    };
    if arguments.json {
        outln!("{}", summary.as_json())?;
    } else {
        out!("{}", summary.as_text())?;
    }
    // A load that survives comes to terms with failures, as long as something succeeds.
    let survives = arguments.survive && !summary.measured.latencies_ns.is_empty();
    if let Some(why) = summary.why_failed().filter(|_| !survives) {
        bail!("{why}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What the load is put on.
enum Target {
    Servers(Addresses),
    Deployment(&'static Member),
}

/// Looks at what is asked, and stores the keys to read.
fn target(arguments: &Arguments) -> anyhow::Result<Target> {
    if let Some(file) = &arguments.deployment {
        let shown = file.display().to_string();
        let deployment = DeploymentFile::load(file)
            .map_err(|error| Refused::because("deployment", shown, error.to_string()))?;
        let last = deployment.addresses.learners.len() - 1;
        if usize::from(arguments.learner) > last {
            let given = arguments.learner.to_string();
            bail!(Refused::flag("learner", given, format!("0 to {last}")));
        }
        let dir = arguments.dir.clone().unwrap_or_default();
        let member = Member::open(&MemberOptions {
            only_submits: true,
            deadline: CONNECT_TIMEOUT,
            busy_poll: Duration::from_micros(arguments.busy_poll_us),
            ..MemberOptions::new(deployment, arguments.learner, dir)
        })?;
        // As connections are made before: it learns first what it has missed since it ran last. A load that
        // survives comes to terms with a deployment that does not decide.
        if !arguments.survive {
            let begins = member.submit(b"");
            begins.context(
                "waiting for a first value to be decided; the coordinator's log says whether acceptors are missing, \
                 or a learner fills the window",
            )?;
        }
        return Ok(Target::Deployment(Box::leak(Box::new(member))));
    }
    let addresses = resolve(&arguments.addr)?;
    let way = arguments.way.way()?;
    // A load that survives comes to terms with servers that are not there.
    if !arguments.survive {
        for server in &addresses {
            way.try_out(server, arguments.protocol())?;
        }
    }
    let addresses = Addresses { addresses, way };
    if arguments.write_percent < 100 {
        fill(arguments, &addresses)?;
    }
    Ok(Target::Servers(addresses))
}

/// Puts values on a deployment. Says meanwhile how far it is.
fn run_values(arguments: &Arguments, member: &'static Member) -> anyhow::Result<Measurements> {
    let (operations, duration) = limits(arguments, Phase::Measure);
    let answered = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let load = ValuesLoad {
        member,
        under_way_max: usize::try_from(arguments.connections * arguments.in_flight)?,
        value_bytes: usize::try_from(arguments.value_bytes)?,
        duration,
        operations,
        pace: arguments.rate.map(|per_second| Pace {
            per_second,
            connections: 1,
        }),
        interval: arguments.interval_ms.map(Duration::from_millis),
        gaps: arguments.survive.then(|| Arc::new(WriteGaps::new(begun))),
        answered: Arc::clone(&answered),
    };
    let show = move || {
        let done = answered.load(Ordering::Relaxed);
        let left = (begun + duration).saturating_duration_since(Instant::now());
        how_far(Phase::Measure, done, operations, left)
    };
    while_doing(show, || load.run(begun))
}

/// Stores every key, all of them again if any was refused.
fn fill(arguments: &Arguments, addresses: &Addresses) -> anyhow::Result<()> {
    let mut errors = BTreeMap::new();
    let (_, at_most) = limits(arguments, Phase::Fill);
    let begun = Instant::now();
    for _ in 0..FILL_TRIES_MAX {
        let filled = run_phase(arguments, addresses, Phase::Fill)?;
        if filled.latencies_ns.len() == arguments.keys {
            return Ok(());
        }
        errors = filled.errors;
        if begun.elapsed() >= at_most {
            let seconds = at_most.as_secs();
            bail!("storing the keys to read was not done after {seconds} s: {errors:?}");
        }
    }
    bail!("storing the keys to read failed {FILL_TRIES_MAX} times: {errors:?}")
}

/// Where to connect, how and as whom.
struct Addresses {
    addresses: Vec<ServerAddress>,
    way: Way,
}

/// Of each name the address at which somebody takes connections: servers often listen at one of them only.
fn resolve(addresses: &[String]) -> anyhow::Result<Vec<ServerAddress>> {
    let resolved = addresses.iter().map(|text| {
        let found = look_up(text).with_context(|| format!("looking up {text}"))?;
        let is_open = |address: &&SocketAddr| {
            found.len() == 1 || TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok()
        };
        let address = *found.iter().find(is_open).unwrap_or(&found[0]);
        let host = text.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned());
        let name = name.unwrap_or_else(|_| address.ip().into());
        Ok(ServerAddress { address, name })
    });
    resolved.collect()
}

/// One thread per share of the connections. Says meanwhile how far they are.
fn run_phase(
    arguments: &Arguments,
    addresses: &Addresses,
    phase: Phase,
) -> anyhow::Result<Measurements> {
    let loads = shares(arguments, addresses, phase)?;
    let (operations, duration) = limits(arguments, phase);
    let answered = loads.first().map(|load| Arc::clone(&load.answered));
    let end = Instant::now() + duration;
    let show = move || {
        let done = answered.as_ref().map_or(0, |it| it.load(Ordering::Relaxed));
        let left = end.saturating_duration_since(Instant::now());
        how_far(phase, done, operations, left)
    };
    while_doing(show, || {
        let opened = loads.into_iter().map(Load::open);
        let opened: Vec<ConnectedLoad> = opened.collect::<anyhow::Result<_>>()?;
        // All threads begin at the same moment, from which their intervals and what is due are counted.
        let begun = Instant::now();
        let outcomes: Vec<anyhow::Result<Measurements>> = thread::scope(|scope| {
            let threads = opened.into_iter();
            let threads: Vec<_> = threads
                .map(|load| scope.spawn(move || load.run(begun)))
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|outcome| outcome.expect("the load does not panic"))
                .collect()
        });
        let mut total = Measurements::new(begun)?;
        for outcome in outcomes {
            total.add(outcome?)?;
        }
        Ok(total)
    })
}

/// How many requests a phase has, if they are counted, and how long it takes at most.
fn limits(arguments: &Arguments, phase: Phase) -> (Option<u64>, Duration) {
    let operations = match phase {
        Phase::Fill => Some(arguments.keys),
        Phase::Measure => arguments.operations,
    };
    let seconds = match (phase, operations) {
        (Phase::Fill, _) => FILL_SECONDS + arguments.keys / FILL_KEYS_PER_SECOND_MIN,
        (Phase::Measure, Some(_)) => arguments.seconds.unwrap_or(SECONDS_FOR_OPERATIONS),
        (Phase::Measure, None) => arguments.seconds.unwrap_or(SECONDS),
    };
    let duration = Duration::from_secs(seconds);
    let due = arguments.pace(phase).zip(operations);
    let due = due.map(|(pace, operations)| pace.time_of(operations));
    (operations, due.map_or(duration, |due| due.min(duration)))
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
fn shares(arguments: &Arguments, addresses: &Addresses, phase: Phase) -> anyhow::Result<Vec<Load>> {
    let (operations, duration) = limits(arguments, phase);
    let answered = Arc::new(AtomicU64::new(0));
    let connections = arguments.connections;
    let quota = |n: u64| operations.map(|all| all / connections + u64::from(n < all % connections));
    let first_key = |n: u64| {
        let all = operations.unwrap_or(0);
        n * (all / connections) + n.min(all % connections)
    };
    let thread_count = arguments.threads.min(connections);
    let survives = arguments.survive && phase == Phase::Measure;
    let gaps = survives.then(|| Arc::new(WriteGaps::new(Instant::now())));
    let interval_ms = arguments.interval_ms.filter(|_| phase == Phase::Measure);
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
            addresses: addresses.addresses.clone(),
            way: addresses.way.clone(),
            connections: Vec::new(),
            pace: arguments.pace(phase),
            survive: arguments.survive,
            interval: interval_ms.map(Duration::from_millis),
            gaps: gaps.clone(),
            clock: Clock::default(),
        });
    }
    for n in 0..connections {
        let load = &mut loads[usize::try_from(n % thread_count)?];
        load.connections.push(load::Share {
            number: n,
            operations: quota(n),
            first_key: first_key(n),
        });
    }
    Ok(loads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_measured_is_none_for_storing() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let words = "bench --addr localhost:1 --seconds 1 --write-percent 50";
        let line: Line = clap::Parser::parse_from(words.split(' '));
        let seconds = |phase| limits(&line.arguments, phase).1.as_secs();
        assert_eq!(seconds(Phase::Measure), 1);
        assert_eq!(seconds(Phase::Fill), FILL_SECONDS);
    }

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
