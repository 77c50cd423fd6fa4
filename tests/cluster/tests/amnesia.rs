//! Amnesia: a replica that restarts in memory mode, or without its disk, has forgotten everything, and
//! must not count until the others have told it.

use std::time::Duration;

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::status::Role;
use quorumwire_cluster_tests::workload::{Load, Running};

/// Many election timeouts: long enough for a wrong leader to come up.
const WATCHED: Duration = Duration::from_secs(6);

fn plan() -> Plan {
    Plan::new(3, Durability::Memory)
}

fn others(id: u16) -> [u16; 2] {
    [(id + 1) % 3, (id + 2) % 3]
}

/// Waits until a restarted replica says that it is ready: it is a full member again then, in another life
/// than before.
fn wait_until_back(cluster: &Cluster<'_>, id: u16, old_incarnation: &str) -> Result<()> {
    cluster.wait_for_ready(&[id])?;
    let status = cluster.status(id)?;
    let now = &status.incarnation;
    ensure!(
        now != old_incarnation,
        "replica {id} came back as if it remembered"
    );
    let full = [Role::Follower, Role::Leader].contains(&status.role);
    let mut members = status.members.iter();
    ensure!(
        full && members.any(|it| it.id == id && it.voter && it.incarnation == *now),
        "replica {id} is ready and does not vote: {status:?}"
    );
    Ok(())
}

#[test]
fn one_restarted_replica_at_a_time_comes_back_in_a_new_life() {
    let seed = seed();
    run_started(plan(), |cluster| {
        let load = Running::start(Load::modest("memory"), &cluster.targets(), seed);
        for kill_leader in [false, true, false, true] {
            load.wait_for_writes(300)?;
            let leader = cluster.wait_for_leader()?;
            let victim = if kill_leader {
                leader
            } else {
                others(leader)[0]
            };
            let before = cluster.status(victim)?.incarnation;
            cluster.kill(victim)?;
            load.wait_for_writes(100)?;
            cluster.start(victim)?;
            wait_until_back(cluster, victim, &before)?;
        }
        load.wait_for_writes(100)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// A write is acknowledged by the leader and one follower; that follower forgets it, and meets the one
/// that never knew it while the leader is away.
fn forgets_and_meets_a_stale_replica<'n>(
    cluster: &mut Cluster<'n>,
    forget: impl FnOnce(&mut Cluster<'n>, u16) -> Result<()>,
) -> Result<()> {
    cluster.put("early", "1")?;
    cluster.wait_for_equal(&[0, 1, 2])?;
    let leader = cluster.wait_for_leader()?;
    let [amnesiac, stale] = others(leader);
    let before = cluster.status(amnesiac)?.incarnation;

    cluster.network().unplug(stale)?;
    let mut client = cluster.client(leader)?;
    let answer = client.set("late", b"2");
    answer.expect("the leader and one follower are a majority");
    forget(cluster, amnesiac)?;

    cluster.network().heal()?;
    cluster.network().unplug(leader)?;
    cluster.start(amnesiac)?;
    cluster.wait_for("the amnesiac to run", || {
        Ok(cluster.status(amnesiac).is_ok())
    })?;
    cluster.stays("nobody leads without knowing the write", WATCHED, || {
        let statuses = [stale, amnesiac].map(|id| cluster.status(id));
        Ok(statuses.iter().flatten().all(|s| s.role != Role::Leader))
    })?;
    let returned = cluster.status(amnesiac)?;
    ensure!(returned.applied_index == 0, "it remembers: {returned:?}");

    cluster.network().heal()?;
    wait_until_back(cluster, amnesiac, &before)?;
    ensure!(cluster.get("late")?.as_deref() == Some("2"));
    ensure!(cluster.get("early")?.as_deref() == Some("1"));
    cluster.wait_for_equal(&[0, 1, 2])?;
    Ok(())
}

#[test]
fn a_restarted_and_a_stale_replica_do_not_forget_an_acknowledged_write() {
    run_started(plan(), |cluster| {
        #[allow(clippy::redundant_closure_for_method_calls)] // the method is not general enough
        forgets_and_meets_a_stale_replica(cluster, |cluster, id| cluster.kill(id))
    });
}

#[test]
fn a_wiped_and_a_stale_replica_do_not_forget_an_acknowledged_write() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        forgets_and_meets_a_stale_replica(cluster, |cluster, id| {
            cluster.kill(id)?;
            cluster.wipe(id)
        })
    });
}

#[test]
fn when_a_majority_forgot_nobody_pretends_to_know() {
    run_started(plan(), |cluster| {
        cluster.put("k", "1")?;
        let leader = cluster.wait_for_leader()?;
        let survivor = others(leader)[0];
        for id in others(survivor) {
            cluster.kill(id)?;
        }
        for id in others(survivor) {
            cluster.start(id)?;
        }
        for id in others(survivor) {
            cluster.wait_for("a restarted replica to run", || {
                Ok(cluster.status(id).is_ok())
            })?;
        }
        cluster.stays("nobody leads", WATCHED, || {
            let statuses = [0, 1, 2].map(|id| cluster.status(id));
            Ok(statuses.iter().flatten().all(|s| s.role != Role::Leader))
        })
    });
}

#[test]
fn the_durability_is_changed_one_replica_after_the_other_and_never_by_forgetting() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        cluster.put("kept", "1")?;
        for next in [Durability::Memory, Durability::Sync] {
            cluster.plan().durability = next;
            for id in 0..3 {
                let before = cluster.status(id)?.incarnation;
                cluster.kill(id)?;
                if next == Durability::Memory {
                    let ended = cluster.start_in_vain(id)?;
                    let why = "durability memory is refused: the folder holds";
                    let refused = !ended.success && ended.stderr.contains(why);
                    ensure!(refused, "{}", ended.stderr);
                }
                cluster.wipe(id)?;
                cluster.start(id)?;
                wait_until_back(cluster, id, &before)?;
            }
            ensure!(cluster.get("kept")?.is_some(), "forgotten");
        }
        cluster.kill_all()?;
        for id in 0..3 {
            cluster.start(id)?;
        }
        ensure!(cluster.get("kept")?.is_some(), "on no disk");
        Ok(())
    });
}
