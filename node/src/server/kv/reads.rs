//! Reads of memcached and Redis clients: what is asked of the leader, and answers out of the store, key by
//! key.
use super::meta_reads::{self, MetaRead};
use super::{Core, redis};
use crate::server::clients::{Connection, ReadState, Said, SlotKind};
use crate::server::core::Origin;
use crate::server::reads::Place;
use crate::server::service::Answered;
use quorumwire_group::FollowerRead;
use quorumwire_interfaces::Application as _;
use quorumwire_kv::Key;
use quorumwire_kv::memcached::{Asked, Read, reply};

/// What looking for a key is in work.
pub const KEY_WORK: usize = 128;

/// What to ask the leader for next: all that is not answered yet, or one key of it.
pub fn line_to_forward(place: Place, line: &[u8]) -> Vec<u8> {
    let read = Read::from_line(line);
    let Some(Asked::Items { keys, with_unique }) = read.as_ref().map(Read::asked) else {
        return line.to_vec(); // has but one
    };
    let most = place.keys_at_once as usize;
    let mut asked = Vec::with_capacity(line.len());
    asked.extend_from_slice(if with_unique { b"gets" } else { b"get" });
    for key in keys.iter().skip(place.keys_done as usize).take(most) {
        asked.push(b' ');
        asked.extend_from_slice(key.bytes());
    }
    asked
}

/// The answer of a read that need not be at the front, without its first keys.
pub fn answer_now(
    core: &mut Core,
    connection: &Connection,
    slot_number: u64,
    keys_done: u32,
) -> Vec<u8> {
    let line = connection.line(slot_number);
    let mut answer = Vec::new();
    let is_memcached = connection.redis().is_none();
    match Read::from_line(&line).filter(|_| is_memcached) {
        None => core.group.store.query(&line, &mut answer),
        Some(read) => {
            if let Asked::Items { keys, with_unique } = read.asked() {
                let keys = keys.iter().skip(keys_done as usize);
                push_items(core, keys, with_unique, &mut answer, usize::MAX);
                answer.extend_from_slice(reply::END);
            } else {
                let origin = Origin::Client(connection.id, slot_number);
                core.answer_meta_read(origin, &read, false, &mut answer);
            }
        }
    }
    answer
}

/// Writes the items of these keys, until `output` is so long; how many keys are done.
fn push_items<'a>(
    core: &mut Core,
    mut keys: impl Iterator<Item = Key<'a>>,
    with_unique: bool,
    output: &mut Vec<u8>,
    limit: usize,
) -> u32 {
    let mut done = 0;
    let before = output.len();
    while output.len() < limit
        && let Some(key) = keys.next()
    {
        done += 1;
        core.service.counters.get_keys += 1;
        if let Some(item) = core.group.store.inner().get(key) {
            core.service.counters.get_hits += 1;
            reply::push_item(output, key, &item, with_unique);
        }
    }
    let moved = output.len() - before;
    core.group
        .store
        .inner()
        .add_work(done as usize * KEY_WORK + moved);
    done
}

/// Writes the answer of the read at the front, key by key, as far as there is room.
pub fn answer_front(
    core: &mut Core,
    connection: &mut Connection,
    place: Place,
    room: usize,
) -> bool {
    if connection.redis().is_some() {
        return redis::answer_read(core, connection, place.line_bytes, room);
    }
    let (line, output) = connection.front_line_and_output(place.line_bytes);
    let Some(read) = Read::from_line(line) else {
        output.extend_from_slice(reply::ERROR);
        return true;
    };
    let Asked::Items { keys, with_unique } = read.asked() else {
        let line = line.to_vec();
        return Read::from_line(&line)
            .is_none_or(|read| meta_reads::answer_front(core, connection, &read));
    };
    let limit = output.len().saturating_add(room);
    let keys = keys.iter().skip(place.keys_done as usize);
    let keys_done = place.keys_done + push_items(core, keys, with_unique, output, limit);
    if keys_done == place.keys {
        output.extend_from_slice(reply::END);
        return true;
    }
    connection.cut = true;
    if let Some(slot) = connection.slots.front_mut()
        && let SlotKind::Read {
            keys_done: done, ..
        } = &mut slot.kind
    {
        *done = keys_done;
    }
    false
}

/// Writes the answer that came from the leader to the read at the front.
pub fn put_read_answer(
    connection: &mut Connection,
    line_bytes: u32,
    (said, quiet): (Said, bool),
    answer: &[u8],
) {
    if connection.redis().is_some() {
        redis::put_read_answer(connection, line_bytes, (said, quiet), answer);
    } else {
        connection.put_answer(said, answer);
    }
}

/// The leader's answer for some keys of the read at the front.
pub fn take_part(connection: &mut Connection, answer: &[u8]) {
    let Some(slot) = connection.slots.front_mut() else {
        return;
    };
    let SlotKind::Read {
        line_bytes,
        keys,
        keys_done,
        keys_at_once,
        state,
    } = &mut slot.kind
    else {
        return;
    };
    let Some(items) = answer.strip_suffix(reply::END) else {
        let front = connection.first_slot;
        connection.keep_answer(front, Said::Answer, answer); // an error: it is the answer to all
        return;
    };
    *keys_done += (*keys - *keys_done).min(*keys_at_once);
    *state = ReadState::ANEW;
    let (line_bytes, is_last) = (*line_bytes, keys_done == keys);
    let (_, output) = connection.front_line_and_output(line_bytes);
    output.extend_from_slice(items);
    if is_last {
        output.extend_from_slice(reply::END);
        connection.pop_slot();
    }
}

impl Core {
    /// Answers it out of the store as it is now.
    pub fn answer_follower(&mut self, read: FollowerRead) {
        let FollowerRead { from, line, at: _ } = read;
        let origin = Origin::Follower(from);
        let mut answer = Vec::new();
        match Read::from_line(&line) {
            _ if redis::is_read(&line) => {
                if self.answer_query(origin, &line, &mut answer) == Answered::Later {
                    return;
                }
            }
            Some(read) if matches!(read.asked(), Asked::Items { .. }) => {
                self.group.store.query(&line, &mut answer);
                self.count_read(&read);
            }
            Some(read) => {
                // The follower sends no write after a read that it waits for, as long as it does not lead.
                let may_write = self.group.takes_writes_of(from.id.term);
                match self.answer_meta_read(origin, &read, may_write, &mut answer) {
                    MetaRead::Answered => {}
                    MetaRead::Written(routed) => {
                        return self.group.answer_unless_pending(from, routed.into());
                    }
                }
            }
            None => answer.extend_from_slice(reply::ERROR),
        }
        self.group.answer_follower_read(from, answer.into());
    }
}
