//! What is nobody's any more holds memory no longer than writes of others allow.
use super::*;

const MIB: u64 = 1 << 20;

fn memory_bytes(log: &Log) -> u64 {
    log.store.stats().memory_bytes
}

#[test]
fn what_a_flush_throws_away_can_be_taken_once_or_else_is_freed_by_the_next_command() {
    let mut log = Log::new();
    log.limit(Some(MIB), Some(MemoryPolicy::Evict));
    for number in 0..1000 {
        log.set(&format!("{number}"), 100, "1");
    }
    assert!(log.store.take_discarded().is_none());
    let bytes = memory_bytes(&log);
    log.ask("flush_all\r\n");
    let thrown_away = log.store.take_discarded().unwrap();
    assert!((bytes..2 * bytes).contains(&thrown_away.bytes()));
    assert!(thrown_away.work() >= 1000 * PER_ITEM_GONE);
    assert!(log.store.take_discarded().is_none());
    log.ask("flush_all\r\n");
    assert!(log.store.take_discarded().is_none(), "nothing was there");
    log.set("a", 0, "1");
    log.redis("FLUSHALL");
    log.set("b", 0, "1");
    assert!(log.store.take_discarded().is_none());
    // One command may do so several times.
    let commands: Vec<String> = (0..20)
        .flat_map(|number| [format!("SETRANGE a{number} 99999 x"), "FLUSHALL".to_owned()])
        .collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    log.transact(&[], &commands);
    assert!(log.store.take_discarded().unwrap().bytes() >= 20 * 100_000);
}

/// Also a flush that was put off: the tick that carries it out frees nothing by itself.
#[test]
fn what_a_later_flush_throws_away_can_be_taken() {
    let mut log = Log::new();
    for number in 0..1000 {
        log.set(&format!("{number}"), 0, "1");
    }
    log.ask("flush_all 5\r\n");
    log.pass(5000);
    assert!(log.store.take_discarded().unwrap().work() >= 1000 * PER_ITEM_GONE);
    for number in 0..1000 {
        log.set(&format!("{number}"), 0, "1");
    }
    log.ask("flush_all 5\r\n");
    log.now_ms += 5000;
    log.set("a", 0, "1");
    assert!(log.store.take_discarded().unwrap().work() >= 1000 * PER_ITEM_GONE);
}

#[test]
fn an_order_of_evicting_that_is_not_kept_any_more_can_be_taken() {
    let mut log = Log::new();
    for number in 0..1000 {
        log.set(&format!("{number}"), 0, "1");
    }
    log.limit(Some(MIB), Some(MemoryPolicy::Evict));
    log.pass(0);
    log.limit(None, Some(MemoryPolicy::Refuse));
    assert!(log.store.take_discarded().unwrap().work() >= 1000 * PER_ITEM_GONE);
}

/// In a transaction there may be more of them than a command removes if nobody adds any.
#[test]
fn items_that_end_at_once_do_not_pile_up() {
    let mut log = Log::new();
    let commands: Vec<String> = (0..1000)
        .map(|number| format!("SET k{number} 1 PX 1"))
        .collect();
    let mut most = 0;
    for round in 0..50 {
        let commands: Vec<String> = commands
            .iter()
            .map(|command| command.replace("SET k", &format!("SET k{round}-")))
            .collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        log.now_ms += 2;
        log.transact(&[], &commands);
        most = most.max(log.store.stats().curr_items);
    }
    assert_eq!(most, 1000);
}

/// An end that is put off leaves the item's first alarm where it is, and another one is set there.
#[test]
fn ends_that_are_put_off_hold_up_nothing() {
    let mut log = Log::new();
    let mut most = 0;
    for round in 0..50 {
        let of = |before: &'static str, end: &'static str| {
            (0..1000).map(move |number| format!("{before} k{round}-{number} {end}"))
        };
        let commands: Vec<String> = of("SET", "1 PX 1").chain(of("PEXPIRE", "3")).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        log.now_ms += 2;
        log.transact(&[], &commands);
        most = most.max(log.store.stats().curr_items);
    }
    assert!((1000..=3000).contains(&most), "{most}");
}

/// Few large items that have ended stand behind many small ones.
#[test]
fn what_waits_for_its_removal_grows_by_no_bytes() {
    let mut log = Log::new();
    for first in (0..50_000).step_by(1000) {
        let commands: Vec<String> = (first..first + 1000)
            .map(|number| format!("SET small{number} 1 PX 1000"))
            .collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        log.transact(&[], &commands);
    }
    log.pass(1000);
    let before = memory_bytes(&log);
    let mut most = 0;
    for number in 0..40 {
        log.redis(&format!("SETRANGE large{number} 1048575 x"));
        log.redis(&format!("PEXPIRE large{number} 1"));
        log.now_ms += 2;
        most = most.max(memory_bytes(&log));
    }
    assert!(most <= before + 2 * MIB, "{before}, {most}");
    for _ in 0..2 {
        log.pass(0);
    }
    assert_eq!(log.store.stats().curr_items, 0);
}

/// Also where much ends at once, one command does not have to remove all of it.
#[test]
fn a_command_removes_few_of_many_that_ended_at_once() {
    let mut log = Log::new();
    for number in 0..5000 {
        log.set(&format!("k{number}"), 1, "1");
    }
    log.pass(1000);
    log.pass(0);
    log.set("a", 0, "1");
    let there = log.store.stats().curr_items;
    assert!((4000..4900).contains(&there), "{there}");
}
