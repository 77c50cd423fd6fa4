//! What software does: elections, replication in software, the fence.
use crate::log::{Entry, Mover};
use crate::model::{Durability, Handover};
use crate::plane::{majority_holds, persisted};
use crate::rule::Rule;
use crate::state::{FastTerm, Message, OwedVote, Plane, Role, State};

const MAJORITY: u32 = 2;

impl Handover {
    /// The fence: the plane stops, and its ring is in the log.
    pub(crate) fn fence(&self, state: &mut State, me: u8) {
        if self.holds(Rule::RingIsTaken) {
            take_ring(state, me);
        }
        let replica = &mut state.replicas[usize::from(me)];
        if let Some(plane) = replica.plane.take()
            && plane.leads
            && replica.term == plane.term
            && let Role::Leader { commit } = &mut replica.role
        {
            *commit = plane.commit;
        }
    }

    /// Control takes the ring; in `sync` mode the disk takes everything that waits for it.
    pub(crate) fn persist(&self, state: &mut State, me: u8) -> bool {
        take_ring(state, me);
        if self.durability == Durability::Sync {
            write(state, me);
        }
        let replica = state.replicas[usize::from(me)];
        let leads = matches!(replica.role, Role::Leader { .. });
        if leads && replica.leading_plane().is_some() {
            // A straggler is repaired out of control's log while the plane runs.
            send_log(state, me);
        }
        true
    }

    pub(crate) fn crash(&self, state: &mut State, me: u8) -> bool {
        if self.durability == Durability::Memory || state.history.crashes >= self.bounds.crashes_max
        {
            return false;
        }
        state.history.crashes += 1;
        let replica = &mut state.replicas[usize::from(me)];
        replica.term = replica.disk.term;
        replica.vote = replica.disk.vote;
        replica.log = replica.disk.log;
        replica.role = Role::Follower;
        replica.verified = 0;
        replica.owed_vote = None;
        replica.plane = None;
        true
    }

    pub(crate) fn stand(&self, state: &mut State, me: u8) -> bool {
        let replica = &state.replicas[usize::from(me)];
        if matches!(replica.role, Role::Leader { .. }) {
            return false;
        }
        if self.holds(Rule::CandidateFences) {
            self.fence(state, me);
        }
        self.become_candidate(state, me, false)
    }

    pub(crate) fn stand_fast(&self, state: &mut State, me: u8) -> bool {
        let replica = &state.replicas[usize::from(me)];
        let allowed = match replica.role {
            Role::Leader { commit } => {
                commit == replica.log.last_index() || !self.holds(Rule::WhollyCommitted)
            }
            Role::Follower | Role::Candidate { .. } => !self.holds(Rule::LeaderStands),
        };
        allowed && replica.plane.is_none() && self.become_candidate(state, me, true)
    }

    fn become_candidate(&self, state: &mut State, me: u8, engage: bool) -> bool {
        let term = state.replicas[usize::from(me)].term + 1;
        if term > self.bounds.term_max {
            return false;
        }
        enter_term(state, me, term);
        let replica = &mut state.replicas[usize::from(me)];
        replica.vote = Some(me);
        replica.role = Role::Candidate {
            engage,
            asked: false,
            granted: 1 << me,
            engaged: 1 << me,
        };
        if !self.holds(Rule::VoteIsPersisted) {
            ask_for_votes(state, me);
        }
        true
    }

    pub(crate) fn receive(&self, state: &mut State, me: u8, message: Message) -> bool {
        match message {
            Message::VoteRequest { from, .. } | Message::Append { from, .. } if from == me => false,
            Message::Vote { to, .. } if to != me => false,
            Message::VoteRequest {
                term,
                from,
                last_index,
                last_term,
                engage,
            } => self.on_vote_request(state, me, (term, from), (last_term, last_index), engage),
            Message::Vote {
                term,
                from,
                engaged,
                ..
            } => self.on_vote(state, me, term, from, engaged),
            Message::Append { term, log, .. } => self.on_append(state, me, term, log),
        }
    }

    fn on_vote_request(
        &self,
        state: &mut State,
        me: u8,
        (term, from): (u8, u8),
        candidate_log: (u8, u8),
        engage: bool,
    ) -> bool {
        if term < state.replicas[usize::from(me)].term {
            return false;
        }
        if term > state.replicas[usize::from(me)].term {
            if self.holds(Rule::FenceBeforeVote) {
                self.fence(state, me);
            }
            enter_term(state, me, term);
        }
        let replica = &mut state.replicas[usize::from(me)];
        let own_log = (replica.log.last_term(), replica.log.last_index());
        let free = replica.vote.is_none_or(|to| to == from) && replica.role == Role::Follower;
        if !free || (candidate_log < own_log && self.holds(Rule::VoterComparesLogs)) {
            return true;
        }
        let equal = candidate_log == own_log || !self.holds(Rule::EqualLogEngages);
        replica.vote = Some(from);
        let owed = OwedVote {
            to: from,
            engage: engage && equal,
        };
        if self.holds(Rule::VoteIsPersisted) {
            replica.owed_vote = Some(owed);
        } else {
            give_vote(state, me, owed);
        }
        true
    }

    fn on_vote(&self, state: &mut State, me: u8, term: u8, from: u8, engages: bool) -> bool {
        let replica = &mut state.replicas[usize::from(me)];
        let Role::Candidate {
            engage,
            granted,
            engaged,
            ..
        } = &mut replica.role
        else {
            return false;
        };
        if replica.term != term {
            return false;
        }
        *granted |= 1 << from;
        *engaged |= u8::from(engages) << from;
        let voters_count = granted.count_ones();
        let ready_count = if self.holds(Rule::MajorityEngagesFirst) {
            engaged.count_ones()
        } else {
            voters_count
        };
        if *engage && ready_count >= MAJORITY {
            lead_fast(state, me);
        } else if !*engage && voters_count >= MAJORITY {
            self.lead_in_software(state, me);
        }
        true
    }

    pub(crate) fn settle_for_software(&self, state: &mut State, me: u8) -> bool {
        let elected = match state.replicas[usize::from(me)].role {
            Role::Candidate {
                engage, granted, ..
            } => engage && granted.count_ones() >= MAJORITY,
            Role::Follower | Role::Leader { .. } => false,
        };
        if elected {
            self.lead_in_software(state, me);
        }
        elected
    }

    /// Begins with an entry of its own term. Where the bound leaves no room for it, this leader commits
    /// nothing; that its log is complete is checked all the same.
    fn lead_in_software(&self, state: &mut State, me: u8) {
        note_leader(state, me);
        state.replicas[usize::from(me)].role = Role::Leader { commit: 0 };
        // A message holds so many entries and no more: the first may end before that entry.
        send_log(state, me);
        self.assign(state, me);
    }

    pub(crate) fn propose(&self, state: &mut State, me: u8) -> bool {
        let replica = &state.replicas[usize::from(me)];
        let stopped = replica.plane.is_none() || !self.holds(Rule::LeaderFences);
        matches!(replica.role, Role::Leader { .. }) && stopped && self.assign(state, me)
    }

    fn assign(&self, state: &mut State, me: u8) -> bool {
        let replica = &mut state.replicas[usize::from(me)];
        if replica.log.last_index() >= self.bounds.index_max {
            return false;
        }
        replica.log.push(Entry {
            term: replica.term,
            by: Mover::Software,
        });
        send_log(state, me);
        true
    }

    /// Back to software in the same term.
    pub(crate) fn leave(&self, state: &mut State, me: u8) -> bool {
        let replica = &state.replicas[usize::from(me)];
        let leads = matches!(replica.role, Role::Leader { .. });
        if !leads
            || replica
                .leading_plane()
                .is_none_or(|plane| plane.term != replica.term)
        {
            return false;
        }
        self.fence(state, me);
        send_log(state, me);
        true
    }

    fn on_append(&self, state: &mut State, me: u8, term: u8, sent: crate::Log) -> bool {
        let replica = &state.replicas[usize::from(me)];
        let leads = matches!(replica.role, Role::Leader { .. });
        if term < replica.term || (term == replica.term && leads) {
            return false;
        }
        if self.holds(Rule::AppendFences) {
            self.fence(state, me);
        }
        if term > state.replicas[usize::from(me)].term {
            enter_term(state, me, term);
        }
        let replica = &mut state.replicas[usize::from(me)];
        replica.role = Role::Follower;
        if let Some(owed) = &mut replica.owed_vote {
            // Software leads this term.
            owed.engage = false;
        }
        let terms_agree =
            |index: &u8| replica.log.at(*index).map(|e| e.term) == sent.at(*index).map(|e| e.term);
        let shorter = replica.log.last_index().min(sent.last_index());
        let agreed = (1..=shorter).take_while(terms_agree).count();
        let conflict = agreed < usize::from(shorter);
        if conflict || sent.last_index() > replica.log.last_index() {
            replica.log.truncate(u8::try_from(agreed).unwrap_or(0));
            for entry in &sent.entries()[agreed..] {
                replica.log.push(*entry);
            }
        }
        replica.verified = replica.verified.max(sent.last_index());
        let (log, commit) = (replica.log, state.network.commits[usize::from(term)]);
        state.note_applied(&log, commit.min(sent.last_index()));
        true
    }

    pub(crate) fn commit_in_software(&self, state: &mut State, me: u8) -> bool {
        let replica = state.replicas[usize::from(me)];
        let Role::Leader { commit } = replica.role else {
            return false;
        };
        if replica.plane.is_some() {
            return false;
        }
        let acks = state.network.software_acks[usize::from(replica.term)];
        let mut held: Vec<u8> = State::others(me).map(|id| acks[usize::from(id)]).collect();
        held.push(replica.disk.log.common_with(&replica.log));
        let index = majority_holds(held);
        let own = replica
            .log
            .at(index)
            .is_some_and(|entry| entry.term == replica.term);
        if index <= commit || (!own && self.holds(Rule::CommitsOwnTerm)) {
            return false;
        }
        state.replicas[usize::from(me)].role = Role::Leader { commit: index };
        state.note_commit(&replica.log, index, replica.term);
        true
    }
}

/// What was given to the disk arrives there, and what waited for it leaves.
pub(crate) fn write(state: &mut State, me: u8) {
    let replica = &mut state.replicas[usize::from(me)];
    replica.disk = replica.written();
    let term = replica.term;
    if replica.verified > 0 {
        let acks = &mut state.network.software_acks[usize::from(term)];
        acks[usize::from(me)] = acks[usize::from(me)].max(replica.verified);
    }
    ask_for_votes(state, me);
    if let Some(owed) = state.replicas[usize::from(me)].owed_vote.take() {
        give_vote(state, me, owed);
    }
    persisted(state, me);
}

/// Control takes from the ring, in order, what its log does not have.
fn take_ring(state: &mut State, me: u8) {
    let replica = &mut state.replicas[usize::from(me)];
    let Some(plane) = replica.plane else {
        return;
    };
    let had = usize::from(replica.log.last_index());
    for entry in plane.log.entries().iter().skip(had) {
        replica.log.push(*entry);
    }
    if !plane.leads && replica.term == plane.term && replica.role == Role::Follower {
        // Its leader's plane made them all.
        replica.verified = replica.log.last_index();
    }
}

fn ask_for_votes(state: &mut State, me: u8) {
    let replica = &mut state.replicas[usize::from(me)];
    let Role::Candidate { engage, asked, .. } = &mut replica.role else {
        return;
    };
    if *asked {
        return;
    }
    *asked = true;
    let request = Message::VoteRequest {
        term: replica.term,
        from: me,
        last_index: replica.log.last_index(),
        last_term: replica.log.last_term(),
        engage: *engage,
    };
    state.network.messages.insert(request);
}

fn give_vote(state: &mut State, me: u8, owed: OwedVote) {
    let replica = &mut state.replicas[usize::from(me)];
    let engages = owed.engage && replica.plane.is_none();
    if engages {
        replica.plane = Some(Plane {
            term: replica.term,
            leads: false,
            log: replica.log,
            promised: replica.log.last_index(),
            commit: 0,
            joined: false,
        });
        replica.verified = replica.log.last_index();
    }
    let vote = Message::Vote {
        term: replica.term,
        from: me,
        to: owed.to,
        engaged: engages,
    };
    state.network.messages.insert(vote);
}

fn enter_term(state: &mut State, me: u8, term: u8) {
    let replica = &mut state.replicas[usize::from(me)];
    replica.term = term;
    replica.vote = None;
    replica.role = Role::Follower;
    replica.verified = 0;
    replica.owed_vote = None;
}

/// The leader sends its log to everyone, planes engaged or not: more than the product does.
fn send_log(state: &mut State, me: u8) {
    let replica = &state.replicas[usize::from(me)];
    let message = Message::Append {
        term: replica.term,
        from: me,
        log: replica.log,
    };
    state.network.messages.insert(message);
}

fn note_leader(state: &mut State, me: u8) {
    let bit = 1 << state.replicas[usize::from(me)].term;
    state.history.two_leaders |= state.history.led & bit != 0;
    state.history.led |= bit;
}

/// The leader engages its own plane last, and its plane begins to send.
fn lead_fast(state: &mut State, me: u8) {
    note_leader(state, me);
    let replica = &mut state.replicas[usize::from(me)];
    let (term, start) = (replica.term, replica.log.last_index());
    replica.role = Role::Leader { commit: start };
    replica.plane = Some(Plane {
        term,
        leads: true,
        log: replica.log,
        promised: start,
        commit: start,
        joined: false,
    });
    state.network.fast[usize::from(term)] = Some(FastTerm {
        leader: me,
        start,
        start_term: replica.log.last_term(),
        last: start,
    });
    state.network.commits[usize::from(term)] = start;
    state.history.fast |= 1 << term;
    // What it says is committed is what everybody may now apply.
    let log = replica.log;
    state.note_commit(&log, start, term);
    send_log(state, me);
}
