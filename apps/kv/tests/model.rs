//! Random commands against a model that is written for clarity alone, and snapshots in between.
mod in_process;
mod seeds;

use std::collections::BTreeMap;

use in_process::{Connection, Server};
use quorumwire_interfaces::{Application, LogTime};
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
    stale: bool,
    won: bool,
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

enum Request {
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
    MetaGet {
        key: String,
        vivify: Option<i64>,
        recache: Option<i64>,
        touch: Option<i64>,
    },
    MetaStore {
        key: String,
        exptime: i64,
        value: String,
        unique: u64,
    },
    MetaStale {
        key: String,
        touch: Option<i64>,
    },
    MetaCount {
        key: String,
        vivify: i64,
    },
}

impl Request {
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
            Self::MetaGet {
                key,
                vivify,
                recache,
                touch,
            } => {
                let (vivify, recache) = (flag('N', *vivify), flag('R', *recache));
                format!("mg {key}{vivify}{recache} t{} v c\r\n", flag('T', *touch))
            }
            Self::MetaStore {
                key,
                exptime,
                value,
                unique,
            } => {
                let bytes = value.len();
                format!("ms {key} {bytes} T{exptime} I c C{unique}\r\n{value}\r\n")
            }
            Self::MetaStale { key, touch } => format!("md {key} I{}\r\n", flag('T', *touch)),
            Self::MetaCount { key, vivify } => format!("ma {key} N{vivify} J7 v c t\r\n"),
        }
    }
}

fn flag(letter: char, token: Option<i64>) -> String {
    token.map_or_else(String::new, |token| format!(" {letter}{token}"))
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

    fn answer(&mut self, request: &Request) -> String {
        let is_read = if let Request::MetaGet {
            vivify,
            recache,
            touch,
            ..
        } = request
        {
            vivify.or(*recache).or(*touch).is_none()
        } else {
            matches!(request, Request::Get { .. })
        };
        if is_read {
            self.tick(self.now_ms); // as the server does before it reads
        }
        self.sweep();
        let wins = if let Request::MetaGet { key, .. } = request {
            self.things.get(key).is_some_and(|it| it.stale && !it.won)
        } else {
            false
        };
        if wins || !is_read {
            self.index += 1;
        }
        let answer = self.run(request);
        self.sweep();
        answer
    }

    fn run(&mut self, request: &Request) -> String {
        match request {
            Request::Store { .. } => self.store(request),
            Request::Count { up, key, delta } => {
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
                if number.to_string().len() > width {
                    (thing.stale, thing.won) = (false, false);
                }
                thing.value = format!("{number:<width$}");
                thing.unique = self.index;
                format!("{number}\r\n")
            }
            Request::Touch { key, exptime } => {
                let end = self.end(*exptime);
                match self.things.get_mut(key) {
                    Some(thing) => {
                        thing.end = end;
                        "TOUCHED\r\n".into()
                    }
                    None => "NOT_FOUND\r\n".into(),
                }
            }
            Request::Delete { key } => match self.things.remove(key) {
                Some(_) => "DELETED\r\n".into(),
                None => "NOT_FOUND\r\n".into(),
            },
            Request::Gat {
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
            Request::Get { keys, with_unique } => {
                let shown: String = keys
                    .iter()
                    .map(|key| self.show(key, *with_unique))
                    .collect();
                shown + "END\r\n"
            }
            Request::Flush { delay } => {
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
            Request::MetaGet {
                key,
                vivify,
                recache,
                touch,
            } => self.meta_get(key, *vivify, *recache, *touch),
            Request::MetaStore { .. } => self.meta_store(request),
            Request::MetaStale { key, touch } => {
                let end = touch.map(|exptime| self.end(exptime));
                let Some(thing) = self.things.get_mut(key) else {
                    return "NF\r\n".into();
                };
                (thing.stale, thing.won, thing.unique) = (true, false, self.index);
                thing.end = end.unwrap_or(thing.end);
                "HD\r\n".into()
            }
            Request::MetaCount { key, vivify } => self.meta_count(key, *vivify),
        }
    }

    /// What flag `t` shows.
    fn left(&self, end: End) -> String {
        end.at_ms.map_or("t-1".into(), |at| {
            format!("t{}", at.saturating_sub(self.now_ms).div_ceil(1000))
        })
    }

    fn meta_get(
        &mut self,
        key: &str,
        vivify: Option<i64>,
        recache: Option<i64>,
        touch: Option<i64>,
    ) -> String {
        let found = self.things.get(key).cloned();
        let is_new = found.is_none();
        let mut thing = match (found, vivify) {
            (Some(found), _) => found,
            (None, None) => return "EN\r\n".into(),
            (None, Some(exptime)) => Thing {
                value: String::new(),
                flags: 0,
                unique: self.index,
                end: self.end(exptime),
                stale: false,
                won: false,
            },
        };
        let left = self.left(thing.end);
        let ends_soon = thing.end.at_ms.is_some() && !thing.won && !is_new && {
            let left: i64 = left[1..].parse().unwrap();
            recache.is_some_and(|recache| left < recache)
        };
        let wins = is_new || ends_soon || thing.stale && !thing.won;
        let mut marks = String::new();
        for (mark, is_set) in [(" Z", thing.won), (" X", thing.stale), (" W", wins)] {
            marks += if is_set { mark } else { "" };
        }
        thing.won |= wins;
        thing.end = touch.map_or(thing.end, |exptime| self.end(exptime));
        let Thing { value, unique, .. } = &thing;
        let answer = format!("VA {} {left} c{unique}{marks}\r\n{value}\r\n", value.len());
        self.things.insert(key.to_owned(), thing);
        answer
    }

    fn meta_store(&mut self, request: &Request) -> String {
        let Request::MetaStore {
            key,
            exptime,
            value,
            unique,
        } = request
        else {
            unreachable!("only those come here");
        };
        let Some(old) = self.things.get(key) else {
            return "NF c0\r\n".into();
        };
        let is_same = old.unique == *unique;
        if !is_same && (*unique == 0 || *unique > old.unique) {
            return "EX c0\r\n".into();
        }
        let thing = Thing {
            value: value.clone(),
            flags: 0,
            unique: self.index,
            end: if is_same { self.end(*exptime) } else { old.end },
            stale: !is_same,
            won: !is_same && old.won,
        };
        self.things.insert(key.clone(), thing);
        format!("HD c{}\r\n", self.index)
    }

    fn meta_count(&mut self, key: &str, vivify: i64) -> String {
        if self.things.contains_key(key) {
            let (up, delta) = (true, 1);
            let key = key.to_owned();
            let answer = self.run(&Request::Count {
                up,
                key: key.clone(),
                delta,
            });
            let thing = &self.things[&key];
            let Some(number) = answer
                .strip_suffix("\r\n")
                .filter(|it| it.parse::<u64>().is_ok())
            else {
                return answer;
            };
            let (bytes, left) = (number.len(), self.left(thing.end));
            return format!("VA {bytes} c{} {left}\r\n{number}\r\n", thing.unique);
        }
        let end = self.end(vivify);
        let thing = Thing {
            value: "7".into(),
            flags: 0,
            unique: self.index,
            end,
            stale: false,
            won: false,
        };
        self.things.insert(key.to_owned(), thing);
        format!("VA 1 c{} {}\r\n7\r\n", self.index, self.left(end))
    }

    fn store(&mut self, request: &Request) -> String {
        let Request::Store {
            how,
            key,
            flags,
            exptime,
            value,
            unique,
        } = request
        else {
            unreachable!("only stores come here");
        };
        let end = self.end(*exptime);
        let written = Thing {
            value: value.clone(),
            flags: *flags,
            unique: self.index,
            end,
            stale: false,
            won: false,
        };
        let old = self.things.get(key).cloned();
        let new = match (*how, old) {
            ("cas", None) => return "NOT_FOUND\r\n".into(),
            ("cas", Some(old)) if old.unique != *unique => return "EXISTS\r\n".into(),
            ("set", _) | ("add", None) | ("replace" | "cas", Some(_)) => written,
            ("append", Some(old)) => Thing {
                value: old.value.clone() + value,
                unique: self.index,
                stale: false,
                won: false,
                ..old
            },
            ("prepend", Some(old)) => Thing {
                value: value.clone() + &old.value,
                unique: self.index,
                stale: false,
                won: false,
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

fn request(random: &mut ChaCha8Rng, model: &Model) -> Request {
    let key = key(random);
    let exptime = exptime(random, model.now_ms);
    if random.random_bool(0.4) {
        return meta_request(random, model, key, exptime);
    }
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
            Request::Store {
                how,
                key,
                flags: random.random_range(0..3),
                exptime,
                value,
                unique,
            }
        }
        55..67 => Request::Count {
            up: random.random_bool(0.5),
            key,
            delta: if random.random_bool(0.1) {
                u64::MAX
            } else {
                random.random_range(0..15)
            },
        },
        67..75 => Request::Touch { key, exptime },
        75..82 => Request::Delete { key },
        82..90 => Request::Gat {
            keys: keys(random),
            exptime,
            with_unique: random.random_bool(0.5),
        },
        90..99 => Request::Get {
            keys: keys(random),
            with_unique: random.random_bool(0.5),
        },
        _ => Request::Flush { delay: exptime },
    }
}

fn meta_request(random: &mut ChaCha8Rng, model: &Model, key: String, exptime: i64) -> Request {
    let mut may = |choice: i64| random.random_bool(0.3).then_some(choice);
    let (vivify, touch) = (may(exptime), may(exptime));
    match random.random_range(0..10) {
        0..6 => Request::MetaGet {
            key,
            vivify,
            recache: random.random_bool(0.3).then(|| random.random_range(0..30)),
            touch,
        },
        6 => {
            let known = model.things.get(&key).map_or(1, |thing| thing.unique);
            let unique = match random.random_range(0..4) {
                0 => 0,
                1 => known + 1,
                2 => known.saturating_sub(1),
                _ => known,
            };
            let value = value(random);
            Request::MetaStore {
                key,
                exptime,
                value,
                unique,
            }
        }
        7..9 => Request::MetaStale { key, touch },
        _ => Request::MetaCount {
            key,
            vivify: exptime,
        },
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
        let request = request(&mut random, &model);
        let answer = model.answer(&request);
        let text = request.text();
        let reply = server.receive(&mut connection, text.as_bytes());
        assert_eq!(String::from_utf8(reply).unwrap(), answer, "to {text:?}");
        reached.count(answer.split(['\r', ' ']).next().unwrap());
        if let Some(("VA", marks)) = answer.lines().next().and_then(|line| line.split_once(' ')) {
            let marks = marks.trim_start_matches(|mark| !"WXZ".contains(mark));
            reached.count(if marks.is_empty() { "unmarked" } else { marks });
        }

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
            "HD",
            "EN",
            "NF",
            "EX",
            "VA",
            "unmarked",
            "W",
            "Z",
            "X W",
            "Z X",
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
        let request = request(&mut random, &model);
        model.answer(&request);
        for replica in &mut replicas {
            replica.log_time_ms = model.now_ms;
            replica.awaits_time = awaits_time;
            replica.receive(&mut Connection::default(), request.text().as_bytes());
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
