//! What time it is for a read, and which reads the log has to tell the time first. Changes nothing.
//!
//! A read is answered at the later one of two moments: the log's time, and what the leader's clock shows. The
//! clock alone ends nothing. What it has come past the end of and the log has not is overdue: a read that
//! would show it waits until the log says so. So whatever one read misses is gone for all that follow, also
//! under a leader whose clock is behind.

use super::Store;
use super::item::{Awaits, Item, NEVER};
use crate::redis::{self, Kind, ReadKind};
use crate::{Key, Query};

/// A read that names no key shows what is overdue for up to this long, in milliseconds: where many items end
/// it would wait for one after the other.
const OVERDUE_SHOWN_MS: u64 = 1000;

/// Items that may have ended which such a read looks at, at most.
const OVERDUE_LOOKS_MAX: usize = 256;

/// A moment by the log's time, and by how much that is ahead of the time of day.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Moment {
    pub(super) now_ms: u64,
    pub(super) ahead_ms: i64,
}

impl Moment {
    /// The log's time at a point of the time of day.
    pub(super) fn log_ms(self, unix_ms: u64) -> u64 {
        unix_ms.saturating_add_signed(self.ahead_ms)
    }

    /// The time of day at a point of the log's time.
    pub(super) fn unix_ms(self, log_ms: u64) -> u64 {
        log_ms.saturating_add_signed(self.ahead_ms.saturating_neg())
    }

    /// This moment, by the time of day.
    pub(super) fn time_of_day_ms(self) -> u64 {
        self.unix_ms(self.now_ms)
    }
}

impl Store {
    /// Milliseconds that an item has left, at the moment that reads are answered at; `None` if it has no end,
    /// or is not there.
    #[must_use]
    pub fn left_ms(&self, key: Key<'_>) -> Option<i64> {
        let item = self.live(key).filter(|item| item.deadline_ms != NEVER)?;
        let left_ms = item.deadline_ms.saturating_sub(self.moment().now_ms);
        i64::try_from(left_ms).ok()
    }

    /// The moment that a read is answered at.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            now_ms: self.log_time_ms.max(self.clock_ms),
            ahead_ms: self.ahead_ms.unwrap_or(0),
        }
    }

    /// Whether the answer to any read may show what is [overdue](self): nearly never.
    pub(super) fn may_show_what_is_overdue(&self) -> bool {
        self.first_end_ms() <= self.moment().now_ms
    }

    /// Whether the answer to this read may.
    pub(super) fn shows_what_is_overdue(&self, query: &Query<'_>) -> bool {
        match query {
            Query::Memcached(read) => {
                let mut is_overdue = false;
                read.for_each_key(|key| is_overdue |= self.is_key_overdue(key));
                is_overdue
            }
            Query::Redis(read) => self.shows_overdue(read),
            Query::NotOfRedis | Query::Nothing => false,
        }
    }

    /// Of a command of Redis.
    fn shows_overdue(&self, read: &redis::Read<'_>) -> bool {
        let words = read.words();
        let is_one = |name: &[u8]| Key::binary(name).is_some_and(|key| self.is_key_overdue(key));
        let spec = match read.kind() {
            ReadKind::Versions => return words.iter().skip(1).any(is_one),
            ReadKind::Unknown => return false,
            ReadKind::Command(spec) => spec,
        };
        match spec.kind {
            Kind::Connection => false,
            Kind::Read | Kind::Write if spec.keys.is_empty() => self.has_long_overdue(),
            Kind::Read | Kind::Write => {
                let mut places = words.iter().enumerate();
                places.any(|(place, word)| spec.is_key(place, words.len()) && is_one(word))
            }
        }
    }

    /// Whether something ought to have ended a while ago that may be shown by a read which names no key.
    fn has_long_overdue(&self) -> bool {
        let before_ms = self.moment().now_ms.saturating_sub(OVERDUE_SHOWN_MS);
        let shown = |item: &Item| item.deadline_ms > self.log_time_ms;
        let is_one = |item: &Item| shown(item) && self.end_ms(item) <= before_ms;
        let mut items = self.alarms.until(before_ms).take(OVERDUE_LOOKS_MAX);
        self.next_flush_ms() <= before_ms
            || items.any(|(alarm, hash)| self.items.alarmed(hash, alarm).is_some_and(is_one))
    }

    fn is_key_overdue(&self, key: Key<'_>) -> bool {
        self.live(key)
            .is_some_and(|item| self.end_ms(item) <= self.moment().now_ms)
    }

    /// When time alone ends an item, as far as is known: what awaits its time has not begun.
    fn end_ms(&self, item: &Item) -> u64 {
        let own = match item.awaits {
            Awaits::Nothing => item.deadline_ms,
            Awaits::Time | Awaits::Day => NEVER,
        };
        own.min(self.next_flush_ms())
    }

    const fn next_flush_ms(&self) -> u64 {
        match self.flush_awaits {
            Awaits::Nothing => self.flush_at_ms,
            Awaits::Time | Awaits::Day => NEVER,
        }
    }

    /// Not later than the first item ends.
    fn first_end_ms(&self) -> u64 {
        self.alarms.next_ms().min(self.next_flush_ms())
    }
}
