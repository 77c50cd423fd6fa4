//! What makes no sense at the ports of memcached and Redis clients is refused, and counted under its reason,
//! while others are served.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

const TIMEOUT: Duration = Duration::from_secs(10);
const REASONS: [&str; 5] = [
    "malformed",
    "too_long",
    "unknown_command",
    "not_served",
    "unauthenticated",
];

/// What is sent, how the answer begins, and the reason; none: it breaks off.
type Row = (Vec<u8>, &'static str, Option<&'static str>);

fn row(text: &[u8], answer: &'static str, why: &'static str) -> Row {
    (text.to_vec(), answer, Some(why))
}

fn cut(text: &[u8]) -> Row {
    (text.to_vec(), "", None)
}

fn of_memcached() -> Vec<Row> {
    let too_large = [
        b"set k 0 0 1048577\r\n".to_vec(),
        vec![b'x'; 1_048_577],
        b"\r\nmn\r\n".to_vec(),
    ]
    .concat();
    vec![
        row(b"set k 0 0\r\n", "ERROR", "malformed"),
        row(
            b"incr k one\r\n",
            "CLIENT_ERROR invalid numeric",
            "malformed",
        ),
        row(b"get \x01\r\n", "CLIENT_ERROR bad command", "malformed"),
        row(
            b"set k 0 0 2\r\nabcd",
            "CLIENT_ERROR bad data chunk",
            "malformed",
        ),
        row(b"mg k v v\r\n", "CLIENT_ERROR duplicate flag", "malformed"),
        row(
            &too_large,
            "SERVER_ERROR object too large for cache\r\nMN\r\n",
            "too_long",
        ),
        row(&[b'x'; 3000], "CLIENT_ERROR line too long", "too_long"),
        row(b"nonsense\r\n", "ERROR", "unknown_command"),
        row(b"\r\n", "ERROR", "unknown_command"),
        row(
            b"\x80\x01\0\0",
            "CLIENT_ERROR the binary protocol",
            "not_served",
        ),
        row(b"shutdown\r\n", "ERROR: shutdown not enabled", "not_served"),
        cut(b"set k 0 0 100\r\nabc"),
        cut(b"get k"),
    ]
}

fn of_redis() -> Vec<Row> {
    let many_words = format!("CLIENT LIST ID{}\r\n", " 1".repeat(200));
    vec![
        row(
            b"*x\r\n",
            "-ERR Protocol error: invalid multibulk",
            "malformed",
        ),
        row(
            b"*1\r\n:1\r\n",
            "-ERR Protocol error: expected '$'",
            "malformed",
        ),
        row(
            b"*1\r\n$-5\r\n",
            "-ERR Protocol error: invalid bulk",
            "malformed",
        ),
        row(
            b"SET \"k\r\n",
            "-ERR Protocol error: unbalanced",
            "malformed",
        ),
        row(b"GET\r\n", "-ERR wrong number of arguments", "malformed"),
        row(
            b"*2000000\r\n",
            "-ERR Protocol error: invalid multibulk",
            "too_long",
        ),
        row(
            b"*1\r\n$999999999\r\n",
            "-ERR Protocol error: invalid bulk",
            "too_long",
        ),
        row(
            &[b'x'; 70_000],
            "-ERR Protocol error: too big inline",
            "too_long",
        ),
        row(
            many_words.as_bytes(),
            "-ERR command has more than",
            "too_long",
        ),
        row(b"NOSUCH 1\r\n", "-ERR unknown command", "unknown_command"),
        row(
            b"CLIENT NOSUCH\r\n",
            "-ERR unknown subcommand",
            "unknown_command",
        ),
        row(
            b"DEBUG JMAP\r\n",
            "-ERR DEBUG JMAP is not served",
            "not_served",
        ),
        row(b"POST / HTTP/1.1\r\n\r\n", "", "not_served"),
        cut(b"*2\r\n$3\r\nGET\r\n$10\r\nab"),
        cut(b"GET k"),
    ]
}

/// All that is answered to this until the server closes. One that closes early may do so with a reset.
fn ask(address: SocketAddr, text: &[u8]) -> Result<String> {
    let mut socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.write_all(text).ok();
    socket.shutdown(Shutdown::Write).ok();
    let mut said = Vec::new();
    socket.read_to_end(&mut said).ok();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The counters of refusals by reason, of their sum, and of connections that broke off.
fn counted(cluster: &Cluster<'_>, id: u16) -> Result<[u64; 7]> {
    let counters = cluster.status(id)?.counters;
    let reasons = REASONS.map(|why| counters[&format!("client_requests_refused_{why}")]);
    let mut all = [0; 7];
    all[..5].copy_from_slice(&reasons);
    all[5] = counters["client_requests_refused"];
    all[6] = counters["client_connections_closed_truncated"];
    Ok(all)
}

fn check(cluster: &Cluster<'_>, id: u16, address: SocketAddr, rows: &[Row]) -> Result<()> {
    let mut beside = cluster.client(id)?;
    let before = counted(cluster, id)?;
    let mut expected = before;
    for (text, answer, why) in rows {
        let said = ask(address, text)?;
        let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        ensure!(said.starts_with(answer), "{shown:?}: {said:?}");
        ensure!(why.is_some() || said.is_empty(), "{shown:?}: {said:?}");
        match why.and_then(|why| REASONS.iter().position(|one| *one == why)) {
            Some(place) => {
                expected[place] += 1;
                expected[5] += 1;
            }
            None => expected[6] += 1,
        }
        let found = counted(cluster, id)?;
        ensure!(found == expected, "{shown:?}: {expected:?}, not {found:?}");
        // Whoever was there before is served as before.
        beside.set("beside", b"served").expect("set");
        let value = beside.get("beside").expect("get");
        ensure!(value.as_deref() == Some(&b"served"[..]), "{value:?}");
    }
    Ok(())
}

#[test]
fn what_makes_no_sense_is_counted_under_its_reason_and_harms_nobody() {
    let mut reached: BTreeMap<_, u32> = BTreeMap::new();
    for (_, _, why) in of_memcached().into_iter().chain(of_redis()) {
        *reached.entry(why).or_default() += 1;
    }
    assert!(reached.len() == REASONS.len(), "{reached:?}"); // all but unauthenticated, and broken off
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        let term = cluster.status(leader)?.term;
        for id in [leader, (leader + 1) % 3] {
            check(cluster, id, cluster.memcached(id), &of_memcached())?;
            check(cluster, id, cluster.redis(id), &of_redis())?;
        }
        ensure!(cluster.status(leader)?.term == term);
        Ok(())
    });
}
