//! What planes do: assign, store, acknowledge, count.
use crate::log::{Entry, Log, Mover};
use crate::model::{Durability, Handover};
use crate::rule::Rule;
use crate::state::{Plane, REPLICAS, Role, State};

const MAJORITY: usize = 2;

impl Handover {
    fn acknowledges_at_once(&self) -> bool {
        self.durability == Durability::Memory || !self.holds(Rule::HeldAcknowledgement)
    }

    pub(crate) fn submit(&self, state: &mut State, me: u8) -> bool {
        let at_once = self.acknowledges_at_once();
        let Some(plane) = &mut state.replicas[usize::from(me)].plane else {
            return false;
        };
        if !plane.leads || plane.log.last_index() >= self.bounds.index_max {
            return false;
        }
        plane.log.push(Entry {
            term: plane.term,
            by: Mover::Plane,
        });
        if at_once {
            plane.promised = plane.log.last_index();
        }
        if let Some(fast) = &mut state.network.fast[usize::from(plane.term)] {
            fast.last = plane.log.last_index();
        }
        true
    }

    pub(crate) fn plane_append(&self, state: &mut State, me: u8, term: u8, index: u8) -> bool {
        let at_once = self.acknowledges_at_once();
        let Some(fast) = state.network.fast[usize::from(term)] else {
            return false;
        };
        let Some(plane) = &mut state.replicas[usize::from(me)].plane else {
            return false;
        };
        if plane.leads || !self.takes(plane, term) {
            return false;
        }
        let previous_term = if index == fast.start + 1 {
            fast.start_term
        } else {
            term
        };
        let next = plane.log.last_index() + 1;
        if index < next || (index > next && self.holds(Rule::Contiguous)) {
            return false;
        }
        while plane.log.last_index() + 1 < index {
            plane.log.push(Entry::default());
        }
        let agrees = plane.log.last_term() == previous_term || index > next;
        if !agrees && self.holds(Rule::PreviousTermMatches) {
            return false;
        }
        plane.log.push(Entry {
            term: plane.term,
            by: Mover::Plane,
        });
        let log = plane.log;
        if at_once {
            plane.promised = index;
            acknowledge(state, me, term);
        }
        let commit = state.network.commits[usize::from(term)];
        state.note_applied(&log, commit.min(index));
        true
    }

    pub(crate) fn heartbeat(&self, state: &mut State, me: u8, term: u8) -> bool {
        let Some(plane) = state.replicas[usize::from(me)].plane else {
            return false;
        };
        if plane.leads || !self.takes(&plane, term) {
            return false;
        }
        acknowledge(state, me, term);
        let commit = state.network.commits[usize::from(term)];
        state.note_applied(&plane.log, commit.min(plane.log.last_index()));
        true
    }

    fn takes(&self, plane: &Plane, term: u8) -> bool {
        plane.term == term || !self.holds(Rule::PlaneDropsOtherTerms)
    }

    /// A straggler that software has repaired engages in the term that runs.
    pub(crate) fn take_offer(&self, state: &mut State, me: u8, term: u8) -> bool {
        let Some(fast) = state.network.fast[usize::from(term)] else {
            return false;
        };
        let replica = &mut state.replicas[usize::from(me)];
        let own_term =
            replica.term == term || (replica.term > term && !self.holds(Rule::OfferOfOwnTerm));
        let verified =
            replica.verified == replica.log.last_index() || !self.holds(Rule::StragglerVerified);
        let durable = replica.disk == replica.written() || !self.holds(Rule::StragglerDurable);
        let follows = replica.role == Role::Follower && fast.leader != me;
        if !own_term || !verified || !durable || !follows || replica.plane.is_some() {
            return false;
        }
        replica.plane = Some(Plane {
            term,
            leads: false,
            log: replica.log,
            promised: replica.log.last_index(),
            commit: 0,
            joined: true,
        });
        true
    }

    pub(crate) fn commit_in_plane(&self, state: &mut State, me: u8) -> bool {
        let Some(plane) = state.replicas[usize::from(me)].leading_plane() else {
            return false;
        };
        let last = plane.log.last_index();
        let mut held = vec![plane.promised];
        held.extend(State::others(me).map(|id| self.counted(state, plane, id)));
        if !self.holds(Rule::MembersCount) {
            // Someone who was a member once, and says anything.
            held.push(last);
        }
        let index = majority_holds(held);
        if index <= plane.commit {
            return false;
        }
        if let Some(plane) = &mut state.replicas[usize::from(me)].plane {
            plane.commit = index;
        }
        state.note_commit(&plane.log, index, plane.term);
        true
    }

    /// The newest acknowledgement of that replica that the leader's plane believes.
    fn counted(&self, state: &State, plane: Plane, id: u8) -> u8 {
        let sent = |acks: &[u8; REPLICAS]| acks[usize::from(id)];
        let all = &state.network.plane_acks;
        let ack = if self.holds(Rule::OwnTermCounts) {
            sent(&all[usize::from(plane.term)])
        } else {
            let possible = all
                .iter()
                .map(sent)
                .filter(|ack| *ack <= plane.log.last_index());
            possible.max().unwrap_or(0)
        };
        // Nobody holds what was never assigned: such an acknowledgement goes to software.
        if ack <= plane.log.last_index() {
            ack
        } else {
            0
        }
    }
}

/// Answers in the packet's term, which is the plane's own unless that rule is gone.
fn acknowledge(state: &mut State, me: u8, term: u8) {
    let replica = &state.replicas[usize::from(me)];
    let Some(plane) = replica.plane else {
        return;
    };
    state.history.late_ack |= replica.term > term;
    let ack = &mut state.network.plane_acks[usize::from(term)][usize::from(me)];
    *ack = (*ack).max(plane.promised);
}

/// The disk has what control took from the ring: held acknowledgements leave.
pub(crate) fn persisted(state: &mut State, me: u8) {
    let replica = &mut state.replicas[usize::from(me)];
    let Some(plane) = &mut replica.plane else {
        return;
    };
    let durable = plane.log.common_with(&replica.disk.log);
    if durable <= plane.promised {
        return;
    }
    plane.promised = durable;
    let (leads, term) = (plane.leads, plane.term);
    if !leads {
        acknowledge(state, me, term);
    }
}

/// The highest index that a majority holds.
pub(crate) fn majority_holds(mut held: Vec<u8>) -> u8 {
    held.sort_unstable_by(|a, b| b.cmp(a));
    held[MAJORITY - 1]
}

impl State {
    /// A leader declares a prefix of this log committed.
    pub(crate) fn note_commit(&mut self, log: &Log, upto: u8, term: u8) {
        let told = &mut self.network.commits[usize::from(term)];
        *told = (*told).max(upto);
        self.note_applied(log, upto);
        for index in self.history.committed.last_index() + 1..=upto {
            if let Some(entry) = log.at(index).filter(|_| !self.history.diverged) {
                self.history.committed.push(entry);
                self.history.committed_in[usize::from(index) - 1] = term;
            }
        }
    }

    /// A replica takes a prefix of this log for committed, and applies it.
    pub(crate) fn note_applied(&mut self, log: &Log, upto: u8) {
        let known = self.history.committed;
        let differs =
            (1..=upto.min(known.last_index())).any(|index| log.at(index) != known.at(index));
        self.history.diverged |= differs;
    }
}
