//! The order of work within a turn of the server.
use super::origin::Origin;
use super::start::tests::Alone;
use super::*;
use bytes::BytesMut;
use quorumwire_interfaces::{Application as _, Applied, LogTime};
use quorumwire_kv::{Command, Exptime, Key, Written};

/// Turns in which a leader that nobody asks has nothing to apply, at least once.
const TURNS_MAX: usize = 100;

/// Otherwise a voter's promise would count from before it heard its leader, and end before the leader
/// expects.
#[test]
fn what_replicas_have_said_was_said_before_now() {
    let mut alone = Alone::leading();
    let server = &mut alone.server;
    for _ in 0..TURNS_MAX {
        let applied = server.core.group.applied;
        server.turn(&Events::with_capacity(1)).unwrap();
        if server.core.group.applied == applied {
            assert!(server.core.group.now > server.clients.turn_began());
            return;
        }
    }
    panic!("it applies something in each turn");
}

/// Otherwise a command of many keys would hold up everything, elections too, while it copies what a snapshot
/// holds.
#[test]
fn an_entry_of_many_keys_waits_until_what_is_frozen_is_copied() {
    const ITEMS: u64 = 100_000;
    let mut alone = Alone::leading();
    let server = &mut alone.server;
    for number in 0..ITEMS {
        let (key, mut command) = (number.to_string(), BytesMut::new());
        set(&key, b"x", &mut command);
        let entry = Applied {
            number: number + 1,
            log_time: LogTime(1),
            awaits_time: false,
            command: &command,
        };
        let store = server.core.group.store.inner_mut();
        store.apply(&entry, &mut Vec::new());
    }
    for (value_bytes, is_put_off) in [(1, false), (2000, true)] {
        let frozen = server.core.group.store.freeze();
        let mut command = BytesMut::new();
        set("a", &vec![b'x'; value_bytes], &mut command);
        server.core.write(Origin::Service(1), command.len(), |to| {
            to.extend_from_slice(&command);
        });
        let written = server.core.group.last_index();
        let mut turns = 0;
        while server.core.group.applied < written {
            server.turn(&Events::with_capacity(1)).unwrap();
            turns += 1;
            assert!(turns < TURNS_MAX);
            let waits = server.core.group.applied < written;
            assert!(
                !waits || server.time_to_wait().is_zero(),
                "it goes on at once"
            );
        }
        drop(frozen);
        assert_eq!(turns > 3, is_put_off, "{turns} turns");
    }
}

fn set(key: &str, value: &[u8], command: &mut BytesMut) {
    Command::Set(Written {
        key: Key::new(key.as_bytes()).unwrap(),
        flags: 0,
        exptime: Exptime(0),
        value,
    })
    .encode(command);
}
