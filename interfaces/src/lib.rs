//! The traits everything hangs on, and the words they share. No logic lives here.
mod application;
mod counters;
mod endpoint;
mod offload;
mod plane;
mod reason;

pub use application::{Application, Applied, Frozen};
pub use counters::{Counter, CounterSink, help_of};
pub use endpoint::{ENDPOINT_BYTES_MAX, Endpoint};
pub use offload::{Leave, Offload};
pub use plane::*;
pub use reason::{Executed, Reason};

use std::fmt;

/// Position in the replicated log. The first entry has index 1; 0 means "nothing yet".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Index(pub u64);

/// Number of an election. At most one leader per term; 0 means "before the first".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Term(pub u64);

/// Name of a replica, unique in its cluster: 0 to 65,535, chosen by the operator.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ReplicaId(pub u16);

/// One life of a replica's memory. A replica that lost what it knew (wiped disk, bit rot, restart in
/// `memory` mode) comes back under a new incarnation, and nothing the old one promised counts for it.
/// 0 means "none known".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Incarnation(pub u64);

/// One cluster among all of its name: a number drawn by chance for its first entry, and anew when a cluster
/// is made from old data. It stands in every membership. 0 means "none known": a replica that has not been
/// taken in yet, or a cluster from before there were lineages.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Lineage(pub u128);

/// Name of a replicated log; many may live in one process.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GroupId(pub u32);

/// Milliseconds since 1970-01-01 as the log tells them: the only clock a state machine knows. Never
/// goes back, also not when the leader changes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LogTime(pub u64);

impl Lineage {
    /// Whether there is one.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Whether two are those of different clusters. One that is not known contradicts none.
    #[must_use]
    pub const fn contradicts(self, other: Self) -> bool {
        self.is_known() && other.is_known() && self.0 != other.0
    }

    /// This one; if it is not known, the other.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        if self.is_known() { self } else { other }
    }
}

impl Index {
    /// The index after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The index before this one; 0 stays 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

macro_rules! shown_as_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
shown_as_number!(Index, Term, ReplicaId, GroupId, LogTime);

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_known() {
            write!(f, "{:032x}", self.0)
        } else {
            f.write_str("none")
        }
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
