//! Backup files: every wrong byte and every length is seen, and another version is refused by name.
use quorumwire_interfaces::{GroupId, Incarnation, Index, Lineage, LogTime, ReplicaId, Term};
use quorumwire_wire::{
    BACKUP_VERSION, BackupError, BackupHead, BackupReader, BackupWriter, CommitQuorum, Member,
    MemberRole, Membership, SnapshotError, SnapshotHead, SnapshotReader,
};
use std::io::{Read, Write};

fn head() -> BackupHead {
    BackupHead {
        cluster: "old".to_owned(),
        replica: ReplicaId(5),
        taken_ms: 1337,
        state: SnapshotHead {
            group: GroupId(3),
            last_index: Index(10),
            last_term: Term(2),
            ..SnapshotHead::default()
        },
    }
}

fn file_of(body: &[u8]) -> Vec<u8> {
    let mut writer = BackupWriter::new(Vec::new(), &head()).unwrap();
    writer.write_all(body).unwrap();
    writer.finish().unwrap()
}

fn read(file: &[u8]) -> Result<(BackupHead, Vec<u8>), BackupError> {
    let mut reader = BackupReader::new(file)?;
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    Ok((reader.head().clone(), body))
}

#[test]
fn what_was_written_is_read() {
    let body: Vec<u8> = (0..=255).cycle().take(600_000).collect();
    let (found, read_body) = read(&file_of(&body)).unwrap();
    assert_eq!(found, head());
    assert!(read_body == body);
    let verified = BackupReader::new(&*file_of(&body)).unwrap().verify();
    assert_eq!(verified.unwrap(), 600_000);
}

/// The bytes of `vectors/backups.txt`, which were put together without this code.
#[test]
fn a_backup_file_is_its_vector() {
    let text = include_str!("../../vectors/backups.txt");
    let lines = text.lines().filter(|line| !line.starts_with('['));
    let words = lines.flat_map(|line| line.split('#').next().unwrap().split_whitespace());
    let bytes: Vec<u8> = words
        .map(|word| u8::from_str_radix(word, 16).unwrap())
        .collect();
    let member = Member {
        id: ReplicaId(0),
        incarnation: Incarnation(1),
        peer_address: "a".to_owned(),
        role: MemberRole::Voter,
    };
    let expected = BackupHead {
        state: SnapshotHead {
            group: GroupId(7),
            last_index: Index(100),
            last_term: Term(2),
            log_time: LogTime(1000),
            membership: Membership {
                members: vec![member],
                quorum: CommitQuorum::All,
                lineage: Lineage::default(),
            },
            membership_index: Index(99),
        },
        ..head()
    };
    assert_eq!(
        read(&bytes).unwrap(),
        (expected.clone(), b"hello world".to_vec())
    );
    let mut writer = BackupWriter::new(Vec::new(), &expected).unwrap();
    writer.write_all(b"hello world").unwrap();
    assert_eq!(writer.finish().unwrap(), bytes);
}

#[test]
fn every_wrong_byte_and_every_length_is_seen() {
    let file = file_of(&[7; 500]);
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut wrong = file.clone();
            wrong[at] ^= 1 << bit;
            let error = read(&wrong).expect_err("taken");
            let seen = matches!(error, BackupError::Foreign { .. } | BackupError::Damaged(_));
            assert!(seen, "bit {bit} of {at}: {error}");
        }
        let short = read(&file[..at]).expect_err("taken");
        let seen = matches!(short, BackupError::Damaged(SnapshotError::Short));
        assert!(seen, "{at} bytes: {short}");
    }
    let longer = [file.as_slice(), &[0]].concat();
    let trailing = read(&longer).expect_err("taken");
    assert!(matches!(
        trailing,
        BackupError::Damaged(SnapshotError::Trailing)
    ));
}

#[test]
fn another_version_is_refused_by_name_and_is_no_damage() {
    let mut file = file_of(b"x");
    file[7] += 1;
    let head_bytes = u32::from_be_bytes(file[8..12].try_into().unwrap()) as usize;
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&file[..12]), &file[16..16 + head_bytes]);
    file[12..16].copy_from_slice(&checksum.to_be_bytes());
    let error = read(&file).expect_err("taken");
    assert!(matches!(error, BackupError::Newer { version } if version == BACKUP_VERSION + 1));
    assert_eq!(
        error.to_string(),
        "backup of version 2, this version reads 1"
    );
}

#[test]
fn a_foreign_file_is_no_backup_however_short_it_is() {
    for foreign in [
        "x",
        "QW",
        "#!",
        "hello\n",
        "set greeting 0 0 5\r\nhello\r\n",
    ] {
        let error = read(foreign.as_bytes()).unwrap_err();
        let is_foreign = matches!(error, BackupError::Foreign { .. });
        let is_cut_short = matches!(error, BackupError::Damaged(SnapshotError::Short));
        assert!(
            if foreign == "QW" {
                is_cut_short
            } else {
                is_foreign
            },
            "{foreign:?}: {error}"
        );
    }
}

#[test]
fn a_snapshot_is_no_backup_and_a_backup_is_no_snapshot() {
    let file = file_of(b"x");
    let error = SnapshotReader::new(&*file).expect_err("taken");
    assert!(matches!(error, SnapshotError::Magic { .. }));
    let error = BackupReader::new(&b"QWSN\0\0\0\x01\0\0\0\0\0\0\0\0"[..]).expect_err("taken");
    assert!(matches!(error, BackupError::Foreign { .. }));
}

#[test]
fn a_head_that_makes_no_sense_is_refused() {
    for cluster in [String::new(), "x".repeat(65)] {
        let head = BackupHead { cluster, ..head() };
        let file = BackupWriter::new(Vec::new(), &head).unwrap().finish();
        let error = BackupReader::new(&*file.unwrap()).expect_err("taken");
        assert!(matches!(
            error,
            BackupError::Damaged(SnapshotError::Malformed(_))
        ));
    }
}
