//! The state as bytes: written in order of the keys, so that equal states are equal bytes whatever the
//! table's secret. Checks structure and limits, not integrity: whoever stores the bytes does that.
//!
//! All numbers are big-endian, times are milliseconds of log time, 2^64-1 is never.
//!
//! ```text
//! "qwkv" format:4 log_time:8 ahead:8 flush_at:8 flush_awaits:1
//!        memory_is_set:1 memory_policy:1 memory_limit:8 sorted_to:8 item_count:8
//! item*  key_length:1 flags:4 unique:8 recency:8 deadline:8 awaits:1 recache:1 value_length:4 key value
//! "vkwq"
//! ```
//!
//! Of `recache`, 1 says that the value is stale and 2 that a client has won the right to store it anew. The
//! memory policy is 0 to refuse and 1 to evict; then `sorted_to` is the position (48 bits) before which items
//! are in the order in which they are evicted, and 2^64-1 if all are. `recency` is when an item was written
//! or touched last.
//!
//! `ahead` is by how much the log's time is ahead of the time of day (signed), where the log says it. Where
//! it does not, because a member's code would not read it, format 4 is written, which has no `ahead`. Format
//! 3, which is read too, has nothing about memory and no `recency` either; format 2 no `recache`.
//!
//! Of `awaits`, 1 says that the end is later by as much as the next tick moves the log's time; 2, only from
//! format 5 on, that it moves by as much as the next tick changes `ahead`; 0 neither.
use std::io::{self, Read, Write};
use std::sync::Arc;

use quorumwire_interfaces::Frozen;

use super::Store;
use super::item::{Awaits, Item, NEVER, Recache};
use super::memory::{Footprint, MemoryLimit, MemoryPolicy, Sorted};
use super::shards::{Position, Shard};
use crate::{KEY_BYTES_MAX, Key, VALUE_BYTES_MAX};

const MAGIC: [u8; 4] = *b"qwkv";
const FORMAT: u32 = 5;
/// The last without `ahead`, and the first with what is about memory.
const FORMAT_WITH_MEMORY: u32 = 4;
/// The first with `recache`.
const FORMAT_WITH_RECACHE: u32 = 3;
/// The oldest that is read.
const FORMAT_LEAST: u32 = 2;

const STALE: u8 = 1;
const WON: u8 = 2;
const END: [u8; 4] = *b"vkwq";

/// Bytes that are collected before they are handed to the writer.
const BUFFER_BYTES: usize = 64 << 10;

/// The state at one moment.
pub(super) struct FrozenStore {
    shards: Vec<Arc<Shard>>,
    log_time_ms: u64,
    ahead_ms: Option<i64>,
    flush_at_ms: u64,
    flush_awaits: Awaits,
    limit: MemoryLimit,
    sorted: Sorted,
}

impl FrozenStore {
    pub(super) const fn new(
        shards: Vec<Arc<Shard>>,
        (log_time_ms, ahead_ms): (u64, Option<i64>),
        (flush_at_ms, flush_awaits): (u64, Awaits),
        (limit, sorted): (MemoryLimit, Sorted),
    ) -> Self {
        Self {
            shards,
            log_time_ms,
            ahead_ms,
            flush_at_ms,
            flush_awaits,
            limit,
            sorted,
        }
    }

    /// The items that are there at this moment, in order of their keys.
    fn items(&self) -> Vec<&Item> {
        let all = self.shards.iter().flat_map(|shard| shard.iter());
        let live = all.filter(|item| item.deadline_ms > self.log_time_ms);
        let mut items: Vec<&Item> = live.map(AsRef::as_ref).collect();
        items.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        items
    }
}

impl Frozen for FrozenStore {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut writer = io::BufWriter::with_capacity(BUFFER_BYTES, writer);
        let items = self.items();
        writer.write_all(&MAGIC)?;
        let format = self.ahead_ms.map_or(FORMAT_WITH_MEMORY, |_| FORMAT);
        writer.write_all(&format.to_be_bytes())?;
        writer.write_all(&self.log_time_ms.to_be_bytes())?;
        if let Some(ahead_ms) = self.ahead_ms {
            writer.write_all(&ahead_ms.to_be_bytes())?;
        }
        writer.write_all(&self.flush_at_ms.to_be_bytes())?;
        writer.write_all(&[awaits_byte(self.flush_awaits)])?;
        let evicts = self.limit.policy == MemoryPolicy::Evict;
        writer.write_all(&[u8::from(self.limit.is_set), u8::from(evicts)])?;
        writer.write_all(&self.limit.bytes.to_be_bytes())?;
        writer.write_all(&sorted_to(self.sorted).to_be_bytes())?;
        writer.write_all(&(items.len() as u64).to_be_bytes())?;
        for item in items {
            let value_bytes = u32::try_from(item.value().len()).map_err(io::Error::other)?;
            writer.write_all(&[item.key_bytes()])?;
            writer.write_all(&item.flags.to_be_bytes())?;
            writer.write_all(&item.unique.to_be_bytes())?;
            writer.write_all(&item.recency().to_be_bytes())?;
            writer.write_all(&item.deadline_ms.to_be_bytes())?;
            writer.write_all(&[awaits_byte(item.awaits), recache_byte(item.recache)])?;
            writer.write_all(&value_bytes.to_be_bytes())?;
            writer.write_all(item.key())?;
            writer.write_all(item.value())?;
        }
        writer.write_all(&END)?;
        writer.flush()
    }
}

/// Fills the empty `store`. Reads not one byte more than [`Frozen::write`] wrote.
pub(super) fn read(reader: &mut dyn Read, store: &mut Store) -> io::Result<()> {
    if array(reader)? != MAGIC {
        return Err(bad("this is not a snapshot of a key-value store"));
    }
    let format = u32::from_be_bytes(array(reader)?);
    if !(FORMAT_LEAST..=FORMAT).contains(&format) {
        return Err(bad("snapshot of another format"));
    }
    store.log_time_ms = u64::from_be_bytes(array(reader)?);
    if format > FORMAT_WITH_MEMORY {
        store.ahead_ms = Some(i64::from_be_bytes(array(reader)?));
    }
    store.flush_at_ms = u64::from_be_bytes(array(reader)?);
    if store.flush_at_ms <= store.log_time_ms {
        return Err(bad("snapshot with a flush in its past"));
    }
    store.flush_awaits = read_awaits(reader, store.flush_at_ms, format)?;
    if format >= FORMAT_WITH_MEMORY {
        read_memory(reader, store)?;
    }
    store.memory.move_time(store.log_time_ms);
    let item_count = u64::from_be_bytes(array(reader)?);
    let mut previous_key: Option<Vec<u8>> = None;
    for _ in 0..item_count {
        let item = read_item(reader, format)?;
        if previous_key
            .as_ref()
            .is_some_and(|previous| item.key() <= previous.as_slice())
        {
            return Err(bad("snapshot whose keys are not in order"));
        }
        if item.deadline_ms <= store.log_time_ms {
            return Err(bad("snapshot with an item whose time has passed"));
        }
        let previous = previous_key.get_or_insert_default();
        previous.clear();
        previous.extend_from_slice(item.key());
        store.insert_restored(item)?;
    }
    store.alarms.take_set(); // the first command is to remove no more than any other
    if array(reader)? == END {
        Ok(())
    } else {
        Err(bad("snapshot without its end"))
    }
}

fn read_item(reader: &mut dyn Read, format: u32) -> io::Result<Item> {
    let [key_bytes] = array(reader)?;
    if usize::from(key_bytes) > KEY_BYTES_MAX {
        return Err(bad("snapshot with a bad key"));
    }
    let flags = u32::from_be_bytes(array(reader)?);
    let unique = u64::from_be_bytes(array(reader)?);
    let recency = if format >= FORMAT_WITH_MEMORY {
        u64::from_be_bytes(array(reader)?)
    } else {
        unique
    };
    if recency < unique {
        return Err(bad("snapshot with an item older than its value"));
    }
    let deadline_ms = u64::from_be_bytes(array(reader)?);
    let awaits = read_awaits(reader, deadline_ms, format)?;
    let recache = if format >= FORMAT_WITH_RECACHE {
        read_recache(reader)?
    } else {
        Recache::default()
    };
    let value_bytes = u32::from_be_bytes(array(reader)?) as usize;
    if value_bytes > VALUE_BYTES_MAX {
        return Err(bad("snapshot with a value that is too long"));
    }
    let mut bytes = vec![0; usize::from(key_bytes) + value_bytes].into_boxed_slice();
    reader.read_exact(&mut bytes)?;
    Ok(Item::from_bytes(
        bytes,
        key_bytes,
        flags,
        (unique, recency),
        (deadline_ms, awaits),
        recache,
    ))
}

/// What is not sorted at all is sorted to the first position.
const fn sorted_to(sorted: Sorted) -> u64 {
    match sorted {
        Sorted::None => 0,
        Sorted::Before(end) => end.cursor(),
        Sorted::All => u64::MAX,
    }
}

fn read_memory(reader: &mut dyn Read, store: &mut Store) -> io::Result<()> {
    let [is_set, evicts] = array(reader)?;
    if is_set > 1 || evicts > 1 {
        return Err(bad("snapshot with an unknown memory policy"));
    }
    let limit = MemoryLimit {
        is_set: is_set == 1,
        bytes: u64::from_be_bytes(array(reader)?),
        policy: if evicts == 1 {
            MemoryPolicy::Evict
        } else {
            MemoryPolicy::Refuse
        },
    };
    let sorted = match u64::from_be_bytes(array(reader)?) {
        0 if !limit.evicts() => Sorted::None,
        u64::MAX if limit.evicts() => Sorted::All,
        cursor => match Position::from_cursor(cursor) {
            Some(end) if limit.evicts() => Sorted::Before(end),
            Some(_) | None => return Err(bad("snapshot with an order of no items")),
        },
    };
    store.memory.limit = limit;
    store.memory.order.set_sorted(sorted);
    Ok(())
}

fn recache_byte(recache: Recache) -> u8 {
    u8::from(recache.is_stale) * STALE + u8::from(recache.is_won) * WON
}

fn read_recache(reader: &mut dyn Read) -> io::Result<Recache> {
    let [byte] = array(reader)?;
    if byte & !(STALE | WON) != 0 {
        return Err(bad("snapshot with an item that is neither stale nor won"));
    }
    Ok(Recache {
        is_stale: byte & STALE != 0,
        is_won: byte & WON != 0,
    })
}

const fn awaits_byte(awaits: Awaits) -> u8 {
    match awaits {
        Awaits::Nothing => 0,
        Awaits::Time => 1,
        Awaits::Day => 2,
    }
}

/// What never ends awaits nothing.
fn read_awaits(reader: &mut dyn Read, end_ms: u64, format: u32) -> io::Result<Awaits> {
    match array(reader)? {
        [0] => Ok(Awaits::Nothing),
        [1] if end_ms != NEVER => Ok(Awaits::Time),
        [2] if end_ms != NEVER && format > FORMAT_WITH_MEMORY => Ok(Awaits::Day),
        _ => Err(bad("snapshot with an end that awaits no time")),
    }
}

impl Store {
    fn insert_restored(&mut self, mut item: Item) -> io::Result<()> {
        let key = Key::binary(item.key()).ok_or_else(|| bad("snapshot with a bad key"))?;
        let hash = self.items.hash(key);
        self.alarms.cover(&mut item, hash);
        self.memory.added(hash, Footprint::of(&item));
        let awaits = item.awaits;
        self.items.insert(hash, item);
        self.note_awaiting(hash, awaits);
        Ok(())
    }
}

fn array<const N: usize>(reader: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    reader.read_exact(&mut array)?;
    Ok(array)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
