//! Leaders die by `kill -9`, one after the other, under load. With data planes they run a fast term when
//! they die, and some have just been elected and are on the way there.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use quorumwire_cluster_tests::cluster::{
    Cluster, Durability, Plan, SETTLE_DEADLINE, run, run_started,
};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::status::{Role, Status};
use quorumwire_cluster_tests::workload::{Load, Running};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const LEADERS_KILLED: usize = 30;

/// What Redis clients must have been told to be done meanwhile.
const DONE_OVER_REDIS: [&str; 6] = ["get", "set", "add", "transaction", "delete", "increment"];

/// How often two leaders die in a row.
const PAIRS_KILLED: usize = 6;

#[test]
fn thirty_leaders_killed_under_load_lose_nothing() {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("kills"), &cluster.targets(), seed);
        let mut moments = Vec::new();
        let mut on_the_way = 0;
        for kill in 1..=LEADERS_KILLED {
            load.wait_for_writes(rng.random_range(20..200))?;
            let leader = cluster.wait_for_fast_leader()?;
            moments.push(Instant::now());
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            load.wait_for_writes(rng.random_range(20..200))?;
            cluster.start(leader)?;
            // Sometimes the next leader dies while this one is still catching up.
            if rng.random_bool(0.7) {
                cluster.wait_for_ready(&[leader])?;
            }
            if kill % (LEADERS_KILLED / PAIRS_KILLED) == 0 {
                on_the_way += usize::from(kill_two(cluster, &load)?);
            }
        }
        cluster.wait_for_settled_leader()?;
        load.wait_for_writes(100)?;
        if cluster.has_planes() {
            println!(
                "{on_the_way} of {PAIRS_KILLED} second leaders were killed before a fast term"
            );
            ensure!(on_the_way > 0, "void: no leader was killed on its way");
        }
        let report = load.finish()?;
        for what in DONE_OVER_REDIS {
            let count = report.redis.get(what).copied().unwrap_or(0);
            ensure!(count > 0, "void: no {what} over Redis' protocol");
        }
        print_distribution(report.gaps_after(&moments));
        report.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// Two leaders die in a row, the second as soon as it says that it leads; whether its data plane, if it has
/// one, did not run yet.
fn kill_two(cluster: &mut Cluster<'_>, load: &Running) -> Result<bool> {
    cluster.wait_for_ready(&[0, 1, 2])?;
    let first = cluster.wait_for_fast_leader()?;
    cluster.kill(first)?;
    cluster.start(first)?; // with the third it is a majority, once it is up
    let second = next_leader(cluster)?;
    cluster.kill(second.id)?;
    cluster.wait_for_leader_other_than(second.id)?;
    load.wait_for_writes(20)?;
    cluster.start(second.id)?;
    Ok(second.fast_term.is_none())
}

/// Looks again and again, without a pause, until some replica leads; what it says of itself.
fn next_leader(cluster: &Cluster<'_>) -> Result<Status> {
    let end = Instant::now() + SETTLE_DEADLINE;
    while Instant::now() < end {
        let leads = |status: &Status| status.role == Role::Leader;
        if let Some(leader) = cluster.statuses().into_iter().find(leads) {
            return Ok(leader);
        }
    }
    bail!("no replica leads within {SETTLE_DEADLINE:?}")
}

/// What is in memory only must not depend on who reads the logs.
#[test]
fn a_leader_killed_after_all_log_readers_have_ended_loses_nothing() {
    run(Plan::new(3, Durability::Memory), |cluster| {
        for id in cluster.founders() {
            cluster.start_with_unread_log(id)?;
        }
        cluster.put("kept", "1")?;
        for id in cluster.founders() {
            cluster.reload(id)?; // it says so in its log
            cluster.wait_for("lines to be dropped", || {
                Ok(cluster.counter(id, "log_lines_dropped")? > 0)
            })?;
        }
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        let next = cluster.wait_for_leader_other_than(leader)?;
        for id in [next, 3 - leader - next] {
            let kept = cluster.client(id)?.get("kept").expect("it serves");
            ensure!(kept.as_deref() == Some(b"1"), "{kept:?} at replica {id}");
        }
        cluster.put("goes-on", "2")?;
        cluster.start(leader)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

fn print_distribution(mut gaps: Vec<Duration>) {
    assert_eq!(gaps.len(), LEADERS_KILLED, "writes went on after each kill");
    gaps.sort_unstable();
    let at = |percent: usize| gaps[((gaps.len() - 1) * percent).div_ceil(100)];
    println!(
        "from kill -9 of the leader to the next acknowledged write: min {:?}, median {:?}, p90 {:?}, p99 {:?}, max {:?}",
        at(0),
        at(50),
        at(90),
        at(99),
        at(100)
    );
}
