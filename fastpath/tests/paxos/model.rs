//! What the roles are to do, written again in the plainest words and on its own: what an acceptor knows is a
//! list of promises and votes, and a question is answered by looking through it. Only for comparison.
use crate::cases::{Call, State};
use quorumwire_fastpath::Outcome;
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_HOLD, ACTION_REPLY, ACTION_STORE, ACTION_TO_SOFTWARE, ACTION_VOTE,
    FLAG_EPOCH, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TELL, Header, Kind, MAGIC, PAYLOAD_BYTES_MAX,
    PacketReason, PaxosRole, ROUND_OWNERS, SENDER_CLIENT, VERSION,
};

/// Nothing is moved.
enum No {
    Software(PacketReason),
    Drop(PacketReason),
    /// Said to the sender, with the round that was promised.
    Refuse(PacketReason, u64),
}
use No::{Drop, Refuse, Software};
type Decision = Result<Outcome, No>;

/// The state afterwards and the outcome; for a trim whether it was taken, as an action.
pub fn run(before: &State, call: &Call) -> (State, Outcome) {
    let mut after = *before;
    let packet = match call {
        Call::Step(packet) => packet,
        Call::Trim(upto) => {
            let is_instance = *upto != u64::MAX;
            if is_instance {
                after.registers.trimmed = after.registers.trimmed.max(*upto);
                if after.registers.role == PaxosRole::Coordinator as u8 {
                    let behind = after.registers.trimmed + 1;
                    after.registers.next_instance = after.registers.next_instance.max(behind);
                }
            }
            let outcome = Outcome {
                actions: u32::from(is_instance),
                ..Outcome::default()
            };
            return (after, outcome);
        }
    };
    let (actions, reason) = match on_packet(&mut after, packet) {
        Ok(outcome) => return (after, outcome),
        Err(Refuse(reason, promised)) => {
            return (*before, refusal(before, packet, reason, promised));
        }
        Err(Software(reason)) => (ACTION_TO_SOFTWARE, reason),
        Err(Drop(reason)) => (0, reason),
    };
    let outcome = Outcome {
        actions,
        reason: u32::from(reason as u8),
        ..Outcome::default()
    };
    (*before, outcome)
}

fn refusal(state: &State, packet: &Header, reason: PacketReason, promised: u64) -> Outcome {
    let kind = match Kind::from_byte(packet.kind) {
        Some(Kind::P1a) => Kind::P1b,
        _ => Kind::P2b,
    };
    Outcome {
        header: Header {
            flags: FLAG_REFUSED,
            previous_term: packet.term,
            sequence: state.registers.trimmed,
            ..said(state, kind, packet.index, promised)
        },
        actions: ACTION_REPLY,
        reason: u32::from(reason as u8),
        ..Outcome::default()
    }
}

fn said(state: &State, kind: Kind, index: u64, term: u64) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        sender: state.registers.me,
        group: state.registers.group,
        term,
        index,
        commit_index: state.registers.configuration,
        ..Header::default()
    }
}

/// A promise names the question that it answers.
fn promise(state: &State, packet: &Header) -> Header {
    Header {
        commit_index: state.registers.configuration ^ packet.session,
        ..said(state, Kind::P1b, packet.index, packet.term)
    }
}

fn on_packet(state: &mut State, packet: &Header) -> Decision {
    let role = PaxosRole::from_byte(state.registers.role).unwrap_or(PaxosRole::Off);
    if role == PaxosRole::Off {
        return Err(Software(PacketReason::Off));
    }
    if packet.version != VERSION {
        return Err(Software(PacketReason::Version));
    }
    if packet.group != state.registers.group {
        return Err(Software(PacketReason::Group));
    }
    if usize::from(packet.payload_bytes) > PAYLOAD_BYTES_MAX {
        return Err(Software(PacketReason::Malformed));
    }
    match (role, Kind::from_byte(packet.kind)) {
        (PaxosRole::Coordinator, Some(Kind::Submit)) => submit(state, packet),
        (PaxosRole::Acceptor, Some(Kind::P1a | Kind::P2a)) => {
            of_a_coordinator(state, packet)?;
            match (Kind::from_byte(packet.kind), packet.index) {
                (Some(Kind::P1a), 0) => promise_all(state, packet),
                (Some(Kind::P1a), _) => promise_one(state, packet),
                _ => vote(state, packet),
            }
        }
        _ => Err(Software(PacketReason::Unexpected)),
    }
}

/// The instances of the window, of which there can be none at the end of all numbers.
fn is_open(state: &State, instance: u64) -> bool {
    let first = u128::from(state.registers.trimmed) + 1;
    let window = u128::from(state.registers.window);
    (first..first + window).contains(&u128::from(instance))
}

fn value_flags(flags: u8) -> Result<u8, No> {
    match flags & !FLAG_EPOCH {
        flags @ (0 | FLAG_FRAGMENT) => Ok(flags),
        _ => Err(Software(PacketReason::Malformed)),
    }
}

fn submit(state: &mut State, packet: &Header) -> Decision {
    let instance = state.registers.next_instance;
    if usize::from(packet.sender) != SENDER_CLIENT {
        return Err(Software(PacketReason::Stranger));
    }
    if packet.session == 0 {
        return Err(Software(PacketReason::Malformed));
    }
    let flags = value_flags(packet.flags)?;
    if instance == u64::MAX {
        return Err(Software(PacketReason::BeyondLast));
    }
    if !is_open(state, instance) {
        return Err(Drop(PacketReason::WindowFull));
    }
    state.registers.next_instance += 1;
    Ok(Outcome {
        header: Header {
            flags,
            ..value_of(
                packet,
                said(state, Kind::P2a, instance, state.registers.round),
            )
        },
        index: instance,
        actions: ACTION_FANOUT,
        ..Outcome::default()
    })
}

/// A header that says the value of another, its flags left aside.
fn value_of(packet: &Header, header: Header) -> Header {
    Header {
        payload_bytes: packet.payload_bytes,
        payload_crc32c: packet.payload_crc32c,
        session: packet.session,
        sequence: packet.sequence,
        ..header
    }
}

fn of_a_coordinator(state: &State, packet: &Header) -> Result<(), No> {
    let (count, owner) = (packet.term / 256, packet.term % 256);
    assert_eq!(ROUND_OWNERS, 256);
    if packet.commit_index != state.registers.configuration {
        return Err(Software(PacketReason::Configuration));
    }
    if count == 0 || owner != u64::from(packet.sender) {
        return Err(Software(PacketReason::Malformed));
    }
    let asks = packet.kind == Kind::P1a as u8;
    if asks && packet.session == 0 {
        return Err(Software(PacketReason::Malformed));
    }
    if asks && packet.index == 0 {
        return Ok(());
    }
    if packet.index == 0 || packet.index == u64::MAX {
        return Err(Software(PacketReason::Malformed));
    }
    if packet.index <= state.registers.trimmed {
        return Err(Refuse(PacketReason::Trimmed, state.registers.round));
    }
    if !is_open(state, packet.index) {
        return Err(Drop(PacketReason::WindowFull));
    }
    let has_voted = state.slot.instance == packet.index && state.slot.vote_round > 0;
    if asks && packet.index <= state.registers.bound && !has_voted {
        return Err(Drop(PacketReason::NoMember));
    }
    Ok(())
}

/// One promise, as (round, what its coordinator drew).
type Promise = (u64, u64);

/// What holds for an instance: the promise for all, then the one of the instance alone.
fn promises(state: &State, instance: u64) -> Vec<Promise> {
    let mut promises = vec![(state.registers.round, state.registers.promised_to)];
    if state.slot.instance == instance {
        promises.push((state.slot.round, state.slot.promised_to));
    }
    promises
}

/// Whether a round may be promised, given these promises. Of two for one round the first counts.
fn may_promise(promises: &[Promise], packet: &Header) -> Result<bool, No> {
    let highest = promises.iter().map(|(round, _)| *round).max().unwrap_or(0);
    if packet.term > highest {
        return Ok(true);
    }
    if packet.term < highest {
        return Err(Refuse(PacketReason::RoundOld, highest));
    }
    match promises.iter().find(|(round, _)| *round == highest) {
        Some((_, drawn)) if *drawn == packet.session => Ok(false),
        _ => Err(Refuse(PacketReason::RoundTaken, highest)),
    }
}

fn sending(state: &State, how: u32) -> u32 {
    match state.registers.held {
        0 => how,
        _ => how | ACTION_HOLD,
    }
}

fn promise_all(state: &mut State, packet: &Header) -> Decision {
    let (for_all, single) = (state.registers.round, state.registers.single_round);
    if packet.term >= for_all && packet.term <= single {
        return Err(Refuse(PacketReason::RoundOld, single));
    }
    if may_promise(&[(for_all, state.registers.promised_to)], packet)? {
        state.registers.round = packet.term;
        state.registers.promised_to = packet.session;
    }
    Ok(Outcome {
        header: Header {
            previous_term: state.registers.bound,
            session: state.registers.trimmed,
            sequence: state.registers.highest,
            ..promise(state, packet)
        },
        actions: sending(state, ACTION_REPLY),
        ..Outcome::default()
    })
}

/// The slot becomes that of the instance.
fn begin(state: &mut State, instance: u64) {
    if state.slot.instance != instance {
        state.slot = quorumwire_wire::packet::PaxosSlot {
            instance,
            ..Default::default()
        };
    }
}

fn promise_one(state: &mut State, packet: &Header) -> Decision {
    if may_promise(&promises(state, packet.index), packet)? {
        begin(state, packet.index);
        state.slot.round = packet.term;
        state.slot.promised_to = packet.session;
        state.registers.single_round = state.registers.single_round.max(packet.term);
    }
    let mut outcome = Outcome {
        header: promise(state, packet),
        actions: sending(state, ACTION_REPLY),
        ..Outcome::default()
    };
    let slot = &state.slot;
    if slot.instance == packet.index && slot.vote_round > 0 {
        outcome.header.previous_term = slot.vote_round;
        outcome.header.flags = slot.flags;
        outcome.header.payload_bytes = slot.payload_bytes;
        outcome.header.payload_crc32c = slot.payload_crc32c;
        outcome.header.session = slot.session;
        outcome.header.sequence = slot.sequence;
        outcome.index = packet.index;
        outcome.actions |= ACTION_VOTE;
    }
    Ok(outcome)
}

fn vote(state: &mut State, packet: &Header) -> Decision {
    let flags = value_flags(packet.flags & !FLAG_TELL)?;
    let told = if packet.flags & FLAG_TELL == 0 {
        0
    } else {
        ACTION_REPLY
    };
    let promises = promises(state, packet.index);
    let highest = promises.iter().map(|(round, _)| *round).max().unwrap_or(0);
    if packet.term < highest {
        return Err(Refuse(PacketReason::RoundOld, highest));
    }
    let mut outcome = Outcome {
        header: Header {
            flags,
            previous_term: packet.term,
            ..value_of(packet, said(state, Kind::P2b, packet.index, packet.term))
        },
        actions: sending(state, ACTION_FANOUT | told),
        ..Outcome::default()
    };
    let mut voted = state.slot;
    begin(state, packet.index);
    let slot = &mut state.slot;
    if slot.vote_round == packet.term {
        voted.session = packet.session;
        voted.sequence = packet.sequence;
        voted.payload_bytes = packet.payload_bytes;
        voted.payload_crc32c = packet.payload_crc32c;
        voted.flags = flags;
        if voted != *slot {
            return Err(Software(PacketReason::TwoValues));
        }
        outcome.reason = u32::from(PacketReason::Repeated as u8);
        return Ok(outcome);
    }
    if slot.round < packet.term {
        slot.round = packet.term;
        slot.promised_to = 0;
    }
    slot.vote_round = packet.term;
    slot.session = packet.session;
    slot.sequence = packet.sequence;
    slot.payload_bytes = packet.payload_bytes;
    slot.payload_crc32c = packet.payload_crc32c;
    slot.flags = flags;
    state.registers.highest = state.registers.highest.max(packet.index);
    outcome.index = packet.index;
    outcome.actions |= ACTION_STORE;
    Ok(outcome)
}
