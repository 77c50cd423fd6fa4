//! What the program may do for memcached clients, and the table of answers it reads: memory that only the
//! host writes.
use crate::clock::KernelsClock;
use crate::ffi::MapMemory;
use crate::shared::{LEAVE_APPLIED_INDEX_AT, LEAVE_READS_UNTIL_AT, LEAVE_SETS_UNTIL_AT};
use quorumwire_fastpath::shared::{
    RECENT_ANSWER_BYTES, RECENT_ANSWER_KEY_AT, RECENT_ANSWER_TEXT_AT, RECENT_ANSWER_TEXT_BYTES_AT,
    RECENT_BYTES, RECENT_KEY_WORDS, RECENT_OF_AT,
};
use quorumwire_fastpath::{
    RECENT_OFFERS_TO_REPLACE, RECENT_PLACES, RECENT_TEXT_BYTES_MAX, recent_place,
};
use quorumwire_interfaces::{Index, Leave};
use std::sync::atomic::{Ordering, fence};

/// One group's.
pub struct Recent {
    leave: MapMemory,
    table: MapMemory,
    clock: KernelsClock,
    is_empty: bool,
    /// By place: how often other keys were offered since its key took it.
    offers: Vec<u8>,
}

impl Recent {
    pub fn new(leave: MapMemory, table: MapMemory, clock: KernelsClock) -> Self {
        Self {
            leave,
            table,
            clock,
            is_empty: true,
            offers: vec![0; RECENT_PLACES],
        }
    }

    pub fn allow(&self, leave: &Leave) {
        let Index(applied) = leave.applied;
        // After what the table shows by then; before a lease that counts on it.
        self.number(LEAVE_APPLIED_INDEX_AT, applied);
        self.number(LEAVE_READS_UNTIL_AT, self.clock.deadline(leave.reads_until));
        self.number(LEAVE_SETS_UNTIL_AT, self.clock.deadline(leave.writes_until));
    }

    /// Puts an answer where its key belongs, or takes it away from there if it is that key's. Where another
    /// key is, that one stays until others have been offered often enough.
    pub fn keep(&mut self, key: &[u8], answer: Option<&[u8]>) {
        let Some(place) = recent_place(key) else {
            return;
        };
        let is_there = self.key(place) == key;
        match answer.filter(|answer| (1..=RECENT_TEXT_BYTES_MAX).contains(&answer.len())) {
            // Whoever copies it would find another version of the same.
            Some(answer) if is_there && self.text(place) == answer => {}
            Some(answer) if is_there || self.may_take(place) => {
                self.is_empty = false;
                self.write(place, key, answer);
            }
            None if is_there => self.write(place, &[], &[]),
            _ => {}
        }
    }

    /// Whether a place is free for another key; that there was something to keep for it counts.
    fn may_take(&mut self, place: usize) -> bool {
        let offers = self.offers[place].saturating_add(1);
        let may = self.key(place).is_empty() || offers >= RECENT_OFFERS_TO_REPLACE;
        self.offers[place] = if may { 0 } else { offers };
        may
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
        let version = self.table.number(at(place));
        let next = version.load(Ordering::Relaxed).wrapping_add(1);
        let at = answer_at(place, next);
        // Whoever reads this one because it was in use before finds that the version has changed.
        fence(Ordering::SeqCst);
        let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(0).to_ne_bytes();
        let lengths = [length(key), length(answer)].concat();
        self.table.write_bytes(at, &lengths);
        let mut padded = [0; 4 * RECENT_KEY_WORDS];
        padded[..key.len()].copy_from_slice(key);
        self.table.write_bytes(at + RECENT_ANSWER_KEY_AT, &padded);
        self.table.write_bytes(at + RECENT_ANSWER_TEXT_AT, answer);
        version.store(next, Ordering::Release);
    }

    /// The key that a place is in use for; nobody else writes it.
    fn key(&self, place: usize) -> &[u8] {
        let at = self.in_use(place);
        self.table.slice(at + RECENT_ANSWER_KEY_AT, self.length(at))
    }

    fn text(&self, place: usize) -> &[u8] {
        let at = self.in_use(place);
        self.table.slice(
            at + RECENT_ANSWER_TEXT_AT,
            self.length(at + RECENT_ANSWER_TEXT_BYTES_AT),
        )
    }

    /// Where the answer begins that is in use.
    fn in_use(&self, place: usize) -> usize {
        answer_at(place, self.table.number(at(place)).load(Ordering::Relaxed))
    }

    fn length(&self, at: usize) -> usize {
        let bytes = self.table.slice(at, 2).first_chunk();
        bytes.map_or(0, |bytes| u16::from_ne_bytes(*bytes)).into()
    }

    fn number(&self, offset: usize, number: u64) {
        let place = self.leave.number(offset);
        place.store(number, Ordering::Release);
    }
}

fn answer_at(place: usize, version: u64) -> usize {
    let second = if version % 2 == 1 {
        RECENT_ANSWER_BYTES
    } else {
        0
    };
    at(place) + RECENT_OF_AT + second
}

/// Where a place of the table begins.
fn at(place: usize) -> usize {
    place * RECENT_BYTES
}
