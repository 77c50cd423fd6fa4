//! Random commands against a model that is written for clarity alone, and snapshots in between.
mod in_process;
mod seeds;

use std::collections::BTreeMap;

use in_process::{Connection, Server};
use quorumwire_interfaces::{LogTime, StateMachine};
use quorumwire_kv::{Key, Store};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const START_MS: u64 = 1_700_000_000_000;
const KEYS: u32 = 24;
const COMMANDS: u32 = 60_000;

#[derive(Clone, Debug)]
struct Thing {
    value: String,
    flags: u32,
    unique: u64,
    end: End,
}

/// When something ends.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// `None`: never.
    at_ms: Option<u64>,
    /// Later by as much as the next tick moves the time.
    awaits_time: bool,
}

impl End {
    fn tick(&mut self, passed_ms: u64) {
        if std::mem::take(&mut self.awaits_time) {
            self.at_ms = self.at_ms.map(|at| at + passed_ms);
        }
    }
}

/// Items in a map, searched and swept whole.
#[derive(Default)]
struct Model {
    things: BTreeMap<String, Thing>,
    flush: End,
    index: u64,
    now_ms: u64,
    awaits_time: bool,
}

enum Ask {
    Store {
        how: &'static str,
        key: String,
        flags: u32,
        exptime: i64,
        value: String,
        unique: u64,
    },
    Count {
        up: bool,
        key: String,
        delta: u64,
    },
    Touch {
        key: String,
        exptime: i64,
    },
    Delete {
        key: String,
    },
    Gat {
        keys: Vec<String>,
        exptime: i64,
        with_unique: bool,
    },
    Get {
        keys: Vec<String>,
        with_unique: bool,
    },
    Flush {
        delay: i64,
    },
}

impl Ask {
    fn text(&self) -> String {
        match self {
            Self::Store {
                how,
                key,
                flags,
                exptime,
                value,
                unique,
            } => {
                let unique = if *how == "cas" {
                    format!(" {unique}")
                } else {
                    String::new()
                };
                let bytes = value.len();
                format!("{how} {key} {flags} {exptime} {bytes}{unique}\r\n{value}\r\n")
            }
            Self::Count {
                up: true,
                key,
                delta,
            } => format!("incr {key} {delta}\r\n"),
            Self::Count {
                up: false,
                key,
                delta,
            } => format!("decr {key} {delta}\r\n"),
            Self::Touch { key, exptime } => format!("touch {key} {exptime}\r\n"),
            Self::Delete { key } => format!("delete {key}\r\n"),
            Self::Gat {
                keys,
                exptime,
                with_unique,
            } => {
                let name = if *with_unique { "gats" } else { "gat" };
                format!("{name} {exptime} {}\r\n", keys.join(" "))
            }
            Self::Get { keys, with_unique } => {
                let name = if *with_unique { "gets" } else { "get" };
                format!("{name} {}\r\n", keys.join(" "))
            }
            Self::Flush { delay } => format!("flush_all {delay}\r\n"),
        }
    }
}

impl Model {
    fn end(&self, exptime: i64) -> End {
        let at_ms = match exptime {
            0 => None,
            ..0 => Some(self.now_ms),
            1..=2_592_000 => Some(self.now_ms + 1000 * exptime.unsigned_abs()),
            _ => Some(1000 * exptime.unsigned_abs()),
        };
        End {
            at_ms,
            awaits_time: self.awaits_time && (1..=2_592_000).contains(&exptime),
        }
    }

    fn tick(&mut self, now_ms: u64) {
        let passed_ms = now_ms - self.now_ms;
        self.now_ms = now_ms;
        self.flush.tick(passed_ms);
        for thing in self.things.values_mut() {
            thing.end.tick(passed_ms);
        }
    }

    fn sweep(&mut self) {
        if self.flush.at_ms.is_some_and(|at| at <= self.now_ms) {
            self.things.clear();
            self.flush = End::default();
        }
        let now_ms = self.now_ms;
        self.things
            .retain(|_, thing| thing.end.at_ms.is_none_or(|end| end > now_ms));
    }

    fn answer(&mut self, ask: &Ask) -> String {
        if matches!(ask, Ask::Get { .. }) {
            self.tick(self.now_ms); // as the server does before it reads
        } else {
            self.index += 1;
        }
        self.sweep();
        let answer = self.run(ask);
        self.sweep();
        answer
    }

    fn run(&mut self, ask: &Ask) -> String {
        match ask {
            Ask::Store { .. } => self.store(ask),
            Ask::Count { up, key, delta } => {
                let Some(thing) = self.things.get_mut(key) else {
                    return "NOT_FOUND\r\n".into();
                };
                let Ok(number) = thing.value.split(' ').next().unwrap().parse::<u64>() else {
                    return "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
                        .into();
                };
                let number = if *up {
                    number.wrapping_add(*delta)
                } else {
                    number.saturating_sub(*delta)
                };
                let width = thing.value.len();
                thing.value = format!("{number:<width$}");
                thing.unique = self.index;
                format!("{number}\r\n")
            }
            Ask::Touch { key, exptime } => {
                let end = self.end(*exptime);
                match self.things.get_mut(key) {
                    Some(thing) => {
                        thing.end = end;
                        "TOUCHED\r\n".into()
                    }
                    None => "NOT_FOUND\r\n".into(),
                }
            }
            Ask::Delete { key } => match self.things.remove(key) {
                Some(_) => "DELETED\r\n".into(),
                None => "NOT_FOUND\r\n".into(),
            },
            Ask::Gat {
                keys,
                exptime,
                with_unique,
            } => {
                let mut answer = String::new();
                for key in keys {
                    answer += &self.show(key, *with_unique);
                    let end = self.end(*exptime);
                    if let Some(thing) = self.things.get_mut(key) {
                        thing.end = end;
                    }
                    self.sweep();
                }
                answer + "END\r\n"
            }
            Ask::Get { keys, with_unique } => {
                let shown: String = keys
                    .iter()
                    .map(|key| self.show(key, *with_unique))
                    .collect();
                shown + "END\r\n"
            }
            Ask::Flush { delay } => {
                self.flush = End::default();
                if *delay <= 0 {
                    self.things.clear();
                } else {
                    let flush = self.end(*delay);
                    if flush.at_ms.is_some_and(|at| at > self.now_ms) {
                        self.flush = flush;
                    }
                }
                "OK\r\n".into()
            }
        }
    }

    fn store(&mut self, ask: &Ask) -> String {
        let Ask::Store {
            how,
            key,
            flags,
            exptime,
            value,
            unique,
        } = ask
        else {
            unreachable!("only stores come here");
        };
        let end = self.end(*exptime);
        let written = Thing {
            value: value.clone(),
            flags: *flags,
            unique: self.index,
            end,
        };
        let old = self.things.get(key).cloned();
        let new = match (*how, old) {
            ("cas", None) => return "NOT_FOUND\r\n".into(),
            ("cas", Some(old)) if old.unique != *unique => return "EXISTS\r\n".into(),
            ("set", _) | ("add", None) | ("replace" | "cas", Some(_)) => written,
            ("append", Some(old)) => Thing {
                value: old.value.clone() + value,
                unique: self.index,
                ..old
            },
            ("prepend", Some(old)) => Thing {
                value: value.clone() + &old.value,
                unique: self.index,
                ..old
            },
            _ => return "NOT_STORED\r\n".into(),
        };
        self.things.insert(key.clone(), new);
        "STORED\r\n".into()
    }

    fn show(&self, key: &str, with_unique: bool) -> String {
        self.things.get(key).map_or_else(String::new, |thing| {
            let Thing {
                value,
                flags,
                unique,
                ..
            } = thing;
            let unique = if with_unique {
                format!(" {unique}")
            } else {
                String::new()
            };
            format!("VALUE {key} {flags} {}{unique}\r\n{value}\r\n", value.len())
        })
    }

    fn next_change_ms(&self) -> Option<u64> {
        self.things
            .values()
            .filter_map(|thing| thing.end.at_ms)
            .chain(self.flush.at_ms)
            .min()
    }
}

fn key(random: &mut ChaCha8Rng) -> String {
    format!("key{}", random.random_range(0..KEYS))
}

fn keys(random: &mut ChaCha8Rng) -> Vec<String> {
    (0..random.random_range(1..5))
        .map(|_| key(random))
        .collect()
}

fn exptime(random: &mut ChaCha8Rng, now_ms: u64) -> i64 {
    match random.random_range(0..20) {
        0..8 => 0,
        8..15 => random.random_range(1..30),
        15 => -1,
        16 => 2_592_000,
        17 => 2_592_001,
        _ => i64::try_from(now_ms / 1000).unwrap() + random.random_range(-5..30),
    }
}

fn value(random: &mut ChaCha8Rng) -> String {
    match random.random_range(0..4) {
        0 => random.random_range(0..20_u64).to_string(),
        1 => u64::MAX.to_string(),
        2 => "x".repeat(random.random_range(0..40)),
        _ => "same".into(),
    }
}

fn ask(random: &mut ChaCha8Rng, model: &Model) -> Ask {
    let key = key(random);
    let exptime = exptime(random, model.now_ms);
    match random.random_range(0..100) {
        kind @ 0..55 => {
            let how = match kind {
                0..25 => "set",
                25..32 => "add",
                32..37 => "replace",
                37..42 => "append",
                42..47 => "prepend",
                _ => "cas",
            };
            let known = model.things.get(&key).map_or(1, |thing| thing.unique);
            let unique = if random.random_bool(0.7) {
                known
            } else {
                known + 1
            };
            let value = value(random);
            Ask::Store {
                how,
                key,
                flags: random.random_range(0..3),
                exptime,
                value,
                unique,
            }
        }
        55..67 => Ask::Count {
            up: random.random_bool(0.5),
            key,
            delta: if random.random_bool(0.1) {
                u64::MAX
            } else {
                random.random_range(0..15)
            },
        },
        67..75 => Ask::Touch { key, exptime },
        75..82 => Ask::Delete { key },
        82..90 => Ask::Gat {
            keys: keys(random),
            exptime,
            with_unique: random.random_bool(0.5),
        },
        90..99 => Ask::Get {
            keys: keys(random),
            with_unique: random.random_bool(0.5),
        },
        _ => Ask::Flush { delay: exptime },
    }
}

#[test]
fn the_store_does_what_the_model_does() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut model = Model {
        now_ms: START_MS,
        ..Model::default()
    };
    let mut server = Server::new(START_MS);
    let mut connection = Connection::default();
    let mut frozen = None;
    for _ in 0..COMMANDS {
        if random.random_bool(0.3) {
            model.tick(model.now_ms + random.random_range(1..3000));
            server.log_time_ms = model.now_ms;
        }
        model.awaits_time = random.random_bool(0.5);
        server.awaits_time = model.awaits_time;
        let ask = ask(&mut random, &model);
        let answer = model.answer(&ask);
        let text = ask.text();
        let reply = server.receive(&mut connection, text.as_bytes());
        assert_eq!(String::from_utf8(reply).unwrap(), answer, "to {text:?}");
        reached.count(answer.split(['\r', ' ']).next().unwrap());

        if random.random_bool(0.02) {
            if server.store.awaits_time() {
                reached.count("awaiting");
            }
            model.tick(model.now_ms);
            compare(&model, &mut server.store);
            reached.count("compared");
        }
        if random.random_bool(0.02) {
            let state = snapshot(&server.store);
            if let Some((frozen, state)) = frozen.replace((server.store.freeze(), state)) {
                let mut late = Vec::new();
                quorumwire_interfaces::Frozen::write(&*frozen, &mut late).unwrap();
                assert_eq!(late, state, "a frozen state has changed");
                reached.count("frozen");
            }
        }
        if random.random_bool(0.005) {
            let state = snapshot(&server.store);
            let mut restored = Store::new();
            restored.restore(&mut state.as_slice()).unwrap();
            assert_eq!(snapshot(&restored), state);
            server.store = restored;
            reached.count("restored");
        }
    }
    reached.require(
        50,
        &[
            "STORED",
            "NOT_STORED",
            "EXISTS",
            "NOT_FOUND",
            "DELETED",
            "TOUCHED",
            "OK",
            "VALUE",
            "END",
            "CLIENT_ERROR",
            "compared",
            "awaiting",
            "frozen",
            "restored",
        ],
    );
}

/// Two replicas, one of which was restored from a snapshot half-way, end in the same bytes.
#[test]
fn replicas_with_different_pasts_have_the_same_bytes() {
    let mut random = seeds::generator();
    let mut model = Model {
        now_ms: START_MS,
        ..Model::default()
    };
    let mut replicas = [Server::new(START_MS), Server::new(START_MS)];
    let mut restored_count = 0;
    for _ in 0..20_000 {
        if random.random_bool(0.3) {
            model.tick(model.now_ms + random.random_range(0..3000));
        }
        let (awaits_time, ticks) = (random.random_bool(0.5), random.random_bool(0.5));
        let ask = ask(&mut random, &model);
        model.answer(&ask);
        for replica in &mut replicas {
            replica.log_time_ms = model.now_ms;
            replica.awaits_time = awaits_time;
            replica.receive(&mut Connection::default(), ask.text().as_bytes());
            if ticks {
                replica.store.advance(LogTime(model.now_ms));
            }
        }
        if random.random_bool(0.01) {
            let state = snapshot(&replicas[0].store);
            assert_eq!(snapshot(&replicas[1].store), state);
            replicas[1].store.restore(&mut state.as_slice()).unwrap();
            restored_count += 1;
        }
    }
    assert!(restored_count > 100);
}

fn compare(model: &Model, store: &mut Store) {
    // A read does not touch the store's clock, the server does.
    store.advance(LogTime(model.now_ms));
    for number in 0..KEYS {
        let name = format!("key{number}");
        let found = store.get(Key::new(name.as_bytes()).unwrap());
        let thing = model.things.get(&name);
        assert_eq!(
            found.map(|item| (item.value, item.flags, item.unique)),
            thing.map(|thing| (thing.value.as_bytes(), thing.flags, thing.unique)),
            "{name}"
        );
    }
    let bytes: usize = model
        .things
        .iter()
        .map(|(key, thing)| key.len() + thing.value.len())
        .sum();
    let stats = store.stats();
    assert_eq!(
        (stats.curr_items, stats.bytes),
        (model.things.len() as u64, bytes as u64)
    );
    match (store.next_deadline(), model.next_change_ms()) {
        (None, None) => {}
        (Some(next), change) => {
            assert!(next.0 > model.now_ms);
            assert!(
                change.is_none_or(|change| next.0 <= change),
                "a change would be missed"
            );
        }
        (None, Some(change)) => panic!("nothing would happen at {change}"),
    }
}

fn snapshot(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.freeze().write(&mut bytes).unwrap();
    bytes
}
