//! Reads that wait on a connection: answered out of the store here once that is allowed, by another leader,
//! or just before the write behind them.
use super::Server;
use super::admission::Admission;
use super::by_front;
use super::clients::{AnswerKind, Connection, OUTPUT_BYTES_MAX, ReadState, Slot, SlotKind};
use super::connection_id::ConnectionId;
use super::core::Core;
use super::origin::Origin;
use super::read_line::{ReadLine, ReadProgress};
use super::route_outcome::RouteOutcome;
use super::service::Service;
use quorumwire_group::{FirstRead, Ordered as _};
use quorumwire_interfaces::Reason;

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
            | SlotKind::Question
            | SlotKind::Text(_)
            | SlotKind::Stats(_)
            | SlotKind::Quit => continue,
        };
        core.group.set_read_clock();
        let line = &connection.line(number);
        let read = ReadLine { line, form };
        let answer = by_front::answer_now(core, connection, (number, keys_done), read);
        kept_bytes += answer.len();
        connection.keep_answer(number, AnswerKind::Answer, &answer);
    }
    kept_bytes
}

/// Tries to answer the first read that waits. True: it is answered whole.
pub fn advance_read<S: Service>(
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
    progress: ReadProgress,
) -> bool {
    match connection.advance_first(&mut core.group, progress.line_bytes) {
        FirstRead::Answer if !admission.has_share(core.work_done()) => {
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
            by_front::answer_first(core, connection, progress, room)
        }
        FirstRead::Refuse(reason) => {
            refuse_first(connection, reason, "");
            admission.attend_later.push(connection.id);
            false
        }
        FirstRead::Wait => false,
        FirstRead::Forward => {
            if progress.keys_at_once < u32::MAX && connection.output_waiting() >= OUTPUT_BYTES_MAX {
                connection.cut = true;
                return false;
            }
            let slot_number = connection.slots.first_number();
            let (line, _) = connection.first_line_and_output(progress.line_bytes);
            let line = S::line_to_forward(progress, line);
            match core.forward_read(Origin::Client(connection.id, slot_number), &line) {
                Ok(request) => connection
                    .slots
                    .set_first_state(ReadState::Forwarded(request)),
                Err(RouteOutcome::Refused(reason, instead)) => {
                    refuse_first(connection, reason, &instead);
                    admission.attend_later.push(connection.id);
                }
                Err(RouteOutcome::Stalled | RouteOutcome::Pending) => {} // looked at again with all that stall
            }
            false
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

fn refuse_first(connection: &mut Connection, reason: Reason, instead: &str) {
    let first = connection.slots.first_number();
    connection.keep_answer(first, AnswerKind::Refused(reason), instead.as_bytes());
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
