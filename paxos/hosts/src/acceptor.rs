//! An acceptor's host.
use crate::place::{Addresses, Place};
use crate::{Driver, Happened, Since};
use quorumwire_fastpath::{Outbox, PaxosEngine};
use quorumwire_interfaces::PlaneError;
use quorumwire_paxos::{Acceptor, Deployment, Lives, Noted, Orders};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{PacketReason, PaxosRegisters, PaxosRole, PaxosSlot};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Which acceptor, and how it goes about it.
#[derive(Clone, Copy, Debug)]
pub struct AcceptorOptions {
    /// Of which deployment.
    pub deployment: Deployment,
    /// Which acceptor.
    pub me: u8,
    /// Votes and promises are durable before they are said; else it keeps nothing.
    pub is_durable: bool,
}

/// An acceptor: its box, and the software beside it.
pub struct AcceptorHost {
    options: AcceptorOptions,
    place: Place,
    software: Acceptor,
}

impl AcceptorHost {
    /// As the deployment begins: it has never promised anything.
    ///
    /// # Errors
    /// The deployment cannot be.
    pub fn first(options: AcceptorOptions, place: Place) -> Result<Self, PlaneError> {
        let deployment = &options.deployment;
        let lives = Lives::first(deployment.acceptors);
        let registers = PaxosRegisters {
            group: deployment.group,
            window: deployment.window,
            role: PaxosRole::Acceptor as u8,
            me: options.me,
            held: u8::from(options.is_durable),
            ..PaxosRegisters::default()
        };
        Self::member(options, place, lives, registers)
    }

    /// One that has lost what it remembered, and begins this life. The number is above those of all its lives
    /// before. It says nothing until it is let in.
    #[must_use]
    pub fn newcomer(options: AcceptorOptions, place: Place, life: u64) -> Self {
        let software = Acceptor::newcomer(options.deployment, options.me, life);
        Self::off(options, place, software)
    }

    /// With what it has kept, in the order in which it was kept. Nothing kept: as [`first`](Self::first).
    ///
    /// # Errors
    /// The deployment cannot be, or is not the one of which these records are.
    pub fn restored(
        options: AcceptorOptions,
        place: Place,
        records: impl IntoIterator<Item = PaxosRecord>,
    ) -> Result<Self, PlaneError> {
        let mut lives = Lives::first(options.deployment.acceptors);
        let mut registers = None;
        let mut slots: BTreeMap<u64, (PaxosSlot, Vec<u8>)> = BTreeMap::new();
        for record in records {
            match record {
                PaxosRecord::Lives(stored) => {
                    lives = (0..)
                        .zip(&stored)
                        .fold(lives, |it, (acceptor, life)| it.with(acceptor, *life));
                }
                PaxosRecord::Registers(stored) => registers = Some(*stored),
                PaxosRecord::Synced(_) => {}
                PaxosRecord::Slot(stored, slot, value) => {
                    let trimmed = stored.trimmed;
                    registers = Some(*stored);
                    slots.insert(slot.instance, (*slot, value));
                    // No more than can be open.
                    while slots
                        .first_key_value()
                        .is_some_and(|(it, _)| *it <= trimmed)
                    {
                        slots.pop_first();
                    }
                }
            }
        }
        let Some(registers) = registers else {
            return Self::first(options, place);
        };
        let trimmed = registers.trimmed;
        let mut host = Self::member(options, place, lives, registers)?;
        for (slot, value) in slots.values().filter(|(it, _)| it.instance > trimmed) {
            host.place.engine.put_back(slot, value);
        }
        // One that knows less than it has said must say nothing.
        match host.place.engine.fault() {
            Some(fault) => Err(fault.clone()),
            None => Ok(host),
        }
    }

    fn member(
        options: AcceptorOptions,
        place: Place,
        lives: Lives,
        registers: PaxosRegisters,
    ) -> Result<Self, PlaneError> {
        let registers = PaxosRegisters {
            configuration: lives.number(),
            ..registers
        };
        let software = Acceptor::member(options.deployment, options.me, lives, registers.trimmed);
        let mut host = Self::off(options, place, software);
        host.place.engine.switch_on(&registers)?;
        Ok(host)
    }

    fn off(options: AcceptorOptions, mut place: Place, software: Acceptor) -> Self {
        let destinations = Self::destinations(place.addresses());
        place.engine.set_destinations(destinations);
        let software = if options.is_durable {
            software.held()
        } else {
            software
        };
        Self {
            options,
            place,
            software,
        }
    }

    /// To whom an acceptor's box sends. A coordinator's host that wants to know asks to be told.
    #[must_use]
    pub fn destinations(addresses: &Addresses) -> Vec<SocketAddr> {
        addresses.learners.clone()
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
    pub fn software(&self) -> &Acceptor {
        &self.software
    }

    /// All that has to be kept for it to go on, in place of all that was kept before.
    pub fn records(&self) -> impl Iterator<Item = PaxosRecord> {
        let lives = lives(&self.options, &self.software);
        std::iter::once(lives).chain(self.place.engine.records())
    }

    /// Takes in a datagram.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], driver: &mut dyn Driver) {
        let Some(handed) = self.place.receive(from, datagram, driver) else {
            return;
        };
        if handed.reason == PacketReason::TwoValues {
            driver.happened(Happened::TwoValues(handed.header));
        }
        let mut orders = Orders::new();
        let registers = self.place.engine.registers();
        let (header, payload) = (&handed.header, &handed.payload);
        let noted = self
            .software
            .on_packet(header, payload, &registers, &mut orders);
        if noted != Noted::Nothing {
            driver.happened(Happened::Noted(noted));
        }
        self.carry_out(orders, Some(handed.from), driver);
    }

    /// Everything up to this number is durable: says what waited for it.
    pub fn durable(&mut self, upto: u64, out: &mut dyn Outbox) {
        self.place.engine.durable(upto, out);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Since, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        self.software.tick(now, &mut orders);
        self.carry_out(orders, None, driver);
    }

    /// Instances up to this one are lost to learners that have not kept them: the operator says so, at each
    /// acceptor.
    pub fn declare_lost(&mut self, upto: u64, driver: &mut dyn Driver) {
        let mut orders = Orders::new();
        self.software.declare_lost(upto, &mut orders);
        self.carry_out(orders, None, driver);
    }

    fn carry_out(&mut self, orders: Orders, asked_by: Option<SocketAddr>, driver: &mut dyn Driver) {
        let lives: &dyn Fn() -> PaxosRecord = &|| lives(&self.options, &self.software);
        let lives = self.options.is_durable.then_some(lives);
        self.place.carry_out(orders, asked_by, lives, driver);
    }
}

fn lives(options: &AcceptorOptions, software: &Acceptor) -> PaxosRecord {
    let acceptors = 0..options.deployment.acceptors;
    PaxosRecord::Lives(acceptors.map(|it| software.lives().of(it)).collect())
}
