//! The group itself: what it is made of, writes into its log, and when a read may be answered.
use crate::clocks::{LeaderClock, Overdue, WallClock};
use crate::effects::Effect;
use crate::forwards::Forwards;
use crate::mutants::mutant;
use crate::peers::Peers;
use crate::plane::Plane;
use crate::proposals::{Proposal, Proposals, Settlement};
use crate::requester::Requester;
use crate::term_keys::TermKeys;
use crate::waiting::Reads;
use bytes::{Bytes, BytesMut};
use quorumwire_control::{
    Entry, Input, Now, Output, Peer, Refusal, Replica, Role, SnapshotMeta, put_payload, record_kind,
};
use quorumwire_interfaces::{
    Application, Command, DataPlane, EntryKind, GroupId, Index, LogTime, PlaneError, Reason,
    ReplicaId, Term,
};
use quorumwire_sessions::Sessions;
use quorumwire_wire::RecordKind;
use std::time::Duration;

/// Commands for the leader, and for the plane, are encoded into blocks of this size.
const ENCODING_BLOCK_BYTES: usize = 16 << 10;

/// How long a leader whose disk is full waits before it tries again to have another one lead.
pub const TRANSFER_FULL_INTERVAL: Duration = Duration::from_secs(1);

/// One replicated log.
#[derive(Debug)]
pub struct Group<S, O: Requester, P: DataPlane + ?Sized> {
    /// Which one of this server.
    pub id: GroupId,
    /// Consensus.
    pub replica: Replica,
    /// What is replicated.
    pub store: Box<Sessions<S>>,
    /// Where the common case runs in fast terms; none: there are only software terms.
    pub plane: Option<Plane<O, P>>,
    /// Its keys of fast terms; none: replicas agree on none.
    pub term_keys: Option<TermKeys>,
    /// The clock as whoever drives this has last read it: after bytes were read from sockets and before they
    /// are judged.
    pub now: Now,
    pub(crate) wall: WallClock,
    /// The connections to other replicas.
    pub peers: Peers,
    /// What consensus wants done, in this order.
    pub outputs: Vec<Output>,
    /// What else is to be done, in this order.
    pub effects: Vec<Effect>,
    /// Something was proposed, or a read was asked for, since the replica was last flushed.
    pub wants_flush: bool,
    /// The log takes no writes: its disk is full, or no file can be opened.
    pub is_full: bool,
    /// Everything up to here may be applied.
    pub committed: Index,
    /// Everything up to here is.
    pub applied: Index,
    /// The log's time there.
    pub log_time: LogTime,
    /// Of the entries applied since the last snapshot.
    pub bytes_since_snapshot: u64,
    /// Who waits for what is in the log.
    pub proposals: Proposals<O>,
    /// Reads that wait.
    pub reads: Reads<O::Reader>,
    /// What was passed on to a leader.
    pub forwards: Forwards<O>,
    /// The words that go with a refusal to a follower. Only replicas of earlier versions read them: they know
    /// no reasons.
    pub refusal_words: fn(Reason) -> Bytes,
    /// Empty between entries.
    pub(crate) settled: Settlement<O>,
    /// How the leader tells the log's time.
    pub clock: LeaderClock,
    /// Leader: the first entry of its term.
    pub term_start: Index,
    /// The first of the terms up to the last one led that were all led here, with none between them.
    pub led_since: Term,
    /// When that term began, commands waited that had reached no log in an earlier one.
    pub carried_over: bool,
    /// Somebody was told to come again: whoever was is to be looked at when leadership or room changes.
    pub stalled: bool,
    /// The plane had no room for all that waits.
    pub(crate) stalled_for_plane: bool,
    /// What the plane did not do, until somebody has been told.
    pub(crate) plane_error: Option<PlaneError>,
    /// Of questions to the replica, and of those who wait for an answer of this group.
    pub(crate) last_ticket: u64,
    /// When leadership was last to go because there is no room here.
    transferred_full_at: Option<Now>,
    /// Where commands are encoded.
    encoding: BytesMut,
    /// Memory that is used again, as is that of the next two.
    pub(crate) carrying: Vec<Output>,
    pub(crate) applying: Vec<Entry>,
    pub(crate) reply: Vec<u8>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SubmitOutcome {
    /// It is in the log, or on its way there: its answer will come.
    Pending,
    /// There is no room now.
    NoRoom,
    /// There is no answer for this reason.
    Refused(Reason),
}

/// Whether a read may be answered now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gate {
    /// Yes.
    Open,
    /// No: only the log's time decides what it would show, and that stands still.
    Overdue,
    /// Once this index is applied.
    Wait(Index),
    /// Not under a lease: a read index round is needed.
    NoLease,
    /// Not here.
    NotLeader,
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// A group whose log and state were read by now, without a plane. `wall`: the time since 1970.
    #[must_use]
    pub fn new(
        id: GroupId,
        replica: Replica,
        store: Box<Sessions<S>>,
        now: Now,
        wall: Duration,
    ) -> Self {
        Self {
            id,
            replica,
            store,
            plane: None,
            term_keys: None,
            now,
            wall: WallClock::read(now, wall),
            peers: Peers::default(),
            outputs: Vec::new(),
            effects: Vec::new(),
            wants_flush: false,
            is_full: false,
            committed: Index(0),
            applied: Index(0),
            log_time: LogTime(0),
            bytes_since_snapshot: 0,
            proposals: Proposals::default(),
            reads: Reads::default(),
            forwards: Forwards::new(now),
            refusal_words: |_| Bytes::new(),
            settled: Settlement::default(),
            clock: LeaderClock::default(),
            term_start: Index(0),
            led_since: Term(0),
            carried_over: false,
            stalled: false,
            stalled_for_plane: false,
            plane_error: None,
            last_ticket: 0,
            transferred_full_at: None,
            encoding: BytesMut::new(),
            carrying: Vec::new(),
            applying: Vec::new(),
            reply: Vec::new(),
        }
    }

    /// The state that was read at the start: that of a snapshot, or none. What the log holds behind it is
    /// applied anew.
    pub fn begin_from(&mut self, store: Box<Sessions<S>>, snapshot: Option<(Index, LogTime)>) {
        let (applied, log_time) = snapshot.unwrap_or_default();
        self.store = store;
        self.applied = applied;
        self.log_time = log_time;
        self.committed = self.replica.commit_index();
    }

    /// Exchanges the state for a snapshot of another replica. The log stands still from the wish to install
    /// until its answer. Whoever waits for what it stands for is in `settled`.
    ///
    /// # Panics
    ///
    /// If the state is newer.
    pub(crate) fn install(&mut self, meta: &SnapshotMeta, store: &mut Box<Sessions<S>>) {
        let (last_index, applied) = (meta.last_index, self.applied);
        assert!(
            last_index > applied,
            "a snapshot installed over newer state"
        );
        self.applied = last_index;
        self.committed = self.committed.max(last_index);
        self.log_time = self.log_time.max(meta.log_time);
        self.bytes_since_snapshot = 0;
        if !mutant("snapshot-settles-nothing") {
            (self.settled).take_behind_snapshot(&mut self.proposals, last_index);
        }
        std::mem::swap(&mut self.store, store);
    }

    /// A leader that cannot store lets another one lead, if the others can: they have committed what is not
    /// even on its disk. Whether it does now.
    pub fn transfer_if_full(&mut self) -> bool {
        if !self.is_full {
            self.transferred_full_at = None;
            return false;
        }
        let now = self.now;
        let is_too_soon = |at: Now| now.0.saturating_sub(at.0) < TRANSFER_FULL_INTERVAL;
        let status = self.replica.status();
        let can_others_store = status.commit_index > status.persisted_index;
        if !self.leads() || !can_others_store || self.transferred_full_at.is_some_and(is_too_soon) {
            return false;
        }
        self.transferred_full_at = Some(now);
        let ticket = self.next_ticket(); // nobody waits for the answer
        self.step(Input::Transfer(ticket, None));
        true
    }

    /// Whether requests are carried out here.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.replica.role() == Role::Leader
    }

    /// The replica of this name, in the life in which it is a member.
    #[must_use]
    pub fn member(&self, id: ReplicaId) -> Option<Peer> {
        let member = self.replica.membership().member(id)?;
        Some(Peer {
            id,
            incarnation: member.incarnation,
        })
    }

    /// Steps the replica; what it asks for gathers in `outputs`.
    pub fn step(&mut self, input: Input) {
        self.replica.step(self.now, input, &mut self.outputs);
    }

    /// Has the replica say what has gathered in it.
    pub fn flush(&mut self) {
        self.wants_flush = false;
        self.replica.flush(self.now, &mut self.outputs);
    }

    /// Whether the replica has something to say that it has not been asked for yet.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        !self.outputs.is_empty() || self.wants_flush
    }

    /// Whether committed entries wait to be applied.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        self.applied < self.committed
    }

    /// Whether committed entries can be applied now.
    #[must_use]
    pub fn can_apply(&self) -> bool {
        self.has_backlog() && self.store.takes_commands()
    }

    /// A command's bytes; many share one allocation.
    pub fn encoded(&mut self, command_bytes: usize, encode: impl FnOnce(&mut BytesMut)) -> Bytes {
        if self.encoding.capacity() < command_bytes {
            self.encoding
                .reserve(command_bytes.max(ENCODING_BLOCK_BYTES));
        }
        encode(&mut self.encoding);
        self.encoding.split().freeze()
    }

    /// A command, into the plane or into the log of a software term. `command_bytes` is what `encode` adds.
    pub fn write(
        &mut self,
        origin: O,
        command_bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> SubmitOutcome {
        if self.leads_fast_term() {
            return self.enqueue(None, origin, command_bytes, encode);
        }
        if self.waits_since_fast_term() {
            return SubmitOutcome::NoRoom; // commands of one connection are carried out in the order sent
        }
        self.propose(RecordKind::Command, origin, encode)
    }

    /// The same for a command with its session and its sequence.
    pub fn write_in_session(
        &mut self,
        origin: O,
        (session, sequence): (u64, u64),
        payload: &[u8],
    ) -> SubmitOutcome {
        if self.leads_fast_term() {
            let name = Some((session, sequence));
            return self.enqueue(name, origin, payload.len(), |buffer| {
                buffer.extend_from_slice(payload);
            });
        }
        if self.waits_since_fast_term() {
            return SubmitOutcome::NoRoom;
        }
        let command = Command {
            kind: EntryKind::Command,
            session,
            sequence,
            payload,
        };
        self.propose(record_kind(&command), origin, |buffer| {
            put_payload(buffer, &command);
        })
    }

    /// Into the log of a software term.
    pub(crate) fn propose(
        &mut self,
        kind: RecordKind,
        origin: O,
        encode: impl FnOnce(&mut BytesMut),
    ) -> SubmitOutcome {
        if !self.leads() {
            return SubmitOutcome::Refused(Reason::NotLeader);
        }
        self.begin_term();
        if self.is_full {
            return SubmitOutcome::Refused(Reason::DiskFull);
        }
        self.tick_before_write();
        match self.replica.propose(kind, encode) {
            Ok((index, term)) => {
                self.wants_flush = true;
                self.proposals.insert(Proposal {
                    index,
                    position: 0,
                    term,
                    origin,
                    at: self.now,
                });
                SubmitOutcome::Pending
            }
            Err(Refusal::Busy { .. } | Refusal::Transferring | Refusal::FastTerm) => {
                SubmitOutcome::NoRoom
            }
            Err(Refusal::NotLeader { .. }) => SubmitOutcome::Refused(Reason::NotLeader),
            Err(
                Refusal::ChangeInProgress
                | Refusal::Invalid(_)
                | Refusal::NotConnected { .. }
                | Refusal::TimedOut,
            ) => SubmitOutcome::Refused(Reason::Busy),
        }
    }

    /// A read that arrives now must show everything up to here.
    pub fn read_barrier(&mut self) -> Index {
        if self.leads() {
            self.begin_term();
        }
        // The plane may have answered a write that is not known here yet.
        let in_plane = self
            .plane_registers()
            .map_or(Index(0), |it| it.commit_index);
        self.replica.commit_index().max(in_plane)
    }

    /// Whether a read of this line that arrived when `must_apply` was the barrier may be answered.
    pub fn gate(&mut self, must_apply: Index, may_wait: bool, line: &[u8]) -> Gate {
        if !self.leads() {
            return Gate::NotLeader;
        }
        if !self.has_begun_term() || self.replica.lease_read(self.now).is_none() {
            return Gate::NoLease;
        }
        // What earlier leaders answered lies before our term's first entry; what we answered is applied.
        self.gate_granted(must_apply.max(self.term_start), may_wait, line)
    }

    /// Whether a read that has leave to be answered at `index` may be answered now. What it would show
    /// may be past its time already: then the log says so first. Not for a read that may not wait,
    /// because a write behind it is next: it shows what stands before that write.
    pub fn gate_granted(&mut self, index: Index, may_wait: bool, line: &[u8]) -> Gate {
        if index > self.applied && !mutant("read-before-applied") {
            return Gate::Wait(index);
        }
        match self.overdue(line) {
            Some(Overdue::Until(index)) if may_wait => Gate::Wait(index),
            Some(Overdue::Refused) if may_wait => Gate::Overdue,
            Some(_) | None => Gate::Open,
        }
    }
}

#[cfg(test)]
#[path = "group_test.rs"]
pub(crate) mod tests;
