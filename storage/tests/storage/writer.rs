//! The log's thread: one sync for all that waits, limits of its queue, compaction, jobs that make no
//! sense, memory mode.
use crate::world::{
    GROUP, LIFE, Model, body, entry, hard_state, head, open_ready, settings, start, until,
};
use bytes::{BufMut, Bytes, BytesMut};
use quorumwire_interfaces::{Index, Term};
use quorumwire_storage::{
    FaultyDisk, JOBS_WAITING_MAX, LogHealth, LogJob, LogRefused, LogWriter, MemoryDisk, OpenFolder,
    Settings, WalError, compactable, open, open_memory,
};
use quorumwire_wire::{RecordKind, begin_record, finish_record};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

fn job(ticket: u64) -> LogJob {
    LogJob {
        ticket,
        pieces: vec![entry(ticket, 1, &[5; 20])],
        ..LogJob::default()
    }
}

fn start_in(folder: &FaultyDisk<MemoryDisk>) -> (LogWriter, Receiver<()>) {
    start(open_ready(Arc::new(folder.clone())).log)
}

#[test]
fn all_that_waits_shares_one_sync() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let (log, wakes) = start_in(&folder);
    let syncs_before = folder.faults().data_syncs;
    // While this is held, the disk stands still and jobs pile up.
    let standstill = folder.faults();
    for ticket in 1..=500 {
        log.submit(job(ticket)).unwrap();
    }
    drop(standstill);
    until(&wakes, || log.persisted() == 500);
    // The thread may have taken one batch or two before everything was there.
    let syncs = folder.faults().data_syncs - syncs_before;
    assert!((1..=3).contains(&syncs), "{syncs} syncs for 500 jobs");
    assert_eq!(log.counters().jobs, 500);
    assert_eq!(log.counters().batches, syncs);
    drop(log);
    assert_eq!(open_ready(Arc::new(folder)).stored.entries.len(), 500);
}

#[test]
fn the_queue_has_a_limit_and_gives_the_job_back() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let (log, wakes) = start_in(&folder);
    let standstill = folder.faults();
    let empty = |ticket| LogJob {
        ticket,
        ..LogJob::default()
    };
    let mut ticket = 0;
    let refused = loop {
        ticket += 1;
        assert!(ticket <= 3 * JOBS_WAITING_MAX as u64, "no limit");
        match log.submit(empty(ticket)) {
            Ok(()) => {}
            Err(LogRefused::Full(job)) => break job,
            Err(LogRefused::Failed) => panic!("it failed"),
        }
    };
    assert_eq!(refused.ticket, ticket);
    assert!(ticket > JOBS_WAITING_MAX as u64);
    drop(standstill);
    until(&wakes, || log.persisted() == ticket - 1);
    log.submit(refused).unwrap();
    until(&wakes, || log.persisted() == ticket);
}

#[test]
fn dropping_the_writer_writes_what_waits() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let (log, _wakes) = start_in(&folder);
    for ticket in 1..=50 {
        log.submit(job(ticket)).unwrap();
    }
    drop(log);
    assert_eq!(open_ready(Arc::new(folder)).stored.entries.len(), 50);
}

#[test]
fn compaction_keeps_the_hard_state_and_what_is_behind_the_snapshot() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut model = Model::default();
    let vote = LogJob {
        ticket: 1,
        hard_state: Some(hard_state(9, Some(4), 0)),
        ..LogJob::default()
    };
    wal.write(std::slice::from_ref(&vote)).unwrap();
    model.take_job(&vote);
    for index in 1..=60 {
        let job = LogJob {
            ticket: index,
            pieces: vec![entry(index, 9, &[1; 100])],
            ..LogJob::default()
        };
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
    }
    let before = wal.segment_count();
    let write = |out: &mut dyn Write| out.write_all(&body(40));
    ready.snapshots.create(&head(40, 9), write).unwrap();
    model.take_snapshot((40, 9));
    let removed = wal.compact(Index(40)).unwrap();
    assert!(removed >= 3, "{removed} of {before}");
    assert_eq!(wal.segment_count(), before - removed);
    assert_eq!(wal.compact(Index(40)).unwrap(), 0);
    drop(wal);
    let ready = open_ready(Arc::new(folder.clone()));
    model.is(&ready.stored).unwrap();
    assert!(ready.stored.entries[0].index > Index(1));
    assert!(ready.stored.entries[0].index <= Index(41));
    // Never the segment that is written to.
    let mut wal = ready.log.into_wal().unwrap();
    ready.snapshots.create(&head(60, 9), |_| Ok(())).unwrap();
    wal.compact(Index(1000)).unwrap();
    assert_eq!(wal.segment_count(), 1);
}

#[test]
pub(crate) fn nothing_is_removed_that_no_snapshot_in_the_folder_covers() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut model = Model::default();
    for index in 1..=60 {
        let job = LogJob {
            ticket: index,
            pieces: vec![entry(index, 9, &[1; 100])],
            ..LogJob::default()
        };
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
    }
    let before = wal.segment_count();
    assert!(before > 3);
    assert_eq!(wal.compact(Index(40)).unwrap(), 0);
    assert_eq!(wal.segment_count(), before);
    // A snapshot that was to come, and whose sync failed, is none.
    ready.snapshots.create(&head(10, 9), |_| Ok(())).unwrap();
    model.take_snapshot((10, 9));
    folder.faults().syncs_until_failure = Some(0);
    let failed = ready.snapshots.create(&head(40, 9), |_| Ok(()));
    failed.expect_err("its sync fails");
    wal.compact(Index(40)).unwrap();
    drop(wal);
    model.is(&open_ready(Arc::new(folder)).stored).unwrap();
}

#[test]
fn a_segment_stays_while_later_ones_cannot_be_read_without_it() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut model = Model::default();
    let write = |wal: &mut quorumwire_storage::Wal, model: &mut Model, index, term| {
        let job = LogJob {
            ticket: index,
            hard_state: Some(hard_state(term, None, 0)),
            pieces: vec![entry(index, term, &[1; 300])],
            ..LogJob::default()
        };
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
        wal.segment_count()
    };
    let mut index = 0;
    while write(&mut wal, &mut model, index + 1, 1) < 2 {
        index += 1;
    }
    // The second segment begins behind `index`; now it replaces that very entry.
    write(&mut wal, &mut model, index, 2);
    write(&mut wal, &mut model, index + 1, 2);
    ready.snapshots.create(&head(index, 2), |_| Ok(())).unwrap();
    model.take_snapshot((index, 2));
    assert_eq!(wal.compact(Index(index)).unwrap(), 0);
    drop(wal);
    model.is(&open_ready(Arc::new(folder)).stored).unwrap();
}

/// Writes one entry, so large that a segment has few of them.
fn entry_job(index: u64, term: u64) -> LogJob {
    LogJob {
        ticket: index,
        pieces: vec![entry(index, term, &[1; 300])],
        ..LogJob::default()
    }
}

#[test]
pub(crate) fn a_segment_stays_while_a_later_one_drops_what_it_ends_with() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut model = Model::default();
    let mut write = |job: LogJob| {
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
        wal.segment_count()
    };
    let mut index = 0;
    while write(entry_job(index + 1, 1)) < 2 {
        index += 1;
    }
    // The second segment begins behind `index`. A snapshot from before drops it all, and then another
    // one lies beyond it, so that no entry is ever written again up to `index`.
    for last in [index - 1, index + 5] {
        ready.snapshots.create(&head(last, 2), |_| Ok(())).unwrap();
        write(LogJob {
            ticket: last,
            begin_behind: Some((Index(last), Term(2))),
            ..LogJob::default()
        });
    }
    assert_eq!(write(entry_job(index + 6, 2)), 2);
    for last in [index - 1, index + 5] {
        model.take_snapshot((last, 2));
    }
    model.take_entry(&entry(index + 6, 2, &[1; 300]));
    assert_eq!(wal.compact(Index(index + 5)).unwrap(), 0);
    drop(wal);
    model.is(&open_ready(Arc::new(folder)).stored).unwrap();
}

/// Others have committed what this disk is still to be told, and a snapshot of it is there first.
#[test]
pub(crate) fn what_waits_to_replace_entries_is_not_cut_off() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut model = Model::default();
    let mut last = 0;
    while wal.segment_count() < 4 {
        last += 1;
        let job = entry_job(last, 1);
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
    }
    let anew = last / 2;
    let mut waiting: Vec<LogJob> = (anew..=last).map(|index| entry_job(index, 2)).collect();
    ready.snapshots.create(&head(last, 2), |_| Ok(())).unwrap();
    let upto = compactable(Index(last), &waiting);
    assert_eq!(upto, Index(anew - 1));
    assert!(wal.compact(upto).unwrap() > 0, "what stays as it is may go");
    for job in waiting.drain(..) {
        wal.write(std::slice::from_ref(&job)).unwrap();
        model.take_job(&job);
    }
    model.take_snapshot((last, 2));
    assert_eq!(compactable(Index(last), &waiting), Index(last));
    assert!(wal.compact(Index(last)).unwrap() > 0, "the rest goes later");
    drop(wal);
    model.is(&open_ready(Arc::new(folder)).stored).unwrap();
}

/// An installed snapshot that the disk is still to be told of must not find the log begin behind what it
/// replaces: a start would see two entries at one index.
#[test]
fn what_waits_to_drop_the_log_keeps_it_until_then() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let mut last = 0;
    let mut ends_with = Vec::new();
    while wal.segment_count() < 4 {
        last += 1;
        let before = wal.segment_count();
        wal.write(&[entry_job(last, 1)]).unwrap();
        if wal.segment_count() > before {
            ends_with.push(last - 1);
        }
    }
    let at = ends_with[1];
    ready.snapshots.create(&head(at, 2), |_| Ok(())).unwrap();
    let waiting = [LogJob {
        ticket: last,
        begin_behind: Some((Index(at), Term(2))),
        ..LogJob::default()
    }];
    let upto = compactable(Index(at), &waiting);
    assert_eq!(upto, Index(at - 1));
    assert!(wal.compact(upto).unwrap() > 0);
    drop(wal);
    let ready = open_ready(Arc::new(folder));
    assert_eq!(
        ready.stored.snapshot.map(|it| it.last_index),
        Some(Index(at))
    );
    assert!(ready.stored.entries.is_empty());
}

#[test]
fn jobs_that_make_no_sense_are_refused_for_good() {
    let gap = vec![entry(3, 1, b"")];
    let falling_term = vec![entry(1, 5, b""), entry(2, 4, b"")];
    let half = vec![entry(1, 1, b"half").slice(..20)];
    let short = vec![entry(1, 1, b"half").slice(..34)];
    let mut other = BytesMut::new();
    let kind = RecordKind::Base;
    let at = begin_record(&mut other, kind, GROUP, Term(1), Index(1));
    finish_record(&mut other, at);
    let not_an_entry = vec![other.freeze()];
    let mut foreign = BytesMut::from(&entry(1, 1, b"")[..]);
    foreign[15] ^= 1;
    let of_another_group = vec![foreign.freeze()];
    for pieces in [
        gap,
        falling_term,
        half,
        short,
        not_an_entry,
        of_another_group,
    ] {
        let ready = open_ready(Arc::new(MemoryDisk::new()));
        let mut wal = ready.log.into_wal().unwrap();
        let job = LogJob {
            ticket: 1,
            pieces,
            ..LogJob::default()
        };
        assert!(matches!(wal.write(&[job]), Err(WalError::Failed(_))));
        assert!(matches!(wal.write(&[]), Err(WalError::Failed(_))));
    }
    let mut wal = open_ready(Arc::new(MemoryDisk::new()))
        .log
        .into_wal()
        .unwrap();
    let term = |term| LogJob {
        ticket: 1,
        hard_state: Some(hard_state(term, None, 0)),
        ..LogJob::default()
    };
    wal.write(&[term(3)]).unwrap();
    assert!(matches!(wal.write(&[term(2)]), Err(WalError::Failed(_))));
}

#[test]
fn a_batch_larger_than_a_segment_is_written_whole() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let mut wal = open_ready(Arc::new(folder.clone())).log.into_wal().unwrap();
    let many: Vec<Bytes> = (1..=3000).map(|index| entry(index, 1, &[2; 10])).collect();
    let large = entry(3001, 1, &vec![3; 1 << 20]);
    for (ticket, pieces) in [(1, many), (2, vec![large])] {
        let job = LogJob {
            ticket,
            pieces,
            ..LogJob::default()
        };
        wal.write(&[job]).unwrap();
    }
    drop(wal);
    let stored = open_ready(Arc::new(folder)).stored;
    assert_eq!(stored.entries.len(), 3001);
    assert_eq!(stored.entries[3000].record().len(), 32 + (1 << 20));
}

/// A Durable record as a client might make it up.
fn made_up(incarnation: u64, at: u64, synced: u64) -> Bytes {
    let mut buffer = BytesMut::new();
    let kind = RecordKind::Durable;
    let start = begin_record(&mut buffer, kind, GROUP, Term(1), Index(4));
    for word in [incarnation, 1, at, 1, synced] {
        buffer.put_u64(word);
    }
    buffer.put_u32(0);
    finish_record(&mut buffer, start);
    buffer.freeze()
}

/// A folder with four entries after a batch with these was torn: of its sectors all are there but the
/// first.
fn after_torn_batch(pieces: Vec<Bytes>) -> MemoryDisk {
    let disk = MemoryDisk::with_power_cuts();
    let folder = FaultyDisk::new(disk.clone());
    let mut wal = open_ready(Arc::new(folder.clone())).log.into_wal().unwrap();
    for ticket in 1..=4 {
        wal.write(&[job(ticket)]).unwrap();
    }
    folder.faults().syncs_until_failure = Some(0);
    let last = LogJob {
        ticket: 5,
        pieces,
        ..LogJob::default()
    };
    assert!(wal.write(&[last]).is_err());
    let mut choices = 0;
    disk.after_power_cut(&mut |below| {
        choices += 1;
        match below {
            // Names, then length, manner and place for the identity, the same for the log; then the
            // log's sectors.
            2 if choices > 8 => 1,
            4 => 3,
            _ => 0,
        }
    })
}

#[test]
pub(crate) fn nothing_behind_a_torn_place_comes_back_later() {
    // Entry 6 is whole on the disk, entry 5 before it is torn: both are left out.
    let torn = vec![entry(5, 1, &[1; 600]), entry(6, 1, b"of the torn batch")];
    let disk = after_torn_batch(torn);
    let ready = open_ready(Arc::new(disk.clone()));
    assert_eq!((ready.stored.entries.len(), ready.notes.len()), (4, 1));
    // Another entry 5 of the same length ends where the old entry 6 began.
    let another = LogJob {
        ticket: 1,
        pieces: vec![entry(5, 1, &[2; 600])],
        ..LogJob::default()
    };
    ready.log.into_wal().unwrap().write(&[another]).unwrap();
    assert_eq!(open_ready(Arc::new(disk)).stored.entries.len(), 5);
}

#[test]
fn a_value_cannot_pass_for_the_logs_own_records() {
    // The batch begins here, the value 108 bytes on; its first 512 bytes fill the torn sector.
    let batch_at = 128 + 4 * (76 + 52);
    let value_at = batch_at + 76 + 32;
    let forged_at = value_at + 512;
    let cases = [
        (LIFE.0, forged_at, batch_at + 1, false),
        (LIFE.0 + 1, forged_at, batch_at + 1, true),
        (LIFE.0, forged_at + 1, batch_at + 1, true),
        (LIFE.0, forged_at, batch_at, true),
    ];
    for (life, at, synced, harmless) in cases {
        let mut value = BytesMut::zeroed(512);
        value.extend_from_slice(&made_up(life, at, synced));
        let cut = after_torn_batch(vec![entry(5, 1, &value)]);
        match open(Arc::new(cut), settings()).unwrap() {
            OpenFolder::Ready(ready) => {
                assert!(harmless, "the test does not test: this one is no forgery");
                assert_eq!(ready.stored.entries.len(), 4);
            }
            OpenFolder::Damaged(damaged) => assert!(!harmless, "{}", damaged.what()),
        }
    }
}

#[test]
fn memory_mode_acknowledges_at_once_and_begins_a_new_life_every_time() {
    let folder: Arc<FaultyDisk<MemoryDisk>> = Arc::new(FaultyDisk::new(MemoryDisk::new()));
    for life in 1..=3 {
        let settings = Settings {
            new_incarnation: quorumwire_interfaces::Incarnation(life),
            ..settings()
        };
        let ready = open_memory(folder.clone(), &settings).unwrap();
        assert!(ready.fresh && ready.stored.entries.is_empty());
        assert_eq!(ready.incarnation.0, life);
        let write = |out: &mut dyn Write| out.write_all(&body(5));
        ready.snapshots.create(&head(5, 1), write).unwrap();
        assert!(ready.snapshots.open(Index(5)).unwrap().is_some());
        let wake = Box::new(|| panic!("never called in memory mode"));
        let log = LogWriter::start(ready.log, wake).unwrap();
        for ticket in 1..=3 {
            log.submit(job(ticket)).unwrap();
            assert_eq!(log.persisted(), ticket);
        }
        log.compact(Index(2));
        assert_eq!(log.health(), LogHealth::Working);
    }
    // Nothing of a memory may pass for something durable.
    let opened = open(folder, settings());
    assert!(matches!(opened, Ok(OpenFolder::Damaged(_))));
}
