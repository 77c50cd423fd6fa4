//! The model as the checker sees it: which actions there are in a state, and what comes of them.
use crate::control::write;
use crate::log::LOG_CAPACITY;
use crate::properties::Safety;
use crate::rule::Rule;
use crate::state::{FIRST_TERM, Message, Role, State, TERMS};
use quorumwire_search::{Variant, Varied};
use stateright::{Model, Property};

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// On disk. Replicas crash and restart with what was there.
    Sync,
    /// In memory. A crash is a new life, which this model leaves out: nobody crashes.
    Memory,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The highest term, at most 5.
    pub term_max: u8,
    /// The highest index, at most [`LOG_CAPACITY`].
    pub index_max: u8,
    /// The most crashes, of all replicas together.
    pub crashes_max: u8,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Handover {
    /// What an acknowledgement means.
    pub durability: Durability,
    /// How far the search goes.
    pub bounds: Bounds,
    /// What is checked: this, or, for `None`, everything.
    pub checked: Option<Safety>,
    /// Without names: those of the replicas.
    variant: Variant<Action, Rule>,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Control takes what is in the ring (`sync`: and everything given to this disk arrives there).
    Persist(u8),
    /// It forgets what is not on disk and starts again.
    Crash(u8),
    /// It stands for an ordinary election.
    Stand(u8),
    /// It stands for a fast term.
    StandFast(u8),
    /// A majority has voted, too few have engaged: it leads the term in software.
    LeadInSoftware(u8),
    /// A fast leader goes on in software, in the same term.
    Leave(u8),
    /// A software leader gives out an index.
    Propose(u8),
    /// A leader's plane gives out an index.
    Submit(u8),
    /// A software leader counts the replies there are.
    CommitInSoftware(u8),
    /// A leader's plane counts the acknowledgements there are.
    CommitInPlane(u8),
    /// Software takes in a message.
    Receive(u8, Message),
    /// A plane takes in a fast term's packet for an index.
    PlaneAppend {
        /// Whose plane.
        to: u8,
        /// The packet's term.
        term: u8,
        /// The packet's index.
        index: u8,
    },
    /// A plane takes in a heartbeat of a fast term and answers.
    Heartbeat {
        /// Whose plane.
        to: u8,
        /// The packet's term.
        term: u8,
    },
    /// A straggler takes in an offer.
    Offer {
        /// Whose software.
        to: u8,
        /// The fast term.
        term: u8,
    },
}

impl Handover {
    /// The model with every rule in force.
    #[must_use]
    pub fn new(durability: Durability, bounds: Bounds) -> Self {
        assert!(
            usize::from(bounds.term_max) < TERMS,
            "term_max must be below {TERMS}"
        );
        assert!(
            usize::from(bounds.index_max) <= LOG_CAPACITY,
            "index_max: at most {LOG_CAPACITY}"
        );
        Self {
            durability,
            bounds,
            checked: None,
            variant: Variant::default(),
        }
    }

    /// The same, with only this being checked.
    #[must_use]
    pub fn checking(mut self, safety: Safety) -> Self {
        self.checked = Some(safety);
        self
    }

    pub(crate) fn holds(&self, rule: Rule) -> bool {
        self.variant.holds(&rule)
    }

    /// Tells quickly, of most actions that cannot happen, that they cannot: the state is not copied.
    fn is_plausible(&self, state: &State, action: Action) -> bool {
        let replica = |id: u8| &state.replicas[usize::from(id)];
        let leads = |id: u8| matches!(replica(id).role, Role::Leader { .. });
        let takes_packets = |id: u8| replica(id).plane.is_some_and(|plane| !plane.leads);
        match action {
            Action::Persist(me) => {
                replica(me).plane.is_some() || self.durability == Durability::Sync
            }
            Action::Crash(_) => state.history.crashes < self.bounds.crashes_max,
            Action::Stand(me) => !leads(me) && replica(me).term < self.bounds.term_max,
            Action::StandFast(me) => {
                replica(me).plane.is_none() && replica(me).term < self.bounds.term_max
            }
            Action::LeadInSoftware(me) => matches!(replica(me).role, Role::Candidate { .. }),
            Action::Leave(me) | Action::Submit(me) | Action::CommitInPlane(me) => {
                replica(me).leading_plane().is_some()
            }
            Action::Propose(me) | Action::CommitInSoftware(me) => leads(me),
            Action::Receive(to, message) => match message {
                Message::VoteRequest { term, from, .. } | Message::Append { term, from, .. } => {
                    from != to && term >= replica(to).term
                }
                Message::Vote {
                    term,
                    to: candidate,
                    ..
                } => candidate == to && term == replica(to).term,
            },
            Action::PlaneAppend { to, .. } | Action::Heartbeat { to, .. } => takes_packets(to),
            Action::Offer { to, .. } => replica(to).plane.is_none(),
        }
    }

    /// What comes of an action; `None` if it cannot happen or changes nothing.
    fn step(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        let possible = match action {
            Action::Persist(me) => self.persist(&mut state, me),
            Action::Crash(me) => self.crash(&mut state, me),
            Action::Stand(me) => self.stand(&mut state, me),
            Action::StandFast(me) => self.stand_fast(&mut state, me),
            Action::LeadInSoftware(me) => self.settle_for_software(&mut state, me),
            Action::Leave(me) => self.leave(&mut state, me),
            Action::Propose(me) => self.propose(&mut state, me),
            Action::Submit(me) => self.submit(&mut state, me),
            Action::CommitInSoftware(me) => self.commit_in_software(&mut state, me),
            Action::CommitInPlane(me) => self.commit_in_plane(&mut state, me),
            Action::Receive(to, message) => self.receive(&mut state, to, message),
            Action::PlaneAppend { to, term, index } => {
                self.plane_append(&mut state, to, term, index)
            }
            Action::Heartbeat { to, term } => self.heartbeat(&mut state, to, term),
            Action::Offer { to, term } => self.take_offer(&mut state, to, term),
        };
        if !possible {
            return None;
        }
        if self.durability == Durability::Memory {
            // Nothing waits for a disk.
            for me in 0..state.replicas.len() {
                write(&mut state, u8::try_from(me).unwrap_or(u8::MAX));
            }
        }
        self.forget_dead(&mut state);
        if state == *before {
            return None;
        }
        Some(if self.variant.nameless {
            state.representative()
        } else {
            state
        })
    }
}

impl Varied for Handover {
    type Rule = Rule;

    fn variant(&mut self) -> &mut Variant<Action, Rule> {
        &mut self.variant
    }
}

impl Model for Handover {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let step = |state: &State, action| self.step(state, action);
        vec![self.variant.behind_lead_in(State::first(), step)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for me in 0..3 {
            actions.extend([
                Action::Persist(me),
                Action::Crash(me),
                Action::Stand(me),
                Action::StandFast(me),
                Action::LeadInSoftware(me),
                Action::Leave(me),
                Action::Propose(me),
                Action::Submit(me),
                Action::CommitInSoftware(me),
                Action::CommitInPlane(me),
            ]);
            actions.extend(
                state
                    .network
                    .messages
                    .iter()
                    .map(|m| Action::Receive(me, *m)),
            );
            for term in FIRST_TERM..=self.bounds.term_max {
                let Some(fast) = state.network.fast[usize::from(term)] else {
                    continue;
                };
                actions.push(Action::Heartbeat { to: me, term });
                actions.push(Action::Offer { to: me, term });
                let indexes = fast.start + 1..=fast.last;
                actions.extend(indexes.map(|index| Action::PlaneAppend {
                    to: me,
                    term,
                    index,
                }));
            }
        }
        actions.retain(|action| self.is_plausible(state, *action));
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        self.step(before, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::properties::of(self.checked)
    }
}
