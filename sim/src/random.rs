//! The one source of chance: equal seeds give equal numbers on every machine.

/// A stream of numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed; streams of different seeds have nothing in common.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// Any number.
    pub const fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        self.next() % bound
    }

    /// A number from `from` up to, but not, `to`.
    pub const fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }

    /// True so many times out of a thousand.
    pub const fn permille(&mut self, chance: u64) -> bool {
        chance > 0 && self.below(1000) < chance
    }

    /// One of these, or `None` of nothing.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let place = usize::try_from(self.below(list.len() as u64)).unwrap_or(0);
        list.get(place).copied()
    }

    /// Any order of these.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(0);
            list.swap(last, other);
        }
    }
}

/// Spreads a number over all 64 bits.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
