//! How much work a command is. The same on every replica, whatever a snapshot holds on to there.
use super::{Arguments, At, Key, Store};
use crate::redis::{Kind, Spec};

/// Work for each word of a command: most are keys to be looked for.
pub(in crate::store) const PER_WORD: usize = 128;

/// Work for each key that is looked at to find some.
pub(in crate::store) const PER_KEY_SEEN: usize = 256;

/// Work to look through a piece of the table: it holds four times as many keys at most, but is in memory at
/// once.
pub(in crate::store) const PER_PIECE: usize = 1024 * PER_KEY_SEEN;

/// Work for each step of comparing a key with a pattern.
pub(in crate::store) const PER_PATTERN_STEP: usize = 8;

/// Work for each digit of a number with a fraction.
pub(in crate::store) const PER_DIGIT: usize = 64;

/// To give a value's memory back is so much less work than to look at its bytes.
pub(in crate::store) const FREED_SHARE: usize = 16;

impl Store {
    /// Work that every command is, before it does anything. One with few words outside of a transaction can
    /// do away with few values, so nobody looks how long they are.
    pub(super) fn work_of(
        &self,
        spec: &Spec,
        words: &Arguments<'_>,
        at: At,
        is_one_of_many: bool,
    ) -> usize {
        let mut work = words.len() * PER_WORD;
        if spec.kind == Kind::Write && (is_one_of_many || words.len() > super::WORDS_USUAL) {
            for (place, word) in words.iter().enumerate() {
                if spec.is_key(place, words.len())
                    && let Some(key) = Key::binary(word)
                {
                    work += self.work_to_change(key, at) / FREED_SHARE;
                }
            }
        }
        work
    }

    /// The same for a value that is to be so long at least: if it is shorter, it is copied to where there is
    /// room.
    pub(super) fn work_to_edit(&self, key: Key<'_>, bytes_least: usize, at: At) -> usize {
        let bytes = self.value(key).map_or(0, <[u8]>::len);
        if bytes < bytes_least {
            bytes_least
        } else {
            self.work_to_change(key, at)
        }
    }

    /// Work that it is to change a value where it is: a snapshot may hold on to it, then it is copied first.
    /// Once this command has changed it, none does.
    pub(super) fn work_to_change(&self, key: Key<'_>, at: At) -> usize {
        let found = self.live(key).filter(|item| item.unique != at.number);
        found.map_or(0, |item| item.value().len())
    }
}
