//! Large numbers, up to the largest there are: the C against the model.
use crate::cases::Call;
use crate::exhaustive::Replicas;
use crate::model::counted;
use crate::walk::compare;
use quorumwire_fastpath::registers_sound;
use quorumwire_seed::seed;
use quorumwire_wire::packet::{
    ACTION_STORE, ACTION_TO_SOFTWARE, Header, Kind, Registers, Role, VERSION,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: u32 = 400_000;

/// A number from one to the other, often near one of them.
fn between(random: &mut ChaCha8Rng, low: u64, high: u64) -> u64 {
    let span = high - low;
    match random.random_range(0..4) {
        0 => low + random.random_range(0..=span.min(3)),
        1 => high - random.random_range(0..=span.min(3)),
        _ => random.random_range(low..=high),
    }
}

fn registers(random: &mut ChaCha8Rng) -> Registers {
    let replicas = random.random_range(1..=7);
    let me = random.random_range(0..replicas);
    let leading = replicas == 1 || random.random();
    let leader = if leading {
        me
    } else {
        (me + random.random_range(1..replicas)) % replicas
    };
    let ring_slots = 1_u32 << random.random_range(0..=31);
    let held = random.random_range(0..=1);
    let last = between(random, 0, u64::MAX - 1);
    let oldest = last - last.min(u64::from(ring_slots));
    let start = between(random, 0, last);
    let term = between(random, 1, u64::MAX);
    let round = between(random, 0, u64::MAX);
    let persisted = if held == 1 {
        between(random, start, last)
    } else {
        last
    };
    let mut match_index = [0; 7].map(|_: u64| between(random, 0, last));
    match_index[usize::from(me)] = persisted;
    let registers = Registers {
        term,
        start_index: start,
        last_index: last,
        last_term: between(random, 0, term),
        commit_index: between(random, oldest, last),
        persisted_index: persisted,
        released_index: between(random, oldest, last),
        round,
        match_index,
        heard_round: [0; 7].map(|_: u64| between(random, 0, round)),
        group: random.random(),
        ring_slots,
        window: random.random_range(1..=ring_slots),
        role: if leading {
            Role::Leader
        } else {
            Role::Follower
        } as u8,
        me,
        leader,
        replicas,
        quorum: random.random_range(replicas / 2 + 1..=replicas),
        held,
        ..Registers::default()
    };
    if leading {
        counted(registers)
    } else {
        registers
    }
}

fn header(random: &mut ChaCha8Rng, state: &Registers) -> Header {
    let near = |random: &mut ChaCha8Rng, number: u64| match random.random_range(0..8) {
        0 => random.random(),
        1 => number.saturating_sub(1),
        2 => number.saturating_add(2),
        3 => number,
        _ => number.saturating_add(1),
    };
    let rarely = |random: &mut ChaCha8Rng, number: u64| match random.random_range(0..16) {
        0 => near(random, number),
        _ => number,
    };
    let kind = random.random_range(0..=9);
    let client = kind == Kind::Request as u8;
    Header {
        version: VERSION,
        kind,
        sender: match random.random_range(0..4) {
            0 => random.random(),
            1 => random.random_range(0..7),
            _ if client => 255,
            _ => state.leader,
        },
        flags: if random.random() {
            0
        } else {
            random.random_range(0..32)
        },
        payload_bytes: random.random_range(0..1400),
        group: state.group,
        payload_crc32c: random.random(),
        term: rarely(random, state.term),
        index: near(random, state.last_index),
        previous_term: rarely(random, state.last_term),
        commit_index: near(random, state.last_index),
        session: random.random(),
        sequence: random.random_range(0..=state.round),
        ..Header::default()
    }
}

#[test]
fn large_numbers_are_as_the_model_says() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut stored, mut to_software, mut other) = (0, 0, 0);
    for _ in 0..CASES {
        let state = registers(&mut random);
        assert!(registers_sound(&state), "{state:?}");
        let upto = between(&mut random, 0, u64::MAX);
        let call = match random.random_range(0..10) {
            0 => Call::Submit(header(&mut random, &state)),
            1 => Call::Persisted(upto.min(state.last_index)),
            2 => Call::Heartbeat(upto),
            3 => Call::Release(upto),
            _ => Call::Step(header(&mut random, &state)),
        };
        match compare::<Replicas>(&state, &call) {
            Ok(outcome) if outcome.has(ACTION_STORE) => stored += 1,
            Ok(outcome) if outcome.has(ACTION_TO_SOFTWARE) => to_software += 1,
            Ok(_) => other += 1,
            Err(difference) => panic!("{difference}\nfrom {state:?}\nby {call:?}"),
        }
    }
    println!("stored {stored}, to software {to_software}, other {other}");
    assert!(stored > CASES / 100 && to_software > CASES / 100 && other > CASES / 100);
}
