//! Who asks, and so where an answer goes; and what a group keeps of requests by that.
use super::connection_id::ConnectionId;
use quorumwire_control::Ticket;
use quorumwire_group::{AnswerTo, Follower, PlaneClient, Requester};
use quorumwire_interfaces::DataPlane;

/// Where an answer goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// To the slot with this number of a connection here.
    Client(ConnectionId, u64),
    /// To the replica that passed it on.
    Follower(Follower),
    /// To a client that asked through the data plane: its address, session and sequence.
    Plane(PlaneClient),
    /// To whoever the service knows by this number.
    Service(u64),
    /// To whoever here waits for this ticket, if anybody does.
    Admin(Ticket),
}

impl From<PlaneClient> for Origin {
    fn from(client: PlaneClient) -> Self {
        Self::Plane(client)
    }
}

impl From<Follower> for Origin {
    fn from(follower: Follower) -> Self {
        Self::Follower(follower)
    }
}

impl Requester for Origin {
    type Reader = Reader;

    fn answer_to(self) -> AnswerTo {
        match self {
            Self::Client(..) | Self::Service(_) | Self::Admin(_) => AnswerTo::Here,
            Self::Follower(follower) => AnswerTo::Follower(follower),
            Self::Plane(client) => AnswerTo::PlaneClient(client),
        }
    }
}

/// A read here that waits: for a read index, or for its entries to be applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reader {
    Client(ConnectionId),
    /// Whoever the service knows by this number.
    Service(u64),
}

/// One replicated log, as it stands in this server.
pub type Group<A> = quorumwire_group::Group<A, Origin, dyn DataPlane>;

/// A write of ours that is in the log and not applied yet.
pub type Proposal = quorumwire_group::Proposal<Origin>;

/// A request sent to the leader.
pub type Forward = quorumwire_group::Forward<Origin>;
