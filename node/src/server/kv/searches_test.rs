//! Long searches have turns of their own, one after the other. No event loop goes round.
use super::*;
use crate::server::plane_turn::tests::leader_of_one;
use quorumwire_interfaces::LogTime;
use quorumwire_kv::Command;
use quorumwire_kv::redis::{Resp, Script, Words, reply};
use quorumwire_sessions::LogPosition;

/// More than are looked at at once.
const KEYS: usize = AT_ONCE_WORK / 256 + 1000;
const WAITS: ConnectionId = ConnectionId::new(1, 1);
const LEAVES: ConnectionId = ConnectionId::new(2, 2);

fn text(words: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    reply::array_header(&mut text, words.len());
    for word in words {
        reply::bulk(&mut text, word.as_bytes());
    }
    text
}

fn apply(core: &mut Core, words: &[&str]) {
    let text = text(words);
    let words = Words::from_text(&text).unwrap();
    let mut encoded = Vec::new();
    Command::Redis(Script::single(Resp::V2, &words)).encode(&mut encoded);
    let position = LogPosition {
        index: core.group.applied,
        log_time: LogTime(1),
    };
    core.group
        .store
        .command(position, &encoded, &mut Vec::new());
}

fn with_keys() -> Core {
    let mut core = leader_of_one();
    for number in 0..KEYS {
        apply(&mut core, &["SET", &format!("k{number}"), "1"]);
    }
    core
}

fn ask(core: &mut Core, origin: Origin, pattern: &str) -> (AnswerTime, String) {
    let line = [&b"2"[..], &text(&["KEYS", pattern])].concat();
    let mut out = Vec::new();
    let answered = core.answer_query(origin, &Query::from_line(&line), &mut out);
    (answered, String::from_utf8(out).unwrap())
}

/// Slices until somebody is answered.
fn answer(core: &mut Core) -> (Origin, String, usize) {
    for slices in 1.. {
        let work = core.group.store.inner().work_done();
        let answered = core.search_a_slice();
        let cost = core.group.store.inner().work_done() - work;
        assert!(cost < 2 * SLICE_WORK as u64, "{cost}");
        if let Some((origin, text)) = answered {
            return (origin, String::from_utf8(text).unwrap(), slices);
        }
    }
    unreachable!()
}

#[test]
fn long_searches_go_on_in_slices_one_after_the_other() {
    let mut core = with_keys();
    let later = (AnswerTime::Later, String::new());
    for (slot, pattern) in [(0, "k77"), (1, "new"), (2, "k88")] {
        let asked = ask(&mut core, Origin::Client(WAITS, slot), pattern);
        assert_eq!(asked, later);
    }
    let gone = Origin::Client(LEAVES, 0);
    assert_eq!(ask(&mut core, gone, "k*"), later);
    core.service.searches.forget(LEAVES);
    assert!(core.search_a_slice().is_none());
    apply(&mut core, &["RENAME", "k77", "new"]); // the first one has begun
    for (slot, expected) in [
        (0, "*1\r\n$3\r\nk77\r\n"),
        (1, "*1\r\n$3\r\nnew\r\n"),
        (2, "*1\r\n$3\r\nk88\r\n"),
    ] {
        let (origin, text, slices) = answer(&mut core);
        assert_eq!(origin, Origin::Client(WAITS, slot));
        assert_eq!(text, expected);
        assert!(slices > 5, "{slices}");
    }
    assert!(!core.service.searches.are_under_way());
}

/// What the connection that went away was told about cannot be sent.
#[test]
fn a_search_that_nobody_waits_for_ends() {
    let mut core = with_keys();
    ask(&mut core, Origin::Client(LEAVES, 0), "k*");
    assert!(core.search_a_slice().is_none());
    core.service.searches.forget(WAITS);
    assert!(core.service.searches.are_under_way());
    core.service.searches.forget(LEAVES);
    assert!(!core.service.searches.are_under_way());
}

#[test]
fn searches_have_limits_in_time_and_number() {
    let mut core = with_keys();
    for slot in 0..WAITING_MAX as u64 {
        let asked = ask(&mut core, Origin::Client(WAITS, slot), "k1");
        assert_eq!(asked.0, AnswerTime::Later);
    }
    let (answered, text) = ask(&mut core, Origin::Client(LEAVES, 0), "k1");
    assert_eq!(answered, AnswerTime::Now);
    assert_eq!(text, "-ERR busy: 256 KEYS wait already, use SCAN\r\n");
    core.group.now.0 += SEARCH_TIME_MAX;
    assert!(core.search_a_slice().is_none());
    core.group.now.0 += Duration::from_millis(1);
    let (_, text, _) = answer(&mut core);
    assert_eq!(text, "-ERR KEYS took longer than 4 s: use SCAN\r\n");
}

/// A pattern may cost more than the keys.
#[test]
fn a_search_with_a_slow_pattern_waits_its_turn_too() {
    let mut core = leader_of_one();
    for number in 0..2000 {
        apply(
            &mut core,
            &["SET", &format!("{}{number}", "ab".repeat(100)), "1"],
        );
    }
    let slow = "*[a-z]".repeat(150);
    let work = core.group.store.inner().work_done();
    let asked = ask(&mut core, Origin::Client(WAITS, 0), &format!("{slow}x"));
    assert_eq!(asked, (AnswerTime::Later, String::new()));
    let cost = core.group.store.inner().work_done() - work;
    assert!(cost < 2 * AT_ONCE_WORK as u64, "{cost}");
    let (_, text, slices) = answer(&mut core);
    assert_eq!(text, "*0\r\n");
    assert!(slices > 10, "{slices}");
}
