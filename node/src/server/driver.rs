//! The server as what drives a group: how it does what the group wants done, and what it does besides.
use super::budget::Purpose;
use super::clients::AnswerKind;
use super::origin::{Group, Origin, Proposal, Reader};
use super::service::Service;
use super::{Server, answers, clock};
use crate::admin::AdminError;
use bytes::Bytes;
use quorumwire_control::{
    Engage, Entry, HardState, LeaveReason, Message, Output, Peer, Refusal, RoleChange, Ticket,
};
use quorumwire_group::{
    self as group, AppliedCommand, Driver, FollowerRead, ForwardResult, ReadState,
};
use quorumwire_interfaces::{DataPlane, Index, Lineage, Reason, ReplicaId, Term};
use quorumwire_sessions::Outcome;
use quorumwire_wire::Membership;
use std::time::Duration;

impl<S: Service> Driver for Server<S> {
    type Application = S::Application;
    type Requester = Origin;
    type Plane = dyn DataPlane;
    type Error = anyhow::Error;

    fn group(&mut self) -> Option<&mut Group<S::Application>> {
        Some(&mut self.core.group)
    }

    fn carry_out(&mut self, output: Output) -> anyhow::Result<()> {
        group::carry_out(self, output)
    }

    fn carry_out_effects(&mut self) {
        self.send_effects();
    }

    fn persist(
        &mut self,
        ticket: Ticket,
        hard_state: Option<HardState>,
        entries: &[Entry],
    ) -> anyhow::Result<Option<Ticket>> {
        self.core.journal.persist(ticket, hard_state, entries)
    }

    fn say(&mut self, to: Peer, message: Message) {
        self.core.say(to, &message);
    }

    fn other_lineage(&mut self, from: Peer, lineage: Lineage) {
        // Each group has a lineage of its own; what replicas say when they connect is the first one's.
        if self.at_hand == 0 {
            let ours = self.core.group.replica.lineage_in_log();
            self.links.note_other_lineage(from, ours, lineage);
        }
    }

    fn membership_changed(&mut self, membership: &Membership) -> anyhow::Result<()> {
        self.follow_membership(membership)
    }

    fn take_snapshot(&mut self) {
        if !self.core.group.store.may_freeze() {
            S::makes_state(self); // a replica waits for it
        }
        self.take_snapshot_of_applied();
    }

    fn read_snapshot(&mut self, to: ReplicaId, last_index: Index, offset: u64, bytes_max: usize) {
        let snapshots = &mut self.upkeep.snapshots;
        snapshots.read(to, last_index, offset, bytes_max);
    }

    fn store_snapshot_chunk(&mut self, last_index: Index, offset: u64, bytes: Bytes) {
        self.upkeep.snapshots.store_chunk(last_index, offset, bytes);
    }

    fn install_snapshot(&mut self, last_index: Index, last_term: Term) {
        let lineage = self.core.group.replica.lineage();
        let snapshots = &mut self.upkeep.snapshots;
        snapshots.install((last_index, last_term), lineage);
    }

    fn engage(&mut self, engage: &Engage) {
        self.core.engage_plane(engage);
    }

    fn disengage(&mut self, reason: LeaveReason) {
        self.core.disengage_plane(reason);
    }

    fn plane_was_used(&mut self) {
        self.core.tell_plane_error();
    }

    fn plane_was_polled(&mut self) {
        if let Some((plane, hosting)) = self.core.hosted() {
            hosting.tell_fault(plane);
        }
    }

    fn plane_was_emptied(&mut self, _: bool) {
        if self.core.group.replica.fast_term().is_some() {
            self.core.saw_plane();
        }
        // One that reads an old log for the first time may not have come to the lineage yet.
        let was_listed = self.core.group.replica.was_listed();
        if let Some((plane, hosting)) = self.core.hosted() {
            hosting.tell_lineage(plane, was_listed);
        }
    }

    fn plane_was_released(&mut self) {
        S::lend_to_plane(&mut self.core);
    }

    fn words(&self, reason: Reason) -> Vec<u8> {
        answers::text(reason, b"")
    }

    fn goes_on(&mut self) {
        S::go_on(self);
    }

    fn room_since_fast_term(&mut self) {
        self.clients.attend_all();
    }

    fn note_transfer_for_room(&mut self) {
        tracing::warn!("the disk takes no writes: transferring leadership");
    }

    fn begins_to_apply(&mut self) -> bool {
        if !self.budget.may_go_on(Purpose::Applying) {
            return false;
        }
        self.core.group.now = clock::now();
        self.budget
            .begin(self.core.group.now, self.core.work_done());
        true
    }

    fn has_time_for(&mut self, entry: &Entry) -> bool {
        self.budget.may_go_on(Purpose::Applying) && !S::puts_off(self, entry)
    }

    fn apply_entry(&mut self, entry: &Entry) -> usize {
        let before = self.core.counted_by_application();
        let orphans = self.core.group.proposals.orphan_count(); // each is looked at
        self.core.add_work(orphans);
        let commands = group::apply_entry(self, entry);
        self.core.count_unless_counted(before);
        self.core.counters.entries_applied += 1;
        (self.budget).worked(Purpose::Applying, self.core.work_done(), clock::now);
        commands
    }

    fn ends_applying(&mut self) {
        self.core.group.now = clock::now();
        let (now, work_done) = (self.core.group.now, self.core.work_done());
        self.budget.took(Purpose::Applying, now, work_done);
    }

    fn answer_reads_before(&mut self, origin: Origin) {
        match origin {
            Origin::Client(id, slot) => self.answer_reads_in_front(id, slot),
            Origin::Follower(_) | Origin::Plane(_) | Origin::Service(_) | Origin::Admin(_) => {}
        }
    }

    fn note_applied(&mut self, _: Index, applied: &AppliedCommand<'_, Origin>, _: &[u8]) {
        S::applied(self);
        match applied.outcome {
            Outcome::Applied | Outcome::Incomplete | Outcome::AnswerTooLong => {}
            Outcome::Repeated => self.core.counters.commands_repeated += 1,
            Outcome::Refused(_) => self.core.counters.session_refusals += 1,
        }
    }

    fn note_answered(&mut self, proposal: &Proposal, said: AnswerKind) {
        let is_dropped = said == AnswerKind::Refused(Reason::PiecesGone);
        self.core.counters.commands_dropped += u64::from(is_dropped);
        let waited = self.core.group.now.0.saturating_sub(proposal.at.0);
        let waited_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.core.counters.commit.record(waited_us);
    }

    fn note_refused(&mut self, reason: Reason) {
        self.count_unknown(reason);
    }

    fn answer_here(&mut self, origin: Origin, said: AnswerKind, reply: &[u8]) {
        match origin {
            Origin::Client(id, slot_number) => self.complete(id, slot_number, said, reply),
            Origin::Service(number) => S::complete(self, number, said, reply),
            Origin::Admin(ticket) => self.complete_admin(ticket, said, reply),
            Origin::Plane(_) | Origin::Follower(_) => {} // not here
        }
    }

    fn take_returned(&mut self, returned: ForwardResult<Origin>, reply: &[u8]) {
        match returned {
            ForwardResult::Answered(forward, AnswerKind::Refused(Reason::AnswerTooLong))
                if forward.is_read =>
            {
                self.take_too_long(forward.origin);
            }
            ForwardResult::Answered(forward, AnswerKind::Refused(reason)) => {
                if !forward.is_read {
                    self.count_unknown(reason);
                }
                self.refuse_here(forward.origin, reason);
            }
            ForwardResult::Answered(forward, said) => {
                self.answer_here(forward.origin, said, reply);
            }
            ForwardResult::Again {
                forward,
                number,
                at_once,
            } => {
                self.send_read_again(number, &forward);
                if at_once {
                    self.attend_to(&forward);
                }
            }
        }
    }

    fn patience(&self) -> Duration {
        self.options.election_timeout
    }

    fn role_changed(&mut self, change: &RoleChange) {
        tracing::info!(
            group = self.core.group.id.0,
            role = ?change.role,
            term = change.term.0,
            leader = change.leader.map(|leader| leader.0),
            "role changed"
        );
        self.clients.attend_all();
    }

    fn admits_writes(&self) -> Result<(), Reason> {
        if self.core.draining {
            return Err(Reason::Stopping);
        }
        Ok(())
    }

    fn before_write_of_follower(&mut self, command: &[u8]) {
        S::before_write(&mut self.core, command);
    }

    fn ticket_done(&mut self, ticket: Ticket, result: Result<(), Refusal>) {
        self.answer_admin(ticket, result.map_err(AdminError::Refused));
    }

    fn index_read(&mut self, ticket: Ticket, index: Index) {
        self.answer_read_index(ticket, index);
    }

    fn read_granted(&mut self, reader: Reader, ticket: Ticket, index: Index) {
        match reader {
            Reader::Client(id) => {
                if let Some(connection) = self.clients.get(id) {
                    let granted = ReadState::Granted(index);
                    (connection.slots).replace_states(ReadState::Round(ticket), granted);
                }
                self.clients.attend(id);
            }
            Reader::Service(number) => S::answer_at(self, index, number),
        }
    }

    fn read_not_granted(&mut self, reader: Reader, ticket: Ticket, is_busy: bool) {
        match reader {
            Reader::Client(id) => {
                if let Some(connection) = self.clients.get(id) {
                    (connection.slots).replace_states(ReadState::Round(ticket), ReadState::ANEW);
                }
                if !is_busy {
                    self.admission.attend_later.push(id);
                }
            }
            Reader::Service(number) => {
                let why = if is_busy {
                    Reason::Busy
                } else {
                    self.core.why_stalled()
                };
                self.refuse_here(Origin::Service(number), why);
            }
        }
    }

    fn read_is_ready(&mut self, reader: Reader, index: Index) {
        match reader {
            Reader::Client(id) => self.clients.attend(id),
            Reader::Service(number) => S::answer_at(self, index, number),
        }
    }

    fn read_is_overdue(&mut self, reader: Reader) {
        match reader {
            Reader::Client(id) => {
                if let Some(connection) = self.clients.get(id) {
                    connection.slots.wait_anew(); // if it is to wait all the same, it says so anew
                }
                self.clients.attend(id); // its gate says so
            }
            Reader::Service(number) => {
                self.refuse_here(Origin::Service(number), Reason::Overdue);
            }
        }
    }

    fn answer_follower_read(&mut self, index: Index, read: FollowerRead) {
        let Self { core, budget, .. } = self;
        core.answer_follower_if_time(budget, index, read);
    }
}

impl<S: Service> Server<S> {
    /// Takes a snapshot of what is applied, unless one is being taken.
    fn take_snapshot_of_applied(&mut self) {
        if self.upkeep.snapshots.is_taking() {
            return;
        }
        let Some(meta) = self.core.group.begin_snapshot() else {
            return;
        };
        if let Err(busy) = self
            .upkeep
            .snapshots
            .take(meta, self.core.group.store.freeze())
        {
            self.snapshot_taken(Err(busy)); // it is tried again
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::clients::ReadState;
    use crate::server::connection_id::ConnectionId;
    use crate::server::start::tests::Alone;
    use std::io::Read as _;

    /// Otherwise each turn would be followed by another at once, for nothing.
    #[test]
    fn a_late_read_that_nobody_wants_any_more_keeps_no_turn_busy() {
        let mut alone = Alone::leading();
        let server = &mut alone.server;
        let reader = group::Reader::Here(Reader::Client(ConnectionId::default()));
        server.core.group.wait_for_time(Index(0), reader);
        assert!(server.core.is_busy());
        server.core.group.reads.keep(|_| false);
        group::serve_ready_reads(server);
        assert!(!server.core.is_busy());
    }

    /// Its client asked once, and waits.
    #[test]
    fn a_read_whose_round_was_refused_is_asked_for_anew() {
        let limit = "waiting_requests_max";
        for refusal in [Refusal::NotLeader { leader: None }, Refusal::Busy { limit }] {
            let mut alone = Alone::leading();
            let (mut socket, id) = alone.connect();
            let server = &mut alone.server;
            let reader = group::Reader::Here(Reader::Client(id));
            let ticket = server.core.group.ask_round(Index(0), reader);
            let connection = server.clients.get(id).unwrap();
            connection.push_read(b"get a", 1, ReadState::Round(ticket));
            group::carry_out(server, Output::Refused(ticket, refusal)).unwrap();
            alone.until("it is answered", |server| server.clients.are_idle());
            let mut answer = [0; 5];
            socket.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"END\r\n");
        }
    }
}
