//! What clients of a served Redis were told, judged: registers and lists are linearizable, and nothing that
//! was acknowledged is lost, while leaders die one after the other, some of them while programs save
//! themselves, or are cut off, frames are lost, or replicas lose their disks; and a request that ends the
//! program everywhere.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Plan, run_started};
use quorumwire_cluster_tests::linearizability::list::{Asked, ListCall, check_list};
use quorumwire_cluster_tests::process::Process;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::served::{
    REDIS, connect, ended_in, three, wait_for_equal_redis, wait_for_redis,
};
use quorumwire_cluster_tests::workload::{Load, Running};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use redis::{Commands as _, Connection};

/// What clients must have been told to be done meanwhile.
const DONE: [&str; 6] = ["get", "set", "add", "transaction", "delete", "increment"];
/// Clients that append to lists or read them, and how long each waits before it asks again.
const LIST_CLIENTS: u64 = 6;
const LIST_PAUSE: Duration = Duration::from_millis(15);
/// A client goes on with the next list after so many of its calls: lists stay short.
const CALLS_TO_A_LIST: u64 = 60;
const LEADERS_KILLED: usize = 20;
/// As often programs are told to save themselves when the leader dies.
const SAVES_AT_KILLS: f64 = 0.4;
/// At each of these kills, the first among them, the leader's program is saving itself already.
const KILLS_TO_A_SAVE: usize = 7;
/// What a leader says when its program begins to.
const SAVES: &str = "the served program saves itself: its clients' connections end";
const REQUEST_MAX: Duration = Duration::from_secs(2);
/// A tenth of all frames is lost until so many writes were acknowledged.
const WRITES_UNDER_LOSS: u64 = 1000;

/// More than the log grows in a moment in which nobody asks: by the time.
const ENTRIES_WITHOUT_CLIENTS_MAX: u64 = 100;

/// One client of the lists.
struct ListClient {
    addresses: Vec<SocketAddr>,
    target: usize,
    connection: Option<Connection>,
    start: Instant,
    random: ChaCha8Rng,
    calls: Vec<(u64, ListCall)>,
}

impl ListClient {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("less than 584 years")
    }

    /// Until it is told to stop. What it did, by the list.
    fn run(mut self, number: u64, stop: &AtomicBool) -> Vec<(u64, ListCall)> {
        for call in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let list = call / CALLS_TO_A_LIST;
            let value = number << 32 | call;
            let is_append = self.random.random_bool(0.6);
            self.ask(list, is_append.then_some(value));
            thread::sleep(LIST_PAUSE);
        }
        self.calls
    }

    /// Appends a value, or reads.
    fn ask(&mut self, list: u64, value: Option<u64>) {
        if self.connection.is_none() {
            self.target += 1;
            let address = self.addresses[self.target % self.addresses.len()];
            self.connection = open(address).ok();
        }
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let key = format!("list-{list}");
        let invoked_ns = self.now_ns();
        let asked = match value {
            Some(value) => {
                let length = connection.rpush(&key, value);
                Some(Asked::Append(value, length.ok()))
            }
            None => connection.lrange(&key, 0, -1).ok().map(Asked::Read),
        };
        let is_answered = matches!(asked, Some(Asked::Read(_) | Asked::Append(_, Some(_))));
        if is_answered {
            self.connection = Some(connection);
        }
        let Some(asked) = asked else {
            return; // nobody has read it
        };
        let answered_ns = is_answered.then(|| self.now_ns());
        let call = ListCall {
            invoked_ns,
            answered_ns,
            asked,
        };
        self.calls.push((list, call));
    }
}

fn open(address: SocketAddr) -> Result<Connection> {
    let client = redis::Client::open(format!("redis://{address}/"))?;
    let connection = client.get_connection_with_timeout(REQUEST_MAX)?;
    connection.set_read_timeout(Some(REQUEST_MAX))?;
    connection.set_write_timeout(Some(REQUEST_MAX))?;
    Ok(connection)
}

/// Judges what was seen of each list. Nobody is at work on them any more.
fn judge_lists(cluster: &Cluster<'_>, calls: &[(u64, ListCall)]) -> Result<()> {
    let mut connection = connect(cluster.redis(0))?;
    let lists = calls
        .iter()
        .map(|(list, _)| list + 1)
        .max()
        .context("no list")?;
    let mut appended = 0;
    for list in 0..lists {
        let last: Vec<u64> = connection.lrange(format!("list-{list}"), 0, -1)?;
        let of_list = calls.iter().filter(|(of, _)| *of == list);
        let of_list: Vec<ListCall> = of_list.map(|(_, call)| call.clone()).collect();
        check_list(&of_list, &last).with_context(|| format!("list {list}"))?;
        appended += last.len();
    }
    let unknown = calls
        .iter()
        .filter(|(_, call)| call.answered_ns.is_none())
        .count();
    println!(
        "{} calls of {lists} lists, {appended} values, {unknown} calls unknown",
        calls.len()
    );
    ensure!(appended > 50, "void: {appended} values were appended");
    Ok(())
}

/// Clients of all replicas ask while this is done, and all of what they saw is judged.
fn judge_while(
    cluster: &mut Cluster<'_>,
    (name, clients): (&'static str, u32),
    what: impl FnOnce(&mut Cluster<'_>, &Running, &mut ChaCha8Rng) -> Result<()>,
) -> Result<()> {
    let seed = seed();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    wait_for_redis(cluster, &[0, 1, 2])?;
    let addresses: Vec<_> = (0..3).map(|id| cluster.redis(id)).collect();
    let load = Load {
        clients,
        ..Load::modest(name)
    };
    let (load, stop) = (
        Running::start(load, &addresses, seed),
        AtomicBool::new(false),
    );
    let start = Instant::now();
    let calls = thread::scope(|scope| -> Result<_> {
        let workers: Vec<_> = (0..LIST_CLIENTS)
            .map(|number| {
                let client = ListClient {
                    addresses: addresses.clone(),
                    target: usize::try_from(number).expect("a few"),
                    connection: None,
                    start,
                    random: ChaCha8Rng::seed_from_u64(seed ^ number),
                    calls: Vec::new(),
                };
                let stop = &stop;
                scope.spawn(move || client.run(number, stop))
            })
            .collect();
        let done = what(cluster, &load, &mut random);
        stop.store(true, Ordering::Relaxed);
        let calls = workers.into_iter().map(|it| it.join().expect("a client"));
        let calls: Vec<_> = calls.flatten().collect();
        done.map(|()| calls)
    })?;
    let report = load.finish()?;
    for done in DONE {
        let count = report.redis.get(done).copied().unwrap_or(0);
        ensure!(count > 0, "void: no {done}");
    }
    wait_for_redis(cluster, &[0, 1, 2])?;
    report.judge(&addresses)?;
    judge_lists(cluster, &calls)?;
    wait_for_equal_redis(cluster, &[0, 1, 2])
}

/// Asks the leader for a snapshot, at which all programs save themselves and begin anew, and does not wait.
fn snapshot(cluster: &Cluster<'_>, leader: u16) -> Result<Process> {
    let arguments = ["snapshot", "--addr", &cluster.http(leader).to_string()].map(String::from);
    let standard = [Stdio::null(), Stdio::null(), Stdio::null()];
    cluster.start_beside(cluster.binary(), &arguments, standard)
}

#[test]
fn twenty_leaders_die_and_registers_and_lists_are_linearizable() {
    run_started(three(&REDIS), |cluster| {
        judge_while(cluster, ("kills", 16), |cluster, load, random| {
            for kill in 0..LEADERS_KILLED {
                load.wait_for_writes(random.random_range(20..200))?;
                let leader = cluster.wait_for_leader()?;
                let has_begun = kill % KILLS_TO_A_SAVE == 0;
                let before = cluster.log(leader).matches(SAVES).count();
                let asked = (random.random_bool(SAVES_AT_KILLS) || has_begun)
                    .then(|| snapshot(cluster, leader));
                let _asked = asked.transpose()?;
                if has_begun {
                    cluster.wait_for("the leader's program to save itself", || {
                        Ok(cluster.log(leader).matches(SAVES).count() > before)
                    })?;
                } else {
                    // Until there are so few writes more that the programs save themselves, or soon will.
                    load.wait_for_writes(random.random_range(0..60))?;
                }
                cluster.kill(leader)?;
                cluster.wait_for_leader_other_than(leader)?;
                load.wait_for_writes(random.random_range(20..200))?;
                cluster.start(leader)?;
                // Sometimes the next leader dies while this one's program is still behind.
                if random.random_bool(0.7) {
                    cluster.wait_for_ready(&[leader])?;
                    wait_for_redis(cluster, &[leader])?;
                }
            }
            cluster.wait_for_ready(&[0, 1, 2])?;
            let saved: Vec<u64> = (0..3)
                .map(|id| Ok(cluster.status(id)?.snapshot_index))
                .collect::<Result<_>>()?;
            ensure!(
                saved.iter().any(|index| *index > 0),
                "void: no program has saved itself"
            );
            load.wait_for_writes(100)
        })
    });
}

/// What a leader says when the log holds the clients of another replica to be gone.
const GIVEN_UP: &str = "not heard for long: its clients' connections end";

#[test]
fn leaders_are_cut_off_and_registers_and_lists_are_linearizable() {
    run_started(three(&REDIS), |cluster| {
        judge_while(cluster, ("cuts", 24), |cluster, load, _| {
            // First for so short that its clients keep their connections.
            for is_given_up in [false, true] {
                load.wait_for_writes(200)?;
                let leader = cluster.wait_for_leader()?;
                cluster.network().isolate(leader)?;
                let next = cluster.wait_for_leader_other_than(leader)?;
                load.wait_for_writes(200)?;
                cluster.wait_for("clients to be given up", || {
                    Ok(!is_given_up || cluster.log(next).contains(GIVEN_UP))
                })?;
                cluster.network().heal()?;
                cluster.wait_for_ready(&[0, 1, 2])?;
            }
            cluster.wait_for("clients of who was away to be cut", || {
                let cut = |id| cluster.counter(id, "served_connections_cut_with_gateway");
                Ok((0..3).map(cut).sum::<Result<u64>>()? > 0)
            })?;
            load.wait_for_writes(200)
        })
    });
}

#[test]
fn a_tenth_of_all_frames_is_lost_and_registers_and_lists_are_linearizable() {
    run_started(three(&REDIS), |cluster| {
        judge_while(cluster, ("losses", 96), |cluster, load, _| {
            load.wait_for_writes(200)?;
            cluster.network().lose(10)?;
            load.wait_for_writes(WRITES_UNDER_LOSS)?;
            cluster.network().heal()?;
            load.wait_for_writes(200)
        })
    });
}

/// A replica has lost its disk while clients ask, and comes back: from the log's beginning, or behind a cut,
/// which took that, from what the others' programs have saved.
fn wipe_under_load(
    cluster: &mut Cluster<'_>,
    load: &Running,
    (lost, is_cut): (u16, bool),
) -> Result<()> {
    let before = cluster.status(lost)?.incarnation;
    cluster.kill(lost)?;
    cluster.wipe(lost)?;
    load.wait_for_writes(200)?;
    let leader = cluster.wait_for_leader()?;
    if is_cut {
        cluster.command(&["snapshot", "--addr", &cluster.http(leader).to_string()])?;
        let first = cluster.status(leader)?.first_index;
        ensure!(first > 1, "void: nothing was cut");
        load.wait_for_writes(100)?;
    }
    cluster.start(lost)?;
    cluster.wait_for_ready(&[lost])?;
    wait_for_redis(cluster, &[lost])?;
    let status = cluster.status(lost)?;
    ensure!(status.incarnation != before, "it remembers: {status:?}");
    let installed = status.snapshot_index;
    ensure!(
        (installed > 0) == is_cut,
        "it began from the snapshot of {installed}"
    );
    load.wait_for_writes(200)
}

#[test]
fn replicas_lose_their_disks_and_registers_and_lists_are_linearizable() {
    let plan = Plan {
        options: vec![("log-tail-mib", "0"), ("log-kept-mib", "0")],
        ..three(&REDIS)
    };
    run_started(plan, |cluster| {
        judge_while(cluster, ("wiped", 16), |cluster, load, _| {
            load.wait_for_writes(200)?;
            for is_cut in [false, true] {
                let leader = cluster.wait_for_leader()?;
                wipe_under_load(cluster, load, ((leader + 1) % 3, is_cut))?;
            }
            let leader = cluster.wait_for_leader()?;
            wipe_under_load(cluster, load, (leader, true))
        })
    });
}

/// The exit code of a replica whose program would end again.
const ENDED_BY_LOG: i32 = 3;

/// The log has it for good: each program ends at it, and again whenever it comes there. No replica tries
/// again by itself.
#[test]
fn a_request_that_ends_the_program_ends_every_replica_once_and_says_which_it_was() {
    run_started(three(&REDIS), |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        for number in 0..20 {
            let _: i64 = connect(cluster.redis(number % 3))?.rpush("list", number)?;
        }
        let before = cluster.status(cluster.wait_for_leader()?)?.last_index;
        let poisoned = redis::cmd("DEBUG")
            .arg("SEGFAULT")
            .query::<redis::Value>(&mut connect(cluster.redis(1))?);
        ensure!(poisoned.is_err(), "{poisoned:?}");
        let ended: Vec<u64> = (0..3)
            .map(|id| ended_in(cluster, id, ENDED_BY_LOG))
            .collect::<Result<_>>()?;
        ensure!(ended.iter().all(|it| *it == ended[0]), "{ended:?}");
        let last = before + ENTRIES_WITHOUT_CLIENTS_MAX;
        ensure!(
            (before + 1..last).contains(&ended[0]),
            "{ended:?} behind {before}"
        );
        // Whoever starts them again hears the same, from each.
        cluster.start_all()?;
        for id in 0..3 {
            let again = ended_in(cluster, id, ENDED_BY_LOG)?;
            ensure!(again == ended[0], "replica {id}: {again} after {ended:?}");
        }
        Ok(())
    });
}
