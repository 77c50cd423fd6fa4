//! The rare cases, and until a data plane is engaged the common one too: a complete Raft. A
//! deterministic function of its inputs, without clock, randomness, disk or network of its own.
//!
//! # How it is driven
//! The node calls [`Replica::step`] for whatever happens, [`Replica::propose`] for whatever clients
//! want, and [`Replica::flush`] once per turn of its event loop, so that batches form. Each appends
//! to a list of [`Output`]s, which the node carries out in order.
//!
//! # What may be said when
//! A vote, a request for votes and an acknowledgement are promises: they leave only once the term
//! and vote they stand on are durable, and an acknowledgement names only entries that are durable
//! too. Everything else (appends, pre-votes, refusals) promises nothing and leaves at once.
//!
//! # Beside a data plane
//! After [`Output::Engage`] the plane moves the log. In every turn the node first gives what the plane
//! has stored ([`Input::PlaneEntries`]) and its registers ([`Input::PlaneProgress`]), then whatever else
//! has happened. After [`Output::Disengage`] it stops the plane, gives all that is left in its ring, and
//! [`Input::Disengaged`]; nothing that touches the log is acted upon before that.
mod api;
mod blocks;
mod bootstrap;
mod bundles;
mod codec;
mod connections;
mod dispatch;
mod election;
mod engagement;
mod fast_leader;
mod fast_term;
mod fence;
mod follower;
mod leader;
mod lineage;
mod log;
mod log_clock;
mod members;
mod mutants;
mod patience;
mod persistence;
mod progress;
mod reads;
mod records;
mod replication;
mod requests;
mod snapshot_receiver;
mod snapshot_sender;
mod stored;
mod wall_clock;

pub use api::*;
pub use bundles::{NextEntry, WaitingCommand, next_entries};
pub use fast_term::*;
pub use log_clock::*;
pub use quorumwire_wire::Entry;
pub use records::{append_record, put_payload, record_kind};

use blocks::Building;
use bytes::BytesMut;
use connections::Connection;
use election::Votes;
use engagement::{Phase, Plane};
use follower::Following;
use leader::Leading;
use log::Log;
use members::Members;
use mutants::mutant;
use persistence::Persistence;
use quorumwire_interfaces::{Index, Lineage, ReplicaId, Term};
use quorumwire_wire::{MemberRole, Membership, RecordKind};
use snapshot_receiver::Receiving;
use std::collections::BTreeMap;

/// One replica of one group.
#[derive(Debug)]
pub struct Replica {
    config: Config,
    now: Now,
    random: u64,
    counters: Counters,
    fast_counters: FastCounters,
    term: Term,
    vote: Option<Peer>,
    commit_index: Index,
    applied_index: Index,
    log: Log,
    building: Building,
    members: Members,
    /// Of the cluster, as far as it is committed and durable here.
    lineage: Lineage,
    /// A committed membership has named it in its present life.
    was_listed: bool,
    /// The newest membership that it knows to be committed does not name it; the entry that set it.
    left_out_at: Option<Index>,
    persistence: Persistence,
    snapshot: Option<SnapshotMeta>,
    /// A snapshot has been asked for and has not come yet.
    snapshot_asked: bool,
    role: Role,
    leader: Option<Peer>,
    told: RoleChange,
    /// When a leader of this or an earlier term was last heard (or might have been, before a start).
    leader_heard_at: Option<Now>,
    /// Which one that was.
    leader_heard: Option<Peer>,
    /// The connection to it broke, and it was not heard over another one since.
    leader_lost: bool,
    /// When a voter was last reached anew while the leader was lost.
    voter_found_at: Option<Now>,
    election_deadline: Now,
    votes: Votes,
    /// Messages that promise something, until term and vote are durable. Emptied with every new term.
    held: Vec<(Peer, Message)>,
    following: Following,
    /// It has committed what a leader of the newest term does not have.
    diverged: bool,
    /// State of the role `Leader`, and only of it.
    leading: Option<Box<Leading>>,
    receiving: Receiving,
    connections: BTreeMap<ReplicaId, Connection>,
    fresh_at: Now,
    bootstrap: bootstrap::Progress,
    pending_transfer: Option<PendingTransfer>,
    plane: Plane,
}

/// A transfer of leadership: who led has stepped down and waits to see who leads next.
#[derive(Debug)]
struct PendingTransfer {
    ticket: Ticket,
    deadline: Now,
}

impl Replica {
    /// A replica as it was when `stored` was written. Malformed: `stored` contradicts itself; then
    /// nothing of it may be used.
    pub fn new(
        config: Config,
        now: Now,
        stored: PersistedState,
    ) -> Result<Self, quorumwire_wire::Malformed> {
        stored::check_config(&config)?;
        // A process before this one may have answered a leader right before it ended, also one that had
        // nothing durable yet.
        let leader_heard_at = (!stored.new_life).then_some(now);
        let stored = stored::check(config.group, config.lineage, stored)?;
        let mut replica = Self {
            now,
            random: config.seed,
            counters: Counters::default(),
            fast_counters: FastCounters::default(),
            term: stored.hard_state.term,
            vote: stored.hard_state.vote,
            commit_index: stored.hard_state.commit_index,
            applied_index: stored.applied_index,
            persistence: Persistence::new(stored.hard_state_on_disk, stored.log.last_index()),
            log: stored.log,
            building: Building::default(),
            members: stored.members,
            lineage: config.lineage,
            was_listed: false,
            left_out_at: None,
            snapshot: stored.snapshot,
            snapshot_asked: false,
            role: Role::Joining,
            leader: None,
            told: RoleChange {
                role: Role::Joining,
                term: stored.hard_state.term,
                leader: None,
            },
            leader_heard_at,
            leader_heard: None,
            leader_lost: false,
            voter_found_at: None,
            election_deadline: now,
            votes: Votes::default(),
            held: Vec::new(),
            following: Following::default(),
            diverged: false,
            leading: None,
            receiving: Receiving::default(),
            connections: BTreeMap::new(),
            fresh_at: now,
            bootstrap: bootstrap::Progress::default(),
            pending_transfer: None,
            plane: Plane::new(&config),
            config,
        };
        if mutant("vote-right-after-restart") {
            replica.leader_heard_at = None;
        }
        replica.note_committed_members();
        replica.role = replica.passive_role();
        replica.told.role = replica.role;
        replica.put_off_election();
        if replica.is_sole_voter() {
            // Nobody else is asked: it waits for its own promise, and for nothing else.
            replica.election_deadline = now;
        }
        Ok(replica)
    }

    /// Takes in one thing that happened. Equal inputs give equal outputs.
    pub fn step(&mut self, now: Now, input: Input, outputs: &mut Vec<Output>) {
        self.seal();
        self.now = self.now.max(now);
        self.take_in(input, outputs);
        self.settle(outputs);
    }

    /// Emits what has gathered since the last call: appends to followers, entries to persist,
    /// commits, reads. To be called once per turn of the event loop, after its steps and proposals.
    pub fn flush(&mut self, now: Now, outputs: &mut Vec<Output>) {
        self.seal();
        self.now = self.now.max(now);
        if self.leading.is_some() {
            self.lead(outputs);
        }
        self.settle(outputs);
        self.forget_log();
    }

    /// Leader: appends one entry, whose payload the closure writes straight into the block being
    /// built. Commands, fragments of them and ticks only. It leaves with the next [`flush`](Self::flush).
    pub fn propose(
        &mut self,
        kind: RecordKind,
        payload: impl FnOnce(&mut BytesMut),
    ) -> Result<(Index, Term), Refusal> {
        assert!(
            matches!(
                kind,
                RecordKind::Command
                    | RecordKind::Tick
                    | RecordKind::SessionCommand
                    | RecordKind::Fragment
            ),
            "only commands, fragments of them and ticks are proposed"
        );
        self.may_propose()?;
        self.build(kind, payload)
    }

    /// Hot path: the index a read must wait for if it may be served under the lease at this moment.
    /// `None`: not the leader, no lease (or none wanted), or nothing committed in this term yet; use
    /// [`Input::Read`] then.
    #[must_use]
    pub fn lease_read(&self, now: Now) -> Option<Index> {
        let holds = now.max(self.now) < self.lease_until()?;
        holds.then(|| self.read_index())
    }

    /// Until when reads may be served under the lease; `None` as in [`lease_read`](Self::lease_read).
    #[must_use]
    pub fn lease_until(&self) -> Option<Now> {
        let leading = self.leading.as_ref()?;
        let wanted = self.config.lease_reads || mutant("lease-though-not-wanted");
        let usable = wanted && leading.lease_usable() && self.committed_in_own_term();
        // While the plane stops, it is not known what it has committed and answered.
        let known = self.plane.phase() != Some(Phase::Stopping);
        leading.lease_until.filter(|_| usable && known)
    }

    /// The entries from `first` to `last`, both included, as far as they are in memory.
    pub fn entries(&self, first: Index, last: Index) -> impl Iterator<Item = &Entry> {
        self.log.range(first, last)
    }

    /// When [`step`](Self::step) wants to be called again, at the latest, with [`Input::Timeout`]
    /// if with nothing else.
    #[must_use]
    pub fn next_wake(&self) -> Now {
        let mut wake = Now(self.now.0 + self.config.election_timeout);
        if let Some(pending_transfer) = &self.pending_transfer {
            wake = wake.min(pending_transfer.deadline);
        }
        if matches!(self.plane.phase(), Some(Phase::Starting | Phase::Stopping)) {
            return wake;
        }
        if let Some(until) = self.votes.engaging_until() {
            wake = wake.min(until);
        }
        let campaign = || self.may_campaign().then(|| self.stands_at());
        let due = match &self.leading {
            Some(leading) => Some(leading.next_wake()),
            None => self.says_fresh_at().or_else(campaign),
        };
        due.map_or(wake, |due| wake.min(due))
    }

    /// What it does in its term.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its term.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term
    }

    /// Who leads its term, if it knows.
    #[must_use]
    pub fn leader(&self) -> Option<ReplicaId> {
        self.leader.map(|leader| leader.id)
    }

    /// Whether it is a member, as far as it knows, and knows who leads.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.leader.is_some() && self.role() != Role::Joining
    }

    /// Whether it leads and takes no writes, because another is to lead in its place.
    #[must_use]
    pub fn is_transferring(&self) -> bool {
        self.leading
            .as_ref()
            .is_some_and(|it| it.transfer.is_some())
    }

    /// Last index it knows to be committed.
    #[must_use]
    pub fn commit_index(&self) -> Index {
        self.commit_index
    }

    /// Last index of its log, proposals not yet flushed included.
    #[must_use]
    pub fn last_index(&self) -> Index {
        Index(self.log.last_index().0 + self.building.records.len() as u64)
    }

    /// The first index whose entry is in memory.
    #[must_use]
    pub fn first_index(&self) -> Index {
        self.log.first_index()
    }

    /// The last index that its newest snapshot contains; 0 without one.
    #[must_use]
    pub fn snapshot_index(&self) -> Index {
        self.snapshot.as_ref().map_or(Index(0), |s| s.last_index)
    }

    /// Bytes of entries in memory.
    #[must_use]
    pub fn log_bytes(&self) -> usize {
        self.log.bytes() + self.building.block.len()
    }

    /// The members in force; empty if none are known.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        self.members.current()
    }

    /// Whether a committed membership has named it in its present life, as far as it remembers.
    #[must_use]
    pub const fn was_listed(&self) -> bool {
        self.was_listed
    }

    /// Whether the newest membership that it knows to be committed does not name it. One that joins reads
    /// older ones first; so only of one that was a member this says that it was removed.
    #[must_use]
    pub const fn is_left_out(&self) -> bool {
        self.left_out_at.is_some()
    }

    /// The members that it knows to be committed, and the entry that set them.
    #[must_use]
    pub fn committed_members(&self) -> (Index, &Membership) {
        self.members.at(self.commit_index)
    }

    /// The members as of an index at or behind the newest snapshot, and the entry that set them: what
    /// a snapshot of that index must say.
    #[must_use]
    pub fn membership_at(&self, index: Index) -> (Index, &Membership) {
        self.members.at(index)
    }

    /// The term of the entry at an index that is in memory (or right before the first that is).
    #[must_use]
    pub fn term_at(&self, index: Index) -> Option<Term> {
        self.log.term_at(index)
    }

    /// What people and metrics want to know.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            role: self.role,
            term: self.term,
            leader: self.leader(),
            first_index: self.first_index(),
            last_index: self.last_index(),
            commit_index: self.commit_index,
            applied_index: self.applied_index,
            persisted_index: self.persistence.persisted_index,
            snapshot_index: self.snapshot_index(),
            membership: self.members.current().clone(),
            lease: self.lease_read(self.now).is_some(),
            followers: self.follower_status(),
            incoming: self.incoming(),
            log_bytes: self.log_bytes(),
            counters: self.counters,
            fast_term: self.fast_term(),
            fast_counters: self.fast_counters,
        }
    }

    /// The snapshot that this replica is being sent or installs.
    #[must_use]
    pub fn incoming(&self) -> Option<IncomingSnapshot> {
        self.receiving.incoming()
    }

    /// Acts upon an input that need not wait for the plane.
    fn dispatch(&mut self, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Timeout => self.pass_time(outputs),
            Input::StoodStill(time) => self.stood_still(time),
            Input::PeerUp(peer, promise) => self.peer_up(peer, promise, outputs),
            Input::PeerDown(peer) => self.peer_down(peer),
            Input::Message { from, message } => self.on_message(from, message, outputs),
            Input::Persisted(ticket) => self.on_persisted(ticket, outputs),
            Input::Applied(index) => self.applied_index = self.applied_index.max(index),
            Input::Read(ticket) => self.on_read(ticket, outputs),
            Input::ChangeMembers(ticket, change) => {
                self.on_change_members(ticket, &change, outputs);
            }
            Input::Transfer(ticket, target) => self.on_transfer(ticket, target, outputs),
            Input::SnapshotTaken(meta) => self.on_snapshot_taken(meta),
            Input::SnapshotRead {
                to,
                last_index,
                offset,
                chunk,
            } => self.on_snapshot_read(to, last_index, offset, chunk, outputs),
            Input::SnapshotChunkStored {
                last_index,
                next_offset,
                stored,
            } => self.on_snapshot_chunk_stored(last_index, next_offset, stored, outputs),
            Input::SnapshotInstalled { last_index, meta } => {
                self.on_snapshot_installed(last_index, meta, outputs);
            }
            Input::PlanePeer { id, has_plane } => self.plane_peer(id, has_plane),
            Input::Engaged { term, engaged } => self.on_engaged(term, engaged, outputs),
            Input::PlaneEntries(block) => self.on_plane_entries(&block, outputs),
            Input::PlaneProgress { registers } => self.on_plane_progress(registers, outputs),
            Input::PlaneBehind(id) => self.on_plane_behind(id),
            Input::PlaneFailed => self.leave(LeaveReason::PlaneFailed, outputs),
            Input::Disengaged { registers } => self.on_disengaged(&registers, outputs),
        }
    }

    /// Ends every step and flush: what must be durable goes to the disk, what was held back and may
    /// leave now leaves, and a change of role is told.
    fn settle(&mut self, outputs: &mut Vec<Output>) {
        let given = self.persistence.given;
        if self.term != given.term || self.vote != given.vote {
            self.persistence
                .give(self.hard_state(), Vec::new(), outputs);
        }
        self.write_removal(outputs);
        if self.promises_are_durable() {
            self.send_promises(outputs);
            self.acknowledge_if_owed(outputs);
        }
        self.engage_if_wished(outputs);
        let change = RoleChange {
            role: self.role,
            term: self.term,
            leader: self.leader(),
        };
        if change != self.told {
            self.told = change;
            outputs.push(Output::RoleChanged(change));
        }
    }

    /// Nobody sends entries to one that was removed, which its commit index would go along with: a later
    /// start would not know of the removal.
    fn write_removal(&mut self, outputs: &mut Vec<Output>) {
        let Some(left_out_at) = self.left_out_at.filter(|_| self.was_listed) else {
            return;
        };
        let (known, given) = (self.hard_state(), self.persistence.given);
        if given.commit_index < left_out_at && known.commit_index >= left_out_at {
            self.persistence.give_commit_index(known, outputs);
        }
    }

    /// Term, vote and the commit index as far as the entries it covers were given to the disk.
    fn hard_state(&self) -> HardState {
        HardState {
            term: self.term,
            vote: self.vote,
            commit_index: self.commit_index.min(self.persistence.given_index),
        }
    }

    fn promises_are_durable(&self) -> bool {
        let durable = &self.persistence.durable;
        (durable.term == self.term && durable.vote == self.vote) || mutant("promise-before-persist")
    }

    /// Sends a message that promises something, once term and vote are durable.
    fn promise(&mut self, to: Peer, body: Body) {
        let message = Message {
            term: self.term,
            body,
        };
        if !self
            .held
            .iter()
            .any(|held| held.0 == to && held.1 == message)
        {
            self.held.push((to, message));
        }
    }

    /// Sends what was promised. Called only while term and vote are durable.
    fn send_promises(&mut self, outputs: &mut Vec<Output>) {
        for (to, message) in self.held.drain(..) {
            outputs.push(Output::Send { to, message });
        }
    }

    /// Sends a message that promises nothing.
    fn send(&self, to: Peer, body: Body, outputs: &mut Vec<Output>) {
        let message = Message {
            term: self.term,
            body,
        };
        outputs.push(Output::Send { to, message });
    }

    fn on_persisted(&mut self, ticket: Ticket, outputs: &mut Vec<Output>) {
        self.persistence.persisted(ticket);
        self.note_lineage();
        self.bootstrap_persisted(outputs);
        self.count_votes(outputs);
        self.entries_persisted(outputs);
    }

    /// Begins what is due. Not upon other inputs: a replica that was stopped for a while should first
    /// hear what has arrived meanwhile.
    fn pass_time(&mut self, outputs: &mut Vec<Output>) {
        if self
            .pending_transfer
            .as_ref()
            .is_some_and(|pending_transfer| self.now >= pending_transfer.deadline)
            && let Some(pending_transfer) = self.pending_transfer.take()
        {
            outputs.push(Output::Refused(pending_transfer.ticket, Refusal::TimedOut));
        }
        if matches!(self.plane.phase(), Some(Phase::Starting | Phase::Stopping)) {
            return;
        }
        let engaging_until = self.votes.engaging_until();
        if engaging_until.is_some_and(|until| self.now >= until) {
            self.votes.give_up_engaging();
            self.count_votes(outputs);
        }
        if self.leading.is_some() {
            self.lead_on(outputs);
        } else if let Some(at) = self.says_fresh_at() {
            if self.now >= at {
                self.say_fresh_to_all(outputs);
            }
        } else if self.may_campaign() && self.now >= self.stands_at() {
            self.ask_before_election(outputs);
        }
    }

    /// Takes part in a newer term, as a follower who knows no leader yet. Everything said or counted
    /// in the old term is over.
    fn enter_term(&mut self, term: Term, outputs: &mut Vec<Output>) {
        assert!(term > self.term, "terms only rise");
        assert!(
            self.plane.engagement.is_none() || mutant("vote-before-fence"),
            "a new term before the plane has stopped"
        );
        self.plane.wish = None;
        self.note_no_fast_term();
        self.votes = Votes::default();
        self.step_down(outputs);
        self.term = term;
        self.vote = None;
        self.held.clear();
        self.following = Following::default();
    }

    /// Stops leading or standing for election; the term stays.
    fn step_down(&mut self, outputs: &mut Vec<Output>) {
        if let Some(leading) = self.leading.take() {
            self.stop_leading(*leading, outputs);
        }
        self.leader = None;
        self.votes.give_up_engaging();
        self.role = self.passive_role();
    }

    /// What it is while it neither leads nor stands for election.
    fn passive_role(&self) -> Role {
        let me = self.config.me;
        let member = self.members.current().member(me.id);
        match member.filter(|member| member.incarnation == me.incarnation) {
            None => Role::Joining,
            Some(member) => match member.role {
                MemberRole::Voter => Role::Follower,
                MemberRole::Learner | MemberRole::Joining => Role::Learner,
            },
        }
    }

    /// The membership in force has changed.
    fn members_changed(&mut self, outputs: &mut Vec<Output>) {
        outputs.push(Output::MembershipChanged(self.members.current().clone()));
        match self.role {
            Role::Leader => self.follow_members(),
            Role::PreCandidate | Role::Candidate if self.may_campaign() => {}
            Role::PreCandidate
            | Role::Candidate
            | Role::Joining
            | Role::Learner
            | Role::Follower => self.role = self.passive_role(),
        }
    }

    /// Cuts the log from this index on, wherever else that shows.
    fn truncate_from(&mut self, index: Index, outputs: &mut Vec<Output>) {
        assert!(index > self.commit_index, "a committed entry would be cut");
        self.log.truncate_from(index);
        self.persistence.truncated_from(index);
        outputs.push(Output::Truncated(index));
        if !mutant("membership-not-rolled-back") && self.members.truncate_from(index) {
            self.members_changed(outputs);
        }
    }

    /// Puts an entry behind the log's end; a membership takes effect at once.
    fn append_entry(&mut self, entry: Entry, outputs: &mut Vec<Output>) {
        let membership = (entry.kind == RecordKind::Membership)
            .then(|| Membership::decode(entry.payload()).expect("checked when it was received"));
        let index = entry.index;
        self.log.push(entry);
        if let Some(membership) = membership {
            self.members.push(index, membership);
            self.members_changed(outputs);
        }
    }

    /// Everything up to here is committed, as far as it is news.
    fn commit_upto(&mut self, index: Index, outputs: &mut Vec<Output>) {
        if index <= self.commit_index {
            return;
        }
        assert!(index <= self.log.last_index(), "commit beyond the log");
        if let Some(leading) = &mut self.leading {
            for entry in self.log.range(self.commit_index.next(), index) {
                leading.uncommitted_bytes -= entry.record().len();
            }
        }
        self.commit_index = index;
        self.note_committed_members();
        outputs.push(Output::Committed(index));
    }
}
