//! Links break in every way while clients write to both sides. With data planes, all but two break while a
//! fast term runs.

use anyhow::Result;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::network::Machine::Replica;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

/// Lets the cluster write through a broken network and then through a healed one. Who breaks it next says
/// whether a fast term is to run by then.
fn endure(cluster: &Cluster<'_>, load: &Running, what: &str) -> Result<()> {
    println!("{what}");
    load.wait_for_writes(300)?;
    cluster.network().heal()?;
    cluster.wait_for_leader()?;
    load.wait_for_writes(200)
}

#[test]
fn three_replicas_endure_isolation_one_way_cuts_and_loss() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let network = cluster.network();
        let load = Running::start(Load::modest("three"), &cluster.targets(), seed);
        load.wait_for_writes(200)?;

        // Clients still reach the old leader, which must not tell them what has become of the past.
        let leader = cluster.wait_for_fast_leader()?;
        network.isolate(leader)?;
        cluster.wait_for_leader_other_than(leader)?;
        endure(cluster, &load, "the leader was isolated")?;

        let leader = cluster.wait_for_fast_leader()?;
        for other in (0..3).filter(|id| *id != leader) {
            network.cut_one_way(Replica(leader), Replica(other))?;
        }
        endure(cluster, &load, "the leader could hear and not speak")?;

        let leader = cluster.wait_for_leader()?;
        for other in (0..3).filter(|id| *id != leader) {
            network.cut_one_way(Replica(other), Replica(leader))?;
        }
        endure(cluster, &load, "the leader could speak and not hear")?;

        let leader = cluster.wait_for_fast_leader()?;
        network.cut(Replica(leader), Replica((leader + 1) % 3))?;
        endure(cluster, &load, "one follower could not see the leader")?;

        cluster.wait_for_fast_leader()?;
        network.lose(5)?;
        endure(cluster, &load, "one frame in twenty was lost")?;
        cluster.wait_for_settled_leader()?;
        load.wait_for_writes(100)?;

        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[test]
fn five_replicas_endure_a_bridge_a_ring_and_a_split() {
    let seed = seed();
    run_started(Plan::new(5, Durability::Sync), |cluster| {
        let network = cluster.network();
        let load = Running::start(Load::modest("five"), &cluster.targets(), seed);
        load.wait_for_writes(200)?;

        let leader = cluster.wait_for_fast_leader()?;
        let at = |distance: u16| (leader + distance) % 5;
        network.partition(&[&[at(0), at(1)], &[at(2), at(3), at(4)]])?;
        endure(cluster, &load, "the leader was in the minority")?;

        let middle = cluster.wait_for_leader()?;
        let at = |distance: u16| (middle + distance) % 5;
        network.partition(&[&[at(0), at(1), at(2)], &[at(0), at(3), at(4)]])?;
        endure(cluster, &load, "only the leader saw both sides")?;

        let leader = cluster.wait_for_fast_leader()?;
        let at = |distance: u16| (leader + distance) % 5;
        network.partition(&[&[at(2), at(0), at(1)], &[at(2), at(3), at(4)]])?;
        endure(cluster, &load, "only a follower saw both sides")?;

        // Everybody sees a majority, nobody the same one.
        cluster.wait_for_fast_leader()?;
        let pairs: Vec<[u16; 2]> = (0..5).map(|id| [id, (id + 1) % 5]).collect();
        let groups: Vec<&[u16]> = pairs.iter().map(|pair| &pair[..]).collect();
        network.partition(&groups)?;
        endure(cluster, &load, "the replicas stood in a ring")?;
        cluster.wait_for_settled_leader()?;
        load.wait_for_writes(100)?;

        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2, 3, 4])?;
        Ok(())
    });
}
