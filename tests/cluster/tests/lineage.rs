//! Two clusters of one name, and one cluster that was told two things: said at both sides, and nothing
//! diverges.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run};

/// Whoever is of another cluster is refused at once, not when a command has waited for long.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Waits until a replica shows a fault that has all of these words.
fn wait_for_fault(cluster: &Cluster<'_>, id: u16, words: &[&str]) -> Result<()> {
    let says = |fault: &String| words.iter().all(|word| fault.contains(word));
    cluster.wait_for(&format!("replica {id} to say {words:?}"), || {
        // One that was started a moment ago does not answer yet.
        let status = cluster.status(id);
        Ok(status.is_ok_and(|status| status.faults.iter().any(says)))
    })
}

#[test]
fn a_forgotten_folder_is_refused_by_a_cluster_begun_anew() {
    forgotten_folder_is_refused(Tls::Off);
}

#[test]
fn a_forgotten_folder_is_refused_under_tls_too() {
    forgotten_folder_is_refused(Tls::Peers);
}

fn forgotten_folder_is_refused(tls: Tls) {
    let plan = Plan {
        tls,
        ..Plan::new(3, Durability::Sync)
    };
    run(plan, |cluster| {
        cluster.start_all()?;
        cluster.put("trial", "1")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        let old = cluster.status(2)?.lineage;
        cluster.kill_all()?;
        for id in [0, 1] {
            cluster.wipe(id)?;
        }
        cluster.plan().replicas = 2;
        for id in [0, 1] {
            cluster.start(id)?;
        }
        cluster.put("real", "2")?;
        let leader = cluster.wait_for_leader()?;
        let new = cluster.status(leader)?.lineage;
        ensure!(
            old.len() == 32 && new.len() == 32 && old != new,
            "{old} {new}"
        );

        cluster.start_joining(2)?;
        let words = ["other_lineage", &old, &new, "replica 2 "];
        wait_for_fault(cluster, 2, &words)?;
        wait_for_fault(cluster, leader, &words)?;
        let (http, peer) = (
            cluster.http(leader).to_string(),
            cluster.peer(2).to_string(),
        );
        let add = [
            "member", "add", "--id", "2", "--peer", &peer, "--addr", &http,
        ];
        let begun = Instant::now();
        let added = cluster.try_command(&add)?;
        ensure!(
            !added.success && begun.elapsed() < AT_ONCE,
            "{}",
            added.stdout
        );
        ensure!(
            [&old, &new].iter().all(|it| added.stderr.contains(*it)),
            "{}",
            added.stderr
        );
        let members = cluster.status(leader)?.members;
        ensure!(members.iter().all(|it| it.id != 2), "{members:?}");

        // With an empty folder it is welcome, once it is met with that.
        cluster.kill(2)?;
        cluster.wipe(2)?;
        cluster.start_joining(2)?;
        cluster.wait_for("replica 2 to be met anew", || {
            let faults = cluster.status(leader)?.faults;
            Ok(!faults.iter().any(|it| it.contains("other_lineage")))
        })?;
        cluster.change_member(&["add"], 2)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        ensure!(
            cluster.status(2)?.lineage == new,
            "it has learned another one"
        );
        ensure!(cluster.get("trial")?.is_none(), "an old value is back");
        joins_once(cluster, 2, &new)
    });
}

/// A member that is told to join is what it was, and says that this means nothing to it.
fn joins_once(cluster: &mut Cluster<'_>, id: u16, lineage: &str) -> Result<()> {
    let before = cluster.status(id)?.incarnation;
    let told = "option join has no effect: this data folder already belongs to a member";
    let said = |cluster: &Cluster<'_>| {
        let log = cluster.log(id);
        let lines = log.lines().filter(|line| line.contains(told));
        lines.filter(|line| line.contains(lineage)).count()
    };
    ensure!(said(cluster) == 0, "{}", cluster.log(id));
    cluster.kill(id)?;
    cluster.start_joining(id)?;
    cluster.wait_for_ready(&[id])?;
    ensure!(said(cluster) == 1, "{}", cluster.log(id));
    let status = cluster.status(id)?;
    ensure!(status.incarnation == before && status.voters().contains(&id));
    cluster.wait_for_equal(&[0, 1, 2])?;
    Ok(())
}

#[test]
fn two_lists_of_initial_members_begin_no_cluster_and_are_said() {
    run(Plan::new(3, Durability::Sync), |cluster| {
        cluster.plan().replicas = 2;
        cluster.start(0)?;
        cluster.plan().replicas = 3;
        cluster.start(1)?;
        cluster.start(2)?;
        let words = ["option members", "replica 0 has 0,1,", "has 0,1,2"];
        for id in [0, 1, 2] {
            wait_for_fault(cluster, id, &words)?;
        }
        ensure!(cluster.leader().is_none(), "a cluster has begun");
        // The one that was told wrongly is started anew: now it begins, and nothing is held against anybody.
        cluster.kill(0)?;
        cluster.start(0)?;
        cluster.put("begun", "1")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        ensure!(
            cluster.statuses().iter().all(|it| it.faults.is_empty()),
            "{}",
            cluster.describe()
        );
        Ok(())
    });
}
