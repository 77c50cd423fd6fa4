//! What a connection keeps of each request until it is answered.
use super::Said;
use crate::server::stats::Statistics;
use quorumwire_control::Ticket;
use quorumwire_interfaces::Index;

/// A request that waits for its answer.
#[derive(Debug)]
pub struct Slot {
    /// What it is.
    pub kind: SlotKind,
    /// The answer, if it came before those of earlier requests.
    pub answer: Option<Box<[u8]>>,
    /// What that is.
    pub said: Said,
    /// The client wants no answer.
    pub quiet: bool,
    /// What it is likely to cost others; see `clients/overdrawn.rs`.
    pub work: u32,
}

/// What a waiting request is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlotKind {
    /// A write: in the log, or on its way to the leader.
    Write,
    /// A read; its line is the next in `lines`.
    Read {
        /// Length of the line.
        line_bytes: u32,
        /// How many keys it asks for.
        keys: u32,
        /// How many of its keys are answered already.
        keys_done: u32,
        /// So many of its keys are asked of the leader at once: together with more of them the answer is too large for
        /// a message between replicas.
        keys_at_once: u32,
        /// Where it stands.
        state: ReadState,
    },
    /// About the server: what belongs to more than this connection knows the answer.
    Asked,
    /// Known already, waits for its turn.
    Fixed(&'static [u8]),
    /// Statistics, made when their turn comes.
    Stats(Statistics),
    /// Close once everything before it is answered.
    Quit,
}

/// Where a read stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadState {
    /// To be answered under the leader's lease once the state machine has applied this index.
    Gated(Index),
    /// A read index round is under way.
    Asked(Ticket),
    /// To be answered once the state machine has applied this index; no lease needed any more.
    Granted(Index),
    /// Sent to the leader, under this request number.
    Forwarded(u64),
    /// It looks through all keys, in turns of its own: see `searches.rs`.
    Searching,
}
