//! Bytes that had been synced and are not what they were: flipped, zeroed, cut off, missing, in
//! another's place. Nothing wrong is ever served; what was acknowledged is never silently dropped.
use crate::world::{
    LIFE, Model, SMALL_SEGMENT, body, entry, hard_state, head, open_ready, settings,
};
use quorumwire_interfaces::{Incarnation, Index};
use quorumwire_storage::{
    Disk, FaultyDisk, FolderContents, LogJob, MemoryDisk, OpenError, OpenFolder, Ready, Settings,
    Wal, give_up, open,
};
use quorumwire_wire::{RECORD_HEADER_BYTES, Record, RecordKind};
use std::collections::BTreeMap;
use std::io::{IoSlice, Read, Write};
use std::sync::Arc;

type Folder = FaultyDisk<MemoryDisk>;

/// A folder's files by name, to make damaged copies of it.
type Files = BTreeMap<String, Vec<u8>>;

/// A folder with a snapshot that the log needs, three segments, and entries that were replaced.
struct Sample {
    files: Files,
    model: Model,
    /// What was durable before the last batch, which is one of several records.
    before_last: Model,
    last_batch_starts: u64,
    log_ends: u64,
}

fn sample() -> Sample {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut model = Model::default();
    let write = |wal: &mut Wal, model: &mut Model, job: LogJob| {
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
    };
    for index in 1..=12 {
        let payload = vec![u8::try_from(index).unwrap(); 250];
        write(&mut wal, &mut model, job(2, index, &[&payload]));
    }
    ready
        .snapshots
        .create(&head(4, 2), |out| out.write_all(&body(4)))
        .unwrap();
    model.take_snapshot((4, 2));
    assert!(wal.compact(Index(4)).unwrap() > 0);
    write(&mut wal, &mut model, job(3, 11, &[b"replaced", b"too"]));
    // Two batches of equal length, so that one can take the other's place.
    write(&mut wal, &mut model, job(3, 13, &[&[1; 100]]));
    write(&mut wal, &mut model, job(3, 14, &[&[2; 100]]));
    let (before_last, last_batch_starts) = (model.clone(), log_end(&folder));
    write(
        &mut wal,
        &mut model,
        job(4, 15, &[b"one", b"two", &[3; 80]]),
    );
    assert_eq!(wal.segment_count(), 3);
    Sample {
        log_ends: log_end(&folder),
        files: files_of(folder.inner()),
        model,
        before_last,
        last_batch_starts,
    }
}

fn job(term: u64, first: u64, payloads: &[&[u8]]) -> LogJob {
    LogJob {
        ticket: first,
        hard_state: Some(hard_state(term, Some(1), first - 1)),
        begin_behind: None,
        pieces: (first..)
            .zip(payloads)
            .map(|(index, payload)| entry(index, term, payload))
            .collect(),
    }
}

fn files_of(disk: &dyn Disk) -> Files {
    let names = disk.list().unwrap();
    let read = |name: &String| {
        let file = disk.open(name).unwrap();
        let mut content = vec![0; usize::try_from(file.file_bytes().unwrap()).unwrap()];
        let read = file.read_at(0, &mut content).unwrap();
        assert_eq!(read, content.len());
        content
    };
    names
        .iter()
        .map(|name| (name.clone(), read(name)))
        .collect()
}

fn folder_of(files: &Files) -> Folder {
    let disk = MemoryDisk::new();
    for (name, content) in files {
        let file = disk.create(name).unwrap();
        let written = file.write_at(0, &[IoSlice::new(content)]).unwrap();
        assert_eq!(written, content.len());
    }
    FaultyDisk::new(disk)
}

/// Where the last segment's last record ends.
fn log_end(folder: &Folder) -> u64 {
    let files = files_of(folder.inner());
    let mut last = files
        .range("log-".to_owned()..)
        .filter(|f| f.0.starts_with("log-"));
    let content = last.next_back().unwrap().1;
    let end = content.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    u64::try_from(end).unwrap()
}

fn segments(files: &Files) -> Vec<String> {
    let names = files.keys().filter(|name| name.starts_with("log-"));
    names.cloned().collect()
}

#[derive(Debug, Eq, PartialEq)]
enum Seen {
    /// Everything is there.
    Whole,
    /// Everything but (a part of) the last batch is there.
    Beginning,
    Damaged,
}

/// Opens the folder; panics if anything is served that is not what was written.
fn see(sample: &Sample, files: &Files, what: &str) -> Seen {
    match open(Arc::new(folder_of(files)), settings()) {
        Ok(OpenFolder::Ready(ready)) => {
            check_snapshot(&ready, 4, what);
            if sample.model.is(&ready.stored).is_ok() {
                return Seen::Whole;
            }
            let beginning = is_beginning(sample, &ready.stored);
            beginning.unwrap_or_else(|problem| panic!("{what}: {problem}"));
            Seen::Beginning
        }
        Ok(OpenFolder::Damaged(folder)) => {
            assert!(!folder.what().is_empty());
            Seen::Damaged
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

fn is_beginning(sample: &Sample, stored: &FolderContents) -> Result<(), String> {
    let mut model = sample.before_last.clone();
    let mut problem = model.is(stored);
    let last = job(4, 15, &[b"one", b"two", &[3; 80]]);
    for step in crate::world::steps(&last) {
        if problem.is_ok() {
            break;
        }
        step.apply(&mut model);
        problem = model.is(stored);
    }
    problem
}

fn check_snapshot(ready: &Ready, index: u64, what: &str) {
    let file = ready.snapshots.open(Index(index)).unwrap().expect(what);
    let mut found = Vec::new();
    file.body().unwrap().read_to_end(&mut found).unwrap();
    assert!(found == body(index), "{what}");
}

#[test]
fn every_flipped_bit_is_seen() {
    let sample = sample();
    let last = segments(&sample.files).pop().unwrap();
    let mut seen_counts = [0; 3];
    for (name, content) in &sample.files {
        for at in 0..content.len() {
            let mut files = sample.files.clone();
            files.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
            let what = format!("{name} at {at}");
            let seen = see(&sample, &files, &what);
            let expected = match name.as_str() {
                // It only helps to tell a torn end from damage.
                "mark" => Seen::Whole,
                // Behind the end there is nothing to damage; it looks like a write cut short.
                _ if *name == last && at as u64 >= sample.log_ends => Seen::Whole,
                _ => Seen::Damaged,
            };
            assert_eq!(seen, expected, "{what}");
            seen_counts[usize::from(seen == Seen::Damaged)] += 1;
        }
    }
    assert!(
        seen_counts[0] > 100 && seen_counts[1] > 2000,
        "{seen_counts:?}"
    );
}

#[test]
pub(crate) fn without_the_mark_only_the_last_batch_is_in_doubt() {
    let mut sample = sample();
    sample.files.remove("mark");
    assert_eq!(see(&sample, &sample.files, "as it was"), Seen::Whole);
    let last = segments(&sample.files).pop().unwrap();
    let mut beginnings = 0;
    for (name, content) in &sample.files {
        for at in 0..content.len() {
            let mut files = sample.files.clone();
            files.get_mut(name).unwrap()[at] ^= 0x10;
            let what = format!("{name} at {at}");
            let expected = match (*name == last, at as u64) {
                (true, at) if at >= sample.log_ends => Seen::Whole,
                (true, at) if at >= sample.last_batch_starts => Seen::Beginning,
                (true | false, _) => Seen::Damaged,
            };
            beginnings += usize::from(expected == Seen::Beginning);
            assert_eq!(see(&sample, &files, &what), expected, "{what}");
        }
    }
    assert!(beginnings > 200);
}

#[test]
fn zeroed_sectors_are_seen() {
    let sample = sample();
    let mut count = 0;
    for name in segments(&sample.files) {
        for start in (0..sample.files[&name].len()).step_by(512) {
            let mut files = sample.files.clone();
            let content = files.get_mut(&name).unwrap();
            let end = content.len().min(start + 512);
            if content[start..end].iter().all(|byte| *byte == 0) {
                continue;
            }
            content[start..end].fill(0);
            let what = format!("{name} at {start}");
            assert_eq!(see(&sample, &files, &what), Seen::Damaged, "{what}");
            count += 1;
        }
    }
    assert!(count >= 8);
}

#[test]
pub(crate) fn files_cut_short_are_seen() {
    let sample = sample();
    let last = segments(&sample.files).pop().unwrap();
    for (name, content) in &sample.files {
        for length in 0..content.len() {
            let mut files = sample.files.clone();
            files.get_mut(name).unwrap().truncate(length);
            let what = format!("{name} cut to {length}");
            let harmless = name == "mark" || (*name == last && length as u64 >= sample.log_ends);
            let expected = if harmless { Seen::Whole } else { Seen::Damaged };
            assert_eq!(see(&sample, &files, &what), expected, "{what}");
        }
    }
}

#[test]
fn missing_files_are_seen() {
    let sample = sample();
    for name in sample.files.keys() {
        let mut files = sample.files.clone();
        files.remove(name);
        let expected = if name == "mark" {
            Seen::Whole
        } else {
            Seen::Damaged
        };
        assert_eq!(see(&sample, &files, name), expected, "{name}");
    }
}

#[test]
fn whole_records_in_anothers_place_are_seen() {
    let sample = sample();
    let name = segments(&sample.files).pop().unwrap();
    let content = &sample.files[&name];
    // The two batches of equal length: entries 13 and 14 of 132 bytes, found by their payloads.
    let find = |byte: u8| {
        let start = content
            .windows(100)
            .position(|window| window == [byte; 100]);
        start.unwrap() - 32
    };
    let (first, second) = (find(1), find(2));
    for (from, to) in [(first, second), (second, first)] {
        for with_mark in [true, false] {
            let mut files = sample.files.clone();
            let copy = content[from..from + 132].to_vec();
            files.get_mut(&name).unwrap()[to..to + 132].copy_from_slice(&copy);
            if !with_mark {
                files.remove("mark");
            }
            assert_eq!(see(&sample, &files, "a copy"), Seen::Damaged);
        }
    }
}

/// A log whose second record (same index, same term, same length) stands also where the first was,
/// with a batch of so many bytes behind them, and without the mark if there is one.
fn first_record_in_place_of_second(more_bytes: Option<usize>) -> (usize, OpenFolder) {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let mut wal = open_ready(Arc::new(folder.clone())).log.into_wal().unwrap();
    let write = |wal: &mut Wal, index, payload: &[u8]| {
        let job = LogJob {
            ticket: index,
            pieces: vec![entry(index, 1, payload)],
            ..LogJob::default()
        };
        wal.write(&[job]).unwrap();
    };
    write(&mut wal, 1, &[1; 40]);
    let first_end = usize::try_from(log_end(&folder)).unwrap();
    write(&mut wal, 1, &[2; 40]);
    let second_end = usize::try_from(log_end(&folder)).unwrap();
    if let Some(bytes) = more_bytes {
        write(&mut wal, 2, &vec![3; bytes]);
    }
    let mut files = files_of(folder.inner());
    if more_bytes.is_some() {
        files.remove("mark");
    }
    let first_segment = segments(&files).remove(0);
    let content = files.get_mut(&first_segment).unwrap();
    let copy = content[first_end - 72..first_end].to_vec();
    content[second_end - 72..second_end].copy_from_slice(&copy);
    let opened = open(Arc::new(folder_of(&files)), settings());
    (wal.segment_count(), opened.unwrap())
}

#[test]
fn a_record_in_place_of_one_just_like_it_is_seen_by_its_chain() {
    // By the chain in the mark, in the next batch, and in the next segment.
    for (more_bytes, segments) in [(None, 1), (Some(10), 1), (Some(1800), 2)] {
        let (found, opened) = first_record_in_place_of_second(more_bytes);
        assert_eq!(found, segments);
        assert!(matches!(opened, OpenFolder::Damaged(_)), "{more_bytes:?}");
    }
}

/// What a start reads of a log at a time when it looks for later batches.
const READ_BYTES: usize = 4 << 20;
const BLOCK_BYTES: usize = 4096;
/// What every batch begins with: a record that says what was synced before.
const DURABLE_RECORD_BYTES: usize = RECORD_HEADER_BYTES + 44;

/// Three batches, the second so long that the third begins where `place` says, given where the second does,
/// with a record whose byte `zero_at` is zero. Also where the second begins and ends.
fn third_batch_at(
    place: impl Fn(usize) -> usize,
    zero_at: usize,
) -> (Files, String, std::ops::Range<usize>) {
    let settings = || Settings {
        segment_bytes: (READ_BYTES + (128 << 10)) as u64,
        ..settings()
    };
    let long = vec![2; 700 << 10];
    let mut length = 400 << 10;
    for fill in 0_u32..20_000 {
        let folder = FaultyDisk::new(MemoryDisk::new());
        let opened = open(Arc::new(folder.clone()), settings()).unwrap();
        let OpenFolder::Ready(ready) = opened else {
            panic!("a new folder is damaged");
        };
        let mut wal = ready.log.into_wal().unwrap();
        wal.write(&[job(1, 1, &[&[1; 40]])]).unwrap();
        let begin = usize::try_from(log_end(&folder)).unwrap();
        let mut last = vec![2; length];
        last[..4].copy_from_slice(&fill.to_be_bytes());
        wal.write(&[job(1, 2, &[&long, &long, &long, &long, &long, &last])])
            .unwrap();
        let end = usize::try_from(log_end(&folder)).unwrap();
        wal.write(&[job(1, 3, &[&[3; 40]])]).unwrap();
        let files = files_of(folder.inner());
        let name = segments(&files).remove(0);
        let target = place(begin);
        if end == target && files[&name][end + zero_at] == 0 {
            return (files, name, begin..end);
        }
        length = (length + target).saturating_sub(end);
    }
    panic!("that byte is never zero");
}

/// The first byte behind what a start reads at once from here on.
fn chunk_end(begin: usize) -> usize {
    (begin + READ_BYTES) / BLOCK_BYTES * BLOCK_BYTES
}

/// What stands behind a part of the log whose blocks were never written is found all the same.
#[test]
fn a_later_batch_behind_unwritten_blocks_is_seen() {
    let place = |begin| chunk_end(begin) + 3 * BLOCK_BYTES - 1;
    let (mut files, name, second) = third_batch_at(place, 0);
    files.remove("mark");
    files.get_mut(&name).unwrap()[second].fill(0);
    let opened = open(Arc::new(folder_of(&files)), settings()).unwrap();
    assert!(matches!(opened, OpenFolder::Damaged(_)));
}

/// The same for one of which nothing was written but its beginning, up to a block that never was.
#[test]
fn a_later_batch_that_ends_in_an_unwritten_block_is_seen() {
    let place = |begin| chunk_end(begin) - (DURABLE_RECORD_BYTES - 1);
    let (mut files, name, second) = third_batch_at(place, DURABLE_RECORD_BYTES - 1);
    files.remove("mark");
    let log = files.get_mut(&name).unwrap();
    log[second.end + DURABLE_RECORD_BYTES..].fill(0);
    log[second].fill(0);
    let opened = open(Arc::new(folder_of(&files)), settings()).unwrap();
    assert!(matches!(opened, OpenFolder::Damaged(_)));
}

/// A start takes as long as what the log holds, not as long as the room set aside for more.
#[test]
fn what_was_only_set_aside_is_not_read() {
    const SEGMENT_BYTES: u64 = 64 << 20;
    let settings = || Settings {
        segment_bytes: SEGMENT_BYTES,
        ..settings()
    };
    let folder = FaultyDisk::new(MemoryDisk::new());
    for first in [true, false] {
        folder.faults().bytes_read = 0;
        let opened = open(Arc::new(folder.clone()), settings()).unwrap();
        let OpenFolder::Ready(ready) = opened else {
            panic!("a sound folder is damaged");
        };
        assert_eq!(ready.stored.entries.len(), usize::from(!first));
        if first {
            let mut wal = ready.log.into_wal().unwrap();
            wal.write(&[job(1, 1, &[&[1; 40]])]).unwrap();
        }
    }
    let read = folder.faults().bytes_read;
    assert!(read < SEGMENT_BYTES / 4, "{read} bytes were read");
}

/// A segment whose Base is another, with every checksum and chain made to fit.
fn with_other_base(segment: &[u8]) -> Vec<u8> {
    let mut forged = segment.to_vec();
    let (mut at, mut chain) = (64, 0);
    while let Ok(record) = Record::decode(&segment[at..]) {
        let end = at + record.record_bytes;
        match record.kind {
            RecordKind::Base => forged[at + 23] ^= 1,
            RecordKind::Durable => {
                forged[end - 4..end].copy_from_slice(&u32::to_be_bytes(chain));
            }
            RecordKind::HardState
            | RecordKind::NoOp
            | RecordKind::Command
            | RecordKind::Tick
            | RecordKind::Membership
            | RecordKind::SessionCommand
            | RecordKind::Fragment
            | RecordKind::Bundle => {}
        }
        let checksum = crc32c::crc32c(&forged[at + 4..end]).to_be_bytes();
        forged[at..at + 4].copy_from_slice(&checksum);
        chain = crc32c::crc32c_append(chain, &checksum);
        at = end;
    }
    forged
}

#[test]
fn a_segment_that_does_not_go_on_where_the_one_before_ends_is_seen() {
    let mut sample = sample();
    sample.files.remove("mark");
    let last = segments(&sample.files).pop().unwrap();
    let mut files = sample.files.clone();
    let content = files.get_mut(&last).unwrap();
    *content = with_other_base(content);
    assert_ne!(files, sample.files);
    assert_eq!(see(&sample, &files, "another base"), Seen::Damaged);
}

#[test]
fn writes_that_land_elsewhere_are_seen() {
    for writes in 0..6 {
        for astray_bytes in [1, 32, 132, 208, 512, SMALL_SEGMENT] {
            let folder = FaultyDisk::new(MemoryDisk::new());
            let mut wal = open_ready(Arc::new(folder.clone())).log.into_wal().unwrap();
            wal.write(&[job(1, 1, &[&[9; 100]])]).unwrap();
            // Two writes for each batch; the second is the mark.
            folder.faults().misdirect = Some((2 * writes, astray_bytes));
            for index in 2..8 {
                wal.write(&[job(1, index, &[&[9; 100]])]).unwrap();
            }
            assert_eq!(folder.faults().misdirect, None);
            let opened = open(Arc::new(folder), settings());
            let Ok(OpenFolder::Damaged(_)) = opened else {
                panic!("write {writes} astray by {astray_bytes}");
            };
        }
    }
}

#[test]
fn unreadable_sectors_are_damage_and_other_errors_are_not() {
    let sample = sample();
    let mut damaged = 0;
    for reads in 0..60 {
        let folder = folder_of(&sample.files);
        folder.faults().reads_until_failure = Some(reads);
        match open(Arc::new(folder.clone()), settings()) {
            Ok(OpenFolder::Damaged(_)) => damaged += 1,
            Ok(OpenFolder::Ready(ready)) => sample.model.is(&ready.stored).unwrap(),
            Err(OpenError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(damaged >= 3, "{damaged}");
}

/// A mark that cannot be read for the moment is there all the same: without it a log cut short behind what
/// was synced would pass for one whose end was never synced.
#[test]
fn what_cannot_be_had_for_now_hides_no_damage() {
    let sample = sample();
    let mut files = sample.files.clone();
    let last = segments(&files).pop().unwrap();
    let kept = usize::try_from(sample.last_batch_starts).unwrap();
    files.get_mut(&last).unwrap().truncate(kept);
    let (mut refused, mut damaged) = (0, 0);
    for operations in 0..200 {
        for no_handle in [false, true] {
            let folder = folder_of(&files);
            if no_handle {
                folder.faults().opens_until_no_handle = Some(operations);
            } else {
                folder.faults().operations_until_no_memory = Some(operations);
            }
            match open(Arc::new(folder.clone()), settings()) {
                Ok(OpenFolder::Damaged(_)) => damaged += 1,
                Ok(OpenFolder::Ready(_)) => {
                    panic!("entries are gone after {operations} operations")
                }
                Err(OpenError::Io { .. }) => {
                    assert!(folder.faults().starved > 0);
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(refused >= 10 && damaged >= 10, "{refused} {damaged}");
}

#[test]
fn a_damaged_snapshot_that_the_log_does_not_need_is_put_aside() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    for index in 1..=10 {
        wal.write(&[job(2, index, &[b"something"])]).unwrap();
    }
    for index in [4, 8] {
        let write = |out: &mut dyn Write| out.write_all(&body(index));
        ready.snapshots.create(&head(index, 2), write).unwrap();
    }
    drop((wal, ready.snapshots));
    let name = |index: u64| format!("snapshot-{index:016x}-{:016x}", 2);
    folder.flip_bit(&name(8), 3000).unwrap();
    let ready = open_ready(Arc::new(folder.clone()));
    let found = ready.stored.snapshot.as_ref().map(|head| head.last_index.0);
    assert_eq!((found, ready.stored.entries.len()), (Some(4), 10));
    assert_eq!(ready.notes.len(), 1);
    let names = folder.list().unwrap();
    assert!(names.contains(&format!("damaged-{}", name(8))));
    drop(ready);
    folder.flip_bit(&name(4), 3000).unwrap();
    let ready = open_ready(Arc::new(folder));
    assert_eq!(
        (ready.stored.snapshot, ready.stored.entries.len()),
        (None, 10)
    );
}

#[test]
fn a_life_begun_over_remembers_nothing_and_goes_on() {
    let sample = sample();
    let last = segments(&sample.files).pop().unwrap();
    // However far it gets before the power goes, nothing of the old life is ever served again.
    let (mut changes, mut finished) = (0, false);
    while !finished {
        let mut files = sample.files.clone();
        files.get_mut(&last).unwrap()[200] ^= 1;
        let folder = folder_of(&files);
        let Ok(OpenFolder::Damaged(damaged)) = open(Arc::new(folder.clone()), settings()) else {
            panic!("damage went unseen");
        };
        folder.faults().changes_until_death = Some(changes);
        assert_eq!(damaged.incarnation(), Some(LIFE));
        finished = damaged.start_over(Incarnation(0xb0b)).is_ok();
        folder.faults().changes_until_death = None;
        match open(Arc::new(folder.clone()), settings()) {
            Ok(OpenFolder::Damaged(again)) => {
                assert!(!finished, "{}", again.what());
                let ready = again.start_over(Incarnation(0xb0b0)).unwrap();
                assert!(ready.fresh);
            }
            Ok(OpenFolder::Ready(ready)) => {
                assert_eq!(ready.incarnation, Incarnation(0xb0b));
                assert!(ready.stored.entries.is_empty() && ready.stored.snapshot.is_none());
                let mut wal = ready.log.into_wal().unwrap();
                wal.write(&[job(1, 1, &[b"new"])]).unwrap();
                let ready = open_ready(Arc::new(folder));
                assert_eq!(ready.stored.entries.len(), 1);
            }
            Err(error) => panic!("{error}"),
        }
        changes += 1;
    }
    assert!(changes > 10);
}

#[test]
fn a_life_that_is_given_up_is_put_aside_once() {
    let sample = sample();
    let (next, last) = (Incarnation(0xb0b), Incarnation(0xb0c));
    let disk = || Arc::new(folder_of(&sample.files));
    let why = || "it was told to".to_owned();
    assert!(
        give_up(disk(), settings(), (next, why()))
            .unwrap()
            .is_none()
    );
    let unused = Arc::new(MemoryDisk::new());
    assert!(
        give_up(unused, settings(), (LIFE, why()))
            .unwrap()
            .is_none()
    );

    let folder = disk();
    let given_up = give_up(folder.clone(), settings(), (LIFE, why()));
    let given_up = given_up.unwrap().expect("it is of that life");
    assert_eq!(
        (given_up.what(), given_up.incarnation()),
        ("it was told to", Some(LIFE))
    );
    let ready = given_up.start_over(next).unwrap();
    assert!(ready.fresh && ready.incarnation == next && ready.stored.entries.is_empty());
    drop(ready);
    let names = folder.list().unwrap();
    let aside: Vec<_> = names
        .iter()
        .filter_map(|it| it.strip_prefix("given-up-"))
        .collect();
    for name in &aside {
        let kept = &sample.files[*name];
        let mut bytes = vec![0; kept.len()];
        let file = folder.open(&format!("given-up-{name}")).unwrap();
        file.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, kept, "{name}");
    }
    assert!(aside.len() > segments(&sample.files).len(), "{names:?}");
    // The life before is no more: what is said of it now changes nothing.
    assert!(
        give_up(folder.clone(), settings(), (LIFE, why()))
            .unwrap()
            .is_none()
    );
    // Of the next one that is given up, what was put aside before goes.
    let given_up = give_up(folder.clone(), settings(), (next, why())).unwrap();
    drop(
        given_up
            .expect("it is of that life")
            .start_over(last)
            .unwrap(),
    );
    let names = folder.list().unwrap();
    let aside_before = aside.len();
    let aside = names.iter().filter(|it| it.starts_with("given-up-"));
    assert!(aside.count() < aside_before);
}
