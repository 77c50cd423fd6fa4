//! Random commands at a memory limit, against a model that looks at everything every time, on two replicas of
//! which one is restored from snapshots again and again.
mod seeds;

use std::collections::BTreeMap;

use quorumwire_interfaces::{Application, Applied, LogTime};
use quorumwire_kv::memcached::reply;
use quorumwire_kv::{
    Command, Exptime, ITEM_OVERHEAD_BYTES, Key, MemoryChange, MemoryPolicy, Store, Written,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const START_MS: u64 = 1_700_000_000_000;
const ENTRIES: u64 = 60_000;
const KEYS: u32 = 60;

#[derive(Clone, Debug)]
struct Thing {
    bytes: u64,
    end_ms: Option<u64>,
    recency: u64,
}

/// All that the limit depends on.
#[derive(Default)]
struct Model {
    things: BTreeMap<String, Thing>,
    limit: u64,
    evicts: bool,
    now_ms: u64,
    evicted: u64,
}

/// What a log entry asks for.
enum Request {
    Set(String, u64, usize),
    Append(String, usize),
    Touch(String, u64),
    Delete(String),
    Limit(Option<u64>, Option<bool>),
    Tick,
}

impl Model {
    fn used(&self) -> u64 {
        let bytes = self.things.values().map(|it| it.bytes);
        bytes.sum()
    }

    fn make_room(&mut self) {
        let now_ms = self.now_ms;
        self.things
            .retain(|_, it| it.end_ms.is_none_or(|end| end > now_ms));
        while self.evicts && self.limit != 0 && self.used() > self.limit {
            let first = self.things.iter().min_by_key(|(_, it)| it.recency);
            let key = first.expect("something takes the memory").0.clone();
            self.things.remove(&key);
            self.evicted += 1;
        }
    }

    fn end(&self, seconds: u64) -> Option<u64> {
        (seconds > 0).then_some(self.now_ms + 1000 * seconds)
    }

    fn answer(&mut self, request: &Request, index: u64) -> &'static [u8] {
        self.make_room();
        let is_over = self.limit != 0 && self.used() > self.limit;
        match request {
            Request::Set(..) | Request::Append(..) if is_over => reply::OUT_OF_MEMORY,
            Request::Set(key, seconds, value_bytes) => {
                let thing = Thing {
                    bytes: (key.len() + value_bytes) as u64 + ITEM_OVERHEAD_BYTES,
                    end_ms: self.end(*seconds),
                    recency: index,
                };
                self.things.insert(key.clone(), thing);
                reply::STORED
            }
            Request::Append(key, value_bytes) => match self.things.get_mut(key) {
                None => reply::NOT_STORED,
                Some(thing) => {
                    thing.bytes += *value_bytes as u64;
                    thing.recency = index;
                    reply::STORED
                }
            },
            Request::Touch(key, seconds) => {
                let end_ms = self.end(*seconds);
                let evicts = self.evicts && self.limit != 0;
                match self.things.get_mut(key) {
                    None => reply::NOT_FOUND,
                    Some(thing) => {
                        thing.end_ms = end_ms;
                        // Who nobody evicts is not kept in order.
                        thing.recency = if evicts { index } else { thing.recency };
                        reply::TOUCHED
                    }
                }
            }
            Request::Delete(key) => match self.things.remove(key) {
                None => reply::NOT_FOUND,
                Some(_) => reply::DELETED,
            },
            Request::Limit(limit, evicts) => {
                self.limit = limit.unwrap_or(self.limit);
                self.evicts = evicts.unwrap_or(self.evicts);
                self.make_room();
                reply::OK
            }
            Request::Tick => b"",
        }
    }
}

fn request(random: &mut ChaCha8Rng) -> Request {
    let key = format!("key{}", random.random_range(0..KEYS));
    let seconds = if random.random_ratio(1, 3) {
        random.random_range(1..20)
    } else {
        0
    };
    match random.random_range(0..1000) {
        0..500 => Request::Set(key, seconds, random.random_range(0..300)),
        500..600 => Request::Append(key, random.random_range(0..100)),
        600..800 => Request::Touch(key, seconds),
        800..900 => Request::Delete(key),
        900..990 => Request::Tick,
        _ => {
            let limit = match random.random_range(0..6) {
                0 => None,
                1 => Some(0),
                _ => Some(random.random_range(1..8_000)),
            };
            Request::Limit(limit, random.random_ratio(1, 2).then(|| random.random()))
        }
    }
}

fn encoded(request: &Request) -> Option<Vec<u8>> {
    const VALUE: [u8; 300] = [b'x'; 300];
    fn named(key: &String) -> Key<'_> {
        Key::new(key.as_bytes()).unwrap()
    }
    let exptime = |seconds: &u64| Exptime(seconds.cast_signed());
    let command = match request {
        Request::Set(key, seconds, bytes) => Command::Set(Written {
            key: named(key),
            flags: 0,
            exptime: exptime(seconds),
            value: &VALUE[..*bytes],
        }),
        Request::Append(key, bytes) => Command::Append {
            key: named(key),
            value: &VALUE[..*bytes],
        },
        Request::Touch(key, seconds) => Command::Touch {
            key: named(key),
            exptime: exptime(seconds),
        },
        Request::Delete(key) => Command::Delete { key: named(key) },
        Request::Limit(limit_bytes, evicts) => Command::Memory(MemoryChange {
            limit_bytes: *limit_bytes,
            policy: evicts.map(|evicts| {
                if evicts {
                    MemoryPolicy::Evict
                } else {
                    MemoryPolicy::Refuse
                }
            }),
            ..MemoryChange::default()
        }),
        Request::Tick => return None,
    };
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    Some(bytes)
}

fn state(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.freeze().write(&mut bytes).unwrap();
    bytes
}

fn compare(model: &Model, store: &Store) {
    for number in 0..KEYS {
        let name = format!("key{number}");
        let found = store.get(Key::new(name.as_bytes()).unwrap());
        let bytes = found.map(|it| (name.len() + it.value.len()) as u64 + ITEM_OVERHEAD_BYTES);
        assert_eq!(bytes, model.things.get(&name).map(|it| it.bytes), "{name}");
    }
    assert_eq!(store.stats().limited_bytes, model.used());
}

#[test]
fn replicas_refuse_and_evict_what_the_model_does() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut model = Model {
        now_ms: START_MS,
        ..Model::default()
    };
    let mut replicas = [Store::new(), Store::new()];
    for index in 1..ENTRIES {
        if random.random_ratio(1, 5) {
            model.now_ms += random.random_range(0..2_000);
        }
        let request = request(&mut random);
        let evicted_before = model.evicted;
        let expected = model.answer(&request, index);
        let command = encoded(&request);
        for store in &mut replicas {
            let mut reply = Vec::new();
            let log_time = LogTime(model.now_ms);
            if let Some(command) = &command {
                let entry = Applied {
                    number: index,
                    log_time,
                    awaits_time: false,
                    command,
                };
                store.apply(&entry, &mut reply);
            } else {
                store.advance(log_time);
            }
            assert_eq!(reply, expected);
        }
        reached.count(std::str::from_utf8(expected).unwrap().trim_end());
        if model.evicted > evicted_before {
            reached.count("evicted");
        }
        compare(&model, &replicas[0]);
        if random.random_ratio(1, 50) {
            let taken = state(&replicas[0]);
            assert!(taken == state(&replicas[1]), "the replicas differ");
            replicas[1].restore(&mut taken.as_slice()).unwrap();
            reached.count("restored");
        }
    }
    assert_eq!(replicas[0].stats().memory.evicted, model.evicted);
    let refused = "SERVER_ERROR out of memory storing object";
    let rare = ["", "OK", "restored", "evicted", refused];
    reached.require(200, &rare);
    let usual = ["STORED", "NOT_STORED", "TOUCHED", "NOT_FOUND", "DELETED"];
    reached.require(1000, &usual);
}
