//! The world: acceptors, coordinators, and everything that was ever sent. It may arrive never, late, often
//! and in any order.
use std::collections::BTreeSet;

/// How many acceptors there are.
pub const ACCEPTORS: u8 = 3;
/// How many of them are a majority.
pub const MAJORITY: u32 = 2;
/// How many coordinators there are.
pub const COORDINATORS: u8 = 2;
/// The only instance: values of different ones never meet.
pub const INSTANCE: u64 = 1;

/// A round, as its count and whose it is.
pub type Round = (u8, u8);

/// A configuration: which life of each acceptor counts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Lives(pub [u8; ACCEPTORS as usize]);

impl Lives {
    /// As one number; no two have the same.
    pub(crate) fn number(self) -> u16 {
        self.0
            .iter()
            .fold(1, |number, life| number * 4 + u16::from(*life))
    }

    /// Whether it knows of each life that the other one knows of.
    pub(crate) fn knows_all_of(self, other: Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(mine, theirs)| *mine >= theirs)
    }

    /// The latest life of each that one of the two knows of.
    pub(crate) fn with(self, other: Self) -> Self {
        let mut both = self;
        for (mine, theirs) in both.0.iter_mut().zip(other.0) {
            *mine = theirs.max(*mine);
        }
        both
    }
}

/// What was sent. A promise goes to the coordinator that asked, the rest to everybody.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Message {
    /// P1A of all instances, and then of the one.
    Ask {
        /// Which coordinator asks.
        from: u8,
        /// For which round.
        round: Round,
        /// What it drew for it.
        drawn: u8,
        /// In which configuration.
        configuration: Lives,
    },
    /// P1B of all instances, and of the one.
    Promise {
        /// The acceptor.
        from: u8,
        /// The coordinator that asked.
        to: u8,
        /// The round promised.
        round: Round,
        /// In which configuration.
        configuration: Lives,
        /// What was drawn for the question that it answers.
        drawn: u8,
        /// Up to which instance it is no member.
        bound: u8,
        /// The highest instance that it voted for.
        highest: u8,
        /// The vote's round and value.
        vote: Option<(Round, u8)>,
    },
    /// P2A.
    Propose {
        /// In which round.
        round: Round,
        /// In which configuration.
        configuration: Lives,
        /// The value.
        value: u8,
    },
    /// P2B.
    Voted {
        /// The acceptor.
        from: u8,
        /// In which round.
        round: Round,
        /// The value.
        value: u8,
    },
}

/// What an acceptor knows: of its registers and of the instance's slot what changes, named as there.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Known {
    /// Which acceptors there are.
    pub configuration: Lives,
    /// The round promised for all instances.
    pub round: u16,
    /// What its coordinator drew.
    pub promised_to: u16,
    /// The highest round promised for the one.
    pub single_round: u16,
    /// It is no member up to this instance.
    pub bound: u16,
    /// The highest instance voted for.
    pub highest: u16,
    /// Slot: the instance, or 0.
    pub instance: u16,
    /// Slot: the round promised or voted in.
    pub slot_round: u16,
    /// Slot: what its coordinator drew.
    pub slot_promised_to: u16,
    /// Slot: the vote's round.
    pub vote_round: u16,
    /// Slot: the vote's value.
    pub value: u16,
}

/// One acceptor.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Acceptor {
    /// In memory.
    pub known: Known,
    /// On disk (`Sync`).
    pub disk: Known,
    /// What is to be sent when it is on disk.
    pub held: Vec<Message>,
    /// How often it has lost its memory.
    pub life: u8,
    /// It has lost its memory and was not let in again: its box is off.
    pub forgotten: bool,
}

/// How far a coordinator is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// It is not one.
    Backup,
    /// It has asked for its round.
    Asked,
    /// It has proposed a value.
    Proposed,
}

/// One coordinator.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Coordinator {
    /// What it does.
    pub phase: Phase,
    /// How many rounds it has asked for, as far as it knows.
    pub count: u8,
    /// How often it has forgotten how many.
    pub life: u8,
    /// Its configuration.
    pub configuration: Lives,
    /// The acceptor that it will let in, and which of its lives.
    pub newcomer: Option<(u8, u8)>,
}

/// Everything.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct State {
    /// By number.
    pub acceptors: Vec<Acceptor>,
    /// By number.
    pub coordinators: Vec<Coordinator>,
    /// Everything that was ever sent.
    pub sent: BTreeSet<Message>,
    /// How often an acceptor has crashed or forgotten.
    pub losses: u8,
    /// How often coordinators may still forget how many rounds they have asked for.
    pub restarts_left: u8,
    /// The acceptor that was let in last, and up to which instance it is no member.
    pub let_in: Option<(u8, u8)>,
}

impl State {
    /// The values that learners take for decided.
    pub(crate) fn decided(&self, in_one_round: bool) -> BTreeSet<u8> {
        let votes: Vec<(u8, Round, u8)> = self.sent.iter().filter_map(vote_in).collect();
        let decided = votes.iter().filter(|(_, round, value)| {
            let who: BTreeSet<u8> = votes
                .iter()
                .filter(|(_, of, it)| it == value && (of == round || !in_one_round))
                .map(|(from, _, _)| *from)
                .collect();
            who.len() >= usize::try_from(MAJORITY).unwrap_or(usize::MAX)
        });
        decided.map(|(_, _, value)| *value).collect()
    }

    /// Whether a value was decided again in a later round.
    pub(crate) fn survives(&self) -> bool {
        let votes: Vec<(u8, Round, u8)> = self.sent.iter().filter_map(vote_in).collect();
        let rounds: BTreeSet<Round> = votes
            .iter()
            .filter(|(from, round, _)| votes.iter().any(|it| it.1 == *round && it.0 != *from))
            .map(|(_, round, _)| *round)
            .collect();
        rounds.len() > 1
    }

    /// Whether an acceptor that was let in has voted since.
    pub(crate) fn newcomer_votes(&self) -> bool {
        self.let_in.is_some_and(|(newcomer, _)| {
            let acceptor = &self.acceptors[usize::from(newcomer)];
            !acceptor.forgotten && acceptor.known.vote_round > 0
        })
    }
}

fn vote_in(message: &Message) -> Option<(u8, Round, u8)> {
    match message {
        Message::Voted { from, round, value } => Some((*from, *round, *value)),
        Message::Ask { .. } | Message::Promise { .. } | Message::Propose { .. } => None,
    }
}
