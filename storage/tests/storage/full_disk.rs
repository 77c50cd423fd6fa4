//! The disk is full at any write: nothing of the batch counts, everything before it does, and when
//! there is room again the same batch is written. The same where no file can be opened.
use crate::world::{Model, body, entry, hard_state, head, open_ready, settings, start, until};
use quorumwire_interfaces::Index;
use quorumwire_storage::{
    Disk, FaultyDisk, LogHealth, LogJob, MemoryDisk, OpenError, OpenFolder, SnapshotError,
    WalError, open,
};
use std::io::ErrorKind;
use std::sync::Arc;

fn jobs() -> Vec<Vec<LogJob>> {
    let job = |ticket: u64| LogJob {
        ticket,
        hard_state: Some(hard_state(ticket / 3, None, ticket)),
        begin_behind: None,
        pieces: vec![entry(
            ticket,
            ticket / 3,
            &[u8::try_from(ticket).unwrap(); 180],
        )],
    };
    (1..=24).map(|ticket| vec![job(ticket)]).collect()
}

#[test]
fn a_full_disk_at_any_byte_loses_nothing_and_recovers() {
    for no_allocation in [false, true] {
        fill_at_any_byte(no_allocation);
    }
}

fn fill_at_any_byte(no_allocation: bool) {
    let (mut full_count, mut begun_full) = (0, 0);
    for space in (0..10_000).step_by(97) {
        let disk = MemoryDisk::with_power_cuts();
        let folder = FaultyDisk::new(disk.clone());
        folder.faults().space_bytes = Some(space);
        folder.faults().no_allocation = no_allocation;
        let ready = match open(Arc::new(folder.clone()), settings()) {
            Ok(OpenFolder::Ready(ready)) => ready,
            Ok(OpenFolder::Damaged(damaged)) => panic!("{}", damaged.what()),
            Err(OpenError::Io { source, .. }) => {
                assert_eq!(source.kind(), ErrorKind::StorageFull);
                begun_full += 1;
                folder.faults().space_bytes = None;
                open_ready(Arc::new(folder.clone()))
            }
            Err(error) => panic!("{error}"),
        };
        let mut wal = ready.log.into_wal().unwrap();
        let mut model = Model::default();
        for batch in jobs() {
            while let Err(error) = wal.write(&batch) {
                let WalError::DiskFull { needed_bytes } = error else {
                    panic!("{error}");
                };
                assert!(needed_bytes > 0);
                full_count += 1;
                // Nothing of the batch counts, whether none or all of what was written is there.
                for all_or_none in [0, 1] {
                    let cut = disk.after_power_cut(&mut |below| match below {
                        2 | 4 => all_or_none,
                        _ => 0,
                    });
                    model.is(&open_ready(Arc::new(cut)).stored).unwrap();
                }
                folder.faults().space_bytes = Some(needed_bytes);
            }
            model.take_job(&batch[0]);
        }
        drop(wal);
        model.is(&open_ready(Arc::new(folder)).stored).unwrap();
    }
    assert!(
        full_count > 50 && begun_full >= 2,
        "{full_count} {begun_full}"
    );
}

#[test]
fn a_snapshot_that_does_not_fit_leaves_the_old_one() {
    let mut refused = 0;
    for space in (0..400_000).step_by(10_007) {
        let folder = FaultyDisk::new(MemoryDisk::new());
        let ready = open_ready(Arc::new(folder.clone()));
        let mut wal = ready.log.into_wal().unwrap();
        for batch in jobs() {
            wal.write(&batch).unwrap();
        }
        let write = |index: u64| {
            let term = index / 3;
            let snapshots = &ready.snapshots;
            snapshots.create(&head(index, term), |out| out.write_all(&body(index)))
        };
        write(6).unwrap();
        folder.faults().space_bytes = Some(space);
        match write(10) {
            Ok(()) => assert!(space > 300_000),
            Err(SnapshotError::Io { source, .. }) => {
                assert_eq!(source.kind(), ErrorKind::StorageFull);
                refused += 1;
                assert!(ready.snapshots.open(Index(10)).unwrap().is_none());
                assert!(ready.snapshots.open(Index(6)).unwrap().is_some());
                let names = folder.list().unwrap();
                let unfinished = names.iter().filter(|n| n.contains("tmp")).count();
                assert_eq!(unfinished, 0, "{names:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 20);
}

#[test]
fn the_writer_says_that_the_disk_is_full_and_goes_on_when_there_is_room() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let (log, wakes) = start(ready.log);
    folder.faults().space_bytes = Some(0);
    for batch in jobs() {
        for job in batch {
            log.submit(job).unwrap();
        }
    }
    until(&wakes, || log.health() == LogHealth::DiskFull);
    assert!(log.persisted() < 24);
    assert_eq!(log.counters().disk_full, 1);
    folder.faults().space_bytes = Some(1 << 20);
    until(&wakes, || log.persisted() == 24);
    assert_eq!(log.health(), LogHealth::Working);
    drop(log);
    assert_eq!(open_ready(Arc::new(folder)).stored.entries.len(), 24);
}

#[test]
fn compaction_makes_room_for_a_log_that_waits_for_it() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let (log, wakes) = start(ready.log);
    let mut waiting = jobs().into_iter().flatten();
    for job in waiting.by_ref().take(16) {
        let ticket = job.ticket;
        log.submit(job).unwrap();
        until(&wakes, || log.persisted() == ticket);
    }
    folder.faults().space_bytes = Some(0);
    for job in waiting {
        log.submit(job).unwrap();
    }
    until(&wakes, || log.health() == LogHealth::DiskFull);
    ready
        .snapshots
        .create(&head(14, 4), |_| Ok(()))
        .expect_err("there is no room");
    // Someone else's file goes; the snapshot fits, and the log can be cut behind it.
    folder.faults().space_bytes = Some(1000);
    ready.snapshots.create(&head(14, 4), |_| Ok(())).unwrap();
    log.compact(Index(14));
    until(&wakes, || log.persisted() == 24);
    assert!(log.counters().segments_removed > 0);
}

#[test]
fn a_writer_that_waits_for_room_can_be_stopped() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let (log, wakes) = start(ready.log);
    folder.faults().space_bytes = Some(0);
    for job in jobs().into_iter().flatten() {
        log.submit(job).unwrap();
    }
    until(&wakes, || log.health() == LogHealth::DiskFull);
    drop(log);
    assert!(open_ready(Arc::new(folder)).stored.entries.len() < 24);
}

/// The first and every further segment may be the one for which no file can be opened.
#[test]
fn a_log_that_no_file_can_be_opened_for_waits_and_loses_nothing() {
    let mut waited = 0;
    for opens in 0..8 {
        let disk = MemoryDisk::with_power_cuts();
        let folder = FaultyDisk::new(disk.clone());
        let ready = open_ready(Arc::new(folder.clone()));
        let mut wal = ready.log.into_wal().unwrap();
        let mut model = Model::default();
        folder.faults().opens_until_no_handle = Some(opens);
        for batch in jobs() {
            while let Err(error) = wal.write(&batch) {
                assert!(matches!(error, WalError::NoDescriptor), "{error}");
                waited += 1;
                for all_or_none in [0, 1] {
                    let cut = disk.after_power_cut(&mut |below| match below {
                        2 | 4 => all_or_none,
                        _ => 0,
                    });
                    model.is(&open_ready(Arc::new(cut)).stored).unwrap();
                }
                // Tried again in vain it is as before.
                assert!(matches!(wal.write(&batch), Err(WalError::NoDescriptor)));
                folder.faults().opens_until_no_handle = None;
            }
            model.take_job(&batch[0]);
        }
        drop(wal);
        folder.faults().opens_until_no_handle = None;
        model.is(&open_ready(Arc::new(folder)).stored).unwrap();
    }
    assert!(waited >= 3, "{waited}");
}

#[test]
fn the_writer_says_that_no_file_can_be_opened_and_goes_on_when_one_can() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let (log, wakes) = start(ready.log);
    let mut waiting = jobs().into_iter().flatten();
    log.submit(waiting.next().unwrap()).unwrap();
    until(&wakes, || log.persisted() == 1);
    folder.faults().opens_until_no_handle = Some(0);
    for job in waiting {
        log.submit(job).unwrap();
    }
    until(&wakes, || log.health() == LogHealth::NoDescriptor);
    assert!(log.persisted() < 24);
    let counters = log.counters();
    assert_eq!((counters.without_descriptor, counters.disk_full), (1, 0));
    folder.faults().opens_until_no_handle = None;
    until(&wakes, || log.persisted() == 24);
    assert_eq!(log.health(), LogHealth::Working);
    drop(log);
    assert_eq!(open_ready(Arc::new(folder)).stored.entries.len(), 24);
}
