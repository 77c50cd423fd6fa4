use super::*;
use crate::evpaxos::history::Entry;
use std::thread;
use std::time::{Duration, Instant};

/// An acceptor alone, at the usual port of an address that no other test has.
fn alone(last: u8, is_to_catch_up: bool) -> Node {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let ip = [127, 128 + last, high, low.clamp(1, 254)];
    let options = HostOptions {
        acceptors: vec![(ip, 8800).into()],
        me: 0,
        dir: None,
        is_to_begin_anew: false,
        nodelay: true,
    };
    Node::host(options, is_to_catch_up).expect("begins")
}

fn host(node: &Node) -> &Host {
    match &node.process {
        Process::Host(host) => host,
        Process::Learner(_) | Process::Proposer { .. } => panic!("it is a host"),
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn next(node: &mut Node) -> (u32, Vec<u8>) {
    let mut number = None;
    wait_until("a value", || {
        number = node.take();
        number.is_some()
    });
    (number.unwrap(), node.value().to_vec())
}

#[test]
fn values_come_from_the_first_one_on_with_a_0_behind_them() {
    let mut node = alone(1, true);
    for value in ["one", "", "three"] {
        node.submit(value.as_bytes());
    }
    node.submit(&vec![0; VALUE_BYTES_MAX + 1]);
    assert_eq!(next(&mut node), (1, b"one\0".to_vec()));
    assert_eq!(next(&mut node), (2, b"\0".to_vec()));
    assert_eq!(next(&mut node), (3, b"three\0".to_vec()));
    assert_eq!(node.take(), None);
    node.go_on_behind(1);
    assert_eq!(next(&mut node).0, 2);
    node.trim(2);
    wait_until("it is trimmed", || {
        host(&node).history().get(2) == Found::Gone(2)
    });
    node.go_on_behind(0);
    assert_eq!(node.take(), None, "what is gone is left out by nobody");
    node.go_on_behind(2);
    assert_eq!(next(&mut node).0, 3);
}

#[test]
fn who_does_not_catch_up_begins_with_what_comes_then() {
    let mut node = alone(2, false);
    node.submit(b"before");
    wait_until("it is decided", || host(&node).history().last() == 1);
    assert_eq!(node.take(), None);
    node.submit(b"after");
    assert_eq!(next(&mut node), (2, b"after\0".to_vec()));
}

#[test]
fn there_are_no_numbers_of_more_than_32_bits() {
    let mut node = alone(3, true);
    wait_until("it takes part", || host(&node).is_ready());
    let entry = |instance| Entry {
        instance,
        value: b"value".to_vec().into(),
    };
    let entries = vec![entry(1 << 40), entry((1 << 40) + 1)];
    let joined = host(&node).history().join(NUMBER_MAX - 1, 7, entries);
    joined.unwrap();
    node.go_on_behind(u32::MAX - 1);
    assert_eq!(next(&mut node), (u32::MAX, b"value\0".to_vec()));
    assert_eq!(node.take(), None);
}
