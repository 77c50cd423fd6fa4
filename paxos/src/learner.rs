//! A learner: hears votes, gives what is decided in the order of instances, asks for what it misses, and says
//! how far its application has kept it.
use crate::deployment::Deployment;
use crate::orders::{Orders, To, send};
use crate::recovery::{Asking, Heard, Recovery};
use crate::round::{owner_of, round_above};
use crate::values::{Fate, Values};
use crate::votes::{Decided, Ignored, Votes};
use quorumwire_wire::packet::{FLAG_REFUSED, Header, Kind, PAYLOAD_BYTES_MAX};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// Instances that a learner asks for at a time by itself; as many again for its caller.
pub const RECOVERING_MAX: usize = 32;
/// Times that a question is sent in a round at first; then another round is tried.
const TRIES_MAX: u32 = 5;
/// What a round lasts doubles at most so often.
const DOUBLINGS_MAX: u32 = 7;
/// The pause between two tries doubles at most so often; then there are more tries.
const PAUSE_DOUBLINGS_MAX: u32 = 3;
/// After so long without a round that came to nothing it waits half as long.
const FORGETS_AFTER: Duration = Duration::from_secs(10);

/// Time since some moment that the host knows.
pub type Since = Duration;

/// How a learner goes about it.
#[derive(Clone, Copy, Debug)]
pub struct LearnerOptions {
    /// Of which deployment.
    pub deployment: Deployment,
    /// Which learner.
    pub me: u8,
    /// What it misses for this long it asks for.
    pub patience: Duration,
    /// A question is repeated after this.
    pub retry: Duration,
    /// How often it says how far it is.
    pub report: Duration,
}

/// What was decided next, and what became of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Learned {
    /// What was decided.
    pub decided: Decided,
    /// What became of it.
    pub fate: Fate,
}

/// Why an instance is not asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotAsked {
    /// It was given already.
    Given,
    /// It is beyond the window: this learner is not that far.
    Beyond,
    /// The no-op is longer than a packet takes.
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// The most that are taken.
        bytes_max: usize,
    },
    /// [`RECOVERING_MAX`] others are asked for, and not decided yet.
    TooMany,
    /// There are no higher rounds.
    NoRoundLeft,
}

struct Try {
    recovery: Recovery,
    round: u64,
    begun: Since,
    sent: u32,
    next: Since,
    is_refused: bool,
}

/// How long a learner waits, for whichever instance. Answers may take longer than it had thought, and each
/// round of its own hinders whoever else asks: so each that came to nothing has it wait twice as long.
#[derive(Default)]
struct Patience {
    doublings: u32,
    /// The last round that came to nothing. Those of several instances are often one and the same.
    failed: u64,
    /// When `doublings` last changed.
    changed: Since,
    /// No round is begun before.
    until: Since,
}

impl Patience {
    /// The longest wait after a refusal.
    fn longest(&self, retry: Duration) -> Duration {
        retry * (1 << self.doublings)
    }

    /// Between two tries.
    fn pause(&self, retry: Duration) -> Duration {
        retry * (1 << self.doublings.min(PAUSE_DOUBLINGS_MAX))
    }

    /// Tries in a round.
    fn tries(&self) -> u32 {
        TRIES_MAX << self.doublings.saturating_sub(PAUSE_DOUBLINGS_MAX)
    }

    /// A round came to nothing.
    fn lose(&mut self, now: Since, round: u64) {
        if round > self.failed {
            self.failed = round;
            self.doublings = DOUBLINGS_MAX.min(self.doublings + 1);
            self.changed = now;
        }
    }

    /// A majority has promised after this time. If half of what a round lasts would do by far, it will.
    fn gain(&mut self, now: Since, after: Duration, retry: Duration) {
        if after * 4 < self.pause(retry) * self.tries() {
            self.ease(now);
        }
    }

    fn ease(&mut self, now: Since) {
        self.doublings = self.doublings.saturating_sub(1);
        self.changed = now;
    }

    /// Time has passed.
    fn tick(&mut self, now: Since) {
        if now.saturating_sub(self.changed) >= FORGETS_AFTER {
            self.ease(now);
        }
    }
}

/// One learner.
pub struct Learner {
    options: LearnerOptions,
    votes: Votes,
    values: Values,
    chance: ChaCha8Rng,
    /// The configuration of the coordinator of `round`.
    configuration: u64,
    /// The highest round of a coordinator that it has heard of.
    round: u64,
    /// The highest round of anybody.
    highest_round: u64,
    /// The last instance that the coordinator says it has given.
    given: u64,
    kept: u64,
    /// When it was last noted what was given, and up to where.
    noted: (Since, u64),
    /// The last instance of which all votes have had time to come.
    ripe: u64,
    recovering: BTreeMap<u64, Try>,
    patience: Patience,
    /// Instances that the caller wants, with its no-ops, until they are decided or forgotten.
    wanted: BTreeMap<u64, Vec<u8>>,
    /// Forgotten up to here by acceptors, and not had.
    forgotten: u64,
    next_report: Since,
}

impl Learner {
    /// One whose application has kept everything up to this instance, 0 for nothing, with the values' state
    /// of that moment. `seed` is for what is left to chance.
    #[must_use]
    pub fn new(
        options: LearnerOptions,
        configuration: u64,
        kept: u64,
        values: Values,
        seed: u64,
    ) -> Self {
        Self {
            votes: Votes::new(options.deployment, kept + 1),
            options,
            values,
            chance: ChaCha8Rng::seed_from_u64(seed),
            configuration,
            round: 0,
            highest_round: 0,
            given: 0,
            kept,
            noted: (Since::ZERO, 0),
            ripe: 0,
            recovering: BTreeMap::new(),
            patience: Patience::default(),
            wanted: BTreeMap::new(),
            forgotten: 0,
            next_report: Since::ZERO,
        }
    }

    /// The next instance to be given.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.votes.next()
    }

    /// Which coordinator is heard: the one of the highest round.
    #[must_use]
    pub fn coordinator(&self) -> Option<u8> {
        (self.round > 0).then(|| owner_of(self.round))
    }

    /// The instance up to which everybody else has forgotten, if this learner has not had it: only another
    /// learner's checkpoint helps.
    #[must_use]
    pub fn is_behind(&self) -> Option<u64> {
        (self.forgotten >= self.votes.next()).then_some(self.forgotten)
    }

    /// What has to be kept with a checkpoint of everything before [`next`](Self::next).
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Takes in a packet whose tag is right: a vote, a promise, a refusal, or a coordinator's sign of life.
    ///
    /// # Errors
    /// Why a vote was not counted.
    pub fn on_packet(
        &mut self,
        now: Since,
        header: &Header,
        payload: &[u8],
        orders: &mut Orders,
    ) -> Result<(), Ignored> {
        if header.group != self.options.deployment.group {
            return Err(Ignored::NoVote);
        }
        let deployment = self.options.deployment;
        match Kind::from_byte(header.kind) {
            // Refused: it is said to another coordinator.
            Some(Kind::Heartbeat)
                if header.sender >= deployment.coordinators || header.flags & FLAG_REFUSED != 0 =>
            {
                Err(Ignored::NoVote)
            }
            Some(Kind::P1b | Kind::P2b) if header.sender >= deployment.acceptors => {
                Err(Ignored::NoVote)
            }
            Some(Kind::Heartbeat) => {
                self.hear(header);
                if header.term == self.round {
                    return self.note_given(header.index);
                }
                Ok(())
            }
            Some(Kind::P1b) => {
                self.highest_round = self.highest_round.max(header.term);
                self.answered(now, header, payload, orders);
                Ok(())
            }
            Some(Kind::P2b) => {
                self.highest_round = self.highest_round.max(header.term);
                if header.flags & FLAG_REFUSED == 0 {
                    self.hear(header);
                }
                self.answered(now, header, payload, orders);
                let counted = self.votes.on_vote(header, payload);
                // Another one may be asked for in its place, without waiting for the next tick.
                let asked_in = self.recovering.get(&header.index).map(|it| it.round);
                if counted.is_ok()
                    && asked_in == Some(header.term)
                    && self.votes.is_decided(header.index)
                {
                    self.recovering.remove(&header.index);
                    for instance in self.missing(now) {
                        self.ask(now, instance, &[], orders);
                    }
                }
                counted
            }
            Some(
                Kind::Request
                | Kind::Append
                | Kind::AppendOk
                | Kind::Retransmit
                | Kind::HeartbeatOk
                | Kind::Answer
                | Kind::Forward
                | Kind::Submit
                | Kind::P1a
                | Kind::P2a
                | Kind::Admit
                | Kind::Checkpoint,
            )
            | None => Err(Ignored::NoVote),
        }
    }

    /// Hears of a coordinator's round.
    fn hear(&mut self, header: &Header) {
        let is_coordinators = self
            .options
            .deployment
            .is_coordinators(owner_of(header.term));
        if is_coordinators && header.term >= self.round {
            self.round = header.term;
            self.highest_round = self.highest_round.max(header.term);
            self.configuration = header.commit_index;
        }
    }

    /// A coordinator says that it has given this instance. More than a window of instances is never open: if
    /// it is beyond, this learner lacks what others have forgotten, or it is not so. Asking for one instance
    /// shows which.
    fn note_given(&mut self, instance: u64) -> Result<(), Ignored> {
        if self.votes.is_beyond(instance) {
            self.given = self.given.max(self.votes.next());
            return Err(Ignored::Beyond);
        }
        self.given = self.given.max(instance);
        Ok(())
    }

    fn answered(&mut self, now: Since, header: &Header, payload: &[u8], orders: &mut Orders) {
        let Some(tried) = self.recovering.get_mut(&header.index) else {
            return;
        };
        match tried.recovery.on_answer(header, payload) {
            Heard::Nothing | Heard::Promised | Heard::Decided => {}
            Heard::Majority => {
                let after = now.saturating_sub(tried.begun);
                self.patience.gain(now, after, self.options.retry);
                tried.recovery.send(orders);
                tried.sent = 1;
                tried.next = now + self.patience.pause(self.options.retry);
                // Who has refused may have been alone.
                tried.is_refused = false;
            }
            Heard::Refused { .. } if tried.is_refused => {}
            // Who refuses has promised another one's round, and that one is refused next. So one waits longer
            // than the other before it tries a round above.
            Heard::Refused { .. } => {
                tried.is_refused = true;
                let longest = self.patience.longest(self.options.retry);
                self.patience.lose(now, tried.round);
                let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
                let wait = Duration::from_nanos(self.chance.next_u64() % longest.max(1));
                self.patience.until = self.patience.until.max(now + wait);
            }
            Heard::Trimmed { upto } => {
                self.forgotten = self.forgotten.max(upto);
                self.recovering.remove(&header.index);
                self.wanted.retain(|instance, _| *instance > upto);
            }
        }
    }

    /// What was decided next.
    pub fn take(&mut self) -> Option<Learned> {
        let decided = self.votes.take()?;
        self.recovering.remove(&decided.instance);
        self.wanted.remove(&decided.instance);
        let fate = self.values.take(&decided);
        Some(Learned { decided, fate })
    }

    /// The application has kept everything up to here.
    pub fn keep(&mut self, upto: u64) {
        self.kept = self.kept.max(upto.min(self.votes.next() - 1));
    }

    /// Goes on behind another learner's checkpoint, with the values' state of that moment. Nothing happens,
    /// and false comes back, if this one is further.
    pub fn begin_behind(&mut self, checkpoint: u64, values: Values) -> bool {
        if checkpoint < self.votes.next() {
            return false;
        }
        self.votes.begin_behind(checkpoint);
        self.values = values;
        self.kept = checkpoint;
        self.recovering.clear();
        self.wanted.retain(|instance, _| *instance > checkpoint);
        true
    }

    /// Asks for an instance, at once unless a refused one has to wait, with a value of one's own where
    /// nothing was decided (`recover`), and again until it is decided, or all others have forgotten it (see
    /// [`is_behind`](Self::is_behind)).
    ///
    /// # Errors
    /// Why it is not asked for.
    pub fn recover(
        &mut self,
        now: Since,
        instance: u64,
        no_op: &[u8],
        orders: &mut Orders,
    ) -> Result<(), NotAsked> {
        if instance < self.votes.next() {
            return Err(NotAsked::Given);
        }
        if self.votes.is_beyond(instance) {
            return Err(NotAsked::Beyond);
        }
        if no_op.len() > PAYLOAD_BYTES_MAX {
            return Err(NotAsked::TooLong {
                bytes: no_op.len(),
                bytes_max: PAYLOAD_BYTES_MAX,
            });
        }
        if self.votes.is_decided(instance) {
            return Ok(()); // It is given once those before it are.
        }
        let is_asked_for = self.wanted.contains_key(&instance);
        if !is_asked_for && self.wanted.len() >= RECOVERING_MAX {
            return Err(NotAsked::TooMany);
        }
        let may_begin = !is_asked_for && now >= self.patience.until;
        if may_begin && !self.begin(now, instance, no_op, orders) {
            return Err(NotAsked::NoRoundLeft);
        }
        self.wanted.insert(instance, no_op.to_vec());
        Ok(())
    }

    /// Asks for an instance in a round above.
    fn begin(&mut self, now: Since, instance: u64, no_op: &[u8], orders: &mut Orders) -> bool {
        let owner = self.options.deployment.owner_of_learner(self.options.me);
        let round = self.recovering.get(&instance).map_or(0, |it| it.round);
        let Some(round) = round_above(round.max(self.highest_round), owner) else {
            return false;
        };
        let asking = Asking {
            configuration: self.configuration,
            round,
            drawn: self.chance.next_u64().max(1),
        };
        let recovery = Recovery::new(self.options.deployment, asking, instance, no_op);
        recovery.send(orders);
        let tried = Try {
            recovery,
            round,
            begun: now,
            sent: 1,
            next: now + self.patience.pause(self.options.retry),
            is_refused: false,
        };
        self.recovering.insert(instance, tried);
        true
    }

    /// Time has passed: asks for what is missing, again if need be, and says how far it is.
    pub fn tick(&mut self, now: Since, orders: &mut Orders) {
        if now >= self.next_report {
            self.next_report = now + self.options.report;
            self.report(orders);
        }
        self.patience.tick(now);
        let votes = &self.votes;
        self.wanted
            .retain(|instance, _| !votes.is_decided(*instance));
        let missing = self.missing(now);
        let is_asked_for =
            |instance: &u64| self.wanted.contains_key(instance) || missing.contains(instance);
        self.recovering.retain(|instance, _| is_asked_for(instance));
        for instance in missing {
            self.ask(now, instance, &[], orders);
        }
        let wanted = std::mem::take(&mut self.wanted);
        for (instance, no_op) in &wanted {
            self.ask(now, *instance, no_op, orders);
        }
        self.wanted = wanted;
    }

    /// What it asks for by itself: what it has missed for a while, and what it has begun to ask for.
    fn missing(&mut self, now: Since) -> Vec<u64> {
        let known = self.given.max(self.votes.highest());
        if self.votes.next() > known {
            return Vec::new();
        }
        let (noted_at, noted) = self.noted;
        if now.saturating_sub(noted_at) >= self.options.patience {
            self.ripe = noted;
            self.noted = (now, known);
        } else if noted < self.votes.next() {
            self.noted = (now, known);
        }
        let missing = self.votes.missing(known).filter(|instance| {
            let is_begun = self.recovering.contains_key(instance);
            (is_begun || *instance <= self.ripe) && !self.wanted.contains_key(instance)
        });
        missing.take(RECOVERING_MAX).collect()
    }

    fn ask(&mut self, now: Since, instance: u64, no_op: &[u8], orders: &mut Orders) {
        let is_due = now >= self.patience.until;
        let Some(tried) = self.recovering.get_mut(&instance) else {
            if is_due {
                self.begin(now, instance, no_op, orders);
            }
            return;
        };
        let is_over = tried.sent >= self.patience.tries() && now >= tried.next;
        if tried.is_refused || is_over {
            if is_due {
                if is_over {
                    self.patience.lose(now, tried.round);
                }
                self.begin(now, instance, no_op, orders);
            }
        } else if now >= tried.next {
            tried.sent += 1;
            tried.next = now + self.patience.pause(self.options.retry);
            tried.recovery.send(orders);
        }
    }

    /// Says how far it is, and what its application has kept, to all whose windows that fills.
    pub fn report(&self, orders: &mut Orders) {
        let header = Header {
            index: self.kept,
            sequence: self.votes.next() - 1,
            commit_index: self.configuration,
            ..self
                .options
                .deployment
                .header(Kind::Checkpoint, self.options.me)
        };
        send(orders, To::Acceptors, header, &[]);
        send(orders, To::Coordinators, header, &[]);
    }
}

#[cfg(test)]
#[path = "learner_test.rs"]
mod tests;
