//! Where a test's randomness comes from: one number, printed, that can be given again.

use std::hash::{BuildHasher as _, RandomState};

/// The environment variable that gives a seed, decimal.
pub const SEED_VARIABLE: &str = "QUORUMWIRE_SEED";

/// The seed of this test: the one in `QUORUMWIRE_SEED`, else a new one. Printed, so that the output of
/// a failed test says how to run it again.
///
/// # Panics
///
/// If the variable is set and no number.
#[must_use]
pub fn seed() -> u64 {
    let given = std::env::var_os(SEED_VARIABLE);
    let seed = match given.as_ref().map(|it| it.to_string_lossy()) {
        Some(text) => given_as(&text).unwrap_or_else(|wrong| panic!("{wrong}")),
        None => drawn(),
    };
    println!("{SEED_VARIABLE}={seed}");
    seed
}

fn drawn() -> u64 {
    RandomState::new().hash_one(0_u8)
}

fn given_as(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{SEED_VARIABLE}: {text:?}, allowed: 0 to 2^64 - 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused_with_what_is_allowed() {
        assert_eq!(given_as("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "-1", "1 ", "seven", "18446744073709551616"] {
            let said = given_as(wrong).expect_err("it is no number");
            assert!(said.ends_with("allowed: 0 to 2^64 - 1"), "{said}");
        }
    }

    #[test]
    fn two_tests_have_two_seeds() {
        assert_ne!(drawn(), drawn());
    }
}
