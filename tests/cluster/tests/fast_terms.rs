//! Data planes carry the common case: fast terms begin by themselves, end whenever they must, and begin
//! again, under load, with nothing lost on the way.

use std::time::Duration;

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::network::Machine::Replica;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

/// How often leadership is transferred, and members changed, under load.
const ROUNDS: u16 = 5;

const ALL: [u16; 3] = [0, 1, 2];

/// The cluster writes, and all its founders are back in a fast term.
fn goes_on_fast(cluster: &Cluster<'_>, load: &Running, what: &str) -> Result<u16> {
    println!("{what}");
    load.wait_for_writes(100)?;
    let all: Vec<u16> = cluster.founders().collect();
    let leader = cluster.wait_for_fast_term(&all)?;
    load.wait_for_writes(200)?;
    Ok(leader)
}

#[test]
fn a_fast_term_begins_by_itself_and_carries_writes_of_every_size() {
    for durability in [Durability::Sync, Durability::Memory] {
        run_started(Plan::fast(3, durability), |cluster| {
            let leader = cluster.wait_for_fast_term(&ALL)?;
            let mut clients = [cluster.client(leader)?, cluster.client((leader + 1) % 3)?];
            for (index, bytes) in [0, 1, 1376, 1377, 100_000, 1 << 20].into_iter().enumerate() {
                let value = vec![b'a' + u8::try_from(index)?; bytes];
                let key = format!("size-{bytes}");
                let stored = clients[index % 2].set(&key, &value).expect("a set");
                ensure!(stored == "STORED", "{stored}");
                for client in &mut clients {
                    ensure!(client.get(&key).expect("a get").as_ref() == Some(&value));
                }
            }
            let digest = cluster.wait_for_equal(&ALL)?;
            let fast = cluster.status(leader)?.fast_term;
            ensure!(fast.is_some(), "the fast term ended meanwhile");
            cluster.wait_for("the leader to see that nobody lags", || {
                let followers = cluster.status(leader)?.followers;
                Ok(followers.len() == 2 && followers.iter().all(|it| it.lag == 0))
            })?;
            // A value of 1 MiB is more than seven hundred entries of the plane.
            ensure!(digest.applied_index > 800, "{digest:?}");
            Ok(())
        });
    }
}

/// How often all replicas left a fast term for this reason.
fn times_left(cluster: &Cluster<'_>, reason: &str) -> Result<u64> {
    let name = format!("fast_term_left_{reason}");
    let counts = ALL.map(|id| cluster.counter(id, &name));
    counts.into_iter().sum()
}

#[test]
fn leaving_and_returning_under_load_loses_nothing() {
    let seed = seed();
    let mut plan = Plan::fast(3, Durability::Sync);
    plan.spares = 1;
    run_started(plan, |cluster| {
        cluster.wait_for_fast_term(&ALL)?;
        let load = Running::start(Load::modest("handover"), &cluster.targets(), seed);
        let mut leader = goes_on_fast(cluster, &load, "begun")?;
        for round in 0..ROUNDS {
            let to = ((leader + 1) % 3).to_string();
            let http = cluster.http(leader).to_string();
            cluster.command(&["transfer", "--to", &to, "--addr", &http])?;
            leader = goes_on_fast(cluster, &load, "leadership was handed over")?;
            if round == 0 {
                cluster.start_joining(3)?;
            }
            let change: &[&str] = if round % 2 == 0 {
                &["add"]
            } else {
                &["remove"]
            };
            cluster.change_member(change, 3)?;
            goes_on_fast(cluster, &load, "a member came or went")?;
        }
        // An election that comes in between may have ended one or the other.
        for reason in ["transfer", "membership_change"] {
            let left = times_left(cluster, reason)?;
            println!("a fast term was left {left} times: {reason}");
            ensure!(
                left > u64::from(ROUNDS / 2),
                "{ROUNDS} rounds, and a fast term was left {left} times: {reason}"
            );
        }
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

#[test]
fn three_fast_replicas_endure_pauses_cuts_loss_and_kills() {
    endure(3, Durability::Sync);
}

#[test]
fn five_fast_replicas_endure_pauses_cuts_loss_and_kills() {
    endure(5, Durability::Memory);
}

fn endure(replicas: u16, durability: Durability) {
    let seed = seed();
    let all: Vec<u16> = (0..replicas).collect();
    run_started(Plan::fast(replicas, durability), |cluster| {
        cluster.wait_for_fast_term(&all)?;
        let load = Running::start(Load::modest("faults"), &cluster.targets(), seed);
        let leader = goes_on_fast(cluster, &load, "begun")?;

        cluster.pause(leader)?;
        cluster.wait_for_leader_other_than(leader)?;
        load.wait_for_writes(100)?;
        cluster.resume(leader)?;
        let leader = goes_on_fast(cluster, &load, "the leader was paused")?;

        let network = cluster.network();
        network.isolate(leader)?;
        cluster.wait_for_leader_other_than(leader)?;
        load.wait_for_writes(100)?;
        network.heal()?;
        let leader = goes_on_fast(cluster, &load, "the leader was isolated")?;

        let follower = (leader + 1) % replicas;
        network.cut_one_way(Replica(leader), Replica(follower))?;
        load.wait_for_writes(200)?;
        network.heal()?;
        let leader = goes_on_fast(cluster, &load, "a follower could not hear the leader")?;

        network.cut_one_way(Replica((leader + 2) % replicas), Replica(leader))?;
        load.wait_for_writes(200)?;
        network.heal()?;
        goes_on_fast(cluster, &load, "the leader could not hear a follower")?;

        network.lose(10)?;
        load.wait_for_writes(300)?;
        network.heal()?;
        let leader = goes_on_fast(cluster, &load, "one frame in ten was lost")?;

        // The leader and, where the others are a majority all the same, a follower with it.
        let killed: Vec<u16> = (0..replicas / 2).map(|n| (leader + n) % replicas).collect();
        for id in &killed {
            cluster.kill(*id)?;
        }
        cluster.wait_for_leader_other_than(leader)?;
        load.wait_for_writes(100)?;
        for id in &killed {
            cluster.start(*id)?;
        }
        goes_on_fast(cluster, &load, &format!("{killed:?} were killed"))?;

        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&all)?;
        Ok(())
    });
}

#[test]
fn a_replica_that_forgot_is_taken_into_a_fast_term_again() {
    let seed = seed();
    run_started(Plan::fast(3, Durability::Memory), |cluster| {
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let load = Running::start(Load::modest("amnesia"), &cluster.targets(), seed);
        load.wait_for_writes(200)?;
        let follower = (leader + 1) % 3;
        cluster.kill(follower)?;
        load.wait_for_writes(200)?;
        cluster.start(follower)?;
        goes_on_fast(cluster, &load, "a follower forgot everything")?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

/// A straggler is repaired, and joins, while the plane goes on: the leader never leaves its fast term.
#[test]
fn a_restarted_follower_joins_the_running_fast_term() {
    const SILENT: Duration = Duration::from_millis(500);
    let seed = seed();
    let mut plan = Plan::fast(3, Durability::Sync);
    // Long enough that a busy machine does not end the term this test watches.
    plan.options = vec![("election-timeout-ms", "5000")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let term = cluster.status(leader)?.term;
        let load = Running::start(Load::modest("straggler"), &cluster.targets(), seed);
        let follower = (leader + 1) % 3;
        load.wait_for_writes(200)?;
        cluster.kill(follower)?;
        load.wait_for_writes(500)?;
        cluster.stays("the leader's fast term", SILENT, || {
            Ok(cluster.status(leader)?.fast_term.is_some())
        })?;
        cluster.start(follower)?;
        cluster.wait_for_fast_term(&ALL)?;
        let now = cluster.status(leader)?;
        ensure!(now.term == term, "term {term} ended: {}", now.term);
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

/// The cluster's secret is replaced, step by step, without a write that fails or a fast term that ends.
#[test]
fn the_secret_is_replaced_under_load() {
    let seed = seed();
    let mut plan = Plan::fast(3, Durability::Memory);
    plan.options = vec![("election-timeout-ms", "5000")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_fast_term(&ALL)?;
        let term = cluster.status(leader)?.term;
        let load = Running::start(Load::modest("keys"), &cluster.targets(), seed);
        // Under TLS a replica refuses its leader's packets until it takes part itself.
        let tags = |id| cluster.counter(id, "plane_tag");
        let before = [tags(0)?, tags(1)?, tags(2)?];
        let file = cluster.secret_file().display().to_string();
        for (times, step) in ["add", "use", "remove", "add", "use", "remove"]
            .into_iter()
            .enumerate()
        {
            load.wait_for_writes(50)?;
            cluster.command(&["keys", step, "--file", &file])?;
            for id in ALL {
                let pid = cluster.pid(id)?.to_string();
                ensure!(cluster.run_program("kill", &["-HUP", &pid])?.success);
                cluster.wait_for("the file to be read again", || {
                    let log = cluster.log(id);
                    Ok(log.matches("the secret file was read again").count() > times)
                })?;
            }
        }
        load.wait_for_writes(50)?;
        let now = cluster.status(leader)?;
        ensure!(
            now.term == term && now.fast_term.is_some(),
            "the fast term ended"
        );
        for id in ALL {
            let refused = tags(id)? - before[usize::from(id)];
            ensure!(refused == 0, "replica {id} refused {refused} packets");
        }
        let report = load.finish()?;
        ensure!(
            report.refused == 0 && report.unknown == 0,
            "operations failed: {:?}",
            report.reasons
        );
        report.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

/// People ask `status`, programs ask for its JSON: both say who is in a fast term, and why the last ended.
#[test]
fn status_says_since_when_a_fast_term_runs_and_why_the_last_one_ended() {
    let mut plan = Plan::fast(3, Durability::Memory);
    plan.options = vec![("election-timeout-ms", "5000")];
    run_started(plan, |cluster| {
        let old = cluster.wait_for_fast_term(&ALL)?;
        let http = cluster.http(old).to_string();
        let first = cluster.status(old)?;
        ensure!(first.fast_term_ended.is_none(), "{first:?}");
        let to = ((old + 1) % 3).to_string();
        cluster.command(&["transfer", "--to", &to, "--addr", &http])?;
        cluster.wait_for("a fast term of another leader", || {
            let leader = cluster.wait_for_fast_term(&ALL)?;
            Ok(leader != old)
        })?;
        let after = cluster.status(old)?;
        ensure!(
            after.fast_term_ended.as_deref() == Some("transfer"),
            "{after:?}"
        );
        let table = cluster.command(&["status", "--addr", &http])?;
        let said = format!("replica {old}: in fast term {} for ", after.term);
        let line = table.lines().find(|line| line.starts_with(&said));
        ensure!(
            line.is_some_and(|line| line.ends_with("; the last one ended: transfer")),
            "{said:?} is not in\n{table}"
        );
        Ok(())
    });
}
