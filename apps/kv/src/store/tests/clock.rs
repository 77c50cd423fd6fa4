//! What a leader's clock changes in the answers to reads, and what the log says of the time of day.
use super::*;
use crate::redis::Resp;

/// An hour by which the log's time is ahead, or behind.
const HOUR_MS: i64 = 3_600_000;

impl Log {
    /// The clock of the leader shows this much more than the log.
    fn clock(&mut self, later_ms: u64) {
        self.store.set_clock(LogTime(self.now_ms + later_ms));
    }

    fn is_overdue(&self, read: &str) -> bool {
        self.store.is_overdue(read.as_bytes())
    }
}

/// A query of a Redis client.
fn query(words: &[&str]) -> String {
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    let words: String = words.iter().map(word).collect();
    format!("2*{}\r\n{words}", words.matches('$').count())
}

#[test]
fn what_is_left_is_counted_by_the_clock_and_no_tick() {
    let mut log = Log::new();
    log.set("a", 100, "1");
    for later_ms in [0, 1, 9, 1500] {
        log.clock(later_ms);
        let left_ms = 100_000 - later_ms;
        assert_eq!(log.redis("PTTL a"), format!(":{left_ms}\r\n"));
        assert_eq!(
            log.redis("TTL a"),
            format!(":{}\r\n", (left_ms + 500) / 1000)
        );
        let seconds = left_ms.div_ceil(1000);
        assert_eq!(log.ask("mg a t\r\n"), format!("HD t{seconds}\r\n"));
        assert!(log.ask("me a\r\n").contains(&format!(" exp=-{seconds} ")));
        assert!(!log.is_overdue("mg a t"));
    }
    // An earlier clock tells nothing.
    log.pass(50_000);
    log.store.set_clock(LogTime(0));
    assert_eq!(log.redis("PTTL a"), ":50000\r\n");
}

/// `PTTL` right after a point of time was given is never more than there is to it.
#[test]
fn no_more_is_left_than_a_point_of_time_allows() {
    let mut log = Log::new();
    log.now_ms += 10; // the tick before the write is as old as it may be
    log.store.advance(LogTime(log.now_ms - 10));
    let end_ms = START_MS + 10 + 5000;
    log.now_ms -= 10;
    assert_eq!(log.redis(&format!("SET a v PXAT {end_ms}")), "+OK\r\n");
    assert_eq!(log.redis("SET b v"), "+OK\r\n");
    assert_eq!(log.redis(&format!("PEXPIREAT b {end_ms}")), ":1\r\n");
    log.clock(10);
    for key in ["a", "b"] {
        assert_eq!(log.redis(&format!("PTTL {key}")), ":5000\r\n", "{key}");
    }
}

#[test]
fn only_what_the_clock_is_past_the_end_of_is_overdue() {
    let mut log = Log::new();
    log.set("lasts", 0, "1");
    log.set("longer", 9, "1");
    log.set("short", 8, "1");
    let overdue = |log: &Log| {
        let reads = ["get lasts", "get longer", "get short", "gets lasts short"];
        let of_memcached = reads.map(|read| log.is_overdue(read));
        let reads = [
            &["GET", "lasts"][..],
            &["TTL", "short"],
            &["MGET", "longer", "short"],
        ];
        let of_redis = reads.map(|read| log.is_overdue(&query(read)));
        let watched = log.is_overdue(&query(&["\0versions", "lasts", "short"]));
        assert_eq!(watched, of_memcached[2]);
        assert!(!log.is_overdue("get missing") && !log.is_overdue("me lasts"));
        assert!(!log.is_overdue(&query(&["PING", "short"])));
        (of_memcached, of_redis)
    };
    log.clock(7999);
    assert_eq!(overdue(&log), ([false; 4], [false; 3]));
    log.clock(8000);
    let short = ([false, false, true, true], [false, true, true]);
    assert_eq!(overdue(&log), short);
    // The clock alone ends nothing: there is no time left, and it is there.
    assert!(log.get("short").is_some());
    assert_eq!(log.redis("PTTL short"), ":0\r\n");
    // Names of keys, and how many there are, are shown for a while more.
    let all = query(&["KEYS", "*"]);
    assert!(!log.is_overdue(&all));
    log.clock(8999);
    assert!(!log.is_overdue(&all));
    log.clock(9000);
    assert!(log.is_overdue(&all) && log.is_overdue(&query(&["DBSIZE"])));
    // Once the log says so, nothing is left to be decided.
    log.pass(9500);
    log.clock(0);
    assert_eq!(overdue(&log), ([false; 4], [false; 3]));
    assert!(!log.is_overdue(&all));
    assert_eq!((log.get("short"), log.get("longer")), (None, None));
}

#[test]
fn an_item_given_more_time_is_not_overdue() {
    let mut log = Log::new();
    log.set("a", 8, "1");
    assert_eq!(log.ask("touch a 100\r\n"), "TOUCHED\r\n");
    log.clock(20_000);
    assert!(!log.is_overdue("get a") && !log.is_overdue(&query(&["KEYS", "*"])));
    log.clock(100_000);
    assert!(log.is_overdue("get a"));
}

#[test]
fn a_flush_that_is_due_makes_all_overdue_that_is_there() {
    let mut log = Log::new();
    log.set("a", 0, "1");
    assert_eq!(log.ask("flush_all 5\r\n"), "OK\r\n");
    log.clock(4999);
    assert!(!log.is_overdue("get a"));
    log.clock(5000);
    assert!(log.is_overdue("get a") && !log.is_overdue("get missing"));
}

/// Neither its life nor a flush has begun.
#[test]
fn what_awaits_its_time_is_not_overdue() {
    for request in ["set a 0 8 1\r\n1\r\n", "flush_all 8\r\n"] {
        let mut log = Log::new();
        log.set("a", 0, "1");
        log.awaits_time = true;
        log.ask(request);
        log.clock(20_000);
        assert!(!log.is_overdue("get a"), "{request}");
        assert!(!log.is_overdue(&query(&["KEYS", "*"])), "{request}");
        log.pass(20_000);
        log.clock(8000);
        assert!(log.is_overdue("get a"), "{request}");
    }
    let mut log = Log::new();
    log.awaits_time = true;
    log.set("a", 8, "1");
    log.clock(5000);
    assert_eq!(log.redis("PTTL a"), ":8000\r\n");
}

/// An hour ahead, or behind: a point of time that a client names is one of its day.
#[test]
fn points_of_time_are_those_of_the_day() {
    for ahead_ms in [HOUR_MS, -HOUR_MS] {
        let unix_s = START_MS / 1000;
        let commands = [
            format!("set a 0 {} 1\r\n1\r\n", unix_s + 60),
            format!("touch a {}\r\n", unix_s + 60),
            format!("gat {} a\r\n", unix_s + 60),
            format!("ms a 1 T{}\r\n1\r\n", unix_s + 60),
            format!("mg a T{}\r\n", unix_s + 60),
            format!("flush_all {}\r\n", unix_s + 60),
        ];
        let scripts = [
            format!("SET a v EXAT {}", unix_s + 60),
            format!("SET a v PXAT {}", (unix_s + 60) * 1000),
            format!("GETEX a EXAT {}", unix_s + 60),
            format!("EXPIREAT a {}", unix_s + 60),
            format!("PEXPIREAT a {}", (unix_s + 60) * 1000),
        ];
        let memcached = |log: &mut Log, command: &String| log.ask(command);
        let redis = |log: &mut Log, command: &String| log.redis(command);
        let all = commands
            .iter()
            .map(|it| (it, memcached as fn(&mut Log, &String) -> String));
        let all = all.chain(
            scripts
                .iter()
                .map(|it| (it, redis as fn(&mut Log, &String) -> String)),
        );
        for (command, ask) in all {
            let mut log = Log::new();
            log.store.set_ahead(Some(ahead_ms));
            log.now_ms = log.now_ms.saturating_add_signed(ahead_ms);
            log.set("a", 0, "1");
            ask(&mut log, command);
            // Part of the state.
            let state = bytes(&*log.store.freeze());
            log.store.restore(&mut state.as_slice()).unwrap();
            assert_eq!(bytes(&*log.store.freeze()), state, "{command}");
            if !command.starts_with("flush_all") {
                assert_eq!(log.redis("PTTL a"), ":60000\r\n", "{command}");
                let shown = log.redis("PEXPIRETIME a");
                assert_eq!(shown, format!(":{}\r\n", (unix_s + 60) * 1000), "{command}");
                let time = log.transact(&[], &["TIME"]);
                assert!(time.contains(&format!("\r\n{unix_s}\r\n")), "{time}");
            }
            log.pass(59_999);
            assert!(log.get("a").is_some(), "{command}");
            log.pass(1);
            assert_eq!(log.get("a"), None, "{command}");
        }
        // What the day is past is over at once.
        let mut log = Log::new();
        log.store.set_ahead(Some(ahead_ms));
        log.now_ms = log.now_ms.saturating_add_signed(ahead_ms);
        log.pass(0);
        log.set("a", 0, "1");
        assert_eq!(log.redis(&format!("EXPIREAT a {unix_s}")), ":1\r\n");
        assert_eq!(log.get("a"), None);
        log.set("a", i64::try_from(unix_s).unwrap(), "1");
        assert_eq!(log.get("a"), None);
        log.set("a", -1, "1");
        assert_eq!(log.get("a"), None);
    }
}

#[test]
fn the_longest_times_end_never_early() {
    for ahead_ms in [i64::MAX, i64::MIN, HOUR_MS, 0] {
        let mut log = Log::new();
        log.store.set_ahead(Some(ahead_ms));
        log.set("a", i64::MAX, "1");
        log.redis("SET b v PXAT 9223372036854775807");
        log.redis("PEXPIRETIME b");
        log.pass(1);
        if ahead_ms >= 0 {
            assert!(
                log.get("a").is_some() && log.get("b").is_some(),
                "{ahead_ms}"
            );
        }
    }
}

#[test]
fn commands_that_show_time_say_so() {
    let text = |commands: &[&str]| -> String {
        let words = |command: &&str| query(&command.split(' ').collect::<Vec<_>>())[1..].to_owned();
        commands.iter().map(words).collect()
    };
    for (commands, shows) in [
        (&["SET a v", "PTTL a"][..], true),
        (&["time"], true),
        (&["SET a ttl", "GET a", "PEXPIRETIME a"], false),
    ] {
        let commands_text = text(commands);
        let script = crate::redis::Script {
            resp: Resp::V2,
            is_transaction: true,
            watched: b"",
            commands: commands_text.as_bytes(),
        };
        assert_eq!(Command::Redis(script).shows_time(), shows, "{commands:?}");
    }
    for (request, shows) in [("mg a t T10\r\n", true), ("mg a v T10\r\n", false)] {
        let Parsed::Request {
            request: Request::Write { command, .. },
            ..
        } = parse(request.as_bytes())
        else {
            panic!("{request:?} is no write");
        };
        assert_eq!(command.shows_time(), shows, "{request}");
    }
}

/// The golden snapshot of format 4, and with a log that is 4 minutes and more ahead of the day, or says that
/// it is not.
#[test]
fn a_snapshot_says_by_how_much_the_log_is_ahead_if_the_log_does() {
    for (ahead, ahead_ms) in [([0, 0, 0, 0, 0, 4, 0, 1], 0x40001), ([0; 8], 0)] {
        let mut written = GOLDEN.to_vec();
        written[7] = 5;
        written.splice(16..16, ahead);
        let mut store = Store::new();
        store.restore(&mut written.as_slice()).unwrap();
        assert_eq!(store.ahead_ms, Some(ahead_ms));
        assert_eq!(bytes(&*store.freeze()), written);
        // A tick that does not say it: code that reads format 4 only reads this.
        store.set_ahead(None);
        assert_eq!(bytes(&*store.freeze()), GOLDEN);
        store.restore(&mut &GOLDEN[..]).unwrap();
        assert_eq!(store.ahead_ms, None);
        // An end that awaits the day: only where the log says what that is.
        written[32] = 2;
        store.restore(&mut written.as_slice()).unwrap();
        assert_eq!(bytes(&*store.freeze()), written);
    }
}
