//! Values for learners: in some seeds the product's `apps/deliver` is replicated beside the store, in the
//! same log. Who submits values, checkpoints them and declares them lost asks as clients do, in sessions;
//! those that are given the values are in `learners.rs`. What comes of it is judged here.
//!
//! What must hold (I19): a value that a client submits is decided once; each learner is given all values that
//! are decided, in the order of the log, each once, also when it begins again; what some learner has neither
//! saved nor been told to be lost is kept.
use crate::clients::SESSIONS_FROM;
use crate::learners::SimulatedLearner;
use crate::machine::{Machine, Origin};
use crate::plan::Settings;
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::random::{Random, mix};
use crate::state::{Carried, values_command};
use crate::world::{Event, World};
use bytes::BytesMut;
use quorumwire_deliver::{Answer, Command, Instance, KEPT_BYTES_MIN, Learner, Refusal};
use quorumwire_group::{AnswerKind, ForwardKind, SubmitOutcome, put_in_session};
use std::collections::{BTreeMap, BTreeSet};

/// Sets what is chosen here apart from the plan's other choices.
pub const VALUES: u64 = 0xde11_7e25;
/// In so many of a thousand seeds, of those in which all code is the newest and no program is served, values
/// are given to learners.
const VALUES_PERMILLE: u64 = 100;
/// Learners, in the end. The last one comes late.
const LEARNERS: u16 = 3;
/// Who submits values.
const SUBMITTERS: usize = 2;
/// Everybody acts this often: from, to.
const ACTS_EVERY: (Nanos, Nanos) = (10 * MILLISECOND, 60 * MILLISECOND);
/// A submitter has a value so many of a thousand times.
const SUBMITS_PERMILLE: u64 = 150;
/// A learner checkpoints so many of a thousand times, if it is not slow.
const CHECKPOINTS_PERMILLE: u64 = 40;
/// Somebody declares values lost so many of a thousand times, in seeds with an operator who does.
const LOST_PERMILLE: u64 = 2;
/// Who hears nothing for as long asks elsewhere.
const PATIENCE: Nanos = 700 * MILLISECOND;
/// And so often.
const ATTEMPTS_MAX: u8 = 4;
/// These sessions are of those that ask here.
const SESSIONS: u64 = SESSIONS_FROM + (1 << 32);
/// What a leader asks for by itself.
const NOBODY: u8 = u8::MAX;
/// A leader asks again for the learners after so long, as in the node.
const CONFIGURE_EVERY: Nanos = SECOND;
/// Far more than a run decides.
const KEPT_BYTES: u64 = 8 * KEPT_BYTES_MIN;

/// What a run must have reached.
pub const OUTCOMES: [&str; 15] = [
    "values: answered with the instance",
    "values: asked again, and decided once",
    "values: begun behind what was saved",
    "values: checkpointed",
    "values: declared lost",
    "values: given",
    "values: learner added",
    "values: learner goes on elsewhere",
    "values: learner killed",
    "values: not decided yet, and refused",
    "values: old checkpoint changes nothing",
    "values: sent elsewhere, as nobody leads",
    "values: told up to where they are lost",
    "values: trimmed",
    "values: waited for credit",
];

/// What somebody has asked of the log.
struct Asked {
    command: Vec<u8>,
    /// Where it is asked now.
    machine: usize,
    is_sent: bool,
    attempts: u8,
    since: Nanos,
}

/// Somebody who asks one thing at a time.
#[derive(Default)]
struct Asker {
    generation: u64,
    sequence: u64,
    asked: Option<Asked>,
}

/// What the world has.
#[derive(Default)]
pub struct ValuesWorld {
    random: Option<Random>,
    /// Those who submit, one for each learner, and the operator.
    askers: Vec<Asker>,
    /// Those that are given values.
    pub learners: Vec<SimulatedLearner>,
    /// What is known of the log.
    pub judge: Judge,
    asked_to_configure: Nanos,
    third_learner_at: Nanos,
    has_operator: bool,
}

/// What the log has said so far.
#[derive(Default)]
pub struct Judge {
    /// The last command that anybody carried out.
    last: u64,
    /// All values.
    decided: Vec<(Instance, Vec<u8>)>,
    known: BTreeSet<Vec<u8>>,
    /// The learners, and behind which instance each begins.
    learners: BTreeMap<Learner, Instance>,
    checkpoints: BTreeMap<Learner, Instance>,
    trimmed: Instance,
    /// Up to here values were declared lost.
    pub lost: Instance,
}

impl Judge {
    /// The first value behind an instance.
    pub fn behind(&self, instance: Instance) -> Option<&(Instance, Vec<u8>)> {
        let place = self.decided.partition_point(|(it, _)| *it <= instance);
        self.decided.get(place)
    }

    fn holds(&self, instance: Instance, value: &[u8]) -> bool {
        let found = instance.checked_sub(1).and_then(|it| self.behind(it));
        found.is_some_and(|(at, found)| *at == instance && found == value)
    }

    /// A command is carried out for the first time, while learners have saved so much. What is to be counted;
    /// the error is what is wrong.
    fn see(
        &mut self,
        carried: &Carried,
        saved: &BTreeMap<Learner, Instance>,
    ) -> Result<Option<&'static str>, String> {
        let number = carried.number;
        self.last = number;
        let command = Command::decode(&carried.command);
        let seen;
        let trimmed = match (command, carried.answer) {
            (Ok(Command::Value(value)), Some(Answer::Decided(instance))) => {
                self.decided.push((instance, value.to_vec()));
                let is_first = self.known.insert(value.to_vec());
                let is_right = is_first && instance == number;
                let wrong = || format!("{value:?} is decided as {instance}, by {number}");
                return is_right.then_some(None).ok_or_else(wrong);
            }
            (
                Ok(Command::Checkpoint { upto, .. }),
                Some(Answer::Refused(Refusal::NotDecided { .. })),
            )
            | (
                Ok(Command::DeclareLost { upto }),
                Some(Answer::Refused(Refusal::NotDecided { .. })),
            ) if upto > number => {
                return Ok(Some("values: not decided yet, and refused"));
            }
            (Ok(Command::Checkpoint { learner, upto }), Some(Answer::Trimmed(trimmed)))
                if upto <= number =>
            {
                let before = self.checkpoints.insert(learner, upto);
                let is_older = before.is_some_and(|it| it > upto);
                seen = is_older.then_some("values: old checkpoint changes nothing");
                trimmed
            }
            (Ok(Command::DeclareLost { upto }), Some(Answer::Trimmed(trimmed)))
                if upto <= number =>
            {
                self.lost = self.lost.max(upto);
                seen = Some("values: declared lost");
                trimmed
            }
            (Ok(Command::Configure { learners, .. }), Some(Answer::Trimmed(trimmed))) => {
                for learner in learners {
                    self.learners.entry(learner).or_insert(trimmed);
                }
                let all = self.learners.len() == usize::from(LEARNERS);
                seen = all.then_some("values: learner added");
                trimmed
            }
            (command, answer) => return Err(format!("{command:?} is answered {answer:?}")),
        };
        let needed = |(learner, began): (&Learner, &Instance)| {
            let saved = saved.get(learner).copied().unwrap_or(0);
            saved.max(*began).max(self.lost)
        };
        let needed = self.learners.iter().map(needed).min();
        if trimmed > needed.unwrap_or(self.lost) || trimmed < self.trimmed {
            return Err(format!(
                "values up to {trimmed} are trimmed by {number}, and before up to {}; saved: {saved:?}, lost: {}, begun: {:?}",
                self.trimmed, self.lost, self.learners
            ));
        }
        if trimmed > self.trimmed && seen.is_none() {
            self.trimmed = trimmed;
            return Ok(Some("values: trimmed"));
        }
        self.trimmed = trimmed;
        Ok(seen)
    }
}

impl Settings {
    /// Values are given to learners, too.
    #[must_use]
    pub fn gives_values(&self) -> bool {
        let random = &mut Random::new(mix(self.seed ^ VALUES));
        !self.begins_older && !self.serves() && random.permille(VALUES_PERMILLE)
    }
}

impl Machine {
    /// Its process begins with the values of its state.
    pub fn begin_values(&mut self, settings: &Settings) {
        if let Some(process) = self.process.as_mut().filter(|_| settings.gives_values()) {
            process
                .group
                .store
                .inner_mut()
                .values
                .get_or_insert_default();
        }
    }
}

impl World {
    /// Chance of its own.
    pub fn values_chance(&mut self) -> &mut Random {
        let seed = self.plan.settings.seed ^ VALUES;
        let random = &mut self.values.random;
        random.get_or_insert_with(|| Random::new(mix(seed ^ 1)))
    }

    /// Before anything has happened.
    pub fn begin_values(&mut self) {
        if !self.plan.settings.gives_values() {
            return;
        }
        let third = self.values_chance().between(20, 200) * SECOND;
        let has_operator = self.values_chance().permille(400);
        let askers = SUBMITTERS + usize::from(LEARNERS) + 1;
        self.values.askers.resize_with(askers, Asker::default);
        self.values.third_learner_at = third;
        self.values.has_operator = has_operator;
        for learner in 1..=LEARNERS {
            let luck = self.values_chance().next();
            self.values
                .learners
                .push(SimulatedLearner::new(learner, luck));
        }
        self.queue.set(SECOND, Event::Values);
    }

    /// Everybody acts.
    pub fn values_go_on(&mut self) {
        let (from, to) = ACTS_EVERY;
        let wait = self.values_chance().between(from, to);
        self.queue.set(self.now + wait, Event::Values);
        for learner in 0..self.values.learners.len() {
            self.learner_acts(learner);
        }
        for asker in 0..self.values.askers.len() {
            self.asker_acts(asker);
        }
    }

    fn asker_acts(&mut self, asker: usize) {
        let (now, machines) = (self.now, self.machines.len() as u64);
        let elsewhere = usize::try_from(self.values_chance().below(machines)).unwrap_or(0);
        let it = &mut self.values.askers[asker];
        if let Some(asked) = &mut it.asked {
            if now < asked.since + PATIENCE {
                return;
            }
            if asked.attempts == ATTEMPTS_MAX {
                it.asked = None;
                return;
            }
            asked.attempts += 1;
            asked.is_sent = false;
            asked.since = now;
            asked.machine = elsewhere;
            return;
        }
        if now >= self.clients_stop_at {
            return;
        }
        if let Some(command) = self.what_to_ask(asker) {
            let it = &mut self.values.askers[asker];
            it.sequence += 1;
            it.asked = Some(Asked {
                command: values_command(&command),
                machine: elsewhere,
                is_sent: false,
                attempts: 1,
                since: now,
            });
        }
    }

    fn what_to_ask(&mut self, asker: usize) -> Option<Vec<u8>> {
        let chance = self.values_chance();
        if asker < SUBMITTERS {
            if !chance.permille(SUBMITS_PERMILLE) {
                return None;
            }
            let bytes = usize::try_from(chance.below(300)).unwrap_or(0);
            let it = &self.values.askers[asker];
            let mut value = format!("{asker}.{}.{} ", it.generation, it.sequence).into_bytes();
            value.resize(value.len() + bytes, b'v');
            return Some(Command::Value(&value).encode());
        }
        let (luck, distance) = (chance.below(1000), chance.between(1, 40));
        let last = self.values.judge.last;
        let Some(it) = self.values.learners.get(asker - SUBMITTERS) else {
            let wanted = self.values.has_operator && !self.peace && luck < LOST_PERMILLE;
            let upto = match distance {
                1..10 => last + 1_000_000,
                _ => last.saturating_sub(distance),
            };
            return wanted.then(|| Command::DeclareLost { upto }.encode());
        };
        let saved = it.saved.filter(|_| luck < CHECKPOINTS_PERMILLE)?;
        // Some programs say again what they have said before, or what makes no sense.
        let upto = match distance {
            1 | 2 => last + 1_000_000,
            3..7 => saved.saturating_sub(distance),
            _ => saved,
        };
        let learner = it.id;
        (self.values.judge.learners.contains_key(&learner))
            .then(|| Command::Checkpoint { learner, upto }.encode())
    }

    /// What a process does every now and then: asks what it is asked, and gives what there is.
    pub fn keep_values(&mut self, machine: usize) {
        if self.values.askers.is_empty() {
            return;
        }
        self.configure_values(machine);
        for asker in 0..self.values.askers.len() {
            let it = &mut self.values.askers[asker];
            let (name, asked) = ((it.name(asker), it.sequence), &mut it.asked);
            let Some(asked) = asked
                .as_mut()
                .filter(|it| it.machine == machine && !it.is_sent)
            else {
                continue;
            };
            asked.is_sent = true;
            let command = asked.command.clone();
            let number = u8::try_from(asker).unwrap_or(NOBODY);
            let origin = Origin::Values(number, it.generation << 32 | name.1);
            self.ask_in_session(machine, origin, name, &command);
        }
        self.give_values(machine);
    }

    fn ask_in_session(&mut self, machine: usize, origin: Origin, name: (u64, u64), command: &[u8]) {
        let forwards = self.plan.settings.forwards();
        self.drive(machine, |group| {
            if group.leads() || group.waits_since_fast_term() {
                return group.write_in_session(origin, name, command);
            }
            let leader = match group.leader_to_ask() {
                Ok(leader) if forwards => leader,
                Ok(_) => return SubmitOutcome::NoRoom,
                Err(outcome) => return outcome,
            };
            let mut whole = BytesMut::new();
            put_in_session(&mut whole, name, command);
            let sent = group.forward(leader, origin, ForwardKind::Session, whole.freeze());
            sent.map_or(SubmitOutcome::NoRoom, |_| SubmitOutcome::Pending)
        });
    }

    /// As in the node: a leader asks for the learners of its options where the log says something else.
    fn configure_values(&mut self, machine: usize) {
        let (now, values) = (self.now, &self.values);
        let Some(process) = &self.machines[machine].process else {
            return;
        };
        let group = &process.group;
        let count = if now < values.third_learner_at {
            2
        } else {
            LEARNERS
        };
        let learners: Vec<_> = (1..=count).collect();
        let state = group.store.inner().values.as_deref();
        let found = state.and_then(quorumwire_deliver::Values::configuration);
        let is_current = group.leads() && group.applied >= group.term_start;
        let is_due = now >= values.asked_to_configure + CONFIGURE_EVERY;
        let known = found.map_or(0, |(learners, _)| learners.len());
        if !is_current || !is_due || known >= learners.len() {
            return;
        }
        self.values.asked_to_configure = now;
        let command = Command::Configure {
            learners,
            kept_bytes_max: KEPT_BYTES,
        };
        let command = values_command(&command.encode());
        let origin = Origin::Values(NOBODY, 0);
        self.drive(machine, |group| {
            group.write(origin, command.len(), |it| it.extend_from_slice(&command))
        });
    }

    /// Commands were carried out here: those that nobody has carried out before are judged.
    pub fn judge_values(&mut self, machine: usize) {
        let process = self.machines[machine].process.as_mut();
        let carried = process.map(|it| std::mem::take(&mut it.group.store.inner_mut().carried));
        for carried in carried.unwrap_or_default() {
            if carried.number <= self.values.judge.last {
                continue;
            }
            let saved = |it: &SimulatedLearner| (it.id, it.saved.unwrap_or(0));
            let saved = self.values.learners.iter().map(saved).collect();
            match self.values.judge.see(&carried, &saved) {
                Ok(seen) => seen.into_iter().for_each(|it| self.counts.see(it)),
                Err(problem) => self.checks.require(false, || format!("I19: {problem}")),
            }
        }
    }

    /// What became of what was asked.
    pub fn values_are_answered(
        &mut self,
        (who, number): (u8, u64),
        said: AnswerKind,
        reply: &[u8],
    ) {
        let judge = &self.values.judge;
        let Some(it) = self.values.askers.get_mut(usize::from(who)) else {
            return; // nobody waits for it
        };
        let Some(asked) = it
            .asked
            .as_ref()
            .filter(|_| it.generation << 32 | it.sequence == number)
        else {
            return; // it has gone on
        };
        if let AnswerKind::Refused(_) = said {
            // It may be carried out yet, and may not be known any more: a new session, where it is given up.
            if asked.attempts == ATTEMPTS_MAX {
                it.asked = None;
                it.generation += 1;
                it.sequence = 0;
            }
            return;
        }
        let is_again = asked.attempts > 1;
        let answer = Answer::decode(reply);
        let command = Command::decode(&asked.command[1..]);
        let (is_right, seen) = match (&command, answer) {
            (Ok(Command::Value(value)), Ok(Answer::Decided(instance))) if is_again => {
                let is_right = judge.holds(instance, value);
                (is_right, "values: asked again, and decided once")
            }
            (Ok(Command::Value(value)), Ok(Answer::Decided(instance))) => {
                let is_right = judge.holds(instance, value);
                (is_right, "values: answered with the instance")
            }
            (Ok(Command::Value(_)) | Err(_), _) => (false, ""),
            (Ok(_), Ok(Answer::Trimmed(_) | Answer::Refused(Refusal::NotDecided { .. }))) => {
                (true, "values: checkpointed")
            }
            (Ok(_), _) => (false, ""),
        };
        self.checks.require(is_right, || {
            format!("I19: {command:?} is answered {answer:?}, which the log does not hold")
        });
        it.asked = None;
        self.counts.see(seen);
    }
}

impl Asker {
    fn name(&self, asker: usize) -> u64 {
        SESSIONS + (self.generation << 8) + asker as u64
    }
}
