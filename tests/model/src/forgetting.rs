//! Drops from the network what can never again have an effect, so that states which differ in nothing that
//! matters are one. Terms on disk never go back: a message of a term before the disk's is dead.
use crate::model::Handover;
use crate::rule::Rule;
use crate::state::{FIRST_TERM, Message, REPLICAS, Role, State};

impl Handover {
    pub(crate) fn forget_dead(&self, state: &mut State) {
        let mut messages = std::mem::take(&mut state.network.messages);
        messages.retain(|message| may_matter(state, *message));
        state.network.messages = messages;
        // Without one of these, packets of a term matter when it is over.
        let needed = [
            Rule::PlaneDropsOtherTerms,
            Rule::OwnTermCounts,
            Rule::OfferOfOwnTerm,
        ];
        if needed.iter().all(|rule| self.holds(*rule)) {
            for term in FIRST_TERM..=self.bounds.term_max {
                forget_packets(state, term);
            }
        }
    }
}

/// Whether this replica can never again be in this term.
fn is_past(state: &State, id: u8, term: u8) -> bool {
    state.replicas[usize::from(id)].disk.term > term
}

fn may_matter(state: &State, message: Message) -> bool {
    match message {
        Message::VoteRequest { term, from, .. } => State::others(from).any(|id| {
            let disk = state.replicas[usize::from(id)].disk;
            let given_away = disk.term == term && disk.vote.is_some_and(|to| to != from);
            !is_past(state, id, term) && !given_away
        }),
        Message::Vote {
            term,
            from,
            to,
            engaged,
        } => {
            let candidate = state.replicas[usize::from(to)];
            let needless = match candidate.role {
                Role::Candidate {
                    granted,
                    engaged: with_plane,
                    ..
                } => granted & 1 << from != 0 && (!engaged || with_plane & 1 << from != 0),
                Role::Follower | Role::Leader { .. } => true,
            };
            // Its term is on disk, so it never stands in it again.
            let own_term = candidate.disk.term == term && candidate.term == term;
            let counted = own_term && needless;
            !counted && !is_past(state, to, term)
        }
        Message::Append { term, from, .. } => {
            State::others(from).any(|id| !is_past(state, id, term))
        }
    }
}

/// Forgets a term that is over everywhere.
fn forget_packets(state: &mut State, term: u8) {
    let State {
        replicas, network, ..
    } = state;
    if replicas.iter().any(|replica| replica.disk.term <= term) {
        return;
    }
    let slot = usize::from(term);
    let engaged = replicas
        .iter()
        .any(|r| r.plane.is_some_and(|plane| plane.term == term));
    let led = replicas
        .iter()
        .any(|r| r.term == term && matches!(r.role, Role::Leader { .. }));
    if !engaged {
        network.fast[slot] = None;
        network.plane_acks[slot] = [0; REPLICAS];
    }
    if !led {
        network.software_acks[slot] = [0; REPLICAS];
    }
    if !engaged && !led {
        network.commits[slot] = 0;
    }
}
