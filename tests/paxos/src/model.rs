//! The model as the checker sees it: which actions there are in a state, and what comes of them.
use crate::acceptor;
use crate::coordinator::{self, quorums};
use crate::rule::Rule;
use crate::state::{ACCEPTORS, COORDINATORS, Coordinator, Lives, Message, Phase, State};
use quorumwire_search::{Variant, Varied};
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// The property that must never be violated.
pub const ONE_VALUE: &str = "one value an instance";

/// What a vote means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// On disk. Acceptors crash and begin again with what was there.
    Sync,
    /// In memory. Who loses it has to be let in again.
    Memory,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most rounds that one coordinator asks for.
    pub rounds_max: u8,
    /// The most crashes or lost memories, of all acceptors together.
    pub losses_max: u8,
    /// The most times that a coordinator forgets how many rounds it has asked for, of all together.
    pub restarts_max: u8,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// What a vote means.
    pub durability: Durability,
    /// How far the search goes.
    pub bounds: Bounds,
    /// Both coordinators were given one number.
    pub one_number: bool,
    /// Without names: those of the acceptors.
    variant: Variant<Action, Rule>,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// A coordinator asks for its next round.
    Ask(u8),
    /// It asks in the next configuration, to let an acceptor in.
    AskFor(u8, u8),
    /// It proposes, on the strength of a quorum.
    Propose(u8, u8),
    /// It stops.
    BeginAnew(u8),
    /// It stops, and forgets which rounds it has asked for.
    Restart(u8),
    /// It lets its newcomer in, on the strength of a quorum.
    LetIn(u8, u8),
    /// An acceptor takes in a message.
    Receive(u8, Message),
    /// Its disk has everything.
    Persist(u8),
    /// It crashes, or forgets.
    Lose(u8),
}

impl Deployment {
    /// The model with every rule in force.
    #[must_use]
    pub fn new(durability: Durability, bounds: Bounds) -> Self {
        Self {
            durability,
            bounds,
            one_number: false,
            variant: Variant::default(),
        }
    }

    /// The same, with two coordinators of one number.
    #[must_use]
    pub fn with_one_number(mut self) -> Self {
        self.one_number = true;
        self
    }

    pub(crate) fn holds(&self, rule: Rule) -> bool {
        self.variant.holds(&rule)
    }

    /// What comes of an action; `None` if it cannot happen or changes nothing.
    fn step(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        let possible = match action {
            Action::Ask(me) => self.ask(&mut state, me, None),
            Action::AskFor(me, newcomer) => self.ask(&mut state, me, Some(newcomer)),
            Action::Propose(me, quorum) => self.propose(&mut state, me, quorum),
            Action::BeginAnew(me) => self.begin_anew(&mut state, me),
            Action::Restart(me) => coordinator::restart(&mut state, me),
            Action::LetIn(me, quorum) => self.let_in(&mut state, me, quorum),
            Action::Receive(me, message) => self.receive(&mut state, me, &message),
            Action::Persist(me) => self.persist(&mut state, me),
            Action::Lose(me) => self.lose(&mut state, me),
        };
        if !possible || state == *before {
            return None;
        }
        state.forget_dead();
        Some(state)
    }

    fn is_safe(&self, state: &State) -> bool {
        state.decided(self.holds(Rule::OneRoundDecides)).len() <= 1
    }
}

impl Varied for Deployment {
    type Rule = Rule;

    fn variant(&mut self) -> &mut Variant<Action, Rule> {
        &mut self.variant
    }
}

impl Model for Deployment {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let coordinator = Coordinator {
            phase: Phase::Backup,
            count: 0,
            life: 0,
            configuration: Lives::default(),
            newcomer: None,
        };
        let first = State {
            acceptors: vec![acceptor::begun(); usize::from(ACCEPTORS)],
            coordinators: vec![coordinator; usize::from(COORDINATORS)],
            sent: BTreeSet::new(),
            losses: 0,
            restarts_left: self.bounds.restarts_max,
            let_in: None,
        };
        let step = |state: &State, action| self.step(state, action);
        vec![self.variant.behind_lead_in(first, step)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for me in 0..COORDINATORS {
            actions.push(Action::Ask(me));
            actions.extend((0..ACCEPTORS).map(|newcomer| Action::AskFor(me, newcomer)));
            actions.push(Action::BeginAnew(me));
            actions.push(Action::Restart(me));
            for quorum in quorums() {
                actions.push(Action::Propose(me, quorum));
                actions.push(Action::LetIn(me, quorum));
            }
        }
        for me in 0..ACCEPTORS {
            actions.push(Action::Persist(me));
            actions.push(Action::Lose(me));
            let messages = state.sent.iter();
            actions.extend(messages.map(|message| Action::Receive(me, *message)));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let state = self.step(before, action)?;
        Some(if self.variant.nameless {
            state.representative()
        } else {
            state
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_VALUE, Self::is_safe),
            Property::sometimes("a value is decided", |_, state: &State| {
                !state.decided(true).is_empty()
            }),
            Property::sometimes("a value survives a take-over", |_, state: &State| {
                state.survives()
            }),
            Property::sometimes("an acceptor that forgot votes again", |_, state: &State| {
                state.newcomer_votes()
            }),
            Property::sometimes(
                "an acceptor is let in behind its bound",
                |_, state: &State| matches!(state.let_in, Some((_, 1))),
            ),
        ]
    }
}
