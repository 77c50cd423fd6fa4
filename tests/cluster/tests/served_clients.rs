//! Clients of a served program that come and go, take nothing, or are slow: the real Redis.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::served::REDIS;

const PATIENCE: Duration = Duration::from_secs(30);
const CONNECTIONS: u64 = 5000;
/// At once, of each of those who open and close them.
const AT_ONCE: u64 = 50;
const VALUE_BYTES: usize = 1 << 20;

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn say(stream: &mut TcpStream, line: &str, expected: &str) -> Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer)?;
    ensure!(answer == expected.as_bytes(), "{line}: {answer:?}");
    Ok(())
}

/// One line that is answered.
fn ask(address: SocketAddr, line: &str) -> Result<String> {
    let mut stream = connect(address)?;
    stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn wait_for_programs(cluster: &Cluster<'_>) -> Result<()> {
    cluster.wait_for("three programs", || {
        let mut answers = (0..3).map(|id| ask(cluster.redis(id), "PING"));
        Ok(answers.all(|said| said.is_ok_and(|it| it.starts_with("+PONG"))))
    })
}

fn counted(cluster: &Cluster<'_>, id: u16, name: &str) -> Result<u64> {
    let counters = cluster.status(id)?.counters;
    let count = counters.get(name).copied();
    count.with_context(|| format!("{name} in {counters:?}"))
}

/// Each program has this many clients.
fn wait_for_clients(cluster: &Cluster<'_>, count: usize) -> Result<()> {
    let expected = format!("connected_clients:{count}\r\n");
    cluster.wait_for("the clients that are left", || {
        // Whoever asks is one more.
        let asked = ask(cluster.redis(0), "INFO clients")?;
        Ok(asked.contains(&expected))
    })
}

/// Opens and closes connections, some at once, each in another way.
fn come_and_go(address: SocketAddr, count: u64) -> Result<()> {
    for round in 0..count / AT_ONCE {
        let mut open = Vec::new();
        for _ in 0..AT_ONCE {
            open.push(connect(address)?);
        }
        for (number, mut stream) in open.into_iter().enumerate() {
            match (number as u64 + round) % 4 {
                0 => say(&mut stream, "INCR visits", ":").context("a count")?,
                1 => stream.write_all(b"INCR vis")?, // and is gone within its command
                2 => say(&mut stream, "QUIT", "+OK\r\n")?,
                _ => {} // says nothing
            }
        }
    }
    Ok(())
}

#[test]
fn five_thousand_connections_are_opened_and_closed() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        ..Plan::new(3, Durability::Memory)
    };
    run_started(plan, |cluster| {
        wait_for_programs(cluster)?;
        let mut stays = connect(cluster.redis(2))?;
        thread::scope(|scope| -> Result<()> {
            let workers: Vec<_> = (0..2)
                .map(|id| {
                    let address = cluster.redis(id);
                    scope.spawn(move || come_and_go(address, CONNECTIONS / 2))
                })
                .collect();
            while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
                say(&mut stays, "PING", "+PONG\r\n")?;
            }
            let mut workers = workers.into_iter();
            workers.try_for_each(|it| it.join().expect("a client"))
        })?;
        let accepted: u64 = (0..2)
            .map(|id| counted(cluster, id, "served_connections_accepted"))
            .sum::<Result<_>>()?;
        ensure!(accepted >= CONNECTIONS, "{accepted}");
        wait_for_clients(cluster, 2)?;
        let visits = format!("${}\r\n{}\r\n", 4, CONNECTIONS / 4);
        for id in 0..3 {
            let said = ask(cluster.redis(id), "GET visits")?;
            ensure!(said.starts_with(&visits), "replica {id}: {said}");
        }
        Ok(())
    });
}

#[test]
fn who_takes_nothing_is_cut_and_who_is_slow_is_served() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        ..Plan::new(3, Durability::Memory)
    };
    run_started(plan, |cluster| {
        wait_for_programs(cluster)?;
        let value = "x".repeat(VALUE_BYTES);
        let mut served = connect(cluster.redis(0))?;
        let set = format!("*3\r\n$3\r\nSET\r\n$4\r\nlong\r\n${VALUE_BYTES}\r\n{value}");
        say(&mut served, &set, "+OK\r\n")?;
        let mut slow = connect(cluster.redis(0))?;
        let mut mute = connect(cluster.redis(0))?;
        mute.write_all("GET long\r\n".repeat(100).as_bytes())?;
        // Meanwhile one sends a byte at a time, and others are served.
        for byte in b"PING\r\n" {
            slow.write_all(&[*byte])?;
            say(&mut served, "PING", "+PONG\r\n")?;
            thread::sleep(Duration::from_millis(200));
        }
        let mut answer = [0; 7];
        slow.read_exact(&mut answer)?;
        ensure!(&answer == b"+PONG\r\n");
        cluster.wait_for("the one that takes nothing to be cut", || {
            Ok(counted(cluster, 0, "served_connections_cut_slow")? == 1)
        })?;
        let mut taken = Vec::new();
        mute.read_to_end(&mut taken).ok(); // a reset is an end, too
        ensure!(taken.len() < 100 * VALUE_BYTES, "{}", taken.len());
        drop((slow, served));
        // The programs know of it.
        wait_for_clients(cluster, 1)?;
        let digests: Vec<String> = (0..3)
            .map(|id| ask(cluster.redis(id), "DEBUG DIGEST"))
            .collect::<Result<_>>()?;
        ensure!(digests.iter().all(|it| *it == digests[0]), "{digests:?}");
        Ok(())
    });
}

/// Whether this replica hangs up on whoever connects.
fn hangs_up(address: SocketAddr) -> bool {
    ask(address, "PING").map_or(true, |said| said.is_empty()) // or resets
}

#[test]
fn followers_that_refuse_leave_clients_to_the_leader_whoever_that_is() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        options: vec![("followers", "refuse")],
        ..Plan::new(3, Durability::Memory)
    };
    run_started(plan, |cluster| {
        let serves_alone = |cluster: &Cluster<'_>, leader: u16| {
            cluster.wait_for("a leader that serves, and it alone", || {
                let is_served =
                    ask(cluster.redis(leader), "PING").is_ok_and(|said| said.starts_with("+PONG"));
                let mut others = (0..3).filter(|id| *id != leader);
                Ok(is_served && others.all(|id| hangs_up(cluster.redis(id))))
            })
        };
        let first = cluster.wait_for_leader()?;
        serves_alone(cluster, first)?;
        let mut client = connect(cluster.redis(first))?;
        say(&mut client, "SET kept yes", "+OK\r\n")?;
        cluster.network().isolate(first)?;
        ensure!(client.read(&mut [0])? == 0, "a leader no longer is hung up");
        let next = cluster.wait_for_leader_other_than(first)?;
        serves_alone(cluster, next)?;
        ensure!(ask(cluster.redis(next), "GET kept")?.starts_with("$3\r\nyes"));
        ensure!(counted(cluster, first, "served_connections_refused_by_follower")? > 0);
        cluster.network().heal()?;
        let settled = cluster.wait_for_leader()?;
        serves_alone(cluster, settled)?;
        ensure!(ask(cluster.redis(settled), "GET kept")?.starts_with("$3\r\nyes"));
        Ok(())
    });
}
