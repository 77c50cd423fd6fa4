//! A data folder that is not what was written: it opens as it was, or is found damaged, or is refused.

use bytes::{Bytes, BytesMut};
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz};
use quorumwire_interfaces::{GroupId, Incarnation, Index, Lineage, ReplicaId, Term};
use quorumwire_storage::{Disk as _, LogJob, MemoryDisk, OpenFolder, Settings, open};
use quorumwire_wire::{RecordKind, begin_record, finish_record, peer};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

/// Opening a folder takes longer than parsing a request.
const OPENINGS: usize = 1500;
const GROUP: GroupId = GroupId(0);
const LIFE: Incarnation = Incarnation(0xa11e);

fn settings() -> Settings {
    Settings {
        cluster: "fuzz".to_owned(),
        replica: ReplicaId(1),
        group: GROUP,
        new_incarnation: LIFE,
        segment_bytes: 1024,
        promise: Duration::from_millis(20),
        lineage: Lineage::default(),
    }
}

fn entry(index: u64, payload: &[u8]) -> Bytes {
    let mut buffer = BytesMut::new();
    let start = begin_record(
        &mut buffer,
        RecordKind::Command,
        GROUP,
        Term(2),
        Index(index),
    );
    buffer.extend_from_slice(payload);
    finish_record(&mut buffer, start);
    buffer.freeze()
}

type Files = BTreeMap<String, Vec<u8>>;

/// A folder with a snapshot and a log of several segments.
fn sample() -> Files {
    let disk = Arc::new(MemoryDisk::new());
    let OpenFolder::Ready(ready) = open(disk.clone(), settings()).expect("an empty folder") else {
        panic!("an empty folder is not damaged");
    };
    let mut wal = ready.log.into_wal().expect("a log");
    for index in 1..=10 {
        let job = LogJob {
            ticket: index,
            hard_state: Some(peer::HardState {
                term: 2,
                commit_index: index - 1,
                ..peer::HardState::default()
            }),
            begin_behind: None,
            pieces: vec![entry(index, &[7; 200])],
        };
        wal.write(&[job]).expect("memory");
    }
    files_of(&disk)
}

fn files_of(disk: &MemoryDisk) -> Files {
    let names = disk.list().expect("memory");
    names
        .into_iter()
        .map(|name| {
            let file = disk.open(&name).expect("listed");
            let mut bytes =
                vec![0; usize::try_from(file.file_bytes().expect("memory")).expect("small")];
            let mut filled = 0;
            while filled < bytes.len() {
                filled += file
                    .read_at(filled as u64, &mut bytes[filled..])
                    .expect("memory");
            }
            (name, bytes)
        })
        .collect()
}

fn disk_of(files: &Files) -> Arc<MemoryDisk> {
    let disk = MemoryDisk::new();
    for (name, bytes) in files {
        let file = disk.create(name).expect("memory");
        let mut at = 0;
        while at < bytes.len() {
            at += file
                .write_at(at as u64, &[IoSlice::new(&bytes[at..])])
                .expect("memory");
        }
    }
    Arc::new(disk)
}

/// Input says which bytes of which file are others, which file is cut, gone, or in another's place.
fn damage(files: &mut Files, input: &[u8]) {
    for change in input.chunks_exact(5) {
        let names: Vec<String> = files.keys().cloned().collect();
        let Some(name) = names.get(usize::from(change[0]) % names.len().max(1)) else {
            return;
        };
        let file = files.get_mut(name).expect("just listed");
        let place = usize::from(u16::from_be_bytes([change[1], change[2]])) % (file.len() + 1);
        match change[3] % 8 {
            0 => file.truncate(place),
            1 => drop(files.remove(name)),
            2 => {
                let other = &names[usize::from(change[4]) % names.len()];
                let bytes = files[other].clone();
                files.insert(name.clone(), bytes);
            }
            3 => file.splice(place..place, [change[4]; 7]).for_each(drop),
            _ => {
                if let Some(byte) = file.get_mut(place) {
                    *byte ^= change[4].max(1);
                }
            }
        }
    }
}

fn damages() -> [Seed; 7] {
    [
        ("none", Vec::new()),
        ("one-bit", vec![1, 0, 90, 4, 1]),
        ("cut", vec![2, 1, 0, 0, 0]),
        ("all-cut", vec![1, 0, 0, 0, 0, 2, 0, 0, 0, 0]),
        ("gone", vec![0, 0, 0, 1, 0]),
        ("in-anothers-place", vec![2, 0, 0, 2, 1]),
        ("more-than-was-written", vec![3, 2, 0, 3, 0xff]),
    ]
}

#[test]
fn data_folders() {
    let (outcomes, whole) = (Outcomes::default(), sample());
    fuzz!("data_folders", damages(), OPENINGS, 40, |input: &[u8]| {
        let mut files = whole.clone();
        damage(&mut files, input);
        let opened = open(disk_of(&files), settings());
        match opened {
            Ok(OpenFolder::Ready(ready)) => {
                outcomes.count(if ready.fresh {
                    "a new life"
                } else {
                    "as it was"
                });
                for (index, entry) in (1..).zip(&ready.stored.entries) {
                    assert_eq!((entry.index, entry.term), (Index(index), Term(2)));
                }
            }
            Ok(OpenFolder::Damaged(damaged)) => {
                outcomes.count("damaged");
                let again = damaged.start_over(Incarnation(1)).expect("memory");
                assert!(again.fresh && again.stored.entries.is_empty());
            }
            Err(_) => outcomes.count("refused"),
        }
    });
    outcomes.must_be(&["as it was", "damaged"]);
}
