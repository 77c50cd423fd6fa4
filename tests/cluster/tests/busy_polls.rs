//! Replicas look for answers before they sleep while there is work, not without work, and never where they
//! must not.

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

const LOOKS: &str = "busy_polls";
const IN_VAIN: &str = "busy_polls_in_vain";
const MESSAGES: &str = "peer_messages_out";

/// Writes at most, one after the other, until somebody has looked; and so often somebody must have found
/// something.
const WRITES_MAX: u32 = 200_000;
const FOUND_MIN: u64 = 100;
/// Signs of life without any work, and how often somebody may have looked meanwhile.
const IDLE_MESSAGES: u64 = 500;
const IDLE_LOOKS_MAX: u64 = 20;

/// Of all replicas together.
fn count(cluster: &Cluster<'_>, name: &str) -> Result<u64> {
    cluster.founders().map(|id| cluster.counter(id, name)).sum()
}

fn write(cluster: &Cluster<'_>, writes: u32, enough: impl Fn() -> Result<bool>) -> Result<()> {
    let leader = cluster.wait_for_leader()?;
    let mut client = cluster.client(leader)?;
    for number in 0..writes {
        let stored = client.set("key", &number.to_be_bytes()).done();
        ensure!(stored.as_deref() == Some("STORED"), "{number}: {stored:?}");
        if number.is_multiple_of(100) && enough()? {
            break;
        }
    }
    Ok(())
}

/// Without planes, whose signs of life are no messages.
fn plan() -> Plan {
    Plan {
        plane: "none".to_owned(),
        ..Plan::new(3, Durability::Memory)
    }
}

#[test]
fn replicas_look_before_they_sleep_while_there_is_work() {
    run_started(plan(), |cluster| {
        let has_found = || {
            let in_vain = count(cluster, IN_VAIN)?;
            Ok(count(cluster, LOOKS)? >= in_vain + FOUND_MIN)
        };
        write(cluster, WRITES_MAX, has_found)?;
        ensure!(has_found()?, "looking never paid");

        let (looks, messages) = (count(cluster, LOOKS)?, count(cluster, MESSAGES)?);
        cluster.wait_for("signs of life", || {
            Ok(count(cluster, MESSAGES)? >= messages + IDLE_MESSAGES)
        })?;
        let looked = count(cluster, LOOKS)? - looks;
        ensure!(looked <= IDLE_LOOKS_MAX, "{looked} looks without any work");
        Ok(())
    });
}

#[test]
fn replicas_that_must_not_sleep_at_once() {
    let mut plan = plan();
    plan.options.push(("busy-poll-us", "0"));
    run_started(plan, |cluster| {
        write(cluster, 500, || Ok(false))?;
        ensure!(count(cluster, LOOKS)? == 0);
        Ok(())
    });
}
