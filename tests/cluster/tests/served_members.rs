//! Members that come and go while they serve a program that was not written for it.

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, run_started};
use quorumwire_cluster_tests::served::{
    REDIS, connect, three, wait_for_equal_redis, wait_for_redis,
};
use redis::Commands as _;

/// What is pushed before a member comes, while it is there, and after one has gone.
const EACH_TIME: u32 = 200;

fn push(cluster: &Cluster<'_>, id: u16) -> Result<()> {
    let mut connection = connect(cluster.redis(id))?;
    for _ in 0..EACH_TIME {
        let mut pipe = redis::pipe();
        pipe.incr("count", 1).rpush("list", id).spop("set");
        pipe.sadd("set", "a").sadd("set", "b");
        pipe.query::<()>(&mut connection)?;
    }
    Ok(())
}

#[test]
fn a_fourth_redis_comes_and_the_leader_goes() {
    let mut plan = three(&REDIS);
    plan.spares = 1;
    run_started(plan, |cluster| {
        wait_for_redis(cluster, &[0, 1, 2])?;
        push(cluster, 0)?;
        cluster.start_joining(3)?;
        cluster.change_member(&["add"], 3)?;
        wait_for_redis(cluster, &[3])?;
        // Its own clients are served, and what was there before it came is there.
        push(cluster, 3)?;
        wait_for_equal_redis(cluster, &[0, 1, 2, 3])?;

        let leader = cluster.wait_for_leader()?;
        cluster.change_member(&["remove"], leader)?;
        cluster.wait_for("another leader", || {
            Ok(cluster.leader().is_some_and(|id| id != leader))
        })?;
        let others: Vec<u16> = (0..4).filter(|id| *id != leader).collect();
        let other = *others.last().context("another one")?;
        push(cluster, other)?;
        wait_for_equal_redis(cluster, &others)?;
        let count: u32 = connect(cluster.redis(other))?.get("count")?;
        ensure!(count == 3 * EACH_TIME, "{count}");
        Ok(())
    });
}
