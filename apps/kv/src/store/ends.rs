//! What ends when: sums of items by the end of their lives, and how many of them a span of time ends, in
//! about as many steps however many ends there are in it. After a long standstill one tick of the log passes
//! all of them.
use std::collections::BTreeMap;
use std::ops::Range;

use super::memory::Sum;

/// Each level has a sum for as many sums of the one below: 4,096.
const LEVEL_BITS: u32 = 12;
/// Spans of one millisecond, of 4 seconds and of 4.7 hours.
const LEVELS: usize = 3;

/// Sums by level and span. Those of spans that are over are nobody's any more, and are removed a few at a
/// time.
#[derive(Debug, Default)]
pub(super) struct Ends([BTreeMap<u64, Sum>; LEVELS]);

impl Ends {
    /// Items that end then.
    pub(super) fn add(&mut self, end_ms: u64, sum: Sum) {
        for (spans, shift) in self.0.iter_mut().zip(SHIFTS) {
            spans.entry(end_ms >> shift).or_default().add(sum);
        }
    }

    /// One of them is gone before.
    pub(super) fn subtract(&mut self, end_ms: u64, bytes: u64) {
        for (spans, shift) in self.0.iter_mut().zip(SHIFTS) {
            let sum = spans
                .get_mut(&(end_ms >> shift))
                .expect("an item was added with its end");
            sum.subtract(bytes);
            if sum.count == 0 {
                spans.remove(&(end_ms >> shift));
            }
        }
    }

    /// All that end in this span, and how many sums were added up for that.
    pub(super) fn within(&self, span: Range<u64>) -> (Sum, usize) {
        let mut all = Sum::default();
        let mut steps = 0;
        let mut add = |level: usize, span: Range<u64>| {
            if !span.is_empty() {
                for (_, sum) in self.0[level].range(span) {
                    all.add(*sum);
                    steps += 1;
                }
            }
        };
        let Range { mut start, mut end } = span;
        for level in 0..LEVELS - 1 {
            // The longer spans that begin and end within this one, if there are any.
            let first = start.div_ceil(1 << LEVEL_BITS);
            let last = end >> LEVEL_BITS;
            if first >= last {
                add(level, start..end);
                return (all, steps);
            }
            add(level, start..first << LEVEL_BITS);
            add(level, last << LEVEL_BITS..end);
            (start, end) = (first, last);
        }
        add(LEVELS - 1, start..end);
        (all, steps)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(BTreeMap::is_empty)
    }

    /// Removes a few sums of spans that are over.
    pub(super) fn sweep(&mut self, now_ms: u64, most: usize) {
        for (spans, shift) in self.0.iter_mut().zip(SHIFTS) {
            for _ in 0..most {
                let first = spans.first_entry();
                let over = first.filter(|it| *it.key() < now_ms.saturating_add(1) >> shift);
                let Some(over) = over else { break };
                over.remove();
            }
        }
    }

    /// How many sums there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(BTreeMap::len).sum()
    }
}

/// By how many bits an end is longer than the number of its span.
const SHIFTS: [u32; LEVELS] = [0, LEVEL_BITS, 2 * LEVEL_BITS];

#[cfg(test)]
mod tests {
    use super::*;

    const SPANS: [u64; 6] = [1, 3000, 5000, 1 << 24, 3 << 24, u64::MAX >> 1];

    fn sum(bytes: u64) -> Sum {
        Sum { count: 1, bytes }
    }

    /// By the plain way, for all pairs of moments that lie about the borders of spans.
    #[test]
    fn a_span_has_the_sum_of_what_ends_in_it() {
        let mut ends = Ends::default();
        let mut plain = BTreeMap::new();
        let mut moments = vec![0, 1, u64::MAX - 2, u64::MAX - 1];
        for level in [12, 24] {
            for number in [1_u64, 2, 3, 4096, 4097] {
                for about in -2..=2 {
                    moments.push((number << level).saturating_add_signed(about));
                }
            }
        }
        moments.sort_unstable();
        moments.dedup();
        for (number, moment) in moments.iter().enumerate() {
            ends.add(*moment, sum(number as u64 + 1));
            plain.insert(*moment, number as u64 + 1);
        }
        for round in 0..2 {
            for from in &moments {
                for to in moments.iter().filter(|to| *to >= from) {
                    let expected = plain.range(*from..*to);
                    let expected = expected.fold(Sum::default(), |mut all, (_, bytes)| {
                        all.add(sum(*bytes));
                        all
                    });
                    assert_eq!(ends.within(*from..*to).0, expected, "{from}..{to}");
                }
            }
            // Once more with every second one gone.
            let gone: Vec<u64> = moments.iter().step_by(2).copied().collect();
            if round == 0 {
                for moment in gone {
                    let bytes = plain.remove(&moment).unwrap();
                    ends.subtract(moment, bytes);
                }
            }
        }
    }

    /// A hundred thousand ends of a day are a few thousand steps.
    #[test]
    fn a_long_span_takes_few_steps() {
        let mut ends = Ends::default();
        for number in 0..100_000 {
            ends.add(1_000_000_007 + number * 863, sum(1));
        }
        for span in SPANS {
            let (found, steps) = ends.within(1_000_000_000..1_000_000_000_u64.saturating_add(span));
            assert!(steps <= 4 * 4096 + 1000, "{span}: {steps}");
            assert!(steps < 1000 || found.count > 5 * steps as u64 / 2);
        }
        let (all, _) = ends.within(0..u64::MAX);
        assert_eq!(all.count, 100_000);
    }

    #[test]
    fn what_is_over_is_removed_a_few_at_a_time() {
        let mut ends = Ends::default();
        for number in 0..1000 {
            ends.add(number * 1000, sum(1));
        }
        let all = ends.count();
        ends.sweep(500_000, 10);
        assert_eq!(ends.count(), all - 20); // of two levels
        for _ in 0..100 {
            ends.sweep(500_000, 10);
        }
        let left = ends.within(500_001..u64::MAX).0;
        assert_eq!(left.count, 499);
        for number in 501..1000 {
            ends.subtract(number * 1000, 1);
        }
        for _ in 0..100 {
            ends.sweep(u64::MAX - 1, 10);
        }
        assert_eq!(ends.count(), 0);
    }
}
