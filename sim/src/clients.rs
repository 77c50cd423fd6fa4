//! Clients: each asks one thing at a time and writes down what it was told. And how a process serves
//! them, as the node does.
use crate::fault::Moment;
use crate::machine::{Arrival, Origin, Proposal};
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use crate::spelling::{self, Spelling};
use crate::turn::Applying;
use crate::world::{Event, World};
use quorumwire_control::{Input, Now, Refusal, Role};
use quorumwire_interfaces::{Index, LogTime};
use quorumwire_kv::{Command, Exptime, Key, Written};
use quorumwire_linearizability::history::{Answer, Operation};
use quorumwire_sessions::Outcome;
use quorumwire_wire::{RecordKind, Tick};
use std::time::Duration;

/// A write takes the log's time with it if that is older than this.
const TICK_INTERVAL: Duration = Duration::from_millis(10);
/// Keys are given up for new ones this often, so that no key's history is long.
const KEYS_LAST: Nanos = 30 * SECOND;
/// A client that is told nothing for this long goes on; the outcome is unknown.
const PATIENCE: Nanos = 700 * MILLISECOND;
/// Of three operations one is asked for in each protocol's words.
const SPELLINGS: [Spelling; 3] = [Spelling::Classic, Spelling::Meta, Spelling::Redis];
/// The operation of commands whose client does not wait.
pub const NOBODY: u32 = u32::MAX;

/// One operation, as its client knows it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Who.
    pub client: u16,
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
    /// What was committed when the server began to read.
    pub needed: Index,
}

/// What a server tells a client.
#[derive(Clone, Copy, Debug)]
pub enum Told {
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
    waits_for: Option<u32>,
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
        let place = usize::from(number);
        if self.clients[place].waits_for.take().is_some() {
            let machines = self.machines.len() as u64;
            self.clients[place].asks = usize::try_from(self.random.below(machines)).unwrap_or(0);
        }
        let settings = &self.plan.settings;
        let keys = settings.keys;
        let key = key_now(now, self.random.below(u64::from(keys)));
        let operation = self.choose(place, key);
        let unique = self.clients[place].saw.map_or(0, |saw| saw.2);
        let id = u32::try_from(self.asked.len()).unwrap_or(NOBODY - 1);
        let spelling = self.random.pick(&SPELLINGS).unwrap_or(Spelling::Classic);
        self.asked.push(Asked {
            client: number,
            key,
            operation,
            spelling,
            unique,
            invoked: now,
            outcome: None,
            withdrawn: false,
            needed: Index(0),
        });
        self.counts.operations += 1;
        self.clients[place].waits_for = Some(id);
        let delay = self.random.between(20, 400) * MICROSECOND;
        let to = self.clients[place].asks;
        self.queue.set(now + delay, Event::Request(to, id));
        self.queue.set(now + PATIENCE, Event::Impatient(number, id));
    }

    fn choose(&mut self, place: usize, key: u32) -> Operation {
        let value = self.asked.len() as u64 + 1;
        let saw = self.clients[place].saw.filter(|saw| saw.0 == key);
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
            self.client_acts(number);
        }
    }

    /// A client hears what became of its operation.
    pub fn client_hears(&mut self, operation: u32, told: Told) {
        let now = self.now;
        let Some(asked) = self.asked.get_mut(operation as usize) else {
            return;
        };
        let number = asked.client;
        let place = usize::from(number);
        if self.clients[place].waits_for != Some(operation) {
            return; // it has gone on
        }
        match told {
            Told::Done(answer, unique) => {
                asked.outcome = Some((now, answer));
                self.counts.answered += 1;
                if let Some(outcome) = spelling::outcome(asked, answer) {
                    self.counts.see(outcome);
                }
                let value = match (asked.operation, answer) {
                    (Operation::Get, Answer::Value(Some(value))) => Some(value),
                    _ => None,
                };
                self.clients[place].saw = value.map(|value| (asked.key, value, unique));
            }
            Told::NotDone(leader) => {
                asked.withdrawn = true;
                let machines = self.machines.len() as u64;
                let guess = usize::try_from(self.random.below(machines)).unwrap_or(0);
                let known = leader.map(usize::from).filter(|l| *l < self.machines.len());
                self.clients[place].asks = known.unwrap_or(guess);
            }
            Told::Unknown => self.counts.see("outcome unknown"),
        }
        self.clients[place].waits_for = None;
        let think = match told {
            Told::NotDone(Some(_)) => MILLISECOND,
            Told::NotDone(None) => 20 * MILLISECOND,
            Told::Done(..) | Told::Unknown => self.plan.settings.think,
        };
        let think = self.random.between(think / 4, think * 2);
        self.queue.set(now + think, Event::Client(number));
    }

    fn answer(&mut self, place: usize, operation: u32, told: Told) {
        if operation == NOBODY {
            return;
        }
        if matches!(told, Told::Done(..)) {
            self.reached(place, Moment::Answered);
        }
        let delay = self.random.between(20, 400) * MICROSECOND;
        self.queue
            .set(self.now + delay, Event::Answer(operation, told));
    }

    /// A process is asked for something by a client.
    pub fn serve(&mut self, place: usize, operation: u32) {
        let Some(asked) = self.asked.get(operation as usize).copied() else {
            return;
        };
        let now = self.now;
        let machine = &mut self.machines[place];
        let clock = machine.clock(now);
        let Some(process) = &mut machine.process else {
            return;
        };
        if process.replica.role() != Role::Leader || process.journal.full {
            return self.refuse(place, operation);
        }
        if asked.operation == Operation::Get {
            return self.serve_read(place, operation);
        }
        if process.waits_since_fast_term() {
            self.counts.see("write refused as busy"); // a server lets it wait
            return self.refuse(place, operation);
        }
        self.begin_term(place);
        self.tick_before_write(place, clock);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let key = format!("key{}", asked.key);
        if process.leads_fast_term() {
            let mut command = bytes::BytesMut::new();
            spelling::encode(&asked, &key, operation, &mut command);
            if !process.enqueue(command.freeze(), Origin::Operation(operation), clock) {
                self.counts.see("write refused as busy");
                self.refuse(place, operation);
            }
            return;
        }
        let proposed = process.replica.propose(RecordKind::Command, |buffer| {
            spelling::encode(&asked, &key, operation, buffer);
        });
        match proposed {
            Ok((index, term)) => process.proposals.insert(Proposal {
                index,
                position: 0,
                term,
                origin: Origin::Operation(operation),
                at: clock,
            }),
            Err(refusal) => {
                if matches!(refusal, Refusal::Busy { .. }) {
                    self.counts.see("write refused as busy");
                }
                self.refuse(place, operation);
            }
        }
    }

    /// A client that does not wait for answers sends this many commands.
    pub fn serve_flood(&mut self, place: usize, commands: u16) {
        let clock = self.machines[place].clock(self.now);
        let process = self.machines[place].process.as_ref();
        if process.is_some_and(crate::machine::Process::waits_since_fast_term) {
            return;
        }
        self.begin_term(place);
        self.tick_before_write(place, clock);
        for number in 0..commands {
            let bytes = usize::try_from(self.random.between(1, 700)).unwrap_or(1);
            let seconds = i64::try_from(self.random.below(4)).unwrap_or(0);
            let Some(process) = &mut self.machines[place].process else {
                return;
            };
            let key = format!("flood{}", number % 24);
            let value = vec![b'x'; bytes];
            let encode = |buffer: &mut bytes::BytesMut| {
                let key = Key::new(key.as_bytes()).expect("a short word is a key");
                let item = Written {
                    key,
                    flags: 0,
                    exptime: Exptime(seconds),
                    value: &value,
                };
                Command::Set(item).encode(buffer);
            };
            if process.leads_fast_term() {
                let mut command = bytes::BytesMut::new();
                encode(&mut command);
                if !process.enqueue(command.freeze(), Origin::Operation(NOBODY), clock) {
                    self.counts.hit(crate::fault::Class::F30Overload);
                    break;
                }
                continue;
            }
            let proposed = process.replica.propose(RecordKind::Command, encode);
            if let Err(Refusal::Busy { .. }) = proposed {
                self.counts.hit(crate::fault::Class::F30Overload);
                break;
            }
        }
    }

    /// It was not done here and will not be.
    pub fn refuse(&mut self, place: usize, operation: u32) {
        let process = self.machines[place].process.as_ref();
        let leader = process.and_then(|process| process.replica.leader());
        let me = self.machines[place].peer.id;
        let leader = leader.filter(|leader| *leader != me).map(|leader| leader.0);
        self.answer(place, operation, Told::NotDone(leader));
    }

    /// Takes the log's time along before a write, so that a life span counts from now.
    pub fn tick_before_write(&mut self, place: usize, clock: Now) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let since = |last: Now| clock.0.saturating_sub(last.0);
        let last = process.clock.last_tick;
        if last.is_none_or(|last| since(last) >= TICK_INTERVAL) {
            process.propose_tick(clock);
        }
    }

    /// If the time of something in the store has come, has the log say so.
    pub fn tick_if_deadline_passed(&mut self, place: usize) {
        let clock = self.machines[place].clock(self.now);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if process.replica.role() != Role::Leader
            || process.clock.term != process.replica.term()
            || process.clock.barrier > process.applied
        {
            return;
        }
        let Some(deadline) = process.store.next_deadline() else {
            return;
        };
        let since = process.clock.last_tick;
        let since = since.map(|last| clock.0.saturating_sub(last.0));
        if deadline.0 <= process.leader_time_ms(clock)
            && since.is_none_or(|since| since >= TICK_INTERVAL)
        {
            let last = process.last_index();
            process.clock.barrier = process.propose_tick(clock).unwrap_or(last);
        }
    }

    /// Gives its time to what commands sent to planes began: no tick came before them.
    pub fn tick_if_time_is_awaited(&mut self, place: usize) {
        let process = self.machines[place].process.as_ref();
        if process.is_none_or(|it| it.replica.role() != Role::Leader) {
            return;
        }
        self.begin_term(place);
        let clock = self.machines[place].clock(self.now);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if !process.store.awaits_time() && !process.is_wall_clock_news(clock) {
            return;
        }
        let since = process.clock.last_tick;
        let since = since.map(|last| clock.0.saturating_sub(last.0));
        if process.clock.awaited > process.applied
            || since.is_some_and(|since| since < TICK_INTERVAL)
        {
            return;
        }
        self.counts.see("time awaited");
        let last = process.last_index();
        process.clock.awaited = process.propose_tick(clock).unwrap_or(last);
    }

    /// The entry that a read waits for, if what it would show may be over by the leader's clock while the log has not
    /// said so.
    pub fn overdue(&mut self, place: usize, query: &[u8]) -> Option<Index> {
        let clock = self.machines[place].clock(self.now);
        let process = self.machines[place].process.as_mut()?;
        let tells =
            process.replica.role() == Role::Leader && process.clock.term == process.replica.term();
        let time_ms = if tells {
            process.leader_time_ms(clock)
        } else {
            0
        };
        process.store.inner_mut().set_clock(LogTime(time_ms));
        if !tells || !process.store.inner().is_overdue(query) {
            return None;
        }
        if process.clock.barrier <= process.applied {
            let last = process.last_index();
            process.clock.barrier = process.propose_tick(clock).unwrap_or(last);
        }
        (process.clock.barrier > process.applied).then_some(process.clock.barrier)
    }

    fn serve_read(&mut self, place: usize, operation: u32) {
        self.begin_term(place);
        let needed = self.checks.committed_upto();
        self.asked[operation as usize].needed = needed;
        let machine = &mut self.machines[place];
        let (clock, peer) = (machine.clock(self.now), machine.peer);
        let Some(process) = &mut machine.process else {
            return;
        };
        let replica = &process.replica;
        // The plane may have committed what consensus does not know of yet.
        let in_plane = process.plane_registers();
        let in_plane = in_plane.map_or(Index(0), |it| it.commit_index);
        let must_apply = replica.commit_index().max(in_plane);
        let has_begun = process.clock.term == replica.term();
        if has_begun && replica.lease_read(clock).is_some() {
            let index = must_apply.max(process.term_start);
            self.counts.see("lease read");
            if self.are_clocks_at_bound(place) {
                self.counts
                    .see("lease read, clocks at the documented bound");
            }
            return self.read_granted(place, operation, index);
        }
        self.counts.see("read by a round");
        if self.checks.reads_judged && !self.plan.settings.clocks_are_sound {
            self.counts.see("read by a round, clocks as they like");
        }
        let ticket = process.ticket();
        process.asked.insert(ticket, (must_apply, operation));
        self.checks.asks_read(peer, ticket);
        self.step(place, Input::Read(ticket));
    }

    /// A read may be answered once this is applied.
    pub fn read_granted(&mut self, place: usize, operation: u32, index: Index) {
        let machine = &mut self.machines[place];
        let peer = machine.peer;
        let Some(process) = &mut machine.process else {
            return;
        };
        if index > process.applied {
            process.waiting.push((index, operation));
            return;
        }
        let Some(asked) = self.asked.get(operation as usize).copied() else {
            return;
        };
        let key = format!("key{}", asked.key);
        if let Some(index) = self.overdue(place, &spelling::query(&asked, &key, operation)) {
            self.counts.see("read of what the clock is past the end of");
            if let Some(process) = &mut self.machines[place].process {
                process.waiting.push((index, operation));
            }
            return;
        }
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let read = spelling::read(process.store.inner(), &asked, &key, operation);
        let applied = process.applied;
        self.checks.answers_read(peer, applied, asked.needed);
        let (value, unique) = match read {
            Ok(read) => read,
            Err(text) => {
                let violation = || format!("I6: {:?} is answered {text:?}", asked.operation);
                return self.checks.require(false, violation);
            }
        };
        self.answer(place, operation, Told::Done(Answer::Value(value), unique));
    }

    /// Serves the reads whose time has come.
    pub fn serve_waiting(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if process.waiting.is_empty() {
            return;
        }
        for (index, operation) in std::mem::take(&mut process.waiting) {
            self.read_granted(place, operation, index);
        }
    }

    /// Whoever waits for what an entry settled is told what became of it.
    pub fn tell_origin(
        &mut self,
        place: usize,
        origin: Origin,
        command: &Applying<'_>,
        fate: Fate,
    ) {
        if matches!(fate, Fate::NotDone) {
            self.counts.see("certainly not done");
        }
        match origin {
            Origin::Operation(operation) => self.tell(place, operation, fate),
            Origin::Plane(..) => self.tell_plane_client(place, origin, command, fate),
        }
    }

    fn tell(&mut self, place: usize, operation: u32, fate: Fate) {
        let told = match fate {
            Fate::Unknown => Told::Unknown,
            Fate::NotDone => Told::NotDone(None),
            Fate::Applied(_) => {
                let Some(asked) = self.asked.get(operation as usize) else {
                    return; // nobody waits
                };
                let Some(answer) = spelling::answer_of(asked, operation, &self.reply) else {
                    let (what, reply) = (asked.operation, self.reply.escape_ascii());
                    let violation = || format!("I6: {what:?} is answered {reply}");
                    return self.checks.require(false, violation);
                };
                Told::Done(answer, 0)
            }
        };
        self.answer(place, operation, told);
    }
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It was applied; its answer is in `reply`.
    Applied(Outcome),
    /// Its place in the log went to another entry.
    NotDone,
    /// Nobody can tell any more.
    Unknown,
}

impl crate::machine::Process {
    fn propose_tick(&mut self, clock: Now) -> Option<Index> {
        if self.leads_fast_term() {
            // It says the time at which it leaves, not this one.
            self.plane.as_mut()?.log.enqueue_tick(clock);
            self.clock.last_tick = Some(clock);
            self.submit_waiting(clock).ok()?;
            let plane = self.plane.as_ref()?;
            return plane.log.is_idle().then(|| plane.registers().last_index);
        }
        let tick = self.next_tick(clock).encode();
        let payload = |buffer: &mut bytes::BytesMut| buffer.extend_from_slice(tick.as_ref());
        let (index, _) = self.replica.propose(RecordKind::Tick, payload).ok()?;
        self.clock.last_tick = Some(clock);
        Some(index)
    }

    /// What a tick says that leaves now.
    #[must_use]
    pub fn next_tick(&self, clock: Now) -> Tick {
        self.clock.time.tick(clock, self.may_tell_wall_clock())
    }

    fn may_tell_wall_clock(&self) -> bool {
        let log_says_it = self.store.inner().ahead_ms().is_some();
        self.replica.may_tell_wall_clock(log_says_it) && !self.is_older
    }

    /// Whether the log must be told what the wall clock shows, though nothing awaits it.
    fn is_wall_clock_news(&self, clock: Now) -> bool {
        if self.applied < self.term_start {
            return false;
        }
        let store = self.store.inner();
        let tells = self.may_tell_wall_clock();
        store.ahead_ms().map_or(tells, |ahead_ms| {
            let log_time_ms = store.log_time().0;
            !tells || self.clock.time.is_set_back(clock, log_time_ms, ahead_ms)
        })
    }

    /// The log's time as this leader tells it.
    #[must_use]
    pub fn leader_time_ms(&self, clock: Now) -> u64 {
        let told_ms = self.store.inner().log_time().0;
        self.clock.time.time_ms(clock).max(told_ms)
    }
}

impl World {
    /// Sends commands to a machine, as an overload.
    pub fn flood(&mut self, place: usize, commands: u16) {
        self.arrive(place, Arrival::Flood(commands));
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
    std::str::from_utf8(value).ok()?.parse().ok()
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
