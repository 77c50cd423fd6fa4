//! Reads of the meta protocol: answered out of the store like others, unless the answer changes what it
//! finds. Then the log carries them.
use super::Core;
use crate::server::clients::{AnswerKind, Connection};
use crate::server::origin::Origin;
use crate::server::route_outcome::RouteOutcome;
use quorumwire_kv::memcached::{Read, ReadKind, reply};

/// What became of a read.
pub enum MetaRead {
    /// It is answered.
    Answer,
    /// It goes on as a write, to the same origin.
    Write(RouteOutcome),
}

impl Core {
    /// Answers an `mg` or `me`, or writes it. `may_write` says that nothing of the same client waits behind
    /// it in the log: else it wins nothing.
    pub fn answer_meta_read(
        &mut self,
        origin: Origin,
        read: &Read<'_>,
        may_write: bool,
        output: &mut Vec<u8>,
    ) -> MetaRead {
        let before = output.len();
        let store = self.group.store.inner();
        store.answer_memcached(read, output);
        if output[before..] == *reply::MUST_WRITE {
            output.truncate(before);
            if let (true, Some(command)) = (may_write, read.as_write()) {
                let routed = self.write(origin, command.encoded_bytes(), |buffer| {
                    command.encode(buffer);
                });
                return MetaRead::Write(routed);
            }
            if let ReadKind::Meta(meta) = read.kind() {
                store.answer_without_win(&meta, output);
            }
        }
        self.count_read(read);
        MetaRead::Answer
    }

    /// Counts what a read finds.
    pub fn count_read(&mut self, read: &Read<'_>) {
        if matches!(read.kind(), ReadKind::Debug(_)) {
            self.service.counters.meta_debug_commands += 1;
            return;
        }
        let (mut keys, mut hits) = (0, 0);
        let store = self.group.store.inner();
        read.for_each_key(|key| {
            keys += 1;
            hits += u64::from(store.get(key).is_some());
        });
        self.service.counters.get_keys += keys;
        self.service.counters.get_hits += hits;
    }
}

/// Answers the first read, a meta read, whose line is that of `read`. True: it is answered whole.
pub fn answer_first(core: &mut Core, connection: &mut Connection, read: &Read<'_>) -> bool {
    let origin = Origin::Client(connection.id, connection.slots.first_number());
    let may_write = connection.slots.writes() == 0;
    match core.answer_meta_read(origin, read, may_write, &mut connection.output) {
        MetaRead::Answer => true,
        MetaRead::Write(RouteOutcome::Pending) => {
            connection.make_first_a_write();
            false
        }
        MetaRead::Write(RouteOutcome::Stalled) => false, // looked at again with all that stall
        MetaRead::Write(RouteOutcome::Refused(reason, instead)) => {
            connection.put_answer(AnswerKind::Refused(reason), instead.as_bytes());
            true
        }
    }
}
