//! Memcached clients over UDP whose reads and writes the plane in the kernel serves by itself, beside others that
//! come over TCP.

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

/// Writes between two faults.
const WRITES: u64 = 250;

#[test]
fn what_the_kernel_reads_and_writes_is_linearizable_with_what_comes_over_tcp() {
    let seed = seed();
    let mut plan = Plan::new(3, Durability::Memory);
    plan.plane = "xdp".into();
    plan.switches = vec!["memcached-udp"];
    run_started(plan, |cluster| {
        cluster.wait_for_settled_leader()?;
        let load = Load {
            udp_percent: 60,
            ..Load::modest("kernel")
        };
        let load = Running::start(load, &cluster.targets(), seed);
        let mut served = Served::default();
        for fault in [Fault::Kill, Fault::Pause, Fault::Kill, Fault::Pause] {
            load.wait_for_writes(WRITES)?;
            let leader = cluster.wait_for_fast_leader()?;
            load.wait_for_writes(WRITES)?;
            served.add(cluster, leader)?;
            match fault {
                Fault::Kill => {
                    cluster.kill(leader)?;
                    cluster.wait_for_leader_other_than(leader)?;
                    load.wait_for_writes(WRITES)?;
                    cluster.start(leader)?;
                    cluster.wait_for_ready(&[leader])?;
                }
                Fault::Pause => {
                    cluster.pause(leader)?;
                    cluster.wait_for_leader_other_than(leader)?;
                    load.wait_for_writes(WRITES)?;
                    cluster.resume(leader)?;
                }
            }
        }
        let report = load.finish()?;
        println!("{served:?}");
        ensure!(
            served.sets > 0 && served.reads > 0,
            "void: the kernel has served nothing: {served:?}"
        );
        report.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[derive(Clone, Copy)]
enum Fault {
    Kill,
    /// It does not run, but its program in the kernel does.
    Pause,
}

/// What programs in the kernel have served, as far as it was asked of them.
#[derive(Debug, Default)]
struct Served {
    sets: u64,
    reads: u64,
}

impl Served {
    fn add(&mut self, cluster: &Cluster<'_>, leader: u16) -> Result<()> {
        let counters = cluster.status(leader)?.counters;
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        self.sets += count("plane_memcached_taken");
        self.reads += count("plane_memcached_answered");
        Ok(())
    }
}
