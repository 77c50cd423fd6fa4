//! What a coordinator's software does: it asks, adopts what was voted for, and lets acceptors in.
use crate::acceptor;
use crate::model::Deployment;
use crate::rule::Rule;
use crate::state::{
    ACCEPTORS, Coordinator, INSTANCE, Lives, MAJORITY, Message, Phase, Round, State,
};

/// What an acceptor has said about a round.
#[derive(Clone, Copy)]
struct Said {
    from: u8,
    /// Up to which instance it is no member.
    bound: u8,
    /// The highest instance it voted for.
    highest: u8,
    vote: Option<(Round, u8)>,
}

impl Deployment {
    fn owner(&self, me: u8) -> u8 {
        if self.one_number { 1 } else { me + 1 }
    }

    fn round_of(&self, state: &State, me: u8) -> Round {
        (state.coordinators[usize::from(me)].count, self.owner(me))
    }

    fn drawn(&self, state: &State, me: u8) -> u8 {
        if self.holds(Rule::DrawsAnew) {
            own(state, me)
        } else {
            1
        }
    }

    /// Asks all acceptors for the next round; `newcomer`: in the next configuration, to let it in.
    pub(crate) fn ask(&self, state: &mut State, me: u8, newcomer: Option<u8>) -> bool {
        let known = known_lives(state);
        let coordinator = &mut state.coordinators[usize::from(me)];
        if coordinator.count >= self.bounds.rounds_max {
            return false;
        }
        if newcomer.is_some_and(|it| !state.acceptors[usize::from(it)].forgotten) {
            return false;
        }
        coordinator.count += 1;
        coordinator.configuration = known;
        if let Some(newcomer) = newcomer {
            let place = usize::from(newcomer);
            coordinator.configuration.0[place] = state.acceptors[place].life;
        }
        coordinator.phase = Phase::Asked;
        coordinator.newcomer = newcomer.map(|it| (it, state.acceptors[usize::from(it)].life));
        let round = self.round_of(state, me);
        state.sent.insert(Message::Ask {
            from: me,
            round,
            drawn: self.drawn(state, me),
            configuration: state.coordinators[usize::from(me)].configuration,
        })
    }

    /// Who has promised the round of this coordinator for all instances.
    fn promised(&self, state: &State, me: u8) -> Vec<Said> {
        let mine = self.round_of(state, me);
        let current = state.coordinators[usize::from(me)].configuration;
        let mine_drawn = self.drawn(state, me);
        let said = state.sent.iter().filter_map(|message| match message {
            Message::Promise {
                from,
                to,
                round,
                configuration,
                drawn,
                bound,
                highest,
                vote,
            } if *to == me
                && *round == mine
                && (*drawn == mine_drawn || !self.holds(Rule::PromiseNamesQuestion))
                && self.is_valid(*configuration, current) =>
            {
                Some(Said {
                    from: *from,
                    bound: *bound,
                    highest: *highest,
                    vote: *vote,
                })
            }
            Message::Ask { .. }
            | Message::Promise { .. }
            | Message::Propose { .. }
            | Message::Voted { .. } => None,
        });
        said.collect()
    }

    fn is_valid(&self, configuration: Lives, current: Lives) -> bool {
        configuration == current || !self.holds(Rule::ConfigurationCounts)
    }

    fn promises_needed(&self) -> u32 {
        if self.holds(Rule::MajorityPromises) {
            MAJORITY
        } else {
            MAJORITY - 1
        }
    }

    /// Proposes a value on the strength of these acceptors' promises (a bit for each).
    pub(crate) fn propose(&self, state: &mut State, me: u8, quorum: u8) -> bool {
        let coordinator = state.coordinators[usize::from(me)];
        if coordinator.phase != Phase::Asked {
            return false;
        }
        let members: Vec<Said> = self
            .promised(state, me)
            .into_iter()
            .filter(|said| quorum >> said.from & 1 == 1 && u64::from(said.bound) < INSTANCE)
            .collect();
        let of_quorum = u32::try_from(members.len()).unwrap_or(u32::MAX);
        if of_quorum != quorum.count_ones() || of_quorum < self.promises_needed() {
            return false;
        }
        let votes = members.iter().filter_map(|said| said.vote);
        let adopted = if self.holds(Rule::AdoptsHighestVote) {
            votes.max()
        } else {
            votes.min()
        };
        let round = self.round_of(state, me);
        let own = own(state, me);
        state.sent.insert(Message::Propose {
            round,
            configuration: coordinator.configuration,
            value: adopted.map_or(own, |(_, value)| value),
        });
        state.coordinators[usize::from(me)].phase = Phase::Proposed;
        true
    }

    /// A coordinator stops and begins anew. With the rule it knows nothing of its round and asks for another
    /// one; without, it takes its round up again and proposes something else in it.
    pub(crate) fn begin_anew(&self, state: &mut State, me: u8) -> bool {
        let round = self.round_of(state, me);
        let coordinator = &mut state.coordinators[usize::from(me)];
        if coordinator.phase != Phase::Proposed {
            return false;
        }
        let configuration = coordinator.configuration;
        coordinator.phase = Phase::Backup;
        if !self.holds(Rule::AsksAnew) {
            state.sent.insert(Message::Propose {
                round,
                configuration,
                value: 200 + me,
            });
        }
        true
    }

    /// Lets the newcomer in, on the strength of these acceptors' promises (a bit for each).
    pub(crate) fn let_in(&self, state: &mut State, me: u8, quorum: u8) -> bool {
        let coordinator = state.coordinators[usize::from(me)];
        let Some((newcomer, life)) = coordinator.newcomer else {
            return false;
        };
        let is_that_life = state.acceptors[usize::from(newcomer)].life == life;
        if !is_that_life && self.holds(Rule::LetsInOneLife) {
            return false;
        }
        if !state.acceptors[usize::from(newcomer)].forgotten || quorum >> newcomer & 1 == 1 {
            return false;
        }
        let others: Vec<Said> = self
            .promised(state, me)
            .into_iter()
            .filter(|said| quorum >> said.from & 1 == 1)
            .collect();
        let needed = if self.holds(Rule::MajorityOfOthers) {
            MAJORITY
        } else {
            MAJORITY - 1
        };
        let of_quorum = u32::try_from(others.len()).unwrap_or(u32::MAX);
        if of_quorum != quorum.count_ones() || of_quorum < needed {
            return false;
        }
        let highest = others.iter().map(|said| said.highest.max(said.bound)).max();
        let bound = if self.holds(Rule::NoMemberUpToBound) {
            highest.unwrap_or(0)
        } else {
            0
        };
        let round = self.round_of(state, me);
        let acceptor = &mut state.acceptors[usize::from(newcomer)];
        acceptor::let_in(acceptor, coordinator.configuration, round, bound);
        state.let_in = Some((newcomer, bound));
        true
    }
}

/// What nobody else draws for a round; as a value, what nobody else proposes in it.
fn own(state: &State, me: u8) -> u8 {
    let Coordinator { count, life, .. } = state.coordinators[usize::from(me)];
    50 * life + 10 * (me + 1) + count
}

/// A coordinator stops, and another one with its number begins, which knows of none of its rounds.
pub(crate) fn restart(state: &mut State, me: u8) -> bool {
    let coordinator = &mut state.coordinators[usize::from(me)];
    if state.restarts_left == 0 || coordinator.count == 0 {
        return false;
    }
    state.restarts_left -= 1;
    *coordinator = Coordinator {
        phase: Phase::Backup,
        count: 0,
        life: coordinator.life + 1,
        configuration: Lives::default(),
        newcomer: None,
    };
    true
}

/// The latest lives that anybody ever asked with. Who knows only earlier ones is answered nothing.
fn known_lives(state: &State) -> Lives {
    let asked = state.sent.iter().filter_map(|message| match message {
        Message::Ask { configuration, .. } => Some(*configuration),
        Message::Promise { .. } | Message::Propose { .. } | Message::Voted { .. } => None,
    });
    asked.fold(Lives::default(), Lives::with)
}

/// All sets of acceptors that are not empty.
pub(crate) fn quorums() -> impl Iterator<Item = u8> {
    1..1 << ACCEPTORS
}
