//! One machine of the cluster: a disk, a clock, and most of the time a process with a replica. Says
//! how a process begins; what it does is in `turn.rs`.
use crate::datagrams::Datagram;
use crate::disk::ForgetfulDisk;
use crate::journal::{Durable, Journal};
use crate::pipes::Pipe;
use crate::plan::{Durability, LEASES, LINEAGES, Settings};
use crate::plane::{Plane, SimulatedPlane};
use crate::planted::mutant;
use crate::queue::{MILLISECOND, Nanos};
use crate::random::mix;
use crate::served::ServedProcess;
use crate::state::State;
use quorumwire_control::{
    Config, Message, Now, Peer, PersistedState, Promise, Replica, SnapshotMeta, Ticket,
};
use quorumwire_group::{AnswerTo, Follower, PassedOn, PlaneClient, Requester, TermKeys};
use quorumwire_interfaces::{Frozen, GroupId, Incarnation, Index, Lineage, ReplicaId, Term};
use quorumwire_sessions::Sessions;
use quorumwire_storage::{self as storage, FaultyDisk, MemoryDisk, OpenFolder, Snapshots};
use quorumwire_wire::SnapshotHead;
use quorumwire_wire::peer::PeerMessage;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What is replicated, as in the node.
pub type Replicated = Sessions<State>;

/// One replicated log, as it stands in a process here.
pub type Group = quorumwire_group::Group<State, Origin, SimulatedPlane>;

/// The one group.
pub const GROUP: GroupId = GroupId(0);

/// One host.
pub struct Machine {
    /// The replica in its present life.
    pub peer: Peer,
    /// The members a new cluster begins with; empty for one that waits to be added.
    pub initial: Vec<ReplicaId>,
    /// What survives the process.
    pub disk: FaultyDisk<MemoryDisk>,
    /// Nothing is meant to survive the process.
    pub in_memory: bool,
    /// A file beside the folder says that it was a member, and in which life first; 0: in one that is not
    /// known.
    pub mark: Option<Incarnation>,
    /// Lives begun.
    lives: u64,
    /// What the simulator knows to be on the disk.
    pub durable: Durable,
    /// The clock: local time is `clock_offset` and what was gained beside the true time, and
    /// since it was slewed last faster by `clock_ppm / 1e6`.
    pub clock_offset: Nanos,
    /// See `clock_offset`.
    pub clock_ppm: i64,
    /// See `clock_offset`.
    pub clock_slewed_at: Nanos,
    /// See `clock_offset`.
    pub clock_gained: i64,
    /// The true time at which its clock has stopped, if it stands still.
    pub clock_stopped_at: Option<Nanos>,
    /// By how much its clock is behind since it has stood still before.
    pub clock_lost: Nanos,
    /// A copy of its disk, to be put in its place as soon as the group can bear that.
    pub old_copy: Option<OldCopy>,
    /// Its disk is one that was put in place of a newer one.
    pub rolled_back: bool,
    /// What it has to make up for since its disk was put back.
    pub owes: Option<Owes>,
    /// The time of day is wrong by so many milliseconds.
    pub wall_offset_ms: i64,
    /// When it was last set.
    pub wall_set_at: Option<Nanos>,
    /// The process, if it runs.
    pub process: Option<Process>,
    /// Numbers the processes; what an earlier one waited for concerns nobody.
    pub run: u32,
    /// It stands still until then; what arrives waits.
    pub busy_until: Nanos,
    /// What its clock showed when it began to stand still, until it looks again.
    pub still_since: Option<Now>,
    /// When it is to be woken, as far as that is set already.
    pub wake_at: Nanos,
    /// What has arrived and was not looked at.
    pub inbox: VecDeque<Arrival>,
    /// The disk does nothing before this.
    pub stalled_until: Nanos,
    /// What is replicated takes no commands until then.
    pub occupied_until: Nanos,
    /// The next write dies after so many operations.
    pub dies_in_write: Option<(u8, bool)>,
    /// The process dies after so many more outputs; whether by a power cut.
    pub dies_after: Option<(u8, bool)>,
    /// How long it is down when it dies.
    pub down_for: Nanos,
    /// Whether its processes have a data plane.
    pub has_plane: bool,
    /// Its plane does not engage before this.
    pub plane_refuses_until: Nanos,
    /// The plane of a process that is gone, which goes on until the next one starts.
    pub orphan: Option<Plane>,
    /// The process stands still, its plane does not.
    pub plane_goes_on: bool,
    /// Datagrams that wait for a plane that stands still.
    pub socket: Vec<Datagram>,
    /// Stage of the keys in its secret file.
    pub key_stage: u64,
    /// By its clock: until when its next process must not begin, because one before had promised more.
    promised_until: Option<Now>,
    /// Since when its next process reads the folder, by its clock.
    pub reads_since: Option<Now>,
    /// So many of its processes run code that reads only the log's time of a tick, one after the other.
    older_runs: u32,
}

/// A copy of a disk.
pub struct OldCopy {
    /// Its files.
    pub files: MemoryDisk,
    /// The number of its life, in which the copy was made.
    pub incarnation: Incarnation,
    /// It takes the disk's place at this time or later.
    pub due: Nanos,
    /// All but the mark comes from the copy: a copy that was put back by halves.
    pub by_halves: bool,
    /// How long the machine is down for it.
    pub lasts: Nanos,
}

/// What a process is told from outside.
pub enum Arrival {
    /// The disk has done something.
    Log,
    /// A snapshot's file was written, read or checked.
    Snapshot(SnapshotEvent),
    /// A connection stands, and the other side promised this.
    Up(Peer, Promise),
    /// A connection is gone.
    Down(Peer),
    /// A message of another replica.
    Message(Peer, Message),
    /// Another replica's key of a fast term.
    Key(Peer, Box<PeerMessage>),
    /// What another replica says about a request that was passed on.
    PassedOn(Peer, PassedOn),
    /// A client's operation, by number.
    Request(u32),
    /// Commands of a client that does not wait for answers.
    Flood(u16),
    /// What an operator asks for.
    Admin(crate::fault::Change, u64),
    /// Take a snapshot.
    TakeSnapshot,
    /// Something may be new at the plane.
    Look,
    /// The client with this number sends these, without waiting for answers.
    Pipe(u32, Vec<u32>),
}

/// What the snapshot threads have finished.
pub enum SnapshotEvent {
    /// One was taken, or not.
    Taken(Option<SnapshotMeta>),
    /// An answer for the replica.
    Answer(quorumwire_control::Input),
    /// A received one was checked and restored, or was not good.
    Installed(Index, Option<(SnapshotMeta, Box<Replicated>)>),
}

/// Work for the snapshot threads.
pub enum SnapshotJob {
    /// Write this state.
    Take(SnapshotHead, SnapshotMeta, Box<dyn Frozen>),
    /// Read a piece to send.
    Read(ReplicaId, Index, u64, usize),
    /// Write a received piece.
    Store(Index, u64, bytes::Bytes),
    /// Check and restore what was received.
    Install(Index, Term),
}

/// A write in the log that is not applied yet.
pub type Proposal = quorumwire_group::Proposal<Origin>;

/// Where an answer goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// To the client with this operation.
    Operation(u32),
    /// To a client that asked a plane: its address, session and sequence.
    Plane(PlaneClient),
    /// To the replica that passed it on.
    Follower(Follower),
    /// To the keeper of the served program, with the number that it gave.
    Served(u64),
    /// To who asked for values or checkpoints, with the number of what it asked.
    Values(u8, u64),
}

impl From<PlaneClient> for Origin {
    fn from(client: PlaneClient) -> Self {
        Self::Plane(client)
    }
}

impl From<Follower> for Origin {
    fn from(follower: Follower) -> Self {
        Self::Follower(follower)
    }
}

impl Requester for Origin {
    /// The operation.
    type Reader = u32;

    fn answer_to(self) -> AnswerTo {
        match self {
            Self::Operation(_) | Self::Served(_) | Self::Values(..) => AnswerTo::Here,
            Self::Plane(client) => AnswerTo::PlaneClient(client),
            Self::Follower(follower) => AnswerTo::Follower(follower),
        }
    }
}

/// A process: everything that is gone when it stops.
pub struct Process {
    /// The replicated log: what the server drives, too.
    pub group: Group,
    /// Where it is kept.
    pub journal: Journal,
    /// The snapshots' files.
    pub files: Snapshots,
    /// Connections of clients that do not wait for answers.
    pub pipes: BTreeMap<u32, Pipe>,
    /// Work of the snapshot threads, by number.
    pub jobs: BTreeMap<u32, SnapshotJob>,
    /// The number of the next job.
    pub next_job: u32,
    /// The thread for pieces is at work until then.
    pub pieces_until: Nanos,
    /// A snapshot is being written.
    pub taking: bool,
    /// A fault keeps snapshots up to this one from being read.
    pub unreadable_upto: Index,
    /// The last one failed: when another is taken, whatever was applied since.
    pub snapshot_retry_at: Option<Nanos>,
    /// A removal of a member that it was asked for and that is not done yet.
    pub removal: Option<Ticket>,
    /// When it last did what it does every now and then.
    pub kept_house_at: Nanos,
    /// What the checks last saw of it.
    pub seen: LastLook,
    /// The clients of a served program.
    pub served: Option<ServedProcess>,
}

/// What the checks last saw of a process.
#[derive(Clone, Copy, Default)]
pub struct LastLook {
    /// Its term.
    pub term: Term,
    /// Its commit index.
    pub commit_index: Index,
    /// It was a leader in that term.
    pub led: bool,
    /// The term that it last began to lead.
    pub begun: Term,
}

/// What a machine held when its disk was put back to an older copy.
#[derive(Clone, Debug)]
pub struct Owes {
    /// The last that was committed then: before it holds that again, nobody else may lose its memory.
    pub committed: (Index, Term),
    /// All it had on disk, and so had acknowledged; the others held that, too. The same goes for this.
    pub held: Durable,
}

/// How a start went.
pub enum Start {
    /// It runs.
    Runs,
    /// A longer promise must pass before, by about this time.
    Waits(Nanos),
    /// The disk does not let it; to be tried again.
    Later(String),
    /// Something is wrong that no fault explains.
    Violation(String),
}

impl Machine {
    /// A machine with an empty disk.
    #[must_use]
    pub fn new(id: u16, initial: &[ReplicaId], settings: &Settings) -> Self {
        let id = ReplicaId(id);
        let wait = !initial.contains(&id);
        let mut machine = Self {
            peer: Peer {
                id,
                incarnation: Incarnation(0),
            },
            initial: if wait { Vec::new() } else { initial.to_vec() },
            disk: FaultyDisk::new(MemoryDisk::with_power_cuts()),
            in_memory: settings.durability == Durability::Memory,
            mark: None,
            lives: 0,
            durable: Durable::default(),
            clock_offset: 0,
            clock_ppm: 0,
            clock_slewed_at: 0,
            clock_gained: 0,
            clock_stopped_at: None,
            clock_lost: 0,
            old_copy: None,
            rolled_back: false,
            owes: None,
            wall_offset_ms: 0,
            wall_set_at: None,
            process: None,
            run: 0,
            busy_until: 0,
            still_since: None,
            wake_at: Nanos::MAX,
            inbox: VecDeque::new(),
            stalled_until: 0,
            occupied_until: 0,
            dies_in_write: None,
            dies_after: None,
            down_for: 0,
            has_plane: settings.planes.has_plane(id.0),
            plane_refuses_until: 0,
            orphan: None,
            plane_goes_on: false,
            socket: Vec::new(),
            key_stage: 0,
            promised_until: None,
            reads_since: None,
            older_runs: if wait { 0 } else { settings.older_runs(id.0) },
        };
        let _ = machine.next_life(settings);
        machine
    }

    /// Whether its process runs code that reads only the log's time of a tick.
    #[must_use]
    pub const fn is_older(&self) -> bool {
        self.run < self.older_runs
    }

    /// A life that was never lived.
    fn next_life(&mut self, settings: &Settings) -> Incarnation {
        self.lives += 1;
        let number = self.lives << 16 | u64::from(self.peer.id.0);
        Incarnation(mix(settings.seed.wrapping_add(number)) | 1)
    }

    /// For how long it did not run until now, by its own clock, if it has not noticed yet.
    pub fn notices_pause(&mut self, now: Nanos) -> Option<Duration> {
        let since = self.still_since.take()?;
        let to = self.clock(now).0;
        to.checked_sub(since.0).filter(|pause| !pause.is_zero())
    }

    /// Starts a process from what is on the disk, which a fault has damaged (`spoiled`) or not.
    pub fn start(&mut self, time: Nanos, settings: &Settings, spoiled: bool) -> Start {
        if let Some(until) = self.promised_until
            && self.clock(time) < until
        {
            return Start::Waits(self.true_time(until).max(time + MILLISECOND));
        }
        let begun = match self.open(settings) {
            Ok(begun) => begun,
            Err(problem) => return Start::Later(problem),
        };
        let Begun { ready, damaged } = begun;
        if damaged && !spoiled {
            let peer = self.peer;
            return Start::Violation(format!("I15: {peer:?} finds damage that nobody did"));
        }
        if let Some(waits) = self.wait_out_promise(&ready, time, settings) {
            return waits;
        }
        let forgot = ready.incarnation != self.peer.incarnation;
        let fresh = ready.fresh;
        self.peer.incarnation = ready.incarnation;
        let store = match restore(&ready) {
            Ok(store) => store,
            Err(problem) => return Start::Later(problem),
        };
        let stored = PersistedState::read(
            &ready.stored.hard_state,
            ready.stored.snapshot.as_ref(),
            ready.stored.entries,
            fresh,
        );
        let applied = stored.snapshot.as_ref().map_or(Index(0), |s| s.last_index);
        let snapshot = stored.snapshot.as_ref();
        let snapshot = snapshot.map(|meta| (meta.last_index, meta.log_time));
        let rolled_back = std::mem::take(&mut self.rolled_back);
        if let Some(problem) = self.missing(&stored, forgot || damaged || rolled_back) {
            return Start::Violation(problem);
        }
        self.durable = Durable::found(&stored.hard_state, applied, &stored.entries);
        let config = self.config(settings, self.has_forgotten(&stored));
        // A plane that went on must be stopped before: only what is promised from then on is known.
        self.orphan = None;
        self.socket.clear();
        let now = match self.reads_since.take() {
            Some(since) if mutant("promise-before-plane-is-off") => since,
            Some(_) | None => self.clock(time),
        };
        let plane = match self.new_plane(settings) {
            Ok(plane) => plane,
            Err(problem) => return Start::Violation(problem),
        };
        let replica = match Replica::new(config, now, stored) {
            Ok(replica) => replica,
            Err(problem) => {
                return Start::Violation(format!("{:?} cannot start: {problem}", self.peer));
            }
        };
        let is_older = self.is_older();
        let wal = match settings.durability {
            Durability::Sync => ready.log.into_wal(),
            Durability::Memory => None,
        };
        let id = GROUP;
        let mut group = Group::new(id, replica, Box::default(), now, self.wall(time));
        group.begin_from(store, snapshot);
        let lineage = group.replica.lineage_in_log();
        let keys = self.agreed_keys(settings);
        group.plane = plane.map(|mut plane| {
            plane.data_plane_mut().set_lineage(lineage);
            if let Some(keys) = &keys {
                plane.data_plane_mut().agree(keys.pair());
            }
            plane
        });
        group.term_keys = keys;
        group.store.inner_mut().is_older = is_older;
        // Numbers begin anew: what tells the requests of two processes apart is the process.
        group.forwards.begin(u64::from(self.run) + 1, 0);
        group.peers.quiet_after = Duration::from_nanos(settings.election_timeout);
        let mut process = Process::new(group, wal, ready.snapshots);
        process.seen.term = process.group.replica.term();
        process.seen.commit_index = process.group.replica.commit_index();
        self.process = Some(process);
        self.inbox.clear();
        self.wake_at = Nanos::MAX;
        self.busy_until = 0;
        self.still_since = None;
        self.plane_goes_on = false;
        self.dies_in_write = None;
        self.dies_after = None;
        self.promised_until = None;
        self.begin_served(settings, self.wall(time));
        self.begin_values(settings);
        Start::Runs
    }

    /// It holds nothing and was a member in a life before this one. A life that was listed and holds nothing
    /// has lost nothing: it was listed by what never became durable.
    fn has_forgotten(&self, stored: &PersistedState) -> bool {
        let holds_nothing = stored.snapshot.is_none() && stored.entries.is_empty();
        let was_another = self.mark.is_some_and(|life| life != self.peer.incarnation);
        holds_nothing && was_another
    }

    /// As in the node: a shorter promise begins once the longer one of a process before has passed.
    fn wait_out_promise(
        &mut self,
        ready: &storage::Ready,
        time: Nanos,
        settings: &Settings,
    ) -> Option<Start> {
        let of_folder = self.of_folder(settings, ready.incarnation);
        if ready.promised <= of_folder.promise || mutant("shorter-promise-at-once") {
            return None;
        }
        if self.promised_until.is_none() {
            // A plane that went on must be stopped before.
            self.orphan = None;
            self.socket.clear();
            let until = Now(self.clock(time).0 + ready.promised);
            self.promised_until = Some(until);
            return Some(Start::Waits(self.true_time(until)));
        }
        let noted =
            storage::restate_identity(&self.disk, &of_folder, (ready.incarnation, ready.lineage));
        noted.err().map(|error| Start::Later(error.to_string()))
    }

    /// What its process promises: the option may have another value at each start.
    #[must_use]
    pub fn promise(&self, settings: &Settings) -> Promise {
        let which =
            mix(settings.seed ^ LEASES ^ (u64::from(self.run) << 32 | u64::from(self.peer.id.0)));
        let place = usize::try_from(which).unwrap_or(0) % settings.leases.len().max(1);
        let lease = settings
            .leases
            .get(place)
            .copied()
            .unwrap_or(settings.heartbeat * 2);
        Promise {
            lasts: Duration::from_nanos(lease),
            clock_drift_ppm: settings.drift_allowed_ppm,
            keeps_lineage: true,
            keeps_wall_clock: !self.is_older(),
            lineage: self
                .process
                .as_ref()
                .map_or(Lineage::default(), |it| it.group.replica.lineage()),
        }
    }

    /// Another one in each process.
    fn new_lineage(&self, settings: &Settings) -> Lineage {
        let process = u64::from(self.run) << 32 | u64::from(self.peer.id.0);
        let half = mix(settings.seed ^ LINEAGES ^ process);
        Lineage(u128::from(half.max(1)))
    }

    fn of_folder(&self, settings: &Settings, new_incarnation: Incarnation) -> storage::Settings {
        storage::Settings {
            cluster: "sim".to_owned(),
            replica: self.peer.id,
            group: GROUP,
            new_incarnation,
            segment_bytes: settings.segment_bytes,
            promise: self.promise(settings).lasts,
            lineage: Lineage::default(),
        }
    }

    /// Whether this very entry would survive whatever its durability is meant to survive. A life in
    /// memory that is over may have had it.
    #[must_use]
    pub fn holds(&self, index: Index, term: Term) -> bool {
        match &self.process {
            Some(process) if self.in_memory => {
                let replica = &process.group.replica;
                let in_plane = process
                    .group
                    .plane
                    .as_ref()
                    .is_some_and(|p| p.data_plane().holds(index, term));
                in_plane
                    || replica.term_at(index) == Some(term)
                    || index <= replica.snapshot_index()
            }
            None if self.in_memory => true,
            Some(_) | None => self.durable.holds(index, term),
        }
    }

    /// The last entry that its process or its plane has.
    #[must_use]
    pub fn last_index(&self) -> Index {
        let in_plane = self.plane().map(crate::plane::Plane::registers);
        let in_plane = in_plane.map_or(Index(0), |registers| registers.last_index);
        let process = self.process.as_ref();
        process.map_or(in_plane, |process| {
            process.group.replica.last_index().max(in_plane)
        })
    }

    /// Its plane: that of its process, or what is left of the last one's.
    #[must_use]
    pub fn plane(&self) -> Option<&Plane> {
        match &self.process {
            Some(process) => process.group.plane.as_ref(),
            None => self.orphan.as_ref(),
        }
    }

    /// The same, to change it.
    pub fn plane_mut(&mut self) -> Option<&mut Plane> {
        match &mut self.process {
            Some(process) => process.group.plane.as_mut(),
            None => self.orphan.as_mut(),
        }
    }

    /// As in the node: drawn at every start, where replicas agree on keys.
    fn agreed_keys(&self, settings: &Settings) -> Option<TermKeys> {
        let agrees = self.has_plane && settings.agrees_on_keys();
        agrees.then(|| TermKeys::new(settings.key_drawn((self.peer.id.0, self.run), 0)))
    }

    fn new_plane(&self, settings: &Settings) -> Result<Option<Plane>, String> {
        if !self.has_plane {
            return Ok(None);
        }
        match crate::plane::new(
            settings,
            (usize::from(self.peer.id.0), self.run),
            !self.in_memory,
            self.key_stage,
        ) {
            Ok(plane) => Ok(Some(plane)),
            Err(problem) => Err(format!("the plane cannot be made: {problem:?}")),
        }
    }

    fn open(&mut self, settings: &Settings) -> Result<Begun, String> {
        let disk = Arc::new(ForgetfulDisk(self.disk.clone()));
        let new_life = self.next_life(settings);
        let of_folder = self.of_folder(settings, new_life);
        let opened = match settings.durability {
            Durability::Memory => storage::open_memory(disk, &of_folder).map(OpenFolder::Ready),
            Durability::Sync => storage::open(disk, of_folder),
        };
        match opened.map_err(|error| error.to_string())? {
            OpenFolder::Ready(ready) => Ok(Begun {
                ready,
                damaged: false,
            }),
            OpenFolder::Damaged(folder) => {
                self.mark.get_or_insert(Incarnation(0));
                let life = self.next_life(settings);
                let ready = folder.start_over(life).map_err(|error| error.to_string())?;
                Ok(Begun {
                    ready,
                    damaged: true,
                })
            }
        }
    }

    /// What was durable and is not there any more, in the same life.
    fn missing(&self, stored: &PersistedState, forgot: bool) -> Option<String> {
        if forgot {
            return None;
        }
        let (found, durable) = (&stored.hard_state, &self.durable);
        let kept = found.term > durable.term
            || (found.term == durable.term
                && (found.vote == durable.vote || durable.vote.is_none()));
        if !kept {
            return Some(format!(
                "I10: {:?} was in term {} with vote {:?}, finds {found:?}",
                self.peer, durable.term, durable.vote
            ));
        }
        // A snapshot that was in place before its installation failed replaces a log that differs from it.
        let found = stored.snapshot.as_ref();
        if found.is_some_and(|s| !durable.holds(s.last_index, s.last_term)) {
            return None;
        }
        let snapshot = found.map_or(Index(0), |s| s.last_index);
        let first = stored.entries.first().map_or(Index(u64::MAX), |e| e.index);
        let sure =
            |(index, _): &(Index, Term)| durable.unsure_from.is_none_or(|from| *index < from);
        let lost = durable.entries().filter(sure).find(|(index, term)| {
            let place = usize::try_from(index.0.wrapping_sub(first.0)).unwrap_or(usize::MAX);
            let there = stored.entries.get(place);
            *index > snapshot && there.is_none_or(|entry| entry.term != *term)
        });
        lost.map(|(index, term)| {
            format!(
                "I5: {:?} had entry {index}@{term} on its disk and has it no more",
                self.peer
            )
        })
    }

    fn config(&self, settings: &Settings, amnesiac: bool) -> Config {
        let initial = if amnesiac {
            Vec::new()
        } else {
            self.initial.clone()
        };
        Config {
            group: GROUP,
            me: self.peer,
            peer_address: format!("m{}:7400", self.peer.id.0),
            initial_members: initial,
            // The log says it; what is kept beside it only finds folders that were mixed up.
            lineage: Lineage::default(),
            new_lineage: self.new_lineage(settings),
            seed: mix(settings.seed ^ (u64::from(self.run) << 32 | u64::from(self.peer.id.0))),
            election_timeout: Duration::from_nanos(settings.election_timeout),
            heartbeat_interval: Duration::from_nanos(settings.heartbeat),
            lease: self.promise(settings).lasts,
            clock_drift_ppm: settings.drift_allowed_ppm,
            lease_reads: settings.lease_reads,
            uncommitted_bytes_max: settings.uncommitted_bytes_max,
            appends_in_flight_max: settings.appends_in_flight_max,
            append_bytes_in_flight_max: 1 << 20,
            snapshot_chunk_bytes_max: settings.snapshot_chunk_bytes_max(),
            log_tail_bytes: settings.log_tail_bytes,
            // Nothing, less than is written during a transfer, or more.
            log_kept_bytes_max: 16 * settings.log_tail_bytes,
            waiting_requests_max: 64,
            plane: self.has_plane,
            engage_interval: Duration::from_nanos(settings.engage_interval),
            engage_interval_max: Duration::from_nanos(settings.engage_interval_max),
            engage_window: u64::from(settings.ring_slots / 2),
        }
    }
}

struct Begun {
    ready: storage::Ready,
    damaged: bool,
}

impl Process {
    fn new(group: Group, wal: Option<storage::Wal>, files: Snapshots) -> Self {
        Self {
            group,
            journal: Journal::new(wal),
            files,
            pipes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            next_job: 0,
            pieces_until: 0,
            taking: false,
            unreadable_upto: Index(0),
            snapshot_retry_at: None,
            removal: None,
            kept_house_at: 0,
            seen: LastLook::default(),
            served: None,
        }
    }
}

fn restore(ready: &storage::Ready) -> Result<Box<Replicated>, String> {
    let mut store = Box::new(Replicated::default());
    if let Some(head) = &ready.stored.snapshot {
        let file = ready.snapshots.open(head.last_index);
        let file = file.map_err(|error| error.to_string())?;
        let file = file.ok_or("the newest snapshot is gone")?;
        let mut body = file.body().map_err(|error| error.to_string())?;
        store
            .restore(&mut body)
            .map_err(|error| error.to_string())?;
    }
    Ok(store)
}
