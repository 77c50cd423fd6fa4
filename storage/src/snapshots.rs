//! Snapshot files in the folder: written aside and renamed, checked as a whole before anything of them
//! is used or sent. What is in them is the state machine's business.
use crate::disk::{ASIDE_SUFFIX, Disk, DiskFile, is_unreadable, read_full_at, write_all_at};
use crate::mutants::mutant;
use crate::watch::{Watch, WatchedReader};
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{GroupId, Index, Lineage, Term};
use quorumwire_wire::{SnapshotError as FormatError, SnapshotHead, SnapshotReader, SnapshotWriter};
use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Snapshots kept: the newest, and one that may still be on its way to somebody.
pub const SNAPSHOTS_KEPT: usize = 2;

/// A snapshot that is gone is held open for who is sent it, until so many newer ones were taken without a
/// piece of it being asked for.
const NEWER_MAX: u32 = 16;

/// Bytes read or written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Name of the file a snapshot is received into.
const RECEIVING_NAME: &str = "receiving.tmp";

/// Why a snapshot could not be written, read or taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Its bytes are not what was written. It is never used; the text says which file and why.
    #[error("{0}")]
    Damaged(String),
    /// It is whole, and not what was asked for.
    #[error("snapshot up to {found} of group {found_group}, expected {expected}")]
    Other {
        /// Last index and term of the one found.
        found: String,
        /// Its group.
        found_group: GroupId,
        /// Last index and term expected.
        expected: String,
    },
    /// It is whole, and of another cluster of the same name.
    #[error(
        "a snapshot of lineage {found}, and this folder is of lineage {expected}: two clusters of one name"
    )]
    OtherLineage {
        /// The one it names.
        found: Lineage,
        /// The folder's.
        expected: Lineage,
    },
    /// A piece does not follow the piece before it: the transfer must begin anew.
    #[error("piece at byte {offset}, expected at {expected}")]
    Gap {
        /// Where the piece belongs.
        offset: u64,
        /// Where the next piece belongs.
        expected: u64,
    },
    /// It was written by a newer version; the text says which.
    #[error("{0}")]
    Newer(String),
    /// The disk failed, or is full (kind `StorageFull`).
    #[error("snapshot {what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What the disk said.
        source: io::Error,
    },
}

/// The snapshots of one group. Clones share everything; usable from any thread.
#[derive(Clone)]
pub struct Snapshots {
    shared: Arc<Shared>,
}

struct Shared {
    disk: Arc<dyn Disk>,
    group: GroupId,
    /// The snapshots being read piece by piece, at most [`SNAPSHOTS_KEPT`], the last one read in front.
    reading: Mutex<VecDeque<Reading>>,
    receiving: Mutex<Option<Receiving>>,
    /// Held while names change.
    names: Mutex<()>,
}

/// A snapshot being read piece by piece: checked once, then held open, so that it can be read on when newer
/// ones have taken its place.
struct Reading {
    file: SnapshotFile,
    /// To its end: only who has all of it can have found damage in it.
    read_to_end: bool,
    /// Snapshots put in their places since it was read last.
    newer: u32,
}

struct Receiving {
    last_index: Index,
    file: Box<dyn DiskFile>,
    bytes: u64,
}

/// A snapshot on disk, checked from its first to its last byte when it was opened.
#[derive(Clone)]
pub struct SnapshotFile {
    file: Arc<dyn DiskFile>,
    head: SnapshotHead,
    total_bytes: u64,
}

/// The files of snapshots there are, from their names: last index and term, newest first.
pub(crate) fn snapshot_places(names: &[String]) -> Vec<(Index, Term)> {
    let mut places: Vec<_> = names.iter().filter_map(|name| parse_name(name)).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places
}

/// Name of the file of the snapshot with this last entry.
pub(crate) fn snapshot_name((index, term): (Index, Term)) -> String {
    format!("snapshot-{:016x}-{:016x}", index.0, term.0)
}

fn parse_name(name: &str) -> Option<(Index, Term)> {
    let (index, term) = name.strip_prefix("snapshot-")?.split_once('-')?;
    let index = Index(u64::from_str_radix(index, 16).ok()?);
    let term = Term(u64::from_str_radix(term, 16).ok()?);
    (snapshot_name((index, term)) == name).then_some((index, term))
}

impl Snapshots {
    pub(crate) fn new(disk: Arc<dyn Disk>, group: GroupId) -> Self {
        Self {
            shared: Arc::new(Shared {
                disk,
                group,
                reading: Mutex::new(VecDeque::new()),
                receiving: Mutex::new(None),
                names: Mutex::new(()),
            }),
        }
    }

    /// Writes a snapshot whose body is what `body` writes, and makes it durable. Older ones beyond
    /// [`SNAPSHOTS_KEPT`] are removed. Takes as long as the disk takes: for a thread of its own.
    pub fn create(
        &self,
        head: &SnapshotHead,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), SnapshotError> {
        let name = snapshot_name((head.last_index, head.last_term));
        let aside = format!("{name}{ASIDE_SUFFIX}");
        let result = self.write_aside(&aside, head, body);
        if let Err(source) = result {
            // What is left of it is removed at the next start at the latest.
            let _ = self.shared.disk.remove(&aside);
            return Err(io_error("could not be written")(source));
        }
        self.put_in_place(&aside, &name)
    }

    /// Opens and checks the snapshot with this last index; `None` if there is none.
    pub fn open(&self, last_index: Index) -> Result<Option<SnapshotFile>, SnapshotError> {
        self.open_watched(last_index, &mut |_, _| {})
    }

    /// The same; `watch` hears how many bytes were checked, and of how many.
    pub fn open_watched(
        &self,
        last_index: Index,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<SnapshotFile>, SnapshotError> {
        let names = self.shared.disk.list().map_err(io_error("list"))?;
        let place = snapshot_places(&names)
            .into_iter()
            .find(|place| place.0 == last_index);
        match place {
            Some(place) => self.open_place(place, watch).map(Some),
            None => Ok(None),
        }
    }

    /// Reads a piece of the snapshot with this last index, and how long its file is; `None` if there is none.
    /// The first piece takes long, because the whole file is checked before, as does any after an error and
    /// the first one of a transfer after one that had all of it.
    pub fn read_chunk(
        &self,
        last_index: Index,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Option<(Bytes, u64)>, SnapshotError> {
        let mut reading = lock(&self.shared.reading);
        let place = reading
            .iter()
            .position(|it| it.file.head.last_index == last_index);
        let held = place.and_then(|place| reading.remove(place));
        let mut current = match held {
            // Who begins anew with all of it has found the copy damaged, if not another member begins.
            Some(held) if offset > 0 || !held.read_to_end => held,
            Some(_) | None => match self.open(last_index)? {
                Some(file) => Reading {
                    file,
                    read_to_end: false,
                    newer: 0,
                },
                None => return Ok(None),
            },
        };
        let chunk = current.file.read_chunk(offset, bytes_max)?;
        let total_bytes = current.file.total_bytes;
        current.read_to_end |= offset + chunk.len() as u64 >= total_bytes;
        current.newer = 0;
        reading.truncate(SNAPSHOTS_KEPT - 1);
        reading.push_front(current);
        Ok(Some((chunk, total_bytes)))
    }

    /// Takes a piece of a snapshot that is being received; offset 0 begins anew. Where the next piece
    /// belongs. Nothing of it counts before [`install`](Self::install).
    pub fn store_chunk(
        &self,
        last_index: Index,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, SnapshotError> {
        let mut receiving = lock(&self.shared.receiving);
        if offset == 0 {
            *receiving = None;
            let file = self
                .shared
                .disk
                .create(RECEIVING_NAME)
                .map_err(io_error("could not be received"))?;
            *receiving = Some(Receiving {
                last_index,
                file,
                bytes: 0,
            });
        }
        let gap = |expected| SnapshotError::Gap { offset, expected };
        let Some(current) = receiving.as_mut() else {
            return Err(gap(0));
        };
        if current.last_index != last_index {
            return Err(gap(0));
        }
        if current.bytes != offset {
            return Err(gap(current.bytes));
        }
        let next = offset + bytes.len() as u64;
        if let Err(source) = write_all_at(&*current.file, offset, &[bytes]) {
            *receiving = None;
            let _ = self.shared.disk.remove(RECEIVING_NAME);
            return Err(io_error("could not be received")(source));
        }
        current.bytes = next;
        Ok(next)
    }

    /// Checks the received snapshot from its first to its last byte, makes it durable and gives it
    /// its name. Whatever the outcome, nothing is being received afterwards.
    pub fn install(
        &self,
        last_index: Index,
        last_term: Term,
    ) -> Result<SnapshotHead, SnapshotError> {
        self.install_watched((last_index, last_term), Lineage::default(), &mut |_, _| {})
    }

    /// The same, in the folder of a cluster of this lineage, if that is known: what is of another one does
    /// not get there. `watch` hears how many bytes were checked, and of how many.
    pub fn install_watched(
        &self,
        (last_index, last_term): (Index, Term),
        lineage: Lineage,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<SnapshotHead, SnapshotError> {
        let current = lock(&self.shared.receiving).take();
        let Some(current) = current.filter(|current| current.last_index == last_index) else {
            return Err(SnapshotError::Gap {
                offset: 0,
                expected: 0,
            });
        };
        let place = (last_index, last_term);
        let checked = check(Arc::from(current.file), self.shared.group, place, watch);
        let checked = checked.and_then(|file| match file.head.membership.lineage {
            found if lineage.contradicts(found) => Err(SnapshotError::OtherLineage {
                found,
                expected: lineage,
            }),
            _ => Ok(file),
        });
        let file = match checked {
            Ok(file) => file,
            Err(error) => {
                let _ = self.shared.disk.remove(RECEIVING_NAME);
                return Err(error);
            }
        };
        if !mutant("snapshot-not-synced") {
            file.file.sync_data().map_err(io_error("sync"))?;
        }
        self.put_in_place(RECEIVING_NAME, &snapshot_name(place))?;
        Ok(file.head)
    }

    pub(crate) fn open_place(
        &self,
        place: (Index, Term),
        watch: &mut Watch<'_>,
    ) -> Result<SnapshotFile, SnapshotError> {
        let file = self
            .shared
            .disk
            .open(&snapshot_name(place))
            .map_err(io_error("open"))?;
        check(Arc::from(file), self.shared.group, place, watch)
    }

    fn write_aside(
        &self,
        aside: &str,
        head: &SnapshotHead,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let file: Arc<dyn DiskFile> = Arc::from(self.shared.disk.create(aside)?);
        let out = BufWriter::with_capacity(
            BUFFER_BYTES,
            Cursor {
                file: Arc::clone(&file),
                offset: 0,
            },
        );
        let mut writer = SnapshotWriter::new(out, head)?;
        body(&mut writer)?;
        writer.finish()?.flush()?;
        if mutant("snapshot-not-synced") {
            return Ok(());
        }
        file.sync_data()
    }

    /// Renames durably, then removes what is not kept.
    fn put_in_place(&self, aside: &str, name: &str) -> Result<(), SnapshotError> {
        let disk = &self.shared.disk;
        let _names = lock(&self.shared.names);
        disk.rename(aside, name).map_err(io_error("rename"))?;
        disk.sync_folder().map_err(io_error("folder sync"))?;
        let names = disk.list().map_err(io_error("list"))?;
        let mut kept = snapshot_places(&names);
        for old in kept.split_off(SNAPSHOTS_KEPT.min(kept.len())) {
            // One that stays is removed after the next snapshot.
            let _ = disk.remove(&snapshot_name(old));
        }
        // One that is gone takes room on the disk as long as it is open.
        lock(&self.shared.reading).retain_mut(|it| {
            it.newer += 1;
            it.newer < NEWER_MAX || kept.contains(&it.file.log_position())
        });
        Ok(())
    }
}

impl SnapshotFile {
    /// What it stands for.
    #[must_use]
    pub const fn head(&self) -> &SnapshotHead {
        &self.head
    }

    /// How long the file is.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The state machine's bytes, checked again as they are read.
    pub fn body(&self) -> Result<impl Read + use<>, SnapshotError> {
        SnapshotReader::new(self.reader()).map_err(|error| of_format(error, &self.head_place()))
    }

    /// At most `bytes_max` bytes of the file as it is, from `offset` on; empty at its end.
    pub fn read_chunk(&self, offset: u64, bytes_max: usize) -> Result<Bytes, SnapshotError> {
        let left = self.total_bytes.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max));
        let mut chunk = BytesMut::zeroed(wanted);
        let read = read_full_at(&*self.file, offset, &mut chunk).map_err(io_error("read"))?;
        if read < wanted {
            let name = self.head_place();
            return Err(SnapshotError::Damaged(format!("{name} has become shorter")));
        }
        Ok(chunk.freeze())
    }

    fn log_position(&self) -> (Index, Term) {
        (self.head.last_index, self.head.last_term)
    }

    fn head_place(&self) -> String {
        snapshot_name(self.log_position())
    }

    fn reader(&self) -> BufReader<Cursor> {
        let cursor = Cursor {
            file: Arc::clone(&self.file),
            offset: 0,
        };
        // The buffer is cleared before it is used: no more of it than the file can fill.
        let file_bytes = usize::try_from(self.total_bytes).unwrap_or(BUFFER_BYTES);
        BufReader::with_capacity(file_bytes.clamp(1, BUFFER_BYTES), cursor)
    }
}

/// Reads all of a file and checks that it is the snapshot of this group and place.
fn check(
    file: Arc<dyn DiskFile>,
    group: GroupId,
    place: (Index, Term),
    watch: &mut Watch<'_>,
) -> Result<SnapshotFile, SnapshotError> {
    let name = snapshot_name(place);
    let total_bytes = file.file_bytes().map_err(io_error("length"))?;
    let mut checked = SnapshotFile {
        file,
        head: SnapshotHead::default(),
        total_bytes,
    };
    let reader = WatchedReader::new(checked.reader(), total_bytes, watch);
    let reader = SnapshotReader::new(reader).map_err(|error| of_format(error, &name))?;
    checked.head = reader.head().clone();
    let head = &checked.head;
    if (head.last_index, head.last_term) != place || head.group != group {
        return Err(SnapshotError::Other {
            found: format!("{} of term {}", head.last_index, head.last_term),
            found_group: head.group,
            expected: format!("{} of term {} of group {group}", place.0, place.1),
        });
    }
    if !mutant("snapshot-not-checked") {
        reader.verify().map_err(|error| of_format(error, &name))?;
    }
    Ok(checked)
}

fn of_format(error: FormatError, name: &str) -> SnapshotError {
    match error {
        FormatError::Io(error) if !is_unreadable(&error) => io_error("read")(error),
        FormatError::Version { .. } => SnapshotError::Newer(format!("{name}: {error}")),
        FormatError::Io(_)
        | FormatError::Magic { .. }
        | FormatError::TooLong { .. }
        | FormatError::Checksum(_)
        | FormatError::Length { .. }
        | FormatError::Short
        | FormatError::Trailing
        | FormatError::Malformed(_) => SnapshotError::Damaged(format!("{name}: {error}")),
    }
}

/// A file as a stream.
struct Cursor {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Write for Cursor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self
            .file
            .write_at(self.offset, &[io::IoSlice::new(bytes)])?;
        self.offset += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn io_error(what: &'static str) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { what, source }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
