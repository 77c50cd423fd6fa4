//! Every small state and packet: the C against the model and the invariants, each outcome counted.
use crate::cases::{self, Call};
use crate::walk::{Reached, Visit, Walked, walk};
use crate::{model, states};
use quorumwire_fastpath::Outcome;
use quorumwire_wire::packet::{Kind, PacketReason, Registers, Role};
use std::ops::ControlFlow;

/// A replica's step.
pub struct Replicas;

impl Walked for Replicas {
    type State = Registers;
    type Call = Call;

    fn each_case(visit: Visit<'_, Registers, Call>) -> ControlFlow<()> {
        states::each_case(visit)
    }

    fn run(before: &Registers, call: &Call) -> (Registers, Outcome) {
        cases::run(before, call)
    }

    fn model(before: &Registers, call: &Call) -> (Registers, Outcome) {
        model::run(before, call)
    }

    fn broken_invariant(
        before: &Registers,
        call: &Call,
        after: &Registers,
        outcome: &Outcome,
    ) -> Option<&'static str> {
        cases::broken_invariant(before, call, after, outcome)
    }

    fn name(registers: &Registers, call: &Call) -> (&'static str, &'static str) {
        let role = Role::from_byte(registers.role).map_or("off", Role::name);
        let call = match call {
            Call::Step(header) => Kind::from_byte(header.kind).map_or("unknown", Kind::name),
            Call::Submit(_) => "submit",
            Call::Persisted(_) => "persisted",
            Call::Heartbeat(_) => "begin_heartbeat",
            Call::Release(_) => "release",
        };
        (role, call)
    }
}

/// Actions as numbers, to be compared with the schema by reading.
const STORE_FANOUT: u32 = 1 + 2;
const STORE_REPLY: u32 = 1 + 4;
const SOFTWARE: u32 = 16;

/// What must have been reached at least once.
const EXPECTED: [Reached; 52] = [
    ("off", "request", "off", SOFTWARE),
    ("off", "append", "off", SOFTWARE),
    ("off", "persisted", "off", 0),
    ("off", "begin_heartbeat", "off", 0),
    ("off", "submit", "off", SOFTWARE),
    ("follower", "request", "none", 32),
    ("follower", "request", "stranger", SOFTWARE),
    ("follower", "request", "malformed", SOFTWARE),
    ("follower", "request", "group", SOFTWARE),
    ("follower", "request", "version", SOFTWARE),
    ("follower", "append", "none", 1),
    ("follower", "append", "none", 1 + 8),
    ("follower", "append", "none", STORE_REPLY),
    ("follower", "append", "none", STORE_REPLY + 8),
    ("follower", "append", "repeated", 4),
    ("follower", "append", "repeated", 4 + 8),
    ("follower", "append", "gap", 4),
    ("follower", "append", "gap", 4 + 8),
    ("follower", "append", "before_start", 0),
    ("follower", "append", "ring_full", 0),
    ("follower", "append", "history", SOFTWARE),
    ("follower", "append", "malformed", SOFTWARE),
    ("follower", "append", "stranger", SOFTWARE),
    ("follower", "append", "term_old", SOFTWARE),
    ("follower", "append", "term_new", SOFTWARE),
    ("follower", "heartbeat", "none", 4),
    ("follower", "heartbeat", "none", 4 + 8),
    ("follower", "heartbeat", "gap", 4),
    ("follower", "forward", "unexpected", 0),
    ("follower", "answer", "unexpected", SOFTWARE),
    ("follower", "persisted", "none", 4),
    ("follower", "persisted", "unexpected", 0),
    ("follower", "persisted", "beyond_last", 0),
    ("follower", "persisted", "repeated", 0),
    ("leader", "request", "none", STORE_FANOUT),
    ("leader", "request", "none", STORE_FANOUT + 8),
    ("leader", "request", "ring_full", 0),
    ("leader", "request", "window_full", 0),
    ("leader", "forward", "none", STORE_FANOUT),
    ("leader", "forward", "malformed", SOFTWARE),
    ("leader", "append", "unexpected", SOFTWARE),
    ("leader", "append_ok", "none", 0),
    ("leader", "append_ok", "none", 8),
    ("leader", "append_ok", "beyond_last", SOFTWARE),
    ("leader", "append_ok", "malformed", SOFTWARE),
    ("leader", "append_ok", "stranger", SOFTWARE),
    ("leader", "heartbeat_ok", "none", 8),
    ("leader", "retransmit", "none", 64),
    ("leader", "retransmit", "behind_ring", SOFTWARE),
    ("leader", "submit", "none", STORE_FANOUT),
    ("leader", "persisted", "none", 8),
    ("leader", "begin_heartbeat", "none", 2),
];

#[test]
fn every_small_state_and_packet_is_as_the_model_says() {
    let reached = walk::<Replicas>(&EXPECTED, 5_000_000);
    for reason in PacketReason::ALL {
        let elsewhere = matches!(
            reason,
            PacketReason::NotOurs
                | PacketReason::Tag
                | PacketReason::Checksum
                | PacketReason::Configuration
                | PacketReason::RoundOld
                | PacketReason::RoundTaken
                | PacketReason::TwoValues
                | PacketReason::Trimmed
                | PacketReason::NoMember
        );
        let here = reached.keys().any(|outcome| outcome.2 == reason.name());
        assert!(here != elsewhere, "{}", reason.name());
    }
}
