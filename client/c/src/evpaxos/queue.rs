//! Values that were submitted and are not on their way yet, and how many may be.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may wait, and how many values.
pub const BYTES_MAX: usize = 64 << 20;
pub const VALUES_MAX: usize = 65_536;
/// Values that may be on their way at a time, and their bytes: less than the deployment's window holds.
const ON_THE_WAY_MAX: usize = 512;
const ON_THE_WAY_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
struct Inner {
    values: VecDeque<Vec<u8>>,
    bytes: usize,
    on_the_way: usize,
    on_the_way_bytes: usize,
    is_closed: bool,
}

impl Inner {
    fn has_room(&self, bytes: usize) -> bool {
        self.values.is_empty()
            || (self.values.len() < VALUES_MAX && self.bytes + bytes <= BYTES_MAX)
    }

    fn put(&mut self, value: Vec<u8>) {
        self.bytes += value.len();
        self.values.push_back(value);
    }
}

/// It.
#[derive(Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed
            .wait(inner)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, unless too much waits.
    pub fn put(&self, value: Vec<u8>) -> bool {
        let mut inner = self.lock();
        let is_taken = !inner.is_closed && inner.has_room(value.len());
        if is_taken {
            inner.put(value);
            self.changed.notify_all();
        }
        is_taken
    }

    /// One more, as soon as there is room; false: it is closed.
    pub fn put_when_there_is_room(&self, value: Vec<u8>) -> bool {
        let mut inner = self.lock();
        while !inner.is_closed && !inner.has_room(value.len()) {
            inner = self.wait(inner);
        }
        let is_open = !inner.is_closed;
        if is_open {
            inner.put(value);
            self.changed.notify_all();
        }
        is_open
    }

    /// The next one that may be on its way now, until [`Self::arrived`]. Waits for it; none: it is closed.
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        loop {
            if inner.is_closed {
                return None;
            }
            let may_go =
                inner.on_the_way < ON_THE_WAY_MAX && inner.on_the_way_bytes < ON_THE_WAY_BYTES_MAX;
            if may_go && let Some(value) = inner.values.pop_front() {
                inner.bytes -= value.len();
                inner.on_the_way += 1;
                inner.on_the_way_bytes += value.len();
                self.changed.notify_all();
                return Some(value);
            }
            inner = self.wait(inner);
        }
    }

    /// One of so many bytes is on its way no more.
    pub fn arrived(&self, bytes: usize) {
        let mut inner = self.lock();
        inner.on_the_way -= 1;
        inner.on_the_way_bytes -= bytes;
        self.changed.notify_all();
    }

    /// Whether it is.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Nobody waits any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn values_come_in_their_order_and_no_more_than_there_is_room_for() {
        let queue = Queue::default();
        let long = || vec![0; BYTES_MAX / 2];
        assert!(queue.put(long()) && queue.put(long()));
        assert!(!queue.put(vec![1]), "it is full");
        assert_eq!(queue.take().unwrap().len(), BYTES_MAX / 2);
        assert!(queue.put(vec![1]));
        queue.arrived(BYTES_MAX / 2);
        assert_eq!(queue.take().unwrap().len(), BYTES_MAX / 2);
        queue.arrived(BYTES_MAX / 2);
        assert_eq!(queue.take().unwrap(), [1]);
    }

    #[test]
    fn who_waits_goes_on_when_there_is_room_or_it_is_closed() {
        let queue = Arc::new(Queue::default());
        assert!(queue.put(vec![0; BYTES_MAX]));
        let other = Arc::clone(&queue);
        let waits = thread::spawn(move || other.put_when_there_is_room(vec![2]));
        assert_eq!(queue.take().unwrap().len(), BYTES_MAX);
        assert!(waits.join().unwrap());
        let other = Arc::clone(&queue);
        let takes = thread::spawn(move || other.take());
        queue.close();
        assert_eq!(takes.join().unwrap(), None);
        assert!(!queue.put(vec![3]) && !queue.put_when_there_is_room(vec![3]));
    }
}
