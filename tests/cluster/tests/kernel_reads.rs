//! Memcached clients over UDP whose reads and writes the plane in the kernel serves by itself, beside others
//! that come over TCP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{
    Cluster, Durability, Plan, REQUEST_TIMEOUT, SETTLE_DEADLINE, run_started,
};
use quorumwire_cluster_tests::datagrams::Datagrams;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

/// Writes between two faults.
const WRITES: u64 = 250;
/// Of a hundred frames on the switch.
const LOST: u8 = 10;
/// Between two writes of a client that waits for no answer.
const PACE: Duration = Duration::from_millis(10);
/// So many writes the kernel takes at least, before and while its leader hangs.
const TAKEN_MIN: u64 = 20;

fn plan(replicas: u16) -> Plan {
    let mut plan = Plan::new(replicas, Durability::Memory);
    plan.plane = "xdp".into();
    plan.switches = vec!["memcached-udp"];
    plan
}

#[test]
fn what_the_kernel_reads_and_writes_is_linearizable_with_what_comes_over_tcp() {
    use Fault::{Isolate, Kill, Lose, Pause};
    endure(3, &[Kill, Pause, Isolate, Lose, Kill, Pause, Isolate]);
}

#[test]
fn what_five_in_the_kernel_read_and_write_is_linearizable_with_what_comes_over_tcp() {
    use Fault::{Isolate, Kill, Lose, Pause};
    endure(5, &[Isolate, Kill, Lose, Pause]);
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    /// It does not run, but its program in the kernel does.
    Pause,
    /// Clients still reach it and its program, whose lease runs out.
    Isolate,
    /// Everybody's frames.
    Lose,
}

fn endure(replicas: u16, faults: &[Fault]) {
    let seed = seed();
    let all: Vec<u16> = (0..replicas).collect();
    run_started(plan(replicas), |cluster| {
        cluster.wait_for_settled_leader()?;
        let load = Load {
            udp_percent: 60,
            ..Load::modest("kernel")
        };
        let load = Running::start(load, &cluster.targets(), seed);
        let mut served = ServedCounts::default();
        for fault in faults {
            load.wait_for_writes(WRITES)?;
            let leader = served.wait_for_more(cluster, &all)?;
            happen(cluster, &load, leader, *fault)?;
        }
        cluster.wait_for_settled_leader()?;
        load.wait_for_writes(WRITES)?;
        let report = load.finish()?;
        println!("{served:?}");
        report.judge(&cluster.targets())?;
        cluster.wait_for_equal(&all)?;
        Ok(())
    });
}

/// And the cluster writes on meanwhile; then it is over.
fn happen(cluster: &mut Cluster<'_>, load: &Running, leader: u16, fault: Fault) -> Result<()> {
    println!("{fault:?}, of leader {leader}");
    match fault {
        Fault::Kill => cluster.kill(leader)?,
        Fault::Pause => cluster.pause(leader)?,
        Fault::Isolate => cluster.network().isolate(leader)?,
        Fault::Lose => cluster.network().lose(LOST)?,
    }
    if !matches!(fault, Fault::Lose) {
        cluster.wait_for_leader_other_than(leader)?;
    }
    load.wait_for_writes(WRITES)?;
    match fault {
        Fault::Kill => {
            cluster.start(leader)?;
            cluster.wait_for_ready(&[leader])
        }
        Fault::Pause => cluster.resume(leader),
        Fault::Isolate | Fault::Lose => cluster.network().heal(),
    }
}

/// `plane-reads off`: what is written is taken in the kernel, what is read comes from the server.
#[test]
fn reads_in_the_kernel_can_be_switched_off() {
    for (plane_reads, in_kernel) in [("off", false), ("on", true)] {
        let mut plan = plan(1);
        plan.options = vec![("plane-reads", plane_reads)];
        run_started(plan, |cluster| {
            cluster.wait_for_fast_term(&[0])?;
            let mut client = Datagrams::new(REQUEST_TIMEOUT)?;
            let at = cluster.memcached(0);
            cluster.wait_for("the kernel to take a write", || {
                let stored = client.set(at, "k", b"v").done();
                ensure!(stored.as_deref() == Some("STORED"), "{stored:?}");
                Ok(taken(cluster, 0)? > 0)
            })?;
            for _ in 0..TAKEN_MIN {
                let value = client.get(at, "k").done().flatten();
                ensure!(value.as_deref() == Some(b"v"), "{value:?}");
            }
            let answered = answered(cluster, 0)?;
            ensure!(
                (answered > 0) == in_kernel,
                "plane-reads {plane_reads}: the kernel has answered {answered}"
            );
            Ok(())
        });
    }
}

/// Its program could go on with what clients send until its ring is full: that is no word from a leader.
#[test]
fn a_leader_that_hangs_is_replaced_though_its_program_goes_on() {
    run_started(plan(3), |cluster| {
        let leader = cluster.wait_for_fast_term(&[0, 1, 2])?;
        let at = cluster.memcached(leader);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let posting = scope.spawn(|| post(at, &stop));
            let replaced = is_replaced(cluster, leader);
            stop.store(true, Ordering::Relaxed);
            let posted = posting.join().expect("it does not panic");
            replaced.and(posted)
        })?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

/// Writes to one replica over UDP until told to stop, whatever it answers.
fn post(to: std::net::SocketAddr, stop: &AtomicBool) -> Result<()> {
    let mut datagrams = Datagrams::new(REQUEST_TIMEOUT)?;
    let end = Instant::now() + 2 * SETTLE_DEADLINE;
    while !stop.load(Ordering::Relaxed) && Instant::now() < end {
        datagrams.post_set(to, "posted", b"1")?;
        thread::sleep(PACE);
    }
    Ok(())
}

fn is_replaced(cluster: &mut Cluster<'_>, leader: u16) -> Result<()> {
    cluster.wait_for("the kernel to take writes", || {
        Ok(taken(cluster, leader)? >= TAKEN_MIN)
    })?;
    let before = taken(cluster, leader)?;
    cluster.pause(leader)?;
    cluster.wait_for_leader_other_than(leader)?;
    cluster.resume(leader)?;
    let meanwhile = taken(cluster, leader)? - before;
    println!("{meanwhile} writes were taken while the leader hung");
    ensure!(
        meanwhile >= TAKEN_MIN,
        "void: {meanwhile} writes were taken"
    );
    Ok(())
}

/// `set`s that a replica's program has taken.
fn taken(cluster: &Cluster<'_>, id: u16) -> Result<u64> {
    cluster.counter(id, "plane_memcached_taken")
}

/// `get`s that a replica's program has answered.
fn answered(cluster: &Cluster<'_>, id: u16) -> Result<u64> {
    cluster.counter(id, "plane_memcached_answered")
}

/// What programs in the kernel have served, as far as it was asked of them.
#[derive(Debug, Default)]
struct ServedCounts {
    sets: u64,
    reads: u64,
}

impl ServedCounts {
    /// By a replica since it runs.
    fn by(cluster: &Cluster<'_>, id: u16) -> Result<Self> {
        Ok(Self {
            sets: taken(cluster, id)?,
            reads: answered(cluster, id)?,
        })
    }

    /// Waits until the program of whoever leads has taken and answered something from now on; who that was.
    fn wait_for_more(&mut self, cluster: &Cluster<'_>, all: &[u16]) -> Result<u16> {
        let before: Result<Vec<Self>> = all.iter().map(|id| Self::by(cluster, *id)).collect();
        let before = before?;
        let mut found = None;
        cluster.wait_for("the kernel of a leader to serve both", || {
            let leader = cluster.wait_for_fast_leader()?;
            let (now, before) = (Self::by(cluster, leader)?, &before[usize::from(leader)]);
            if now.sets > before.sets && now.reads > before.reads {
                self.sets += now.sets - before.sets;
                self.reads += now.reads - before.reads;
                found = Some(leader);
            }
            Ok(found.is_some())
        })?;
        found.context("waited for one")
    }
}
