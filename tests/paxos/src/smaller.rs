//! Makes the search smaller: what can make no difference any more is forgotten, and states that differ only
//! in the acceptors' names are one.
use crate::acceptor::number;
use crate::state::{ACCEPTORS, Acceptor, Lives, Message, Phase, State};
use std::collections::BTreeSet;

impl State {
    /// Forgets messages that nobody does anything about from now on. Votes stay: they decide.
    pub(crate) fn forget_dead(&mut self) {
        let alive: BTreeSet<Message> = self
            .sent
            .iter()
            .filter(|message| self.is_alive(message))
            .copied()
            .collect();
        self.sent = alive;
    }

    fn is_alive(&self, message: &Message) -> bool {
        match message {
            Message::Promise { to, round, .. } => self.is_awaited(*to, round.0),
            Message::Ask {
                from,
                round,
                configuration,
                ..
            } => {
                let round_asked = number(*round);
                let has_all = |it: &Acceptor| {
                    it.known.round >= round_asked
                        && it.known.configuration.knows_all_of(*configuration)
                };
                self.is_awaited(*from, round.0) || !self.all_know(has_all)
            }
            Message::Propose { round, .. } => {
                let round = number(*round);
                let is_over = |it: &Acceptor| {
                    it.known.vote_round >= round
                        || it.known.round > round
                        || it.known.slot_round > round
                };
                !self.all_know(is_over)
            }
            Message::Voted { .. } => true,
        }
    }

    /// Whether a coordinator still does something about promises of this round. Who has forgotten its rounds,
    /// or will, may ask for them again.
    fn is_awaited(&self, coordinator: u8, count: u8) -> bool {
        let coordinator = &self.coordinators[usize::from(coordinator)];
        if self.restarts_left > 0 || count > coordinator.count {
            return true;
        }
        let lets_in = coordinator
            .newcomer
            .is_some_and(|(it, _)| self.acceptors[usize::from(it)].forgotten);
        coordinator.count == count && (coordinator.phase == Phase::Asked || lets_in)
    }

    /// Whether it holds for all acceptors, whatever becomes of them: none has forgotten or will.
    fn all_know(&self, holds: impl Fn(&Acceptor) -> bool) -> bool {
        self.acceptors
            .iter()
            .all(|it| !it.forgotten && holds(it) && it.disk == it.known)
    }

    /// Of all states that differ from this one only in the acceptors' names, the first.
    pub(crate) fn representative(&self) -> Self {
        let all = PERMUTATIONS.into_iter().map(|names| self.renamed(names));
        all.min().unwrap_or_else(|| self.clone())
    }

    fn renamed(&self, names: Names) -> Self {
        let new = |old: u8| names[usize::from(old)];
        let mut acceptors = self.acceptors.clone();
        for (old, acceptor) in self.acceptors.iter().enumerate() {
            let mut acceptor = acceptor.clone();
            for held in &mut acceptor.held {
                *held = held.renamed(names);
            }
            for known in [&mut acceptor.known, &mut acceptor.disk] {
                known.configuration = known.configuration.renamed(names);
            }
            acceptors[usize::from(names[old])] = acceptor;
        }
        let mut coordinators = self.coordinators.clone();
        for coordinator in &mut coordinators {
            coordinator.newcomer = coordinator.newcomer.map(|(it, life)| (new(it), life));
            coordinator.configuration = coordinator.configuration.renamed(names);
        }
        Self {
            acceptors,
            coordinators,
            sent: self.sent.iter().map(|it| it.renamed(names)).collect(),
            losses: self.losses,
            restarts_left: self.restarts_left,
            let_in: self.let_in.map(|(newcomer, bound)| (new(newcomer), bound)),
        }
    }
}

/// The new name of each acceptor, by its old one.
type Names = [u8; ACCEPTORS as usize];

const PERMUTATIONS: [Names; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

impl Lives {
    fn renamed(self, names: Names) -> Self {
        let mut renamed = self;
        for (old, new) in names.into_iter().enumerate() {
            renamed.0[usize::from(new)] = self.0[old];
        }
        renamed
    }
}

impl Message {
    fn renamed(self, names: Names) -> Self {
        let new = |old: u8| names[usize::from(old)];
        let mut renamed = self;
        match &mut renamed {
            Self::Promise {
                from,
                configuration,
                ..
            } => {
                *from = new(*from);
                *configuration = configuration.renamed(names);
            }
            Self::Voted { from, .. } => *from = new(*from),
            Self::Ask { configuration, .. } | Self::Propose { configuration, .. } => {
                *configuration = configuration.renamed(names);
            }
        }
        renamed
    }
}
