//! Packets that are signed rightly and make no sense, mixed with what hosts do: whatever comes, the engine
//! goes on, and its entries come out in order. Replicas err too, and a client's key is many clients'.
use crate::network::{GROUP, HostEvent, InFlight, Network, address, grant, keys};
use quorumwire_fastpath::{TagKey, tag};
use quorumwire_interfaces::{Grant, Index, Term};
use quorumwire_seed::seed;
use quorumwire_wire::packet::{Header, Kind, MAGIC, PacketReason, VERSION};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const RUNS: u64 = 500;
const STEPS: usize = 400;

fn near(random: &mut ChaCha8Rng, number: u64) -> u64 {
    match random.random_range(0..12) {
        0 => random.random(),
        1 => u64::MAX - random.random_range(0..3),
        2..=4 => number.saturating_sub(random.random_range(0..5)),
        _ => number.saturating_add(random.random_range(0..3)),
    }
}

/// A packet that passes all checks before the step, most likely.
fn packet(random: &mut ChaCha8Rng, network: &Network, slot: usize) -> Vec<u8> {
    let registers = network.engines[slot].registers();
    let kind = Kind::ALL[random.random_range(0..Kind::ALL.len())];
    let clients = matches!(kind, Kind::Request | Kind::Answer | Kind::Submit);
    let payload: Vec<u8> = match kind {
        Kind::Request
        | Kind::Append
        | Kind::Answer
        | Kind::Submit
        | Kind::P1b
        | Kind::P2a
        | Kind::P2b => vec![1; random.random_range(0..=1376)],
        Kind::Forward => vec![1; random.random_range(18..=1376)],
        Kind::P1a | Kind::Admit => vec![1; random.random_range(0..=56)],
        Kind::AppendOk
        | Kind::Retransmit
        | Kind::Heartbeat
        | Kind::HeartbeatOk
        | Kind::Checkpoint => Vec::new(),
    };
    let command = if kind == Kind::Forward {
        &payload[18..]
    } else {
        &payload[..]
    };
    let header = Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        sender: if kind == Kind::Request {
            255
        } else {
            random.random_range(0..4)
        },
        flags: if random.random() {
            2
        } else {
            random.random_range(0..16) * 2
        },
        payload_bytes: u16::try_from(payload.len()).unwrap(),
        group: GROUP.0,
        payload_crc32c: if command.is_empty() {
            0
        } else {
            crc32c::crc32c(command)
        },
        term: if random.random_range(0..8) == 0 {
            4
        } else {
            registers.term.0
        },
        index: near(random, registers.last_index.0),
        previous_term: registers.last_term.0,
        commit_index: near(random, registers.last_index.0),
        session: random.random_range(0..3),
        sequence: near(random, registers.round),
        tag: 0,
    };
    let key = TagKey::new(if clients {
        keys().clients.key
    } else {
        keys().cluster.key
    });
    let tag = tag(&key, &header.encode(), &payload);
    [&Header { tag, ..header }.encode()[..], &payload].concat()
}

fn host(random: &mut ChaCha8Rng, network: &mut Network, slot: usize, round: &mut u64) {
    let registers = network.engines[slot].registers();
    let engaged = network.engines[slot].is_engaged();
    match random.random_range(0..6) {
        0 if engaged => network.try_persisted(slot, near(random, registers.last_index.0)),
        1 => {
            let upto = near(random, registers.last_index.0);
            let _ = network.engines[slot].release(Index(upto));
        }
        2 if engaged && slot == 0 => {
            *round += 1;
            network.try_heartbeat(*round);
        }
        3 if random.random_range(0..20) == 0 => {
            network.engines[slot].disengage();
        }
        4 if !engaged => {
            network.take(slot);
            let next = Grant {
                term: Term(registers.term.0.max(4) + 1),
                last_index: registers.last_index.max(Index(10)),
                last_term: registers.last_term,
                commit_index: registers.commit_index,
                held: random.random(),
                ..grant(3, slot)
            };
            let _ = network.engines[slot].engage(&next);
        }
        _ => network.take(slot),
    }
}

/// The entries that one host got in one term follow each other.
fn assert_in_order(seen: &[HostEvent]) {
    let mut last = None;
    for event in seen {
        if let HostEvent::Entry(index, ..) = event {
            assert!(
                last.is_none_or(|last| *index == last + 1),
                "{last:?} {index}"
            );
            last = Some(*index);
        }
    }
}

#[test]
fn signed_nonsense_stops_nothing() {
    let seed = seed();
    let mut reasons = BTreeMap::new();
    let (mut stored, mut resent, mut blind) = (0, 0, 0);
    for run in 0..RUNS {
        let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_add(run));
        let mut network = Network::engaged(3, 8);
        let mut round = 0;
        for _ in 0..STEPS {
            let slot = random.random_range(0..3);
            if random.random_range(0..3) == 0 {
                host(&mut random, &mut network, slot, &mut round);
            } else {
                let datagram = packet(&mut random, &network, slot);
                let from = address(random.random_range(0..5));
                network.send(from, slot, datagram);
            }
            let deliver = random.random_range(0..4);
            for _ in 0..deliver {
                if let Some(flying) = network.queue.pop_front() {
                    network.deliver(flying);
                }
            }
            network.queue.truncate(200);
        }
        for slot in 0..3 {
            network.take(slot);
            assert_in_order(&network.seen[slot]);
            let registers = network.engines[slot].registers();
            assert!(registers.commit_index <= registers.last_index);
            assert!(registers.persisted_index <= registers.last_index);
            let counters = network.engines[slot].counters();
            stored += counters.stored;
            resent += counters.resent;
            blind += counters.blind_answers;
            for reason in PacketReason::ALL {
                *reasons.entry(reason.name()).or_insert(0) += counters.reason(reason);
            }
        }
    }
    println!("stored {stored}, resent {resent}, blind {blind}, {reasons:?}");
    assert!(stored > 100 && resent > 100 && blind > 10);
    let expected = [
        "off",
        "term_old",
        "stranger",
        "unexpected",
        "before_start",
        "beyond_last",
        "ring_full",
        "repeated",
        "gap",
        "behind_ring",
        "malformed",
    ];
    for reason in expected {
        assert!(reasons[reason] > 0, "never reached: {reason}");
    }
}

/// What one packet led to at an engine that got nothing else meanwhile.
#[derive(Debug)]
struct LedTo {
    reasons: u64,
    stored: u64,
    events: usize,
    sent: usize,
}

fn deliver_alone(network: &mut Network, slot: usize, datagram: Vec<u8>) -> LedTo {
    let sum = |network: &Network| network.engines[slot].counters().reasons.sum();
    let stored = |network: &Network| network.engines[slot].counters().stored;
    let before = (sum(network), stored(network), network.seen[slot].len());
    network.queue.clear();
    network.deliver(InFlight {
        from: address(4),
        to: address(slot),
        bytes: datagram,
    });
    LedTo {
        reasons: sum(network) - before.0,
        stored: stored(network) - before.1,
        events: network.seen[slot].len() - before.2,
        sent: network.queue.len(),
    }
}

/// Acknowledgements are taken in silence. Every other packet leads to something or is counted with a reason:
/// none is lost without a trace, also of those that the step leaves to software.
#[test]
fn a_packet_that_leads_to_nothing_is_counted_with_its_reason() {
    let seed = seed();
    let mut dropped = BTreeMap::new();
    for run in 0..RUNS {
        let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_add(run));
        let mut network = Network::engaged(3, 8);
        let mut round = 0;
        for _ in 0..STEPS {
            let slot = random.random_range(0..3);
            if random.random_range(0..3) == 0 {
                host(&mut random, &mut network, slot, &mut round);
                continue;
            }
            let datagram = packet(&mut random, &network, slot);
            let header = Header::decode(datagram.first_chunk().expect("it has a header"));
            let kind = Kind::from_byte(header.kind).expect("a kind there is");
            let led_to = deliver_alone(&mut network, slot, datagram);
            let did = led_to.stored > 0 || led_to.events > 0 || led_to.sent > 0;
            let silent = matches!(kind, Kind::AppendOk | Kind::HeartbeatOk);
            assert!(did || silent || led_to.reasons > 0, "{header:?} {led_to:?}");
            if !did && led_to.reasons > 0 {
                *dropped.entry(kind.name()).or_insert(0) += 1;
            }
        }
    }
    println!("led to nothing, and counted: {dropped:?}");
    assert_eq!(
        dropped.len(),
        Kind::ALL.len(),
        "never reached: a kind of packet"
    );
}
