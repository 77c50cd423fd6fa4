//! The longest times without a successful write, over all connections of all threads.
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many are kept, the longest ones. A replica's end costs a time that may not be the longest of a run: on
/// a busy machine all processes stand still now and then.
const GAPS_MAX: usize = 64;

/// When writes succeeded, as far as it matters.
#[derive(Debug)]
pub struct WriteGaps {
    /// A moment, and what the wall clock showed then, from the Unix epoch. Time is measured from here, so
    /// that a wall clock that is set meanwhile makes no gap.
    anchor: (Instant, Duration),
    seen: Mutex<LongestGaps>,
}

#[derive(Clone, Debug, Default)]
struct LongestGaps {
    last: Option<Instant>,
    /// The longest first.
    longest: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    from: Instant,
    to: Instant,
}

impl Span {
    fn length(self) -> Duration {
        self.to - self.from
    }
}

impl LongestGaps {
    fn keep(&mut self, span: Span) {
        let shortest = self.longest.get(GAPS_MAX - 1);
        if shortest.is_some_and(|shortest| span.length() <= shortest.length()) {
            return;
        }
        self.longest.truncate(GAPS_MAX - 1);
        let is_before = |kept: &Span| kept.length() >= span.length();
        let place = self.longest.partition_point(is_before);
        self.longest.insert(place, span);
    }
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
        seen.keep(Span {
            from: last,
            to: now,
        });
        seen.last = Some(now);
    }

    /// The longest between two writes, and that from the last to the end of the run: who never comes back
    /// would otherwise have the shortest. The longest first; none if nothing was written.
    pub fn longest(&self, end: Instant) -> Vec<Gap> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = seen.clone();
        let Some(last) = seen.last else {
            return Vec::new();
        };
        seen.keep(Span {
            from: last,
            to: end.max(last),
        });
        let (moment, then) = self.anchor;
        let unix_ms = |at: Instant| {
            let at = then + at.saturating_duration_since(moment);
            at.as_secs_f64() * 1e3
        };
        let gap = |span: &Span| Gap {
            from_unix_ms: unix_ms(span.from),
            to_unix_ms: unix_ms(span.to),
            ms: span.length().as_secs_f64() * 1e3,
            recovered: span.from < last,
        };
        seen.longest.iter().map(gap).collect()
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
        let gap = *gaps.longest(begun + end_ms * MS).first()?;
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
    fn the_longest_are_kept_in_order_and_no_more_of_them() {
        let begun = Instant::now();
        let gaps = WriteGaps::new(begun);
        let (mut at, mut lengths) = (0, Vec::new());
        gaps.wrote(begun);
        for n in 0..200_u32 {
            let length = 1 + n * 37 % 200; // each from 1 to 200 once, out of order
            at += length;
            gaps.wrote(begun + at * MS);
        }
        for gap in gaps.longest(begun + (at + 150) * MS) {
            lengths.push((gap.ms.round(), gap.recovered));
        }
        assert_eq!(lengths.len(), GAPS_MAX);
        assert_eq!(lengths[0], (200.0, true));
        assert_eq!(lengths[50..52], [(150.0, true), (150.0, false)]);
        assert!(lengths.is_sorted_by(|longer, shorter| longer.0 >= shorter.0));
        assert_eq!(lengths[GAPS_MAX - 1], (138.0, true));
    }

    #[test]
    fn a_time_that_no_write_ends_lasts_to_the_end_of_the_run_at_least() {
        assert_eq!(longest(&[500, 510, 540], 571), Some((540, 571, false)));
        assert_eq!(longest(&[500], 1500), Some((500, 1500, false)));
        assert_eq!(longest(&[], 1500), None);
    }
}
