//! What happens at the memory limit.
use super::*;
use crate::redis::{Resp, VERSIONS, Words};
use crate::{EVICTED_PER_COMMAND_MAX, ITEM_OVERHEAD_BYTES, SORTED_PER_COMMAND};

/// What ten items of [`fill`] take.
const TEN_BYTES: u64 = 10 * (3 + 7 + ITEM_OVERHEAD_BYTES);

fn fill(log: &mut Log, range: std::ops::Range<u32>) {
    for number in range {
        log.set(&format!("k{number:02}"), 0, "1234567");
    }
}

fn there(log: &Log, range: std::ops::Range<u32>) -> Vec<u32> {
    range
        .filter(|number| log.get(&format!("k{number:02}")).is_some())
        .collect()
}

fn redis(log: &mut Log, line: &str) -> String {
    log.redis(line)
}

fn restored(log: &Log) -> Store {
    let state = bytes(&*log.store.freeze());
    let mut restored = Store::new();
    restored.restore(&mut state.as_slice()).unwrap();
    assert_eq!(bytes(&*restored.freeze()), state);
    restored
}

#[test]
fn writes_that_need_memory_are_refused_beyond_the_limit_and_change_nothing() {
    let mut log = Log::new();
    fill(&mut log, 0..10);
    log.set("number", 0, "99");
    assert_eq!(log.limit(Some(TEN_BYTES), None), "OK\r\n");
    let before = bytes(&*log.store.freeze());
    let no_memory = "SERVER_ERROR out of memory storing object\r\n";
    for (request, answer) in [
        ("set k00 0 0 1\r\nx\r\n", no_memory),
        ("add new 0 0 1\r\nx\r\n", no_memory),
        ("replace k00 0 0 1\r\nx\r\n", no_memory),
        ("cas k00 0 0 1 1\r\nx\r\n", no_memory),
        ("append k00 0 0 1\r\nx\r\n", no_memory),
        ("prepend k00 0 0 1\r\nx\r\n", no_memory),
        ("ms k00 1\r\nx\r\n", no_memory),
        ("mg new N30 v\r\n", "EN\r\n"),
        (
            "ma new N0\r\n",
            "SERVER_ERROR Out of memory allocating new item\r\n",
        ),
        ("incr number 1\r\n", "SERVER_ERROR out of memory\r\n"),
        ("ma number\r\n", "SERVER_ERROR out of memory\r\n"),
    ] {
        let refused = log.store.stats().memory.refused;
        assert_eq!(log.ask(request), answer, "{request:?}");
        assert_eq!(log.store.stats().memory.refused, refused + 1);
    }
    for line in [
        "SET a 1",
        "APPEND k00 1",
        "INCR a",
        "COPY k00 k11",
        "SETBIT k00 1 1",
    ] {
        assert_eq!(
            redis(&mut log, line),
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
        );
    }
    let transaction = log.transact(&[], &["GET k00", "SET a 1"]);
    assert!(transaction.starts_with("-EXECABORT Transaction discarded because of: OOM command"));
    assert_eq!(bytes(&*log.store.freeze()), before);
    assert_eq!(
        log.transact(&[], &["STRLEN k00", "DEL k00"]),
        "*2\r\n:7\r\n:1\r\n"
    );
}

#[test]
fn reads_lifetimes_and_deletes_always_work() {
    let mut log = Log::new();
    fill(&mut log, 0..10);
    log.set("number", 0, "10");
    log.limit(Some(1), None);
    for (request, answer) in [
        ("touch k00 100\r\n", "TOUCHED\r\n"),
        ("gat 0 k00\r\n", "VALUE k00 0 7\r\n1234567\r\nEND\r\n"),
        ("mg k00 T100\r\n", "HD\r\n"),
        ("decr number 1\r\n", "9\r\n"),
        ("ma number\r\n", "HD\r\n"),
        ("delete k00\r\n", "DELETED\r\n"),
        ("md k01\r\n", "HD\r\n"),
    ] {
        assert_eq!(log.ask(request), answer, "{request:?}");
    }
    for (line, answer) in [
        ("EXPIRE k02 10", ":1\r\n"),
        ("PERSIST k02", ":1\r\n"),
        ("GETDEL k03", "$7\r\n1234567\r\n"),
        ("RENAME k04 k05", "+OK\r\n"),
        ("DEL k05 k06", ":2\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
    ] {
        assert_eq!(redis(&mut log, line), answer, "{line}");
    }
    assert_eq!(log.store.stats().memory.refused, 0);
}

#[test]
fn the_limit_may_be_reached_but_what_is_beyond_it_stops_writes() {
    let mut log = Log::new();
    log.limit(Some(TEN_BYTES), None);
    fill(&mut log, 0..10);
    assert_eq!(log.store.stats().limited_bytes, TEN_BYTES);
    fill(&mut log, 10..11);
    let refused = log.ask("set k11 0 0 1\r\nx\r\n");
    assert_eq!(refused, "SERVER_ERROR out of memory storing object\r\n");
    log.ask("delete k03\r\n");
    fill(&mut log, 11..12);
}

#[test]
fn who_was_written_or_touched_longest_ago_is_evicted() {
    let mut log = Log::new();
    log.limit(Some(TEN_BYTES), Some(MemoryPolicy::Evict));
    fill(&mut log, 0..10);
    assert_eq!(log.ask("touch k00 0\r\n"), "TOUCHED\r\n");
    assert_eq!(
        log.ask("get k01\r\n").len(),
        "VALUE k01 0 7\r\n1234567\r\nEND\r\n".len()
    );
    assert_eq!(redis(&mut log, "EXPIRE k02 1000"), ":1\r\n");
    log.ask("md k03 I\r\n");
    fill(&mut log, 10..15);
    log.pass(1); // evicts for the last of them
    assert_eq!(there(&log, 0..15), [0, 2, 3, 8, 9, 10, 11, 12, 13, 14]);
    assert_eq!(log.store.stats().memory.evicted, 5);
    assert_eq!(log.store.version(Key::new(b"k01").unwrap()), 0);
    assert_eq!(log.store.stats().limited_bytes, TEN_BYTES);
}

#[test]
fn what_is_past_its_time_makes_room_before_anything_is_refused_or_evicted() {
    for policy in [MemoryPolicy::Refuse, MemoryPolicy::Evict] {
        let mut log = Log::new();
        log.limit(Some(TEN_BYTES), Some(policy));
        fill(&mut log, 0..5);
        for number in 5..400 {
            if log.ask(&format!("set k{number} 0 10 7\r\n1234567\r\n")) != "STORED\r\n" {
                break;
            }
        }
        let evicted = log.store.stats().memory.evicted;
        log.now_ms += 10_000;
        fill(&mut log, 500..505);
        assert_eq!(there(&log, 500..505).len(), 5);
        assert_eq!(log.store.stats().memory.evicted, evicted);
    }
}

/// More items end at once than a command removes: they are nobody's any more, whatever is left of them.
#[test]
fn the_removal_of_what_is_past_its_time_is_no_part_of_the_state() {
    let mut log = Log::new();
    log.limit(Some(1 << 20), Some(MemoryPolicy::Evict));
    fill(&mut log, 0..10);
    for number in 0..1000 {
        log.set(&format!("end{number}"), 1, "x");
    }
    log.pass(1000);
    assert!(log.store.stats().curr_items > 800);
    assert_eq!(log.store.stats().limited_bytes, TEN_BYTES);
    let mut other = Log {
        store: restored(&log),
        ..Log::new()
    };
    (other.index, other.now_ms) = (log.index, log.now_ms);
    for log in [&mut log, &mut other] {
        log.limit(Some(TEN_BYTES / 2), None);
        log.set("new", 0, "1");
    }
    assert_eq!(there(&log, 0..10), [5, 6, 7, 8, 9]);
    assert_eq!(bytes(&*log.store.freeze()), bytes(&*other.store.freeze()));
}

#[test]
fn a_limit_that_was_lowered_by_much_is_reached_step_by_step() {
    let mut log = Log::new();
    let count = u32::try_from(EVICTED_PER_COMMAND_MAX).unwrap() * 2 + 10;
    log.limit(Some(1 << 30), Some(MemoryPolicy::Evict));
    fill(&mut log, 0..count);
    log.limit(Some(1), None);
    assert_eq!(
        log.store.stats().memory.evicted,
        EVICTED_PER_COMMAND_MAX as u64
    );
    let due = log.store.next_deadline();
    assert_eq!(due, Some(LogTime(log.now_ms)), "a tick is to go on");
    let refused = log.ask("set new 0 0 1\r\nx\r\n");
    assert_eq!(refused, "SERVER_ERROR out of memory storing object\r\n");
    log.pass(10);
    assert_eq!(log.store.stats().curr_items, 0);
    assert_eq!(log.store.next_deadline(), None);
    log.set("new", 0, "1");
}

/// Where evicting begins with many items there, writes are refused until it is known who was first.
#[test]
fn items_that_are_there_are_put_in_order_step_by_step() {
    let mut log = Log::new();
    let count = u32::try_from(SORTED_PER_COMMAND).unwrap() * 2 + 10;
    fill(&mut log, 0..count);
    log.limit(Some(TEN_BYTES), Some(MemoryPolicy::Evict));
    assert_eq!(log.store.stats().memory.evicted, 0);
    let mut other = Log {
        store: restored(&log),
        index: log.index,
        ..Log::new()
    };
    for log in [&mut log, &mut other] {
        assert_eq!(log.ask("touch k05 0\r\n"), "TOUCHED\r\n");
        assert_eq!(log.store.stats().memory.evicted, 0);
        let refused = log.ask("set new 0 0 1\r\nx\r\n");
        assert_eq!(refused, "SERVER_ERROR out of memory storing object\r\n");
    }
    let mut ticks = 0;
    while log.store.next_deadline().is_some() {
        for log in [&mut log, &mut other] {
            log.pass(10);
        }
        assert_eq!(bytes(&*log.store.freeze()), bytes(&*other.store.freeze()));
        ticks += 1;
    }
    assert!(ticks > 5, "{ticks}");
    let mut left = there(&log, 0..count);
    assert_eq!(left.remove(0), 5);
    assert_eq!(left, (count - 8..count).collect::<Vec<_>>());
}

#[test]
fn an_option_counts_only_for_a_store_whose_limit_was_never_set() {
    let mut log = Log::new();
    let first = |log: &mut Log, bytes| {
        let change = MemoryChange {
            if_never_set: true,
            limit_bytes: Some(bytes),
            policy: Some(MemoryPolicy::Evict),
            for_redis: false,
        };
        let (mut encoded, mut reply) = (Vec::new(), Vec::new());
        Command::Memory(change).encode(&mut encoded);
        log.apply(&encoded, &mut reply);
        assert_eq!(reply, reply::OK);
    };
    first(&mut log, 1000);
    let limit = MemoryLimit {
        is_set: true,
        bytes: 1000,
        policy: MemoryPolicy::Evict,
    };
    assert_eq!(log.store.memory_limit(), limit);
    first(&mut log, 2000);
    assert_eq!(log.store.memory_limit(), limit);
    log.limit(Some(0), None);
    first(&mut log, 2000);
    assert_eq!(log.store.memory_limit(), MemoryLimit { bytes: 0, ..limit });
    log.awaits_time = true;
    let refused = log.limit(Some(1), None);
    assert!(
        refused.starts_with("SERVER_ERROR not executed"),
        "{refused}"
    );
}

#[test]
fn what_was_flushed_or_limited_no_more_is_not_evicted() {
    let mut log = Log::new();
    log.limit(Some(TEN_BYTES), Some(MemoryPolicy::Evict));
    fill(&mut log, 0..10);
    log.ask("flush_all\r\n");
    fill(&mut log, 10..20);
    log.limit(None, Some(MemoryPolicy::Refuse));
    log.limit(Some(0), Some(MemoryPolicy::Evict));
    fill(&mut log, 20..40);
    assert_eq!(there(&log, 0..40).len(), 30);
    log.limit(Some(TEN_BYTES), None);
    assert_eq!(there(&log, 0..40), (30..40).collect::<Vec<_>>());
    for _ in 0..40 {
        log.pass(1); // frees what was thrown away
    }
}

/// Keys that share a place of the table: there, each is offered to whoever looks for another one.
fn of_one_place(log: &Log, count: usize) -> Vec<String> {
    let place = |name: &str| log.store.items.hash(Key::new(name.as_bytes()).unwrap()) >> 52;
    let names = (0..).map(|number| format!("k{number}"));
    names.filter(|name| place(name) == 0).take(count).collect()
}

#[test]
fn lives_that_begin_together_leave_each_item_its_rank() {
    let mut log = Log::new();
    log.limit(Some(1 << 30), Some(MemoryPolicy::Evict));
    let names = of_one_place(&log, 600);
    log.awaits_time = true;
    for name in &names {
        log.set(name, 100, "1234567");
    }
    log.awaits_time = false;
    log.pass(10);
    let (gone, left) = names.split_at(300);
    let bytes = left
        .iter()
        .map(|name| name.len() as u64 + 7 + ITEM_OVERHEAD_BYTES);
    log.limit(Some(bytes.sum()), None);
    assert!(gone.iter().all(|name| log.get(name).is_none()));
    assert!(left.iter().all(|name| log.get(name).is_some()));
}

#[test]
fn keys_that_share_their_position_end_no_page_too_early() {
    let mut log = Log::new();
    // Found by search; the last has a greater position, at another place.
    for name in ["k3609611", "k10759998", "k8"] {
        log.set(name, 0, "1234567");
    }
    let page = log.redis("SCAN 0 COUNT 1");
    assert!(!page.starts_with("*2\r\n$1\r\n0\r\n"), "{page}");
    log.limit(Some(1), Some(MemoryPolicy::Evict));
    assert_eq!(log.store.stats().limited_bytes, 0);
}

#[test]
fn what_versions_of_keys_are_told_has_a_limit() {
    let mut log = Log::new();
    log.index = 9_999_999_999;
    log.set("k", 0, "");
    let mut question = format!("*131072\r\n${}\r\n", VERSIONS.len()).into_bytes();
    question.extend_from_slice(VERSIONS);
    question.extend_from_slice(b"\r\n");
    question.extend_from_slice("$1\r\nk\r\n".repeat(131_071).as_bytes());
    let mut answer = Vec::new();
    let words = Words::from_text(&question).unwrap();
    log.store.redis_read(Resp::V2, &words, &mut answer);
    assert!(answer.starts_with(b"-ERR"), "{} bytes", answer.len());
}
