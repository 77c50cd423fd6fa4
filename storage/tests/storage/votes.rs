//! An acceptor's folder: what was synced is there after anything, or the folder is refused.
use quorumwire_seed::seed;
use quorumwire_storage::{
    Disk as _, FaultyDisk, MemoryDisk, VoteLog, VotesError, VotesFolder, VotesOwner,
};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::PaxosSlot;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::io::IoSlice;
use std::sync::Arc;

const OWNER: VotesOwner = VotesOwner {
    group: 7,
    acceptors: 3,
    me: 1,
    is_durable: true,
};

fn vote(instance: u64) -> PaxosRecord {
    let value = instance.to_be_bytes();
    let slot = PaxosSlot {
        instance,
        payload_bytes: 8,
        ..PaxosSlot::default()
    };
    PaxosRecord::Slot(Box::default(), Box::new(slot), value.to_vec())
}

/// With votes for these instances, a batch each.
fn folder(disk: &MemoryDisk, batches: u64) -> VoteLog {
    VotesFolder::create(disk, &OWNER, 0).expect("empty");
    let (mut log, records) = open(disk).expect("whole");
    assert!(records.is_empty());
    for instance in 1..=batches {
        log.append(&vote(instance));
        log.sync().expect("memory");
    }
    log
}

fn open(disk: &MemoryDisk) -> Result<(VoteLog, Vec<PaxosRecord>), VotesError> {
    VotesFolder::open(Arc::new(disk.clone()), OWNER)?.votes()
}

fn votes_file(disk: &MemoryDisk) -> String {
    let names = disk.list().expect("memory");
    let name = names.into_iter().find(|name| name.starts_with("votes-"));
    name.expect("a file with votes")
}

#[test]
fn what_was_kept_comes_back() {
    let disk = MemoryDisk::new();
    drop(folder(&disk, 3));
    let (mut log, records) = open(&disk).expect("whole");
    assert_eq!(records, [vote(1), vote(2), vote(3)]);
    assert!(!log.is_to_be_rewritten());
    log.rewrite([vote(3), vote(4)].into_iter()).expect("memory");
    log.append(&vote(5));
    assert!(log.has_unsynced());
    log.sync().expect("memory");
    assert!(!log.has_unsynced());
    drop(log);
    let (_, records) = open(&disk).expect("whole");
    assert_eq!(records, [vote(3), vote(4), vote(5)]);
}

#[test]
fn a_file_that_mostly_says_nothing_any_more_is_to_be_rewritten() {
    let disk = MemoryDisk::new();
    let mut log = folder(&disk, 0);
    let value = vec![7; 1 << 10];
    let mut kept = 0;
    while !log.is_to_be_rewritten() {
        let slot = PaxosSlot {
            payload_bytes: 1 << 10,
            ..PaxosSlot::default()
        };
        let registers = Box::default();
        log.append(&PaxosRecord::Slot(registers, Box::new(slot), value.clone()));
        log.sync().expect("memory");
        kept += 1;
        assert!(kept < 1 << 20, "never");
    }
    assert!(kept > 1 << 13, "too early");
    log.rewrite(std::iter::once(vote(1))).expect("memory");
    assert!(!log.is_to_be_rewritten());
}

#[test]
fn a_folder_that_was_half_made_or_half_removed_can_be_made() {
    let disk = MemoryDisk::new();
    drop(disk.create("votes-0000000000000000").expect("memory"));
    drop(folder(&disk, 2));
    let file = votes_file(&disk);
    for name in [&file[..], "acceptor"] {
        disk.remove(name).expect("memory");
    }
    drop(folder(&disk, 1));
    disk.remove("acceptor").expect("memory");
    let created = VotesFolder::create(&disk, &OWNER, 1);
    assert!(
        matches!(created, Err(VotesError::Exists)),
        "there are votes"
    );
}

/// What a program proposes is anything, such as the bytes of a record.
#[test]
fn a_value_that_looks_like_a_batch_is_none() {
    let disk = MemoryDisk::new();
    let mut log = folder(&disk, 1);
    let mut value = Vec::new();
    PaxosRecord::Synced(u64::MAX).encode(&mut value);
    let slot = PaxosSlot {
        payload_bytes: u16::try_from(value.len()).expect("short"),
        ..PaxosSlot::default()
    };
    let at = disk.open(&votes_file(&disk)).and_then(|it| it.file_bytes());
    log.append(&PaxosRecord::Slot(Box::default(), Box::new(slot), value));
    log.sync().expect("memory");
    drop(log);
    // As after a power cut that has torn this batch: the mark lags.
    disk.remove("mark").expect("memory");
    let file = disk.open(&votes_file(&disk)).expect("memory");
    file.write_at(at.expect("memory"), &[IoSlice::new(&[0xff; 4])])
        .expect("memory");
    let (_, records) = open(&disk).expect("a torn end");
    assert_eq!(records, [vote(1)]);
}

#[test]
fn an_acceptor_begins_a_life_once() {
    let disk = Arc::new(MemoryDisk::new());
    assert!(matches!(
        VotesFolder::open(Arc::<MemoryDisk>::clone(&disk), OWNER),
        Err(VotesError::Nobody)
    ));
    VotesFolder::create(&*disk, &OWNER, 5).expect("empty");
    assert!(matches!(
        VotesFolder::create(&*disk, &OWNER, 9),
        Err(VotesError::Exists)
    ));
    for life in 5..8 {
        let mut folder = VotesFolder::open(Arc::<MemoryDisk>::clone(&disk), OWNER).expect("ours");
        assert_eq!(folder.begin_life().expect("memory"), life);
    }
    for other in [
        VotesOwner { group: 8, ..OWNER },
        VotesOwner { me: 2, ..OWNER },
        VotesOwner {
            acceptors: 5,
            ..OWNER
        },
        VotesOwner {
            is_durable: false,
            ..OWNER
        },
    ] {
        let opened = VotesFolder::open(Arc::<MemoryDisk>::clone(&disk), other);
        assert!(matches!(opened, Err(VotesError::Foreign { .. })));
    }
}

/// Also a test of planted bugs.
pub fn what_was_synced_survives_every_power_cut() {
    let mut chance = ChaCha8Rng::seed_from_u64(seed());
    let (mut torn, mut whole, mut rewritten) = (0, 0, 0);
    for _ in 0..400 {
        let mut disk = MemoryDisk::with_power_cuts();
        VotesFolder::create(&disk, &OWNER, 0).expect("empty");
        // What was appended since it was rewritten, and how much of it is durable.
        let (mut said, mut next) = (0, 1);
        for _ in 0..chance.random_range(1..4) {
            let (mut log, records) = open(&disk).expect("whole after a power cut");
            let first = next - records.len() as u64;
            let found: Vec<_> = (first..next).map(vote).collect();
            let expected: Vec<_> = (1..=records.len() as u64).map(vote).collect();
            assert!(records == expected || records == found, "{records:?}");
            assert!(records.len() as u64 >= said, "{} of {said}", records.len());
            next = records.len() as u64 + 1;
            said = next - 1;
            for _ in 0..chance.random_range(0..6) {
                match chance.random_range(0..6) {
                    0 => {
                        log.rewrite((1..next).map(vote)).expect("memory");
                        said = next - 1;
                        rewritten += 1;
                    }
                    1..4 => {
                        log.append(&vote(next));
                        next += 1;
                    }
                    _ => {
                        log.append(&vote(next));
                        next += 1;
                        log.sync().expect("memory");
                        said = next - 1;
                    }
                }
            }
            // A write that is not synced any more.
            if chance.random() {
                let failing = FaultyDisk::new(disk.clone());
                drop(log);
                let opened = VotesFolder::open(Arc::new(failing.clone()), OWNER);
                let (mut log, _) = opened.and_then(|it| it.votes()).expect("whole");
                next = said + 1;
                failing.faults().syncs_until_failure = Some(0);
                log.append(&vote(next));
                log.append(&vote(next + 1));
                assert!(log.sync().is_err());
                next += 2;
            }
            let before = disk.open(&votes_file(&disk)).and_then(|it| it.file_bytes());
            disk = disk.after_power_cut(&mut |below| chance.random_range(0..below));
            let after = disk.open(&votes_file(&disk)).and_then(|it| it.file_bytes());
            torn += u32::from(after.expect("memory") < before.expect("memory"));
            whole += 1;
        }
    }
    println!(
        "power cuts: {whole}, files that were shorter behind one: {torn}, rewritten: {rewritten}"
    );
    assert!(torn > 0 && whole > 0 && rewritten > 0);
}

#[test]
fn a_power_cut_leaves_what_was_synced() {
    what_was_synced_survives_every_power_cut();
}

/// Each bit, and each length. Also a test of planted bugs.
pub fn every_damage_to_what_was_durable_is_seen() {
    let disk = MemoryDisk::new();
    drop(folder(&disk, 3));
    let name = votes_file(&disk);
    let bytes = disk.open(&name).and_then(|it| it.file_bytes());
    let bytes = bytes.expect("memory");
    for bit in 0..8 * bytes {
        let damaged = FaultyDisk::new(disk.copy());
        damaged.flip_bit(&name, bit).expect("memory");
        let opened = open(damaged.inner());
        assert!(matches!(opened, Err(VotesError::Damaged { .. })), "{bit}");
    }
    for length in 0..bytes {
        let damaged = disk.copy();
        let file = damaged.open(&name).expect("memory");
        file.truncate(length).expect("memory");
        let opened = open(&damaged);
        assert!(
            matches!(opened, Err(VotesError::Damaged { .. })),
            "{length}"
        );
    }
    for name in [&name[..], "acceptor"] {
        let damaged = disk.copy();
        damaged.remove(name).expect("memory");
        assert!(open(&damaged).is_err(), "{name}");
    }
}

#[test]
fn damage_is_no_torn_end() {
    every_damage_to_what_was_durable_is_seen();
}

/// As after a power cut, by which the mark may lag. Also a test of planted bugs.
pub fn what_a_later_batch_covers_is_not_cut_off() {
    let disk = MemoryDisk::new();
    let log = folder(&disk, 2);
    let durable = disk.open(&votes_file(&disk)).and_then(|it| it.file_bytes());
    let durable = durable.expect("memory");
    drop(log);
    let (mut log, _) = open(&disk).expect("whole");
    log.append(&vote(3));
    log.sync().expect("memory");
    drop(log);
    disk.remove("mark").expect("memory");
    let name = votes_file(&disk);
    for bit in 0..8 * durable {
        let damaged = FaultyDisk::new(disk.copy());
        damaged.flip_bit(&name, bit).expect("memory");
        let opened = open(damaged.inner());
        assert!(matches!(opened, Err(VotesError::Damaged { .. })), "{bit}");
    }
    let file = disk.open(&name).expect("memory");
    file.write_at(durable + 40, &[IoSlice::new(&[0xff; 4])])
        .expect("memory");
    let (_, records) = open(&disk).expect("the last batch may be torn");
    assert_eq!(records, [vote(1), vote(2)]);
}

#[test]
fn only_the_last_batch_is_in_doubt() {
    what_a_later_batch_covers_is_not_cut_off();
}
