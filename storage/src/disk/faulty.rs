//! A disk around a disk that fails when it is told to: failed syncs, no room, power gone at a given
//! operation, writes that land elsewhere, flipped bits.
use super::{Disk, DiskFile};
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What shall go wrong, and what happened so far. Everything that counts down or up counts over all
/// files of the disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// So many syncs (of data or folder) succeed, then one fails with an I/O error.
    pub syncs_until_failure: Option<u64>,
    /// So many bytes can be written or allocated, then there is no room: the write before is short.
    pub space_bytes: Option<u64>,
    /// The file system sets no space aside: `allocate` does nothing, and room is found missing only
    /// by writes.
    pub no_allocation: bool,
    /// So many changes (writes, syncs, creations, ...) succeed, then everything fails for ever.
    pub changes_until_death: Option<u64>,
    /// So many writes succeed, then one is carried out so many bytes before its place (or at 0).
    pub misdirect: Option<(u64, u64)>,
    /// So many reads succeed, then all fail with an I/O error.
    pub reads_until_failure: Option<u64>,
    /// So many files can be opened or made, then none: the process has no handle left for one.
    pub opens_until_no_handle: Option<u64>,
    /// So many operations of any kind succeed, then one fails for want of memory.
    pub operations_until_no_memory: Option<u64>,
    /// Operations that failed for want of a handle or of memory.
    pub starved: u64,
    /// Changes carried out.
    pub changes: u64,
    /// Data syncs carried out.
    pub data_syncs: u64,
    /// Writes carried out, short ones included.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
}

/// A disk that carries out [`Faults`]. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct FaultyDisk<D> {
    inner: D,
    faults: Arc<Mutex<Faults>>,
}

impl<D: Disk> FaultyDisk<D> {
    /// A disk without faults, until some are set.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            faults: Arc::default(),
        }
    }

    /// The faults to come and the counts so far, to read and to set.
    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk below.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// Flips one bit of a file, behind everybody's back.
    pub fn flip_bit(&self, name: &str, bit: u64) -> io::Result<()> {
        let file = self.inner.open(name)?;
        let mut byte = [0];
        if file.read_at(bit / 8, &mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        byte[0] ^= 1 << (bit % 8);
        file.write_at(bit / 8, &[IoSlice::new(&byte)])?;
        Ok(())
    }
}

impl Faults {
    /// Takes a handle for a file that is about to be opened.
    fn take_handle(&mut self) -> io::Result<()> {
        match &mut self.opens_until_no_handle {
            None => Ok(()),
            Some(0) => {
                self.starved += 1;
                Err(rustix::io::Errno::MFILE.into())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// Takes memory for an operation.
    fn take_memory(&mut self) -> io::Result<()> {
        match &mut self.operations_until_no_memory {
            None => Ok(()),
            Some(0) => {
                self.operations_until_no_memory = None;
                self.starved += 1;
                Err(rustix::io::Errno::NOMEM.into())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// Counts a change that is about to happen.
    fn change(&mut self) -> io::Result<()> {
        self.take_memory()?;
        if let Some(left) = &mut self.changes_until_death {
            *left = left.checked_sub(1).ok_or_else(dead)?;
        }
        self.changes += 1;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.change()?;
        match self.syncs_until_failure {
            Some(0) => {
                self.syncs_until_failure = None;
                Err(broken())
            }
            Some(left) => {
                self.syncs_until_failure = Some(left - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        self.take_memory()?;
        if self.changes_until_death == Some(0) {
            return Err(dead());
        }
        if let Some(left) = &mut self.reads_until_failure {
            *left = left.checked_sub(1).ok_or_else(broken)?;
        }
        Ok(())
    }

    /// Takes room for up to `bytes`; how much there was.
    fn take_space(&mut self, bytes: u64) -> io::Result<u64> {
        let Some(left) = &mut self.space_bytes else {
            return Ok(bytes);
        };
        let taken = bytes.min(*left);
        *left -= taken;
        if taken == 0 && bytes > 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(taken)
    }

    /// How far before its place this write is carried out.
    fn astray_bytes(&mut self) -> u64 {
        match self.misdirect {
            Some((0, bytes)) => {
                self.misdirect = None;
                bytes
            }
            Some((left, bytes)) => {
                self.misdirect = Some((left - 1, bytes));
                0
            }
            None => 0,
        }
    }
}

impl<D: Disk> Disk for FaultyDisk<D> {
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut faults = self.faults();
        faults.read()?;
        faults.take_handle()?;
        drop(faults);
        Ok(self.wrap(self.inner.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut faults = self.faults();
        faults.take_handle()?;
        faults.change()?;
        drop(faults);
        Ok(self.wrap(self.inner.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.faults().change()?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut faults = self.faults();
        faults.change()?;
        let freed = self.inner.open(name)?.file_bytes()?;
        self.inner.remove(name)?;
        if let Some(space) = &mut faults.space_bytes {
            *space += freed;
        }
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.faults().read()?;
        self.inner.list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.faults().sync()?;
        self.inner.sync_folder()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        match self.faults().space_bytes {
            Some(bytes) => Ok(bytes),
            None => self.inner.free_bytes(),
        }
    }
}

impl<D: Disk> FaultyDisk<D> {
    fn wrap(&self, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile {
            inner,
            faults: Arc::clone(&self.faults),
        })
    }
}

struct FaultyFile {
    inner: Box<dyn DiskFile>,
    faults: Arc<Mutex<Faults>>,
}

impl FaultyFile {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for FaultyFile {
    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut faults = self.faults();
        faults.change()?;
        // Overwriting what is there needs no room.
        let end = offset + bytes as u64;
        let new_bytes = end.saturating_sub(self.inner.file_bytes()?.max(offset));
        let old_bytes = bytes as u64 - new_bytes;
        let room = match faults.take_space(new_bytes) {
            Ok(taken) => taken,
            Err(_) if old_bytes > 0 => 0,
            Err(error) => return Err(error),
        };
        let offset = offset.saturating_sub(faults.astray_bytes());
        faults.writes += 1;
        let mut left = usize::try_from(old_bytes + room).expect("no longer than the slices");
        let mut written = 0;
        for slice in slices {
            let part = &slice[..slice.len().min(left)];
            if part.is_empty() {
                continue;
            }
            let at = offset + written as u64;
            written += self.inner.write_at(at, &[IoSlice::new(part)])?;
            left -= part.len();
        }
        Ok(written)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.faults().read()?;
        let read = self.inner.read_at(offset, buffer)?;
        self.faults().bytes_read += read as u64;
        Ok(read)
    }

    fn file_bytes(&self) -> io::Result<u64> {
        self.faults().read()?;
        self.inner.file_bytes()
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        self.faults().read()?;
        self.inner.next_data(offset)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut faults = self.faults();
        faults.change()?;
        if faults.no_allocation {
            return Ok(());
        }
        let wanted = bytes.saturating_sub(self.inner.file_bytes()?);
        let taken = faults.take_space(wanted)?;
        self.inner.allocate(bytes - (wanted - taken))?;
        if taken < wanted {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let mut faults = self.faults();
        faults.change()?;
        let freed = self.inner.file_bytes()?.saturating_sub(bytes);
        self.inner.truncate(bytes)?;
        if let Some(space) = &mut faults.space_bytes {
            *space += freed;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut faults = self.faults();
        faults.sync()?;
        faults.data_syncs += 1;
        self.inner.sync_data()
    }
}

fn dead() -> io::Error {
    io::Error::other("the power is gone")
}

fn broken() -> io::Error {
    rustix::io::Errno::IO.into()
}
