//! Every small state and packet: the C against the model and the invariants, each outcome counted.
use crate::cases::{self, Call, State};
use crate::walk::{Reached, Visit, Walked, walk};
use crate::{model, states};
use quorumwire_fastpath::Outcome;
use quorumwire_wire::packet::{Kind, PaxosRole};
use std::ops::ControlFlow;

/// The step of the Paxos roles.
pub struct Roles;

impl Walked for Roles {
    type State = State;
    type Call = Call;

    fn each_case(visit: Visit<'_, State, Call>) -> ControlFlow<()> {
        states::each_case(visit)
    }

    fn run(before: &State, call: &Call) -> (State, Outcome) {
        cases::run(before, call)
    }

    fn model(before: &State, call: &Call) -> (State, Outcome) {
        model::run(before, call)
    }

    fn broken_invariant(
        before: &State,
        call: &Call,
        after: &State,
        outcome: &Outcome,
    ) -> Option<&'static str> {
        cases::broken_invariant(before, call, after, outcome)
    }

    fn name(state: &State, call: &Call) -> (&'static str, &'static str) {
        let role = PaxosRole::from_byte(state.registers.role).map_or("off", PaxosRole::name);
        let call = match call {
            Call::Step(header) if header.kind == Kind::P1a as u8 && header.index == 0 => {
                "p1a of all"
            }
            Call::Step(header) => Kind::from_byte(header.kind).map_or("unknown", Kind::name),
            Call::Trim(_) => "trim",
        };
        (role, call)
    }
}

/// Actions as numbers, to be compared with the schema by reading.
const STORE: u32 = 1;
const FANOUT: u32 = 2;
const REPLY: u32 = 4;
const SOFTWARE: u32 = 16;
const HOLD: u32 = 128;
const VOTE: u32 = 256;

/// What must have been reached at least once.
const EXPECTED: [Reached; 54] = [
    ("off", "submit", "off", SOFTWARE),
    ("off", "p1a", "off", SOFTWARE),
    ("off", "p2a", "off", SOFTWARE),
    ("off", "trim", "none", 1),
    ("off", "trim", "none", 0),
    ("coordinator", "submit", "none", FANOUT),
    ("coordinator", "submit", "window_full", 0),
    ("coordinator", "submit", "beyond_last", SOFTWARE),
    ("coordinator", "submit", "malformed", SOFTWARE),
    ("coordinator", "submit", "stranger", SOFTWARE),
    ("coordinator", "submit", "group", SOFTWARE),
    ("coordinator", "submit", "version", SOFTWARE),
    ("coordinator", "p1a", "unexpected", SOFTWARE),
    ("coordinator", "p1b", "unexpected", SOFTWARE),
    ("coordinator", "p2b", "unexpected", SOFTWARE),
    ("coordinator", "append", "unexpected", SOFTWARE),
    ("coordinator", "trim", "none", 1),
    ("acceptor", "submit", "unexpected", SOFTWARE),
    ("acceptor", "p2b", "unexpected", SOFTWARE),
    ("acceptor", "unknown", "unexpected", SOFTWARE),
    ("acceptor", "trim", "none", 1),
    ("acceptor", "p1a of all", "none", REPLY),
    ("acceptor", "p1a of all", "none", REPLY + HOLD),
    ("acceptor", "p1a of all", "round_old", REPLY),
    ("acceptor", "p1a of all", "round_taken", REPLY),
    ("acceptor", "p1a of all", "malformed", SOFTWARE),
    ("acceptor", "p1a of all", "configuration", SOFTWARE),
    ("acceptor", "p1a", "none", REPLY),
    ("acceptor", "p1a", "none", REPLY + VOTE),
    ("acceptor", "p1a", "none", REPLY + HOLD),
    ("acceptor", "p1a", "none", REPLY + HOLD + VOTE),
    ("acceptor", "p1a", "round_old", REPLY),
    ("acceptor", "p1a", "round_taken", REPLY),
    ("acceptor", "p1a", "trimmed", REPLY),
    ("acceptor", "p1a", "window_full", 0),
    ("acceptor", "p1a", "no_member", 0),
    ("acceptor", "p1a", "malformed", SOFTWARE),
    ("acceptor", "p1a", "configuration", SOFTWARE),
    ("acceptor", "p2a", "none", STORE + FANOUT),
    ("acceptor", "p2a", "none", STORE + FANOUT + HOLD),
    ("acceptor", "p2a", "none", STORE + FANOUT + REPLY),
    ("acceptor", "p2a", "none", STORE + FANOUT + REPLY + HOLD),
    ("acceptor", "p2a", "repeated", FANOUT),
    ("acceptor", "p2a", "repeated", FANOUT + HOLD),
    ("acceptor", "p2a", "repeated", FANOUT + REPLY),
    ("acceptor", "p2a", "repeated", FANOUT + REPLY + HOLD),
    ("acceptor", "p2a", "two_values", SOFTWARE),
    ("acceptor", "p2a", "round_old", REPLY),
    ("acceptor", "p2a", "trimmed", REPLY),
    ("acceptor", "p2a", "window_full", 0),
    ("acceptor", "p2a", "malformed", SOFTWARE),
    ("acceptor", "p2a", "configuration", SOFTWARE),
    ("acceptor", "p2a", "group", SOFTWARE),
    ("acceptor", "p2a", "version", SOFTWARE),
];

#[test]
fn every_small_state_and_packet_is_as_the_model_says() {
    walk::<Roles>(&EXPECTED, 1_000_000);
}
