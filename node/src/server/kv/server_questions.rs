//! What clients ask of the whole server, by either protocol: answered between the turns of connections, in
//! the order of each client's requests. An answer may be long, so a connection asks for one at a time, and a
//! turn answers as many as there is time for.
use super::{Core, Server};
use crate::server::clients::{AnswerKind, Connection, SlotKind};
use crate::server::clock;
use crate::server::connection_id::ConnectionId;
use quorumwire_control::{Now, Status};
use quorumwire_interfaces::Index;
use quorumwire_kv::redis::{Resp, reply};
use std::collections::VecDeque;
use std::time::Duration;

/// Answers are made for this long in a turn.
const ANSWERING_TIME_MAX: Duration = Duration::from_millis(2);
/// Whoever waits for replicas is looked at this often.
const WAITS_LOOKED_AT: Duration = Duration::from_millis(1);

/// One question, and who asks.
pub struct WaitingQuestion {
    id: ConnectionId,
    slot: u64,
    question: ServerQuestion,
}

/// What is asked.
pub enum ServerQuestion {
    /// `stats conns`
    Connections,
    /// `INFO` with these sections.
    Info(Resp, Vec<String>),
    /// `CONFIG` with these words.
    Config(Resp, Vec<String>),
    /// `CLIENT LIST`, `CLIENT INFO`
    Clients(Resp, Filter),
    /// `CLIENT KILL`
    Kill(Filter),
    /// `WAIT`
    Wait(Wait),
    /// `CLIENT UNBLOCK` of the connection with this number.
    Unblock {
        number: i64,
        /// Its `WAIT` is answered with an error, not as if its time had passed.
        with_error: bool,
    },
}

/// Which connections.
#[derive(Default)]
pub struct Filter {
    /// None: any.
    pub ids: Option<Vec<i64>>,
    pub address: Option<Vec<u8>>,
    /// The address that they connected to.
    pub local_address: Option<Vec<u8>>,
    pub user: Option<Vec<u8>>,
    /// Of a type of which there are none.
    pub is_nobody: bool,
    /// Not this one.
    pub but: Option<i64>,
    /// The old form of `CLIENT KILL`, whose answer is another.
    pub is_old_form: bool,
}

/// `WAIT`: so many replicas beside the leader shall have everything up to an index.
#[derive(Clone, Copy)]
pub struct Wait {
    pub replicas: u64,
    pub index: Index,
    /// Then the answer is how many have; `None`: never.
    pub until: Option<Now>,
}

/// Questions that are not answered yet; at most one for each connection.
#[derive(Default)]
pub struct ServerQuestions {
    due: VecDeque<WaitingQuestion>,
    waits: Vec<(ConnectionId, u64, Wait)>,
    waits_next: Now,
}

impl ServerQuestions {
    /// Whether the next turn has some to answer.
    pub fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Who waits for replicas.
    pub fn waiting(&self) -> impl Iterator<Item = ConnectionId> {
        self.waits.iter().map(|(id, _, _)| *id)
    }

    /// How many clients wait for replicas.
    pub fn waits_count(&self) -> usize {
        self.waits.len()
    }
}

/// Takes a question on. False: it must be offered again, once the one before it is answered.
pub fn push(core: &mut Core, connection: &mut Connection, question: ServerQuestion) -> bool {
    if connection.is_asking {
        return false;
    }
    connection.is_asking = true;
    let slot = connection.next_slot();
    connection.push(SlotKind::Question, None);
    let id = connection.id;
    core.service
        .questions
        .due
        .push_back(WaitingQuestion { id, slot, question });
    true
}

impl Server {
    /// Answers what can be answered.
    pub fn answer_questions(&mut self) {
        let begun = self.core.group.now;
        while self.core.group.now.0.saturating_sub(begun.0) <= ANSWERING_TIME_MAX {
            let Some(asked) = self.core.service.questions.due.pop_front() else {
                break;
            };
            self.answer_question(asked);
            self.core.group.now = clock::now();
        }
        self.answer_waits();
    }

    fn answer_question(&mut self, asked: WaitingQuestion) {
        let WaitingQuestion { id, slot, question } = asked;
        if self.clients.get(id).is_none() {
            return; // gone meanwhile
        }
        let mut out = Vec::new();
        match question {
            ServerQuestion::Connections => self.write_connections(&mut out),
            ServerQuestion::Info(resp, sections) => self.redis_info(&sections, resp, &mut out),
            ServerQuestion::Config(resp, words) => self.redis_config(&words, resp, &mut out),
            ServerQuestion::Clients(resp, filter) => self.client_list(&filter, resp, &mut out),
            ServerQuestion::Kill(filter) => self.kill_clients(&filter, id, &mut out),
            ServerQuestion::Wait(wait) => {
                self.core.service.questions.waits.push((id, slot, wait));
                self.core.service.questions.waits_next = self.core.group.now;
                return;
            }
            ServerQuestion::Unblock { number, with_error } => {
                let was_waiting = self.end_wait(number, with_error);
                reply::integer(&mut out, i64::from(was_waiting));
            }
        }
        self.answer_one(id, slot, &out);
    }

    fn answer_one(&mut self, id: ConnectionId, slot: u64, text: &[u8]) {
        if let Some(connection) = self.clients.get(id) {
            connection.is_asking = false;
        }
        self.complete(id, slot, AnswerKind::Answer, text);
    }

    /// Answers the connection with this number, if it waits for replicas. False: it does not.
    fn end_wait(&mut self, number: i64, with_error: bool) -> bool {
        let waits = &mut self.core.service.questions.waits;
        let Some(place) = waits.iter().position(|(id, _, _)| id.number() == number) else {
            return false;
        };
        let (id, slot, wait) = waits.remove(place);
        if self.clients.get(id).is_none() {
            return false; // gone meanwhile
        }
        let mut out = Vec::new();
        if with_error {
            reply::error(&mut out, b"UNBLOCKED client unblocked via CLIENT UNBLOCK");
        } else {
            let have = replicas_that_have(&self.core.group.replica.status(), wait.index);
            out = format!(":{have}\r\n").into_bytes();
        }
        self.answer_one(id, slot, &out);
        true
    }

    /// Answers whoever waits for replicas that have got there, whose time is over, who is gone, or who holds
    /// up the end.
    fn answer_waits(&mut self) {
        let now = self.core.group.now;
        if self.core.service.questions.waits.is_empty()
            || now < self.core.service.questions.waits_next
        {
            return;
        }
        self.core.service.questions.waits_next = Now(now.0 + WAITS_LOOKED_AT);
        let status = self.core.group.replica.status();
        // Only a leader hears of others that get there.
        let is_told = self.core.group.leads() && self.draining_since.is_none();
        for (id, slot, wait) in std::mem::take(&mut self.core.service.questions.waits) {
            let have = replicas_that_have(&status, wait.index);
            let is_over = wait.until.is_some_and(|until| now >= until);
            if have < wait.replicas && is_told && !is_over {
                // What stands behind it is looked at by nobody meanwhile, the end of the connection included.
                match self.clients.get(id).map(|it| it.is_leaving()) {
                    None => continue,
                    Some(true) => {}
                    Some(false) => {
                        self.core.service.questions.waits.push((id, slot, wait));
                        continue;
                    }
                }
            }
            self.answer_one(id, slot, format!(":{have}\r\n").as_bytes());
        }
    }
}

/// Replicas beside the leader that have stored everything up to here, which is applied here, as far as this
/// one knows: a majority has, or it would not be.
fn replicas_that_have(status: &Status, index: Index) -> u64 {
    let voters = status.membership.voters().count() as u64;
    let followers = status.followers.iter();
    let have = followers.filter(|it| it.match_index >= index).count() as u64;
    have.max(voters / 2)
}
