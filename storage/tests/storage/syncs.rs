//! A sync that fails is the end, at every sync: it is not tried again, nothing after it is taken, and
//! what was reported before it is there.
use crate::world::{Model, body, entry, hard_state, head, open_ready, settings, start, until};
use quorumwire_interfaces::Index;
use quorumwire_storage::{
    FaultyDisk, LogHealth, LogJob, LogRefused, MemoryDisk, OpenError, OpenFolder, SnapshotError,
    WalError, open,
};
use std::io::Write;
use std::sync::Arc;

fn job(ticket: u64) -> LogJob {
    LogJob {
        ticket,
        hard_state: Some(hard_state(ticket / 2, None, ticket - 1)),
        begin_behind: None,
        pieces: vec![entry(ticket, ticket / 2, &[7; 200])],
    }
}

#[test]
pub(crate) fn every_sync_that_fails_is_final() {
    let (mut at_opening, mut at_batches, mut at_snapshots) = (0, 0, 0);
    for syncs in 0.. {
        let disk = MemoryDisk::with_power_cuts();
        let folder = FaultyDisk::new(disk.clone());
        folder.faults().syncs_until_failure = Some(syncs);
        let ready = match open(Arc::new(folder.clone()), settings()) {
            Ok(OpenFolder::Ready(ready)) => ready,
            Err(OpenError::Io { .. }) => {
                at_opening += 1;
                continue;
            }
            Ok(OpenFolder::Damaged(_)) | Err(_) => panic!("at sync {syncs}"),
        };
        let mut wal = ready.log.into_wal().unwrap();
        let mut model = Model::default();
        for ticket in 1..=20 {
            if ticket == 12 {
                let write = |out: &mut dyn Write| out.write_all(&body(10));
                match ready.snapshots.create(&head(10, 5), write) {
                    Ok(()) => model.take_snapshot((10, 5)),
                    Err(SnapshotError::Io { .. }) => {
                        at_snapshots += 1;
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            match wal.write(&[job(ticket)]) {
                Ok(()) => model.take_job(&job(ticket)),
                Err(WalError::Failed(problem)) => {
                    assert!(problem.contains("sync"), "{problem}");
                    at_batches += 1;
                    let changes = folder.faults().changes;
                    let again = wal.write(&[job(ticket)]);
                    assert!(matches!(again, Err(WalError::Failed(_))));
                    assert_eq!(folder.faults().changes, changes, "it went on");
                    break;
                }
                Err(error @ (WalError::DiskFull { .. } | WalError::NoDescriptor)) => {
                    panic!("{error}")
                }
            }
        }
        let finished = folder.faults().syncs_until_failure.is_some();
        drop(wal);
        // What was never synced is gone.
        disk.forget_unsynced();
        let after = open_ready(Arc::new(disk.after_power_cut(&mut |_| 0)));
        model.is(&after.stored).unwrap();
        if finished {
            break;
        }
    }
    assert!(at_opening >= 4 && at_batches >= 20 && at_snapshots == 2);
}

#[test]
fn the_writer_says_so_and_takes_nothing_more() {
    let folder = FaultyDisk::new(MemoryDisk::new());
    let ready = open_ready(Arc::new(folder.clone()));
    let (log, wakes) = start(ready.log);
    log.submit(job(1)).unwrap();
    until(&wakes, || log.persisted() == 1);
    folder.faults().syncs_until_failure = Some(0);
    log.submit(job(2)).unwrap();
    until(&wakes, || log.health() != LogHealth::Working);
    assert!(matches!(log.health(), LogHealth::Failed(problem) if problem.contains("fdatasync")));
    assert!(matches!(log.submit(job(3)), Err(LogRefused::Failed)));
    assert_eq!(log.persisted(), 1);
    log.compact(Index(1));
    drop(log);
}
