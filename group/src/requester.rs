//! Who asks a group for something.
use quorumwire_control::Peer;
use quorumwire_interfaces::Term;
use std::fmt::Debug;
use std::net::SocketAddr;

/// Where an answer goes: only who drives a group knows. It can name all whom the group itself hears of.
pub trait Requester: Copy + Debug + From<PlaneClient> + From<Follower> {
    /// Who waits here for a read.
    type Reader: Debug;

    /// Which way the answer goes.
    fn answer_to(self) -> AnswerTo;
}

/// Which way an answer goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerTo {
    /// To somebody here: whoever drives the group knows to whom.
    Here,
    /// To the replica that passed the request on.
    Follower(Follower),
    /// To a client that asked through the plane.
    PlaneClient(PlaneClient),
}

/// A request that was passed on, as its answer names it. A follower takes no answer to what another process
/// of it asked, or in another term.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId {
    /// In which it was sent.
    pub term: Term,
    /// The process that sent it: a number drawn by chance when that began. 0: one of an earlier version,
    /// which does not say.
    pub process: u64,
    /// Of this request among those of the process.
    pub number: u64,
}

/// A follower's request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Follower {
    /// Who passed it on.
    pub peer: Peer,
    /// Which one it is.
    pub id: RequestId,
}

/// A client that asked through the plane, and what it asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlaneClient {
    /// Where it is.
    pub from: SocketAddr,
    /// Its session.
    pub session: u64,
    /// The number of its request in that.
    pub sequence: u64,
}
