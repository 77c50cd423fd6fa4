//! The state, and what commands and queries do with it.
use crate::command::{Answer, Command, Refusal};
use crate::counters::ValueCounters;
use crate::kept::{Discarded, Kept, free_some};
use crate::limits::{KEPT_BYTES_UNCONFIGURED, VALUE_BYTES_MAX};
use crate::mutants::mutant;
use crate::query::{Query, QueryAnswer, Recovered, Status};
use crate::snapshot::{self, FrozenValues};
use crate::{Instance, Learner};
use quorumwire_interfaces::{Application, Applied, Frozen};
use std::collections::BTreeMap;
use std::io;

/// What is replicated.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Most bytes that are kept.
    pub(crate) kept_bytes_max: u64,
    /// Whether a command has said who the learners are.
    pub(crate) is_configured: bool,
    /// The learners, each with its checkpoint: at least what is trimmed.
    pub(crate) learners: BTreeMap<Learner, Instance>,
    /// The last instance that is decided.
    pub(crate) last: Instance,
    pub(crate) kept: Kept,
}

impl Default for State {
    fn default() -> Self {
        Self {
            kept_bytes_max: KEPT_BYTES_UNCONFIGURED,
            is_configured: false,
            learners: BTreeMap::new(),
            last: 0,
            kept: Kept::default(),
        }
    }
}

/// What a learner is given next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next<'a> {
    /// The value of this instance.
    Value(Instance, &'a [u8]),
    /// Nothing yet: up to this instance there is none.
    None(Instance),
    /// It cannot go on: nothing up to this instance is kept, and it lacks some of that.
    Trimmed(Instance),
}

/// Values in the order of the log, and who has had them.
#[derive(Debug, Default)]
pub struct Values {
    state: State,
    /// No part of the state, and neither is the rest.
    discarded: Discarded,
    counters: ValueCounters,
}

impl Values {
    /// Who the learners are and how much is kept, unless no command has said so.
    #[must_use]
    pub fn configuration(&self) -> Option<(Vec<Learner>, u64)> {
        let learners = || self.state.learners.keys().copied().collect();
        let state = &self.state;
        state
            .is_configured
            .then(|| (learners(), state.kept_bytes_max))
    }

    /// Whether it is one of the learners.
    #[must_use]
    pub fn has_learner(&self, learner: Learner) -> bool {
        self.state.learners.contains_key(&learner)
    }

    /// The last instance that is decided.
    #[must_use]
    pub const fn last(&self) -> Instance {
        self.state.last
    }

    /// What a learner is given next that has had all before this instance.
    #[must_use]
    pub fn next(&self, from: Instance) -> Next<'_> {
        let trimmed = self.state.kept.trimmed();
        if from <= trimmed && !mutant("trimmed-not-said") {
            return Next::Trimmed(trimmed);
        }
        let found = self.state.kept.at_or_behind(from);
        found.map_or(Next::None(self.state.last), |(instance, value)| {
            Next::Value(instance, value)
        })
    }

    /// The learner that is furthest behind, and its checkpoint.
    #[must_use]
    pub fn furthest_behind(&self) -> Option<(Learner, Instance)> {
        self.state.furthest_behind()
    }

    /// Whether so little may still be kept that the longest value would be refused.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        let room = (self.state.kept_bytes_max).saturating_sub(self.state.kept.bytes());
        room < VALUE_BYTES_MAX as u64
    }

    /// How far all are.
    #[must_use]
    pub fn status(&self) -> Status {
        let State {
            kept_bytes_max,
            is_configured: _,
            ref learners,
            last,
            ref kept,
        } = self.state;
        Status {
            last,
            trimmed: kept.trimmed(),
            kept: kept.count(),
            kept_bytes: kept.bytes(),
            kept_bytes_max,
            learners: learners.iter().map(|(it, at)| (*it, *at)).collect(),
        }
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &ValueCounters {
        &self.counters
    }

    /// Frees some of what is not kept any more: each command does, and somebody else now and then, since
    /// there may be none.
    pub fn free_some(&mut self) -> bool {
        free_some(&mut self.discarded)
    }

    fn run(&mut self, number: u64, command: &[u8]) -> Answer {
        self.state.last = number;
        let Ok(command) = Command::decode(command) else {
            return Answer::Refused(Refusal::Malformed);
        };
        let done = match command {
            Command::Value(value) => return self.take_value(number, value),
            Command::Checkpoint { learner, upto } => self.checkpoint(learner, upto),
            Command::DeclareLost { upto } => self.declare_lost(upto),
            Command::Configure {
                learners,
                kept_bytes_max,
            } => {
                self.state.configure(&learners, kept_bytes_max);
                Ok(())
            }
        };
        if let Err(refusal) = done {
            return Answer::Refused(refusal);
        }
        let unneeded = match self.state.furthest_behind() {
            Some(_) if mutant("one-checkpoint-suffices") => {
                self.state.learners.values().max().copied()
            }
            behind => behind.map(|(_, upto)| upto),
        };
        if let Some(upto) = unneeded {
            self.trim(upto);
        }
        Answer::Trimmed(self.state.kept.trimmed())
    }

    fn take_value(&mut self, number: u64, value: &[u8]) -> Answer {
        if value.len() > VALUE_BYTES_MAX {
            self.counters.refused_too_large += 1;
            return Answer::Refused(Refusal::TooLarge {
                bytes_max: u32::try_from(VALUE_BYTES_MAX).unwrap_or(u32::MAX),
            });
        }
        let state = &mut self.state;
        if state.kept.bytes() + Kept::bytes_of(value) > state.kept_bytes_max {
            self.counters.refused_full += 1;
            return Answer::Refused(Refusal::Full {
                kept_bytes_max: state.kept_bytes_max,
                behind: state.furthest_behind(),
            });
        }
        state.kept.push(number, value);
        self.counters.decided += 1;
        self.counters.decided_bytes += value.len() as u64;
        Answer::Decided(number)
    }

    fn checkpoint(&mut self, learner: Learner, upto: Instance) -> Result<(), Refusal> {
        let state = &mut self.state;
        let before = state.learners.get_mut(&learner);
        let before = before.ok_or(Refusal::UnknownLearner(learner))?;
        if upto > state.last && !mutant("checkpoint-of-what-is-not-decided") {
            return Err(Refusal::NotDecided { last: state.last });
        }
        *before = if mutant("checkpoint-goes-back") {
            upto
        } else {
            (*before).max(upto)
        };
        self.counters.checkpoints += 1;
        Ok(())
    }

    fn declare_lost(&mut self, upto: Instance) -> Result<(), Refusal> {
        let last = self.state.last;
        if upto > last && !mutant("lost-though-not-decided") {
            return Err(Refusal::NotDecided { last });
        }
        for checkpoint in self.state.learners.values_mut() {
            *checkpoint = (*checkpoint).max(upto);
        }
        self.trim(upto);
        Ok(())
    }

    fn trim(&mut self, upto: Instance) {
        self.counters.trimmed += self.state.kept.trim(upto, &mut self.discarded);
    }
}

impl State {
    fn furthest_behind(&self) -> Option<(Learner, Instance)> {
        let all = self.learners.iter().map(|(learner, at)| (*learner, *at));
        all.min_by_key(|(_, at)| *at)
    }

    fn configure(&mut self, learners: &[Learner], kept_bytes_max: u64) {
        let checkpoint_of = |it: &Learner| {
            let before = self.learners.get(it).copied();
            let begins = if mutant("new-learner-needs-what-is-trimmed") {
                0
            } else {
                self.kept.trimmed()
            };
            (*it, before.unwrap_or(begins))
        };
        self.learners = learners.iter().map(checkpoint_of).collect();
        self.kept_bytes_max = kept_bytes_max;
        self.is_configured = true;
    }
}

impl Application for Values {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        let answer = self.run(entry.number, entry.command);
        answer.encode(reply);
        self.free_some();
    }

    fn query(&self, request: &[u8], reply: &mut Vec<u8>) {
        let answer = match Query::decode(request) {
            Err(_) | Ok(Query::Recover(0)) => QueryAnswer::Malformed,
            Ok(Query::Recover(instance)) => QueryAnswer::Recovered(match self.next(instance) {
                Next::Value(at, value) if at == instance => Recovered::Decided(value),
                Next::Trimmed(upto) => Recovered::Trimmed(upto),
                Next::Value(..) | Next::None(_) if instance <= self.state.last => Recovered::NoOp,
                Next::Value(..) | Next::None(_) => Recovered::NotDecided(self.state.last),
            }),
            Ok(Query::Status) => QueryAnswer::Status(self.status()),
        };
        answer.encode(reply);
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        Box::new(FrozenValues(self.state.clone()))
    }

    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()> {
        self.state = snapshot::read(reader)?;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.state.kept.bytes()
    }
}
