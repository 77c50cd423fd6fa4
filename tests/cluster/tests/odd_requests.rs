//! Requests that are longer than they may be, that no client sends, or whose leader hangs: what is answered,
//! and when.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::client::Outcome;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::datagrams::Datagrams;
use quorumwire_cluster_tests::status::page;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Beyond all that is passed over, or read, of one request.
const MUCH: usize = 8 << 20;

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

/// All that comes until `end` has come.
fn hear(socket: &mut TcpStream, end: &str) -> Result<String> {
    let mut heard = Vec::new();
    while !heard.ends_with(end.as_bytes()) {
        let mut byte = [0];
        let told = || String::from_utf8_lossy(&heard).into_owned();
        socket.read_exact(&mut byte).with_context(told)?;
        heard.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

/// A browser's request ends its connection, at both ports, and nothing in it is done.
fn browsers_do_nothing(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let (memcached, redis) = (cluster.memcached(id), cluster.redis(id));
    for (port, body) in [
        (memcached, "set viaweb 0 0 5\r\nowned\r\n"),
        (redis, "SET viaweb owned\r\n"),
    ] {
        for head in ["POST / HTTP/1.1\r\nHost: x\r\n", "Host: x\r\n"] {
            let mut socket = connect(port)?;
            socket.write_all(format!("{head}Content-Type: text/plain\r\n\r\n{body}").as_bytes())?;
            let mut heard = Vec::new();
            match socket.read_to_end(&mut heard) {
                Err(error) if error.kind() != ErrorKind::ConnectionReset => {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => ensure!(heard.is_empty(), "{}", heard.escape_ascii()),
            }
        }
    }
    ensure!(cluster.get("viaweb")?.is_none(), "a browser wrote");
    Ok(())
}

/// Too long a string is answered with the limit, and the connection goes on, also within a transaction.
fn long_strings_are_passed_over(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let mut socket = connect(cluster.redis(id))?;
    let value = "v".repeat(2 << 20);
    let set = format!(
        "*3\r\n$3\r\nSET\r\n$4\r\nlong\r\n${}\r\n{value}\r\n",
        value.len()
    );
    let told = "-ERR string of 2097152 bytes is longer than 1048576 bytes (proto-max-bulk-len)\r\n";
    socket.write_all(format!("{set}PING\r\n").as_bytes())?;
    let heard = hear(&mut socket, "+PONG\r\n")?;
    ensure!(heard == format!("{told}+PONG\r\n"), "{heard}");
    socket.write_all(format!("MULTI\r\nSET a 1\r\n{set}EXEC\r\nGET a\r\n").as_bytes())?;
    let heard = hear(&mut socket, "$-1\r\n")?;
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    ensure!(
        heard == format!("+OK\r\n+QUEUED\r\n{told}{aborted}$-1\r\n"),
        "{heard}"
    );
    let many = "SET a 1\r\n".repeat(2049);
    socket.write_all(format!("MULTI\r\n{many}EXEC\r\nGET a\r\n").as_bytes())?;
    let heard = hear(&mut socket, "$-1\r\n")?;
    let limit = "-ERR transaction has more than 2048 commands\r\n";
    ensure!(heard.contains(&format!("{limit}{aborted}")), "{heard}");
    Ok(())
}

/// A long read is answered; one beyond the limit is told so, although its client is still sending.
fn long_reads_are_answered(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let mut socket = connect(cluster.memcached(id))?;
    socket.write_all(b"set key-00017 0 0 1\r\nx\r\n")?;
    hear(&mut socket, "STORED\r\n")?;
    let padding = "k".repeat(32);
    let keys: Vec<String> = (0..20_000)
        .map(|number| format!("key-{number:05}-{padding}"))
        .collect();
    let keys = keys.join(" ");
    socket.write_all(format!("get key-00017 {keys}\r\n").as_bytes())?;
    let heard = hear(&mut socket, "END\r\n")?;
    ensure!(heard == "VALUE key-00017 0 1\r\nx\r\nEND\r\n", "{heard}");
    let endless = format!("get {}", "key ".repeat(MUCH / 4));
    socket.write_all(endless.as_bytes())?;
    let mut heard = String::new();
    socket.read_to_string(&mut heard)?;
    ensure!(
        heard == "CLIENT_ERROR a get has at most 1048576 bytes and 32768 keys\r\n",
        "{heard}"
    );
    Ok(())
}

/// A write that was on its way to a leader that hangs is answered when another leads, and not when its
/// connection is given up, which takes much longer.
fn a_hanging_leader_is_not_waited_for(cluster: &mut Cluster<'_>, leader: u16) -> Result<()> {
    let follower = (leader + 1) % 3;
    let mut socket = connect(cluster.memcached(follower))?;
    cluster.pause(leader)?;
    socket.write_all(b"set hangs 0 0 1\r\nx\r\n")?;
    let heard = hear(&mut socket, "\r\n")?;
    ensure!(heard.starts_with("SERVER_ERROR outcome unknown"), "{heard}");
    let (_, metrics) = page(cluster.http(follower), "/metrics")?;
    let given_up = "quorumwire_peer_connections_closed_silent_total 0";
    ensure!(
        metrics.lines().any(|line| line == given_up),
        "the connection was given up first"
    );
    cluster.wait_for_leader_other_than(leader)?;
    socket.write_all(b"set goes-on 0 0 1\r\nx\r\n")?;
    let heard = hear(&mut socket, "\r\n")?;
    ensure!(heard == "STORED\r\n", "{heard}");
    let third = 3 - leader - follower;
    cluster.pause(third)?;
    datagrams_hear_that_there_is_no_leader(cluster, follower)?;
    cluster.resume(third)?;
    cluster.resume(leader)
}

/// Nothing is kept for a client that speaks UDP, so it hears at once that nobody leads; not that it asks for
/// too much.
fn datagrams_hear_that_there_is_no_leader(cluster: &Cluster<'_>, alone: u16) -> Result<()> {
    cluster.wait_for("the leader to be missed", || {
        Ok(cluster.status(alone)?.leader.is_none())
    })?;
    let (to, mut client) = (cluster.memcached(alone), Datagrams::new(TIMEOUT)?);
    let set = client.set(to, "datagram", b"x").map(drop);
    for outcome in [set, client.get(to, "datagram").map(drop)] {
        let Outcome::Refused(why) = outcome else {
            bail!("{outcome:?}");
        };
        ensure!(why.starts_with("SERVER_ERROR no leader"), "{why}");
    }
    Ok(())
}

#[test]
fn clients_hear_what_is_wrong_and_go_on() {
    let mut plan = Plan::new(3, Durability::Memory);
    // So that there is time enough between an election and the end of a silent connection.
    plan.options.push(("election-timeout-ms", "1000"));
    plan.switches.push("memcached-udp");
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        for id in [leader, (leader + 1) % 3] {
            browsers_do_nothing(cluster, id)?;
            long_strings_are_passed_over(cluster, id)?;
            long_reads_are_answered(cluster, id)?;
        }
        let leader = cluster.wait_for_leader()?;
        a_hanging_leader_is_not_waited_for(cluster, leader)
    });
}
