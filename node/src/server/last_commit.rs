//! When a write was last seen to get on.
use quorumwire_control::Now;
use quorumwire_interfaces::Index;

/// When the leader's commit index was last seen to move, or to have nothing in front of it.
#[derive(Clone, Copy)]
pub struct LastCommit {
    pub index: Index,
    pub at: Now,
    /// The clock's fault has been said.
    pub clock_is_off: bool,
}

impl LastCommit {
    /// Of a replica that begins now.
    pub const fn begin(now: Now) -> Self {
        Self {
            index: Index(0),
            at: now,
            clock_is_off: false,
        }
    }
}
