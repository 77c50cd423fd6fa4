//! Chance, and what it makes go wrong in one random cluster.
use std::time::Duration;

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn permille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    pub fn micros(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(from + self.below(to - from))
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        if list.is_empty() {
            return None;
        }
        let place = self.below(list.len() as u64);
        Some(list[usize::try_from(place).expect("small")])
    }
}

/// What goes wrong in one run, in chances out of a thousand, and how often.
pub struct Trouble {
    pub loss: u64,
    pub repeat: u64,
    pub late: u64,
    pub faults: u64,
    pub wipes: bool,
    pub changes: bool,
    pub snapshots: u64,
    pub stalls: u64,
    /// In how many of a thousand replicas there is a data plane.
    pub planes: u64,
    /// Whether stopping one takes time.
    pub slow_fences: bool,
}

impl Trouble {
    pub fn new(random: &mut Random) -> Self {
        Self {
            loss: random.pick(&[0, 0, 20, 100, 250]).expect("a list"),
            repeat: random.pick(&[0, 50, 200]).expect("a list"),
            late: random.pick(&[0, 20, 100]).expect("a list"),
            faults: random.pick(&[0, 5, 15, 40]).expect("a list"),
            wipes: random.permille(500),
            changes: random.permille(600),
            snapshots: random.pick(&[0, 10, 40]).expect("a list"),
            stalls: random.pick(&[0, 5, 20]).expect("a list"),
            planes: random.pick(&[0, 850, 1000, 1000]).expect("a list"),
            slow_fences: random.permille(300),
        }
    }
}
