//! The rules of the store one by one. Random runs against a model stand in `tests/model.rs`.
use super::*;
use crate::memcached::{Parsed, Request, parse};
use crate::{EXPIRED_PER_COMMAND, MemoryChange};

mod changes;
mod clock;
mod gone;
mod lives;
mod memory;
mod meta;
mod redis;
mod search;
mod work;

/// Log time at which the tests start, in ms.
const START_MS: u64 = 1_700_000_000_000;

/// A store with a log in front of it, spoken to in the text protocol.
struct Log {
    store: Store,
    index: u64,
    now_ms: u64,
    /// What is asked comes from where no tick goes before it.
    awaits_time: bool,
}

impl Log {
    fn new() -> Self {
        Self {
            store: Store::new(),
            index: 0,
            now_ms: START_MS,
            awaits_time: false,
        }
    }

    fn ask(&mut self, request: &str) -> String {
        let mut reply = Vec::new();
        match parse(request.as_bytes()) {
            Parsed::Request {
                consumed,
                request: Request::Write { command, .. },
            } => {
                assert_eq!(consumed, request.len());
                let mut encoded = Vec::new();
                command.encode(&mut encoded);
                self.apply(&encoded, &mut reply);
            }
            Parsed::Request {
                consumed,
                request: Request::Read(read),
            } => {
                assert_eq!(consumed, request.len());
                self.store.query(read.line(), &mut reply);
                if reply == reply::MUST_WRITE {
                    reply.clear();
                    let mut encoded = Vec::new();
                    read.as_write().unwrap().encode(&mut encoded);
                    self.apply(&encoded, &mut reply);
                }
            }
            other @ (Parsed::Incomplete { .. }
            | Parsed::Request { .. }
            | Parsed::Refused { .. }) => panic!("{request:?} is {other:?}"),
        }
        String::from_utf8(reply).unwrap()
    }

    fn apply(&mut self, command: &[u8], reply: &mut Vec<u8>) {
        self.index += 1;
        let log_time = LogTime(self.now_ms);
        self.store.apply(
            &Applied {
                number: self.index,
                log_time,
                awaits_time: self.awaits_time,
                command,
            },
            reply,
        );
    }

    /// Changes the memory limit; what the one who asks for it is told.
    fn limit(&mut self, limit_bytes: Option<u64>, policy: Option<MemoryPolicy>) -> String {
        let change = MemoryChange {
            limit_bytes,
            policy,
            ..MemoryChange::default()
        };
        let (mut encoded, mut reply) = (Vec::new(), Vec::new());
        Command::Memory(change).encode(&mut encoded);
        self.apply(&encoded, &mut reply);
        String::from_utf8(reply).unwrap()
    }

    fn set(&mut self, key: &str, exptime: i64, value: &str) {
        let request = format!("set {key} 0 {exptime} {}\r\n{value}\r\n", value.len());
        assert_eq!(self.ask(&request), "STORED\r\n");
    }

    fn get(&self, key: &str) -> Option<String> {
        let item = self.store.get(Key::new(key.as_bytes()).unwrap())?;
        Some(String::from_utf8(item.value.to_vec()).unwrap())
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.store.advance(LogTime(self.now_ms));
    }
}

fn bytes(frozen: &dyn Frozen) -> Vec<u8> {
    let mut bytes = Vec::new();
    frozen.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn expiry_times_count_as_memcached_counts_them() {
    let now_ms = START_MS;
    let moment = Moment {
        now_ms,
        ahead_ms: 0,
    };
    let deadline = |exptime| deadline_ms(Exptime(exptime), moment);
    assert_eq!(deadline(0), NEVER);
    assert_eq!(deadline(-1), 0);
    assert_eq!(deadline(i64::MIN), 0);
    assert_eq!(deadline(1), now_ms + 1000);
    assert_eq!(deadline(2_592_000), now_ms + 2_592_000_000);
    assert_eq!(deadline(2_592_001), 2_592_001_000);
    assert_eq!(deadline(4_000_000_000), 4_000_000_000_000);
    assert_eq!(deadline(i64::MAX), NEVER - 1);
    let late = Moment {
        now_ms: u64::MAX - 1,
        ahead_ms: 0,
    };
    assert_eq!(deadline_ms(Exptime(1), late), NEVER - 1);
}

#[test]
fn an_item_is_gone_from_its_end_on() {
    let mut log = Log::new();
    log.set("a", 10, "1");
    assert_eq!(log.store.next_deadline(), Some(LogTime(START_MS + 10_000)));
    log.pass(9_999);
    assert_eq!(log.get("a").as_deref(), Some("1"));
    log.pass(1);
    assert_eq!(log.get("a"), None);
    assert_eq!(log.store.stats().curr_items, 0);
    assert_eq!(log.store.stats().bytes, 0);
    assert_eq!(log.store.stats().expired, 1);
    assert_eq!(log.store.next_deadline(), None);
}

#[test]
fn a_command_sees_the_time_of_its_own_entry() {
    for (request, answer) in [
        ("get a\r\n", "END\r\n"),
        ("add a 0 0 1\r\n2\r\n", "STORED\r\n"),
        ("replace a 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("append a 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("cas a 0 0 1 1\r\n2\r\n", "NOT_FOUND\r\n"),
        ("incr a 1\r\n", "NOT_FOUND\r\n"),
        ("touch a 0\r\n", "NOT_FOUND\r\n"),
        ("gat 0 a\r\n", "END\r\n"),
        ("delete a\r\n", "NOT_FOUND\r\n"),
    ] {
        let mut log = Log::new();
        // So many items end at once that `a`, the last one, still waits for its removal.
        for number in 0..2 * EXPIRED_PER_COMMAND {
            log.set(&format!("other{number}"), 1, "1");
        }
        log.set("a", 1, "1");
        log.now_ms += 1000;
        if request.starts_with("get") {
            log.pass(0);
        }
        assert_eq!(log.ask(request), answer, "{request}");
        assert!(
            log.store.stats().curr_items > 100,
            "nothing waited any more"
        );
    }
}

#[test]
fn nothing_that_waits_for_its_removal_is_in_a_snapshot() {
    let mut log = Log::new();
    for number in 0..=2 * EXPIRED_PER_COMMAND {
        log.set(&format!("{number}"), 1, "1");
    }
    log.set("stays", 0, "1");
    log.pass(1000);
    assert_eq!(log.store.stats().curr_items, EXPIRED_PER_COMMAND as u64 + 2);
    assert_eq!(
        log.store.next_deadline(),
        Some(LogTime(START_MS + 1000)),
        "the rest would stay"
    );
    let early = bytes(&*log.store.freeze());
    log.pass(0);
    log.pass(0);
    assert_eq!(log.store.stats().curr_items, 1);
    assert_eq!(bytes(&*log.store.freeze()), early);
    assert_eq!(log.store.next_deadline(), None);
}

#[test]
fn a_new_end_counts_and_not_the_old_one() {
    let mut log = Log::new();
    log.set("later", 1, "1");
    log.set("later", 3, "2");
    log.set("never", 1, "1");
    log.set("never", 0, "2");
    log.set("earlier", 3, "1");
    log.set("earlier", 2, "2");
    log.set("touched", 1, "1");
    assert_eq!(log.ask("touch touched 3\r\n"), "TOUCHED\r\n");
    log.set("deleted", 1, "1");
    assert_eq!(log.ask("delete deleted\r\n"), "DELETED\r\n");
    log.set("deleted", 3, "2");
    let left = |log: &Log| {
        let names = ["later", "never", "earlier", "touched", "deleted"];
        names.map(|name| log.get(name).is_some())
    };
    log.pass(1000);
    assert_eq!(left(&log), [true, true, true, true, true]);
    log.pass(1000);
    assert_eq!(left(&log), [true, true, false, true, true]);
    log.pass(1000);
    assert_eq!(left(&log), [false, true, false, false, false]);
    assert_eq!(log.store.alarms.count(), 0);
    assert_eq!(log.store.next_deadline(), None);
}

#[test]
fn an_item_has_one_alarm_however_often_it_is_written() {
    let mut log = Log::new();
    for round in 0..100 {
        log.set("a", 1000 - round, "1");
        log.set("a", 1000 + round, "22");
        assert_eq!(log.ask("touch a 500\r\n"), "TOUCHED\r\n");
        log.ask("append a 0 0 1\r\n3\r\n");
        assert_eq!(log.store.alarms.count(), 1);
        if round % 3 == 0 {
            assert_eq!(log.ask("delete a\r\n"), "DELETED\r\n");
            assert_eq!(log.store.alarms.count(), 0);
        }
    }
}

#[test]
fn an_end_that_has_passed_already_removes() {
    for exptime in ["-1", "2592001"] {
        let mut log = Log::new();
        for request in [
            format!("set a 0 {exptime} 1\r\n2\r\n"),
            format!("touch a {exptime}\r\n"),
            format!("gat {exptime} a\r\n"),
        ] {
            log.set("a", 0, "1");
            log.ask(&request);
            assert_eq!(log.get("a"), None, "{request}");
            assert_eq!(log.store.stats().bytes, 0);
        }
    }
}

#[test]
fn numbers_keep_their_width_as_in_memcached() {
    let mut log = Log::new();
    log.set("n", 0, "10");
    for (request, answer, value) in [
        ("decr n 1\r\n", "9\r\n", "9 "),
        ("incr n 1\r\n", "10\r\n", "10"),
        ("decr n 99\r\n", "0\r\n", "0 "),
        ("incr n 100\r\n", "100\r\n", "100"),
        ("incr n 18446744073709551615\r\n", "99\r\n", "99 "),
    ] {
        assert_eq!(log.ask(request), answer);
        assert_eq!(log.get("n").as_deref(), Some(value));
        assert_eq!(log.store.stats().bytes, 1 + value.len() as u64);
    }
    log.set("n", 0, "");
    let refusal = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    assert_eq!(log.ask("incr n 1\r\n"), refusal);
    log.set("n", 0, "18446744073709551616");
    assert_eq!(log.ask("decr n 1\r\n"), refusal);
}

#[test]
fn a_unique_number_is_that_of_the_last_change() {
    let mut log = Log::new();
    let unique = |log: &Log| log.store.get(Key::new(b"a").unwrap()).unwrap().unique;
    log.set("a", 0, "1"); // entry 1
    assert_eq!(unique(&log), 1);
    log.ask("touch a 100\r\n"); // entries 2 and 3 change no value
    log.ask("gat 200 a\r\n");
    assert_eq!(unique(&log), 1);
    log.ask("incr a 1\r\n"); // entry 4
    assert_eq!(unique(&log), 4);
    assert_eq!(log.ask("cas a 0 0 1 1\r\nx\r\n"), "EXISTS\r\n"); // entry 5
    assert_eq!(log.ask("cas a 0 0 1 4\r\nx\r\n"), "STORED\r\n"); // entry 6
    assert_eq!(unique(&log), 6);
    log.ask("prepend a 0 0 1\r\ny\r\n"); // entry 7
    assert_eq!(log.ask("gets a\r\n"), "VALUE a 0 2 7\r\nyx\r\nEND\r\n");
    assert_eq!(
        log.ask("gats 0 a b a\r\n"),
        "VALUE a 0 2 7\r\nyx\r\nVALUE a 0 2 7\r\nyx\r\nEND\r\n"
    );
}

#[test]
fn append_keeps_flags_and_end_and_stops_at_the_limit() {
    let mut log = Log::new();
    log.ask("set a 5 10 1\r\n1\r\n");
    assert_eq!(log.ask("append a 9 0 2\r\n23\r\n"), "STORED\r\n");
    assert_eq!(log.ask("get a\r\n"), "VALUE a 5 3\r\n123\r\nEND\r\n");
    log.pass(10_000);
    assert_eq!(log.get("a"), None);
    log.set("big", 0, &"v".repeat(VALUE_BYTES_MAX - 1));
    assert_eq!(log.ask("append big 0 0 1\r\nw\r\n"), "STORED\r\n");
    assert_eq!(log.ask("append big 0 0 1\r\nw\r\n"), "NOT_STORED\r\n");
    assert_eq!(log.ask("append big 0 0 0\r\n\r\n"), "STORED\r\n");
    assert_eq!(log.store.stats().bytes, 3 + VALUE_BYTES_MAX as u64);
}

#[test]
fn a_flush_takes_what_is_there_when_its_time_comes() {
    let mut log = Log::new();
    log.set("before", 0, "1");
    assert_eq!(log.ask("flush_all 2\r\n"), "OK\r\n");
    assert_eq!(log.store.next_deadline(), Some(LogTime(START_MS + 2000)));
    log.pass(1999);
    log.set("between", 100, "1");
    assert!(log.get("before").is_some());
    log.now_ms += 1;
    log.set("after", 0, "1");
    assert_eq!(
        ["before", "between", "after"].map(|key| log.get(key).is_some()),
        [false, false, true]
    );
    assert_eq!(log.store.next_deadline(), None);
    let stats = log.store.stats();
    assert_eq!((stats.curr_items, stats.bytes, stats.flushes), (1, 6, 1));
}

#[test]
fn the_last_flush_counts() {
    let mut log = Log::new();
    log.set("a", 0, "1");
    log.ask("flush_all 1\r\n");
    log.ask("flush_all 3\r\n");
    log.pass(1000);
    assert!(log.get("a").is_some());
    log.pass(2000);
    assert!(log.get("a").is_none());
    log.ask("flush_all 1\r\n");
    log.ask("flush_all\r\n");
    log.set("a", 0, "1");
    log.pass(5000);
    assert!(log.get("a").is_some());
    log.ask("flush_all 2592001\r\n");
    assert!(
        log.get("a").is_some(),
        "a point in the past flushes nothing"
    );
    log.ask("flush_all -1\r\n");
    assert!(log.get("a").is_none());
}

#[test]
fn an_answer_too_long_to_assemble_is_refused_and_changes_nothing() {
    let mut log = Log::new();
    log.set("big", 50, &"v".repeat(VALUE_BYTES_MAX));
    let refusal = "SERVER_ERROR out of memory writing get response\r\n";
    log.set("half", 50, &"v".repeat(VALUE_BYTES_MAX / 2));
    assert_eq!(
        log.ask("get big half\r\n").len(),
        3 * VALUE_BYTES_MAX / 2 + 23 + 23 + 5
    );
    assert_eq!(log.ask("get big big\r\n"), refusal);
    assert_eq!(log.ask("gat 100 big big\r\n"), refusal);
    assert_eq!(log.store.next_deadline(), Some(LogTime(START_MS + 50_000)));
    log.pass(50_000);
    assert_eq!(log.get("big"), None);
}

#[test]
fn what_is_no_command_is_answered_and_changes_nothing() {
    let mut log = Log::new();
    log.set("a", 0, "1");
    let before = bytes(&*log.store.freeze());
    for command in [
        &b""[..],
        b"\xff",
        b"\x1a\x05k",
        b"\x1a\x02\n",
        b"set a 0 0 1\r\n2\r\n",
    ] {
        let mut reply = b"kept ".to_vec();
        log.apply(command, &mut reply);
        assert_eq!(
            reply,
            b"kept SERVER_ERROR not a command of this version\r\n"
        );
    }
    for request in [
        &b""[..],
        b"get",
        b"get ",
        b"get \x01",
        b"put a",
        b"\xff\xff",
    ] {
        let mut reply = Vec::new();
        log.store.query(request, &mut reply);
        assert_eq!(reply, b"ERROR\r\n");
    }
    assert_eq!(bytes(&*log.store.freeze()), before);
}

#[test]
fn log_time_does_not_go_back() {
    let mut log = Log::new();
    log.set("a", 1, "1");
    log.store.advance(LogTime(START_MS + 1000));
    log.store.advance(LogTime(5));
    assert_eq!(log.store.log_time(), LogTime(START_MS + 1000));
    assert_eq!(log.get("a"), None);
}

#[test]
fn what_has_no_end_outlives_the_last_point_of_time() {
    let mut log = Log::new();
    log.set("never", 0, "1");
    log.set("late", i64::MAX, "1");
    log.now_ms = u64::MAX;
    log.pass(0);
    assert_eq!(
        ["never", "late"].map(|key| log.get(key).is_some()),
        [true, false]
    );
    log.set("relative", 100, "1");
    assert_eq!(log.get("relative"), None);
    assert_eq!(log.ask("flush_all 100\r\n"), "OK\r\n");
    let state = bytes(&*log.store.freeze());
    Store::new().restore(&mut state.as_slice()).unwrap();
}

#[test]
fn a_snapshot_shows_its_moment_whatever_is_written_later() {
    let mut log = Log::new();
    for number in 0..500 {
        log.set(
            &format!("{number}"),
            if number % 2 == 0 { 0 } else { 10 },
            "old",
        );
    }
    log.ask("flush_all 20\r\n");
    let at_once = bytes(&*log.store.freeze());
    let frozen = log.store.freeze();
    for number in 0..500 {
        match number % 6 {
            0 => log.set(&format!("{number}"), 0, "new"),
            1 => log.set(&format!("{number}"), 5, "newer"),
            2 => assert_eq!(log.ask(&format!("delete {number}\r\n")), "DELETED\r\n"),
            3 => assert_eq!(log.ask(&format!("touch {number} 9\r\n")), "TOUCHED\r\n"),
            4 => assert_eq!(
                log.ask(&format!("append {number} 0 0 1\r\n!\r\n")),
                "STORED\r\n"
            ),
            _ => log.set(&format!("more{number}"), 0, "new"),
        }
    }
    assert_eq!(bytes(&*frozen), at_once);
    log.pass(10_000);
    assert_eq!(bytes(&*frozen), at_once);
    log.ask("flush_all\r\n");
    assert_eq!(bytes(&*frozen), at_once);
    assert_ne!(bytes(&*log.store.freeze()), at_once);
}

/// Otherwise one command of many keys would copy all of it at once.
#[test]
fn what_is_frozen_is_copied_in_slices_and_stays_as_it_was() {
    const ITEMS: usize = 10_000;
    const SLICE: usize = 1000;
    let mut log = Log::new();
    for number in 0..ITEMS {
        log.set(&number.to_string(), 0, "old");
    }
    assert!(log.store.unshare(1), "nothing is frozen");
    let frozen = log.store.freeze();
    let at_once = bytes(&*frozen);
    let (mut slices, mut most) = (1, 0);
    let copied = |work: u64| usize::try_from(work).unwrap() / PER_REFERENCE;
    loop {
        let before = log.store.work_done();
        let is_all = log.store.unshare(SLICE);
        most = most.max(copied(log.store.work_done() - before));
        if is_all {
            break;
        }
        slices += 1;
    }
    assert!((SLICE..SLICE + 100).contains(&most), "{most} in a slice");
    assert_eq!(slices, ITEMS / SLICE, "each once");
    assert!(log.store.unshare(1), "all is copied");
    log.set("5", 0, "new");
    assert_eq!(bytes(&*frozen), at_once);
    // What is frozen again is copied again, unless nobody holds it any more.
    let again = log.store.freeze();
    assert!(!log.store.unshare(SLICE));
    drop((frozen, again));
    assert!(log.store.unshare(SLICE));
}

/// Typed by hand from the layout at the top of `snapshot.rs`.
const GOLDEN: &[u8] = b"qwkv\0\0\0\x04\
    \0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\x4e\x20\0\
    \x01\x01\0\0\0\0\x00\x80\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\x02\
    \x01\0\0\0\x05\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\xff\xff\xff\xff\0\x03\0\0\0\x01ax\
    \x02\0\0\0\x00\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x2a\xf8\x01\0\0\0\0\x00bc\
    vkwq";

/// The same in format 3, which knew nothing of memory.
const GOLDEN_3: &[u8] = b"qwkv\0\0\0\x03\
    \0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\x4e\x20\0\0\0\0\0\0\0\0\x02\
    \x01\0\0\0\x05\0\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\x03\0\0\0\x01ax\
    \x02\0\0\0\x00\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x2a\xf8\x01\0\0\0\0\x00bc\
    vkwq";

/// The same in format 2, which knew nothing of stale items.
const GOLDEN_2: &[u8] = b"qwkv\0\0\0\x02\
    \0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\x4e\x20\0\0\0\0\0\0\0\0\x02\
    \x01\0\0\0\x05\0\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\x01ax\
    \x02\0\0\0\x00\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x2a\xf8\x01\0\0\0\x00bc\
    vkwq";

#[test]
fn a_snapshot_is_the_bytes_typed_by_hand() {
    let mut log = Log::new();
    log.now_ms = 10_000;
    log.awaits_time = true;
    log.set("bc", 1, "");
    log.awaits_time = false;
    log.ask("set a 5 0 1\r\nx\r\n");
    log.ask("md a I\r\n");
    assert_eq!(log.ask("mg a f\r\n"), "HD f5 X W\r\n");
    log.ask("flush_all 10\r\n");
    log.limit(Some(8 << 20), Some(MemoryPolicy::Evict));
    assert_eq!(log.ask("touch a 0\r\n"), "TOUCHED\r\n");
    assert_eq!(bytes(&*log.store.freeze()), GOLDEN);
    let mut restored = Store::new();
    let mut reader = GOLDEN;
    restored.restore(&mut reader).unwrap();
    assert!(reader.is_empty());
    assert_eq!(bytes(&*restored.freeze()), GOLDEN);
    assert_eq!(restored.log_time(), LogTime(10_000));
    assert_eq!(restored.next_deadline(), Some(LogTime(11_000)));
    assert_eq!(restored.stats().bytes, 4);
    assert!(restored.awaits_time());
    restored.advance(LogTime(10_500));
    assert!(!restored.awaits_time());
    restored.advance(LogTime(11_499));
    assert_eq!(restored.stats().curr_items, 2);
    restored.advance(LogTime(11_500));
    assert_eq!(restored.stats().curr_items, 1);
    restored.advance(LogTime(20_000));
    assert_eq!(restored.stats().curr_items, 0);
}

#[test]
fn snapshots_of_the_formats_before_are_read() {
    for (mut before, knows_stale) in [(GOLDEN_2, false), (GOLDEN_3, true)] {
        let mut restored = Store::new();
        restored.restore(&mut before).unwrap();
        assert!(before.is_empty());
        let state = bytes(&*restored.freeze());
        let mut expected = GOLDEN.to_vec();
        expected[25..43].fill(0); // nothing was limited
        expected[71] = 3; // nor touched
        if !knows_stale {
            expected[81] = 0;
        }
        assert_eq!(state, expected);
    }
}

#[test]
fn a_snapshot_holds_keys_of_any_bytes_and_the_empty_one_comes_first() {
    let mut log = Log::new();
    let names: [&[u8]; 4] = [b"", b"\0", b" \r\n", &[0xff; 250]];
    for name in names.iter().rev() {
        let command = Command::Set(Written {
            key: Key::binary(name).unwrap(),
            flags: 0,
            exptime: Exptime(0),
            value: name,
        });
        let mut encoded = Vec::new();
        command.encode(&mut encoded);
        let mut reply = Vec::new();
        log.apply(&encoded, &mut reply);
        assert_eq!(reply, reply::STORED);
    }
    let state = bytes(&*log.store.freeze());
    let mut restored = Store::new();
    restored.restore(&mut state.as_slice()).unwrap();
    assert_eq!(bytes(&*restored.freeze()), state);
    for name in names {
        let item = restored.get(Key::binary(name).unwrap());
        assert_eq!(item.map(|item| item.value), Some(name));
    }
}

#[test]
fn a_bad_snapshot_is_refused_and_leaves_nothing_behind() {
    let change = |place: usize, byte: u8| {
        let mut bytes = GOLDEN.to_vec();
        bytes[place] = byte;
        bytes
    };
    let bad = [
        (change(0, b'Q'), "not a snapshot"),
        (change(7, 1), "another format"),
        (change(7, 6), "another format"),
        (change(22, 0), "flush in its past"),
        (change(24, 2), "awaits no time"),
        (change(25, 2), "unknown memory policy"),
        (change(26, 2), "unknown memory policy"),
        (change(26, 0), "order of no items"),
        (change(35, 0xfe), "order of no items"),
        (change(50, 1), "without its end"),
        (change(50, 3), "failed to fill"), // the end is read as an item
        (change(51, 251), "bad key"),
        (change(80, 1), "awaits no time"),
        (change(71, 2), "older than its value"),
        (change(81, 4), "neither stale nor won"),
        (change(82, 0x11), "value that is too long"),
        (change(86, b'z'), "keys are not in order"),
        (change(115, 0x26), "time has passed"),
        (change(GOLDEN.len() - 1, b'w'), "without its end"),
    ];
    for (bytes, reason) in &bad {
        let mut log = Log::new();
        log.set("old", 0, "1");
        let error = log.store.restore(&mut bytes.as_slice()).unwrap_err();
        assert!(
            error.to_string().contains(reason),
            "{error} is not {reason}"
        );
        assert_eq!(log.store.stats(), Stats::default());
        assert_eq!(log.store.log_time(), LogTime(0));
    }
    for end in 0..GOLDEN.len() {
        assert!(
            Store::new().restore(&mut &GOLDEN[..end]).is_err(),
            "cut at {end}"
        );
    }
}

#[test]
fn overwriting_a_value_of_the_same_length_keeps_its_place_in_memory() {
    let mut log = Log::new();
    log.set("a", 100, "12345678");
    let place = |log: &Log| {
        log.store
            .get(Key::new(b"a").unwrap())
            .unwrap()
            .value
            .as_ptr()
    };
    let before = place(&log);
    log.set("a", 200, "87654321");
    assert_eq!(place(&log), before);
    log.ask("incr a 1\r\n");
    assert_eq!(place(&log), before);
    let frozen = log.store.freeze();
    log.set("a", 200, "abcdefgh");
    assert_ne!(place(&log), before, "the snapshot holds the old value");
    drop(frozen);
    let after = place(&log);
    log.set("a", 200, "hgfedcba");
    assert_eq!(place(&log), after);
}
