//! The ways in which planes in the kernel take packets and make copies of them: with each, real servers
//! endure losses and the end of their leader.

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

const ALL: [u16; 3] = [0, 1, 2];
/// Of a hundred frames on the switch.
const LOST: u8 = 10;

fn plan(plane: &str, options: Vec<(&'static str, &'static str)>) -> Plan {
    Plan {
        plane: plane.into(),
        options,
        ..Plan::new(3, Durability::Memory)
    }
}

/// Where a replica's plane runs, which is the one in the kernel.
fn runs(cluster: &Cluster<'_>, id: u16) -> Result<String> {
    let plane = cluster.status(id)?.data_plane;
    let plane = plane.filter(|plane| plane.name == "xdp");
    plane.and_then(|plane| plane.runs).context("no such plane")
}

/// Copies that left behind the driver.
fn cloned(cluster: &Cluster<'_>) -> Result<u64> {
    let of = |id| cluster.counter(id, "plane_copies_cloned");
    ALL.into_iter().map(of).sum()
}

/// Frames are lost, the leader is killed, and comes again; with planes that run as said, by replica. Gives
/// how many copies left behind the driver.
fn endure(cluster: &mut Cluster<'_>, expected: [&str; 3]) -> Result<u64> {
    let seed = seed();
    cluster.start_all()?;
    let leader = cluster.wait_for_fast_term(&ALL)?;
    for (id, expected) in ALL.into_iter().zip(expected) {
        let runs = runs(cluster, id)?;
        ensure!(runs.starts_with(expected), "replica {id} runs {runs}");
    }
    let term = cluster.status(leader)?.term;
    let load = Running::start(Load::modest("ways"), &cluster.targets(), seed);
    load.wait_for_writes(200)?;
    cluster.network().lose(LOST)?;
    load.wait_for_writes(300)?;
    cluster.network().heal()?;
    let status = cluster.status(leader)?;
    ensure!(
        status.term == term && status.fast_term.is_some(),
        "{status:?}"
    );
    let cloned = cloned(cluster)?;
    cluster.kill(leader)?;
    cluster.wait_for_leader_other_than(leader)?;
    cluster.wait_for_fast_leader()?;
    load.wait_for_writes(200)?;
    cluster.start(leader)?;
    cluster.wait_for_fast_term(&ALL)?;
    load.wait_for_writes(200)?;
    load.finish()?.judge(&cluster.targets())?;
    cluster.wait_for_equal(&ALL)?;
    Ok(cloned)
}

#[test]
fn generic_mode() {
    run(plan("xdp", vec![("xdp-mode", "generic")]), |cluster| {
        let cloned = endure(cluster, ["in generic mode at eth0"; 3])?;
        ensure!(cloned > 0, "the driver made them");
        Ok(())
    });
}

#[test]
fn copies_made_behind_the_driver() {
    run(plan("xdp", vec![("xdp-copies", "clone")]), |cluster| {
        let cloned = endure(cluster, ["in the driver of eth0"; 3])?;
        ensure!(cloned > 0, "the driver made them");
        Ok(())
    });
}

/// Where the network copies: the switch has each port hear what goes to many.
#[test]
fn multicast() {
    run(
        plan("xdp", vec![("xdp-multicast", "239.77.0.1")]),
        |cluster| {
            let cloned = endure(cluster, ["in the driver of eth0"; 3])?;
            ensure!(cloned == 0, "{cloned} copies behind the driver");
            Ok(())
        },
    );
}

#[test]
fn ipv6() {
    let plan = Plan {
        planes_over_ipv6: true,
        ..plan("xdp", Vec::new())
    };
    run(plan, |cluster| {
        let cloned = endure(cluster, ["in the driver of eth0"; 3])?;
        ensure!(cloned == 0, "{cloned} copies behind the driver");
        Ok(())
    });
}

/// An address that is a bridge's, whose driver has no place for a program; the others' planes are in theirs.
#[test]
fn auto_falls_back_to_generic_mode() {
    run(plan("auto", Vec::new()), |cluster| {
        cluster.network().put_on_bridge(0)?;
        let driver = "in the driver of eth0";
        endure(cluster, ["in generic mode at br0, because", driver, driver])?;
        Ok(())
    });
}
