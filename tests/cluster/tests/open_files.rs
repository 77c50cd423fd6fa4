//! Limits on open files: connections, however many there are, take no descriptor that the replica needs for
//! its log, and wait where there is none.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::client::Client;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run, run_started};
use quorumwire_cluster_tests::open_files::raise_own_limit;
use quorumwire_cluster_tests::usage::{peak_bytes, processor_time, reset_peak, resident_bytes};

/// As a shell has it, where nobody has raised it.
const SHELLS_LIMIT: u64 = 1024;
const TIMEOUT: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;
/// A segment takes eight of these.
const VALUE_BYTES: usize = 512 << 10;
const WRITES: usize = 48;
/// More memory than a replica may take for a flood, a store of some megabytes and a snapshot of it.
const MEMORY_MAX: u64 = 256 * MIB;

fn plan() -> Plan {
    let mut plan = Plan::steady(3, Durability::Sync);
    plan.options.extend([("segment-mib", "4")]);
    plan
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

/// Connections to a port, half of which begin a request and do not end it.
fn hold(address: SocketAddr, count: usize, half: &[u8]) -> Result<Vec<TcpStream>> {
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        let mut socket = connect(address).with_context(|| format!("connection {number}"))?;
        if number % 2 == 0 {
            socket.write_all(half).ok(); // one too many may be closed already
        }
        held.push(socket);
    }
    Ok(held)
}

/// Some three thousand, at all ports.
fn flood(cluster: &Cluster<'_>, id: u16) -> Result<Vec<TcpStream>> {
    let mut held = Vec::new();
    for (address, count, half) in [
        (cluster.http(id), 200, &b"GET /v1/sta"[..]),
        (cluster.peer(id), 300, b"\0"),
        (cluster.memcached(id), 1000, b"set k 0 0 1000\r\nabc"),
        (cluster.redis(id), 900, b"*2\r\n$3\r\nGET\r\n$10\r\nab"),
        (cluster.native(id), 600, b"\0"),
    ] {
        held.extend(hold(address, count, half)?);
    }
    Ok(held)
}

/// The answer's first bytes; `says` is how it begins.
fn is_served(address: SocketAddr, asks: &[u8], says: &[u8]) -> Result<bool> {
    let mut socket = connect(address)?;
    socket.write_all(asks)?;
    let mut said = vec![0; says.len()];
    Ok(socket.read_exact(&mut said).is_ok() && said == says)
}

/// The number of the newest file of a replica's log.
fn newest_segment(cluster: &Cluster<'_>, id: u16) -> Result<u64> {
    let mut newest = 0;
    for entry in std::fs::read_dir(cluster.dir(id).join("group-0"))? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|it| it.strip_prefix("log-"));
        let number = number.and_then(|it| u64::from_str_radix(it, 16).ok());
        newest = newest.max(number.unwrap_or(0));
    }
    Ok(newest)
}

fn counters(cluster: &Cluster<'_>, id: u16, names: [&str; 3]) -> Result<[u64; 3]> {
    let mut found = None;
    cluster.wait_for("a status", || {
        found = cluster.status(id).ok();
        Ok(found.is_some())
    })?;
    let counters = found.context("waited for it")?.counters;
    Ok(names.map(|name| counters.get(name).copied().unwrap_or_default()))
}

const WITHOUT_DESCRIPTOR: [&str; 3] = [
    "client_accepts_without_descriptor",
    "peer_accepts_without_descriptor",
    "http_accepts_without_descriptor",
];

/// How many clients a replica says it takes, at both ports that tell.
fn clients_max(cluster: &Cluster<'_>, id: u16) -> Result<u64> {
    let mut socket = connect(cluster.memcached(id))?;
    socket.write_all(b"stats settings\r\nquit\r\n")?;
    let mut said = String::new();
    socket.read_to_string(&mut said)?;
    let line = said
        .lines()
        .find_map(|it| it.strip_prefix("STAT maxconns "));
    let told = line.context("maxconns")?.to_owned();
    let mut socket = connect(cluster.redis(id))?;
    socket.write_all(b"CONFIG GET maxclients\r\nQUIT\r\n")?;
    let mut said = String::new();
    socket.read_to_string(&mut said)?;
    let wanted = format!("\r\n${}\r\n{told}\r\n", told.len());
    ensure!(said.contains(&wanted), "{told} at memcached's port: {said}");
    Ok(told.parse()?)
}

/// Writes that take several files of the log, with a snapshot between them; the most files that were open.
fn write_much(cluster: &Cluster<'_>, id: u16, client: &mut Client) -> Result<u64> {
    let mut files = 0;
    for number in 0..WRITES {
        let key = format!("key-{}", number % 8);
        client.set(&key, &vec![b'x'; VALUE_BYTES]).expect("set");
        files = files.max(cluster.open_files(id)?);
        if number == WRITES / 2 {
            let http = cluster.http(id).to_string();
            cluster.wait_for("a snapshot", || {
                let done = cluster.try_command(&["snapshot", "--addr", &http])?;
                Ok(done.success)
            })?;
        }
    }
    Ok(files)
}

#[test]
fn connections_take_no_descriptor_that_the_log_needs() {
    raise_own_limit().expect("the limit of this test");
    run(plan(), |cluster| {
        for id in cluster.founders().collect::<Vec<_>>() {
            cluster.start_with_open_files(id, SHELLS_LIMIT)?;
        }
        cluster.wait_for_ready(&[0, 1, 2])?;
        let leader = cluster.wait_for_settled_leader()?;
        let most = clients_max(cluster, leader)?;
        ensure!((100..SHELLS_LIMIT).contains(&most), "{most} clients");
        let log = cluster.log(leader);
        ensure!(log.contains("fewer clients can connect"), "{log}");
        ensure!(log.contains(&format!("\"allowed\":{most}")), "{log}");

        let mut client = cluster.client(leader)?;
        let (term, pid) = (cluster.status(leader)?.term, cluster.pid(leader)?);
        let segments = newest_segment(cluster, leader)?;
        reset_peak(pid)?;
        let before = resident_bytes(pid)?;
        let held = flood(cluster, leader)?;
        ensure!(held.len() == 3000);
        let files = write_much(cluster, leader, &mut client)?;
        let begun = newest_segment(cluster, leader)? - segments;
        let peak = peak_bytes(pid)?;
        let (before_mib, peak_mib) = (before / MIB, peak / MIB);
        println!(
            "{most} clients; {files} files open; {begun} segments; {before_mib} MiB, then {peak_mib}"
        );
        ensure!(begun >= 4, "{begun} segments");
        ensure!(files > most && files < SHELLS_LIMIT, "{files} files open");
        ensure!(peak < before + MEMORY_MAX, "{before} bytes, then {peak}");
        ensure!(cluster.is_running(leader)?);
        cluster.wait_for("those who are too many to be refused", || {
            let refused = [
                "client_connections_refused_too_many",
                "peer_connections_closed_too_many",
                "snapshots_taken",
            ];
            let [clients, peers, snapshots] = counters(cluster, leader, refused)?;
            Ok(clients >= 2500 - most && peers > 100 && snapshots > 0)
        })?;
        let starved = counters(cluster, leader, WITHOUT_DESCRIPTOR)?;
        ensure!(starved == [0; 3], "there was one for each: {starved:?}");

        drop(held);
        cluster.wait_for("new clients to be served", || {
            Ok(is_served(cluster.memcached(leader), b"mn\r\n", b"MN\r\n")?
                && is_served(cluster.redis(leader), b"PING\r\n", b"+PONG\r\n")?)
        })?;
        let status = cluster.status(leader)?;
        ensure!(status.term == term, "term {term}, then {}", status.term);
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// Such as where the whole machine has none left.
#[test]
fn who_comes_while_no_descriptor_is_left_is_served_once_there_is_one() {
    run_started(plan(), |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        let mut client = cluster.client(leader)?;
        client.set("key", b"before").expect("set");
        let (term, pid) = (cluster.status(leader)?.term, cluster.pid(leader)?);
        let few = 8; // fewer than are open, so that there is none for anything new
        let usual = cluster.limit_open_files(leader, few)?;
        let mut waiting = Vec::new();
        for (address, asks, says) in [
            (cluster.memcached(leader), &b"mn\r\n"[..], &b"MN\r\n"[..]),
            (cluster.redis(leader), b"PING\r\n", b"+PONG\r\n"),
            (
                cluster.http(leader),
                b"GET /healthz HTTP/1.1\r\nhost: 10.0.0.1\r\n\r\n",
                b"HTTP/1.1 200",
            ),
        ] {
            let mut socket = connect(address)?;
            socket.write_all(asks)?;
            waiting.push((socket, says));
        }
        let silent = [
            connect(cluster.native(leader))?,
            connect(cluster.peer(leader))?,
        ];
        for port in ["http", "peer"] {
            let said = format!("\"port\":\"{port}\"");
            cluster.wait_for(&format!("a warning of the port {port}"), || {
                Ok(cluster.log(leader).contains(&said))
            })?;
        }
        let before = processor_time(pid)?;
        cluster.stays("the replica serves", Duration::from_secs(2), || {
            client.set("key", b"meanwhile").expect("set");
            std::thread::sleep(Duration::from_millis(50));
            Ok(true)
        })?;
        let worked = processor_time(pid)?.saturating_sub(before);
        ensure!(worked < Duration::from_secs(1), "{worked:?} in two seconds");

        cluster.limit_open_files(leader, usual)?;
        for (mut socket, says) in waiting {
            let mut said = vec![0; says.len()];
            socket.read_exact(&mut said)?;
            ensure!(said == says, "{}", String::from_utf8_lossy(&said));
        }
        let starved = counters(cluster, leader, WITHOUT_DESCRIPTOR)?;
        // They are looked at 50 times a second at most, at each of three ports.
        let is_some = |count: &u64| (1..20_000).contains(count);
        ensure!(starved.iter().all(is_some), "{starved:?}");
        let said = cluster
            .log(leader)
            .matches("no file descriptor is left")
            .count();
        ensure!((3..10).contains(&said), "said {said} times");
        ensure!(cluster.status(leader)?.term == term);
        drop(silent);
        Ok(())
    });
}

#[test]
fn a_limit_that_leaves_no_room_for_any_client_is_refused_at_the_start() {
    run(plan(), |cluster| {
        let said = cluster.try_with_open_files(0, 256)?;
        ensure!(!said.success);
        for wanted in ["connections-max", "at most 256 files", "LimitNOFILE"] {
            ensure!(
                said.stderr.contains(wanted),
                "no {wanted:?}: {}",
                said.stderr
            );
        }
        Ok(())
    });
}

/// No file of the log is lost for it: another replica leads meanwhile, and this one goes on where it was.
#[test]
fn a_log_that_finds_no_descriptor_waits_and_the_replica_lives() {
    run_started(plan(), |cluster| {
        let old = cluster.wait_for_settled_leader()?;
        let mut client = cluster.client(old)?;
        client.set("key", b"before").expect("set");
        let pid = cluster.pid(old)?;
        let usual = cluster.limit_open_files(old, 8)?;
        let value = vec![b'x'; VALUE_BYTES];
        let is_said = |text: &str| cluster.log(old).contains(text);
        cluster.wait_for("the log to need a file", || {
            // Done until then; what became of the last is nobody's business here.
            let _outcome = client.set("large", &value);
            Ok(is_said("no file descriptor is left for the log"))
        })?;
        let leader = cluster.wait_for_leader_other_than(old)?;
        cluster
            .client(leader)?
            .set("key", b"meanwhile")
            .expect("set");
        cluster.limit_open_files(old, usual)?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        cluster.wait_for("the log to go on", || {
            Ok(is_said("the log can open files again"))
        })?;
        ensure!(cluster.is_running(old)? && cluster.pid(old)? == pid);
        let [times, full, _] = counters(
            cluster,
            old,
            ["log_without_descriptor", "log_disk_full", "log_jobs"],
        )?;
        ensure!(times > 0 && full == 0, "{times}, {full}");
        ensure!(cluster.get("key")?.as_deref() == Some("meanwhile"));
        Ok(())
    });
}
