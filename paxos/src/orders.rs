//! What a role's software wants done. It does nothing itself.
use crate::deployment::with_payload;
use quorumwire_wire::packet::{Header, PaxosRegisters};

/// Where a packet goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum To {
    /// To whoever sent the packet that is answered.
    Sender,
    /// To all acceptors' boxes.
    Acceptors,
    /// To this one's.
    Acceptor(u8),
    /// To all coordinators' boxes; one of a coordinator, to the others'.
    Coordinators,
    /// To this one's.
    Coordinator(u8),
    /// To all learners.
    Learners,
}

/// One thing to do, in the order in which they come.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Send a packet, signed.
    Send {
        /// Where to.
        to: To,
        /// What it says.
        header: Header,
        /// Its payload.
        payload: Vec<u8>,
    },
    /// Load the box's registers and switch its role on. Its slots are empty then, except where an acceptor
    /// goes on with what was on its disk.
    SwitchOn(Box<PaxosRegisters>),
    /// Switch the box off: when this is done nothing more leaves it.
    SwitchOff,
    /// Give the box, which is on, this configuration. Where votes are held, it is durable before anything
    /// else is said.
    Configure(u64),
    /// Let the box forget the instances up to this one.
    Trim(u64),
}

/// What is to be done.
pub type Orders = Vec<Order>;

pub(crate) fn send(orders: &mut Orders, to: To, header: Header, payload: &[u8]) {
    orders.push(Order::Send {
        to,
        header: with_payload(header, payload),
        payload: payload.to_vec(),
    });
}
