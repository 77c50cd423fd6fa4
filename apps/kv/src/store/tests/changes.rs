//! What is told of changes to whoever shows items elsewhere.
use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

type Shown = BTreeMap<Vec<u8>, Vec<u8>>;

/// Takes changes as a table of answers does.
fn follow(log: &mut Log, shown: &mut Shown) -> usize {
    let mut told = 0;
    log.store.take_changes(&mut |changed| {
        told += 1;
        match changed {
            Changed::Everything => shown.clear(),
            Changed::Item(key, Some(item)) => {
                shown.insert(key.bytes().to_vec(), item.value.to_vec());
            }
            Changed::Item(key, None) => {
                shown.remove(key.bytes());
            }
        }
    });
    told
}

#[test]
fn who_follows_the_changes_shows_no_item_that_is_not_so() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut log = Log::new();
    log.store.follow_changes(true);
    let mut shown = Shown::new();
    let mut most_shown = 0;
    for _ in 0..5_000 {
        let (key, other) = (random.random_range(0..6), random.random_range(0..6));
        let number = random.random_range(0..100);
        let end = [0, 0, 0, 5][random.random_range(0..4)];
        let line = format!("k{key} 0 {end} 2\r\n{number:02}\r\n");
        let request = match random.random_range(0..46) {
            0..10 => format!("set {line}"),
            10..13 => format!("add {line}"),
            13..16 => format!("replace {line}"),
            16..18 => format!("append k{key} 0 0 1\r\n1\r\n"),
            18..20 => format!("prepend k{key} 0 0 1\r\n1\r\n"),
            20..23 => format!("incr k{key} 1\r\n"),
            23..25 => format!("decr k{key} 1\r\n"),
            25..28 => format!("touch k{key} {end}\r\n"),
            28..30 => format!("gat {end} k{key} k{other}\r\n"),
            30..33 => format!("delete k{key}\r\n"),
            33..36 => {
                let unique = log
                    .store
                    .get(Key::new(format!("k{key}").as_bytes()).unwrap());
                let unique = unique.map_or(0, |item| item.unique);
                format!("cas k{key} 0 {end} 2 {unique}\r\n{number:02}\r\n")
            }
            40 => format!("md k{key} I T{end}\r\n"),
            41 => format!("md k{key}\r\n"),
            42 => format!("mg k{key} N{end} v\r\n"),
            43 => format!("mg k{key} T{end}\r\n"),
            44 => format!("ms k{key} 2 T{end} I C1\r\n{number:02}\r\n"),
            45 => format!("ma k{key} N{end} T{end}\r\n"),
            36 => format!("flush_all {end}\r\n"),
            37 => {
                let frozen = bytes(&*log.store.freeze());
                log.store.restore(&mut &frozen[..]).unwrap();
                String::new()
            }
            _ => {
                log.pass(random.random_range(0..2_000));
                String::new()
            }
        };
        if !request.is_empty() {
            log.ask(&request);
        }
        if random.random_bool(0.5) {
            continue;
        }
        follow(&mut log, &mut shown);
        for (key, value) in &shown {
            let item = log.store.get(Key::new(key).unwrap());
            let found = item.map(|item| item.value);
            assert_eq!(found, Some(&value[..]), "after {request:?}");
        }
        most_shown = most_shown.max(shown.len());
    }
    assert_eq!(most_shown, 6, "void: little was ever shown");
}

#[test]
fn an_item_with_an_end_is_not_lasting_and_none_is_while_a_flush_is_to_come() {
    let mut log = Log::new();
    let key = Key::new(b"a").unwrap();
    log.set("a", 10, "1");
    assert_eq!(log.store.lasting(key), None);
    log.ask("touch a 0\r\n");
    assert!(log.store.lasting(key).is_some());
    log.ask("flush_all 10\r\n");
    assert_eq!(log.store.lasting(key), None);
    log.pass(10_000);
    log.set("a", 0, "2");
    assert!(log.store.lasting(key).is_some());
}

#[test]
fn changes_are_noted_only_for_those_who_follow_and_never_without_bound() {
    let mut log = Log::new();
    let mut shown = Shown::new();
    log.set("a", 0, "1");
    assert_eq!(follow(&mut log, &mut shown), 0);
    log.store.follow_changes(true);
    for number in 0..10_000 {
        log.set(&format!("k{number}"), 0, "1");
    }
    assert_eq!(follow(&mut log, &mut shown), 1, "everything");
    log.set("a", 0, "1");
    assert_eq!(follow(&mut log, &mut shown), 1);
    assert_eq!(shown.len(), 1);
}
