//! Where replicas keep their data, and what can go wrong there: full disks, rotten bytes, wiped
//! directories. Knows nothing of the files' layout.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::network::{NAME_PREFIX, is_running, owner_of};

/// The largest file that is searched for bytes.
const SEARCHED_BYTES_MAX: u64 = 256 << 20;

const MOUNTS: &str = "/proc/self/mountinfo";
const FILLER: &str = "filler";

/// A directory of a test's own, removed with everything mounted in it when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a directory of this name (beginning with the harness's prefix and the process id) where
    /// temporary files go, and removes those of dead runs.
    pub fn new(name: &str) -> Result<Self> {
        remove_leftovers();
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self { path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove_with_mounts(&self.path);
    }
}

/// Mounts an empty disk of `size_mib` MiB at `path`, which is made.
pub fn mount_small_disk(path: &Path, size_mib: u32) -> Result<()> {
    fs::create_dir_all(path)?;
    let options = CString::new(format!("size={size_mib}m"))?;
    mount(
        NAME_PREFIX,
        path,
        "tmpfs",
        MountFlags::empty(),
        options.as_c_str(),
    )
    .with_context(|| format!("mounting a tmpfs at {}", path.display()))
}

/// Takes every free byte of the small disk mounted at `mount_point`.
pub fn fill(mount_point: &Path) -> Result<()> {
    ensure!(
        mounts_below(mount_point).iter().any(|at| at == mount_point),
        "{} is no disk of its own; filling it would fill the machine's",
        mount_point.display()
    );
    let path = mount_point.join(FILLER);
    let mut filler = File::options().create(true).append(true).open(path)?;
    for chunk in [vec![0xFF; 1 << 20], vec![0xFF; 4096], vec![0xFF; 1]] {
        loop {
            match filler.write_all(&chunk) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Gives back what [`fill`] took.
pub fn make_room(mount_point: &Path) -> Result<()> {
    Ok(fs::remove_file(mount_point.join(FILLER))?)
}

/// Every place below `dir` where `bytes` stand: file and offset. Files of more than 256 MiB are an
/// error.
pub fn find_bytes(dir: &Path, bytes: &[u8]) -> Result<Vec<(PathBuf, u64)>> {
    let mut places = Vec::new();
    let mut to_visit = vec![dir.to_path_buf()];
    while let Some(path) = to_visit.pop() {
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                to_visit.push(entry.path());
                continue;
            }
            ensure!(
                entry.metadata()?.len() <= SEARCHED_BYTES_MAX,
                "{} is too large to search",
                entry.path().display()
            );
            let content = fs::read(entry.path())?;
            let found = content.windows(bytes.len()).enumerate();
            places.extend(
                found
                    .filter(|(_, window)| *window == bytes)
                    .map(|(offset, _)| (entry.path(), offset as u64)),
            );
        }
    }
    places.sort();
    Ok(places)
}

/// Flips one bit of the byte at `offset` of a file.
pub fn rot(path: &Path, offset: u64) -> Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut byte)?;
    byte[0] ^= 0x10;
    file.write_all_at(&byte, offset)?;
    Ok(())
}

fn remove_leftovers() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return; // making the directory will say what is wrong
    };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(owner_of);
        if owner.is_some_and(|pid| pid != std::process::id() && !is_running(pid)) {
            remove_with_mounts(&entry.path());
        }
    }
}

fn remove_with_mounts(path: &Path) {
    for mounted in mounts_below(path) {
        if let Err(error) = unmount(&mounted, UnmountFlags::DETACH) {
            eprintln!("{} stays mounted: {error}", mounted.display());
            return; // removing would empty the disk and not the directory
        }
    }
    if let Err(error) = fs::remove_dir_all(path) {
        eprintln!("{} stays behind: {error}", path.display());
    }
}

fn mounts_below(path: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string(MOUNTS).unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let below = points.map(PathBuf::from).filter(|at| at.starts_with(path));
    let mut below: Vec<_> = below.collect();
    below.reverse(); // the last mounted first
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(what: &str) -> Scratch {
        Scratch::new(&format!("{NAME_PREFIX}-{}-{what}", std::process::id())).expect("scratch")
    }

    #[test]
    fn fills_a_small_disk_to_the_last_byte_and_makes_room() {
        let scratch = scratch("fill");
        let disk = scratch.path().join("disk");
        mount_small_disk(&disk, 2).expect("mount (needs root)");
        let file = disk.join("data");
        fs::write(&file, b"x").expect("room");
        fill(&disk).expect("fill");
        let full = fs::write(disk.join("more"), [0; 4096]).expect_err("full");
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        make_room(&disk).expect("room");
        fs::write(disk.join("more"), [0; 4096]).expect("room again");
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists() && mounts_below(&path).is_empty());
    }

    #[test]
    fn never_fills_the_machines_own_disk() {
        let scratch = scratch("refuse");
        assert!(fill(scratch.path()).is_err());
        assert!(!scratch.path().join(FILLER).exists());
    }

    #[test]
    fn finds_bytes_and_rots_one() {
        let scratch = scratch("rot");
        let inner = scratch.path().join("a/b");
        fs::create_dir_all(&inner).expect("dirs");
        let (one, two) = (inner.join("one"), scratch.path().join("two"));
        fs::write(&one, b"..needle..needle").expect("write");
        fs::write(&two, b"needle").expect("write");
        let places = find_bytes(scratch.path(), b"needle").expect("search");
        assert_eq!(
            places,
            [(one.clone(), 2), (one.clone(), 10), (two.clone(), 0)]
        );
        rot(&one, 10).expect("rot");
        assert_eq!(fs::read(&one).expect("read"), b"..needle..~eedle");
        assert_eq!(
            find_bytes(scratch.path(), b"needle").expect("search").len(),
            2
        );
        assert!(rot(&two, 6).is_err());
    }

    #[test]
    fn removes_what_dead_runs_left() {
        let mut dead = std::process::Command::new("true").spawn().expect("true");
        dead.wait().expect("wait");
        let leftover = std::env::temp_dir().join(format!("{NAME_PREFIX}-{}-0", dead.id()));
        mount_small_disk(&leftover.join("disk"), 1).expect("mount");
        let _scratch = scratch("next");
        assert!(!leftover.exists());
    }
}
