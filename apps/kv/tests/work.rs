//! What the most expensive entries of the log cost: replicas do nothing else meanwhile. Measured, not judged,
//! because other things run on this machine: `cargo test --release -p quorumwire-kv --test work -- --ignored
//! --nocapture`.
#[expect(dead_code, reason = "other tests use the rest")]
mod redis_oracle;

use quorumwire_interfaces::{Application, Applied, LogTime};
use quorumwire_kv::redis::{Resp, Script};
use quorumwire_kv::{Command, VALUE_BYTES_MAX, WORK_MAX};
use redis_oracle::array;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

const KEYS: u32 = 1_000_000;
/// Values of the greatest length.
const LARGE: u32 = 100;
const TRIES: u32 = 3;

struct Log {
    store: quorumwire_kv::Store,
    index: u64,
}

impl Log {
    fn run(&mut self, commands: &[String]) -> (Duration, Vec<u8>) {
        let words = |command: &String| {
            command
                .split(' ')
                .map(|it| it.as_bytes().to_vec())
                .collect()
        };
        let texts: Vec<Vec<Vec<u8>>> = commands.iter().map(words).collect();
        let commands: Vec<u8> = texts.iter().flat_map(|words| array(words)).collect();
        let mut encoded = Vec::new();
        Command::Redis(Script {
            resp: Resp::V2,
            is_transaction: true,
            watched: &[],
            commands: &commands,
        })
        .encode(&mut encoded);
        self.index += 1;
        let entry = Applied {
            number: self.index,
            log_time: LogTime(1),
            awaits_time: false,
            command: &encoded,
        };
        let mut reply = Vec::new();
        let before = on_processor();
        self.store.apply(&entry, &mut reply);
        (on_processor().saturating_sub(before), reply)
    }
}

/// Time for which this thread has had a processor: others on this machine do not count.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "measures"]
fn what_an_entry_costs_at_most() {
    let mut log = Log {
        store: quorumwire_kv::Store::new(),
        index: 0,
    };
    for first in (0..KEYS).step_by(1000) {
        let pairs = (first..first + 1000).fold("MSET".to_owned(), |mut text, number| {
            let _ = write!(text, " key:{number:07} {number}");
            text
        });
        log.run(&[pairs]);
    }
    for number in 0..LARGE {
        log.run(&[format!("SETRANGE large{number} {} x", VALUE_BYTES_MAX - 1)]);
    }
    let large = |name: &str, behind: &str| -> Vec<String> {
        (0..LARGE)
            .map(|number| format!("{name} large{number}{behind}"))
            .collect()
    };
    let many = |command: &str, often: usize| vec![command.to_owned(); often];
    let mut text = String::new();
    for number in 0..40_000 {
        let _ = write!(text, " k{number} v");
    }
    let slow = format!("KEYS {}", "*[a-z]".repeat(100));
    let cases = [
        ("BITCOUNT", many("BITCOUNT large1", 2000)),
        ("BITPOS", many("BITPOS large1 1 1 -2", 2000)),
        ("BITOP", many("BITOP XOR large2 large1 large3 large4", 2000)),
        (
            "COPY",
            (0..100)
                .map(|number| format!("COPY large1 copy{number}"))
                .collect(),
        ),
        ("APPEND", many("APPEND copy1 x", 1)),
        ("SETBIT", large("SETBIT", " 1 1")),
        ("EXPIRE", large("EXPIRE", " 10000000")),
        (
            "SETRANGE",
            (0..2000)
                .map(|number| format!("SETRANGE new{number} 1048575 x"))
                .collect(),
        ),
        (
            "DEL",
            (0..2000).map(|number| format!("DEL new{number}")).collect(),
        ),
        ("MSET", vec![format!("MSET{text}")]),
        ("KEYS", many("KEYS no-such", 2000)),
        ("KEYS with a slow pattern", vec![slow]),
        ("SCAN", many("SCAN 0 COUNT 4096 MATCH no-such", 2000)),
        ("RANDOMKEY", many("RANDOMKEY", 2000)),
        ("INCRBYFLOAT", many("INCRBYFLOAT f 1e4900", 2000)),
        ("INCRBYFLOAT by little", many("INCRBYFLOAT g 1e-4900", 2000)),
    ];
    for has_snapshot in [false, true, true] {
        for (name, commands) in &cases {
            let frozen = has_snapshot.then(|| log.store.freeze());
            while !log.store.unshare(usize::MAX) {} // as a server does before entries that may name many keys
            let (took, reply) = log.run(commands);
            drop(frozen);
            let limit = WORK_MAX.to_string();
            let is_limited = reply.windows(limit.len()).any(|it| it == limit.as_bytes());
            let took = took.as_millis();
            println!("{name}: {took} ms, limited: {is_limited}, a snapshot begins: {has_snapshot}");
        }
    }
}

/// A standstill in which as many lives ended as there are keys, each at a millisecond of its own; then the
/// log's time goes on.
#[test]
#[ignore = "measures"]
fn what_a_tick_after_a_standstill_costs() {
    let mut log = Log {
        store: quorumwire_kv::Store::new(),
        index: 0,
    };
    for first in (0..KEYS).step_by(1000) {
        let set = |number| format!("SET key:{number:07} x PX {}", 1000 + number);
        log.run(&(first..first + 1000).map(set).collect::<Vec<_>>());
    }
    let before = Instant::now();
    log.store.advance(LogTime(u64::from(KEYS) * 2));
    let took = before.elapsed();
    println!("a tick that ends {KEYS} lives: {} us", took.as_micros());
    // As long as all items take more memory than before, a command removes those that have ended, so many at
    // most.
    for number in 0..TRIES {
        let grow = |value| format!("SETRANGE large{number}-{value} {} x", VALUE_BYTES_MAX - 1);
        log.run(&(0..20).map(grow).collect::<Vec<_>>());
        let before = log.store.stats().curr_items;
        let (took, _) = log.run(&["GET a".to_owned()]);
        let gone = before - log.store.stats().curr_items;
        println!(
            "a command that removes {gone} items: {} ms",
            took.as_millis()
        );
    }
}
