//! What time a leader tells the log. Is handed readings of its two clocks, and has none.
use crate::Now;
use crate::mutants::mutant;
use quorumwire_wire::{LOG_TIME_AGREES_MS, Tick};
use std::time::Duration;

/// While the log's time and the wall clock differ, the log's time runs slower or faster by one part in so
/// many.
pub const LOG_TIME_SLEW: u32 = 10;

/// A difference of more than this is a fault, in milliseconds: somebody's clock is wrong, or was.
pub const LOG_TIME_FAULT_MS: u64 = 10_000;

/// The log's time as a leader tells it. At the start of a term that is the wall clock, or what the log had
/// come to if that is later. From then on it goes with the clock that nobody sets, and slowly towards the
/// wall clock: whatever that does, it never goes back and never jumps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LogClock {
    /// The time when the clocks were last looked at, since 1970.
    time: Duration,
    /// When that was.
    at: Now,
    /// What the wall clock showed then.
    wall: Duration,
}

impl LogClock {
    /// The clock of a term that begins now. `log_time_ms` is what the log has come to.
    #[must_use]
    pub fn begin(now: Now, wall: Duration, log_time_ms: u64) -> Self {
        Self {
            time: wall.max(Duration::from_millis(log_time_ms)),
            at: now,
            wall,
        }
    }

    /// Takes note of what the wall clock shows now, and of what the log has come to: what an earlier leader
    /// had told it may have become known only since the term began.
    pub fn look(&mut self, now: Now, wall: Duration, log_time_ms: u64) {
        *self = Self {
            time: self.time(now).max(Duration::from_millis(log_time_ms)),
            at: self.at.max(now),
            wall,
        };
    }

    /// The log's time, since 1970.
    #[must_use]
    pub fn time(&self, now: Now) -> Duration {
        let passed = now.0.saturating_sub(self.at.0);
        let apart = self.time.abs_diff(self.wall);
        let mut slew = (passed / LOG_TIME_SLEW).min(apart);
        if mutant("log-time-jumps") {
            slew = apart;
        }
        let passed = if self.time >= self.wall {
            passed.saturating_sub(slew)
        } else {
            passed.saturating_add(slew)
        };
        self.time.saturating_add(passed)
    }

    /// The same in milliseconds.
    #[must_use]
    pub fn time_ms(&self, now: Now) -> u64 {
        milliseconds(self.time(now))
    }

    /// By how much the log's time is ahead of the wall clock, in milliseconds; less than 0 if it is behind.
    #[must_use]
    pub fn ahead_ms(&self, now: Now) -> i64 {
        let wall = self.wall.saturating_add(now.0.saturating_sub(self.at.0));
        let time = self.time(now);
        let ahead = i64::try_from(milliseconds(time.abs_diff(wall))).unwrap_or(i64::MAX);
        if time >= wall { ahead } else { -ahead }
    }

    /// Whether the wall clock shows less than the log was told last: then a point of time that a client takes
    /// for one to come may be past for the log. The log has come to `log_time_ms`, and is ahead by `ahead_ms`
    /// as far as it knows.
    #[must_use]
    pub fn is_set_back(&self, now: Now, log_time_ms: u64, ahead_ms: i64) -> bool {
        let wall = self.wall.saturating_add(now.0.saturating_sub(self.at.0));
        let told_ms = log_time_ms.saturating_add_signed(ahead_ms.saturating_neg());
        milliseconds(wall).saturating_add(LOG_TIME_AGREES_MS) < told_ms
            && !mutant("wall-clock-is-the-logs-time")
    }

    /// What a tick says; of the wall clock only if [that may be](crate::Replica::may_tell_wall_clock).
    #[must_use]
    pub fn tick(&self, now: Now, tells_wall_clock: bool) -> Tick {
        let (log_time_ms, ahead_ms) = (self.time_ms(now), self.ahead_ms(now));
        let mut wall_ms = log_time_ms.saturating_add_signed(ahead_ms.saturating_neg());
        if mutant("wall-clock-is-the-logs-time") {
            wall_ms = log_time_ms;
        }
        Tick {
            log_time_ms,
            wall_ms: tells_wall_clock.then_some(wall_ms),
        }
    }

    /// The log's time does not come to this before then, as far as this clock tells it.
    #[must_use]
    pub fn earliest(&self, log_time_ms: u64) -> Now {
        let left = Duration::from_millis(log_time_ms).saturating_sub(self.time);
        let left = left / (LOG_TIME_SLEW + 1) * LOG_TIME_SLEW;
        Now(self.at.0.saturating_add(left))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "log_clock_test.rs"]
mod tests;
