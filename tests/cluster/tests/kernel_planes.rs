//! Data planes in the kernel outlive what happens to their interface, need no more than three capabilities,
//! and leave nothing behind when their process is killed.

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

const ALL: [u16; 3] = [0, 1, 2];
/// What a server tells people when its plane cannot run.
const CANNOT: &str = "the data plane cannot run";

fn plan(plane: &str, replicas: u16, durability: Durability) -> Plan {
    Plan {
        plane: plane.into(),
        ..Plan::new(replicas, durability)
    }
}

/// How often a replica has said something.
fn times_said(cluster: &Cluster<'_>, id: u16, text: &str) -> usize {
    cluster.log(id).matches(text).count()
}

#[test]
fn a_server_needs_three_capabilities_and_names_those_it_lacks() {
    const NEEDED: [&str; 3] = ["bpf", "net_admin", "perfmon"];
    run(plan("xdp", 1, Durability::Memory), |cluster| {
        for lacked in NEEDED {
            let others = NEEDED.into_iter().filter(|one| *one != lacked);
            let done = cluster.try_with_capabilities(0, &others.collect::<Vec<_>>())?;
            let text = format!(
                "option plane: xdp cannot run here: the process lacks CAP_{};",
                lacked.to_uppercase()
            );
            ensure!(
                !done.success && done.stderr.contains(&text),
                "{text:?} in {done:?}"
            );
            // Nothing was tried that had to fail.
            ensure!(!done.stderr.contains("libbpf"), "{done:?}");
        }
        let done = cluster.try_with_capabilities(0, &[])?;
        let text = "lacks CAP_BPF and CAP_NET_ADMIN and CAP_PERFMON;";
        ensure!(done.stderr.contains(text), "{text:?} in {done:?}");
        cluster.start_with_capabilities(0, &NEEDED)?;
        cluster.wait_for_fast_term(&[0])?;
        cluster.put("k", "1")?;
        Ok(())
    });
}

#[test]
fn a_killed_server_leaves_no_program_and_starts_again_at_once() {
    let seed = seed();
    run_started(plan("xdp", 3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("kill"), &cluster.targets(), seed);
        for _ in 0..2 {
            let leader = cluster.wait_for_fast_term(&ALL)?;
            load.wait_for_writes(100)?;
            ensure!(cluster.has_program(leader)?, "it has none while it runs");
            cluster.kill(leader)?;
            ensure!(
                !cluster.has_program(leader)?,
                "a program outlives its process"
            );
            cluster.start(leader)?;
        }
        cluster.wait_for_fast_term(&ALL)?;
        load.wait_for_writes(100)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

/// As if the kernel took its time to close what the earlier process held.
#[test]
fn a_start_waits_until_the_earlier_program_is_gone_whatever_its_plane() {
    run(plan("xdp", 1, Durability::Sync), |cluster| {
        cluster.start(0)?;
        cluster.wait_for_fast_term(&[0])?;
        let earlier = cluster.program(0)?;
        cluster.kill(0)?;
        cluster.occupy(0)?;
        let note = cluster.dir(0).join("plane-programs");
        let noted = std::fs::read_to_string(&note)?;
        let stays = format!(" {} eth0", cluster.program(0)?);
        let edited = noted.replace(&format!(" {earlier} eth0"), &stays);
        ensure!(edited != noted, "void: {noted}");
        std::fs::write(&note, edited)?;
        cluster.plan().plane = "none".to_owned();
        let started = times_said(cluster, 0, "replica started");
        cluster.start_with_capabilities(0, &[])?;
        cluster.wait_for("the server to say that it waits", || {
            let waits = "waiting for this replica's earlier plane to be gone";
            Ok(times_said(cluster, 0, waits) > 0)
        })?;
        ensure!(times_said(cluster, 0, "replica started") == started);
        cluster.vacate(0)?;
        cluster.wait_for_leader()?;
        ensure!(!note.exists(), "it is not forgotten");
        Ok(())
    });
}

/// A process that stands still is not gone: the kernel goes on acknowledging for it, in memory.
#[test]
fn a_stopped_followers_plane_still_counts() {
    let seed = seed();
    let mut plan = plan("xdp", 3, Durability::Memory);
    // Long enough that a busy machine does not end the term this test watches.
    plan.options = vec![("election-timeout-ms", "3000")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let term = cluster.status(leader)?.term;
        let load = Running::start(Load::modest("stopped"), &[cluster.memcached(leader)], seed);
        let [stopped, killed] = [1, 2].map(|offset| (leader + offset) % 3);
        load.wait_for_writes(100)?;
        cluster.pause(stopped)?;
        cluster.kill(killed)?;
        load.wait_for_writes(500)?;
        let now = cluster.status(leader)?;
        ensure!(now.term == term && now.fast_term.is_some(), "{now:?}");
        cluster.resume(stopped)?;
        cluster.start(killed)?;
        cluster.wait_for_fast_term(&ALL)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

/// The plane of one replica cannot run, with the cluster going on; then it can.
fn fails_and_heals(
    cluster: &Cluster<'_>,
    load: &Running,
    id: u16,
    (harm, says, heal): (&str, &str, &str),
) -> Result<()> {
    let (failed, healed) = (CANNOT, "the data plane can run again");
    let before = [failed, healed].map(|text| times_said(cluster, id, text));
    cluster.network().set_link(id, harm)?;
    cluster.wait_for("the server to tell of it", || {
        Ok(times_said(cluster, id, failed) > before[0])
    })?;
    ensure!(cluster.log(id).contains(says), "{says}");
    load.wait_for_writes(200)?;
    cluster.network().set_link(id, heal)?;
    cluster.wait_for_fast_term(&ALL)?;
    load.wait_for_writes(100)?;
    let after = [failed, healed].map(|text| times_said(cluster, id, text));
    ensure!(
        after == before.map(|times| times + 1),
        "told {before:?} times before, {after:?} times after {harm}"
    );
    Ok(())
}

#[test]
fn a_plane_that_cannot_run_says_so_once_and_software_goes_on_until_it_can() {
    let seed = seed();
    run_started(plan("xdp", 3, Durability::Sync), |cluster| {
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let load = Running::start(Load::modest("links"), &cluster.targets(), seed);
        let mtu = (
            "mtu 1400",
            "interface eth0 has an MTU of 1400; the plane's longest packets need at least 1476",
            "mtu 1500",
        );
        // Its TCP connections carry on, over the same interface.
        cluster.network().set_link(leader, mtu.0)?;
        cluster.wait_for_plane_fault(leader, mtu.1)?;
        let ended = cluster.status(leader)?.fast_term_ended;
        ensure!(ended.as_deref() == Some("plane_failed"), "{ended:?}");
        cluster.network().set_link(leader, mtu.2)?;
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let follower = (leader + 1) % 3;
        fails_and_heals(cluster, &load, follower, mtu)?;
        let down = ("down", "interface eth0 is down", "up");
        fails_and_heals(cluster, &load, follower, down)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

#[test]
fn a_replica_whose_interface_was_exchanged_is_fast_again_without_a_restart() {
    let seed = seed();
    run_started(plan("xdp", 3, Durability::Memory), |cluster| {
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let load = Running::start(Load::modest("cable"), &cluster.targets(), seed);
        load.wait_for_writes(100)?;
        cluster.network().remove_cable(leader)?;
        cluster.wait_for("the server to tell of it", || {
            Ok(cluster.log(leader).contains("interface eth0 is gone"))
        })?;
        cluster.wait_for_leader_other_than(leader)?;
        load.wait_for_writes(200)?;
        cluster.lay_cable(leader)?;
        cluster.wait_for_fast_term(&ALL)?;
        load.wait_for_writes(100)?;
        ensure!(times_said(cluster, leader, "replica started") == 1);
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

#[test]
fn auto_takes_the_fastest_plane_that_can_run_and_says_why() {
    run(plan("auto", 3, Durability::Memory), |cluster| {
        cluster.occupy(1)?;
        for id in ALL {
            cluster.start(id)?;
        }
        // Planes of different kinds work together.
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let reason = "interface eth0 has another XDP program";
        for id in ALL {
            let status = cluster.status(id)?;
            let Some(plane) = status.data_plane else {
                anyhow::bail!("replica {id} has no data plane");
            };
            ensure!(plane.chosen_by == "auto", "{plane:?}");
            let in_driver = "in the driver of ";
            let runs_there = plane
                .runs
                .as_ref()
                .is_some_and(|it| it.starts_with(in_driver));
            ensure!(runs_there == (plane.name == "xdp"), "{plane:?}");
            let logged = times_said(cluster, id, "option plane: auto chose");
            ensure!(logged == 1, "said {logged} times");
            if id != 1 {
                ensure!(plane.name == "xdp" && plane.refused.is_empty(), "{plane:?}");
                ensure!(cluster.has_program(id)?);
                continue;
            }
            ensure!(plane.name == "socket", "{plane:?}");
            ensure!(plane.refused.len() == 1 && plane.refused[0].name == "xdp");
            ensure!(plane.refused[0].why.contains(reason), "{plane:?}");
            ensure!(cluster.log(id).contains(reason));
        }
        let http = cluster.http(leader).to_string();
        let table = cluster.command(&["status", "--addr", &http])?;
        let words: Vec<&str> = table.split_whitespace().collect(); // its lines are wrapped
        let said = "replica 1: data plane: auto chose socket; not xdp: option listen-plane: ";
        ensure!(
            words.join(" ").contains(said),
            "{said:?} is not in\n{table}"
        );
        cluster.put("k", "1")?;
        Ok(())
    });
}

/// No veth device takes rules.
#[test]
fn a_receive_queue_that_no_rule_leads_to_is_refused() {
    const REASON: [&str; 4] = [
        "option xdp-queue: 1: interface eth0 does not take the rule",
        "UDP port 7401",
        "2 receive queues: Operation not supported",
        "allowed: 0 to 1 where it is, or none",
    ];
    let queue = |number| vec![("xdp-queue", number)];
    run(plan("xdp", 1, Durability::Memory), |cluster| {
        cluster.set_options(queue("1"));
        let needed = &["bpf", "net_admin", "perfmon"];
        let done = cluster.try_with_capabilities(0, needed)?;
        let text = "option xdp-queue: 1: interface eth0 has one receive queue; allowed: 0";
        ensure!(!done.success && done.stderr.contains(text), "{done:?}");
        cluster.network().set_receive_queues(0, 2)?;
        let done = cluster.try_with_capabilities(0, needed)?;
        ensure!(!done.success, "{done:?}");
        for part in REASON {
            ensure!(done.stderr.contains(part), "{part:?} in {done:?}");
        }
        ensure!(!cluster.has_program(0)?, "a program outlives its process");
        cluster.network().set_receive_queues(0, 1)?;
        cluster.set_options(queue("0"));
        cluster.start_with_capabilities(0, needed)?;
        cluster.wait_for_fast_term(&[0])?;
        cluster.put("k", "1")?;
        Ok(())
    });
    run(plan("auto", 1, Durability::Memory), |cluster| {
        cluster.network().set_receive_queues(0, 2)?;
        cluster.set_options(queue("1"));
        cluster.start(0)?;
        cluster.wait_for_fast_term(&[0])?;
        let Some(plane) = cluster.status(0)?.data_plane else {
            anyhow::bail!("it has no data plane");
        };
        ensure!(
            plane.name == "socket" && plane.refused.len() == 1,
            "{plane:?}"
        );
        for part in REASON {
            ensure!(plane.refused[0].why.contains(part), "{part:?} in {plane:?}");
        }
        Ok(())
    });
}
