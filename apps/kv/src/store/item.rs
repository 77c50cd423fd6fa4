//! One item in memory, and its changes while a snapshot may be looking at it. Knows no other items.
use std::sync::Arc;

use super::ItemView;
use super::alarms::{self, Alarm};

/// The end of an item that has none.
pub(super) const NEVER: u64 = u64::MAX;

/// What an item takes beside its key and value, by estimate, which must be the same on all machines: itself,
/// its counts, its place in a table that is three quarters full, and the allocator's share of two
/// allocations.
pub(super) const OVERHEAD_BYTES: u64 = crate::ITEM_OVERHEAD_BYTES;

/// An item. Shared with snapshots: whoever changes it while it is shared changes a copy.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The key and the value behind it.
    bytes: Box<[u8]>,
    key_bytes: u8,
    pub(super) flags: u32,
    pub(super) unique: u64,
    /// Number of the command that last gave it a new end without changing its value; kept only while items
    /// are evicted.
    pub(super) touched: u64,
    /// The log time from which on it is gone, or [`NEVER`].
    pub(super) deadline_ms: u64,
    /// What the next tick changes of `deadline_ms`.
    pub(super) awaits: Awaits,
    pub(super) recache: Recache,
    pub(super) alarm: Alarm,
}

/// What of an end only the next tick tells, because no tick went before the command that gave it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Awaits {
    /// Nothing.
    #[default]
    Nothing,
    /// The moment that it counts from: it is later by as much as the tick moves the log's time.
    Time,
    /// Where the log's time is at a point of the time of day: it moves by as much as the tick changes how far
    /// the log is ahead.
    Day,
}

impl Awaits {
    /// The end as the next tick makes it.
    pub(super) fn settled(self, end_ms: u64, passed_ms: u64, turned_ms: i64) -> u64 {
        let end_ms = match self {
            Self::Nothing => return end_ms,
            Self::Time => end_ms.saturating_add(passed_ms),
            Self::Day => end_ms.saturating_add_signed(turned_ms),
        };
        end_ms.min(NEVER - 1)
    }
}

/// What the meta commands know of an item that is to be stored anew. Whoever stores it ends that.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Recache {
    /// The value is out of date.
    pub(super) is_stale: bool,
    /// A client was told that it is the one to store the item anew.
    pub(super) is_won: bool,
}

/// Everything a write says of an item but its name.
pub(super) struct Contents<'a> {
    pub(super) flags: u32,
    pub(super) unique: u64,
    pub(super) deadline_ms: u64,
    pub(super) awaits: Awaits,
    pub(super) recache: Recache,
    /// The value, in two pieces.
    pub(super) value: [&'a [u8]; 2],
}

impl Contents<'_> {
    pub(super) const fn value_bytes(&self) -> usize {
        self.value[0].len() + self.value[1].len()
    }
}

impl Item {
    pub(super) fn new(key: &[u8], key_bytes: u8, contents: &Contents<'_>) -> Self {
        let [front, back] = contents.value;
        Self {
            bytes: [key, front, back].concat().into_boxed_slice(),
            key_bytes,
            flags: contents.flags,
            unique: contents.unique,
            touched: 0,
            deadline_ms: contents.deadline_ms,
            awaits: contents.awaits,
            recache: contents.recache,
            alarm: alarms::NONE,
        }
    }

    /// An item of key and value in one piece.
    pub(super) fn from_bytes(
        bytes: Box<[u8]>,
        key_bytes: u8,
        flags: u32,
        (unique, touched): (u64, u64),
        (deadline_ms, awaits): (u64, Awaits),
        recache: Recache,
    ) -> Self {
        Self {
            bytes,
            key_bytes,
            flags,
            unique,
            touched,
            deadline_ms,
            awaits,
            recache,
            alarm: alarms::NONE,
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.bytes[..usize::from(self.key_bytes)]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.bytes[usize::from(self.key_bytes)..]
    }

    /// Number of the command that last wrote or touched it.
    pub(super) fn recency(&self) -> u64 {
        self.unique.max(self.touched)
    }

    pub(super) const fn key_bytes(&self) -> u8 {
        self.key_bytes
    }

    /// Bytes of key and value.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn view(&self) -> ItemView<'_> {
        ItemView {
            flags: self.flags,
            unique: self.unique,
            value: self.value(),
        }
    }

    fn value_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[usize::from(self.key_bytes)..]
    }
}

/// The item to be changed: itself, or a copy in its place if a snapshot holds it.
pub(super) fn make_mut(slot: &mut Arc<Item>) -> &mut Item {
    Arc::make_mut(slot)
}

/// Writes new contents. In place, without an allocation, if the value keeps its length and no snapshot
/// holds the item; never copies the old value.
pub(super) fn rewrite<'a>(slot: &'a mut Arc<Item>, contents: &Contents<'_>) -> &'a mut Item {
    let [front, back] = contents.value;
    match Arc::get_mut(slot) {
        Some(item) if item.value().len() == contents.value_bytes() => {
            let (first, second) = item.value_mut().split_at_mut(front.len());
            first.copy_from_slice(front);
            second.copy_from_slice(back);
            item.flags = contents.flags;
            item.unique = contents.unique;
            item.touched = 0;
            item.deadline_ms = contents.deadline_ms;
            item.awaits = contents.awaits;
            item.recache = contents.recache;
        }
        Some(_) | None => {
            let alarm = slot.alarm;
            let item = Item::new(slot.key(), slot.key_bytes, contents);
            *slot = Arc::new(Item { alarm, ..item });
        }
    }
    Arc::make_mut(slot)
}

/// Has the value's bytes changed in place; `change` tells whether it did change any.
pub(super) fn change(slot: &mut Arc<Item>, unique: u64, change: impl FnOnce(&mut [u8]) -> bool) {
    let item = Arc::make_mut(slot);
    if change(item.value_mut()) {
        item.unique = unique;
    }
}

/// Puts bytes before and behind the value: the item was stored anew by that.
pub(super) fn extend(slot: &mut Arc<Item>, front: &[u8], back: &[u8], unique: u64) {
    let bytes = [slot.key(), front, slot.value(), back]
        .concat()
        .into_boxed_slice();
    *slot = Arc::new(Item {
        bytes,
        unique,
        recache: Recache::default(),
        ..**slot
    });
}

/// Makes `digits` the value, with blanks behind them if the value was longer. As in memcached, a number that
/// has grown longer is an item stored anew.
pub(super) fn write_number(slot: &mut Arc<Item>, digits: &[u8], unique: u64) {
    if digits.len() > slot.value().len() {
        let bytes = [slot.key(), digits].concat().into_boxed_slice();
        *slot = Arc::new(Item {
            bytes,
            unique,
            recache: Recache::default(),
            ..**slot
        });
        return;
    }
    let item = Arc::make_mut(slot);
    item.unique = unique;
    let (number, blanks) = item.value_mut().split_at_mut(digits.len());
    number.copy_from_slice(digits);
    blanks.fill(b' ');
}
