//! The file `was-member` beside a replica's folder: by it a start that finds nothing stored knows whether there was
//! something. It names the first life in which the replica was a member. The folder forgets together with a disk, in
//! `memory` mode and by damage; this file stays.
use super::whole_files::{sync_folder, write_whole};
use anyhow::Context as _;
use quorumwire_interfaces::Incarnation;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// Its name.
const MEMBER_MARK: &str = "was-member";
/// A life and an end of line have fewer bytes.
const TEXT_BYTES_MAX: u64 = 64;

/// Notes for good that a member was here, first in this life; `None`: in one that is not known. What an earlier
/// call has noted stays.
pub fn mark_as_member(dir: &Path, life: Option<Incarnation>) -> anyhow::Result<()> {
    let mark = dir.join(MEMBER_MARK);
    if !mark.exists() {
        let text = life.map_or_else(String::new, |life| format!("{}\n", life.0));
        let written = write_whole(dir, MEMBER_MARK, &text);
        written.with_context(|| format!("writing {}", mark.display()))?;
    }
    // Also where it is there: an earlier start may have ended before this.
    sync_folder(dir).with_context(|| format!("syncing {}", dir.display()))
}

/// Whether a replica in this life, which finds nothing stored, has forgotten what it held as a member. A life that
/// was listed and holds nothing has forgotten nothing: it was listed by what never became durable.
pub fn has_forgotten(dir: &Path, life: Incarnation) -> anyhow::Result<bool> {
    let path = dir.join(MEMBER_MARK);
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(TEXT_BYTES_MAX).read_to_end(&mut text));
    match read {
        Ok(_) => {
            let life_noted = str::from_utf8(&text).map(|text| text.trim().parse());
            // Without a number, damaged or longer, it is of a life that is not known, so of another one.
            Ok(life_noted != Ok(Ok(life.0)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| {
            format!(
                "reading {}, by which a start knows whether a member was here; if it cannot be mended, replace it by \
                 an empty file: a member that holds nothing then counts only once the others have brought it up to date",
                path.display()
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_later_life_has_forgotten_however_often_it_starts() {
        let dir = tempfile::tempdir().expect("a folder");
        let (first, later) = (Incarnation(7), Incarnation(8));
        let forgot = |life| has_forgotten(dir.path(), life).expect("readable");
        assert!(!forgot(first), "nobody was a member here");
        mark_as_member(dir.path(), Some(first)).expect("writable");
        assert!(!forgot(first), "what listed it was not durable");
        // The first start of a new life, the next ones, and those after it was listed.
        assert!(forgot(later) && forgot(later));
        mark_as_member(dir.path(), Some(later)).expect("writable");
        assert!(forgot(later));
    }

    #[test]
    fn a_damaged_mark_is_of_another_life_and_one_that_cannot_be_read_says_what_to_do() {
        let dir = tempfile::tempdir().expect("a folder");
        let mark = dir.path().join(MEMBER_MARK);
        for text in [&b"\xff\xfe\n"[..], b"x\n", b"7\0", &[b' '; 4096]] {
            fs::write(&mark, text).expect("writable");
            assert!(has_forgotten(dir.path(), Incarnation(7)).expect("readable"));
        }
        fs::remove_file(&mark).expect("writable");
        fs::create_dir(&mark).expect("writable");
        let refused = has_forgotten(dir.path(), Incarnation(7)).expect_err("no file");
        let text = format!("{refused:#}");
        let path = mark.display().to_string();
        assert!(
            text.contains(&path) && text.contains("empty file"),
            "{text}"
        );
    }

    #[test]
    fn a_mark_without_a_life_is_of_another_one() {
        let dir = tempfile::tempdir().expect("a folder");
        mark_as_member(dir.path(), None).expect("writable");
        assert!(has_forgotten(dir.path(), Incarnation(7)).expect("readable"));
        mark_as_member(dir.path(), Some(Incarnation(7))).expect("writable");
        assert!(has_forgotten(dir.path(), Incarnation(7)).expect("readable"));
    }
}
