//! What goes into a replica and what comes out of it.
use crate::{Engage, FastCounters, FastTerm, LeaveReason};
use bytes::Bytes;
use quorumwire_interfaces::{
    GroupId, Incarnation, Index, Lineage, LogTime, Registers, ReplicaId, Term, counters,
};
use quorumwire_wire::{CommitQuorum, Entry, MemberRole, Membership, SnapshotHead, peer};
use std::time::Duration;

/// Time since some moment of the caller's choosing, the same for all inputs of one replica. Never
/// goes back; runs on while the machine sleeps.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Now(pub Duration);

/// Names one piece of work given out, so that its completion is recognised. Ascending.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket(pub u64);

/// A replica in one of its lives.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Peer {
    /// Its name.
    pub id: ReplicaId,
    /// Its life.
    pub incarnation: Incarnation,
}

/// What a replica is told once, at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The log it serves.
    pub group: GroupId,
    /// Who it is.
    pub me: Peer,
    /// Where others connect to it; goes into the membership.
    pub peer_address: String,
    /// The members a new cluster begins with, this one included; empty for one that waits to be
    /// added to a running cluster. One that begins a cluster alone and is later joined by others must
    /// be given an empty list before its memory is ever lost: started empty, it would begin a second
    /// cluster, because it has nobody to ask.
    pub initial_members: Vec<ReplicaId>,
    /// The cluster that it belongs to, as far as that was committed in an earlier process.
    pub lineage: Lineage,
    /// The number of a cluster whose first entry is made here, or that has none yet. Random, drawn for this
    /// process; if it is not known, no cluster is given one here.
    pub new_lineage: Lineage,
    /// Seed of the random part of its timeouts.
    pub seed: u64,
    /// A follower that has heard no leader for this long, and up to twice as long by chance, stands
    /// for election; a leader that has not heard a quorum for this long steps down.
    pub election_timeout: Duration,
    /// A voter that has heard a leader gives nobody else a vote for this long, whatever happens: a
    /// leader's lease rests on it. Once it has passed, a follower whose connection to the leader broke
    /// does not wait for the rest of the election timeout. Longer than the heartbeat interval, at most
    /// the election timeout. If an earlier process of this life had a longer one, the replica must not
    /// be made before that has passed since the process, and its plane, stopped.
    pub lease: Duration,
    /// A leader with nothing to say says so this often.
    pub heartbeat_interval: Duration,
    /// By how much two clocks may drift apart, in parts per million: leases are shorter by it.
    pub clock_drift_ppm: u32,
    /// Whether reads may rest on a lease, and so on clocks; else each takes a round of heartbeats.
    pub lease_reads: bool,
    /// Most bytes of entries a leader takes that are not committed yet; more are refused as
    /// [`Refusal::Busy`].
    pub uncommitted_bytes_max: usize,
    /// Most Append messages with entries on their way to one follower.
    pub appends_in_flight_max: usize,
    /// Most bytes of entries on their way to one follower.
    pub append_bytes_in_flight_max: usize,
    /// Most bytes of a snapshot in one message. Its first chunk should hold the snapshot's head.
    pub snapshot_chunk_bytes_max: usize,
    /// Bytes of entries kept in memory behind a snapshot, for followers that are a little behind.
    pub log_tail_bytes: usize,
    /// Most bytes of entries that a leader keeps behind its newest snapshot for members that catch up by an
    /// older one; never more than four times that one's size. All that was there when the newest was taken
    /// counts.
    pub log_kept_bytes_max: usize,
    /// Most membership and leadership requests and linearizable reads waiting for an answer.
    pub waiting_requests_max: usize,
    /// Whether this replica has a data plane. A plane that an earlier run of the replica left engaged
    /// must be stopped before the replica is made: from then on it counts as having just heard a
    /// leader.
    pub plane: bool,
    /// How long a leader waits in its software term before it tries a fast one. Doubles with every
    /// attempt that fails and with every fast term that ends within `engage_interval_max`.
    pub engage_interval: Duration,
    /// The longest such wait.
    pub engage_interval_max: Duration,
    /// A follower that lacks at most so many entries is offered to join the running fast term: no more
    /// than half of what the planes' rings hold.
    pub engage_window: u64,
}

impl Config {
    /// What this replica promises, to be told to others when they connect.
    #[must_use]
    pub const fn promise(&self) -> Promise {
        Promise {
            lasts: self.lease,
            clock_drift_ppm: self.clock_drift_ppm,
            keeps_lineage: true,
            keeps_wall_clock: true,
            lineage: self.lineage,
        }
    }
}

/// What a replica had persisted when it stopped.
#[derive(Clone, Debug, Default)]
pub struct PersistedState {
    /// Term, vote and commit index.
    pub hard_state: HardState,
    /// The newest snapshot, if any.
    pub snapshot: Option<SnapshotMeta>,
    /// The entries behind the snapshot (some of them may lie before its last index), indexes
    /// consecutive and ascending.
    pub entries: Vec<Entry>,
    /// The present life begins with this process: none before it can have promised anything. Where that is
    /// not known, false.
    pub new_life: bool,
}

impl PersistedState {
    /// What stood in a data folder.
    #[must_use]
    pub fn read(
        hard_state: &peer::HardState,
        snapshot: Option<&SnapshotHead>,
        entries: Vec<Entry>,
        new_life: bool,
    ) -> Self {
        Self {
            hard_state: HardState::from_proto(hard_state),
            snapshot: snapshot.map(SnapshotMeta::from),
            entries,
            new_life,
        }
    }
}

/// What a replica must not forget.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HardState {
    /// The highest term it has taken part in.
    pub term: Term,
    /// Whom it voted for in that term.
    pub vote: Option<Peer>,
    /// What it knew to be committed; may lag behind.
    pub commit_index: Index,
}

/// What a snapshot stands for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SnapshotMeta {
    /// The last entry it contains.
    pub last_index: Index,
    /// That entry's term.
    pub last_term: Term,
    /// The members as of that entry.
    pub membership: Membership,
    /// The entry that set them.
    pub membership_index: Index,
    /// The log's time as of that entry.
    pub log_time: LogTime,
}

/// What a replica says of itself when it connects: above all what it promises as a voter to leaders, for as
/// long as its process lives. A process that is started anew begins only once the promise of the one before
/// has passed, unless its own is at least as long.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Promise {
    /// How long it gives nobody else a vote once it has heard a leader, by its own clock. Zero: it
    /// promises nothing, or it is not known.
    pub lasts: Duration,
    /// By how much it takes the speed of two replicas' clocks to differ, parts per million.
    pub clock_drift_ppm: u32,
    /// The lineage stands in every membership that it makes as a leader. Code from before lineages drops it.
    pub keeps_lineage: bool,
    /// It reads what a tick says of the wall clock. Code from before that reads only the log's time.
    pub keeps_wall_clock: bool,
    /// The cluster that it remembers; none if it knows no number.
    pub lineage: Lineage,
}

/// What happens to a replica.
#[derive(Debug)]
pub enum Input {
    /// Time has passed; nothing else happened. Elections, heartbeats and whatever else is due begin
    /// upon this input only (see [`crate::Replica::next_wake`]): give first what has arrived meanwhile.
    Timeout,
    /// This process did not run for so long, until just now: the silence of others during that time
    /// says nothing about them. To be given before what has arrived meanwhile.
    StoodStill(Duration),
    /// A connection to a replica stands, in this life of it, and this is what it promised in the
    /// handshake. Anything from an earlier life of the same id is ignored from now on.
    PeerUp(Peer, Promise),
    /// The connection is gone; what was on its way may be lost. If it led to the leader, that may be
    /// gone too: see [`Config::lease`].
    PeerDown(Peer),
    /// A message from a replica.
    Message {
        /// Who sent it.
        from: Peer,
        /// What it says.
        message: Message,
    },
    /// Every [`Output::Persist`] with this ticket or a lower one is on disk.
    Persisted(Ticket),
    /// The state machine has applied everything up to here.
    Applied(Index),
    /// A linearizable read wants to be served; answered by [`Output::Read`] with the same ticket.
    Read(Ticket),
    /// Change the members; answered by [`Output::Done`] or [`Output::Refused`].
    ChangeMembers(Ticket, MemberChange),
    /// Hand leadership to this voter, or to the most up-to-date one; answered likewise.
    Transfer(Ticket, Option<ReplicaId>),
    /// A snapshot of the applied state has been written and is durable; the log may be cut behind it.
    SnapshotTaken(SnapshotMeta),
    /// Answer to [`Output::ReadSnapshot`]. `None`: that snapshot is no longer there or is damaged.
    SnapshotRead {
        /// For whom.
        to: ReplicaId,
        /// Of which snapshot.
        last_index: Index,
        /// From where.
        offset: u64,
        /// The bytes, and how long the whole file is.
        chunk: Option<(Bytes, u64)>,
    },
    /// Answer to [`Output::StoreSnapshotChunk`]: it was written (or not).
    SnapshotChunkStored {
        /// Of which snapshot.
        last_index: Index,
        /// Where the next chunk belongs.
        next_offset: u64,
        /// False: the chunk could not be written; the transfer begins anew.
        stored: bool,
    },
    /// Answer to [`Output::InstallSnapshot`]: checked, durable and restored into the state machine;
    /// `None` when the bytes were damaged.
    SnapshotInstalled {
        /// Of which snapshot.
        last_index: Index,
        /// What it stands for, as its own head says.
        meta: Option<SnapshotMeta>,
    },
    /// The handshake told whether a connected replica has a data plane. To be given after each
    /// [`Input::PeerUp`], which forgets it.
    PlanePeer {
        /// Who.
        id: ReplicaId,
        /// Whether it has one.
        has_plane: bool,
    },
    /// Answer to [`Output::Engage`].
    Engaged {
        /// The fast term that was asked for.
        term: Term,
        /// Whether the plane is engaged in it.
        engaged: bool,
    },
    /// Whole records (see `wire`), consecutive, of the fast term, out of the plane's ring in order:
    /// commands and ticks. Each is given once.
    PlaneEntries(Bytes),
    /// The plane's registers of this moment. To be given before the other inputs of a turn, and before
    /// [`crate::Replica::lease_read`] answers for reads that have arrived since: votes, leases and
    /// reads rest on it.
    PlaneProgress {
        /// The registers.
        registers: Registers,
    },
    /// Leader: the ring no longer holds what that replica asks for.
    PlaneBehind(ReplicaId),
    /// The plane broke: it moves nothing any more.
    PlaneFailed,
    /// Answer to [`Output::Disengage`]: the plane has stopped, and everything up to the registers' last
    /// index was given before.
    Disengaged {
        /// As of when it stopped.
        registers: Registers,
    },
}

/// A wish to change who takes part, or how many must agree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MemberChange {
    /// Take a new replica in: as learner, or (`Joining`) to vote as soon as it has caught up. It must
    /// be connected; its incarnation is the one it connected with.
    Add {
        /// Its id, not in use by another member.
        id: ReplicaId,
        /// `Learner` or `Joining`.
        role: MemberRole,
        /// Where others connect to it.
        peer_address: String,
    },
    /// Let a learner vote.
    Promote(ReplicaId),
    /// Take a member out. The leader may take itself out: it steps down once that is committed.
    Remove(ReplicaId),
    /// How many voters must hold an entry to commit it.
    Quorum(CommitQuorum),
    /// A member is elsewhere than the list says. Nothing else about it changes.
    Move {
        /// The life of it that was found there. Refused for any other: nobody may be sent to where another
        /// one is.
        peer: Peer,
        /// Where it was found.
        peer_address: String,
    },
}

/// What a replica asks its surroundings to do, in this order.
#[derive(Debug)]
pub enum Output {
    /// Write these durably, hard state first. Entries replace whatever was stored at their first index
    /// and behind it. Answered by [`Input::Persisted`]. What must not be said before is held back by
    /// the replica itself.
    Persist {
        /// Names this request; ascending, so one answer may cover several.
        ticket: Ticket,
        /// New hard state, if it changed.
        hard_state: Option<HardState>,
        /// New entries; consecutive. May be empty.
        entries: Vec<Entry>,
    },
    /// Send a message; it may get lost.
    Send {
        /// To whom. Addressed to one life: not to be delivered to a later one.
        to: Peer,
        /// What to say.
        message: Message,
    },
    /// Everything up to here is committed: apply it in order (read it by [`crate::Replica::entries`]),
    /// then answer [`Input::Applied`].
    Committed(Index),
    /// A read may be answered once the state machine has applied this index.
    Read(Ticket, Index),
    /// A request was carried out.
    Done(Ticket),
    /// A request or read was not carried out.
    Refused(Ticket, Refusal),
    /// Role, term or leader changed: clients may have to be told. A proposal not yet committed when a
    /// replica stops leading may still commit under a later leader (then an entry of the same index
    /// and term is committed here too) or may never: its outcome is unknown until then.
    RoleChanged(RoleChange),
    /// The log was cut: entries from this index on, taken earlier, are not in this log any more.
    /// Copies of them may live on elsewhere and may even commit later: the outcome of the proposals
    /// behind them is unknown, not failed.
    Truncated(Index),
    /// This replica sent something of another cluster of this name, which was not taken.
    OtherLineage {
        /// Who.
        from: Peer,
        /// Of which one.
        lineage: Lineage,
    },
    /// The members changed (take effect at once; may be taken back by a later one).
    MembershipChanged(Membership),
    /// Read at most `bytes_max` bytes of the newest snapshot with this last index from `offset` on.
    /// Answered by [`Input::SnapshotRead`].
    ReadSnapshot {
        /// For whom.
        to: ReplicaId,
        /// Of which snapshot.
        last_index: Index,
        /// From where; a multiple of what earlier answers gave.
        offset: u64,
        /// At most so many bytes.
        bytes_max: usize,
    },
    /// Write a piece of a snapshot that is being received, aside. Offset 0 begins anew. Answered by
    /// [`Input::SnapshotChunkStored`].
    StoreSnapshotChunk {
        /// Of which snapshot.
        last_index: Index,
        /// Where the piece belongs.
        offset: u64,
        /// The piece.
        bytes: Bytes,
    },
    /// The received snapshot is whole: check it, make it durable, put it in place of log and state
    /// machine. Answered by [`Input::SnapshotInstalled`].
    InstallSnapshot {
        /// Which snapshot.
        last_index: Index,
        /// The term its leader said.
        last_term: Term,
    },
    /// Someone needs a snapshot and there is none, or it is too old to continue from: take one now.
    TakeSnapshot,
    /// Engage the data plane. Answered by [`Input::Engaged`].
    Engage(Engage),
    /// Stop the data plane, take everything out of its ring ([`Input::PlaneEntries`]), then answer
    /// [`Input::Disengaged`]. Until then what happens waits in the replica.
    Disengage(LeaveReason),
    /// Leader: say this round to the followers through the plane.
    PlaneHeartbeat {
        /// Its number; ascending.
        round: u64,
    },
    /// Entries are durable up to here: a plane that holds its acknowledgements may send them. A node
    /// that releases ring slots no earlier bounds by the ring what waits for its disk.
    PlanePersisted(Index),
}

/// Where a replica stands after a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RoleChange {
    /// What it does now.
    pub role: Role,
    /// In which term.
    pub term: Term,
    /// Who leads, if known.
    pub leader: Option<ReplicaId>,
}

/// What a replica does in its term.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// It knows no membership yet, or none that contains it: it waits.
    Joining,
    /// It receives the log and counts for nothing.
    Learner,
    /// It follows the leader of its term, or waits for one.
    Follower,
    /// It asks whether an election could be won (pre-vote).
    PreCandidate,
    /// It stands for election.
    Candidate,
    /// It leads.
    Leader,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Only the leader can.
    #[error("not the leader")]
    NotLeader {
        /// Who may be it.
        leader: Option<ReplicaId>,
    },
    /// A limit is reached; try later.
    #[error("busy: {limit} reached")]
    Busy {
        /// Name of the limit.
        limit: &'static str,
    },
    /// The data plane takes commands now.
    #[error("the data plane takes commands in this term")]
    FastTerm,
    /// Leadership is being transferred; try the next leader.
    #[error("leadership is being transferred")]
    Transferring,
    /// Another membership change is not committed yet, or the leader has committed nothing in its
    /// term yet.
    #[error("another membership change is in progress")]
    ChangeInProgress,
    /// The request makes no sense; the text says why and what would.
    #[error("{0}")]
    Invalid(String),
    /// Whom the change takes in is not connected. Who was started a moment ago will be.
    #[error("replica {id} is not connected; start it first, with the leader in its option members")]
    NotConnected {
        /// Whom it takes in.
        id: ReplicaId,
    },
    /// It was begun, and did not come to an end in time or before this replica's leadership did.
    #[error(
        "begun, and not known to be done: leadership moved, or it took too long; it may still take effect"
    )]
    TimedOut,
}

/// A message between two replicas of a group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// The sender's term.
    pub term: Term,
    /// What it says.
    pub body: Body,
}

/// What a message says; field by field as in `wire/peer.proto`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Body {
    Fresh {
        to_incarnation: Incarnation,
        peer_address: String,
        join: bool,
        /// Ascending. Empty: it joins, or is from before this was told.
        initial_members: Vec<ReplicaId>,
    },
    Bootstrap {
        record: Bytes,
    },
    /// The message's term is the one asked about: with `pre_vote`, one above the sender's own.
    VoteRequest {
        last_index: Index,
        last_term: Term,
        pre_vote: bool,
        transfer: bool,
        engage: bool,
    },
    /// A granted pre-vote bears the term asked about, anything else the sender's own.
    VoteReply {
        granted: bool,
        pre_vote: bool,
        engaged: bool,
    },
    Append {
        previous_index: Index,
        previous_term: Term,
        commit_index: Index,
        round: u64,
        /// Whole records, cut anywhere only between two of them.
        records: Vec<Bytes>,
    },
    AppendReply {
        round: u64,
        rejected: bool,
        index: Index,
        hint_index: Index,
        hint_term: Term,
    },
    SnapshotChunk {
        last_index: Index,
        last_term: Term,
        offset: u64,
        total_bytes: u64,
        round: u64,
        bytes: Bytes,
    },
    SnapshotReply {
        last_index: Index,
        offset: u64,
        installed: bool,
        rejected: bool,
        round: u64,
    },
    TransferNow,
    EngageOffer {
        start_index: Index,
    },
    Engaged {
        engaged: bool,
        index: Index,
    },
}

/// What people and metrics want to know.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it does.
    pub role: Role,
    /// In which term.
    pub term: Term,
    /// Who leads, if known.
    pub leader: Option<ReplicaId>,
    /// First index still in the in-memory log.
    pub first_index: Index,
    /// Last index of its log.
    pub last_index: Index,
    /// Last index it knows to be committed.
    pub commit_index: Index,
    /// Last index the state machine has applied.
    pub applied_index: Index,
    /// Last index on its own disk.
    pub persisted_index: Index,
    /// Last index of its newest snapshot; 0 for none.
    pub snapshot_index: Index,
    /// The members in force.
    pub membership: Membership,
    /// Whether the leader's lease held at the time of the last input.
    pub lease: bool,
    /// Leader: how far each member is.
    pub followers: Vec<FollowerStatus>,
    /// The snapshot that this replica is being sent or installs.
    pub incoming: Option<IncomingSnapshot>,
    /// Bytes of entries in memory.
    pub log_bytes: usize,
    /// What was ignored, by reason.
    pub counters: Counters,
    /// The fast term its plane is engaged in, if it is.
    pub fast_term: Option<FastTerm>,
    /// What the handover between software and plane has done.
    pub fast_counters: FastCounters,
}

/// How far a snapshot on its way is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SnapshotProgress {
    /// Bytes that the receiver has stored.
    pub stored_bytes: u64,
    /// How long it is; 0 until that is known.
    pub total_bytes: u64,
}

/// A snapshot that comes in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IncomingSnapshot {
    /// A piece at a time.
    Receiving(SnapshotProgress),
    /// All of it is here, and is put in the place of the log.
    Installing,
}

/// How far a member is, as its leader sees it.
#[derive(Clone, Copy, Debug)]
pub struct FollowerStatus {
    /// Who.
    pub id: ReplicaId,
    /// Last index it has stored durably, equal to the leader's.
    pub match_index: Index,
    /// How far the snapshot is that it is being sent; none: it is not.
    pub snapshot: Option<SnapshotProgress>,
    /// Its plane takes part in the fast term.
    pub engaged: bool,
    /// Heard from within the election timeout.
    pub active: bool,
}

counters! {
    /// What a replica ignored or did, counted since its start.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Counters {
        /// Elections this replica stood for, those that begin fast terms included
        pub elections_started: "elections_started",
        /// Elections this replica won
        pub elections_won: "elections_won",
        /// Times this replica heard no leader and asked whether it could be elected
        pub elections_asked_about: "elections_asked_about",
        /// Elections this replica stood for because no leader was heard
        pub elections_upon_silence: "elections_upon_silence",
        /// Times this replica stopped leading because it did not hear a quorum
        pub stepped_down_without_quorum: "stepped_down_without_quorum",
        /// Peer messages dropped because their sender is no member
        pub ignored_stranger: "message_dropped_stranger",
        /// Peer messages dropped that come from an earlier life of their sender
        pub ignored_old_incarnation: "message_dropped_old_incarnation",
        /// Peer messages dropped because their term is over
        pub ignored_old_term: "message_dropped_old_term",
        /// Peer messages dropped because they make no sense
        pub ignored_malformed: "message_dropped_malformed",
        /// Entries and snapshots of another cluster of the same name, which were not taken
        pub ignored_other_lineage: "message_dropped_other_lineage",
        /// Entries of a leader that has others in the place of what is committed here, as after a disk
        /// was put back to an old copy
        pub ignored_diverged: "message_dropped_diverged",
        /// Peer messages dropped because nothing waits for them
        pub ignored_unexpected: "message_dropped_unexpected",
        /// Votes refused because a leader was heard recently
        pub vote_refused_recent_leader: "vote_refused_recent_leader",
        /// Entries that do not follow on the log
        pub append_rejected: "append_rejected",
        /// Members found to lack what they had acknowledged, as after a disk was put back to an old copy,
        /// and repaired
        pub acknowledgements_denied: "acknowledgements_denied",
        /// Snapshots sent to followers, complete
        pub snapshots_sent: "snapshots_sent",
        /// Snapshots that a follower installed when the log behind them was gone already: see
        /// log-kept-mib
        pub snapshots_outrun: "snapshots_outrun",
        /// Snapshots received and installed
        pub snapshots_installed: "snapshots_installed",
    }
}
