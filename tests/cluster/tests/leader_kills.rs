//! Leaders die by `kill -9`, one after the other, under load.

use std::time::{Duration, Instant};

use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const LEADERS_KILLED: usize = 30;

#[test]
fn thirty_leaders_killed_under_load_lose_nothing() {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("kills"), &cluster.targets(), seed);
        let mut moments = Vec::new();
        for _ in 0..LEADERS_KILLED {
            let leader = cluster.wait_for_leader()?;
            load.wait_for_writes(rng.random_range(20..200))?;
            moments.push(Instant::now());
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            load.wait_for_writes(rng.random_range(20..200))?;
            cluster.start(leader)?;
            // Sometimes the next leader dies while this one is still catching up.
            if rng.random_bool(0.7) {
                cluster.wait_for_ready(&[leader])?;
            }
        }
        cluster.wait_for_leader()?;
        load.wait_for_writes(100)?;
        let report = load.finish()?;
        print_distribution(report.gaps_after(&moments));
        report.judge(&cluster.targets())?;
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
