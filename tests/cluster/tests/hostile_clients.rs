//! Clients that mean harm, or do it: they ask for much and take nothing, wait for ever, do not go. What a
//! well-behaved client sees meanwhile, and what the server's memory is.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::client::Client;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::status::page_within;

const TIMEOUT: Duration = Duration::from_secs(10);
/// A process that does not say in this time that it lives is taken for dead.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

fn plan() -> Plan {
    Plan::new(3, Durability::Memory)
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

/// Says this; what has no room is not said, for nobody takes the answers.
fn say(socket: &mut TcpStream, text: &[u8]) -> Result<()> {
    socket.set_write_timeout(Some(Duration::from_millis(200)))?;
    match socket.write_all(text) {
        Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(error.into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The same to a server that may close this very connection meanwhile, because all together hold too much.
fn say_or_be_closed(socket: &mut TcpStream, text: &[u8]) -> Result<()> {
    say(socket, text).or_else(|error| {
        let kind = error
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        let is_closed = matches!(
            kind,
            Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
        );
        if is_closed { Ok(()) } else { Err(error) }
    })
}

/// Asks for a line.
fn ask(socket: &mut TcpStream, text: &str) -> Result<String> {
    socket.write_all(text.as_bytes())?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// The most memory that a replica's process has had, in MiB.
fn peak_mib(cluster: &Cluster<'_>, id: u16) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", cluster.pid(id)?))?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kib = line.and_then(|it| it.split_whitespace().next());
    Ok(kib.context("VmHWM")?.parse::<u64>()? >> 10)
}

/// What a well-behaved client sees: so many writes, the slowest of them, and the most memory that a replica
/// has had by then.
fn write(
    cluster: &Cluster<'_>,
    client: &mut Client,
    count: u64,
    watched: u16,
) -> Result<(Duration, u64)> {
    let mut slowest = Duration::ZERO;
    for number in 0..count {
        let began = Instant::now();
        client
            .set(&format!("well-{number}"), b"behaved")
            .expect("set");
        slowest = slowest.max(began.elapsed());
    }
    Ok((slowest, peak_mib(cluster, watched)?))
}

#[test]
fn long_answers_that_nobody_takes_are_not_made_ahead() {
    run_started(plan(), |cluster| {
        let leader = cluster.wait_for_leader()?;
        let mut client = cluster.client(leader)?;
        let idle: Vec<_> = (0..400)
            .map(|_| connect(cluster.redis(leader)))
            .collect::<Result<_>>()?;
        let term = cluster.status(leader)?.term;
        let (_, before) = write(cluster, &mut client, 100, leader)?;
        let mut greedy = Vec::new();
        for asks in [
            "CLIENT LIST\r\n",
            "COMMAND DOCS\r\n",
            "INFO\r\n",
            "stats conns\r\n",
        ] {
            for _ in 0..4 {
                let is_redis = !asks.starts_with("stats");
                let port = if is_redis {
                    cluster.redis(leader)
                } else {
                    cluster.memcached(leader)
                };
                let mut socket = connect(port)?;
                if is_redis {
                    say(&mut socket, b"WAIT 7 300\r\n")?; // what is answered meanwhile has to wait
                }
                say(&mut socket, asks.repeat(1000).as_bytes())?;
                greedy.push(socket);
            }
        }
        let (slowest, most) = write(cluster, &mut client, 500, leader)?;
        println!("slowest write: {slowest:?}, memory: {before} MiB, then {most} MiB");
        ensure!(most < before + 100, "{before} MiB, then {most} MiB");
        ensure!(cluster.status(leader)?.term == term);
        drop((idle, greedy));
        Ok(())
    });
}

#[test]
fn a_connection_that_takes_nothing_is_killed_at_once() {
    run_started(plan(), |cluster| {
        let leader = cluster.wait_for_leader()?;
        cluster
            .client(leader)?
            .set("large", &vec![b'x'; 1 << 20])
            .expect("set");
        let mut deaf = connect(cluster.redis(leader))?;
        let id = ask(&mut deaf, "CLIENT ID\r\n")?;
        let id = id.strip_prefix(':').context("a number")?.to_owned();
        say(&mut deaf, "GET large\r\n".repeat(100).as_bytes())?;
        let mut other = connect(cluster.redis(leader))?;
        ensure!(ask(&mut other, &format!("CLIENT KILL ID {id}\r\n"))? == ":1");
        ensure!(
            ask(&mut other, &format!("CLIENT KILL ID {id}\r\n"))? == ":0",
            "it is gone"
        );
        ensure!(cluster.counter(leader, "client_connections_killed")? == 1);
        // Who kills itself hears that it did.
        let own = ask(&mut other, "CLIENT ID\r\n")?.replace(':', "");
        let killed = ask(&mut other, &format!("CLIENT KILL ID {own} SKIPME no\r\n"))?;
        ensure!(killed == ":1", "{killed}");
        ensure!(other.read(&mut [0])? == 0, "and is closed");
        Ok(())
    });
}

#[test]
fn who_waits_for_ever_holds_up_no_stop() {
    let mut plan = plan();
    plan.options = vec![("drain-timeout-ms", "20000")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        let mut waiting = Vec::new();
        for _ in 0..50 {
            let mut socket = connect(cluster.redis(leader))?;
            socket.write_all(b"SET key value\r\nWAIT 7 0\r\n")?;
            ensure!(ask(&mut socket, "")? == "+OK");
            waiting.push(socket);
        }
        let began = Instant::now();
        cluster.terminate(leader)?;
        let took = began.elapsed();
        ensure!(took < Duration::from_secs(8), "it took {took:?}");
        for mut socket in waiting {
            let said = ask(&mut socket, "")?;
            ensure!([":1", ":2"].contains(&said.as_str()), "{said}");
        }
        Ok(())
    });
}

/// A connection that waits for replicas is given up once its client is, whatever stands behind the wait.
#[test]
fn who_is_gone_does_not_go_on_waiting() {
    const WAITING: usize = 20;
    run_started(plan(), |cluster| {
        let leader = cluster.wait_for_leader()?;
        let mut other = connect(cluster.redis(leader))?;
        let mut clients = |name: &str| -> Result<usize> {
            let length = ask(&mut other, "INFO clients\r\n")?;
            let length = length
                .strip_prefix('$')
                .context("a text")?
                .parse::<usize>()?;
            let mut text = vec![0; length + 2];
            other.read_exact(&mut text)?;
            let text = String::from_utf8(text)?;
            let mut lines = text.lines();
            let value = lines.find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
            Ok(value.context("it is told")?.parse()?)
        };
        for behind in ["", "SET behind 1\r\n"] {
            let mut waiting = Vec::new();
            for _ in 0..WAITING {
                let mut socket = connect(cluster.redis(leader))?;
                say(&mut socket, format!("WAIT 7 0\r\n{behind}").as_bytes())?;
                waiting.push(socket);
            }
            cluster.wait_for("all to wait", || Ok(clients("blocked_clients")? == WAITING))?;
            drop(waiting);
            cluster.wait_for("none to be left", || {
                Ok(clients("blocked_clients")? == 0 && clients("connected_clients")? == 1)
            })?;
        }
        // What was sent before the end is carried out, as ever.
        ensure!(cluster.get("behind")?.as_deref() == Some("1"));
        Ok(())
    });
}

/// Asks as whoever restarts a process that does not answer; how long it took.
fn probe(cluster: &Cluster<'_>, id: u16) -> Result<Duration> {
    let begun = Instant::now();
    let (code, body) = page_within(cluster.http(id), "/healthz", PROBE_TIMEOUT)?;
    ensure!(code == 200, "{code}: {body}");
    Ok(begun.elapsed())
}

/// How many turns a replica's event loop has had, and how many of them took longer than half an election
/// timeout.
fn turns(cluster: &Cluster<'_>, id: u16) -> Result<(u64, u64)> {
    let (_, metrics) = page_within(cluster.http(id), "/metrics", PROBE_TIMEOUT)?;
    let within = |bound: &str| -> Result<u64> {
        let begin = format!("quorumwire_turn_seconds_bucket{{le=\"{bound}\"}} ");
        let count = metrics.lines().find_map(|it| it.strip_prefix(&begin));
        Ok(count.with_context(|| begin.clone())?.parse()?)
    };
    let all = within("+Inf")?;
    Ok((all, all - within("0.2")?))
}

/// Each of these requests is milliseconds of work, and hundreds come at once: neither the leader nor its
/// followers stop for them, and others are served in between.
#[test]
fn expensive_requests_keep_nobody_from_leading_and_others_are_served_meanwhile() {
    run_started(plan(), |cluster| {
        let leader = cluster.wait_for_leader()?;
        let mut client = cluster.client(leader)?;
        let mut other = connect(cluster.redis(leader))?;
        for first in (0..50_000).step_by(1000) {
            let pairs = (first..first + 1000).map(|number| format!(" k{number} 1"));
            let said = ask(
                &mut other,
                &format!("MSET{}\r\n", pairs.collect::<String>()),
            )?;
            ensure!(said == "+OK", "{said}");
        }
        let mut bitop = "BITOP OR to".to_owned();
        for number in 0..20 {
            ask(&mut other, &format!("SETRANGE v{number} 1048575 x\r\n"))?;
            write!(bitop, " v{number}").expect("strings take everything");
        }
        bitop.push_str("\r\n");
        let term = cluster.status(leader)?.term;
        let elections = |cluster: &Cluster<'_>| -> Result<u64> {
            let each = (0..3).map(|id| cluster.counter(id, "elections_started"));
            each.sum()
        };
        let before = elections(cluster)?;
        let mut greedy = Vec::new();
        for id in [leader, (leader + 1) % 3] {
            for asks in ["KEYS zz*\r\n".repeat(1000), bitop.repeat(500)] {
                let mut socket = connect(cluster.redis(id))?;
                say(&mut socket, asks.as_bytes())?;
                greedy.push(socket);
            }
        }
        let (mut slowest, mut slowest_probe) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..10 {
            slowest = slowest.max(write(cluster, &mut client, 1, leader)?.0);
            slowest_probe = slowest_probe.max(probe(cluster, leader)?);
        }
        println!("slowest write: {slowest:?}, slowest probe: {slowest_probe:?}");
        for id in [leader, (leader + 1) % 3] {
            let (all, long) = turns(cluster, id)?;
            println!("replica {id}: {long} of {all} turns were long");
            // The machine may have been busy with others for one or two.
            ensure!(
                long * 100 <= all,
                "replica {id}: {long} of {all} turns were long"
            );
        }
        for (counter, of) in [
            ("turns_out_of_time_for_searches", leader),
            ("turns_out_of_time_for_applying", leader),
        ] {
            let count = cluster.counter(of, counter)?;
            println!("{counter}: {count}");
            ensure!(count > 0, "{counter}");
        }
        ensure!(cluster.status(leader)?.term == term);
        ensure!(elections(cluster)? == before, "somebody stood for election");
        // They are still at it, or this has shown nothing.
        let searches = cluster.counter(leader, "turns_out_of_time_for_searches")?;
        cluster.wait_for("more searches", || {
            probe(cluster, leader)?;
            Ok(cluster.counter(leader, "turns_out_of_time_for_searches")? > searches)
        })?;
        drop(greedy);
        Ok(())
    });
}

/// Each may hold some megabytes of answers; together they may not hold all that there is, whichever replica
/// they ask.
#[test]
fn those_who_take_nothing_hold_no_more_together_than_they_may() {
    let mut plan = plan();
    plan.options = vec![("client-buffers-mib", "16")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        let mut client = cluster.client(leader)?;
        client.set("large", &vec![b'x'; 1 << 20]).expect("set");
        for id in [leader, (leader + 1) % 3] {
            let (_, before) = write(cluster, &mut client, 100, id)?;
            let mut deaf = Vec::new();
            for _ in 0..600 {
                let mut socket = connect(cluster.redis(id))?;
                say_or_be_closed(&mut socket, "GET large\r\n".repeat(20).as_bytes())?;
                deaf.push(socket);
            }
            // And such as announce much, and send all but the end of it.
            for _ in 0..60 {
                let mut socket = connect(cluster.memcached(id))?;
                say_or_be_closed(&mut socket, b"set k 0 0 1048576\r\n")?;
                say_or_be_closed(&mut socket, &vec![b'y'; (1 << 20) - 1])?;
                deaf.push(socket);
            }
            let (slowest, most) = write(cluster, &mut client, 300, id)?;
            println!("slowest write: {slowest:?}, memory: {before} MiB, then {most} MiB");
            ensure!(
                most < before + 80,
                "replica {id}: {before} MiB, then {most} MiB"
            );
            let closed = cluster.counter(id, "client_connections_closed_for_memory")?;
            ensure!(closed > 50, "replica {id}: {closed} were closed");
        }
        ensure!(
            client
                .get("large")
                .expect("get")
                .is_some_and(|it| it.len() == 1 << 20)
        );
        Ok(())
    });
}

/// A name of a command may be as long as a request; it is not kept and shown at that length.
#[test]
fn what_is_shown_of_a_client_is_short() {
    run_started(plan(), |cluster| {
        let mut long = connect(cluster.redis(0))?;
        let name = "x".repeat(500_000);
        long.write_all(format!("*1\r\n${}\r\n{name}\r\n", name.len()).as_bytes())?;
        let said = ask(&mut long, "")?;
        ensure!(said.starts_with("-ERR unknown command"), "{said}");
        let mut other = connect(cluster.redis(0))?;
        let head = ask(&mut other, "CLIENT LIST\r\n")?;
        let bytes: usize = head.strip_prefix('$').context("a text")?.parse()?;
        ensure!(bytes < 1000, "{bytes} bytes for two clients");
        Ok(())
    });
}

#[test]
fn more_keys_than_a_client_may_watch_are_refused_however_they_come() {
    run_started(plan(), |cluster| {
        let leader = cluster.wait_for_leader()?;
        for id in [leader, (leader + 1) % 3] {
            let mut socket = connect(cluster.redis(id))?;
            let words = (0..600).map(|key| format!(" key-{key}"));
            let watch = format!("WATCH{}\r\n", words.collect::<String>());
            socket.write_all(watch.repeat(3).as_bytes())?;
            ensure!(ask(&mut socket, "")? == "+OK");
            for _ in 0..2 {
                let said = ask(&mut socket, "")?;
                ensure!(said.starts_with("-ERR more than"), "{said}");
            }
        }
        Ok(())
    });
}

/// Commands about connections look at their words in turn, and some at every connection for each.
#[test]
fn a_command_about_the_connection_has_few_words() {
    run_started(plan(), |cluster| {
        let many = |first: &str, more: &str, count: usize| {
            let words: Vec<_> = first.split(' ').collect();
            let more: Vec<_> = more.split(' ').collect();
            let mut text = format!("*{}\r\n", words.len() + count * more.len());
            for word in words
                .iter()
                .chain(more.iter().cycle().take(count * more.len()))
            {
                write!(text, "${}\r\n{word}\r\n", word.len()).expect("strings take everything");
            }
            text
        };
        let mut socket = connect(cluster.redis(0))?;
        for (first, more) in [
            ("CONFIG SET", "maxmemory 1"),
            ("CONFIG GET", "x*"),
            ("CLIENT KILL", "ID 1"),
            ("CLIENT LIST ID", "1"),
            ("HELLO 3", "SETNAME a"),
            ("INFO", "x"),
        ] {
            for count in [128, 30_000] {
                let said = ask(&mut socket, &many(first, more, count))?;
                let expected = "-ERR command has more than 128 words";
                ensure!(said == expected, "{first}, {count} times: {said}");
            }
        }
        // As many as there may be; what has a limit of its own; and a transaction that is spoiled by too
        // many.
        ensure!(ask(&mut socket, &many("CLIENT KILL", "ID 9999", 63))? == ":0");
        ensure!(ask(&mut socket, &many("COMMAND GETKEYS MSET", "k v", 1000))? == "*1000");
        let mut socket = connect(cluster.redis(0))?;
        ensure!(ask(&mut socket, &many("WATCH", "k", 1000))? == "+OK");
        ensure!(ask(&mut socket, "MULTI\r\n")? == "+OK");
        ensure!(ask(&mut socket, &many("PING", "x", 128))?.starts_with("-ERR command has"));
        ensure!(ask(&mut socket, "EXEC\r\n")?.starts_with("-EXECABORT"));
        Ok(())
    });
}
