//! A folder in memory: for memory mode, and, with power cuts, for tests and simulations.
use super::{Disk, DiskFile, FILES_MAX};
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a power cut tears or keeps as a whole.
const SECTOR_BYTES: usize = 512;

/// A folder in memory. Clones are the same folder.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    names: Arc<Mutex<Names>>,
    /// Keep what is durable apart from what is only written.
    power_cuts: bool,
}

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<String, SharedBody>,
    durable: BTreeMap<String, SharedBody>,
    /// What happened to names since the last `sync_folder`.
    changes: Vec<NameChange>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Put(String, SharedBody),
    Rename(String, String),
    Remove(String),
}

type SharedBody = Arc<Mutex<Body>>;

#[derive(Debug, Default)]
struct Body {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Ranges written since the last `sync_data`.
    dirty: Vec<(usize, usize)>,
    power_cuts: bool,
}

impl MemoryDisk {
    /// An empty folder for which power is never cut.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty folder that remembers what is durable, for [`after_power_cut`](Self::after_power_cut).
    /// It needs twice the memory.
    #[must_use]
    pub fn with_power_cuts() -> Self {
        Self {
            power_cuts: true,
            ..Self::default()
        }
    }

    /// The folder as it is found after a power cut at this moment: all that was synced is there; of
    /// what was not, any sectors may be there or not, files may have their old or their new length,
    /// and of the changes to names a beginning may be there. `choose(n)` decides, with a number below
    /// `n`. This folder itself stays as it is.
    #[must_use]
    pub fn after_power_cut(&self, choose: &mut dyn FnMut(u64) -> u64) -> Self {
        assert!(self.power_cuts, "made without power cuts");
        let names = lock(&self.names);
        let mut survivors = names.durable.clone();
        let kept = choose(names.changes.len() as u64 + 1);
        for (_, change) in (0..kept).zip(&names.changes) {
            change.apply(&mut survivors);
        }
        let survivors: BTreeMap<String, SharedBody> = survivors
            .into_iter()
            .map(|(name, body)| {
                let content = lock(&body).after_power_cut(choose);
                let body = Body {
                    durable: content.clone(),
                    now: content,
                    dirty: Vec::new(),
                    power_cuts: true,
                };
                (name, Arc::new(Mutex::new(body)))
            })
            .collect();
        let names = Names {
            now: survivors.clone(),
            durable: survivors,
            changes: Vec::new(),
        };
        Self {
            names: Arc::new(Mutex::new(names)),
            power_cuts: true,
        }
    }

    /// The folder as it is now, by itself: what is written to either is not in the other. All of it counts
    /// as durable, as in a copy that somebody has put in place.
    #[must_use]
    pub fn copy(&self) -> Self {
        let bodies = |(name, body): (&String, &SharedBody)| {
            let content = lock(body).now.clone();
            let body = Body {
                durable: content.clone(),
                now: content,
                dirty: Vec::new(),
                power_cuts: self.power_cuts,
            };
            (name.clone(), Arc::new(Mutex::new(body)))
        };
        let now: BTreeMap<_, _> = lock(&self.names).now.iter().map(bodies).collect();
        let names = Names {
            durable: now.clone(),
            now,
            changes: Vec::new(),
        };
        Self {
            names: Arc::new(Mutex::new(names)),
            power_cuts: self.power_cuts,
        }
    }

    /// What kernels do after a failed sync: what was written and not synced stays readable and counts
    /// as clean, so that no later sync writes it, unless it is written again.
    pub fn forget_unsynced(&self) {
        for body in lock(&self.names).now.values() {
            lock(body).dirty.clear();
        }
    }

    fn change(&self, names: &mut Names, change: NameChange) {
        change.apply(&mut names.now);
        if self.power_cuts {
            names.changes.push(change);
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, SharedBody>) {
        match self {
            Self::Put(name, body) => {
                names.insert(name.clone(), Arc::clone(body));
            }
            Self::Rename(from, to) => {
                if let Some(body) = names.remove(from) {
                    names.insert(to.clone(), body);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl Body {
    fn after_power_cut(&self, choose: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
        let length = match choose(2) {
            0 => self.durable.len(),
            _ => self.now.len(),
        };
        let mut content = self.durable.clone();
        content.resize(length.max(self.durable.len()), 0);
        // None, all, a beginning, or any of the sectors written since the last sync.
        let (manner, cut) = (choose(4), choose(self.now.len() as u64 + 1));
        for &(start, end) in &self.dirty {
            let end = end.min(content.len()).min(self.now.len());
            let mut at = start;
            while at < end {
                let sector_end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                let kept = match manner {
                    0 => false,
                    1 => true,
                    2 => (at as u64) < cut,
                    _ => choose(2) == 1,
                };
                if kept {
                    content[at..sector_end].copy_from_slice(&self.now[at..sector_end]);
                }
                at = sector_end;
            }
        }
        content.truncate(length);
        content
    }

    fn touch(&mut self, start: usize, end: usize) {
        if self.power_cuts {
            self.dirty.push((start, end));
        }
    }
}

impl Disk for MemoryDisk {
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        match lock(&self.names).now.get(name) {
            Some(body) => Ok(Box::new(MemoryFile(Arc::clone(body)))),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let body = Arc::new(Mutex::new(Body {
            power_cuts: self.power_cuts,
            ..Body::default()
        }));
        let change = NameChange::Put(name.to_owned(), Arc::clone(&body));
        self.change(&mut lock(&self.names), change);
        Ok(Box::new(MemoryFile(body)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = lock(&self.names);
        if !names.now.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(
            &mut names,
            NameChange::Rename(from.to_owned(), to.to_owned()),
        );
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut names = lock(&self.names);
        if !names.now.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(&mut names, NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = lock(&self.names);
        if names.now.len() > FILES_MAX {
            return Err(io::Error::other(format!("over {FILES_MAX} files")));
        }
        Ok(names.now.keys().cloned().collect())
    }

    fn sync_folder(&self) -> io::Result<()> {
        if self.power_cuts {
            let mut names = lock(&self.names);
            names.durable = names.now.clone();
            names.changes.clear();
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// A file knows of each block of so many bytes whether there is anything but zeros in it.
const BLOCK_BYTES: usize = 4096;

#[derive(Debug)]
struct MemoryFile(SharedBody);

impl DiskFile for MemoryFile {
    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut body = lock(&self.0);
        let start = position(offset)?;
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let end = start
            .checked_add(bytes)
            .ok_or(io::ErrorKind::FileTooLarge)?;
        if body.now.len() < end {
            body.now.resize(end, 0);
        }
        let mut at = start;
        for slice in slices {
            body.now[at..at + slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
        body.touch(start, end);
        Ok(bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let body = lock(&self.0);
        let rest = body.now.get(position(offset)?..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn file_bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.0).now.len() as u64)
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        let body = lock(&self.0);
        let end = body.now.len();
        let start = position(offset)?.min(end);
        let written = body.now[start..].iter().position(|byte| *byte != 0);
        let block_start = |at: usize| at - at % BLOCK_BYTES;
        Ok(written.map_or(end, |at| block_start(start + at).max(start)) as u64)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut body = lock(&self.0);
        let bytes = position(bytes)?;
        if body.now.len() < bytes {
            body.now.resize(bytes, 0);
        }
        Ok(())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let mut body = lock(&self.0);
        let (cut, end) = (position(bytes)?, body.now.len());
        body.now.truncate(cut);
        body.touch(cut, end);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut body = lock(&self.0);
        let body = &mut *body;
        if body.power_cuts {
            body.durable.resize(body.now.len(), 0);
            for (start, end) in body.dirty.drain(..) {
                let end = end.min(body.now.len());
                if start < end {
                    body.durable[start..end].copy_from_slice(&body.now[start..end]);
                }
            }
        }
        Ok(())
    }
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panicking thread left is as whole as what a killed process leaves.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
