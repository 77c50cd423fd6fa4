//! What a served program has saved: its folder, as one file without a name.
use anyhow::{Context as _, ensure};
use quorumwire_interfaces::LogTime;
use quorumwire_replay::{self as replay, Beginning, Checker, Turn};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

/// Bytes copied at once.
const COPIED_BYTES: usize = 1 << 18;

/// It. Gone with the last copy of this.
#[derive(Clone, Debug)]
pub struct SavedFolder(Arc<File>);

/// Reads a file without moving the place at which others read it.
struct FromStart<'a>(&'a File, u64);

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read_at(buffer, self.1)?;
        self.1 += count as u64;
        Ok(count)
    }
}

impl SavedFolder {
    /// All that lies in `from`, in a file that lies in `folder`.
    pub fn pack(from: &Path, folder: &Path) -> anyhow::Result<Self> {
        remove_sockets(from).with_context(|| format!("removing sockets in {}", from.display()))?;
        let file = tempfile::tempfile_in(folder).context("a file for what the program saved")?;
        let mut archive = tar::Builder::new(BufWriter::with_capacity(COPIED_BYTES, file));
        archive.mode(tar::HeaderMode::Deterministic);
        archive.follow_symlinks(false);
        archive
            .append_dir_all(".", from)
            .with_context(|| format!("packing {}", from.display()))?;
        let file = archive.into_inner()?.into_inner()?;
        Ok(Self(Arc::new(file)))
    }

    /// Puts it in place of all that lies in `to`.
    pub fn unpack(&self, to: &Path) -> anyhow::Result<()> {
        empty(to)?;
        let from = BufReader::with_capacity(COPIED_BYTES, FromStart(&self.0, 0));
        tar::Archive::new(from)
            .unpack(to)
            .with_context(|| format!("unpacking what the program saved in {}", to.display()))
    }
}

impl replay::Saved for SavedFolder {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut from = FromStart(&self.0, 0);
        let mut buffer = vec![0; COPIED_BYTES];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => writer.write_all(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read(folder: &Path, reader: &mut dyn Read) -> io::Result<Self> {
        let mut file = tempfile::tempfile_in(folder)?;
        io::copy(reader, &mut file)?;
        file.rewind()?;
        Ok(Self(Arc::new(file)))
    }
}

/// There is none: a program's state is carried from one place to another.
#[derive(Clone, Copy, Debug)]
pub enum NoProgram {}

impl replay::Program for NoProgram {
    type Saved = SavedFolder;

    fn has_room(&self) -> bool {
        match *self {}
    }

    fn begin(&mut self, _: &Beginning<'_, SavedFolder>) {
        match *self {}
    }

    fn turn(&mut self, _: &Turn<'_>) {
        match *self {}
    }

    fn save(&mut self, _signal: u8) {
        match *self {}
    }

    fn checker(&mut self) -> &mut Checker {
        match *self {}
    }

    fn deadline(&self) -> Option<LogTime> {
        match *self {}
    }
}

/// Whether a program that was told to save itself in this folder, and has ended so, has done it.
pub fn has_saved(program: &str, status: ExitStatus, folder: &Path) -> anyhow::Result<()> {
    ensure!(
        status.success(),
        "{program} was told to save itself and to end, and has ended otherwise ({status}): see option save-signal"
    );
    ensure!(
        fs::read_dir(folder)?.next().is_some(),
        "{program} has saved nothing in the folder that it was started in: tell it to save itself there, or give \
         --save-signal none"
    );
    Ok(())
}

/// A socket of a program that has ended is nothing, and cannot be packed.
fn remove_sockets(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            remove_sockets(&entry.path())?;
        } else if kind.is_socket() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes a folder with nothing in it.
pub fn empty(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_replay::Saved as _;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_folder_is_what_it_was() {
        let [from, to, kept] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        fs::write(from.path().join("dump"), vec![7; 3 * COPIED_BYTES]).unwrap();
        fs::create_dir(from.path().join("more")).unwrap();
        fs::write(from.path().join("more/file"), "text").unwrap();
        fs::write(to.path().join("stale"), "").unwrap();
        UnixListener::bind(from.path().join("more/socket")).unwrap();
        let saved = SavedFolder::pack(from.path(), kept.path()).unwrap();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        saved.write(&mut first).unwrap();
        saved.clone().write(&mut second).unwrap();
        assert!(first == second && !first.is_empty());
        let again = SavedFolder::read(kept.path(), &mut &first[..]).unwrap();
        again.unpack(to.path()).unwrap();
        let text = |name| fs::read(to.path().join(name)).unwrap();
        assert_eq!(text("dump"), vec![7; 3 * COPIED_BYTES]);
        assert_eq!(text("more/file"), b"text");
        assert!(!to.path().join("stale").exists() && !to.path().join("more/socket").exists());
        assert_eq!(
            fs::read_dir(kept.path()).unwrap().count(),
            0,
            "they have no names"
        );
    }
}
