//! The longest time without a successful write, over all connections of all threads.
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When writes succeeded, as far as it matters.
#[derive(Debug)]
pub struct WriteGaps {
    /// A moment, and what the wall clock showed then, from the Unix epoch. Time is measured from here, so that a wall
    /// clock that is set meanwhile makes no gap.
    anchor: (Instant, Duration),
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    last: Option<Instant>,
    longest: Option<(Instant, Instant)>,
}

/// A time without a successful write, between two of them. The wall clock's, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    pub from_unix_ms: f64,
    pub to_unix_ms: f64,
    pub ms: f64,
}

impl WriteGaps {
    /// None yet; it is now.
    pub fn new(now: Instant) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            anchor: (now, since_epoch.unwrap_or_default()),
            seen: Mutex::default(),
        }
    }

    /// A write has succeeded. Threads may tell a little late, so time may seem to go back; that is no gap.
    pub fn wrote(&self, now: Instant) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = seen.last.filter(|last| *last < now) else {
            seen.last = seen.last.or(Some(now));
            return;
        };
        let longest = seen.longest.map_or(Duration::ZERO, |(from, to)| to - from);
        if now - last > longest {
            seen.longest = Some((last, now));
        }
        seen.last = Some(now);
    }

    /// The longest between two writes; `None` if there were not two.
    pub fn longest(&self) -> Option<Gap> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = seen.longest?;
        let (moment, then) = self.anchor;
        let unix_ms = |at: Instant| {
            let at = then + at.saturating_duration_since(moment);
            at.as_secs_f64() * 1e3
        };
        Some(Gap {
            from_unix_ms: unix_ms(from),
            to_unix_ms: unix_ms(to),
            ms: (to - from).as_secs_f64() * 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_between_two_writes_is_kept_whoever_wrote() {
        let begun = Instant::now();
        let gaps = WriteGaps::new(begun);
        let at = |ms: u64| begun + Duration::from_millis(ms);
        assert_eq!(gaps.longest(), None);
        gaps.wrote(at(500));
        assert_eq!(gaps.longest(), None, "one write is no gap");
        for ms in [510, 540, 535, 550, 551] {
            gaps.wrote(at(ms)); // 535: a thread that was late to tell
        }
        let gap = gaps.longest().unwrap();
        assert!((gap.ms - 30.0).abs() < 1e-6, "{gap:?}");
        assert!((gap.to_unix_ms - gap.from_unix_ms - gap.ms).abs() < 0.01);
        let begun_unix_ms = gaps.anchor.1.as_secs_f64() * 1e3;
        assert!((gap.from_unix_ms - begun_unix_ms - 510.0).abs() < 0.01);
    }
}
