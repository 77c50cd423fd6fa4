//! What applying commands to the store wants done beside it: copying what something frozen holds, too, and
//! freeing what was thrown away.
use super::Server;
use quorumwire_control::Entry;
use quorumwire_interfaces::Application as _;
use quorumwire_wire::RecordKind;

/// An entry of fewer bytes names some hundred keys at most.
const MANY_KEYS_BYTES: usize = 1 << 10;
/// References to items that are copied at once before such an entry is applied: some milliseconds.
const REFERENCES_PER_TURN: usize = 32 << 10;

impl Server {
    /// Whether an entry of many keys is put off, because a turn has copied as much of what something frozen
    /// holds, too, as it may. Not for longer than copying all of it once takes: somebody may freeze it again
    /// and again.
    pub fn puts_off(&mut self, entry: &Entry) -> bool {
        if !may_name_many_keys(entry) {
            self.core.service.turns_put_off = 0;
            return false;
        }
        let store = self.core.group.store.inner_mut();
        let turns_max = store.stats().curr_items / REFERENCES_PER_TURN as u64 + 1;
        self.core.service.turns_put_off += 1;
        let is_put_off =
            self.core.service.turns_put_off <= turns_max && !store.unshare(REFERENCES_PER_TURN);
        if !is_put_off {
            self.core.service.turns_put_off = 0;
        }
        is_put_off
    }

    /// What a command has thrown away is not to wait for the next one: there may be none.
    pub fn free_discarded(&mut self) {
        if let Some(discarded) = self.core.group.store.inner_mut().take_discarded() {
            let (bytes, work) = (discarded.bytes(), discarded.work());
            if !self.upkeep.snapshots.free(discarded, bytes) {
                self.core.group.store.inner().add_work(work);
            }
        }
    }
}

/// A long command may have come in pieces, the last of which completes it.
fn may_name_many_keys(entry: &Entry) -> bool {
    entry.kind == RecordKind::Fragment || entry.payload().len() >= MANY_KEYS_BYTES
}
