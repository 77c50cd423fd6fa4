//! The words in which clients ask: memcached's commands, its meta commands, and Redis commands, each read by
//! the product's own parser. What they mean is the same in all three, and the judge knows only that.
use crate::clients::{ClientOperation, number};
use crate::long_values::text_of;
use bytes::BytesMut;
use quorumwire_interfaces::Application;
use quorumwire_kv::memcached::{self, Request};
use quorumwire_kv::redis::{self, Resp, Script, VERSIONS, Words};
use quorumwire_kv::{Command, Key, Store, VALUE_BYTES_MAX};
use quorumwire_linearizability::history::{Answer, Operation};

/// A protocol, and in memcached's the kind of its commands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spelling {
    /// `set`, `add`, `cas`, `delete`, `gets`.
    Classic,
    /// `ms`, `md`, `mg`.
    Meta,
    /// `SET`, `DEL`, `GET`, and a transaction that watches its key.
    Redis,
}

/// What a run must have seen: each operation in each spelling, and each answer that only one of them has.
pub const OUTCOMES: [&str; 29] = [
    "gets: nothing there",
    "gets: value",
    "set: stored",
    "add: stored",
    "add: not stored",
    "cas: stored",
    "cas: exists",
    "cas: not found",
    "delete: deleted",
    "delete: not found",
    "mg: nothing there",
    "mg: value",
    "ms: stored",
    "ms add: stored",
    "ms add: not stored",
    "ms cas: stored",
    "ms cas: exists",
    "ms cas: not found",
    "md: deleted",
    "md: not found",
    "GET: nothing there",
    "GET: value",
    "SET: stored",
    "SET NX: stored",
    "SET NX: not stored",
    "DEL: deleted",
    "DEL: not found",
    "EXEC: stored",
    "EXEC: differs",
];

/// What was reached when this was answered, if it is something that must be.
#[must_use]
pub fn outcome(asked: &ClientOperation, answer: Answer) -> Option<&'static str> {
    let words = match asked.spelling {
        Spelling::Classic => ["gets", "set", "add", "cas", "delete"],
        Spelling::Meta => ["mg", "ms", "ms add", "ms cas", "md"],
        Spelling::Redis => ["GET", "SET", "SET NX", "EXEC", "DEL"],
    };
    let word = match asked.operation {
        Operation::Get => words[0],
        Operation::Set(_) => words[1],
        Operation::Add(_) => words[2],
        Operation::Cas { .. } => words[3],
        Operation::Delete => words[4],
        Operation::Increment(_) => return None,
    };
    let answer = match answer {
        Answer::Value(Some(_)) => "value",
        Answer::Value(None) => "nothing there",
        Answer::Stored => "stored",
        Answer::NotStored => "not stored",
        Answer::Exists => "exists",
        Answer::Differs => "differs",
        Answer::NotFound => "not found",
        Answer::Deleted => "deleted",
        Answer::Number(_) => return None,
    };
    let is_it = |name: &&str| {
        let said = name.strip_prefix(word).and_then(|it| it.strip_prefix(": "));
        said == Some(answer)
    };
    OUTCOMES.into_iter().find(is_it)
}

/// Appends the command that a server makes of what a client wrote; nothing if the parser refuses its value.
pub fn encode(asked: &ClientOperation, key: &str, id: u32, buffer: &mut BytesMut) {
    let text = request(asked, key, id);
    match asked.spelling {
        Spelling::Classic | Spelling::Meta => match memcached::parse(&text) {
            memcached::Parsed::Request {
                request: Request::Write { command, .. },
                ..
            } => command.encode(buffer),
            memcached::Parsed::Refused { .. } if is_too_long(asked) => {}
            other @ (memcached::Parsed::Incomplete { .. }
            | memcached::Parsed::Request { .. }
            | memcached::Parsed::Refused { .. }) => panic!("not a write: {other:?}"),
        },
        Spelling::Redis => {
            if is_too_long(asked) && matches!(redis::parse(&text), redis::Parsed::Refused(_)) {
                return;
            }
            let words = parsed(&text);
            let mut script = Script::single(Resp::V2, &words);
            let mut watched = Vec::new();
            if matches!(asked.operation, Operation::Cas { .. }) {
                let key = Key::binary(key.as_bytes()).expect("a short word is a key");
                Script::watch(&mut watched, key, asked.unique);
                script.is_transaction = true;
                script.watched = &watched;
            }
            Command::Redis(script).encode(buffer);
        }
    }
}

/// Whether no server takes its value.
#[must_use]
pub const fn is_too_long(asked: &ClientOperation) -> bool {
    asked.value_bytes > VALUE_BYTES_MAX
}

fn parsed(text: &[u8]) -> Words<'_> {
    match redis::parse(text) {
        redis::Parsed::Request { words, .. } => words,
        other @ (redis::Parsed::Incomplete { .. }
        | redis::Parsed::Nothing { .. }
        | redis::Parsed::TooLong { .. }
        | redis::Parsed::Refused(_)) => panic!("not a request: {other:?}"),
    }
}

/// What the client writes: of a transaction the one command that is not `WATCH`, `MULTI` or `EXEC`.
fn request(asked: &ClientOperation, key: &str, id: u32) -> Vec<u8> {
    // Items are recognised by it, where there is a place for it; and answers of meta commands repeat it.
    let mark = id + 1;
    let unique = asked.unique;
    let text = |value: u64| text_of(value, asked.value_bytes);
    let classic = |name: &str, value: u64, end: &str| {
        let value = text(value);
        format!("{name} {key} {mark} 0 {}{end}\r\n{value}\r\n", value.len())
    };
    let meta = |value: u64, end: &str| {
        let value = text(value);
        format!(
            "ms {key} {} F{mark} O{mark}{end}\r\n{value}\r\n",
            value.len()
        )
    };
    let text = match (asked.spelling, asked.operation) {
        (Spelling::Classic, Operation::Get) => format!("gets {key}\r\n"),
        (Spelling::Classic, Operation::Set(value)) => classic("set", value, ""),
        (Spelling::Classic, Operation::Add(value)) => classic("add", value, ""),
        (Spelling::Classic, Operation::Cas { new, .. }) => {
            classic("cas", new, &format!(" {unique}"))
        }
        (Spelling::Classic, Operation::Delete) => format!("delete {key}\r\n"),
        (Spelling::Classic, Operation::Increment(delta)) => format!("incr {key} {delta}\r\n"),
        (Spelling::Meta, Operation::Get) => format!("mg {key} O{mark} c v\r\n"),
        (Spelling::Meta, Operation::Set(value)) => meta(value, ""),
        (Spelling::Meta, Operation::Add(value)) => meta(value, " ME"),
        (Spelling::Meta, Operation::Cas { new, .. }) => meta(new, &format!(" C{unique}")),
        (Spelling::Meta, Operation::Delete) => format!("md {key} O{mark}\r\n"),
        (Spelling::Meta, Operation::Increment(delta)) => format!("ma {key} D{delta} O{mark} v\r\n"),
        (Spelling::Redis, Operation::Get) => format!("GET {key}\r\n"),
        (Spelling::Redis, Operation::Set(value) | Operation::Cas { new: value, .. }) => {
            format!("SET {key} {}\r\n", text(value))
        }
        (Spelling::Redis, Operation::Add(value)) => format!("SET {key} {} NX\r\n", text(value)),
        (Spelling::Redis, Operation::Delete) => format!("DEL {key}\r\n"),
        (Spelling::Redis, Operation::Increment(delta)) => format!("INCRBY {key} {delta}\r\n"),
    };
    text.into_bytes()
}

/// The number in the value that a command stores, which tells whose it is.
#[must_use]
pub fn value_stored(command: &Command<'_>) -> Option<u64> {
    match command {
        Command::Set(item) | Command::Add(item) | Command::Cas { item, .. } => number(item.value),
        Command::Meta { value, .. } => number(value),
        Command::Redis(script) => {
            let words = script.each_command().next()?;
            let is_set = words.get(0).is_some_and(|name| name == b"SET");
            is_set.then(|| words.get(2)).flatten().and_then(number)
        }
        Command::Replace(_)
        | Command::Append { .. }
        | Command::Prepend { .. }
        | Command::Increment { .. }
        | Command::Decrement { .. }
        | Command::Touch { .. }
        | Command::Delete { .. }
        | Command::GetAndTouch { .. }
        | Command::FlushAll { .. }
        | Command::Memory(_) => None,
    }
}

/// What the store is asked with this read.
#[must_use]
pub fn query(asked: &ClientOperation, key: &str, id: u32) -> Vec<u8> {
    let text = request(asked, key, id);
    match asked.spelling {
        Spelling::Redis => [&[Resp::V2.byte()], parsed(&text).text()].concat(),
        Spelling::Classic | Spelling::Meta => match memcached::parse(&text) {
            memcached::Parsed::Request {
                request: Request::Read(read),
                ..
            } => read.line().to_vec(),
            other @ (memcached::Parsed::Incomplete { .. }
            | memcached::Parsed::Request { .. }
            | memcached::Parsed::Refused { .. }) => panic!("not a read: {other:?}"),
        },
    }
}

/// What the store answers to a read, and the number for a cas; an answer that makes no sense is given back.
pub fn read(
    store: &Store,
    asked: &ClientOperation,
    key: &str,
    id: u32,
) -> Result<(Option<u64>, u64), String> {
    let text = request(asked, key, id);
    let mut reply = Vec::new();
    let told = match asked.spelling {
        Spelling::Classic | Spelling::Meta => {
            let memcached::Parsed::Request {
                request: Request::Read(read),
                ..
            } = memcached::parse(&text)
            else {
                panic!("not a read: {}", text.escape_ascii());
            };
            store.query(read.line(), &mut reply);
            match asked.spelling {
                Spelling::Meta => meta_value(&reply, id),
                Spelling::Classic | Spelling::Redis => classic_value(&reply, key),
            }
        }
        Spelling::Redis => {
            redis_query(store, &parsed(&text), &mut reply);
            redis_version(store, key).and_then(|version| {
                let value = redis_value(&reply)?;
                (value.is_some() == (version != 0)).then_some((value, version))
            })
        }
    };
    told.ok_or_else(|| reply.escape_ascii().to_string())
}

fn redis_query(store: &Store, words: &Words<'_>, reply: &mut Vec<u8>) {
    let request = [&[Resp::V2.byte()], words.text()].concat();
    store.query(&request, reply);
}

/// What `WATCH` remembers.
fn redis_version(store: &Store, key: &str) -> Option<u64> {
    let mut text = format!("*2\r\n${}\r\n", VERSIONS.len()).into_bytes();
    text.extend_from_slice(VERSIONS);
    text.extend_from_slice(format!("\r\n${}\r\n{key}\r\n", key.len()).as_bytes());
    let mut reply = Vec::new();
    redis_query(store, &Words::from_text(&text)?, &mut reply);
    number(Words::from_text(&reply)?.get(0)?)
}

fn classic_value(reply: &[u8], key: &str) -> Option<(Option<u64>, u64)> {
    if reply == b"END\r\n" {
        return Some((None, 0));
    }
    let reply = std::str::from_utf8(reply).ok()?;
    let (line, rest) = reply.strip_suffix("\r\nEND\r\n")?.split_once("\r\n")?;
    let words: Vec<_> = line.split(' ').collect();
    let ["VALUE", name, _flags, bytes, unique] = words[..] else {
        return None;
    };
    let is_whole = name == key && bytes.parse() == Ok(rest.len());
    is_whole.then_some((Some(number(rest.as_bytes())?), unique.parse().ok()?))
}

fn meta_value(reply: &[u8], id: u32) -> Option<(Option<u64>, u64)> {
    let reply = std::str::from_utf8(reply).ok()?;
    if reply == format!("EN O{}\r\n", id + 1) {
        return Some((None, 0));
    }
    let (line, rest) = reply.strip_suffix("\r\n")?.split_once("\r\n")?;
    let words: Vec<_> = line.split(' ').collect();
    let ["VA", bytes, opaque, unique] = words[..] else {
        return None;
    };
    let is_whole = opaque == format!("O{}", id + 1) && bytes.parse() == Ok(rest.len());
    let unique = unique.strip_prefix('c')?.parse().ok()?;
    is_whole.then_some((Some(number(rest.as_bytes())?), unique))
}

#[allow(clippy::option_option)] // an answer that makes no sense; that there is nothing
fn redis_value(reply: &[u8]) -> Option<Option<u64>> {
    if reply == b"$-1\r\n" {
        return Some(None);
    }
    let reply = std::str::from_utf8(reply).ok()?;
    let (bytes, rest) = reply
        .strip_prefix('$')?
        .strip_suffix("\r\n")?
        .split_once("\r\n")?;
    (bytes.parse() == Ok(rest.len())).then_some(Some(number(rest.as_bytes())?))
}

/// What a leader has answered to a read that was passed on: the value, and the number for a cas, or 0 where
/// the answer has none.
#[must_use]
pub fn value_of(
    asked: &ClientOperation,
    key: &str,
    id: u32,
    reply: &[u8],
) -> Option<(Option<u64>, u64)> {
    match asked.spelling {
        Spelling::Classic => classic_value(reply, key),
        Spelling::Meta => meta_value(reply, id),
        Spelling::Redis => redis_value(reply).map(|value| (value, 0)),
    }
}

/// What a store has answered to a write, as the judge of histories understands it.
#[must_use]
pub fn answer_of(asked: &ClientOperation, id: u32, reply: &[u8]) -> Option<Answer> {
    match asked.spelling {
        Spelling::Classic => crate::clients::answer_of(reply),
        Spelling::Meta => meta_answer(asked, id, reply),
        Spelling::Redis => redis_answer(asked.operation, reply),
    }
}

fn meta_answer(asked: &ClientOperation, id: u32, reply: &[u8]) -> Option<Answer> {
    let line = std::str::from_utf8(reply).ok()?.strip_suffix("\r\n")?;
    let word = line.strip_suffix(&format!(" O{}", id + 1))?;
    match (word, asked.operation) {
        ("HD", Operation::Delete) => Some(Answer::Deleted),
        ("HD", Operation::Set(_) | Operation::Add(_) | Operation::Cas { .. }) => {
            Some(Answer::Stored)
        }
        ("NS", _) => Some(Answer::NotStored),
        ("EX", _) => Some(Answer::Exists),
        ("NF", _) => Some(Answer::NotFound),
        _ => None,
    }
}

fn redis_answer(operation: Operation, reply: &[u8]) -> Option<Answer> {
    match (reply, operation) {
        (b"+OK\r\n", Operation::Set(_) | Operation::Add(_))
        | (b"*1\r\n+OK\r\n", Operation::Cas { .. }) => Some(Answer::Stored),
        (b"$-1\r\n", Operation::Add(_)) => Some(Answer::NotStored),
        (b"*-1\r\n", Operation::Cas { .. }) => Some(Answer::Differs),
        (b":1\r\n", Operation::Delete) => Some(Answer::Deleted),
        (b":0\r\n", Operation::Delete) => Some(Answer::NotFound),
        _ => None,
    }
}
