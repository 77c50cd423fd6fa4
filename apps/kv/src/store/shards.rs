//! The table of items, cut into shards that a snapshot can hold on to one by one. Knows no time.
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

use super::alarms::Alarm;
use super::item::Item;
use crate::Key;

/// How many shards there are: with ten million items a shard has about 2,400, which is what a write
/// copies the references of, at most once per shard and snapshot.
pub(super) const SHARDS: usize = 4096;

pub(super) type Shard = HashTable<Arc<Item>>;

/// The shards by place; `None` where nothing was ever written.
type Places = Vec<Option<Arc<Shard>>>;

/// All items. The hash is keyed by a secret of the process, so that nobody outside can choose keys that
/// meet; no order that depends on it ever leaves the store.
#[derive(Debug)]
pub(super) struct Shards {
    hasher: RandomState,
    places: Places,
    /// Shards thrown away whole, which are freed one after the other.
    discarded: Vec<Arc<Shard>>,
    count: u64,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            places: no_shards(),
            discarded: Vec::new(),
            count: 0,
        }
    }
}

fn no_shards() -> Places {
    vec![None; SHARDS]
}

impl Shards {
    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        self.hasher.hash_one(key.bytes())
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn get(&self, hash: u64, key: Key<'_>) -> Option<&Item> {
        let shard = self.places[shard_index(hash)].as_ref()?;
        shard
            .find(hash, |item| item.key() == key.bytes())
            .map(AsRef::as_ref)
    }

    pub(super) fn get_mut(&mut self, hash: u64, key: Key<'_>) -> Option<&mut Arc<Item>> {
        let shard = self.shard_mut(hash)?;
        shard.find_mut(hash, |item| item.key() == key.bytes())
    }

    /// Adds an item whose key is not there yet.
    pub(super) fn insert(&mut self, hash: u64, item: Item) {
        let place = &mut self.places[shard_index(hash)];
        let shard = Arc::make_mut(place.get_or_insert_default());
        let hasher = &self.hasher;
        shard.insert_unique(hash, Arc::new(item), |item| hasher.hash_one(item.key()));
        self.count += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, key: Key<'_>) -> Option<Arc<Item>> {
        self.take(hash, |item| item.key() == key.bytes())
    }

    /// The item with this alarm.
    pub(super) fn alarmed_mut(&mut self, hash: u64, alarm: Alarm) -> Option<&mut Arc<Item>> {
        let shard = self.shard_mut(hash)?;
        shard.find_mut(hash, |item| item.alarm == alarm)
    }

    /// An item with this hash whose life counts from the next tick.
    pub(super) fn awaiting_mut(&mut self, hash: u64) -> Option<&mut Arc<Item>> {
        let shard = self.shard_mut(hash)?;
        shard.find_mut(hash, |item| item.awaits_time)
    }

    /// Whether there is one.
    pub(super) fn has_awaiting(&self, hash: u64) -> bool {
        let shard = self.places[shard_index(hash)].as_ref();
        shard.is_some_and(|shard| shard.find(hash, |item| item.awaits_time).is_some())
    }

    pub(super) fn remove_alarmed(&mut self, hash: u64, alarm: Alarm) -> Option<Arc<Item>> {
        self.take(hash, |item| item.alarm == alarm)
    }

    fn take(&mut self, hash: u64, is_it: impl Fn(&Item) -> bool) -> Option<Arc<Item>> {
        let shard = self.shard_mut(hash)?;
        let found = shard.find_entry(hash, |item| is_it(item)).ok()?;
        let item = found.remove().0;
        self.count -= 1;
        Some(item)
    }

    /// The shard in which an item with this hash would be, if anything ever was.
    fn shard_mut(&mut self, hash: u64) -> Option<&mut Shard> {
        let shard = self.places[shard_index(hash)].as_mut()?;
        Some(Arc::make_mut(shard))
    }

    /// Removes everything at once; the memory is freed by [`drop_discarded`](Self::drop_discarded).
    pub(super) fn discard_all(&mut self) {
        let shards = std::mem::replace(&mut self.places, no_shards());
        self.discarded.extend(
            shards
                .into_iter()
                .flatten()
                .filter(|shard| !shard.is_empty()),
        );
        self.count = 0;
    }

    /// Frees one shard that was thrown away.
    pub(super) fn drop_discarded(&mut self) {
        drop(self.discarded.pop());
    }

    /// How many shards wait to be freed.
    #[cfg(test)]
    pub(super) fn discarded_count(&self) -> usize {
        self.discarded.len()
    }

    /// The shards as they are now, without those that nothing was ever written to.
    pub(super) fn freeze(&self) -> Vec<Arc<Shard>> {
        self.places.iter().flatten().cloned().collect()
    }
}

/// The shard of a hash. Taken from the middle: the table uses the lowest bits for the place and the
/// highest seven for a first comparison, and both must differ within a shard.
const fn shard_index(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}
