//! Random scripts of Redis commands, well formed and damaged, on two replicas with different secrets:
//! whatever the log carries, they give the same answers and stay the same, also over a snapshot.
mod redis_commands;
#[expect(dead_code, reason = "other tests use the rest")]
mod redis_oracle;
mod seeds;

use quorumwire_interfaces::{Application, Applied, LogTime};
use quorumwire_kv::redis::{Resp, Script};
use quorumwire_kv::{Command, Key, MemoryChange, MemoryPolicy, REPLY_BYTES_MAX, Store};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use redis_commands::{command, key};
use redis_oracle::{answer_end, array};

/// Log time at which the test starts, in ms: lifetimes of the commands end long after it.
const START_MS: u64 = 1_700_000_000_000;

fn script(random: &mut ChaCha8Rng, store: &Store) -> Vec<u8> {
    let is_transaction = random.random_ratio(1, 3);
    let mut watched = Vec::new();
    if is_transaction && random.random_ratio(1, 2) {
        let name = key(random);
        let key = Key::binary(&name).unwrap();
        let version = store.version(key) + u64::from(random.random_ratio(1, 4));
        Script::watch(&mut watched, key, version);
    }
    let count = if is_transaction {
        random.random_range(0..5)
    } else {
        1
    };
    let commands: Vec<u8> = (0..count).flat_map(|_| array(&lively(random))).collect();
    let mut encoded = Vec::new();
    Command::Redis(Script {
        resp: if random.random_ratio(1, 2) {
            Resp::V2
        } else {
            Resp::V3
        },
        is_transaction,
        watched: &watched,
        commands: &commands,
    })
    .encode(&mut encoded);
    if random.random_ratio(1, 5) {
        damage(random, &mut encoded);
    }
    encoded
}

/// Another memory limit, often none.
fn memory(random: &mut ChaCha8Rng) -> Vec<u8> {
    let policies = [MemoryPolicy::Refuse, MemoryPolicy::Evict];
    let change = MemoryChange {
        limit_bytes: Some(random.random_range(0..2) * random.random_range(1..1_000)),
        policy: Some(policies[random.random_range(0..2)]),
        for_redis: true,
        ..MemoryChange::default()
    };
    let mut encoded = Vec::new();
    Command::Memory(change).encode(&mut encoded);
    encoded
}

/// A command, often one with a lifetime that ends while the test runs.
fn lively(random: &mut ChaCha8Rng) -> Vec<Vec<u8>> {
    if random.random_ratio(3, 4) {
        return command(random);
    }
    let ms = random.random_range(1..3000).to_string().into_bytes();
    let name = key(random);
    if random.random_ratio(1, 2) {
        vec![b"PEXPIRE".to_vec(), name, ms]
    } else {
        vec![b"SET".to_vec(), name, b"1".to_vec(), b"PX".to_vec(), ms]
    }
}

fn damage(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    let place = random.random_range(1..bytes.len());
    match random.random_range(0..4) {
        0 => bytes.truncate(place),
        1 => bytes[place] = random.random(),
        2 => bytes.insert(place, random.random()),
        _ => drop(bytes.remove(place)),
    }
}

fn state(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.freeze().write(&mut bytes).unwrap();
    bytes
}

#[test]
fn replicas_stay_the_same_whatever_the_log_carries() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut replicas = [Store::new(), Store::new()];
    let mut log_time = LogTime(START_MS);
    for index in 1..20_000 {
        let command = if random.random_ratio(1, 100) {
            memory(&mut random)
        } else {
            script(&mut random, &replicas[0])
        };
        log_time.0 += random.random_range(0..50);
        let awaits_time = random.random_ratio(1, 4);
        let entry = Applied {
            number: index,
            log_time,
            awaits_time,
            command: &command,
        };
        let [first, second] = replicas.each_mut().map(|store| {
            let mut reply = Vec::new();
            store.apply(&entry, &mut reply);
            reply
        });
        assert_eq!(first, second, "{}", command.escape_ascii());
        assert!(first.len() <= REPLY_BYTES_MAX);
        assert_eq!(
            answer_end(&first),
            Some(first.len()),
            "{}",
            first.escape_ascii()
        );
        let is_damaged = first == b"-ERR not a command of this version\r\n";
        reached.count(if is_damaged { "damaged" } else { "carried out" });
        if replicas[0].awaits_time() && random.random_ratio(1, 2) {
            log_time.0 += 1;
            for store in &mut replicas {
                store.advance(log_time);
            }
            reached.count("awaited its time");
        }
        if index % 500 == 0 {
            let [first, second] = replicas.each_ref().map(state);
            assert_eq!(first, second);
            replicas[1].restore(&mut second.as_slice()).unwrap();
            assert_eq!(first, state(&replicas[1]));
            reached.count(if first.len() > 100 {
                "items"
            } else {
                "nothing"
            });
        }
    }
    let stats = replicas[0].stats();
    assert!(stats.expired > 50, "{stats:?}");
    assert!(
        stats.memory.evicted > 50 && stats.memory.refused > 50,
        "{stats:?}"
    );
    reached.require(10, &["damaged", "carried out", "awaited its time", "items"]);
}
