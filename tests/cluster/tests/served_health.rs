//! What is said of a replica whose program serves nobody.

use std::io::Write as _;
use std::net::TcpStream;

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Plan, run_started};
use quorumwire_cluster_tests::served::{REDIS, connect, three, wait_for_redis};
use quorumwire_cluster_tests::served_process::ServedProcess;
use quorumwire_cluster_tests::status::page;
use redis::Commands as _;

const NOT_BACK: &str = "the served program has not come back from a turn";
const IS_BACK: &str = "the served program has come back from a turn that took long";

fn is_ready(cluster: &Cluster<'_>, id: u16) -> Result<bool> {
    let (code, _) = page(cluster.http(id), "/readyz")?;
    Ok(code == 200)
}

fn wait_for_fault(cluster: &Cluster<'_>, id: u16, text: &str) -> Result<()> {
    cluster.wait_for(text, || {
        let faults = cluster.status(id)?.faults;
        Ok(faults.iter().any(|it| it.contains(text)) && !is_ready(cluster, id)?)
    })
}

#[test]
fn a_program_that_does_not_come_back_from_a_turn_is_a_fault_until_it_does() {
    run_started(three(&REDIS), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let stands = (leader + 1) % 3;
        let program = ServedProcess::of(cluster, stands)?;
        program.halt()?;
        let mut client = connect(cluster.redis(leader))?;
        let _: u64 = client.incr("asked", 1)?;
        wait_for_fault(
            cluster,
            stands,
            "the served program has not come back from turn",
        )?;
        ensure!(is_ready(cluster, leader)?, "the others serve");
        let (_, metrics) = page(cluster.http(stands), "/metrics")?;
        ensure!(metrics.contains("quorumwire_served_turns_late_total 1"));
        program.resume()?;
        cluster.wait_for("it serves again", || {
            let faults = cluster.status(stands)?.faults;
            Ok(faults.is_empty() && is_ready(cluster, stands)?)
        })?;
        for said in [NOT_BACK, IS_BACK] {
            cluster.wait_for(said, || Ok(cluster.log(stands).matches(said).count() == 1))?;
        }
        // A script without end.
        let mut client = TcpStream::connect(cluster.redis(leader))?;
        client.write_all(b"EVAL 'while true do end' 0\r\n")?;
        for id in [0, 1, 2] {
            wait_for_fault(
                cluster,
                id,
                "the served program has not come back from turn",
            )?;
        }
        Ok(())
    });
}

#[test]
fn a_port_that_is_published_and_not_opened_is_a_fault() {
    let plan = Plan {
        options: vec![("publish", "9999=127.0.0.1:9999")],
        ..three(&REDIS)
    };
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let fault = "does not listen at port 9999, which is published";
        wait_for_fault(cluster, 0, fault)?;
        let are_connected = |count: u64| {
            let (_, metrics) = page(cluster.http(0), "/metrics")?;
            Ok(metrics.contains(&format!("quorumwire_connections {count}\n")))
        };
        cluster.wait_for("nobody connected", || are_connected(0))?;
        let _clients = [connect(cluster.redis(0))?, connect(cluster.redis(0))?];
        cluster.wait_for("both clients", || are_connected(2))?;
        let (_, said) = page(cluster.http(0), "/v1/digest")?;
        ensure!(said.contains("has no digest"), "{said}");
        Ok(())
    });
}

#[test]
fn replicas_whose_programs_are_told_otherwise_say_so_and_not_what() {
    run_started(three(&REDIS), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        cluster.kill(2)?;
        cluster.plan().serves.extend(["--maxmemory", "123456789"]);
        cluster.start(2)?;
        for id in [0, 2] {
            let option = "option COMMAND, the checksum of its arguments: replica";
            cluster.wait_for("a difference", || {
                let faults = cluster.status(id)?.faults;
                Ok(faults.iter().any(|it| it.contains(option)))
            })?;
            let log = cluster.log(id);
            ensure!(log.contains(option) && !log.contains("123456789"), "{log}");
        }
        Ok(())
    });
}
