//! What a replicated group wants done outside of itself. It pushes effects, and whoever drives it carries
//! them out in the order in which they were pushed.
//!
//! # When
//! After everything that came from other replicas; after each output of consensus, so that nothing is said
//! before what had to be persisted first; and before the server itself does anything to the connections
//! between replicas: reads from them, looks after them, writes to them, says goodbye. A turn leaves none to
//! the next one. Between two of these moments nothing else is queued for another replica, so messages leave
//! in the order in which the group said them, among the connections' own.
//!
//! # How many
//! What has no room in a connection's queue never becomes an effect. So those that wait hold at most what the
//! queues of all connections may hold (`QUEUE_BYTES_MAX`), and one message more for each.
use bytes::Bytes;
use quorumwire_control::Peer;
use quorumwire_wire::peer::PeerMessage;

/// One thing to be done.
#[derive(Debug)]
pub enum Effect {
    /// A message to another replica.
    Send {
        /// To which.
        to: Peer,
        /// What it says.
        message: PeerMessage,
        /// What goes with it.
        attachment: Vec<Bytes>,
    },
    /// The key of a fast term, for this replica alone. Dropped, and counted, where others could read it.
    SendKey {
        /// To which.
        to: Peer,
        /// What it says.
        message: PeerMessage,
    },
}
