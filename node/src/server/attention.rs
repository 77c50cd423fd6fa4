//! Tells the time in which this process listened to others from the time in which it did not, because
//! the machine ran something else or nothing at all. Decides nothing.
use quorumwire_control::Now;
use std::time::Duration;

/// Between two looks at the sockets a turn may take this long, besides what it waits for events; what
/// is beyond that is a pause.
const TURN_MAX: Duration = Duration::from_millis(10);

/// When the sockets were last looked at, and when they were to be looked at again.
pub struct Attention {
    listened_at: Now,
    waits: Duration,
}

impl Attention {
    pub fn new(now: Now) -> Self {
        Self {
            listened_at: now,
            waits: Duration::ZERO,
        }
    }

    /// The process is going to wait for events, at most this long.
    pub fn waits(&mut self, at_most: Duration) {
        self.waits = at_most;
    }

    /// Everything that had arrived has just been read: for how long before that nobody listened,
    /// beyond what is usual.
    pub fn listens(&mut self, now: Now) -> Option<Duration> {
        let since = now.0.saturating_sub(self.listened_at.0);
        self.listened_at = now;
        let usual = std::mem::take(&mut self.waits) + TURN_MAX;
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
        assert_eq!(attention.listens(at(130)), None);
        attention.waits(Duration::ZERO);
        assert_eq!(attention.listens(at(140)), None);
    }

    #[test]
    fn what_is_longer_than_a_turn_is_a_pause() {
        let mut attention = Attention::new(at(100));
        attention.waits(Duration::from_millis(20));
        assert_eq!(attention.listens(at(431)), Some(Duration::from_millis(301)));
        // Nothing is counted twice, and the wait before does not count for later.
        assert_eq!(attention.listens(at(441)), None);
        assert_eq!(attention.listens(at(452)), Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_clock_that_stands_still_is_no_pause() {
        let mut attention = Attention::new(at(100));
        assert_eq!(attention.listens(at(100)), None);
    }
}
