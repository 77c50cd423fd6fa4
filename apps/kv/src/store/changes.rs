//! What has changed since somebody who shows items elsewhere last asked. Not part of the state.
use crate::Key;

/// Items noted one by one; more of them are everything.
const NOTED_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) are_followed: bool,
    everything: bool,
    keys: Vec<Box<[u8]>>,
}

impl Changes {
    pub(super) fn note(&mut self, key: Key<'_>) {
        if !self.are_followed || self.everything {
            return;
        }
        if self.keys.len() == NOTED_MAX {
            return self.note_everything();
        }
        self.keys.push(key.bytes().into());
    }

    pub(super) fn note_everything(&mut self) {
        self.everything = self.are_followed;
        self.keys.clear();
    }

    /// Whether everything has changed, or which items.
    pub(super) fn take(&mut self) -> (bool, Vec<Box<[u8]>>) {
        let everything = std::mem::take(&mut self.everything);
        (everything, std::mem::take(&mut self.keys))
    }
}
