//! What a leader tells the log's time by.
use quorumwire_control::{LogClock, Now};
use quorumwire_interfaces::{Index, LogTime, Term};
use std::time::Duration;

/// The log's time as this leader tells it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaderClock {
    /// What it tells the time of.
    pub term: Term,
    pub(crate) time: LogClock,
    pub(crate) last_tick: Option<Now>,
    /// Index of the last tick proposed because something's time had come.
    pub barrier: Index,
    /// When that was.
    pub(crate) barrier_since: Now,
    /// Index of the last tick proposed because something applied counts from it.
    pub awaited: Index,
}

/// The time of day, as it was last read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    /// Since 1970.
    pub(crate) shown: Duration,
    pub(crate) at: Now,
}

impl WallClock {
    pub(crate) const fn read(now: Now, shown: Duration) -> Self {
        Self { shown, at: now }
    }

    /// What it shows now, if nobody has set it since.
    pub(crate) fn at(self, now: Now) -> Duration {
        self.shown + now.0.saturating_sub(self.at.0)
    }
}

impl LeaderClock {
    /// By how much the log's time is ahead of the wall clock.
    #[must_use]
    pub fn ahead_ms(&self, now: Now) -> i64 {
        self.time.ahead_ms(now)
    }

    /// The log's time does not come to this before then, in time since the system was started.
    #[must_use]
    pub fn earliest(&self, time: LogTime) -> Duration {
        self.time.earliest(time.0).0
    }
}

/// What becomes of a read whose answer only the log's time decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Overdue {
    /// It waits for this entry.
    Until(Index),
    /// The log's time stands still.
    Refused,
}
