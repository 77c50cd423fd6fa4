//! How much work a replica's store has done, for whoever must divide its time. Not part of the state:
//! replicas that are equal may have done more or less.
use std::cell::Cell;

/// Work of any command or question, in the measure of [`WORK_MAX`](crate::WORK_MAX).
pub(super) const PER_COMMAND: usize = 256;

/// Work for each key that a command of memcached names.
pub(super) const PER_KEY: usize = 128;

/// Work for each item that goes because its time has passed, or that is freed after everything was thrown
/// away.
pub(crate) const PER_ITEM_GONE: usize = 1024;

/// Work for each item that is evicted, or put into the order of those to be evicted.
pub(super) const PER_ITEM_RANKED: usize = 512;

/// Work for each reference to an item that is copied, because something frozen holds it, too.
pub(super) const PER_REFERENCE: usize = 128;

/// Work done since the process started. Counted by those who only look, too, so behind a cell.
#[derive(Debug, Default)]
pub(super) struct WorkDone(Cell<u64>);

impl WorkDone {
    pub(super) fn get(&self) -> u64 {
        self.0.get()
    }

    pub(super) fn add(&self, work: usize) {
        self.0.set(self.0.get().wrapping_add(work as u64));
    }
}
