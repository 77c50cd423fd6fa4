//! The state as bytes: written in order of the keys, so that equal states are equal bytes whatever the
//! table's secret. Checks structure and limits, not integrity: whoever stores the bytes does that.
//!
//! All numbers are big-endian, times are milliseconds of log time, 2^64-1 is never.
//!
//! ```text
//! "qwkv" format:4 log_time:8 flush_at:8 flush_awaits_time:1 item_count:8
//! item*  key_length:1 flags:4 unique:8 deadline:8 awaits_time:1 recache:1 value_length:4 key value
//! "vkwq"
//! ```
//!
//! Of `recache`, 1 says that the value is stale and 2 that a client has won the right to store it anew.
//! Format 2, which is read too, has no such byte.
//!
//! What awaits its time (1, else 0) is later by as much as the next tick moves the log's time.
use std::io::{self, Read, Write};
use std::sync::Arc;

use quorumwire_interfaces::Frozen;

use super::Store;
use super::item::{Item, NEVER, Recache};
use super::shards::Shard;
use crate::{KEY_BYTES_MAX, Key, VALUE_BYTES_MAX};

const MAGIC: [u8; 4] = *b"qwkv";
const FORMAT: u32 = 3;
/// The one before, without `recache`.
const FORMAT_BEFORE: u32 = 2;

const STALE: u8 = 1;
const WON: u8 = 2;
const END: [u8; 4] = *b"vkwq";

/// Bytes that are collected before they are handed to the writer.
const BUFFER_BYTES: usize = 64 << 10;

/// The state at one moment.
pub(super) struct FrozenStore {
    shards: Vec<Arc<Shard>>,
    log_time_ms: u64,
    flush_at_ms: u64,
    flush_awaits_time: bool,
}

impl FrozenStore {
    pub(super) const fn new(
        shards: Vec<Arc<Shard>>,
        log_time_ms: u64,
        (flush_at_ms, flush_awaits_time): (u64, bool),
    ) -> Self {
        Self {
            shards,
            log_time_ms,
            flush_at_ms,
            flush_awaits_time,
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
        writer.write_all(&FORMAT.to_be_bytes())?;
        writer.write_all(&self.log_time_ms.to_be_bytes())?;
        writer.write_all(&self.flush_at_ms.to_be_bytes())?;
        writer.write_all(&[u8::from(self.flush_awaits_time)])?;
        writer.write_all(&(items.len() as u64).to_be_bytes())?;
        for item in items {
            let value_bytes = u32::try_from(item.value().len()).map_err(io::Error::other)?;
            writer.write_all(&[item.key_bytes()])?;
            writer.write_all(&item.flags.to_be_bytes())?;
            writer.write_all(&item.unique.to_be_bytes())?;
            writer.write_all(&item.deadline_ms.to_be_bytes())?;
            writer.write_all(&[u8::from(item.awaits_time), recache_byte(item.recache)])?;
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
    let has_recache = match u32::from_be_bytes(array(reader)?) {
        FORMAT => true,
        FORMAT_BEFORE => false,
        _ => return Err(bad("snapshot of another format")),
    };
    store.log_time_ms = u64::from_be_bytes(array(reader)?);
    store.flush_at_ms = u64::from_be_bytes(array(reader)?);
    if store.flush_at_ms <= store.log_time_ms {
        return Err(bad("snapshot with a flush in its past"));
    }
    store.flush_awaits_time = read_awaits_time(reader, store.flush_at_ms)?;
    let item_count = u64::from_be_bytes(array(reader)?);
    let mut previous_key: Option<Vec<u8>> = None;
    for _ in 0..item_count {
        let item = read_item(reader, has_recache)?;
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
    if array(reader)? == END {
        Ok(())
    } else {
        Err(bad("snapshot without its end"))
    }
}

fn read_item(reader: &mut dyn Read, has_recache: bool) -> io::Result<Item> {
    let [key_bytes] = array(reader)?;
    if usize::from(key_bytes) > KEY_BYTES_MAX {
        return Err(bad("snapshot with a bad key"));
    }
    let flags = u32::from_be_bytes(array(reader)?);
    let unique = u64::from_be_bytes(array(reader)?);
    let deadline_ms = u64::from_be_bytes(array(reader)?);
    let awaits_time = read_awaits_time(reader, deadline_ms)?;
    let recache = if has_recache {
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
        unique,
        (deadline_ms, awaits_time),
        recache,
    ))
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

/// What never ends awaits nothing.
fn read_awaits_time(reader: &mut dyn Read, end_ms: u64) -> io::Result<bool> {
    match array(reader)? {
        [0] => Ok(false),
        [1] if end_ms != NEVER => Ok(true),
        _ => Err(bad("snapshot with an end that awaits no time")),
    }
}

impl Store {
    fn insert_restored(&mut self, mut item: Item) -> io::Result<()> {
        let key = Key::binary(item.key()).ok_or_else(|| bad("snapshot with a bad key"))?;
        let hash = self.items.hash(key);
        self.counts.bytes += item.bytes() as u64;
        self.alarms.cover(&mut item, hash);
        let awaits_time = item.awaits_time;
        self.items.insert(hash, item);
        self.note_awaiting(hash, awaits_time);
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
