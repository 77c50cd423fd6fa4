//! Who drives a group: the server, or a simulated process. A group sees no disk, no connection and no clock;
//! what is to be done with these, it has done by its driver. What is done, and in which order, `carry_out`
//! says, once for all of them.
use crate::apply::AppliedCommand;
use crate::forwards::ForwardResult;
use crate::group::Group;
use crate::passed_on::AnswerKind;
use crate::proposals::Proposal;
use crate::requester::Requester;
use crate::waiting::FollowerRead;

use bytes::Bytes;
use quorumwire_control::{
    Engage, Entry, HardState, LeaveReason, Message, Output, Peer, Refusal, RoleChange, Ticket,
};
use quorumwire_interfaces::{Application, DataPlane, Index, Lineage, Reason, ReplicaId, Term};
use quorumwire_wire::Membership;
use std::time::Duration;

/// The group of a driver.
pub type Driven<D> =
    Group<<D as Driver>::Application, <D as Driver>::Requester, <D as Driver>::Plane>;

/// Who a read of a driver's belongs to.
pub type ReaderOf<D> = <<D as Driver>::Requester as Requester>::Reader;

/// What a driver does for its group. What has a body here suits a driver that only does what it is told.
pub trait Driver: Sized {
    /// What is replicated.
    type Application: Application;
    /// Where an answer goes.
    type Requester: Requester;
    /// Where the common case runs.
    type Plane: DataPlane + ?Sized;
    /// Why nothing can go on: the log cannot be written.
    type Error;

    /// The group. None: the process has ended, as a simulated one may between any two things that it does.
    fn group(&mut self) -> Option<&mut Driven<Self>>;

    /// Has the group do something that may move consensus.
    fn drive<T>(&mut self, what: impl FnOnce(&mut Driven<Self>) -> T) -> Option<T> {
        self.group().map(what)
    }

    /// Carries out one thing that consensus wants: by [`carry_out`](crate::carry_out()), with whatever there
    /// is to see before and after.
    ///
    /// # Errors
    ///
    /// If the log cannot be written.
    fn carry_out(&mut self, output: Output) -> Result<(), Self::Error>;

    // What a group is made of lies outside of it.

    /// Sends what gathered in the group's effects.
    fn carry_out_effects(&mut self);

    /// Has these written. What is durable by now, if that is known at once.
    ///
    /// # Errors
    ///
    /// If that can never be.
    fn persist(
        &mut self,
        ticket: Ticket,
        hard_state: Option<HardState>,
        entries: &[Entry],
    ) -> Result<Option<Ticket>, Self::Error>;

    /// Has a message of consensus sent.
    fn say(&mut self, to: Peer, message: Message);

    /// That replica is of another cluster of this name.
    fn other_lineage(&mut self, from: Peer, lineage: Lineage);

    /// The log says who the members are.
    ///
    /// # Errors
    ///
    /// If that can never be written down.
    fn membership_changed(&mut self, membership: &Membership) -> Result<(), Self::Error>;

    /// Takes a snapshot of what is applied, unless one is being taken.
    fn take_snapshot(&mut self);

    /// Reads a piece of a snapshot for another replica.
    fn read_snapshot(&mut self, to: ReplicaId, last_index: Index, offset: u64, bytes_max: usize);

    /// Writes a piece of another replica's snapshot aside.
    fn store_snapshot_chunk(&mut self, last_index: Index, offset: u64, bytes: Bytes);

    /// Puts that snapshot in place of log and state.
    fn install_snapshot(&mut self, last_index: Index, last_term: Term);

    // The plane.

    /// Has the plane run, or says that it does not.
    fn engage(&mut self, engage: &Engage);

    /// Stops the plane, and takes what it has.
    fn disengage(&mut self, reason: LeaveReason);

    /// The plane was told something, and may have sent packets or failed.
    fn plane_was_used(&mut self);

    /// The plane was looked at; nothing that it brought is taken yet.
    fn plane_was_polled(&mut self);

    /// Its entries are with consensus, its registers are not yet.
    fn plane_was_emptied(&mut self, _had_entries: bool) {}

    /// It has room again for what it was done with; nothing new is in it.
    fn plane_was_released(&mut self) {}

    /// What a client of the plane is told in words, beside the reason.
    fn words(&self, _reason: Reason) -> Vec<u8> {
        Vec::new()
    }

    // Turns.

    /// What is applied by now is served; commands that are made now still leave in this turn.
    fn goes_on(&mut self) {}

    /// Commands that had waited since a fast term are in the log: writes have stalled behind them.
    fn room_since_fast_term(&mut self) {}

    /// This leader has no room, and is about to let another one lead.
    fn note_transfer_for_room(&mut self) {}

    // Entries that are applied.

    /// Entries wait to be applied: whether there is time now.
    fn begins_to_apply(&mut self) -> bool {
        true
    }

    /// Whether there is time for this one. The rest is applied later.
    fn has_time_for(&mut self, _entry: &Entry) -> bool {
        true
    }

    /// Applies an entry, by [`apply_entry`](crate::apply_entry), with whatever there is to see before and
    /// after; how many commands it held.
    fn apply_entry(&mut self, entry: &Entry) -> usize;

    /// No more is applied for now.
    fn ends_applying(&mut self) {}

    /// The command that is applied next is this client's: its reads that it sent in front are answered now.
    fn answer_reads_before(&mut self, requester: Self::Requester);

    /// A command was applied; this is its answer, whoever waits for it.
    fn note_applied(
        &mut self,
        index: Index,
        applied: &AppliedCommand<'_, Self::Requester>,
        reply: &[u8],
    );

    /// Somebody waited for a command at a position that the entry does not have: it is no bundle after all.
    fn note_missing(&mut self, _proposal: &Proposal<Self::Requester>) {}

    // Whoever asked.

    /// What was proposed here is applied, and this is what its client is told.
    fn note_answered(&mut self, _proposal: &Proposal<Self::Requester>, _said: AnswerKind) {}

    /// This proposal's index went to another entry, and whoever asked is about to be told.
    fn note_displaced(&mut self, _proposal: &Proposal<Self::Requester>) {}

    /// A request has no answer, for this reason, and whoever asked is about to be told. Not for those that
    /// come back from another replica, nor for followers' that never began, nor for commands that were
    /// applied, unless their answer fits no packet.
    fn note_refused(&mut self, _reason: Reason) {}

    /// Tells somebody here: no follower, and no client of the plane.
    fn answer_here(&mut self, requester: Self::Requester, said: AnswerKind, reply: &[u8]);

    /// What was passed on to another replica has come back, with this answer or without one.
    fn take_returned(&mut self, returned: ForwardResult<Self::Requester>, reply: &[u8]);

    /// How long a leader that another has replaced may take to find out what became of a write.
    fn patience(&self) -> Duration;

    /// Leadership changed hands, or may have. The group knows.
    fn role_changed(&mut self, change: &RoleChange);

    /// Whether followers' commands and plane clients' may go into the log.
    ///
    /// # Errors
    ///
    /// Why not.
    fn admits_writes(&self) -> Result<(), Reason> {
        Ok(())
    }

    /// This command of a follower goes into the log next.
    fn before_write_of_follower(&mut self, _command: &[u8]) {}

    /// Who asked with this ticket for something other than a read has it.
    fn ticket_done(&mut self, ticket: Ticket, result: Result<(), Refusal>);

    /// Who asked for an index with this ticket, and for no read, has it.
    fn index_read(&mut self, _ticket: Ticket, _index: Index) {}

    // Reads.

    /// The round that this read waited for has come back: it may be answered once `index` is applied.
    fn read_granted(&mut self, reader: ReaderOf<Self>, ticket: Ticket, index: Index);

    /// That round was refused.
    fn read_not_granted(&mut self, reader: ReaderOf<Self>, ticket: Ticket, is_busy: bool);

    /// A follower's read was refused its round. It is told.
    fn note_follower_without_round(&mut self) {}

    /// What this read waited for is applied, or there may be time for it now.
    fn read_is_ready(&mut self, reader: ReaderOf<Self>, index: Index);

    /// This read waits for the log's time, which stands still.
    fn read_is_overdue(&mut self, reader: ReaderOf<Self>);

    /// Answers a follower's read, which may be now: what it must show is applied. Or has it wait for time.
    fn answer_follower_read(&mut self, index: Index, read: FollowerRead);
}
