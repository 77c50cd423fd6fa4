//! What all replicas know of a served program's clients.
use crate::command::{Command, Event, Gateway};
use quorumwire_interfaces::{Application, Applied, Frozen, LogTime};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::SocketAddr;

/// Connections of all gateways together. More are not accepted: their clients wait in vain, and their
/// gateways, which allow fewer, close them.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Where turns go.
pub trait Program: Send {
    /// Whether any turn may be given now.
    fn has_room(&self) -> bool;

    /// It begins, at this time of the log and with all its chance following from `key`.
    fn begin(&mut self, log_time: LogTime, wall_ms: u64, key: &[u8; 32]);

    /// The next turn.
    fn turn(&mut self, turn: &Turn<'_>);

    /// The log's time at which a wait of it ends; none: it waits for clients only.
    fn deadline(&self) -> Option<LogTime>;
}

/// One turn of the program: one return of its `epoll_wait`.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Higher than the one before.
    pub number: u64,
    /// The log's time.
    pub log_time: LogTime,
    /// The time of day then, in milliseconds since 1970.
    pub wall_ms: u64,
    /// What clients have done, in order.
    pub events: &'a [TurnEvent<'a>],
}

/// What a client has done; connections have numbers that all replicas know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)] // as in `Event`
pub enum TurnEvent<'a> {
    Accept {
        connection: u64,
        peer: SocketAddr,
        own: SocketAddr,
    },
    Data {
        connection: u64,
        bytes: &'a [u8],
    },
    End {
        connection: u64,
    },
    Reset {
        connection: u64,
    },
    Datagram {
        peer: SocketAddr,
        own: SocketAddr,
        bytes: &'a [u8],
    },
}

/// What became of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is carried out, or was before.
    Done,
    /// The program has not begun: that comes first.
    NotBegun,
    /// An earlier batch is missing: the one with this number comes next.
    Expected(u64),
    /// The log holds this gateway to be gone, and its clients with it.
    Ended,
    /// It is no command of this version.
    Malformed,
}

impl Answer {
    const DONE: u8 = 0;
    const NOT_BEGUN: u8 = 1;
    const EXPECTED: u8 = 2;
    const ENDED: u8 = 3;
    const MALFORMED: u8 = 4;

    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::Done => out.push(Self::DONE),
            Self::NotBegun => out.push(Self::NOT_BEGUN),
            Self::Expected(number) => {
                out.push(Self::EXPECTED);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Ended => out.push(Self::ENDED),
            Self::Malformed => out.push(Self::MALFORMED),
        }
    }

    /// What an answer says; none: it is of another version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, left) = bytes.split_first()?;
        Some(match (*kind, left.len()) {
            (Self::DONE, 0) => Self::Done,
            (Self::NOT_BEGUN, 0) => Self::NotBegun,
            (Self::EXPECTED, 8) => Self::Expected(u64::from_le_bytes(*left.first_chunk()?)),
            (Self::ENDED, 0) => Self::Ended,
            (Self::MALFORMED, 0) => Self::Malformed,
            _ => return None,
        })
    }
}

/// A gateway, as the log knows it.
#[derive(Debug, Eq, PartialEq)]
struct KnownGateway {
    number: u64,
    /// The batch that comes next.
    next: u64,
    /// Its clients' connections, by its own numbers.
    connections: BTreeMap<u32, u64>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientOf {
    /// Whose client.
    pub gateway: Gateway,
    /// Its number there.
    pub client: u32,
}

/// The state machine.
pub struct Replay<P> {
    /// None: there is no program here yet, and nothing is carried out.
    pub program: Option<P>,
    key: Option<[u8; 32]>,
    log_time: LogTime,
    ahead_ms: Option<i64>,
    /// The last turn.
    turn: u64,
    /// By replica.
    gateways: BTreeMap<u16, KnownGateway>,
    /// By number.
    connections: BTreeMap<u64, ClientOf>,
}

impl<P> Default for Replay<P> {
    fn default() -> Self {
        Self {
            program: None,
            key: None,
            log_time: LogTime(0),
            ahead_ms: None,
            turn: 0,
            gateways: BTreeMap::new(),
            connections: BTreeMap::new(),
        }
    }
}

impl<P: Program> Replay<P> {
    /// Whether the log has begun a program.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.key.is_some()
    }

    /// Who is at the other end of this connection; nobody, once the log holds it to be gone.
    #[must_use]
    pub fn client(&self, connection: u64) -> Option<ClientOf> {
        self.connections.get(&connection).copied()
    }

    /// The gateway that this replica has, as the log knows it.
    #[must_use]
    pub fn gateway(&self, replica: u16) -> Option<Gateway> {
        let number = self.gateways.get(&replica)?.number;
        Some(Gateway { replica, number })
    }

    /// All gateways that the log knows.
    pub fn gateways(&self) -> impl Iterator<Item = Gateway> {
        self.gateways.iter().map(|(&replica, it)| Gateway {
            replica,
            number: it.number,
        })
    }

    fn wall_ms(&self) -> u64 {
        self.log_time
            .0
            .saturating_add_signed(self.ahead_ms.unwrap_or(0))
    }

    /// The turn that begins now is this one: they are counted, equally everywhere.
    fn give(&mut self, events: &[TurnEvent<'_>]) {
        self.turn += 1;
        let turn = Turn {
            number: self.turn,
            log_time: self.log_time,
            wall_ms: self.wall_ms(),
            events,
        };
        if let Some(program) = &mut self.program {
            program.turn(&turn);
        }
    }

    /// What is left of a gateway ends.
    fn end(&mut self, replica: u16, events: &mut Vec<TurnEvent<'_>>) {
        let Some(ended) = self.gateways.remove(&replica) else {
            return;
        };
        for connection in ended.connections.into_values() {
            self.connections.remove(&connection);
            events.push(TurnEvent::Reset { connection });
        }
    }

    fn batch(&mut self, (gateway, number): (Gateway, u64), batch: &[Event<'_>]) -> Answer {
        if !self.has_begun() {
            return Answer::NotBegun;
        }
        let mut events = Vec::with_capacity(batch.len());
        let known = self.gateways.get(&gateway.replica);
        if known.is_none_or(|it| it.number != gateway.number) {
            if number != 1 {
                return Answer::Ended;
            }
            self.end(gateway.replica, &mut events);
            let begun = KnownGateway {
                number: gateway.number,
                next: 1,
                connections: BTreeMap::new(),
            };
            self.gateways.insert(gateway.replica, begun);
        }
        let known = self
            .gateways
            .get_mut(&gateway.replica)
            .expect("it was there, or began");
        if number < known.next {
            return Answer::Done;
        }
        if number > known.next {
            return Answer::Expected(known.next);
        }
        known.next += 1;
        for (place, event) in batch.iter().enumerate() {
            events.extend(self.event((gateway, place), event));
        }
        self.give(&events);
        Answer::Done
    }

    /// What it is for the program; nothing, of a client that is none any more.
    fn event<'a>(
        &mut self,
        (gateway, place): (Gateway, usize),
        event: &Event<'a>,
    ) -> Option<TurnEvent<'a>> {
        let known = self.gateways.get_mut(&gateway.replica)?;
        Some(match *event {
            Event::Accept { client, peer, own } => {
                if known.connections.contains_key(&client)
                    || self.connections.len() >= CONNECTIONS_MAX
                {
                    return None;
                }
                // The turn is a place in the log, and the place one in its command (APUS, section 4.3).
                let connection = ((self.turn + 1) << 16) | place as u64;
                known.connections.insert(client, connection);
                self.connections
                    .insert(connection, ClientOf { gateway, client });
                TurnEvent::Accept {
                    connection,
                    peer,
                    own,
                }
            }
            Event::Data { client, bytes } => TurnEvent::Data {
                connection: *known.connections.get(&client)?,
                bytes,
            },
            Event::End { client } => TurnEvent::End {
                connection: *known.connections.get(&client)?,
            },
            Event::Reset { client } => {
                let connection = known.connections.remove(&client)?;
                self.connections.remove(&connection);
                TurnEvent::Reset { connection }
            }
            Event::Datagram { peer, own, bytes } => TurnEvent::Datagram { peer, own, bytes },
        })
    }
}

impl<P: Program> Application for Replay<P> {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        let answer = match Command::decode(entry.command) {
            Ok(Command::Begin { key }) => {
                if !self.has_begun() {
                    self.key = Some(key);
                    let (log_time, wall_ms) = (self.log_time, self.wall_ms());
                    if let Some(program) = &mut self.program {
                        program.begin(log_time, wall_ms, &key);
                    }
                }
                Answer::Done
            }
            Ok(Command::Batch {
                gateway,
                number,
                events,
            }) => self.batch((gateway, number), &events),
            Ok(Command::GatewayEnds(gateway)) => {
                if self.gateway(gateway.replica) == Some(gateway) {
                    let mut events = Vec::new();
                    self.end(gateway.replica, &mut events);
                    self.give(&events);
                }
                Answer::Done
            }
            Err(_) => Answer::Malformed,
        };
        answer.encode(reply);
    }

    fn query(&self, _: &[u8], reply: &mut Vec<u8>) {
        Answer::Malformed.encode(reply);
    }

    fn takes_commands(&self) -> bool {
        self.program.as_ref().is_some_and(P::has_room)
    }

    fn may_freeze(&self) -> bool {
        false
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        Box::new(Nothing)
    }

    fn restore(&mut self, _: &mut dyn Read) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a served program has no snapshots yet",
        ))
    }

    fn advance(&mut self, log_time: LogTime) {
        self.log_time = log_time;
        if self.has_begun() {
            self.give(&[]);
        }
    }

    fn log_time(&self) -> LogTime {
        self.log_time
    }

    fn set_ahead(&mut self, ahead_ms: Option<i64>) {
        self.ahead_ms = ahead_ms;
    }

    fn ahead_ms(&self) -> Option<i64> {
        self.ahead_ms
    }

    fn reads_time_of_day(&self) -> bool {
        true
    }

    fn next_deadline(&self) -> Option<LogTime> {
        self.program.as_ref()?.deadline()
    }
}

struct Nothing;

impl Frozen for Nothing {
    fn write(&self, _: &mut dyn io::Write) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
