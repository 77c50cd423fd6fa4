//! Wrong bytes: whatever is flipped, cut, swapped or made up, decoding never panics, and nothing whose
//! checksum is wrong is ever taken.
use crate::vectors::all;
use bytes::Bytes;
use quorumwire_seed::seed;
use quorumwire_wire::prost::Message;
use quorumwire_wire::{
    FrameHeader, Membership, RECORD_HEADER_BYTES, Record, SnapshotHead, SnapshotReader, peer,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::io::Read;

const ROUNDS_PER_VECTOR: usize = 4000;

/// Every one must have happened.
const OUTCOMES: [&str; 9] = [
    "frame: header refused",
    "frame: more needed",
    "frame: checksum refused",
    "record refused",
    "record behind the change taken",
    "snapshot: head refused",
    "snapshot: body refused",
    "message refused",
    "message taken",
];

#[test]
fn wrong_bytes_are_never_taken_for_right_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let mut outcomes = BTreeMap::new();
    for ((file, name), bytes) in all() {
        for _ in 0..ROUNDS_PER_VECTOR {
            let wrong = mutate(&mut rng, &bytes);
            let outcome = match file {
                "frames" => see_frame(&bytes, wrong),
                "records" => see_record(&bytes, &wrong),
                "snapshots" => see_snapshot(&bytes, &wrong),
                _ => see_message(&name, &wrong),
            };
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
    }
    println!("{outcomes:#?}");
    for outcome in OUTCOMES {
        assert!(outcomes.contains_key(outcome), "never reached: {outcome}");
    }
    let known = outcomes.keys().all(|outcome| OUTCOMES.contains(outcome));
    assert!(known, "one is missing in OUTCOMES");
}

/// One to three changes of bytes; never gives back what it was given.
fn mutate(rng: &mut ChaCha8Rng, bytes: &[u8]) -> Vec<u8> {
    loop {
        let mut wrong = bytes.to_vec();
        for _ in 0..rng.random_range(1..=3) {
            let at = rng.random_range(0..wrong.len().max(1));
            let to = rng.random_range(0..=wrong.len());
            match rng.random_range(0..7) {
                0 => wrong.truncate(at),
                6 => wrong.push(rng.random()),
                1 => wrong.insert(at.min(wrong.len()), rng.random()),
                2 => wrong[at.min(to)..at.max(to)].fill(0),
                3 => wrong[at.min(to)..at.max(to)].reverse(),
                _ if wrong.is_empty() => {}
                4 => wrong[at] = rng.random(),
                _ => wrong[at] ^= 1 << rng.random_range(0..8),
            }
        }
        if wrong != bytes {
            return wrong;
        }
    }
}

fn see_frame(right: &[u8], wrong: Vec<u8>) -> &'static str {
    let header = match FrameHeader::decode(&wrong) {
        Ok(Some(header)) if header.frame_bytes() <= wrong.len() => header,
        Ok(_) => return "frame: more needed",
        Err(_) => return "frame: header refused",
    };
    let frame = Bytes::from(wrong).slice(..header.frame_bytes());
    match header.open(frame.clone()) {
        Ok(_) => {
            // Bytes behind the frame are the next frame's.
            assert_eq!(frame, right, "a wrong frame was taken");
            "frame: more needed"
        }
        Err(_) => "frame: checksum refused",
    }
}

fn see_record(right: &[u8], wrong: &[u8]) -> &'static str {
    match Record::decode(wrong) {
        Ok(record) => {
            assert_eq!(
                &wrong[..record.record_bytes],
                right,
                "a wrong record was taken"
            );
            assert!(record.record_bytes >= RECORD_HEADER_BYTES);
            "record behind the change taken"
        }
        Err(_) => "record refused",
    }
}

fn see_snapshot(right: &[u8], wrong: &[u8]) -> &'static str {
    let Ok(mut reader) = SnapshotReader::new(wrong) else {
        return "snapshot: head refused";
    };
    let mut body = Vec::new();
    let result = reader.read_to_end(&mut body);
    assert!(result.is_err(), "a wrong snapshot was taken");
    assert!(reader.read(&mut [0]).is_err(), "it went on after an error");
    let mut whole = Vec::new();
    let mut original = SnapshotReader::new(right).expect("a vector");
    original.read_to_end(&mut whole).expect("a vector");
    assert!(whole.starts_with(&body), "wrong bytes were given out");
    assert!(SnapshotReader::new(wrong).is_ok_and(|reader| reader.verify().is_err()));
    "snapshot: body refused"
}

/// Messages have no checksum of their own; they must only not panic, and keep their limits.
fn see_message(name: &str, wrong: &[u8]) -> &'static str {
    let taken = match name {
        "membership" => Membership::decode(wrong).is_ok(),
        "hard_state" => peer::HardState::decode(wrong).is_ok(),
        "identity" | "identity_with_promise" => peer::Identity::decode(wrong).is_ok(),
        "snapshot_head" => peer::SnapshotHead::decode(wrong)
            .is_ok_and(|head| SnapshotHead::from_proto(&head).is_ok()),
        _ => peer::PeerMessage::decode(wrong).is_ok(),
    };
    if taken {
        "message taken"
    } else {
        "message refused"
    }
}

#[test]
fn bytes_made_up_are_refused_by_the_field_that_is_wrong() {
    use quorumwire_wire::limits::{ATTACHMENT_BYTES_MAX, META_BYTES_MAX, RECORD_PAYLOAD_BYTES_MAX};
    use quorumwire_wire::{FrameError, RecordError};
    let frame = |words: [u32; 4]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        FrameHeader::decode(&bytes)
    };
    let magic = 0x5157_5031;
    let word = |bytes: usize| u32::try_from(bytes).unwrap();
    assert_eq!(FrameHeader::decode(&[0; 15]), Ok(None));
    assert_eq!(
        frame([0x4745_5420, 0, 0, 0]),
        Err(FrameError::Magic { magic: 0x4745_5420 })
    );
    assert_eq!(
        frame([magic, word(META_BYTES_MAX) + 1, 0, 0]),
        Err(FrameError::MetaTooLong {
            bytes: META_BYTES_MAX + 1,
            max: META_BYTES_MAX,
        })
    );
    assert_eq!(
        frame([magic, 0, u32::MAX, 0]),
        Err(FrameError::AttachmentTooLong {
            bytes: u32::MAX as usize,
            max: ATTACHMENT_BYTES_MAX,
        })
    );
    let largest = frame([magic, word(META_BYTES_MAX), word(ATTACHMENT_BYTES_MAX), 0]);
    let largest = largest.unwrap().unwrap();
    assert_eq!(
        largest.frame_bytes(),
        16 + META_BYTES_MAX + ATTACHMENT_BYTES_MAX
    );

    let mut record = all()[&("records", "command".to_owned())].clone();
    assert_eq!(
        Record::decode(&record[..31]),
        Err(RecordError::Short { needed_bytes: 32 })
    );
    assert_eq!(
        Record::decode(&record[..36]),
        Err(RecordError::Short { needed_bytes: 37 })
    );
    let mut resealed = |at: usize, byte: u8| {
        let before = std::mem::replace(&mut record[at], byte);
        let checksum = crc32c::crc32c(&record[4..]).to_be_bytes();
        let mut changed = record.clone();
        changed[..4].copy_from_slice(&checksum);
        record[at] = before;
        Record::decode(&changed).map(|record| record.kind)
    };
    assert_eq!(resealed(8, 2), Err(RecordError::Version { version: 2 }));
    assert_eq!(resealed(9, 8), Err(RecordError::Kind { kind: 8 }));
    assert_eq!(
        resealed(4, 1),
        Err(RecordError::TooLong {
            payload_bytes: (1 << 24) + 5
        })
    );
    const { assert!(RECORD_PAYLOAD_BYTES_MAX < 1 << 24) };
}
