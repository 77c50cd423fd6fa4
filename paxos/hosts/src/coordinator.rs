//! A coordinator's host.
use crate::place::{Addresses, Place};
use crate::{Driver, Happened, Since};
use quorumwire_fastpath::PaxosEngine;
use quorumwire_paxos::{Coordinator, CoordinatorOptions, Orders, Turn};
use std::net::SocketAddr;

/// A coordinator: its box, and the software beside it.
pub struct CoordinatorHost {
    place: Place,
    software: Coordinator,
}

impl CoordinatorHost {
    /// A backup. `seed` is for what is left to chance; no two lives have the same.
    #[must_use]
    pub fn new(options: CoordinatorOptions, mut place: Place, now: Since, seed: u64) -> Self {
        let destinations = Self::destinations(place.addresses());
        place.engine.set_destinations(destinations);
        let software = Coordinator::new(options, now, seed);
        Self { place, software }
    }

    /// To whom a coordinator's box sends.
    #[must_use]
    pub fn destinations(addresses: &Addresses) -> Vec<SocketAddr> {
        match addresses.all_acceptors {
            Some(all) => vec![all],
            None => addresses.acceptors.clone(),
        }
    }

    /// Its box.
    #[must_use]
    pub fn engine(&self) -> &PaxosEngine {
        &self.place.engine
    }

    /// Has its box look after its surroundings. What people should know, each thing once.
    pub fn look_around(&mut self) -> Option<String> {
        self.place.engine.look_around()
    }

    /// Its software.
    #[must_use]
    pub fn software(&self) -> &Coordinator {
        &self.software
    }

    /// Takes in a datagram.
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
        let turn = self
            .software
            .on_packet(now, &handed.header, &handed.payload, &mut orders);
        self.turned(turn, orders, Some(handed.from), driver);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Since, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        let registers = self.place.engine.registers();
        let turn = self.software.tick(now, &registers, &mut orders);
        self.turned(turn, orders, None, driver);
    }

    /// Takes over, whoever coordinates: the operator says so.
    pub fn take_over(&mut self, now: Since, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        let turn = self.software.take_over(now, &mut orders);
        self.turned(turn, orders, None, driver);
    }

    /// Leaves it to others, until it is told to take over: the operator says so.
    pub fn retire(&mut self, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        self.software.retire(&mut orders);
        self.turned(Turn::Nothing, orders, None, driver);
    }

    /// Instances up to this one are lost to learners that have not kept them: the operator says so, at each
    /// coordinator as at each acceptor.
    pub fn declare_lost(&mut self, upto: u64, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        self.software.declare_lost(upto, &mut orders);
        self.turned(Turn::Nothing, orders, None, driver);
    }

    fn turned(
        &mut self,
        turn: Turn,
        orders: Orders,
        asked_by: Option<SocketAddr>,
        driver: &mut dyn Driver,
    ) {
        if turn != Turn::Nothing {
            driver.happened(Happened::Turned(turn, asked_by));
        }
        self.place.carry_out(orders, asked_by, None, driver);
    }
}
