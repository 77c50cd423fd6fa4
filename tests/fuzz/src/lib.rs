//! How random bytes become something that a parser would take for real, and how often what came of it. The
//! targets are in `tests/` and in `src/` of `node/`, `ops/` and `cli/`; bytes to begin with are committed
//! beside them (README.md).

mod target;
mod vectors;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[doc(hidden)]
pub use bolero;
pub use target::{Seed, Target};
pub use vectors::named;

/// Random inputs of each target in `cargo test`, and as many changed seeds; more of them: `make fuzz`.
pub const ITERATIONS: usize = 10_000;

/// The same of targets that look at little.
pub const ITERATIONS_OF_SMALL: usize = 200_000;

/// Longest input.
pub const INPUT_BYTES_MAX: usize = 512;

/// Input as it came, if its first byte is a character's; else a script: each further byte names one of
/// `words`, or says that the byte behind it stands for itself.
#[must_use]
pub fn grown<'a>(input: &'a [u8], words: &[&[u8]]) -> Cow<'a, [u8]> {
    match input.split_first() {
        Some((128.., script)) => Cow::Owned(written(script, words)),
        Some(_) | None => Cow::Borrowed(input),
    }
}

fn written(script: &[u8], words: &[&[u8]]) -> Vec<u8> {
    /// So many of them are no word.
    const LITERALS: usize = 3;
    let mut text = Vec::new();
    let mut bytes = script.iter();
    while let Some(&byte) = bytes.next() {
        match words.get(usize::from(byte) % (words.len() + LITERALS)) {
            Some(word) => text.extend_from_slice(word),
            None => text.extend(bytes.next()),
        }
    }
    text
}

/// What came of the inputs, and how often.
#[derive(Default)]
pub struct Outcomes(Mutex<BTreeMap<&'static str, u64>>);

impl Outcomes {
    fn counted(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one.
    pub fn count(&self, outcome: &'static str) {
        *self.counted().entry(outcome).or_default() += 1;
    }

    /// Says how often each came, and fails if one of these never did.
    ///
    /// # Panics
    ///
    /// If one never did.
    pub fn must_be(&self, expected: &[&'static str]) {
        let counted = self.counted();
        println!("{counted:?}");
        for outcome in expected {
            assert!(counted.contains_key(outcome), "never reached: {outcome}");
        }
    }
}
