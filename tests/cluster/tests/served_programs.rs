//! Programs that were not written for it, served by `quorumwire run`: the real Redis, of which every replica
//! runs one, and whose clients connect to any of them.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::served::{
    Given, REDIS, connect, kill_leader_under, three, wait_for_equal_redis, wait_for_redis,
};
use quorumwire_cluster_tests::status::page;
use redis::Commands as _;

/// What clients get answered before the next thing happens.
const COMMANDS: u64 = 500;
const CLIENTS_OF_EACH: u64 = 8;
/// A script, which draws by chance and asks for the time.
const SCRIPT: &str = "\
local drawn = redis.call('SRANDMEMBER', KEYS[1]) or 'none'
local time = redis.call('TIME')
return redis.call('RPUSH', KEYS[2], ARGV[1] .. drawn .. time[1] .. time[2])";

/// What a client was told, and whether its connection has ended.
#[derive(Default)]
struct Told {
    pushed: Vec<String>,
    is_cut: bool,
}

/// Pushes to a list whose order all clients make, and appends to a text, until told to stop or cut.
fn push(given: &Given<'_>) -> Result<Told> {
    let mut connection = connect(given.address)?;
    let mut told = Told::default();
    for number in 0_u64.. {
        if !given.goes_on() {
            break;
        }
        let value = format!("{}.{number}", given.name);
        let mut pipe = redis::pipe();
        pipe.rpush("list", &value)
            .append("text", &value)
            .spop("set");
        pipe.sadd("set", &value).set_ex(&value, 1, 1);
        let script = pipe.cmd("EVAL").arg(SCRIPT).arg(2);
        script.arg("set").arg("drawn").arg(&value);
        if pipe.query::<redis::Value>(&mut connection).is_err() {
            told.is_cut = true;
            break;
        }
        told.pushed.push(value);
        given.is_answered();
    }
    Ok(told)
}

/// All programs have the same; with a client's answer there, what it was told is in it.
fn compare(cluster: &Cluster<'_>, ids: &[u16], told: &[Told]) -> Result<()> {
    wait_for_equal_redis(cluster, ids)?;
    let first = *ids.first().context("a replica")?;
    let list: Vec<String> = connect(cluster.redis(first))?.lrange("list", 0, -1)?;
    let once: BTreeSet<&String> = list.iter().collect();
    ensure!(once.len() == list.len(), "something was pushed twice");
    for value in told.iter().flat_map(|it| &it.pushed) {
        ensure!(
            once.contains(value),
            "{value} was acknowledged, and is lost"
        );
    }
    Ok(())
}

#[test]
fn redis_survives_its_leader_and_clients_of_others_notice_nothing() {
    let plan = three(&REDIS);
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let told = kill_leader_under(cluster, leader, (CLIENTS_OF_EACH, COMMANDS), push)?;
        for (id, told) in &told {
            ensure!(
                told.is_cut == (*id == leader),
                "a client of replica {id}: {}",
                told.is_cut
            );
        }
        let told: Vec<_> = told.into_iter().map(|(_, told)| told).collect();
        let others: Vec<_> = (0..3).filter(|id| *id != leader).collect();
        compare(cluster, &others, &told)?;
        let other = *others.last().context("another one")?;
        ask_for_children_and_other_servers(cluster, other)?;
        compare(cluster, &others, &told)?;
        // The one that was killed has nothing but the log: its program does all of it again.
        cluster.start(leader)?;
        wait_for_redis(cluster, &[leader])?;
        compare(cluster, &[0, 1, 2], &told)
    });
}

/// Redis is refused both, the same on every replica.
fn ask_for_children_and_other_servers(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let mut connection = connect(cluster.redis(id))?;
    let saved = redis::cmd("BGSAVE").query::<String>(&mut connection);
    ensure!(saved.is_err(), "it has made a child: {saved:?}");
    let mut follow = |host: &str, port: &str| -> Result<()> {
        let mut command = redis::cmd("REPLICAOF");
        Ok(command.arg(host).arg(port).query(&mut connection)?)
    };
    follow("127.0.0.1", "1")?;
    cluster.wait_for("a try to connect", || {
        let (_, metrics) = page(cluster.http(id), "/metrics")?;
        let mut lines = metrics.lines();
        let count = lines.find(|it| it.starts_with("quorumwire_served_outbound_refused"));
        Ok(count.is_some_and(|it| !it.ends_with(" 0")))
    })?;
    follow("NO", "ONE")
}

/// Each replica's program does by itself what is allowed.
#[test]
fn another_server_is_reached_from_every_replica_if_that_is_allowed() {
    let plan = Plan {
        switches: vec!["allow-outbound"],
        ..three(&REDIS)
    };
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let here = TcpStream::connect(cluster.redis(1))?.local_addr()?.ip();
        let other = TcpListener::bind((here, 0))?;
        other.set_nonblocking(true)?;
        let at = other.local_addr()?;
        let mut connection = connect(cluster.redis(1))?;
        let mut follow = redis::cmd("REPLICAOF");
        follow.arg(here.to_string()).arg(at.port());
        follow.query::<()>(&mut connection)?;
        let mut heard = Vec::new();
        cluster.wait_for("three who connect", || {
            while let Ok((one, _)) = other.accept() {
                heard.push(one);
            }
            Ok(heard.len() >= 3)
        })?;
        for mut one in heard {
            let mut said = [0; 4];
            one.set_read_timeout(Some(FILLED_WITHIN))?;
            one.read_exact(&mut said)?;
            ensure!(&said == b"*1\r\n", "{}", said.escape_ascii());
        }
        Ok(redis::cmd("REPLICAOF")
            .arg("NO")
            .arg("ONE")
            .query(&mut connection)?)
    });
}

/// The log is so short that it is cut often.
const CUT_LOG_MIB: &str = "1";
const VALUE_BYTES: usize = 20_000;
const FILLED_WITHIN: Duration = Duration::from_mins(1);

/// Adds members to sets, takes some of them out by chance, and stores long values; cut off, it goes on.
fn fill(address: SocketAddr, name: &str, rounds: u32) -> Result<()> {
    let value = "x".repeat(VALUE_BYTES);
    let mut connection = None;
    let mut round = 0;
    let end = Instant::now() + FILLED_WITHIN;
    while round < rounds {
        ensure!(Instant::now() < end, "{name}: {round} rounds of {rounds}");
        let mut pipe = redis::pipe();
        for number in 0..20 {
            pipe.sadd(
                format!("set{}", round % 10),
                format!("{name}.{round}.{number}"),
            );
        }
        pipe.spop(format!("set{}", (round + 5) % 10));
        pipe.set(format!("{name}.{}", round % 20), &value);
        let Some(open) = &mut connection else {
            connection = connect(address).ok(); // cut off
            continue;
        };
        match pipe.query::<redis::Value>(open) {
            Ok(_) => round += 1,
            Err(_) => connection = None,
        }
    }
    Ok(())
}

/// All of its log is kept, and its limit is known to clients and to people. With a greater one it goes on.
#[test]
fn a_log_that_is_kept_whole_has_a_limit() {
    let plan = |limit_mib| Plan {
        options: vec![("save-signal", "none"), ("whole-log-max-mib", limit_mib)],
        ..three(&REDIS)
    };
    run_started(plan("1"), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let value = "x".repeat(VALUE_BYTES);
        let (mut kept, mut connection) = (0, connect(cluster.redis(1))?);
        while connection
            .set::<_, _, ()>(format!("key{kept}"), &value)
            .is_ok()
        {
            kept += 1;
            ensure!(kept * VALUE_BYTES < 2 << 20, "there is no limit");
        }
        ensure!(kept * VALUE_BYTES > 1 << 19, "{kept} values are few");
        for id in 0..3 {
            cluster.wait_for("a limit that is known", || {
                let faults = cluster.status(id)?.faults;
                let is_known = faults.iter().any(|it| it.contains("whole-log-max-mib"));
                Ok(is_known && connect(cluster.redis(id)).is_err())
            })?;
            ensure!(
                cluster
                    .log(id)
                    .contains("the whole log is kept, also in memory")
            );
        }
        for id in 0..3 {
            cluster.kill(id)?;
        }
        cluster.plan().options = plan("2").options;
        for id in 0..3 {
            cluster.start(id)?;
        }
        wait_for_redis(cluster, &[0, 1, 2])?;
        for id in 0..3 {
            let found: usize = redis::cmd("DBSIZE").query(&mut connect(cluster.redis(id))?)?;
            ensure!((kept..=kept + 1).contains(&found), "{found} of {kept}");
        }
        Ok(())
    });
}

/// A program that can save itself does so when the log has grown, and begins anew from that everywhere: so
/// one that has nothing else is equal.
#[test]
fn at_a_cut_programs_are_saved_and_one_that_was_away_begins_from_there() {
    let mut options = vec![("cut-log-mib", CUT_LOG_MIB)];
    options.extend([("log-tail-mib", "0"), ("log-kept-mib", "0")]);
    let plan = Plan {
        serves: REDIS.to_vec(),
        options,
        ..Plan::new(3, Durability::Sync)
    };
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let others: Vec<u16> = (0..3).filter(|id| *id != leader).collect();
        let [away, stays] = others[..] else {
            anyhow::bail!("two followers");
        };
        fill(cluster.redis(leader), "first", 20)?;
        cluster.kill(away)?;
        let addresses = [cluster.redis(leader), cluster.redis(stays)];
        thread::scope(|scope| {
            let fillers: Vec<_> = addresses
                .iter()
                .zip(["a", "b"])
                .map(|(address, name)| scope.spawn(move || fill(*address, name, 150)))
                .collect();
            fillers
                .into_iter()
                .try_for_each(|it| it.join().expect("a filler"))
        })?;
        cluster.wait_for("a snapshot", || {
            let statuses = [cluster.status(leader)?, cluster.status(stays)?];
            Ok(statuses.iter().all(|it| it.snapshot_index > 0))
        })?;
        cluster.start(away)?;
        wait_for_redis(cluster, &[away])?;
        compare(cluster, &[0, 1, 2], &[])?;
        let installed = cluster.status(away)?.snapshot_index;
        ensure!(installed > 0, "it began from the log's beginning");
        // What is drawn by chance is equal still, whether one began from its own files or from another's.
        fill(cluster.redis(away), "c", 20)?;
        compare(cluster, &[0, 1, 2], &[])?;
        // An operator asks for one; and all begin from their own.
        cluster.command(&["snapshot", "--addr", &cluster.http(away).to_string()])?;
        ensure!(cluster.status(away)?.snapshot_index > installed);
        fill(cluster.redis(leader), "d", 20)?;
        compare(cluster, &[0, 1, 2], &[])?;
        cluster.kill_all()?;
        for id in 0..3 {
            cluster.start(id)?;
        }
        wait_for_redis(cluster, &[0, 1, 2])?;
        fill(cluster.redis(stays), "e", 20)?;
        compare(cluster, &[0, 1, 2], &[])
    });
}

/// Save points, by whomever, stop no writes, and no client ends the program. It saves itself as ever.
#[test]
fn redis_takes_writes_although_it_cannot_save_in_the_background_and_no_client_ends_it() {
    let serves: Vec<&'static str> = [&REDIS[..], &["--save", "1 1"]].concat();
    run_started(three(&serves), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        ensure!(
            cluster
                .log(leader)
                .contains("save points of Redis are taken back")
        );
        let mut connection = connect(cluster.redis(leader))?;
        let (_, points): (String, String) = redis::cmd("CONFIG")
            .arg(&["GET", "save"])
            .query(&mut connection)?;
        ensure!(points.is_empty(), "{points}");
        let set = ["SET", "save", "1 1"];
        let () = redis::cmd("CONFIG").arg(&set).query(&mut connection)?;
        let mut connection = connect(cluster.redis(leader))?;
        cluster.wait_for("a save that fails", || {
            let _: u64 = connection.incr("written", 1)?;
            let said: String = redis::cmd("INFO")
                .arg("persistence")
                .query(&mut connection)?;
            Ok(said.contains("rdb_last_bgsave_status:err"))
        })?;
        let written: u64 = connection.incr("written", 1)?;
        let ended = redis::cmd("SHUTDOWN")
            .arg("NOSAVE")
            .query::<()>(&mut connection);
        let why = ended.err().context("it has ended")?.to_string();
        ensure!(why.contains("unknown command"), "{why}");
        cluster.command(&["snapshot", "--addr", &cluster.http(leader).to_string()])?;
        wait_for_redis(cluster, &[0, 1, 2])?;
        let kept: u64 = connect(cluster.redis(leader))?.get("written")?;
        ensure!(kept == written, "{kept} of {written}");
        wait_for_equal_redis(cluster, &[0, 1, 2])
    });
}
