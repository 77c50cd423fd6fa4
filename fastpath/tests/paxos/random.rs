//! Large numbers, up to the largest there are: the C against the model.
use crate::cases::{Call, State};
use crate::exhaustive::Roles;
use crate::walk::compare;
use quorumwire_fastpath::paxos_sound;
use quorumwire_seed::seed;
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_REPLY, ACTION_STORE, ACTION_TO_SOFTWARE, Header, Kind, PaxosRegisters,
    PaxosRole, PaxosSlot, VERSION,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: u32 = 400_000;

/// A number near another one.
fn near(random: &mut ChaCha8Rng, number: u64) -> u64 {
    match random.random_range(0..8) {
        0 => random.random(),
        1 => number.wrapping_sub(1),
        2 => number.wrapping_add(2),
        3 => number.wrapping_add(1),
        _ => number,
    }
}

/// A round of a few owners, near another one.
fn round(random: &mut ChaCha8Rng, near: u64) -> u64 {
    let count = (near / 256)
        .saturating_add(random.random_range(0..3))
        .max(1);
    count.min(u64::MAX / 256) * 256 + random.random_range(1..3)
}

fn state(random: &mut ChaCha8Rng) -> State {
    let base: u64 = random.random();
    let window = 1_u32 << random.random_range(0..32);
    let trimmed = match random.random_range(0..3) {
        0 => random.random_range(0..4),
        1 => u64::MAX - 1 - random.random_range(0..4),
        _ => random.random_range(0..u64::MAX),
    };
    let coordinates = random.random();
    let next = trimmed.saturating_add(random.random_range(1..=u64::from(window) + 1));
    let registers = PaxosRegisters {
        configuration: random.random_range(1..=u64::MAX),
        round: round(random, base),
        promised_to: random.random_range(0..3),
        single_round: round(random, base),
        next_instance: next,
        trimmed,
        bound: near(random, trimmed),
        highest: near(random, next),
        group: random.random(),
        window,
        role: if coordinates {
            PaxosRole::Coordinator
        } else {
            PaxosRole::Acceptor
        } as u8,
        held: random.random_range(0..=1),
        ..PaxosRegisters::default()
    };
    let registers = PaxosRegisters {
        me: u8::try_from(registers.round % 256).expect("the rest of a division by 256"),
        ..registers
    };
    let slot = PaxosSlot {
        instance: near(random, next),
        round: round(random, base),
        promised_to: random.random_range(0..3),
        vote_round: if random.random() {
            0
        } else {
            round(random, base)
        },
        session: random.random_range(0..3),
        sequence: random.random_range(0..2),
        ..PaxosSlot::default()
    };
    State { registers, slot }
}

fn header(random: &mut ChaCha8Rng, state: &State) -> Header {
    let coordinates = state.registers.role == PaxosRole::Coordinator as u8;
    let kind = match random.random_range(0..18) {
        kind @ 0..=17 if random.random_range(0..8) == 0 => kind,
        _ if coordinates => Kind::Submit as u8,
        odd if odd % 2 == 1 => Kind::P1a as u8,
        _ => Kind::P2a as u8,
    };
    let term = round(random, state.registers.round);
    let is_rare = random.random_range(0..16) == 0;
    Header {
        version: VERSION,
        kind,
        sender: match kind {
            _ if is_rare => random.random(),
            kind if kind == Kind::Submit as u8 => 255,
            _ => u8::try_from(term % 256).expect("the rest of a division by 256"),
        },
        payload_bytes: if is_rare {
            random.random_range(0..1400)
        } else {
            0
        },
        group: state.registers.group,
        term,
        index: match random.random_range(0..4) {
            0 => 0,
            1 => near(random, state.slot.instance),
            2 => near(random, state.registers.trimmed),
            _ => state.slot.instance,
        },
        commit_index: if is_rare {
            near(random, state.registers.configuration)
        } else {
            state.registers.configuration
        },
        session: random.random_range(0..3),
        sequence: random.random_range(0..2),
        ..Header::default()
    }
}

#[test]
fn large_numbers_are_as_the_model_says() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut voted, mut proposed, mut promised, mut to_software, mut dropped) = (0, 0, 0, 0, 0);
    for _ in 0..CASES {
        let state = state(&mut random);
        let coordinates = state.registers.role == PaxosRole::Coordinator as u8;
        let is_at_the_end = state.registers.next_instance <= state.registers.trimmed;
        assert!(
            paxos_sound(&state.registers) || coordinates && is_at_the_end,
            "{state:?}"
        );
        let call = match random.random_range(0..16) {
            0 => Call::Trim(near(&mut random, state.registers.trimmed)),
            _ => Call::Step(header(&mut random, &state)),
        };
        match compare::<Roles>(&state, &call) {
            Ok(_) if matches!(call, Call::Trim(_)) => {}
            Ok(outcome) if outcome.has(ACTION_STORE) => voted += 1,
            Ok(outcome) if outcome.has(ACTION_FANOUT) => proposed += 1,
            Ok(outcome) if outcome.has(ACTION_REPLY) => promised += 1,
            Ok(outcome) if outcome.has(ACTION_TO_SOFTWARE) => to_software += 1,
            Ok(_) => dropped += 1,
            Err(difference) => panic!("{difference}\nfrom {state:?}\nby {call:?}"),
        }
    }
    println!(
        "voted {voted}, proposed {proposed}, promised or refused {promised}, to software {to_software}, \
         dropped {dropped}"
    );
    for times in [voted, proposed, promised, to_software, dropped] {
        assert!(times > CASES / 200, "{times}");
    }
}
