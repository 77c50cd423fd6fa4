//! Packets are lost while clients write: data planes ask again, and no fast term ends.

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

/// Of a hundred frames on the switch.
const LOST: u8 = 10;
/// Written meanwhile.
const WRITES: u64 = 2000;

/// The fast term that each replica runs.
fn fast_terms(cluster: &Cluster<'_>, replicas: u16) -> Result<Vec<Option<u64>>> {
    (0..replicas)
        .map(|id| Ok(cluster.status(id)?.fast_term.map(|fast| fast.term)))
        .collect()
}

/// How often replicas have left a fast term.
fn left(cluster: &Cluster<'_>, replicas: u16) -> Result<u64> {
    let mut count = 0;
    for id in 0..replicas {
        let counters = cluster.status(id)?.counters;
        let left = counters
            .iter()
            .filter(|(name, _)| name.starts_with("fast_term_left_"));
        count += left.map(|(_, count)| count).sum::<u64>();
    }
    Ok(count)
}

/// Entries that planes have sent again.
fn sent_again(cluster: &Cluster<'_>, replicas: u16) -> Result<u64> {
    (0..replicas)
        .map(|id| cluster.counter(id, "plane_entries_resent"))
        .sum()
}

fn endure(replicas: u16, durability: Durability) {
    let seed = seed();
    run_started(Plan::fast(replicas, durability), |cluster| {
        let all: Vec<u16> = (0..replicas).collect();
        cluster.wait_for_fast_term(&all)?;
        // Most of them wait for TCP, which loses its frames, too.
        let load = Load {
            clients: 48,
            ..Load::modest("lossy")
        };
        let load = Running::start(load, &cluster.targets(), seed);
        load.wait_for_writes(200)?;
        cluster.wait_for_fast_term(&all)?;
        let before = (fast_terms(cluster, replicas)?, left(cluster, replicas)?);
        let sent_before = sent_again(cluster, replicas)?;
        cluster.network().lose(LOST)?;
        load.wait_for_writes(WRITES)?;
        cluster.network().heal()?;
        let after = (fast_terms(cluster, replicas)?, left(cluster, replicas)?);
        ensure!(
            before == after,
            "fast terms, and times that one was left: {before:?} have become {after:?}"
        );
        let sent_again = sent_again(cluster, replicas)? - sent_before;
        println!("{sent_again} entries were sent again");
        ensure!(sent_again > 0, "nothing was lost");
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&all)?;
        Ok(())
    });
}

#[test]
fn three_replicas_lose_a_tenth_of_all_frames_and_no_fast_term() {
    endure(3, Durability::Sync);
}

#[test]
fn five_replicas_lose_a_tenth_of_all_frames_and_no_fast_term() {
    endure(5, Durability::Memory);
}
