//! Power is cut, or the process killed, at any change to the disk: is everything there that had been
//! reported durable, and is a torn end never taken for damage?
use crate::world::{Model, body, entry, hard_state, head, rng, settings, steps};
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{Index, Term};
use quorumwire_seed::seed;
use quorumwire_storage::{
    Disk, FaultyDisk, LogJob, MemoryDisk, OpenFolder, Ready, Snapshots, Wal, WalError, open,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

const CUTS_MIN: usize = 1500;

/// Every one of these must have happened.
const OUTCOMES: [&str; 15] = [
    "cut while the folder was made",
    "cut while recovering",
    "cut while idle",
    "killed, disk intact",
    "batch in flight lost",
    "batch in flight there in part",
    "batch in flight there as a whole",
    "torn end left out",
    "new segment",
    "segments removed",
    "snapshot in flight lost",
    "snapshot in flight there",
    "snapshot installed beyond the log",
    "snapshot installed within the log",
    "entries replaced",
];

type Folder = FaultyDisk<MemoryDisk>;

struct Run {
    rng: ChaCha8Rng,
    /// What was reported durable.
    model: Model,
    /// What may be there instead, in the order of how much of it is there.
    in_flight: Vec<(&'static str, Model)>,
    made: bool,
    outcomes: BTreeMap<&'static str, usize>,
}

#[test]
pub(crate) fn what_was_reported_durable_survives_every_power_cut() {
    let seed = seed();
    let mut outcomes = BTreeMap::new();
    let (mut cuts, mut round) = (0, 0);
    while cuts < CUTS_MIN {
        let mut run = Run {
            rng: rng(seed.wrapping_add(round)),
            model: Model::default(),
            in_flight: Vec::new(),
            made: false,
            outcomes: std::mem::take(&mut outcomes),
        };
        let mut disk = MemoryDisk::with_power_cuts();
        for _ in 0..8 {
            disk = run.live_and_die(&disk);
            cuts += 1;
        }
        outcomes = run.outcomes;
        round += 1;
    }
    println!("{cuts} cuts: {outcomes:#?}");
    for outcome in OUTCOMES {
        assert!(outcomes.contains_key(outcome), "never reached: {outcome}");
    }
    assert_eq!(outcomes.len(), OUTCOMES.len(), "one is missing in OUTCOMES");
}

impl Run {
    fn saw(&mut self, outcome: &'static str) {
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    /// Opens the folder, works with it until the power goes; the folder as it is found afterwards.
    fn live_and_die(&mut self, disk: &MemoryDisk) -> MemoryDisk {
        let folder = FaultyDisk::new(disk.clone());
        let longest = if self.rng.random_bool(0.3) { 12 } else { 90 };
        let alive = self.rng.random_range(0..longest);
        folder.faults().changes_until_death = Some(alive);
        match Self::open(&folder) {
            Some(ready) => {
                let left = folder.faults().changes_until_death.take();
                self.check(&ready);
                self.made = true;
                folder.faults().changes_until_death = left;
                self.work(&folder, ready);
            }
            None if self.made => self.saw("cut while recovering"),
            None => self.saw("cut while the folder was made"),
        }
        if self.rng.random_bool(0.2) {
            self.saw("killed, disk intact");
            return disk.clone();
        }
        disk.after_power_cut(&mut |below| self.rng.random_range(0..below))
    }

    fn open(folder: &Folder) -> Option<Ready> {
        match open(Arc::new(folder.clone()), settings()) {
            Ok(OpenFolder::Ready(ready)) => Some(ready),
            Ok(OpenFolder::Damaged(damaged)) => {
                panic!("a mere cut is no damage: {}", damaged.what())
            }
            Err(_) if folder.faults().changes_until_death == Some(0) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// What was recovered is what was reported durable, or with a beginning of what was in flight.
    fn check(&mut self, ready: &Ready) {
        assert!(!(self.made && ready.fresh), "everything was forgotten");
        if !ready.notes.is_empty() {
            self.saw("torn end left out");
        }
        let mut candidates = std::mem::take(&mut self.in_flight);
        candidates.reverse();
        candidates.push(("", self.model.clone()));
        let mut problems = Vec::new();
        for (outcome, model) in candidates {
            match model.is(&ready.stored) {
                Ok(()) => {
                    if !outcome.is_empty() {
                        self.saw(outcome);
                    }
                    self.model = model;
                    if let Some((index, _)) = self.model.snapshot {
                        check_body(&ready.snapshots, index);
                    }
                    return;
                }
                Err(problem) => problems.push(problem),
            }
        }
        panic!("recovered something else: {problems:#?}");
    }

    fn work(&mut self, folder: &Folder, ready: Ready) {
        let snapshots = ready.snapshots;
        let mut wal = ready.log.into_wal().expect("a log on disk");
        for _ in 0..self.rng.random_range(1..40) {
            let alive = match self.rng.random_range(0..12) {
                0 => self.take_snapshot(&mut wal, &snapshots),
                1 => self.install_snapshot(&mut wal, &snapshots),
                _ => self.write_batch(&mut wal),
            };
            if !alive {
                assert_eq!(folder.faults().changes_until_death, Some(0));
                return;
            }
        }
        self.saw("cut while idle");
    }

    fn write_batch(&mut self, wal: &mut Wal) -> bool {
        let mut after = self.model.clone();
        let jobs: Vec<LogJob> = (0..self.rng.random_range(1..4))
            .map(|ticket| self.job(ticket, &mut after))
            .collect();
        let segments = wal.segment_count();
        let alive = self.write(wal, &jobs);
        if alive && wal.segment_count() > segments {
            self.saw("new segment");
        }
        alive
    }

    /// Writes jobs; on failure notes what may be there.
    fn write(&mut self, wal: &mut Wal, jobs: &[LogJob]) -> bool {
        match wal.write(jobs) {
            Ok(()) => {
                for job in jobs {
                    self.model.take_job(job);
                }
                true
            }
            Err(WalError::Failed(problem)) => {
                assert!(problem.contains("power is gone"), "{problem}");
                let mut model = self.model.clone();
                self.in_flight = vec![("batch in flight lost", model.clone())];
                let steps: Vec<_> = jobs.iter().flat_map(steps).collect();
                for (place, step) in steps.iter().enumerate() {
                    step.apply(&mut model);
                    let outcome = if place + 1 < steps.len() {
                        "batch in flight there in part"
                    } else {
                        "batch in flight there as a whole"
                    };
                    self.in_flight.push((outcome, model.clone()));
                }
                false
            }
            Err(error @ (WalError::DiskFull { .. } | WalError::NoDescriptor)) => panic!("{error}"),
        }
    }

    fn job(&mut self, ticket: u64, model: &mut Model) -> LogJob {
        let (last, last_term) = model.last();
        let covered = model.snapshot.map_or(0, |place| place.0);
        let mut term = model.hard_state.term.max(last_term).max(1);
        let mut first = last + 1;
        // A new leader replaces the end of the log.
        if self.rng.random_bool(0.15) {
            term += 1;
            first = self
                .rng
                .random_range(covered.max(last.saturating_sub(4)) + 1..=last + 1);
            if first <= last {
                self.saw("entries replaced");
            }
        }
        let changes = term > model.hard_state.term || self.rng.random_bool(0.3);
        let vote = self
            .rng
            .random_bool(0.5)
            .then(|| self.rng.random_range(0..5));
        let mut pieces = Vec::new();
        let mut piece = BytesMut::new();
        for index in first..first + self.rng.random_range(u64::from(!changes)..5) {
            let payload: Vec<u8> = (0..self.rng.random_range(0..200))
                .map(|_| self.rng.random())
                .collect();
            piece.extend_from_slice(&entry(index, term, &payload));
            if self.rng.random_bool(0.5) {
                pieces.push(piece.split().freeze());
            }
        }
        if !piece.is_empty() {
            pieces.push(piece.freeze());
        }
        let job = LogJob {
            ticket: ticket + 1,
            hard_state: changes.then(|| hard_state(term, vote, covered)),
            begin_behind: None,
            pieces,
        };
        model.take_job(&job);
        job
    }

    fn take_snapshot(&mut self, wal: &mut Wal, snapshots: &Snapshots) -> bool {
        let covered = self.model.snapshot.map_or(0, |place| place.0);
        let last = self.model.last().0;
        if last <= covered {
            return true;
        }
        let index = self.rng.random_range(covered + 1..=last);
        let place = (index, self.model.term_at(index));
        let result = snapshots.create(&head(index, place.1), |out| out.write_all(&body(index)));
        if !self.snapshot_done(place, result.is_ok()) {
            return false;
        }
        match wal.compact(Index(index)) {
            Ok(0) => true,
            Ok(_) => {
                self.saw("segments removed");
                true
            }
            Err(_) => false,
        }
    }

    fn install_snapshot(&mut self, wal: &mut Wal, snapshots: &Snapshots) -> bool {
        let covered = self.model.snapshot.map_or(0, |place| place.0);
        let (last, last_term) = self.model.last();
        let index = self.rng.random_range(covered + 1..last.max(covered) + 8);
        let agrees = index <= last && self.rng.random_bool(0.5);
        let place = if agrees {
            (index, self.model.term_at(index))
        } else {
            (index, last_term.max(self.model.hard_state.term) + 1)
        };
        let file = snapshot_file(index, place.1);
        let mut offset = 0;
        while offset < file.len() as u64 {
            let at = usize::try_from(offset).unwrap();
            let chunk = file.slice(at..file.len().min(at + 100_000));
            match snapshots.store_chunk(Index(index), offset, chunk) {
                Ok(next) => offset = next,
                Err(_) => return false,
            }
        }
        let result = snapshots.install(Index(index), Term(place.1));
        if !self.snapshot_done(place, result.is_ok()) {
            return false;
        }
        let outcome = if index > last {
            "snapshot installed beyond the log"
        } else {
            "snapshot installed within the log"
        };
        self.saw(outcome);
        let job = LogJob {
            ticket: 1,
            begin_behind: Some((Index(index), Term(place.1))),
            ..LogJob::default()
        };
        self.write(wal, &[job])
    }

    fn snapshot_done(&mut self, place: (u64, u64), done: bool) -> bool {
        let mut after = self.model.clone();
        after.take_snapshot(place);
        if done {
            self.model = after;
        } else {
            self.in_flight = vec![
                ("snapshot in flight lost", self.model.clone()),
                ("snapshot in flight there", after),
            ];
        }
        done
    }
}

/// The bytes of a snapshot as another replica would send it.
fn snapshot_file(index: u64, term: u64) -> Bytes {
    let mut writer = quorumwire_wire::SnapshotWriter::new(Vec::new(), &head(index, term)).unwrap();
    writer.write_all(&body(index)).unwrap();
    writer.finish().unwrap().into()
}

fn check_body(snapshots: &Snapshots, index: u64) {
    let file = snapshots.open(Index(index)).unwrap().expect("it is there");
    let mut found = Vec::new();
    std::io::Read::read_to_end(&mut file.body().unwrap(), &mut found).unwrap();
    assert!(found == body(index), "another snapshot's body");
}

#[test]
pub(crate) fn after_a_failed_sync_nothing_is_trusted_that_is_not_written_again() {
    let disk = MemoryDisk::with_power_cuts();
    let folder = FaultyDisk::new(disk.clone());
    let ready = crate::world::open_ready(Arc::new(folder.clone()));
    let mut wal = ready.log.into_wal().unwrap();
    let job = |index| LogJob {
        ticket: index,
        pieces: vec![entry(index, 1, b"something")],
        ..LogJob::default()
    };
    wal.write(&[job(1)]).unwrap();
    folder.faults().syncs_until_failure = Some(0);
    assert!(matches!(wal.write(&[job(2)]), Err(WalError::Failed(_))));
    // The process ends. The kernel still shows the bytes, and believes them to be on the disk.
    disk.forget_unsynced();
    let ready = crate::world::open_ready(Arc::new(disk.clone()));
    assert_eq!(ready.stored.entries.len(), 2);
    // Now they may be acknowledged, so they must survive anything.
    let after = disk.after_power_cut(&mut |_| 0);
    assert!(after.list().unwrap().len() >= 3);
    let ready = crate::world::open_ready(Arc::new(after));
    assert_eq!(ready.stored.entries.len(), 2);
}
