//! Lines of the log that wait to be written. Whoever brings one never waits and never fails: what finds no
//! room is dropped and counted. Knows neither levels nor formats.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines that may wait.
pub const LINES_MAX: usize = 8192;
/// Bytes that may wait. A line that is longer by itself is dropped.
pub const BYTES_MAX: usize = 4 << 20;
/// Of both, plain lines may take three quarters: the rest is for weighty ones, however many plain ones come.
const PLAIN_PART: (usize, usize) = (3, 4);

/// How much a line matters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Weight {
    /// It is for finding out later what happened.
    Plain,
    /// It wants a person.
    Weighty,
}

/// The lines, of many threads for one that writes.
#[derive(Debug)]
pub struct LineQueue {
    state: Mutex<State>,
    came: Condvar,
    went: Condvar,
}

#[derive(Debug)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// Of those lines, and of the one that is being written.
    bytes: usize,
    is_writing: bool,
    dropped: u64,
    /// So many of the dropped ones are told of in the log itself.
    told: u64,
}

impl State {
    fn has_room(&self, bytes: usize, weight: Weight) -> bool {
        let part = |all: usize| match weight {
            Weight::Plain => all / PLAIN_PART.1 * PLAIN_PART.0,
            Weight::Weighty => all,
        };
        let lines = self.lines.len() + usize::from(self.is_writing);
        lines < part(LINES_MAX) && self.bytes.saturating_add(bytes) <= part(BYTES_MAX)
    }

    fn is_idle(&self) -> bool {
        self.lines.is_empty() && !self.is_writing
    }
}

impl LineQueue {
    /// One that is empty.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                lines: VecDeque::new(),
                bytes: 0,
                is_writing: false,
                dropped: 0,
                told: 0,
            }),
            came: Condvar::new(),
            went: Condvar::new(),
        }
    }

    /// Takes a line in, if there is room.
    pub fn push(&self, line: &[u8], weight: Weight) {
        let mut state = self.lock();
        if state.has_room(line.len(), weight) {
            state.bytes += line.len();
            state.lines.push_back(line.to_vec());
            drop(state);
            self.came.notify_one();
        } else {
            state.dropped += 1;
        }
    }

    /// Waits for the next line. Until [`Self::wrote`] says what became of it, it counts among those that
    /// wait.
    pub fn take(&self) -> Vec<u8> {
        let is_empty = |state: &mut State| state.lines.is_empty();
        let state = self.came.wait_while(self.lock(), is_empty);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let line = state.lines.pop_front().unwrap_or_default();
        state.is_writing = true;
        line
    }

    /// The line that was taken is written, or cannot be.
    pub fn wrote(&self, line: &[u8], is_written: bool) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(line.len());
        state.is_writing = false;
        state.dropped += u64::from(!is_written);
        if state.is_idle() {
            drop(state);
            self.went.notify_all();
        }
    }

    /// Waits until nothing waits to be written; false if something still does.
    pub fn wait_until_idle(&self, at_most: Duration) -> bool {
        let is_busy = |state: &mut State| !state.is_idle();
        let waited = self.went.wait_timeout_while(self.lock(), at_most, is_busy);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_idle()
    }

    /// Lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// How many dropped lines nobody has told of in the log. Not before half of the room is free again: while
    /// lines go on being dropped, saying so would take the room of others.
    pub fn untold(&self) -> Option<u64> {
        let mut state = self.lock();
        let is_calm = state.lines.len() < LINES_MAX / 2 && state.bytes < BYTES_MAX / 2;
        let untold = state.dropped - state.told;
        if !is_calm || untold == 0 {
            return None;
        }
        state.told = state.dropped;
        Some(untold)
    }

    /// Nothing panics while it holds the lock; if it did, the lines would still be whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Weight::{Plain, Weighty};

    fn write_next(queue: &LineQueue) -> Vec<u8> {
        let line = queue.take();
        queue.wrote(&line, true);
        line
    }

    #[test]
    fn lines_come_out_as_they_went_in() {
        let queue = LineQueue::new();
        assert!(queue.wait_until_idle(Duration::ZERO));
        queue.push(b"one", Plain);
        queue.push(b"two", Weighty);
        assert!(!queue.wait_until_idle(Duration::ZERO));
        assert_eq!(write_next(&queue), b"one");
        let taken = queue.take();
        assert_eq!(taken, b"two");
        assert!(!queue.wait_until_idle(Duration::ZERO), "not written yet");
        queue.wrote(&taken, true);
        assert!(queue.wait_until_idle(Duration::ZERO));
        assert_eq!((queue.dropped(), queue.untold()), (0, None));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_weighty_lines_have_room_left() {
        let queue = LineQueue::new();
        let stuck = {
            queue.push(b"stuck", Plain);
            queue.take()
        };
        for _ in 0..2 * LINES_MAX {
            queue.push(b"plain", Plain);
        }
        let plain = LINES_MAX / 4 * 3 - 1; // and the one that is being written
        assert_eq!(queue.dropped(), (2 * LINES_MAX - plain) as u64);
        let before = queue.dropped();
        for _ in 0..LINES_MAX / 4 {
            queue.push(b"weighty", Weighty);
        }
        assert_eq!(queue.dropped(), before, "a quarter is kept for them");
        queue.push(b"weighty", Weighty);
        assert_eq!(queue.dropped(), before + 1, "theirs has an end, too");
        queue.wrote(&stuck, true);
    }

    #[test]
    fn bytes_are_bounded_as_lines_are() {
        let queue = LineQueue::new();
        let long = vec![b'x'; BYTES_MAX / 8];
        for _ in 0..8 {
            queue.push(&long, Plain);
        }
        assert_eq!(queue.dropped(), 2, "six eighths fit");
        queue.push(&long, Weighty);
        queue.push(&long, Weighty);
        assert_eq!(queue.dropped(), 2);
        queue.push(b"x", Weighty);
        assert_eq!(queue.dropped(), 3);
        for _ in 0..8 {
            write_next(&queue);
        }
        queue.push(&vec![b'x'; BYTES_MAX + 1], Weighty);
        assert_eq!(queue.dropped(), 4, "too long by itself");
        queue.push(b"x", Plain);
        assert_eq!(queue.dropped(), 4, "what was written has left its room");
    }

    #[test]
    fn what_was_dropped_is_told_once_there_is_room() {
        let queue = LineQueue::new();
        for _ in 0..LINES_MAX {
            queue.push(b"line", Plain);
        }
        let dropped = queue.dropped();
        assert!(dropped > 0);
        assert_eq!(queue.untold(), None, "it would take the room of another");
        for _ in 0..LINES_MAX / 2 {
            write_next(&queue);
        }
        assert_eq!(queue.untold(), Some(dropped));
        assert_eq!(queue.untold(), None);
        let failed = queue.take();
        queue.wrote(&failed, false);
        assert_eq!(queue.untold(), Some(1), "what cannot be written is dropped");
        assert_eq!(queue.dropped(), dropped + 1);
    }
}
