//! The file `given-up` beside a replica's folder: a life of it whose data are whole and are not to be
//! trusted. At the next start they are put aside, and the others bring the replica up to date.
use super::whole_files::{sync_folder, write_whole};
use anyhow::Context as _;
use quorumwire_interfaces::Incarnation;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// Its name.
const GIVEN_UP: &str = "given-up";
/// What is written into it has fewer bytes.
const TEXT_BYTES_MAX: u64 = 4096;

/// Notes for good that this life is over, and why.
pub fn give_up(dir: &Path, life: Incarnation, why: &str) -> anyhow::Result<()> {
    let written = write_whole(dir, GIVEN_UP, &format!("{}\n{why}\n", life.0));
    written.with_context(|| format!("writing {}", dir.join(GIVEN_UP).display()))
}

/// Which life, and why.
pub fn given_up(dir: &Path) -> anyhow::Result<Option<(Incarnation, String)>> {
    let path = dir.join(GIVEN_UP);
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(TEXT_BYTES_MAX).read_to_end(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    }
    let text = String::from_utf8_lossy(&text);
    let said = text.split_once('\n').and_then(|(life, why)| {
        let life = life.parse().ok()?;
        Some((Incarnation(life), why.trim().to_owned()))
    });
    let said = said.with_context(|| {
        format!(
            "{} does not say which life of this replica is given up: empty the data folder, so that the others \
             bring this replica up to date",
            path.display()
        )
    })?;
    Ok(Some(said))
}

/// It has begun another one.
pub fn begun_anew(dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(GIVEN_UP);
    let removed = match fs::remove_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        removed => removed.and_then(|()| sync_folder(dir)),
    };
    removed.with_context(|| format!("removing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_given_up_until_the_next_one_has_begun() {
        let dir = tempfile::tempdir().expect("a folder");
        let noted = || given_up(dir.path());
        assert_eq!(noted().expect("readable"), None);
        begun_anew(dir.path()).expect("there is nothing to do");
        give_up(dir.path(), Incarnation(7), "it said\nsomething").expect("writable");
        let expected = (Incarnation(7), "it said\nsomething".to_owned());
        assert_eq!(noted().expect("readable"), Some(expected));
        give_up(dir.path(), Incarnation(8), "more").expect("writable");
        assert_eq!(
            noted().expect("readable").map(|it| it.0),
            Some(Incarnation(8))
        );
        begun_anew(dir.path()).expect("writable");
        assert_eq!(noted().expect("readable"), None);
    }

    #[test]
    fn a_note_that_says_nothing_is_not_passed_over() {
        let dir = tempfile::tempdir().expect("a folder");
        for text in [&b""[..], b"7", b"x\nwhy\n", b"\xff\xff\n"] {
            fs::write(dir.path().join(GIVEN_UP), text).expect("writable");
            let text = format!("{:#}", given_up(dir.path()).expect_err("it says no life"));
            assert!(text.contains("empty the data folder"), "{text}");
        }
    }
}
