//! Small files beside a replica's folder: written whole, and for good.
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file in place of what it was, or leaves that.
pub fn write_whole(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    let aside = dir.join(format!("{name}.tmp"));
    let mut file = File::create(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&aside, dir.join(name))?;
    sync_folder(dir)
}

/// What was written, renamed and removed in a folder is so for good.
pub fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
