//! A leader that leads and cannot commit, because all voters must have a write and one is away: clients are
//! told so in time, whatever they asked for, and those that go leave nothing behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::client::{Client, Outcome};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

/// For how long a request may go without an answer: as long as a server waits, and looks for those that wait.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Writes of a quarter of a MiB that make 2 MiB, with what else is in a record.
const TAKEN: u64 = 7;

/// Clients that give up.
const LEAVING: u64 = 20;

fn client(cluster: &Cluster<'_>, id: u16) -> Result<Client> {
    Ok(Client::connect(cluster.memcached(id), ANSWER_MAX)?)
}

fn commit_at_all(cluster: &Cluster<'_>) -> Result<u16> {
    cluster.wait_for_ready(&[0, 1, 2])?;
    let leader = cluster.wait_for_leader()?;
    let http = cluster.http(leader).to_string();
    cluster.command(&["quorum", "all", "--addr", &http])?;
    Ok(leader)
}

fn expect_refusal<T>(outcome: Outcome<T>, begins: &str) -> Result<()> {
    match outcome {
        Outcome::Refused(line) if line.starts_with(begins) => Ok(()),
        Outcome::Refused(other) | Outcome::Unknown(other) => bail!("{other}"),
        Outcome::Done(_) => bail!("done"),
    }
}

/// A new leader's first entry does not commit, and without that it answers no read.
#[test]
fn reads_of_a_leader_that_cannot_commit_are_refused_in_time() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        commit_at_all(cluster)?;
        cluster.put("k", "v")?;
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        let next = cluster.wait_for_leader_other_than(leader)?;
        let third = 3 - leader - next;
        let open_files = cluster.open_files(next)?;
        for _ in 0..LEAVING {
            let mut leaving = TcpStream::connect(cluster.memcached(next))?;
            leaving.write_all(b"get k\r\n")?;
        }
        for id in [next, third] {
            expect_refusal(client(cluster, id)?.get("k"), "SERVER_ERROR no leader")
                .with_context(|| format!("at {id}"))?;
        }
        cluster.wait_for("the others to be gone", || {
            Ok(cluster.open_files(next)? < open_files + LEAVING / 2)
        })?;
        cluster.start(leader)?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        for id in [leader, next, third] {
            let value = client(cluster, id)?.get("k").expect("get");
            ensure!(value.as_deref() == Some(b"v"), "{value:?} at {id}");
        }
        Ok(())
    });
}

/// A leader has the answer to what a follower passed on when the follower is another process already, whose
/// requests are others.
#[test]
fn a_restarted_follower_takes_no_answer_for_another_request() {
    let mut plan = Plan::steady(3, Durability::Sync);
    plan.plane = "none".into();
    run_started(plan, |cluster| {
        let leader = commit_at_all(cluster)?;
        let [follower, away] = [(leader + 1) % 3, (leader + 2) % 3];
        cluster.put("n", "7")?;
        cluster.kill(follower)?;
        cluster.start(follower)?;
        cluster.wait_for_ready(&[follower])?;
        cluster.pause(away)?;
        let before = cluster.status(leader)?.last_index;
        let mut stream = TcpStream::connect(cluster.memcached(follower))?;
        stream.write_all(b"incr n 1\r\n")?;
        cluster.wait_for("it to be in the log", || {
            Ok(cluster.status(leader)?.last_index > before)
        })?;
        cluster.kill(follower)?;
        cluster.start(follower)?;
        cluster.wait_for_ready(&[follower])?;
        let before = cluster.status(leader)?.last_index;
        let mut stream = TcpStream::connect(cluster.memcached(follower))?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.write_all(b"delete n\r\n")?;
        cluster.wait_for("it to be in the log, too", || {
            Ok(cluster.status(leader)?.last_index > before)
        })?;
        cluster.resume(away)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        ensure!(answer == "DELETED\r\n", "{answer:?}");
        Ok(())
    });
}

/// What is taken and does not commit is as much as the leader may hold: it takes no more.
#[test]
fn writes_that_a_leader_has_no_room_for_are_refused_in_time() {
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.options.push(("uncommitted-mib", "2"));
    plan.plane = "none".into();
    run_started(plan, |cluster| {
        let leader = commit_at_all(cluster)?;
        let away = (leader + 1) % 3;
        cluster.pause(away)?;
        let open_files = cluster.open_files(leader)?;
        let before = cluster.status(leader)?.last_index;
        let value = vec![b'x'; 256 << 10];
        let mut request = format!("set large 0 0 {}\r\n", value.len()).into_bytes();
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        for _ in 0..LEAVING {
            TcpStream::connect(cluster.memcached(leader))?.write_all(&request)?;
        }
        cluster.wait_for("the log to be full", || {
            Ok(cluster.status(leader)?.last_index >= before + TAKEN)
        })?;
        for id in [leader, (leader + 2) % 3] {
            let outcome = client(cluster, id)?.set("k", &value);
            expect_refusal(outcome, "SERVER_ERROR busy").with_context(|| format!("at {id}"))?;
        }
        cluster.wait_for("the others to be gone", || {
            Ok(cluster.open_files(leader)? < open_files + LEAVING / 2)
        })?;
        cluster.resume(away)?;
        cluster.wait_for("writes to go on", || {
            Ok(client(cluster, leader)?.set("k", b"v").done().is_some())
        })?;
        Ok(())
    });
}
