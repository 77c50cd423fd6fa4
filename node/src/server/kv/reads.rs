//! Reads of memcached and Redis clients: what is asked of the leader, and answers out of the store, key by
//! key.
use super::meta_reads::{self, MetaRead};
use super::{Core, redis};
use crate::server::clients::{AnswerKind, Connection, ReadState, SlotKind};
use crate::server::origin::Origin;
use crate::server::read_line::ReadProgress;
use crate::server::read_line::{AnswerTime, ReadLine};
use quorumwire_group::FollowerRead;
use quorumwire_interfaces::{Application as _, Reason};
use quorumwire_kv::memcached::{Read, ReadKind, reply};
use quorumwire_kv::{Key, Query, QueryForm};

/// What looking for a key is in work.
pub const KEY_WORK: usize = 128;

/// What to ask the leader for next: all that is not answered yet, or one key of it.
pub fn line_to_forward(progress: ReadProgress, line: &[u8]) -> Vec<u8> {
    let Query::Memcached(read) = Query::of(progress.form, line) else {
        return line.to_vec();
    };
    let ReadKind::Items { keys, with_unique } = read.kind() else {
        return line.to_vec(); // has but one
    };
    let most = progress.keys_at_once as usize;
    let mut asked = Vec::with_capacity(line.len());
    asked.extend_from_slice(if with_unique { b"gets" } else { b"get" });
    for key in keys.iter().skip(progress.keys_done as usize).take(most) {
        asked.push(b' ');
        asked.extend_from_slice(key.bytes());
    }
    asked
}

/// Writes the answer of a read that need not be the first, without its first keys.
pub fn answer_now(
    core: &mut Core,
    origin: Origin,
    read: ReadLine<'_>,
    keys_done: u32,
    out: &mut Vec<u8>,
) {
    let query = read.query();
    match &query {
        Query::Redis(_) | Query::NotOfRedis | Query::Nothing => {
            core.group.store.inner().answer(&query, out);
        }
        Query::Memcached(read) => {
            if let ReadKind::Items { keys, with_unique } = read.kind() {
                let keys = keys.iter().skip(keys_done as usize);
                push_items(core, keys, with_unique, out, usize::MAX);
                out.extend_from_slice(reply::END);
            } else {
                core.answer_meta_read(origin, read, false, out);
            }
        }
    }
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

/// Writes the answer of the first read, key by key, as far as there is room.
pub fn answer_first(
    core: &mut Core,
    connection: &mut Connection,
    progress: ReadProgress,
    room: usize,
) -> bool {
    if connection.redis().is_some() {
        return redis::answer_read(core, connection, progress, room);
    }
    let (line, output) = connection.first_line_and_output(progress.line_bytes);
    let Query::Memcached(read) = Query::of(progress.form, line) else {
        output.extend_from_slice(reply::ERROR);
        return true;
    };
    let ReadKind::Items { keys, with_unique } = read.kind() else {
        let (line, form) = (line.to_vec(), read.form());
        return meta_reads::answer_first(core, connection, &Read::of(form, &line));
    };
    let limit = output.len().saturating_add(room);
    let keys = keys.iter().skip(progress.keys_done as usize);
    let keys_done = progress.keys_done + push_items(core, keys, with_unique, output, limit);
    if keys_done == progress.keys {
        output.extend_from_slice(reply::END);
        return true;
    }
    connection.cut = true;
    if let Some(slot) = connection.slots.first_mut()
        && let SlotKind::Read {
            keys_done: done, ..
        } = &mut slot.kind
    {
        *done = keys_done;
    }
    false
}

/// Writes the answer that came from the leader to the first read.
pub fn put_read_answer(
    connection: &mut Connection,
    line_bytes_form: (u32, QueryForm),
    (said, quiet): (AnswerKind, bool),
    answer: &[u8],
) {
    if connection.redis().is_some() {
        redis::put_read_answer(connection, line_bytes_form, (said, quiet), answer);
    } else {
        connection.put_answer(said, answer);
    }
}

/// The leader's answer for some keys of the first read.
pub fn take_part(connection: &mut Connection, answer: &[u8]) {
    let Some(slot) = connection.slots.first_mut() else {
        return;
    };
    let SlotKind::Read {
        line_bytes,
        keys,
        keys_done,
        keys_at_once,
        state,
        form: _,
    } = &mut slot.kind
    else {
        return;
    };
    let Some(items) = answer.strip_suffix(reply::END) else {
        let first = connection.slots.first_number();
        connection.keep_answer(first, AnswerKind::Answer, answer); // an error: it is the answer to all
        return;
    };
    *keys_done += (*keys - *keys_done).min(*keys_at_once);
    *state = ReadState::ANEW;
    let (line_bytes, is_last) = (*line_bytes, keys_done == keys);
    let (_, output) = connection.first_line_and_output(line_bytes);
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
        let query = Query::from_line(&line);
        match &query {
            Query::Redis(_) | Query::NotOfRedis | Query::Nothing => {
                if self.answer_query(origin, &query, &mut answer) == AnswerTime::Later {
                    return;
                }
            }
            Query::Memcached(read) if matches!(read.kind(), ReadKind::Items { .. }) => {
                self.count_read(read);
                if !self.group.store.inner().answer_fits(read) {
                    return self.group.refuse_follower(from, Reason::AnswerTooLong);
                }
                self.group.store.inner().answer(&query, &mut answer);
            }
            Query::Memcached(read) => {
                // The follower sends no write after a read that it waits for, as long as it does not lead.
                let may_write = self.group.takes_writes_of(from.id.term);
                match self.answer_meta_read(origin, read, may_write, &mut answer) {
                    MetaRead::Answer => {}
                    MetaRead::Write(routed) => {
                        return self.group.answer_unless_pending(from, routed.into());
                    }
                }
            }
        }
        self.group.answer_follower_read(from, answer.into());
    }
}
