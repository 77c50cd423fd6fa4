//! Where a test's randomness comes from: one number, printed, that can be given again.

use std::hash::{BuildHasher as _, RandomState};

/// The environment variable that gives a seed, decimal.
pub const SEED_VARIABLE: &str = "QUORUMWIRE_SEED";

/// The seed of this test: the one in `QUORUMWIRE_SEED`, else a new one. Printed, so that the output of
/// a failed test says how to run it again. Panics on a seed that is not a number.
#[must_use]
pub fn seed() -> u64 {
    let seed = match std::env::var(SEED_VARIABLE) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{SEED_VARIABLE}: {text:?}, allowed: 0 to 2^64 - 1")),
        Err(_) => RandomState::new().hash_one(0_u8),
    };
    println!("{SEED_VARIABLE}={seed}");
    seed
}
