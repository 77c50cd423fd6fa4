//! What all hosts have: a box, addresses, and orders to be carried out.
use crate::{Driver, Happened};
use quorumwire_fastpath::{PaxosEngine, PaxosEvent, PaxosOptions, PaxosStore};
use quorumwire_interfaces::{PlaneError, PlaneKeys};
use quorumwire_paxos::{Deployment, Order, Orders, To};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{Header, PacketReason};
use std::net::SocketAddr;
use std::sync::Arc;

/// Where everybody of a deployment is, by number.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Addresses {
    /// Coordinators' boxes.
    pub coordinators: Vec<SocketAddr>,
    /// Acceptors' boxes.
    pub acceptors: Vec<SocketAddr>,
    /// Learners.
    pub learners: Vec<SocketAddr>,
    /// Where all acceptors hear, too, if the network copies what goes there: a multicast address. Only what
    /// coordinators' boxes propose goes there.
    pub all_acceptors: Option<SocketAddr>,
}

/// A packet that the box has left to software.
pub(crate) struct Handed {
    pub(crate) from: SocketAddr,
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
    pub(crate) reason: PacketReason,
}

fn options(deployment: &Deployment) -> PaxosOptions {
    PaxosOptions {
        group: deployment.group,
        window: deployment.window,
    }
}

/// A box among others: what a host is made with.
pub struct Place {
    pub(crate) engine: PaxosEngine,
    addresses: Arc<Addresses>,
    /// Its own: nothing is sent there.
    own: SocketAddr,
}

impl Place {
    /// A box in ordinary memory that is off, at its own address. It signs and checks with these keys.
    ///
    /// # Errors
    /// The deployment's window cannot be.
    pub fn new(
        deployment: &Deployment,
        addresses: Arc<Addresses>,
        own: SocketAddr,
        keys: &PlaneKeys,
    ) -> Result<Self, PlaneError> {
        let engine = PaxosEngine::new(options(deployment))?;
        Ok(Self::with(engine, addresses, own, keys))
    }

    /// One with this store, which is off and was made for the deployment's window.
    ///
    /// # Errors
    /// The deployment's window cannot be.
    pub fn within(
        deployment: &Deployment,
        addresses: Arc<Addresses>,
        own: SocketAddr,
        keys: &PlaneKeys,
        store: Box<dyn PaxosStore>,
    ) -> Result<Self, PlaneError> {
        let engine = PaxosEngine::within(options(deployment), store)?;
        Ok(Self::with(engine, addresses, own, keys))
    }

    fn with(
        mut engine: PaxosEngine,
        addresses: Arc<Addresses>,
        own: SocketAddr,
        keys: &PlaneKeys,
    ) -> Self {
        engine.set_keys(keys);
        Self {
            engine,
            addresses,
            own,
        }
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Takes in a datagram. What the box leaves to software.
    pub(crate) fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        driver: &mut dyn Driver,
    ) -> Option<Handed> {
        let (mut handed, mut kept) = (None, None);
        let mut sink = |event: PaxosEvent<'_>| match event {
            PaxosEvent::ToSoftware {
                from,
                header,
                payload,
                reason,
            } => {
                handed = Some(Handed {
                    from,
                    header,
                    payload: payload.to_vec(),
                    reason,
                });
            }
            PaxosEvent::Keep { record, number } => kept = Some((record, number)),
        };
        self.engine.receive(from, datagram, driver, &mut sink);
        if let Some((record, number)) = kept {
            driver.keep(record, number);
        }
        handed
    }

    /// Does what the software wants. `lives` makes what an acceptor keeps before it says anything in another
    /// configuration, where it keeps anything.
    pub(crate) fn carry_out(
        &mut self,
        orders: Orders,
        asked_by: Option<SocketAddr>,
        lives: Option<&dyn Fn() -> PaxosRecord>,
        driver: &mut dyn Driver,
    ) {
        for order in orders {
            match order {
                Order::Send {
                    to,
                    header,
                    payload,
                } => self.send(to, asked_by, header, &payload, driver),
                Order::SwitchOn(registers) => {
                    self.engine.switch_off();
                    if let Err(error) = self.engine.switch_on(&registers) {
                        driver.happened(Happened::CannotBegin(error));
                        continue;
                    }
                    if let Some(lives) = lives {
                        driver.keep(lives(), self.engine.last_kept());
                        let registers = PaxosRecord::Registers(registers);
                        driver.keep(registers, self.engine.last_kept());
                    }
                }
                Order::SwitchOff => self.engine.switch_off(),
                Order::Configure(configuration) => {
                    if let Some(lives) = lives {
                        driver.keep(lives(), self.engine.last_kept());
                    }
                    self.engine.configure(configuration);
                }
                Order::Trim(upto) => driver.happened(if self.engine.trim(upto) {
                    Happened::Trimmed(upto)
                } else {
                    Happened::NoSuchInstance(upto)
                }),
            }
        }
    }

    fn send(
        &mut self,
        to: To,
        asked_by: Option<SocketAddr>,
        header: Header,
        payload: &[u8],
        driver: &mut dyn Driver,
    ) {
        let Addresses {
            coordinators,
            acceptors,
            learners,
            all_acceptors: _,
        } = &*self.addresses;
        let one = |of: &'_ [SocketAddr], number: u8| of.get(usize::from(number)).copied();
        let single;
        let all: &[SocketAddr] = match to {
            To::Acceptors => acceptors,
            To::Coordinators => coordinators,
            To::Learners => learners,
            To::Sender | To::Acceptor(_) | To::Coordinator(_) => {
                single = match to {
                    To::Acceptor(number) => one(acceptors, number),
                    To::Coordinator(number) => one(coordinators, number),
                    To::Sender | To::Acceptors | To::Coordinators | To::Learners => asked_by,
                };
                single.as_slice()
            }
        };
        for to in all.iter().filter(|to| **to != self.own) {
            self.engine.send(*to, header, payload, driver);
        }
    }
}
