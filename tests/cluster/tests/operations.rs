//! What an operator does on an ordinary day, and what an ordinary client expects.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::client::Outcome;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, OnFollower, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::status::page;
use quorumwire_cluster_tests::workload::{Load, Running};
use serde_json::Value;

/// Transferring leadership takes no election timeout, but two cores shared by everything take theirs.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);
/// How long somebody at a terminal waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

#[test]
fn sigterm_transfers_leadership_and_exits_cleanly() {
    let seed = seed();
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let load = Running::start(Load::modest("term"), &cluster.targets(), seed);
        let mut moments = Vec::new();
        for _ in 0..3 {
            load.wait_for_writes(200)?;
            let leader = cluster.wait_for_leader()?;
            moments.push(Instant::now());
            let status = cluster.terminate(leader)?;
            ensure!(status.code() == Some(0), "replica {leader}: {status}");
            cluster.wait_for_leader_other_than(leader)?;
            cluster.start(leader)?;
            cluster.wait_for_ready(&[leader])?;
        }
        load.wait_for_writes(200)?;
        let report = load.finish()?;
        let gaps = report.gaps_after(&moments);
        println!("from SIGTERM to the leader to the next acknowledged write: {gaps:?}");
        ensure!(gaps.len() == 3 && gaps.iter().all(|gap| *gap < HAND_OVER_MAX));
        report.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// A leader may count on the longer promise of the process before for as long as that one gave it.
#[test]
fn a_start_with_a_shorter_lease_waits_once_until_the_longer_one_has_passed() {
    const LONG: Duration = Duration::from_millis(2_500);
    let mut plan = Plan::new(3, Durability::Sync);
    plan.options = vec![("election-timeout-ms", "2500"), ("lease-ms", "2500")];
    run_started(plan, |cluster| {
        let follower = (cluster.wait_for_leader()? + 1) % 3;
        cluster.set_options(vec![("election-timeout-ms", "2500"), ("lease-ms", "20")]);
        for start in ["first", "second"] {
            cluster.kill(follower)?;
            let begun = Instant::now();
            cluster.start(follower)?;
            let mut back_after = Duration::ZERO;
            cluster.wait_for("the replica to answer again", || {
                // Its port takes the question on while it waits, and answers behind that.
                let is_back = cluster.status(follower).is_ok();
                back_after = begun.elapsed();
                Ok(is_back)
            })?;
            println!("{start} start with a shorter lease: back after {back_after:?}");
            let times = cluster.log(follower).matches("lease-ms was longer").count();
            ensure!(times == 1, "waited {times} times after the {start} start");
            ensure!(start == "second" || back_after >= LONG, "too soon");
        }
        Ok(())
    });
}

#[test]
fn the_command_line_shows_and_moves_leadership() {
    run_started(Plan::steady(3, Durability::Sync), |cluster| {
        cluster.put("k", "1")?;
        let leader = cluster.wait_for_leader()?;
        let next = (leader + 1) % 3;
        let http = cluster.http((leader + 2) % 3).to_string();
        cluster.command(&["transfer", "--to", &next.to_string(), "--addr", &http])?;
        cluster.wait_for("the one asked for to lead", || {
            Ok(cluster.leader() == Some(next))
        })?;

        let members: Value = serde_json::from_str(
            &cluster.command(&["member", "list", "--addr", &http, "--json"])?,
        )?;
        ensure!(
            members["members"].as_array().is_some_and(|m| m.len() == 3),
            "{members}"
        );
        let status = cluster.command(&["status", "--addr", &http, "--json"])?;
        serde_json::from_str::<Value>(&status)?;
        ensure!(status.contains("\"sync\""), "{status}");
        for path in ["/healthz", "/readyz"] {
            let (code, body) = page(cluster.http(next), path)?;
            ensure!(code == 200, "{path}: {code}: {body}");
        }
        let (code, metrics) = page(cluster.http(next), "/metrics")?;
        ensure!(
            code == 200 && metrics.contains("# TYPE quorumwire_"),
            "{metrics}"
        );
        let explained = include_str!("../../../docs/metrics.md");
        for line in metrics.lines().filter_map(|it| it.strip_prefix("# TYPE ")) {
            let name = line.split(' ').next().unwrap_or_default();
            let name = name.trim_end_matches("_total").trim_end_matches("_info");
            let named = ["", "_total", "_info"].map(|end| format!("| `{name}{end}` |"));
            let is_explained = named.iter().any(|row| explained.contains(row));
            ensure!(is_explained, "docs/metrics.md does not explain {name}");
        }
        ensure!(cluster.get("k")?.as_deref() == Some("1"));
        Ok(())
    });
}

#[test]
fn a_follower_told_to_refuse_names_the_leader() {
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.on_follower = OnFollower::Refuse;
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        let follower = (leader + 1) % 3;
        cluster.wait_for_ready(&[leader, follower])?;
        cluster
            .client(leader)?
            .set("k", b"1")
            .expect("the leader serves");
        let mut client = cluster.client(follower)?;
        let address = cluster.memcached(leader).to_string();
        let outcomes = [client.set("k", b"2").map(drop), client.get("k").map(drop)];
        for outcome in outcomes {
            let Outcome::Refused(line) = outcome else {
                anyhow::bail!("a follower answered {outcome:?}");
            };
            ensure!(line.starts_with("SERVER_ERROR not leader"), "{line}");
            ensure!(line.contains(&address), "{line} does not name {address}");
        }
        ensure!(cluster.client(leader)?.get("k").expect("get").as_deref() == Some(&b"1"[..]));
        Ok(())
    });
}

fn passes_memccapable(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let address = cluster.memcached(id);
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    // It names its tests on one channel and says how they ended on the other.
    let script = format!("exec memccapable -h {host} -p {port} -a 2>&1");
    let finished = cluster.run_program("sh", &["-c", &script])?;
    let said = finished.stdout;
    println!("{said}");
    ensure!(
        finished.success && said.contains("All tests passed"),
        "replica {id}: {said}"
    );
    ensure!(!said.contains("[FAIL]"), "replica {id}: {said}");
    Ok(())
}

#[test]
fn memccapable_passes_in_full_against_leader_and_follower() {
    run_started(Plan::steady(3, Durability::Sync), |cluster| {
        let leader = cluster.wait_for_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        passes_memccapable(cluster, leader)?;
        passes_memccapable(cluster, (leader + 1) % 3)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// What libmemcached's tools for people say of a replica.
fn is_seen_by_tools(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let servers = format!("--servers={}", cluster.memcached(id));
    let run = |program: &str, more: &[&str]| {
        let finished = cluster.run_program(program, &[&[servers.as_str()], more].concat())?;
        let said = finished.stdout + &finished.stderr;
        ensure!(finished.success, "{program} at replica {id}: {said}");
        anyhow::Ok(said)
    };
    let said = run("memcstat", &[])?;
    for wanted in ["curr_items: 1\n", "version: 1.6.18-quorumwire-"] {
        ensure!(
            said.contains(wanted),
            "no {wanted:?} of replica {id}: {said}"
        );
    }
    let said = run("memcstat", &["settings"])?;
    ensure!(said.contains("item_size_max: 1048576\n"), "{said}");
    let said = run("memcstat", &["--server-version"])?;
    ensure!(said.contains("1.6.18"), "{said}");
    run("memcping", &[])?;
    Ok(())
}

#[test]
fn the_tools_of_libmemcached_show_and_reach_leader_and_follower() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let leader = cluster.wait_for_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        cluster.put("only", "one")?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        for id in [leader, (leader + 1) % 3] {
            is_seen_by_tools(cluster, id)?;
        }
        // They would say so if nobody answered.
        let nobody = format!("--servers={}", cluster.plane(leader));
        ensure!(!cluster.run_program("memcping", &[&nobody])?.success);
        Ok(())
    });
}

/// What a person types, and what the screen then shows.
const TYPED: [(&str, &str); 15] = [
    ("set greeting 0 0 5\r\n", ""),
    ("hello\r\n", "STORED\r\n"),
    ("get greeting\n", "VALUE greeting 0 5\r\nhello\r\nEND\r\n"),
    ("help\r\n", "ERROR\r\n"),
    ("\r\n", "ERROR\r\n"),
    ("\n", "ERROR\r\n"),
    ("GET greeting\r\n", "ERROR\r\n"),
    ("get\n", "ERROR\r\n"),
    ("set greeting\n", "ERROR\r\n"),
    (
        "incr greeting 1\r\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    ),
    ("append greeting 0 0 1\n", ""),
    ("!\r\n", "STORED\r\n"),
    (
        "get greeting\r\n",
        "VALUE greeting 0 6\r\nhello!\r\nEND\r\n",
    ),
    ("delete greeting\n", "DELETED\r\n"),
    ("get greeting\n", "END\r\n"),
];

/// Each letter leaves as it is typed, and nothing is typed before the answer is there.
fn types(cluster: &Cluster<'_>, id: u16, end: &str) -> Result<()> {
    let mut socket = TcpStream::connect(cluster.memcached(id))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    for (line, shown) in TYPED {
        for letter in line.bytes() {
            socket.write_all(&[letter])?;
        }
        let mut answer = vec![0; shown.len()];
        socket.read_exact(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(answer == shown, "replica {id}, {line:?}: {answer:?}");
    }
    socket.write_all(format!("quit{end}").as_bytes())?;
    let mut rest = String::new();
    socket.read_to_string(&mut rest)?;
    ensure!(rest.is_empty(), "behind quit: {rest:?}");
    Ok(())
}

#[test]
fn a_person_at_a_terminal_is_answered_line_by_line_and_forgiven() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let leader = cluster.wait_for_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        for (id, end) in [(leader, "\r\n"), ((leader + 1) % 3, "\n")] {
            types(cluster, id, end)?;
        }
        Ok(())
    });
}
