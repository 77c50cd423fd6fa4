//! A minute in which nothing fails, with every processor busy: nobody may stand for election. A target of
//! its own (`make soak-elections`), because what it measures depends on the machine.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

const SOAK: Duration = Duration::from_mins(1);

/// Writes waited for between two looks at the clock.
const WRITES_AT_ONCE: u64 = 100;

/// What is shown; the first two must not move.
const COUNTERS: [&str; 6] = [
    "elections_upon_silence",
    "stepped_down_without_quorum",
    "elections_asked_about",
    "fast_term_left_too_few_engaged",
    "own_pauses",
    "own_pauses_milliseconds",
];

/// Threads of ordinary priority that never rest, one for each processor.
fn while_busy<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let processor_count = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..processor_count {
            scope.spawn(|| {
                let mut turns = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    turns = black_box(turns.wrapping_add(1));
                }
            });
        }
        let stopped = StopOnDrop(&stop);
        let result = work();
        drop(stopped);
        result
    })
}

/// The threads end also if the work panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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

#[test]
#[ignore = "takes a minute and all processors: make soak-elections"]
fn nobody_stands_for_election_while_all_are_alive() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("soak"), &cluster.targets(), seed);
        load.wait_for_writes(WRITES_AT_ONCE)?;
        let leader = cluster.wait_for_settled_leader()?;
        let before = counters(cluster)?;
        while_busy(|| {
            let end = Instant::now() + SOAK;
            while Instant::now() < end {
                load.wait_for_writes(WRITES_AT_ONCE)?;
            }
            anyhow::Ok(())
        })?;
        let after = counters(cluster)?;
        println!("in {SOAK:?}, of all replicas together:");
        for (name, count) in &after {
            println!("  {name}: {}", count - before[name]);
        }
        load.finish()?.judge(&cluster.targets())?;
        for name in &COUNTERS[..2] {
            ensure!(after[name] == before[name], "{name} has moved");
        }
        let leads_now = cluster.wait_for_leader()?;
        ensure!(leads_now == leader, "{leads_now} leads, it was {leader}");
        Ok(())
    });
}
