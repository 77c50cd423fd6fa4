//! Virtual time: what happens next, and when. Equal times keep the order in which they were set.
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Nanoseconds since the start of the simulation: true time, which no replica sees.
pub type Nanos = u64;

/// A microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// A millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// A second.
pub const SECOND: Nanos = 1_000_000_000;

/// Everything that is to happen, soonest first.
#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Timed<E>>,
    set_count: u64,
}

#[derive(Debug)]
struct Timed<E> {
    at: Nanos,
    number: u64,
    event: E,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            set_count: 0,
        }
    }
}

impl<E> Queue<E> {
    /// Has something happen at this time.
    pub fn set(&mut self, at: Nanos, event: E) {
        self.set_count += 1;
        self.heap.push(Timed {
            at,
            number: self.set_count,
            event,
        });
    }

    /// Takes what happens next, and when.
    pub fn take(&mut self) -> Option<(Nanos, E)> {
        self.heap.pop().map(|timed| (timed.at, timed.event))
    }

    /// How much is to happen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to happen any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> PartialEq for Timed<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Timed<E> {}

impl<E> PartialOrd for Timed<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Timed<E> {
    /// The soonest is the greatest: the heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}
