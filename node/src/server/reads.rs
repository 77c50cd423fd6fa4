//! Reads that wait on a connection: answered out of the store here once that is allowed, by another leader,
//! or just before the write behind them.
use super::clients::{Connection, ConnectionId, OUTPUT_BYTES_MAX, ReadState, Said, SlotKind};
use super::core::{Core, Origin, Reader, Routed};
use super::front::Front;
use super::{Server, meta_reads, own, redis};
use quorumwire_control::Ticket;
use quorumwire_group::Reader::Here;
use quorumwire_group::{Around, ReadStep};
use quorumwire_interfaces::{Index, Reason};
use quorumwire_kv::Key;
use quorumwire_kv::memcached::{Asked, Read, reply};

/// What looking for a key is in work.
pub const KEY_WORK: usize = 128;

/// Where in a read its answer has come to.
#[derive(Clone, Copy)]
pub struct Place {
    pub line_bytes: u32,
    pub keys: u32,
    pub keys_done: u32,
    pub keys_at_once: u32,
}

impl Place {
    /// What to ask the leader for next: all that is not answered yet, or one key of it.
    pub fn line_to_forward(self, line: &[u8]) -> Vec<u8> {
        let read = Read::from_line(line);
        let Some(Asked::Items { keys, with_unique }) = read.as_ref().map(Read::asked) else {
            return line.to_vec(); // has but one
        };
        let most = self.keys_at_once as usize;
        let mut asked = Vec::with_capacity(line.len());
        asked.extend_from_slice(if with_unique { b"gets" } else { b"get" });
        for key in keys.iter().skip(self.keys_done as usize).take(most) {
            asked.push(b' ');
            asked.extend_from_slice(key.bytes());
        }
        asked
    }
}

impl Server {
    /// Before a write of this connection is applied: the reads in front of it that still wait would show it
    /// soon, so they are answered now, lease or not. For what was committed when such a read came stands in
    /// the log in front of the write, which was put there later: had it stood behind, the write would have
    /// been in the log already. So the state machine holds all of it now, and nothing that is not committed.
    /// It also holds what came of the writes in front of such a read: one that is not answered yet was put
    /// into the log in an earlier term than this write, or never will be (`Group::takes_writes_of`).
    pub fn answer_reads_before(&mut self, id: ConnectionId, slot_number: u64) {
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        if connection.reads_waiting == 0 || slot_number == connection.first_slot {
            return;
        }
        if let Some(mut connection) = self.clients.take(id) {
            let kept_bytes = keep_answers_before(&mut self.core, &mut connection, slot_number);
            self.clients.put_back(connection);
            self.clients.count_answer(id, kept_bytes);
            self.shed_clients();
        }
    }
}

/// Answers the reads in front of a slot out of the store as it is now; how long their answers are.
fn keep_answers_before(core: &mut Core, connection: &mut Connection, slot_number: u64) -> usize {
    let mut kept_bytes = 0;
    for number in connection.first_slot..slot_number {
        let Some((slot, _)) = connection.slot_mut(number) else {
            return kept_bytes;
        };
        match (slot.kind, slot.answer.is_some()) {
            (SlotKind::Read { keys_done, .. }, false) => {
                let answer = answer_now(core, connection, number, keys_done);
                kept_bytes += answer.len();
                connection.keep_answer(number, Said::Answer, &answer);
            }
            (
                SlotKind::Write
                | SlotKind::Read { .. }
                | SlotKind::Asked
                | SlotKind::Fixed(_)
                | SlotKind::Stats(_)
                | SlotKind::Quit,
                _,
            ) => {}
        }
    }
    kept_bytes
}

/// The answer of a read that need not be at the front, without its first keys.
fn answer_now(
    core: &mut Core,
    connection: &Connection,
    slot_number: u64,
    keys_done: u32,
) -> Vec<u8> {
    core.group.set_read_clock();
    let line = connection.line(slot_number);
    let mut answer = Vec::new();
    let is_memcached = connection.redis.is_none() && connection.own.is_none();
    match Read::from_line(&line).filter(|_| is_memcached) {
        None => core.group.store.query(&line, &mut answer),
        Some(read) => {
            if let Asked::Items { keys, with_unique } = read.asked() {
                let keys = keys.iter().skip(keys_done as usize);
                push_items(core, keys, with_unique, &mut answer, usize::MAX);
                answer.extend_from_slice(reply::END);
            } else {
                let origin = Origin::Client(connection.id, slot_number);
                core.answer_meta_read(origin, &read, false, &mut answer);
            }
        }
    }
    answer
}

/// Writes the items of these keys, until `output` is so long; how many keys are done.
fn push_items<'a>(
    core: &mut Core,
    mut keys: impl Iterator<Item = Key<'a>>,
    with_unique: bool,
    output: &mut Vec<u8>,
    limit: usize,
) -> u32 {
    let mut done = 0;
    let before = output.len();
    while output.len() < limit
        && let Some(key) = keys.next()
    {
        done += 1;
        core.counters.get_keys += 1;
        if let Some(item) = core.group.store.inner().get(key) {
            core.counters.get_hits += 1;
            reply::push_item(output, key, &item, with_unique);
        }
    }
    let moved = output.len() - before;
    core.group
        .store
        .inner()
        .add_work(done as usize * KEY_WORK + moved);
    done
}

/// Tries to answer the read at the front. True: it is answered whole.
pub fn advance_read(
    front: &mut Front,
    core: &mut Core,
    connection: &mut Connection,
    place: Place,
    state: ReadState,
) -> bool {
    if state.waits_for_others() {
        return false;
    }
    let around = Around {
        write_behind: connection.writes_waiting > 0,
        // Clients of the own protocol are promised no order.
        undecided_write: !core.group.leads()
            && connection.own.is_none()
            && connection.has_undecided_write(),
    };
    let (line, _) = connection.front_line_and_output(place.line_bytes);
    let (now, step) = core.group.read_step(state, around, line);
    if now != state {
        set_front_state(connection, now);
    }
    match step {
        ReadStep::Answer if !front.has_share(core.work_done()) => {
            connection.cut = true; // goes on in a later turn
            false
        }
        ReadStep::Answer => answer_read(core, connection, place),
        ReadStep::Refuse(reason) => {
            refuse_front(connection, reason, "");
            front.attend_later.push(connection.id);
            false
        }
        ReadStep::Wait(index) => {
            if connection.awaited != index {
                connection.awaited = index;
                (core.group).wait_for(index, Here(Reader::Client(connection.id)));
            }
            false
        }
        ReadStep::AskRound => {
            let must_apply = core.group.read_barrier();
            let reader = Here(Reader::Client(connection.id));
            let ticket = core.group.ask_round(must_apply, reader);
            set_read_states(connection, ReadState::Asked(ticket));
            false
        }
        ReadStep::Nothing => false,
        ReadStep::Forward => {
            if place.keys_at_once < u32::MAX && connection.output_waiting() >= OUTPUT_BYTES_MAX {
                connection.cut = true;
                return false;
            }
            let slot_number = connection.first_slot;
            let (line, _) = connection.front_line_and_output(place.line_bytes);
            let line = place.line_to_forward(line);
            match core.forward_read(Origin::Client(connection.id, slot_number), &line) {
                Ok(request) => set_front_state(connection, ReadState::Forwarded(request)),
                Err(Routed::Refused(reason, instead)) => {
                    refuse_front(connection, reason, &instead);
                    front.attend_later.push(connection.id);
                }
                Err(Routed::Stalled | Routed::Pending) => {} // looked at again with all that stall
            }
            false
        }
    }
}

/// Writes the answer of the read at the front, key by key, as far as the connection has room. A write
/// that waits behind it leaves no choice: then all of it.
fn answer_read(core: &mut Core, connection: &mut Connection, place: Place) -> bool {
    let must_finish = connection.writes_waiting > 0;
    let room = if must_finish {
        usize::MAX
    } else {
        OUTPUT_BYTES_MAX.saturating_sub(connection.output_waiting())
    };
    if connection.redis.is_some() {
        return redis::answer_read(core, connection, place.line_bytes, room);
    }
    if connection.own.is_some() {
        return own::answer_query(core, connection, place.line_bytes, room);
    }
    let (line, output) = connection.front_line_and_output(place.line_bytes);
    let Some(read) = Read::from_line(line) else {
        output.extend_from_slice(reply::ERROR);
        return true;
    };
    let Asked::Items { keys, with_unique } = read.asked() else {
        let line = line.to_vec();
        return Read::from_line(&line)
            .is_none_or(|read| meta_reads::answer_front(core, connection, &read));
    };
    let limit = output.len().saturating_add(room);
    let keys = keys.iter().skip(place.keys_done as usize);
    let keys_done = place.keys_done + push_items(core, keys, with_unique, output, limit);
    if keys_done == place.keys {
        output.extend_from_slice(reply::END);
        return true;
    }
    connection.cut = true;
    if let Some(slot) = connection.slots.front_mut()
        && let SlotKind::Read {
            keys_done: done, ..
        } = &mut slot.kind
    {
        *done = keys_done;
    }
    false
}

/// Writes the answer that came from the leader to the read at the front.
pub fn put_read_answer(
    connection: &mut Connection,
    line_bytes: u32,
    (said, quiet): (Said, bool),
    answer: &[u8],
) {
    if connection.redis.is_some() {
        redis::put_read_answer(connection, line_bytes, (said, quiet), answer);
    } else {
        connection.put_answer(said, answer);
    }
}

/// The leader's answer to a forwarded read would not fit one message: ask for half as many of its keys at
/// once.
pub fn forward_in_parts(connection: &mut Connection, slot_number: u64) {
    if let Some((slot, _)) = connection.slot_mut(slot_number)
        && let SlotKind::Read {
            keys,
            keys_done,
            keys_at_once,
            state,
            ..
        } = &mut slot.kind
    {
        let asked = (*keys - *keys_done).min(*keys_at_once);
        *keys_at_once = (asked / 2).max(1);
        *state = ReadState::ANEW;
    }
}

/// The leader's answer for some keys of the read at the front.
pub fn take_part(connection: &mut Connection, answer: &[u8]) {
    let Some(slot) = connection.slots.front_mut() else {
        return;
    };
    let SlotKind::Read {
        line_bytes,
        keys,
        keys_done,
        keys_at_once,
        state,
    } = &mut slot.kind
    else {
        return;
    };
    let Some(items) = answer.strip_suffix(reply::END) else {
        let front = connection.first_slot;
        connection.keep_answer(front, Said::Answer, answer); // an error: it is the answer to all
        return;
    };
    *keys_done += (*keys - *keys_done).min(*keys_at_once);
    *state = ReadState::ANEW;
    let (line_bytes, is_last) = (*line_bytes, keys_done == keys);
    let (_, output) = connection.front_line_and_output(line_bytes);
    output.extend_from_slice(items);
    if is_last {
        output.extend_from_slice(reply::END);
        connection.pop_slot();
    }
}

/// Puts the front read, and those right behind it that wait for the same, into `state`.
fn set_read_states(connection: &mut Connection, new: ReadState) {
    for slot in &mut connection.slots {
        match &mut slot.kind {
            SlotKind::Read {
                state: state @ ReadState::Gated(_),
                ..
            } => *state = new,
            SlotKind::Read { .. }
            | SlotKind::Write
            | SlotKind::Asked
            | SlotKind::Fixed(_)
            | SlotKind::Stats(_)
            | SlotKind::Quit => return,
        }
    }
}

pub fn set_front_state(connection: &mut Connection, new: ReadState) {
    if let Some(slot) = connection.slots.front_mut()
        && let SlotKind::Read { state, .. } = &mut slot.kind
    {
        *state = new;
    }
}

fn refuse_front(connection: &mut Connection, reason: Reason, instead: &str) {
    let front = connection.first_slot;
    connection.keep_answer(front, Said::Refused(reason), instead.as_bytes());
}

/// What this connection waits for has not come for too long: its reads are refused (true), if one is in
/// front. If there is nothing in front, its next request is that can go nowhere.
pub fn refuse_waiting(connection: &mut Connection) -> bool {
    connection.must_refuse |= connection.slots.is_empty();
    let is_read = |kind: SlotKind| matches!(kind, SlotKind::Read { .. });
    if !connection
        .slots
        .front()
        .is_some_and(|slot| is_read(slot.kind))
    {
        return false;
    }
    refuse_in_front(connection, connection.next_slot());
    connection.awaited = Index(0);
    true
}

/// Refuses the reads that wait in front of this slot.
pub fn refuse_in_front(connection: &mut Connection, upto: u64) {
    let is_read = |kind: SlotKind| matches!(kind, SlotKind::Read { .. });
    for number in connection.first_slot..upto {
        let slot = connection.slot_mut(number);
        if slot.is_some_and(|(slot, _)| is_read(slot.kind) && slot.answer.is_none()) {
            connection.keep_answer(number, Said::Refused(Reason::NoLeader), b"");
        }
    }
}

/// The read index round with this ticket has come back: the reads that waited for it may be answered
/// once `index` is applied.
pub fn grant(connection: &mut Connection, ticket: Ticket, index: Index) {
    replace_states(
        connection,
        ReadState::Asked(ticket),
        ReadState::Granted(index),
    );
}

/// The read index round with this ticket failed: the reads that waited for it begin anew.
pub fn ask_again(connection: &mut Connection, ticket: Ticket) {
    replace_states(connection, ReadState::Asked(ticket), ReadState::ANEW);
}

/// A forwarded read got no answer, and may be sent anew: it changes nothing.
pub fn forward_again(connection: &mut Connection, request: u64) {
    replace_states(connection, ReadState::Forwarded(request), ReadState::ANEW);
}

fn replace_states(connection: &mut Connection, old: ReadState, new: ReadState) {
    for slot in &mut connection.slots {
        if let SlotKind::Read { state, .. } = &mut slot.kind
            && *state == old
        {
            *state = new;
        }
    }
}
