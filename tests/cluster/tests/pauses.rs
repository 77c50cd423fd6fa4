//! Processes stand still (`SIGSTOP`) and go on as if nothing had happened.

use anyhow::ensure;
use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

const LEADERS_PAUSED: usize = 5;

#[test]
fn a_paused_leader_wakes_up_and_tells_nobody_the_past() {
    pause_leaders(Plan::new(3, Durability::Sync));
}

#[test]
fn a_paused_leader_tells_nobody_the_past_where_reads_ask_a_majority() {
    let mut plan = Plan::new(3, Durability::Sync);
    plan.options.push(("reads", "read-index"));
    pause_leaders(plan);
}

fn pause_leaders(plan: Plan) {
    let seed = seed();
    let has_leases = !plan.options.contains(&("reads", "read-index"));
    run_started(plan, |cluster| {
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
        let report = load.finish()?;
        if !has_leases {
            let why = &report.reasons;
            let for_lease = why.keys().find(|reason| reason.contains("lease"));
            ensure!(
                for_lease.is_none(),
                "refused for a lease that nobody wants: {why:?}"
            );
            for id in cluster.founders() {
                ensure!(!cluster.status(id)?.lease, "{id} has a lease");
            }
        }
        report.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}
