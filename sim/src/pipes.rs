//! Connections of clients that send ahead: what waits on one, in order. What may be done with it, the group
//! says.
use crate::clients::{MANY, ServerReply};
use crate::machine::Origin;
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use crate::world::{Event, World};
use quorumwire_control::Ticket;
use quorumwire_group::{
    AnswerKind, BeginRead, FirstRead, Ordered, ReadState, Reader, Row, SubmitOutcome,
};
use quorumwire_interfaces::{Index, Reason};
use quorumwire_linearizability::history::{Answer, Operation};
use std::collections::VecDeque;

/// A client that has heard nothing for so long closes its connection.
const PATIENCE: Nanos = 5 * SECOND;
/// What could go nowhere is offered again after this, if nothing else happens.
const AGAIN: Nanos = 20 * MILLISECOND;

/// A connection.
#[derive(Debug, Default)]
pub struct Pipe {
    /// What was sent and is not taken on.
    unread: VecDeque<u32>,
    slots: Row<Slot>,
    /// It is to be looked at.
    is_due: bool,
    /// When something was last answered, or sent.
    moved_at: Nanos,
}

/// A request that was taken on, and not yet answered to its client.
#[derive(Debug)]
struct Slot {
    operation: u32,
    /// Of a read.
    state: Option<ReadState>,
    told: Option<ServerReply>,
}

impl Ordered for Slot {
    fn read_state(&self) -> Option<ReadState> {
        self.state
    }

    fn read_state_mut(&mut self) -> Option<&mut ReadState> {
        self.state.as_mut()
    }

    fn is_write(&self) -> bool {
        self.state.is_none()
    }

    fn is_answered(&self) -> bool {
        self.told.is_some()
    }
}

impl Pipe {
    /// The number of a request.
    fn number_of(&self, operation: u32) -> Option<u64> {
        let numbered = (self.slots.first_number()..).zip(self.slots.iter());
        let mut of_this = numbered.filter(|(_, slot)| slot.operation == operation);
        of_this.next().map(|(number, _)| number)
    }
}

impl Pipe {
    /// What the client is told once it is this request's turn.
    fn tell(&mut self, number: u64, told: ServerReply) {
        if let Some((slot, _)) = self.slots.with_number(number) {
            slot.told.get_or_insert(told);
        }
    }
}

impl World {
    /// The client that sends ahead and asked for this, if one did.
    #[must_use]
    pub fn burst_of(&self, operation: u32) -> Option<u32> {
        let asked = self.asked.get(operation as usize)?;
        (asked.client == MANY).then_some(asked.burst)
    }

    fn pipe(&mut self, machine: usize, burst: u32) -> Option<&mut Pipe> {
        self.machines[machine]
            .process
            .as_mut()?
            .pipes
            .get_mut(&burst)
    }

    /// Has a connection looked at soon.
    pub fn attend_to_pipe(&mut self, machine: usize, burst: u32) {
        self.attend_after(machine, burst, MICROSECOND);
    }

    fn attend_after(&mut self, machine: usize, burst: u32, delay: Nanos) {
        let (now, run) = (self.now, self.machines[machine].run);
        if let Some(pipe) = self.pipe(machine, burst)
            && !std::mem::replace(&mut pipe.is_due, true)
        {
            let event = Event::Pipe(machine, run, burst);
            self.queue.set(now + delay, event);
        }
    }

    /// Leadership has changed hands.
    pub fn attend_to_all_pipes(&mut self, machine: usize) {
        let process = self.machines[machine].process.as_ref();
        let all: Vec<u32> = process.map_or(Vec::new(), |it| it.pipes.keys().copied().collect());
        for burst in all {
            self.attend_to_pipe(machine, burst);
        }
    }

    /// What it waited for will not be: it says anew what it waits for.
    pub fn pipe_waits_no_more(&mut self, machine: usize, burst: u32) {
        if let Some(pipe) = self.pipe(machine, burst) {
            pipe.slots.wait_anew();
        }
        self.attend_to_pipe(machine, burst);
    }

    /// Reads in this state begin anew.
    pub fn pipe_reads_anew(&mut self, machine: usize, burst: u32, state: ReadState) {
        if let Some(pipe) = self.pipe(machine, burst) {
            pipe.slots.replace_states(state, ReadState::ANEW);
        }
        self.attend_to_pipe(machine, burst);
    }

    /// A round has come back.
    pub fn pipe_is_granted(
        &mut self,
        machine: usize,
        operation: u32,
        ticket: Ticket,
        index: Index,
    ) {
        if let Some(burst) = self.burst_of(operation)
            && let Some(pipe) = self.pipe(machine, burst)
        {
            let granted = ReadState::Granted(index);
            pipe.slots.replace_states(ReadState::Round(ticket), granted);
        }
    }

    /// A request of such a client is answered, or never will be.
    pub fn pipe_hears(&mut self, machine: usize, operation: u32, told: ServerReply) {
        let Some(burst) = self.burst_of(operation) else {
            return;
        };
        if self.loud {
            let line = format!("client {burst} is to hear of {operation}: {told:?}");
            self.say(machine, &line);
        }
        let unknown = AnswerKind::Refused(Reason::OutcomeUnknown);
        let ends_reads = matches!(told, ServerReply::Unknown) && unknown.ends_reads_in_front();
        let mut ended = 0;
        if let Some(pipe) = self.pipe(machine, burst)
            && let Some(number) = pipe.number_of(operation)
        {
            let in_front = if ends_reads {
                pipe.slots.open_reads_before(number)
            } else {
                Vec::new()
            };
            ended = in_front.len() as u64;
            for read in in_front {
                pipe.tell(read, ServerReply::NotDone(None));
            }
            pipe.tell(number, told);
        }
        self.counts
            .see_many("read in front of a write with unknown outcome", ended);
        self.attend_to_pipe(machine, burst);
    }

    /// Before a command of such a client is applied: the reads in front of it that still wait would show it
    /// soon, so they are answered now.
    pub fn answer_reads_in_front(&mut self, machine: usize, write: u32) {
        let Some(burst) = self.burst_of(write) else {
            return;
        };
        let Some(pipe) = self.pipe(machine, burst) else {
            return;
        };
        let Some(number) = pipe.number_of(write) else {
            return;
        };
        let open = pipe.slots.open_reads_before(number);
        let reads: Vec<u32> = open
            .into_iter()
            .filter_map(|read| Some(pipe.slots.with_number(read)?.0.operation))
            .collect();
        for read in reads {
            self.counts.see("read answered before the write behind it");
            if let Some(told) = self.read_now(machine, read) {
                self.pipe_hears(machine, read, told);
            }
        }
    }

    /// A client sends these, or its connection is looked at.
    pub fn serve_pipe(&mut self, machine: usize, burst: u32, operations: Vec<u32>) {
        let now = self.now;
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        if operations.is_empty() && !process.pipes.contains_key(&burst) {
            return; // it has closed it
        }
        let pipe = process.pipes.entry(burst).or_default();
        pipe.is_due = false;
        if !operations.is_empty() {
            pipe.moved_at = now;
        }
        pipe.unread.extend(operations);
        while self.pipe_answers(machine, burst) || self.pipe_takes_on(machine, burst) {}
        let is_over = |pipe: &mut Pipe| pipe.unread.is_empty() && pipe.slots.is_empty();
        if self.pipe(machine, burst).is_some_and(is_over)
            && let Some(process) = &mut self.machines[machine].process
        {
            process.pipes.remove(&burst);
        }
    }

    /// Takes the next request on, if it may be.
    fn pipe_takes_on(&mut self, machine: usize, burst: u32) -> bool {
        let Some(pipe) = self.pipe(machine, burst) else {
            return false;
        };
        let (behind_writes, behind_reads) = (pipe.slots.writes() > 0, pipe.slots.reads() > 0);
        let Some(operation) = pipe.unread.front().copied() else {
            return false;
        };
        let is_read = self.asked[operation as usize].operation == Operation::Get;
        let taken = if is_read {
            let known = self.checks.known_upto();
            self.asked[operation as usize].needed = known;
            match self.drive(machine, |group| group.begin_read(behind_writes)) {
                None | Some(BeginRead::Later) => return false,
                Some(BeginRead::Here(state)) => Ok(Some(state)),
                Some(BeginRead::Forward) => {
                    let sent = self.send_to_leader(machine, operation);
                    sent.map(|number| Some(ReadState::Forwarded(number)))
                }
            }
        } else {
            let may = self.drive(machine, |group| {
                let may = !behind_reads || group.takes_write_behind_reads();
                may.then(|| group.leads() || group.waits_since_fast_term())
            });
            match may.flatten() {
                None => return false,
                Some(false) => self.send_to_leader(machine, operation).map(|_| None),
                Some(true) => {
                    let command = self.command_of(operation);
                    let submitted = self.drive(machine, |group| {
                        group.write(Origin::Operation(operation), command.len(), |buffer| {
                            buffer.extend_from_slice(&command);
                        })
                    });
                    match submitted {
                        Some(SubmitOutcome::Pending) => Ok(None),
                        other => Err(other.unwrap_or(SubmitOutcome::NoRoom)),
                    }
                }
            }
        };
        let (state, told) = match taken {
            Ok(state) => (state, None),
            Err(SubmitOutcome::Refused(_)) if is_read => {
                (Some(ReadState::ANEW), Some(ServerReply::NotDone(None)))
            }
            Err(SubmitOutcome::Refused(_)) => (None, Some(ServerReply::NotDone(None))),
            Err(SubmitOutcome::NoRoom | SubmitOutcome::Pending) => {
                self.attend_after(machine, burst, AGAIN);
                return false;
            }
        };
        if self.loud {
            let what = self.asked[operation as usize].operation;
            let line = format!("client {burst} asks {operation}: {what:?}, {state:?}, {told:?}");
            self.say(machine, &line);
        }
        if let Some(pipe) = self.pipe(machine, burst) {
            pipe.unread.pop_front();
            pipe.slots.push(Slot {
                operation,
                state,
                told,
            });
        }
        true
    }

    /// Answers the request at the front, if it may be.
    fn pipe_answers(&mut self, machine: usize, burst: u32) -> bool {
        let now = self.now;
        let Some(pipe) = self.pipe(machine, burst) else {
            return false;
        };
        let Some(first) = pipe.slots.first() else {
            return false;
        };
        let operation = first.operation;
        if let Some(told) = first.told {
            pipe.slots.pop();
            pipe.moved_at = now;
            self.pipe_client_hears(burst, operation, told);
            return true;
        }
        if first.state.is_none() {
            return false;
        }
        let mut row = std::mem::take(&mut pipe.slots);
        let query = self.query_of(operation);
        let given = self.tickets_given(machine);
        let step = self.drive(machine, |group| {
            group.advance_read(&mut row, operation, true, &query)
        });
        if let Some(pipe) = self.pipe(machine, burst) {
            pipe.slots = row;
        }
        self.note_ticket(machine, given);
        match step.unwrap_or(FirstRead::Wait) {
            FirstRead::Answer => {
                let told = self.read_now(machine, operation);
                if let Some(told) = told {
                    self.pipe_hears(machine, operation, told);
                }
                told.is_some()
            }
            FirstRead::Refuse(_) => {
                self.pipe_hears(machine, operation, ServerReply::NotDone(None));
                true
            }
            FirstRead::Forward => {
                match self.send_to_leader(machine, operation) {
                    Ok(number) => {
                        if let Some(pipe) = self.pipe(machine, burst) {
                            pipe.slots.set_first_state(ReadState::Forwarded(number));
                        }
                    }
                    Err(SubmitOutcome::Refused(_)) => {
                        self.pipe_hears(machine, operation, ServerReply::NotDone(None));
                    }
                    Err(SubmitOutcome::NoRoom | SubmitOutcome::Pending) => {
                        self.attend_after(machine, burst, AGAIN);
                    }
                }
                false
            }
            FirstRead::Wait => false,
        }
    }

    /// The client is told, in the order in which it asked. A read shows the last write in front of it: nobody
    /// else writes its key.
    fn pipe_client_hears(&mut self, burst: u32, operation: u32, told: ServerReply) {
        let now = self.now;
        let asked = &mut self.asked[operation as usize];
        match told {
            ServerReply::Done(answer, _) => asked.outcome = Some((now, answer)),
            ServerReply::NotDone(_) => asked.withdrawn = true,
            ServerReply::Unknown => {}
        }
        let ServerReply::Done(Answer::Value(value), _) = told else {
            return;
        };
        self.counts.see("read between writes of one client");
        let before = self.bursts[burst as usize].iter().rev();
        let before = before.filter(|other| **other < operation);
        let mut may_show = Vec::new();
        let mut is_known = false;
        for other in before {
            let other = &self.asked[*other as usize];
            let Operation::Set(value) = other.operation else {
                continue;
            };
            if other.withdrawn {
                continue;
            }
            may_show.push(Some(value));
            if other.outcome.is_some() {
                is_known = true;
                break;
            }
        }
        if !is_known {
            may_show.push(None);
        }
        let is_right = may_show.contains(&value) || !self.checks.reads_judged;
        self.checks.require(is_right, || {
            format!(
                "I6: operation {operation} shows {value:?}, the writes in front of it: {may_show:?}"
            )
        });
    }

    /// Clients that have heard nothing for long close their connections.
    pub fn give_up_pipes(&mut self, machine: usize) {
        let now = self.now;
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        let is_late = |_: &u32, pipe: &mut Pipe| now - pipe.moved_at > PATIENCE;
        let given_up: Vec<u32> = process
            .pipes
            .extract_if(.., is_late)
            .flat_map(|(_, pipe)| {
                pipe.slots
                    .iter()
                    .map(|slot| slot.operation)
                    .collect::<Vec<_>>()
            })
            .collect();
        if !given_up.is_empty() {
            let is_wanted = |reader: &Reader<u32>| !matches!(reader, Reader::Here(operation) if given_up.contains(operation));
            process.group.reads.keep(is_wanted);
        }
    }
}
