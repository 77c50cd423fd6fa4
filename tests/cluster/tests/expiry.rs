//! Life spans: nothing is shown after its end, whoever leads, and everything is until then.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use quorumwire_cluster_tests::client::{Client, Outcome};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};

/// How late the end of a life span may show: the log's time goes on in steps of 10 ms, and a busy
/// machine takes its turn.
const LATENESS_MAX: Duration = Duration::from_millis(500);

/// How early it may show: the log's time is in whole milliseconds, and one may have begun already.
const EARLINESS_MAX: Duration = Duration::from_millis(1);

/// How long a request may take where no leader is for a while; servers say so after one second.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long a key that ends may be waited for.
const END_DEADLINE: Duration = Duration::from_secs(15);

/// What the readers of a key saw.
#[derive(Debug, Default)]
struct ReaderCounts {
    /// Answers with the key to reads sent before its end.
    in_time: u64,
    /// Answers with the key to reads sent after its end: how long after.
    late: Vec<Duration>,
    /// Answers without the key.
    gone: u64,
    /// Reads that no leader could be found for.
    refused: u64,
}

/// Reads a key until it is gone.
fn read_to_the_end(mut client: Client, key: &str, end: Instant) -> Result<ReaderCounts> {
    let mut seen = ReaderCounts::default();
    let deadline = Instant::now() + END_DEADLINE;
    while seen.gone == 0 {
        let sent = Instant::now();
        ensure!(sent < deadline, "{key} never ended: {seen:?}");
        match client.get(key) {
            Outcome::Done(Some(_)) if sent > end => seen.late.push(sent - end),
            Outcome::Done(Some(_)) => seen.in_time += 1,
            Outcome::Done(None) => seen.gone += 1,
            Outcome::Refused(_) => seen.refused += 1,
            Outcome::Unknown(reason) => bail!("a read's outcome cannot be unknown: {reason}"),
        }
    }
    Ok(seen)
}

/// Writes a key that lives one second, kills the leader, and reads at all that are left. They have
/// applied the write, or may only have it in their logs, when the leader goes.
fn fail_over_and_read(
    cluster: &mut Cluster<'_>,
    key: &str,
    is_applied: bool,
) -> Result<ReaderCounts> {
    const READERS_EACH: usize = 4;
    let leader = cluster.wait_for_leader()?;
    cluster.wait_for_ready(&[0, 1, 2])?;
    let others = (0..3).filter(|id| *id != leader);
    let mut clients = Vec::new();
    for id in others.flat_map(|id| [id; READERS_EACH]) {
        clients.push(Client::connect(cluster.memcached(id), PATIENCE)?);
    }
    let mut writer = cluster.client(leader)?;
    let stored = writer.line(&format!("set {key} 0 1 5\r\nhello"));
    ensure!(stored.done().as_deref() == Some("STORED"));
    let end = Instant::now() + Duration::from_secs(1) + LATENESS_MAX;
    ensure!(
        clients[0].get(key).done().flatten().is_some(),
        "{key} did not live at all"
    );
    if is_applied {
        cluster.wait_for_equal(&[0, 1, 2])?;
    }
    cluster.kill(leader)?;
    let seen = thread::scope(|scope| -> Result<Vec<ReaderCounts>> {
        let readers: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| read_to_the_end(client, key, end)))
            .collect();
        let ended = readers.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|seen| seen.expect("no panic")).collect()
    })?;
    cluster.start(leader)?;
    cluster.wait_for_ready(&[leader])?;
    ensure!(
        cluster.client(leader)?.get(key).expect("read").is_none(),
        "the old leader shows {key}"
    );
    Ok(seen
        .into_iter()
        .fold(ReaderCounts::default(), |mut all, seen| {
            all.in_time += seen.in_time;
            all.late.extend(seen.late);
            all.gone += seen.gone;
            all.refused += seen.refused;
            all
        }))
}

/// Nobody may show a key that ended while nobody led.
fn end_without_leader(is_applied: bool) {
    const ROUNDS: usize = 2;
    let mut plan = Plan::new(3, Durability::Sync);
    // Longer than the key lives: the new leader's first reads come after its end.
    plan.options = vec![("election-timeout-ms", "1500"), ("lease-ms", "1500")];
    run_started(plan, |cluster| {
        let (mut gone, mut refused) = (0, 0);
        for round in 0..ROUNDS {
            let seen = fail_over_and_read(cluster, &format!("brief-{round}"), is_applied)?;
            println!("{seen:?}");
            ensure!(seen.late.is_empty(), "shown after its end: {:?}", seen.late);
            gone += seen.gone;
            refused += seen.refused;
        }
        ensure!(gone > 0, "nobody read after a failover");
        ensure!(refused > 0, "somebody led all the time");
        Ok(())
    });
}

#[test]
fn a_key_all_have_applied_that_ends_while_nobody_leads_is_shown_by_nobody() {
    end_without_leader(true);
}

#[test]
fn a_key_in_the_log_that_ends_while_nobody_leads_is_shown_by_nobody() {
    end_without_leader(false);
}

/// Asks the replica for a key until it is gone; when, in time since `begun`, it was last seen and
/// first missed.
fn life_span(client: &mut Client, key: &str, begun: Instant) -> Result<(Duration, Duration)> {
    let mut last_seen = Duration::ZERO;
    while begun.elapsed() < END_DEADLINE {
        let sent = begun.elapsed();
        if client.get(key).expect("read").is_none() {
            return Ok((last_seen, begun.elapsed()));
        }
        last_seen = sent;
    }
    bail!("{key} is still there after {END_DEADLINE:?}")
}

/// Fails unless a key that was given `life` at `begun` is there for as long and then is not.
fn check_life(client: &mut Client, key: &str, begun: Instant, life: Duration) -> Result<()> {
    let (last_seen, missed) = life_span(client, key, begun)?;
    println!("{key}: of {life:?} last seen after {last_seen:?}, missed at {missed:?}");
    ensure!(
        missed + EARLINESS_MAX >= life,
        "{key} was gone after {missed:?}, not {life:?}"
    );
    ensure!(
        last_seen <= life + LATENESS_MAX,
        "{key} was there after {last_seen:?}, not {life:?}"
    );
    Ok(())
}

#[test]
fn touch_and_gat_extend_a_life_on_all_replicas() {
    run_started(Plan::steady(3, Durability::Sync), |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        let mut client = cluster.client(leader)?;
        for key in ["plain", "touched", "gat"] {
            let stored = client.line(&format!("set {key} 0 1 1\r\nx"));
            ensure!(stored.expect("set") == "STORED");
        }
        ensure!(client.line("touch touched 3").expect("touch") == "TOUCHED");
        let begun = Instant::now();
        ensure!(client.line("touch missing 3").expect("touch") == "NOT_FOUND");
        // Its answer is an item without a unique value, in three lines.
        let mut other = cluster.client((leader + 1) % 3)?;
        ensure!(other.line("gat 30 gat").expect("gat") == "VALUE gat 0 1");

        let (_, gone) = life_span(&mut client, "plain", begun)?;
        ensure!(gone < Duration::from_secs(1) + LATENESS_MAX, "{gone:?}");
        for id in 0..3 {
            let mut client = cluster.client(id)?;
            for (key, expected) in [("plain", false), ("touched", true), ("gat", true)] {
                let found = client.get(key).expect("read").is_some();
                ensure!(found == expected, "replica {id}, {key}: {found}");
            }
        }
        // The answer to `touch` came a little after the life it gave began.
        let (last_seen, missed) = life_span(&mut client, "touched", begun)?;
        println!("touched: last seen after {last_seen:?}, missed at {missed:?}");
        ensure!(last_seen > Duration::from_secs(2), "touch gave no life");
        ensure!(last_seen <= Duration::from_secs(3) + LATENESS_MAX);
        for id in 0..3 {
            let mut client = cluster.client(id)?;
            ensure!(client.get("gat").expect("read").is_some(), "replica {id}");
            ensure!(client.get("touched").expect("read").is_none());
        }
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

#[test]
fn a_life_counts_from_now_also_after_an_idle_time() {
    /// Longer than half of the life: counted from what the log knew last, it would end early.
    const IDLE: Duration = Duration::from_millis(1500);
    const LIFE: Duration = Duration::from_secs(2);
    run_started(Plan::steady(3, Durability::Sync), |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        cluster.wait_for_ready(&[0, 1, 2])?;
        let mut client = cluster.client(leader)?;
        ensure!(client.set("old", b"x").expect("set") == "STORED");
        let stored = client.line("set lives 0 1000 1\r\nx");
        ensure!(stored.expect("set") == "STORED");
        for (request, answer, key) in [
            ("set new 0 2 1\r\nx", "STORED", "new"),
            ("touch old 2", "TOUCHED", "old"),
        ] {
            let before = cluster.wait_for_equal(&[0, 1, 2])?.applied_index;
            // Whoever asks what time is left puts nothing there.
            cluster.stays("nothing comes into the log", IDLE, || {
                for id in [leader, (leader + 1) % 3] {
                    let left = cluster.client(id)?.line("mg lives t").expect("time left");
                    ensure!(left != "HD t-1" && left.starts_with("HD t"), "{left}");
                }
                Ok(cluster.digest(leader)?.applied_index == before)
            })?;
            let begun = Instant::now();
            ensure!(client.line(request).expect(request) == answer);
            check_life(&mut client, key, begun, LIFE).context(request)?;
        }
        Ok(())
    });
}
