//! Planes with their hosts: engages them, moves what is between them, and remembers and checks what they
//! hand over. Every test sees at once if entries come out of order, twice, or committed before they came.
use crate::{Fabric, Frame, PlaneSpec};
use quorumwire_fastpath::endpoint_at;
use quorumwire_interfaces::{
    Command, EntryKind, Grant, GroupId, Index, PlaneError, PlaneEvent, PlaneKeyPair, PlaneKeys,
    PlanePeer, Registers, ReplicaId, Term,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The log that all planes of the suite serve.
pub const GROUP: GroupId = GroupId(7);
/// The fast term of the suite.
pub const TERM: Term = Term(5);
/// Where the planes begin.
pub const START: u64 = 10;
/// Most turns until nothing happens any more.
const TURNS_MAX: usize = 10_000;

/// An entry as a host got it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its place in the log.
    pub index: u64,
    /// What it is.
    pub kind: EntryKind,
    /// Client session.
    pub session: u64,
    /// Its number in the session.
    pub sequence: u64,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Who waits for an answer.
    pub requester: Option<SocketAddr>,
}

/// A request that a plane left to its host: from whom, session, number, command.
pub type Left = (SocketAddr, u64, u64, Vec<u8>);

/// What one host has got from its plane.
#[derive(Debug, Default)]
pub struct Host {
    /// All entries since the plane was made.
    pub entries: Vec<Entry>,
    /// The last index it was told to be committed.
    pub committed: u64,
    /// Slots that asked for what the ring holds no more.
    pub behind: Vec<u8>,
    /// Requests that the plane could not take.
    pub requests: Vec<Left>,
    /// Datagrams that are none of the plane's.
    pub foreign: Vec<Vec<u8>>,
}

impl Host {
    fn note(&mut self, event: &PlaneEvent<'_>) {
        match event {
            PlaneEvent::Entry(entry) => {
                let last = self.entries.last().map_or(START, |entry| entry.index);
                assert_eq!(entry.index.0, last + 1, "entries come in order, each once");
                self.entries.push(Entry {
                    index: entry.index.0,
                    kind: entry.command.kind,
                    session: entry.command.session,
                    sequence: entry.command.sequence,
                    payload: entry.command.payload.to_vec(),
                    requester: entry.requester,
                });
            }
            PlaneEvent::Committed(index) => {
                let last = self.entries.last().map_or(START, |entry| entry.index);
                assert!(index.0 <= last, "committed before the entry came");
                assert!(index.0 > self.committed, "a commit was said twice");
                self.committed = index.0;
            }
            PlaneEvent::Behind(slot) => self.behind.push(*slot),
            PlaneEvent::Request {
                from,
                session,
                sequence,
                kind,
                payload,
            } => {
                assert_eq!(*kind, EntryKind::Command, "nothing was asked in pieces");
                self.requests
                    .push((*from, *session, *sequence, payload.to_vec()));
            }
            PlaneEvent::Foreign { bytes, .. } => self.foreign.push(bytes.to_vec()),
        }
    }

    /// The payloads of all entries.
    #[must_use]
    pub fn payloads(&self) -> Vec<&[u8]> {
        self.entries
            .iter()
            .map(|entry| &entry.payload[..])
            .collect()
    }
}

/// What becomes of a packet between two planes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
    /// It arrives, and again later.
    Twice,
    /// It arrives after what was sent later.
    Late,
}

/// Planes and their hosts.
pub struct Cluster<F> {
    /// The planes.
    pub fabric: F,
    /// Their hosts, by slot.
    pub hosts: Vec<Host>,
    /// Every packet that a plane has sent to another, in the order in which it was taken out.
    pub sent: Vec<Frame>,
    /// Hosts release what they have taken at once.
    pub releases: bool,
    late: VecDeque<Frame>,
}

/// The keys of the suite: epoch 0 of both kinds.
#[must_use]
pub fn keys() -> PlaneKeys {
    let pair = |key| PlaneKeyPair {
        epoch: 0,
        key: [key; 16],
        other: None,
    };
    PlaneKeys {
        cluster: pair(0x11),
        clients: pair(0x22),
    }
}

impl<F: Fabric> Cluster<F> {
    /// Planes with keys, not engaged.
    #[must_use]
    pub fn idle(wanted: PlaneSpec) -> Self {
        let mut fabric = F::new(wanted);
        for slot in 0..wanted.replicas {
            fabric.plane(slot).set_keys(&keys());
        }
        Self {
            fabric,
            hosts: (0..wanted.replicas).map(|_| Host::default()).collect(),
            sent: Vec::new(),
            releases: true,
            late: VecDeque::new(),
        }
    }

    /// As many planes, engaged, with a ring of 64 entries; slot 0 leads.
    #[must_use]
    pub fn engaged(replicas: usize) -> Self {
        Self::engaged_with(PlaneSpec {
            replicas,
            ring_slots: 64,
            window: 64,
        })
    }

    /// Planes as wanted, engaged; slot 0 leads.
    #[must_use]
    pub fn engaged_with(wanted: PlaneSpec) -> Self {
        let mut cluster = Self::idle(wanted);
        cluster.engage_all(|_| ());
        cluster
    }

    /// Engages all, followers first, with grants that the caller may change.
    pub fn engage_all(&mut self, change: impl Fn(&mut Grant)) {
        for slot in (0..self.hosts.len()).rev() {
            let mut grant = self.grant(slot);
            change(&mut grant);
            self.fabric
                .plane(slot)
                .engage(&grant)
                .expect("a sound grant");
        }
    }

    /// The grant of a slot: a majority, not held, slot 0 leads.
    #[must_use]
    pub fn grant(&self, me: usize) -> Grant {
        let replicas = self.hosts.len();
        let byte = |number: usize| u8::try_from(number).expect("a small number");
        let peers = (0..replicas).map(|slot| PlanePeer {
            id: ReplicaId(u16::from(byte(slot))),
            endpoint: Some(endpoint_at(self.fabric.address(me, slot))),
        });
        grant(byte(me), peers.collect(), byte(replicas / 2 + 1))
    }

    /// Submits one command of the host at the leader.
    pub fn submit(&mut self, payload: &[u8]) -> Result<Index, PlaneError> {
        let command = Command {
            kind: EntryKind::Command,
            session: 0,
            sequence: 0,
            payload,
        };
        let (index, taken) = self.fabric.plane(0).submit(&[command])?;
        assert_eq!(taken, 1);
        Ok(index)
    }

    /// A plane's registers.
    pub fn registers(&mut self, slot: usize) -> Registers {
        self.fabric.plane(slot).registers()
    }

    /// Lets one plane do what there is to do, and its host take it; how many events.
    pub fn poll(&mut self, slot: usize) -> usize {
        let host = &mut self.hosts[slot];
        let plane = self.fabric.plane(slot);
        let events = plane.poll(64, &mut |event| host.note(&event));
        if self.releases
            && let Some(last) = host.entries.last()
        {
            plane.release(Index(last.index)).expect("it was taken");
        }
        events
    }

    /// Takes out what planes have sent, and remembers it.
    pub fn collect(&mut self) -> Vec<Frame> {
        let frames = self.fabric.collect();
        self.sent.extend(frames.iter().cloned());
        frames
    }

    /// Moves packets and polls all planes once; whether anything happened.
    pub fn turn(&mut self, fate: &mut dyn FnMut(&Frame) -> Fate) -> bool {
        let mut frames = self.collect();
        let late: Vec<Frame> = self.late.drain(..).collect();
        let mut busy = !frames.is_empty() || !late.is_empty();
        for frame in frames.drain(..) {
            match fate(&frame) {
                Fate::Arrives => self.fabric.deliver(&frame),
                Fate::Lost => {}
                Fate::Twice => {
                    self.fabric.deliver(&frame);
                    self.late.push_back(frame);
                }
                Fate::Late => self.late.push_back(frame),
            }
        }
        for frame in late {
            self.fabric.deliver(&frame);
        }
        for slot in 0..self.hosts.len() {
            busy |= self.poll(slot) > 0;
        }
        busy
    }

    /// Turns until nothing happens any more.
    pub fn settle_with(&mut self, fate: &mut dyn FnMut(&Frame) -> Fate) {
        let mut idle = 0;
        for _ in 0..TURNS_MAX {
            // What a plane sends without an event shows only in the next turn.
            idle = if self.turn(fate) { 0 } else { idle + 1 };
            if idle == 2 {
                return;
            }
        }
        panic!("the planes talk without end");
    }

    /// Turns until nothing happens any more; nothing is lost.
    pub fn settle(&mut self) {
        self.settle_with(&mut |_| Fate::Arrives);
    }

    /// All hosts have the same entries, and know them to be committed.
    pub fn assert_all_committed(&mut self, count: usize) {
        let last = START + count as u64;
        for slot in 0..self.hosts.len() {
            let registers = self.registers(slot);
            assert_eq!(registers.last_index, Index(last), "slot {slot}");
            assert_eq!(registers.commit_index, Index(last), "slot {slot}");
            assert_eq!(self.hosts[slot].entries.len(), count, "slot {slot}");
            assert_eq!(self.hosts[slot].committed, last, "slot {slot}");
            let same = self.hosts[slot].payloads() == self.hosts[0].payloads();
            assert!(same, "slot {slot} has other entries than the leader");
        }
    }
}

/// What begins a fast term behind [`START`], led by the first.
#[must_use]
pub fn grant(me: u8, peers: Vec<PlanePeer>, quorum: u8) -> Grant {
    Grant {
        group: GROUP,
        term: TERM,
        last_index: Index(START),
        last_term: Term(3),
        commit_index: Index(START),
        me,
        leader: 0,
        peers,
        quorum,
        held: false,
    }
}
