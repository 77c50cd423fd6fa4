//! Client requests: out of a connection's bytes, to where they can be carried out, and back in order.
//!
//! Within one connection the answers are those of executing its requests one after the other, also
//! when many are sent ahead: a read waits for the writes before it, and the writes behind it do not
//! show in it (but for those whose clients are told that nobody knows what became of them).
use super::admission::Admission;
use super::budget::Purpose;
use super::by_front;
use super::clients::{AnswerKind, Connection, Intake, Slot, SlotKind};
use super::connection_id::ConnectionId;
use super::core::Core;
use super::origin::Origin;
use super::read_line::ReadProgress;
use super::reads::{self, advance_read};
use super::service::Service;
use super::take_outcome::TakeOutcome;
use super::{Server, answers, clock};
use crate::admin::AdminError;
use quorumwire_control::Ticket;
use quorumwire_group::Driver as _;
use quorumwire_interfaces::Reason;

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
            let (admission, core) = (&mut self.admission, &mut self.core);
            let intake = serve(admission, core, &mut connection, &mut self.scratch);
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
                if self.admission.has_share(self.core.work_done()) {
                    self.clients.attend(id);
                } else {
                    self.admission.counters.shares_used_up += 1;
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
        let next = self.admission.in_flight.end(id, slot_number);
        self.admission.attend_later.extend(next);
        let Some(connection) = self.clients.get(id) else {
            return; // gone meanwhile
        };
        let keeps_order = connection.front.keeps_order();
        let Some((slot, is_first)) = connection.slot_mut(slot_number) else {
            return;
        };
        match slot.kind {
            SlotKind::Write if !is_first && keeps_order && said.ends_reads_in_front() => {
                reads::refuse_in_front(connection, slot_number);
                connection.keep_answer(slot_number, said, answer);
            }
            SlotKind::Write if is_first => {
                if !slot.quiet {
                    connection.put_answer(said, answer);
                }
                connection.pop_slot();
            }
            SlotKind::Read { keys_at_once, .. } if is_first && keys_at_once < u32::MAX => {
                match said {
                    AnswerKind::Answer | AnswerKind::Repeated => S::take_part(connection, answer),
                    AnswerKind::Refused(_) => connection.keep_answer(slot_number, said, answer),
                }
            }
            SlotKind::Write | SlotKind::Read { .. } | SlotKind::Question => {
                connection.keep_answer(slot_number, said, answer);
            }
            SlotKind::Text(_) | SlotKind::Stats(_) | SlotKind::Quit => return,
        }
        let waits = |slot: &Slot| slot.kind == SlotKind::Write && slot.answer.is_none();
        let is_next_due = connection.slots.first().is_some_and(|first| !waits(first));
        if is_next_due && connection.slots.writes() > 0 {
            // The next entry may be a write behind a read: answer the read before it is applied.
            if let Some(mut connection) = self.clients.take(id) {
                self.admission.begin_share(self.core.work_done());
                advance(&mut self.admission, &mut self.core, &mut connection);
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
        self.admission.in_flight.keep(waits);
        let next = self.admission.in_flight.next();
        self.admission.attend_later.extend(next);
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
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
    scratch: &mut [u8],
) -> Intake {
    admission.begin_share(core.work_done());
    by_front::tell(admission, core, connection);
    advance(admission, core, connection);
    let intake = connection.take_in(scratch, |connection, bytes| {
        core.group.now = clock::now(); // after the bytes came: a lease is judged by this
        take_each(admission, core, connection, bytes)
    });
    by_front::give(admission, core, connection);
    intake
}

/// Takes requests off `bytes` for as long as the next one may be looked at. How many
/// bytes were used, and how many must be there before it is worth looking again.
fn take_each<S: Service>(
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
    bytes: &[u8],
) -> (usize, usize) {
    let mut used = 0;
    while used < bytes.len() && may_take_next(admission, core, connection) {
        match by_front::take_first(admission, core, connection, &bytes[used..]) {
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
        advance(admission, core, connection);
    }
    (used, 0)
}

/// Whether the connection's next request may be looked at now. If not, it is looked at again when that
/// changes.
fn may_take_next<S: Service>(
    admission: &Admission,
    core: &Core<S>,
    connection: &Connection,
) -> bool {
    connection.has_room() && !connection.stalled && admission.has_share(core.work_done())
}

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
                self.admission.accounts = Some(accounts);
            }
            Err(error) => tracing::error!("{error:#}; the accounts stay as they were"),
        }
    }
}

/// Answers what can be answered, in order.
pub fn advance<S: Service>(
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
) {
    connection.cut = false;
    while let Some(Slot {
        kind,
        answer,
        said,
        quiet,
        work: _,
    }) = connection.take_first_slot()
    {
        match (kind, answer) {
            (SlotKind::Question, Some(text)) => {
                if !quiet {
                    connection.output.extend_from_slice(&text);
                }
            }
            (SlotKind::Write, Some(answer)) => {
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
                by_front::put_read_answer::<S>(connection, read, (said, quiet), &answer);
            }
            (SlotKind::Write | SlotKind::Question, None) => return,
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
                if !advance_read(admission, core, connection, place) {
                    return;
                }
            }
            (SlotKind::Text(text), _) => connection.output.extend_from_slice(text),
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
