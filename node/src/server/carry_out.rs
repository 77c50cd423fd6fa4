//! Carries out what the replica asks for: persist, send, apply, answer. In the order it asks.
use super::budget::Purpose;
use super::clients::Said;
use super::core::{Origin, Proposal, Reader};
use super::reads;
use super::service::Service;
use super::{Server, clock};
use crate::admin::AdminError;
use quorumwire_control::{Entry, Input, Output, Refusal, RoleChange, SnapshotMeta, Ticket};
use quorumwire_group::{self as group, FollowerRead};
use quorumwire_interfaces::{Index, Reason};
use quorumwire_sessions::{Outcome, SESSION_HEADER_BYTES};

/// Commands applied at once (and those of an entry that it began), and their bytes, so that heartbeats and
/// clients are not kept waiting by a long backlog. How long they may take together is the budget's business.
const APPLY_COMMANDS_PER_TURN: usize = 4096;
/// See [`APPLY_COMMANDS_PER_TURN`].
const APPLY_BYTES_PER_TURN: usize = 4 << 20;

impl<S: Service> Server<S> {
    /// Has the replica say what it wants now, and does it, until it wants nothing more.
    pub fn carry_out_all(&mut self) -> anyhow::Result<()> {
        self.core.group.wants_flush = false;
        self.carry_out_effects(); // of what clients have asked for since
        self.core.group.flush();
        while !self.core.group.outputs.is_empty() {
            let mut outputs = std::mem::take(&mut self.carrying);
            std::mem::swap(&mut outputs, &mut self.core.group.outputs);
            for output in outputs.drain(..) {
                self.carry_out(output)?;
                self.carry_out_effects();
            }
            self.carrying = outputs;
            self.core.group.flush();
        }
        Ok(())
    }

    fn carry_out(&mut self, output: Output) -> anyhow::Result<()> {
        match output {
            Output::Persist {
                ticket,
                hard_state,
                entries,
            } => {
                if let Some(done) = self.core.journal.persist(ticket, hard_state, &entries)? {
                    self.core.group.step(Input::Persisted(done));
                }
            }
            Output::Send { to, message } => self.core.say(to, &message),
            Output::Committed(upto) => {
                self.core.group.committed = self.core.group.committed.max(upto);
                self.apply_some();
            }
            Output::Read(ticket, index) => self.grant_read(ticket, index),
            Output::Done(ticket) => self.answer_admin(ticket, Ok(())),
            Output::Refused(ticket, refusal) => self.refused(ticket, refusal),
            Output::RoleChanged(change) => self.role_changed(change),
            Output::Truncated(_) => {} // what becomes of them shows when their index is applied
            // Each group has a lineage of its own; what replicas say when they connect is the first one's.
            Output::OtherLineage { .. } if self.at_hand > 0 => {}
            Output::OtherLineage { from, lineage } => {
                let ours = self.core.group.replica.lineage_in_log();
                self.links.note_other_lineage(from, ours, lineage);
            }
            Output::MembershipChanged(membership) => self.membership_changed(&membership)?,
            Output::ReadSnapshot {
                to,
                last_index,
                offset,
                bytes_max,
            } => {
                self.upkeep
                    .snapshots
                    .read(to, last_index, offset, bytes_max);
            }
            Output::StoreSnapshotChunk {
                last_index,
                offset,
                bytes,
            } => {
                self.upkeep.snapshots.store_chunk(last_index, offset, bytes);
            }
            Output::InstallSnapshot {
                last_index,
                last_term,
            } => {
                let lineage = self.core.group.replica.lineage();
                self.upkeep
                    .snapshots
                    .install((last_index, last_term), lineage);
            }
            Output::TakeSnapshot => self.take_snapshot(),
            Output::Engage(engage) => self.core.engage_plane(&engage),
            Output::Disengage(reason) => self.core.disengage_plane(reason),
            Output::PlaneHeartbeat { round } => {
                let group = &mut self.core.group;
                let is_awaited = group.reads.await_round();
                group.plane_does(|plane| plane.heartbeat(round, is_awaited));
                self.core.tell_plane_error();
            }
            Output::PlanePersisted(upto) => {
                self.core
                    .group
                    .plane_does(|plane| plane.set_persisted(upto));
                self.core.tell_plane_error();
            }
        }
        Ok(())
    }

    /// Applies committed entries, as many as a turn allows.
    pub fn apply_some(&mut self) {
        let first = self.core.group.applied.next();
        let last = Index(
            self.core
                .group
                .committed
                .0
                .min(self.core.group.applied.0 + APPLY_COMMANDS_PER_TURN as u64),
        );
        if last < first || !self.budget.may_go_on(Purpose::Applying) {
            return; // the next turn goes on
        }
        self.core.group.now = clock::now();
        self.budget
            .begin(self.core.group.now, self.core.work_done());
        let mut batch = std::mem::take(&mut self.applying);
        let mut bytes = 0;
        for entry in self.core.group.replica.entries(first, last) {
            if bytes > APPLY_BYTES_PER_TURN {
                break;
            }
            bytes += entry.record().len();
            batch.push(entry.clone());
        }
        let mut commands = 0;
        for entry in batch.drain(..) {
            let has_time = self.budget.may_go_on(Purpose::Applying);
            if commands >= APPLY_COMMANDS_PER_TURN || !has_time {
                break; // what is left of them is taken again
            }
            if S::puts_off(self, &entry) {
                break;
            }
            let before = self.core.counted_by_application();
            commands += self.apply_entry(&entry);
            self.core.count_unless_counted(before);
            self.core.counters.entries_applied += 1;
            (self.budget).worked(Purpose::Applying, self.core.work_done(), clock::now);
        }
        self.applying = batch;
        self.core.group.now = clock::now();
        let (now, work_done) = (self.core.group.now, self.core.work_done());
        self.budget.took(Purpose::Applying, now, work_done);
        self.core
            .group
            .step(Input::Applied(self.core.group.applied));
        self.serve_waiting_reads();
    }

    /// Applies an entry and answers who waits for it; how many commands it held.
    fn apply_entry(&mut self, entry: &Entry) -> usize {
        let orphans = self.core.group.proposals.orphan_count(); // each is looked at
        self.core.add_work(orphans);
        let mut applying = self.core.group.begin_entry(entry);
        for proposal in self.core.group.take_unknown() {
            self.fail_proposal(&proposal);
        }
        for proposal in self.core.group.take_displaced() {
            self.answer_proposal(&proposal, None);
        }
        loop {
            if let Some(Proposal {
                origin: Origin::Client(id, slot),
                ..
            }) = self.core.group.next_waits(&applying).copied()
            {
                self.answer_reads_before(id, slot);
            }
            self.reply.clear();
            let group = &mut self.core.group;
            let Some(applied) = group.apply_next(&mut applying, &mut self.reply) else {
                break;
            };
            S::applied(self);
            self.count_outcome(applied.outcome);
            if let Some(proposal) = applied.proposal {
                let at = (entry.index, applied.command.payload());
                self.answer_applied(&proposal, at, applied.outcome);
            }
        }
        let commands = usize::from(applying.commands());
        for proposal in self.core.group.end_entry() {
            self.fail_proposal(&proposal); // the entry is no bundle after all
        }
        commands
    }

    /// Answers a proposal of ours that is applied, the command of `payload`. Each piece of a plane client's
    /// command was a request of its own: those that do not complete it are acknowledged only, in whatever
    /// order they came.
    fn answer_applied(
        &mut self,
        proposal: &Proposal,
        (index, payload): (Index, &[u8]),
        outcome: Outcome,
    ) {
        match to_say(proposal.origin, outcome) {
            ToSay::PieceKept => {
                let payload = payload.get(SESSION_HEADER_BYTES..);
                if let Some(number) = payload.and_then(|rest| rest.first_chunk()) {
                    self.core.acknowledge_piece(proposal.origin, index, *number);
                }
            }
            ToSay::Dropped => {
                self.core.counters.commands_dropped += 1;
                self.answer_proposal(proposal, Some(Said::Refused(Reason::PiecesGone)));
            }
            ToSay::Reply(said) => self.answer_proposal(proposal, Some(said)),
        }
    }

    /// Counts what became of a command with a session or in fragments.
    fn count_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Applied | Outcome::Incomplete | Outcome::AnswerTooLong => {}
            Outcome::Repeated => self.core.counters.commands_repeated += 1,
            Outcome::Refused(_) => self.core.counters.session_refusals += 1,
        }
    }

    /// Answers with `reply` and what that is; `None`: its place in the log went to another entry.
    fn answer_proposal(&mut self, proposal: &Proposal, said: Option<Said>) {
        if said.is_some() {
            let waited = self.core.group.now.0.saturating_sub(proposal.at.0);
            let waited_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
            self.core.counters.commit.record(waited_us);
        }
        match proposal.origin {
            Origin::Client(id, slot) => {
                let reply = std::mem::take(&mut self.reply);
                if let Some(said) = said {
                    self.complete(id, slot, said, &reply);
                } else {
                    self.answer_not_executed(proposal.origin);
                }
                self.reply = reply;
            }
            Origin::Follower(from) => match said {
                None => self.answer_not_executed(proposal.origin),
                Some(said) => self.core.group.answer_follower(from, said, &self.reply),
            },
            Origin::Plane(..) | Origin::Service(_) | Origin::Admin(_) => {
                let reply = std::mem::take(&mut self.reply);
                match (said, proposal.origin) {
                    (None, origin) => self.answer_not_executed(origin),
                    (Some(said), origin @ Origin::Plane(..)) => {
                        self.core.answer_plane(origin, said, proposal.index, &reply);
                    }
                    (Some(said), origin) => self.complete_as(origin, said, &reply),
                }
                self.reply = reply;
            }
        }
    }

    /// It has no place in the log and will not get one.
    pub fn answer_not_executed(&mut self, origin: Origin) {
        self.refuse_origin(origin, Reason::NotCommitted);
    }

    /// Nobody can tell any more whether this proposal was or will be executed.
    pub fn fail_proposal(&mut self, proposal: &Proposal) {
        self.count_unknown(Reason::OutcomeUnknown);
        self.refuse_origin(proposal.origin, Reason::OutcomeUnknown);
    }

    /// Tells who asked, a client here or the follower that passed it on, why there is no answer.
    pub fn refuse_origin(&mut self, origin: Origin, reason: Reason) {
        match origin {
            Origin::Client(..) | Origin::Plane(..) | Origin::Service(_) | Origin::Admin(_) => {
                self.refuse_here(origin, reason);
            }
            Origin::Follower(from) => self.core.group.refuse_follower(from, reason),
        }
    }

    pub(super) fn serve_waiting_reads(&mut self) {
        for (index, reader) in self.core.group.take_ready() {
            match reader {
                group::Reader::Here(Reader::Client(id)) => self.clients.attend(id),
                group::Reader::Here(Reader::Service(number)) => S::answer_at(self, index, number),
                group::Reader::Follower(read) => self.answer_follower_at(index, read),
            }
        }
    }

    /// The log's time stands still: reads that wait for it are refused, by themselves.
    pub fn refuse_overdue_reads(&mut self) {
        for reader in self.core.group.take_overdue() {
            match reader {
                Reader::Client(id) => {
                    if let Some(connection) = self.clients.get(id) {
                        connection.awaited = Index(0); // if it is to wait all the same, it says so anew
                    }
                    self.clients.attend(id); // its gate says so
                }
                Reader::Service(number) => {
                    self.refuse_here(Origin::Service(number), Reason::Overdue);
                }
            }
        }
    }

    fn answer_follower_at(&mut self, index: Index, read: FollowerRead) {
        let budget = &mut self.budget;
        self.core.answer_follower_at(budget, index, read);
    }

    fn grant_read(&mut self, ticket: Ticket, index: Index) {
        let Some((index, reader)) = self.core.group.take_granted(ticket, index) else {
            self.answer_read_index(ticket, index);
            return;
        };
        match reader {
            group::Reader::Here(Reader::Client(id)) => {
                if let Some(connection) = self.clients.get(id) {
                    reads::grant(connection, ticket, index);
                }
                self.clients.attend(id);
            }
            group::Reader::Here(Reader::Service(number)) => S::answer_at(self, index, number),
            group::Reader::Follower(read) => self.answer_follower_at(index, read),
        }
    }

    fn refused(&mut self, ticket: Ticket, refusal: Refusal) {
        let is_busy = matches!(refusal, Refusal::Busy { .. });
        match self.core.group.take_ungranted(ticket, &refusal) {
            Some(Some(Reader::Client(id))) => {
                if let Some(connection) = self.clients.get(id) {
                    reads::ask_again(connection, ticket);
                }
                if !is_busy {
                    self.front.attend_later.push(id);
                }
            }
            Some(Some(Reader::Service(number))) => {
                let why = if is_busy {
                    Reason::Busy
                } else {
                    self.core.why_stalled()
                };
                self.refuse_here(Origin::Service(number), why);
            }
            Some(None) => {} // a follower's
            None => self.answer_admin(ticket, Err(AdminError::Refused(refusal))),
        }
    }

    fn role_changed(&mut self, change: RoleChange) {
        tracing::info!(
            group = self.core.group.id.0,
            role = ?change.role,
            term = change.term.0,
            leader = change.leader.map(|leader| leader.0),
            "role changed"
        );
        let patience = self.options.election_timeout;
        let returned = self.core.group.role_changed(&change, patience);
        self.take_returned(returned, b"");
        self.clients.attend_all();
    }

    /// Takes a snapshot of what is applied, unless one is being taken.
    pub fn take_snapshot(&mut self) {
        if self.upkeep.snapshots.is_taking() || self.core.group.applied == Index(0) {
            return;
        }
        let last_index = self.core.group.applied;
        let Some(last_term) = self.core.group.replica.term_at(last_index) else {
            return; // exactly what the newest snapshot has
        };
        let (membership_index, membership) = self.core.group.replica.membership_at(last_index);
        let meta = SnapshotMeta {
            last_index,
            last_term,
            membership: membership.clone(),
            membership_index,
            log_time: self.core.group.log_time,
        };
        self.core.group.bytes_since_snapshot = 0;
        if let Err(busy) = self
            .upkeep
            .snapshots
            .take(meta, self.core.group.store.freeze())
        {
            self.snapshot_taken(Err(busy)); // it is tried again
        }
    }
}

/// What the one who asked is told of an entry of his that is applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ToSay {
    /// What the state machine, or the table of sessions, said.
    Reply(Said),
    /// That the piece is in the log, and the command is not complete.
    PieceKept,
    /// That the command will not run: its pieces before this one, the last, are gone.
    Dropped,
}

/// A client of the plane asks with each piece and sends again what was dropped. A server asks with the last
/// piece only, behind all others.
fn to_say(origin: Origin, outcome: Outcome) -> ToSay {
    let of_plane = match origin {
        Origin::Plane(..) => true,
        Origin::Client(..) | Origin::Follower(_) | Origin::Service(_) | Origin::Admin(_) => false,
    };
    match outcome {
        Outcome::Incomplete if of_plane => ToSay::PieceKept,
        Outcome::Incomplete => ToSay::Dropped,
        Outcome::Applied => ToSay::Reply(Said::Answer),
        Outcome::Repeated => ToSay::Reply(Said::Repeated),
        Outcome::AnswerTooLong => ToSay::Reply(Said::Refused(Reason::AnswerTooLong)),
        Outcome::Refused(refusal) => ToSay::Reply(Said::Refused(refusal.reason())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::clients::{ConnectionId, ReadState};
    use crate::server::start::tests::Alone;
    use quorumwire_control::Peer;
    use quorumwire_group::PlaneClient;
    use quorumwire_group::{Follower, RequestId};
    use quorumwire_sessions::Refusal as SessionRefusal;
    use std::io::Read as _;
    use std::net::SocketAddr;

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
            connection.push_read(b"get a", 1, ReadState::Asked(ticket));
            server.refused(ticket, refusal);
            alone.until("it is answered", |server| server.clients.are_idle());
            let mut answer = [0; 5];
            socket.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"END\r\n");
        }
    }

    /// An empty answer would leave a client of a text protocol waiting.
    #[test]
    fn a_command_whose_pieces_were_dropped_is_not_answered_with_nothing() {
        let plane = Origin::Plane(PlaneClient {
            from: SocketAddr::from(([192, 0, 2, 1], 1)),
            session: 7,
            sequence: 1,
        });
        let servers = [
            Origin::Client(ConnectionId::default(), 1),
            Origin::Follower(Follower {
                peer: Peer::default(),
                id: RequestId::default(),
            }),
            Origin::Service(1),
        ];
        let refused = Outcome::Refused(SessionRefusal::TooOld);
        let too_old = ToSay::Reply(Said::Refused(Reason::SequenceTooOld));
        for origin in servers {
            assert_eq!(to_say(origin, Outcome::Incomplete), ToSay::Dropped);
            let reply = |outcome| to_say(origin, outcome);
            assert_eq!(reply(Outcome::Applied), ToSay::Reply(Said::Answer));
            assert_eq!(reply(Outcome::Repeated), ToSay::Reply(Said::Repeated));
            assert_eq!(reply(refused), too_old);
        }
        assert_eq!(to_say(plane, Outcome::Incomplete), ToSay::PieceKept);
        let repeated = ToSay::Reply(Said::Repeated);
        assert_eq!(to_say(plane, Outcome::Repeated), repeated);
        assert_eq!(to_say(plane, refused), too_old);
    }
}
