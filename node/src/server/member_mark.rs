//! The file `was-member` beside a replica's folder: by it a start that finds nothing stored knows whether
//! there was something. It names the first life in which the replica was a member. The folder forgets
//! together with a disk, in `memory` mode and by damage; this file stays. In a folder that `quorumwire
//! restore` has prepared it names the replica that the data are with.
use super::whole_files::{sync_folder, write_whole};
use anyhow::Context as _;
use quorumwire_interfaces::{Incarnation, ReplicaId};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// Its name.
const MEMBER_MARK: &str = "was-member";
/// What is written into it has fewer bytes.
const TEXT_BYTES_MAX: u64 = 64;
/// How it begins in a prepared folder; what follows is an id.
const RESTORED: &str = "restored: ";

/// Notes for good that a member was here, first in this life; `None`: in one that is not known. What an
/// earlier call has noted stays.
pub fn mark_as_member(dir: &Path, life: Option<Incarnation>) -> anyhow::Result<()> {
    write_mark(
        dir,
        &life.map_or_else(String::new, |life| format!("{}\n", life.0)),
    )
}

/// Notes for good that this folder is of a cluster that begins with the data of this replica: who starts with
/// it and holds nothing must wait for these.
pub fn mark_as_restored(dir: &Path, holder: ReplicaId) -> anyhow::Result<()> {
    write_mark(dir, &format!("{RESTORED}{holder}\n"))
}

/// Whose data a folder waits for that was prepared so.
pub fn holder_of_restored(dir: &Path) -> anyhow::Result<Option<ReplicaId>> {
    let text = read_mark(dir)?;
    let holder = text.as_deref().and_then(|it| it.strip_prefix(RESTORED));
    Ok(holder.and_then(|it| it.trim().parse().ok()).map(ReplicaId))
}

/// Whether a member was here, or the folder is prepared for one.
pub fn is_marked(dir: &Path) -> anyhow::Result<bool> {
    Ok(read_mark(dir)?.is_some())
}

fn write_mark(dir: &Path, text: &str) -> anyhow::Result<()> {
    let mark = dir.join(MEMBER_MARK);
    if !mark.exists() {
        let written = write_whole(dir, MEMBER_MARK, text);
        return written.with_context(|| format!("writing {}", mark.display()));
    }
    // An earlier start may have ended before this.
    sync_folder(dir).with_context(|| format!("syncing {}", dir.display()))
}

/// Whether a replica in this life, which finds nothing stored, has forgotten what it held as a member. A life
/// that was listed and holds nothing has forgotten nothing: it was listed by what never became durable.
pub fn has_forgotten(dir: &Path, life: Incarnation) -> anyhow::Result<bool> {
    // Without a number, damaged or longer, it is of a life that is not known, so of another one.
    Ok(read_mark(dir)?.is_some_and(|text| text.trim().parse() != Ok(life.0)))
}

/// What it says; empty if that is damaged.
fn read_mark(dir: &Path) -> anyhow::Result<Option<String>> {
    let path = dir.join(MEMBER_MARK);
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(TEXT_BYTES_MAX).read_to_end(&mut text));
    match read {
        Ok(_) => Ok(Some(String::from_utf8(text).unwrap_or_default())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
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
    fn a_prepared_folder_says_whose_data_it_waits_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let holder = || holder_of_restored(dir.path()).expect("readable");
        assert_eq!(holder(), None);
        mark_as_restored(dir.path(), ReplicaId(3)).expect("writable");
        assert_eq!(holder(), Some(ReplicaId(3)));
        // It begins no empty cluster.
        assert!(has_forgotten(dir.path(), Incarnation(7)).expect("readable"));
        mark_as_member(dir.path(), Some(Incarnation(7))).expect("writable");
        assert_eq!(holder(), Some(ReplicaId(3)));

        let other = tempfile::tempdir().expect("a folder");
        mark_as_member(other.path(), Some(Incarnation(3))).expect("writable");
        assert_eq!(holder_of_restored(other.path()).expect("readable"), None);
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
