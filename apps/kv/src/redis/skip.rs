//! The rest of a request that is refused for its length: thrown away as it comes, so that the next request is
//! found behind it. Keeps none of its bytes.
use super::WORDS_BYTES_SKIPPED_MAX;
use super::parse::{Broken, header};

/// What is still to come of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Skip {
    /// Of the word that is under way, its end included.
    word_bytes: usize,
    /// Words behind that one.
    words: usize,
    /// Bytes that it may still have.
    bytes_left: usize,
}

/// How far it came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Skipped {
    /// So many bytes are done with, and nothing more before there are `needed` behind them.
    Some {
        /// They are to be thrown away.
        consumed: usize,
        /// Bytes behind those.
        needed: usize,
    },
    /// The request ends behind so many bytes.
    All {
        /// They are to be thrown away.
        consumed: usize,
    },
    /// What comes is no words, or more of them than anybody can mean: where the next request starts is not
    /// known.
    Broken(Broken),
}

impl Skip {
    /// So many bytes of a word, and so many words behind it.
    pub(super) const fn new(word_bytes: usize, words: usize) -> Self {
        Self {
            word_bytes,
            words,
            bytes_left: WORDS_BYTES_SKIPPED_MAX,
        }
    }

    /// Takes what it can off the start of `bytes`.
    #[must_use]
    pub fn take(&mut self, bytes: &[u8]) -> Skipped {
        let mut consumed = 0;
        loop {
            let rest = &bytes[consumed..];
            let taken = self.word_bytes.min(rest.len());
            consumed += taken;
            self.word_bytes -= taken;
            let Some(left) = self.bytes_left.checked_sub(taken) else {
                return Skipped::Broken(Broken::too_long("too long request"));
            };
            self.bytes_left = left;
            if self.word_bytes > 0 {
                return Skipped::Some {
                    consumed,
                    needed: 1,
                };
            }
            if self.words == 0 {
                return Skipped::All { consumed };
            }
            let rest = &bytes[consumed..];
            match header(rest) {
                Ok(Some((word_bytes, end))) => {
                    consumed += end;
                    self.bytes_left = self.bytes_left.saturating_sub(end);
                    self.word_bytes = word_bytes + 2;
                    self.words -= 1;
                }
                Ok(None) => {
                    let needed = rest.len() + 1;
                    return Skipped::Some { consumed, needed };
                }
                Err(broken) => return Skipped::Broken(broken),
            }
        }
    }
}
