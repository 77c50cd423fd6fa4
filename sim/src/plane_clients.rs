//! Clients that ask planes by datagram: the product's own client logic, over the simulated network. What
//! they ask and are told stands beside what other clients do in one history.
use crate::clients::{ClientOperation, answer_of};
use crate::datagrams::Datagram;
use crate::machine::GROUP;
use crate::plan::Settings;
use crate::plane::{CLIENTS_FROM, address, keys, place_of};
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::random::mix;
use crate::spelling::Spelling;
use crate::world::{Event, World};
use bytes::BytesMut;
use quorumwire_client::planes::{Error, Requests, Settings as ClientSettings, Ticket};
use quorumwire_fastpath::{ClientPackets, REQUEST_BYTES_MAX, Request};
use quorumwire_interfaces::Index;
use quorumwire_kv::{Command, Exptime, Key, Written};
use quorumwire_linearizability::history::{Answer, Operation};
use std::time::Duration;

/// Commands of one client that wait for their answers.
const WAITING_MAX: usize = 2;
/// These clients think for so many times as long as others: each asks for more than one thing at a time,
/// and more than once.
const SLOWER: Nanos = 2;
/// A point of time that no run comes to, in seconds.
const FAR_S: i64 = 1 << 40;
/// When they ask again.
const RETRY: Duration = Duration::from_millis(80);
/// When they give up.
const DEADLINE: Duration = Duration::from_secs(10);
/// A counter is given up for a new one after this, so that no key's history is long.
const COUNTER_LASTS: Nanos = 20 * SECOND;
/// The first number of keys that are counters.
const COUNTERS_FROM: u32 = 1 << 24;
/// One request in so many thousand is followed by a forged one.
const FORGED_PERMILLE: u64 = 30;
/// These clients' numbers in the history begin here.
const CLIENTS_NUMBERED_FROM: u16 = 100;

/// One client.
pub struct PlaneClient {
    requests: Requests,
    /// What it waits for, with its operation.
    waits: Vec<(Ticket, u32)>,
    next_ask: Nanos,
    wake_at: Nanos,
    /// The counter that only this client adds to.
    counter: u32,
    counter_since: Nanos,
    counter_stands: bool,
    counters: u32,
}

const fn since(now: Nanos) -> Duration {
    Duration::from_nanos(now)
}

impl PlaneClient {
    /// A client that knows all machines.
    #[must_use]
    pub fn new(number: u16, settings: &Settings) -> Self {
        let replicas = (0..settings.voters + settings.spares).map(|id| address(usize::from(id)));
        let asking = ClientSettings {
            replicas: replicas.collect(),
            keys: keys(settings.seed, 0).clients,
            group: GROUP,
            retry: RETRY,
            deadline: DEADLINE,
            seed: None,
        };
        let seed = mix(settings.seed ^ u64::from(number + 1) << 40);
        Self {
            requests: Requests::new(asking, seed),
            waits: Vec::new(),
            next_ask: SECOND,
            wake_at: SECOND,
            counter: 0,
            counter_since: 0,
            counter_stands: false,
            counters: 0,
        }
    }

    fn begin_counter(&mut self, number: u16, now: Nanos) {
        self.counters += 1;
        self.counter = COUNTERS_FROM + u32::from(number) * 4096 + self.counters;
        self.counter_since = now;
        self.counter_stands = false;
    }
}

impl World {
    /// Has all clients of planes begin.
    pub fn begin_plane_clients(&mut self) {
        for number in 0..self.plan.settings.plane_clients {
            self.plane_clients
                .push(PlaneClient::new(number, &self.plan.settings));
            self.queue.set(SECOND, Event::PlaneClient(number));
        }
    }

    /// A client's time has come: to ask, to ask again, or to give up.
    pub fn plane_client_wakes(&mut self, number: u16) {
        let now = self.now;
        let client = &mut self.plane_clients[usize::from(number)];
        if client.wake_at != now {
            return; // it was set anew
        }
        client.wake_at = Nanos::MAX;
        client.requests.time_passed(since(now));
        if now >= client.next_ask {
            let think = self.plan.settings.think * SLOWER;
            client.next_ask = now + self.random.between(think / 4, think * 2);
            if now < self.clients_stop_at {
                self.ask_plane(number);
            } else {
                self.plane_clients[usize::from(number)].next_ask = Nanos::MAX;
            }
        }
        self.attend_plane_client(number);
    }

    fn ask_plane(&mut self, number: u16) {
        let now = self.now;
        let place = usize::from(number);
        if self.plane_clients[place].waits.len() >= WAITING_MAX {
            return;
        }
        let (key, operation, value_bytes) = self.choose_for_plane(number);
        let id = u32::try_from(self.asked.len()).unwrap_or(u32::MAX - 1);
        let name = format!("key{key}");
        let mut command = BytesMut::new();
        encode(&name, operation, value_bytes, &mut command);
        let blind = matches!(operation, Operation::Set(_)) && self.random.permille(500);
        let client = &mut self.plane_clients[place];
        let Ok(ticket) = client.requests.submit(since(now), &command, blind) else {
            return self.counts.see("plane client waits for its window");
        };
        client.waits.push((ticket, id));
        self.counts.operations += 1;
        self.asked.push(ClientOperation {
            client: CLIENTS_NUMBERED_FROM + number,
            burst: 0,
            key,
            operation,
            spelling: Spelling::Classic,
            unique: 0,
            invoked: now,
            outcome: None,
            withdrawn: false,
            attempts: 0,
            value_bytes: 0,
            needed: Index(0),
        });
        if self.random.permille(FORGED_PERMILLE) {
            self.forge_request(number, &command);
        }
    }

    /// Which key, what, and how long the value is at least.
    fn choose_for_plane(&mut self, number: u16) -> (u32, Operation, usize) {
        let now = self.now;
        let value = self.asked.len() as u64 + 1;
        let key =
            crate::clients::key_now(now, self.random.below(u64::from(self.plan.settings.keys)));
        let long = REQUEST_BYTES_MAX as u64;
        match self.random.below(20) {
            0..=6 => (key, Operation::Set(value), 0),
            7 => (key, Operation::Add(value), 0),
            8 => (key, Operation::Delete, 0),
            9 if self.random.permille(400) => {
                let bytes = self.random.between(long - 60, long * 4);
                (
                    key,
                    Operation::Set(value),
                    usize::try_from(bytes).unwrap_or(0),
                )
            }
            _ => {
                let client = &mut self.plane_clients[usize::from(number)];
                if client.counters == 0 || now - client.counter_since > COUNTER_LASTS {
                    client.begin_counter(number, now);
                }
                let operation = if client.counter_stands {
                    Operation::Increment(1)
                } else {
                    Operation::Set(value << 32)
                };
                (client.counter, operation, 0)
            }
        }
    }

    /// Somebody without the clients' key makes a request, or an answer, of his own.
    fn forge_request(&mut self, number: u16, command: &[u8]) {
        let foreign = ClientPackets::new(&keys(!self.plan.settings.seed, 0));
        let request = Request {
            group: GROUP,
            session: self.random.next(),
            sequence: 1,
            blind: false,
            payload: command.get(..command.len().min(100)).unwrap_or_default(),
        };
        let Some(bytes) = foreign.request(&request) else {
            return;
        };
        let to = usize::try_from(self.random.below(self.machines.len() as u64)).unwrap_or(0);
        let from = CLIENTS_FROM + usize::from(number);
        for link in [(from, to), (to, from)] {
            let slot = self.datagrams.forge(link, &bytes);
            let at = self.now + self.random.below(MILLISECOND);
            self.queue.set(at, Event::Datagram(slot));
        }
        self.counts.see("request forged");
    }

    /// A datagram reaches a client.
    pub fn plane_client_hears(&mut self, number: usize, datagram: &Datagram) {
        let now = self.now;
        let Some(client) = self.plane_clients.get_mut(number) else {
            return;
        };
        let before = client.requests.counters;
        let from = address(datagram.from);
        client.requests.receive(since(now), from, &datagram.bytes);
        let after = client.requests.counters;
        if datagram.spoiled {
            let dropped = after.dropped_not_authentic > before.dropped_not_authentic;
            self.checks.require(dropped, || {
                format!("I15: plane client {number} took a spoiled answer")
            });
        }
        self.counts.see_many(
            "repeated answer to a plane client",
            after.dropped_not_awaited - before.dropped_not_awaited,
        );
        self.attend_plane_client(u16::try_from(number).unwrap_or(0));
    }

    /// Sends what is to be sent, takes what has come, and sets when the client acts next.
    fn attend_plane_client(&mut self, number: u16) {
        let place = usize::from(number);
        let client = &mut self.plane_clients[place];
        for (to, datagram) in std::mem::take(&mut client.requests.out) {
            if let Some(to) = place_of(to) {
                self.send_datagram((CLIENTS_FROM + place, to), &datagram);
            }
        }
        let client = &mut self.plane_clients[place];
        let mut waits = std::mem::take(&mut client.waits);
        let mut done = Vec::new();
        waits.retain(|(ticket, operation)| match client.requests.take(*ticket) {
            None => true,
            Some(result) => {
                done.push((*operation, result));
                false
            }
        });
        client.waits = waits;
        for (operation, result) in done {
            self.plane_client_is_told(number, operation, result);
        }
        let client = &mut self.plane_clients[place];
        let next_try = client.requests.next_wake();
        let next_try = next_try.map_or(Nanos::MAX, |at| {
            u64::try_from(at.as_nanos()).unwrap_or(Nanos::MAX)
        });
        let wake_at = next_try.min(client.next_ask).max(self.now + 1);
        if wake_at < client.wake_at {
            client.wake_at = wake_at;
            self.queue.set(wake_at, Event::PlaneClient(number));
        }
    }

    fn plane_client_is_told(&mut self, number: u16, id: u32, result: Result<Vec<u8>, Error>) {
        let now = self.now;
        let asked = &mut self.asked[id as usize];
        let of_counter = asked.key >= COUNTERS_FROM;
        match result {
            Ok(payload) => {
                let answer = if payload.is_empty() {
                    self.counts.see("plane client answered blind");
                    Some(Answer::Stored)
                } else {
                    self.counts.see("plane client answered after apply");
                    answer_of(&payload)
                };
                self.counts.answered += 1;
                asked.outcome = answer.map(|answer| (now, answer));
                if answer.is_none() {
                    let text = String::from_utf8_lossy(&payload).into_owned();
                    self.checks.require(false, || {
                        format!("I6: plane client {number} is answered {text:?}")
                    });
                }
            }
            Err(Error::Refused(_)) => {
                asked.withdrawn = true;
                self.counts.see("plane client refused");
            }
            Err(
                Error::OutcomeUnknown
                | Error::AnswerGone(_)
                | Error::TooLong(_)
                | Error::WindowFull
                | Error::UnknownTicket
                | Error::Socket(_),
            ) => self.counts.see("plane client without outcome"),
        }
        let (known, key) = (asked.outcome.is_some(), asked.key);
        let client = &mut self.plane_clients[usize::from(number)];
        if of_counter && key == client.counter {
            if known {
                client.counter_stands = true;
            } else {
                // Each addition of unknown outcome doubles what the judge has to try.
                client.begin_counter(number, now);
            }
        }
    }

    /// Clients get the keys that all planes have.
    pub fn hand_keys_to_clients(&mut self, stage: u64) {
        let clients_keys = keys(self.plan.settings.seed, stage).clients;
        for client in &mut self.plane_clients {
            client.requests.set_keys(clients_keys);
        }
    }
}

fn encode(name: &str, operation: Operation, value_bytes: usize, buffer: &mut BytesMut) {
    let key = Key::new(name.as_bytes()).expect("a short word is a key");
    let text = |value: u64| format!("{value:0value_bytes$}");
    let item = |value, exptime| Written {
        key,
        flags: 0,
        exptime,
        value,
    };
    match operation {
        // Every other one until a point of time, which the next tick moves.
        Operation::Set(value) => {
            let end = if value.is_multiple_of(2) { 0 } else { FAR_S };
            Command::Set(item(text(value).as_bytes(), Exptime(end))).encode(buffer);
        }
        Operation::Add(value) => {
            Command::Add(item(text(value).as_bytes(), Exptime(0))).encode(buffer);
        }
        Operation::Increment(delta) => Command::Increment { key, delta }.encode(buffer),
        Operation::Delete | Operation::Get | Operation::Cas { .. } => {
            Command::Delete { key }.encode(buffer);
        }
    }
}
