//! Replicas with simulated disks, clocks and a network of single messages. Who moves when is decided by the
//! scenario.
use crate::checks::Checks;
use crate::plane::{Frame, Plane};
use crate::show;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorumwire_control::{
    Config, Entry, HardState, Input, Message, Now, Output, Peer, PersistedState, Promise, Replica,
    SnapshotMeta, Ticket,
};
use quorumwire_interfaces::{GroupId, Incarnation, Index, Lineage, LogTime, ReplicaId, Term};
use quorumwire_wire::Membership;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub const GROUP: GroupId = GroupId(7);
pub const ELECTION_TIMEOUT: Duration = Duration::from_millis(100);
pub const HEARTBEAT: Duration = Duration::from_millis(20);

/// Entries kept on disk up to a snapshot's last one.
const DISK_TAIL_ENTRIES: u64 = 3;

/// Most inputs one event may lead to before the world calls it an endless loop.
const REACTIONS_MAX: usize = 10_000;

pub struct World {
    /// True time, which no replica sees.
    pub time: Duration,
    pub nodes: BTreeMap<u16, Node>,
    pub network: Vec<Envelope>,
    /// Directed links on which everything is lost.
    pub cut: BTreeSet<(u16, u16)>,
    pub checks: Checks,
    /// Whether to write down what happens.
    pub loud: bool,
    pub trace: Vec<String>,
    pub snapshot_bytes: usize,
    /// The lease of replicas started from now on, if not their configuration's.
    pub lease: Option<Duration>,
    /// By how much they believe two clocks to differ, likewise.
    pub drift_ppm: Option<u32>,
    /// Whether replicas that start may serve reads by a lease.
    pub lease_reads: bool,
    /// Who runs code from before lineages.
    pub older: BTreeSet<u16>,
    /// Whether replicas started from now on have data planes, and those hold acknowledgements.
    pub planes: Option<bool>,
    /// Directed links on which the planes' packets are lost.
    pub plane_cut: BTreeSet<(u16, u16)>,
}

pub struct Node {
    pub peer: Peer,
    pub config: Config,
    pub replica: Option<Replica>,
    pub disk: Disk,
    /// What the disk has not done yet.
    pub jobs: VecDeque<Job>,
    /// The disk does its work only when told to.
    pub slow_disk: bool,
    /// No process has run in its present life.
    pub new_life: bool,
    /// By how much its clock is ahead of true time.
    pub clock_offset: Duration,
    pub snapshot_damaged: bool,
    pub plane: Option<Plane>,
    /// The host looks at its plane before it does anything else. If not, it is busy elsewhere.
    pub looks: bool,
    /// Stopping the plane takes until told.
    pub slow_fence: bool,
    pub fence_due: bool,
    /// Its process stands still, while its plane goes on; what would have come to it until then.
    hangs: Option<Vec<Input>>,
    receiving: (Index, Vec<u8>),
}

#[derive(Clone, Default)]
pub struct Disk {
    pub hard_state: HardState,
    pub entries: Vec<Entry>,
    pub snapshot: Option<(SnapshotMeta, Bytes)>,
}

pub enum Job {
    Persist {
        ticket: Ticket,
        hard_state: Option<HardState>,
        entries: Vec<Entry>,
    },
    StoreChunk {
        last_index: Index,
        offset: u64,
        bytes: Bytes,
    },
    Install {
        last_index: Index,
    },
}

pub struct Envelope {
    pub from: Peer,
    pub to: Peer,
    pub content: Content,
    pub held: bool,
}

#[derive(Clone)]
pub enum Content {
    Message(Message),
    Frame(Frame),
}

impl Disk {
    pub fn last_index(&self) -> Index {
        let snapshot = self.snapshot.as_ref().map_or(Index(0), |s| s.0.last_index);
        let log = self.entries.last().map_or(Index(0), |entry| entry.index);
        log.max(snapshot)
    }

    /// Whether everything up to this entry, and this very entry, would survive a crash.
    pub fn holds(&self, index: Index, term: Term) -> bool {
        let snapshot = self.snapshot.as_ref().map_or(Index(0), |s| s.0.last_index);
        index <= snapshot
            || self
                .entries
                .iter()
                .any(|entry| entry.index == index && entry.term == term)
    }

    fn write(&mut self, entries: Vec<Entry>) {
        if let Some(first) = entries.first() {
            self.entries.retain(|entry| entry.index < first.index);
        }
        self.entries.extend(entries);
    }
}

impl Node {
    /// Whether it has this entry as firmly as an acknowledgement says.
    pub fn holds(&self, index: Index, term: Term) -> bool {
        let plane = self.plane.as_ref();
        self.disk.holds(index, term) || plane.is_some_and(|plane| plane.holds(index, term))
    }

    /// Whether its host looks at the plane by itself.
    pub fn looks_now(&self) -> bool {
        self.looks && self.hangs.is_none()
    }

    pub fn local(&self, time: Duration) -> Now {
        Now(time + self.clock_offset)
    }

    /// The true time at which the replica is woken: just after it wants to be.
    pub fn wake_time(&self) -> Option<Duration> {
        if self.hangs.is_some() {
            return None;
        }
        let wake = self.replica.as_ref()?.next_wake();
        Some(wake.0.saturating_sub(self.clock_offset) + Duration::from_nanos(1))
    }
}

/// Of the groups that tests put in place.
pub const LINEAGE: Lineage = Lineage(0x11ea);

pub fn config(id: u16, incarnation: u64, initial: &[u16]) -> Config {
    Config {
        group: GROUP,
        me: Peer {
            id: ReplicaId(id),
            incarnation: Incarnation(incarnation),
        },
        peer_address: format!("host{id}:7400"),
        initial_members: initial.iter().copied().map(ReplicaId).collect(),
        lineage: Lineage::default(),
        // Of a cluster that begins here; those that a script puts in place have one.
        new_lineage: Lineage(u128::from(id) * 1000 + u128::from(incarnation)),
        seed: u64::from(id) * 1000 + incarnation,
        election_timeout: ELECTION_TIMEOUT,
        lease: ELECTION_TIMEOUT,
        heartbeat_interval: HEARTBEAT,
        clock_drift_ppm: 100_000,
        lease_reads: true,
        uncommitted_bytes_max: 1 << 20,
        appends_in_flight_max: 4,
        append_bytes_in_flight_max: 1 << 20,
        snapshot_chunk_bytes_max: 1 << 20,
        log_tail_bytes: 100,
        // A member that is only a little behind needs a snapshot soon.
        log_kept_bytes_max: 0,
        waiting_requests_max: 16,
        plane: false,
        engage_interval: 2 * HEARTBEAT,
        engage_interval_max: 32 * HEARTBEAT,
        engage_window: 8,
    }
}

impl World {
    pub fn new() -> Self {
        Self {
            time: Duration::from_secs(1),
            nodes: BTreeMap::new(),
            network: Vec::new(),
            cut: BTreeSet::new(),
            checks: Checks::default(),
            loud: true,
            trace: Vec::new(),
            snapshot_bytes: 100,
            lease: None,
            drift_ppm: None,
            lease_reads: true,
            older: BTreeSet::new(),
            planes: None,
            plane_cut: BTreeSet::new(),
        }
    }

    pub fn say(&mut self, line: impl Into<String>) {
        if self.loud {
            self.trace.push(line.into());
        }
    }

    /// Starts a replica from its disk, and connects it with all that run.
    pub fn start(&mut self, mut config: Config, disk: Disk) {
        let id = config.me.id.0;
        config.plane = self.planes.is_some();
        config.lease = self.lease.unwrap_or(config.lease);
        config.clock_drift_ppm = self.drift_ppm.unwrap_or(config.clock_drift_ppm);
        config.lease_reads &= self.lease_reads;
        let new_life = disk.last_index() == Index(0);
        let node = Node {
            peer: config.me,
            config,
            replica: None,
            disk,
            jobs: VecDeque::new(),
            slow_disk: false,
            new_life,
            clock_offset: Duration::ZERO,
            snapshot_damaged: false,
            plane: self.planes.map(Plane::new),
            looks: true,
            slow_fence: false,
            fence_due: false,
            hangs: None,
            receiving: (Index(0), Vec::new()),
        };
        assert!(!self.nodes.contains_key(&id), "replica {id} exists");
        self.nodes.insert(id, node);
        self.boot(id);
    }

    /// Starts a replica that is down, from its disk.
    pub fn boot(&mut self, id: u16) {
        let now = self.now(id);
        let node = self.nodes.get_mut(&id).expect("known replica");
        let stored = PersistedState {
            hard_state: node.disk.hard_state,
            snapshot: node.disk.snapshot.as_ref().map(|s| s.0.clone()),
            entries: node.disk.entries.clone(),
            new_life: std::mem::take(&mut node.new_life),
        };
        self.checks.starts(node.peer, &node.disk);
        let replica = Replica::new(node.config.clone(), now, stored).expect("a sound disk");
        node.replica = Some(replica);
        node.jobs.clear();
        let peers: Vec<u16> = self.nodes.keys().copied().filter(|p| *p != id).collect();
        for other in peers {
            self.connect(id, other);
        }
    }

    /// Tells both that they are connected, if both run and nothing is cut.
    pub fn connect(&mut self, a: u16, b: u16) {
        if self.cut.contains(&(a, b)) || self.cut.contains(&(b, a)) {
            return;
        }
        if self.nodes[&a].replica.is_none() || self.nodes[&b].replica.is_none() {
            return;
        }
        let (peer_a, peer_b) = (self.nodes[&a].peer, self.nodes[&b].peer);
        let promise = |id: u16| Promise {
            keeps_lineage: !self.older.contains(&id),
            keeps_wall_clock: !self.older.contains(&id),
            lineage: self.nodes[&id].replica.as_ref().expect("it runs").lineage(),
            ..self.nodes[&id].config.promise()
        };
        let (promise_a, promise_b) = (promise(a), promise(b));
        self.input(a, Input::PeerUp(peer_b, promise_b));
        self.input(b, Input::PeerUp(peer_a, promise_a));
        for (id, other) in [(a, peer_b), (b, peer_a)] {
            if self.nodes[&other.id.0].plane.is_some() {
                let has_plane = true;
                let id_of_other = other.id;
                self.input(
                    id,
                    Input::PlanePeer {
                        id: id_of_other,
                        has_plane,
                    },
                );
            }
        }
    }

    /// The connection between two breaks; what is on its way arrives all the same.
    pub fn disconnect(&mut self, a: u16, b: u16) {
        let (peer_a, peer_b) = (self.nodes[&a].peer, self.nodes[&b].peer);
        self.input(a, Input::PeerDown(peer_b));
        self.input(b, Input::PeerDown(peer_a));
    }

    /// Stops a replica; what its disk has not done yet is lost.
    pub fn crash(&mut self, id: u16) {
        let node = self.nodes.get_mut(&id).expect("known replica");
        node.replica = None;
        node.jobs.clear();
        node.fence_due = false;
        node.hangs = None;
        if let Some(plane) = &mut node.plane {
            plane.disengage();
        }
        let peer = node.peer;
        let others: Vec<u16> = self.nodes.keys().copied().filter(|o| *o != id).collect();
        for other in others {
            self.input(other, Input::PeerDown(peer));
        }
    }

    /// Loses a stopped replica's memory: it will start empty, in a new life.
    pub fn wipe(&mut self, id: u16) {
        let node = self.nodes.get_mut(&id).expect("known replica");
        assert!(node.replica.is_none(), "only a stopped replica is wiped");
        self.checks.wiped(node.peer);
        node.disk = Disk::default();
        node.new_life = true;
        node.snapshot_damaged = false;
        node.plane = node.plane.as_ref().map(|plane| Plane::new(plane.held));
        node.config.me.incarnation.0 += 1;
        node.peer = node.config.me;
    }

    pub fn now(&self, id: u16) -> Now {
        self.nodes[&id].local(self.time)
    }

    /// A replica's process stands still. Its plane goes on.
    pub fn hang(&mut self, id: u16) {
        self.node(id).hangs = Some(Vec::new());
    }

    /// It goes on, with what has come to it meanwhile.
    pub fn go_on(&mut self, id: u16) {
        for input in self.node(id).hangs.take().unwrap_or_default() {
            self.input(id, input);
        }
    }

    /// Hands an input to a replica, if it runs, and carries out all that follows at once.
    pub fn input(&mut self, id: u16, input: Input) {
        if let Some(missed) = &mut self.node(id).hangs {
            missed.push(input);
            return;
        }
        let mut inputs = VecDeque::new();
        if self.nodes[&id].looks {
            self.look(id, &mut inputs);
        }
        inputs.push_back(input);
        let mut reactions = 0;
        while let Some(input) = inputs.pop_front() {
            reactions += 1;
            assert!(reactions < REACTIONS_MAX, "replica {id} reacts without end");
            let now = self.now(id);
            let node = self.nodes.get_mut(&id).expect("known replica");
            let Some(replica) = &mut node.replica else {
                return;
            };
            let mut outputs = Vec::new();
            replica.step(now, input, &mut outputs);
            replica.flush(now, &mut outputs);
            self.carry_out(id, outputs, &mut inputs);
            if !self.nodes[&id].slow_disk {
                while let Some(done) = self.do_job(id) {
                    inputs.push_back(done);
                }
            }
        }
    }

    /// Lets the leader take a command; tells whether it did.
    pub fn propose(&mut self, id: u16, payload: &[u8]) -> Result<Index, String> {
        let node = self.nodes.get_mut(&id).expect("known replica");
        let Some(replica) = &mut node.replica else {
            return Err("down".into());
        };
        let kind = quorumwire_wire::RecordKind::Command;
        let taken = replica.propose(kind, |block| block.extend_from_slice(payload));
        match taken {
            Ok((index, _)) => Ok(index),
            Err(refusal) => Err(format!("{refusal}")),
        }
    }

    /// Flushes a replica, as its node does at the end of a turn.
    pub fn flush(&mut self, id: u16) {
        let now = self.now(id);
        let node = self.nodes.get_mut(&id).expect("known replica");
        let Some(replica) = &mut node.replica else {
            return;
        };
        let mut outputs = Vec::new();
        replica.flush(now, &mut outputs);
        let mut inputs = VecDeque::new();
        self.carry_out(id, outputs, &mut inputs);
        if !self.nodes[&id].slow_disk {
            while let Some(done) = self.do_job(id) {
                inputs.push_back(done);
            }
        }
        for input in inputs {
            self.input(id, input);
        }
    }

    fn carry_out(&mut self, id: u16, outputs: Vec<Output>, inputs: &mut VecDeque<Input>) {
        let node = &self.nodes[&id];
        if let Some(replica) = &node.replica {
            self.checks.after_step(node, replica, &outputs, &self.nodes);
        }
        for output in outputs {
            if self.loud {
                self.trace
                    .push(format!("  {id}: {}", show::output(&output)));
            }
            self.carry_out_one(id, output, inputs);
        }
    }

    fn carry_out_one(&mut self, id: u16, output: Output, inputs: &mut VecDeque<Input>) {
        let node = self.nodes.get_mut(&id).expect("known replica");
        match output {
            Output::Persist {
                ticket,
                hard_state,
                entries,
            } => node.jobs.push_back(Job::Persist {
                ticket,
                hard_state,
                entries,
            }),
            Output::Send { to, message } => {
                if !self.cut.contains(&(id, to.id.0)) {
                    self.network.push(Envelope {
                        from: node.peer,
                        to,
                        content: Content::Message(message),
                        held: false,
                    });
                }
            }
            Output::Committed(index) => inputs.push_back(Input::Applied(index)),
            Output::ReadSnapshot {
                to,
                last_index,
                offset,
                bytes_max,
            } => {
                let found =
                    node.disk.snapshot.as_ref().filter(|(meta, _)| {
                        meta.last_index == last_index && !node.snapshot_damaged
                    });
                let chunk = found.map(|(_, bytes)| {
                    let start = usize::try_from(offset).expect("fits").min(bytes.len());
                    let end = (start + bytes_max).min(bytes.len());
                    (bytes.slice(start..end), bytes.len() as u64)
                });
                inputs.push_back(Input::SnapshotRead {
                    to,
                    last_index,
                    offset,
                    chunk,
                });
            }
            Output::StoreSnapshotChunk {
                last_index,
                offset,
                bytes,
            } => node.jobs.push_back(Job::StoreChunk {
                last_index,
                offset,
                bytes,
            }),
            Output::InstallSnapshot { last_index, .. } => {
                node.jobs.push_back(Job::Install { last_index });
            }
            Output::TakeSnapshot => {
                if let Some(meta) = self.take_snapshot(id) {
                    inputs.push_back(Input::SnapshotTaken(meta));
                }
            }
            Output::Read(..)
            | Output::Done(_)
            | Output::Refused(..)
            | Output::RoleChanged(_)
            | Output::Truncated(_)
            | Output::OtherLineage { .. }
            | Output::MembershipChanged(_) => {}
            Output::Engage(grant) => {
                let term = grant.term;
                let plane = node.plane.as_mut().expect("a replica with a plane");
                let engaged = plane.engage(grant);
                inputs.push_back(Input::Engaged { term, engaged });
            }
            Output::Disengage(_) if node.slow_fence => node.fence_due = true,
            Output::Disengage(_) => self.stop_plane(id, inputs),
            Output::PlaneHeartbeat { round } => {
                let plane = node.plane.as_mut().expect("a replica with a plane");
                let sent = plane.heartbeat(round);
                self.transmit(id, sent);
            }
            Output::PlanePersisted(index) => {
                let plane = node.plane.as_mut().expect("a replica with a plane");
                let sent = plane.persisted(index);
                self.transmit(id, sent);
            }
        }
    }

    pub fn node(&mut self, id: u16) -> &mut Node {
        self.nodes.get_mut(&id).expect("known replica")
    }

    /// The disk does its oldest piece of work.
    pub fn do_job(&mut self, id: u16) -> Option<Input> {
        let node = self.nodes.get_mut(&id).expect("known replica");
        let job = node.jobs.pop_front()?;
        Some(match job {
            Job::Persist {
                ticket,
                hard_state,
                entries,
            } => {
                if let Some(hard_state) = hard_state {
                    node.disk.hard_state = hard_state;
                }
                node.disk.write(entries);
                Input::Persisted(ticket)
            }
            Job::StoreChunk {
                last_index,
                offset,
                bytes,
            } => {
                if offset == 0 {
                    node.receiving = (last_index, Vec::new());
                }
                let fits =
                    node.receiving.0 == last_index && node.receiving.1.len() as u64 == offset;
                assert!(fits, "a chunk in the wrong place");
                node.receiving.1.extend_from_slice(&bytes);
                Input::SnapshotChunkStored {
                    last_index,
                    next_offset: offset + bytes.len() as u64,
                    stored: true,
                }
            }
            Job::Install { last_index } => {
                let bytes = Bytes::from(std::mem::take(&mut node.receiving.1));
                let meta = decode_snapshot(bytes.clone());
                assert_eq!(meta.last_index, last_index);
                node.disk.entries.clear();
                node.disk.snapshot = Some((meta.clone(), bytes));
                Input::SnapshotInstalled {
                    last_index,
                    meta: Some(meta),
                }
            }
        })
    }

    /// Writes a snapshot of what a replica has applied; `None` if that is nothing new.
    pub fn take_snapshot(&mut self, id: u16) -> Option<SnapshotMeta> {
        let node = self.nodes.get_mut(&id).expect("known replica");
        let replica = node.replica.as_ref()?;
        let last_index = replica.status().applied_index;
        let newest = node.disk.snapshot.as_ref().map(|s| s.0.last_index);
        let news = Some(last_index) > newest || node.snapshot_damaged;
        if last_index == Index(0) || !news {
            return None;
        }
        let (membership_index, membership) = replica.membership_at(last_index);
        let meta = SnapshotMeta {
            last_index,
            last_term: replica.term_at(last_index)?,
            membership: membership.clone(),
            membership_index,
            log_time: LogTime(0),
        };
        let bytes = encode_snapshot(&meta, self.snapshot_bytes);
        node.disk.snapshot = Some((meta.clone(), bytes));
        node.snapshot_damaged = false;
        let disk_entries = &mut node.disk.entries;
        disk_entries.retain(|entry| entry.index.0 + DISK_TAIL_ENTRIES > last_index.0);
        Some(meta)
    }

    /// Delivers one message, if its receiver still lives that life.
    pub fn deliver(&mut self, envelope: Envelope) {
        let id = envelope.to.id.0;
        let alive = self
            .nodes
            .get(&id)
            .is_some_and(|node| node.peer == envelope.to && node.replica.is_some());
        let path = (envelope.from.id.0, id);
        if !alive || self.cut.contains(&path) {
            return;
        }
        match envelope.content {
            Content::Message(message) => {
                if self.loud {
                    let line = show::body(&message.body);
                    self.trace.push(format!("  {} -> {id} {line}", path.0));
                }
                let from = envelope.from;
                self.input(id, Input::Message { from, message });
            }
            Content::Frame(frame) => {
                let node = self.nodes.get_mut(&id).expect("known replica");
                let Some(plane) = &mut node.plane else { return };
                if self.loud {
                    let line = show::frame(&frame);
                    self.trace.push(format!("  {} ~> {id} {line}", path.0));
                }
                let sent = plane.take(frame);
                self.transmit(id, sent);
                if self.nodes[&id].looks_now() {
                    self.turn(id);
                }
            }
        }
    }
}

fn encode_snapshot(meta: &SnapshotMeta, bytes_min: usize) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u64(meta.last_index.0);
    bytes.put_u64(meta.last_term.0);
    bytes.put_u64(meta.membership_index.0);
    let membership = meta.membership.encode();
    bytes.put_u32(u32::try_from(membership.len()).expect("small"));
    bytes.extend_from_slice(&membership);
    if bytes.len() < bytes_min {
        bytes.resize(bytes_min, 0);
    }
    bytes.freeze()
}

fn decode_snapshot(mut bytes: Bytes) -> SnapshotMeta {
    let last_index = Index(bytes.get_u64());
    let last_term = Term(bytes.get_u64());
    let membership_index = Index(bytes.get_u64());
    let length = bytes.get_u32() as usize;
    SnapshotMeta {
        last_index,
        last_term,
        membership: Membership::decode(&bytes[..length]).expect("a sound snapshot"),
        membership_index,
        log_time: LogTime(0),
    }
}
