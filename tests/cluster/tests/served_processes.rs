//! A replica and the process of its served program: neither stays without the other, however one of them
//! ends.

use std::net::{SocketAddr, TcpStream};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, run_started};
use quorumwire_cluster_tests::served::{
    REDIS, connect, ended_in, three, wait_for_equal_redis, wait_for_redis,
};
use quorumwire_cluster_tests::served_process::ServedProcess;
use redis::Commands as _;

/// What clients get answered before the next thing happens.
const ANSWERS: u64 = 200;
const CLIENTS_OF_EACH: usize = 3;

/// Clients of these replicas push to one list and are not cut while this is done, nor is what they pushed
/// lost.
fn while_clients_push(
    cluster: &mut Cluster<'_>,
    ids: [u16; 2],
    what: impl FnOnce(&mut Cluster<'_>) -> Result<()>,
) -> Result<()> {
    let (stop, pushed) = (AtomicBool::new(false), AtomicU64::new(0));
    let addresses = ids.map(|id| cluster.redis(id));
    let before: u64 = connect(addresses[0])?.llen("list")?;
    let push = |address| -> Result<()> {
        let mut connection = connect(address)?;
        while !stop.load(Ordering::Relaxed) {
            let _: u64 = connection.rpush("list", "value")?;
            pushed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let more = |cluster: &Cluster<'_>| {
        let goal = pushed.load(Ordering::Relaxed) + ANSWERS;
        cluster.wait_for("clients go on", || {
            Ok(pushed.load(Ordering::Relaxed) >= goal)
        })
    };
    thread::scope(|scope| {
        let clients = addresses.repeat(CLIENTS_OF_EACH).into_iter();
        let clients: Vec<_> = clients.map(|it| scope.spawn(move || push(it))).collect();
        let done = more(cluster)
            .and_then(|()| what(cluster))
            .and_then(|()| more(cluster));
        stop.store(true, Ordering::Relaxed);
        let mut clients = clients.into_iter();
        let pushed = clients.try_for_each(|it| it.join().expect("a client"));
        done.and(pushed)
    })?;
    let after: u64 = connect(addresses[0])?.llen("list")?;
    ensure!(after == before + pushed.load(Ordering::Relaxed));
    Ok(())
}

#[test]
fn a_program_that_crashes_on_one_replica_ends_that_one_alone_and_it_comes_back_equal() {
    run_started(three(&REDIS), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        let leader = cluster.wait_for_leader()?;
        let (crashes, stays) = ((leader + 1) % 3, (leader + 2) % 3);
        while_clients_push(cluster, [leader, stays], |cluster| {
            // Its own program has done what it answers.
            let before = cluster.status(crashes)?.commit_index;
            let mut client = connect(cluster.redis(crashes))?;
            let _: u64 = client.incr("asked", 1)?;
            ServedProcess::of(cluster, crashes)?.kill()?;
            let ended = ended_in(cluster, crashes, 1)?;
            let last = cluster.status(leader)?.last_index;
            ensure!(
                (before + 1..=last).contains(&ended),
                "it says entry {ended}, and it was one of {before} to {last}"
            );
            let killed = "has ended (signal: 9 (SIGKILL))";
            ensure!(cluster.log(crashes).contains(killed));
            Ok(())
        })?;
        cluster.start(crashes)?;
        wait_for_redis(cluster, &[crashes])?;
        wait_for_equal_redis(cluster, &[0, 1, 2])?;
        let asked: u64 = connect(cluster.redis(crashes))?.get("asked")?;
        ensure!(asked == 1, "{asked}");
        Ok(())
    });
}

/// A client pushes to a list until it is cut.
fn push_until_cut(address: SocketAddr, list: &str, pushed: &AtomicU64) -> Result<()> {
    let mut connection = connect(address)?;
    while connection.rpush::<_, _, u64>(list, "value").is_ok() {
        pushed.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Tells a replica to end while its clients push to a list; what they were told is in it.
fn terminate_under_load(cluster: &mut Cluster<'_>, id: u16, list: &str) -> Result<()> {
    let (address, pushed) = (cluster.redis(id), AtomicU64::new(0));
    let status: ExitStatus = thread::scope(|scope| {
        let push = || push_until_cut(address, list, &pushed);
        let clients = [(); CLIENTS_OF_EACH].map(|()| scope.spawn(push));
        let happened = cluster
            .wait_for("clients of it", || {
                Ok(pushed.load(Ordering::Relaxed) >= ANSWERS)
            })
            .and_then(|()| cluster.terminate(id));
        let mut clients = clients.into_iter();
        let cut = clients.try_for_each(|it| it.join().expect("a client"));
        happened.and_then(|status| cut.map(|()| status))
    })?;
    ensure!(status.code() == Some(0), "replica {id} ended with {status}");
    let kept: u64 = connect(cluster.redis((id + 1) % 3))?.llen(list)?;
    let told = pushed.into_inner();
    ensure!(
        (told..=told + CLIENTS_OF_EACH as u64).contains(&kept),
        "clients were told of {told}, and {kept} are there"
    );
    Ok(())
}

/// What clients were told is not lost; the same for a follower and the leader.
#[test]
fn a_replica_that_is_told_to_end_under_load_ends_its_program_and_shows_what_that_has_said() {
    run_started(three(&REDIS), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        for leads in [false, true] {
            let leader = cluster.wait_for_leader()?;
            let id = if leads { leader } else { (leader + 1) % 3 };
            let others = [(id + 1) % 3, (id + 2) % 3];
            let program = ServedProcess::of(cluster, id)?;
            terminate_under_load(cluster, id, &format!("list-{id}"))?;
            ensure!(
                !program.is_running(),
                "{program:?} has outlived its replica"
            );
            let log = cluster.log(id);
            ensure!(!log.contains("in time"), "it did not end in order: {log}");
            // As Redis writes it, and nothing of ours around it.
            let mut said = log.lines().filter(|line| !line.starts_with('{'));
            let is_shown = said.any(|it| it.ends_with("* Ready to accept connections"));
            ensure!(is_shown, "{log}");
            while_clients_push(cluster, others, |_| Ok(()))?;
            cluster.start(id)?;
            wait_for_redis(cluster, &[id])?;
            wait_for_equal_redis(cluster, &[0, 1, 2])?;
        }
        Ok(())
    });
}

/// Kills replicas, each of whose programs is gone then.
fn kill_with_programs(cluster: &mut Cluster<'_>) -> Result<()> {
    let programs = (0..3).map(|id| ServedProcess::of(cluster, id));
    let programs: Vec<_> = programs.collect::<Result<_>>()?;
    let done = (0..3).zip(&programs).try_for_each(|(id, program)| {
        cluster.kill(id)?;
        let ended = cluster.wait_for("its program to end", || Ok(!program.is_running()));
        ended.with_context(|| format!("replica {id}"))
    });
    for program in programs {
        if program.is_running() {
            program.kill()?; // nobody else would
        }
    }
    done
}

#[test]
fn a_replica_that_is_killed_takes_its_program_along() {
    run_started(three(&REDIS), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        kill_with_programs(cluster)
    });
}

const MEMCACHED: [&str; 7] = ["memcached", "-u", "nobody", "-p", "6379", "-l", "0.0.0.0"];

/// One that gives up the user that it was started as is no longer killed by the kernel with who started it,
/// unless it asks for that once more.
#[test]
fn a_replica_that_is_killed_takes_a_program_of_another_user_along() {
    run_started(three(&MEMCACHED), |cluster| {
        cluster.wait_for("programs of another user", || {
            let is_there = |id| -> Result<bool> {
                TcpStream::connect(cluster.redis(id))?;
                Ok(ServedProcess::of(cluster, id)?.user()? != 0)
            };
            Ok((0..3).all(|id| is_there(id).unwrap_or(false)))
        })?;
        kill_with_programs(cluster)
    });
}
