//! A host of each Paxos role: its box, which does the common case by itself, and the software beside it,
//! which does the rare ones. It joins the two, and has no socket, disk, clock or thread: whoever drives it
//! has, the simulator as well as a program.
mod acceptor;
mod coordinator;
mod learner;
mod place;

pub use acceptor::{AcceptorHost, AcceptorOptions};
pub use coordinator::CoordinatorHost;
pub use learner::LearnerHost;
pub use place::{Addresses, Place};

use quorumwire_fastpath::Outbox;
use quorumwire_interfaces::PlaneError;
use quorumwire_paxos::{Ignored, Noted, Turn};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::Header;
use std::net::SocketAddr;
use std::time::Duration;

/// Time since some moment that the driver knows.
pub type Since = Duration;

/// Who drives a host: sends its packets, keeps its records, and hears what happens.
pub trait Driver: Outbox {
    /// An acceptor: to be written behind all that came before. When it is durable, the driver says so with
    /// [`AcceptorHost::durable`].
    fn keep(&mut self, record: PaxosRecord, number: u64);

    /// Something happened that people may want to know.
    fn happened(&mut self, what: Happened);
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// A coordinator's part has changed, upon a packet from there.
    Turned(Turn, Option<SocketAddr>),
    /// An acceptor's has.
    Noted(Noted),
    /// Two values came to an acceptor in one instance and round: two coordinators have one number, or worse.
    TwoValues(Header),
    /// A learner did not count a packet.
    Ignored(Ignored, Header),
    /// Instances up to this one are forgotten.
    Trimmed(u64),
    /// The software wanted to forget up to here, where there is no instance.
    NoSuchInstance(u64),
    /// The box takes no role with the registers that its software made.
    CannotBegin(PlaneError),
}
