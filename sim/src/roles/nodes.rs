//! The hosts of a Paxos deployment: the real software and boxes, over simulated disks.
use super::plan::{Node, Settings};
use crate::queue::{MILLISECOND, Nanos};
use quorumwire_fastpath::{Outbox, PaxosEngine, PaxosOptions};
use quorumwire_interfaces::{PlaneKeyPair, PlaneKeys};
use quorumwire_paxos::{
    Acceptor, Coordinator, CoordinatorOptions, Deployment, Learner, LearnerOptions, Lives,
    Proposer, Values,
};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{PaxosRegisters, PaxosRole, PaxosSlot};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A question is repeated after this.
const RETRY: Nanos = 8 * MILLISECOND;

/// What is about to leave a host.
#[derive(Default)]
pub(super) struct Out(pub(super) Vec<(SocketAddr, Vec<u8>)>);

impl Outbox for Out {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.0.push((to, datagram.to_vec()));
    }
}

/// Where a host is.
pub(super) fn address(node: Node) -> SocketAddr {
    let (role, number) = match node {
        Node::Coordinator(number) => (1, number),
        Node::Acceptor(number) => (2, number),
        Node::Learner(number) => (3, number),
    };
    SocketAddr::from((Ipv4Addr::new(10, role, 0, number), 7000))
}

/// Who is there.
pub(super) fn node_at(address: SocketAddr) -> Option<Node> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let [_, role, _, number] = address.ip().octets();
    match role {
        1 => Some(Node::Coordinator(number)),
        2 => Some(Node::Acceptor(number)),
        3 => Some(Node::Learner(number)),
        _ => None,
    }
}

fn keys() -> PlaneKeys {
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

fn engine(deployment: &Deployment, destinations: Vec<SocketAddr>) -> PaxosEngine {
    let options = PaxosOptions {
        group: deployment.group,
        window: deployment.window,
    };
    let mut engine = PaxosEngine::new(options).expect("a window that can be");
    engine.set_keys(&keys());
    engine.set_destinations(destinations);
    engine
}

fn all(count: u8, node: impl Fn(u8) -> Node) -> Vec<SocketAddr> {
    (0..count).map(|number| address(node(number))).collect()
}

/// A coordinator that runs.
pub(super) struct CoordinatorHost {
    pub(super) engine: PaxosEngine,
    pub(super) software: Coordinator,
}

impl CoordinatorHost {
    pub(super) fn start(settings: &Settings, number: u8, now: Nanos, seed: u64) -> Self {
        let deployment = settings.deployment;
        let options = CoordinatorOptions {
            deployment,
            me: if settings.one_number { 0 } else { number },
            heartbeat: Duration::from_millis(10),
            silence: Duration::from_millis(60),
            retry: Duration::from_nanos(RETRY),
        };
        Self {
            engine: engine(&deployment, all(deployment.acceptors, Node::Acceptor)),
            software: Coordinator::new(options, Duration::from_nanos(now), seed),
        }
    }
}

/// An acceptor that runs.
pub(super) struct AcceptorHost {
    pub(super) engine: PaxosEngine,
    pub(super) software: Acceptor,
}

/// What an acceptor has on disk, and what is on its way there.
#[derive(Default)]
pub(super) struct Kept {
    durable: Vec<PaxosRecord>,
    pub(super) writing: Vec<(u64, PaxosRecord)>,
}

/// Records that lie on disk before only the last ones are kept.
const RECORDS_MAX: usize = 400;

impl Kept {
    /// What was written up to this number is durable.
    pub(super) fn written(&mut self, upto: u64) {
        let written = self.writing.extract_if(.., |(number, _)| *number <= upto);
        self.durable.extend(written.map(|(_, record)| record));
    }

    /// The host stops: of what was being written so many records have reached the disk.
    pub(super) fn stop(&mut self, reached: usize) {
        self.writing.truncate(reached);
        self.written(u64::MAX);
    }

    /// As many records as needed stay, once there are many.
    pub(super) fn compact(&mut self, host: &AcceptorHost) {
        if self.durable.len() > RECORDS_MAX && self.writing.is_empty() {
            let lives = (0..).map(|number| host.software.lives().of(number));
            let count = host.software.lives().encode().len() / 8;
            self.durable = vec![PaxosRecord::Lives(lives.take(count).collect())];
            self.durable.extend(host.engine.records());
        }
    }
}

impl AcceptorHost {
    fn off(settings: &Settings, software: Acceptor) -> Self {
        let deployment = &settings.deployment;
        let mut destinations = all(deployment.learners, Node::Learner);
        destinations.extend(all(deployment.coordinators, Node::Coordinator));
        Self {
            engine: engine(deployment, destinations),
            software,
        }
    }

    /// As the deployment begins.
    pub(super) fn begin(settings: &Settings, me: u8) -> Self {
        let lives = Lives::first(settings.deployment.acceptors);
        let registers = PaxosRegisters {
            configuration: lives.number(),
            group: settings.deployment.group,
            window: settings.deployment.window,
            role: PaxosRole::Acceptor as u8,
            me,
            held: u8::from(settings.is_durable),
            ..PaxosRegisters::default()
        };
        Self::member(settings, me, lives, &registers)
    }

    fn member(settings: &Settings, me: u8, lives: Lives, registers: &PaxosRegisters) -> Self {
        let mut software = Acceptor::member(settings.deployment, me, lives, registers.trimmed);
        if settings.is_durable {
            software = software.held();
        }
        let mut host = Self::off(settings, software);
        let is_on = host.engine.switch_on(registers);
        is_on.expect("registers with which a role may begin");
        host
    }

    /// Without its memory.
    pub(super) fn forgotten(settings: &Settings, me: u8, life: u64) -> Self {
        Self::off(settings, Acceptor::newcomer(settings.deployment, me, life))
    }

    /// With what is on its disk, through the bytes that stand there. Nothing there: as the deployment begins.
    pub(super) fn from_disk(settings: &Settings, me: u8, kept: &Kept) -> Self {
        let mut bytes = Vec::new();
        kept.durable
            .iter()
            .for_each(|record| record.encode(&mut bytes));
        let mut rest = &bytes[..];
        let mut lives = Lives::first(settings.deployment.acceptors);
        let mut registers = None;
        let mut slots: BTreeMap<u64, (PaxosSlot, Vec<u8>)> = BTreeMap::new();
        while !rest.is_empty() {
            let (record, length) = PaxosRecord::decode(rest).expect("a record");
            rest = &rest[length..];
            match record {
                PaxosRecord::Lives(stored) => {
                    lives = (0..)
                        .zip(&stored)
                        .fold(lives, |it, (acceptor, life)| it.with(acceptor, *life));
                }
                PaxosRecord::Registers(stored) => registers = Some(*stored),
                PaxosRecord::Slot(stored, slot, value) => {
                    registers = Some(*stored);
                    slots.insert(slot.instance, (*slot, value));
                }
            }
        }
        let Some(mut registers) = registers else {
            return Self::begin(settings, me);
        };
        registers.configuration = lives.number();
        let mut host = Self::member(settings, me, lives, &registers);
        for (slot, value) in slots
            .values()
            .filter(|(slot, _)| slot.instance > registers.trimmed)
        {
            host.engine.put_back(slot, value);
        }
        host
    }
}

/// A learner that runs, and the proposer beside it.
pub(super) struct LearnerHost {
    /// Off: it only checks and signs.
    pub(super) engine: PaxosEngine,
    pub(super) learner: Learner,
    pub(super) proposer: Proposer,
    /// The last instance that it gave on.
    pub(super) given: u64,
    /// Values that it has submitted and not heard of.
    pub(super) outstanding: BTreeMap<u64, Vec<u8>>,
}

/// What an application has kept.
#[derive(Clone)]
pub(super) struct Checkpoint {
    pub(super) kept: u64,
    pub(super) values: Vec<u8>,
}

impl LearnerHost {
    pub(super) fn start(settings: &Settings, me: u8, checkpoint: &Checkpoint, seed: u64) -> Self {
        let deployment = settings.deployment;
        let options = LearnerOptions {
            deployment,
            me,
            patience: Duration::from_millis(15),
            retry: Duration::from_nanos(RETRY),
            report: Duration::from_millis(20),
        };
        let values = Values::from_bytes(&checkpoint.values).expect("what was kept");
        let configuration = Lives::first(deployment.acceptors).number();
        Self {
            engine: engine(&deployment, Vec::new()),
            learner: Learner::new(options, configuration, checkpoint.kept, values, seed),
            proposer: Proposer::new(deployment, Duration::from_millis(20), seed ^ 0x77),
            given: checkpoint.kept,
            outstanding: BTreeMap::new(),
        }
    }
}
