//! How commands turned out, counted the way memcached counts them. Not part of the state.
use crate::Command;
use crate::memcached::reply;

/// How the commands of the log turned out on this replica, whoever sent them to whichever replica.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcomes {
    /// `mg` with a change that found an item, or made one.
    pub get_hits: u64,
    /// `mg` with a change that did not.
    pub get_misses: u64,
    /// `touch`, keys of `gat` and `mg` with flag `T` that found an item.
    pub touch_hits: u64,
    /// `touch` and keys of `gat` that did not.
    pub touch_misses: u64,
    /// `delete` and `md` that removed an item.
    pub delete_hits: u64,
    /// `delete` and `md` that did not.
    pub delete_misses: u64,
    /// `incr` and `ma` that added.
    pub incr_hits: u64,
    /// `incr` and `ma` that found no item.
    pub incr_misses: u64,
    /// `decr` and `ma` that subtracted.
    pub decr_hits: u64,
    /// `decr` and `ma` that found no item.
    pub decr_misses: u64,
    /// `cas` and `ms` with flag `C` that stored.
    pub cas_hits: u64,
    /// `cas` and `ms` with flag `C` that found no item.
    pub cas_misses: u64,
    /// `cas` and `ms` with flag `C` that found another.
    pub cas_badval: u64,
}

impl Outcomes {
    /// Counts a command other than `gat` and the meta commands, which count what they find themselves.
    pub(super) fn note(&mut self, command: &Command<'_>, answer: &[u8]) {
        let is_miss = answer == reply::NOT_FOUND;
        match command {
            _ if answer.starts_with(reply::REFUSED) => {}
            Command::Cas { .. } => self.note_cas(answer == reply::STORED, is_miss),
            Command::Increment { .. } | Command::Decrement { .. }
                if answer == reply::NOT_NUMERIC => {}
            Command::Increment { .. } => self.note_count(false, is_miss),
            Command::Decrement { .. } => self.note_count(true, is_miss),
            Command::Touch { .. } => self.note_touch(is_miss),
            Command::Delete { .. } => self.note_delete(is_miss),
            Command::Set(_)
            | Command::Add(_)
            | Command::Replace(_)
            | Command::Append { .. }
            | Command::Prepend { .. }
            | Command::GetAndTouch { .. }
            | Command::FlushAll { .. }
            | Command::Memory(_)
            | Command::Meta { .. }
            | Command::Redis(_) => {}
        }
    }

    pub(super) fn note_cas(&mut self, is_stored: bool, is_miss: bool) {
        *match (is_stored, is_miss) {
            (true, _) => &mut self.cas_hits,
            (false, true) => &mut self.cas_misses,
            (false, false) => &mut self.cas_badval,
        } += 1;
    }

    pub(super) fn note_count(&mut self, is_down: bool, is_miss: bool) {
        *match (is_down, is_miss) {
            (false, false) => &mut self.incr_hits,
            (false, true) => &mut self.incr_misses,
            (true, false) => &mut self.decr_hits,
            (true, true) => &mut self.decr_misses,
        } += 1;
    }

    pub(super) fn note_touch(&mut self, is_miss: bool) {
        *if is_miss {
            &mut self.touch_misses
        } else {
            &mut self.touch_hits
        } += 1;
    }

    pub(super) fn note_delete(&mut self, is_miss: bool) {
        *if is_miss {
            &mut self.delete_misses
        } else {
            &mut self.delete_hits
        } += 1;
    }
}
