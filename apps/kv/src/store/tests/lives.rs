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
