//! Which items' lives count from the next tick, by the hashes that lead to them. Holds no items.

/// So many are kept before it is asked which of them still lead to such an item.
const UNCHECKED_MAX: usize = 1024;

/// Hashes of items whose lives have not begun, some of them more than once, and some of items that are
/// gone or were given another end meanwhile. At most [`UNCHECKED_MAX`], or twice as many as items wait.
#[derive(Debug)]
pub(super) struct Awaiting {
    hashes: Vec<u64>,
    check_at: usize,
}

impl Default for Awaiting {
    fn default() -> Self {
        Self {
            hashes: Vec::new(),
            check_at: UNCHECKED_MAX,
        }
    }
}

impl Awaiting {
    /// Takes note of an item. `still_waits` tells whether there is one with this hash.
    pub(super) fn add(&mut self, hash: u64, still_waits: impl Fn(u64) -> bool) {
        if self.hashes.len() >= self.check_at {
            self.hashes.sort_unstable();
            self.hashes.dedup();
            self.hashes.retain(|hash| still_waits(*hash));
            self.check_at = UNCHECKED_MAX.max(2 * self.hashes.len());
        }
        self.hashes.push(hash);
    }

    /// All of them; none is left.
    pub(super) fn take(&mut self) -> Vec<u64> {
        std::mem::take(self).hashes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.hashes.len()
    }
}
