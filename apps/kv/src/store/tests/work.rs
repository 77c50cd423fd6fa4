//! What requests cost is counted, and expensive ones are known before.
use super::*;
use crate::WORK_MAX;
use crate::redis::{Resp, Script, Words, reply};

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
        "KEYS *x*",
        "SCAN 0",
        "RANDOMKEY",
    ];
    for command in expensive {
        let mut log = filled();
        let expected = expected(&log, command);
        let cost = counted(&mut log, |log| {
            log.redis(command);
        });
        let range = cost * 2 / 5..=cost + MIB;
        assert!(range.contains(&expected), "{command}: {expected}, {cost}");
        assert!(expected >= 1000 * 256, "{command}: {expected}");
    }
    let log = filled();
    for command in [
        "SET large1 x",
        "SET large1 x EX 100",
        "INCR k001",
        "DEL large1",
        "EXPIRE large1 100",
        "SETRANGE large1 7 x",
        "SETBIT large1 7 1",
        "EXISTS large1",
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
    assert_eq!(both, 2 * VALUE_BYTES_MAX);
}

/// Whoever puts commands together that are carried out together goes by this: values may come to be there meanwhile.
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
    assert_eq!(log.store.expected_work_of_query(&question), as_write);
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
        let found = log.store.expected_work_of_query(line.as_bytes());
        assert_eq!(found, expected, "{line}");
    }
}
