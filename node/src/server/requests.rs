//! Client requests: out of a connection's bytes, to where they can be carried out, and back in order.
//!
//! Within one connection the answers are those of executing its requests one after the other, also
//! when many are sent ahead: a read waits for the writes before it, and the writes behind it do not
//! show in it (but for those whose clients are told that nobody knows what became of them).
use super::budget::Purpose;
use super::clients::{
    AnswerKind, Connection, ConnectionId, Intake, ReadState, Slot, SlotKind, Speaks,
};
use super::core::{Core, Origin, RouteOutcome};
use super::front::Front;
use super::reads::{self, ReadProgress, advance_read};
use super::service::{ReadLine, Service};
use super::{Server, answers, clock, native};
use crate::admin::AdminError;
use quorumwire_control::Ticket;
use quorumwire_group::{BeginRead, Driver as _};
use quorumwire_interfaces::Reason;

/// Keys of reads that may wait on a connection when a write behind them is put into the log: they will
/// have to be answered in one go, with or without room, before that write is applied.
const KEYS_BEFORE_WRITE_MAX: usize = 16;

/// What a read counts for, in keys, that looks for keys: no write is put behind it, and no other read passed
/// on, before it is answered.
pub const KEYS_OF_A_SEARCH: u32 = 1 << 20;
/// Reads of one connection that may be on their way to the leader.
const FORWARDED_READS_MAX: usize = 16;
const _: () = assert!(KEYS_OF_A_SEARCH as usize > KEYS_BEFORE_WRITE_MAX);
/// What taking a request on is in work, beside its bytes.
const REQUEST_WORK: usize = 256;

impl<S: Service> Server<S> {
    /// Looks at every connection that asked for it: takes requests in, answers, sends. As long as this turn
    /// has time for it; the rest keeps its place in the queue.
    pub fn serve_clients(&mut self) {
        S::look_at_clients(self);
        let waiting = self.clients.queue_len();
        if waiting == 0 {
            return;
        }
        self.core.group.now = clock::now();
        self.budget
            .begin(self.core.group.now, self.core.work_done());
        for _ in 0..waiting {
            if !self.budget.may_go_on(Purpose::Clients) {
                break;
            }
            let Some(mut connection) = self.clients.take_next() else {
                break;
            };
            if connection.group != self.at_hand {
                self.take_up(connection.group);
                self.core.group.now = clock::now();
                self.budget
                    .begin(self.core.group.now, self.core.work_done());
            }
            let handshake_began = connection.is_in_handshake().then(clock::worked);
            let (front, core) = (&mut self.front, &mut self.core);
            let intake = serve(front, core, &mut connection, &mut self.scratch);
            if let Some(began) = handshake_began {
                let took = clock::worked().saturating_sub(began);
                self.clients.use_up_handshake(took);
            }
            let id = connection.id;
            let broken = intake == Intake::Broken;
            let is_open = self.clients.send_and_put_back(connection, broken);
            if !is_open {
                self.forget_reads_of(id);
            }
            self.shed_clients();
            let again = |connection: &mut Connection| {
                connection.wants_intake() || connection.wants_output()
            };
            if self.clients.get(id).is_some_and(again) {
                if self.front.has_share(self.core.work_done()) {
                    self.clients.attend(id);
                } else {
                    self.front.counters.shares_used_up += 1;
                    self.clients.attend_behind_others(id);
                }
            }
            self.core.group.now = clock::now();
            let (now, work_done) = (self.core.group.now, self.core.work_done());
            self.budget.took(Purpose::Clients, now, work_done);
        }
        self.take_up(0);
    }

    /// Tells the client here that waits for it why there is no answer.
    pub fn refuse_here(&mut self, origin: Origin, reason: Reason) {
        self.answer_here(origin, AnswerKind::Refused(reason), b"");
    }

    /// Tells a person what its request has become.
    pub fn complete_admin(&mut self, ticket: Ticket, said: AnswerKind, answer: &[u8]) {
        self.answer_admin(ticket, outcome::<S>(said, answer));
    }

    /// Hands the answer of a write, or of a forwarded read, to its connection.
    pub fn complete(
        &mut self,
        id: ConnectionId,
        slot_number: u64,
        said: AnswerKind,
        answer: &[u8],
    ) {
        let next = self.front.in_flight.end(id, slot_number);
        self.front.attend_later.extend(next);
        let Some(connection) = self.clients.get(id) else {
            return; // gone meanwhile
        };
        let keeps_order = connection.keeps_order();
        let Some((slot, is_front)) = connection.slot_mut(slot_number) else {
            return;
        };
        match slot.kind {
            SlotKind::Write if !is_front && keeps_order && said.ends_reads_in_front() => {
                reads::refuse_in_front(connection, slot_number);
                connection.keep_answer(slot_number, said, answer);
            }
            SlotKind::Write if is_front => {
                if !slot.quiet {
                    connection.put_answer(said, answer);
                }
                connection.pop_slot();
            }
            SlotKind::Read { keys_at_once, .. } if is_front && keys_at_once < u32::MAX => {
                match said {
                    AnswerKind::Answer | AnswerKind::Repeated => S::take_part(connection, answer),
                    AnswerKind::Refused(_) => connection.keep_answer(slot_number, said, answer),
                }
            }
            SlotKind::Write | SlotKind::Read { .. } | SlotKind::Asked => {
                connection.keep_answer(slot_number, said, answer);
            }
            SlotKind::Fixed(_) | SlotKind::Stats(_) | SlotKind::Quit => return,
        }
        let waits = |slot: &Slot| slot.kind == SlotKind::Write && slot.answer.is_none();
        let is_next_due = connection.slots.first().is_some_and(|front| !waits(front));
        if is_next_due && connection.slots.writes() > 0 {
            // The next entry may be a write behind a read: answer the read before it is applied.
            if let Some(mut connection) = self.clients.take(id) {
                self.front.begin_share(self.core.work_done());
                advance(&mut self.front, &mut self.core, &mut connection);
                self.clients.put_back(connection);
            }
        }
        self.clients.count_answer(id, answer.len());
        self.shed_clients();
        self.clients.attend(id);
    }

    /// Has the next connections looked at whose expensive writes may go, and forgets those that have gone.
    pub fn let_expensive_in(&mut self) {
        let clients = &mut self.clients;
        let waits = |id| clients.get(id).is_some_and(|it| it.stalled);
        self.front.in_flight.keep(waits);
        let next = self.front.in_flight.next();
        self.front.attend_later.extend(next);
    }

    /// Closes connections as long as all of them hold too much.
    pub fn shed_clients(&mut self) {
        while let Some(id) = self.clients.shed(self.core.group.now) {
            self.forget_reads_of(id);
        }
    }
}

/// What a person is told whose request was answered so.
fn outcome<S: Service>(said: AnswerKind, answer: &[u8]) -> Result<(), AdminError> {
    match said {
        AnswerKind::Answer | AnswerKind::Repeated => S::outcome(answer),
        AnswerKind::Refused(reason) => {
            let text = answers::text(reason, answer);
            Err(AdminError::Failed(String::from_utf8_lossy(&text).into()))
        }
    }
}

/// Looks at one connection: answers what can be answered and takes requests in, as far as its share goes.
pub fn serve<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    scratch: &mut [u8],
) -> Intake {
    front.begin_share(core.work_done());
    native::tell_leader(front, core, connection);
    advance(front, core, connection);
    connection.take_in(scratch, |connection, bytes| {
        core.group.now = clock::now(); // after the bytes came: a lease is judged by this
        match connection.speaks {
            Speaks::Native(_) => take_each(front, core, connection, bytes, native::take_frame),
            Speaks::Memcached | Speaks::Redis(_) => {
                S::take_requests(front, core, connection, bytes)
            }
        }
    })
}

/// What became of the bytes at the front of those that a client has sent.
pub enum TakeOutcome {
    /// So many are done with.
    Bytes(usize),
    /// So many are, and so many must be there behind them before it is worth looking again.
    Waits { used: usize, needed: usize },
    /// They are a request that can go nowhere now, and must be offered again.
    Stalled,
}

/// Has `take` take requests off the front of `bytes` for as long as the next one may be looked at. How many
/// bytes were used, and how many must be there before it is worth looking again.
pub fn take_each<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    bytes: &[u8],
    mut take: impl FnMut(&mut Front, &mut Core<S>, &mut Connection, &[u8]) -> TakeOutcome,
) -> (usize, usize) {
    let mut used = 0;
    while used < bytes.len() && may_take_next(front, core, connection) {
        match take(front, core, connection, &bytes[used..]) {
            TakeOutcome::Bytes(taken) => used += taken,
            TakeOutcome::Waits {
                used: taken,
                needed,
            } => return (used + taken, needed),
            TakeOutcome::Stalled => {
                connection.stalled = true;
                return (used, 0);
            }
        }
        advance(front, core, connection);
    }
    (used, 0)
}

/// Whether the connection's next request may be looked at now. If not, it is looked at again when that
/// changes.
fn may_take_next<S: Service>(front: &Front, core: &Core<S>, connection: &Connection) -> bool {
    connection.has_room() && !connection.stalled && front.has_share(core.work_done())
}

/// A request of so many bytes was taken on.
pub fn count_request<S: Service>(core: &Core<S>, bytes: usize) {
    core.add_work(REQUEST_WORK + bytes);
}

/// Most bytes that a client may have on their way here before it has said who it is.
pub const UNKNOWN_CLIENT_BYTES_MAX: usize = 4 << 10;

impl<S: Service> Server<S> {
    /// Takes the file of clients' names and passwords in again, if there is one.
    pub fn reload_accounts(&mut self) {
        match self.options.load_accounts() {
            Ok(None) => {}
            Ok(Some(accounts)) => {
                tracing::info!(
                    accounts = accounts.count(),
                    "client-auth-file was read again"
                );
                self.front.accounts = Some(accounts);
            }
            Err(error) => tracing::error!("{error:#}; the accounts stay as they were"),
        }
    }
}

/// Takes on a write that is likely to cost so much; `quiet`: its client wants no answer. `route` puts it into
/// the log, or sends it to the leader. False: it must be offered again.
pub fn take_write<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    (work, quiet): (usize, bool),
    route: impl FnOnce(&mut Core<S>, Origin) -> RouteOutcome,
) -> bool {
    if !has_room_for_write(core, connection, work) {
        return false;
    }
    let origin = Origin::Client(connection.id, connection.next_slot());
    let routed = if front.in_flight.admits(connection.id, work) {
        route(core, origin)
    } else {
        RouteOutcome::Stalled
    };
    match refused_if_late(core, connection, routed) {
        RouteOutcome::Pending => {
            let slot = connection.next_slot();
            front.in_flight.begin(connection.id, slot, work);
            connection.push_write(quiet, work);
        }
        RouteOutcome::Stalled => return false,
        RouteOutcome::Refused(reason, instead) => {
            connection.push_refused_write(quiet, reason, &instead);
        }
    }
    true
}

/// Whether a write that is likely to cost so much may be put behind what waits. If not, it is offered again
/// once some of that is answered.
fn has_room_for_write<S: Service>(core: &Core<S>, connection: &Connection, work: usize) -> bool {
    let keys_max = if core.group.takes_write_behind_reads() {
        KEYS_BEFORE_WRITE_MAX
    } else {
        0
    };
    connection.keys_waiting <= keys_max && connection.has_room_for_work(work)
}

/// Takes a read on that asks for so many items. False: it must be offered again.
pub fn take_read<S: Service>(
    core: &mut Core<S>,
    connection: &mut Connection,
    read: ReadLine<'_>,
    keys: u32,
) -> bool {
    if !connection.has_room_for_line() {
        return false; // offered again once some are answered
    }
    // A read of the other protocols shows the connection's writes before it. The native protocol promises no
    // such order: its requests have numbers, and who wants a query to show a command waits for the answer, as
    // it must where the two go over different connections.
    let behind_writes = connection.slots.writes() > 0 && connection.keeps_order();
    let begin = core.group.begin_read(behind_writes);
    if let BeginRead::Here(state) = begin {
        connection.must_refuse = false;
        connection.push_read_line(read, keys, state);
        return true;
    }
    if connection.slots.reads() >= FORWARDED_READS_MAX {
        return false; // each may be answered by as much as a message holds
    }
    if connection.keys_waiting >= KEYS_OF_A_SEARCH as usize {
        return false; // it keeps the leader busy; other connections here go on meanwhile
    }
    let work = S::work_of_read(core, read);
    if !connection.has_room_for_work(work) {
        return false; // so long may their answers be, nearly
    }
    if begin == BeginRead::Later {
        return false; // offered again once they are answered
    }
    let slot_number = connection.next_slot();
    let routed = match core.forward_read(Origin::Client(connection.id, slot_number), read.line) {
        Ok(request) => {
            connection.must_refuse = false;
            connection.push_forwarded_read(read, keys, request, work);
            return true;
        }
        Err(routed) => refused_if_late(core, connection, routed),
    };
    let RouteOutcome::Refused(reason, instead) = routed else {
        return false;
    };
    connection.push_read_line(read, keys, ReadState::ANEW);
    connection.keep_answer(slot_number, AnswerKind::Refused(reason), instead.as_bytes());
    true
}

/// What becomes of a request: one that can go nowhere is refused if the connection has waited for long
/// enough.
fn refused_if_late<S: Service>(
    core: &Core<S>,
    connection: &mut Connection,
    routed: RouteOutcome,
) -> RouteOutcome {
    match routed {
        RouteOutcome::Pending => connection.must_refuse = false,
        RouteOutcome::Stalled if connection.must_refuse => {
            return RouteOutcome::refused(core.why_stalled());
        }
        RouteOutcome::Stalled | RouteOutcome::Refused(..) => {}
    }
    routed
}

/// Answers what can be answered, in order.
pub fn advance<S: Service>(front: &mut Front, core: &mut Core<S>, connection: &mut Connection) {
    connection.cut = false;
    while let Some(Slot {
        kind,
        answer,
        said,
        quiet,
        work: _,
    }) = connection.take_front()
    {
        match (kind, answer) {
            (SlotKind::Asked, Some(frame)) if connection.native().is_some() => {
                connection.output.extend_from_slice(&frame);
            }
            (SlotKind::Write | SlotKind::Asked, Some(answer)) => {
                if !quiet {
                    connection.put_answer(said, &answer);
                }
            }
            (
                SlotKind::Read {
                    line_bytes, form, ..
                },
                Some(answer),
            ) => {
                let read = (line_bytes, form);
                reads::put_read_answer::<S>(connection, read, (said, quiet), &answer);
            }
            (SlotKind::Write | SlotKind::Asked, None) => return,
            (
                SlotKind::Read {
                    line_bytes,
                    form,
                    keys,
                    keys_done,
                    keys_at_once,
                    state: _,
                },
                None,
            ) => {
                let place = ReadProgress {
                    line_bytes,
                    keys,
                    keys_done,
                    keys_at_once,
                    form,
                };
                if !advance_read(front, core, connection, place) {
                    return;
                }
            }
            (SlotKind::Fixed(text), _) => connection.output.extend_from_slice(text),
            (SlotKind::Stats(asked), _) => S::put_statistics(core, connection, asked),
            (SlotKind::Quit, _) => {
                while !connection.slots.is_empty() {
                    connection.pop_slot();
                }
                connection.closing = true;
                return;
            }
        }
        connection.pop_slot();
    }
}

#[cfg(test)]
#[path = "requests_test.rs"]
mod tests;
