//! What Redis commands do to the store. Knows no connections.
use super::{At, Store};
use crate::Key;
use crate::redis::{Resp, Script, Words, reply};

impl Store {
    /// Answers a command that changes nothing.
    pub fn redis_read(&self, resp: Resp, words: &Words<'_>, out: &mut Vec<u8>) {
        let _ = (resp, words);
        reply::error(out, b"ERR not yet");
    }

    /// What tells one state of a key from the next: 0 if it is not there, else another number whenever a
    /// Redis or memcached command gave it a value, or a Redis command a lifetime.
    #[must_use]
    pub fn version(&self, key: Key<'_>) -> u64 {
        self.get(key).map_or(0, |item| item.unique)
    }

    pub(super) fn redis_query(&self, resp: Resp, text: &[u8], out: &mut Vec<u8>) {
        match Words::from_text(text) {
            Some(words) => self.redis_read(resp, &words, out),
            None => reply::error(out, b"ERR not a command of this version"),
        }
    }

    pub(super) fn note_script(&mut self, script: &Script<'_>) {
        let _ = script;
        self.changes.note_everything();
    }

    pub(super) fn run_script(&mut self, script: &Script<'_>, at: At, out: &mut Vec<u8>) {
        let _ = (script, at, self.log_time_ms);
        reply::error(out, b"ERR not yet");
    }
}
