//! What Redis commands do to the store: single ones and transactions, at one place of the log each, and
//! reads. Knows no connections.
//!
//! A command answers, or it has changed nothing and its error is the answer. A value of Redis is one of
//! memcached: what a Redis command writes anew has the flags 0, what it changes keeps them.

mod bitfield;
mod bits;
mod keys;
mod lifetimes;
mod numbers;
mod options;
mod scan;
mod strings;
pub(super) mod work;

pub(super) use scan::{COUNT_MAX, COUNT_USUAL, take_page};

use std::hash::{BuildHasher, RandomState};

use smallvec::SmallVec;

use super::clock::Moment;
use super::item::{self, Awaits, Contents, Item, NEVER, Recache};
use super::memory::Footprint;
use super::work_done::PER_COMMAND;
use super::{At, Store};
use crate::redis::{
    Answer, Fault, Kind, Outcome, Read, ReadKind, Resp, Script, Spec, Words, answer_in_transaction,
    find, integer, reply, within_limit,
};
use crate::{Key, REPLY_BYTES_MAX, VALUE_BYTES_MAX, WORK_MAX};

/// Kept free in a transaction's answer for each command that is still to come: more than an error has, or the
/// answer of a write that shows no value.
const ANSWER_BYTES_LEAST: usize = 512;

/// Words of one command, its name included.
type Arguments<'w> = [&'w [u8]];

/// Words that are taken apart without an allocation.
pub(super) const WORDS_USUAL: usize = 8;

/// When an item ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Life {
    end_ms: u64,
    awaits: Awaits,
}

const FOREVER: Life = Life {
    end_ms: NEVER,
    awaits: Awaits::Nothing,
};

const SYNTAX: &str = "ERR syntax error";
const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const TOO_LARGE: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
const SAME_OBJECT: &str = "ERR source and destination objects are the same";

impl Store {
    /// Answers a command that changes nothing. The one called `\0versions`, which no client of Redis can
    /// send, shows the [`version`](Self::version) of each key, as strings of digits.
    pub fn redis_read(&self, resp: Resp, words: &Words<'_>, out: &mut Vec<u8>) {
        self.answer_words((resp, ReadKind::of(words)), words, out);
    }

    pub(super) fn answer_redis(&self, read: &Read<'_>, out: &mut Vec<u8>) {
        self.answer_words((read.resp(), read.kind()), read.words(), out);
    }

    fn answer_words(&self, (resp, asked): (Resp, ReadKind), words: &Words<'_>, out: &mut Vec<u8>) {
        let mut answer = Answer {
            end_max: out.len() + REPLY_BYTES_MAX,
            out,
            resp,
            work_left: WORK_MAX,
            chance: RandomState::new().hash_one(()),
        };
        let before = answer.out.len();
        self.answer_asked_by(asked, words, &mut answer);
        let moved = words.text().len() + answer.out.len() - before;
        let work = WORK_MAX - answer.work_left;
        self.work_done.add(PER_COMMAND + moved + work);
    }

    fn answer_asked_by(&self, asked: ReadKind, words: &Words<'_>, answer: &mut Answer<'_>) {
        match asked {
            ReadKind::Versions => answer.or_fault(|answer| self.show_versions(words, answer)),
            ReadKind::Unknown => {
                let error = find(words).err().unwrap_or_default();
                answer.out.extend_from_slice(&error);
            }
            ReadKind::Command(spec) => answer.or_fault(|answer| {
                let arguments: SmallVec<[&[u8]; WORDS_USUAL]> = words.iter().collect();
                answer.spend(arguments.len() * work::PER_WORD)?;
                match spec.kind {
                    Kind::Read => self.read(spec, &arguments, self.moment(), answer),
                    Kind::Write => Err("ERR not a read".into()),
                    Kind::Connection => {
                        answer_in_transaction(spec, words, self.moment().time_of_day_ms(), answer)
                    }
                }
            }),
        }
    }

    /// What tells one state of a key from the next: 0 if it is not there, else the number of the command
    /// that last changed its value, or with a Redis command its lifetime.
    #[must_use]
    pub fn version(&self, key: Key<'_>) -> u64 {
        self.get(key).map_or(0, |item| item.unique)
    }

    fn show_versions(&self, words: &Words<'_>, answer: &mut Answer<'_>) -> Outcome {
        answer.spend(words.len() * work::PER_WORD)?;
        reply::array_header(answer.out, words.len() - 1);
        for name in words.iter().skip(1) {
            let version = Key::binary(name).map_or(0, |key| self.version(key));
            answer.bulk(version.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// Whatever the script may change: more is noted than does change, never less.
    pub(super) fn note_script(&mut self, script: &Script<'_>) {
        if !self.changes.are_followed {
            return;
        }
        for words in script.each_command() {
            let Ok(spec) = find(&words) else { continue };
            match spec.kind {
                Kind::Read | Kind::Connection => {}
                Kind::Write if spec.keys.is_empty() => self.changes.note_everything(),
                Kind::Write => {
                    for (place, word) in words.iter().enumerate() {
                        if spec.is_key(place, words.len())
                            && let Some(key) = Key::binary(word)
                        {
                            self.changes.note(key);
                        }
                    }
                }
            }
        }
    }

    pub(super) fn run_script(&mut self, script: &Script<'_>, at: At, out: &mut Vec<u8>) {
        let mut work_left = WORK_MAX;
        self.run_within(script, at, out, &mut work_left);
        self.work_done.add(WORK_MAX - work_left);
    }

    fn run_within(
        &mut self,
        script: &Script<'_>,
        at: At,
        out: &mut Vec<u8>,
        work_left: &mut usize,
    ) {
        let end_max = out.len() + REPLY_BYTES_MAX;
        if !script.is_transaction {
            for words in script.each_command() {
                self.run_command(script, &words, at, (out, end_max), work_left);
            }
            return;
        }
        let mut watched = script.each_watched();
        if watched.any(|(key, version)| self.version(key) != version) {
            reply::null_array(out, script.resp);
            return;
        }
        let mut to_come = script.each_command().count();
        reply::array_header(out, to_come);
        for words in script.each_command() {
            to_come -= 1;
            let kept = to_come * ANSWER_BYTES_LEAST;
            self.run_command(script, &words, at, (out, end_max - kept), work_left);
        }
    }

    fn run_command(
        &mut self,
        script: &Script<'_>,
        words: &Words<'_>,
        at: At,
        (out, end_max): (&mut Vec<u8>, usize),
        work_left: &mut usize,
    ) {
        let mut answer = Answer {
            out,
            resp: script.resp,
            end_max,
            work_left: *work_left,
            chance: at.number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        match find(words) {
            Err(error) => answer.out.extend_from_slice(&within_limit(error)),
            Ok(spec) => answer.or_fault(|answer| {
                let arguments: SmallVec<[&[u8]; WORDS_USUAL]> = words.iter().collect();
                answer.spend(self.work_of(spec, &arguments, at, script.is_transaction))?;
                match spec.kind {
                    Kind::Write => self.write(spec, &arguments, at, answer),
                    Kind::Read => self.read(spec, &arguments, at.moment(), answer),
                    Kind::Connection => {
                        answer_in_transaction(spec, words, at.moment().time_of_day_ms(), answer)
                    }
                }
            }),
        }
        *work_left = answer.work_left;
    }

    fn read(
        &self,
        spec: &Spec,
        words: &Arguments<'_>,
        moment: Moment,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        match spec.name {
            "get" => self.show(words[1], answer),
            "mget" => self.mget(words, answer),
            "strlen" => self.strlen(words, answer),
            "getrange" | "substr" => self.getrange(words, answer),
            "getbit" => self.getbit(words, answer),
            "bitcount" => self.bitcount(words, answer),
            "bitpos" => self.bitpos(words, answer),
            "bitfield_ro" => self.bitfield_ro(words, answer),
            "exists" | "touch" => self.exists(words, answer),
            "type" => self.type_of(words, answer),
            "keys" => self.keys(words, answer),
            "scan" => self.scan(words, answer),
            "randomkey" => self.randomkey(answer),
            "dbsize" => {
                self.dbsize(answer);
                Ok(())
            }
            "ttl" | "pttl" | "expiretime" | "pexpiretime" => {
                self.time_left(spec.name, words, moment, answer)
            }
            "memory|usage" => self.memory_usage(words, answer),
            name => match name.strip_prefix("object|") {
                Some(question) => self.object(question, words, answer),
                None => Err(unserved(name)),
            },
        }
    }

    fn write(
        &mut self,
        spec: &Spec,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        match spec.name {
            "set" => self.set(words, at, answer),
            "setnx" => self.setnx(words, at, answer),
            "setex" | "psetex" => self.setex(spec.name, words, at, answer),
            "getset" => self.getset(words, at, answer),
            "getex" => self.getex(words, at, answer),
            "getdel" => self.getdel(words, answer),
            "mset" => self.mset(words, at, answer),
            "msetnx" => self.msetnx(words, at, answer),
            "append" => self.append(words, at, answer),
            "setrange" => self.setrange(words, at, answer),
            "incr" | "decr" | "incrby" | "decrby" => self.increment(spec.name, words, at, answer),
            "incrbyfloat" => self.incrbyfloat(words, at, answer),
            "setbit" => self.setbit(words, at, answer),
            "bitop" => self.bitop(words, at, answer),
            "bitfield" => self.bitfield(words, at, answer),
            "del" | "unlink" => self.del(words, answer),
            "rename" => self.rename(words, at, answer),
            "renamenx" => self.renamenx(words, at, answer),
            "copy" => self.copy(words, at, answer),
            "move" => keys::move_to_database(words),
            "expire" | "pexpire" | "expireat" | "pexpireat" => {
                self.expire(spec.name, words, at, answer)
            }
            "persist" => self.persist(words, at, answer),
            "flushall" | "flushdb" => self.flush_database(words, answer),
            name => Err(unserved(name)),
        }
    }

    pub(super) fn value(&self, key: Key<'_>) -> Option<&[u8]> {
        self.live(key).map(Item::value)
    }

    /// Flags and life of what is there.
    fn frame(&self, key: Key<'_>) -> (u32, Life) {
        self.live(key)
            .map_or((0, FOREVER), |item| (item.flags, life(item)))
    }

    /// Gives a key its value; the key is gone if the life is over.
    fn keep(&mut self, key: Key<'_>, value: &[u8], (flags, life): (u32, Life), at: At) {
        let contents = Contents {
            flags,
            unique: at.number,
            deadline_ms: life.end_ms,
            awaits: life.awaits,
            recache: Recache::default(),
            value: [value, b""],
        };
        self.put(key, &contents, at.now_ms);
        self.counts.total_items += 1;
    }

    /// Gives the bytes of a value to be changed: at least so many, zeros where there were none. `change`
    /// tells whether it did change any.
    fn edit(
        &mut self,
        key: Key<'_>,
        bytes_least: usize,
        at: At,
        change: impl FnOnce(&mut [u8]) -> bool,
    ) {
        let hash = self.items.hash(key);
        let found = self.items.get_mut(hash, key);
        if let Some(slot) = found.filter(|slot| slot.deadline_ms > at.now_ms) {
            let before = Footprint::of(slot);
            let missing = bytes_least.saturating_sub(slot.value().len());
            if missing > 0 {
                item::extend(slot, b"", &vec![0; missing], at.number);
            }
            item::change(slot, at.number, change);
            self.memory.changed(hash, before, Footprint::of(slot));
            self.counts.total_items += 1;
        } else {
            let mut value = vec![0; bytes_least];
            change(&mut value);
            self.keep(key, &value, (0, FOREVER), at);
        }
    }

    /// Whether the key was there.
    fn remove_live(&mut self, key: Key<'_>) -> bool {
        let is_there = self.live(key).is_some();
        if is_there {
            self.remove(self.items.hash(key), key);
        }
        is_there
    }
}

impl Answer<'_> {
    /// What the command answers, or else why it does not.
    fn or_fault(&mut self, command: impl FnOnce(&mut Self) -> Outcome) {
        let start = self.out.len();
        // What shows no value is not asked for room before: only reads can have answered too much.
        if let Err(fault) = command(self).and_then(|()| self.has_room(0)) {
            self.out.truncate(start);
            self.refuse(&fault);
        }
    }
}

fn life(item: &Item) -> Life {
    Life {
        end_ms: item.deadline_ms,
        awaits: item.awaits,
    }
}

/// A row of the table without a command behind it; a test runs every row.
fn unserved(name: &str) -> Fault {
    format!("ERR '{name}' is not served").into()
}

fn key(name: &[u8]) -> Result<Key<'_>, Fault> {
    Key::binary(name).ok_or_else(|| {
        let bytes_max = crate::KEY_BYTES_MAX;
        format!("ERR key is longer than {bytes_max} bytes").into()
    })
}

fn number(word: &[u8]) -> Result<i64, Fault> {
    integer(word).ok_or(NOT_AN_INTEGER.into())
}

/// Whether a value may have so many bytes.
fn fits(bytes: usize) -> Outcome {
    if bytes <= VALUE_BYTES_MAX {
        Ok(())
    } else {
        Err(TOO_LARGE.into())
    }
}

/// A length or a place as Redis counts with it.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What a range of places stands for, negative ones counting from the end; `None` if it is empty. Two
/// places from the end that come in the wrong order are an empty range, else they could be cut to one of
/// one place.
fn range(start: i64, end: i64, length: i64) -> Option<(i64, i64)> {
    let is_turned = start < 0 && end < 0 && start > end;
    if is_turned {
        None
    } else {
        range_in_any_order(start, end, length)
    }
}

/// The same as `BITPOS` has it.
fn range_in_any_order(start: i64, end: i64, length: i64) -> Option<(i64, i64)> {
    let from_front = |place: i64| if place < 0 { length + place } else { place }.max(0);
    let (start, end) = (from_front(start), from_front(end).min(length - 1));
    (start <= end).then_some((start, end))
}
