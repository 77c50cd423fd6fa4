//! Engines joined by a queue in memory: datagrams arrive in the order in which they were sent, unless a
//! test takes some out.
use quorumwire_fastpath::{Engine, Options, Outbox, endpoint_at};
use quorumwire_interfaces::{
    Answer, Command, EntryKind, Grant, GroupId, Index, PlaneEvent, PlaneKeyPair, PlaneKeys,
    PlanePeer, ReplicaId, Term,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

pub const GROUP: GroupId = GroupId(7);

/// What a test remembers of an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostEvent {
    Entry(u64, Vec<u8>, Option<SocketAddr>),
    Committed(u64),
    Behind(u8),
    Request(SocketAddr, u64, Vec<u8>),
    Foreign(Vec<u8>),
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct InFlight {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

struct Sending<'a> {
    from: SocketAddr,
    queue: &'a mut VecDeque<InFlight>,
}

/// Where memcached clients asked, and are answered from.
pub const MEMCACHED: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 11211);

impl Outbox for Sending<'_> {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.queue.push_back(InFlight {
            from: self.from,
            to,
            bytes: datagram.to_vec(),
        });
    }

    fn send_memcached(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.queue.push_back(InFlight {
            from: MEMCACHED,
            to,
            bytes: datagram.to_vec(),
        });
    }
}

pub struct Network {
    pub engines: Vec<Engine>,
    pub seen: Vec<Vec<HostEvent>>,
    /// What kinds of entries and requests those were.
    pub kinds: Vec<Vec<EntryKind>>,
    pub queue: VecDeque<InFlight>,
    /// What came to somebody who is no engine.
    pub elsewhere: Vec<InFlight>,
}

pub fn address(slot: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1000 + u16::try_from(slot).unwrap()))
}

pub fn keys() -> PlaneKeys {
    let pair = |byte| PlaneKeyPair {
        epoch: 0,
        key: [byte; 16],
        other: None,
    };
    PlaneKeys {
        cluster: pair(1),
        clients: pair(2),
    }
}

pub fn grant(replicas: usize, me: usize) -> Grant {
    Grant {
        group: GROUP,
        term: Term(5),
        last_index: Index(10),
        last_term: Term(3),
        commit_index: Index(10),
        me: u8::try_from(me).unwrap(),
        leader: 0,
        peers: (0..replicas)
            .map(|slot| PlanePeer {
                id: ReplicaId(u16::try_from(slot).unwrap()),
                endpoint: Some(endpoint_at(address(slot))),
            })
            .collect(),
        quorum: u8::try_from(replicas / 2 + 1).unwrap(),
        held: false,
    }
}

impl Network {
    /// Engines with keys, not engaged.
    pub fn new(replicas: usize, ring_slots: u32) -> Self {
        let options = Options {
            group: GROUP,
            ring_slots,
            window: ring_slots,
        };
        let engines = (0..replicas)
            .map(|_| {
                let mut engine = Engine::new(options).unwrap();
                engine.set_keys(&keys());
                engine
            })
            .collect();
        Self {
            engines,
            seen: vec![Vec::new(); replicas],
            kinds: vec![Vec::new(); replicas],
            queue: VecDeque::new(),
            elsewhere: Vec::new(),
        }
    }

    pub fn engaged(replicas: usize, ring_slots: u32) -> Self {
        let mut network = Self::new(replicas, ring_slots);
        for (me, engine) in network.engines.iter_mut().enumerate() {
            engine.engage(&grant(replicas, me)).unwrap();
        }
        network
    }

    /// As [`engaged`](Self::engaged), and nothing is acknowledged before its host says that it is durable.
    pub fn engaged_and_held(replicas: usize, ring_slots: u32) -> Self {
        let mut network = Self::new(replicas, ring_slots);
        for (me, engine) in network.engines.iter_mut().enumerate() {
            let held = Grant {
                held: true,
                ..grant(replicas, me)
            };
            engine.engage(&held).unwrap();
        }
        network
    }

    pub fn submit(&mut self, payload: &[u8]) -> Index {
        let command = Command {
            kind: EntryKind::Command,
            session: 0,
            sequence: 0,
            payload,
        };
        let mut sending = Sending {
            from: address(0),
            queue: &mut self.queue,
        };
        let (index, taken) = self.engines[0].submit(&[command], &mut sending).unwrap();
        assert_eq!(taken, 1);
        index
    }

    pub fn take_memcached(&mut self, slot: usize, from: SocketAddr, datagram: &[u8]) -> bool {
        let mut sending = Sending {
            from: address(slot),
            queue: &mut self.queue,
        };
        self.engines[slot].take_memcached(from, datagram, &mut sending)
    }

    pub fn heartbeat(&mut self, round: u64) {
        let mut sending = Sending {
            from: address(0),
            queue: &mut self.queue,
        };
        self.engines[0].heartbeat(round, &mut sending).unwrap();
    }

    pub fn persisted(&mut self, slot: usize, upto: u64) {
        let mut sending = Sending {
            from: address(slot),
            queue: &mut self.queue,
        };
        self.engines[slot]
            .persisted(Index(upto), &mut sending)
            .unwrap();
    }

    /// As [`persisted`](Self::persisted), also where that makes no sense.
    pub fn try_persisted(&mut self, slot: usize, upto: u64) {
        let mut sending = Sending {
            from: address(slot),
            queue: &mut self.queue,
        };
        let _ = self.engines[slot].persisted(Index(upto), &mut sending);
    }

    /// As [`heartbeat`](Self::heartbeat), also where that makes no sense.
    pub fn try_heartbeat(&mut self, round: u64) {
        let mut sending = Sending {
            from: address(0),
            queue: &mut self.queue,
        };
        let _ = self.engines[0].heartbeat(round, &mut sending);
    }

    /// Hands over what has happened at one engine.
    pub fn take(&mut self, slot: usize) {
        let seen = &mut self.seen[slot];
        self.engines[slot].take(&mut |event| seen.push(remember(&event)));
    }

    pub fn send(&mut self, from: SocketAddr, slot: usize, bytes: Vec<u8>) {
        let to = address(slot);
        self.queue.push_back(InFlight { from, to, bytes });
    }

    /// Delivers one datagram.
    pub fn deliver(&mut self, flying: InFlight) {
        let slot = (0..self.engines.len()).find(|slot| address(*slot) == flying.to);
        let Some(slot) = slot else {
            self.elsewhere.push(flying);
            return;
        };
        let mut sending = Sending {
            from: flying.to,
            queue: &mut self.queue,
        };
        let (seen, kinds) = (&mut self.seen[slot], &mut self.kinds[slot]);
        self.engines[slot].receive(flying.from, &flying.bytes, &mut sending, &mut |event| {
            kinds.extend(kind(&event));
            seen.push(remember(&event));
        });
    }

    /// What is on its way to one, which does not arrive unless it is delivered.
    pub fn take_out(&mut self, slot: usize) -> Vec<InFlight> {
        let all = self.queue.drain(..);
        let (out, rest): (Vec<_>, Vec<_>) = all.partition(|flying| flying.to == address(slot));
        self.queue = rest.into();
        out
    }

    /// Delivers until nothing is on its way, then hands over what has happened.
    pub fn settle(&mut self) {
        let mut delivered = 0;
        while let Some(flying) = self.queue.pop_front() {
            self.deliver(flying);
            delivered += 1;
            assert!(delivered < 100_000, "the engines talk without end");
        }
        let seen = self.seen.iter_mut().zip(&mut self.kinds);
        for (engine, (seen, kinds)) in self.engines.iter_mut().zip(seen) {
            engine.take(&mut |event| {
                kinds.extend(kind(&event));
                seen.push(remember(&event));
            });
        }
    }

    pub fn answer(&mut self, slot: usize, answer: &Answer<'_>) {
        let mut sending = Sending {
            from: address(slot),
            queue: &mut self.queue,
        };
        self.engines[slot].answer(answer, &mut sending);
    }

    pub fn entries(&self, slot: usize) -> Vec<u64> {
        let indexes = self.seen[slot].iter().filter_map(|seen| {
            let HostEvent::Entry(index, ..) = seen else {
                return None;
            };
            Some(*index)
        });
        indexes.collect()
    }
}

fn kind(event: &PlaneEvent<'_>) -> Option<EntryKind> {
    match event {
        PlaneEvent::Entry(entry) => Some(entry.command.kind),
        PlaneEvent::Request { kind, .. } => Some(*kind),
        PlaneEvent::Committed(_) | PlaneEvent::Behind(_) | PlaneEvent::Foreign { .. } => None,
    }
}

fn remember(event: &PlaneEvent<'_>) -> HostEvent {
    match event {
        PlaneEvent::Entry(entry) => HostEvent::Entry(
            entry.index.0,
            entry.command.payload.to_vec(),
            entry.requester,
        ),
        PlaneEvent::Committed(index) => HostEvent::Committed(index.0),
        PlaneEvent::Behind(slot) => HostEvent::Behind(*slot),
        PlaneEvent::Request {
            from,
            sequence,
            payload,
            ..
        } => HostEvent::Request(*from, *sequence, payload.to_vec()),
        PlaneEvent::Foreign { bytes, .. } => HostEvent::Foreign(bytes.to_vec()),
    }
}
