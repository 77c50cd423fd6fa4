//! One case: registers and what happens to them; how it is run on the C, and what must hold after it
//! whatever the model says.
use quorumwire_fastpath as fastpath;
use quorumwire_fastpath::Outcome;
use quorumwire_wire::packet::{
    ACTION_COMMIT, ACTION_REPLY, ACTION_STORE, ACTION_TO_SOFTWARE, Header, Kind, PacketReason,
    Registers, Role,
};

/// What happens to a plane.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Step(Header),
    Submit(Header),
    Persisted(u64),
    Heartbeat(u64),
    Release(u64),
}

/// Runs the C, on a copy. A release that was taken shows as an action.
pub fn run(before: &Registers, call: &Call) -> (Registers, Outcome) {
    let mut after = *before;
    let outcome = match call {
        Call::Step(header) => fastpath::step(&mut after, header),
        Call::Submit(header) => fastpath::submit(&mut after, header),
        Call::Persisted(upto) => fastpath::persisted(&mut after, *upto),
        Call::Heartbeat(round) => fastpath::heartbeat(&mut after, *round),
        Call::Release(upto) => Outcome {
            actions: u32::from(fastpath::release(&mut after, *upto)),
            ..Outcome::default()
        },
    };
    (after, outcome)
}

/// The first rule that does not hold.
#[allow(clippy::too_many_lines)] // one list of rules, read from top to bottom
pub fn broken_invariant(
    before: &Registers,
    call: &Call,
    after: &Registers,
    outcome: &Outcome,
) -> Option<&'static str> {
    let released = matches!(call, Call::Release(_));
    let does = |action: u32| !released && outcome.has(action);
    let header = &outcome.header;
    let speaks = Kind::from_byte(header.kind);
    let promises = is_acknowledgement(speaks);
    let moved = after != before;
    let slots = 0..after.match_index.len();
    let rules = [
        (
            does(ACTION_TO_SOFTWARE) && moved,
            "to software, and the registers moved",
        ),
        (
            does(ACTION_TO_SOFTWARE) && outcome.actions != ACTION_TO_SOFTWARE,
            "to software does not come alone",
        ),
        (
            does(ACTION_TO_SOFTWARE) && outcome.reason() == PacketReason::None,
            "to software without a reason",
        ),
        (
            outcome.actions == 0 && outcome.reason() == PacketReason::None && !may_do_nothing(call),
            "dropped without a reason",
        ),
        (
            outcome.actions == 0 && outcome.reason() != PacketReason::None && moved,
            "a drop moved something",
        ),
        (
            before.role == Role::Off as u8 && !released && moved,
            "a plane that is off moved",
        ),
        (
            after.commit_index > after.last_index,
            "committed more than there is",
        ),
        (
            after.persisted_index > after.last_index,
            "persisted more than there is",
        ),
        (
            after.last_index < before.last_index,
            "the log became shorter",
        ),
        (
            after.commit_index < before.commit_index,
            "a commit was taken back",
        ),
        (
            after.persisted_index < before.persisted_index,
            "a promise was taken back",
        ),
        (after.round < before.round, "a round was taken back"),
        (
            slots
                .clone()
                .any(|slot| after.match_index[slot] < before.match_index[slot]),
            "a match went back",
        ),
        (
            slots.clone().any(|slot| {
                after.match_index[slot] > after.last_index.max(before.match_index[slot])
            }),
            "a match beyond the log",
        ),
        (
            slots
                .clone()
                .any(|slot| after.heard_round[slot] > after.round.max(before.heard_round[slot])),
            "a round heard that was not sent",
        ),
        (
            does(ACTION_STORE) != (after.last_index != before.last_index),
            "stored and the log's end are not one",
        ),
        (
            does(ACTION_STORE) && outcome.index != before.last_index + 1,
            "stored at another place than the next",
        ),
        (
            does(ACTION_STORE)
                && after.last_index - before.released_index > u64::from(before.ring_slots),
            "stored over an entry that the host has not taken",
        ),
        (
            does(ACTION_REPLY) && promises && header.index > after.persisted_index,
            "promised more than is persisted",
        ),
        (
            does(ACTION_COMMIT) != (after.commit_index != before.commit_index),
            "commit and its register are not one",
        ),
        (
            does(ACTION_COMMIT) && outcome.commit_from != before.commit_index,
            "committed from another place",
        ),
        (
            before.held == 1
                && !matches!(call, Call::Persisted(_))
                && after.persisted_index != before.persisted_index,
            "held, and promised without the host",
        ),
        (
            committed_by_too_few(before, after),
            "committed by fewer than a quorum",
        ),
    ];
    let broken = rules.into_iter().find(|(wrong, _)| *wrong);
    broken.map(|(_, rule)| rule)
}

/// Whether this may be taken without any action: an acknowledgement, and what the host has done.
fn may_do_nothing(call: &Call) -> bool {
    match call {
        Call::Step(header) => is_acknowledgement(Kind::from_byte(header.kind)),
        Call::Persisted(_) | Call::Release(_) => true,
        Call::Submit(_) | Call::Heartbeat(_) => false,
    }
}

fn is_acknowledgement(kind: Option<Kind>) -> bool {
    matches!(kind, Some(Kind::AppendOk | Kind::HeartbeatOk))
}

fn committed_by_too_few(before: &Registers, after: &Registers) -> bool {
    let holders = (0..usize::from(after.replicas))
        .filter(|slot| after.match_index[*slot] >= after.commit_index)
        .count();
    after.role == Role::Leader as u8
        && after.commit_index != before.commit_index
        && (holders < usize::from(after.quorum) || after.commit_index <= after.start_index)
}
