//! What all replicas know of a served program's clients.
use crate::checker::Checker;
use crate::command::{Command, Event, Gateway};
use crate::mutants::mutant;
use crate::outputs::{Outputs, Reporter};
use crate::snapshot::{Snapshot, read_head};
use crate::sources::AllSources;
use quorumwire_interfaces::{Application, Applied, Frozen, LogTime};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Connections of all gateways together. More are not accepted: their clients wait in vain, and their
/// gateways, which allow fewer, close them.
pub const CONNECTIONS_MAX: usize = 1 << 20;
/// What the log keeps of each entry besides its command: about a record's head. Of one that only says what
/// time it is, it keeps nothing else.
const ENTRY_BYTES: u64 = 48;

/// What a program has saved of itself. Copies share it.
pub trait Saved: Clone + Send + 'static {
    /// Writes it.
    fn write(&self, writer: &mut dyn Write) -> io::Result<()>;

    /// Reads what was written, up to the end. Files are kept in `folder`.
    fn read(folder: &Path, reader: &mut dyn Read) -> io::Result<Self>;
}

/// Where turns go.
pub trait Program: Send {
    /// What it saves.
    type Saved: Saved;

    /// Whether any turn may be given now.
    fn has_room(&self) -> bool;

    /// It begins, at this time of the log, from nothing or from what it has saved. All its chance follows
    /// from `key`. Whatever ran before is gone.
    fn begin(&mut self, beginning: &Beginning<'_, Self::Saved>);

    /// The next turn.
    fn turn(&mut self, turn: &Turn<'_>);

    /// It is to save itself upon this signal, and to end, by itself and in the same way everywhere. Whoever
    /// drives it says when that is done, see [`Replay::has_saved`].
    fn save(&mut self, signal: u8);

    /// What looks at all that it says.
    fn checker(&mut self) -> &mut Checker;

    /// The log's time at which a wait of it ends; none: it waits for clients only.
    fn deadline(&self) -> Option<LogTime>;
}

/// What a program begins with.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a, S> {
    /// The log's time.
    pub log_time: LogTime,
    /// The time of day then, in milliseconds since 1970.
    pub wall_ms: u64,
    /// What all its chance follows from.
    pub key: [u8; 32],
    /// The last turn before; the next one is higher.
    pub turn: u64,
    /// From what it begins.
    pub saved: Option<&'a S>,
}

/// One turn of the program: one return of its `epoll_wait`.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Higher than the one before.
    pub number: u64,
    /// The last command of the log that was carried out, which it follows from unless from the time.
    pub command: u64,
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

/// Where the program stands between two entries of the log.
enum Phase<S> {
    /// It takes turns.
    Runs,
    /// It was told to save itself.
    Saves,
    /// It has, and is to begin anew from that.
    Saved(S),
}

/// The state machine.
pub struct Replay<P: Program> {
    /// None: there is no program here yet, and nothing is carried out.
    pub program: Option<P>,
    /// Whose program it is.
    pub reporter: Option<Reporter>,
    phase: Phase<P::Saved>,
    /// Where files are kept.
    folder: PathBuf,
    /// The turn of the last cut; 0: there was none.
    cut: u64,
    /// Bytes of the log since then, about.
    bytes_since_cut: u64,
    key: Option<[u8; 32]>,
    log_time: LogTime,
    ahead_ms: Option<i64>,
    /// The last turn.
    turn: u64,
    /// The number of the last command.
    command: u64,
    /// By replica.
    gateways: BTreeMap<u16, KnownGateway>,
    /// The greatest number of each replica's, there or gone: what is still on its way of others is not
    /// carried out, not even their first batch, whose answer may be lost.
    newest: BTreeMap<u16, u64>,
    /// By number.
    connections: BTreeMap<u64, ClientOf>,
    /// Of datagrams.
    sources: AllSources,
    outputs: Outputs,
}

impl<P: Program> Default for Replay<P> {
    fn default() -> Self {
        Self {
            program: None,
            reporter: None,
            phase: Phase::Runs,
            folder: PathBuf::new(),
            cut: 0,
            bytes_since_cut: 0,
            key: None,
            log_time: LogTime(0),
            ahead_ms: None,
            turn: 0,
            command: 0,
            gateways: BTreeMap::new(),
            newest: BTreeMap::new(),
            connections: BTreeMap::new(),
            sources: AllSources::default(),
            outputs: Outputs::default(),
        }
    }
}

impl<P: Program> Replay<P> {
    /// What replicas' programs have said.
    #[must_use]
    pub const fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Whether this replica's program has said something else than those of the majority: nothing more is
    /// carried out here, and nobody gets this state.
    #[must_use]
    pub fn is_outvoted(&self) -> bool {
        self.reporter
            .is_some_and(|reporter| self.outputs.is_outvoted(reporter))
    }

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

    /// Which client of this gateway is at the other end; none: it is another gateway's, or gone.
    #[must_use]
    pub fn client_here(&self, connection: u64, own: Gateway) -> Option<u32> {
        let client = self.client(connection)?;
        (client.gateway == own).then_some(client.client)
    }

    /// Through which gateway a datagram leaves that the program sends in this turn from this port of its own:
    /// the one through which `peer` was heard last. None: it was not, or not for long.
    #[must_use]
    pub fn gateway_of(&self, peer: SocketAddr, own_port: u16, turn: u64) -> Option<Gateway> {
        self.sources.gateway_of(&(peer, own_port), turn)
    }

    /// The gateway that this replica has, as the log knows it.
    #[must_use]
    pub fn gateway(&self, replica: u16) -> Option<Gateway> {
        let number = self.gateways.get(&replica)?.number;
        Some(Gateway { replica, number })
    }

    /// Whether the log holds this gateway to be gone.
    #[must_use]
    pub fn has_ended(&self, gateway: Gateway) -> bool {
        gateway.number <= self.newest_of(gateway.replica)
            && self.gateway(gateway.replica) != Some(gateway)
    }

    /// The greatest number of this replica's gateways that the log has known; 0: it has known none.
    #[must_use]
    pub fn newest_of(&self, replica: u16) -> u64 {
        self.newest.get(&replica).copied().unwrap_or(0)
    }

    /// All gateways that the log knows.
    pub fn gateways(&self) -> impl Iterator<Item = Gateway> {
        self.gateways.iter().map(|(&replica, it)| Gateway {
            replica,
            number: it.number,
        })
    }

    /// The last turn.
    #[must_use]
    pub const fn turn(&self) -> u64 {
        self.turn
    }

    /// All that the log has made of it, to be compared: equal on replicas that have carried out the same,
    /// however far their programs are.
    #[must_use]
    pub fn known(&self) -> Vec<u8> {
        let mut known = Vec::new();
        let head = (self.key, self.log_time, self.ahead_ms, self.turn, self.cut);
        known.extend_from_slice(format!("{head:?}{:?}{:?}", self.gateways, self.newest).as_bytes());
        known.extend_from_slice(format!("{:?}", self.connections).as_bytes());
        known.extend_from_slice(&self.outputs.encode());
        known
    }

    /// The turn of the last cut; 0: there was none.
    #[must_use]
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// Bytes of the log since the last cut: of commands and of entries that only say what time it is.
    #[must_use]
    pub const fn bytes_since_cut(&self) -> u64 {
        self.bytes_since_cut
    }

    /// Whether the program is told to save itself, and has not yet.
    #[must_use]
    pub const fn is_saving(&self) -> bool {
        matches!(self.phase, Phase::Saves)
    }

    /// The program has saved itself, and ended.
    pub fn has_saved(&mut self, saved: P::Saved) {
        self.phase = Phase::Saved(saved);
    }

    /// The program begins anew from what it has saved, if that is what it waits for.
    pub fn go_on(&mut self) {
        if let (Phase::Saved(saved), Some(program)) = (&self.phase, &mut self.program) {
            let beginning = Beginning {
                log_time: self.log_time,
                wall_ms: wall_ms(self.log_time, self.ahead_ms),
                key: key_behind(self.key.unwrap_or_default(), self.turn),
                turn: self.turn,
                saved: Some(saved),
            };
            program.begin(&beginning);
            self.phase = Phase::Runs;
        }
    }

    fn cut_off(&mut self, signal: u8) {
        let mut events = Vec::new();
        for replica in self.gateways.keys().copied().collect::<Vec<_>>() {
            self.end(replica, &mut events);
        }
        self.give(&events);
        (self.cut, self.bytes_since_cut) = (self.turn, 0);
        self.phase = Phase::Saves;
        if let Some(program) = &mut self.program {
            program.save(signal);
        }
    }

    fn begin(&mut self, key: [u8; 32]) {
        self.key = Some(key);
        let beginning = Beginning {
            log_time: self.log_time,
            wall_ms: self.wall_ms(),
            key,
            turn: self.turn,
            saved: None,
        };
        if let Some(program) = &mut self.program {
            program.begin(&beginning);
        }
    }

    fn wall_ms(&self) -> u64 {
        wall_ms(self.log_time, self.ahead_ms)
    }

    /// The turn that begins now is this one: they are counted, equally everywhere.
    fn give(&mut self, events: &[TurnEvent<'_>]) {
        self.turn += 1;
        let turn = Turn {
            number: self.turn,
            command: self.command,
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
        self.sources.end(replica);
        for connection in ended.connections.into_values() {
            self.connections.remove(&connection);
            events.push(TurnEvent::Reset { connection });
        }
    }

    fn batch(&mut self, (gateway, number): (Gateway, u64), batch: &[Event<'_>]) -> Answer {
        // The program is away until the entry of the cut is behind.
        if !self.has_begun() || !matches!(self.phase, Phase::Runs) {
            return Answer::NotBegun;
        }
        let mut events = Vec::with_capacity(batch.len());
        let known = self.gateways.get(&gateway.replica);
        if known.is_none_or(|it| it.number != gateway.number) {
            let is_over = self.has_ended(gateway) && !mutant("ended-gateway-begins-again");
            if number != 1 || is_over {
                return Answer::Ended;
            }
            self.end(gateway.replica, &mut events);
            let begun = KnownGateway {
                number: gateway.number,
                next: 1,
                connections: BTreeMap::new(),
            };
            self.gateways.insert(gateway.replica, begun);
            self.newest.insert(gateway.replica, gateway.number);
        }
        let known = self
            .gateways
            .get_mut(&gateway.replica)
            .expect("it was there, or began");
        if number < known.next && !mutant("batch-carried-out-again") {
            return Answer::Done;
        }
        if number > known.next && !mutant("batch-in-front-of-another") {
            return Answer::Expected(known.next);
        }
        known.next = number + 1;
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
            Event::Datagram { peer, own, bytes } => {
                self.sources
                    .heard((peer, own.port()), gateway, self.turn + 1);
                TurnEvent::Datagram { peer, own, bytes }
            }
        })
    }
}

impl<P: Program> Application for Replay<P> {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        self.bytes_since_cut += ENTRY_BYTES + entry.command.len() as u64;
        self.command = entry.number;
        let answer = match Command::decode(entry.command) {
            Ok(Command::Begin { key }) => {
                if !self.has_begun() {
                    self.begin(key);
                }
                Answer::Done
            }
            Ok(Command::Cut { behind, signal }) => {
                let runs = matches!(self.phase, Phase::Runs);
                if self.has_begun() && runs && behind == self.cut {
                    self.cut_off(signal);
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
            Ok(Command::Outputs {
                reporter,
                members,
                windows,
            }) => {
                self.outputs.report(reporter, members, &windows);
                Answer::Done
            }
            Ok(Command::Verdict { verdict, voters }) => {
                self.outputs.judge(verdict, &voters);
                Answer::Done
            }
            Err(_) => Answer::Malformed,
        };
        answer.encode(reply);
    }

    fn query(&self, _: &[u8], reply: &mut Vec<u8>) {
        Answer::Malformed.encode(reply);
    }

    /// Only gateways say what happens.
    fn takes_clients(&self) -> bool {
        false
    }

    fn takes_commands(&self) -> bool {
        matches!(self.phase, Phase::Runs)
            && self.program.as_ref().is_some_and(P::has_room)
            && !self.is_outvoted()
    }

    /// Only at a cut.
    fn may_freeze(&self) -> bool {
        matches!(self.phase, Phase::Saved(_)) && !self.is_outvoted()
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        let Phase::Saved(saved) = &self.phase else {
            unreachable!("it was asked whether it may");
        };
        Box::new(Snapshot {
            key: self.key.unwrap_or_default(),
            log_time: self.log_time,
            ahead_ms: self.ahead_ms,
            turn: self.turn,
            cut: self.cut,
            newest: self.newest.clone(),
            outputs: self.outputs.encode(),
            saved: saved.clone(),
        })
    }

    fn restore(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        let (head, outputs) = read_head(reader)?;
        self.outputs = outputs;
        self.newest = head.newest;
        self.key = Some(head.key);
        (self.log_time, self.ahead_ms) = (head.log_time, head.ahead_ms);
        (self.turn, self.cut, self.bytes_since_cut) = (head.turn, head.cut, 0);
        self.gateways.clear();
        self.connections.clear();
        self.sources = AllSources::default();
        self.phase = Phase::Saved(P::Saved::read(&self.folder, reader)?);
        Ok(())
    }

    fn keep_files_in(&mut self, folder: &Path) {
        folder.clone_into(&mut self.folder);
    }

    fn advance(&mut self, log_time: LogTime) {
        self.log_time = log_time;
        self.bytes_since_cut += ENTRY_BYTES;
        if self.has_begun() && matches!(self.phase, Phase::Runs) {
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

fn wall_ms(log_time: LogTime, ahead_ms: Option<i64>) -> u64 {
    log_time.0.saturating_add_signed(ahead_ms.unwrap_or(0))
}

/// What chance follows from behind a cut: otherwise the program would draw again what it drew before.
fn key_behind(mut key: [u8; 32], turn: u64) -> [u8; 32] {
    for (byte, of_turn) in key.iter_mut().zip(turn.to_le_bytes()) {
        *byte ^= of_turn;
    }
    key
}
