//! The clock of the load, which tests move on.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The machine's clock, ahead by nothing outside of tests. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    ahead_ns: Arc<AtomicU64>,
}

impl Clock {
    /// What it shows.
    pub fn now(&self) -> Instant {
        Instant::now() + Duration::from_nanos(self.ahead_ns.load(Ordering::Relaxed))
    }

    /// Moves it on, for all its clones.
    #[cfg(test)]
    pub fn move_on(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap();
        self.ahead_ns.fetch_add(ns, Ordering::Relaxed);
    }
}
