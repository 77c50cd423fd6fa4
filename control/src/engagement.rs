//! Engaging this replica's data plane and following what it does. When a leader tries is decided in
//! `fast_leader.rs`; how a plane is left is in `fence.rs`.
//!
//! # When a plane may be engaged
//! Only where the log's end is known to be the end of a beginning of the leader's log of this term, is
//! durable, and the term (and the vote in it) is durable too. For a voter the vote request shows that:
//! the same last index and term mean the same log. For a straggler its leader's Appends do. The plane
//! then checks that what it is sent continues this end, so its log stays a beginning of the leader's.
use crate::fast_leader::Attempts;
use crate::fence::Waiting;
use crate::members::{majority_of, peer_of};
use crate::mutants::mutant;
use crate::{Body, Config, Engage, Entry, FastTerm, Now, Output, Peer, Replica, Role};
use bytes::Bytes;
use quorumwire_interfaces::{Index, PLANE_REPLICAS_MAX, Registers, Term};
use quorumwire_wire::{CommitQuorum, Record, RecordKind};

/// All that is known of this replica's data plane.
#[derive(Debug)]
pub(crate) struct Plane {
    /// Until the plane is off and its last word is in the log.
    pub(crate) engagement: Option<Engagement>,
    /// Engage as soon as what the own part in it stands on is durable.
    pub(crate) wish: Option<Initiator>,
    pub(crate) waiting: Waiting,
    pub(crate) attempts: Attempts,
}

/// One time that the plane is engaged, from the order to engage to the end of the fence.
#[derive(Debug)]
pub(crate) struct Engagement {
    pub(crate) phase: Phase,
    pub(crate) initiator: Initiator,
    pub(crate) term: Term,
    pub(crate) since: Now,
    pub(crate) start_index: Index,
    pub(crate) leader: Peer,
    /// In slot order.
    pub(crate) voters: Vec<Peer>,
    pub(crate) quorum: usize,
    /// As last shown.
    pub(crate) registers: Registers,
    /// What the plane was last told to be durable.
    persisted_told: Index,
    /// Leader: since when too few engaged members answer.
    pub(crate) too_few_since: Option<Now>,
    /// Leader: since when entries wait behind this commit index.
    pub(crate) standing_since: Option<(Index, Now)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// Told to engage; the answer is due.
    Starting,
    Running,
    /// Told to stop; the answer is due.
    Stopping,
}

/// Who leads the fast term for which this replica engages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Initiator {
    /// For a candidate it votes for; the vote is told with the answer.
    Candidate(Peer),
    /// For the leader of the running fast term.
    Leader(Peer),
    /// To lead the term it was just elected in.
    Own,
}

impl Initiator {
    /// Who would lead, seen by `me`.
    fn leader(self, me: Peer) -> Peer {
        match self {
            Self::Candidate(peer) | Self::Leader(peer) => peer,
            Self::Own => me,
        }
    }
}

impl Plane {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            engagement: None,
            wish: None,
            waiting: Waiting::default(),
            attempts: Attempts::new(config.engage_interval),
        }
    }

    pub(crate) fn phase(&self) -> Option<Phase> {
        self.engagement.as_ref().map(|engagement| engagement.phase)
    }

    /// The engagement, while the plane moves the log.
    pub(crate) fn running(&self) -> Option<&Engagement> {
        self.engagement
            .as_ref()
            .filter(|engagement| engagement.phase == Phase::Running)
    }
}

impl Replica {
    /// The fast term its data plane is engaged in, if it is.
    #[must_use]
    pub fn fast_term(&self) -> Option<FastTerm> {
        self.plane.running().map(|engagement| FastTerm {
            term: engagement.term,
            since: engagement.since,
            start_index: engagement.start_index,
            leading: engagement.leader == self.config.me,
        })
    }

    /// Whether it leads a fast term that its plane moves, or is just leaving it.
    pub(crate) fn leads_fast(&self) -> bool {
        self.leading.is_some() && self.plane.engagement.is_some()
    }

    /// How many replicas must hold an entry of a fast term to commit it.
    pub(crate) fn plane_quorum(&self) -> usize {
        let membership = self.members.current();
        let voter_count = membership.voters().count();
        match membership.quorum {
            CommitQuorum::Majority => majority_of(voter_count),
            CommitQuorum::All => voter_count,
        }
    }

    /// Whether a voter, asked by a candidate whose log ends so, may engage along with its vote.
    pub(crate) fn may_engage_for(&self, candidate: Peer, candidate_log: (Term, Index)) -> bool {
        let equal = candidate_log == (self.log.last_term(), self.log.last_index())
            || mutant("engage-unequal-log");
        equal && self.may_engage(candidate)
    }

    /// What every engagement needs, whoever asks for it.
    fn may_engage(&self, leader: Peer) -> bool {
        self.config.plane
            && self.plane.engagement.is_none()
            && !self.receiving.is_installing()
            && self.members.is_voter(self.config.me)
            && self.members.is_voter(leader)
            && self.members.current().voters().count() <= PLANE_REPLICAS_MAX
    }

    /// Engages for whom it is wished, once all it stands on is durable.
    pub(crate) fn engage_if_wished(&mut self, outputs: &mut Vec<Output>) {
        let Some(initiator) = self.plane.wish else {
            return;
        };
        let promised = self.promises_are_durable() || mutant("engage-before-vote-is-durable");
        let durable = self.persistence.persisted_index >= self.log.last_index()
            || mutant("engage-before-log-is-durable");
        if !(promised && durable) {
            return;
        }
        self.plane.wish = None;
        let leader = initiator.leader(self.config.me);
        // What was allowed when it was asked may not be any more: a snapshot that has arrived meanwhile
        // is about to replace the log.
        if self.may_engage(leader) || mutant("engage-while-installing") {
            self.engage(initiator, outputs);
        } else {
            self.answer_initiator(initiator, false, outputs);
            self.send_promises(outputs);
        }
    }

    /// Tells the plane to engage at the log's end.
    pub(crate) fn engage(&mut self, initiator: Initiator, outputs: &mut Vec<Output>) {
        let me = self.config.me;
        let leader = initiator.leader(me);
        let voters: Vec<Peer> = self.members.current().voters().map(peer_of).collect();
        let slot = |peer: Peer| {
            let place = voters.iter().position(|voter| *voter == peer);
            place.and_then(|place| u8::try_from(place).ok())
        };
        let quorum = self.plane_quorum();
        let (Some(me), Some(leader_slot), Ok(quorum_count)) =
            (slot(me), slot(leader), u8::try_from(quorum))
        else {
            self.answer_initiator(initiator, false, outputs);
            return;
        };
        // A snapshot that was on its way is not needed: the log's end is the leader's.
        self.forget_transfer_of_snapshot();
        self.plane.engagement = Some(Engagement {
            phase: Phase::Starting,
            initiator,
            term: self.term,
            since: self.now,
            start_index: self.log.last_index(),
            leader,
            voters: voters.clone(),
            quorum,
            registers: Registers::default(),
            persisted_told: self.log.last_index(),
            too_few_since: None,
            standing_since: None,
        });
        outputs.push(Output::Engage(Engage {
            group: self.config.group,
            term: self.term,
            last_index: self.log.last_index(),
            last_term: self.log.last_term(),
            commit_index: self.commit_index,
            me,
            leader: leader_slot,
            voters,
            quorum: quorum_count,
        }));
    }

    pub(crate) fn on_engaged(&mut self, term: Term, engaged: bool, outputs: &mut Vec<Output>) {
        let now = self.now;
        let engagement = self.plane.engagement.as_mut();
        let Some(engagement) = engagement.filter(|e| e.term == term && e.phase != Phase::Running)
        else {
            self.counters.ignored_unexpected += 1;
            return;
        };
        if engagement.phase == Phase::Stopping {
            // Told to stop before it could answer: what counts is how it stopped.
            return;
        }
        let initiator = engagement.initiator;
        if engaged {
            engagement.phase = Phase::Running;
            engagement.since = now;
            self.fast_counters.engaged += 1;
        } else {
            self.plane.engagement = None;
            self.fast_counters.engage_refused += 1;
        }
        self.answer_initiator(initiator, engaged, outputs);
    }

    pub(crate) fn answer_initiator(
        &mut self,
        initiator: Initiator,
        engaged: bool,
        outputs: &mut Vec<Output>,
    ) {
        match initiator {
            Initiator::Candidate(candidate) => {
                let reply = Body::VoteReply {
                    granted: true,
                    pre_vote: false,
                    engaged,
                };
                self.promise(candidate, reply);
            }
            Initiator::Leader(leader) => self.tell_engaged(leader, engaged, outputs),
            Initiator::Own => self.lead_as_engaged(engaged, outputs),
        }
    }

    /// Tells a leader whether this replica's plane is in its fast term, and how far its log is durable.
    pub(crate) fn tell_engaged(&mut self, to: Peer, engaged: bool, outputs: &mut Vec<Output>) {
        let index = self.durable_match();
        self.send(to, Body::Engaged { engaged, index }, outputs);
    }

    /// A straggler's leader offers to take it into the running fast term.
    pub(crate) fn on_offer(
        &mut self,
        from: Peer,
        term: Term,
        start_index: Index,
        outputs: &mut Vec<Output>,
    ) {
        if term < self.term {
            self.refuse_old_leader(from, 0, outputs);
            return;
        }
        if !self.accept_leader(from, term, outputs) {
            return;
        }
        if self.diverged {
            self.counters.ignored_diverged += 1;
            return;
        }
        if let Some(engagement) = &self.plane.engagement {
            let engaged = engagement.phase == Phase::Running;
            self.tell_engaged(from, engaged, outputs);
            return;
        }
        let last_index = self.log.last_index();
        let verified = self.following.matched == last_index || mutant("engage-unverified-log");
        let within = last_index >= start_index || mutant("engage-before-start");
        let same_members = self.members.index() <= start_index || mutant("engage-other-members");
        if verified && within && same_members && self.may_engage(from) {
            self.plane.wish = Some(Initiator::Leader(from));
        } else {
            self.tell_engaged(from, false, outputs);
        }
    }

    /// Entries that the plane has stored go into the log and to the disk. A plane that hands over
    /// anything else than what continues the log has broken its promise: nothing can be trusted then.
    pub(crate) fn on_plane_entries(&mut self, block: &Bytes, outputs: &mut Vec<Output>) {
        let engagement = self.plane.engagement.as_ref();
        let engaged_term = engagement
            .filter(|e| e.phase != Phase::Starting)
            .map(|e| e.term);
        let term = engaged_term.expect("entries of a plane that is not engaged");
        let mut news = Vec::new();
        let mut start = 0;
        while start < block.len() {
            let record = Record::decode(&block[start..]).expect("a whole record of the plane's");
            let fits = record.group == self.config.group
                && record.term == term
                && record.index == self.log.last_index().next()
                && record.kind.is_entry()
                && record.kind != RecordKind::Membership;
            assert!(
                fits,
                "the plane's entry {} does not continue the log",
                record.index
            );
            let entry = Entry::of_record(block, start, &record);
            start += record.record_bytes;
            if let Some(leading) = &mut self.leading {
                leading.uncommitted_bytes += entry.record().len();
            }
            self.log.push(entry.clone());
            news.push(entry);
        }
        if self.leading.is_none() {
            self.following.matched = self.log.last_index();
        }
        let hard_state = self.hard_state();
        self.persistence.give(hard_state, news, outputs);
    }

    pub(crate) fn on_plane_progress(&mut self, registers: Registers, outputs: &mut Vec<Output>) {
        let running = self
            .plane
            .engagement
            .as_mut()
            .filter(|e| e.phase == Phase::Running && e.term == registers.term);
        let Some(engagement) = running else {
            return;
        };
        let before = std::mem::replace(&mut engagement.registers, registers);
        let leader = engagement.leader;
        let voters = engagement.voters.clone();
        self.learn_from_plane((leader, &voters), &before, &registers, outputs);
    }

    /// Takes over what the plane has learned since `before`; `grant`: its leader and its slots.
    pub(crate) fn learn_from_plane(
        &mut self,
        grant: (Peer, &[Peer]),
        before: &Registers,
        registers: &Registers,
        outputs: &mut Vec<Output>,
    ) {
        let (leader, voters) = grant;
        let committed = registers.commit_index.min(self.log.last_index());
        self.commit_upto(committed, outputs);
        if self.leading.is_some() {
            self.hear_engaged_members(voters, before, registers);
        } else if has_heard_host(before, registers) && !mutant("plane-rounds-unheard") {
            self.hear_fast_leader(leader, outputs);
        }
    }

    /// A new round came through the plane: as good as an Append.
    fn hear_fast_leader(&mut self, leader: Peer, outputs: &mut Vec<Output>) {
        if self.leader != Some(leader) {
            self.follow(leader, outputs);
            // Engaged where the logs were equal, and continued by this leader alone.
            self.following.matched = self.log.last_index();
        }
        self.hear_leader(leader);
    }

    /// More entries are durable: the plane may acknowledge them.
    pub(crate) fn tell_plane_persisted(&mut self, outputs: &mut Vec<Output>) {
        let mut persisted = self.persistence.persisted_index;
        if mutant("plane-persisted-early") {
            persisted = self.log.last_index();
        }
        let engagement = self.plane.engagement.as_mut();
        let running = engagement.filter(|e| e.phase == Phase::Running);
        if let Some(engagement) = running.filter(|e| e.persisted_told < persisted) {
            engagement.persisted_told = persisted;
            outputs.push(Output::PlanePersisted(persisted));
        }
    }

    /// What a read that was just asked for must wait for.
    pub(crate) fn read_index(&self) -> Index {
        let leads = self.role == Role::Leader;
        let running = self
            .plane
            .running()
            .filter(|_| leads && !mutant("read-ignores-plane"));
        running.map_or(self.commit_index, |engagement| {
            self.commit_index.max(engagement.registers.commit_index)
        })
    }
}

/// Whether a follower's plane has word from the leader's host since `before`. Only a round is: hosts begin
/// those, each once. Entries say nothing of the host, whose plane may go on with what clients send while it
/// stands still.
fn has_heard_host(before: &Registers, registers: &Registers) -> bool {
    let appends = mutant("plane-appends-heard") && registers.last_index > before.last_index;
    registers.round > before.round || appends
}
