//! How much of the event loop's time strangers may take: whoever reaches a port can make it accept
//! connections and check certificates, which costs far more here than there. Their work is done as far as
//! there is time for it; the rest waits. Moves no byte.
use quorumwire_control::Now;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// In one turn they may take this long, and one of them longer: a leader is to speak every few milliseconds.
const PER_TURN: Duration = Duration::from_millis(1);
/// What was not used is kept for this part of a second, so that a few who come at once need not wait.
const KEPT_PARTS_OF_SECOND: u32 = 4;

/// Of each second, for accepting connections of clients.
pub const ACCEPT_TIME: Duration = Duration::from_millis(150);
/// Of each second, for their handshakes of TLS.
pub const HANDSHAKES_TIME: Duration = Duration::from_millis(250);
/// Handshakes of clients under way at once; no more connections are accepted until one is done, or gives way.
pub const HANDSHAKES_MAX: usize = 128;
/// As many as may go on in a turn, if there is time.
const GO_ON_PER_TURN: usize = 8;
/// A client that has not finished its handshake by then is closed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// With as many as there may be, one that takes longer than this gives way to who waits.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(1);

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

/// Clients that arrive at one kind of ports: who may be accepted, and whose handshake of TLS may go on. They
/// are known by numbers that their owner gives.
pub struct Handshakes {
    accepts: TimeBudget,
    time: TimeBudget,
    /// More connections may wait to be accepted.
    accepts_more: bool,
    /// Since when, and whose.
    open: BTreeSet<(Now, u32)>,
    /// Those that go on when there is time again.
    postponed: VecDeque<u32>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            accepts: TimeBudget::new(ACCEPT_TIME),
            time: TimeBudget::new(HANDSHAKES_TIME),
            accepts_more: false,
            open: BTreeSet::new(),
            postponed: VecDeque::new(),
        }
    }
}

impl Handshakes {
    /// A turn of the event loop begins. Those that had to wait and may go on, as far as there is time.
    pub fn begin_turn(&mut self, now: Now) -> impl Iterator<Item = u32> + use<'_> {
        self.accepts.begin_turn(now);
        self.time.begin_turn(now);
        let go_on = if self.may_go_on() {
            self.postponed.len().min(GO_ON_PER_TURN)
        } else {
            0
        };
        self.postponed.drain(..go_on)
    }

    /// Whether the next turn has something to do for those who wait.
    pub fn has_arrivals(&self) -> bool {
        let accepts = self.accepts_more && self.accepts.will_be_left();
        (accepts && self.open.len() < HANDSHAKES_MAX)
            || (!self.postponed.is_empty() && self.time.will_be_left())
    }

    /// Whether more may wait to be accepted than there was time for; asked once.
    pub const fn accepts_more(&mut self) -> bool {
        std::mem::replace(&mut self.accepts_more, false)
    }

    /// Whether there is time and room to accept one now, whose handshake follows if `is_secured`.
    pub fn may_accept(&mut self, is_secured: bool, now: Now) -> bool {
        let is_room = !is_secured || self.has_room(now);
        let may = is_room && self.accepts.is_left();
        self.accepts_more |= !may;
        may
    }

    /// Whether one more may begin its handshake, if only because another gives way.
    fn has_room(&self, now: Now) -> bool {
        let oldest = self.open.first();
        self.open.len() < HANDSHAKES_MAX
            || oldest.is_some_and(|(since, _)| is_over(now, *since, HANDSHAKE_PATIENCE))
    }

    /// So much time went into accepting one.
    pub fn use_up_accept(&mut self, took: Duration) {
        self.accepts.use_up(took);
    }

    /// Whether there is time for a handshake to go on.
    pub fn may_go_on(&self) -> bool {
        self.time.is_left()
    }

    /// This one goes on later.
    pub fn postpone(&mut self, place: u32) {
        self.postponed.push_back(place);
    }

    /// So much time went into a handshake.
    pub fn use_up(&mut self, took: Duration) {
        self.time.use_up(took);
    }

    /// Whose gives way to one that is about to begin.
    pub fn displaced(&self) -> Option<u32> {
        let oldest = self
            .open
            .first()
            .filter(|_| self.open.len() >= HANDSHAKES_MAX);
        oldest.map(|(_, place)| *place)
    }

    /// Whose takes too long.
    pub fn timed_out(&self, now: Now) -> Option<u32> {
        let oldest = self.open.first();
        oldest.and_then(|(since, place)| is_over(now, *since, HANDSHAKE_TIMEOUT).then_some(*place))
    }

    /// One begins.
    pub fn begin(&mut self, since: Now, place: u32) {
        self.open.insert((since, place));
    }

    #[cfg(test)]
    pub fn have_time_for_accepts(&mut self, per_second: Duration) {
        self.accepts = TimeBudget::new(per_second);
    }

    #[cfg(test)]
    pub fn are_over(&self) -> bool {
        self.open.is_empty()
    }

    /// All are gone.
    pub fn clear(&mut self) {
        self.open.clear();
        self.postponed.clear();
    }

    /// It is over, one way or the other.
    pub fn end(&mut self, since: Now, place: u32) {
        self.open.remove(&(since, place));
    }
}

/// Whether more than this time has passed.
pub fn is_over(now: Now, since: Now, time: Duration) -> bool {
    now.0.saturating_sub(since.0) > time
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
