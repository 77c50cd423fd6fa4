//! Where the log's time can be, whatever the clocks that tell it do within their bounds. Knows nothing of how
//! the product comes to it, but the rule: it goes with the leader's clock, faster or slower by a tenth, and
//! whoever begins to lead may have it jump ahead to its wall clock.
use crate::queue::Nanos;

/// The log's time runs faster or slower by no more than one part in so many.
const SLEW: Nanos = 10;
const MILLION: Nanos = 1_000_000;

/// The earliest and the latest that it can be, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct LogTimeBounds {
    least: Nanos,
    most: Nanos,
    /// As of this moment.
    at: Nanos,
}

impl LogTimeBounds {
    /// It is known for once.
    #[must_use]
    pub const fn at(now: Nanos, time: Nanos) -> Self {
        Self {
            least: time,
            most: time,
            at: now,
        }
    }

    /// Time passes, by clocks that are fast or slow by no more than the drift.
    pub const fn pass(&mut self, now: Nanos, drift_ppm: u64) {
        let passed = now.saturating_sub(self.at);
        let by_drift = passed / MILLION * drift_ppm + drift_ppm;
        let (fast, slow) = (passed + by_drift, passed.saturating_sub(by_drift));
        self.most += fast + fast / SLEW;
        self.least += slow - slow / SLEW;
        self.at = now;
    }

    /// By how much time itself can have come ahead of it while it went on by this.
    #[must_use]
    pub const fn behind_by(by: Nanos, drift_ppm: u64) -> Nanos {
        let at_most = by / (SLEW - 1) * SLEW / (MILLION - drift_ppm) * MILLION;
        at_most.saturating_sub(by)
    }

    /// Another one leads from now on, whose wall clock shows this. It may not know all that the log was told.
    pub const fn another_leads(&mut self, wall: Nanos) {
        self.least = wall;
        if wall > self.most {
            self.most = wall;
        }
    }

    /// It is not less.
    #[must_use]
    pub const fn least(&self) -> Nanos {
        self.least
    }

    /// It is not more.
    #[must_use]
    pub const fn most(&self) -> Nanos {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::SECOND;

    #[test]
    fn both_ends_move_as_far_as_clocks_and_slew_allow() {
        let mut bounds = LogTimeBounds::at(5 * SECOND, 1_000 * SECOND);
        bounds.pass(15 * SECOND, 0);
        assert_eq!(bounds.least(), 1_009 * SECOND);
        assert_eq!(bounds.most(), 1_011 * SECOND);
        bounds.pass(25 * SECOND, 100_000);
        let (least, most) = (
            1_009 * SECOND + 81 * SECOND / 10,
            1_011 * SECOND + 121 * SECOND / 10,
        );
        assert!(bounds.least().abs_diff(least) < 1_000_000);
        assert!(bounds.most().abs_diff(most) < 1_000_000);
        assert!(bounds.least() <= least && bounds.most() >= most);
    }

    #[test]
    fn time_comes_ahead_as_far_as_clocks_and_slew_allow() {
        assert_eq!(LogTimeBounds::behind_by(9 * SECOND, 0), SECOND);
        let mut bounds = LogTimeBounds::at(0, 0);
        bounds.pass(10 * SECOND, 100_000);
        let behind = LogTimeBounds::behind_by(bounds.least(), 100_000);
        assert!((bounds.least() + behind).abs_diff(10 * SECOND) < 2_000_000);
    }

    #[test]
    fn who_begins_to_lead_may_have_it_jump_ahead_and_not_know_all() {
        let mut bounds = LogTimeBounds::at(0, 1_000 * SECOND);
        bounds.another_leads(900 * SECOND);
        assert_eq!(
            (bounds.least(), bounds.most()),
            (900 * SECOND, 1_000 * SECOND)
        );
        bounds.another_leads(2_000 * SECOND);
        assert_eq!(
            (bounds.least(), bounds.most()),
            (2_000 * SECOND, 2_000 * SECOND)
        );
    }
}
