//! The disk of a simulated machine: faults over memory; when a sync of the log fails, the kernel drops
//! what was written and not synced, so that syncing again proves nothing. The bytes stay readable.
use quorumwire_storage::{Disk, DiskFile, FaultyDisk, MemoryDisk};
use std::io::{self, IoSlice};

/// See the module.
#[derive(Clone, Debug)]
pub struct ForgetfulDisk(pub FaultyDisk<MemoryDisk>);

struct ForgetfulFile {
    file: Box<dyn DiskFile>,
    /// Of a file of the log: its process dies of a failed sync, so nothing else suffers.
    disk: Option<MemoryDisk>,
}

impl ForgetfulDisk {
    fn wrap(&self, name: &str, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(ForgetfulFile {
            file,
            disk: name.starts_with("log-").then(|| self.0.inner().clone()),
        })
    }
}

impl Disk for ForgetfulDisk {
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrap(name, self.0.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrap(name, self.0.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.0.sync_folder()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }
}

impl DiskFile for ForgetfulFile {
    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.file.write_at(offset, slices)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn file_bytes(&self) -> io::Result<u64> {
        self.file.file_bytes()
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        self.file.next_data(offset)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.file.sync_data();
        if let (Err(_), Some(disk)) = (&synced, &self.disk) {
            disk.forget_unsynced();
        }
        synced
    }
}
