//! Snapshots: written, read, sent piece by piece, received, checked.
use crate::world::{GROUP, body, entry, head, open_ready, rng, settings};
use bytes::Bytes;
use quorumwire_interfaces::{GroupId, Index, Lineage, Term};
use quorumwire_seed::seed;
use quorumwire_storage::{
    Disk, FaultyDisk, LogJob, MemoryDisk, OpenFolder, Part, SnapshotError, Snapshots, open_watched,
};
use quorumwire_wire::{SnapshotHead, SnapshotWriter};
use rand::RngExt;
use std::io::{self, Read, Write};
use std::sync::Arc;

fn snapshots() -> (FaultyDisk<MemoryDisk>, Snapshots) {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    (folder, ready.snapshots)
}

fn create(snapshots: &Snapshots, index: u64) {
    let write = |out: &mut dyn Write| out.write_all(&body(index));
    snapshots.create(&head(index, 2), write).unwrap();
}

fn name(index: u64) -> String {
    format!("snapshot-{index:016x}-{:016x}", 2)
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    let (_, snapshots) = snapshots();
    assert!(snapshots.open(Index(5)).unwrap().is_none());
    create(&snapshots, 5);
    let file = snapshots.open(Index(5)).unwrap().unwrap();
    assert_eq!(file.head(), &head(5, 2));
    let mut found = Vec::new();
    file.body().unwrap().read_to_end(&mut found).unwrap();
    assert_eq!(found, body(5));
}

#[test]
fn a_body_that_fails_leaves_nothing() {
    let (folder, snapshots) = snapshots();
    let result = snapshots.create(&head(5, 2), |out| {
        out.write_all(b"a part")?;
        Err(io::Error::other("the state machine says no"))
    });
    assert!(matches!(result, Err(SnapshotError::Io { .. })));
    assert!(snapshots.open(Index(5)).unwrap().is_none());
    let names = folder.list().unwrap();
    assert!(!names.iter().any(|name| name.contains("snapshot")));
}

#[test]
fn the_newest_two_are_kept_and_one_being_sent_is_read_on() {
    let (folder, snapshots) = snapshots();
    create(&snapshots, 5);
    let (first, total) = snapshots.read_chunk(Index(5), 0, 1000).unwrap().unwrap();
    let mut sent = first.to_vec();
    for index in 6..=9 {
        create(&snapshots, index);
        let (chunk, again) = snapshots
            .read_chunk(Index(5), sent.len() as u64, 100_000)
            .unwrap()
            .unwrap();
        assert_eq!(again, total);
        sent.extend_from_slice(&chunk);
    }
    assert_eq!(sent.len() as u64, total);
    assert!(
        snapshots
            .read_chunk(Index(5), total, 10)
            .unwrap()
            .unwrap()
            .0
            .is_empty()
    );
    assert!(
        snapshots
            .read_chunk(Index(5), u64::MAX, 10)
            .unwrap()
            .unwrap()
            .0
            .is_empty()
    );
    let names = folder.list().unwrap();
    let kept: Vec<_> = names.iter().filter(|n| n.starts_with("snapshot")).collect();
    assert_eq!(kept, [&name(8), &name(9)]);
    assert!(snapshots.read_chunk(Index(6), 0, 10).unwrap().is_none());
}

#[test]
fn a_snapshot_that_arrives_in_pieces_is_the_one_that_was_sent() {
    let seed = seed();
    let mut rng = rng(seed);
    let (_, sender) = snapshots();
    create(&sender, 10);
    for _ in 0..20 {
        let (folder, receiver) = snapshots();
        let mut offset = 0;
        loop {
            let bytes_max = rng.random_range(1..150_000);
            let (chunk, total) = sender
                .read_chunk(Index(10), offset, bytes_max)
                .unwrap()
                .unwrap();
            let next = receiver
                .store_chunk(Index(10), offset, chunk.clone())
                .unwrap();
            assert_eq!(next, offset + chunk.len() as u64);
            // Repeated or early pieces are refused and do no harm.
            for wrong in [next + 1, offset.max(1)] {
                let again = receiver.store_chunk(Index(10), wrong, chunk.clone());
                let Err(SnapshotError::Gap { expected, .. }) = again else {
                    panic!("taken at {wrong}, though {next} is next");
                };
                assert_eq!(expected, next);
            }
            offset = next;
            if offset == total {
                break;
            }
            // It does not count before it is installed, wherever the power goes.
            assert!(receiver.open(Index(10)).unwrap().is_none());
        }
        assert_eq!(receiver.install(Index(10), Term(2)).unwrap(), head(10, 2));
        let ready = open_ready(Arc::new(folder));
        assert_eq!(ready.stored.snapshot, Some(head(10, 2)));
        let file = ready.snapshots.open(Index(10)).unwrap().unwrap();
        let mut found = Vec::new();
        file.body().unwrap().read_to_end(&mut found).unwrap();
        assert_eq!(found, body(10));
    }
}

fn file_of(head: &SnapshotHead, body: &[u8]) -> Vec<u8> {
    let mut writer = SnapshotWriter::new(Vec::new(), head).unwrap();
    writer.write_all(body).unwrap();
    writer.finish().unwrap()
}

fn receive(receiver: &Snapshots, file: Vec<u8>) -> Result<SnapshotHead, SnapshotError> {
    receiver
        .store_chunk(Index(7), 0, Bytes::from(file))
        .unwrap();
    receiver.install(Index(7), Term(2))
}

#[test]
fn a_received_snapshot_of_another_lineage_is_refused_with_both_numbers() {
    let (folder, receiver) = snapshots();
    let (ours, theirs) = (Lineage(0xa), Lineage(0xb));
    for (found, taken) in [(theirs, false), (Lineage::default(), true), (ours, true)] {
        let mut head = head(7, 2);
        head.membership.lineage = found;
        let file = Bytes::from(file_of(&head, &body(7)));
        receiver.store_chunk(Index(7), 0, file).unwrap();
        let installed = receiver.install_watched((Index(7), Term(2)), ours, &mut |_, _| {});
        if taken {
            assert_eq!(installed.unwrap(), head);
            continue;
        }
        let words = installed.unwrap_err().to_string();
        for word in [ours.to_string(), theirs.to_string()] {
            assert!(words.contains(&word), "{words}");
        }
        assert!(
            receiver.open(Index(7)).unwrap().is_none(),
            "nothing of it stays"
        );
    }
    drop(folder);
}

#[test]
pub(crate) fn a_received_snapshot_with_any_wrong_byte_is_refused() {
    let (_, receiver) = snapshots();
    let file = file_of(&head(7, 2), &body(7));
    for at in 0..file.len() {
        let mut wrong = file.clone();
        wrong[at] ^= 1 << (at % 8);
        let refused = receive(&receiver, wrong);
        assert!(matches!(refused, Err(SnapshotError::Damaged(_))), "at {at}");
        let refused = receive(&receiver, file[..at].to_vec());
        assert!(
            matches!(refused, Err(SnapshotError::Damaged(_))),
            "cut at {at}"
        );
    }
    let mut longer = file.clone();
    longer.push(0);
    assert!(matches!(
        receive(&receiver, longer),
        Err(SnapshotError::Damaged(_))
    ));
    assert!(receiver.open(Index(7)).unwrap().is_none());
    receive(&receiver, file).unwrap();
}

#[test]
fn a_whole_snapshot_that_is_another_is_refused() {
    let (_, receiver) = snapshots();
    let other_group = SnapshotHead {
        group: GroupId(GROUP.0 + 1),
        ..head(7, 2)
    };
    for other in [other_group, head(8, 2), head(7, 3)] {
        let refused = receive(&receiver, file_of(&other, b"whatever"));
        assert!(matches!(refused, Err(SnapshotError::Other { .. })));
    }
    assert!(matches!(
        receiver.install(Index(7), Term(2)),
        Err(SnapshotError::Gap { .. })
    ));
}

#[test]
fn a_snapshot_that_has_rotted_is_not_sent() {
    let (folder, snapshots) = snapshots();
    create(&snapshots, 5);
    folder.flip_bit(&name(5), 8 * 270_000).unwrap();
    let refused = snapshots.read_chunk(Index(5), 0, 1000);
    assert!(matches!(refused, Err(SnapshotError::Damaged(_))));
}

#[test]
fn a_snapshot_that_rots_while_it_is_sent_is_not_sent_again() {
    let (folder, snapshots) = snapshots();
    create(&snapshots, 5);
    snapshots.read_chunk(Index(5), 0, 1000).unwrap();
    folder.flip_bit(&name(5), 8 * 270_000).unwrap();
    // A piece that was lost is no reason to check it all.
    snapshots.read_chunk(Index(5), 0, 1000).unwrap();
    // The receiver has all of it, finds the damage, and it begins anew.
    snapshots.read_chunk(Index(5), 1000, 400_000).unwrap();
    let refused = snapshots.read_chunk(Index(5), 0, 1000);
    assert!(matches!(refused, Err(SnapshotError::Damaged(_))));
    let refused = snapshots.read_chunk(Index(5), 1000, 1000);
    assert!(matches!(refused, Err(SnapshotError::Damaged(_))));
}

#[test]
fn two_members_are_sent_two_snapshots_with_one_check_of_each() {
    let (folder, snapshots) = snapshots();
    create(&snapshots, 5);
    create(&snapshots, 10);
    for index in [5, 10] {
        snapshots.read_chunk(Index(index), 0, 1000).unwrap();
        folder.flip_bit(&name(index), 8 * 2_000).unwrap();
    }
    for offset in [1000, 2000] {
        for index in [5, 10] {
            snapshots.read_chunk(Index(index), offset, 1000).unwrap();
        }
    }
    create(&snapshots, 11);
    snapshots.read_chunk(Index(10), 1000, 400_000).unwrap();
    let refused = snapshots.read_chunk(Index(10), 0, 1000);
    assert!(matches!(refused, Err(SnapshotError::Damaged(_))));
}

#[test]
fn a_snapshot_that_is_gone_is_held_open_only_while_it_is_sent() {
    let (_, snapshots) = snapshots();
    create(&snapshots, 5);
    snapshots.read_chunk(Index(5), 0, 1000).unwrap();
    for index in 6..=40 {
        create(&snapshots, index);
        if index % 15 == 0 {
            let chunk = snapshots.read_chunk(Index(5), 1000, 1000).unwrap();
            assert!(chunk.is_some(), "it is being sent, slowly");
        }
    }
    for index in 41..=46 {
        create(&snapshots, index);
    }
    let chunk = snapshots.read_chunk(Index(5), 2000, 1000).unwrap();
    assert!(chunk.is_none(), "nobody has asked for it for long");
}

#[test]
fn the_log_goes_on_behind_an_installed_snapshot() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let job = |index, begin_behind| LogJob {
        ticket: index,
        begin_behind,
        pieces: vec![entry(index, 2, b"entry")],
        ..LogJob::default()
    };
    wal.write(&[job(1, None), job(2, None)]).unwrap();
    receive(&ready.snapshots, file_of(&head(7, 2), &body(7))).unwrap();
    drop(wal);
    // The process ends before the log knows of the snapshot.
    let ready = open_ready(Arc::new(folder.clone()));
    assert!(ready.stored.entries.is_empty());
    let mut wal = ready.log.into_wal().unwrap();
    wal.write(&[job(8, None)]).unwrap();
    drop(wal);
    let ready = open_ready(Arc::new(folder.clone()));
    assert_eq!(ready.stored.entries.len(), 1);
    // A snapshot within the log leaves what is behind it.
    let mut wal = ready.log.into_wal().unwrap();
    wal.write(&[job(9, None), job(10, None)]).unwrap();
    ready.snapshots.create(&head(9, 2), |_| Ok(())).unwrap();
    let behind = LogJob {
        ticket: 11,
        begin_behind: Some((Index(9), Term(2))),
        ..LogJob::default()
    };
    wal.write(&[behind]).unwrap();
    wal.write(&[job(11, None)]).unwrap();
    let stored = open_ready(Arc::new(folder)).stored;
    let indexes: Vec<u64> = stored.entries.iter().map(|entry| entry.index.0).collect();
    assert_eq!(indexes, [10, 11]);
}

#[test]
fn opening_a_folder_says_how_far_it_is() {
    const ENTRIES: u64 = 20;
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    create(&ready.snapshots, 5);
    let mut log = ready.log.into_wal().unwrap();
    for index in 1..=ENTRIES {
        let job = LogJob {
            ticket: index,
            pieces: vec![entry(index, 2, &[7; 600])],
            ..LogJob::default()
        };
        log.write(&[job]).unwrap();
    }
    drop(log);
    let length = |name: &str| folder.open(name).unwrap().file_bytes().unwrap();
    let names = folder.list().unwrap();
    let log_names: Vec<_> = names.iter().filter(|it| it.starts_with("log-")).collect();
    assert!(log_names.len() > 2, "{names:?}");
    let log_bytes = log_names.into_iter().map(|it| length(it)).sum();
    let snapshot_bytes = length(&name(5));

    let mut said = Vec::new();
    let mut watch = |part, read, of| said.push((part, read, of));
    let opened = open_watched(Arc::new(folder.clone()), settings(), &mut watch).unwrap();
    let OpenFolder::Ready(ready) = opened else {
        panic!("it is not damaged");
    };
    assert_eq!(ready.stored.entries.len() as u64, ENTRIES);
    let of = |wanted: Part| {
        let of_part = said.iter().filter(move |it| it.0 == wanted);
        of_part.map(|(_, read, of)| (*read, *of)).collect()
    };
    let (log, snapshot): (Vec<_>, Vec<_>) = (of(Part::Log), of(Part::Snapshot));
    for (figures, total) in [(&log, log_bytes), (&snapshot, snapshot_bytes)] {
        assert!(figures.iter().all(|it| it.1 == total), "{figures:?}");
        assert!(figures.is_sorted(), "{figures:?}");
        assert!(figures.last().is_some_and(|it| it.0 <= total));
    }
    assert!(log.last().unwrap().0 > ENTRIES * 600, "{log:?}");
    assert_eq!(snapshot.last().unwrap().0, snapshot_bytes, "{snapshot:?}");
}
