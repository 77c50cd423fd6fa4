//! Frames over TCP: those of the vectors in any segments, and wrong ones.

use std::collections::BTreeMap;
use std::iter::repeat_n;

use anyhow::Result;
use quorumwire_cluster_tests::recording::stream_frames;
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::tshark::{Shown, show};
use quorumwire_wire::limits::{ATTACHMENT_BYTES_MAX, CLIENT_META_BYTES_MAX, META_BYTES_MAX};
use quorumwire_wire::{ClientFrame, ClientFrameError, FrameError, FrameHeader, take_client_frame};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::real::said_once;
use super::{PORTS, mutate, recording, vectors, write_whole};

const AS_FRAMES: [&str; 2] = ["-d", "tcp.port==47012,quorumwire_frame"];
const WRONG_STREAMS: u16 = 3_000;

pub const FRAME_FIELDS: [&str; 8] = [
    "quorumwire_frame.magic",
    "quorumwire_frame.meta_bytes",
    "quorumwire_frame.attachment_bytes",
    "quorumwire_frame.crc32c.right",
    "quorumwire_frame.message",
    "quorumwire_frame.no_frame",
    "quorumwire_frame.wrong_checksum",
    "tcp.stream",
];

/// What is shown of all frames of the stream of this number: each field's values, in order.
fn of_stream(shown: &[Shown], stream: &str) -> Shown {
    let mut all = Shown::new();
    for row in shown.iter().filter(|row| row["tcp.stream"] == [stream]) {
        for (field, values) in row {
            all.entry(field.clone()).or_default().extend(values.clone());
        }
    }
    all.remove("tcp.stream");
    all
}

/// What a reader says of the frame at the start of a stream.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum First {
    Right(usize),
    WrongChecksum,
    NoFrame,
    Incomplete,
}

fn first(stream: &[u8]) -> First {
    if stream.starts_with(b"QWC1") {
        return match take_client_frame::<()>(stream, usize::MAX) {
            Ok(ClientFrame::Whole { consumed, .. }) => First::Right(consumed),
            Ok(ClientFrame::Incomplete { .. }) => First::Incomplete,
            Err(ClientFrameError::Frame(FrameError::Checksum)) => First::WrongChecksum,
            Err(_) => First::NoFrame,
        };
    }
    match FrameHeader::decode(stream) {
        Ok(Some(header)) => match stream.get(..header.frame_bytes()) {
            Some(frame) if header.open(frame.to_vec().into()).is_ok() => {
                First::Right(header.frame_bytes())
            }
            Some(_) => First::WrongChecksum,
            None => First::Incomplete,
        },
        Ok(None) => First::Incomplete,
        Err(_) => First::NoFrame,
    }
}

/// What has to be shown of a stream of whole frames and perhaps the beginning of another.
pub fn expected_frames(stream: &[u8]) -> Shown {
    let mut shown = Shown::new();
    let mut rest = stream;
    while let First::Right(bytes) = first(rest) {
        let magic = String::from_utf8_lossy(&rest[..4]).into_owned();
        let length = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four"));
        let values = [
            magic,
            length(4).to_string(),
            length(8).to_string(),
            "1".into(),
        ];
        for (field, value) in FRAME_FIELDS.iter().zip(values) {
            shown.entry((*field).to_owned()).or_default().push(value);
        }
        rest = &rest[bytes..];
    }
    assert!(rest.is_empty() || first(rest) == First::Incomplete);
    shown
}

#[test]
fn frames_are_shown_in_whatever_segments_they_come() -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let of_peers = vectors(include_str!("../../../../wire/vectors/frames.txt"));
    let of_clients = vectors(include_str!("../../../../wire/vectors/clients.txt"));
    let streams = [of_peers, of_clients].map(|vectors| {
        let frames: Vec<Vec<u8>> = vectors.into_iter().map(|(_, bytes)| bytes).collect();
        frames.concat()
    });
    let mut frames = Vec::new();
    for (port, stream) in (50_000..50_100).zip(streams.iter().cycle()) {
        // By the first segment they are known.
        let mut segments = vec![&stream[..16]];
        let mut rest = &stream[16..];
        while !rest.is_empty() {
            let (segment, behind) = rest.split_at(rng.random_range(1..=rest.len().min(70)));
            segments.push(segment);
            rest = behind;
        }
        frames.extend(stream_frames(port, PORTS.1, &segments));
    }
    // What was said twice counts once.
    let twice = frames.iter().flat_map(|frame| {
        let times = 1 + usize::from(rng.random_ratio(1, 10));
        repeat_n(frame.clone(), times)
    });
    assert_eq!(said_once(&twice.collect::<Vec<_>>()), frames);
    let path = recording("segments");
    write_whole(&path, &frames)?;
    let shown = show(&path, &[], &FRAME_FIELDS)?;
    for number in 0..100 {
        let mut of_stream = of_stream(&shown, &number.to_string());
        let messages = of_stream.remove("quorumwire_frame.message");
        assert_eq!(of_stream, expected_frames(&streams[number % 2]));
        let names = ["append", "goodbye"].map(str::to_owned).to_vec();
        assert_eq!(messages, (number % 2 == 0).then_some(names));
    }
    Ok(())
}

fn wrong_stream(rng: &mut ChaCha8Rng, right: &[Vec<u8>]) -> Vec<u8> {
    let word = |number: usize| u32::try_from(number).expect("it fits").to_be_bytes();
    match rng.random_range(0..10) {
        0 => (0..rng.random_range(0..100))
            .map(|_| rng.random())
            .collect(),
        // About as long as may be.
        1 => {
            let of_peers: bool = rng.random();
            let magic = if of_peers { b"QWP1" } else { b"QWC1" };
            let meta = if of_peers {
                META_BYTES_MAX
            } else {
                CLIENT_META_BYTES_MAX
            };
            let lengths = [meta, ATTACHMENT_BYTES_MAX].map(|it| word(it + rng.random_range(0..2)));
            [&magic[..], &lengths.concat(), &[0; 20]].concat()
        }
        // Any message, with the right checksum.
        2 => {
            let meta: Vec<u8> = (0..rng.random_range(0..30)).map(|_| rng.random()).collect();
            let head = [&b"QWP1"[..], &word(meta.len()), &word(0)].concat();
            let checksum = crc32c::crc32c_append(crc32c::crc32c(&head), &meta);
            [&head[..], &checksum.to_be_bytes(), &meta].concat()
        }
        _ => {
            let place = rng.random_range(0..right.len());
            mutate(rng, &right[place])
        }
    }
}

#[test]
fn no_stream_makes_it_raise_an_error() -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let of_peers = vectors(include_str!("../../../../wire/vectors/frames.txt"));
    let of_clients = vectors(include_str!("../../../../wire/vectors/clients.txt"));
    let right = of_peers.into_iter().chain(of_clients);
    let right: Vec<Vec<u8>> = right.map(|(_, bytes)| bytes).collect();
    let streams: Vec<Vec<u8>> = (0..WRONG_STREAMS)
        .map(|_| wrong_stream(&mut rng, &right))
        .filter(|stream| !stream.is_empty())
        .collect();
    let frames: Vec<Vec<u8>> = streams
        .iter()
        .zip(50_000..)
        .flat_map(|(stream, port)| stream_frames(port, PORTS.1, &[stream]))
        .collect();
    let path = recording("streams");
    write_whole(&path, &frames)?;
    let shown = show(&path, &AS_FRAMES, &FRAME_FIELDS)?;
    let mut reached: BTreeMap<First, u32> = BTreeMap::new();
    // Of each stream the frame behind the one that begins it.
    for (stream, row) in streams.iter().zip(shown.iter().skip(1).step_by(2)) {
        let right = row.get("quorumwire_frame.crc32c.right");
        let no_frame = row.contains_key("quorumwire_frame.no_frame");
        let told = match (right.map(|it| &it[0][..]), no_frame) {
            (Some("1"), _) => First::Right(0),
            (Some(_), _) => First::WrongChecksum,
            (None, true) => First::NoFrame,
            (None, false) => First::Incomplete,
        };
        let read = match first(stream) {
            First::Right(_) => First::Right(0),
            // A message that is none does not make its frame one: the dissector reads on.
            First::NoFrame if right.is_some() && stream.starts_with(b"QWC1") => told,
            other @ (First::NoFrame | First::WrongChecksum | First::Incomplete) => other,
        };
        assert_eq!(told, read, "{row:?}\n{}", hex::encode(stream));
        *reached.entry(read).or_default() += 1;
    }
    println!("{reached:?}");
    assert_eq!(reached.len(), 4, "{reached:?}");
    Ok(())
}
