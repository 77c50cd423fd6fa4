//! Snapshot files: any body in any pieces, bounded memory, and every wrong byte seen.
use quorumwire_interfaces::{GroupId, Index, Term};
use quorumwire_wire::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_HEAD_BYTES_MAX};
use quorumwire_wire::{
    SNAPSHOT_VERSION, SnapshotError, SnapshotHead, SnapshotReader, SnapshotWriter,
};
use std::io::{self, Read, Write};

const PREFIX_BYTES: usize = 16;

fn head() -> SnapshotHead {
    SnapshotHead {
        group: GroupId(3),
        last_index: Index(10),
        last_term: Term(2),
        ..SnapshotHead::default()
    }
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect()
}

/// Writes the body in pieces of this many bytes.
fn file_of(body: &[u8], piece_bytes: usize) -> Vec<u8> {
    let mut writer = SnapshotWriter::new(Vec::new(), &head()).unwrap();
    for piece in body.chunks(piece_bytes) {
        writer.write_all(piece).unwrap();
        writer.flush().unwrap();
    }
    writer.finish().unwrap()
}

fn read(file: &[u8]) -> Result<Vec<u8>, SnapshotError> {
    let mut body = Vec::new();
    SnapshotReader::new(file)?.read_to_end(&mut body)?;
    Ok(body)
}

/// Where each block begins, and the end.
fn blocks(file: &[u8]) -> Vec<usize> {
    let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut places = vec![PREFIX_BYTES + word(8)];
    while word(*places.last().unwrap()) > 0 {
        let last = *places.last().unwrap();
        places.push(last + 8 + word(last));
    }
    places
}

#[test]
fn what_was_written_is_read_in_whatever_pieces() {
    let block = SNAPSHOT_BLOCK_BYTES;
    for length in [0, 1, block - 1, block, block + 1, 3 * block + 7] {
        let body = body(length);
        let file = file_of(&body, 100_003);
        // Equal states give equal files, however they were written.
        assert!(file == file_of(&body, 999), "{length}");
        assert!(read(&file).unwrap() == body, "{length}");
        let verified = SnapshotReader::new(&*file).unwrap().verify().unwrap();
        assert_eq!(verified, length as u64);
        assert_eq!(blocks(&file).len(), length.div_ceil(block) + 1);
    }
}

#[test]
fn every_wrong_byte_and_every_length_is_seen() {
    let file = file_of(&body(500), 500);
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut wrong = file.clone();
            wrong[at] ^= 1 << bit;
            let error = read(&wrong).expect_err("taken");
            let seen = !matches!(error, SnapshotError::Version { .. } | SnapshotError::Io(_));
            assert!(seen, "bit {bit} of {at}: {error}");
        }
        assert!(
            matches!(read(&file[..at]), Err(SnapshotError::Short)),
            "{at}"
        );
    }
    let longer = [file.as_slice(), &[0]].concat();
    assert!(matches!(read(&longer), Err(SnapshotError::Trailing)));
}

#[test]
fn blocks_swapped_repeated_or_left_out_are_seen() {
    let length = SNAPSHOT_BLOCK_BYTES;
    // All blocks are equally long, and the first and the last hold the same bytes.
    let body = [vec![1; length], vec![2; length], vec![1; length]].concat();
    let file = file_of(&body, length);
    let places = blocks(&file);
    let block = |place: usize| &file[places[place]..places[place + 1]];
    let (start, end) = (&file[..places[0]], &file[places[3]..]);
    let orders: [&[usize]; 5] = [&[1, 0, 2], &[2, 1, 0], &[0, 1], &[0, 1, 1, 2], &[]];
    for order in orders {
        let mut wrong = start.to_vec();
        for place in order {
            wrong.extend_from_slice(block(*place));
        }
        wrong.extend_from_slice(end);
        assert!(
            matches!(read(&wrong), Err(SnapshotError::Checksum(_))),
            "{order:?}"
        );
    }
}

#[test]
fn an_unfinished_file_has_no_end() {
    let mut out = Vec::new();
    let mut writer = SnapshotWriter::new(&mut out, &head()).unwrap();
    writer
        .write_all(&body(2 * SNAPSHOT_BLOCK_BYTES + 1))
        .unwrap();
    drop(writer);
    assert!(matches!(read(&out), Err(SnapshotError::Short)));
}

/// Makes the checksum of the head right again.
fn reseal(file: &mut [u8]) {
    let head_end = blocks_start(file);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&file[..12]), &file[16..head_end]);
    file[12..16].copy_from_slice(&sum.to_be_bytes());
}

fn blocks_start(file: &[u8]) -> usize {
    PREFIX_BYTES + u32::from_be_bytes(file[8..12].try_into().unwrap()) as usize
}

#[test]
fn a_newer_version_is_refused_by_name_and_is_no_damage() {
    let mut file = file_of(b"body", 4);
    file[7] = 2;
    let error = read(&file).unwrap_err();
    assert!(matches!(error, SnapshotError::Checksum("head")));
    reseal(&mut file);
    let error = read(&file).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("snapshot version 2, this code reads {SNAPSHOT_VERSION}")
    );
    assert!(matches!(error, SnapshotError::Version { .. }));
}

#[test]
fn lengths_beyond_their_limits_are_refused_before_memory_is_taken() {
    let mut file = file_of(b"body", 4);
    let mut long_head = file.clone();
    let bytes = u32::try_from(SNAPSHOT_HEAD_BYTES_MAX + 1).unwrap();
    long_head[8..12].copy_from_slice(&bytes.to_be_bytes());
    let error = read(&long_head).unwrap_err();
    assert!(matches!(error, SnapshotError::TooLong { what: "head", .. }));
    let start = blocks_start(&file);
    file[start..start + 4].copy_from_slice(&u32::MAX.to_be_bytes());
    let error = read(&file).unwrap_err();
    assert!(matches!(
        error,
        SnapshotError::TooLong { what: "block", .. }
    ));
}

/// A reader that fails once, in the middle.
struct Fails<'a>(&'a [u8]);

impl Read for Fails<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the disk says no"));
        }
        self.0.read(buffer)
    }
}

#[test]
fn an_error_of_the_reader_is_passed_on_and_final() {
    let file = file_of(&body(100), 100);
    let half = Fails(&file[..file.len() / 2]);
    let mut reader = SnapshotReader::new(half).unwrap();
    let mut found = Vec::new();
    let error = reader.read_to_end(&mut found).unwrap_err();
    assert_eq!(error.to_string(), "the disk says no");
    assert!(matches!(SnapshotError::from(error), SnapshotError::Io(_)));
    assert!(found.is_empty());
    assert!(reader.read(&mut [0]).is_err());
}
