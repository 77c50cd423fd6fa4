//! How much memory the items may take together, what happens at the limit, and which item was written or
//! touched longest ago. All of it follows from the log, so that replicas refuse and evict alike. Holds no
//! items.
use std::collections::BTreeMap;

use super::ends::Ends;
use super::item::{Item, NEVER, OVERHEAD_BYTES};
use super::shards::Position;

/// What happens to a write that needs memory while the items take more than the limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MemoryPolicy {
    /// It is refused: memcached's `-M`, Redis' `noeviction`.
    #[default]
    Refuse,
    /// Items that were written or touched longest ago go before it; reads do not count. Redis' `allkeys-lru`.
    Evict,
}

/// How much memory the items may take, as the log says.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryLimit {
    /// Somebody has set it, if only to none.
    pub is_set: bool,
    /// Bytes of keys and values, with [`ITEM_OVERHEAD_BYTES`](crate::ITEM_OVERHEAD_BYTES) for each item; 0:
    /// no limit.
    pub bytes: u64,
    /// What happens there.
    pub policy: MemoryPolicy,
}

impl MemoryLimit {
    pub(super) fn evicts(&self) -> bool {
        self.bytes != 0 && self.policy == MemoryPolicy::Evict
    }
}

/// What the limit sees of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Footprint {
    bytes: u64,
    deadline_ms: u64,
    recency: u64,
}

impl Footprint {
    pub(super) fn of(item: &Item) -> Self {
        Self {
            bytes: item.bytes() as u64 + OVERHEAD_BYTES,
            deadline_ms: item.deadline_ms,
            recency: item.recency(),
        }
    }
}

/// Items together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }

    pub(super) fn subtract(&mut self, bytes: u64) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

/// The limit, and what it takes to keep it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) limit: MemoryLimit,
    now_ms: u64,
    all: Sum,
    /// By their ends, those that have one and whose time has not passed. When it does, they are nobody's any
    /// more, however long they wait for their removal: how far that got is not part of the state.
    ending: Ends,
    gone: Sum,
    pub(super) order: Order,
}

impl Memory {
    /// Bytes that count against the limit.
    pub(super) const fn used_bytes(&self) -> u64 {
        self.all.bytes - self.gone.bytes
    }

    /// Bytes of all items, those that wait for their removal included.
    pub(super) const fn all_bytes(&self) -> u64 {
        self.all.bytes
    }

    /// Items whose time has not passed.
    pub(super) const fn live_count(&self) -> u64 {
        self.all.count - self.gone.count
    }

    pub(super) const fn is_over_limit(&self) -> bool {
        self.limit.bytes != 0 && self.used_bytes() > self.limit.bytes
    }

    /// What was evicted or is to be sorted could not all be dealt with at once: the next tick goes on.
    pub(super) fn has_work(&self) -> bool {
        self.limit.evicts() && (self.is_over_limit() || !self.order.is_complete())
    }

    pub(super) fn added(&mut self, hash: u64, now: Footprint) {
        let sum = Sum {
            count: 1,
            bytes: now.bytes,
        };
        self.all.add(sum);
        if now.deadline_ms != NEVER {
            if now.deadline_ms <= self.now_ms {
                self.gone.add(sum);
            } else {
                self.ending.add(now.deadline_ms, sum);
            }
        }
        self.order.insert(hash, now);
    }

    pub(super) fn removed(&mut self, hash: u64, before: Footprint) {
        self.all.subtract(before.bytes);
        if before.deadline_ms <= self.now_ms {
            self.gone.subtract(before.bytes);
        } else if before.deadline_ms != NEVER {
            self.ending.subtract(before.deadline_ms, before.bytes);
        }
        self.order.remove(hash, before);
    }

    pub(super) fn changed(&mut self, hash: u64, before: Footprint, now: Footprint) {
        if before.deadline_ms == now.deadline_ms && before.deadline_ms == NEVER {
            // What most writes are.
            self.all.bytes = self.all.bytes - before.bytes + now.bytes;
            self.order.remove(hash, before);
            self.order.insert(hash, now);
        } else {
            self.removed(hash, before);
            self.added(hash, now);
        }
    }

    /// The log's time has come this far; in how many steps what has ended was added up.
    pub(super) fn move_time(&mut self, now_ms: u64) -> usize {
        let (passed, steps) = self.ending.within(self.now_ms + 1..now_ms + 1);
        self.gone.add(passed);
        self.now_ms = now_ms;
        steps
    }

    /// All items are gone at once; what was known of their ends.
    pub(super) fn flush(&mut self) -> Ends {
        self.all = Sum::default();
        self.gone = Sum::default();
        self.order.flush();
        std::mem::take(&mut self.ending)
    }

    /// Whether no item has an end that is to come, and all sums of ends that have passed are removed.
    pub(super) fn has_no_ends(&self) -> bool {
        self.ending.is_empty()
    }

    /// Removes a few sums of ends that have passed.
    pub(super) fn sweep(&mut self, most: usize) {
        self.ending.sweep(self.now_ms, most);
    }
}

/// An item's place among those that may be evicted: when it was written or touched last, and what tells it
/// from others of the same command. Items that share all of it are evicted together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank {
    pub(super) recency: u64,
    pub(super) hash: u64,
    pub(super) deadline_ms: u64,
}

/// The items from the one that was written or touched longest ago. Kept only while items are evicted: where
/// that begins with many items there, they are sorted in a few at a time, in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct Order {
    ranks: Ranks,
    sorted: Sorted,
    /// Thrown away, and not freed yet.
    discarded: Vec<Ranks>,
}

/// With how many items share the rank.
pub(super) type Ranks = BTreeMap<Rank, u32>;

/// Which items are in the order.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sorted {
    /// It is not kept.
    #[default]
    None,
    /// Those before this position.
    Before(Position),
    All,
}

impl Order {
    pub(super) const fn sorted(&self) -> Sorted {
        self.sorted
    }

    pub(super) fn is_complete(&self) -> bool {
        self.sorted == Sorted::All
    }

    pub(super) fn set_sorted(&mut self, sorted: Sorted) {
        self.sorted = sorted;
        if sorted == Sorted::None {
            self.discard();
        }
    }

    fn holds(&self, hash: u64) -> bool {
        match self.sorted {
            Sorted::None => false,
            Sorted::Before(end) => Position::of(hash) < end,
            Sorted::All => true,
        }
    }

    fn insert(&mut self, hash: u64, item: Footprint) {
        if self.holds(hash) {
            *self.ranks.entry(rank(hash, item)).or_default() += 1;
        }
    }

    fn remove(&mut self, hash: u64, item: Footprint) {
        // One whose time has passed may have been taken out before.
        if self.holds(hash)
            && let Some(count) = self.ranks.get_mut(&rank(hash, item))
        {
            *count -= 1;
            if *count == 0 {
                self.ranks.remove(&rank(hash, item));
            }
        }
    }

    /// The items up to `end`, which is where the sorted ones end from now on, were not in the order yet.
    pub(super) fn sort_in(&mut self, items: Vec<Rank>, end: Sorted) {
        self.sorted = end;
        for rank in items {
            *self.ranks.entry(rank).or_default() += 1;
        }
    }

    /// The first whose time has not passed. Those before it are taken out: nobody evicts them.
    pub(super) fn first_live(&mut self, now_ms: u64) -> Option<Rank> {
        loop {
            let first = self.ranks.first_entry()?;
            if first.key().deadline_ms > now_ms {
                return Some(*first.key());
            }
            first.remove();
        }
    }

    /// Takes a rank out, whoever has it; whether it was there.
    pub(super) fn forget(&mut self, rank: Rank) -> bool {
        self.ranks.remove(&rank).is_some()
    }

    fn flush(&mut self) {
        self.discard();
        if self.sorted != Sorted::None {
            self.sorted = Sorted::All; // of nothing
        }
    }

    fn discard(&mut self) {
        let ranks = std::mem::take(&mut self.ranks);
        if !ranks.is_empty() {
            self.discarded.push(ranks);
        }
    }

    pub(super) const fn has_discarded_none(&self) -> bool {
        self.discarded.is_empty()
    }

    /// What was thrown away since the last time.
    pub(super) fn take_discarded(&mut self) -> Vec<Ranks> {
        std::mem::take(&mut self.discarded)
    }
}

pub(super) fn rank(hash: u64, item: Footprint) -> Rank {
    Rank {
        recency: item.recency,
        hash,
        deadline_ms: item.deadline_ms,
    }
}
