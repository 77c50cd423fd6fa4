//! The table of items, cut into shards that a snapshot can hold on to one by one. Knows no time.
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use super::alarms::Alarm;
use super::item::Item;
use crate::Key;

/// How many shards there are: with ten million items a shard has about 2,400, which is what a write
/// copies the references of, at most once per shard and snapshot.
pub(super) const SHARDS: usize = 4096;

pub(super) type Shard = HashTable<Arc<Item>>;

/// The shards by place; `None` where nothing was ever written.
type Places = Vec<Option<Arc<Shard>>>;

/// All items. An item's hash is the same on all replicas, for as long as the format of `SCAN`'s cursors is:
/// it chooses the shard, and is the order in which a `SCAN` goes. Within a shard another one counts, which
/// a secret of the process is mixed into, so that nobody outside can choose keys that meet there; no order
/// that depends on that ever leaves the store.
#[derive(Debug)]
pub(super) struct Shards {
    secret: Secret,
    places: Places,
    /// Shards thrown away whole, which are freed one after the other.
    discarded: Vec<Arc<Shard>>,
    count: u64,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            secret: Secret::new(),
            places: no_shards(),
            discarded: Vec::new(),
            count: 0,
        }
    }
}

/// What hashes are mixed with.
#[derive(Clone, Copy, Debug)]
struct Secret {
    mask: u64,
    factor: u64,
}

impl Secret {
    fn new() -> Self {
        let state = RandomState::new();
        Self {
            mask: state.hash_one(0),
            factor: state.hash_one(1) | 1,
        }
    }

    /// The hash that counts within a shard. Keys whose hashes differ meet by chance only.
    fn mix(self, hash: u64) -> u64 {
        let product = u128::from(hash ^ self.mask) * u128::from(self.factor);
        let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
        u64::try_from(low ^ high).unwrap_or(0) // never: both have 64 bits
    }
}

/// How far a `SCAN` has come, or will have when it has given an item: the hash's first 48 bits, because
/// some clients keep a cursor as a number that is exact only so far.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Position(u64);

/// Bits of a hash that are no part of its position.
const POSITION_SHIFT: u32 = 16;

impl Position {
    /// Where the cursor stands; `None` if it is behind all items.
    pub(super) const fn from_cursor(cursor: u64) -> Option<Self> {
        if cursor >> (64 - POSITION_SHIFT) == 0 {
            Some(Self(cursor))
        } else {
            None
        }
    }

    /// The position of a key with this hash.
    pub(super) const fn of(hash: u64) -> Self {
        Self(hash >> POSITION_SHIFT)
    }

    pub(super) const fn cursor(self) -> u64 {
        self.0
    }

    const fn shard_index(self) -> usize {
        shard_index(self.0 << POSITION_SHIFT)
    }
}

fn no_shards() -> Places {
    vec![None; SHARDS]
}

impl Shards {
    #[expect(clippy::unused_self, reason = "hashes belong to the shards")]
    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        hash(key.bytes())
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn get(&self, hash: u64, key: Key<'_>) -> Option<&Item> {
        let shard = self.places[shard_index(hash)].as_ref()?;
        shard
            .find(self.secret.mix(hash), |item| item.key() == key.bytes())
            .map(AsRef::as_ref)
    }

    pub(super) fn get_mut(&mut self, hash: u64, key: Key<'_>) -> Option<&mut Arc<Item>> {
        let mixed = self.secret.mix(hash);
        let shard = self.shard_mut(hash)?;
        shard.find_mut(mixed, |item| item.key() == key.bytes())
    }

    /// Adds an item whose key is not there yet.
    pub(super) fn insert(&mut self, hash: u64, item: Item) {
        let place = &mut self.places[shard_index(hash)];
        let shard = Arc::make_mut(place.get_or_insert_default());
        let secret = self.secret;
        let rehash = |item: &Arc<Item>| secret.mix(self::hash(item.key()));
        shard.insert_unique(secret.mix(hash), Arc::new(item), rehash);
        self.count += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, key: Key<'_>) -> Option<Arc<Item>> {
        self.take(hash, |item| item.key() == key.bytes())
    }

    /// The item with this alarm.
    pub(super) fn alarmed_mut(&mut self, hash: u64, alarm: Alarm) -> Option<&mut Arc<Item>> {
        let mixed = self.secret.mix(hash);
        let shard = self.shard_mut(hash)?;
        shard.find_mut(mixed, |item| item.alarm == alarm)
    }

    /// An item with this hash whose life counts from the next tick.
    pub(super) fn awaiting_mut(&mut self, hash: u64) -> Option<&mut Arc<Item>> {
        let mixed = self.secret.mix(hash);
        let shard = self.shard_mut(hash)?;
        shard.find_mut(mixed, |item| item.awaits_time)
    }

    /// Whether there is one.
    pub(super) fn has_awaiting(&self, hash: u64) -> bool {
        let shard = self.places[shard_index(hash)].as_ref();
        let mixed = self.secret.mix(hash);
        shard.is_some_and(|shard| shard.find(mixed, |item| item.awaits_time).is_some())
    }

    pub(super) fn remove_alarmed(&mut self, hash: u64, alarm: Alarm) -> Option<Arc<Item>> {
        self.take(hash, |item| item.alarm == alarm)
    }

    /// Takes out an item with exactly this hash of which `is_it` holds.
    pub(super) fn remove_where(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Item) -> bool,
    ) -> Option<Arc<Item>> {
        self.take(hash, |item| is_it(item) && self::hash(item.key()) == hash)
    }

    fn take(&mut self, hash: u64, is_it: impl Fn(&Item) -> bool) -> Option<Arc<Item>> {
        let mixed = self.secret.mix(hash);
        let shard = self.shard_mut(hash)?;
        let found = shard.find_entry(mixed, |item| is_it(item)).ok()?;
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

    /// All items.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        let shards = self.places.iter().flatten();
        shards.flat_map(|shard| shard.iter().map(AsRef::as_ref))
    }

    /// The items at `from` and behind, shard by shard in the order of positions; within a shard in no
    /// order.
    pub(super) fn shards_from(
        &self,
        from: Position,
    ) -> impl Iterator<Item = Vec<(Position, &Item)>> {
        self.places[from.shard_index()..]
            .iter()
            .flatten()
            .map(move |shard| {
                let placed = shard
                    .iter()
                    .map(|item| (Position::of(hash(item.key())), item.as_ref()));
                placed.filter(|(position, _)| *position >= from).collect()
            })
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

/// The hash of a key: the same in every process and on every machine.
fn hash(key: &[u8]) -> u64 {
    SipHasher13::new().hash(key)
}

/// The shard of a hash: its first bits, so that the shards follow each other in the order of positions.
#[expect(clippy::cast_possible_truncation, reason = "there are few shards")]
const fn shard_index(hash: u64) -> usize {
    (hash >> (64 - SHARDS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cursors that clients hold must stay good over a change of the program.
    #[test]
    fn the_hash_of_a_key_never_changes() {
        assert_eq!(hash(b""), 0xd1fb_a762_150c_532c);
        assert_eq!(hash(b"key"), 0xdf61_b30b_6842_17c0);
    }
}
