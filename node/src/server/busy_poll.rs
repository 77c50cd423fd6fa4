//! Whether to look for events for a moment before sleeping until there are some: to be woken takes a
//! processor longer than most of what a write waits for. Decides; it looks at nothing itself.
use quorumwire_control::Now;
use quorumwire_interfaces::Index;
use std::time::Duration;

/// For so long after clients or other replicas wanted something it looks for the next that they want. Signs
/// of life alone, which come all the time, cost an idle replica nothing.
const WORK_IS_RECENT: Duration = Duration::from_millis(1);

/// If others keep the processor for so long that was given away between two looks, there are not enough of
/// them. Who sleeps there is woken at once, because a processor at work need not be woken itself; who looks
/// is the last in turn.
const CROWDED: Duration = Duration::from_millis(1);
/// For so many times as long as that took it does not look then, so that what it loses is less than a
/// hundredth.
const CROWDED_REST_TIMES: u32 = 128;
/// It does not rest for longer: a process that was stopped while it looked, or a machine that slept, was not
/// crowded.
const CROWDED_REST_MAX: Duration = Duration::from_secs(10);

/// What an event loop waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitKind {
    /// What others, or the disk, answer to something that is under way.
    Answers,
    /// What others may want next.
    Requests,
}

/// What one event loop knows of its waits.
pub struct BusyPoll {
    /// It looks for this long (option `busy-poll-us`); zero: never.
    at_most: Duration,
    /// The last wait of either kind was over within that.
    answers_came_soon: bool,
    requests_came_soon: bool,
    /// When there was work last, and where the log ended then.
    worked_at: Now,
    last_index: Index,
    /// It does not look before then.
    rests_until: Now,
    /// What was awaited last and has not come, and since when: waits that ended because something else was
    /// due count as one.
    still_awaited: Option<(WaitKind, Now)>,
}

impl BusyPoll {
    pub const fn new(at_most: Duration) -> Self {
        Self {
            at_most,
            answers_came_soon: true,
            requests_came_soon: false,
            worked_at: Now(Duration::ZERO),
            last_index: Index(0),
            rests_until: Now(Duration::ZERO),
            still_awaited: None,
        }
    }

    /// A turn is over in which clients wanted something or not, and behind which the log ends there. That it
    /// grew says nothing where it grows `by_itself`, because something else than this process makes it.
    pub fn turned(&mut self, now: Now, were_asked: bool, last_index: Index, by_itself: bool) {
        if were_asked || (last_index != self.last_index && !by_itself) {
            self.worked_at = now;
        }
        self.last_index = last_index;
    }

    /// A wait begins, and something else is due after `due_in`: until when to look. `None`: sleep at once.
    pub fn until(&self, now: Now, due_in: Duration, awaited: WaitKind) -> Option<Now> {
        let looks = match awaited {
            WaitKind::Answers => self.answers_came_soon,
            WaitKind::Requests => {
                let since = now.0.saturating_sub(self.worked_at.0);
                self.requests_came_soon && since <= WORK_IS_RECENT
            }
        };
        let looks = looks && !self.at_most.is_zero() && now >= self.rests_until;
        looks.then(|| Now(now.0 + self.at_most.min(due_in)))
    }

    /// One look is over, which began when the processor was given away before it.
    pub fn looked(&mut self, begun: Now, now: Now) {
        let took = now.0.saturating_sub(begun.0);
        if took >= CROWDED {
            let rest = took
                .saturating_mul(CROWDED_REST_TIMES)
                .min(CROWDED_REST_MAX);
            self.rests_until = self.rests_until.max(Now(now.0 + rest));
        }
    }

    /// The wait that began then is over, because something happened or because something else was due.
    pub fn is_over(&mut self, begun: Now, now: Now, happened: bool, awaited: WaitKind) {
        let since = match self.still_awaited {
            Some((before, since)) if before == awaited => since,
            _ => begun,
        };
        self.still_awaited = (!happened).then_some((awaited, since));
        let was_short = now.0.saturating_sub(since.0) <= self.at_most;
        // What was due that soon says nothing of what is awaited.
        if happened || !was_short {
            match awaited {
                WaitKind::Answers => self.answers_came_soon = was_short,
                WaitKind::Requests => self.requests_came_soon = was_short,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_micros(100);
    const LATER: Duration = Duration::from_millis(5);
    const START: u64 = 1_000_000;

    const fn at(us: u64) -> Now {
        Now(Duration::from_micros(START + us))
    }

    fn poll() -> BusyPoll {
        let mut poll = BusyPoll::new(MOST);
        poll.turned(at(0), true, Index(1), false);
        poll
    }

    #[test]
    fn it_looks_for_so_long_and_not_beyond_what_is_due() {
        let poll = poll();
        assert_eq!(poll.until(at(0), LATER, WaitKind::Answers), Some(at(100)));
        let soon = Duration::from_micros(30);
        assert_eq!(poll.until(at(0), soon, WaitKind::Answers), Some(at(30)));
    }

    #[test]
    fn after_what_took_long_it_sleeps_until_something_comes_soon_again() {
        for awaited in [WaitKind::Answers, WaitKind::Requests] {
            let mut poll = poll();
            poll.is_over(at(0), at(101), true, awaited);
            assert_eq!(poll.until(at(200), LATER, awaited), None);
            poll.is_over(at(200), at(300), true, awaited);
            assert_eq!(poll.until(at(300), LATER, awaited), Some(at(400)));
        }
    }

    #[test]
    fn answers_and_requests_are_told_apart() {
        let mut poll = poll();
        poll.is_over(at(0), at(900), true, WaitKind::Requests);
        assert!(poll.until(at(900), LATER, WaitKind::Answers).is_some());
        poll.is_over(at(900), at(1900), true, WaitKind::Answers);
        poll.is_over(at(1900), at(1910), true, WaitKind::Requests);
        poll.turned(at(1910), true, Index(1), false);
        assert!(poll.until(at(1910), LATER, WaitKind::Requests).is_some());
        assert_eq!(poll.until(at(1910), LATER, WaitKind::Answers), None);
    }

    #[test]
    fn nothing_for_long_is_long_too() {
        let mut poll = poll();
        poll.is_over(at(0), at(5000), false, WaitKind::Answers);
        assert_eq!(poll.until(at(5000), LATER, WaitKind::Answers), None);
    }

    #[test]
    fn a_timer_says_nothing_of_what_is_awaited() {
        let mut poll = poll();
        poll.is_over(at(0), at(30), false, WaitKind::Answers);
        assert!(poll.until(at(30), LATER, WaitKind::Answers).is_some());
        poll.is_over(at(30), at(300), true, WaitKind::Answers);
        poll.is_over(at(300), at(330), false, WaitKind::Answers);
        assert_eq!(poll.until(at(330), LATER, WaitKind::Answers), None);
    }

    #[test]
    fn where_others_keep_the_processor_it_rests() {
        let mut poll = poll();
        poll.looked(at(0), at(999));
        assert!(poll.until(at(999), LATER, WaitKind::Answers).is_some());
        poll.looked(at(1000), at(5000));
        let rests_until = 5000 + 128 * 4000;
        for awaited in [WaitKind::Answers, WaitKind::Requests] {
            poll.is_over(at(5000), at(5010), true, awaited);
            poll.turned(at(rests_until - 1), true, Index(1), false);
            assert_eq!(poll.until(at(rests_until - 1), LATER, awaited), None);
            assert!(poll.until(at(rests_until), LATER, awaited).is_some());
        }
    }

    #[test]
    fn who_stood_still_while_looking_does_not_rest_for_ever() {
        let mut poll = poll();
        let minute = 60_000_000;
        poll.looked(at(0), at(minute));
        assert_eq!(poll.until(at(minute), LATER, WaitKind::Answers), None);
        let ten_seconds_later = at(minute + 10_000_000);
        assert!(
            poll.until(ten_seconds_later, LATER, WaitKind::Answers)
                .is_some()
        );
    }

    #[test]
    fn a_shorter_rest_takes_nothing_from_a_longer_one() {
        let mut poll = poll();
        poll.looked(at(0), at(50_000));
        poll.looked(at(50_000), at(51_000));
        assert_eq!(poll.until(at(1_000_000), LATER, WaitKind::Answers), None);
    }

    #[test]
    fn what_does_not_come_is_not_looked_for_from_timer_to_timer() {
        let mut poll = poll();
        for begun in [0, 60] {
            assert!(poll.until(at(begun), LATER, WaitKind::Answers).is_some());
            poll.is_over(at(begun), at(begun + 60), false, WaitKind::Answers);
        }
        assert_eq!(poll.until(at(120), LATER, WaitKind::Answers), None);
        poll.is_over(at(120), at(180), true, WaitKind::Answers);
        poll.is_over(at(180), at(190), true, WaitKind::Answers);
        assert!(poll.until(at(190), LATER, WaitKind::Answers).is_some());
    }

    #[test]
    fn without_work_nobody_looks_for_requests() {
        let mut poll = poll();
        poll.is_over(at(0), at(10), true, WaitKind::Requests);
        assert!(poll.until(at(1000), LATER, WaitKind::Requests).is_some());
        assert_eq!(poll.until(at(1001), LATER, WaitKind::Requests), None);
        // A sign of life is none, an entry is.
        poll.turned(at(1100), false, Index(1), false);
        assert_eq!(poll.until(at(1100), LATER, WaitKind::Requests), None);
        // Nor is one that a plane made by itself, then or later.
        poll.turned(at(1150), false, Index(2), true);
        poll.turned(at(1150), false, Index(2), false);
        assert_eq!(poll.until(at(1150), LATER, WaitKind::Requests), None);
        poll.turned(at(1200), false, Index(3), false);
        assert!(poll.until(at(1200), LATER, WaitKind::Requests).is_some());
    }

    #[test]
    fn zero_is_never() {
        let mut poll = BusyPoll::new(Duration::ZERO);
        for awaited in [WaitKind::Answers, WaitKind::Requests] {
            poll.turned(at(0), true, Index(1), false);
            poll.is_over(at(0), at(0), true, awaited);
            assert_eq!(poll.until(at(0), LATER, awaited), None);
        }
    }
}
