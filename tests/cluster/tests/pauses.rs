//! Processes stand still (`SIGSTOP`) and go on as if nothing had happened.

use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

const LEADERS_PAUSED: usize = 5;

#[test]
fn a_paused_leader_wakes_up_and_tells_nobody_the_past() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("pauses"), &cluster.targets(), seed);
        for _ in 0..LEADERS_PAUSED {
            load.wait_for_writes(200)?;
            let leader = cluster.wait_for_fast_leader()?;
            cluster.pause(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            load.wait_for_writes(200)?;
            // Requests that waited in its sockets are now answered, with what is true now or not at all.
            cluster.resume(leader)?;
        }
        let leader = cluster.wait_for_fast_leader()?;
        let follower = (leader + 1) % 3;
        cluster.pause(follower)?;
        load.wait_for_writes(500)?;
        cluster.resume(follower)?;
        load.wait_for_writes(200)?;
        cluster.wait_for_settled_leader()?;
        load.wait_for_writes(100)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}
