//! The hosts of a Paxos deployment as the simulator starts them, and simulated disks.
use super::plan::{Node, Settings};
use crate::queue::{MILLISECOND, Nanos};
use quorumwire_fastpath::Outbox;
use quorumwire_interfaces::{PlaneKeyPair, PlaneKeys};
use quorumwire_paxos::{CoordinatorOptions, Learner, LearnerOptions, Lives, Proposer, Values};
use quorumwire_paxos_hosts::{
    AcceptorHost, AcceptorOptions, Addresses, CoordinatorHost, Driver, Happened, LearnerHost, Place,
};
use quorumwire_wire::PaxosRecord;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A question is repeated after this.
const RETRY: Nanos = 8 * MILLISECOND;

/// What a host wants done.
#[derive(Default)]
pub(super) struct Out {
    pub(super) sent: Vec<(SocketAddr, Vec<u8>)>,
    pub(super) keep: Vec<(u64, PaxosRecord)>,
    pub(super) happened: Vec<Happened>,
}

impl Outbox for Out {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.sent.push((to, datagram.to_vec()));
    }
}

impl Driver for Out {
    fn keep(&mut self, record: PaxosRecord, number: u64) {
        self.keep.push((number, record));
    }

    fn happened(&mut self, what: Happened) {
        self.happened.push(what);
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

/// Of the coordinators, the one that has the number of the first one where two have one number.
pub(super) const TWIN: u8 = 1;

/// Where everybody is, as all believe.
fn addresses(settings: &Settings) -> Arc<Addresses> {
    let deployment = &settings.deployment;
    let all = |count: u8, node: fn(u8) -> Node| (0..count).map(node).map(address).collect();
    let mut coordinators: Vec<_> = all(deployment.coordinators, Node::Coordinator);
    if settings.one_number && settings.is_hidden {
        coordinators[usize::from(TWIN)] = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 0), 7000));
    }
    Arc::new(Addresses {
        coordinators,
        acceptors: all(deployment.acceptors, Node::Acceptor),
        learners: all(deployment.learners, Node::Learner),
        all_acceptors: None,
    })
}

/// A box where this host is.
fn place(settings: &Settings, node: Node) -> Place {
    let deployment = &settings.deployment;
    let own = match node {
        // As one that listens at another address than the one where others know it.
        Node::Coordinator(_) if settings.hears_itself => SocketAddr::from(([0, 0, 0, 0], 0)),
        Node::Coordinator(_) | Node::Acceptor(_) | Node::Learner(_) => address(node),
    };
    let place = Place::new(deployment, addresses(settings), own, &keys());
    place.expect("a deployment")
}

/// A coordinator, as it starts.
pub(super) fn coordinator(
    settings: &Settings,
    number: u8,
    now: Nanos,
    seed: u64,
) -> CoordinatorHost {
    let is_twin = settings.one_number && number == TWIN;
    let options = CoordinatorOptions {
        deployment: settings.deployment,
        me: if is_twin { 0 } else { number },
        is_where_known: !is_twin && !settings.hears_itself,
        heartbeat: Duration::from_millis(10),
        silence: Duration::from_millis(60),
        retry: Duration::from_nanos(RETRY),
    };
    let place = place(settings, Node::Coordinator(number));
    CoordinatorHost::new(options, place, Duration::from_nanos(now), seed)
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
            self.durable = host.records().collect();
        }
    }
}

fn acceptor_options(settings: &Settings, me: u8) -> AcceptorOptions {
    AcceptorOptions {
        deployment: settings.deployment,
        me,
        is_durable: settings.is_durable,
    }
}

/// An acceptor without its memory.
pub(super) fn newcomer(settings: &Settings, me: u8, life: u64) -> AcceptorHost {
    let place = place(settings, Node::Acceptor(me));
    AcceptorHost::newcomer(acceptor_options(settings, me), place, life)
}

/// Another one of this number, at an address that stands nowhere. Its life is higher than all of that one's.
pub(super) fn twin(settings: &Settings, of: u8) -> AcceptorHost {
    let place = place(settings, Node::Acceptor(settings.deployment.acceptors));
    AcceptorHost::newcomer(acceptor_options(settings, of), place, 1 << 40)
}

/// An acceptor with what is on its disk, through the bytes that stand there. Nothing there: as the deployment
/// begins.
pub(super) fn acceptor(settings: &Settings, me: u8, kept: &Kept) -> AcceptorHost {
    let mut bytes = Vec::new();
    kept.durable
        .iter()
        .for_each(|record| record.encode(&mut bytes));
    let mut records = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (record, length) = PaxosRecord::decode(rest).expect("a record");
        rest = &rest[length..];
        records.push(record);
    }
    let place = place(settings, Node::Acceptor(me));
    AcceptorHost::restored(acceptor_options(settings, me), place, records).expect("a deployment")
}

/// A learner that runs, and what the simulator knows of its application.
pub(super) struct LearnerPlace {
    pub(super) host: LearnerHost,
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

impl LearnerPlace {
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
        let learner = Learner::new(options, configuration, checkpoint.kept, values, seed);
        let proposer = Proposer::new(deployment, Duration::from_millis(20), seed ^ 0x77);
        Self {
            host: LearnerHost::new(place(settings, Node::Learner(me)), learner, proposer),
            given: checkpoint.kept,
            outstanding: BTreeMap::new(),
        }
    }
}
