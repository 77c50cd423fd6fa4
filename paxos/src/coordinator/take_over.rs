//! One round of a coordinator: phase 1 for all instances, then for each that may have a vote; what was voted
//! is proposed again, and a no-op where nothing was.
use super::{CoordinatorOptions, Since};
use crate::deployment::{Acceptors, INSTANCE_MAX};
use crate::lives::Lives;
use crate::mutants::mutant;
use crate::orders::{Orders, To, send};
use crate::recovery::{Asking, Heard, Recovery};
use quorumwire_wire::packet::{Header, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Instances that are asked for at a time, and proposals that are sent again at a time.
pub const ADOPTED_AT_ONCE: usize = 256;

/// Tries after which a learner has what it has asked for by itself.
pub(super) const LEFT_TRIES: u32 = 8;

/// Behind what the box may be switched on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ready {
    /// Forgotten up to here.
    pub(super) trimmed: u64,
    /// The first instance for a value.
    pub(super) next: u64,
}

/// What a majority has said about all instances.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Forgotten up to here.
    trimmed: u64,
    /// The last instance that may have a vote.
    last: u64,
    /// The first one to ask for.
    first: u64,
    /// The next one to ask for: from the last one down. Learners have had most of them, and wait for the last
    /// ones.
    next: u64,
}

#[derive(Debug)]
pub(super) struct TakeOver {
    options: CoordinatorOptions,
    asking: Asking,
    lives: Lives,
    promised: Acceptors,
    trimmed: u64,
    last: u64,
    known: Option<Known>,
    /// Instances that are not decided yet, of those asked for.
    open: BTreeMap<u64, Recovery>,
    /// Decided ones, not more than a window's, for which not all acceptors have voted yet. Who lost its
    /// memory counts for one only when it has.
    decided: BTreeMap<u64, Recovery>,
    /// Instances left to learners before anything was proposed here: who lost its memory may not get what is
    /// decided there.
    left: BTreeSet<u64>,
    /// Tries since the first of them.
    left_tries: u32,
    /// The highest instance for which somebody who has promised may be no member.
    bound: u64,
    /// Who has answered something since the last try.
    heard: Acceptors,
    /// Who was told the configuration since the last try: a newcomer answers each question, so that questions
    /// and answers would go back and forth for ever.
    told: Acceptors,
    next_try: Since,
}

impl TakeOver {
    pub(super) fn new(
        options: CoordinatorOptions,
        asking: Asking,
        lives: &Lives,
        now: Since,
    ) -> Self {
        Self {
            options,
            asking,
            lives: lives.clone(),
            promised: Acceptors::default(),
            trimmed: 0,
            last: 0,
            known: None,
            open: BTreeMap::new(),
            decided: BTreeMap::new(),
            left: BTreeSet::new(),
            left_tries: 0,
            bound: 0,
            heard: Acceptors::default(),
            told: Acceptors::default(),
            next_try: now + options.retry,
        }
    }

    pub(super) fn round(&self) -> u64 {
        self.asking.round
    }

    /// Whether a majority has promised the round.
    pub(super) fn is_promised(&self) -> bool {
        self.known.is_some()
    }

    fn header(&self, kind: Kind) -> Header {
        Header {
            term: self.asking.round,
            commit_index: self.asking.configuration,
            ..self.options.deployment.header(kind, self.options.me)
        }
    }

    /// P1A of all instances, to all acceptors.
    pub(super) fn ask_all(&mut self, orders: &mut Orders) {
        self.ask(To::Acceptors, orders);
    }

    fn ask(&self, to: To, orders: &mut Orders) {
        let header = Header {
            session: self.asking.drawn,
            ..self.header(Kind::P1a)
        };
        send(orders, to, header, &self.lives.encode());
    }

    /// Asks one acceptor again, not more often than it asks by itself. Whether it did.
    pub(super) fn ask_again(&mut self, acceptor: u8, orders: &mut Orders) -> bool {
        let is_due = self.told.insert(acceptor);
        if is_due {
            self.ask(To::Acceptor(acceptor), orders);
        }
        is_due
    }

    /// An acceptor does not know the configuration, or was not let in as the life that it is.
    pub(super) fn tell_configuration(
        &mut self,
        acceptor: u8,
        is_this_life: bool,
        lives: &Lives,
        orders: &mut Orders,
    ) {
        let said_it_late = self.promised.contains(acceptor);
        if said_it_late || !self.ask_again(acceptor, orders) {
            return;
        }
        let Some(known) = self.known.filter(|_| is_this_life) else {
            return;
        };
        let header = Header {
            previous_term: known.last,
            session: known.trimmed,
            ..self.header(Kind::Admit)
        };
        send(orders, To::Acceptor(acceptor), header, &lives.encode());
    }

    /// A promise, or a vote; `trimmed`: what the host knows to be forgotten. With the promise that completes
    /// a majority the box may be switched on: its instances lie behind all that may have a vote. What has one
    /// is proposed again beside it.
    pub(super) fn on_answer(
        &mut self,
        header: &Header,
        payload: &[u8],
        trimmed: u64,
        orders: &mut Orders,
    ) -> Option<Ready> {
        if header.kind == Kind::P1b as u8 && header.index == 0 {
            self.heard.insert(header.sender);
            return self.promised(header, trimmed, orders);
        }
        self.on_answer_for_one(header, payload, orders);
        None
    }

    /// A promise, a vote or a refusal of one instance.
    pub(super) fn on_answer_for_one(
        &mut self,
        header: &Header,
        payload: &[u8],
        orders: &mut Orders,
    ) {
        self.heard.insert(header.sender);
        let open = self.open.get_mut(&header.index);
        let Some(recovery) = open.or_else(|| self.decided.get_mut(&header.index)) else {
            return;
        };
        match recovery.on_answer(header, payload) {
            Heard::Nothing | Heard::Promised => {}
            Heard::Majority => recovery.send(orders),
            Heard::Decided | Heard::Refused { .. } => self.settle(header.index, orders),
            Heard::Trimmed { .. } => {
                self.open.remove(&header.index);
                self.decided.remove(&header.index);
                self.ask_for_more(orders);
            }
        }
    }

    /// An instance is decided, or left to a learner that asks for it by itself, in a higher round. What was
    /// proposed here may be voted for all the same.
    fn settle(&mut self, instance: u64, orders: &mut Orders) {
        if let Some(recovery) = self.open.remove(&instance) {
            let is_proposed = recovery.proposal().is_some();
            if is_proposed && !mutant("newcomer-gets-no-proposal") {
                self.decided.insert(instance, recovery);
            } else if !is_proposed {
                self.left.insert(instance);
            }
            self.ask_for_more(orders);
        }
        let acceptors = 0..self.options.deployment.acceptors;
        let may_vote = |recovery: &Recovery| acceptors.clone().any(|it| recovery.may_vote(it));
        if self.decided.get(&instance).is_some_and(|it| !may_vote(it)) {
            self.decided.remove(&instance);
        }
    }

    /// Nobody needs the instances up to this one any more.
    pub(super) fn forget(&mut self, upto: u64, orders: &mut Orders) {
        self.open = self.open.split_off(&(upto + 1));
        self.decided = self.decided.split_off(&(upto + 1));
        self.left = self.left.split_off(&(upto + 1));
        if let Some(known) = &mut self.known {
            known.first = known.first.max(upto + 1);
        }
        self.ask_for_more(orders);
    }

    fn promised(&mut self, header: &Header, trimmed: u64, orders: &mut Orders) -> Option<Ready> {
        let deployment = self.options.deployment;
        let numbers = [header.session, header.sequence, header.previous_term];
        let is_answer = header.term == self.asking.round
            && header.commit_index == self.asking.answered()
            && header.sender < deployment.acceptors
            && numbers.iter().all(|it| *it <= INSTANCE_MAX);
        if !is_answer || !self.promised.insert(header.sender) {
            return None;
        }
        self.bound = self.bound.max(header.previous_term);
        if self.known.is_some() {
            return None;
        }
        self.trimmed = self.trimmed.max(header.session);
        self.last = self.last.max(header.sequence).max(header.previous_term);
        let suffices = self.promised.are_majority(&deployment) || mutant("one-promise-suffices");
        if !suffices {
            return None;
        }
        let trimmed = self.trimmed.max(trimmed);
        // No acceptor has voted beyond its window.
        let last = self.last.min(trimmed + u64::from(deployment.window));
        let last = last.max(trimmed);
        self.known = Some(Known {
            trimmed,
            last,
            first: trimmed + 1,
            next: last,
        });
        self.ask_for_more(orders);
        let begins_early = mutant("begins-in-front-of-votes");
        let before = if begins_early { trimmed } else { last };
        Some(Ready {
            trimmed,
            next: before + 1,
        })
    }

    /// Asks for as many instances as may be asked for at a time.
    fn ask_for_more(&mut self, orders: &mut Orders) {
        let Some(known) = &mut self.known else {
            return;
        };
        while known.next >= known.first && self.open.len() < ADOPTED_AT_ONCE {
            let instance = known.next;
            let recovery = Recovery::new(self.options.deployment, self.asking, instance, &[]);
            recovery.send(orders);
            self.open.insert(instance, recovery);
            known.next -= 1;
        }
    }

    /// Repeats what was not answered. False: it has to be asked anew, in a round above.
    pub(super) fn tick(&mut self, now: Since, left_tries_max: u32, orders: &mut Orders) -> bool {
        if now < self.next_try {
            return true;
        }
        self.next_try = now + self.options.retry;
        self.told = Acceptors::default();
        if self.known.is_none() {
            self.ask(To::Acceptors, orders);
        }
        for recovery in self.open.values() {
            recovery.send(orders);
        }
        self.propose_again(orders);
        self.left_tries = if self.lacks_what_was_left() {
            self.left_tries + 1
        } else {
            0
        };
        self.left_tries <= left_tries_max
    }

    /// Whether an acceptor may be no member for an instance that was left to a learner.
    pub(super) fn lacks_what_was_left(&self) -> bool {
        let all = 0..self.options.deployment.acceptors;
        let all_have_promised = all.into_iter().all(|it| self.promised.contains(it));
        let is_harmless = |instance: u64| all_have_promised && instance > self.bound;
        self.left.iter().any(|instance| !is_harmless(*instance))
    }

    /// Proposes what is decided to those who have not voted for it: to whoever was heard since the last try.
    /// Whether somebody else is there shows with one instance.
    fn propose_again(&mut self, orders: &mut Orders) {
        let heard = std::mem::take(&mut self.heard);
        let mut left = ADOPTED_AT_ONCE;
        for acceptor in 0..self.options.deployment.acceptors {
            let at_once = if heard.contains(acceptor) { left } else { 1 };
            let lacking = self.decided.values().filter(|it| it.may_vote(acceptor));
            for recovery in lacking.take(at_once) {
                recovery.propose_to(acceptor, orders);
                left = left.saturating_sub(1);
            }
        }
    }
}
