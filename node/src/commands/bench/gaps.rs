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

/// A time without a successful write. The wall clock's, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    pub from_unix_ms: f64,
    pub to_unix_ms: f64,
    pub ms: f64,
    /// Whether a write ended it. Else the run did: it is then longer than what is told.
    pub recovered: bool,
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

    /// The longest between two writes, or from the last to the end of the run: who never comes back would otherwise
    /// have the shortest. `None` if nothing was written.
    pub fn longest(&self, end: Instant) -> Option<Gap> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let last = seen.last?;
        let between = seen.longest.unwrap_or((last, last));
        let recovered = end.saturating_duration_since(last) <= between.1 - between.0;
        let (from, to) = if recovered { between } else { (last, end) };
        let (moment, then) = self.anchor;
        let unix_ms = |at: Instant| {
            let at = then + at.saturating_duration_since(moment);
            at.as_secs_f64() * 1e3
        };
        Some(Gap {
            from_unix_ms: unix_ms(from),
            to_unix_ms: unix_ms(to),
            ms: (to - from).as_secs_f64() * 1e3,
            recovered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Milliseconds after the beginning: of the longest gap of such writes, and whether it ended.
    fn longest(writes_ms: &[u32], end_ms: u32) -> Option<(i64, i64, bool)> {
        let begun = Instant::now();
        let gaps = WriteGaps::new(begun);
        for ms in writes_ms {
            gaps.wrote(begun + *ms * MS);
        }
        let gap = gaps.longest(begun + end_ms * MS)?;
        assert!((gap.to_unix_ms - gap.from_unix_ms - gap.ms).abs() < 0.01);
        let begun_unix_ms = gaps.anchor.1.as_secs_f64() * 1e3;
        #[allow(clippy::cast_possible_truncation)] // Small ones.
        let after = |unix_ms: f64| (unix_ms - begun_unix_ms).round() as i64;
        Some((
            after(gap.from_unix_ms),
            after(gap.to_unix_ms),
            gap.recovered,
        ))
    }

    #[test]
    fn the_longest_time_between_two_writes_is_kept_whoever_wrote() {
        // 535: a thread that was late to tell
        let writes = [500, 510, 540, 535, 550, 551];
        assert_eq!(longest(&writes, 560), Some((510, 540, true)));
        assert_eq!(longest(&writes, 581), Some((510, 540, true)));
    }

    #[test]
    fn a_time_that_no_write_ends_lasts_to_the_end_of_the_run_at_least() {
        assert_eq!(longest(&[500, 510, 540], 571), Some((540, 571, false)));
        assert_eq!(longest(&[500], 1500), Some((500, 1500, false)));
        assert_eq!(longest(&[], 1500), None);
    }
}
