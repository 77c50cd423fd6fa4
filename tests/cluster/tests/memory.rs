//! The memory limit of a real cluster: refused and evicted alike at every replica, whoever dies meanwhile.

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::client::Outcome;
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::status::page;
use redis::Connection;
use std::time::Duration;

const ALL: [u16; 3] = [0, 1, 2];

/// How long an answer may take: longer than a request lives in the server.
const ANSWER_MAX: Duration = Duration::from_secs(8);

const VALUE: [u8; 1000] = [b'x'; 1000];

/// What an item of [`fill`] counts.
const ITEM_BYTES: u64 = 1000 + 6 + 128;

fn connect(cluster: &Cluster<'_>, id: u16) -> Result<Connection> {
    let client = redis::Client::open(format!("redis://{}/", cluster.redis(id)))?;
    let connection = client.get_connection_with_timeout(ANSWER_MAX)?;
    connection.set_read_timeout(Some(ANSWER_MAX))?;
    Ok(connection)
}

fn set(connection: &mut Connection, key: u32) -> Result<(), redis::RedisError> {
    let key = format!("k{key:05}");
    redis::cmd("SET").arg(key).arg(&VALUE).query(connection)
}

/// A figure of a replica, as its metrics tell it.
fn metric(cluster: &Cluster<'_>, id: u16, name: &str) -> Result<u64> {
    let (_, text) = page(cluster.http(id), "/metrics")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = line.with_context(|| format!("no {name}"))?;
    Ok(value.parse::<u64>()?)
}

/// One replica dies, misses what is evicted, and comes back by a snapshot; then all die.
fn replicas_are_equal_after_deaths(
    cluster: &mut Cluster<'_>,
    write: impl Fn(&mut Connection, u32) -> Result<()>,
) -> Result<()> {
    let leader = cluster.wait_for_settled_leader()?;
    let victim = (leader + 1) % 3;
    cluster.kill(victim)?;
    let mut redis = connect(cluster, leader)?;
    for key in 10_000..10_300 {
        write(&mut redis, key)?;
    }
    let http = cluster.http(leader).to_string();
    cluster.command(&["snapshot", "--addr", &http])?;
    cluster.start(victim)?;
    for key in 20_000..20_100 {
        write(&mut redis, key)?;
    }
    cluster.wait_for_equal(&ALL)?;
    cluster.kill_all()?;
    cluster.start_all()?;
    let leader = cluster.wait_for_settled_leader()?;
    cluster.wait_for_ready(&ALL)?;
    let mut redis = connect(cluster, leader)?;
    for key in 30_000..30_100 {
        write(&mut redis, key)?;
    }
    cluster.wait_for_equal(&ALL)?;
    Ok(())
}

#[test]
fn what_was_written_longest_ago_is_evicted_alike_everywhere() {
    let mut plan = Plan::steady(3, Durability::Sync);
    plan.options = vec![("memory-limit-mib", "1"), ("memory-policy", "evict")];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        cluster.wait_for_ready(&ALL)?;
        for id in ALL {
            cluster.wait_for("the option to hold", || {
                Ok(metric(cluster, id, "quorumwire_memory_limit_bytes")? == 1 << 20)
            })?;
        }
        let room = u32::try_from((1 << 20) / ITEM_BYTES)?;
        let mut redis = connect(cluster, (leader + 1) % 3)?;
        for key in 0..2 * room {
            set(&mut redis, key)?;
        }
        cluster.wait_for_equal(&ALL)?;
        for id in ALL {
            ensure!(cluster.client(id)?.get("k00000") == Outcome::Done(None));
            let used = metric(cluster, id, "quorumwire_memory_used_bytes")?;
            ensure!(used <= (1 << 20) + 2 * ITEM_BYTES, "{used} at {id}");
            ensure!(metric(cluster, id, "quorumwire_items_evicted_total")? >= u64::from(room) - 2);
        }
        let said = cluster.command(&["memory", "--addr", &cluster.http(0).to_string()])?;
        ensure!(said.contains("of 1048576 bytes"), "{said}");
        replicas_are_equal_after_deaths(cluster, |redis, key| Ok(set(redis, key)?))?;
        Ok(())
    });
}

#[test]
fn what_does_not_fit_is_refused_alike_everywhere() {
    run_started(Plan::steady(3, Durability::Sync), |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        cluster.wait_for_ready(&ALL)?;
        let http = cluster.http((leader + 1) % 3).to_string();
        cluster.command(&["memory", "--limit", "100kib", "--addr", &http])?;
        let write = |redis: &mut Connection, key: u32| match set(redis, key) {
            Err(error) if error.code() != Some("OOM") => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        };
        let mut redis = connect(cluster, leader)?;
        for key in 0..200 {
            write(&mut redis, key)?;
        }
        ensure!(set(&mut redis, 200).is_err_and(|error| error.code() == Some("OOM")));
        for id in ALL {
            let answer = cluster.client(id)?.set("other", b"1");
            let is_refused =
                matches!(&answer, Outcome::Unknown(why) if why.contains("out of memory"));
            ensure!(is_refused, "{answer:?} at {id}");
        }
        cluster.wait_for_equal(&ALL)?;
        replicas_are_equal_after_deaths(cluster, write)?;
        // By any client, at any replica.
        for id in ALL {
            let mut redis = connect(cluster, id)?;
            let larger = (200 + u64::from(id)) << 10;
            let set = [
                "maxmemory",
                &larger.to_string(),
                "maxmemory-policy",
                "allkeys-lru",
            ];
            redis::cmd("CONFIG").arg("SET").arg(&set).exec(&mut redis)?;
            for other in ALL {
                cluster.wait_for("the limit to be known", || {
                    Ok(metric(cluster, other, "quorumwire_memory_limit_bytes")? == larger)
                })?;
            }
        }
        let mut redis = connect(cluster, 0)?;
        for key in 40_000..40_300 {
            set(&mut redis, key)?;
        }
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}
