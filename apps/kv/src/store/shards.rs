//! The table of items, cut into shards that a snapshot can hold on to one by one. Knows no time.
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use super::alarms::Alarm;
use super::item::{Awaits, Item};
use crate::Key;

/// How many shards there are: with ten million items a shard has about 2,400, which is what a write
/// copies the references of, at most once per shard and snapshot.
pub(super) const SHARDS: usize = 4096;

pub(super) type Shard = HashTable<Arc<Item>>;

/// The shards by place; none where nothing was ever written. There is one, unless somebody chose keys that
/// meet there, or there are tens of millions: then each of several holds a range of hashes, in their order.
type Places = Vec<SmallVec<[Piece; 1]>>;

/// A shard, or one of those that share its place.
#[derive(Clone, Debug)]
struct Piece {
    /// No item has a lesser hash.
    first: u64,
    shard: Arc<Shard>,
}

/// A piece with so many items is parted if their positions differ: nothing that looks through one whole, or
/// copies or moves one, takes long then, whatever the keys. If it cannot be, that is tried again once it has
/// twice as many.
const PIECE_ITEMS_MAX: usize = 4096;

/// All items. An item's hash is the same on all replicas, for as long as the format of `SCAN`'s cursors is:
/// it chooses the shard, and is the order in which a `SCAN` goes. Within a shard another one counts, which
/// a secret of the process is mixed into, so that nobody outside can choose keys that meet there; no order
/// that depends on that ever leaves the store.
#[derive(Debug)]
pub(super) struct Shards {
    secret: Secret,
    places: Places,
    count: u64,
    /// The places from this one on may hold pieces that something frozen holds, too.
    shared_from: Cell<usize>,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            secret: Secret::new(),
            places: no_shards(),
            count: 0,
            shared_from: Cell::new(SHARDS),
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
    vec![SmallVec::new(); SHARDS]
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
        self.shard(hash)?
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
        if place.is_empty() {
            place.push(Piece {
                first: 0,
                shard: Arc::default(),
            });
        }
        let number = piece_number(place, hash);
        let shard = Arc::make_mut(&mut place[number].shard);
        let secret = self.secret;
        let rehash = |item: &Arc<Item>| secret.mix(self::hash(item.key()));
        shard.insert_unique(secret.mix(hash), Arc::new(item), rehash);
        self.count += 1;
        if shard.len() >= PIECE_ITEMS_MAX
            && shard.len().is_power_of_two()
            && let Some(upper) = part(shard, secret)
        {
            place.insert(number + 1, upper);
        }
    }

    pub(super) fn remove(&mut self, hash: u64, key: Key<'_>) -> Option<Arc<Item>> {
        self.take(hash, |item| item.key() == key.bytes())
    }

    /// The item with this alarm.
    pub(super) fn alarmed(&self, hash: u64, alarm: Alarm) -> Option<&Item> {
        let mixed = self.secret.mix(hash);
        let item = self.shard(hash)?.find(mixed, |item| item.alarm == alarm);
        item.map(AsRef::as_ref)
    }

    /// The same, to be changed.
    pub(super) fn alarmed_mut(&mut self, hash: u64, alarm: Alarm) -> Option<&mut Arc<Item>> {
        let mixed = self.secret.mix(hash);
        let shard = self.shard_mut(hash)?;
        shard.find_mut(mixed, |item| item.alarm == alarm)
    }

    /// An item with exactly this hash whose life counts from the next tick. A table may offer items with
    /// other hashes, too, and which ones is no part of the state.
    pub(super) fn awaiting_mut(&mut self, hash: u64) -> Option<&mut Arc<Item>> {
        let mixed = self.secret.mix(hash);
        let shard = self.shard_mut(hash)?;
        shard.find_mut(mixed, |item| awaits(item, hash))
    }

    /// Whether there is one.
    pub(super) fn has_awaiting(&self, hash: u64) -> bool {
        let mixed = self.secret.mix(hash);
        self.shard(hash)
            .is_some_and(|shard| shard.find(mixed, |item| awaits(item, hash)).is_some())
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
        let place = &mut self.places[shard_index(hash)];
        let number = piece_number(place, hash);
        Some(Arc::make_mut(&mut place.get_mut(number)?.shard))
    }

    fn shard(&self, hash: u64) -> Option<&Shard> {
        let place = &self.places[shard_index(hash)];
        Some(&*place.get(piece_number(place, hash))?.shard)
    }

    /// All items.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        let shards = self.places.iter().flatten();
        shards.flat_map(|piece| piece.shard.iter().map(AsRef::as_ref))
    }

    /// The items at `from` and behind, shard by shard in the order of positions; within a shard in no
    /// order.
    pub(super) fn shards_from(
        &self,
        from: Position,
    ) -> impl Iterator<Item = Vec<(Position, &Item)>> {
        let first = &self.places[from.shard_index()];
        let before = piece_number(first, from.0 << POSITION_SHIFT);
        self.places[from.shard_index()..]
            .iter()
            .flatten()
            .skip(before)
            .map(move |piece| {
                let placed = piece
                    .shard
                    .iter()
                    .map(|item| (Position::of(hash(item.key())), item.as_ref()));
                placed.filter(|(position, _)| *position >= from).collect()
            })
    }

    /// The shards as they are now, without those that nothing was ever written to.
    pub(super) fn freeze(&self) -> Vec<Arc<Shard>> {
        self.shared_from.set(0);
        let pieces = self.places.iter().flatten();
        pieces.map(|piece| Arc::clone(&piece.shard)).collect()
    }
}

impl Shards {
    /// Copies pieces that something frozen holds, too, in place of the writes that would: so many references
    /// and those of one place more. Returns how many were copied, and whether that was all.
    pub(super) fn unshare(&mut self, references_max: usize) -> (usize, bool) {
        let (mut next, mut copied) = (self.shared_from.get(), 0);
        while next < SHARDS && copied < references_max {
            for piece in &mut self.places[next] {
                if Arc::strong_count(&piece.shard) > 1 {
                    copied += piece.shard.len();
                    Arc::make_mut(&mut piece.shard);
                }
            }
            next += 1;
        }
        self.shared_from.set(next);
        (copied, next == SHARDS)
    }
}

fn awaits(item: &Item, hash: u64) -> bool {
    item.awaits != Awaits::Nothing && self::hash(item.key()) == hash
}

/// Which piece of a place has the items with this hash.
fn piece_number(place: &[Piece], hash: u64) -> usize {
    match place {
        [] | [_] => 0, // what nearly all are
        [_, rest @ ..] => rest.partition_point(|piece| piece.first <= hash),
    }
}

/// Takes out the items with greater positions, about half; `None` if all have the same.
fn part(shard: &mut Shard, secret: Secret) -> Option<Piece> {
    let mut positions: Vec<Position> = shard
        .iter()
        .map(|item| Position::of(hash(item.key())))
        .collect();
    positions.sort_unstable();
    let middle = positions[positions.len() / 2];
    let first = if positions[0] < middle {
        middle
    } else {
        *positions.iter().find(|position| **position > middle)?
    };
    let rehash = |item: &Arc<Item>| secret.mix(hash(item.key()));
    let mut upper = Shard::new();
    for item in shard.extract_if(|item| Position::of(hash(item.key())) >= first) {
        upper.insert_unique(rehash(&item), item, rehash);
    }
    shard.shrink_to_fit(rehash);
    Some(Piece {
        first: first.0 << POSITION_SHIFT,
        shard: Arc::new(upper),
    })
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
    use super::super::item::Recache;
    use super::*;

    /// Somebody chose keys that meet in one place: no piece of it is long, all are found, and in their order.
    #[test]
    fn a_place_where_many_meet_is_parted() {
        let mut shards = Shards::default();
        let mut count = 0;
        for number in 0_u64.. {
            let bytes = number.to_ne_bytes();
            let hash = hash(&bytes);
            if shard_index(hash) != 5 {
                continue;
            }
            let ends = (super::super::item::NEVER, Awaits::Nothing);
            let bytes = Box::new(bytes);
            let item = Item::from_bytes(bytes, 8, 0, (1, 1), ends, Recache::default());
            shards.insert(hash, item);
            count += 1;
            if count == 3 * PIECE_ITEMS_MAX {
                break;
            }
        }
        let place = &shards.places[5];
        assert!(place.len() > 2);
        for piece in place {
            assert!((1000..=PIECE_ITEMS_MAX).contains(&piece.shard.len()));
        }
        let found: Vec<_> = shards.shards_from(Position::of(0)).collect();
        for neighbours in found.windows(2) {
            assert!(
                neighbours[0].iter().map(|it| it.0).max()
                    < neighbours[1].iter().map(|it| it.0).min()
            );
        }
        let positions: Vec<Position> = found.iter().flatten().map(|it| it.0).collect();
        assert_eq!(positions.len(), count);
        for from in positions.iter().step_by(500) {
            let behind = shards.shards_from(*from).flatten();
            assert_eq!(
                behind.count(),
                positions.iter().filter(|it| *it >= from).count()
            );
        }
        let keys: Vec<Vec<u8>> = shards.iter().map(|item| item.key().to_vec()).collect();
        for bytes in &keys {
            let key = Key::binary(bytes).unwrap();
            assert!(shards.get(hash(bytes), key).is_some());
            assert!(shards.remove(hash(bytes), key).is_some());
        }
        assert_eq!((shards.count(), shards.iter().count()), (0, 0));
    }

    /// Cursors that clients hold must stay good over a change of the program.
    #[test]
    fn the_hash_of_a_key_never_changes() {
        assert_eq!(hash(b""), 0xd1fb_a762_150c_532c);
        assert_eq!(hash(b"key"), 0xdf61_b30b_6842_17c0);
    }
}
