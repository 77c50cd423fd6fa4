//! Acceptors' votes, counted: what is decided, in the order of instances, each once.
use crate::deployment::{Acceptors, Deployment};
use crate::mutants::mutant;
use quorumwire_wire::packet::{FLAG_FRAGMENT, FLAG_REFUSED, Header, Kind};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Rounds of one instance whose votes are counted at a time: the highest ones.
pub const ROUNDS_MAX: usize = 8;

/// A value that was decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decided {
    /// In which instance.
    pub instance: u64,
    /// Whose value it is; 0: a no-op, for nobody.
    pub session: u64,
    /// Its number in the session.
    pub sequence: u64,
    /// It is a piece of a value.
    pub is_fragment: bool,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// Why a packet is not counted.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Ignored {
    /// It is no vote of this deployment, or of nobody.
    NoVote,
    /// The acceptor has not voted: its round was refused.
    Refused,
    /// The instance was given already.
    Late,
    /// The instance is beyond the window: the learner is too far behind.
    Beyond,
    /// The acceptor's vote in this round was counted already.
    Repeated,
    /// Higher rounds have taken all the room there is, or have decided.
    OldRound,
    /// In this round there is another value: two coordinators have one round, or a vote is forged. Nobody may
    /// go on as if nothing had happened.
    TwoValues,
    /// Another value was decided in an earlier round. Likewise.
    Contradiction,
}

/// The votes of one round.
#[derive(Debug)]
struct InRound {
    from: Acceptors,
    value: Decided,
}

/// What is known of one instance.
#[derive(Debug, Default)]
struct Open {
    /// By round.
    rounds: BTreeMap<u64, InRound>,
    /// In which round, and what.
    decided: Option<(u64, Decided)>,
}

/// The votes of all instances that are open for a learner.
#[derive(Debug)]
pub struct Votes {
    deployment: Deployment,
    /// The next instance to be given.
    next: u64,
    open: BTreeMap<u64, Open>,
    /// The highest instance that somebody has voted in.
    highest: u64,
}

impl Votes {
    /// One that has everything before this instance, which is 1 or what stands behind a checkpoint.
    ///
    /// # Panics
    /// Before instance 0: instances begin with 1.
    #[must_use]
    pub fn new(deployment: Deployment, next: u64) -> Self {
        assert!(next > 0, "instances begin with 1");
        Self {
            deployment,
            next,
            open: BTreeMap::new(),
            highest: 0,
        }
    }

    /// The highest instance that somebody was seen to vote in. Of what is beyond the window it shows only
    /// that there is something.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The next instance to be given.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether an instance is beyond the window.
    pub(crate) fn is_beyond(&self, instance: u64) -> bool {
        let ahead = instance.saturating_sub(self.next);
        ahead >= u64::from(self.deployment.window)
    }

    /// Whether it is known what is decided in an instance that was not given yet.
    pub(crate) fn is_decided(&self, instance: u64) -> bool {
        let open = self.open.get(&instance);
        open.is_some_and(|it| it.decided.is_some())
    }

    /// Counts a vote: a P2B whose tag is right.
    ///
    /// # Errors
    /// Why it was not counted.
    pub fn on_vote(&mut self, header: &Header, payload: &[u8]) -> Result<(), Ignored> {
        let is_vote = header.kind == Kind::P2b as u8 && header.group == self.deployment.group;
        if !is_vote || header.sender >= self.deployment.acceptors || header.index == 0 {
            return Err(Ignored::NoVote);
        }
        if header.flags & FLAG_REFUSED != 0 {
            return Err(Ignored::Refused);
        }
        if header.index < self.next {
            return Err(Ignored::Late);
        }
        if self.is_beyond(header.index) {
            // As with a coordinator's sign of life: asking for one instance shows whether it is so.
            self.highest = self.highest.max(self.next);
            return Err(Ignored::Beyond);
        }
        self.highest = self.highest.max(header.index);
        let value = Decided {
            instance: header.index,
            session: header.session,
            sequence: header.sequence,
            is_fragment: header.flags & FLAG_FRAGMENT != 0,
            payload: payload.to_vec(),
        };
        let open = self.open.entry(header.index).or_default();
        open.count(header.term, header.sender, value, &self.deployment)
    }

    /// Takes what is decided next, if it is.
    pub fn take(&mut self) -> Option<Decided> {
        let (_, decided) = self.open.get_mut(&self.next)?.decided.take()?;
        self.open.remove(&self.next);
        self.next += 1;
        Some(decided)
    }

    /// The instances up to this one, in order, of which is not known what is decided. Who asks for them has
    /// to have waited a while: votes may be on their way.
    pub fn missing(&self, upto: u64) -> impl Iterator<Item = u64> + '_ {
        let last = upto.min(self.next + u64::from(self.deployment.window) - 1);
        (self.next..=last).filter(|instance| !self.is_decided(*instance))
    }

    /// Goes on behind a checkpoint of another learner. Nothing happens if this one is further.
    pub fn begin_behind(&mut self, checkpoint: u64) {
        if checkpoint >= self.next {
            self.next = checkpoint + 1;
            self.open = self.open.split_off(&self.next);
        }
    }
}

impl Open {
    fn count(
        &mut self,
        round: u64,
        acceptor: u8,
        value: Decided,
        deployment: &Deployment,
    ) -> Result<(), Ignored> {
        if let Some((decided_in, decided)) = &self.decided {
            // A later round can only have decided it again. An earlier one may have had another value.
            return Err(match round.cmp(decided_in) {
                Ordering::Equal if *decided != value => Ignored::TwoValues,
                Ordering::Greater if *decided != value => Ignored::Contradiction,
                Ordering::Equal | Ordering::Greater => Ignored::Repeated,
                Ordering::Less => Ignored::OldRound,
            });
        }
        if !self.rounds.contains_key(&round) && self.rounds.len() >= ROUNDS_MAX {
            let lowest = self.rounds.first_key_value().map(|(round, _)| *round);
            if lowest.is_some_and(|it| round < it) {
                return Err(Ignored::OldRound);
            }
            self.rounds.pop_first();
        }
        let votes = self.rounds.entry(round).or_insert_with(|| InRound {
            from: Acceptors::default(),
            value: value.clone(),
        });
        if votes.value != value {
            return Err(Ignored::TwoValues);
        }
        if !votes.from.insert(acceptor) {
            return Err(Ignored::Repeated);
        }
        if votes.from.are_majority(deployment) || mutant("one-vote-decides") {
            self.decided = Some((round, value));
            self.rounds.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "votes_test.rs"]
mod tests;
