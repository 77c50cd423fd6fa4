//! What all targets have in common: seeds that are committed, what is made of them, progress, and where an
//! input that fails is kept. Knows nothing of what is parsed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Fewest seeds of a target.
const SEEDS_MIN: usize = 3;
/// Changes made to a seed at once, at most.
const CHANGES_MAX: u8 = 8;
/// How often it is said how far a target is.
const SAID_EVERY: Duration = Duration::from_secs(5);
/// An input that is still under way at so many looks hangs.
const HANGS_AFTER: u32 = 60;
/// Pause between two looks at what is under way: whoever stands still, as in a debugger, does not look
/// either.
const LOOKS_AFTER: Duration = Duration::from_secs(1);
/// If this is 1, seeds are written instead of compared.
const ACCEPT: &str = "QUORUMWIRE_ACCEPT";

/// Bytes of a corpus, and the name of their file.
pub type Seed = (&'static str, Vec<u8>);

/// Runs a target: `fuzz!("name", seeds, iterations, bytes_max, |input: &[u8]| ...)`. What `seeds` says lies
/// in `__fuzz__/name/corpus/` beside the source, where there may be more. All of it is run first, then random
/// bytes, and beside each of these a seed that they change.
#[macro_export]
macro_rules! fuzz {
    ($name:literal, $seeds:expr, $iterations:expr, $bytes_max:expr, $taken:expr) => {{
        let target = $crate::Target::begin($name, env!("CARGO_MANIFEST_DIR"), file!(), &$seeds);
        // After a panic it is only called again to find a shorter input that panics.
        let taken = std::panic::AssertUnwindSafe($taken);
        $crate::bolero::check!(name = $name)
            .with_iterations($iterations)
            .with_max_len($bytes_max)
            .for_each(|input: &[u8]| target.run(input, &*taken));
        target.end();
    }};
}

/// One parser, or several that take the same.
#[derive(Debug)]
pub struct Target {
    name: &'static str,
    folder: PathBuf,
    seeds: Vec<Vec<u8>>,
    begun: Instant,
    said: Mutex<Duration>,
    inputs: AtomicU64,
    under_way: Arc<Mutex<UnderWay>>,
    /// Where the shortest input that failed is kept by now.
    kept: Mutex<Option<(usize, PathBuf)>>,
}

/// The input that is being taken, for who watches that it ends.
#[derive(Debug, Default)]
struct UnderWay {
    input: Vec<u8>,
    looks: Option<u32>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Target {
    /// Compares the seeds with those that are committed, or writes them.
    ///
    /// # Panics
    ///
    /// If they are not the same, or too few.
    #[must_use]
    pub fn begin(name: &'static str, manifest: &str, file: &str, seeds: &[Seed]) -> Self {
        let folder = beside(manifest, file).join("__fuzz__").join(name);
        accept_or_compare(&folder.join("corpus"), seeds);
        let seeds = files_in(&folder.join("corpus"));
        assert!(
            seeds.len() >= SEEDS_MIN,
            "{}/corpus has {} seeds; at least {SEEDS_MIN}, see tests/fuzz/README.md",
            folder.display(),
            seeds.len()
        );
        println!("{name}: begins, with {} seeds", seeds.len());
        let target = Self {
            name,
            folder,
            seeds,
            begun: Instant::now(),
            said: Mutex::default(),
            inputs: AtomicU64::new(0),
            under_way: Arc::default(),
            kept: Mutex::default(),
        };
        target.watch();
        target
    }

    /// Takes the input, and the seed that it changes.
    pub fn run(&self, input: &[u8], taken: &impl Fn(&[u8])) {
        self.take(input, taken);
        if let Some(changed) = changed(&self.seeds, input) {
            self.take(&changed, taken);
        }
        let (now, mut said) = (self.begun.elapsed(), held(&self.said));
        if now > *said + SAID_EVERY {
            *said = now;
            self.say("");
        }
    }

    fn take(&self, input: &[u8], taken: &impl Fn(&[u8])) {
        let mut under_way = held(&self.under_way);
        under_way.input.clear();
        under_way.input.extend_from_slice(input);
        under_way.looks = Some(0);
        drop(under_way);
        let kept = KeptIfItFails(self, input);
        taken(input);
        drop(kept);
        held(&self.under_way).looks = None;
        self.inputs.fetch_add(1, Ordering::Relaxed);
    }

    /// Says how many inputs there were.
    pub fn end(&self) {
        self.say(", ends");
    }

    fn say(&self, more: &str) {
        let (inputs, took) = (self.inputs.load(Ordering::Relaxed), self.begun.elapsed());
        println!(
            "{}: {inputs} inputs in {} s{more}",
            self.name,
            took.as_secs()
        );
    }

    /// Bytes that fail are kept; of those that one run finds, which shrinks them, the shortest.
    fn keep(&self, input: &[u8]) {
        let path = path_of(&self.folder, input);
        let mut kept = held(&self.kept);
        let is_shorter = kept.as_ref().is_none_or(|(bytes, _)| input.len() < *bytes);
        if !is_shorter || path.exists() || !written(&path, input) {
            return; // it is a file that failed, or there is nowhere to put it: it is printed, too
        }
        eprintln!("{}: failed, kept in {}", self.name, path.display());
        if let Some((_, longer)) = kept.replace((input.len(), path)) {
            fs::remove_file(longer).ok();
        }
    }

    /// What never ends cannot be caught: the process ends, and the input is kept.
    fn watch(&self) {
        let (under_way, folder) = (Arc::downgrade(&self.under_way), self.folder.clone());
        let name = self.name;
        thread::spawn(move || {
            while let Some(under_way) = under_way.upgrade() {
                let mut under_way = held(&under_way);
                under_way.looks = under_way.looks.map(|it| it + 1);
                if under_way.looks.is_some_and(|it| it > HANGS_AFTER) {
                    let path = path_of(&folder, &under_way.input);
                    written(&path, &under_way.input);
                    eprintln!("{name}: hangs, kept in {}", path.display());
                    std::process::abort();
                }
                drop(under_way);
                thread::sleep(LOOKS_AFTER);
            }
        });
    }
}

/// Keeps the input if it is dropped by a panic.
struct KeptIfItFails<'t>(&'t Target, &'t [u8]);

impl Drop for KeptIfItFails<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.keep(self.1);
            held(&self.0.under_way).looks = None;
        }
    }
}

fn path_of(folder: &Path, input: &[u8]) -> PathBuf {
    let name = format!("{}-{:08x}", input.len(), crc32c::crc32c(input));
    folder.join("crashes").join(name)
}

fn written(path: &Path, bytes: &[u8]) -> bool {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, bytes)).is_ok()
}

/// The folder of a source file, which the compiler names from the workspace's folder.
fn beside(manifest: &str, file: &str) -> PathBuf {
    let mut above = Path::new(manifest).ancestors();
    let found = above.find(|folder| folder.join(file).exists());
    let file = found.expect("the source is there").join(file);
    file.parent().expect("a file is in a folder").to_owned()
}

fn accept_or_compare(corpus: &Path, seeds: &[Seed]) {
    let names: BTreeSet<_> = seeds.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), seeds.len(), "two seeds have the same name");
    for (name, bytes) in seeds {
        let path = corpus.join(name);
        if is_to_be_written() {
            assert!(written(&path, bytes), "writing {}", path.display());
        }
        let is_it = fs::read(&path).is_ok_and(|it| it == *bytes);
        assert!(
            is_it,
            "{} is not what the sources say: `make corpora`, and look at the difference",
            path.display()
        );
    }
}

/// Whether seeds are rewritten. A wrong value is an error.
fn is_to_be_written() -> bool {
    let given = std::env::var_os(ACCEPT);
    assert!(
        given.as_ref().is_none_or(|given| given == "1"),
        "{ACCEPT}: given {given:?}, allowed: 1, or not set"
    );
    given.is_some()
}

/// All files of a folder, in the order of their names.
fn files_in(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|it| fs::read(it).ok()).collect()
}

/// The seed that the first byte names, with as many changes as the second says; four bytes say each of them.
fn changed(seeds: &[Vec<u8>], input: &[u8]) -> Option<Vec<u8>> {
    let ([seed, count], script) = input.split_first_chunk()?;
    let named = |byte: u8| seeds.get(usize::from(byte) % seeds.len().max(1));
    let mut bytes = named(*seed)?.clone();
    let changes = script
        .chunks_exact(4)
        .take(usize::from(1 + count % CHANGES_MAX));
    for change in changes {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % (bytes.len() + 1);
        let length = usize::from(change[3]).min(bytes.len() - at);
        match change[2] % 8 {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, change[3]),
            2 => drop(bytes.drain(at..at + length)),
            3 => {
                let again = bytes[at..at + length].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                let other = named(change[3])?;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[at.min(other.len())..]);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = change[3];
                }
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds() -> Vec<Vec<u8>> {
        vec![b"abcdef".to_vec(), b"ABCDEF".to_vec(), b"xy".to_vec()]
    }

    #[test]
    fn an_input_says_which_seed_is_changed_and_how() {
        for (input, expected) in [
            (&[0, 0][..], &b"abcdef"[..]),
            (&[4, 0, 0, 2, 0, 0], b"AB"),
            (&[0, 0, 0, 2, 1, b'!'], b"ab!cdef"),
            (&[0, 0, 0, 2, 2, 3], b"abf"),
            (&[0, 0, 0, 2, 2, 200], b"ab"),
            (&[0, 0, 0, 2, 3, 2], b"abcdcdef"),
            (&[0, 0, 0, 2, 4, 1], b"abCDEF"),
            (&[0, 0, 0, 4, 4, 2], b"abcd"),
            (&[0, 0, 0, 2, 5, b'!'], b"ab!def"),
            (&[0, 0, 0, 6, 5, b'!'], b"abcdef"),
            // As many changes as it says, and no more than there are.
            (&[0, 0, 0, 0, 5, b'1', 0, 1, 5, b'2'], b"1bcdef"),
            (&[0, 1, 0, 0, 5, b'1', 0, 1, 5, b'2'], b"12cdef"),
            (&[0, 7, 0, 0, 5, b'1', 0, 1], b"1bcdef"),
        ] {
            let changed = changed(&seeds(), input);
            assert_eq!(changed.as_deref(), Some(expected), "{input:?}");
        }
        assert_eq!(changed(&seeds(), &[0]), None);
        assert_eq!(changed(&[], &[0, 0]), None);
    }

    #[test]
    fn what_fails_is_kept_and_only_the_shortest_of_one_run() {
        let folder = std::env::temp_dir().join(format!("qw-fuzz-{}", std::process::id()));
        let target = Target {
            name: "tried",
            folder: folder.clone(),
            seeds: seeds(),
            begun: Instant::now(),
            said: Mutex::default(),
            inputs: AtomicU64::new(0),
            under_way: Arc::default(),
            kept: Mutex::default(),
        };
        let fails = |input: &[u8]| assert!(input.len() < 2, "planted");
        for input in [&b"abc"[..], b"ab", b"abcd", b"a"] {
            let target = std::panic::AssertUnwindSafe(&target);
            let result = std::panic::catch_unwind(|| target.run(input, &fails));
            // The last is taken as it is, and is no script.
            assert_eq!(result.is_ok(), input.len() < 2);
        }
        assert_eq!(files_in(&folder.join("crashes")), [b"ab"]);
        assert!(held(&target.under_way).looks.is_none());
        fs::remove_dir_all(folder).unwrap();
    }
}
