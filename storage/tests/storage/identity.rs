//! Folders that are someone else's, or of a version not known here, are refused by name and stay as
//! they are.
use crate::world::{LIFE, entry, open_ready, settings};
use quorumwire_interfaces::{GroupId, Incarnation, Lineage, ReplicaId};
use quorumwire_storage::{
    Disk, FolderOwner, LogJob, MemoryDisk, OpenError, OpenFolder, Owned, Settings, open,
    open_memory, owner_of, restate_identity,
};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

fn used() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let ready = open_ready(Arc::new(disk.clone()));
    assert!(ready.fresh);
    let job = LogJob {
        ticket: 1,
        pieces: vec![entry(1, 1, b"something")],
        ..LogJob::default()
    };
    ready.log.into_wal().unwrap().write(&[job]).unwrap();
    disk
}

#[test]
fn the_first_life_is_remembered() {
    let disk = used();
    let later = Settings {
        new_incarnation: Incarnation(99),
        ..settings()
    };
    let Ok(OpenFolder::Ready(ready)) = open(Arc::new(disk), later) else {
        panic!("not opened");
    };
    assert_eq!((ready.incarnation, ready.fresh), (LIFE, false));
}

#[test]
fn a_foreign_folder_is_refused_by_name() {
    let disk = Arc::new(used());
    let others = [
        (
            "the folder belongs to cluster testers, expected others",
            Settings {
                cluster: "others".to_owned(),
                ..settings()
            },
        ),
        (
            "the folder belongs to replica 3, expected 4",
            Settings {
                replica: ReplicaId(4),
                ..settings()
            },
        ),
        (
            "the folder belongs to group 7, expected 8",
            Settings {
                group: GroupId(8),
                ..settings()
            },
        ),
    ];
    for (text, other) in others {
        let Err(refused) = open_memory(disk.clone(), &other) else {
            panic!("taken for memory mode");
        };
        assert_eq!(refused.to_string(), text);
        let Err(refused) = open(disk.clone(), other) else {
            panic!("taken");
        };
        assert_eq!(refused.to_string(), text);
    }
    assert_eq!(open_ready(disk).stored.entries.len(), 1);
}

#[test]
fn memory_mode_forgets_no_log() {
    let disk = used();
    let Err(refused) = open_memory(Arc::new(disk.clone()), &settings()) else {
        panic!("taken for memory mode");
    };
    assert!(matches!(refused, OpenError::HoldsData(_)), "{refused}");
    let ready = open_ready(Arc::new(disk));
    assert_eq!((ready.incarnation, ready.stored.entries.len()), (LIFE, 1));
}

#[test]
fn whose_folder_it_is_can_be_asked() {
    assert_eq!(owner_of(&MemoryDisk::new()).unwrap(), Owned::ByNobody);
    let disk = used();
    let owner = FolderOwner {
        cluster: settings().cluster,
        replica: settings().replica,
        group: settings().group,
        incarnation: LIFE,
        lineage: Lineage::default(),
    };
    assert_eq!(owner_of(&disk).unwrap(), Owned::By(owner));
    let identity = disk.open("identity").unwrap();
    identity.write_at(20, &[IoSlice::new(b"?")]).unwrap();
    let Owned::Damaged(what) = owner_of(&disk).unwrap() else {
        panic!("trusted");
    };
    assert_eq!(what, "identity: its checksum does not match");
}

/// Changes a big-endian word of a file and makes the checksum over `covered` right again.
fn patch(
    disk: &MemoryDisk,
    name: &str,
    word_at: u64,
    checksum_at: u64,
    covered: &[(usize, usize)],
) {
    let file = disk.open(name).unwrap();
    file.write_at(word_at, &[IoSlice::new(&9_u32.to_be_bytes())])
        .unwrap();
    let mut content = vec![0; usize::try_from(file.file_bytes().unwrap()).unwrap()];
    file.read_at(0, &mut content).unwrap();
    let checksum = covered.iter().fold(0, |sum, &(start, end)| {
        crc32c::crc32c_append(sum, &content[start..end.min(content.len())])
    });
    file.write_at(checksum_at, &[IoSlice::new(&checksum.to_be_bytes())])
        .unwrap();
}

fn refused(disk: MemoryDisk) -> String {
    match open(Arc::new(disk), settings()) {
        Err(error @ OpenError::Newer { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(OpenFolder::Ready(_)) => panic!("opened"),
        Ok(OpenFolder::Damaged(folder)) => panic!("taken for damage: {}", folder.what()),
    }
}

#[test]
fn what_a_newer_version_wrote_is_refused_by_name() {
    let folder = used();
    patch(&folder, "identity", 4, 12, &[(0, 12), (16, usize::MAX)]);
    assert_eq!(
        refused(folder),
        "data folder of version 9, this version reads 1"
    );
    let segment = used();
    patch(&segment, "log-0000000000000001", 8, 0, &[(4, 64)]);
    assert_eq!(
        refused(segment),
        "log segment of version 9, this version reads 1"
    );
    // The first record behind the segment's header; the fourth word begins with version and kind.
    let record = used();
    let file = record.open("log-0000000000000001").unwrap();
    let mut header = [0; 32];
    file.read_at(64, &mut header).unwrap();
    header[8] = 2;
    let checksum = crc32c::crc32c(&header[4..]);
    header[..4].copy_from_slice(&checksum.to_be_bytes());
    file.write_at(64, &[IoSlice::new(&header)]).unwrap();
    assert_eq!(
        refused(record),
        "log record of version 2, this version reads 1"
    );
}

#[test]
fn a_lost_identity_is_damage_once_there_was_something_to_lose() {
    let disk = used();
    disk.remove("identity").unwrap();
    let Ok(OpenFolder::Damaged(folder)) = open(Arc::new(disk), settings()) else {
        panic!("opened");
    };
    assert_eq!(folder.incarnation(), None);
    let ready = folder.start_over(Incarnation(5)).unwrap();
    assert!(ready.fresh && ready.incarnation == Incarnation(5));
}

#[test]
fn the_log_of_another_life_is_damage() {
    let (old, new) = (used(), MemoryDisk::new());
    let later = Settings {
        new_incarnation: Incarnation(0x1234),
        ..settings()
    };
    assert!(open(Arc::new(new.clone()), later).is_ok());
    let mut content = vec![0; 2048];
    let name = "log-0000000000000001";
    old.open(name).unwrap().read_at(0, &mut content).unwrap();
    let file = new.open(name).unwrap();
    file.write_at(0, &[IoSlice::new(&content)]).unwrap();
    new.remove("mark").unwrap();
    let opened = open(Arc::new(new), settings());
    assert!(matches!(opened, Ok(OpenFolder::Damaged(_))));
}

fn promising(ms: u64) -> Settings {
    Settings {
        promise: Duration::from_millis(ms),
        ..settings()
    }
}

/// How long a promise may be in force after a start with this one.
fn promised(disk: &Arc<MemoryDisk>, ms: u64) -> u128 {
    let Ok(OpenFolder::Ready(ready)) = open(disk.clone(), promising(ms)) else {
        panic!("not opened");
    };
    ready.promised.as_millis()
}

#[test]
fn the_longest_promise_is_remembered_until_it_is_said_to_have_passed() {
    let disk = Arc::new(used());
    assert_eq!(promised(&disk, 20), 20);
    assert_eq!(promised(&disk, 100), 100);
    // Also if the process that was to wait for it is cut short, however often.
    assert_eq!(promised(&disk, 5), 100);
    assert_eq!(promised(&disk, 50), 100);
    restate_identity(&*disk, &promising(50), (LIFE, Lineage::default())).unwrap();
    assert_eq!(promised(&disk, 5), 50);
    let ready = open_ready(disk);
    assert_eq!((ready.incarnation, ready.fresh), (LIFE, false));
    assert_eq!(ready.stored.entries.len(), 1);
}

#[test]
fn a_longer_promise_is_on_disk_before_the_folder_is_ready() {
    let disk = Arc::new(MemoryDisk::with_power_cuts());
    assert_eq!(promised(&disk, 20), 20);
    assert_eq!(promised(&disk, 100), 100);
    let after = Arc::new(disk.after_power_cut(&mut |_| 0));
    assert_eq!(promised(&after, 5), 100);
}

#[test]
fn a_life_in_memory_waits_for_nothing() {
    let disk = Arc::new(MemoryDisk::new());
    for ms in [100, 20] {
        let ready = open_memory(disk.clone(), &promising(ms)).unwrap();
        assert_eq!(ready.promised, Duration::from_millis(ms));
    }
}

const LINEAGE: Lineage = Lineage(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

/// What the folder is of, for whoever opens it and for whoever only asks.
fn lineage_in(disk: &Arc<MemoryDisk>) -> Lineage {
    let Ok(Owned::By(owner)) = owner_of(&**disk) else {
        panic!("nobody's");
    };
    assert_eq!(open_ready(disk.clone()).lineage, owner.lineage);
    owner.lineage
}

/// An identity file as it was written before there were lineages, typed by hand.
#[rustfmt::skip]
const OLD_IDENTITY: &[u8] = &[
    0x51, 0x57, 0x49, 0x44, // QWID
    0, 0, 0, 1, // version of the folder
    0, 0, 0, 26, // bytes of the message
    0x30, 0x4a, 0x7f, 0xbd, // CRC32C
    0x0a, 7, b't', b'e', b's', b't', b'e', b'r', b's', // 1 cluster
    0x10, 3, // 2 replica
    0x19, 0x1e, 0xa1, 0, 0, 0, 0, 0, 0, // 3 incarnation
    0x20, 7, // 4 group
    0x28, 0xa0, 0x9c, 0x01, // 5 promise_us
];

#[test]
fn a_folder_from_before_lineages_opens_and_is_given_one() {
    let disk = Arc::new(used());
    let file = disk.create("identity").unwrap();
    file.write_at(0, &[IoSlice::new(OLD_IDENTITY)]).unwrap();
    assert_eq!(lineage_in(&disk), Lineage::default());
    let ready = open_ready(disk.clone());
    assert_eq!((ready.incarnation, ready.fresh), (LIFE, false));
    assert_eq!(ready.stored.entries.len(), 1);
    restate_identity(&*disk, &settings(), (LIFE, LINEAGE)).unwrap();
    assert_eq!(lineage_in(&disk), LINEAGE);
}

#[test]
fn a_lineage_outlives_lives_and_promises() {
    let disk = Arc::new(MemoryDisk::with_power_cuts());
    drop(open_ready(disk.clone()));
    restate_identity(&*disk, &settings(), (LIFE, LINEAGE)).unwrap();
    let disk = Arc::new(disk.after_power_cut(&mut |_| 0));
    // A longer promise is written into it, a damaged log is put aside.
    assert_eq!(promised(&disk, 100), 100);
    assert_eq!(lineage_in(&disk), LINEAGE);
    disk.remove("log-0000000000000001").unwrap();
    let Ok(OpenFolder::Damaged(folder)) = open(disk.clone(), settings()) else {
        panic!("opened");
    };
    assert_eq!(folder.start_over(Incarnation(5)).unwrap().lineage, LINEAGE);
    assert_eq!(lineage_in(&disk), LINEAGE);

    let disk = Arc::new(MemoryDisk::new());
    let later = settings();
    assert_eq!(
        open_memory(disk.clone(), &later).unwrap().lineage,
        Lineage::default()
    );
    restate_identity(&*disk, &settings(), (LIFE, LINEAGE)).unwrap();
    assert_eq!(open_memory(disk, &later).unwrap().lineage, LINEAGE);
}
