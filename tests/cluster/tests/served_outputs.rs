//! What the programs that replicas serve say is compared. One of them is started with another option here, so
//! that it tells clients something else.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Plan, run_started};
use quorumwire_cluster_tests::served::{REDIS, connect, three, wait_for_redis};
use quorumwire_cluster_tests::status::{OutputDifference, page};

/// With this a set of a few numbers is kept, and called, otherwise. What it holds is the same.
const OTHERWISE: [&str; 2] = ["--set-max-intset-entries", "1"];
/// Answers of a dozen bytes each: more than a window.
const ANSWERS: usize = 1000;
/// As it is in `apps/replay`.
const WINDOW_BYTES: u64 = 1536;

fn three_that_differ() -> Plan {
    Plan {
        outputs_differ: true,
        ..three(&REDIS)
    }
}

fn counted(cluster: &Cluster<'_>, id: u16, name: &str) -> Result<u64> {
    let counters = cluster.status(id)?.counters;
    let count = counters.get(&format!("served_output_{name}")).copied();
    count.with_context(|| format!("{name} is not counted"))
}

/// Asks how a set is kept, so that programs that keep it differently differ.
fn ask(address: SocketAddr) -> Result<()> {
    let mut connection = connect(address)?;
    let mut pipe = redis::pipe();
    pipe.sadd("numbers", &[1, 2, 3]).ignore();
    for _ in 0..ANSWERS {
        pipe.cmd("OBJECT").arg("ENCODING").arg("numbers");
    }
    let answers: Vec<String> = pipe.query(&mut connection)?;
    ensure!(answers.len() == ANSWERS);
    Ok(())
}

/// The same of what each replica answers differently by right.
fn ask_of_the_process(address: SocketAddr) -> Result<()> {
    let mut connection = connect(address)?;
    for _ in 0..20 {
        for question in [
            &["INFO"][..],
            &["CLIENT", "LIST"],
            &["MEMORY", "STATS"],
            &["CONFIG", "GET", "dir"],
            &["EVAL", "return redis.call('INFO', 'memory')", "0"],
        ] {
            let mut command = redis::cmd(question[0]);
            command.arg(&question[1..]);
            command.query::<redis::Value>(&mut connection)?;
            redis::cmd("PING").query::<String>(&mut connection)?;
        }
        let mut transaction = redis::pipe();
        transaction.atomic().cmd("INFO").cmd("PING");
        transaction.query::<redis::Value>(&mut connection)?;
    }
    Ok(())
}

fn digest(cluster: &Cluster<'_>, id: u16) -> Result<String> {
    let mut connection = connect(cluster.redis(id))?;
    Ok(redis::cmd("DEBUG").arg("DIGEST").query(&mut connection)?)
}

/// This replica's program is another one from now on.
fn make_odd(cluster: &mut Cluster<'_>, odd: u16) -> Result<()> {
    cluster.kill(odd)?;
    cluster.plan().serves.extend(OTHERWISE);
    cluster.start(odd)?;
    cluster.plan().serves = REDIS.to_vec();
    wait_for_redis(cluster, &[odd])?;
    cluster.wait_for_ready(&[0, 1, 2])
}

fn lead(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let leader = cluster.wait_for_leader()?;
    if leader != id {
        let http = cluster.http(leader).to_string();
        cluster.command(&["transfer", "--to", &id.to_string(), "--addr", &http])?;
    }
    Ok(())
}

/// What all of these say, once they say something.
fn difference(cluster: &Cluster<'_>, ids: &[u16]) -> Result<OutputDifference> {
    let mut found = None;
    cluster.wait_for("a difference", || {
        let all = ids
            .iter()
            .map(|id| Ok(cluster.status(*id)?.output_differences));
        let all = all.collect::<Result<Vec<_>>>()?;
        let places = |it: &[OutputDifference]| {
            let last = it.last()?;
            Some((
                last.replica,
                last.quarantined,
                last.connection,
                last.first_byte,
            ))
        };
        let first = all.first().and_then(|it| places(it));
        found = all.first().and_then(|it| it.last().cloned());
        Ok(first.is_some() && all.iter().all(|it| places(it) == first))
    })?;
    found.context("a difference")
}

/// A client goes on; how often it was answered, until it is told to stop.
fn go_on(address: SocketAddr, stop: &AtomicBool, answered: &AtomicU64) -> Result<()> {
    let mut connection = connect(address)?;
    for number in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut pipe = redis::pipe();
        pipe.rpush("list", number).spop("members");
        pipe.sadd("members", format!("m{number}"));
        pipe.query::<redis::Value>(&mut connection)?;
        answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// How often a replica has said that another one is quarantined.
fn alarms(cluster: &Cluster<'_>, id: u16) -> usize {
    let alarm = "than those of most: the replica is quarantined";
    cluster.log(id).matches(alarm).count()
}

/// A replica that was right starts again, and carries out the log again: that is no news.
fn is_history(cluster: &mut Cluster<'_>, id: u16) -> Result<()> {
    let before = alarms(cluster, id);
    cluster.kill(id)?;
    cluster.start(id)?;
    wait_for_redis(cluster, &[id])?;
    cluster.wait_for_ready(&[0, 1, 2])?;
    cluster.wait_for("what is known of it", || {
        Ok(!cluster.status(id)?.output_differences.is_empty())
    })?;
    let after = alarms(cluster, id);
    ensure!(
        after == before,
        "replica {id}: {after} alarms, {before} before"
    );
    Ok(())
}

/// The odd one is quarantined, and comes back as another one that is like the rest. Others notice nothing.
fn is_quarantined(cluster: &mut Cluster<'_>, odd: u16, others: [u16; 2]) -> Result<()> {
    let before = cluster.status(odd)?.incarnation;
    ask(cluster.redis(others[0]))?;
    let exit = cluster.wait_for_exit(odd)?;
    ensure!(exit.code() == Some(1), "{exit:?}");
    let said = cluster.log(odd);
    ensure!(said.contains("it was quarantined"), "{said}");
    cluster.wait_for_leader()?;
    let difference = difference(cluster, &others)?;
    ensure!(
        difference.replica == odd && difference.quarantined && difference.incarnation == before,
        "{difference:?}"
    );
    // The window is one of the connection that asked: the `+OK`s in front of it are no reason for another.
    // Which one it is, hangs on whose reports were there first.
    let first = difference.first_byte;
    ensure!(
        first.is_multiple_of(WINDOW_BYTES) && difference.bytes == WINDOW_BYTES,
        "{difference:?}"
    );
    let status = cluster.status(others[0])?;
    let last = first + WINDOW_BYTES - 1;
    let place = format!(
        "connection {}, bytes {first} to {last}",
        difference.connection
    );
    ensure!(
        status.faults.iter().any(|it| it.contains(&place)),
        "{status:?}"
    );
    let (_, metrics) = page(cluster.http(others[1]), "/metrics")?;
    let mut lines = metrics.lines();
    let labels = format!("replica=\"{odd}\",connection=\"{}\"", difference.connection);
    ensure!(
        lines.any(
            |it| it.starts_with("quorumwire_served_output_difference{") && it.contains(&labels)
        ),
        "{metrics}"
    );
    ensure!(cluster.dir(odd).join("given-up").exists());

    cluster.start(odd)?;
    wait_for_redis(cluster, &[odd])?;
    cluster.wait_for_ready(&[0, 1, 2])?;
    let status = cluster.status(odd)?;
    ensure!(status.incarnation != before, "it remembers");
    cluster.wait_for("its new life", || {
        let status = cluster.status(others[0])?;
        let is_healthy = status.faults.is_empty();
        Ok(is_healthy && status.output_differences.iter().all(|it| !it.is_member))
    })?;
    ensure!(!cluster.dir(odd).join("given-up").exists());
    let files = fs::read_dir(cluster.dir(odd).join("group-0"))?;
    let names: Vec<_> = files.map(|it| Ok(it?.file_name())).collect::<Result<_>>()?;
    let is_log = |it: &std::ffi::OsString| it.to_string_lossy().starts_with("given-up-log-");
    ensure!(names.iter().any(is_log), "{names:?}");
    Ok(())
}

fn are_equal(cluster: &Cluster<'_>) -> Result<()> {
    cluster.wait_for("equal programs", || {
        let first = digest(cluster, 0)?;
        Ok(digest(cluster, 1)? == first && digest(cluster, 2)? == first)
    })
}

/// Asks, and waits until that was compared; nobody differs.
fn is_compared(cluster: &Cluster<'_>, id: u16, known: usize) -> Result<()> {
    let before = counted(cluster, id, "windows_equal")?;
    let asked = cluster.redis(id);
    ask(asked)?;
    let windows = ANSWERS as u64 * 12 / WINDOW_BYTES;
    cluster.wait_for("a comparison", || {
        Ok(counted(cluster, id, "windows_equal")? >= before + windows)
    })?;
    for id in 0..3 {
        let differences = cluster.status(id)?.output_differences;
        ensure!(differences.len() == known, "{differences:?}");
    }
    Ok(())
}

#[test]
fn one_that_says_something_else_is_quarantined_and_comes_back_equal() {
    run_started(three_that_differ(), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        for id in 0..3 {
            ask_of_the_process(cluster.redis(id))?;
        }
        is_compared(cluster, 1, 0)?;
        ensure!(counted(cluster, 1, "bytes_left_out")? > 100_000);
        for odd_leads in [false, true] {
            let leader = cluster.wait_for_leader()?;
            let odd = (leader + 1) % 3;
            let others = [(odd + 1) % 3, (odd + 2) % 3];
            make_odd(cluster, odd)?;
            lead(cluster, if odd_leads { odd } else { others[0] })?;
            let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
            let address = cluster.redis(others[1]);
            thread::scope(|scope| {
                let client = scope.spawn(|| go_on(address, &stop, &answered));
                let judged = cluster
                    .wait_for("a client", || Ok(answered.load(Ordering::Relaxed) > 0))
                    .and_then(|()| is_quarantined(cluster, odd, others));
                stop.store(true, Ordering::Relaxed);
                judged.and(client.join().expect("a client"))
            })?;
            is_compared(cluster, odd, usize::from(odd_leads) + 1)?;
            are_equal(cluster)?;
        }
        let has_said = (0..3).find(|id| alarms(cluster, *id) > 0);
        is_history(cluster, has_said.context("an alarm")?)
    });
}

#[test]
fn one_against_one_is_an_alarm_until_a_third_one_decides() {
    run_started(three_that_differ(), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let (odd, away) = ((leader + 1) % 3, (leader + 2) % 3);
        make_odd(cluster, odd)?;
        lead(cluster, leader)?;
        cluster.kill(away)?;
        ask(cluster.redis(leader))?;
        let told = difference(cluster, &[leader, odd])?;
        ensure!(
            told.replica == odd && !told.quarantined && told.is_member,
            "{told:?}"
        );
        ensure!(counted(cluster, leader, "replicas_undecided")? == 1);
        ask(cluster.redis(odd))?;
        ensure!(cluster.is_running(odd)? && cluster.is_running(leader)?);
        cluster.start(away)?;
        wait_for_redis(cluster, &[away])?;
        // The third one may have decided by now, and the odd one be gone.
        cluster.wait_for_ready(&[leader, away])?;
        ask(cluster.redis(leader))?;
        cluster.wait_for_exit(odd)?;
        let told = difference(cluster, &[leader, away])?;
        ensure!(told.replica == odd && told.quarantined, "{told:?}");
        cluster.start(odd)?;
        wait_for_redis(cluster, &[odd])?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        are_equal(cluster)
    });
}

#[test]
fn what_is_not_to_be_compared_is_not() {
    let plan = Plan {
        switches: vec!["unchecked-output"],
        ..three(&REDIS)
    };
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let odd = (cluster.wait_for_leader()? + 1) % 3;
        make_odd(cluster, odd)?;
        ask(cluster.redis(odd))?;
        ask(cluster.redis((odd + 1) % 3))?;
        cluster.stays("nobody is judged", Duration::from_secs(2), || {
            let status = cluster.status(odd)?;
            let windows = counted(cluster, odd, "windows")?;
            Ok(status.output_differences.is_empty() && windows == 0)
        })
    });
}
