//! The store: what every write does, and when items end. Deterministic; knows no other clock than the
//! log's.
//!
//! The state is the items whose end is after the log time, the log time itself, and the time of a
//! coming `flush_all`. A life given by a command that awaits its time is moved as a whole by the tick
//! that follows: it began when the log's time was old, by nobody knew how much. Items whose end has come
//! are removed a few per entry; until then nobody sees them, so that how far the removal got is not part
//! of the state.

mod alarms;
mod awaiting;
mod changes;
mod clock;
mod ends;
mod evict;
mod expected;
mod gone;
mod item;
mod memory;
mod meta;
mod outcomes;
mod redis;
mod search;
mod shards;
mod snapshot;
mod work_done;

use std::io;

use quorumwire_interfaces::{Application, Applied, Frozen, LogTime, counters};

use self::alarms::Alarms;
use self::awaiting::Awaiting;
use self::changes::Changes;
use self::clock::Moment;
pub use self::gone::Discarded;
use self::gone::Gone;
use self::item::{Awaits, Contents, Item, NEVER, Recache};
use self::memory::{Footprint, Memory};
pub use self::memory::{MemoryLimit, MemoryPolicy};
pub use self::outcomes::Outcomes;
pub use self::search::{Search, SearchProgress};
use self::shards::Shards;
pub(crate) use self::work_done::PER_ITEM_GONE;
use self::work_done::{PER_COMMAND, PER_KEY, PER_REFERENCE, WorkDone};
use crate::memcached::{NO_KEY, Read, ReadKind, reply, unsigned};
use crate::{Command, Exptime, Key, Keys, Query, REPLY_BYTES_MAX, VALUE_BYTES_MAX, Written};

/// The items of one replica, as a state machine.
#[derive(Debug)]
pub struct Store {
    items: Shards,
    alarms: Alarms,
    awaiting: Awaiting,
    log_time_ms: u64,
    /// By how much that is ahead of the time of day, if the last tick said so.
    ahead_ms: Option<i64>,
    /// By how much the tick that is carried out just now has changed that.
    turned_ms: i64,
    /// What time it is for reads, if that is later. Not part of the state.
    clock_ms: u64,
    /// When everything that is there by then goes; [`NEVER`] if nothing is to.
    flush_at_ms: u64,
    /// That time counts from the next tick, as an item's life may.
    flush_awaits: Awaits,
    memory: Memory,
    gone: Gone,
    counts: Counts,
    changes: Changes,
    work_done: WorkDone,
}

/// What [`Store::take_changes`] tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Changed<'a> {
    /// Any item may have changed.
    Everything,
    /// This one may have; the item itself, if it is [lasting](Store::lasting).
    Item(Key<'a>, Option<ItemView<'a>>),
}

/// An item as a read shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ItemView<'a> {
    /// The client's own 32 bits.
    pub flags: u32,
    /// Number of the command that last changed the value: what `gets` shows and `cas` compares.
    pub unique: u64,
    /// The value.
    pub value: &'a [u8],
}

/// Figures about this replica's store. Not part of the state: replicas that are equal may count apart.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Items in memory, with those whose time has passed and that wait for their removal.
    pub curr_items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Bytes they take in memory, by estimate.
    pub memory_bytes: u64,
    /// Those of them that count against the memory limit: of items whose time has not passed.
    pub limited_bytes: u64,
    /// Those that have an end.
    pub with_end: u64,
    /// Items stored since the process started, or since the last restore.
    pub total_items: u64,
    /// Items removed because their time had passed, since then.
    pub expired: u64,
    /// What the memory limit has cost, since then.
    pub memory: MemoryCounters,
    /// Times that everything was flushed, since then.
    pub flushes: u64,
    /// How commands turned out, since then.
    pub outcomes: Outcomes,
}

#[derive(Debug, Default)]
struct Counts {
    total_items: u64,
    expired: u64,
    memory: MemoryCounters,
    flushes: u64,
    outcomes: Outcomes,
}

counters! {
    /// What the memory limit has cost since the process started, or since the last restore.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct MemoryCounters {
        /// Items evicted to keep the memory limit, since the start or the last snapshot installed
        pub evicted: "items_evicted",
        /// Commands refused at the memory limit, since the start or the last snapshot installed
        pub refused: "writes_refused_for_memory",
    }
}

/// What a command runs at: its number and the time of its log entry.
#[derive(Clone, Copy)]
struct At {
    number: u64,
    now_ms: u64,
    /// By how much `now_ms` is ahead of the time of day, if the log says it.
    ahead_ms: Option<i64>,
    /// `now_ms` may be long past.
    awaits_time: bool,
}

impl At {
    fn moment(self) -> Moment {
        Moment {
            now_ms: self.now_ms,
            ahead_ms: self.ahead_ms.unwrap_or(0),
        }
    }

    /// What the next tick tells of an end that counts from this command, or is a point of the time of day.
    /// Nothing of such a point while the log does not say what the time of day is: older code would not move
    /// it.
    const fn awaits(self, counts_from_now: bool) -> Awaits {
        match (self.awaits_time, counts_from_now, self.ahead_ms) {
            (true, true, _) => Awaits::Time,
            (true, false, Some(_)) => Awaits::Day,
            (true, false, None) | (false, _, _) => Awaits::Nothing,
        }
    }

    /// The same of what has this expiry time.
    fn awaits_for(self, exptime: Exptime) -> Awaits {
        match exptime.0 {
            ..=0 => Awaits::Nothing,
            1.. => self.awaits((1..=Exptime::RELATIVE_MAX).contains(&exptime.0)),
        }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self {
            items: Shards::default(),
            alarms: Alarms::default(),
            awaiting: Awaiting::default(),
            log_time_ms: 0,
            ahead_ms: None,
            turned_ms: 0,
            clock_ms: 0,
            flush_at_ms: NEVER,
            flush_awaits: Awaits::Nothing,
            memory: Memory::default(),
            gone: Gone::default(),
            counts: Counts::default(),
            changes: Changes::default(),
            work_done: WorkDone::default(),
        }
    }
}

impl Application for Store {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        self.free_discarded();
        if point_of_time(entry.log_time) > self.log_time_ms {
            self.move_time(entry.log_time);
        }
        self.tidy();
        let at = At {
            number: entry.number,
            now_ms: self.log_time_ms,
            ahead_ms: self.ahead_ms,
            awaits_time: entry.awaits_time,
        };
        let before = reply.len();
        match Command::decode(entry.command) {
            Ok(command) => {
                self.note_changes(&command);
                self.run(&command, at, reply);
                self.counts.outcomes.note(&command, &reply[before..]);
            }
            Err(_) => reply.extend_from_slice(bad_command(entry.command)),
        }
        let moved = entry.command.len() + reply.len() - before;
        self.work_done.add(PER_COMMAND + moved);
    }

    fn advance(&mut self, log_time: LogTime) {
        self.work_done.add(PER_COMMAND);
        self.free_discarded();
        self.move_time(log_time);
        self.tidy();
    }

    fn set_ahead(&mut self, ahead_ms: Option<i64>) {
        let [before_ms, after_ms] = [self.ahead_ms, ahead_ms].map(|it| it.unwrap_or(0));
        self.turned_ms = after_ms.saturating_sub(before_ms);
        self.ahead_ms = ahead_ms;
    }

    fn log_time(&self) -> LogTime {
        LogTime(self.log_time_ms)
    }

    fn ahead_ms(&self) -> Option<i64> {
        self.ahead_ms
    }

    fn set_clock(&mut self, time: LogTime) {
        self.clock_ms = point_of_time(time);
    }

    fn is_overdue(&self, request: &[u8]) -> bool {
        self.may_show_what_is_overdue() && self.shows_what_is_overdue(&Query::from_line(request))
    }

    fn awaits_time(&self) -> bool {
        self.flush_awaits != Awaits::Nothing || !self.awaiting.is_empty()
    }

    /// May be earlier than the next change, never later: an item that was given a later end may still
    /// be looked at on its first one.
    fn next_deadline(&self) -> Option<LogTime> {
        if self.memory.has_work() {
            return Some(LogTime(self.log_time_ms));
        }
        let next_ms = self.alarms.next_ms().min(self.flush_at_ms);
        (next_ms != NEVER).then_some(LogTime(next_ms))
    }

    /// Takes the line of a [`Query`]; who has that already hands it to [`Store::answer`].
    fn query(&self, request: &[u8], reply: &mut Vec<u8>) {
        self.answer(&Query::from_line(request), reply);
    }

    /// Takes 4,096 reference counts; the first later write to each shard copies that shard's table of
    /// references, never a value.
    fn freeze(&self) -> Box<dyn Frozen> {
        let flush_at_ms = self.flush_at_ms;
        Box::new(snapshot::FrozenStore::new(
            self.items.freeze(),
            (self.log_time_ms, self.ahead_ms),
            (flush_at_ms, self.flush_awaits),
            (self.memory.limit, self.memory.order.sorted()),
        ))
    }

    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.note_everything();
        let clock_ms = self.clock_ms;
        *self = Self::default();
        let restored = snapshot::read(reader, self).inspect_err(|_| *self = Self::default());
        (self.changes, self.clock_ms) = (changes, clock_ms);
        restored
    }

    fn reads_time_of_day(&self) -> bool {
        true
    }

    fn shows_time(command: &[u8]) -> bool {
        Command::decode(command).is_ok_and(|command| command.shows_time())
    }

    /// In the measure of [`WORK_MAX`](crate::WORK_MAX).
    fn work_done(&self) -> u64 {
        self.work_done.get()
    }

    fn add_work(&self, work: usize) {
        self.work_done.add(work);
    }

    fn work_of(&self, command: &[u8]) -> usize {
        Command::decode(command).map_or(0, |command| self.expected_work(&command))
    }

    fn work_of_query(&self, request: &[u8]) -> usize {
        self.expected_work_of_query(&Query::from_line(request))
    }

    fn work_max_of(command: &[u8]) -> usize {
        Command::decode(command).map_or(0, |command| command.work_max())
    }

    fn memory_bytes(&self) -> u64 {
        self.stats().memory_bytes
    }
}

impl Store {
    /// An empty store at log time 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The item called `key`, unless its time has passed.
    #[must_use]
    pub fn get(&self, key: Key<'_>) -> Option<ItemView<'_>> {
        self.live(key).map(Item::view)
    }

    fn live(&self, key: Key<'_>) -> Option<&Item> {
        let item = self.items.get(self.items.hash(key), key)?;
        (item.deadline_ms > self.log_time_ms).then_some(item)
    }

    /// Answers a read. An answer that could be longer than [`REPLY_BYTES_MAX`] is refused; [`Store::get`]
    /// knows no such limit. [`reply::MUST_WRITE`] says that the answer changes an item.
    pub fn answer(&self, query: &Query<'_>, reply: &mut Vec<u8>) {
        match query {
            Query::Memcached(read) => self.answer_memcached(read, reply),
            Query::Redis(read) => self.answer_redis(read, reply),
            Query::NotOfRedis => {
                crate::redis::reply::error(reply, b"ERR not a command of this version");
            }
            Query::Nothing => reply.extend_from_slice(reply::ERROR),
        }
    }

    /// Whether the answer to this read is no longer than [`REPLY_BYTES_MAX`].
    #[must_use]
    pub fn answer_fits(&self, read: &Read<'_>) -> bool {
        match read.kind() {
            ReadKind::Items { keys, .. } => self.fits_in_reply(keys),
            ReadKind::Meta(_) | ReadKind::Debug(_) => true, // of one item
        }
    }

    /// The same for one of memcached.
    pub fn answer_memcached(&self, read: &Read<'_>, reply: &mut Vec<u8>) {
        let before = reply.len();
        self.answer_asked(read, reply);
        let moved = reply.len() - before;
        let work = PER_COMMAND + read.key_count() * PER_KEY + moved;
        self.work_done.add(work);
    }

    fn answer_asked(&self, read: &Read<'_>, reply: &mut Vec<u8>) {
        match read.kind() {
            ReadKind::Items { keys, with_unique } => {
                if !self.fits_in_reply(keys) {
                    return reply.extend_from_slice(reply::REPLY_TOO_LARGE);
                }
                for key in keys.iter() {
                    if let Some(item) = self.get(key) {
                        reply::push_item(reply, key, &item, with_unique);
                    }
                }
                reply.extend_from_slice(reply::END);
            }
            ReadKind::Meta(meta) if !self.show_meta(&meta, reply) => {
                reply.extend_from_slice(reply::MUST_WRITE);
            }
            ReadKind::Meta(_) => {}
            ReadKind::Debug(debug) => self.show_debug(&debug, reply),
        }
    }

    /// The item called `key`, if only commands can change it: it has no end, and no flush is to come.
    #[must_use]
    pub fn lasting(&self, key: Key<'_>) -> Option<ItemView<'_>> {
        let item = self.items.get(self.items.hash(key), key)?;
        let lasts = item.deadline_ms == NEVER && self.flush_at_ms == NEVER;
        lasts.then(|| item.view())
    }

    /// Whether changes are noted from now on, for [`take_changes`](Self::take_changes). Those before are
    /// forgotten.
    pub fn follow_changes(&mut self, follow: bool) {
        self.changes = Changes::default();
        self.changes.are_followed = follow;
    }

    /// Tells what may have changed since the last time, as far as [lasting](Self::lasting) items go.
    pub fn take_changes(&mut self, sink: &mut dyn FnMut(Changed<'_>)) {
        let (everything, keys) = self.changes.take();
        if everything {
            sink(Changed::Everything);
        }
        for key in keys.iter().filter_map(|bytes| Key::binary(bytes)) {
            sink(Changed::Item(key, self.lasting(key)));
        }
    }

    /// Copies what a command of many keys would have to copy because a snapshot, a backup or a search holds
    /// it, too; so many references at most, or a few more. Whether that was all: if not, it is to be called
    /// again before such a command, which otherwise takes as long as all of it. Changes no state.
    pub fn unshare(&mut self, references_max: usize) -> bool {
        let (copied, is_all) = self.items.unshare(references_max);
        self.work_done.add(copied * PER_REFERENCE);
        is_all
    }

    /// Figures about this replica's store; costs nothing.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let curr_items = self.items.count();
        Stats {
            curr_items,
            bytes: self.memory.all_bytes() - curr_items * item::OVERHEAD_BYTES,
            memory_bytes: self.memory.all_bytes(),
            limited_bytes: self.memory.used_bytes(),
            with_end: self.alarms.count(),
            total_items: self.counts.total_items,
            expired: self.counts.expired,
            memory: self.counts.memory,
            flushes: self.counts.flushes,
            outcomes: self.counts.outcomes,
        }
    }

    /// A tick: time has come this far, and what awaited it counts from here.
    fn move_time(&mut self, log_time: LogTime) {
        let before_ms = self.log_time_ms;
        self.log_time_ms = before_ms.max(point_of_time(log_time));
        self.settle_ends(self.log_time_ms - before_ms);
        let passed = self.memory.move_time(self.log_time_ms);
        self.work_done.add(passed * PER_KEY);
        if self.flush_at_ms <= self.log_time_ms {
            self.flush();
        }
    }

    /// Moves the ends that were reckoned by the tick before to where they are by this one. As many at once as
    /// commands await it: those that came between the two ticks.
    fn settle_ends(&mut self, passed_ms: u64) {
        let turned_ms = std::mem::take(&mut self.turned_ms);
        let flush = std::mem::take(&mut self.flush_awaits);
        self.flush_at_ms = flush.settled(self.flush_at_ms, passed_ms, turned_ms);
        for hash in self.awaiting.take() {
            self.work_done.add(PER_KEY);
            while let Some(slot) = self.items.awaiting_mut(hash) {
                let before = Footprint::of(slot);
                let item = item::make_mut(slot);
                let awaited = std::mem::take(&mut item.awaits);
                item.deadline_ms = awaited.settled(item.deadline_ms, passed_ms, turned_ms);
                self.alarms.cover(item, hash);
                self.memory.changed(hash, before, Footprint::of(item));
            }
        }
    }

    /// Whatever the command may change: more is noted than does change, never less.
    fn note_changes(&mut self, command: &Command<'_>) {
        match *command {
            Command::Set(item) | Command::Add(item) | Command::Replace(item) => {
                self.changes.note(item.key);
            }
            Command::Cas { item, .. } => self.changes.note(item.key),
            Command::Append { key, .. }
            | Command::Prepend { key, .. }
            | Command::Increment { key, .. }
            | Command::Decrement { key, .. }
            | Command::Touch { key, .. }
            | Command::Delete { key } => self.changes.note(key),
            Command::GetAndTouch { keys, .. } => {
                for key in keys.iter() {
                    self.changes.note(key);
                }
            }
            Command::FlushAll { .. } => self.changes.note_everything(),
            Command::Memory(_) => {} // what is evicted is noted then
            Command::Redis(script) => self.note_script(&script),
            Command::Meta { meta, .. } => self.changes.note(meta.key(&mut NO_KEY.clone())),
        }
    }

    fn run(&mut self, command: &Command<'_>, at: At, reply: &mut Vec<u8>) {
        if self.memory.is_over_limit()
            && let Some(answer) = Self::refusal(command)
        {
            self.counts.memory.refused += 1;
            reply.extend_from_slice(answer);
            return;
        }
        let answer = match *command {
            Command::Add(item) if self.get(item.key).is_some() => reply::NOT_STORED,
            Command::Replace(item) if self.get(item.key).is_none() => reply::NOT_STORED,
            Command::Set(item) | Command::Add(item) | Command::Replace(item) => {
                self.store(item, at)
            }
            Command::Cas { item, unique } => match self.get(item.key) {
                None => reply::NOT_FOUND,
                Some(found) if found.unique != unique => reply::EXISTS,
                Some(_) => self.store(item, at),
            },
            Command::Append { key, value } => self.extend(key, b"", value, at),
            Command::Prepend { key, value } => self.extend(key, value, b"", at),
            Command::Increment { key, delta } => {
                return self.count(key, |number| number.wrapping_add(delta), at, reply);
            }
            Command::Decrement { key, delta } => {
                return self.count(key, |number| number.saturating_sub(delta), at, reply);
            }
            Command::Touch { key, exptime } if self.touch(key, exptime, at) => reply::TOUCHED,
            Command::Delete { key } if self.get(key).is_some() => {
                self.remove(self.items.hash(key), key);
                reply::DELETED
            }
            Command::Touch { .. } | Command::Delete { .. } => reply::NOT_FOUND,
            Command::GetAndTouch {
                keys,
                exptime,
                with_unique,
            } => self.get_and_touch((keys, exptime), with_unique, at, reply),
            Command::FlushAll { delay } => self.flush_all(delay, at),
            Command::Memory(change) => self.change_memory(&change, at),
            Command::Redis(script) => return self.run_script(&script, at, reply),
            Command::Meta { meta, value } => return self.run_meta(&meta, value, at, reply),
        };
        reply.extend_from_slice(answer);
    }

    fn store(&mut self, item: Written<'_>, at: At) -> &'static [u8] {
        let contents = Contents {
            flags: item.flags,
            unique: at.number,
            deadline_ms: deadline_ms(item.exptime, at.moment()),
            awaits: at.awaits_for(item.exptime),
            recache: Recache::default(),
            value: [item.value, b""],
        };
        self.put(item.key, &contents, at.now_ms);
        self.counts.total_items += 1;
        reply::STORED
    }

    /// `append` and `prepend`: an item's flags and end stay as they are.
    fn extend(&mut self, key: Key<'_>, front: &[u8], back: &[u8], at: At) -> &'static [u8] {
        let hash = self.items.hash(key);
        let Some(slot) = self.items.get_mut(hash, key) else {
            return reply::NOT_STORED;
        };
        let bytes = slot.value().len() + front.len() + back.len();
        if slot.deadline_ms <= at.now_ms || bytes > VALUE_BYTES_MAX {
            return reply::NOT_STORED;
        }
        let before = Footprint::of(slot);
        item::extend(slot, front, back, at.number);
        self.memory.changed(hash, before, Footprint::of(slot));
        self.counts.total_items += 1;
        reply::STORED
    }

    /// `incr` and `decr`: like memcached, a number never makes the value shorter, blanks fill it up.
    fn count(
        &mut self,
        key: Key<'_>,
        change: impl FnOnce(u64) -> u64,
        at: At,
        reply: &mut Vec<u8>,
    ) {
        let hash = self.items.hash(key);
        let found = self
            .items
            .get_mut(hash, key)
            .filter(|slot| slot.deadline_ms > at.now_ms);
        let Some(slot) = found else {
            reply.extend_from_slice(reply::NOT_FOUND);
            return;
        };
        let Some(number) = unsigned(slot.value()) else {
            reply.extend_from_slice(reply::NOT_NUMERIC);
            return;
        };
        let (digits, start) = reply::decimal(change(number));
        let digits = &digits[start..];
        let before = Footprint::of(slot);
        if digits.len() > slot.value().len() && self.memory.is_over_limit() {
            self.counts.memory.refused += 1;
            reply.extend_from_slice(reply::OUT_OF_MEMORY_FOR_NUMBER);
            return;
        }
        item::write_number(slot, digits, at.number);
        self.memory.changed(hash, before, Footprint::of(slot));
        reply.extend_from_slice(digits);
        reply.extend_from_slice(b"\r\n");
    }

    /// Gives an item a new end; false if there is none. Its unique number stays.
    fn touch(&mut self, key: Key<'_>, exptime: Exptime, at: At) -> bool {
        let hash = self.items.hash(key);
        let now_ms = at.now_ms;
        let found = self
            .items
            .get_mut(hash, key)
            .filter(|slot| slot.deadline_ms > now_ms);
        let Some(slot) = found else {
            return false;
        };
        let end_ms = deadline_ms(exptime, at.moment());
        let awaits = at.awaits_for(exptime);
        if end_ms <= now_ms {
            self.remove(hash, key);
        } else if (slot.deadline_ms, slot.awaits) != (end_ms, awaits) || self.memory.limit.evicts()
        {
            let before = Footprint::of(slot);
            let item = item::make_mut(slot);
            item.deadline_ms = end_ms;
            item.awaits = awaits;
            if self.memory.limit.evicts() {
                item.touched = at.number;
            }
            self.alarms.cover(item, hash);
            self.memory.changed(hash, before, Footprint::of(item));
            self.note_awaiting(hash, awaits);
        }
        true
    }

    fn get_and_touch(
        &mut self,
        (keys, exptime): (Keys<'_>, Exptime),
        with_unique: bool,
        at: At,
        reply: &mut Vec<u8>,
    ) -> &'static [u8] {
        if !self.fits_in_reply(keys) {
            return reply::REPLY_TOO_LARGE;
        }
        for key in keys.iter() {
            self.work_done.add(PER_KEY);
            if let Some(item) = self.get(key) {
                reply::push_item(reply, key, &item, with_unique);
            }
            let is_there = self.touch(key, exptime, at);
            self.counts.outcomes.note_touch(!is_there);
        }
        reply::END
    }

    /// Whether the answer with all these items is short enough to be assembled in memory.
    fn fits_in_reply(&self, keys: Keys<'_>) -> bool {
        let mut room = REPLY_BYTES_MAX - reply::END.len();
        for key in keys.iter() {
            if let Some(item) = self.get(key) {
                let bytes = reply::ITEM_FRAME_BYTES_MAX + key.bytes().len() + item.value.len();
                let Some(left) = room.checked_sub(bytes) else {
                    return false;
                };
                room = left;
            }
        }
        true
    }

    /// The last `flush_all` counts: it takes the place of one that still waits for its time. Like in
    /// memcached, a point of Unix time that has passed flushes nothing.
    fn flush_all(&mut self, delay: Exptime, at: At) -> &'static [u8] {
        if delay.0 <= 0 {
            self.flush();
        } else {
            let flush_ms = deadline_ms(delay, at.moment());
            self.flush_at_ms = if flush_ms > at.now_ms {
                flush_ms
            } else {
                NEVER
            };
            self.flush_awaits = if self.flush_at_ms == NEVER {
                Awaits::Nothing
            } else {
                at.awaits_for(delay)
            };
        }
        reply::OK
    }

    /// Makes `contents` the item called `key`, or makes it nothing if its time is already over.
    fn put(&mut self, key: Key<'_>, contents: &Contents<'_>, now_ms: u64) {
        let hash = self.items.hash(key);
        if contents.deadline_ms <= now_ms {
            self.remove(hash, key);
        } else if let Some(slot) = self.items.get_mut(hash, key) {
            let before = Footprint::of(slot);
            let item = item::rewrite(slot, contents);
            self.alarms.cover(item, hash);
            self.memory.changed(hash, before, Footprint::of(item));
            self.note_awaiting(hash, contents.awaits);
        } else {
            let mut item = Item::new(key.bytes(), key.length(), contents);
            self.alarms.cover(&mut item, hash);
            self.memory.added(hash, Footprint::of(&item));
            self.items.insert(hash, item);
            self.note_awaiting(hash, contents.awaits);
        }
    }

    fn note_awaiting(&mut self, hash: u64, awaits: Awaits) {
        if awaits != Awaits::Nothing {
            let items = &self.items;
            self.awaiting.add(hash, |hash| items.has_awaiting(hash));
        }
    }

    fn remove(&mut self, hash: u64, key: Key<'_>) {
        if let Some(item) = self.items.remove(hash, key) {
            self.memory.removed(hash, Footprint::of(&item));
            self.alarms.cancel(item.alarm);
        }
    }
}

/// The answer to what is no command, in the language of whoever sent it, if that is known.
fn bad_command(command: &[u8]) -> &'static [u8] {
    if Command::is_script(command) {
        b"-ERR not a command of this version\r\n"
    } else {
        reply::BAD_COMMAND
    }
}

/// No point of time is [`NEVER`], else what has no end would end.
fn point_of_time(log_time: LogTime) -> u64 {
    log_time.0.min(NEVER - 1)
}

/// The log time at which something with this expiry time ends; not later than the moment if at once.
fn deadline_ms(exptime: Exptime, moment: Moment) -> u64 {
    let Ok(seconds) = u64::try_from(exptime.0) else {
        return 0;
    };
    let ms = seconds.saturating_mul(1000).min(NEVER - 1);
    match exptime.0 {
        0 => NEVER,
        1..=Exptime::RELATIVE_MAX => ms.saturating_add(moment.now_ms).min(NEVER - 1),
        _ => moment.log_ms(ms).min(NEVER - 1),
    }
}

#[cfg(test)]
mod tests;
