//! Which `quorumwire` is tested: never one that is older than what it was built from. Builds nothing.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;
use std::{env, fs, io};

use anyhow::{Context as _, Result, ensure};

use crate::switches::BINARY;

/// How it is made, and how another one is chosen.
const HOW: &str = "build it (`cargo build -p quorumwire-cli`), or name the one that is meant in";

/// The program to test: the one that the environment names, else the one built beside this test, if it is as
/// new as its sources. One that is named is not judged: it may be an earlier release, or have come without
/// sources. This is decided once for a test program, so that an edit in its time does not tear it in two.
pub fn binary() -> Result<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find().map_err(|error| format!("{error:#}")));
    found.clone().map_err(anyhow::Error::msg)
}

fn find() -> Result<PathBuf> {
    if let Some(given) = env::var_os(BINARY) {
        let path = PathBuf::from(given);
        ensure!(path.is_file(), "{BINARY}: {} is no file", path.display());
        return Ok(path);
    }
    let test = env::current_exe()?;
    let found = test.ancestors().skip(1).find_map(|dir| {
        let own = dir.join("quorumwire");
        let siblings = ["debug", "release"].map(|kind| dir.join(kind).join("quorumwire"));
        [own]
            .into_iter()
            .chain(siblings)
            .find(|path| path.is_file())
    });
    let found = found
        .with_context(|| format!("no `quorumwire` beside {}: {HOW} {BINARY}", test.display()))?;
    must_be_as_new_as_its_sources(&found)?;
    Ok(found)
}

/// Compares it with all that cargo has written down beside it: sources in Rust and C, headers, pages of the
/// dashboard. Manifests are not among them. Cargo does not build anew for one that says the same as before,
/// so their times prove nothing.
pub fn must_be_as_new_as_its_sources(binary: &Path) -> Result<()> {
    let listing = binary.with_extension("d");
    let listed = fs::read_to_string(&listing).with_context(|| {
        let (binary, listing) = (binary.display(), listing.display());
        format!("{listing} would say what {binary} was built from: {HOW} {BINARY}")
    })?;
    let built = fs::metadata(binary)?.modified()?;
    let mut newer = Vec::new();
    for source in sources(&listed) {
        let changed = newest(&source).with_context(|| {
            let (binary, source) = (binary.display(), source.display());
            format!("{binary} was built from {source}, which cannot be read: {HOW} {BINARY}")
        })?;
        if changed > built {
            newer.push(source);
        }
    }
    ensure!(
        newer.is_empty(),
        "{} is older than {} of its sources, such as {}: {HOW} {BINARY}",
        binary.display(),
        newer.len(),
        newer[0].display()
    );
    Ok(())
}

/// The files and folders behind the name of what was made of them, as a makefile has them: a blank within a
/// name has a backslash in front.
fn sources(listed: &str) -> Vec<PathBuf> {
    const BLANK: &str = "\u{0}";
    let list = listed.split_once(": ").map_or("", |(_, list)| list);
    let list = list.replace("\\ ", BLANK);
    list.split_whitespace()
        .map(|name| PathBuf::from(name.replace(BLANK, " ")))
        .collect()
}

/// When a file was changed last, or any file in a folder.
fn newest(path: &Path) -> io::Result<SystemTime> {
    let about = fs::metadata(path)?;
    if !about.is_dir() {
        return about.modified();
    }
    let mut latest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(path)? {
        latest = latest.max(newest(&entry?.path())?);
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;
    use crate::disk::Scratch;
    use crate::network::NAME_PREFIX;

    /// A binary made of two files and a folder, and what is said of it once one of its sources has changed.
    struct Built {
        scratch: Scratch,
        at: SystemTime,
    }

    impl Built {
        fn new(name: &str) -> Self {
            let name = format!("{NAME_PREFIX}-{}-{name}", std::process::id());
            let scratch = Scratch::new(&name).expect("scratch");
            let built = Self {
                scratch,
                at: SystemTime::UNIX_EPOCH + Duration::from_hours(24),
            };
            fs::create_dir_all(built.path("include/deep")).expect("a folder");
            for source in ["main.rs", "with a blank.c", "include/deep/qw.h"] {
                built.touch(source, Duration::ZERO);
            }
            built.touch("quorumwire", Duration::from_secs(1));
            let names = ["main.rs", "with\\ a\\ blank.c", "include"];
            let names = names.map(|name| built.path(name).display().to_string());
            let made = built.path("quorumwire").display().to_string();
            let listed = format!("{made}: {}\n", names.join(" "));
            fs::write(built.path("quorumwire.d"), listed).expect("a list");
            built
        }

        fn path(&self, name: &str) -> PathBuf {
            self.scratch.path().join(name)
        }

        fn touch(&self, name: &str, after: Duration) {
            let file = File::create(self.path(name)).expect("a file");
            file.set_modified(self.at + after).expect("its time");
        }

        fn judged(&self) -> Result<(), String> {
            let judged = must_be_as_new_as_its_sources(&self.path("quorumwire"));
            judged.map_err(|error| format!("{error:#}"))
        }
    }

    #[test]
    fn a_binary_older_than_any_of_its_sources_is_refused() {
        let built = Built::new("sources");
        assert_eq!(built.judged(), Ok(()));
        for source in ["main.rs", "with a blank.c", "include/deep/qw.h"] {
            built.touch(source, Duration::from_secs(2));
            let said = built.judged().expect_err("it is older");
            for part in ["is older than 1 of its sources", "cargo build", BINARY] {
                assert!(said.contains(part), "no {part:?} in {said}");
            }
            built.touch(source, Duration::ZERO);
            assert_eq!(built.judged(), Ok(()));
        }
    }

    #[test]
    fn a_binary_of_which_nothing_is_known_is_refused() {
        let built = Built::new("unknown");
        fs::remove_file(built.path("main.rs")).expect("it was there");
        let said = built.judged().expect_err("a source is gone");
        assert!(said.contains("main.rs, which cannot be read"), "{said}");
        fs::remove_file(built.path("quorumwire.d")).expect("it was there");
        let said = built.judged().expect_err("nothing is known");
        assert!(said.contains("quorumwire.d would say"), "{said}");
    }
}
