//! A `KEYS` in slices says what one at once says, whatever changes meanwhile.
use super::*;
use crate::redis::reply;
use crate::{Query, Search, WORK_MAX};

const KEYS: usize = 3000;
const SLICE: usize = 10_000;

fn line(pattern: &str) -> Vec<u8> {
    let mut line = b"2".to_vec();
    reply::array_header(&mut line, 2);
    reply::bulk(&mut line, b"KEYS");
    reply::bulk(&mut line, pattern.as_bytes());
    line
}

fn filled() -> Log {
    let mut log = Log::new();
    for number in 0..KEYS {
        log.set(&format!("k{number:04}"), 0, "1");
    }
    for number in 0..2 * EXPIRED_PER_COMMAND {
        log.redis(&format!("SET over{number} 1 PX 10"));
    }
    log.pass(10);
    log
}

/// Has it look at all keys, slice by slice; `between` happens between two of them.
fn all_slices(search: &mut Search, mut between: impl FnMut()) -> usize {
    for slices in 1.. {
        let progress = search.go_on(SLICE);
        assert!(progress.work <= SLICE + 2000, "{progress:?}");
        if progress.is_over {
            return slices;
        }
        between();
    }
    unreachable!()
}

#[test]
fn slices_show_the_keys_of_one_moment() {
    for pattern in ["*", "k*7", "*[0-4]*[5-9]", "nothing", "over*"] {
        let mut log = filled();
        let expected = log.redis(&format!("KEYS {pattern}"));
        let mut search = Search::asked(&Query::from_line(&line(pattern))).unwrap();
        search.begin(&log.store);
        let mut number = 0;
        let slices = all_slices(&mut search, || {
            log.redis(&format!("RENAME k{number:04} later{number}"));
            log.redis(&format!("SET k9{number} new"));
            log.pass(1);
            number += 1;
        });
        assert!(slices > 50, "{slices}");
        assert_eq!(String::from_utf8(search.answer()).unwrap(), expected);
        log.redis("FLUSHALL");
        assert_eq!(String::from_utf8(search.answer()).unwrap(), expected);
    }
}

/// A transaction does all of its work at once, and has a limit; a search by itself has none.
#[test]
fn a_search_looks_at_more_keys_than_a_transaction_may() {
    let mut log = Log::new();
    for number in 0..=WORK_MAX / 256 {
        log.set(&format!("k{number}"), 0, "1");
    }
    let refused = log.redis("KEYS k1234");
    assert!(refused.starts_with("-ERR more work"), "{refused}");
    let mut search = Search::asked(&Query::from_line(&line("k1234"))).unwrap();
    search.begin(&log.store);
    all_slices(&mut search, || ());
    assert_eq!(search.answer(), b"*1\r\n$5\r\nk1234\r\n");
}

/// What is found takes no more memory than what may be said, and the search ends there.
#[test]
fn an_answer_that_is_too_long_ends_the_search() {
    let mut log = Log::new();
    let key = "k".repeat(200);
    let keys = 2 * REPLY_BYTES_MAX / key.len();
    for number in 0..keys {
        log.set(&format!("{key}{number:05}"), 0, "1");
    }
    let mut search = Search::asked(&Query::from_line(&line("*"))).unwrap();
    search.begin(&log.store);
    let slices = all_slices(&mut search, || ());
    let looked_at = slices * SLICE / 256;
    assert!(looked_at < keys * 3 / 4, "{looked_at} of {keys}");
    let told = format!("-ERR answer is longer than {REPLY_BYTES_MAX} bytes: use SCAN\r\n");
    assert_eq!(String::from_utf8(search.answer()).unwrap(), told);
    assert_eq!(log.redis("KEYS k*"), told);
}

#[test]
fn what_is_no_search_or_is_refused_is_left_to_query() {
    let long = "x".repeat(2000);
    assert!(Search::asked(&Query::from_line(&line(&long))).is_none());
    let words = |words: &[&str]| {
        let mut line = b"2".to_vec();
        reply::array_header(&mut line, words.len());
        for word in words {
            reply::bulk(&mut line, word.as_bytes());
        }
        line
    };
    let asked = |line: &[u8]| Search::asked(&Query::from_line(line));
    for other in [&["GET", "keys"][..], &["KEYS"], &["KEYS", "a", "b"]] {
        assert!(asked(&words(other)).is_none(), "{other:?}");
    }
    assert!(asked(&words(&["keys", "a"])).is_some());
    assert!(asked(b"get keys").is_none());
}
