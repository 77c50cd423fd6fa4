//! The one way to a disk: a flat folder of files behind two small traits, so that a simulator can put
//! its own faults there. Knows nothing of what the files mean.
mod faulty;
mod folder;
mod memory;

pub use faulty::{Faults, FaultyDisk};
pub use folder::{FolderDisk, LOCK_NAME};
pub use memory::MemoryDisk;

use bytes::Bytes;
use std::io::{self, IoSlice};

/// Most slices handed to one vectored write (Linux's `IOV_MAX`).
pub const IO_SLICES_MAX: usize = 1024;

/// Most files a folder may hold; a folder with more is not ours.
pub const FILES_MAX: usize = 65_536;

/// A folder of files. Names are plain, without separators.
pub trait Disk: Send + Sync {
    /// Opens a file that exists, for reading and writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Makes an empty file, also in the place of one that exists. Survives a power cut only after
    /// [`sync_folder`](Self::sync_folder).
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, replacing what had it. Durable after `sync_folder`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; open handles to it stay usable. Durable after `sync_folder`.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files, in no particular order; more than [`FILES_MAX`] are an error.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes all creations, renames and removals durable.
    fn sync_folder(&self) -> io::Result<()>;

    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes the slices one after the other, beginning at `offset`. May write less than all; at most
    /// [`IO_SLICES_MAX`] slices at a time. The file grows as needed.
    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Reads into `buffer` from `offset` on. May read less than all; 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// How long the file is.
    fn file_bytes(&self) -> io::Result<u64>;

    /// A place from `offset` on, not beyond the file's end, before which nothing but zeros is to be read.
    /// Reading a part that was only set aside would cost as much as if something stood there. `offset`
    /// itself where nothing is known.
    fn next_data(&self, offset: u64) -> io::Result<u64>;

    /// Sets space aside so that the file can reach this length without running out of it; the new
    /// part reads as zeros. Does nothing where a file system has no such thing.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Cuts the file to this length, which is not beyond its end.
    fn truncate(&self, bytes: u64) -> io::Result<()>;

    /// Makes everything written so far durable. After an error nothing is known about what was
    /// written since the last success, and another call proves nothing.
    fn sync_data(&self) -> io::Result<()>;
}

/// Whether an error means that there is no room, rather than that the disk is broken.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Whether an error means that no file can be opened for now: the process, or the system, has as many open as
/// it may.
pub(crate) fn is_want_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

/// Whether an error means that the bytes are lost (a bad sector), rather than that something about the
/// process or the machine forbids to read them.
pub(crate) fn is_unreadable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// Writes all pieces one after the other from `offset` on.
pub(crate) fn write_all_at(
    file: &dyn DiskFile,
    mut offset: u64,
    pieces: &[Bytes],
) -> io::Result<()> {
    let mut storage: Vec<IoSlice<'_>> = pieces
        .iter()
        .filter(|piece| !piece.is_empty())
        .map(|piece| IoSlice::new(piece))
        .collect();
    let mut slices = storage.as_mut_slice();
    while !slices.is_empty() {
        let count = slices.len().min(IO_SLICES_MAX);
        match file.write_at(offset, &slices[..count]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `buffer` is full or the file ends; the number of bytes read.
pub(crate) fn read_full_at(
    file: &dyn DiskFile,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(offset + read as u64, &mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// All of a file that has at most so many bytes.
pub(crate) fn read_whole(file: &dyn DiskFile, bytes_max: u64) -> io::Result<Vec<u8>> {
    let length = file.file_bytes()?;
    if length > bytes_max {
        return Err(io::Error::other("the file is longer than any of ours"));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let read = read_full_at(file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Suffix of files being written that do not count yet.
pub(crate) const ASIDE_SUFFIX: &str = ".tmp";

/// Writes a file aside, makes it durable and only then gives it its name: after a power cut there is
/// either the old one or the whole new one.
pub(crate) fn replace_durably(disk: &dyn Disk, name: &str, content: Bytes) -> io::Result<()> {
    let aside = format!("{name}{ASIDE_SUFFIX}");
    let file = disk.create(&aside)?;
    write_all_at(&*file, 0, &[content])?;
    file.sync_data()?;
    disk.rename(&aside, name)?;
    disk.sync_folder()
}
