//! What requests cost is counted, and expensive ones are known before.
use super::*;
use crate::WORK_MAX;
use crate::redis::{Kind, Resp, Script, Words, reply, spec};
use crate::seeds;
use rand::RngExt as _;

const MIB: u64 = 1 << 20;

/// A thousand small items, a dozen of the greatest length.
fn filled() -> Log {
    let mut log = Log::new();
    for number in 0..1000 {
        log.set(&format!("k{number:03}"), 0, "1");
    }
    for number in 0..12 {
        log.set(&format!("large{number}"), 0, &"v".repeat(VALUE_BYTES_MAX));
    }
    log
}

fn text(command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut text = Vec::new();
    reply::array_header(&mut text, words.len());
    for word in words {
        reply::bulk(&mut text, word.as_bytes());
    }
    text
}

/// What the store does while this is asked.
fn counted(log: &mut Log, ask: impl FnOnce(&mut Log)) -> u64 {
    let before = log.store.work_done();
    ask(log);
    log.store.work_done() - before
}

#[test]
fn what_redis_commands_cost_is_counted() {
    let large = (0..12).fold(String::new(), |keys, number| {
        format!("{keys} large{number}")
    });
    let many = (0..1000).fold(String::new(), |keys, number| format!("{keys} k{number:03}"));
    for (command, least, most) in [
        ("GET k001", 256, 1000),
        ("SET k001 2", 256, 1000),
        ("GET large1", MIB, MIB + 1000),
        ("KEYS no*", 1000 * 256, MIB),
        ("SCAN 0 COUNT 100", 100 * 256, MIB),
        ("RANDOMKEY", 256 * 1000, MIB),
        ("BITCOUNT large1", MIB, MIB + 1000),
        (&format!("BITOP OR to{large}"), 12 * MIB, 13 * MIB),
        ("COPY large1 another", MIB, MIB + 1000),
        ("APPEND k002 x", 256, 1000),
        ("SETRANGE fresh 1048575 x", MIB, MIB + 1000),
        (&format!("MGET{many}"), 128_000, MIB),
        (&format!("EXISTS{many}"), 128_000, MIB),
        (&format!("DEL{many}"), 128_000, MIB),
    ] {
        let mut log = filled();
        let cost = counted(&mut log, |log| {
            log.redis(command);
        });
        assert!((least..=most).contains(&cost), "{command}: {cost}");
    }
}

#[test]
fn what_memcached_commands_cost_is_counted() {
    let some = (0..100).fold(String::new(), |keys, number| format!("{keys} k{number:03}"));
    let many = (0..1000).fold(String::new(), |keys, number| format!("{keys} k{number:03}"));
    for (request, least, most) in [
        ("get k001\r\n", 256, 1000),
        ("set k001 0 0 1\r\n2\r\n", 256, 1000),
        ("get large1\r\n", MIB, MIB + 1000),
        ("gat 0 large1\r\n", MIB, MIB + 1000),
        (&format!("get{many}\r\n"), 128_000, MIB),
        (&format!("gat 0{some}\r\n"), 12_800, MIB),
    ] {
        let mut log = filled();
        let cost = counted(&mut log, |log| {
            log.ask(request);
        });
        assert!((least..=most).contains(&cost), "{request}: {cost}");
    }
}

/// Whoever applies entries must know: nothing in the entry says that so much comes with it.
#[test]
fn what_goes_with_a_command_is_counted() {
    let mut log = filled();
    for number in 0..100 {
        log.set(&format!("k{number:03}"), 1, "1");
    }
    let expiry = counted(&mut log, |log| log.pass(10_000));
    assert!(expiry >= 100 * 256, "{expiry}");
    let sorting = counted(&mut log, |log| {
        log.limit(Some(MIB), Some(MemoryPolicy::Evict));
    });
    assert!(sorting >= 912 * 512, "{sorting}");
    log.ask("flush_all\r\n");
    for number in 0..1000 {
        log.set(&format!("k{number:03}"), 0, "1");
    }
    log.ask("flush_all\r\n");
    let freeing = counted(&mut log, |log| log.pass(0));
    assert!(freeing >= 1000 * 256, "{freeing}");
}

#[test]
fn an_expensive_command_is_known_before_and_others_cost_no_look() {
    let large = (0..12).fold(String::new(), |keys, number| {
        format!("{keys} large{number}")
    });
    let expensive = [
        &format!("BITOP OR to{large}"),
        "BITCOUNT large1",
        "BITPOS large1 0",
        "APPEND large11 ",
        "COPY large1 another",
        "RENAME large1 another",
        "GETEX large1 PERSIST",
        "GETSET large1 x",
        "GETDEL large1",
        "SET large1 x GET",
        "SETRANGE fresh 1048575 x",
        "SETBIT fresh 8388607 1",
        "BITFIELD fresh SET u8 #1048575 1",
        "GET large1",
        "EXPIRE large1 100",
        "SETRANGE large1 7 x",
        "SETBIT large1 7 1",
        "INCRBYFLOAT fresh 1e4900",
        "KEYS *x*",
        "SCAN 0",
        "SCAN 0 COUNT 4096",
        "RANDOMKEY",
    ];
    for command in expensive {
        let mut log = filled();
        let expected = expected(&log, command);
        let cost = counted(&mut log, |log| {
            log.redis(command);
        });
        let range = cost.saturating_sub(1000) / 2..=cost + 4 * MIB;
        assert!(range.contains(&expected), "{command}: {expected}, {cost}");
        assert!(expected >= 1000 * 256, "{command}: {expected}");
    }
    let log = filled();
    for command in [
        "SET large1 x",
        "SET large1 x EX 100",
        "INCR k001",
        "DEL large1",
        "EXISTS large1",
        "MSET a 1 b 2 c 3",
    ] {
        assert_eq!(expected(&log, command), 0, "{command}");
    }
    let both = Script {
        resp: Resp::V2,
        is_transaction: true,
        watched: &[],
        commands: &[text("COPY large1 a"), text("INCR k"), text("COPY large1 b")].concat(),
    };
    let both = log.store.expected_work(&Command::Redis(both));
    // And a sixteenth of each value that may go.
    assert_eq!(both, 2 * VALUE_BYTES_MAX + 2 * VALUE_BYTES_MAX / 16);
}

/// Whoever puts commands together that are carried out together goes by this: values may come to be there
/// meanwhile.
#[test]
fn no_command_costs_more_than_it_may_at_most() {
    let large = (0..12).fold(String::new(), |keys, number| {
        format!("{keys} large{number}")
    });
    for command in [
        &format!("BITOP OR to{large}"),
        "BITCOUNT large1",
        "BITPOS large1 0",
        "APPEND large11 ",
        "COPY large1 another",
        "RENAME large1 another",
        "GETEX large1 PERSIST",
        "GETSET large1 x",
        "SET large1 x GET",
        "SETRANGE fresh 1048575 x",
        "SETBIT fresh 8388607 1",
        "BITFIELD fresh SET u8 #1048575 1",
        &format!("MGET{large}"),
        "KEYS *x*",
        "SCAN 0",
        "SET k001 x",
        "INCR k001",
        "EXPIRE k001 100",
    ] {
        let mut log = filled();
        let text = text(command);
        let words = Words::from_text(&text).unwrap();
        let most = Command::Redis(Script::single(Resp::V2, &words)).work_max();
        let cost = counted(&mut log, |log| {
            log.redis(command);
        });
        // What any command costs, and its answer.
        let beside = (4096 + 256 * words.len() + REPLY_BYTES_MAX) as u64;
        assert!(cost <= most as u64 + beside, "{command}: {cost}, {most}");
        assert!(most <= WORK_MAX);
    }
    let key = Key::new(b"k001").unwrap();
    let most = Command::Append { key, value: b"" }.work_max();
    assert_eq!(most, VALUE_BYTES_MAX);
}

/// All that have ended meanwhile, one end for each millisecond.
#[test]
fn a_tick_after_a_long_standstill_is_little_work() {
    let mut log = filled();
    for number in 0..100_000 {
        log.redis(&format!("SET short{number} 1 PX {}", 1 + number));
    }
    log.redis("SET long 1 PX 2000000");
    let cost = counted(&mut log, |log| log.pass(1_000_000));
    assert!(cost < 4 * MIB, "{cost}");
    assert_eq!(log.redis("DBSIZE"), ":1013\r\n");
    let stats = log.store.stats();
    assert!(stats.limited_bytes < stats.memory_bytes / 2, "{stats:?}");
    for _ in 0..1000 {
        log.pass(1);
    }
    assert_eq!(log.store.stats().curr_items, 1013);
    let cost = counted(&mut log, |log| log.pass(2_000_000));
    assert!(cost < MIB, "{cost}");
    assert_eq!(log.redis("DBSIZE"), ":1012\r\n");
}

fn expected(log: &Log, command: &str) -> u64 {
    let text = text(command);
    let words = Words::from_text(&text).unwrap();
    let script = Script::single(Resp::V2, &words);
    let as_write = log.store.expected_work(&Command::Redis(script));
    let question = [&b"2"[..], &text].concat();
    assert_eq!(log.store.work_of_query(&question), as_write);
    as_write as u64
}

#[test]
fn an_expensive_request_of_memcached_is_known_before() {
    let log = filled();
    let key = Key::new(b"large1").unwrap();
    let append = Command::Append { key, value: b"" };
    assert_eq!(log.store.expected_work(&append), VALUE_BYTES_MAX);
    for (line, expected) in [
        ("get large1 k001 large2", 2 * VALUE_BYTES_MAX + 1),
        ("mg large1 v", VALUE_BYTES_MAX),
        ("get none", 0),
    ] {
        let found = log.store.work_of_query(line.as_bytes());
        assert_eq!(found, expected, "{line}");
    }
    for (line, expected) in [
        ("ms large1 1 MA", VALUE_BYTES_MAX),
        ("ms large1 1 MP", VALUE_BYTES_MAX),
        ("ms large1 1", 0),
        ("md large1", 0),
    ] {
        let request = format!(
            "{line}\r\n{}",
            if line.starts_with("ms") { "x\r\n" } else { "" }
        );
        let Parsed::Request {
            request: Request::Write { command, .. },
            ..
        } = parse(request.as_bytes())
        else {
            panic!("{line}");
        };
        assert_eq!(log.store.expected_work(&command), expected, "{line}");
    }
}

/// Whatever is asked, and of whatever is there: what comes behind it in the log is not to wait for much more.
#[test]
fn every_command_is_expected_to_cost_half_of_what_it_does_at_least() {
    let number = "9".repeat(4000);
    let values = ["1", "1e4900", "-0.5", &number, &"v".repeat(200_000)];
    let many = (0..2000).fold(String::new(), |all, number| format!("{all} k{number:03} 1"));
    let words = |name: &str| {
        [
            "k000", "k001", "missing", "0", "1", "100", "1e4900", "1e-4900", "1e300",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(
            [
                "*", "k*", "*[^b]0*", "GET", "SET", "u8", "#9000", "AND", "4096", "COUNT",
            ]
            .map(str::to_owned),
        )
        .chain((0..4).map(|number| format!("large{number}")))
        .chain([format!("{name}x"), many.trim().to_owned()])
        .collect::<Vec<_>>()
    };
    let mut generator = seeds::generator();
    let mut random = |below: usize| generator.random_range(0..below);
    let mut reached = seeds::Reached::default();
    let mut log = filled();
    let list = log.transact(&[], &["COMMAND LIST"]);
    let names = list
        .split("\r\n")
        .filter(|line| !line.is_empty() && !line.starts_with(['*', '$']));
    let rows: Vec<_> = names.map(|name| spec(name.as_bytes()).unwrap()).collect();
    for round in 0..120 {
        for spec in &rows {
            if spec.kind == Kind::Connection && !spec.name.starts_with("command") {
                continue;
            }
            let words = words(spec.name);
            let least = spec.arity.unsigned_abs() as usize;
            let count = least - 1 + if spec.arity < 0 { random(4) } else { 0 };
            let mut command = spec.name.to_owned();
            for place in 0..count {
                let key = place == 0 && random(3) > 0;
                let word = if key {
                    format!("large{}", random(4))
                } else {
                    words[random(words.len())].clone()
                };
                command = format!("{command} {word}");
            }
            if round % 4 == 0 {
                for number in 0..4 {
                    let value = values[random(values.len())];
                    log.redis(&format!("SET large{number} {value} EX 1000"));
                }
            }
            let expected = expected(&log, &command);
            let cost = counted(&mut log, |log| {
                log.redis(&command);
            });
            // Its own bytes, and an answer without values, are looked at anyway.
            let beside = 4096 + 2 * command.len() as u64;
            assert!(
                expected >= (cost / 2).saturating_sub(beside),
                "{expected}, {cost}: {command:.200}"
            );
            drop(log.store.take_discarded()); // else the next command frees it
            let is_expensive = cost > 64 << 10;
            reached.count(if is_expensive { spec.name } else { "cheap" });
            if log.get("k001").is_none() {
                log = filled();
            }
        }
    }
    reached.require(1, &["expire", "get", "incrbyfloat", "cheap"]);
}

/// What a single command frees, or many words of it cost, is expected of transactions, too.
#[test]
fn many_words_and_values_that_go_are_expected() {
    let mut log = filled();
    let many = (0..1000).fold(String::new(), |keys, number| format!("{keys} k{number:03}"));
    let pairs = (0..1000).fold(String::new(), |keys, number| format!("{keys} n{number} 1"));
    let large = (0..12).fold(String::new(), |keys, number| {
        format!("{keys} large{number}")
    });
    for command in [
        format!("DEL{many}"),
        format!("EXISTS{many}"),
        format!("MSET{pairs}"),
        format!("DEL{large}"),
    ] {
        let expected = expected(&log, &command);
        let cost = counted(&mut log, |log| {
            log.redis(&command);
        });
        assert!(
            (cost / 2..=cost).contains(&expected),
            "{command:.20}: {expected}, {cost}"
        );
    }
    log.redis("SET f 1e4900");
    let commands: Vec<Vec<u8>> = vec![text("INCRBYFLOAT f 1e-4900"); 50];
    let script = Script {
        resp: Resp::V2,
        is_transaction: true,
        watched: &[],
        commands: &commands.concat(),
    };
    log.redis("INCRBYFLOAT f 0");
    let expected = log.store.expected_work(&Command::Redis(script)) as u64;
    let cost = counted(&mut log, |log| {
        log.transact(&[], &["INCRBYFLOAT f 1e-4900"; 50]);
    });
    assert!(
        cost > 16 * MIB && expected >= cost / 2,
        "{expected}, {cost}"
    );
}
