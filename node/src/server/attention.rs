//! Tells the time in which this process listened to others from the time in which it did not, because
//! the machine ran something else or nothing at all. Decides nothing.
use quorumwire_control::Now;
use std::time::Duration;

/// Between two looks at the sockets a turn may take this long, besides what it waits for events and what
/// its own work takes of a processor's time; what is beyond that is a pause.
const TURN_MAX: Duration = Duration::from_millis(10);

/// When the sockets were last looked at, and when they were to be looked at again.
pub struct Attention {
    listened_at: Now,
    waits: Duration,
    /// How much processor time the thread had used then.
    worked: Duration,
}

impl Attention {
    pub fn new(now: Now) -> Self {
        Self {
            listened_at: now,
            waits: Duration::ZERO,
            worked: Duration::ZERO,
        }
    }

    /// The process is going to wait for events, at most this long.
    pub fn waits(&mut self, at_most: Duration) {
        self.waits = at_most;
    }

    /// Everything that had arrived has just been read: for how long before that nobody listened,
    /// beyond what is usual. `worked`: the processor time that the thread has used so far.
    pub fn listens(&mut self, now: Now, worked: Duration) -> Option<Duration> {
        let since = now.0.saturating_sub(self.listened_at.0);
        self.listened_at = now;
        let work = worked.saturating_sub(std::mem::replace(&mut self.worked, worked));
        let usual = std::mem::take(&mut self.waits) + TURN_MAX + work;
        since.checked_sub(usual).filter(|pause| !pause.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Now {
        Now(Duration::from_millis(ms))
    }

    #[test]
    fn what_was_waited_for_is_no_pause() {
        let mut attention = Attention::new(at(100));
        attention.waits(Duration::from_millis(20));
        assert_eq!(attention.listens(at(130), Duration::ZERO), None);
        attention.waits(Duration::ZERO);
        assert_eq!(attention.listens(at(140), Duration::ZERO), None);
    }

    #[test]
    fn what_is_longer_than_a_turn_is_a_pause() {
        let mut attention = Attention::new(at(100));
        attention.waits(Duration::from_millis(20));
        assert_eq!(
            attention.listens(at(431), Duration::ZERO),
            Some(Duration::from_millis(301))
        );
        // Nothing is counted twice, and the wait before does not count for later.
        assert_eq!(attention.listens(at(441), Duration::ZERO), None);
        assert_eq!(
            attention.listens(at(452), Duration::ZERO),
            Some(Duration::from_millis(1))
        );
    }

    #[test]
    fn work_is_no_pause() {
        let mut attention = Attention::new(at(100));
        let worked = Duration::from_millis(90);
        assert_eq!(attention.listens(at(200), worked), None);
        let pause = attention.listens(at(300), worked + Duration::from_millis(30));
        assert_eq!(pause, Some(Duration::from_millis(60)));
    }

    #[test]
    fn a_clock_that_stands_still_is_no_pause() {
        let mut attention = Attention::new(at(100));
        assert_eq!(attention.listens(at(100), Duration::ZERO), None);
    }
}
