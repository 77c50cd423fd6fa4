//! Redis clients and a real cluster: at any replica, beside memcached clients, while leaders die.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, OnFollower, Plan, run_started};
use quorumwire_cluster_tests::usage;
use redis::{Commands as _, Connection};

/// How long an answer may take: longer than a request lives in the server.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// By how much the memory of a replica may grow, whatever one client sends.
const GROWTH_MAX: u64 = 64 << 20;

fn connect(address: SocketAddr) -> Result<Connection> {
    let client = redis::Client::open(format!("redis://{address}/"))?;
    let connection = client.get_connection_with_timeout(ANSWER_MAX)?;
    connection.set_read_timeout(Some(ANSWER_MAX))?;
    Ok(connection)
}

fn leader_and_follower(cluster: &Cluster<'_>) -> Result<[u16; 2]> {
    let leader = cluster.wait_for_settled_leader()?;
    cluster.wait_for_ready(&[0, 1, 2])?;
    Ok([leader, (leader + 1) % 3])
}

#[test]
fn one_store_stands_behind_both_protocols_at_every_replica() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        leader_and_follower(cluster)?;
        for id in 0..3 {
            let mut redis = connect(cluster.redis(id))?;
            let () = redis.set("by-redis", id)?;
            for other in 0..3 {
                let seen = cluster.client(other)?.get("by-redis").expect("get");
                ensure!(seen == Some(id.to_string().into_bytes()), "at {other}");
            }
            ensure!(cluster.client(id)?.set("by-memcached", b"5").expect("set") == "STORED");
            for other in 0..3 {
                let count: u64 = connect(cluster.redis(other))?.incr("by-memcached", 1)?;
                ensure!(count == 6 + u64::from(other), "{count} at {other}");
            }
        }
        Ok(())
    });
}

/// A follower asks the leader what is watched; what was asked before a `RESET` or a `DISCARD` must not be
/// taken for what is asked after.
#[test]
fn what_was_watched_before_a_reset_is_not_what_is_watched_after_it() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [_, follower] = leader_and_follower(cluster)?;
        let mut socket = TcpStream::connect(cluster.redis(follower))?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        let requests = "WATCH a\r\nRESET\r\nWATCH b\r\nMULTI\r\nSET c 1\r\nEXEC\r\nWATCH a\r\nRESET\r\n\
             WATCH c\r\nMULTI\r\nDISCARD\r\nSET c 2\r\nMULTI\r\nSET c 3\r\nEXEC\r\n";
        let wanted = "+OK\r\n+RESET\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n+OK\r\n+RESET\r\n\
             +OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n";
        socket.write_all(requests.as_bytes())?;
        let mut heard = vec![0; wanted.len()];
        socket.read_exact(&mut heard)?;
        let heard = String::from_utf8_lossy(&heard);
        ensure!(heard == wanted, "{heard:?}");
        Ok(())
    });
}

/// A read that cannot be passed on is answered like any other: what waits for it goes on, and a client that
/// wants no answers gets none.
#[test]
fn what_is_behind_a_read_that_is_refused_is_answered() {
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.on_follower = OnFollower::Refuse;
    run_started(plan, |cluster| {
        let [_, follower] = leader_and_follower(cluster)?;
        let mut socket = TcpStream::connect(cluster.redis(follower))?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        let cases: [(&str, &[&str]); 4] = [
            ("WATCH a\r\nUNWATCH\r\n", &["-READONLY", "+OK"]),
            ("WATCH a\r\nRESET\r\n", &["-READONLY", "+RESET"]),
            (
                "CLIENT REPLY SKIP\r\nGET a\r\nGET a\r\nPING\r\n",
                &["-READONLY", "+PONG"],
            ),
            // It ends what is skipped, too.
            (
                "CLIENT REPLY SKIP\r\nGET a\r\n*x\r\n",
                &["-ERR Protocol error"],
            ),
        ];
        for (requests, wanted) in cases {
            socket.write_all(requests.as_bytes())?;
            let mut lines = BufReader::new(&socket).lines();
            for begins in wanted {
                let line = lines.next().context("closed")??;
                ensure!(line.starts_with(begins), "{requests:?}: {line}");
            }
        }
        Ok(())
    });
}

/// Answers to a follower's clients that are too much for its link to the leader are left out, and said to be.
#[test]
fn a_write_without_a_way_back_for_its_answer_says_that_it_was_carried_out() {
    const KEYS: usize = 64;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, follower] = leader_and_follower(cluster)?;
        let large = vec![b'x'; 1 << 20];
        let mut at_leader = connect(cluster.redis(leader))?;
        for key in 0..KEYS {
            let () = at_leader.set(key, &large)?;
        }
        // One connection has but a few of them on their way at once. The leader has all of them to answer
        // before the follower takes the first.
        let forwarded = |cluster: &Cluster<'_>| cluster.counter(follower, "forwarded_to_leader");
        let applied = |cluster: &Cluster<'_>| cluster.counter(leader, "entries_applied");
        let (forwarded_before, applied_before) = (forwarded(cluster)?, applied(cluster)?);
        cluster.pause(leader)?;
        let mut asked = Vec::new();
        for key in 0..KEYS {
            let mut socket = TcpStream::connect(cluster.redis(follower))?;
            socket.set_read_timeout(Some(ANSWER_MAX))?;
            let command = redis::cmd("SET")
                .arg(key)
                .arg("small")
                .arg("GET")
                .get_packed_command();
            socket.write_all(&command)?;
            asked.push(socket);
        }
        cluster.wait_for("all to be passed on", || {
            Ok(forwarded(cluster)? >= forwarded_before + KEYS as u64)
        })?;
        cluster.pause(follower)?;
        cluster.resume(leader)?;
        cluster.wait_for("all to be carried out", || {
            Ok(applied(cluster)? >= applied_before + KEYS as u64)
        })?;
        cluster.resume(follower)?;
        let (mut whole, mut left_out) = (0, 0);
        for (key, mut socket) in asked.into_iter().enumerate() {
            #[expect(clippy::wildcard_enum_match_arm, reason = "foreign and growing")]
            match redis::Parser::new().parse_value(&mut socket)? {
                redis::Value::BulkString(value) if value == large => whole += 1,
                redis::Value::ServerError(error) => {
                    let text = error.to_string();
                    ensure!(text.contains("executed: the queue of answers"), "{text}");
                    left_out += 1;
                }
                other => bail!("{key}: {other:?}"),
            }
        }
        println!("{whole} answers came, {left_out} were left out");
        ensure!(whole > 0 && left_out > 0, "{whole} and {left_out}");
        for key in 0..KEYS {
            let found: String = at_leader.get(key)?;
            ensure!(found == "small", "{key}");
        }
        Ok(())
    });
}

#[test]
fn what_is_sent_ahead_is_carried_out_in_order() {
    const ROUNDS: i64 = 500;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        for id in leader_and_follower(cluster)? {
            let mut redis = connect(cluster.redis(id))?;
            let key = format!("counter-{id}");
            let mut pipe = redis::pipe();
            for _ in 0..ROUNDS {
                pipe.incr(&key, 1).get(&key).cmd("ECHO").arg("between");
            }
            let answers: Vec<(i64, i64, String)> = pipe
                .query::<Vec<redis::Value>>(&mut redis)?
                .chunks(3)
                .map(|three| redis::from_redis_value_ref(&redis::Value::Array(three.to_vec())))
                .collect::<Result<_, _>>()?;
            for (count, answer) in (1..=ROUNDS).zip(answers) {
                ensure!(answer == (count, count, "between".to_owned()), "{answer:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_watched_key_that_changed_elsewhere_stops_a_transaction() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, follower] = leader_and_follower(cluster)?;
        for (at, other) in [(leader, follower), (follower, leader)] {
            let mut redis = connect(cluster.redis(at))?;
            let mut somebody = connect(cluster.redis(other))?;
            let mut transaction = redis::pipe();
            transaction.atomic().set("a", 1).incr("b", 1).get("a");
            for changes in [false, true] {
                let () = redis.del(&["a", "b"])?;
                let () = redis::cmd("WATCH").arg("a").arg("w").query(&mut redis)?;
                if changes {
                    let () = somebody.set("w", "new")?;
                }
                let answer: Option<(String, i64, i64)> = transaction.query(&mut redis)?;
                let expected = (!changes).then(|| ("OK".to_owned(), 1, 1));
                ensure!(answer == expected, "{answer:?} at {at}, {changes}");
                let left: Option<i64> = somebody.get("b")?;
                ensure!(left.is_some() != changes, "{left:?}");
            }
        }
        Ok(())
    });
}

/// A life goes on while nobody writes: reads of it ask for the time.
#[test]
fn a_lifetime_runs_while_nothing_else_happens() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        for id in leader_and_follower(cluster)? {
            let mut redis = connect(cluster.redis(id))?;
            let () = redis.pset_ex("k", "v", 60_000)?;
            let left = |redis: &mut Connection| redis.pttl::<_, i64>("k");
            let first = left(&mut redis)?;
            cluster.wait_for("time to pass", || Ok(left(&mut redis)? < first - 50))?;
            let () = redis.pset_ex("k", "v", 80)?;
            cluster.wait_for("its end", || Ok(!redis.exists::<_, bool>("k")?))?;
        }
        Ok(())
    });
}

#[test]
fn wait_says_how_many_replicas_have_a_write() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, follower] = leader_and_follower(cluster)?;
        let mut redis = connect(cluster.redis(leader))?;
        let wait =
            |redis: &mut Connection, ms: u64| redis::cmd("WAIT").arg(2).arg(ms).query::<u64>(redis);
        let () = redis.set("k", 1)?;
        ensure!(wait(&mut redis, 0)? == 2);
        cluster.kill(follower)?;
        let () = redis.set("k", 2)?;
        let begun = Instant::now();
        ensure!(wait(&mut redis, 300)? == 1);
        ensure!(begun.elapsed() >= Duration::from_millis(300));
        cluster.start(follower)?;
        cluster.wait_for_ready(&[follower])?;
        ensure!(wait(&mut redis, 0)? == 2);
        Ok(())
    });
}

/// Counts up at one replica after the other until told to stop: how many times it surely did, and how many
/// times it may have.
fn count_up(addresses: &[SocketAddr], stop: &AtomicBool, acked: &AtomicU64) -> u64 {
    let mut unknown = 0;
    let mut connections = addresses.iter().cycle().map(|address| connect(*address));
    'connections: while !stop.load(Ordering::Relaxed) {
        let Some(Ok(mut redis)) = connections.next() else {
            continue;
        };
        while !stop.load(Ordering::Relaxed) {
            match redis.incr::<_, _, u64>("counter", 1) {
                Ok(_) => drop(acked.fetch_add(1, Ordering::Relaxed)),
                Err(error) if error.code().is_some_and(|code| code != "ERR") => {
                    continue 'connections;
                }
                Err(error) if error.to_string().contains("not executed") => {}
                Err(_) => {
                    unknown += 1;
                    continue 'connections;
                }
            }
        }
    }
    unknown
}

#[test]
fn no_acknowledged_increment_is_lost_or_done_twice_while_leaders_die() {
    const CLIENTS: usize = 4;
    const KILLS: usize = 6;
    const BETWEEN_KILLS: u64 = 100;
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let addresses: Vec<_> = (0..3).map(|id| cluster.redis(id)).collect();
        let (stop, acked) = (AtomicBool::new(false), AtomicU64::new(0));
        let (unknown, killed) = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| scope.spawn(|| count_up(&addresses, &stop, &acked)))
                .collect();
            let killed = (0..KILLS).try_for_each(|_| {
                let before = acked.load(Ordering::Relaxed);
                cluster.wait_for("increments", || {
                    Ok(acked.load(Ordering::Relaxed) >= before + BETWEEN_KILLS)
                })?;
                let leader = cluster.wait_for_leader()?;
                cluster.kill(leader)?;
                cluster.wait_for_leader_other_than(leader)?;
                cluster.start(leader)
            });
            stop.store(true, Ordering::Relaxed);
            let unknown: u64 = clients
                .into_iter()
                .map(|it| it.join().expect("a client"))
                .sum();
            (unknown, killed)
        });
        killed?;
        let [leader, _] = leader_and_follower(cluster)?;
        let count: u64 = connect(cluster.redis(leader))?.get("counter")?;
        let acked = acked.into_inner();
        println!("{acked} acknowledged, {unknown} unknown, {count} counted");
        ensure!(unknown > 0, "void: no kill left an outcome unknown");
        ensure!(
            (acked..=acked + unknown).contains(&count),
            "{acked} acknowledged and {unknown} unknown, but {count} counted"
        );
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[test]
fn redis_own_tools_work_at_every_replica() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        for id in leader_and_follower(cluster)? {
            let address = cluster.redis(id);
            let (host, port) = (address.ip().to_string(), address.port().to_string());
            let at = ["-h", &host, "-p", &port];
            let cli = |words: &[&str]| {
                let done = cluster.run_program("redis-cli", &[&at[..], words].concat())?;
                ensure!(done.success, "{words:?}: {}", done.stderr);
                Ok(done.stdout.trim_end().to_owned())
            };
            ensure!(cli(&["set", "tool", "redis-cli"])? == "OK");
            ensure!(cli(&["-3", "get", "tool"])? == "redis-cli");
            ensure!(cli(&["--scan", "--pattern", "to*"])? == "tool");
            ensure!(cli(&["info", "replication"])?.contains("quorumwire_role:"));
            let benchmark = ["-t", "set,get,incr,mset", "-n", "2000", "-q", "--csv"];
            let done = cluster.run_program("redis-benchmark", &[&at[..], &benchmark].concat())?;
            ensure!(done.success, "{}", done.stderr);
            for test in ["SET", "GET", "INCR", "MSET"] {
                ensure!(
                    done.stdout.contains(&format!("\"{test}")),
                    "{}",
                    done.stdout
                );
            }
        }
        Ok(())
    });
}

/// Names and passwords in a file, as the option wants them; its path lives as long as the test.
fn accounts(text: &str) -> Result<&'static str> {
    let path = std::env::temp_dir().join(format!("quorumwire-accounts-{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path.display().to_string().leak())
}

#[test]
fn who_has_not_said_who_he_is_gets_nothing() {
    let file = accounts("ann:wonder land\ndefault:secret\n").expect("a file");
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.options.push(("client-auth-file", file));
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        for id in [leader, (leader + 1) % 3] {
            let redis = |text: &str| {
                let answer = send_raw(cluster.redis(id), text.as_bytes())?;
                anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
            };
            for (asked, answered) in [
                ("SET k v\r\n", "-NOAUTH Authentication required.\r\n"),
                ("CLIENT LIST\r\n", "-NOAUTH Authentication required.\r\n"),
                ("AUTH wrong\r\nGET k\r\n", "-WRONGPASS"),
                ("HELLO 3\r\n", "-NOAUTH HELLO must be"),
                ("HELLO 3 AUTH ann secret\r\nGET k\r\n", "-WRONGPASS"),
                ("AUTH secret\r\nSET k v\r\n", "+OK\r\n+OK\r\n"),
                (
                    "AUTH ann \"wonder land\"\r\nGET k\r\n",
                    "+OK\r\n$1\r\nv\r\n",
                ),
                ("HELLO 2 AUTH ann \"wonder land\"\r\n", "*14\r\n"),
                (
                    "AUTH secret\r\nRESET\r\nGET k\r\n",
                    "+OK\r\n+RESET\r\n-NOAUTH",
                ),
            ] {
                let answer = redis(asked)?;
                ensure!(answer.starts_with(answered), "{asked:?}: {answer:?}");
                let is_let_in = answered.starts_with('+') || answered.starts_with('*');
                ensure!(is_let_in || !answer.contains("$1\r\nv"), "{answer:?}");
            }
            let long = format!("*2\r\n$4\r\nAUTH\r\n$9000\r\n{}", "x".repeat(8000));
            let announced = "*2\r\n$4\r\nAUTH\r\n$9000\r\nx".to_owned();
            let whole = format!("*2\r\n$4\r\nAUTH\r\n$9000\r\n{}\r\n", "x".repeat(9000));
            let line = format!("AUTH {}\r\n", "x".repeat(9000));
            for long in [long, announced, whole, line] {
                ensure!(redis(&long)? == "-ERR Protocol error: unauthenticated bulk length\r\n");
            }

            let memcached = |text: &str| {
                let answer = send_raw(cluster.memcached(id), text.as_bytes())?;
                anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
            };
            for (asked, answered) in [
                ("get k\r\n", "CLIENT_ERROR unauthenticated\r\n"),
                (
                    "stats\r\nversion\r\n",
                    "CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR",
                ),
                (
                    "set x 0 0 9\r\nann wrong\r\nget k\r\n",
                    "CLIENT_ERROR authentication failure\r\n",
                ),
                ("set x 0 0 100000\r\n", "CLIENT_ERROR unauthenticated\r\n"),
                (
                    "set x 0 0 15\r\nann wonder land\r\nget x k\r\n",
                    "STORED\r\nVALUE k 0 1\r\nv\r\nEND\r\n",
                ),
            ] {
                let answer = memcached(asked)?;
                ensure!(answer.starts_with(answered), "{asked:?}: {answer:?}");
                ensure!(
                    answered.starts_with("STORED") || !answer.contains("VALUE"),
                    "{answer:?}"
                );
            }
            let whole = format!("set x 0 0 9000\r\nann {}\r\n", "x".repeat(8996));
            ensure!(memcached(&whole)? == "CLIENT_ERROR unauthenticated\r\n");
        }
        let failed = cluster.status(leader)?.counters["client_authentications_failed"];
        ensure!(failed == 3, "{failed} failures counted");
        let refused = cluster.status(leader)?.counters["client_requests_refused_unauthenticated"];
        ensure!(
            refused == 16,
            "{refused} requests of unknown clients counted"
        );
        Ok(())
    });
    std::fs::remove_file(file).expect("the file is ours");
}

/// Sends bytes and reads until the server closes, or says nothing more for a while.
fn send_raw(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    const QUIET: Duration = Duration::from_millis(200);
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(QUIET))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    stream.write_all(bytes).ok(); // it may have been closed for what came first
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..count]);
    }
    Ok(answer)
}

#[test]
fn what_no_client_says_is_a_protocol_error_and_costs_little() {
    let cases: [(&[u8], &[u8]); 8] = [
        (b"*1000000000\r\n", b"-ERR Protocol error"),
        (b"*-5\r\nPING\r\n", b"+PONG\r\n"),
        (b"*1\r\n$-1\r\n", b"-ERR Protocol error"),
        (b"*1\r\n$99999999999\r\n", b"-ERR Protocol error"),
        (b"*1\r\nPING\r\n", b"-ERR Protocol error"),
        (
            b"set \"a\r\n",
            b"-ERR Protocol error: unbalanced quotes in request\r\n",
        ),
        (b"*2\r\n$3\r\nGET\r\n$1\r\nkxx", b"-ERR"),
        (
            b"*1\r\n$7\r\nNOTHING\r\n",
            b"-ERR unknown command 'NOTHING'",
        ),
    ];
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        for id in leader_and_follower(cluster)? {
            let address = cluster.redis(id);
            for (bytes, expected) in cases {
                let answer = send_raw(address, bytes)?;
                let text = String::from_utf8_lossy(bytes).into_owned();
                ensure!(
                    answer.starts_with(expected) || (answer.is_empty() && bytes.ends_with(b"xx")),
                    "{text:?}: {:?}",
                    String::from_utf8_lossy(&answer)
                );
            }
            let long_key = format!("WATCH a {}\r\n", "k".repeat(251));
            let answer = send_raw(address, long_key.as_bytes())?;
            ensure!(answer == b"-ERR key is longer than 250 bytes\r\n");
            let before = usage::resident_bytes(cluster.pid(id)?)?;
            // Many clients announce long commands, and many commands are kept for an EXEC that never comes.
            let mut open = Vec::new();
            for _ in 0..200 {
                let mut stream = TcpStream::connect(address)?;
                stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nx")?;
                open.push(stream);
            }
            let mut keeper = TcpStream::connect(address)?;
            keeper.set_read_timeout(Some(ANSWER_MAX))?;
            keeper.write_all(b"MULTI\r\n")?;
            let set = [b"SET k ".as_slice(), &vec![b'v'; 60_000], b"\r\n"].concat();
            for _ in 0..100 {
                keeper.write_all(&set)?;
            }
            keeper.write_all(b"EXEC\r\nQUIT\r\n")?;
            let mut answer = String::new();
            keeper.read_to_string(&mut answer).context("the keeper")?;
            ensure!(answer.contains("-EXECABORT"), "{answer}");
            let grown = usage::resident_bytes(cluster.pid(id)?)?.saturating_sub(before);
            ensure!(grown < GROWTH_MAX, "{grown} bytes more at {id}");
            let pong: String = redis::cmd("PING").query(&mut connect(address)?)?;
            ensure!(pong == "PONG");
        }
        if cluster.statuses().len() != 3 {
            bail!("a replica is gone");
        }
        Ok(())
    });
}

/// A leader that hears of nobody answers no read; what is asked meanwhile waits, as far as there is room.
#[test]
fn reads_that_wait_cost_bounded_memory() {
    const READS: usize = 150;
    const READ_BYTES: usize = 900_000;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, _] = leader_and_follower(cluster)?;
        let others = [(leader + 1) % 3, (leader + 2) % 3];
        let before = usage::resident_bytes(cluster.pid(leader)?)?;
        for id in others {
            cluster.pause(id)?;
        }
        let mut stream = TcpStream::connect(cluster.redis(leader))?;
        stream.set_write_timeout(Some(Duration::from_secs(1)))?;
        let mut read = format!("*2\r\n$6\r\nEXISTS\r\n${READ_BYTES}\r\n").into_bytes();
        read.extend(vec![b'k'; READ_BYTES]);
        read.extend(b"\r\n");
        let taken = (0..READS)
            .take_while(|_| stream.write_all(&read).is_ok())
            .count();
        let grown = usage::resident_bytes(cluster.pid(leader)?)?.saturating_sub(before);
        for id in others {
            cluster.resume(id)?;
        }
        println!("{taken} of {READS} reads taken, {grown} bytes more");
        ensure!(taken > 0 && grown < GROWTH_MAX, "{grown} bytes more");
        Ok(())
    });
}
