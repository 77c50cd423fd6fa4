//! Lives that count from the next tick, because no tick went before the command that gave them.
use super::*;

/// A command that comes after a quiet hour, with no tick before it.
#[test]
fn a_life_that_awaits_its_time_counts_from_the_next_tick() {
    const HOUR_MS: u64 = 3_600_000;
    for (request, is_later) in [
        ("set a 0 60 1\r\n2\r\n", true),
        ("cas a 0 60 1 1\r\n2\r\n", true),
        ("touch a 60\r\n", true),
        ("gat 60 a\r\n", true),
        ("flush_all 60\r\n", true),
        ("set a 0 1700003600 1\r\n2\r\n", false),
        ("touch a 1700003600\r\n", false),
        ("flush_all 1700003600\r\n", false),
    ] {
        let mut log = Log::new();
        log.set("a", 0, "1");
        log.awaits_time = true;
        log.ask(request);
        assert_eq!(log.store.awaits_time(), is_later, "{request}");
        // Neither other commands nor a snapshot begin it.
        log.ask("append a 0 0 1\r\n3\r\n");
        log.awaits_time = false;
        log.ask("incr b 1\r\n");
        let state = bytes(&*log.store.freeze());
        log.store.restore(&mut state.as_slice()).unwrap();
        assert_eq!(bytes(&*log.store.freeze()), state);
        assert_eq!(log.store.awaits_time(), is_later, "{request}");
        log.pass(HOUR_MS);
        assert_eq!(log.get("a").is_some(), is_later, "{request}");
        assert!(!log.store.awaits_time());
        if is_later {
            log.pass(59_999);
            assert!(log.get("a").is_some(), "{request}");
            log.pass(1);
            assert_eq!(log.get("a"), None, "{request}");
        }
        assert_eq!(log.store.next_deadline(), None, "{request}");
    }
}

#[test]
fn an_end_given_in_time_takes_the_place_of_one_that_awaits_it() {
    for request in [
        "set a 0 10 1\r\n2\r\n",
        "touch a 10\r\n",
        "flush_all 10\r\n",
    ] {
        let mut log = Log::new();
        log.set("a", 100, "1");
        log.awaits_time = true;
        log.ask(request);
        log.awaits_time = false;
        log.ask(request);
        log.pass(10_000);
        assert_eq!(log.get("a"), None, "{request}");
        assert_eq!(log.store.alarms.count(), 0);
    }
}

#[test]
fn what_awaits_its_time_is_bounded_by_the_items_that_do() {
    let mut log = Log::new();
    log.awaits_time = true;
    log.set("stays", 5, "1");
    for _ in 0..10_000 {
        log.set("a", 5, "1");
        log.ask("delete a\r\n");
        assert!(log.store.awaiting.count() <= 1025);
    }
    for number in 0..5000 {
        log.set(&format!("{number}"), 5, "1");
    }
    assert!((5001..=10_002).contains(&log.store.awaiting.count()));
    log.pass(1_000_000);
    assert_eq!(log.store.awaiting.count(), 0);
    assert_eq!(log.store.stats().curr_items, 5001);
    log.ask("flush_all\r\n");
    log.set("a", 5, "1");
    log.ask("flush_all\r\n");
    assert!(!log.store.awaits_time());
}

/// A log that is 30 s ahead of the day, and told so long ago: both have come closer since.
#[test]
fn a_point_of_time_that_no_tick_went_before_moves_with_the_day() {
    let unix_s = START_MS / 1000;
    let told = |tells: bool| {
        let mut log = Log::new();
        log.now_ms += 30_000;
        log.store.set_ahead(tells.then_some(30_000));
        log.pass(0);
        log.set("a", 0, "1");
        log.awaits_time = true;
        log
    };
    for (command, is_redis) in [
        (format!("set a 0 {} 1\r\n2\r\n", unix_s + 60), false),
        (format!("touch a {}\r\n", unix_s + 60), false),
        (format!("gat {} a\r\n", unix_s + 60), false),
        (format!("ms a 1 T{}\r\n2\r\n", unix_s + 60), false),
        (format!("flush_all {}\r\n", unix_s + 60), false),
        (format!("SET a 1 EXAT {}", unix_s + 60), true),
        (format!("GETEX a PXAT {}", (unix_s + 60) * 1000), true),
        (format!("EXPIREAT a {}", unix_s + 60), true),
    ] {
        let ask = |log: &mut Log| {
            if is_redis {
                log.redis(&command)
            } else {
                log.ask(&command)
            }
        };
        let mut log = told(true);
        ask(&mut log);
        assert!(log.store.awaits_time(), "{command}");
        let state = bytes(&*log.store.freeze());
        log.store.restore(&mut state.as_slice()).unwrap();
        assert_eq!(bytes(&*log.store.freeze()), state, "{command}");
        assert!(log.store.awaits_time(), "{command}");
        // 20 s later by the wall clock.
        log.awaits_time = false;
        log.store.set_ahead(Some(28_000));
        log.pass(18_000);
        assert!(!log.store.awaits_time(), "{command}");
        log.pass(39_999);
        assert!(log.get("a").is_some(), "{command}");
        log.pass(1);
        assert_eq!(log.get("a"), None, "{command}");
        // Where the next tick finds the log far behind the day, it is over.
        let mut log = told(true);
        ask(&mut log);
        log.store.set_ahead(Some(-60_000));
        log.pass(1);
        assert_eq!(log.get("a"), None, "{command}");
        log.pass(1);
        assert_eq!(log.store.alarms.count(), 0, "{command}");
        assert_eq!(log.store.next_deadline(), None, "{command}");
        // Where the log does not say what the day is, nothing moves, as with code that knows of none.
        let mut log = told(false);
        ask(&mut log);
        assert!(!log.store.awaits_time(), "{command}");
    }
}
