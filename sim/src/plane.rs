//! A replica's data plane in a network that is simulated: the real engine, and the group's queue before it.
//! Consensus decides when it runs; where datagrams go is in `datagrams.rs`.
use crate::machine::{GROUP, Origin};
use crate::plan::Settings;
use crate::planted::mutant;
use crate::random::mix;
use quorumwire_client::planes::lineage;
use quorumwire_fastpath::{Counters, Engine, Options, Outbox, endpoint_at};
use quorumwire_group::{PlaneOptions, Request};
use quorumwire_interfaces::{
    Answer, Command, CounterSink, DataPlane, Endpoint, Grant, Index, Limits, Lineage, PlaneError,
    PlaneEvent, PlaneKeyPair, PlaneKeys, Registers, ReplicaId, Term,
};
use quorumwire_wire::packet::{FLAG_BLIND, HEADER_BYTES, Header, Kind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes of commands that wait until the plane has room; then clients are refused.
const WAITING_BYTES_MAX: usize = 128 << 10;
/// So many machines know each other's planes.
const MACHINES_MAX: u16 = 16;
/// Requests for software that wait for their process; more are lost.
const REQUESTS_MAX: usize = 256;
/// The port at which every plane listens.
const PORT: u16 = 7402;

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

/// The plane of one process, as its group has it.
pub type Plane = quorumwire_group::Plane<Origin, SimulatedPlane>;

/// The data plane of one process: the real engine between a network that is simulated and its host.
pub struct SimulatedPlane {
    /// The common case.
    pub engine: Engine,
    /// What it has sent.
    pub outgoing: Outgoing,
    /// Slots of those who ask for what the ring no longer holds.
    behind: Vec<u8>,
    /// Clients' requests that it could not take.
    requests: Vec<Request>,
    /// Clients' questions for the lineage.
    questions: Vec<(SocketAddr, Vec<u8>)>,
    /// It had no room for a command.
    pub was_full: bool,
    /// Its keys, as those of the secret file.
    files: PlaneKeys,
    /// What replicas sign with in place of that, where they agree on keys.
    agreed: Option<PlaneKeyPair>,
    /// The cluster that clients' keys are for.
    lineage: Lineage,
    held: bool,
    /// The entry behind which it was engaged.
    pub start_index: Index,
    /// The checks have seen these.
    pub shown: Registers,
    /// As of when its process last looked at it.
    seen: Registers,
    /// It takes no datagram any more, until it is stopped.
    pub failed: bool,
    /// It will not engage.
    pub refuses: bool,
    /// Its process will look at it.
    pub news_planned: bool,
    /// The highest index it has acknowledged in the running term.
    pub acknowledged: Index,
}

impl DataPlane for SimulatedPlane {
    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        self.engine.set_keys(keys);
    }

    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        if self.refuses {
            return Err(PlaneError::Refused("a fault keeps it from engaging"));
        }
        self.engine.engage(grant)?;
        self.behind.clear(); // they are slots of an earlier term
        self.start_index = grant.last_index;
        self.acknowledged = grant.last_index;
        self.shown = Registers::default();
        Ok(())
    }

    fn disengage(&mut self) -> Registers {
        self.failed = false;
        self.engine.disengage()
    }

    fn set_peer(&mut self, slot: u8, endpoint: &Endpoint) {
        self.engine.set_peer(slot, endpoint);
    }

    fn registers(&self) -> Registers {
        self.engine.registers()
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        let taken = self.engine.submit(commands, &mut self.outgoing);
        self.was_full |= taken == Err(PlaneError::Full);
        taken
    }

    fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError> {
        self.engine.heartbeat(round, &mut self.outgoing)
    }

    /// Datagrams were taken in when they arrived, see [`Plane::receive`].
    fn poll(&mut self, _budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        self.seen = self.engine.registers();
        let mut events = 0;
        let mut counted = |event: PlaneEvent<'_>| {
            events += 1;
            sink(event);
        };
        for slot in self.behind.drain(..) {
            counted(PlaneEvent::Behind(slot));
        }
        for request in self.requests.drain(..) {
            counted(PlaneEvent::Request {
                from: request.client.from,
                kind: request.kind,
                session: request.client.session,
                sequence: request.client.sequence,
                payload: &request.payload,
            });
        }
        for (from, bytes) in self.questions.drain(..) {
            counted(PlaneEvent::Foreign {
                from,
                bytes: &bytes,
            });
        }
        self.engine.take(&mut counted);
        events
    }

    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.engine.persisted(upto, &mut self.outgoing)
    }

    fn release(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.engine.release(upto)
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        self.engine.answer(answer, &mut self.outgoing);
    }

    fn send_foreign(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.outgoing.send(to, bytes);
    }

    fn counters(&self, sink: CounterSink<'_>) {
        self.engine.counters().each_and_reasons(sink);
    }
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

/// A plane of the machine with this number, that is off. `run`: which of its processes asks.
/// `stage`: of its keys.
pub fn new(
    settings: &Settings,
    (machine, run): (usize, u32),
    held: bool,
    stage: u64,
) -> Result<Plane, PlaneError> {
    assert!(machine < usize::from(MACHINES_MAX), "machines are few");
    let mut engine = Engine::new(Options {
        group: GROUP,
        ring_slots: settings.ring_slots,
        window: settings.window,
    })?;
    engine.set_keys(&keys(settings.seed, stage));
    let inside = SimulatedPlane {
        engine,
        outgoing: Outgoing::default(),
        behind: Vec::new(),
        requests: Vec::new(),
        questions: Vec::new(),
        was_full: false,
        files: keys(settings.seed, stage),
        agreed: None,
        lineage: Lineage::default(),
        held,
        start_index: Index(0),
        shown: Registers::default(),
        seen: Registers::default(),
        failed: false,
        refuses: false,
        news_planned: false,
        acknowledged: Index(0),
    };
    let options = PlaneOptions {
        group: GROUP,
        endpoint: Some(endpoint_at(address(machine))),
        held,
        first_sequence: mix(settings.seed ^ machine as u64 ^ u64::from(run) << 16),
        waiting_bytes_max: WAITING_BYTES_MAX,
        work_of: |command| {
            let command = quorumwire_kv::Command::decode(command);
            command.map_or(0, |it| it.work_max())
        },
    };
    let mut plane = quorumwire_group::Plane::new(Box::new(inside), options);
    for other in 0..MACHINES_MAX {
        plane.set_endpoint(
            ReplicaId(other),
            Some(endpoint_at(address(usize::from(other)))),
        );
    }
    Ok(plane)
}

/// Tells clients that have asked which cluster this is; how many.
pub fn tell_lineage(plane: &mut Plane, was_listed: bool) -> u64 {
    let mut told = 0;
    for question in std::mem::take(&mut plane.brought.questions) {
        let inside = plane.data_plane();
        let answer = lineage::tell(&inside.files.clients, &question.bytes, inside.lineage);
        if let Some(answer) = answer.filter(|_| was_listed) {
            told += 1;
            plane.send_foreign(question.from, &answer);
        }
    }
    told
}

/// Whether its process should look at a plane; `all`: whatever it has heard, it should.
#[must_use]
pub fn has_news(plane: &Plane, all: bool) -> bool {
    let inside = plane.data_plane();
    let (last_index, commit_index) = inside.engine.indexes();
    last_index > plane.taken()
        || commit_index > inside.seen.commit_index
        || !inside.behind.is_empty()
        || !inside.requests.is_empty()
        || (all && inside.engine.registers() != inside.seen)
}

impl SimulatedPlane {
    /// Signs and checks with the keys of this stage.
    pub fn use_keys(&mut self, seed: u64, stage: u64) {
        self.files = keys(seed, stage);
        self.give_keys();
    }

    /// The log says which cluster it is.
    pub fn set_lineage(&mut self, lineage: Lineage) {
        self.lineage = lineage;
        self.give_keys();
    }

    fn give_keys(&mut self) {
        let clients = lineage::keys_of(&self.files.clients, self.lineage);
        self.engine.set_keys(&PlaneKeys {
            cluster: self.agreed.unwrap_or(self.files.cluster),
            clients,
        });
    }

    /// Replicas sign with this from now on.
    pub fn agree(&mut self, between_replicas: PlaneKeyPair) {
        self.agreed = Some(between_replicas);
        self.give_keys();
    }

    /// What they sign with, where they agree on keys.
    #[must_use]
    pub const fn agreed(&self) -> Option<&PlaneKeyPair> {
        self.agreed.as_ref()
    }

    /// Whether it moves the log.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.engine.is_engaged()
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
        let SimulatedPlane {
            engine,
            outgoing,
            behind,
            requests,
            questions,
            ..
        } = self;
        let mut sink = |event: PlaneEvent<'_>| match event {
            PlaneEvent::Behind(slot) => behind.push(slot),
            PlaneEvent::Request { .. } if requests.len() < REQUESTS_MAX => {
                requests.extend(Request::of(&event));
            }
            PlaneEvent::Foreign { from, bytes } if questions.len() < REQUESTS_MAX => {
                questions.push((from, bytes.to_vec()));
            }
            PlaneEvent::Request { .. }
            | PlaneEvent::Entry(_)
            | PlaneEvent::Committed(_)
            | PlaneEvent::Foreign { .. } => {}
        };
        let from = address(from);
        let before = engine.registers().last_index;
        engine.receive(from, datagram, outgoing, &mut sink);
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
}
