//! The leader's state, how leading begins, goes on and ends. Sending and counting is in
//! `replication.rs`, leases and reads in `reads.rs`.
use crate::engagement::Phase;
use crate::members::{majority_of, peer_of};
use crate::mutants::mutant;
use crate::progress::{Part, Progress, Rounds, Sending};
use crate::reads::WaitingRead;
use crate::{
    Body, FollowerStatus, LeaveReason, MemberChange, Now, Output, Peer, PendingTransfer, Refusal,
    Replica, Role, Ticket,
};
use quorumwire_interfaces::{Index, Term};
use quorumwire_wire::{MemberRole, Membership, RecordKind};
use std::collections::VecDeque;

/// A member counts as close behind if it holds what was committed this part of an election timeout ago: in
/// hundredths. Heartbeats are no measure of it: they may come more often than a disk syncs.
const CLOSE_PERCENT: u32 = 10;

/// What only a leader has.
#[derive(Debug)]
pub(crate) struct Leading {
    /// Once this is committed, it knows all that is: the no-op its term began with, or the last entry
    /// before a fast term.
    pub(crate) first_index: Index,
    pub(crate) progress: Vec<Progress>,
    pub(crate) rounds: Rounds,
    /// The lease holds before this moment; `None`: there is none.
    pub(crate) lease_until: Option<Now>,
    pub(crate) reads: VecDeque<WaitingRead>,
    /// The last round begun for the sake of reads; the next one waits for its answers.
    pub(crate) read_round: u64,
    /// The last round said through the plane.
    pub(crate) plane_round: u64,
    pub(crate) heartbeat_at: Now,
    /// A heartbeat goes out with the next flush.
    pub(crate) heartbeat_due: bool,
    pub(crate) uncommitted_bytes: usize,
    /// The membership request being carried out, and the entry that does it.
    pub(crate) change: Option<(Ticket, Index)>,
    pub(crate) transfer: Option<Transfer>,
    /// Once a voter was told to stand for election it may win at any later time: no lease any more
    /// in this term.
    pub(crate) transfer_now_sent: bool,
    /// What was committed a while ago: who holds that is close behind.
    committed_before: Index,
    /// What was committed a shorter while ago, and when that was.
    committed_since: (Index, Now),
}

/// Leadership being transferred.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Who wants to know; `None` if the leader itself does, because it was removed.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) target: Peer,
    pub(crate) deadline: Now,
    /// The target has been told in this heartbeat interval.
    pub(crate) told: bool,
}

impl Leading {
    pub(crate) fn next_wake(&self) -> Now {
        match &self.transfer {
            Some(transfer) => self.heartbeat_at.min(transfer.deadline),
            None => self.heartbeat_at,
        }
    }

    pub(crate) fn lease_usable(&self) -> bool {
        let is_transferring = self.transfer.is_some() || self.transfer_now_sent;
        !is_transferring || mutant("lease-kept-in-transfer")
    }

    pub(crate) fn progress_of(&mut self, peer: Peer) -> Option<&mut Progress> {
        self.progress.iter_mut().find(|p| p.peer == peer)
    }

    /// A connection stands anew: what was on its way is lost.
    pub(crate) fn peer_up(&mut self, peer: Peer) {
        if let Some(progress) = self.progress_of(peer) {
            match progress.state {
                Sending::Probe { .. } | Sending::Replicate => {
                    progress.probe_from(progress.next_index);
                }
                Sending::Snapshot(_) => {}
            }
            self.heartbeat_due = true;
        }
    }
}

impl Replica {
    /// The election is won: leads, and begins with an entry of its own, because only entries of its
    /// own term tell a leader what is committed (Raft section 5.4.2).
    pub(crate) fn begin_to_lead(&mut self) {
        self.take_the_lead(self.log.last_index().next());
        if let Some(leading) = &mut self.leading {
            // The no-op goes to everyone and is the first sign of life.
            leading.heartbeat_due = false;
        }
        self.note_no_fast_term();
        self.build(RecordKind::NoOp, |_| {})
            .expect("an empty payload fits");
        self.seal();
    }

    /// Leads its term. Once `first_index` is committed, it knows all that is.
    pub(crate) fn take_the_lead(&mut self, first_index: Index) {
        assert!(
            self.promises_are_durable(),
            "leading before the own vote is durable"
        );
        self.role = Role::Leader;
        self.leader = Some(self.config.me);
        let uncommitted = self.commit_index.next()..=self.log.last_index();
        let uncommitted_bytes = self
            .log
            .range(*uncommitted.start(), *uncommitted.end())
            .map(|entry| entry.record().len())
            .sum();
        self.leading = Some(Box::new(Leading {
            first_index,
            progress: Vec::new(),
            rounds: Rounds::default(),
            lease_until: None,
            reads: VecDeque::new(),
            read_round: 0,
            plane_round: 0,
            heartbeat_at: Now(self.now.0 + self.config.heartbeat_interval),
            heartbeat_due: false,
            uncommitted_bytes,
            change: None,
            transfer: None,
            transfer_now_sent: false,
            // What was committed before may not be known right after a restart.
            committed_before: self.log.last_index(),
            committed_since: (self.log.last_index(), self.now),
        }));
        self.follow_members();
    }

    /// Leading is over. Entries that neither disk nor anyone else has seen are dropped: they surely
    /// never commit. What others wait for is refused.
    pub(crate) fn stop_leading(&mut self, leading: Leading, outputs: &mut Vec<Output>) {
        self.seal();
        self.leader = None;
        let unseen = self.persistence.given_index.next();
        if unseen <= self.log.last_index() {
            self.truncate_from(unseen, outputs);
        }
        let refusal = Refusal::NotLeader { leader: None };
        for read in leading.reads {
            outputs.push(Output::Refused(read.ticket, refusal.clone()));
        }
        if let Some((ticket, _)) = leading.change {
            outputs.push(Output::Refused(ticket, Refusal::TimedOut));
        }
        if let Some(transfer) = leading.transfer
            && let Some(ticket) = transfer.ticket
        {
            self.pending_transfer = Some(PendingTransfer {
                ticket,
                deadline: transfer.deadline,
            });
        }
        self.put_off_election();
    }

    /// The passing of time, for a leader: heartbeats, and whether a quorum is still there.
    pub(crate) fn lead_on(&mut self, outputs: &mut Vec<Output>) {
        let now = self.now;
        let Some(leading) = &mut self.leading else {
            return;
        };
        if let Some(transfer) = leading.transfer.take_if(|t| now >= t.deadline)
            && let Some(ticket) = transfer.ticket
        {
            outputs.push(Output::Refused(ticket, Refusal::TimedOut));
        }
        if now < leading.heartbeat_at {
            return;
        }
        leading.heartbeat_at = Now(now.0 + self.config.heartbeat_interval);
        leading.heartbeat_due = true;
        if let Some(transfer) = &mut leading.transfer {
            transfer.told = false;
        }
        if self.leads_fast() {
            self.watch_engaged_members(outputs);
        } else if !self.hears_quorum() && !mutant("no-check-quorum") {
            self.counters.stepped_down_without_quorum += 1;
            self.step_down(outputs);
            return;
        }
        self.promote_who_caught_up(outputs);
        self.give_lineage(outputs);
        self.try_fast_term();
        self.note_what_is_committed();
    }

    /// With a heartbeat: who holds what was committed a while before it is close behind.
    fn note_what_is_committed(&mut self) {
        let while_lasts = self.config.election_timeout * CLOSE_PERCENT / 100;
        let (now, commit_index) = (self.now, self.commit_index);
        if let Some(leading) = &mut self.leading
            && now.0 >= leading.committed_since.1.0 + while_lasts
        {
            leading.committed_before = leading.committed_since.0;
            leading.committed_since = (commit_index.max(leading.committed_before), now);
        }
    }

    /// Whether a majority was heard within the election timeout (check-quorum).
    pub(crate) fn hears_quorum(&self) -> bool {
        self.is_quorum_of(self.members.current(), |peer| self.is_active(peer))
    }

    /// Whether it would still be there among these members, for each of whom the log would do.
    pub(crate) fn is_followed_by_quorum_of(&self, membership: &Membership) -> bool {
        self.is_quorum_of(membership, |peer| {
            self.is_active(peer) && self.is_served_by_log(peer)
        })
    }

    /// Whether a majority of these members is either this replica or counts.
    fn is_quorum_of(&self, membership: &Membership, counts: impl Fn(Peer) -> bool) -> bool {
        let counted = membership.voters().map(peer_of);
        let counted = counted.filter(|&peer| peer == self.config.me || counts(peer));
        counted.count() >= majority_of(membership.voters().count())
    }

    /// Whether the log holds all that it lacks, as far as is known. If not, it needs a snapshot. That may be
    /// unreadable, and who serves a program has no other without a majority.
    fn is_served_by_log(&self, peer: Peer) -> bool {
        let base_index = self.log.base_index();
        let mut progress = self.leading.iter().flat_map(|it| &it.progress);
        progress.find(|p| p.peer == peer).is_some_and(|p| {
            let forgotten = p.match_index != Index(0) && p.match_index < base_index;
            !forgotten && !matches!(p.state, Sending::Snapshot(_))
        })
    }

    pub(crate) fn is_active(&self, peer: Peer) -> bool {
        let progress = self
            .leading
            .as_ref()
            .and_then(|leading| leading.progress.iter().find(|p| p.peer == peer));
        progress.is_some_and(|p| self.now.0 < p.heard_at.0 + self.config.election_timeout)
    }

    /// A turn of leading: everything that has gathered leaves.
    pub(crate) fn lead(&mut self, outputs: &mut Vec<Output>) {
        match self.plane.phase() {
            Some(Phase::Stopping) => return,
            Some(Phase::Starting | Phase::Running) => {}
            None => self.advance_commit(outputs),
        }
        self.serve_reads(outputs);
        self.begin_round_if_due();
        self.serve_reads(outputs);
        self.send_appends(outputs);
        let given = self.persistence.given_index;
        let news: Vec<_> = self
            .log
            .range(given.next(), self.log.last_index())
            .cloned()
            .collect();
        let hard_state = self.hard_state();
        self.persistence.give(hard_state, news, outputs);
        self.go_on_with_transfer(outputs);
        self.leave_if_removed(outputs);
        self.engage_if_quiet(outputs);
    }

    /// Whether an entry of its own term is committed: only then it knows all that is.
    pub(crate) fn committed_in_own_term(&self) -> bool {
        self.leading
            .as_ref()
            .is_some_and(|leading| self.commit_index >= leading.first_index)
    }

    pub(crate) fn may_propose(&self) -> Result<(), Refusal> {
        self.may_append_membership()?;
        let limit_bytes = self.config.uncommitted_bytes_max;
        let uncommitted_bytes = self.leading.as_ref().map_or(0, |l| l.uncommitted_bytes);
        if uncommitted_bytes >= limit_bytes || self.persistence.waiting_bytes() >= limit_bytes {
            return Err(Refusal::Busy {
                limit: "uncommitted_bytes_max",
            });
        }
        Ok(())
    }

    /// Whether a membership may be appended. Not held up by what waits to be committed: where all must
    /// agree, nothing commits until the member that is gone is replaced or removed.
    pub(crate) fn may_append_membership(&self) -> Result<(), Refusal> {
        let Some(leading) = &self.leading else {
            let leader = self.leader();
            return Err(Refusal::NotLeader { leader });
        };
        if leading.transfer.is_some() {
            return Err(Refusal::Transferring);
        }
        self.may_propose_beside_plane()
    }

    /// Appends a membership, which takes effect at once.
    pub(crate) fn append_membership(
        &mut self,
        mut membership: Membership,
        outputs: &mut Vec<Output>,
    ) -> Index {
        membership.lineage = membership.lineage.or(self.committed_lineage());
        let payload = membership.encode();
        let (index, _) = self
            .build(RecordKind::Membership, |block| {
                block.extend_from_slice(&payload);
            })
            .expect("a membership within its limits fits a record");
        self.seal();
        self.members.push(index, membership);
        self.members_changed(outputs);
        index
    }

    /// Whether a membership change may begin: one at a time, and only after the first commit of the
    /// term (Raft thesis section 4.1, and the bug note of July 2015 on it). A majority settles both,
    /// even while all must agree on everything else: otherwise a new leader could never remove, or
    /// do without, a voter that is gone for good.
    pub(crate) fn may_change_members(&self) -> bool {
        let Some(leading) = &self.leading else {
            return false;
        };
        let settled = self.settled_index();
        (self.members.index() <= settled || mutant("overlapping-changes"))
            && (leading.first_index <= settled || mutant("change-before-own-commit"))
    }

    /// Makes the followers' list fit the members.
    pub(crate) fn follow_members(&mut self) {
        let me = self.config.me;
        let now = self.now;
        let Some(leading) = &mut self.leading else {
            return;
        };
        let membership = self.members.current();
        // A life that gave way to a later one is gone for good; one that was removed is told so.
        leading.progress.retain(|progress| {
            let member = membership.member(progress.peer.id);
            member.is_none_or(|member| peer_of(member) == progress.peer)
        });
        for progress in &mut leading.progress {
            let member = membership
                .members
                .iter()
                .find(|member| peer_of(member) == progress.peer);
            progress.departing = member.is_none();
            progress.voter = member.is_some_and(|member| member.role == MemberRole::Voter);
        }
        for member in &membership.members {
            let peer = peer_of(member);
            if peer != me && leading.progress_of(peer).is_none() {
                let voter = member.role == MemberRole::Voter;
                let next_index = self.log.last_index().next();
                leading
                    .progress
                    .push(Progress::new(peer, voter, next_index, now));
            }
        }
        leading.heartbeat_due = true;
        self.renew_lease();
    }

    /// A joining member that is close behind becomes a voter.
    fn promote_who_caught_up(&mut self, outputs: &mut Vec<Output>) {
        if !self.may_change_members() {
            return;
        }
        let membership = self.members.current();
        let ready = membership.members.iter().find(|member| {
            member.role == MemberRole::Joining && self.has_caught_up(peer_of(member))
        });
        let Some(id) = ready.map(|member| member.id) else {
            return;
        };
        let change = MemberChange::Promote(id);
        if let Ok(next) = crate::members::changed(membership, &change, |_| None) {
            if self.plane.engagement.is_some() {
                self.leave(LeaveReason::MembershipChange, outputs);
            } else {
                self.append_membership(next, outputs);
            }
        }
    }

    /// Whether a member holds what was committed a while ago, and something at all, and the log all the rest.
    pub(crate) fn has_caught_up(&self, peer: Peer) -> bool {
        let Some(leading) = &self.leading else {
            return false;
        };
        let reached = leading
            .progress
            .iter()
            .any(|p| p.peer == peer && p.match_index >= leading.committed_before.max(Index(1)));
        reached && self.is_active(peer) && self.is_served_by_log(peer)
    }

    /// A leader that removed itself leads until that is committed, tells everyone, transfers
    /// leadership and leaves.
    fn leave_if_removed(&mut self, outputs: &mut Vec<Output>) {
        let removed = !self.members.is_voter(self.config.me);
        if !removed || self.members.index() > self.commit_index || self.leading.is_none() {
            return;
        }
        self.broadcast_commit(outputs);
        if let Some(target) = self.best_successor() {
            self.send(target, Body::TransferNow, outputs);
        }
        self.step_down(outputs);
    }

    /// The active voter with the longest log.
    pub(crate) fn best_successor(&self) -> Option<Peer> {
        let leading = self.leading.as_ref()?;
        leading
            .progress
            .iter()
            .filter(|p| p.voter && self.is_active(p.peer))
            .max_by_key(|p| (p.match_index, std::cmp::Reverse(p.peer.id)))
            .map(|p| p.peer)
    }

    pub(crate) fn follower_status(&self) -> Vec<FollowerStatus> {
        let Some(leading) = &self.leading else {
            return Vec::new();
        };
        leading
            .progress
            .iter()
            .map(|p| FollowerStatus {
                id: p.peer.id,
                match_index: p.match_index,
                snapshot: match &p.state {
                    Sending::Snapshot(transfer) => Some(transfer.progress()),
                    Sending::Probe { .. } | Sending::Replicate => None,
                },
                engaged: p.part == Part::Engaged,
                active: self.is_active(p.peer),
            })
            .collect()
    }

    /// Whether a reply belongs to this leader's term; a newer term ends it.
    pub(crate) fn is_reply_to_me(
        &mut self,
        from: Peer,
        term: Term,
        outputs: &mut Vec<Output>,
    ) -> bool {
        if term > self.term {
            if self.members.is_member(from) {
                self.enter_term(term, outputs);
                self.put_off_election();
            } else {
                self.ignore_stranger(from);
            }
            return false;
        }
        if term < self.term {
            self.counters.ignored_old_term += 1;
            return false;
        }
        let now = self.now;
        let progress = self.leading.as_mut().and_then(|l| l.progress_of(from));
        let Some(progress) = progress else {
            self.ignore_stranger(from);
            return false;
        };
        progress.heard_at = now;
        true
    }
}
