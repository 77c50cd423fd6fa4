//! Reads that wait on a connection: answered out of the store here once that is allowed, by another leader,
//! or just before the write behind them.
use super::clients::{
    AnswerKind, Connection, ConnectionId, OUTPUT_BYTES_MAX, ReadState, Slot, SlotKind, Speaks,
};
use super::core::{Core, Origin, RouteOutcome};
use super::front::Front;
use super::kv::QueryForm;
use super::service::{ReadLine, Service};
use super::{Server, native};
use quorumwire_group::{FirstRead, Ordered as _};
use quorumwire_interfaces::Reason;

/// Where in a read its answer has come to.
#[derive(Clone, Copy)]
pub struct ReadProgress {
    pub line_bytes: u32,
    pub keys: u32,
    pub keys_done: u32,
    pub keys_at_once: u32,
    pub form: QueryForm,
}

impl<S: Service> Server<S> {
    /// Before a write of this connection is applied: the reads in front of it that still wait would show it
    /// soon, so they are answered now, lease or not. For what was committed when such a read came stands in
    /// the log in front of the write, which was put there later: had it stood behind, the write would have
    /// been in the log already. So the state machine holds all of it now, and nothing that is not committed.
    /// It also holds what came of the writes in front of such a read: one that is not answered yet was put
    /// into the log in an earlier term than this write, or never will be (`Group::takes_writes_of`).
    pub fn answer_reads_in_front(&mut self, id: ConnectionId, slot_number: u64) {
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        if connection.slots.reads() == 0 || slot_number == connection.slots.first_number() {
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
fn keep_answers_before<S: Service>(
    core: &mut Core<S>,
    connection: &mut Connection,
    slot_number: u64,
) -> usize {
    let mut kept_bytes = 0;
    for number in connection.slots.open_reads_before(slot_number) {
        let Some((slot, _)) = connection.slot_mut(number) else {
            continue;
        };
        let (keys_done, form) = match slot.kind {
            SlotKind::Read {
                keys_done, form, ..
            } => (keys_done, form),
            SlotKind::Write
            | SlotKind::Asked
            | SlotKind::Fixed(_)
            | SlotKind::Stats(_)
            | SlotKind::Quit => continue,
        };
        core.group.set_read_clock();
        let line = &connection.line(number);
        let read = ReadLine { line, form };
        let mut answer = Vec::new();
        match connection.speaks {
            Speaks::Native(_) => S::answer_at_once(core, read, &mut answer),
            Speaks::Memcached | Speaks::Redis(_) => {
                let origin = Origin::Client(connection.id, number);
                S::answer_now(core, origin, read, keys_done, &mut answer);
            }
        }
        kept_bytes += answer.len();
        connection.keep_answer(number, AnswerKind::Answer, &answer);
    }
    kept_bytes
}

/// Tries to answer the read at the front. True: it is answered whole.
pub fn advance_read<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    progress: ReadProgress,
) -> bool {
    match connection.advance_front(&mut core.group, progress.line_bytes) {
        FirstRead::Answer if !front.has_share(core.work_done()) => {
            connection.cut = true; // goes on in a later turn
            false
        }
        FirstRead::Answer => {
            // A write that waits behind it leaves no choice: then all of it.
            let room = if connection.slots.writes() > 0 {
                usize::MAX
            } else {
                OUTPUT_BYTES_MAX.saturating_sub(connection.output_waiting())
            };
            match connection.speaks {
                Speaks::Native(_) => native::answer_query(core, connection, progress, room),
                Speaks::Memcached | Speaks::Redis(_) => {
                    S::answer_front(core, connection, progress, room)
                }
            }
        }
        FirstRead::Refuse(reason) => {
            refuse_front(connection, reason, "");
            front.attend_later.push(connection.id);
            false
        }
        FirstRead::Wait => false,
        FirstRead::Forward => {
            if progress.keys_at_once < u32::MAX && connection.output_waiting() >= OUTPUT_BYTES_MAX {
                connection.cut = true;
                return false;
            }
            let slot_number = connection.slots.first_number();
            let (line, _) = connection.front_line_and_output(progress.line_bytes);
            let line = S::line_to_forward(progress, line);
            match core.forward_read(Origin::Client(connection.id, slot_number), &line) {
                Ok(request) => connection
                    .slots
                    .set_first_state(ReadState::Forwarded(request)),
                Err(RouteOutcome::Refused(reason, instead)) => {
                    refuse_front(connection, reason, &instead);
                    front.attend_later.push(connection.id);
                }
                Err(RouteOutcome::Stalled | RouteOutcome::Pending) => {} // looked at again with all that stall
            }
            false
        }
    }
}

/// Writes the answer that came from the leader to the read at the front.
pub fn put_read_answer<S: Service>(
    connection: &mut Connection,
    line_bytes_form: (u32, QueryForm),
    (said, quiet): (AnswerKind, bool),
    answer: &[u8],
) {
    match connection.speaks {
        Speaks::Native(_) => connection.put_answer(said, answer),
        Speaks::Memcached | Speaks::Redis(_) => {
            S::put_read_answer(connection, line_bytes_form, (said, quiet), answer);
        }
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

fn refuse_front(connection: &mut Connection, reason: Reason, instead: &str) {
    let front = connection.slots.first_number();
    connection.keep_answer(front, AnswerKind::Refused(reason), instead.as_bytes());
}

/// What this connection waits for has not come for too long: its reads are refused (true), if one is in
/// front. If there is nothing in front, its next request is that can go nowhere.
pub fn refuse_waiting(connection: &mut Connection) -> bool {
    connection.must_refuse |= connection.slots.is_empty();
    let first = connection.slots.first();
    if first.and_then(Slot::read_state).is_none() {
        return false;
    }
    refuse_in_front(connection, connection.next_slot());
    connection.slots.wait_anew();
    true
}

/// Refuses the reads that wait in front of this slot.
pub fn refuse_in_front(connection: &mut Connection, upto: u64) {
    for number in connection.slots.open_reads_before(upto) {
        connection.keep_answer(number, AnswerKind::Refused(Reason::NoLeader), b"");
    }
}
