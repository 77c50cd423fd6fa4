//! What the secret file is worth to a thief: where replicas speak TLS they agree on the keys between their
//! planes, and a packet made with the file's key is nobody's; where they do not, the file is all there is.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run_started};
use quorumwire_cluster_tests::forgery::{Forger, forwarded_set, said_by};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};
use quorumwire_wire::packet::Kind;

const ALL: [u16; 3] = [0, 1, 2];
/// How long nothing must come of what was forged.
const NOTHING_FOR: Duration = Duration::from_millis(500);
/// Each kind of packet is forged this often, under both epochs' numbers.
const FORGED: u64 = 50;
/// So many before it is looked whether they were counted: a socket's buffer has room for them.
const FORGED_AT_ONCE: u64 = 5;
/// Packets that are kept and sent again.
const KEPT: usize = 20;

fn plan(tls: Tls, durability: Durability) -> Plan {
    Plan {
        tls,
        // Long enough that a busy machine does not end the terms this test watches.
        options: vec![("election-timeout-ms", "5000")],
        ..Plan::fast(3, durability)
    }
}

/// The fast term that all run, and its leader.
fn settled(cluster: &Cluster<'_>) -> Result<(u16, u64)> {
    let leader = cluster.wait_for_fast_term(&ALL)?;
    let fast = cluster.status(leader)?.fast_term.context("it has begun")?;
    Ok((leader, fast.term))
}

/// Forges what each kind of packet could do most harm with; how many packets went to each replica.
fn forge(cluster: &Cluster<'_>, forger: &Forger, (leader, term): (u16, u64)) -> Result<[u64; 3]> {
    let slot = |id: u16| u8::try_from(id).expect("a small id");
    let last = cluster.status(leader)?.last_index;
    let mut sent = [0; 3];
    for id in ALL {
        // Whom a packet to this replica comes from, if it is to be taken.
        let from = if id == leader { (id + 1) % 3 } else { leader };
        let (forward, command) = forwarded_set(slot(from), term, "forged", b"by a thief");
        let next = said_by(slot(from), Kind::Append, term, last + 1);
        let packets = [
            (forward, command),
            (
                said_by(slot(from), Kind::AppendOk, term, last + 1),
                Vec::new(),
            ),
            (
                said_by(slot(from), Kind::Heartbeat, term, last + 100),
                Vec::new(),
            ),
            (said_by(slot(from), Kind::Retransmit, term, 1), Vec::new()),
            (next, Vec::new()),
        ];
        for _ in 0..FORGED_AT_ONCE {
            for (header, payload) in &packets {
                forger.send(cluster.plane(id), header, payload)?;
                sent[usize::from(id)] += 2;
            }
        }
    }
    Ok(sent)
}

/// The key of the secret file opens nothing: what is forged with it is counted, and the fast term goes on.
fn a_stolen_secret_is_worth_nothing(durability: Durability) {
    let seed = seed();
    run_started(plan(Tls::Peers, durability), |cluster| {
        let fast = settled(cluster)?;
        let load = Running::start(Load::modest("forged"), &cluster.targets(), seed);
        load.wait_for_writes(100)?;
        ensure!(settled(cluster)? == fast, "the fast term goes on");
        for id in ALL {
            // Those who were asked have taken the leader's key, and nobody another's.
            ensure!(cluster.counter(id, "fast_term_keys_dropped_not_leader")? == 0);
            ensure!(cluster.counter(id, "message_dropped_not_certified")? == 0);
            ensure!(cluster.counter(id, "fast_term_keys_missing")? == 0);
            let had = cluster.counter(id, "fast_term_keys_kept")?
                + cluster.counter(id, "fast_term_keys_drawn")?;
            ensure!(had > 0, "replica {id} has had no key");
        }
        let tags = |id| cluster.counter(id, "plane_tag");
        let before = [tags(0)?, tags(1)?, tags(2)?];
        let forger = Forger::with_secret(&cluster.secret_file(), &cluster.status(0)?.lineage)?;
        let mut refused = before;
        for _ in 0..FORGED / FORGED_AT_ONCE {
            let sent = forge(cluster, &forger, fast)?;
            for id in ALL {
                let place = usize::from(id);
                refused[place] += sent[place];
                cluster.wait_for("all that was forged to be refused", || {
                    Ok(tags(id)? == refused[place])
                })?;
            }
        }
        load.wait_for_writes(200)?;
        cluster.stays("nothing forged is there", NOTHING_FOR, || {
            Ok(cluster.get("forged")?.is_none())
        })?;
        ensure!(settled(cluster)? == fast, "the fast term was ended");
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        Ok(())
    });
}

#[test]
fn under_tls_packets_made_with_a_stolen_secret_are_refused() {
    a_stolen_secret_is_worth_nothing(Durability::Sync);
}

#[test]
fn under_tls_packets_made_with_a_stolen_secret_are_refused_in_memory_mode() {
    a_stolen_secret_is_worth_nothing(Durability::Memory);
}

/// The same forgery where replicas do not speak TLS: it succeeds, so it is one, and the documents say so.
#[test]
fn without_tls_whoever_has_the_secret_speaks_as_a_replica() {
    run_started(plan(Tls::Off, Durability::Memory), |cluster| {
        let (leader, term) = settled(cluster)?;
        let forger = Forger::with_secret(&cluster.secret_file(), &cluster.status(leader)?.lineage)?;
        let from = u8::try_from((leader + 1) % 3)?;
        let (header, payload) = forwarded_set(from, term, "forged", b"by a thief");
        cluster.wait_for("a forged command to be carried out", || {
            forger.send(cluster.plane(leader), &header, &payload)?;
            Ok(cluster.get("forged")?.as_deref() == Some("by a thief"))
        })?;
        Ok(())
    });
}

/// What was recorded in one fast term is not even looked at in another, which has another key. Only terms
/// that are both odd or both even say so: under the other number there is no key at all.
#[test]
fn each_fast_term_has_a_key_of_its_own() {
    let seed = seed();
    let mut plan = plan(Tls::Peers, Durability::Sync);
    // Packets are recorded where those of planes in the kernel are not seen.
    plan.plane = "socket".into();
    plan.options.clear();
    run_started(plan, |cluster| {
        let (mut leader, mut term) = settled(cluster)?;
        let load = Running::start(Load::modest("recorded"), &cluster.targets(), seed);
        load.wait_for_writes(100)?;
        // A key stays until a term of the same parity has its own, so of three terms two will do.
        let mut recorded = [const { None }; 2];
        let kept = loop {
            let parity = usize::from(term % 2 == 1);
            if let Some(kept) = recorded[parity].take() {
                break kept;
            }
            recorded[parity] = Some(cluster.keep_packets(leader, (leader + 1) % 3, KEPT)?);
            cluster.kill(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            load.wait_for_writes(100)?;
            cluster.start(leader)?;
            let (next, after) = settled(cluster)?;
            println!("fast term {after} after {term}");
            ensure!(after > term);
            (leader, term) = (next, after);
        };
        load.wait_for_writes(200)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        let (_, now) = settled(cluster)?;
        ensure!(now % 2 == term % 2, "the fast term was ended");

        let count = |name| -> Result<[u64; 3]> {
            let of = |id| cluster.counter(id, name);
            Ok([of(0)?, of(1)?, of(2)?])
        };
        let (tags, old) = (count("plane_tag")?, count("plane_term_old")?);
        let forger = Forger::with_secret(&cluster.secret_file(), &cluster.status(leader)?.lineage)?;
        for id in ALL {
            for packet in &kept {
                forger.repeat(cluster.plane(id), packet)?;
            }
        }
        let refused = tags.map(|before| before + KEPT as u64);
        cluster.wait_for("all that was recorded to be refused", || {
            Ok(count("plane_tag")? == refused)
        })?;
        ensure!(count("plane_term_old")? == old, "they were looked at");
        Ok(())
    });
}
