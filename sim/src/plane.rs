//! A replica's data plane as its process sees it: the real engine, what waits to be submitted, and what
//! it has brought. Consensus decides when it runs; where datagrams go is in `datagrams.rs`.
use crate::machine::{GROUP, Origin, Proposal};
use crate::plan::Settings;
use crate::planted::mutant;
use crate::random::mix;
use bytes::{Bytes, BytesMut};
use quorumwire_control::{Engage, WaitingCommand, append_record, next_entries};
use quorumwire_fastpath::{Counters, Engine, Options, Outbox};
use quorumwire_interfaces::{
    Answer, Command, EntryKind, Grant, Index, PlaneError, PlaneEvent, PlaneKeyPair, PlaneKeys,
    PlanePeer, Registers, ReplicaId, Term,
};
use quorumwire_wire::Tick;
use quorumwire_wire::packet::{FLAG_BLIND, HEADER_BYTES, Header, Kind};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Commands that wait until the plane has room; then clients are refused.
const WAITING_MAX: usize = 512;
/// Requests for software that wait for their process; more are lost.
const REQUESTS_MAX: usize = 256;
/// The port at which every plane listens.
const PORT: u16 = 7402;

/// A command on its way into the plane.
pub struct Submission {
    /// A command or a tick.
    pub kind: EntryKind,
    /// Its bytes.
    pub payload: Bytes,
    /// The client's session; 0: none.
    pub session: u64,
    /// Its number in the session, or any.
    pub sequence: u64,
    /// Who waits for it.
    pub origin: Origin,
}

/// A client's request that the plane itself could not take.
pub struct PlaneRequest {
    /// Who asks.
    pub from: SocketAddr,
    /// A command or a piece of one.
    pub kind: EntryKind,
    /// The client's session.
    pub session: u64,
    /// Its number in the session.
    pub sequence: u64,
    /// The command, or the piece.
    pub payload: Bytes,
}

/// What an engine has sent and the network has not taken yet.
#[derive(Default)]
pub struct Outgoing {
    /// One datagram behind the other.
    pub bytes: Vec<u8>,
    /// To which machine, and where each ends.
    pub ends: Vec<(usize, usize)>,
}

impl Outbox for Outgoing {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        if let Some(place) = place_of(to) {
            self.bytes.extend_from_slice(datagram);
            self.ends.push((place, self.bytes.len()));
        }
    }
}

/// The plane of one process.
pub struct Plane {
    engine: Engine,
    held: bool,
    /// The voters by slot, while engaged.
    slots: Vec<ReplicaId>,
    /// The entry behind which it was engaged.
    pub start_index: Index,
    /// The last entry handed over.
    taken: Index,
    persisted: Index,
    /// What has no place in the log yet.
    pub waiting: VecDeque<Submission>,
    /// Records of the entries stored, in order.
    pub records: BytesMut,
    /// Clients' requests that the plane has put into the log.
    pub asked: Vec<Proposal>,
    /// Clients' requests that it could not take.
    pub requests: Vec<PlaneRequest>,
    /// Who asks for what the ring no longer holds.
    pub behind: Vec<ReplicaId>,
    /// What it has sent.
    pub outgoing: Outgoing,
    /// Consensus was shown these.
    pub shown: Registers,
    /// As of when its process last looked at it.
    seen: Registers,
    /// It takes no datagram any more, until it is stopped.
    pub failed: bool,
    /// Its process will look at it.
    pub news_planned: bool,
    /// The highest index it has acknowledged in the running term.
    pub acknowledged: Index,
    /// It had no room for a command.
    pub was_full: bool,
}

/// The first place that is a client's and no machine's.
pub const CLIENTS_FROM: usize = 100;

/// Where a machine's plane listens, or a client.
#[must_use]
pub fn address(place: usize) -> SocketAddr {
    let last = u8::try_from(place + 1).unwrap_or(u8::MAX);
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), PORT)
}

/// The machine, or the client, with this address.
#[must_use]
pub fn place_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) => usize::from(ip.octets()[3]).checked_sub(1),
        IpAddr::V6(_) => None,
    }
}

/// The keys at a stage of their replacement: each key goes through three.
#[must_use]
pub fn keys(seed: u64, stage: u64) -> PlaneKeys {
    let key = |epoch: u64, of: u64| {
        let half = |number: u64| mix(seed ^ mix(epoch << 2 ^ of << 1 ^ number)).to_be_bytes();
        let mut key = [0; 16];
        key[..8].copy_from_slice(&half(0));
        key[8..].copy_from_slice(&half(1));
        key
    };
    let pair = |of: u64| {
        let (epoch, other) = match stage % 3 {
            0 => (stage / 3, None),
            1 => (stage / 3, Some(stage / 3 + 1)),
            _ => (stage / 3 + 1, Some(stage / 3)),
        };
        PlaneKeyPair {
            epoch,
            key: key(epoch, of),
            other: other.map(|epoch| key(epoch, of)),
        }
    };
    PlaneKeys {
        cluster: pair(0),
        clients: pair(1),
    }
}

impl Plane {
    /// A plane that is off. `stage`: of its keys.
    pub fn new(settings: &Settings, held: bool, stage: u64) -> Result<Self, PlaneError> {
        let mut engine = Engine::new(Options {
            group: GROUP,
            ring_slots: settings.ring_slots,
            window: settings.window,
        })?;
        engine.set_keys(&keys(settings.seed, stage));
        Ok(Self {
            engine,
            held,
            slots: Vec::new(),
            start_index: Index(0),
            taken: Index(0),
            persisted: Index(0),
            waiting: VecDeque::new(),
            records: BytesMut::new(),
            asked: Vec::new(),
            requests: Vec::new(),
            behind: Vec::new(),
            outgoing: Outgoing::default(),
            shown: Registers::default(),
            seen: Registers::default(),
            failed: false,
            news_planned: false,
            acknowledged: Index(0),
            was_full: false,
        })
    }

    /// Signs and checks with the keys of this stage.
    pub fn set_keys(&mut self, seed: u64, stage: u64) {
        self.engine.set_keys(&keys(seed, stage));
    }

    /// Whether the plane runs now as it was asked to.
    pub fn engage(&mut self, engage: &Engage) -> bool {
        let peer = |peer: &quorumwire_control::Peer| PlanePeer {
            id: peer.id,
            address: address(usize::from(peer.id.0)),
        };
        let grant = Grant {
            group: engage.group,
            term: engage.term,
            last_index: engage.last_index,
            last_term: engage.last_term,
            commit_index: engage.commit_index,
            me: engage.me,
            leader: engage.leader,
            peers: engage.voters.iter().map(peer).collect(),
            quorum: engage.quorum,
            held: self.held,
        };
        if self.engine.engage(&grant).is_err() {
            return false;
        }
        self.slots = engage.voters.iter().map(|peer| peer.id).collect();
        self.start_index = engage.last_index;
        self.taken = engage.last_index;
        self.persisted = engage.last_index;
        self.acknowledged = engage.last_index;
        self.shown = Registers::default();
        true
    }

    /// Stops the plane and takes everything out of its ring.
    pub fn disengage(&mut self) -> Registers {
        let registers = self.engine.disengage();
        self.take();
        self.slots.clear();
        self.failed = false;
        registers
    }

    /// Whether it moves the log.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.engine.is_engaged()
    }

    /// The registers of this moment.
    #[must_use]
    pub fn registers(&self) -> Registers {
        self.engine.registers()
    }

    /// The term it was last engaged in.
    #[must_use]
    pub fn term(&self) -> Term {
        self.engine.term()
    }

    /// What it has done.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// Whether its process should look at it; `all`: whatever it has heard, it should.
    #[must_use]
    pub fn has_news(&self, all: bool) -> bool {
        let (last_index, commit_index) = self.engine.indexes();
        last_index > self.taken
            || commit_index > self.seen.commit_index
            || !self.behind.is_empty()
            || !self.requests.is_empty()
            || (all && self.engine.registers() != self.seen)
    }

    /// Whether this very entry is in the memory of a plane that acknowledges what it has stored.
    #[must_use]
    pub fn holds(&self, index: Index, term: Term) -> bool {
        let registers = self.engine.registers();
        !self.held
            && registers.term == term
            && index > self.start_index
            && index <= registers.last_index
    }

    /// A datagram arrives from a machine.
    pub fn receive(&mut self, from: usize, datagram: &[u8]) {
        let (behind, slots, requests) = (&mut self.behind, &self.slots, &mut self.requests);
        let mut sink = |event: PlaneEvent<'_>| match event {
            PlaneEvent::Behind(slot) => behind.extend(slots.get(usize::from(slot))),
            PlaneEvent::Request {
                from,
                kind,
                session,
                sequence,
                payload,
            } if requests.len() < REQUESTS_MAX => requests.push(PlaneRequest {
                from,
                kind,
                session,
                sequence,
                payload: Bytes::copy_from_slice(payload),
            }),
            PlaneEvent::Request { .. }
            | PlaneEvent::Entry(_)
            | PlaneEvent::Committed(_)
            | PlaneEvent::Foreign { .. } => {}
        };
        let from = address(from);
        let before = self.engine.registers().last_index;
        self.engine
            .receive(from, datagram, &mut self.outgoing, &mut sink);
        if mutant("blind-before-commit") {
            self.answer_too_early(from, datagram, before);
        }
    }

    /// The planted bug: a blind write is answered when it is stored.
    fn answer_too_early(&mut self, from: SocketAddr, datagram: &[u8], before: Index) {
        let Some(head) = datagram.first_chunk::<HEADER_BYTES>() else {
            return;
        };
        let header = Header::decode(head);
        let index = self.engine.registers().last_index;
        let blind = header.kind == Kind::Request as u8 && header.flags & FLAG_BLIND != 0;
        if blind && index > before {
            self.answer(&Answer {
                to: from,
                session: header.session,
                sequence: header.sequence,
                index,
                refused: None,
                fragment: false,
                payload: &[],
            });
        }
    }

    /// Has the entries stored since the last time gather in `records`.
    pub fn take(&mut self) {
        self.seen = self.engine.registers();
        let (records, taken, asked) = (&mut self.records, &mut self.taken, &mut self.asked);
        self.engine.take(&mut |event| {
            if let PlaneEvent::Entry(entry) = event {
                assert!(
                    entry.index == taken.next(),
                    "a plane hands entries over in order"
                );
                *taken = entry.index;
                append_record(records, GROUP, &entry);
                let (session, sequence) = (entry.command.session, entry.command.sequence);
                asked.extend(entry.asked_by.map(|from| Proposal {
                    index: entry.index,
                    position: 0,
                    term: entry.term,
                    origin: Origin::Plane(from, session, sequence),
                }));
            }
        });
    }

    /// Says a round.
    pub fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError> {
        self.engine.heartbeat(round, &mut self.outgoing)
    }

    /// Entries are durable up to here.
    pub fn set_persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.persisted = self.persisted.max(upto);
        if self.held {
            self.engine.persisted(upto, &mut self.outgoing)
        } else {
            Ok(())
        }
    }

    /// What is durable and applied need not be kept.
    pub fn release(&mut self, applied: Index) -> Result<(), PlaneError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        self.engine
            .release(applied.min(self.persisted).min(self.taken))
    }

    /// Answers a client that asked a plane.
    pub fn answer(&mut self, answer: &Answer<'_>) {
        self.engine.answer(answer, &mut self.outgoing);
    }

    /// Whether another command may wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Hands over what waits, as much as there is room for; each with the index it got, and
    /// which command of that entry it is.
    pub fn submit(
        &mut self,
        tick: Tick,
        mut submitted: impl FnMut(Index, u16, &Submission),
    ) -> Result<(), PlaneError> {
        let tick = tick.encode();
        while !self.waiting.is_empty() {
            let waiting = self.waiting.iter().map(|it| WaitingCommand {
                command: it.command(tick.as_ref()),
                work: 0, // nothing is measured here
            });
            let most = self.engine.limits().payload_bytes_max;
            let mut entries = next_entries(waiting, most, 1);
            let Some(entry) = entries.pop() else {
                return Ok(());
            };
            let index = match self.engine.submit(&[entry.command()], &mut self.outgoing) {
                Ok((index, _)) => index,
                Err(PlaneError::Full) => {
                    self.was_full = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            for position in 0..entry.commands {
                if let Some(next) = self.waiting.pop_front() {
                    submitted(index, position, &next);
                }
            }
        }
        Ok(())
    }
}

impl Submission {
    /// It as a command; what a tick says.
    #[must_use]
    pub fn command<'a>(&'a self, tick: &'a [u8]) -> Command<'a> {
        Command {
            kind: self.kind,
            session: self.session,
            sequence: self.sequence,
            payload: if self.kind == EntryKind::Tick {
                tick
            } else {
                &self.payload
            },
        }
    }
}
