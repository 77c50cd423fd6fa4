//! Registers that no host may switch a role on with.
use quorumwire_fastpath::{Mutant, paxos_sound};
use quorumwire_wire::packet::{PaxosRegisters, PaxosRole};

fn coordinator() -> PaxosRegisters {
    PaxosRegisters {
        configuration: 1,
        round: 0x101,
        next_instance: 5,
        trimmed: 4,
        window: 8,
        role: PaxosRole::Coordinator as u8,
        me: 1,
        ..PaxosRegisters::default()
    }
}

/// An acceptor has promised nothing yet, or something to anybody.
fn acceptors() -> [PaxosRegisters; 2] {
    let fresh = PaxosRegisters {
        round: 0,
        next_instance: 0,
        role: PaxosRole::Acceptor as u8,
        held: 1,
        ..coordinator()
    };
    [
        fresh,
        PaxosRegisters {
            round: 0x302,
            ..fresh
        },
    ]
}

/// One sound value of a coordinator changed, and the check that refuses what comes of it.
type Wrong = (Mutant, fn(&mut PaxosRegisters));

const WRONG: &[Wrong] = &[
    (Mutant::PaxosSoundRole, |it| it.role = PaxosRole::Off as u8),
    (Mutant::PaxosSoundConfiguration, |it| it.configuration = 0),
    (Mutant::PaxosSoundWindow, |it| it.window = 0),
    (Mutant::PaxosSoundWindow, |it| it.window = 6),
    (Mutant::PaxosSoundHeld, |it| it.held = 2),
    (Mutant::PaxosSoundTrimmed, |it| {
        it.role = PaxosRole::Acceptor as u8;
        it.trimmed = u64::MAX;
    }),
    (Mutant::PaxosSoundRound, |it| it.round = 1),
    (Mutant::PaxosSoundOwner, |it| it.me = 2),
    (Mutant::PaxosSoundNext, |it| it.next_instance = 4),
];

/// What each check refuses.
pub fn unsound() -> impl Iterator<Item = (Mutant, PaxosRegisters)> {
    WRONG.iter().map(|(check, change)| {
        let mut registers = coordinator();
        change(&mut registers);
        (*check, registers)
    })
}

#[test]
fn what_a_role_cannot_begin_with_is_refused() {
    assert!(paxos_sound(&coordinator()));
    assert!(acceptors().iter().all(paxos_sound));
    for (check, registers) in unsound() {
        assert!(!paxos_sound(&registers), "{check:?}: {registers:?}");
    }
}
