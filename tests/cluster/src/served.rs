//! Programs that were not written for it, served by every replica, and clients of all of them while the
//! leader dies.
use crate::cluster::{Cluster, Durability, Plan};
use anyhow::{Context as _, Result, ensure};
use redis::Connection;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The real Redis, which says what it holds.
pub const REDIS: [&str; 7] = [
    "redis-server",
    "--port",
    "6379",
    "--protected-mode",
    "no",
    "--enable-debug-command",
    "yes",
];
const PATIENCE: Duration = Duration::from_secs(20);

/// Three replicas that serve this, with their writes on disk.
#[must_use]
pub fn three(serves: &[&'static str]) -> Plan {
    Plan {
        serves: serves.to_vec(),
        ..Plan::new(3, Durability::Sync)
    }
}

/// A client of the Redis that is served there.
pub fn connect(address: SocketAddr) -> Result<Connection> {
    let client = redis::Client::open(format!("redis://{address}/"))?;
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Waits until a client can connect to the Redis of each of these.
pub fn wait_for_redis(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    cluster.wait_for("programs that answer", || {
        Ok(ids.iter().all(|id| connect(cluster.redis(*id)).is_ok()))
    })
}

/// What the Redis there holds, in short.
fn digest(address: SocketAddr) -> Result<String> {
    let mut connection = connect(address)?;
    Ok(redis::cmd("DEBUG").arg("DIGEST").query(&mut connection)?)
}

/// Waits until the Redis of each of these holds the same.
pub fn wait_for_equal_redis(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    cluster.wait_for("equal programs", || {
        let digests = ids.iter().map(|id| digest(cluster.redis(*id)));
        Ok(digests.collect::<Result<BTreeSet<_>>>()?.len() == 1)
    })
}

/// No program has said something else than the others, as far as that was compared, and no replica has ended
/// for it.
pub(crate) fn check_outputs(cluster: &mut Cluster<'_>) -> Result<()> {
    let plan = cluster.plan();
    if plan.serves.is_empty() || plan.outputs_differ {
        return Ok(());
    }
    for status in cluster.statuses() {
        let (id, differences) = (status.id, status.output_differences);
        ensure!(differences.is_empty(), "replica {id}: {differences:?}");
    }
    for id in cluster.founders() {
        let is_quarantined = cluster.log(id).contains("it was quarantined");
        ensure!(!is_quarantined, "replica {id} was quarantined");
    }
    Ok(())
}

/// Waits until a replica has ended, with this code, because its program has, and gives the log's entry in
/// which it did.
pub fn ended_in(cluster: &mut Cluster<'_>, id: u16, code: i32) -> Result<u64> {
    let status = cluster.wait_for_exit(id)?;
    ensure!(
        status.code() == Some(code),
        "replica {id} ended with {status}"
    );
    let log = cluster.log(id);
    let mut lines = log.lines().rev();
    let said = lines.find_map(|line| line.split_once("has ended (").map(|(_, behind)| behind));
    let said = said.with_context(|| format!("what replica {id} says: {log}"))?;
    let (_, index) = said.split_once("of the log's entry ").context("an index")?;
    let digits = index.split(|it: char| !it.is_ascii_digit()).next();
    Ok(digits.unwrap_or_default().parse()?)
}

/// What one of many clients is given.
#[derive(Debug)]
pub struct Given<'a> {
    /// The replica that it is a client of.
    pub id: u16,
    /// Where that serves.
    pub address: SocketAddr,
    /// Nobody else has this name.
    pub name: String,
    stop: &'a AtomicBool,
    answered: &'a AtomicU64,
}

impl Given<'_> {
    /// Whether it is to go on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Something of what it asked was answered.
    pub fn is_answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// So many clients of each of three replicas do this. Once all together were answered so often, the leader is
/// killed, and once they were again, they are stopped. What each says, with its replica.
pub fn kill_leader_under<T: Send>(
    cluster: &mut Cluster<'_>,
    leader: u16,
    (clients_of_each, answers): (u64, u64),
    work: impl Fn(&Given<'_>) -> Result<T> + Sync,
) -> Result<Vec<(u16, T)>> {
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let addresses: Vec<_> = (0..3).map(|id| (id, cluster.redis(id))).collect();
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for (id, address) in addresses {
            for client in 0..clients_of_each {
                let given = Given {
                    id,
                    address,
                    name: format!("{id}-{client}"),
                    stop: &stop,
                    answered: &answered,
                };
                let work = &work;
                workers.push((id, scope.spawn(move || work(&given))));
            }
        }
        let go_on = |cluster: &Cluster<'_>, when: &str| {
            let before = answered.load(Ordering::Relaxed);
            cluster.wait_for(&format!("clients go on {when}"), || {
                Ok(answered.load(Ordering::Relaxed) >= before + answers)
            })
        };
        let happened = go_on(cluster, "with all replicas")
            .and_then(|()| cluster.kill(leader))
            .and_then(|()| go_on(cluster, "without one"));
        stop.store(true, Ordering::Relaxed);
        let said = workers
            .into_iter()
            .map(|(id, it)| Ok((id, it.join().expect("a client")?)));
        let said: Result<Vec<_>> = said.collect();
        happened.and(said)
    })
}
