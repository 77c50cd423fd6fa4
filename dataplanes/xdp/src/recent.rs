//! What the program may do for memcached clients, and the table of answers it reads: memory that only the host
//! writes.
use crate::ffi::Mapped;
use crate::shared::{
    LEAVE_APPLIED_INDEX, LEAVE_BYTES, LEAVE_PORT, LEAVE_READS_UNTIL, LEAVE_SETS_UNTIL,
    RECENT_ANSWER_BYTES, RECENT_BYTES, RECENT_KEY, RECENT_KEY_BYTES, RECENT_TEXT,
};
use quorumwire_fastpath::{RECENT_PLACES, RECENT_TEXT_BYTES_MAX, recent_place};
use quorumwire_interfaces::{Index, MemcachedLeave};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// One group's.
pub struct Recent {
    leaves: Mapped,
    table: Mapped,
    group_slot: u32,
    is_empty: bool,
}

impl Recent {
    pub fn new(leaves: Mapped, table: Mapped, group_slot: u32) -> Self {
        Self {
            leaves,
            table,
            group_slot,
            is_empty: true,
        }
    }

    /// Memcached clients ask at this port.
    pub fn listen(&self, port: u16) {
        let at = self.leave(LEAVE_PORT);
        self.leaves.write_bytes(at, &port.to_be_bytes());
    }

    pub fn allow(&self, leave: &MemcachedLeave) {
        let Index(applied) = leave.applied;
        // After what the table shows by then; before a lease that counts on it.
        self.number(LEAVE_APPLIED_INDEX, applied);
        self.number(LEAVE_READS_UNTIL, nanoseconds(leave.reads_until));
        self.number(LEAVE_SETS_UNTIL, nanoseconds(leave.sets_until));
    }

    /// Puts an answer where its key belongs, or takes it away from there if it is that key's.
    pub fn keep(&mut self, key: &[u8], answer: Option<&[u8]>) {
        let Some(place) = recent_place(key) else {
            return;
        };
        match answer.filter(|answer| (1..=RECENT_TEXT_BYTES_MAX).contains(&answer.len())) {
            Some(answer) => {
                self.is_empty = false;
                self.write(place, key, answer);
            }
            None if self.key(place) == key => self.write(place, &[], &[]),
            None => {}
        }
    }

    pub fn forget_all(&mut self) {
        if std::mem::replace(&mut self.is_empty, true) {
            return;
        }
        for place in 0..RECENT_PLACES {
            if !self.key(place).is_empty() {
                self.write(place, &[], &[]);
            }
        }
    }

    /// Into the answer that is not in use; then that one is.
    fn write(&self, place: usize, key: &[u8], answer: &[u8]) {
        let version = self.table.number(self.at(place));
        let next = version.load(Ordering::Relaxed).wrapping_add(1);
        let at = self.answer_at(place, next);
        // Whoever reads this one because it was in use before finds that the version has changed.
        fence(Ordering::SeqCst);
        let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(0).to_ne_bytes();
        let lengths = [length(key), length(answer)].concat();
        self.table.write_bytes(at, &lengths);
        let mut padded = [0; RECENT_KEY_BYTES];
        padded[..key.len()].copy_from_slice(key);
        self.table.write_bytes(at + RECENT_KEY, &padded);
        self.table.write_bytes(at + RECENT_TEXT, answer);
        version.store(next, Ordering::Release);
    }

    /// The key that a place is in use for; nobody else writes it.
    fn key(&self, place: usize) -> &[u8] {
        let version = self.table.number(self.at(place)).load(Ordering::Relaxed);
        let at = self.answer_at(place, version);
        let length = self.table.slice(at, 2).first_chunk();
        let length = length.map_or(0, |bytes| u16::from_ne_bytes(*bytes));
        self.table.slice(at + RECENT_KEY, length.into())
    }

    fn answer_at(&self, place: usize, version: u64) -> usize {
        let second = if version % 2 == 1 {
            RECENT_ANSWER_BYTES
        } else {
            0
        };
        self.at(place) + 8 + second
    }

    fn at(&self, place: usize) -> usize {
        (self.group_slot as usize * RECENT_PLACES + place) * RECENT_BYTES
    }

    fn leave(&self, offset: usize) -> usize {
        self.group_slot as usize * LEAVE_BYTES + offset
    }

    fn number(&self, offset: usize, number: u64) {
        let place = self.leaves.number(self.leave(offset));
        place.store(number, Ordering::Release);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
