//! The leader's part in fast terms: when to try one, the election that begins it, who takes part, and
//! when it is given up. What every replica does with its own plane is in `engagement.rs`.
//!
//! # How a fast term begins
//! The leader of a software term takes no more proposals until everything is committed and enough
//! voters hold all of it. It stands for election in the next term, with its own log unchanged; a voter
//! with the very same log engages its plane along with its vote. When enough have, the leader engages
//! last. All entries before the fast term are committed then, and no log elsewhere ends in a later term
//! than this one does: the leader had committed an entry of its own term before. So it may serve reads
//! and change members at once, without a no-op.
use crate::election::Campaign;
use crate::engagement::{Engagement, Initiator, Phase};
use crate::members::peer_of;
use crate::mutants::mutant;
use crate::progress::{Part, Sending};
use crate::{Body, LeaveReason, Now, Output, Peer, Refusal, Replica};
use quorumwire_interfaces::{Index, PLANE_REPLICAS_MAX, Registers, ReplicaId, Term};
use std::time::Duration;

/// An engaged member that has not answered for this part of an election timeout is taken over by
/// software: in hundredths.
const SILENCE_PERCENT: u32 = 60;

/// For this part of an election timeout a member that was asked to engage hears nothing from software:
/// in hundredths.
const ANSWER_PERCENT: u32 = 40;

/// A fast term that has entries to commit and commits none for so many election timeouts goes on in
/// software.
const STANDING_TIMEOUTS_MAX: u32 = 2;

/// So many times the longest wait between two tries of a fast term, the next one is put off for a transfer.
const TRANSFER_INTERVALS_MAX: u32 = 32;

/// When the next fast term may be tried.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// Not before.
    at: Now,
    /// How long to wait after the next attempt or end of a fast term.
    wait: Duration,
    /// No proposals are taken, until then at the latest, so that the logs become equal.
    quiesce_until: Option<Now>,
    /// It stands, or has stood, for election in a fast term, and does not lead it yet.
    standing: bool,
}

impl Attempts {
    pub(crate) fn new(wait: Duration) -> Self {
        Self {
            at: Now::default(),
            wait,
            quiesce_until: None,
            standing: false,
        }
    }

    pub(crate) fn is_quiescing(&self) -> bool {
        self.quiesce_until.is_some()
    }
}

impl Replica {
    /// It begins to lead in software, or somebody else does.
    pub(crate) fn note_no_fast_term(&mut self) {
        if std::mem::take(&mut self.plane.attempts.standing) {
            self.fast_counters.engage_failures += 1;
            self.wait_longer();
        } else {
            self.put_off_engaging();
        }
    }

    fn put_off_engaging(&mut self) {
        let attempts = &mut self.plane.attempts;
        attempts.quiesce_until = None;
        attempts.at = Now(self.now.0 + attempts.wait);
    }

    /// An attempt led to nothing, or what it led to ended early: the next one comes later.
    fn wait_longer(&mut self) {
        let wait = self.plane.attempts.wait * 2;
        self.plane.attempts.wait = wait.min(self.config.engage_interval_max);
        self.put_off_engaging();
    }

    /// Something else is wanted of the leader.
    pub(crate) fn stop_quiescing(&mut self) {
        if self.plane.attempts.is_quiescing() {
            self.fast_counters.engage_failures += 1;
            self.wait_longer();
        }
    }

    /// With a heartbeat: begins to quiesce, or gives up.
    pub(crate) fn try_fast_term(&mut self) {
        if !self.config.plane || self.leads_fast() {
            return;
        }
        let possible = self.may_lead_fast();
        match self.plane.attempts.quiesce_until {
            Some(until) if !possible || self.now >= until => self.stop_quiescing(),
            None if possible && self.now >= self.plane.attempts.at => {
                self.fast_counters.engage_attempts += 1;
                let until = Now(self.now.0 + self.config.election_timeout);
                self.plane.attempts.quiesce_until = Some(until);
            }
            Some(_) | None => {}
        }
    }

    fn may_lead_fast(&self) -> bool {
        let Some(leading) = &self.leading else {
            return false;
        };
        let settled = leading.transfer.is_none()
            && leading.change.is_none()
            && self.members.index() <= self.commit_index
            && self.committed_in_own_term();
        let voter_count = self.members.current().voters().count();
        // A try is a new term, with which a transfer begins anew: it is not disturbed again and again. But
        // who is never done does not keep the others from a fast term for good.
        let failed_before = self.plane.attempts.wait > self.config.engage_interval;
        let patience = self.config.engage_interval_max * TRANSFER_INTERVALS_MAX;
        let patient = self.now.0 < self.plane.attempts.at.0 + patience;
        settled
            && !(failed_before && patient && self.is_sending_snapshots())
            && self.members.is_voter(self.config.me)
            && voter_count <= PLANE_REPLICAS_MAX
            && self.ready_for_plane(|_| true).len() + 1 >= self.plane_quorum()
    }

    /// Whether somebody is sent a snapshot, or catches up behind one.
    fn is_sending_snapshots(&self) -> bool {
        self.leading.as_ref().is_some_and(|leading| {
            let mut members = leading.progress.iter();
            members.any(|p| p.catches_up_by.is_some() && self.is_active(p.peer))
        })
    }

    /// The voters that could engage now, as far as is known here.
    fn ready_for_plane(&self, holds: impl Fn(Index) -> bool) -> Vec<Peer> {
        let Some(leading) = &self.leading else {
            return Vec::new();
        };
        let ready = leading.progress.iter().filter(|p| {
            p.voter
                && matches!(p.state, Sending::Replicate)
                && self.has_plane(p.peer)
                && self.is_active(p.peer)
                && holds(p.match_index)
        });
        ready.map(|p| p.peer).collect()
    }

    /// Stands for election in a fast term, if everything is committed and enough hold all of it.
    pub(crate) fn engage_if_quiet(&mut self, outputs: &mut Vec<Output>) {
        if !self.plane.attempts.is_quiescing() || self.plane.engagement.is_some() {
            return;
        }
        let last_index = self.last_index();
        let committed = self.commit_index == last_index;
        let durable = self.persistence.persisted_index == last_index;
        // Reads that wait for a round are no reason to wait: where each takes one there are always some. They
        // are refused with this term, and asked for anew.
        if !committed || !durable || !self.may_lead_fast() {
            return;
        }
        let equal = self.ready_for_plane(|match_index| match_index == last_index);
        if equal.len() + 1 < self.plane_quorum() {
            return;
        }
        let patience = self.config.election_timeout * ANSWER_PERCENT / 100;
        let until = Now(self.now.0 + patience);
        self.plane.attempts.quiesce_until = None;
        self.campaign(
            Campaign::Engage {
                until,
                asked: equal,
            },
            outputs,
        );
        self.plane.attempts.standing = true;
    }

    /// The election is won, and the own plane has answered.
    pub(crate) fn lead_as_engaged(&mut self, engaged: bool, outputs: &mut Vec<Output>) {
        let Some(engagement) = self.plane.running().filter(|_| engaged) else {
            self.votes.give_up_engaging();
            self.count_votes(outputs);
            return;
        };
        let start_index = engagement.start_index;
        let patience = self.config.election_timeout * ANSWER_PERCENT / 100;
        let until = Now(self.now.0 + patience);
        let (engaged, asked) = self.votes.engaged_and_asked();
        self.counters.elections_won += 1;
        self.plane.attempts.standing = false;
        self.take_the_lead(start_index);
        let now = self.now;
        let Some(leading) = &mut self.leading else {
            return;
        };
        for progress in &mut leading.progress {
            if engaged.contains(&progress.peer) {
                progress.matched(start_index);
                progress.part = Part::Engaged;
                progress.plane_heard_at = now;
            } else if asked.contains(&progress.peer) {
                progress.part = Part::Engaging { until };
            }
        }
    }

    /// A vote for this leader of a fast term came late, or a straggler has answered. Whoever engages holds,
    /// durably, everything before the fast term: its plane never says so, it speaks of later entries only.
    pub(crate) fn on_member_engaged(&mut self, from: Peer, engaged: bool) {
        let now = self.now;
        let start_index = self
            .plane
            .running()
            .map(|engagement| engagement.start_index);
        let Some(progress) = self.leading.as_mut().and_then(|l| l.progress_of(from)) else {
            return;
        };
        match (progress.part, start_index) {
            (Part::Engaging { .. }, Some(start_index)) if engaged => {
                progress.matched(start_index);
                progress.part = Part::Engaged;
                progress.plane_heard_at = now;
            }
            (Part::Engaging { .. } | Part::Engaged, _) if !engaged => {
                progress.take_over_by_software();
            }
            (Part::Engaging { .. } | Part::Engaged | Part::Software, _) => {}
        }
    }

    /// A straggler's answer to an offer, or a member's word that its plane has stopped.
    pub(crate) fn on_joined(
        &mut self,
        from: Peer,
        term: Term,
        engaged: bool,
        index: Index,
        outputs: &mut Vec<Output>,
    ) {
        if !self.is_reply_to_me(from, term, outputs) {
            return;
        }
        let last_index = self.log.last_index();
        if let Some(progress) = self.leading.as_mut().and_then(|l| l.progress_of(from))
            && index <= last_index
        {
            progress.matched(index);
        }
        self.on_member_engaged(from, engaged);
    }

    /// The ring no longer holds what a member asks for: software repairs it.
    pub(crate) fn on_plane_behind(&mut self, id: ReplicaId) {
        if !self.leads_fast() {
            self.counters.ignored_unexpected += 1;
            return;
        }
        if let Some(leading) = &mut self.leading
            && let Some(progress) = leading.progress.iter_mut().find(|p| p.peer.id == id)
            && progress.part != Part::Software
        {
            self.fast_counters.members_lost += 1;
            progress.take_over_by_software();
        }
    }

    /// Who has answered through the plane since the registers were last shown.
    pub(crate) fn hear_engaged_members(
        &mut self,
        voters: &[Peer],
        before: &Registers,
        registers: &Registers,
    ) {
        let (now, last_index) = (self.now, self.log.last_index());
        for (slot, peer) in voters.iter().enumerate().take(PLANE_REPLICAS_MAX) {
            let (matched, round) = (registers.match_index[slot], registers.heard_round[slot]);
            let news = matched > before.match_index[slot] || round > before.heard_round[slot];
            let Some(progress) = self.leading.as_mut().and_then(|l| l.progress_of(*peer)) else {
                continue;
            };
            if news {
                progress.heard_at = now;
                progress.plane_heard_at = now;
                progress.matched(matched.min(last_index));
                self.note_round(*peer, round);
            }
        }
    }

    /// With a heartbeat of a fast term: who fell silent is taken over by software, who is close behind
    /// is asked to join, and if too few are left the term goes on in software.
    pub(crate) fn watch_engaged_members(&mut self, outputs: &mut Vec<Output>) {
        if self.plane.running().is_none() || self.leading.is_none() {
            return;
        }
        self.take_over_silent_members();
        if self.too_few_engaged() || !self.hears_quorum() {
            self.leave(LeaveReason::TooFewEngaged, outputs);
            return;
        }
        if self.commits_stand_still() && !mutant("stay-without-commits") {
            self.leave(LeaveReason::CommitsStandStill, outputs);
            return;
        }
        self.offer_to_join(outputs);
    }

    fn take_over_silent_members(&mut self) {
        let now = self.now;
        let silence = self.config.election_timeout * SILENCE_PERCENT / 100;
        let Some(leading) = &mut self.leading else {
            return;
        };
        for progress in &mut leading.progress {
            let lost = match progress.part {
                Part::Software => false,
                Part::Engaging { until } => now >= until,
                Part::Engaged => now.0 >= progress.plane_heard_at.0 + silence,
            };
            if lost {
                self.fast_counters.members_lost += 1;
                progress.take_over_by_software();
            }
        }
    }

    /// Whether the plane cannot commit what waits, or could not for an election timeout.
    fn too_few_engaged(&mut self) -> bool {
        let (now, timeout) = (self.now, self.config.election_timeout);
        let last_index = self.log.last_index();
        let (Some(leading), Some(engagement)) = (&self.leading, &mut self.plane.engagement) else {
            return false;
        };
        let engaged_count = leading
            .progress
            .iter()
            .filter(|p| p.voter && p.part == Part::Engaged)
            .count();
        if engaged_count + 1 >= engagement.quorum || mutant("stay-with-too-few") {
            engagement.too_few_since = None;
            return false;
        }
        let since = *engagement.too_few_since.get_or_insert(now);
        let last_index = last_index.max(engagement.registers.last_index);
        last_index > self.commit_index || now.0 >= since.0 + timeout
    }

    /// Whether entries wait and none was committed for long. The plane counts only those who are engaged,
    /// and they may be just enough: one disk that is stuck then stops a group in which software, that counts
    /// everybody, would go on.
    fn commits_stand_still(&mut self) -> bool {
        let (now, commit_index) = (self.now, self.commit_index);
        let patience = self.config.election_timeout * STANDING_TIMEOUTS_MAX;
        let last_index = self.log.last_index();
        let Some(engagement) = &mut self.plane.engagement else {
            return false;
        };
        if last_index.max(engagement.registers.last_index) <= commit_index {
            engagement.standing_since = None;
            return false;
        }
        let here = engagement.standing_since.filter(|s| s.0 == commit_index);
        let (_, since) = *engagement
            .standing_since
            .insert(here.unwrap_or((commit_index, now)));
        now.0 >= since.0 + patience
    }

    /// Asks those in whom software has put almost everything to engage.
    fn offer_to_join(&mut self, outputs: &mut Vec<Output>) {
        let Some(engagement) = self.plane.running() else {
            return;
        };
        let start_index = engagement.start_index;
        let last_index = self.log.last_index().max(engagement.registers.last_index);
        let window = self.config.engage_window;
        let close = |matched: Index| matched >= start_index && matched.0 + window >= last_index.0;
        let ready = self.ready_for_plane(close);
        let until = Now(self.now.0 + self.config.election_timeout * ANSWER_PERCENT / 100);
        for peer in ready {
            let progress = self.leading.as_mut().and_then(|l| l.progress_of(peer));
            if let Some(progress) = progress.filter(|p| p.part == Part::Software) {
                progress.part = Part::Engaging { until };
                self.fast_counters.offers += 1;
                self.send(peer, Body::EngageOffer { start_index }, outputs);
            }
        }
    }

    /// The plane of this leader has stopped: all are asked where they stand, and the term goes on.
    pub(crate) fn lead_in_software(&mut self, left: &Engagement) {
        let now = self.now;
        let Some(leading) = &mut self.leading else {
            return;
        };
        for progress in &mut leading.progress {
            if progress.part != Part::Software {
                progress.take_over_by_software();
            }
        }
        leading.heartbeat_due = true;
        leading.heartbeat_at = Now(now.0 + self.config.heartbeat_interval);
        // The next one would stand still for the same reason, however long this one has lasted.
        let stood_still = self.fast_counters.last_left == Some(LeaveReason::CommitsStandStill);
        if stood_still || now.0 < left.since.0 + self.config.engage_interval_max {
            self.wait_longer();
        } else {
            self.plane.attempts.wait = self.config.engage_interval;
            self.put_off_engaging();
        }
    }

    /// Why a leader takes no proposals because of its plane.
    pub(crate) fn may_propose_beside_plane(&self) -> Result<(), Refusal> {
        let limit = "proposals_during_handover_max";
        match self.plane.phase() {
            Some(Phase::Running) => Err(Refusal::FastTerm),
            Some(Phase::Starting | Phase::Stopping) => Err(Refusal::Busy { limit }),
            None if self.plane.attempts.is_quiescing() => Err(Refusal::Busy { limit }),
            None => Ok(()),
        }
    }

    /// Candidate for a fast term, elected: engages once enough others have, or leads in software if
    /// they will not. Tells whether the election is dealt with.
    pub(crate) fn engage_after_majority(&mut self, outputs: &mut Vec<Output>) -> bool {
        if self.plane.engagement.is_some() {
            return true;
        }
        let Some(engaging) = &self.votes.engaging else {
            return false;
        };
        let voters = self.members.current();
        let engaged_count = voters
            .voters()
            .filter(|voter| engaging.engaged.contains(&peer_of(voter)))
            .count();
        let quorum = self.plane_quorum();
        if engaged_count + 1 >= quorum || mutant("leader-engages-first") {
            self.engage(Initiator::Own, outputs);
            return true;
        }
        let open_count = engaging
            .asked
            .iter()
            .filter(|peer| !self.votes.has_answered(**peer))
            .count();
        if engaged_count + open_count + 1 >= quorum && self.now < engaging.until {
            return true;
        }
        self.votes.give_up_engaging();
        false
    }
}
