//! A backup that somebody hands in: it is read as it was written, or refused for what is wrong with it, and
//! no byte of what is damaged is given out.

use std::io::{Read as _, Write as _};

use quorumwire_fuzz_tests::{INPUT_BYTES_MAX, ITERATIONS, Outcomes, Seed, fuzz, grown, named};
use quorumwire_interfaces::ReplicaId;
use quorumwire_wire::{
    BACKUP_VERSION, BackupError, BackupHead, BackupReader, BackupWriter, SnapshotError,
};

const MAGIC: &[u8; 4] = b"QWBK";
const VECTORS: &str = include_str!("../../../wire/vectors/backups.txt");

/// A file around any head and blocks, whose checksums are right.
fn sealed(version: u32, head: &[u8], blocks: &[&[u8]]) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short").to_be_bytes();
    let mut file = [&MAGIC[..], &version.to_be_bytes(), &length(head)].concat();
    let mut checksum = crc32c::crc32c_append(crc32c::crc32c(&file), head);
    file.extend_from_slice(&checksum.to_be_bytes());
    file.extend_from_slice(head);
    for block in blocks {
        checksum = crc32c::crc32c_append(checksum, &length(block));
        checksum = crc32c::crc32c_append(checksum, block);
        file.extend_from_slice(&length(block));
        file.extend_from_slice(&checksum.to_be_bytes());
        file.extend_from_slice(block);
    }
    let body_bytes: usize = blocks.iter().map(|it| it.len()).sum();
    let end = [&[0; 4][..], &(body_bytes as u64).to_be_bytes()].concat();
    let checksum = crc32c::crc32c_append(checksum, &end);
    [file, end, checksum.to_be_bytes().to_vec()].concat()
}

/// The vector, and the head in it.
fn sample() -> (Vec<u8>, Vec<u8>) {
    let (_, file) = named(VECTORS, &["hello_world"]).remove(0);
    let head = file[16..16 + 43].to_vec();
    (file, head)
}

fn seeds() -> Vec<Seed> {
    let (file, head) = sample();
    let mut seeds = named(VECTORS, &["hello_world"]);
    let mut damaged = file.clone();
    damaged[70] ^= 1;
    let mut long = sealed(1, &head, &[b"hello"]);
    long[8..12].fill(0xff);
    seeds.extend([
        ("no-body", sealed(1, &head, &[])),
        ("several-blocks", sealed(1, &head, &[b"he", b"l", b"lo"])),
        ("one-bit", damaged),
        ("cut", file[..file.len() - 1].to_vec()),
        ("something-follows", [&file[..], b"!"].concat()),
        ("head-of-four-gigabytes", long),
        ("newer", sealed(BACKUP_VERSION + 1, &head, &[])),
    ]);
    seeds
}

/// What is read of a file with calls for so many bytes; `None`: it is damaged.
fn body_of(mut reader: BackupReader<&[u8]>, step: usize) -> Option<Vec<u8>> {
    let (mut body, mut buffer) = (Vec::new(), vec![0; step]);
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Some(body),
            Ok(bytes) => body.extend_from_slice(&buffer[..bytes]),
            Err(error) => {
                assert!(matches!(BackupError::from(error), BackupError::Damaged(_)));
                assert!(reader.read(&mut buffer).is_err(), "it has forgotten that");
                return None;
            }
        }
    }
}

fn written(head: &BackupHead, body: &[u8]) -> Vec<u8> {
    let mut writer = BackupWriter::new(Vec::new(), head).expect("memory");
    writer.write_all(body).expect("memory");
    writer.finish().expect("memory")
}

/// Looks at a file from all sides; what it is.
fn judged(bytes: &[u8]) -> &'static str {
    let reader = match BackupReader::new(bytes) {
        Ok(reader) => reader,
        Err(BackupError::Foreign { .. }) => {
            assert_ne!(&bytes[..bytes.len().min(4)], &MAGIC[..bytes.len().min(4)]);
            return "foreign";
        }
        Err(BackupError::Newer { version }) => {
            assert_ne!(version, BACKUP_VERSION);
            return "of another version";
        }
        Err(BackupError::Damaged(SnapshotError::TooLong { .. })) => return "too long",
        Err(BackupError::Damaged(_)) => return "damaged head",
        Err(BackupError::Io(error)) => panic!("bytes in memory can be read: {error}"),
    };
    let head = reader.head().clone();
    let Some(body) = body_of(reader, 7) else {
        let again = BackupReader::new(bytes).expect("as before");
        assert!(matches!(again.verify(), Err(BackupError::Damaged(_))));
        return "damaged body";
    };
    assert!(body.len() < bytes.len(), "it gives out more than it has");
    let again = BackupReader::new(bytes).expect("as before");
    assert_eq!(again.verify().expect("as before"), body.len() as u64);
    let file = written(&head, &body);
    let reader = BackupReader::new(&file[..]).expect("what we wrote");
    assert_eq!(*reader.head(), head);
    assert_eq!(body_of(reader, 1), Some(body));
    is_whole_or_nothing(bytes);
    "whole"
}

/// Less of a good file, or more, is not one; nor is less of it another's.
fn is_whole_or_nothing(bytes: &[u8]) {
    let half = bytes.len() / 2;
    for length in [0, 3, 4, 15, 16, half, bytes.len() - 1] {
        let verified = BackupReader::new(&bytes[..length]).and_then(BackupReader::verify);
        let short = matches!(verified, Err(BackupError::Damaged(SnapshotError::Short)));
        assert!(short, "{length} bytes: {verified:?}");
    }
    let longer = [bytes, b"\0"].concat();
    let verified = BackupReader::new(&longer[..]).and_then(BackupReader::verify);
    let trails = matches!(verified, Err(BackupError::Damaged(SnapshotError::Trailing)));
    assert!(trails, "{verified:?}");
}

#[test]
fn backups() {
    let outcomes = Outcomes::default();
    let (file, head) = sample();
    let words: [&[u8]; 8] = [
        &file,
        &file[..16],
        &file[16..59],
        &file[59..],
        b"QWBK",
        b"\0\0\0\x01",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
    ];
    assert_eq!(
        BackupReader::new(&file[..])
            .expect("the vector")
            .head()
            .replica,
        ReplicaId(5)
    );
    fuzz!(
        "backups",
        seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = match input {
                [b'Q', b'W', ..] => input.to_vec(),
                [0x20..0x40, rest @ ..] => sealed(1, rest, &[b"hello"]),
                [step @ 0x40..0x60, rest @ ..] => {
                    let blocks: Vec<&[u8]> = rest.chunks(usize::from(step - 0x3f)).collect();
                    sealed(1, &head, &blocks)
                }
                // The fields of a head, in another order or with other values.
                [place @ 0x60..0x80, rest @ ..] => {
                    let (before, after) = head.split_at(usize::from(place - 0x60));
                    sealed(1, &[before, rest, after].concat(), &[b"hello"])
                }
                input => grown(input, &words).into_owned(),
            };
            outcomes.count(judged(&bytes));
        }
    );
    outcomes.must_be(&[
        "foreign",
        "of another version",
        "too long",
        "damaged head",
        "damaged body",
        "whole",
    ]);
}
