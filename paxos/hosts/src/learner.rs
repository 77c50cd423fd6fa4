//! A learner's host, with a proposer beside it.
use crate::place::Place;
use crate::{Driver, Happened, Since};
use quorumwire_fastpath::PaxosEngine;
use quorumwire_paxos::{Learned, Learner, NotAsked, NotTaken, Orders, Proposer, Settled, Values};
use std::net::SocketAddr;

/// A learner and the proposer beside it. Its box is off: it checks packets and signs them.
pub struct LearnerHost {
    place: Place,
    learner: Learner,
    proposer: Proposer,
}

impl LearnerHost {
    /// Joins the two.
    #[must_use]
    pub fn new(place: Place, learner: Learner, proposer: Proposer) -> Self {
        Self {
            place,
            learner,
            proposer,
        }
    }

    /// What checks its packets.
    #[must_use]
    pub fn engine(&self) -> &PaxosEngine {
        &self.place.engine
    }

    /// The learner.
    #[must_use]
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// The proposer.
    #[must_use]
    pub fn proposer(&self) -> &Proposer {
        &self.proposer
    }

    /// Takes in a datagram. What is decided then, [`take`](Self::take) gives.
    pub fn receive(
        &mut self,
        now: Since,
        from: SocketAddr,
        datagram: &[u8],
        driver: &mut dyn Driver,
    ) {
        let Some(handed) = self.place.receive(from, datagram, driver) else {
            return;
        };
        let mut orders = Orders::new();
        let (header, payload) = (&handed.header, &handed.payload);
        let before = self.learner.coordinator();
        let counted = self.learner.on_packet(now, header, payload, &mut orders);
        let coordinator = self.learner.coordinator();
        if coordinator != before {
            self.proposer
                .coordinated_anew(now, coordinator, &mut orders);
        }
        if let Err(why) = counted {
            driver.happened(Happened::Ignored(why, handed.header));
        }
        self.carry_out(orders, Some(handed.from), driver);
    }

    /// What was decided next, and what became of the proposer's values by that.
    pub fn take(&mut self, now: Since, driver: &mut dyn Driver) -> Option<(Learned, Vec<Settled>)> {
        let learned = self.learner.take()?;
        let mut orders = Orders::new();
        let coordinator = self.learner.coordinator();
        let settled = self
            .proposer
            .on_learned(now, &learned, coordinator, &mut orders);
        self.carry_out(orders, None, driver);
        Some((learned, settled))
    }

    /// Proposes a value, and gives it a name.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn submit(
        &mut self,
        now: Since,
        value: &[u8],
        driver: &mut dyn Driver,
    ) -> Result<u64, NotTaken> {
        let mut orders = Orders::new();
        let coordinator = self.learner.coordinator();
        let taken = self.proposer.submit(now, value, coordinator, &mut orders);
        self.carry_out(orders, None, driver);
        taken
    }

    /// Asks for an instance (see [`Learner::recover`]).
    ///
    /// # Errors
    /// Why it is not asked for.
    pub fn recover(
        &mut self,
        now: Since,
        instance: u64,
        no_op: &[u8],
        driver: &mut dyn Driver,
    ) -> Result<(), NotAsked> {
        let mut orders = Orders::new();
        let asked = self.learner.recover(now, instance, no_op, &mut orders);
        self.carry_out(orders, None, driver);
        asked
    }

    /// The application has kept everything up to here.
    pub fn keep(&mut self, upto: u64) {
        self.learner.keep(upto);
    }

    /// Goes on behind another learner's checkpoint (see [`Learner::begin_behind`]).
    pub fn begin_behind(&mut self, checkpoint: u64, values: Values) -> bool {
        self.learner.begin_behind(checkpoint, values)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Since, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        self.learner.tick(now, &mut orders);
        let coordinator = self.learner.coordinator();
        self.proposer.tick(now, coordinator, &mut orders);
        self.carry_out(orders, None, driver);
    }

    /// It ends: what was kept since it was said last is said now, so that it fills no window meanwhile.
    pub fn leave(&mut self, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        self.learner.report(&mut orders);
        self.carry_out(orders, None, driver);
    }

    fn carry_out(&mut self, orders: Orders, asked_by: Option<SocketAddr>, driver: &mut dyn Driver) {
        self.place.carry_out(orders, asked_by, None, driver);
    }
}
