//! The traits everything hangs on, and the words they share. No logic lives here.
mod counters;
mod endpoint;
mod offload;
mod plane;
mod reason;

pub use counters::{Counter, CounterSink, help_of};
pub use endpoint::{ENDPOINT_BYTES_MAX, Endpoint};
pub use offload::{Leave, Offload};
pub use plane::*;
pub use reason::{Executed, Reason};

use std::fmt;
use std::io;

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

/// One committed command, handed to [`StateMachine::apply`] in log order.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    /// Grows from command to command, and is at least the index of the log entry it stands in, of which some
    /// hold several.
    pub number: u64,
    /// The log's time at that place: what the tick before it said.
    pub log_time: LogTime,
    /// Whether that tick may be long past. Then what counts from the moment of this command counts from
    /// the next [`advance`](StateMachine::advance).
    pub awaits_time: bool,
    /// The command, as the application encoded it.
    pub command: &'a [u8],
}

/// A replicated application. All replicas apply the same commands in the same order; what `apply` does
/// may depend on nothing but its arguments and earlier calls.
pub trait StateMachine: Send {
    /// Runs one committed command and appends the answer for its client to `reply`. Called once per
    /// command on every replica; a command that makes no sense must be answered, never panic.
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>);

    /// The log's time moves on without a command: whatever was to end by then ends now.
    fn advance(&mut self, log_time: LogTime);

    /// By how much the log's time is ahead of the time of day from here on, in milliseconds. `None`, as at
    /// first: the log does not say, and both count as one. Part of the state: a point of time that a command
    /// names is one of the time of day.
    fn set_ahead(&mut self, ahead_ms: Option<i64>);

    /// The log's time, as of the last [`advance`](Self::advance) or of the snapshot that was restored since.
    fn log_time(&self) -> LogTime;

    /// As [`set_ahead`](Self::set_ahead) was told last, or as the snapshot says that was restored since.
    fn ahead_ms(&self) -> Option<i64>;

    /// Whether the log is to say what the time of day is. It need not for commands that name no point of
    /// time.
    fn reads_time_of_day(&self) -> bool {
        true
    }

    /// Reads are answered as of this moment of the leader's clock from now on, or as of the log's time if
    /// that is later. Not part of the state.
    fn set_clock(&mut self, time: LogTime);

    /// Whether the answer to a read may show what is over by that clock, but not yet in the log's time: then
    /// the log is to say first what time it is. Takes what [`query`](Self::query) takes.
    fn is_overdue(&self, request: &[u8]) -> bool;

    /// Whether something applied since the last [`advance`](Self::advance) counts from the next one: then
    /// the log's time is to move soon. Not part of the state.
    fn awaits_time(&self) -> bool;

    /// The next log time at which [`advance`](Self::advance) would change what a query shows; `None`
    /// while nothing waits for time.
    fn next_deadline(&self) -> Option<LogTime>;

    /// Answers a read without changing anything.
    fn query(&self, request: &[u8], reply: &mut Vec<u8>);

    /// Takes the state of this moment, cheaply, to be written by another thread while `apply` goes on.
    fn freeze(&self) -> Box<dyn Frozen>;

    /// Replaces the state by one that [`Frozen::write`] wrote. On an error the state is unusable until
    /// a later `restore` succeeds.
    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()>;
}

/// A state machine's state at one moment.
pub trait Frozen: Send {
    /// Writes the state as bytes that `restore` reads, the same bytes for the same state on every
    /// replica.
    fn write(&self, writer: &mut dyn io::Write) -> io::Result<()>;
}
