//! What the step is to do, written again in the plainest words and on its own: lists instead of slots,
//! sorting instead of counting. Only for comparison.
use crate::cases::Call;
use quorumwire_fastpath::Outcome;
use quorumwire_wire::packet::{
    ACTION_COMMIT, ACTION_FANOUT, ACTION_FORWARD, ACTION_REPLY, ACTION_RESEND, ACTION_STORE,
    ACTION_TO_SOFTWARE, FLAG_BLIND, FLAG_BUNDLE, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TICK, Header,
    Kind, MAGIC, ORIGIN_BYTES, PAYLOAD_BYTES_MAX, PacketReason, REPAIR_ENTRIES_MAX, Registers,
    Role, SENDER_CLIENT, VERSION,
};

/// Nothing is moved.
enum No {
    Software(PacketReason),
    Drop(PacketReason),
}
use No::{Drop, Software};
type Decision = Result<Outcome, No>;

/// The registers afterwards and the outcome; for a release whether it was taken, as an action.
pub fn run(before: &Registers, call: &Call) -> (Registers, Outcome) {
    let mut after = *before;
    let decision = match call {
        Call::Step(packet) => on_packet(&mut after, packet),
        Call::Submit(command) => submit(&mut after, command),
        Call::Persisted(upto) => persisted(&mut after, *upto),
        Call::Heartbeat(round) => heartbeat(&mut after, *round),
        Call::Release(upto) => {
            let stored = *upto <= after.last_index;
            if stored && *upto > after.released_index {
                after.released_index = *upto;
            }
            return (
                after,
                Outcome {
                    actions: u32::from(stored),
                    ..Outcome::default()
                },
            );
        }
    };
    match decision {
        Ok(outcome) => (after, outcome),
        Err(no) => {
            let (actions, reason) = match no {
                Software(reason) => (ACTION_TO_SOFTWARE, reason),
                Drop(reason) => (0, reason),
            };
            let outcome = Outcome {
                actions,
                reason: u32::from(reason as u8),
                ..Outcome::default()
            };
            (*before, outcome)
        }
    }
}

fn role(registers: &Registers) -> Role {
    Role::from_byte(registers.role).unwrap_or(Role::Off)
}

fn on_packet(registers: &mut Registers, packet: &Header) -> Decision {
    let role = role(registers);
    if role == Role::Off {
        return Err(Software(PacketReason::Off));
    }
    if packet.version != VERSION {
        return Err(Software(PacketReason::Version));
    }
    if packet.group != registers.group {
        return Err(Software(PacketReason::Group));
    }
    if usize::from(packet.payload_bytes) > PAYLOAD_BYTES_MAX {
        return Err(Software(PacketReason::Malformed));
    }
    let kind = Kind::from_byte(packet.kind);
    if kind == Some(Kind::Request) {
        return request(registers, packet, role);
    }
    match packet.term.cmp(&registers.term) {
        std::cmp::Ordering::Less => return Err(Software(PacketReason::TermOld)),
        std::cmp::Ordering::Greater => return Err(Software(PacketReason::TermNew)),
        std::cmp::Ordering::Equal => {}
    }
    let others: Vec<u8> = (0..registers.replicas)
        .filter(|slot| *slot != registers.me)
        .collect();
    if !others.contains(&packet.sender) {
        return Err(Software(PacketReason::Stranger));
    }
    match (role, kind) {
        (Role::Leader, Some(Kind::Forward)) => {
            if usize::from(packet.payload_bytes) < ORIGIN_BYTES || not_for_clients(packet) {
                return Err(Software(PacketReason::Malformed));
            }
            assign(
                registers,
                packet,
                usize::from(packet.payload_bytes) - ORIGIN_BYTES,
            )
        }
        (Role::Leader, Some(Kind::AppendOk | Kind::HeartbeatOk)) => promised(registers, packet),
        (Role::Leader, Some(Kind::Retransmit)) => missing(registers, packet),
        (Role::Leader, _) => Err(Software(PacketReason::Unexpected)),
        (_, Some(Kind::Forward)) => Err(Drop(PacketReason::Unexpected)),
        _ if packet.sender != registers.leader => Err(Software(PacketReason::Stranger)),
        (_, Some(Kind::Append)) => append(registers, packet),
        (_, Some(Kind::Heartbeat)) => heard(registers, packet),
        _ => Err(Software(PacketReason::Unexpected)),
    }
}

fn not_for_clients(packet: &Header) -> bool {
    let has = |flag| packet.flags & flag == flag;
    has(FLAG_TICK)
        || has(FLAG_REFUSED)
        || has(FLAG_BUNDLE)
        || has(FLAG_FRAGMENT) && packet.session == 0
}

fn said(registers: &Registers, kind: Kind, index: u64, sequence: u64) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        sender: registers.me,
        group: registers.group,
        term: registers.term,
        index,
        commit_index: registers.commit_index,
        sequence,
        ..Header::default()
    }
}

fn request(registers: &mut Registers, packet: &Header, role: Role) -> Decision {
    if usize::from(packet.sender) != SENDER_CLIENT {
        return Err(Software(PacketReason::Stranger));
    }
    if not_for_clients(packet) {
        return Err(Software(PacketReason::Malformed));
    }
    let bytes = usize::from(packet.payload_bytes);
    if role == Role::Leader {
        return assign(registers, packet, bytes);
    }
    if bytes + ORIGIN_BYTES > PAYLOAD_BYTES_MAX {
        return Err(Software(PacketReason::Malformed));
    }
    let header = Header {
        flags: packet.flags & (FLAG_BLIND | FLAG_FRAGMENT),
        payload_bytes: u16::try_from(bytes + ORIGIN_BYTES).unwrap(),
        payload_crc32c: packet.payload_crc32c,
        session: packet.session,
        ..said(registers, Kind::Forward, 0, packet.sequence)
    };
    Ok(Outcome {
        header,
        actions: ACTION_FORWARD,
        ..Outcome::default()
    })
}

fn submit(registers: &mut Registers, command: &Header) -> Decision {
    if role(registers) != Role::Leader {
        return Err(Software(PacketReason::Off));
    }
    if usize::from(command.payload_bytes) > PAYLOAD_BYTES_MAX {
        return Err(Software(PacketReason::Malformed));
    }
    assign(registers, command, usize::from(command.payload_bytes))
}

fn assign(registers: &mut Registers, command: &Header, payload_bytes: usize) -> Decision {
    let last = u128::from(registers.last_index);
    if last + 2 > u128::from(u64::MAX) {
        return Err(Software(PacketReason::BeyondLast));
    }
    if last + 1 - u128::from(registers.released_index) > u128::from(registers.ring_slots) {
        return Err(Drop(PacketReason::RingFull));
    }
    if last - u128::from(registers.commit_index) >= u128::from(registers.window) {
        return Err(Drop(PacketReason::WindowFull));
    }
    let index = registers.last_index + 1;
    let header = Header {
        flags: command.flags & (FLAG_BLIND | FLAG_TICK | FLAG_FRAGMENT | FLAG_BUNDLE),
        payload_bytes: u16::try_from(payload_bytes).unwrap(),
        payload_crc32c: command.payload_crc32c,
        previous_term: registers.last_term,
        session: command.session,
        ..said(registers, Kind::Append, index, command.sequence)
    };
    registers.last_index = index;
    registers.last_term = registers.term;
    let mut outcome = Outcome {
        header,
        index,
        actions: ACTION_STORE | ACTION_FANOUT,
        ..Outcome::default()
    };
    if registers.held == 0 {
        registers.persisted_index = index;
        registers.match_index[usize::from(registers.me)] = index;
        count(registers, &mut outcome);
    }
    Ok(outcome)
}

/// The registers of a leader that has counted what it was told, as each does at once: a step relies on it.
pub fn counted(mut registers: Registers) -> Registers {
    count(&mut registers, &mut Outcome::default());
    registers
}

/// The highest index that the quorum's weakest member holds, if it is of this term.
fn count(registers: &mut Registers, outcome: &mut Outcome) {
    let mut held = registers.match_index[..usize::from(registers.replicas)].to_vec();
    held.sort_unstable();
    held.reverse();
    let by_quorum = held[usize::from(registers.quorum) - 1];
    if by_quorum > registers.start_index {
        commit(registers, by_quorum, outcome);
    }
}

fn commit(registers: &mut Registers, upto: u64, outcome: &mut Outcome) {
    if upto > registers.commit_index {
        outcome.commit_from = registers.commit_index;
        outcome.actions |= ACTION_COMMIT;
        registers.commit_index = upto;
    }
}

fn append(registers: &mut Registers, packet: &Header) -> Decision {
    let (index, last) = (packet.index, registers.last_index);
    let mut outcome = Outcome::default();
    if index <= registers.start_index {
        return Err(Drop(PacketReason::BeforeStart));
    }
    if index == u64::MAX {
        return Err(Software(PacketReason::Malformed));
    }
    if index == last + 1 {
        if packet.previous_term != registers.last_term {
            return Err(Software(PacketReason::History));
        }
        if last - registers.released_index == u64::from(registers.ring_slots) {
            return Err(Drop(PacketReason::RingFull));
        }
        registers.last_index = index;
        registers.last_term = registers.term;
        outcome.index = index;
        outcome.actions = ACTION_STORE;
        if registers.held == 0 {
            registers.persisted_index = index;
        }
    } else {
        let reason = if index > last {
            PacketReason::Gap
        } else {
            PacketReason::Repeated
        };
        outcome.reason = u32::from(reason as u8);
    }
    let known = packet.commit_index.min(registers.last_index);
    commit(registers, known, &mut outcome);
    if index > last + 1 {
        outcome.actions |= ACTION_REPLY;
        outcome.header = said(registers, Kind::Retransmit, last + 1, registers.round);
    } else if index <= last || registers.held == 0 {
        outcome.actions |= ACTION_REPLY;
        let promised = registers.persisted_index;
        outcome.header = said(registers, Kind::AppendOk, promised, registers.round);
    }
    Ok(outcome)
}

fn heard(registers: &mut Registers, packet: &Header) -> Decision {
    if packet.index == u64::MAX {
        return Err(Software(PacketReason::Malformed));
    }
    let mut outcome = Outcome {
        actions: ACTION_REPLY,
        ..Outcome::default()
    };
    registers.round = registers.round.max(packet.sequence);
    commit(
        registers,
        packet.commit_index.min(registers.last_index),
        &mut outcome,
    );
    let (kind, index) = if packet.index > registers.last_index {
        outcome.reason = u32::from(PacketReason::Gap as u8);
        (Kind::Retransmit, registers.last_index + 1)
    } else {
        (Kind::HeartbeatOk, registers.persisted_index)
    };
    outcome.header = said(registers, kind, index, registers.round);
    Ok(outcome)
}

fn possible(registers: &Registers, packet: &Header) -> Result<(), No> {
    if packet.index > registers.last_index {
        return Err(Software(PacketReason::BeyondLast));
    }
    if packet.sequence > registers.round {
        return Err(Software(PacketReason::Malformed));
    }
    Ok(())
}

fn promised(registers: &mut Registers, packet: &Header) -> Decision {
    possible(registers, packet)?;
    let slot = usize::from(packet.sender);
    let mut outcome = Outcome::default();
    registers.heard_round[slot] = registers.heard_round[slot].max(packet.sequence);
    if packet.index > registers.start_index {
        registers.match_index[slot] = registers.match_index[slot].max(packet.index);
        count(registers, &mut outcome);
    }
    Ok(outcome)
}

fn missing(registers: &mut Registers, packet: &Header) -> Decision {
    possible(registers, packet)?;
    let ring = u128::from(registers.ring_slots);
    let repaired = if registers.quorum < registers.replicas {
        ring.min(REPAIR_ENTRIES_MAX as u128)
    } else {
        ring
    };
    let in_reach = u128::from(packet.index) + repaired > u128::from(registers.last_index);
    if packet.index <= registers.start_index || !in_reach {
        return Err(Software(PacketReason::BehindRing));
    }
    let slot = usize::from(packet.sender);
    registers.heard_round[slot] = registers.heard_round[slot].max(packet.sequence);
    Ok(Outcome {
        index: packet.index,
        actions: ACTION_RESEND,
        ..Outcome::default()
    })
}

fn persisted(registers: &mut Registers, upto: u64) -> Decision {
    let role = role(registers);
    if role == Role::Off {
        return Err(Drop(PacketReason::Off));
    }
    if registers.held == 0 {
        return Err(Drop(PacketReason::Unexpected));
    }
    if upto > registers.last_index {
        return Err(Drop(PacketReason::BeyondLast));
    }
    if upto <= registers.persisted_index {
        return Err(Drop(PacketReason::Repeated));
    }
    registers.persisted_index = upto;
    let mut outcome = Outcome::default();
    if role == Role::Leader {
        registers.match_index[usize::from(registers.me)] = upto;
        count(registers, &mut outcome);
    } else {
        outcome.actions = ACTION_REPLY;
        outcome.header = said(registers, Kind::AppendOk, upto, registers.round);
    }
    Ok(outcome)
}

fn heartbeat(registers: &mut Registers, round: u64) -> Decision {
    if role(registers) != Role::Leader {
        return Err(Drop(PacketReason::Off));
    }
    if round <= registers.round {
        return Err(Drop(PacketReason::Repeated));
    }
    registers.round = round;
    registers.heard_round[usize::from(registers.me)] = round;
    Ok(Outcome {
        header: said(registers, Kind::Heartbeat, registers.last_index, round),
        actions: ACTION_FANOUT,
        ..Outcome::default()
    })
}
