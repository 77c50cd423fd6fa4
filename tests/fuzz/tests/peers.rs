//! What another replica, or somebody who claims to be one, sends: frames, messages, packets of data planes.

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use quorumwire_control::Message;
use quorumwire_fastpath::{KeyPair, Keys, check as check_packet, memcached_set};
use quorumwire_fuzz_tests::{
    INPUT_BYTES_MAX, ITERATIONS_OF_SMALL, Outcomes, Seed, fuzz, grown, named,
};
use quorumwire_kv::Command;
use quorumwire_wire::{
    FrameHeader, Membership, Record, SnapshotReader, check_hello, encode_frame, hello, peer,
};

/// Fields of messages, each with its number, type and a value.
const FIELDS: [&[u8]; 23] = [
    b"\x08\x07",
    b"\x10\xac\x02",
    b"\x42\x04",
    b"\x4a\x02",
    b"\x52\x00",
    b"\x5a\x05",
    b"\x62\x0a",
    b"\x6a\x03",
    b"\x72\x0b",
    b"\x7a\x06",
    b"\x82\x01\x02",
    b"\x8a\x01\x04",
    b"\xc2\x01\x12",
    b"\x0a\x05trunk",
    b"\x10\x02",
    b"\x19\xef\xbe\xad\xde\0\0\0\x01",
    b"\x18\x01",
    b"\x20\x01",
    b"\x28\x03",
    b"\x30\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x38\x02",
    b"\0",
];

fn message_seeds() -> Vec<Seed> {
    let text = include_str!("../../../wire/vectors/messages.txt");
    let names = [
        "hello_with_promise",
        "vote_request",
        "append",
        "append_reply",
        "snapshot_chunk",
        "forward_session",
        "engage_offer",
        "engaged",
    ];
    named(text, &names)
}

#[test]
fn messages() {
    let outcomes = Outcomes::default();
    let ours = hello("trunk", 1, 7);
    fuzz!(
        "messages",
        message_seeds(),
        ITERATIONS_OF_SMALL,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &FIELDS);
            if let Ok(theirs) = peer::Hello::decode(&bytes[..]) {
                let is_welcome = check_hello(&ours, &theirs).is_ok();
                outcomes.count(if is_welcome { "welcome" } else { "not welcome" });
            }
            Membership::decode(&bytes).ok();
            let Ok(message) = peer::PeerMessage::decode(&bytes[..]) else {
                return outcomes.count("no message");
            };
            let attachment = Bytes::copy_from_slice(input);
            let understood = Message::from_proto(message, attachment).is_ok();
            outcomes.count(if understood {
                "understood"
            } else {
                "malformed"
            });
        }
    );
    outcomes.must_be(&["no message", "understood", "malformed", "not welcome"]);
}

fn file_seeds() -> Vec<Seed> {
    let frames = include_str!("../../../wire/vectors/frames.txt");
    let records = include_str!("../../../wire/vectors/records.txt");
    let snapshots = include_str!("../../../wire/vectors/snapshots.txt");
    [
        named(
            frames,
            &["append_with_one_record", "goodbye_without_attachment"],
        ),
        named(
            records,
            &["membership", "session_command", "fragment", "durable"],
        ),
        named(snapshots, &["hello_world", "empty_body"]),
    ]
    .concat()
}

#[test]
fn frames_records_and_snapshot_files() {
    let outcomes = Outcomes::default();
    let mut frame = BytesMut::new();
    encode_frame(
        &mut frame,
        &hello("trunk", 1, 7),
        &[Bytes::from_static(b"attached")],
    );
    fuzz!(
        "frames_records_and_snapshot_files",
        file_seeds(),
        ITERATIONS_OF_SMALL,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let words: [&[u8]; 6] = [
                &frame,
                &frame[..16],
                b"QWP1",
                b"\0\0\0\x08",
                b"attached",
                b"QWS",
            ];
            let bytes = grown(input, &words);
            match FrameHeader::decode(&bytes) {
                Ok(None) => outcomes.count("incomplete"),
                Err(_) => outcomes.count("no frame"),
                Ok(Some(header)) if header.frame_bytes() > bytes.len() => outcomes.count("to come"),
                Ok(Some(header)) => {
                    let whole = Bytes::copy_from_slice(&bytes[..header.frame_bytes()]);
                    outcomes.count(if header.open(whole).is_ok() {
                        "whole"
                    } else {
                        "damaged"
                    });
                }
            }
            if let Ok(record) = Record::decode(&bytes) {
                assert!(record.payload.len() <= bytes.len());
            }
            if let Ok(reader) = SnapshotReader::new(&bytes[..]) {
                reader.verify().ok();
            }
        }
    );
    outcomes.must_be(&["incomplete", "no frame", "to come", "whole", "damaged"]);
}

fn packet_seeds() -> Vec<Seed> {
    let text = include_str!("../../../wire/vectors/packets.txt");
    let mut seeds = named(
        text,
        &[
            "request",
            "append_fragment",
            "answer",
            "heartbeat",
            "forward",
            "submit",
            "p1b",
            "p2b_refused",
        ],
    );
    let set = b"\0\x01\0\0\0\x01\0\0set key 7 0 5\r\nhello\r\n";
    seeds.push(("memcached-set", set.to_vec()));
    seeds
}

/// Without the key nothing is let in, whatever it looks like.
#[test]
fn packets() {
    let outcomes = Outcomes::default();
    let keys = Keys {
        cluster: KeyPair::new([Some([7; 16]), None]),
        clients: KeyPair::new([Some([9; 16]), None]),
    };
    fuzz!(
        "packets",
        packet_seeds(),
        ITERATIONS_OF_SMALL,
        1500,
        |input: &[u8]| {
            let words: [&[u8]; 9] = [
                b"QW",
                b"\0\x01set k 0 0 1\r\nx\r\n",
                b"\0\x01\0\0\0\x01\0\0",
                b"set k 0 0 1\r\nv\r\n",
                b"set k 0 0 1 noreply\r\nv\r\n",
                b" ",
                b"\r\n",
                b"k",
                b"\0",
            ];
            let bytes = grown(input, &words);
            match check_packet(&keys, &bytes) {
                Ok(_) => panic!("forged: {bytes:?}"),
                Err(reason) => outcomes.count(reason.name()),
            }
            let mut command = Vec::new();
            if memcached_set(&bytes, &mut command).is_some() {
                assert!(matches!(Command::decode(&command), Ok(Command::Set(_))));
                outcomes.count("a set");
            }
        }
    );
    outcomes.must_be(&["a set"]);
}
