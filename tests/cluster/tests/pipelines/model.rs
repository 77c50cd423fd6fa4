//! What memcached does with a few keys of one client, one request after the other, and random requests
//! to ask it. Has no life spans.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::pipe::Pipe;

/// Few, so that requests meet.
const KEYS: u32 = 5;

/// A key's value is not appended to beyond this.
const APPEND_BYTES_MAX: usize = 400;

/// What a request came to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Reached {
    Stored,
    StoredSilently,
    Hit,
    Miss,
    HitWithUnique,
    Incremented,
    NotNumeric,
    NothingToIncrement,
    Appended,
    NothingToAppendTo,
    Deleted,
    NothingToDelete,
    Swapped,
    SwapTooLate,
    NothingToSwap,
}

const ALL: [Reached; 15] = [
    Reached::Stored,
    Reached::StoredSilently,
    Reached::Hit,
    Reached::Miss,
    Reached::HitWithUnique,
    Reached::Incremented,
    Reached::NotNumeric,
    Reached::NothingToIncrement,
    Reached::Appended,
    Reached::NothingToAppendTo,
    Reached::Deleted,
    Reached::NothingToDelete,
    Reached::Swapped,
    Reached::SwapTooLate,
    Reached::NothingToSwap,
];

/// A part of an answer.
#[derive(Clone, Debug)]
enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The unique value of an item: one number for each version of a key, a new one for each.
    Unique { key: String, version: u64 },
}

/// A request and the answer it must get.
pub struct Exchange {
    pub bytes: Vec<u8>,
    answer: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Item {
    flags: u32,
    value: Vec<u8>,
    version: u64,
}

/// The keys of one client.
pub struct Model {
    prefix: &'static str,
    items: BTreeMap<String, Item>,
    next_version: u64,
    /// By key: the newest version whose unique value has been seen, and that.
    uniques: BTreeMap<String, (u64, u64)>,
    /// How often each outcome was reached.
    pub outcomes: BTreeMap<Reached, u64>,
}

impl Model {
    /// Nothing is there. `prefix` keeps its keys apart from those of others.
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            items: BTreeMap::new(),
            next_version: 1,
            uniques: BTreeMap::new(),
            outcomes: BTreeMap::new(),
        }
    }

    /// The outcomes no request has come to.
    pub fn outcomes_missed(&self) -> impl Iterator<Item = Reached> + use<'_> {
        let reached: BTreeSet<_> = self.outcomes.keys().copied().collect();
        ALL.into_iter()
            .filter(move |outcome| !reached.contains(outcome))
    }

    /// A request as chance has it, executed here.
    pub fn ask(&mut self, rng: &mut ChaCha8Rng) -> Exchange {
        let key = self.key(rng);
        match rng.random_range(0..100) {
            0..16 => self.set(&key, rng),
            16..34 => self.get(&key, rng),
            34..48 => self.gets(&key),
            48..60 => self.increment(&key, rng.random_range(0..1000)),
            60..72 => self.append(&key, rng),
            72..82 => self.delete(&key),
            _ => self.swap(&key, rng),
        }
    }

    /// Reads the answer; an error unless it is the right one.
    pub fn check(&mut self, asked: &Exchange, pipe: &mut Pipe) -> Result<()> {
        for part in &asked.answer {
            match part {
                Part::Bytes(bytes) => pipe.expect(bytes)?,
                Part::Unique { key, version } => {
                    let unique = pipe.number()?;
                    if let Some((seen_version, seen)) = self.uniques.get(key) {
                        ensure!(
                            (seen_version == version) == (*seen == unique),
                            "{key}: unique value {unique} after {seen}, version {version} after \
                             {seen_version}"
                        );
                    }
                    self.uniques.insert(key.clone(), (*version, unique));
                }
            }
        }
        Ok(())
    }

    fn key(&self, rng: &mut ChaCha8Rng) -> String {
        format!("{}-{}", self.prefix, rng.random_range(0..KEYS))
    }

    fn reach(&mut self, outcome: Reached) {
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    fn store(&mut self, key: &str, flags: u32, value: Vec<u8>) {
        let version = self.next_version;
        self.next_version += 1;
        let item = Item {
            flags,
            value,
            version,
        };
        self.items.insert(key.into(), item);
    }

    fn set(&mut self, key: &str, rng: &mut ChaCha8Rng) -> Exchange {
        let (flags, value) = (rng.random_range(0..4), value(rng));
        let silent = rng.random_bool(0.2);
        let noreply = if silent { " noreply" } else { "" };
        let head = format!("set {key} {flags} 0 {}{noreply}\r\n", value.len());
        let bytes = [head.as_bytes(), &value, b"\r\n"].concat();
        self.store(key, flags, value);
        if silent {
            self.reach(Reached::StoredSilently);
            return asked(bytes, "");
        }
        self.reach(Reached::Stored);
        asked(bytes, "STORED\r\n")
    }

    fn get(&mut self, first: &str, rng: &mut ChaCha8Rng) -> Exchange {
        let mut keys = vec![first.to_owned()];
        while rng.random_bool(0.3) {
            keys.push(self.key(rng));
        }
        let mut answer = Vec::new();
        for key in &keys {
            let Some(item) = self.items.get(key) else {
                self.reach(Reached::Miss);
                continue;
            };
            let head = format!("VALUE {key} {} {}\r\n", item.flags, item.value.len());
            answer.extend_from_slice(head.as_bytes());
            answer.extend_from_slice(&item.value);
            answer.extend_from_slice(b"\r\n");
            self.reach(Reached::Hit);
        }
        answer.extend_from_slice(b"END\r\n");
        Exchange {
            bytes: format!("get {}\r\n", keys.join(" ")).into_bytes(),
            answer: vec![Part::Bytes(answer)],
        }
    }

    fn gets(&mut self, key: &str) -> Exchange {
        let bytes = format!("gets {key}\r\n").into_bytes();
        let Some(item) = self.items.get(key) else {
            self.reach(Reached::Miss);
            return asked(bytes, "END\r\n");
        };
        let head = format!("VALUE {key} {} {} ", item.flags, item.value.len());
        let answer = vec![
            Part::Bytes(head.into_bytes()),
            Part::Unique {
                key: key.into(),
                version: item.version,
            },
            Part::Bytes([b"\r\n", &*item.value, b"\r\nEND\r\n"].concat()),
        ];
        self.reach(Reached::HitWithUnique);
        Exchange { bytes, answer }
    }

    fn increment(&mut self, key: &str, delta: u64) -> Exchange {
        let bytes = format!("incr {key} {delta}\r\n").into_bytes();
        let Some(item) = self.items.get(key) else {
            self.reach(Reached::NothingToIncrement);
            return asked(bytes, "NOT_FOUND\r\n");
        };
        let number = std::str::from_utf8(&item.value).map(str::parse::<u64>);
        let Ok(Ok(number)) = number else {
            self.reach(Reached::NotNumeric);
            return asked(
                bytes,
                "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            );
        };
        let sum = number.wrapping_add(delta).to_string();
        self.store(key, item.flags, sum.clone().into_bytes());
        self.reach(Reached::Incremented);
        asked(bytes, &format!("{sum}\r\n"))
    }

    fn append(&mut self, key: &str, rng: &mut ChaCha8Rng) -> Exchange {
        let short = ["7", "ab"][rng.random_range(0..2)];
        let bytes = format!("append {key} 9 0 {}\r\n{short}\r\n", short.len()).into_bytes();
        let Some(item) = self.items.get(key).cloned() else {
            self.reach(Reached::NothingToAppendTo);
            return asked(bytes, "NOT_STORED\r\n");
        };
        if item.value.len() > APPEND_BYTES_MAX {
            return self.delete(key);
        }
        self.store(key, item.flags, [&item.value, short.as_bytes()].concat());
        self.reach(Reached::Appended);
        asked(bytes, "STORED\r\n")
    }

    fn delete(&mut self, key: &str) -> Exchange {
        let bytes = format!("delete {key}\r\n").into_bytes();
        if self.items.remove(key).is_some() {
            self.reach(Reached::Deleted);
            return asked(bytes, "DELETED\r\n");
        }
        self.reach(Reached::NothingToDelete);
        asked(bytes, "NOT_FOUND\r\n")
    }

    /// A `cas` with the newest unique value that has come back by now.
    fn swap(&mut self, key: &str, rng: &mut ChaCha8Rng) -> Exchange {
        let (version, unique) = self.uniques.get(key).copied().unwrap_or_default();
        let value = value(rng);
        let head = format!("cas {key} 1 0 {} {unique}\r\n", value.len());
        let bytes = [head.as_bytes(), &value, b"\r\n"].concat();
        match self.items.get(key) {
            None => {
                self.reach(Reached::NothingToSwap);
                asked(bytes, "NOT_FOUND\r\n")
            }
            Some(item) if item.version == version => {
                self.store(key, 1, value);
                self.reach(Reached::Swapped);
                asked(bytes, "STORED\r\n")
            }
            Some(_) => {
                self.reach(Reached::SwapTooLate);
                asked(bytes, "EXISTS\r\n")
            }
        }
    }
}

fn asked(bytes: Vec<u8>, answer: &str) -> Exchange {
    Exchange {
        bytes,
        answer: vec![Part::Bytes(answer.as_bytes().to_vec())],
    }
}

/// A number without leading zeros, or text, or something larger than a packet.
fn value(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut text = String::new();
    match rng.random_range(0..10) {
        0..6 => write!(text, "{}", rng.random_range(1..2000_u32)).expect("a string"),
        6..9 => write!(text, "text-{}", rng.random_range(0..100_u32)).expect("a string"),
        _ => text = "0123456789abcdef".repeat(rng.random_range(1..500)),
    }
    text.into_bytes()
}
