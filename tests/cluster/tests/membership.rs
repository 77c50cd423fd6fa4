//! Members come and go while clients write.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::client::{Client, Outcome};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::slowness::{TENTH, while_slow};
use quorumwire_cluster_tests::status::{Role, Status};
use quorumwire_cluster_tests::workload::{Load, Running};

/// How long a slow learner may take: nothing is won by waiting longer, and nothing is written while it stands
/// still.
const CAUGHT_UP_WITHIN: Duration = Duration::from_mins(2);
/// So many times a value's length a learner receives of a snapshot for each value that is written meanwhile.
const RECEIVED_FOR_ONE: u64 = 4;
/// How often the log behind a snapshot may be gone once it is installed: a learner that is silent for long,
/// as it may be on a busy machine, is not waited for.
const OUTRUN_MAX: u64 = 2;

fn wait_for_voters(cluster: &Cluster<'_>, expected: &[u16]) -> Result<()> {
    cluster.wait_for(&format!("the voters to be {expected:?}"), || {
        let leader = cluster.leader();
        let status = leader.and_then(|id| cluster.status(id).ok());
        Ok(status.is_some_and(|status| status.voters() == expected))
    })
}

#[test]
fn grows_from_three_to_five_and_shrinks_back_under_load() {
    let seed = seed();
    let mut plan = Plan::new(3, Durability::Sync);
    plan.spares = 2;
    run_started(plan, |cluster| {
        let everybody: Vec<_> = (0..5).map(|id| cluster.memcached(id)).collect();
        let load = Running::start(Load::modest("members"), &everybody, seed);
        load.wait_for_writes(300)?;
        let mut voters = vec![0, 1, 2];
        for id in [3, 4] {
            cluster.start_joining(id)?;
            cluster.change_member(&["add"], id)?;
            voters.push(id);
            wait_for_voters(cluster, &voters)?;
            load.wait_for_writes(300)?;
        }
        // Five survive two.
        for id in [3, 4] {
            cluster.kill(id)?;
        }
        load.wait_for_writes(200)?;
        for id in [3, 4] {
            cluster.start_joining(id)?;
        }
        cluster.wait_for_ready(&[3, 4])?;

        let leader = cluster.wait_for_leader()?;
        let follower = (0..3).find(|id| *id != leader).expect("three founders");
        for id in [leader, follower] {
            cluster.change_member(&["remove"], id)?;
            voters.retain(|voter| *voter != id);
            wait_for_voters(cluster, &voters)?;
            wait_for_refusal(cluster, id)?;
            cluster.terminate(id)?;
            load.wait_for_writes(300)?;
        }
        ensure!(voters.len() == 3);
        let report = load.finish()?;
        let targets: Vec<_> = voters.iter().map(|id| cluster.memcached(*id)).collect();
        report.judge(&targets)?;
        cluster.wait_for_equal(&voters)?;
        Ok(())
    });
}

/// Waits until a replica that was removed sends its clients elsewhere.
fn wait_for_refusal(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    cluster.wait_for("a removed replica to say so", || {
        let answer = cluster.client(id)?.set("removed", b"1");
        Ok(matches!(answer, Outcome::Refused(said) if said.contains("was removed")))
    })
}

#[test]
fn a_learner_joins_by_snapshot_while_writes_go_on() {
    const LARGE_VALUES: u32 = 100;
    let seed = seed();
    let mut plan = Plan::new(3, Durability::Sync);
    plan.spares = 1;
    plan.options = vec![
        ("segment-mib", "4"),
        ("log-tail-mib", "0"),
        ("snapshot-log-mib", "1"),
    ];
    run_started(plan, |cluster| {
        let load = Running::start(Load::modest("learner"), &cluster.targets(), seed);
        let large = "x".repeat(100_000);
        for number in 0..LARGE_VALUES {
            cluster.put(&format!("large-{number}"), &large)?;
        }
        for id in 0..3 {
            cluster.command(&["snapshot", "--addr", &cluster.http(id).to_string()])?;
        }
        cluster.wait_for("the logs to be cut", || {
            let cut = |id| cluster.status(id).is_ok_and(|s| s.first_index > 1);
            Ok([0, 1, 2].into_iter().all(cut))
        })?;

        cluster.start_joining(3)?;
        cluster.change_member(&["add", "--learner"], 3)?;
        cluster.wait_for("the learner to have it all", || {
            let Ok(learner) = cluster.status(3) else {
                return Ok(false);
            };
            let leader = cluster.leader().and_then(|id| cluster.status(id).ok());
            // It cannot have got what is before the logs' beginning but in a snapshot.
            Ok(learner.role == Role::Learner
                && learner.snapshot_index > 0
                && leader.is_some_and(|leader| learner.applied_index + 1000 > leader.commit_index))
        })?;
        ensure!(
            cluster.status(3)?.voters() == [0, 1, 2],
            "a learner has no vote"
        );
        load.wait_for_writes(300)?;

        // Writes go on: it may be behind by some at any moment, and is refused then.
        cluster.wait_for("the learner to be promoted", || {
            Ok(cluster.change_member(&["promote"], 3).is_ok())
        })?;
        wait_for_voters(cluster, &[0, 1, 2, 3])?;
        load.wait_for_writes(300)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2, 3])?;
        ensure!(cluster.get("large-0")?.as_deref() == Some(&*large));
        Ok(())
    });
}

/// Writes large values at the pace at which a learner receives snapshots, whatever that is: one for every
/// [`RECEIVED_FOR_ONE`]. So much is written while a snapshot is on its way, and no learner is too slow.
struct Following {
    client: Client,
    value: Vec<u8>,
    /// How often the log behind a snapshot was gone.
    outrun: u64,
    /// What the learner had of the snapshot since then.
    snapshot_bytes: u64,
    received_bytes: u64,
    written: u64,
}

impl Following {
    fn new(client: Client, value: Vec<u8>) -> Self {
        Self {
            client,
            value,
            outrun: 0,
            snapshot_bytes: 0,
            received_bytes: 0,
            written: 0,
        }
    }

    /// Writes as much as may be written for what the learner has received since the last look.
    fn write(&mut self, leader: &Status, learner: u16, outrun: u64) -> Result<()> {
        let Some(seen) = leader.followers.iter().find(|seen| seen.id == learner) else {
            return Ok(());
        };
        // The bytes of a snapshot count once, though it may begin again: a new one is needed only behind one
        // that was outrun.
        if outrun != self.outrun {
            (self.outrun, self.snapshot_bytes) = (outrun, 0);
        }
        let snapshot_bytes = seen.snapshot_sent_bytes.max(self.snapshot_bytes);
        self.received_bytes += snapshot_bytes - self.snapshot_bytes;
        self.snapshot_bytes = snapshot_bytes;
        let value_bytes = self.value.len() as u64;
        while self.written < self.received_bytes / value_bytes / RECEIVED_FOR_ONE {
            let key = format!("steady-{}", self.written % 8);
            let stored = self.client.set(&key, &self.value).done();
            ensure!(stored.as_deref() == Some("STORED"), "{stored:?}");
            self.written += 1;
        }
        Ok(())
    }
}

/// While it installs a snapshot, the others take newer ones: what follows the one it has must still be there.
#[test]
fn a_slow_learner_catches_up_while_snapshot_after_snapshot_is_taken() {
    const LARGE_VALUES: u32 = 200;
    let mut plan = Plan::new(3, Durability::Memory);
    plan.spares = 1;
    plan.options = vec![("log-tail-mib", "0"), ("snapshot-log-mib", "1")];
    run_started(plan, |cluster| {
        let large = vec![b'x'; 100_000];
        let leader = cluster.wait_for_settled_leader()?;
        let mut client = cluster.client(leader)?;
        for number in 0..LARGE_VALUES {
            let stored = client.set(&format!("large-{number}"), &large).done();
            ensure!(stored.as_deref() == Some("STORED"), "{stored:?}");
        }
        cluster.start_joining(3)?;
        // What it does once, as it starts, need not be slow: a plane in the kernel has its programs verified.
        cluster.wait_for("the learner to serve", || Ok(cluster.status(3).is_ok()))?;
        let taken_before = cluster.counter(leader, "snapshots_taken")?;
        let mut following = Following::new(client, large);
        while_slow(cluster.pid(3)?, TENTH, || {
            cluster.change_member(&["add", "--learner"], 3)?;
            cluster.wait_for_within("the learner to have it all", CAUGHT_UP_WITHIN, || {
                let leader = cluster.leader().and_then(|id| cluster.status(id).ok());
                let Some(leader) = leader else {
                    return Ok(false);
                };
                let outrun = leader.counters.get("snapshots_outrun").copied();
                let outrun = outrun.context("it counts them")?;
                ensure!(
                    outrun <= OUTRUN_MAX,
                    "the log behind a snapshot was gone once it was installed: {outrun} times"
                );
                following.write(&leader, 3, outrun)?;
                Ok(cluster.status(3).is_ok_and(|learner| {
                    learner.role == Role::Learner
                        && learner.snapshot_index > 0
                        && learner.applied_index + 20 > leader.commit_index
                }))
            })
        })?;
        let taken = cluster.counter(leader, "snapshots_taken")? - taken_before;
        println!(
            "{} large values were written meanwhile, and {taken} snapshots taken",
            following.written
        );
        ensure!(taken > 1, "it need not follow {taken} snapshots");
        cluster.wait_for_equal(&[0, 1, 2, 3])?;
        Ok(())
    });
}
