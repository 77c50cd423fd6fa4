//! The same on a real folder of a real file system, with a second process.
use crate::world::{Model, body, entry, hard_state, head, settings, start, until};
use quorumwire_interfaces::Index;
use quorumwire_storage::{Disk, FolderDisk, LogJob, OpenFolder, Ready, open};
use std::io::{ErrorKind, IoSlice, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Set for the process that tries to open a folder that is in use.
const SECOND_PROCESS: &str = "QUORUMWIRE_TEST_LOCKED_FOLDER";

fn ready(path: &Path) -> Ready {
    let disk = FolderDisk::open(path).unwrap();
    crate::world::open_ready(Arc::new(disk))
}

#[test]
fn everything_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = Model::default();
    for round in 0..4 {
        let ready = ready(folder.path());
        assert_eq!(ready.fresh, round == 0);
        model.is(&ready.stored).unwrap();
        let (log, wakes) = start(ready.log);
        let first = round * 20 + 1;
        for index in first..first + 20 {
            let job = LogJob {
                ticket: index,
                hard_state: Some(hard_state(round + 1, None, index - 1)),
                begin_behind: None,
                pieces: vec![entry(index, round + 1, &[1; 150])],
            };
            model.take_job(&job);
            log.submit(job).unwrap();
        }
        until(&wakes, || log.persisted() == first + 19);
        let index = first + 9;
        let write = |out: &mut dyn Write| out.write_all(&body(index));
        ready
            .snapshots
            .create(&head(index, round + 1), write)
            .unwrap();
        model.take_snapshot((index, round + 1));
        log.compact(Index(index));
    }
    let ready = ready(folder.path());
    model.is(&ready.stored).unwrap();
    assert!(ready.stored.entries.len() < 60, "nothing was removed");
}

#[test]
fn a_second_process_is_refused_and_told_who_has_the_folder() {
    let test = "real_folder::a_second_process_is_refused_and_told_who_has_the_folder";
    if let Some(path) = std::env::var_os(SECOND_PROCESS) {
        let refused = FolderDisk::open(Path::new(&path)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        println!("refused: {refused}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let held = ready(folder.path());
    let second = || {
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(SECOND_PROCESS, folder.path())
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.success(), output)
    };
    let (refused, output) = second();
    assert!(refused, "{output}");
    let expected = format!(
        "{} is in use by process {}",
        folder.path().display(),
        std::process::id()
    );
    assert!(output.contains(&expected), "{output}");
    // In this process too, also where no number stands; and whatever part is left keeps it locked.
    std::fs::write(folder.path().join("LOCK"), b"\xff\xfe").unwrap();
    let refused = FolderDisk::open(folder.path()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    drop(held.log);
    assert!(FolderDisk::open(folder.path()).is_err());
    drop(held.snapshots);
    FolderDisk::open(folder.path()).unwrap();
}

#[test]
fn files_do_what_the_trait_says() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FolderDisk::open(folder.path()).unwrap();
    let file = disk.create("a").unwrap();
    file.allocate(8192).unwrap();
    let pieces: Vec<[u8; 3]> = (0..200).map(|piece| [piece; 3]).collect();
    let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    assert_eq!(file.write_at(100, &slices).unwrap(), 600);
    file.sync_data().unwrap();
    let mut found = vec![0; 604];
    assert_eq!(file.read_at(98, &mut found).unwrap(), 604);
    let expected = pieces.concat();
    assert_eq!(found[..2], [0, 0]);
    assert_eq!(found[2..602], expected);
    // It may not know where the blocks end that were written, and then says less.
    assert_eq!(file.next_data(100).unwrap(), 100);
    let behind = file.next_data(4096).unwrap();
    assert!([4096, 8192].contains(&behind), "{behind}");
    assert_eq!(file.next_data(8192).unwrap(), 8192);
    assert_eq!(file.next_data(9000).unwrap(), 8192);
    file.truncate(150).unwrap();
    assert_eq!(file.file_bytes().unwrap(), 150);
    disk.rename("a", "b").unwrap();
    disk.sync_folder().unwrap();
    assert_eq!(disk.list().unwrap(), ["b"]);
    assert_eq!(disk.open("a").err().unwrap().kind(), ErrorKind::NotFound);
    disk.remove("b").unwrap();
    assert!(disk.list().unwrap().is_empty());
    assert!(disk.free_bytes().unwrap() > 0);
}

#[test]
fn a_flipped_bit_on_a_real_disk_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut wal = ready(folder.path()).log.into_wal().unwrap();
    let job = LogJob {
        ticket: 1,
        pieces: vec![entry(1, 1, b"something")],
        ..LogJob::default()
    };
    wal.write(&[job]).unwrap();
    drop(wal);
    let path = folder.path().join("log-0000000000000001");
    let mut content = std::fs::read(&path).unwrap();
    content[150] ^= 4;
    std::fs::write(&path, content).unwrap();
    let disk = Arc::new(FolderDisk::open(folder.path()).unwrap());
    assert!(matches!(open(disk, settings()), Ok(OpenFolder::Damaged(_))));
}
