//! Disks that are full, rotten, wiped, or used twice.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::client::Outcome;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::disk;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::status::page;
use quorumwire_cluster_tests::workload::{Load, Running};

const DISK_MIB: u32 = 96;

fn small_disks() -> Plan {
    let mut plan = Plan::new(3, Durability::Sync);
    plan.disk_mib = Some(DISK_MIB);
    plan.options = vec![("segment-mib", "4")];
    plan
}

/// Writes until the leader refuses; the refusal. What fits on the disk before is not much.
fn write_until_refused(cluster: &Cluster<'_>) -> Result<String> {
    let value = vec![b'x'; 100_000];
    let mut refusal = None;
    let mut number = 0;
    cluster.wait_for("a write to be refused", || {
        let leader = cluster.wait_for_leader()?;
        let mut client = cluster.client(leader)?;
        number += 1;
        if let Outcome::Refused(line) = client.set(&format!("fill-{number}"), &value) {
            refusal = Some(line);
        }
        Ok(refusal.is_some())
    })?;
    refusal.context("waited for it")
}

#[test]
fn a_cluster_with_full_disks_says_so_and_recovers_when_space_returns() {
    run_started(small_disks(), |cluster| {
        cluster.put("before", "1")?;
        cluster.put("stale", "1")?;
        let leader = cluster.wait_for_leader()?;
        ensure!(cluster.client(leader)?.line("md stale I").expect("md") == "HD");
        for id in cluster.founders() {
            disk::fill(&cluster.disk(id))?;
        }
        let refusal = write_until_refused(cluster)?;
        ensure!(refusal.contains("disk full"), "it said {refusal:?}");
        cluster.wait_for("a replica to report the full disk", || {
            let mut faults = cluster.statuses().into_iter().flat_map(|s| s.faults);
            Ok(faults.any(|fault| fault.contains("disk full")))
        })?;
        ensure!(
            cluster.get("before")?.as_deref() == Some("1"),
            "reads go on"
        );
        // A read that has to write, passed on: the leader that refuses it leads all the same.
        let mut client = cluster.client((cluster.wait_for_leader()? + 1) % 3)?;
        match client.line("mg stale v") {
            Outcome::Refused(why) => ensure!(why.contains("disk full"), "{why}"),
            // Its leader has handed over to one with some bytes left.
            won @ (Outcome::Done(_) | Outcome::Unknown(_)) => println!("no refusal: {won:?}"),
        }
        let before = client.get("before").expect("reads go on at followers");
        ensure!(before.as_deref() == Some(b"1"), "{before:?}");
        for id in cluster.founders() {
            disk::make_room(&cluster.disk(id))?;
        }
        cluster.put("after", "2")?;
        ensure!(cluster.get("after")?.as_deref() == Some("2"));
        cluster.wait_for_equal(&[0, 1, 2])?;
        cluster.wait_for("all faults to be gone", || {
            Ok(cluster.statuses().iter().all(|s| s.faults.is_empty()))
        })
    });
}

/// Reads a key that lasts and one whose life has ended, at these replicas: only the second is refused, by
/// itself.
fn read_past_the_end(cluster: &Cluster<'_>, living: &[u16]) -> Result<()> {
    for &id in living {
        let mut client = cluster.client(id)?;
        let begun = Instant::now();
        let plain = client.get("plain").expect("reads go on");
        ensure!(plain.as_deref() == Some(b"p"), "{plain:?}");
        let left = client.line("mg plain t").expect("this shows time");
        ensure!(left == "HD t-1", "{left}");
        ensure!(begun.elapsed() < Duration::from_secs(1), "they waited");
        match client.line("mg short v") {
            Outcome::Refused(why) => ensure!(why.contains("no answer: this key"), "{why}"),
            other @ (Outcome::Done(_) | Outcome::Unknown(_)) => {
                bail!("its end is known to no log: {other:?}")
            }
        }
        let plain = client.get("plain").expect("reads go on");
        ensure!(plain.as_deref() == Some(b"p"), "{plain:?}");
    }
    Ok(())
}

#[test]
fn reads_go_on_when_a_life_ends_and_nothing_can_be_written() {
    const READS: Duration = Duration::from_secs(1);
    run_started(small_disks(), |cluster| {
        cluster.put("plain", "p")?;
        let end = fill_within_a_life(cluster)?;
        cluster.wait_for("the life to end", || Ok(Instant::now() > end))?;
        let until = Instant::now() + READS;
        while Instant::now() < until {
            read_past_the_end(cluster, &[0, 1, 2])?;
        }
        let leader = cluster.http(cluster.wait_for_leader()?);
        let (code, body) = page(leader, "/readyz")?;
        ensure!(code == 200 && body.contains("disk full"), "{code} {body}");
        for id in cluster.founders() {
            disk::make_room(&cluster.disk(id))?;
        }
        log_says_that_it_ended(cluster)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        reads_go_on_when_a_life_ends_and_one_of_all_is_dead(cluster)
    });
}

/// Has an item whose end comes when nothing can be written any more; when that is. On a busy machine the
/// disks are full late, so it is given a longer life then.
fn fill_within_a_life(cluster: &Cluster<'_>) -> Result<Instant> {
    for life in [6, 12, 24, 48] {
        let leader = cluster.wait_for_leader()?;
        let set = format!("set short 0 {life} 1\r\nx");
        ensure!(cluster.client(leader)?.line(&set).expect("set") == "STORED");
        let end = Instant::now() + Duration::from_secs(life);
        for id in cluster.founders() {
            disk::fill(&cluster.disk(id))?;
        }
        write_until_refused(cluster)?;
        if Instant::now() + Duration::from_secs(1) < end {
            return Ok(end);
        }
        for id in cluster.founders() {
            disk::make_room(&cluster.disk(id))?;
        }
        cluster.wait_for("writes to be taken again", || {
            Ok(cluster.put("plain", "p").is_ok())
        })?;
    }
    bail!("the disks were never full before the life ended")
}

fn log_says_that_it_ended(cluster: &Cluster<'_>) -> Result<()> {
    cluster.wait_for("the log to say that the life has ended", || {
        let mut client = cluster.client(cluster.wait_for_leader()?)?;
        Ok(client.line("mg short v").done().as_deref() == Some("EN"))
    })
}

/// The same where nothing is written because all voters must have it.
fn reads_go_on_when_a_life_ends_and_one_of_all_is_dead(cluster: &mut Cluster<'_>) -> Result<()> {
    let http = cluster.http(cluster.wait_for_leader()?).to_string();
    cluster.command(&["quorum", "all", "--addr", &http])?;
    // A term that began now would commit nothing without the dead one, and so show no read.
    let leader = cluster.wait_for_settled_leader()?;
    let [dead, other] = [(leader + 1) % 3, (leader + 2) % 3];
    let stored = cluster.client(leader)?.line("set short 0 1 1\r\nx");
    ensure!(stored.expect("set") == "STORED");
    cluster.kill(dead)?;
    let end = Instant::now() + Duration::from_secs(1);
    cluster.wait_for("the life to end", || Ok(Instant::now() > end))?;
    for _ in 0..2 {
        read_past_the_end(cluster, &[leader, other])?;
    }
    let (code, body) = page(cluster.http(leader), "/readyz")?;
    let told = "all (quorum all) must store";
    ensure!(code == 200 && body.contains(told), "{code} {body}");
    cluster.start(dead)?;
    log_says_that_it_ended(cluster)?;
    cluster.wait_for_equal(&[0, 1, 2])?;
    Ok(())
}

fn reports_full_disk(cluster: &Cluster<'_>, id: u16) -> bool {
    let faults = cluster.status(id).map(|status| status.faults);
    faults.is_ok_and(|faults| faults.iter().any(|fault| fault.contains("disk full")))
}

#[test]
fn a_follower_with_a_full_disk_stops_nobody_and_catches_up() {
    let seed = seed();
    run_started(small_disks(), |cluster| {
        let load = Running::start(Load::modest("full"), &cluster.targets(), seed);
        load.wait_for_writes(100)?;
        let full = (cluster.wait_for_leader()? + 1) % 3;
        disk::fill(&cluster.disk(full))?;
        // More than what its open log segment may still hold.
        let value = "x".repeat(500_000);
        for number in 0..20 {
            cluster.put(&format!("large-{number}"), &value)?;
        }
        cluster.wait_for("the replica to report its full disk", || {
            Ok(reports_full_disk(cluster, full))
        })?;
        load.wait_for_writes(300)?;
        disk::make_room(&cluster.disk(full))?;
        load.wait_for_writes(100)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        // It may have applied what others hold for it before its own disk has it.
        cluster.wait_for("the fault to end with its reason", || {
            Ok(!reports_full_disk(cluster, full))
        })?;
        Ok(())
    });
}

#[test]
fn a_leader_with_a_full_disk_refuses_clearly_and_recovers() {
    run_started(small_disks(), |cluster| {
        cluster.put("before", "1")?;
        let leader = cluster.wait_for_leader()?;
        disk::fill(&cluster.disk(leader))?;
        // Asked until it refuses, or until another one leads: both are right, a lie is not.
        let value = vec![b'x'; 100_000];
        let mut acknowledged = Vec::new();
        cluster.wait_for("the leader to refuse or to hand over", || {
            if cluster.leader().is_some_and(|now| now != leader) {
                return Ok(true);
            }
            let key = format!("large-{}", acknowledged.len());
            match cluster.client(leader)?.set(&key, &value) {
                Outcome::Done(_) => acknowledged.push(key),
                Outcome::Refused(line) if line.contains("disk full") => return Ok(true),
                Outcome::Refused(_) | Outcome::Unknown(_) => {}
            }
            Ok(false)
        })?;
        // The others have room, so writes go on: under another leader.
        cluster.wait_for("another leader than the one with the full disk", || {
            Ok(cluster.leader().is_some_and(|now| now != leader))
        })?;
        cluster.put("meanwhile", "2")?;
        disk::make_room(&cluster.disk(leader))?;
        cluster.put("after", "2")?;
        for key in &acknowledged {
            ensure!(
                cluster.get(key)?.is_some_and(|v| v.len() == value.len()),
                "{key} is lost"
            );
        }
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// Rots every copy of a written value on one replica's disk while it is down; it must come back with
/// what the others have.
fn rots_and_is_repaired(cluster: &mut Cluster<'_>, id: u16, marker: &str) -> Result<()> {
    let before = cluster.status(id)?.incarnation;
    cluster.kill(id)?;
    let copies = cluster.rot(id, marker.as_bytes())?;
    ensure!(copies > 0, "the value is nowhere on the disk");
    cluster.put("meanwhile", marker)?;
    cluster.start(id)?;
    // It never serves the rotten value: equal states, or an error at once.
    cluster.wait_for_equal(&[0, 1, 2])?;
    cluster.wait_for_ready(&[id])?;
    let value = cluster.client(id)?.get("marker").expect("it serves");
    ensure!(
        value.as_deref() == Some(marker.as_bytes()),
        "it serves {value:?}"
    );
    ensure!(
        cluster.status(id)?.incarnation != before,
        "replica {id} lost what it had promised and kept its name"
    );
    Ok(())
}

#[test]
fn bit_rot_in_log_and_snapshot_is_never_served_and_repaired_from_peers() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        cluster.put("marker", "a-value-that-will-rot-in-the-log")?;
        cluster.put("next", "so that the rot is not at the log's end")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        rots_and_is_repaired(
            cluster,
            (leader + 1) % 3,
            "a-value-that-will-rot-in-the-log",
        )?;

        let leader = cluster.wait_for_leader()?;
        cluster.put("marker", "this-one-rots-under-the-leader")?;
        cluster.put("next", "so that the rot is not at the log's end")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        rots_and_is_repaired(cluster, leader, "this-one-rots-under-the-leader")?;

        let follower = (cluster.wait_for_leader()? + 1) % 3;
        cluster.put("marker", "this-one-rots-in-a-snapshot")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        cluster.command(&["snapshot", "--addr", &cluster.http(follower).to_string()])?;
        rots_and_is_repaired(cluster, follower, "this-one-rots-in-a-snapshot")
    });
}

#[test]
fn a_wiped_disk_rejoins_in_a_new_life() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("wiped"), &cluster.targets(), seed);
        for leads in [false, true] {
            load.wait_for_writes(200)?;
            let leader = cluster.wait_for_leader()?;
            let wiped = if leads { leader } else { (leader + 1) % 3 };
            let before = cluster.status(wiped)?.incarnation;
            cluster.kill(wiped)?;
            cluster.wipe(wiped)?;
            load.wait_for_writes(100)?;
            cluster.start(wiped)?;
            cluster.wait_for_ready(&[wiped])?;
            cluster.wait_for("the wiped replica to vote again", || {
                let status = cluster.status(wiped)?;
                ensure!(
                    status.incarnation != before,
                    "a wiped disk remembers nothing"
                );
                Ok(status.voters().contains(&wiped))
            })?;
        }
        load.wait_for_writes(100)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let second = cluster.start_second_on_dir_of(0)?;
        let said = format!("{}{}", second.stdout, second.stderr);
        ensure!(!second.success, "it ran: {said}");
        let dir = cluster.dir(0).display().to_string();
        ensure!(said.contains(&dir), "it does not name {dir}: {said}");
        ensure!(cluster.is_running(0)?, "the first one goes on");
        cluster.put("k", "1")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}
