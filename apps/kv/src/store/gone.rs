//! What is nobody's any more: items whose end has come, and what was thrown away with everything. How far its
//! removal got is no part of the state. But no write may outrun it, else there would be no limit to the
//! memory that is held for nothing.
use super::alarms::{self, Alarms};
use super::awaiting::Awaiting;
use super::ends::Ends;
use super::item::{self, Awaits, NEVER};
use super::memory::{Footprint, Ranks};
use super::shards::Shards;
use super::{PER_ITEM_GONE, Store};
use crate::{EXPIRED_PER_COMMAND, EXPIRED_PER_COMMAND_MAX};

/// What an entry of a tree takes, by estimate.
const ENTRY_BYTES: u64 = 64;

/// What waits to be removed or freed.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// While items wait for their removal: the fewest bytes that all items have taken since some do.
    bytes_least: Option<u64>,
    discarded: Vec<Part>,
}

/// What was thrown away whole. It takes memory until it is dropped, which takes seconds if it was much.
#[derive(Debug)]
pub struct Discarded {
    #[expect(dead_code, reason = "only to be dropped")]
    parts: Vec<Part>,
    bytes: u64,
    work: usize,
}

#[derive(Debug)]
#[expect(dead_code, reason = "only to be dropped")]
enum What {
    All(Box<(Shards, Alarms, Ends)>),
    Ranks(Ranks),
}

#[derive(Debug)]
struct Part {
    #[expect(dead_code, reason = "only to be dropped")]
    what: What,
    count: u64,
    bytes: u64,
}

impl Discarded {
    /// What it takes, by estimate.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it is to drop it, in the measure of [`WORK_MAX`](crate::WORK_MAX).
    #[must_use]
    pub const fn work(&self) -> usize {
        self.work
    }
}

impl Store {
    /// What was thrown away whole since the last time, for whoever can free it elsewhere. The next command
    /// frees what nobody has taken by then.
    pub fn take_discarded(&mut self) -> Option<Discarded> {
        if self.gone.discarded.is_empty() {
            return None;
        }
        let parts = std::mem::take(&mut self.gone.discarded);
        let count: u64 = parts.iter().map(|part| part.count).sum();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Some(Discarded {
            bytes: parts.iter().map(|part| part.bytes).sum(),
            work: count.saturating_mul(PER_ITEM_GONE),
            parts,
        })
    }

    /// Frees what the command before threw away, and nobody has taken since.
    pub(super) fn free_discarded(&mut self) {
        if let Some(discarded) = self.take_discarded() {
            self.work_done.add(discarded.work());
        }
    }

    /// Removes some of what is gone.
    pub(super) fn tidy(&mut self) {
        self.remove_expired();
        self.make_room();
        self.discard_ranks();
    }

    pub(super) fn flush(&mut self) {
        let count = self.items.count();
        let bytes = self.memory.all_bytes() + self.alarms.count() * ENTRY_BYTES;
        let items = std::mem::take(&mut self.items);
        let alarms = std::mem::take(&mut self.alarms);
        let ending = self.memory.flush();
        if count > 0 {
            let what = What::All(Box::new((items, alarms, ending)));
            self.gone.discarded.push(Part { what, count, bytes });
        }
        self.discard_ranks();
        self.awaiting = Awaiting::default();
        self.flush_at_ms = NEVER;
        self.flush_awaits = Awaits::Nothing;
        self.counts.flushes += 1;
    }

    /// The order in which items are evicted is not kept any more, or has no items.
    pub(super) fn discard_ranks(&mut self) {
        if self.memory.order.has_discarded_none() {
            return;
        }
        for ranks in self.memory.order.take_discarded() {
            let count = ranks.len() as u64;
            let bytes = count * ENTRY_BYTES;
            let what = What::Ranks(ranks);
            self.gone.discarded.push(Part { what, count, bytes });
        }
    }

    /// Looks at what is due: at as many as were given an end since the last time, and some more; and on, as
    /// long as all items together take more than when some began to wait.
    fn remove_expired(&mut self) {
        let looks = EXPIRED_PER_COMMAND + self.alarms.take_set();
        if self.alarms.are_none() && self.memory.has_no_ends() {
            self.gone.bytes_least = None;
            return;
        }
        self.memory.sweep(2 * looks); // each may have been given an end twice
        let bytes_least = self.gone.bytes_least.unwrap_or(self.memory.all_bytes());
        let mut is_all = false;
        for looked in 0..EXPIRED_PER_COMMAND_MAX {
            if looked >= looks && self.memory.all_bytes() <= bytes_least {
                break;
            }
            if !self.remove_one_expired() {
                is_all = true;
                break;
            }
            self.work_done.add(PER_ITEM_GONE);
        }
        let bytes_least = bytes_least.min(self.memory.all_bytes());
        self.gone.bytes_least = (!is_all).then_some(bytes_least);
    }

    /// Takes the first alarm that is due and removes its item, unless that was given a later end.
    /// False if no alarm is due.
    fn remove_one_expired(&mut self) -> bool {
        let Some((alarm, hash)) = self.alarms.pop_due(self.log_time_ms) else {
            return false;
        };
        let slot = self
            .items
            .alarmed_mut(hash, alarm)
            .expect("an alarm goes with its item");
        if slot.deadline_ms <= self.log_time_ms {
            let item = self
                .items
                .remove_alarmed(hash, alarm)
                .expect("it was just there");
            self.memory.removed(hash, Footprint::of(&item));
            self.counts.expired += 1;
        } else {
            let item = item::make_mut(slot);
            item.alarm = alarms::NONE;
            self.alarms.cover(item, hash);
        }
        true
    }
}
