//! Keeps the log from being flooded by one thing that goes on: the same words come once in half a minute.
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SAID_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// What was said last, and when.
#[derive(Debug)]
pub struct Sparing(Mutex<Option<(Instant, String)>>);

impl Default for Sparing {
    fn default() -> Self {
        Self::new()
    }
}

impl Sparing {
    /// Nothing was said.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether these words are to be said now.
    pub fn says(&self, words: &str) -> bool {
        self.says_at(Instant::now(), words)
    }

    fn says_at(&self, now: Instant, words: &str) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_repeated = last.as_ref().is_some_and(|(at, said)| {
            said == words && now.saturating_duration_since(*at) < SAID_AGAIN_AFTER
        });
        if !is_repeated {
            *last = Some((now, words.to_owned()));
        }
        !is_repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_come_once_in_half_a_minute() {
        let (sparing, begun) = (Sparing::new(), Instant::now());
        let says = |seconds, words| sparing.says_at(begun + Duration::from_secs(seconds), words);
        let said: Vec<u64> = (0..70).filter(|second| says(*second, "full")).collect();
        assert_eq!(said, [0, 30, 60]);
        assert!(says(70, "gone"), "something else");
        assert!(!says(71, "gone"));
    }
}
