//! The mark: a small file beside the log that says how far the log was synced. It is written after
//! every sync and itself only synced at a start, so it may lag behind, never run ahead.
//!
//! ```text
//!  slot (at 0 and at 512): | crc32c | magic | incarnation (8) | sequence (8) | offset (8) | chain |
//! ```
//! Big-endian. The slots are written in turn: one torn write leaves the other.
use crate::disk::{Disk, DiskFile, is_unreadable, read_full_at, write_all_at};
use crate::sealed::{is_whole, seal};
use crate::segment::{Position, u32_at, u64_at};
use bytes::Bytes;
use quorumwire_interfaces::Incarnation;
use std::io;

/// Name of the mark's file.
pub(crate) const MARK_NAME: &str = "mark";

/// "QWMK": second word of every slot.
const MARK_MAGIC: u32 = 0x5157_4d4b;

const SLOT_BYTES: usize = 36;
const SLOT_PLACES: [u64; 2] = [0, 512];

/// A place in the log, and the chain of its segment up to there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tail {
    pub position: Position,
    pub chain: u32,
}

/// The mark, open for writing.
pub(crate) struct Mark {
    file: Box<dyn DiskFile>,
    incarnation: Incarnation,
    next_place: usize,
}

impl Mark {
    /// Makes the mark anew and writes both slots. Durable after [`sync`](Self::sync) and a
    /// `sync_folder`.
    pub(crate) fn create(
        disk: &dyn Disk,
        incarnation: Incarnation,
        synced: Tail,
    ) -> io::Result<Self> {
        let mut mark = Self {
            file: disk.create(MARK_NAME)?,
            incarnation,
            next_place: 0,
        };
        mark.write(synced)?;
        mark.write(synced)?;
        Ok(mark)
    }

    /// Opens the mark that is there, and writes one slot; makes it anew if there is none.
    pub(crate) fn open(
        disk: &dyn Disk,
        incarnation: Incarnation,
        synced: Tail,
    ) -> io::Result<Self> {
        let file = match disk.open(MARK_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Self::create(disk, incarnation, synced);
            }
            Err(error) => return Err(error),
        };
        let mut mark = Self {
            file,
            incarnation,
            next_place: 0,
        };
        mark.write(synced)?;
        mark.write(synced)?;
        Ok(mark)
    }

    /// What the mark on the disk says, as far as it can be read; `None` if nothing can be known, because
    /// there is none or its bytes are lost. Any other error is one: to go on without a mark that is there
    /// would be to take lost entries for entries that were never synced.
    pub(crate) fn read(disk: &dyn Disk, incarnation: Incarnation) -> io::Result<Option<Tail>> {
        let file = match disk.open(MARK_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound || is_unreadable(&error) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut newest: Option<Tail> = None;
        for place in SLOT_PLACES {
            let mut slot = [0; SLOT_BYTES];
            let read = match read_full_at(&*file, place, &mut slot) {
                Ok(read) => read,
                Err(error) if is_unreadable(&error) => continue,
                Err(error) => return Err(error),
            };
            let whole = read == SLOT_BYTES
                && is_whole(&slot)
                && u32_at(&slot, 4) == MARK_MAGIC
                && u64_at(&slot, 8) == incarnation.0;
            let found = whole.then(|| Tail {
                position: Position {
                    sequence: u64_at(&slot, 16),
                    offset: u64_at(&slot, 24),
                },
                chain: u32_at(&slot, 32),
            });
            newest = newest
                .into_iter()
                .chain(found)
                .max_by_key(|tail| tail.position);
        }
        Ok(newest)
    }

    /// Says that everything up to here was synced.
    pub(crate) fn write(&mut self, synced: Tail) -> io::Result<()> {
        let mut slot = [0; SLOT_BYTES];
        slot[4..8].copy_from_slice(&MARK_MAGIC.to_be_bytes());
        slot[8..16].copy_from_slice(&self.incarnation.0.to_be_bytes());
        slot[16..24].copy_from_slice(&synced.position.sequence.to_be_bytes());
        slot[24..32].copy_from_slice(&synced.position.offset.to_be_bytes());
        slot[32..].copy_from_slice(&synced.chain.to_be_bytes());
        seal(&mut slot);
        let place = SLOT_PLACES[self.next_place];
        self.next_place = 1 - self.next_place;
        write_all_at(&*self.file, place, &[Bytes::copy_from_slice(&slot)])
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
