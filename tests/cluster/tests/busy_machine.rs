//! Nothing fails, but every processor is busy with other work: nobody may stand for election. How long a
//! machine itself stands still is not ours, so the short run is given three tries, and the long one is a
//! target of its own (`make soak-elections`).

use std::collections::BTreeMap;
use std::env;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::switches::{self, SOAK_MINUTES, SOAK_RAISE_PRIORITY};
use quorumwire_cluster_tests::workload::{Load, Running};

/// The longest of the long runs: a week.
const SOAK_MINUTES_MAX: u32 = 7 * 24 * 60;

/// One short run.
const SHORT: Duration = Duration::from_secs(15);
/// A machine that stands still for too long in every one of so many is no place for tests.
const SHORT_RUNS_MAX: u32 = 3;

/// Busy processes for each processor.
const BUSY_PER_PROCESSOR: usize = 2;

/// Writes waited for between two looks at the clock.
const WRITES_AT_ONCE: u64 = 100;

/// What is shown; the first two must not move.
const COUNTERS: [&str; 6] = [
    "elections_upon_silence",
    "stepped_down_without_quorum",
    "elections_asked_about",
    "fast_term_left_too_few_engaged",
    "process_pauses",
    "process_pauses_milliseconds",
];

/// Processes of ordinary priority that never rest, each in a session of its own, as other services are.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Result<Self> {
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let mut busy = Self(Vec::new());
        for _ in 0..processors * BUSY_PER_PROCESSOR {
            let child = Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "--", "setsid"])
                .args(["sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .context("starting a busy process")?;
            busy.0.push(child);
        }
        Ok(busy)
    }

    /// None has ended: then it would not have been busy.
    fn are_there(&mut self) -> Result<()> {
        for child in &mut self.0 {
            ensure!(child.try_wait()?.is_none(), "a busy process has ended");
        }
        Ok(())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both fail only if it is gone.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Of all replicas together.
fn counters(cluster: &Cluster<'_>) -> Result<BTreeMap<&'static str, u64>> {
    let mut sums = BTreeMap::new();
    for id in cluster.founders() {
        let status = cluster.status(id)?;
        for name in COUNTERS {
            let count = status.counters.get(name).copied().unwrap_or(0);
            *sums.entry(name).or_default() += count;
        }
    }
    Ok(sums)
}

/// How often somebody has stood for election, or lost its place, within this time of load and busy
/// processors. The keys are those of this run alone, for its history begins with nothing there.
fn elections_while_busy(cluster: &Cluster<'_>, run: u32, lasts: Duration) -> Result<u64> {
    let prefix = format!("busy-{run}").leak();
    let load = Running::start(Load::modest(prefix), &cluster.targets(), seed());
    load.wait_for_writes(WRITES_AT_ONCE)?;
    cluster.wait_for_settled_leader()?;
    let before = counters(cluster)?;
    let mut busy = Busy::start()?;
    let end = Instant::now() + lasts;
    while Instant::now() < end {
        load.wait_for_writes(WRITES_AT_ONCE)?;
    }
    busy.are_there()?;
    drop(busy);
    let after = counters(cluster)?;
    println!("in {lasts:?}, of all replicas together:");
    for (name, count) in &after {
        println!("  {name}: {}", count - before[name]);
    }
    load.finish()?.judge(&cluster.targets())?;
    Ok(COUNTERS[..2]
        .iter()
        .map(|name| after[name] - before[name])
        .sum())
}

fn as_services(body: impl FnOnce(&mut Cluster<'_>) -> Result<()> + Send) {
    let mut plan = Plan::new(3, Durability::Sync);
    if let Ok(by) = env::var(SOAK_RAISE_PRIORITY) {
        plan.options.push(("raise-priority", by.leak()));
    }
    run(plan, |cluster| {
        for id in cluster.founders() {
            cluster.start_in_own_session(id)?;
        }
        cluster.wait_for_leader()?;
        body(cluster)
    });
}

#[test]
fn other_work_on_all_processors_causes_no_election() {
    as_services(|cluster| {
        for run in 0..SHORT_RUNS_MAX {
            if elections_while_busy(cluster, run, SHORT)? == 0 {
                return Ok(());
            }
        }
        bail!("elections in each of {SHORT_RUNS_MAX} runs")
    });
}

#[test]
#[ignore = "takes minutes and all processors: make soak-elections"]
fn nobody_stands_for_election_while_all_are_alive() {
    let minutes = switches::number(SOAK_MINUTES, 1..=SOAK_MINUTES_MAX).unwrap_or(1);
    as_services(|cluster| {
        let mut elections = 0;
        for run in 0..minutes {
            elections += elections_while_busy(cluster, run, Duration::from_mins(1))?;
        }
        ensure!(elections == 0, "{elections} elections in {minutes} min");
        Ok(())
    });
}
