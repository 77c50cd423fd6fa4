//! How much of the event loop's time strangers may take: whoever reaches a port can make it accept
//! connections and check certificates, which costs far more here than there. Their work is done as far as
//! there is time for it; the rest waits. Moves no byte.
use quorumwire_control::Now;
use std::time::Duration;

/// In one turn they may take this long, and one of them longer: a leader is to speak every few milliseconds.
const PER_TURN: Duration = Duration::from_millis(1);
/// What was not used is kept for this part of a second, so that a few who come at once need not wait.
const KEPT_PARTS_OF_SECOND: u32 = 4;

/// Processor time for one kind of work.
#[derive(Debug)]
pub struct TimeBudget {
    per_second: Duration,
    /// Used and not earned back yet.
    used: Duration,
    used_in_turn: Duration,
    earned_until: Now,
}

impl TimeBudget {
    /// Of each second so much.
    pub fn new(per_second: Duration) -> Self {
        Self {
            per_second,
            used: Duration::ZERO,
            used_in_turn: Duration::ZERO,
            earned_until: Now::default(),
        }
    }

    /// A turn of the event loop begins.
    pub fn begin_turn(&mut self, now: Now) {
        self.used_in_turn = Duration::ZERO;
        let passed = now.0.saturating_sub(self.earned_until.0);
        self.earned_until = now;
        // No more than a second counts: what is used is less than that.
        let passed = passed.min(Duration::from_secs(1));
        let earned = self.per_second.mul_f64(passed.as_secs_f64());
        self.used = self.used.saturating_sub(earned);
    }

    /// Whether there is time for another, in this turn.
    pub fn is_left(&self) -> bool {
        self.used_in_turn < PER_TURN && self.will_be_left()
    }

    /// Whether there will be in the next turn, even if it begins at once.
    pub fn will_be_left(&self) -> bool {
        self.used < self.per_second / KEPT_PARTS_OF_SECOND
    }

    /// So much was used.
    pub fn use_up(&mut self, took: Duration) {
        self.used_in_turn += took;
        // One that took very long is not to shut out the others for longer than a second.
        self.used = (self.used + took).min(self.per_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Now {
        Now(MS * ms)
    }

    /// As many as there is time for, in this turn.
    fn work(budget: &mut TimeBudget, takes: Duration) -> u32 {
        let mut count = 0;
        while budget.is_left() {
            budget.use_up(takes);
            count += 1;
        }
        count
    }

    #[test]
    fn a_turn_is_short_even_after_a_long_rest() {
        let mut budget = TimeBudget::new(100 * MS);
        budget.begin_turn(at(60_000));
        assert_eq!(work(&mut budget, MS / 4), 4);
        assert!(budget.will_be_left(), "in the next turn");
        budget.begin_turn(at(60_000));
        assert_eq!(work(&mut budget, 5 * MS), 1, "one that takes long is done");
    }

    #[test]
    fn a_second_is_bounded_whatever_is_asked_for() {
        for takes in [MS / 100, MS / 2, 7 * MS, 400 * MS] {
            let mut budget = TimeBudget::new(100 * MS);
            let mut used = Duration::ZERO;
            // Turns of a tenth of a millisecond, for ten seconds.
            for turn in 0..100_000 {
                budget.begin_turn(Now(turn * MS / 10));
                used += work(&mut budget, takes) * takes;
            }
            let kept = 100 * MS / KEPT_PARTS_OF_SECOND;
            if takes < 100 * MS {
                assert!(used <= 1000 * MS + kept + takes, "{takes:?}: {used:?}");
                assert!(used >= 980 * MS, "{takes:?}: {used:?}");
            } else {
                // Each takes longer than all of a second's time: one in three quarters of a second.
                assert!(used <= 14 * takes, "{used:?}");
            }
        }
    }

    #[test]
    fn what_was_used_up_is_earned_again() {
        let mut budget = TimeBudget::new(100 * MS);
        budget.begin_turn(at(1000));
        budget.use_up(100 * MS);
        budget.begin_turn(at(1700));
        assert!(!budget.is_left() && !budget.will_be_left());
        budget.begin_turn(at(1760));
        assert!(budget.is_left());
    }

    #[test]
    fn a_clock_that_stands_still_earns_nothing() {
        let mut budget = TimeBudget::new(100 * MS);
        for _ in 0..1000 {
            budget.begin_turn(at(5));
            budget.use_up(MS);
        }
        assert!(!budget.is_left());
    }
}
