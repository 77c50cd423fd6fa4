//! Clients: each asks one thing at a time and writes down what it was told. And how a process serves
//! them.
use crate::fault::Moment;
use crate::long_values::number_in;
use crate::machine::{Arrival, Origin};
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use crate::spelling::{self, Spelling};
use crate::world::{Event, World};
use bytes::{Bytes, BytesMut};
use quorumwire_control::Ticket;
use quorumwire_group::{Gate, Reader, SubmitOutcome};
use quorumwire_interfaces::Index;
use quorumwire_kv::{Command, Exptime, Key, Written};
use quorumwire_linearizability::history::{Answer, Operation};

/// Keys are given up for new ones this often, so that no key's history is long.
const KEYS_LAST: Nanos = 30 * SECOND;
/// A client that is told nothing for this long goes on; the outcome is unknown.
const PATIENCE: Nanos = 700 * MILLISECOND;
/// Of three operations one is asked for in each protocol's words.
const SPELLINGS: [Spelling; 3] = [Spelling::Classic, Spelling::Meta, Spelling::Redis];
/// Of so many writes one has a session and a sequence, and may be asked for again.
const IN_SESSION_ONE_IN: u32 = 3;
/// And so often.
const ATTEMPTS_MAX: u8 = 4;
/// These sessions are the clients'; those of planes' clients are drawn by chance.
pub const SESSIONS_FROM: u64 = 1 << 32;
/// Stands for all clients that do not wait for one answer before they ask again.
pub const MANY: u16 = u16::MAX;
/// The operation of commands whose client does not wait.
pub const NOBODY: u32 = u32::MAX;

/// One operation, as its client knows it.
#[derive(Clone, Copy, Debug)]
pub struct ClientOperation {
    /// Who; [`MANY`]: one of those that do not wait for one answer before they ask again.
    pub client: u16,
    /// Of these: which one.
    pub burst: u32,
    /// Of which key.
    pub key: u32,
    /// What.
    pub operation: Operation,
    /// In which words.
    pub spelling: Spelling,
    /// For a cas: the number that goes with the value expected.
    pub unique: u64,
    /// When.
    pub invoked: Nanos,
    /// What it was told, and when; `None`: nothing.
    pub outcome: Option<(Nanos, Answer)>,
    /// It certainly never happened.
    pub withdrawn: bool,
    /// It has a session and a sequence: how often it was asked for. 0: it has none, and is asked for once.
    pub attempts: u8,
    /// How many bytes its value has at least.
    pub value_bytes: usize,
    /// What was committed when the server began to read.
    pub needed: Index,
}

/// What a server tells a client.
#[derive(Clone, Copy, Debug)]
pub enum ServerReply {
    /// It is done; the number is the one to use for a cas.
    Done(Answer, u64),
    /// It was not done and never will be; who leads, perhaps.
    NotDone(Option<u16>),
    /// Nobody knows.
    Unknown,
}

/// One client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client {
    /// Whom it asks.
    asks: usize,
    /// What it waits for.
    pub waits_for: Option<u32>,
    /// The last value it saw: key, value, and the number that goes with it.
    saw: Option<(u32, u64, u64)>,
}

impl World {
    /// A client has thought, or has lost patience.
    pub fn client_acts(&mut self, number: u16) {
        let now = self.now;
        if now >= self.clients_stop_at {
            return;
        }
        let client = usize::from(number);
        if self.clients[client].waits_for.take().is_some() {
            let machines = self.machines.len() as u64;
            self.clients[client].asks = usize::try_from(self.random.below(machines)).unwrap_or(0);
        }
        let settings = &self.plan.settings;
        let keys = settings.keys;
        let key = key_now(now, self.random.below(u64::from(keys)));
        let operation = self.choose(client, key);
        let unique = self.clients[client].saw.map_or(0, |saw| saw.2);
        let id = u32::try_from(self.asked.len()).unwrap_or(NOBODY - 1);
        let value_bytes = match operation {
            Operation::Set(_) | Operation::Add(_) | Operation::Cas { .. } => {
                self.plan.settings.value_bytes(id)
            }
            Operation::Get | Operation::Delete | Operation::Increment(_) => 0,
        };
        let spelling = self.random.pick(&SPELLINGS).unwrap_or(Spelling::Classic);
        self.asked.push(ClientOperation {
            client: number,
            burst: 0,
            key,
            operation,
            spelling,
            unique,
            invoked: now,
            outcome: None,
            withdrawn: false,
            attempts: u8::from(operation != Operation::Get && id % IN_SESSION_ONE_IN == 0),
            value_bytes,
            needed: Index(0),
        });
        self.counts.operations += 1;
        self.clients[client].waits_for = Some(id);
        self.client_asks(number, id);
    }

    fn client_asks(&mut self, number: u16, operation: u32) {
        let now = self.now;
        let delay = self.random.between(20, 400) * MICROSECOND;
        let to = self.clients[usize::from(number)].asks;
        self.queue.set(now + delay, Event::Request(to, operation));
        let impatient = Event::Impatient(number, operation);
        self.queue.set(now + PATIENCE, impatient);
    }

    /// Nobody can tell this client what became of its operation: whether it asks for the same once more,
    /// somewhere else, as a session allows.
    fn client_asks_again(&mut self, number: u16, operation: u32) -> bool {
        let asked = &mut self.asked[operation as usize];
        if !(1..ATTEMPTS_MAX).contains(&asked.attempts) || self.now >= self.clients_stop_at {
            return false;
        }
        asked.attempts += 1;
        self.counts.see("asked for again in its session");
        let machines = self.machines.len() as u64;
        let elsewhere = usize::try_from(self.random.below(machines)).unwrap_or(0);
        self.clients[usize::from(number)].asks = elsewhere;
        self.client_asks(number, operation);
        true
    }

    /// The session and the sequence of an operation, if it has them.
    #[must_use]
    pub fn name_of(&self, operation: u32) -> Option<(u64, u64)> {
        let asked = &self.asked[operation as usize];
        let name = (
            SESSIONS_FROM + u64::from(asked.client),
            u64::from(operation) + 1,
        );
        (asked.attempts > 0).then_some(name)
    }

    fn choose(&mut self, client: usize, key: u32) -> Operation {
        let value = self.asked.len() as u64 + 1;
        let saw = self.clients[client].saw.filter(|saw| saw.0 == key);
        match self.random.below(20) {
            0..=6 => Operation::Get,
            7..=13 => Operation::Set(value),
            14 => Operation::Add(value),
            15 => Operation::Delete,
            _ => match saw {
                Some((_, expected, _)) => Operation::Cas {
                    expected,
                    new: value,
                },
                None => Operation::Get,
            },
        }
    }

    /// A client has waited for this for too long.
    pub fn client_gives_up(&mut self, number: u16, operation: u32) {
        if self.clients[usize::from(number)].waits_for == Some(operation) {
            self.counts.see("operation without answer");
            if !self.client_asks_again(number, operation) {
                self.client_acts(number);
            }
        }
    }

    /// A client hears what became of its operation.
    pub fn client_hears(&mut self, operation: u32, told: ServerReply) {
        let now = self.now;
        let Some(asked) = self.asked.get_mut(operation as usize) else {
            return;
        };
        let number = asked.client;
        let client = usize::from(number);
        if self.clients[client].waits_for != Some(operation) {
            return; // it has gone on
        }
        // What was asked for earlier may still be carried out.
        let told = match told {
            ServerReply::NotDone(_) if asked.attempts > 1 => ServerReply::Unknown,
            ServerReply::Done(..) | ServerReply::NotDone(_) | ServerReply::Unknown => told,
        };
        if matches!(told, ServerReply::Unknown) && self.client_asks_again(number, operation) {
            return;
        }
        let asked = &mut self.asked[operation as usize];
        match told {
            ServerReply::Done(answer, unique) => {
                if asked.attempts > 1 {
                    self.counts.see("asked for again, and answered");
                }
                asked.outcome = Some((now, answer));
                self.counts.answered += 1;
                if asked.value_bytes > 0 {
                    self.counts.see("long value answered");
                }
                if let Some(outcome) = spelling::outcome(asked, answer) {
                    self.counts.see(outcome);
                }
                // The answer of a forwarded Redis read has no number for a cas.
                let value =
                    if let (Operation::Get, Answer::Value(value)) = (asked.operation, answer) {
                        value
                    } else {
                        None
                    };
                let saw = value.filter(|_| unique > 0);
                let key = asked.key;
                self.note_long_value_read(value);
                self.clients[client].saw = saw.map(|value| (key, value, unique));
            }
            ServerReply::NotDone(leader) => {
                asked.withdrawn = true;
                let machines = self.machines.len() as u64;
                let guess = usize::try_from(self.random.below(machines)).unwrap_or(0);
                let known = leader.map(usize::from).filter(|l| *l < self.machines.len());
                self.clients[client].asks = known.unwrap_or(guess);
            }
            ServerReply::Unknown => self.counts.see("outcome unknown"),
        }
        self.clients[client].waits_for = None;
        let think = match told {
            ServerReply::NotDone(Some(_)) => MILLISECOND,
            ServerReply::NotDone(None) => 20 * MILLISECOND,
            ServerReply::Done(..) | ServerReply::Unknown => self.plan.settings.think,
        };
        let think = self.random.between(think / 4, think * 2);
        self.queue.set(now + think, Event::Client(number));
    }

    /// Sends a client what it is told.
    pub fn answer(&mut self, machine: usize, operation: u32, told: ServerReply) {
        if operation == NOBODY {
            return;
        }
        if self.asked[operation as usize].client == MANY {
            return self.pipe_hears(machine, operation, told);
        }
        if matches!(told, ServerReply::Done(..)) {
            self.reached(machine, Moment::Answered);
        }
        let delay = self.random.between(20, 400) * MICROSECOND;
        self.queue
            .set(self.now + delay, Event::Answer(operation, told));
    }

    /// A process is asked for something by a client.
    pub fn serve(&mut self, machine: usize, operation: u32) {
        let Some(asked) = self.asked.get(operation as usize).copied() else {
            return;
        };
        if spelling::is_too_long(&asked) {
            return self.refuse_too_long(machine, operation);
        }
        let goes_on_here = self.drive(machine, |group| {
            group.leads() || (asked.operation != Operation::Get && group.waits_since_fast_term())
        });
        match goes_on_here {
            None => return,
            Some(true) => {}
            Some(false) => return self.pass_on(machine, operation),
        }
        if asked.operation == Operation::Get {
            return self.serve_read(machine, operation);
        }
        let (name, command) = (self.name_of(operation), self.command_of(operation));
        let submitted = self.drive(machine, |group| {
            let origin = Origin::Operation(operation);
            match name {
                Some(name) => group.write_in_session(origin, name, &command),
                None => group.write(origin, command.len(), |buffer| {
                    buffer.extend_from_slice(&command);
                }),
            }
        });
        match submitted {
            Some(SubmitOutcome::Pending) => {}
            Some(SubmitOutcome::NoRoom) => {
                self.counts.see("write refused as busy"); // a server lets it wait
                if asked.value_bytes > 0 {
                    self.counts.see("long value refused as busy");
                }
                self.refuse(machine, operation);
            }
            Some(SubmitOutcome::Refused(_)) | None => self.refuse(machine, operation),
        }
    }

    /// The protocol's parser takes no such value.
    fn refuse_too_long(&mut self, machine: usize, operation: u32) {
        let command = self.command_of(operation);
        self.checks.require(command.is_empty(), || {
            format!("I16: a value of {} bytes is taken", command.len())
        });
        self.counts.see("value too long for anybody");
        self.refuse(machine, operation);
    }

    /// What stands in the log for this write; nothing, if its value is too long.
    #[must_use]
    pub fn command_of(&self, operation: u32) -> Bytes {
        let asked = &self.asked[operation as usize];
        let mut command = BytesMut::new();
        spelling::encode(asked, &format!("key{}", asked.key), operation, &mut command);
        command.freeze()
    }

    /// A client that does not wait for answers sends this many commands.
    pub fn serve_flood(&mut self, machine: usize, commands: u16) {
        for number in 0..commands {
            let bytes = usize::try_from(self.random.between(1, 700)).unwrap_or(1);
            let seconds = i64::try_from(self.random.below(4)).unwrap_or(0);
            let key = format!("flood{}", number % 24);
            let value = vec![b'x'; bytes];
            let key = Key::new(key.as_bytes()).expect("a short word is a key");
            let command = Command::Set(Written {
                key,
                flags: 0,
                exptime: Exptime(seconds),
                value: &value,
            });
            let submitted = self.drive(machine, |group| {
                let origin = Origin::Operation(NOBODY);
                group.write(origin, command.encoded_bytes(), |buffer| {
                    command.encode(buffer);
                })
            });
            match submitted {
                Some(SubmitOutcome::Pending) => {}
                Some(SubmitOutcome::NoRoom) => {
                    self.counts.hit(crate::fault::Class::F30Overload);
                    break;
                }
                Some(SubmitOutcome::Refused(_)) | None => break,
            }
        }
    }

    /// It was not done here and will not be.
    pub fn refuse(&mut self, machine: usize, operation: u32) {
        let leader = self.leader_known_at(machine);
        self.answer(machine, operation, ServerReply::NotDone(leader));
    }

    /// Who leads instead of this machine, as far as it knows.
    #[must_use]
    pub fn leader_known_at(&self, machine: usize) -> Option<u16> {
        let process = self.machines[machine].process.as_ref();
        let leader = process.and_then(|process| process.group.replica.leader());
        let me = self.machines[machine].peer.id;
        leader.filter(|leader| *leader != me).map(|leader| leader.0)
    }

    fn serve_read(&mut self, machine: usize, operation: u32) {
        let needed = self.checks.known_upto();
        self.asked[operation as usize].needed = needed;
        let query = self.query_of(operation);
        let gate = self.drive(machine, |group| {
            let must_apply = group.read_barrier();
            (must_apply, group.gate(must_apply, true, &query))
        });
        let Some((must_apply, gate)) = gate else {
            return;
        };
        match gate {
            Gate::Open | Gate::Wait(_) | Gate::Overdue => {
                self.counts.see("lease read");
                if self.are_clocks_at_bound(machine) {
                    self.counts
                        .see("lease read, clocks at the documented bound");
                }
                self.read_at_gate(machine, operation, gate);
            }
            Gate::NoLease => self.ask_read_index(machine, operation, must_apply),
            Gate::NotLeader => self.refuse(machine, operation),
        }
    }

    fn ask_read_index(&mut self, machine: usize, operation: u32, must_apply: Index) {
        self.counts.see("read by a round");
        if self.checks.reads_judged && !self.plan.settings.clocks_are_sound {
            self.counts.see("read by a round, clocks as they like");
        }
        let given = self.tickets_given(machine);
        self.drive(machine, |group| {
            group.ask_round(must_apply, Reader::Here(operation));
        });
        self.note_ticket(machine, given);
    }

    /// How many tickets a group has given.
    #[must_use]
    pub fn tickets_given(&self, machine: usize) -> u64 {
        let process = self.machines[machine].process.as_ref();
        process.map_or(0, |process| process.group.tickets_given())
    }

    /// A read was asked for with the ticket that came behind these, if one was given.
    pub fn note_ticket(&mut self, machine: usize, given: u64) {
        let last = self.tickets_given(machine);
        if last > given {
            let peer = self.machines[machine].peer;
            self.checks.asks_read(peer, Ticket(last));
        }
    }

    /// What the store is asked for this read.
    #[must_use]
    pub fn query_of(&self, operation: u32) -> Vec<u8> {
        let asked = &self.asked[operation as usize];
        spelling::query(asked, &format!("key{}", asked.key), operation)
    }

    /// A read may be answered once this is applied.
    pub fn read_granted(&mut self, machine: usize, operation: u32, index: Index) {
        if let Some(burst) = self.burst_of(operation) {
            return self.attend_to_pipe(machine, burst);
        }
        let query = self.query_of(operation);
        let gate = self.drive(machine, |group| group.gate_granted(index, true, &query));
        if let Some(gate) = gate {
            self.read_at_gate(machine, operation, gate);
        }
    }

    /// A read that needs nobody's leave any more.
    fn read_at_gate(&mut self, machine: usize, operation: u32, gate: Gate) {
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        match gate {
            Gate::Open => self.answer_read(machine, operation),
            Gate::Wait(index) => {
                if index == process.group.clock.barrier {
                    self.counts.see("read of what the clock is past the end of");
                }
                process.group.wait_for(index, Reader::Here(operation));
            }
            Gate::Overdue => {
                self.counts.see("read of what stands still");
                self.refuse(machine, operation);
            }
            Gate::NoLease | Gate::NotLeader => self.refuse(machine, operation),
        }
    }

    fn answer_read(&mut self, machine: usize, operation: u32) {
        if let Some(told) = self.read_now(machine, operation) {
            self.answer(machine, operation, told);
        }
    }

    /// What the state machine shows now.
    pub fn read_now(&mut self, machine: usize, operation: u32) -> Option<ServerReply> {
        let it = &mut self.machines[machine];
        let (peer, asked) = (it.peer, self.asked[operation as usize]);
        let process = it.process.as_mut()?;
        let key = format!("key{}", asked.key);
        let read = spelling::read(&process.group.store.inner().store, &asked, &key, operation);
        let applied = process.group.applied;
        self.checks.answers_read(peer, applied, asked.needed);
        match read {
            Ok((value, unique)) => Some(ServerReply::Done(Answer::Value(value), unique)),
            Err(text) => {
                let violation = || format!("I6: {:?} is answered {text:?}", asked.operation);
                self.checks.require(false, violation);
                None
            }
        }
    }
}

impl World {
    /// Sends commands to a machine, as an overload.
    pub fn flood(&mut self, machine: usize, commands: u16) {
        self.arrive(machine, Arrival::Flood(commands));
    }
}

/// The key with this number among those in use now.
#[must_use]
pub fn key_now(now: Nanos, number: u64) -> u32 {
    let epoch = u32::try_from(now / KEYS_LAST).unwrap_or(0);
    epoch * 16 + u32::try_from(number).unwrap_or(0)
}

/// The number that a value is, if it is one.
#[must_use]
pub fn number(value: &[u8]) -> Option<u64> {
    number_in(value)
}

/// What the store has answered to a memcached command, as the judge of histories understands it.
#[must_use]
pub fn answer_of(reply: &[u8]) -> Option<Answer> {
    Some(match reply {
        b"STORED\r\n" => Answer::Stored,
        b"NOT_STORED\r\n" => Answer::NotStored,
        b"EXISTS\r\n" => Answer::Exists,
        b"NOT_FOUND\r\n" => Answer::NotFound,
        b"DELETED\r\n" => Answer::Deleted,
        _ => Answer::Number(number(reply.strip_suffix(b"\r\n")?)?),
    })
}
