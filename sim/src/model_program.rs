//! A program that is served, in memory: it takes the turns that it was given when the world lets it, and
//! what it says depends on how clients' bytes came in batches, on the log's time and on chance as the log
//! gives it. It saves itself, and loads. Knows nothing of the world.
use crate::random::mix;
use quorumwire_interfaces::LogTime;
use quorumwire_replay::{Beginning, Checker, Program, Saved, Turn, TurnEvent, Unchecked};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Turns that it may have been given and has not taken.
const GIVEN_MAX: usize = 24;
/// Bytes of a client's message: who, and which of its messages.
pub const MESSAGE_BYTES: usize = 8;
/// The shortest answer, which all begin with: the message, and what the program makes of it.
pub const ANSWER_BYTES: usize = 16;
/// It does something by itself this often: from, to.
const ALARM_MS: (u64, u64) = (2_000, 9_000);
/// It ends a connection after so many messages of some clients.
const MESSAGES_MAX: u32 = 20;

/// Where a client with this number comes from. No other one does.
#[must_use]
pub fn address_of(client: u32) -> SocketAddr {
    let [_, a, b, c] = client.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 1000))
}

/// The client that comes from there.
fn client_at(address: SocketAddr) -> u32 {
    let IpAddr::V4(ip) = address.ip() else {
        return 0;
    };
    let [_, a, b, c] = ip.octets();
    u32::from_be_bytes([0, a, b, c])
}

/// What it holds beside connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Kept {
    /// Follows from all that it was ever given, and has said.
    pub sum: u64,
    /// Messages carried out.
    messages: u64,
    /// When it does something by itself.
    alarm: u64,
}

impl Kept {
    fn add(&mut self, number: u64) {
        self.sum = mix(self.sum.rotate_left(9) ^ number);
    }
}

impl Saved for Kept {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        for number in [self.sum, self.messages, self.alarm] {
            writer.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    }

    fn read(_: &Path, reader: &mut dyn Read) -> io::Result<Self> {
        let mut number = || {
            let mut bytes = [0; 8];
            reader.read_exact(&mut bytes)?;
            io::Result::Ok(u64::from_le_bytes(bytes))
        };
        Ok(Self {
            sum: number()?,
            messages: number()?,
            alarm: number()?,
        })
    }
}

/// A client's connection.
#[derive(Default)]
struct Connection {
    client: u32,
    /// Of a message that has not come whole.
    bytes: Vec<u8>,
    messages: u32,
}

enum Event {
    Accept(u64, u32),
    Data(u64, Vec<u8>),
    End(u64),
    Reset(u64),
}

struct Given {
    number: u64,
    log_time: LogTime,
    wall_ms: u64,
    events: Vec<Event>,
}

enum Work {
    Begins(u64),
    Turn(Given),
    Saves,
}

/// What it says to a connection.
#[derive(Debug)]
pub enum Saying {
    /// Bytes.
    Data(u64, Vec<u8>),
    /// It ends it.
    Close(u64),
}

/// What it has done, for whoever judges it.
#[derive(Debug, Eq, PartialEq)]
pub enum Deed {
    /// It has begun behind this turn with this.
    Begun(u64, Kept),
    /// It has taken a turn.
    Turn {
        /// Which.
        number: u64,
        /// What it holds behind it.
        kept: Kept,
        /// Clients that have connected.
        connected: Vec<u32>,
        /// Messages that it has carried out, by client.
        messages: Vec<(u32, u32)>,
        /// Clients that are gone.
        gone: Vec<u32>,
    },
    /// It has saved itself.
    Saved,
}

/// It.
pub struct ModelProgram {
    work: VecDeque<Work>,
    begun: Option<Kept>,
    key: u64,
    connections: BTreeMap<u64, Connection>,
    /// What it has said and nobody has taken, with its turn.
    pub said: VecDeque<(u64, Saying)>,
    /// The last turn that it has taken.
    pub done: u64,
    /// It was told to save itself.
    saves: bool,
    /// It has.
    pub saved: Option<Kept>,
    checker: Checker,
}

impl Default for ModelProgram {
    fn default() -> Self {
        Self {
            work: VecDeque::new(),
            begun: None,
            key: 0,
            connections: BTreeMap::new(),
            said: VecDeque::new(),
            done: 0,
            saves: false,
            saved: None,
            checker: Checker::new(true, Unchecked::new(&[])),
        }
    }
}

impl Program for ModelProgram {
    type Saved = Kept;

    fn has_room(&self) -> bool {
        !self.saves && self.work.len() < GIVEN_MAX
    }

    fn begin(&mut self, beginning: &Beginning<'_, Kept>) {
        self.work.clear();
        self.said.clear();
        self.connections.clear();
        (self.saves, self.saved) = (false, None);
        self.key = beginning.key.chunks(8).fold(0, |key, part| {
            mix(key ^ part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        });
        let mut kept = beginning.saved.copied().unwrap_or_default();
        if beginning.saved.is_none() {
            kept.add(beginning.log_time.0 ^ beginning.wall_ms << 20);
            kept.alarm = beginning.log_time.0 + ALARM_MS.0;
        }
        self.begun = Some(kept);
        self.checker.begin(beginning.turn);
        self.work.push_back(Work::Begins(beginning.turn));
    }

    fn turn(&mut self, turn: &Turn<'_>) {
        self.checker.given(turn);
        let events = turn.events.iter().filter_map(|event| {
            Some(match *event {
                TurnEvent::Accept {
                    connection, peer, ..
                } => Event::Accept(connection, client_at(peer)),
                TurnEvent::Data { connection, bytes } => Event::Data(connection, bytes.to_vec()),
                TurnEvent::End { connection } => Event::End(connection),
                TurnEvent::Reset { connection } => Event::Reset(connection),
                TurnEvent::Datagram { .. } => return None,
            })
        });
        self.work.push_back(Work::Turn(Given {
            number: turn.number,
            log_time: turn.log_time,
            wall_ms: turn.wall_ms,
            events: events.collect(),
        }));
    }

    fn save(&mut self, _signal: u8) {
        self.saves = true;
        self.work.push_back(Work::Saves);
    }

    fn checker(&mut self) -> &mut Checker {
        &mut self.checker
    }

    fn deadline(&self) -> Option<LogTime> {
        Some(LogTime(self.begun?.alarm))
    }
}

impl ModelProgram {
    /// Does the next piece of work, if there is one.
    pub fn work(&mut self) -> Option<Deed> {
        let mut kept = self.begun?;
        Some(match self.work.pop_front()? {
            Work::Begins(turn) => {
                self.done = turn;
                Deed::Begun(turn, kept)
            }
            Work::Saves => {
                self.saved = Some(kept);
                Deed::Saved
            }
            Work::Turn(given) => {
                let deed = self.take(&given, &mut kept);
                self.begun = Some(kept);
                self.done = given.number;
                deed
            }
        })
    }

    fn take(&mut self, given: &Given, kept: &mut Kept) -> Deed {
        let turn = given.number;
        let (mut connected, mut messages, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        // One return of its wait: how many have come at once shows in what it says.
        for number in [
            turn,
            given.log_time.0,
            given.wall_ms,
            given.events.len() as u64,
        ] {
            kept.add(number);
        }
        for event in &given.events {
            match event {
                Event::Accept(connection, client) => {
                    kept.add(*connection);
                    connected.push(*client);
                    let begun = Connection {
                        client: *client,
                        ..Connection::default()
                    };
                    self.connections.insert(*connection, begun);
                }
                Event::Data(connection, bytes) => {
                    messages.extend(self.hear(turn, *connection, bytes, kept));
                }
                Event::End(connection) => {
                    kept.add(connection ^ 1);
                    self.close(turn, *connection);
                }
                Event::Reset(connection) => {
                    kept.add(connection ^ 2);
                    if let Some(connection) = self.connections.remove(connection) {
                        gone.push(connection.client);
                    }
                }
            }
        }
        if given.log_time.0 >= kept.alarm {
            kept.add(mix(self.key ^ kept.messages));
            let (from, to) = ALARM_MS;
            kept.alarm = given.log_time.0 + from + kept.sum % (to - from);
        }
        Deed::Turn {
            number: turn,
            kept: *kept,
            connected,
            messages,
            gone,
        }
    }

    /// The connection is none of the program's any more, as far as it is concerned: it says nothing there.
    fn close(&mut self, turn: u64, connection: u64) {
        self.said.push_back((turn, Saying::Close(connection)));
    }

    fn hear(
        &mut self,
        turn: u64,
        connection: u64,
        bytes: &[u8],
        kept: &mut Kept,
    ) -> Vec<(u32, u32)> {
        let mut carried_out = Vec::new();
        let Some(of) = self.connections.get_mut(&connection) else {
            return carried_out;
        };
        of.bytes.extend_from_slice(bytes);
        kept.add(connection ^ bytes.len() as u64);
        let mut answers = Vec::new();
        while let Some((message, left)) = of.bytes.split_first_chunk::<MESSAGE_BYTES>() {
            let message = u64::from_le_bytes(*message);
            of.bytes = left.to_vec();
            of.messages += 1;
            kept.messages += 1;
            kept.add(message ^ mix(self.key ^ kept.messages)); // chance
            let number = |half: u64| u32::try_from(half & u64::from(u32::MAX)).unwrap_or(0);
            carried_out.push((number(message), number(message >> 32)));
            answers.extend_from_slice(&message.to_le_bytes());
            answers.extend_from_slice(&kept.sum.to_le_bytes());
        }
        let is_last = of.messages >= MESSAGES_MAX && of.client.is_multiple_of(4);
        if !answers.is_empty() {
            self.said
                .push_back((turn, Saying::Data(connection, answers)));
        }
        if is_last {
            self.close(turn, connection);
        }
        carried_out
    }
}
