//! Virtual time: what happens next, and when. Equal times keep the order in which they were set.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds since the start of the simulation: true time, which no replica sees.
pub type Nanos = u64;

/// A microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// A millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// A second.
pub const SECOND: Nanos = 1_000_000_000;

/// Most events that may wait at a time.
const WAITING_MAX: usize = 1 << SLOT_BITS;
/// Bits of a key that name the slot of its event.
const SLOT_BITS: u32 = 24;

/// Everything that is to happen, soonest first.
#[derive(Debug)]
pub struct Queue<E> {
    /// Of each event its time, then its number with its slot: small, because they are moved about.
    heap: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: Vec<Option<E>>,
    free: Vec<usize>,
    set_count: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            set_count: 0,
        }
    }
}

impl<E> Queue<E> {
    /// Has something happen at this time.
    pub fn set(&mut self, at: Nanos, event: E) {
        self.set_count += 1;
        assert!(self.set_count >> (64 - SLOT_BITS) == 0, "too many events");
        let slot = self.keep(event);
        let order = self.set_count << SLOT_BITS | slot as u64;
        self.heap.push(Reverse((at, order)));
    }

    fn keep(&mut self, event: E) -> usize {
        if let Some(slot) = self.free.pop() {
            self.events[slot] = Some(event);
            return slot;
        }
        assert!(self.events.len() < WAITING_MAX, "too many events wait");
        self.events.push(Some(event));
        self.events.len() - 1
    }

    /// Takes what happens next, and when.
    pub fn take(&mut self) -> Option<(Nanos, E)> {
        let Reverse((at, order)) = self.heap.pop()?;
        let slot = usize::try_from(order).ok()? % WAITING_MAX;
        self.free.push(slot);
        Some((at, self.events[slot].take()?))
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
