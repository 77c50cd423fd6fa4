//! Registers that no host may switch a plane on with, and what the step does with slots that are none: it
//! relies on nobody having looked before.
use quorumwire_fastpath::{Mutant, heartbeat, persisted, registers_sound, step, submit};
use quorumwire_wire::packet::{
    ACTION_TO_SOFTWARE, Header, Kind, PacketReason, REPLICAS_MAX, Registers, Role, VERSION,
};

fn leader() -> Registers {
    Registers {
        term: 5,
        start_index: 10,
        last_index: 12,
        last_term: 5,
        commit_index: 11,
        persisted_index: 12,
        released_index: 10,
        ring_slots: 8,
        window: 8,
        role: Role::Leader as u8,
        replicas: 3,
        quorum: 2,
        ..Registers::default()
    }
}

fn follower() -> Registers {
    Registers {
        role: Role::Follower as u8,
        me: 1,
        ..leader()
    }
}

/// One sound value changed, and the check that refuses what comes of it.
type Wrong = (Mutant, fn(&mut Registers));

const WRONG: &[Wrong] = &[
    (Mutant::SoundRole, |it| {
        (it.role, it.me) = (Role::Off as u8, 2);
    }),
    (Mutant::SoundRole, |it| (it.role, it.me) = (3, 2)),
    (Mutant::SoundLeader, |it| it.me = 2),
    (Mutant::SoundLeader, |it| it.leader = 1),
    (Mutant::SoundSlots, |it| (it.me, it.leader) = (3, 3)),
    (Mutant::SoundSlots, |it| {
        (it.role, it.leader) = (Role::Follower as u8, 3);
    }),
    (Mutant::SoundSlots, |it| {
        (it.role, it.me) = (Role::Follower as u8, 3);
    }),
    (Mutant::SoundLeader, |it| it.role = Role::Follower as u8),
    (Mutant::SoundReplicas, |it| {
        (it.replicas, it.quorum) = (8, 5);
    }),
    (Mutant::SoundQuorum, |it| it.quorum = 0),
    (Mutant::SoundQuorum, |it| it.quorum = 1),
    (Mutant::SoundQuorum, |it| it.quorum = 4),
    (Mutant::SoundQuorum, |it| (it.replicas, it.quorum) = (4, 2)),
    (Mutant::SoundQuorum, |it| (it.replicas, it.quorum) = (7, 3)),
    (Mutant::SoundRing, |it| it.ring_slots = 9),
    (Mutant::SoundWindow, |it| it.window = 0),
    (Mutant::SoundWindow, |it| it.window = 9),
    (Mutant::SoundHeld, |it| it.held = 2),
    (Mutant::SoundTerms, |it| (it.term, it.last_term) = (0, 0)),
    (Mutant::SoundTerms, |it| it.last_term = 6),
    (Mutant::SoundLast, |it| it.last_index = u64::MAX),
    (Mutant::SoundCommit, |it| it.commit_index = 13),
    (Mutant::SoundStart, |it| it.start_index = 13),
    (Mutant::SoundReleased, |it| it.released_index = 13),
    (Mutant::SoundPersisted, |it| it.persisted_index = 13),
];

/// Registers that one check alone keeps out, and which.
pub fn unsound() -> impl Iterator<Item = (Mutant, Registers)> {
    WRONG.iter().map(|(check, change)| {
        let mut registers = leader();
        change(&mut registers);
        (*check, registers)
    })
}

#[test]
fn registers_that_no_host_may_set_are_refused() {
    assert!(registers_sound(&leader()) && registers_sound(&follower()));
    for (check, registers) in unsound() {
        assert!(!registers_sound(&registers), "{check:?}: {registers:?}");
    }
    let nobody = Registers {
        replicas: 0,
        quorum: 0,
        ..leader()
    };
    let no_ring = Registers {
        ring_slots: 0,
        ..leader()
    };
    for registers in [nobody, no_ring] {
        assert!(!registers_sound(&registers), "{registers:?}");
    }
}

#[test]
fn any_two_quorums_that_are_taken_have_a_replica_in_common() {
    for replicas in 1..=7_u8 {
        for quorum in 0..=u8::MAX {
            let registers = Registers {
                replicas,
                quorum,
                ..leader()
            };
            let meet = u16::from(quorum) * 2 > u16::from(replicas) && quorum <= replicas;
            assert_eq!(registers_sound(&registers), meet, "{quorum} of {replicas}");
        }
    }
}

/// Else its own acknowledgement would be written behind the registers of the group's members, or of all.
#[test]
fn a_leader_without_a_slot_of_the_group_moves_nothing() {
    let command = Header {
        version: VERSION,
        kind: Kind::Request as u8,
        sender: 255,
        ..Header::default()
    };
    for (me, replicas, held) in [(3, 3, 0), (3, 3, 1), (7, 255, 0), (7, 255, 1)] {
        let before = Registers {
            me,
            replicas,
            held,
            persisted_index: 11,
            ..leader()
        };
        let mut after = before;
        for outcome in [
            submit(&mut after, &command),
            step(&mut after, &command),
            heartbeat(&mut after, 1),
        ] {
            assert_eq!(
                outcome.reason(),
                PacketReason::Stranger,
                "slot {me} of {replicas}"
            );
        }
        if held == 1 {
            let outcome = persisted(&mut after, 12);
            assert_eq!(
                outcome.reason(),
                PacketReason::Stranger,
                "slot {me} of {replicas}"
            );
        }
        assert_eq!(after, before, "slot {me} of {replicas}");
    }
}

/// Else a sender's acknowledgement would be written behind the registers of all.
#[test]
fn a_sender_that_no_register_is_for_moves_nothing() {
    let before = Registers {
        replicas: 255,
        ..leader()
    };
    let first_without = u8::try_from(REPLICAS_MAX).expect("a small number");
    for sender in [first_without, 254] {
        for kind in Kind::ALL {
            let packet = Header {
                version: VERSION,
                kind: kind as u8,
                sender,
                term: before.term,
                index: before.last_index,
                payload_bytes: 18,
                ..Header::default()
            };
            let mut after = before;
            let outcome = step(&mut after, &packet);
            assert_eq!(outcome.actions, ACTION_TO_SOFTWARE, "{kind:?}");
            assert_eq!(outcome.reason(), PacketReason::Stranger, "{kind:?}");
            assert_eq!(after, before, "{kind:?}");
        }
    }
}
