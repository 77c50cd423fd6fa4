//! Many requests sent ahead on one connection: answered in order, as if one after the other, in bounded
//! memory, and whether or not anybody leads.

mod model;
mod pipe;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::client::{Client, Outcome};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::network::Machine::Replica;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::slowness::while_slow;
use quorumwire_cluster_tests::status::Role;
use quorumwire_cluster_tests::usage;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use model::{Exchange, Model};
use pipe::Pipe;

/// A value of the largest size.
const LARGE_BYTES: usize = 1 << 20;

/// By how much the memory of a replica may grow for one connection, whatever it sends.
const GROWTH_MAX: u64 = 64 << 20;

/// How long a client that reads nothing is watched.
const UNREAD: Duration = Duration::from_millis(1500);

/// For how long a leader stands still again and again that is to be without a lease at times.
const LEASE_GONE: Duration = Duration::from_millis(20);

/// How long a server keeps a request before it gives up on it.
const SERVER_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A leader and one of its followers, both ready.
fn leader_and_follower(cluster: &Cluster<'_>) -> Result<[u16; 2]> {
    let leader = cluster.wait_for_settled_leader()?;
    cluster.wait_for_ready(&[0, 1, 2])?;
    Ok([leader, (leader + 1) % 3])
}

/// Sends pipelines as the seed has it and compares every byte; what the answers came to.
fn follow(pipe: &mut Pipe, model: &mut Model, rng: &mut ChaCha8Rng) -> Result<()> {
    const CHUNKS: usize = 120;
    const REQUESTS_MAX: usize = 200;
    for chunk in 0..CHUNKS {
        let most = [4, 20, REQUESTS_MAX][rng.random_range(0..3)];
        let asked: Vec<Exchange> = (0..rng.random_range(1..=most))
            .map(|_| model.ask(rng))
            .collect();
        let bytes: Vec<u8> = asked.iter().flat_map(|asked| asked.bytes.clone()).collect();
        // A packet may end anywhere.
        let (first, second) = bytes.split_at(rng.random_range(0..=bytes.len()));
        pipe.send(first)?;
        pipe.send(second)?;
        for (number, asked) in asked.iter().enumerate() {
            model.check(asked, pipe).with_context(|| {
                let request = String::from_utf8_lossy(&asked.bytes);
                format!("chunk {chunk}, request {number}: {request:?}")
            })?;
        }
    }
    Ok(())
}

#[test]
fn what_is_sent_ahead_is_answered_as_if_one_after_the_other() {
    are_answered_in_order(Plan::steady(3, Durability::Memory));
}

/// Several commands of one connection stand in one entry there, with reads between them.
#[test]
fn what_is_sent_ahead_through_a_plane_is_answered_as_if_one_after_the_other() {
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.plane = "socket".into();
    are_answered_in_order(plan);
}

/// A write that is sent behind a read must not be carried out before a majority has been asked for that.
#[test]
fn what_is_sent_ahead_is_in_order_where_reads_ask_a_majority() {
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.plane = "socket".into();
    plan.options.push(("reads", "read-index"));
    are_answered_in_order(plan);
}

/// The leader stands still again and again, and is without a lease when it goes on with what has come
/// meanwhile.
#[test]
fn what_is_sent_ahead_is_in_order_where_leases_run_out() {
    let mut plan = Plan::steady(3, Durability::Memory);
    plan.options
        .extend([("lease-ms", "3"), ("heartbeat-ms", "1")]);
    are_answered_in_order(plan);
}

/// A read that waits for a majority is answered before the write behind it is carried out.
#[test]
fn a_read_without_a_lease_shows_what_was_before_the_write_behind_it() {
    const ROUNDS: usize = 10;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, follower] = leader_and_follower(cluster)?;
        let followers = [follower, (leader + 2) % 3];
        let mut pipe = Pipe::connect(cluster.memcached(leader))?;
        pipe.send(b"set k 0 0 1\r\n0\r\n")?;
        pipe.expect(b"STORED\r\n")?;
        for round in 1..=ROUNDS {
            let before = cluster.status(leader)?.last_index;
            for id in followers {
                cluster.pause(id)?;
            }
            cluster.wait_for("the lease to run out", || {
                Ok(!cluster.status(leader)?.lease)
            })?;
            let (old, new) = (round - 1, round);
            let digits = |number: usize| number.to_string().len();
            pipe.send(format!("get k\r\nset k 0 0 {}\r\n{new}\r\n", digits(new)).as_bytes())?;
            cluster.wait_for("the write to be in the log", || {
                Ok(cluster.status(leader)?.last_index > before)
            })?;
            for id in followers {
                cluster.resume(id)?;
            }
            let item = format!("VALUE k 0 {}\r\n{old}\r\nEND\r\nSTORED\r\n", digits(old));
            pipe.expect(item.as_bytes())
                .with_context(|| format!("round {round}"))?;
        }
        ensure!(cluster.leader() == Some(leader), "the leader changed");
        Ok(())
    });
}

/// A leader that took reads and a write behind them, and was replaced before it could answer: the new leader
/// has the write, and would show it.
#[test]
fn reads_do_not_show_the_write_behind_them_when_another_leader_commits_it() {
    const BEHIND: usize = 48;
    let mut plan = Plan::new(3, Durability::Memory);
    plan.options.push(("election-timeout-ms", "800"));
    run_started(plan, |cluster| {
        let [leader, next] = leader_and_follower(cluster)?;
        let third = (leader + 2) % 3;
        let mut pipe = Pipe::connect(cluster.memcached(leader))?;
        pipe.send(b"set k 0 0 1\r\n0\r\n")?;
        pipe.expect(b"STORED\r\n")?;
        cluster.pause(third)?;
        let large = vec![b'y'; LARGE_BYTES];
        // What the third one has to take in before it can help the next leader to commit anything.
        for number in 0..BEHIND {
            let key = format!("behind{number}");
            ensure!(cluster.client(leader)?.set(&key, &large).expect("set") == "STORED");
        }
        let network = cluster.network();
        network.cut(Replica(leader), Replica(third))?;
        network.cut_one_way(Replica(next), Replica(leader))?;
        cluster.wait_for("the lease to run out", || {
            Ok(!cluster.status(leader)?.lease)
        })?;
        let before = cluster.status(next)?.last_index;
        pipe.send(b"get k\r\nget k\r\nset k 0 0 1\r\n1\r\n")?;
        cluster.wait_for("the next leader to have the write", || {
            Ok(cluster.status(next)?.last_index > before)
        })?;
        ensure!(
            cluster.status(leader)?.role == Role::Leader,
            "it has no time to take the requests"
        );
        cluster.resume(third)?;
        cluster.wait_for("another leader", || {
            Ok(cluster.status(next)?.role == Role::Leader)
        })?;
        cluster.network().heal()?;
        let item = b"VALUE k 0 1\r\n0\r\nEND\r\n";
        pipe.expect(&[&item[..], &item[..], b"STORED\r\n"].concat())?;
        ensure!(
            cluster.wait_for_leader()? == next,
            "the old leader leads again"
        );
        Ok(())
    });
}

/// A write that was passed on to a leader that hangs is never carried out behind what its client sent after
/// it, and a read between the two shows that it was not.
#[test]
fn a_read_behind_a_write_that_hangs_shows_what_came_of_it() {
    let mut plan = Plan::new(3, Durability::Memory);
    // A leader that is silent for four of these is given up, and what was passed on to it with it.
    plan.options.push(("election-timeout-ms", "2000"));
    run_started(plan, |cluster| {
        let [leader, follower] = leader_and_follower(cluster)?;
        let mut pipes = Vec::new();
        for id in [follower, (leader + 2) % 3] {
            let mut pipe = Pipe::connect(cluster.memcached(id))?;
            pipe.send(b"set k 0 0 1\r\n0\r\nget k\r\n")?;
            pipe.expect(b"STORED\r\nVALUE k 0 1\r\n0\r\nEND\r\n")?;
            pipes.push((id, pipe));
        }
        cluster.pause(leader)?;
        for (id, pipe) in &mut pipes {
            let forwarded = |cluster: &Cluster<'_>| -> Result<u64> {
                Ok(cluster.status(*id)?.counters["forwarded_to_leader"])
            };
            let before = forwarded(cluster)?;
            pipe.send(b"set k 0 0 1\r\n1\r\n")?;
            cluster.wait_for("it to be passed on", || Ok(forwarded(cluster)? > before))?;
        }
        let next = cluster.wait_for_leader_other_than(leader)?;
        let pipe = pipes.iter_mut().find(|(id, _)| *id == next);
        let (_, pipe) = pipe.context("a follower leads")?;
        pipe.send(b"get k\r\nset k 0 0 1\r\n2\r\n")?;
        cluster.wait_for("the second write to be carried out", || {
            Ok(cluster.get("k")?.as_deref() == Some("2"))
        })?;
        cluster.resume(leader)?;
        let first = pipe.line()?;
        ensure!(first.starts_with("SERVER_ERROR"), "{first}");
        pipe.expect(b"VALUE k 0 1\r\n0\r\nEND\r\nSTORED\r\n")?;
        ensure!(
            cluster.get("k")?.as_deref() == Some("2"),
            "the first one ran"
        );
        Ok(())
    });
}

/// A write is held up on its way to the leader until others have led, carried out what its client sent behind
/// it, and given leadership back: it is refused then.
#[test]
fn a_write_that_comes_after_others_have_led_is_not_carried_out_behind_a_later_one() {
    const ATTEMPTS: usize = 5;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, follower] = leader_and_follower(cluster)?;
        let third = (leader + 2) % 3;
        for attempt in 1..=ATTEMPTS {
            let first = delay_a_write(cluster, [leader, follower, third])?;
            delay_a_win(cluster, [leader, follower, third])?;
            println!("attempt {attempt}: {first}");
            if first == "SERVER_ERROR not leader: leadership moved, nothing was changed" {
                return Ok(());
            }
            // It came too late, as its client was told: on a machine that is busy with other things.
            ensure!(first.starts_with("SERVER_ERROR outcome unknown"), "{first}");
        }
        anyhow::bail!("no write came in time");
    });
}

/// Does not wait for the answer: the old leader may not hear of it.
fn begin_transfer(cluster: &Cluster<'_>, from: u16, to: u16) -> Result<()> {
    let http = cluster.http(from);
    let wish = format!("{{\"to\": {to}}}");
    let mut stream = TcpStream::connect(http)?;
    write!(
        stream,
        "POST /v1/transfer HTTP/1.1\r\nhost: {http}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{wish}",
        wish.len()
    )?;
    cluster.wait_for("the other one to lead", || {
        Ok(cluster.status(to)?.role == Role::Leader)
    })
}

/// Has a request of a follower's client come to the leader late: after the follower has led and `meanwhile`.
fn delay_a_request(
    cluster: &Cluster<'_>,
    [leader, follower, third]: [u16; 3],
    request: &[u8],
    pipe: &mut Pipe,
    meanwhile: impl FnOnce(&mut Pipe) -> Result<()>,
) -> Result<()> {
    cluster.wait_for_equal(&[leader, follower, third])?;
    let before = cluster.status(follower)?.counters["forwarded_to_leader"];
    let network = cluster.network();
    network.cut_one_way(Replica(follower), Replica(leader))?;
    pipe.send(request)?;
    cluster.wait_for("it to be passed on", || {
        Ok(cluster.status(follower)?.counters["forwarded_to_leader"] > before)
    })?;
    begin_transfer(cluster, leader, follower)?;
    meanwhile(pipe)?;
    begin_transfer(cluster, follower, third)?;
    begin_transfer(cluster, third, leader)?;
    network.heal()
}

/// A memcached client that wins a stale item writes that it did. One whose request comes late has won
/// already.
fn delay_a_win(cluster: &Cluster<'_>, ids: [u16; 3]) -> Result<()> {
    let [leader, follower, _] = ids;
    let mut pipe = Pipe::connect(cluster.memcached(follower))?;
    pipe.send(b"ms stale 1\r\n0\r\nmd stale I\r\n")?;
    pipe.expect(b"HD\r\nHD\r\n")?;
    let before = cluster.status(leader)?.counters["forwarded_from_followers"];
    delay_a_request(cluster, ids, b"mg stale v\r\n", &mut pipe, |pipe| {
        pipe.expect(b"VA 1 X W\r\n0\r\n")?;
        pipe.send(b"md stale I\r\n")?;
        pipe.expect(b"HD\r\n")
    })?;
    cluster.wait_for("the late one to come", || {
        Ok(cluster.status(leader)?.counters["forwarded_from_followers"] > before)
    })?;
    pipe.send(b"mg stale v\r\n")?;
    pipe.expect(b"VA 1 X W\r\n0\r\n")
}

/// What the client of a follower hears of a write that reaches the leader late.
fn delay_a_write(cluster: &Cluster<'_>, ids: [u16; 3]) -> Result<String> {
    let [_, follower, _] = ids;
    let mut pipe = Pipe::connect(cluster.memcached(follower))?;
    pipe.send(b"set k 0 0 1\r\n0\r\n")?;
    pipe.expect(b"STORED\r\n")?;
    delay_a_request(cluster, ids, b"set k 0 0 1\r\n1\r\n", &mut pipe, |pipe| {
        pipe.send(b"get k\r\nset k 0 0 1\r\n2\r\n")?;
        cluster.wait_for("the second write to be carried out", || {
            let client = &mut cluster.client(follower)?;
            Ok(client.get("k").expect("get") == Some(b"2".to_vec()))
        })
    })?;
    let first = pipe.line()?;
    pipe.expect(b"VALUE k 0 1\r\n0\r\nEND\r\nSTORED\r\n")?;
    let last = cluster.get("k")?;
    ensure!(last.as_deref() == Some("2"), "{first}, and {last:?}");
    Ok(first)
}

fn are_answered_in_order(plan: Plan) {
    let seed = seed();
    let has_plane = plan.plane != "none";
    let has = |option: &str| plan.options.iter().any(|(name, _)| *name == option);
    let runs_out = has("lease-ms");
    let is_without_lease = runs_out || has("reads");
    run_started(plan, |cluster| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let ids = leader_and_follower(cluster)?;
        if has_plane {
            cluster.wait_for_fast_term(&[0, 1, 2])?;
        }
        let term = cluster.status(ids[0])?.term;
        for (id, prefix) in ids.into_iter().zip(["leader", "follower"]) {
            let mut model = Model::new(prefix);
            let mut pipe = Pipe::connect(cluster.memcached(id))?;
            let mut body = || follow(&mut pipe, &mut model, &mut rng);
            let followed = if runs_out {
                while_slow(cluster.pid(ids[0])?, LEASE_GONE, body)
            } else {
                body()
            };
            ensure!(cluster.status(ids[0])?.term == term, "the leader changed");
            followed.with_context(|| format!("at the {prefix}, replica {id}"))?;
            println!("at the {prefix}: {:?}", model.outcomes);
            let missed: Vec<_> = model.outcomes_missed().collect();
            ensure!(missed.is_empty(), "never reached: {missed:?}");
            pipe.expect_silence()?;
        }
        cluster.wait_for_equal(&[0, 1, 2])?;
        if is_without_lease {
            let asked = cluster.status(ids[0])?.counters["read_indexes_asked"];
            println!("{asked} times a read had no lease");
            ensure!(asked > 0, "there was always a lease");
        }
        if has_plane {
            let counters = cluster.status(ids[0])?.counters;
            let [entries, commands] = ["plane_bundles", "plane_commands_bundled"]
                .map(|name| counters.get(name).copied().unwrap_or_default());
            println!("{commands} commands in {entries} entries");
            ensure!(commands > 2 * entries && entries > 100, "{counters:?}");
        }
        Ok(())
    });
}

/// A request that is answered on the spot stands between a write and a read: the read must not wait for
/// the write behind it.
#[test]
fn requests_answered_on_the_spot_keep_their_place() {
    const ROUNDS: usize = 50;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        for id in leader_and_follower(cluster)? {
            let mut pipe = Pipe::connect(cluster.memcached(id))?;
            for _ in 0..ROUNDS {
                for (local, answer) in [("mn", "MN\r\n"), ("foo", "ERROR\r\n")] {
                    pipe.send(
                        format!(
                            "set a 0 0 1\r\n1\r\n{local}\r\nget a\r\nset a 0 0 1\r\n2\r\nget a\r\n"
                        )
                        .as_bytes(),
                    )?;
                    let before = "VALUE a 0 1\r\n1\r\nEND\r\n";
                    let behind = "VALUE a 0 1\r\n2\r\nEND\r\n";
                    let all = format!("STORED\r\n{answer}{before}STORED\r\n{behind}");
                    pipe.expect(all.as_bytes())?;
                }
            }
        }
        Ok(())
    });
}

/// What all connections are is answered between their turns, so the write may be carried out first.
#[test]
fn a_read_behind_a_question_about_connections_does_not_show_the_write_behind_it() {
    const ROUNDS: usize = 50;
    run_started(Plan::steady(1, Durability::Memory), |cluster| {
        cluster.wait_for_settled_leader()?;
        let mut pipe = Pipe::connect(cluster.memcached(0))?;
        let values = [("large", vec![b'y'; 700_000]), ("small", b"z".to_vec())];
        let values = BTreeMap::from(values);
        for (key, value) in &values {
            ensure!(cluster.client(0)?.set(key, value).expect("set") == "STORED");
        }
        for round in 0..ROUNDS {
            // More than a message between replicas holds, and than an answer of several keys has room for.
            pipe.send(b"set a 0 0 1\r\n1\r\nstats conns\r\nget a\r\nmg a v\r\nget large large large large\r\n")?;
            pipe.send(b"gets small\r\nset a 0 0 1\r\n2\r\nget a\r\n")?;
            let mut answered = || -> Result<()> {
                pipe.expect(b"STORED\r\n")?;
                while pipe.line()? != "END" {}
                pipe.expect(b"VALUE a 0 1\r\n1\r\nEND\r\nVA 1\r\n1\r\n")?;
                pipe.expect_items(&["large"; 4], &values)?;
                let item = pipe.line()?;
                ensure!(item.starts_with("VALUE small 0 1 "), "{item}");
                pipe.expect(b"z\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\n2\r\nEND\r\n")
            };
            answered().with_context(|| format!("round {round}"))?;
        }
        Ok(())
    });
}

/// A client that has said all it has to say still gets every answer.
#[test]
fn a_client_that_closed_its_side_gets_its_answers() {
    const READS: usize = 20;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let values = BTreeMap::from([("v", vec![b'y'; 700_000])]);
        for id in leader_and_follower(cluster)? {
            ensure!(cluster.client(id)?.set("v", &values["v"]).expect("set") == "STORED");
            let mut pipe = Pipe::connect(cluster.memcached(id))?;
            pipe.send(&b"get v\r\n".repeat(READS))?;
            pipe.say_no_more()?;
            for _ in 0..READS {
                pipe.expect_items(&["v"], &values)?;
            }
        }
        Ok(())
    });
}

#[test]
fn an_answer_cut_for_want_of_room_goes_on_by_itself() {
    const ROUNDS: usize = 4;
    const WARMING: usize = 30;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let values = BTreeMap::from([("v", vec![b'y'; 700_000]), ("x", b"z".to_vec())]);
        for id in leader_and_follower(cluster)? {
            for (key, value) in &values {
                ensure!(cluster.client(id)?.set(key, value).expect("set") == "STORED");
            }
            for round in 0..ROUNDS {
                let mut pipe = Pipe::connect(cluster.memcached(id))?;
                // The kernel's buffers grow to where a whole answer fits.
                pipe.send(&b"get v\r\n".repeat(WARMING))?;
                for _ in 0..WARMING {
                    pipe.expect_items(&["v"], &values)?;
                }
                pipe.send(b"set a 0 0 1\r\nx\r\nget v v v\r\nset b 0 0 1\r\nx\r\nget x\r\n")?;
                let mut answered = || -> Result<()> {
                    pipe.expect(b"STORED\r\n")?;
                    pipe.expect_items(&["v", "v", "v"], &values)?;
                    pipe.expect(b"STORED\r\n")?;
                    pipe.expect_items(&["x"], &values)
                };
                answered().with_context(|| format!("replica {id}, round {round}"))?;
            }
        }
        Ok(())
    });
}

/// Has `request` wait with nobody reading, then reads it with `read`; the replicas' memory is watched
/// from the beginning to the end.
fn in_bounded_memory(
    cluster: &Cluster<'_>,
    at: u16,
    request: &[u8],
    read: impl FnOnce(&mut Pipe) -> Result<()>,
) -> Result<()> {
    let mut before = Vec::new();
    for id in 0..3 {
        usage::reset_peak(cluster.pid(id)?)?;
        before.push(usage::resident_bytes(cluster.pid(id)?)?);
    }
    let check = |when: &str| -> Result<()> {
        for id in 0..3 {
            let peak = usage::peak_bytes(cluster.pid(id)?)?;
            let grown = peak.saturating_sub(before[usize::from(id)]);
            println!(
                "asked at {at}, {when}: replica {id} grew by {} MiB",
                grown >> 20
            );
            ensure!(grown < GROWTH_MAX, "{when}: replica {id} grew by {grown}");
        }
        Ok(())
    };
    let mut pipe = Pipe::connect(cluster.memcached(at))?;
    pipe.send(request)?;
    pipe.wait_for_bytes()?;
    let steady = cluster.stays("the memory is bounded", UNREAD, || {
        let peak = usage::peak_bytes(cluster.pid(at)?)?;
        Ok(peak < before[usize::from(at)] + GROWTH_MAX)
    });
    check("nothing read")?;
    steady?;
    read(&mut pipe)?;
    check("all read")
}

/// Large values for the tests of memory, written.
fn store_large(
    cluster: &Cluster<'_>,
    id: u16,
    bytes: usize,
) -> Result<BTreeMap<&'static str, Vec<u8>>> {
    let value: Vec<u8> = (0..=u8::MAX).cycle().take(bytes).collect();
    ensure!(cluster.client(id)?.set("big", &value).expect("set") == "STORED");
    Ok(BTreeMap::from([("big", value), ("a", b"x".to_vec())]))
}

const GETS: usize = 300;

/// Pipelines many reads of a large value with a write behind, first not reading at all.
fn pipeline_unread(id_of: impl FnOnce([u16; 2]) -> u16 + Send) {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let ids = leader_and_follower(cluster)?;
        let values = store_large(cluster, ids[0], LARGE_BYTES)?;
        let mut request = b"get big\r\n".repeat(GETS);
        request.extend_from_slice(b"set a 0 0 1\r\nx\r\nget a\r\n");
        in_bounded_memory(cluster, id_of(ids), &request, |pipe| {
            for number in 0..GETS {
                pipe.expect_items(&["big"], &values)
                    .with_context(|| format!("read {number} of {GETS}"))?;
            }
            pipe.expect(b"STORED\r\n")?;
            pipe.expect_items(&["a"], &values)
        })
    });
}

#[test]
fn reads_nobody_takes_cost_the_leader_bounded_memory() {
    pipeline_unread(|[leader, _]| leader);
}

#[test]
fn reads_nobody_takes_cost_a_follower_bounded_memory() {
    pipeline_unread(|[_, follower]| follower);
}

/// Asks for one key very often in one line, first not reading at all.
fn one_line_unread(id_of: impl FnOnce([u16; 2]) -> u16 + Send) {
    const COPIES: usize = 2000;
    const VALUE_BYTES: usize = 200_000;
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let ids = leader_and_follower(cluster)?;
        let values = store_large(cluster, ids[0], VALUE_BYTES)?;
        // Writes on both sides: the answer must be that of the moment between them, and yet wait.
        let write = b"set a 0 0 1\r\nx\r\n".as_slice();
        let copies = b" big".repeat(COPIES);
        let request = [write, b"get", &copies, b"\r\n", write].concat();
        in_bounded_memory(cluster, id_of(ids), &request, |pipe| {
            pipe.expect(b"STORED\r\n")?;
            pipe.expect_items(&vec!["big"; COPIES], &values)?;
            pipe.expect(b"STORED\r\n")
        })
    });
}

#[test]
fn one_line_of_many_keys_costs_the_leader_bounded_memory() {
    one_line_unread(|[leader, _]| leader);
}

#[test]
fn one_line_of_many_keys_costs_a_follower_bounded_memory() {
    one_line_unread(|[_, follower]| follower);
}

/// A follower passes the leader's answer on, and a message between replicas holds less than a client might
/// ask for.
#[test]
fn an_answer_too_long_for_a_message_is_an_error_and_changes_nothing() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let ids = leader_and_follower(cluster)?;
        let values = store_large(cluster, ids[0], LARGE_BYTES)?;
        for id in ids {
            let mut pipe = Pipe::connect(cluster.memcached(id))?;
            pipe.send(b"gat -1 big big big\r\n")?;
            pipe.expect(b"SERVER_ERROR out of memory writing get response\r\n")?;
            pipe.send(b"gat 0 big\r\n")?;
            pipe.expect_items(&["big"], &values)?;
        }
        ensure!(
            cluster.status(ids[0])?.role == Role::Leader,
            "the leader changed"
        );
        Ok(())
    });
}

#[test]
fn a_slow_reader_costs_bounded_memory() {
    run_started(Plan::steady(3, Durability::Memory), |cluster| {
        let [leader, _] = leader_and_follower(cluster)?;
        let values = store_large(cluster, leader, LARGE_BYTES)?;
        // Between two bites the server has had a turn to answer more.
        let mut other = cluster.client(leader)?;
        in_bounded_memory(cluster, leader, &b"get big\r\n".repeat(GETS), |pipe| {
            pipe.between_bites(move || other.get("a").map(drop).expect("another client"));
            for _ in 0..GETS {
                pipe.expect_items(&["big"], &values)?;
            }
            Ok(())
        })
    });
}

/// Fails unless these replicas, which have no leader, say so soon and at little cost.
fn expect_refusals(cluster: &Cluster<'_>, ids: &[u16]) -> Result<()> {
    const WATCHED: Duration = Duration::from_secs(2);
    let begun = Instant::now();
    let costs = |ids: &[u16]| -> Result<Vec<Duration>> {
        ids.iter()
            .map(|id| usage::processor_time(cluster.pid(*id)?))
            .collect()
    };
    let before = costs(ids)?;
    for id in ids {
        let sent = Instant::now();
        let patience = SERVER_REQUEST_TIMEOUT + Duration::from_secs(1);
        let mut client = Client::connect(cluster.memcached(*id), patience)?;
        let outcome = client.get("k");
        println!("replica {id}: {outcome:?} after {:?}", sent.elapsed());
        ensure!(
            matches!(&outcome, Outcome::Refused(line) if line.starts_with("SERVER_ERROR")),
            "replica {id}: {outcome:?} after {:?}",
            sent.elapsed()
        );
        ensure!(
            sent.elapsed() <= SERVER_REQUEST_TIMEOUT,
            "{:?}",
            sent.elapsed()
        );
    }
    let rest = WATCHED.saturating_sub(begun.elapsed());
    cluster.stays("nobody leads", rest, || Ok(cluster.leader().is_none()))?;
    let (after, interval) = (costs(ids)?, begun.elapsed());
    for ((id, before), after) in ids.iter().zip(before).zip(after) {
        let cost = after.saturating_sub(before);
        println!("replica {id} took {cost:?} of {interval:?}");
        ensure!(
            cost * 2 < interval,
            "replica {id} took {cost:?} of {interval:?}"
        );
    }
    Ok(())
}

#[test]
fn without_a_quorum_reads_are_refused_soon_and_at_little_cost() {
    const LEARNER: u16 = 3;
    // Two of three that lose their memory would not come back.
    let mut plan = Plan::new(3, Durability::Sync);
    plan.spares = 1;
    run_started(plan, |cluster| {
        cluster.start_joining(LEARNER)?;
        cluster.change_member(&["add", "--learner"], LEARNER)?;
        cluster.put("k", "1")?;
        cluster.wait_for("the learner to serve", || {
            let served = cluster.client(LEARNER)?.get("k").done().flatten();
            Ok(served.as_deref() == Some(b"1"))
        })?;

        // Its followers go, the leader stays and is none any more.
        let leader = cluster.wait_for_settled_leader()?;
        let followers: Vec<_> = (0..3).filter(|id| *id != leader).collect();
        for id in &followers {
            cluster.kill(*id)?;
        }
        cluster.wait_for("the leader to notice", || {
            Ok(cluster.status(leader)?.role != Role::Leader)
        })?;
        expect_refusals(cluster, &[LEARNER, leader])?;

        // The other way round: a follower stays.
        for id in &followers {
            cluster.start(*id)?;
        }
        cluster.wait_for_ready(&[0, 1, 2, LEARNER])?;
        let leader = cluster.wait_for_settled_leader()?;
        let follower = (leader + 1) % 3;
        cluster.kill((leader + 2) % 3)?;
        cluster.kill(leader)?;
        expect_refusals(cluster, &[LEARNER, follower])
    });
}
