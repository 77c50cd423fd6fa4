//! A follower that is slow, not dead: it gets a tenth of the time, in turns, under more load than it can take
//! then. It slows nobody but itself, and catches up once it can.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::slowness::{TENTH, THIRTIETH, while_slow};
use quorumwire_cluster_tests::usage;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const ALL: [u16; 3] = [0, 1, 2];

/// How often it is looked how far behind it is.
const LOOKED_AT: Duration = Duration::from_millis(100);
/// It is not slow unless it was so many entries behind.
const BEHIND_MIN: u64 = 100;

/// Connections with one write at a time.
const WRITERS: u64 = 8;
/// Values are so long, evenly spread.
const VALUE_BYTES: std::ops::Range<usize> = (16 << 10)..(64 << 10);
/// Different keys, so that the data are small beside what is written.
const KEYS: u32 = 64;

/// How long the cluster is measured while all is well: before and after, for the machine has other work, too.
const HEALTHY_FOR: Duration = Duration::from_secs(3);
/// How long the follower is slow at least, and how much is written meanwhile at least.
const SLOW_FOR: Duration = Duration::from_secs(8);
const SLOW_BYTES: u64 = LEADER_BYTES_MAX * 3 / 2;
/// A machine that does not get there in this time proves nothing.
const PHASE_MAX: Duration = Duration::from_mins(1);

/// Memory that the leader may have at most. What it writes meanwhile is more than that: it does not keep all
/// of it for the slow one.
const LEADER_BYTES_MAX: u64 = 256 << 20;
/// No write takes longer while a follower is slow, or three times as long as any did before. It is no
/// benchmark: other processes run here, too.
const SLOWEST_MAX: Duration = Duration::from_secs(1);
/// A machine that itself stands still for a moment is none of this.
const ELECTION_TIMEOUT_MS: &str = "2000";
/// With a slow follower writes are at least this part of what they are without, in percent. If it were waited
/// for, they would be a tenth.
const RATE_PERCENT_MIN: u64 = 40;

/// How far behind the leader saw a follower while this ran, in entries.
fn while_watching<T>(
    cluster: &Cluster<'_>,
    (leader, follower): (u16, u16),
    body: impl FnOnce() -> Result<T>,
) -> Result<(T, u64)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !stop.load(Ordering::Relaxed) {
                let status = cluster.status(leader).ok();
                let followers = status.map(|it| it.followers).unwrap_or_default();
                let seen = followers.into_iter().find(|it| it.id == follower);
                most = most.max(seen.map_or(0, |it| it.lag));
                thread::sleep(LOOKED_AT);
            }
            most
        });
        let result = body();
        stop.store(true, Ordering::Relaxed);
        let most = watching.join().expect("it does not panic");
        Ok((result?, most))
    })
}

/// What a load has seen.
#[derive(Debug)]
struct LoadResult {
    writes: u64,
    slowest: Duration,
    lasted: Duration,
}

impl LoadResult {
    fn writes_per_second(&self) -> u64 {
        self.writes * 1000 / u64::try_from(self.lasted.as_millis()).unwrap_or(1).max(1)
    }

    /// Whether writes went on at about the pace that they had before.
    fn goes_on_like(&self, healthy: &Self) -> bool {
        let least = healthy.writes_per_second() * RATE_PERCENT_MIN / 100;
        self.writes_per_second() >= least
    }
}

/// Writes for so long and so much. Every write must succeed.
fn write(
    cluster: &Cluster<'_>,
    to: u16,
    lasts: Duration,
    bytes_min: u64,
    seed: u64,
) -> Result<LoadResult> {
    let begun = Instant::now();
    let bytes = AtomicU64::new(0);
    let is_over = || begun.elapsed() >= lasts && bytes.load(Ordering::Relaxed) >= bytes_min;
    let one = |writer: u64| -> Result<(u64, Duration)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ writer << 48);
        let mut client = cluster.client(to)?;
        let (mut writes, mut slowest) = (0, Duration::ZERO);
        while !is_over() {
            ensure!(begun.elapsed() < PHASE_MAX, "void: too little is written");
            let value = vec![rng.random(); rng.random_range(VALUE_BYTES)];
            let key = format!("key-{}", rng.random_range(0..KEYS));
            let asked = Instant::now();
            let stored = client.set(&key, &value).done();
            slowest = slowest.max(asked.elapsed());
            ensure!(stored.as_deref() == Some("STORED"), "a write: {stored:?}");
            bytes.fetch_add(value.len() as u64, Ordering::Relaxed);
            writes += 1;
        }
        Ok((writes, slowest))
    };
    let each = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|it| scope.spawn(move || one(it)))
            .collect();
        let joined = writers.into_iter().map(|it| it.join().expect("no panic"));
        joined.collect::<Result<Vec<_>>>()
    })?;
    let outcome = LoadResult {
        writes: each.iter().map(|it| it.0).sum(),
        slowest: each.iter().map(|it| it.1).max().unwrap_or_default(),
        lasted: begun.elapsed(),
    };
    let (rate, mib) = (outcome.writes_per_second(), bytes.into_inner() >> 20);
    println!("{rate} writes a second, {mib} MiB: {outcome:?}");
    Ok(outcome)
}

/// Terms and elections of all replicas.
fn elections(cluster: &Cluster<'_>) -> Result<Vec<(u64, u64)>> {
    let of = |id| {
        let status = cluster.status(id)?;
        let started = status.counters.get("elections_started").copied();
        Ok((status.term, started.context("it is counted")?))
    };
    ALL.into_iter().map(of).collect()
}

fn a_slow_follower_slows_nobody(mut plan: Plan) {
    let seed = seed();
    let timeout = ("election-timeout-ms", ELECTION_TIMEOUT_MS);
    plan.options.push(timeout);
    run_started(plan, |cluster| {
        cluster.wait_for_ready(&ALL)?;
        let leader = cluster.wait_for_settled_leader()?;
        let (slow, pid) = ((leader + 1) % 3, cluster.pid(leader)?);
        write(cluster, leader, Duration::from_secs(1), 0, seed)?; // buffers have grown
        let before = elections(cluster)?;
        let healthy = write(cluster, leader, HEALTHY_FOR, 0, seed)?;
        ensure!(
            elections(cluster)? == before,
            "an election while all is well"
        );

        usage::reset_peak(pid)?;
        let slowed = while_slow(cluster.pid(slow)?, TENTH, || {
            let (slowed, behind) = while_watching(cluster, (leader, slow), || {
                write(cluster, leader, SLOW_FOR, SLOW_BYTES, seed + 1)
            })?;
            println!("the slow one was {behind} entries behind at most");
            ensure!(behind >= BEHIND_MIN, "void: it was not slow: {behind}");
            let peak = usage::peak_bytes(pid)?;
            println!("the leader had {} MiB at most", peak >> 20);
            ensure!(peak < LEADER_BYTES_MAX, "the leader had {peak} bytes");
            let now = cluster.status(leader)?;
            ensure!(now.term == before[usize::from(leader)].0, "{now:?}");
            Ok(slowed)
        })?;
        let slowest_max = SLOWEST_MAX.max(healthy.slowest * 3);
        ensure!(slowed.slowest < slowest_max, "{slowed:?}");
        let freed = Instant::now();
        cluster.wait_for_equal(&ALL)?;
        println!("the slow one had caught up after {:?}", freed.elapsed());
        let again = write(cluster, leader, HEALTHY_FOR, 0, seed + 2)?;
        ensure!(
            slowed.goes_on_like(&healthy) || slowed.goes_on_like(&again),
            "{slowed:?}; {healthy:?} before, {again:?} after"
        );
        ensure!(
            elections(cluster)? == before,
            "an election: {:?}",
            elections(cluster)?
        );
        Ok(())
    });
}

#[test]
fn a_slow_follower_slows_nobody_in_software() {
    let mut plan = Plan::new(3, Durability::Sync);
    plan.plane = "none".into();
    a_slow_follower_slows_nobody(plan);
}

#[test]
fn a_slow_follower_slows_nobody_with_data_planes() {
    a_slow_follower_slows_nobody(Plan::fast(3, Durability::Sync));
}

/// What is measured above would show a leader that waits: one that was told to does.
#[test]
fn where_all_must_have_a_write_a_slow_follower_is_waited_for() {
    let seed = seed();
    let mut plan = Plan::new(3, Durability::Sync);
    plan.plane = "none".into();
    run_started(plan, |cluster| {
        cluster.wait_for_ready(&ALL)?;
        let leader = cluster.wait_for_leader()?;
        let http = cluster.http(leader).to_string();
        cluster.command(&["quorum", "all", "--addr", &http])?;
        let healthy = write(cluster, leader, HEALTHY_FOR, 0, seed)?;
        let slow = cluster.pid((leader + 1) % 3)?;
        let slowed = while_slow(slow, THIRTIETH, || {
            write(cluster, leader, HEALTHY_FOR, 0, seed + 1)
        })?;
        cluster.wait_for_equal(&ALL)?;
        let again = write(cluster, leader, HEALTHY_FOR, 0, seed + 2)?;
        ensure!(
            !slowed.goes_on_like(&healthy) || !slowed.goes_on_like(&again),
            "nobody was slow: {slowed:?}; {healthy:?} before, {again:?} after"
        );
        Ok(())
    });
}
