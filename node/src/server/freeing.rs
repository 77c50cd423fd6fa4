//! What was thrown away and waits for a thread to free it. It is memory that nobody uses, and that no limit
//! of the items knows: so it is bounded here.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that may wait, but for one piece of any size. What would be more is freed at once, and the event
/// loop waits for that: so nobody fills memory faster than it is freed.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// So little is freed at once: that takes less than a millisecond.
const LITTLE_BYTES: u64 = 256 << 10;

/// How many bytes wait.
#[derive(Default)]
pub struct Freeing(Arc<AtomicU64>);

/// Waits to be dropped.
pub struct Waiting {
    what: Option<Box<dyn Send>>,
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl Freeing {
    /// Whether so much more may wait.
    pub fn takes(&self, bytes: u64) -> bool {
        let waiting = self.0.load(Ordering::Acquire);
        bytes > LITTLE_BYTES && (waiting == 0 || waiting + bytes <= WAITING_BYTES_MAX)
    }

    /// This waits from now on, until it is dropped.
    pub fn begin(&self, what: Box<dyn Send>, bytes: u64) -> Waiting {
        self.0.fetch_add(bytes, Ordering::AcqRel);
        Waiting {
            what: Some(what),
            bytes,
            all: Arc::clone(&self.0),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.what.take());
        self.all.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = WAITING_BYTES_MAX / 2;

    #[test]
    fn what_waits_is_bounded_but_for_one_piece() {
        let freeing = Freeing::default();
        assert!(freeing.takes(u64::MAX / 2));
        assert!(!freeing.takes(LITTLE_BYTES));
        let first = freeing.begin(Box::new(()), u64::MAX / 2);
        assert!(!freeing.takes(LITTLE_BYTES + 1));
        drop(first);
        let waiting = [0, 1].map(|_| freeing.begin(Box::new(()), MUCH));
        assert!(!freeing.takes(MUCH));
        drop(waiting);
        assert!(freeing.takes(MUCH));
    }

    #[test]
    fn what_has_waited_is_freed_before_it_does_not_count_any_more() {
        struct Looks(Arc<AtomicU64>, Arc<AtomicU64>);
        impl Drop for Looks {
            fn drop(&mut self) {
                let waiting = self.0.load(Ordering::Acquire);
                self.1.store(waiting, Ordering::Release);
            }
        }
        let (freeing, seen) = (Freeing::default(), Arc::default());
        let looks = Looks(Arc::clone(&freeing.0), Arc::clone(&seen));
        drop(freeing.begin(Box::new(looks), 7));
        assert_eq!(seen.load(Ordering::Acquire), 7);
        assert_eq!(freeing.0.load(Ordering::Acquire), 0);
    }
}
