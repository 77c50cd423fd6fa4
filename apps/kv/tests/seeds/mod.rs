//! Where a random test's randomness comes from: a printed seed that can be given again.
use std::collections::BTreeMap;

use quorumwire_seed::seed;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A generator from a new seed, or from the one in the environment; prints it.
pub fn generator() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed())
}

/// Counts what a random run reached.
#[derive(Debug, Default)]
pub struct Reached(BTreeMap<String, u64>);

impl Reached {
    /// One more of `outcome`.
    pub fn count(&mut self, outcome: &str) {
        if let Some(count) = self.0.get_mut(outcome) {
            *count += 1;
        } else {
            self.0.insert(outcome.to_owned(), 1);
        }
    }

    /// Fails if one of `outcomes` was reached fewer than `least` times.
    pub fn require(&self, least: u64, outcomes: &[&str]) {
        for outcome in outcomes {
            let count = self.0.get(*outcome).copied().unwrap_or(0);
            assert!(
                count >= least,
                "{outcome:?} was reached {count} times: {self:#?}"
            );
        }
    }
}
