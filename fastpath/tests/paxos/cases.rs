//! One case: what a role knows and what happens to it; how it is run on the C, and what must hold after it
//! whatever the model says.
use quorumwire_fastpath as fastpath;
use quorumwire_fastpath::Outcome;
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_HOLD, ACTION_REPLY, ACTION_STORE, ACTION_TO_SOFTWARE, ACTION_VOTE,
    FLAG_EPOCH, FLAG_REFUSED, FLAG_TELL, Header, Kind, PacketReason, PaxosRegisters, PaxosRole,
    PaxosSlot,
};

/// A role's registers, and the slot of the packet's instance.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct State {
    pub registers: PaxosRegisters,
    pub slot: PaxosSlot,
}

/// What happens to a role.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Step(Header),
    Trim(u64),
}

/// Runs the C, on a copy. A trim that was taken shows as an action.
pub fn run(before: &State, call: &Call) -> (State, Outcome) {
    let mut after = *before;
    let outcome = match call {
        Call::Step(header) => fastpath::paxos_step(&mut after.registers, &mut after.slot, header),
        Call::Trim(upto) => Outcome {
            actions: u32::from(fastpath::paxos_trim(&mut after.registers, *upto)),
            ..Outcome::default()
        },
    };
    (after, outcome)
}

/// The round promised for an instance.
fn promised(state: &State, instance: u64) -> u64 {
    let single = if state.slot.instance == instance {
        state.slot.round
    } else {
        0
    };
    state.registers.round.max(single)
}

/// The vote for an instance: its round and value, without where the slot keeps it.
fn vote_of(state: &State, instance: u64) -> Option<(u64, [u64; 5])> {
    let slot = &state.slot;
    (slot.instance == instance && slot.vote_round > 0).then(|| {
        let value = [
            slot.session,
            slot.sequence,
            u64::from(slot.payload_crc32c),
            u64::from(slot.payload_bytes),
            u64::from(slot.flags),
        ];
        (slot.vote_round, value)
    })
}

/// The value that a packet says.
fn value_in(header: &Header) -> [u64; 5] {
    [
        header.session,
        header.sequence,
        u64::from(header.payload_crc32c),
        u64::from(header.payload_bytes),
        u64::from(header.flags & !(FLAG_EPOCH | FLAG_TELL)),
    ]
}

/// The first rule that does not hold.
pub fn broken_invariant(
    before: &State,
    call: &Call,
    after: &State,
    outcome: &Outcome,
) -> Option<&'static str> {
    let Call::Step(packet) = call else {
        if after.registers.trimmed < before.registers.trimmed {
            return Some("what was forgotten is not");
        }
        let coordinates = after.registers.role == PaxosRole::Coordinator as u8;
        let taken = outcome.actions != 0;
        let stuck =
            coordinates && taken && after.registers.next_instance <= after.registers.trimmed;
        return stuck.then_some("a coordinator stands in front of what is forgotten");
    };
    let broken = of_any_role(before, packet, after, outcome)
        .into_iter()
        .chain(of_acceptors(before, packet, after, outcome))
        .find(|(wrong, _)| *wrong);
    broken.map(|(_, rule)| rule)
}

type Rules = Vec<(bool, &'static str)>;

fn of_any_role(before: &State, packet: &Header, after: &State, outcome: &Outcome) -> Rules {
    let moved = after != before;
    let to_software = outcome.has(ACTION_TO_SOFTWARE);
    let refused = outcome.header.flags & FLAG_REFUSED != 0;
    let proposes = outcome.header.kind == Kind::P2a as u8;
    let off = before.registers.role == PaxosRole::Off as u8;
    let next = (
        before.registers.next_instance,
        after.registers.next_instance,
    );
    vec![
        (to_software && moved, "to software, and something moved"),
        (
            to_software && outcome.actions != ACTION_TO_SOFTWARE,
            "to software does not come alone",
        ),
        (
            (outcome.actions == 0 || to_software || refused)
                && outcome.reason() == PacketReason::None,
            "not taken, without a reason",
        ),
        (outcome.actions == 0 && moved, "a drop moved something"),
        (refused && moved, "a refusal moved something"),
        (off && !to_software, "a box that is off did something"),
        (
            proposes != (next.1 != next.0),
            "proposed and the next instance are not one",
        ),
        (
            proposes && (outcome.header.index != next.0 || next.1 != next.0.wrapping_add(1)),
            "proposed for another instance than the next",
        ),
        (
            proposes && next.1 <= before.registers.trimmed.saturating_add(1),
            "proposed for an instance that is forgotten",
        ),
        (
            proposes && next.0 - before.registers.trimmed > u64::from(before.registers.window),
            "proposed behind the window",
        ),
        (
            proposes && value_in(&outcome.header) != value_in(packet),
            "proposed another value than was submitted",
        ),
        (
            proposes && packet.session == 0,
            "proposed a no-op for a client",
        ),
    ]
}

fn of_acceptors(before: &State, packet: &Header, after: &State, outcome: &Outcome) -> Rules {
    let header = &outcome.header;
    let refused = header.flags & FLAG_REFUSED != 0;
    let kind = Kind::from_byte(header.kind).filter(|_| !refused);
    let (promises, votes) = (kind == Some(Kind::P1b), kind == Some(Kind::P2b));
    let instance = packet.index;
    let for_all = promises && instance == 0;
    let highest_before = if for_all {
        before.registers.round.max(before.registers.single_round)
    } else {
        promised(before, instance)
    };
    let earlier = vote_of(before, instance);
    let cannot_tell = promises && instance <= before.registers.bound && earlier.is_none();
    let closed = instance <= before.registers.trimmed || cannot_tell;
    let is_same_round = earlier.is_some_and(|(round, _)| round == packet.term);
    let is_same_value = earlier.is_some_and(|(_, value)| value == value_in(packet));
    let spoken = outcome.has(ACTION_FANOUT | ACTION_REPLY);
    let holds = before.registers.held == 1 && !refused && (promises || votes);
    let may_share =
        before.registers.promised_to == packet.session || before.slot.promised_to == packet.session;
    vec![
        (
            (promises || votes) && packet.term < highest_before && instance != 0,
            "promised or voted below a promise",
        ),
        (
            for_all && packet.term < highest_before,
            "promised all below a promise",
        ),
        (
            promises && packet.term == highest_before && !may_share,
            "a round was promised to two",
        ),
        (
            (promises || votes) && !for_all && closed,
            "spoke for an instance that it is no member for, or that is forgotten",
        ),
        (
            (promises || votes)
                && !for_all
                && instance - before.registers.trimmed > u64::from(before.registers.window),
            "spoke for an instance without a slot",
        ),
        (
            (promises || votes) && packet.commit_index != before.registers.configuration,
            "answered another configuration",
        ),
        (
            (promises || votes)
                && (packet.term < 256 || packet.term % 256 != u64::from(packet.sender)),
            "answered a coordinator that it is not",
        ),
        (
            votes && is_same_round && !is_same_value,
            "voted twice in a round",
        ),
        (
            votes && vote_of(after, instance) != Some((packet.term, value_in(packet))),
            "said another vote than it keeps",
        ),
        (
            votes && value_in(header) != value_in(packet),
            "said another value",
        ),
        (
            outcome.has(ACTION_STORE) && (outcome.index != instance || !votes),
            "stored what it did not vote for",
        ),
        (
            promises && !for_all && outcome.has(ACTION_VOTE) != earlier.is_some(),
            "a promise without the vote, or with one that is not",
        ),
        (
            promises
                && !for_all
                && earlier.is_some_and(|vote| vote != (header.previous_term, value_in(header))),
            "a promise with another vote",
        ),
        (
            for_all && header.sequence < before.registers.highest,
            "said less than was voted for",
        ),
        (
            after.registers.round < before.registers.round
                || after.registers.single_round < before.registers.single_round
                || after.registers.highest < before.registers.highest,
            "a promise was taken back",
        ),
        (
            promised(after, instance) < promised(before, instance) && instance != 0,
            "a promise for an instance was taken back",
        ),
        (
            spoken && outcome.has(ACTION_HOLD) != holds,
            "held and said are not one",
        ),
    ]
}
