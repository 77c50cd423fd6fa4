//! A server of two replicated logs, which replicate, fail over and start again beside each other, each with
//! its own data folder, sessions and place in the data plane. Nothing but this test asks for the second one.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_client::{Client, Settings};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

use crate::native_clients::{Outcomes, append, judge};

const SECOND_PORT: u16 = 7403;
const SECOND: (&str, &str) = ("second-group-listen-client", "0.0.0.0:7403");
/// Commands that each group must answer before the next replica dies.
const COMMANDS: u64 = 50;

fn clients(cluster: &Cluster<'_>) -> Result<[Client; 2]> {
    let of = |second: bool| {
        let address = |id| {
            let first = cluster.native(id);
            let port = if second { SECOND_PORT } else { first.port() };
            SocketAddr::new(first.ip(), port).to_string()
        };
        let addresses: Vec<_> = cluster.founders().map(address).collect();
        Client::connect(&Settings {
            patience: Duration::from_millis(500),
            ..Settings::new(addresses)
        })
    };
    Ok([of(false)?, of(true)?])
}

/// Appends to a line of each group while each replica dies and comes back, so that each group loses its
/// leader.
fn kill_each(cluster: &mut Cluster<'_>, clients: &[Client; 2]) -> Result<()> {
    let (stop, answered) = (AtomicBool::new(false), [0, 1].map(|_| AtomicU64::new(0)));
    let said: Vec<Outcomes> = thread::scope(|scope| {
        let workers = clients.iter().zip(&answered).map(|(client, answered)| {
            let stop = &stop;
            scope.spawn(move || append(client, 0, stop, answered))
        });
        let workers: Vec<_> = workers.collect();
        let killed = kill_one_by_one(cluster, &answered);
        stop.store(true, Ordering::Relaxed);
        let said = workers.into_iter().map(|it| it.join().expect("a worker"));
        let said = said.collect();
        killed.map(|()| said)
    })?;
    for (client, said) in clients.iter().zip(said) {
        let outcomes = judge(client, &[said])?;
        ensure!(outcomes.get("answered") >= Some(&COMMANDS), "{outcomes:?}");
    }
    Ok(())
}

fn kill_one_by_one(cluster: &mut Cluster<'_>, answered: &[AtomicU64; 2]) -> Result<()> {
    let go_on = |cluster: &Cluster<'_>, when: &str| {
        let read = || answered.each_ref().map(|it| it.load(Ordering::Relaxed));
        let before = read();
        cluster.wait_for(&format!("both groups go on {when}"), || {
            let more = read().into_iter().zip(before);
            Ok(more
                .into_iter()
                .all(|(now, before)| now >= before + COMMANDS))
        })
    };
    for id in cluster.founders() {
        go_on(cluster, "with all replicas")?;
        cluster.kill(id)?;
        go_on(cluster, "without one")?;
        cluster.start(id)?;
        cluster.wait_for_ready(&[id])?;
    }
    Ok(())
}

fn two_groups(plan: Plan) {
    run_started(plan, |cluster| {
        cluster.wait_for_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        let clients = clients(cluster)?;
        for (client, name) in clients.iter().zip(["first", "second"]) {
            client.set("whose", name)?;
        }
        kill_each(cluster, &clients)?;
        // All at once: each group comes back with what is its own.
        cluster.kill_all()?;
        cluster.start_all()?;
        for (client, name) in clients.iter().zip(["first", "second"]) {
            let whose = client.get("whose")?.context("it is there")?;
            ensure!(whose == name.as_bytes(), "{name}: {whose:?}");
        }
        let logs: Vec<String> = cluster.founders().map(|id| cluster.log(id)).collect();
        let of_groups = |event: &str| -> BTreeSet<&str> {
            let lines = logs.iter().flat_map(|log| log.lines());
            let lines = lines.filter(|line| line.contains(event));
            lines
                .filter_map(|line| line.split("\"group\":").nth(1)?.get(..1))
                .collect()
        };
        ensure!(of_groups("\"role changed\"").len() == 2);
        let engaged = of_groups("\"data plane engaged\"").len();
        ensure!(
            engaged == 2 * usize::from(cluster.has_planes()),
            "{engaged} groups had fast terms"
        );
        Ok(())
    });
}

fn with_second(plan: Plan) -> Plan {
    Plan {
        options: [&plan.options[..], &[SECOND]].concat(),
        ..plan
    }
}

#[test]
fn two_groups_replicate_and_fail_over_beside_each_other() {
    two_groups(with_second(Plan::new(3, Durability::Sync)));
}

#[test]
fn two_groups_have_data_planes_beside_each_other() {
    let plan = with_second(Plan::fast(3, Durability::Sync));
    two_groups(plan);
}

/// Who has lost the folder of one group has lost what it promised there, under the same name.
#[test]
fn a_group_of_another_life_is_not_begun_beside_one() {
    let plan = with_second(Plan::new(1, Durability::Sync));
    run_started(plan, |cluster| {
        cluster.wait_for_ready(&[0])?;
        cluster.kill(0)?;
        std::fs::remove_dir_all(cluster.dir(0).join("group-1"))?;
        // The second time its folder is there, and still of another life.
        for _ in 0..2 {
            let refused = cluster.start_in_vain(0)?;
            let said = &refused.stderr;
            ensure!(!refused.success && said.contains("another life"), "{said}");
        }
        Ok(())
    });
}
