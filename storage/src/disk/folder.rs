//! A real folder on a real disk, held by one process at a time.
use super::{Disk, DiskFile, FILES_MAX};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the file whose lock says that a process is using the folder.
pub const LOCK_NAME: &str = "LOCK";

/// Longest text taken from a lock file to name its holder.
const HOLDER_BYTES_MAX: u64 = 32;

/// A folder of a real file system. As long as this value lives, no other process (and no other value
/// in this one) can open the same folder; when the process ends, however it ends, the folder is free.
#[derive(Debug)]
pub struct FolderDisk {
    path: PathBuf,
    folder: File,
    /// Held for its lock.
    _lock: File,
}

impl FolderDisk {
    /// Opens the folder, making it if it is not there, and locks it. If another process has it, the
    /// error is of kind `ResourceBusy` and names that process.
    pub fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK_NAME))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = Vec::new();
                lock.take(HOLDER_BYTES_MAX).read_to_end(&mut holder)?;
                let holder = String::from_utf8_lossy(&holder); // whatever it says, somebody has it
                let text = format!(
                    "{} is in use by process {}",
                    path.display(),
                    holder.trim_end()
                );
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The number is for people only, so that a full disk must not keep the replica from starting.
        let _ = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(Self {
            path: path.to_owned(),
            folder: File::open(path)?,
            _lock: lock,
        })
    }
}

impl Disk for FolderDisk {
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))?;
        Ok(Box::new(FolderFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.path.join(name))?;
        Ok(Box::new(FolderFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if !entry.file_type()?.is_file() || entry.file_name() == LOCK_NAME {
                continue;
            }
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
            if names.len() > FILES_MAX {
                let text = format!("{} holds over {FILES_MAX} files", self.path.display());
                return Err(io::Error::other(text));
            }
        }
        Ok(names)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let space = rustix::fs::fstatvfs(&self.folder)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

struct FolderFile(File);

impl DiskFile for FolderFile {
    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.0, slices, offset)?)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.0, buffer, offset)
    }

    fn file_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        use rustix::{fs::SeekFrom, io::Errno};
        let end = self.file_bytes()?;
        // Moves the file's own position, which nothing here uses.
        match rustix::fs::seek(&self.0, SeekFrom::Data(offset)) {
            Ok(found) => Ok(found.min(end)),
            Err(Errno::NXIO) => Ok(end),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(offset.min(end)),
            Err(error) => Err(error.into()),
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        use rustix::io::Errno;
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
