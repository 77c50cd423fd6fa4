//! The software beside a coordinator's box: takes over (CAANS, section 3.1) and watches. It asks for a round,
//! adopts what was voted, and switches the box on behind that; the box gives instances by itself.
use crate::checkpoints::Checkpoints;
use crate::deployment::{Acceptors, Deployment};
use crate::lives::Lives;
use crate::mutants::mutant;
use crate::orders::{Order, Orders, To, send};
use crate::recovery::Asking;
use crate::round::{owner_of, round_above};
use quorumwire_wire::packet::{FLAG_REFUSED, Header, Kind, PaxosRegisters, PaxosRole};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

mod take_over;

pub use take_over::ADOPTED_AT_ONCE;
use take_over::{LEFT_TRIES, Ready, TakeOver};

/// Times that acceptors may have promised another one of the same number a coordinator's round, or one above
/// it, before it stops, or waits. Acceptors may have promised its earlier lives different rounds.
const TAKEN_MAX: u32 = 10;

/// These are forgotten after so long without another one.
const TAKEN_LASTS: Duration = Duration::from_mins(1);

/// Who has heard of no coordinator since it began waits so much longer than the one before it, or as long as
/// `silence` if that is more: others may have begun at the same time, and need a while.
const START: Duration = Duration::from_secs(1);

/// A backup that was hindered each time waits at most so often twice as long.
const DOUBLINGS_MAX: u32 = 6;

/// Time since some moment that the host knows.
type Since = Duration;

/// How a coordinator goes about it.
#[derive(Clone, Copy, Debug)]
pub struct CoordinatorOptions {
    /// Of which deployment.
    pub deployment: Deployment,
    /// Which coordinator.
    pub me: u8,
    /// Whether it listens at the address where others know this number. Of two with one number, the one that
    /// does not listen there stops.
    pub is_where_known: bool,
    /// How often it says that it lives.
    pub heartbeat: Duration,
    /// The backup behind whoever coordinated last takes over when it hears nothing for this long; each
    /// further one, by number, waits so much longer; more (`START`) where it has heard of nobody since it
    /// began.
    pub silence: Duration,
    /// A question is repeated after this.
    pub retry: Duration,
}

/// What its host has to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Turn {
    /// Nothing has changed.
    Nothing,
    /// It asks for this round.
    Asks {
        /// The round.
        round: u64,
    },
    /// It coordinates; values get instances from this one on.
    Coordinates {
        /// Its round.
        round: u64,
        /// The next instance.
        next: u64,
    },
    /// Another coordinator has this round; it is a backup.
    StandsBy {
        /// The round.
        round: u64,
    },
    /// Another coordinator has its number: their rounds are the same ones. It does nothing until it is told
    /// to take over.
    SameNumber,
    /// It has heard of a round so high that there is none above. It does nothing any more.
    NoRoundLeft,
    /// Somebody announces, without being asked, a new life of an acceptor. It was asked where others know
    /// that acceptor: only an answer from there is believed.
    Announced {
        /// Which acceptor.
        acceptor: u8,
    },
}

/// What a coordinator does at this moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CoordinatorStanding {
    /// It gives values their instances.
    Coordinates,
    /// It has asked for a round, and a majority has not promised it yet.
    Asks,
    /// It waits for another one to fall silent.
    Backup,
    /// It was told to leave it to others.
    Retired,
    /// Another one has its number.
    SameNumber,
    /// There is no round above those that it knows of.
    NoRoundLeft,
}

enum Phase {
    /// It has heard of a coordinator then.
    Backup { heard: Since },
    /// It has asked for a round; once a majority has promised it, it coordinates: its box is on. What it has
    /// proposed by itself may not be decided yet then.
    InRound(Box<TakeOver>),
    /// It was told to leave it to others.
    Retired,
    /// Another one has its number, as the host was told.
    Twin,
    /// There is no round above those that it knows of, as the host was told.
    NoRoundLeft,
}

/// One coordinator's software.
pub struct Coordinator {
    options: CoordinatorOptions,
    lives: Lives,
    phase: Phase,
    chance: ChaCha8Rng,
    /// The highest round of anybody that it has heard of.
    highest_round: u64,
    /// The highest round of a coordinator that has said it lives, or was promised.
    coordinated_round: u64,
    checkpoints: Checkpoints,
    /// As far as it knows, instances up to this one are forgotten.
    trimmed: u64,
    /// The highest instance that a learner has had: a learner may have recovered one that no value was given.
    had: u64,
    implausible: u64,
    next_heartbeat: Since,
    /// The last round in which it has coordinated.
    led: u64,
    /// How often acceptors had promised another one of its number its round, or one above it.
    taken: u32,
    /// When they had last.
    last_taken: Since,
    /// Acceptors have promised another of its number a round above the one it coordinates in: since when, and
    /// who.
    overtaken: Option<(Since, Acceptors)>,
    /// Another one of its number has said that it lives: since when without a long silence, and when last.
    twin_heard: Option<(Since, Since)>,
    /// How often in a row it has asked for a round, and another one's came before a majority had promised it:
    /// promises may take longer than backups wait, and they must not hinder each other for ever.
    hindered: u32,
    /// How often in a row it has asked anew for what it had left to a learner: each time it waits twice as
    /// long.
    asked_anew: u32,
}

impl Coordinator {
    /// A backup. `seed` is for what is left to chance; no two lives of a coordinator have the same.
    #[must_use]
    pub fn new(options: CoordinatorOptions, now: Since, seed: u64) -> Self {
        Self {
            lives: Lives::first(options.deployment.acceptors),
            phase: Phase::Backup { heard: now },
            chance: ChaCha8Rng::seed_from_u64(seed),
            highest_round: 0,
            coordinated_round: 0,
            checkpoints: Checkpoints::new(&options.deployment, 0),
            trimmed: 0,
            had: 0,
            implausible: 0,
            next_heartbeat: now,
            led: 0,
            taken: 0,
            last_taken: now,
            overtaken: None,
            twin_heard: None,
            hindered: 0,
            asked_anew: 0,
            options,
        }
    }

    /// Whether its box is on.
    #[must_use]
    pub fn coordinates(&self) -> bool {
        matches!(&self.phase, Phase::InRound(it) if it.is_promised())
    }

    /// What it does at this moment.
    #[must_use]
    pub fn standing(&self) -> CoordinatorStanding {
        match &self.phase {
            Phase::InRound(it) if it.is_promised() => CoordinatorStanding::Coordinates,
            Phase::InRound(_) => CoordinatorStanding::Asks,
            Phase::Backup { .. } => CoordinatorStanding::Backup,
            Phase::Retired => CoordinatorStanding::Retired,
            Phase::Twin => CoordinatorStanding::SameNumber,
            Phase::NoRoundLeft => CoordinatorStanding::NoRoundLeft,
        }
    }

    /// The round that it is in, has asked for, or has heard of a coordinator in; 0: none.
    #[must_use]
    pub fn known_round(&self) -> u64 {
        self.round().unwrap_or(self.coordinated_round)
    }

    /// Which learner has kept least, and how far: to be blamed where the window is full.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<(u8, u64)> {
        let (learner, kept) = self.checkpoints.last()?;
        Some((learner, kept.max(self.trimmed)))
    }

    /// The highest instance that a learner has had, or that is forgotten.
    #[must_use]
    pub fn had(&self) -> u64 {
        self.had.max(self.trimmed)
    }

    /// Numbers in packets that cannot be. They were not believed.
    #[must_use]
    pub fn implausible(&self) -> u64 {
        self.implausible
    }

    /// Instances up to this one are lost to learners that have not kept them: the operator says so, at each
    /// coordinator as at each acceptor.
    pub fn declare_lost(&mut self, upto: u64, orders: &mut Orders) {
        if let Some(upto) = self.checkpoints.trim_to(upto) {
            self.forget(upto, orders);
        }
    }

    /// Takes over, whoever coordinates: the operator says so.
    pub fn take_over(&mut self, now: Since, orders: &mut Orders) -> Turn {
        self.taken = 0;
        self.ask(now, orders)
    }

    /// Leaves it to others, until it is told to take over: the operator says so.
    pub fn retire(&mut self, orders: &mut Orders) {
        self.switch_off(orders);
        match self.phase {
            Phase::Backup { .. } | Phase::InRound(_) => self.phase = Phase::Retired,
            Phase::Retired | Phase::Twin | Phase::NoRoundLeft => {}
        }
    }

    fn switch_off(&mut self, orders: &mut Orders) {
        if self.coordinates() {
            orders.push(Order::SwitchOff);
        }
    }

    /// Asks all acceptors for a round above all that it knows of.
    fn ask(&mut self, now: Since, orders: &mut Orders) -> Turn {
        self.switch_off(orders);
        let Some(round) = round_above(self.highest_round, self.options.me) else {
            self.phase = Phase::NoRoundLeft;
            return Turn::NoRoundLeft;
        };
        self.highest_round = round;
        self.overtaken = None;
        let drawn = if mutant("draws-the-same") {
            1
        } else {
            self.chance.next_u64().max(1)
        };
        let asking = Asking {
            configuration: self.lives.number(),
            round,
            drawn,
        };
        let mut take_over = TakeOver::new(self.options, asking, &self.lives, now);
        take_over.ask_all(orders);
        self.phase = Phase::InRound(Box::new(take_over));
        Turn::Asks { round }
    }

    fn stop_as_twin(&mut self, orders: &mut Orders) -> Turn {
        self.switch_off(orders);
        self.phase = Phase::Twin;
        Turn::SameNumber
    }

    /// Another one of its number has its round, or one above.
    fn taken(&mut self, now: Since, orders: &mut Orders) -> Turn {
        if now.saturating_sub(self.last_taken) > TAKEN_LASTS {
            self.taken = 0;
        }
        self.last_taken = now;
        self.taken += 1;
        if self.taken <= TAKEN_MAX {
            return self.ask(now, orders);
        }
        if !self.options.is_where_known {
            return self.stop_as_twin(orders);
        }
        // The other one finds out and stops; until then they must not hinder each other all the time.
        self.taken = 0;
        let turn = self.stand_by(now, self.highest_round, orders);
        self.hindered = self.hindered.max(1);
        turn
    }

    fn stand_by(&mut self, now: Since, round: u64, orders: &mut Orders) -> Turn {
        self.switch_off(orders);
        if !self.coordinates() {
            self.hindered = self.hindered.saturating_add(1);
        }
        self.highest_round = self.highest_round.max(round);
        self.coordinated_round = self.coordinated_round.max(round);
        self.phase = Phase::Backup { heard: now };
        Turn::StandsBy { round }
    }

    fn round(&self) -> Option<u64> {
        match &self.phase {
            Phase::InRound(it) => Some(it.round()),
            Phase::Backup { .. } | Phase::Retired | Phase::Twin | Phase::NoRoundLeft => None,
        }
    }

    /// Takes in a packet that is for the coordinator's host, or that its box has handed on.
    pub fn on_packet(
        &mut self,
        now: Since,
        header: &Header,
        payload: &[u8],
        orders: &mut Orders,
    ) -> Turn {
        if header.group != self.options.deployment.group {
            return Turn::Nothing;
        }
        match Kind::from_byte(header.kind) {
            Some(Kind::Heartbeat) => self.on_heartbeat(now, header, orders),
            Some(Kind::Checkpoint) => {
                if let Some(upto) = self.checkpoints.note(header.sender, header.index) {
                    self.forget(upto, orders);
                }
                self.note_had(header.sequence);
                Turn::Nothing
            }
            Some(Kind::P1b | Kind::P2b) if header.flags & FLAG_REFUSED != 0 => {
                self.on_refusal(now, header, payload, orders)
            }
            Some(Kind::P1b | Kind::P2b) => self.on_answer(header, payload, orders),
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
                | Kind::Admit,
            )
            | None => Turn::Nothing,
        }
    }

    /// A learner has had everything up to here. More than a window of instances is never open. What is
    /// forgotten only who coordinates knows; it hears of the rest soon, if it is so.
    fn note_had(&mut self, upto: u64) {
        if !self.coordinates() {
            return;
        }
        if upto.saturating_sub(self.trimmed) > u64::from(self.options.deployment.window) {
            self.implausible += 1;
        } else {
            self.had = self.had.max(upto);
        }
    }

    fn forget(&mut self, upto: u64, orders: &mut Orders) {
        if upto > self.trimmed {
            self.trimmed = upto;
            if self.coordinates() {
                orders.push(Order::Trim(upto));
            }
            if let Phase::InRound(it) = &mut self.phase {
                it.forget(upto, orders);
            }
        }
    }

    fn on_heartbeat(&mut self, now: Since, header: &Header, orders: &mut Orders) -> Turn {
        if owner_of(header.term) != header.sender {
            return Turn::Nothing;
        }
        if header.sender == self.options.me {
            return self.on_own_number(now, header, orders);
        }
        if header.flags & FLAG_REFUSED != 0 {
            return Turn::Nothing;
        }
        if self.round().is_some_and(|mine| header.term < mine) {
            return Turn::Nothing; // it will find out
        }
        if self.round().is_some() {
            let turn = self.stand_by(now, header.term, orders);
            self.hindered = 0;
            return turn;
        }
        if header.term < self.coordinated_round {
            return Turn::Nothing;
        }
        self.hindered = 0;
        self.coordinated_round = header.term;
        self.highest_round = self.highest_round.max(header.term);
        if let Phase::Backup { heard } = &mut self.phase {
            *heard = now;
        }
        Turn::Nothing
    }

    /// A sign of life of this very number: from another one that has it, or what this one has said, if the
    /// network brings that back; or the answer to one.
    fn on_own_number(&mut self, now: Since, header: &Header, orders: &mut Orders) -> Turn {
        self.highest_round = self.highest_round.max(header.term);
        let is_own = header.term == self.led;
        let takes_part = matches!(self.phase, Phase::Backup { .. } | Phase::InRound(_));
        if header.flags & FLAG_REFUSED != 0 {
            if is_own && takes_part {
                return self.stop_as_twin(orders);
            }
            return Turn::Nothing;
        }
        if is_own && !mutant("own-sign-of-life-is-anothers") {
            return Turn::Nothing;
        }
        if matches!(self.phase, Phase::Twin) {
            return Turn::Nothing;
        }
        if self.options.is_where_known {
            if !mutant("twin-is-not-told") {
                let refused = Header {
                    flags: FLAG_REFUSED,
                    term: header.term,
                    ..self
                        .options
                        .deployment
                        .header(Kind::Heartbeat, self.options.me)
                };
                send(orders, To::Sender, refused, &[]);
            }
            if self.coordinates() && header.term > self.led {
                return self.ask(now, orders);
            }
            return Turn::Nothing;
        }
        if !takes_part || header.term < self.led {
            return Turn::Nothing;
        }
        let silence = self.options.silence;
        let since = match self.twin_heard {
            Some((since, last)) if now.saturating_sub(last) <= silence => since,
            Some(_) | None => now,
        };
        self.twin_heard = Some((since, now));
        if now.saturating_sub(since) >= silence {
            return self.stop_as_twin(orders);
        }
        Turn::Nothing
    }

    /// A promise, or a vote.
    fn on_answer(&mut self, header: &Header, payload: &[u8], orders: &mut Orders) -> Turn {
        if header.sender >= self.options.deployment.acceptors {
            return Turn::Nothing;
        }
        self.highest_round = self.highest_round.max(header.term);
        let Phase::InRound(take_over) = &mut self.phase else {
            return Turn::Nothing;
        };
        let round = take_over.round();
        let ready = take_over.on_answer(header, payload, self.trimmed, orders);
        ready.map_or(Turn::Nothing, |it| self.coordinate(round, it, orders))
    }

    /// Switches the box on: from here on it gives instances.
    fn coordinate(&mut self, round: u64, ready: Ready, orders: &mut Orders) -> Turn {
        let Ready { trimmed, next } = ready;
        self.led = round;
        self.hindered = 0;
        self.trimmed = self.trimmed.max(trimmed);
        orders.push(Order::SwitchOn(Box::new(PaxosRegisters {
            configuration: self.lives.number(),
            round,
            next_instance: next,
            trimmed: self.trimmed,
            group: self.options.deployment.group,
            window: self.options.deployment.window,
            role: PaxosRole::Coordinator as u8,
            me: self.options.me,
            ..PaxosRegisters::default()
        })));
        Turn::Coordinates { round, next }
    }

    /// An acceptor has neither promised nor voted.
    fn on_refusal(
        &mut self,
        now: Since,
        header: &Header,
        payload: &[u8],
        orders: &mut Orders,
    ) -> Turn {
        let acceptors = self.options.deployment.acceptors;
        if header.sender >= acceptors {
            return Turn::Nothing;
        }
        if let Some(theirs) = Lives::decode(payload, acceptors, header.commit_index) {
            return self.on_configuration(now, header, &theirs, orders);
        }
        let (Some(mine), true) = (self.round(), header.commit_index == self.lives.number()) else {
            return Turn::Nothing;
        };
        if header.previous_term != mine {
            return Turn::Nothing;
        }
        let promised_owner = owner_of(header.term);
        let is_anothers = promised_owner != self.options.me
            && self.options.deployment.is_coordinators(promised_owner);
        if header.term > mine && is_anothers {
            return self.stand_by(now, header.term, orders);
        }
        self.highest_round = self.highest_round.max(header.term);
        if header.term > mine && promised_owner == self.options.me && self.coordinates() {
            // One acceptor alone may still have had what an earlier life of this coordinator had asked.
            let (_, by) = self.overtaken.get_or_insert((now, Acceptors::default()));
            by.insert(header.sender);
            if by.leave_no_majority(&self.options.deployment) {
                return self.taken(now, orders);
            }
        }
        if header.index > 0 {
            // A learner asks for that instance by itself, in a higher round; or all learners have it. An
            // acceptor that does not know whom it has promised this very round says nothing new.
            let is_left = header.term > mine || header.sequence >= header.index;
            if !is_left {
                return Turn::Nothing;
            }
            if let Phase::InRound(it) = &mut self.phase {
                it.on_answer_for_one(header, payload, orders);
            }
            return Turn::Nothing;
        }
        let is_late = match &self.phase {
            Phase::InRound(it) => it.is_promised() || header.term < mine,
            Phase::Backup { .. } | Phase::Retired | Phase::Twin | Phase::NoRoundLeft => true,
        };
        if is_late {
            return Turn::Nothing;
        }
        if promised_owner == self.options.me {
            return self.taken(now, orders);
        }
        self.ask(now, orders)
    }

    /// An acceptor says which configuration it knows: it has lost its memory and begins a new life, or it
    /// knows of somebody who did, or it does not know yet.
    fn on_configuration(
        &mut self,
        now: Since,
        header: &Header,
        theirs: &Lives,
        orders: &mut Orders,
    ) -> Turn {
        let joined = self.lives.joined(theirs);
        if joined != self.lives {
            // Another one of that acceptor's number, where nobody asks it, could say so, too.
            if header.previous_term == 0 && !mutant("believes-announcements") {
                let Phase::InRound(it) = &mut self.phase else {
                    return Turn::Nothing;
                };
                let acceptor = header.sender;
                it.ask_again(acceptor, orders);
                return Turn::Announced { acceptor };
            }
            self.lives = joined;
            return match self.round() {
                Some(_) => self.ask(now, orders),
                None => Turn::Nothing,
            };
        }
        if let Phase::InRound(it) = &mut self.phase {
            let is_this_life = theirs.of(header.sender) == self.lives.of(header.sender);
            it.tell_configuration(header.sender, is_this_life, &self.lives, orders);
        }
        Turn::Nothing
    }

    /// How long it hears nobody before it takes over.
    fn patience(&self) -> Duration {
        let (me, all) = (self.options.me, self.options.deployment.coordinators);
        let (me, all) = (u32::from(me), u32::from(all.max(1)));
        let silence = self.options.silence;
        let patience = match self.coordinated_round {
            0 => silence + silence.max(START) * me,
            round => silence * ((me + all - 1 - u32::from(owner_of(round)) % all) % all + 1),
        };
        patience * (1 << self.hindered.min(DOUBLINGS_MAX))
    }

    /// Time has passed; `registers` are the box's.
    pub fn tick(&mut self, now: Since, registers: &PaxosRegisters, orders: &mut Orders) -> Turn {
        let patience = self.patience();
        let is_on = self.coordinates();
        let silence = self.options.silence;
        let is_overtaken =
            (self.overtaken).is_some_and(|(since, _)| now.saturating_sub(since) >= silence);
        if is_on && is_overtaken {
            // Without that acceptor there may be no majority, when another one is gone.
            return self.ask(now, orders);
        }
        match &mut self.phase {
            Phase::Backup { heard } if now.saturating_sub(*heard) >= patience => {
                return self.ask(now, orders);
            }
            Phase::Backup { .. } | Phase::Retired | Phase::Twin | Phase::NoRoundLeft => {}
            Phase::InRound(it) => {
                let tries_max = LEFT_TRIES << self.asked_anew.min(DOUBLINGS_MAX);
                if !it.tick(now, tries_max, orders) {
                    self.asked_anew += 1;
                    return self.ask(now, orders);
                }
                if !it.lacks_what_was_left() {
                    self.asked_anew = 0;
                }
            }
        }
        if is_on && now >= self.next_heartbeat {
            self.next_heartbeat = now + self.options.heartbeat;
            self.say_it_lives(registers, orders);
        }
        Turn::Nothing
    }

    fn say_it_lives(&self, registers: &PaxosRegisters, orders: &mut Orders) {
        let header = Header {
            term: registers.round,
            index: registers.next_instance.saturating_sub(1).max(self.had),
            commit_index: registers.configuration,
            ..self
                .options
                .deployment
                .header(Kind::Heartbeat, self.options.me)
        };
        send(orders, To::Coordinators, header, &[]);
        send(orders, To::Learners, header, &[]);
    }
}

#[cfg(test)]
#[path = "coordinator_test.rs"]
mod tests;
