//! Packets with any fields, as whoever has the cluster's key may send them: no role panics, or answers one
//! packet with more than its limits allow.
use quorumwire_paxos::{
    ADOPTED_AT_ONCE, Acceptor, Coordinator, CoordinatorOptions, Deployment, Learner,
    LearnerOptions, Lives, Order, Orders, Proposer, RECOVERING_MAX, Values,
};
use quorumwire_seed::seed;
use quorumwire_wire::packet::{Header, Kind, PaxosRegisters};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Packets that were sent last, and are answered.
const REMEMBERED: usize = 40;
const PACKETS: u64 = 300_000;
const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 2,
    copies: 2,
    window: 16,
};
const ORDERS_MAX: usize = ADOPTED_AT_ONCE + RECOVERING_MAX + 8;

/// Mostly small, else near where sums overflow.
fn number(random: &mut ChaCha8Rng) -> u64 {
    match random.random_range(0..8) {
        0..5 => random.random_range(0..40),
        5 => 0x100 * random.random_range(1..6) + random.random_range(0..5),
        6 => u64::MAX - random.random_range(0..40),
        _ => random.random(),
    }
}

fn packet(random: &mut ChaCha8Rng) -> (Header, Vec<u8>) {
    let lives = (0..3).fold(Lives::first(3), |lives, acceptor| {
        let life = if random.random_range(0..9) == 0 {
            number(random)
        } else {
            0
        };
        lives.with(acceptor, life)
    });
    let payload = match random.random_range(0..4) {
        0 => lives.encode(),
        1 => vec![1; random.random_range(0..60)],
        _ => Vec::new(),
    };
    let kind = Kind::ALL[random.random_range(0..Kind::ALL.len())];
    let header = Header {
        kind: kind as u8,
        sender: if random.random_range(0..9) == 0 {
            random.random()
        } else {
            random.random_range(0..4)
        },
        flags: if random.random_range(0..3) == 0 {
            random.random()
        } else {
            0
        },
        group: if random.random_range(0..20) == 0 {
            8
        } else {
            7
        },
        term: number(random),
        index: number(random),
        previous_term: number(random),
        commit_index: if random.random_range(0..5) == 0 {
            number(random)
        } else {
            lives.number()
        },
        session: number(random),
        sequence: number(random),
        payload_bytes: u16::try_from(payload.len()).unwrap(),
        ..Header::default()
    };
    (header, payload)
}

/// An answer to something that was sent, often with one field that is wrong.
fn answer(random: &mut ChaCha8Rng, sent: &[Header]) -> Option<(Header, Vec<u8>)> {
    let asked = sent.get(random.random_range(0..sent.len().max(1)))?;
    let kind = match Kind::from_byte(asked.kind)? {
        Kind::P1a => Kind::P1b,
        Kind::P2a | Kind::Submit => Kind::P2b,
        Kind::Request
        | Kind::Append
        | Kind::AppendOk
        | Kind::Retransmit
        | Kind::Heartbeat
        | Kind::HeartbeatOk
        | Kind::Answer
        | Kind::Forward
        | Kind::P1b
        | Kind::P2b
        | Kind::Admit
        | Kind::Checkpoint => return None,
    };
    let mut header = Header {
        kind: kind as u8,
        sender: random.random_range(0..3),
        previous_term: 0,
        ..*asked
    };
    if kind == Kind::P1b {
        header.commit_index ^= asked.session;
        header.session = random.random_range(0..4);
        header.sequence = random.random_range(0..12);
    }
    if random.random_range(0..3) == 0 {
        let wrong = number(random);
        match random.random_range(0..5) {
            0 => header.term = wrong,
            1 => header.index = wrong,
            2 => header.previous_term = wrong,
            3 => header.session = wrong,
            _ => header.sequence = wrong,
        }
    }
    Some((header, Vec::new()))
}

struct Roles {
    coordinator: Coordinator,
    acceptors: [Acceptor; 2],
    learner: Learner,
    proposer: Proposer,
}

fn roles(seed: u64) -> Roles {
    let at = Duration::from_millis;
    let options = CoordinatorOptions {
        deployment: DEPLOYMENT,
        me: 0,
        is_where_known: seed.is_multiple_of(2),
        heartbeat: at(10),
        silence: at(50),
        retry: at(5),
    };
    let of_learner = LearnerOptions {
        deployment: DEPLOYMENT,
        me: 1,
        patience: at(10),
        retry: at(5),
        report: at(20),
    };
    let first = Lives::first(3);
    Roles {
        coordinator: Coordinator::new(options, at(0), seed),
        acceptors: [
            Acceptor::member(DEPLOYMENT, 1, first.clone(), 0),
            Acceptor::newcomer(DEPLOYMENT, 2, 9).held(),
        ],
        learner: Learner::new(of_learner, first.number(), 0, Values::default(), seed),
        proposer: Proposer::new(DEPLOYMENT, at(20), seed),
    }
}

#[test]
fn nothing_in_a_packet_makes_a_role_panic_or_talk_without_end() {
    let seed = seed();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut roles = roles(seed);
    let (mut now, mut learned, mut coordinated) = (Duration::ZERO, 0, 0);
    let mut sent: Vec<Header> = Vec::new();
    for place in 0..PACKETS {
        if place % 5000 == 0 {
            roles = self::roles(seed ^ place);
            sent.clear();
        }
        now += Duration::from_millis(random.random_range(0..2));
        let answered = match random.random_range(0..2) {
            0 => answer(&mut random, &sent),
            _ => None,
        };
        let (header, payload) = answered.unwrap_or_else(|| packet(&mut random));
        let registers = PaxosRegisters {
            round: number(&mut random),
            trimmed: number(&mut random),
            next_instance: number(&mut random),
            ..PaxosRegisters::default()
        };
        let mut orders = Orders::new();
        roles
            .coordinator
            .on_packet(now, &header, &payload, &mut orders);
        coordinated += u64::from(roles.coordinator.coordinates());
        for acceptor in &mut roles.acceptors {
            acceptor.on_packet(&header, &payload, &registers, &mut orders);
            acceptor.tick(now, &mut orders);
        }
        let _ = roles.learner.on_packet(now, &header, &payload, &mut orders);
        let coordinator = roles.learner.coordinator();
        while let Some(found) = roles.learner.take() {
            learned += 1;
            roles
                .proposer
                .on_learned(now, &found, coordinator, &mut orders);
        }
        if place % 50 == 0 {
            let _ = roles
                .proposer
                .submit(now, &payload, coordinator, &mut orders);
        }
        roles.coordinator.tick(now, &registers, &mut orders);
        roles.learner.tick(now, &mut orders);
        roles.proposer.tick(now, coordinator, &mut orders);
        sent.extend(orders.iter().filter_map(|order| match order {
            Order::Send { header, .. } => Some(*header),
            Order::SwitchOn(_) | Order::SwitchOff | Order::Configure(_) | Order::Trim(_) => None,
        }));
        sent.drain(..sent.len().saturating_sub(REMEMBERED));
        assert!(orders.len() <= 3 * ORDERS_MAX, "{} orders", orders.len());
    }
    println!("learned {learned}, coordinated during {coordinated}");
    assert!(learned > 0 && coordinated > 0);
}
