//! What a log entry or a snapshot may hold if somebody else wrote it: an answer or an error, never a panic.

use bytes::BytesMut;
use quorumwire_fuzz_tests::{INPUT_BYTES_MAX, ITERATIONS, Outcomes, Seed, fuzz, grown};
use quorumwire_interfaces::{Index, LogTime};
use quorumwire_kv::{Command, Store};
use quorumwire_sessions::{LogPosition, Outcome, Sessions};
use quorumwire_wire::packet::PAYLOAD_BYTES_MAX;
use quorumwire_wire::{RecordKind, commands_of, put_bundled};

const COMMANDS: [&[u8]; 20] = [
    b"\x11\x01\0\0\0\0\0\0\0\0\0\0\0\0kv",
    b"\x12\x01\0\0\0\0\0\0\0\0\0\0\0\x05kv",
    b"\x15\x01kv",
    b"\x17\x01\0\0\0\0\0\0\0\x01k",
    b"\x19\x01\0\0\0\0\0\0\0\x01k",
    b"\x1a\x01k",
    b"\x1b\0\0\0\0\0\0\0\0k l",
    b"\x1d\0\0\0\0\0\0\0\0",
    b"\x1f2\0",
    b"\x1f3\x01",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*1\r\n$8\r\nFLUSHALL\r\n",
    b"\x1e",
    b"\0\0\0\0\0\0\0\x01",
    b"\0\0",
    b"\x01",
    b"k",
    b"\xff\xff",
    b"\x20",
    b"\x11\xfa",
];

fn command_seeds() -> [Seed; 6] {
    let of = |number: usize| COMMANDS[number].to_vec();
    [
        ("set", of(0)),
        ("set-with-lifetime", of(1)),
        ("delete", of(2)),
        ("memory-limit", of(7)),
        (
            "transaction",
            [COMMANDS[8], COMMANDS[10], COMMANDS[11]].concat(),
        ),
        (
            "fragments",
            [COMMANDS[13], COMMANDS[13], COMMANDS[0]].concat(),
        ),
    ]
}

#[test]
fn commands_of_the_log() {
    let outcomes = Outcomes::default();
    fuzz!(
        "commands_of_the_log",
        command_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &COMMANDS);
            let decoded = Command::decode(&bytes);
            outcomes.count(if decoded.is_ok() { "a command" } else { "none" });
            if let Ok(command) = decoded {
                let mut again = Vec::new();
                command.encode(&mut again);
                assert_eq!(again, &bytes[..]);
            }
            let mut sessions = Sessions::<Store>::default();
            for index in 1..4 {
                let position = LogPosition {
                    index: Index(index),
                    log_time: LogTime(1000 * index),
                };
                let mut reply = Vec::new();
                sessions.command(position, &bytes, &mut reply);
                sessions.advance(LogTime(1000 * index));
                let in_session = sessions.in_session(position, &bytes, &mut reply);
                let piece = sessions.fragment(position, &bytes, &mut reply);
                for outcome in [in_session, piece] {
                    outcomes.count(match outcome {
                        Outcome::Applied => "applied",
                        Outcome::Repeated => "repeated",
                        Outcome::Incomplete => "incomplete",
                        Outcome::Refused(_) => "refused",
                        Outcome::AnswerTooLong => "too long",
                    });
                }
            }
        }
    );
    outcomes.must_be(&["a command", "none", "refused"]);
}

/// A command of 1,000 bytes: two of them fit no packet.
const LONG: [u8; 1003] = {
    let mut bytes = [b'l'; 1003];
    (bytes[0], bytes[1], bytes[2]) = (2, 0x03, 0xe8);
    bytes
};

const BUNDLED: [&[u8]; 6] = [
    b"\x02\0\x01a",
    b"\x05\0\x11\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x09b",
    b"\x02\0\0",
    b"\x03\0\x08\0\0\0\0\0\0\0\x01",
    b"\x02\x04\0",
    &LONG,
];

fn bundle_seeds() -> [Seed; 5] {
    [
        ("two-commands", [BUNDLED[0], BUNDLED[1]].concat()),
        ("nothing-to-do", BUNDLED[2].to_vec()),
        ("a-tick", [BUNDLED[0], BUNDLED[3]].concat()),
        ("cut", [BUNDLED[0], BUNDLED[4]].concat()),
        ("too-long", [LONG, LONG].concat()),
    ]
}

/// A bundle is all of its bytes, or none of them is carried out.
#[test]
fn bundles() {
    let outcomes = Outcomes::default();
    fuzz!(
        "bundles",
        bundle_seeds(),
        ITERATIONS,
        4096,
        |input: &[u8]| {
            let bytes = grown(input, &BUNDLED);
            let commands: Vec<_> = commands_of(RecordKind::Bundle, &bytes).collect();
            if commands == [(RecordKind::Bundle, &bytes[..])] {
                outcomes.count(if bytes.len() > PAYLOAD_BYTES_MAX {
                    "too long"
                } else {
                    "none"
                });
                return;
            }
            assert!(bytes.len() <= PAYLOAD_BYTES_MAX);
            outcomes.count("a bundle");
            let mut again = BytesMut::new();
            for (kind, payload) in commands {
                put_bundled(&mut again, kind, |out| out.extend_from_slice(payload));
            }
            assert_eq!(again, bytes[..]);
        }
    );
    outcomes.must_be(&["a bundle", "none", "too long"]);
}

/// A store with some items, as bytes.
fn snapshot() -> Vec<u8> {
    let mut sessions = Sessions::<Store>::default();
    let commands: [&[u8]; 3] = [
        COMMANDS[0],
        b"\x11\x02\0\0\0\x07\0\0\0\0\0\0\0\x64k2value",
        b"\x11\x01\0\0\0\0\0\0\0\0\0\0\0\0l",
    ];
    for (command, index) in commands.into_iter().zip(1..) {
        let position = LogPosition {
            index: Index(index),
            log_time: LogTime(5000),
        };
        sessions.command(position, command, &mut Vec::new());
    }
    written(&sessions)
}

fn written(sessions: &Sessions<Store>) -> Vec<u8> {
    let mut bytes = Vec::new();
    sessions.freeze().write(&mut bytes).expect("to memory");
    bytes
}

fn snapshot_seeds() -> [Seed; 5] {
    [
        ("whole", Vec::new()),
        ("begins-otherwise", vec![0, 0, 1]),
        ("another-count", vec![0, 15, 0xff]),
        ("ends-early", vec![0, 48, 0]),
        ("two-bytes", vec![0, 20, 0x7f, 0, 38, 0x01]),
    ]
}

/// Input that says where bytes of a real snapshot are others, or where it ends.
#[test]
fn snapshots() {
    let (outcomes, whole) = (Outcomes::default(), snapshot());
    fuzz!(
        "snapshots",
        snapshot_seeds(),
        ITERATIONS,
        64,
        |input: &[u8]| {
            let mut bytes = whole.clone();
            for change in input.chunks_exact(3) {
                let place =
                    usize::from(u16::from_be_bytes([change[0], change[1]])) % (bytes.len() + 1);
                match bytes.get_mut(place) {
                    Some(byte) if change[2] % 8 != 0 => *byte = change[2],
                    _ => bytes.truncate(place),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let mut restored = Sessions::<Store>::default();
            let result = restored.restore(&mut &bytes[..]);
            match result {
                Ok(()) => {
                    outcomes.count("restored");
                    let again = written(&restored);
                    assert_eq!(again, &bytes[..again.len()]);
                }
                Err(_) => outcomes.count("refused"),
            }
        }
    );
    outcomes.must_be(&["restored", "refused"]);
}
