//! What the tests share: records, a model of what a folder must remember, seeds.
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{GroupId, Incarnation, Index, Lineage, LogTime, ReplicaId, Term};
use quorumwire_storage::{
    Disk, FolderContents, Log, LogJob, LogWriter, OpenFolder, Ready, Settings, open,
};
use quorumwire_wire::{
    Membership, Record, RecordKind, SnapshotHead, begin_record, finish_record, peer,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub const GROUP: GroupId = GroupId(7);
pub const LIFE: Incarnation = Incarnation(0xa11e);

/// Segments in tests are so small that a few batches fill them.
pub const SMALL_SEGMENT: u64 = 2048;

pub fn settings() -> Settings {
    Settings {
        cluster: "testers".to_owned(),
        replica: ReplicaId(3),
        group: GROUP,
        new_incarnation: LIFE,
        segment_bytes: SMALL_SEGMENT,
        promise: Duration::from_millis(20),
        lineage: Lineage::default(),
    }
}

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// One entry record.
pub fn entry(index: u64, term: u64, payload: &[u8]) -> Bytes {
    let mut buffer = BytesMut::new();
    let kind = RecordKind::Command;
    let start = begin_record(&mut buffer, kind, GROUP, Term(term), Index(index));
    buffer.extend_from_slice(payload);
    finish_record(&mut buffer, start);
    buffer.freeze()
}

pub fn hard_state(term: u64, vote: Option<u32>, commit_index: u64) -> peer::HardState {
    peer::HardState {
        term,
        voted: vote.is_some(),
        vote_replica: vote.unwrap_or_default(),
        vote_incarnation: vote.map_or(0, |vote| u64::from(vote) + 99),
        commit_index,
    }
}

pub fn head(last_index: u64, last_term: u64) -> SnapshotHead {
    SnapshotHead {
        group: GROUP,
        last_index: Index(last_index),
        last_term: Term(last_term),
        log_time: LogTime(last_index * 10),
        membership: Membership::default(),
        membership_index: Index(0),
    }
}

/// A body that depends on its place, longer than one block every so often.
pub fn body(last_index: u64) -> Vec<u8> {
    let length = if last_index.is_multiple_of(5) {
        300_000
    } else {
        700
    };
    (0..length)
        .map(|at: u64| u8::try_from((at * 31 + last_index) % 251).expect("below 251"))
        .collect()
}

pub fn open_ready(disk: Arc<dyn Disk>) -> Ready {
    match open(disk, settings()) {
        Ok(OpenFolder::Ready(ready)) => ready,
        Ok(OpenFolder::Damaged(folder)) => panic!("damaged: {}", folder.what()),
        Err(error) => panic!("not opened: {error}"),
    }
}

/// A log's thread, and its wakes.
pub fn start(log: Log) -> (LogWriter, Receiver<()>) {
    let (woken, wakes) = channel();
    let wake = move || {
        // A test that is over listens no more.
        let _ = woken.send(());
    };
    (LogWriter::start(log, Box::new(wake)).unwrap(), wakes)
}

/// Waits, from wake to wake, until something holds.
pub fn until(wakes: &Receiver<()>, mut done: impl FnMut() -> bool) {
    while !done() {
        let wake = wakes.recv_timeout(Duration::from_secs(30));
        wake.expect("a wake before the deadline");
    }
}

/// What a folder must remember.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Model {
    pub hard_state: peer::HardState,
    pub snapshot: Option<(u64, u64)>,
    /// Term and payload by index.
    pub entries: BTreeMap<u64, (u64, Vec<u8>)>,
}

impl Model {
    pub fn last(&self) -> (u64, u64) {
        let entry = self.entries.last_key_value();
        entry.map_or(self.snapshot.unwrap_or_default(), |(index, (term, _))| {
            (*index, *term)
        })
    }

    pub fn term_at(&self, index: u64) -> u64 {
        match self.entries.get(&index) {
            Some(entry) => entry.0,
            None => self.snapshot.filter(|s| s.0 == index).map_or(0, |s| s.1),
        }
    }

    /// A snapshot with this last entry has become durable.
    pub fn take_snapshot(&mut self, place: (u64, u64)) {
        if self.snapshot.is_none_or(|old| old.0 < place.0) {
            self.snapshot = Some(place);
        }
        if self.entries.get(&place.0).is_none_or(|e| e.0 != place.1) {
            self.entries.clear();
        }
    }

    pub fn take_hard_state(&mut self, hard_state: peer::HardState) {
        self.hard_state = hard_state;
    }

    pub fn take_entry(&mut self, record: &[u8]) {
        let record = Record::decode(record).expect("a test's record");
        self.entries.retain(|index, _| *index < record.index.0);
        let entry = (record.term.0, record.payload.to_vec());
        self.entries.insert(record.index.0, entry);
    }

    pub fn take_job(&mut self, job: &LogJob) {
        for step in steps(job) {
            step.apply(self);
        }
    }

    /// Whether this is what was recovered. Entries at or before the snapshot may be there or not.
    pub fn is(&self, stored: &FolderContents) -> Result<(), String> {
        let snapshot = stored
            .snapshot
            .as_ref()
            .map(|head| (head.last_index.0, head.last_term.0));
        if snapshot != self.snapshot {
            return Err(format!("snapshot {snapshot:?} for {:?}", self.snapshot));
        }
        if stored.hard_state != self.hard_state {
            return Err(format!(
                "hard state {:?} for {:?}",
                stored.hard_state, self.hard_state
            ));
        }
        let covered = snapshot.map_or(0, |place| place.0);
        let first = stored.entries.first().map_or(0, |entry| entry.index.0);
        if first > covered + 1 {
            return Err(format!(
                "entries from {first} behind a snapshot to {covered}"
            ));
        }
        for (next, stored) in (first..).zip(&stored.entries) {
            let record = Record::decode(stored.record()).map_err(|e| e.to_string())?;
            let found = (record.index.0, record.term.0);
            if found != (next, stored.term.0) || stored.index.0 != next {
                return Err(format!("entry {found:?} at {next}"));
            }
            match self.entries.get(&record.index.0) {
                Some((term, payload))
                    if (*term, payload.as_slice()) == (found.1, record.payload) => {}
                None if found.0 <= covered => {}
                Some(_) | None => return Err(format!("entry {found:?} is another")),
            }
        }
        let last = stored
            .entries
            .last()
            .map_or(covered, |entry| entry.index.0.max(covered));
        if last != self.last().0.max(covered) {
            return Err(format!("last entry {last} for {}", self.last().0));
        }
        Ok(())
    }
}

/// The smallest thing that may be there without what follows it.
#[derive(Clone, Debug)]
pub enum Step {
    HardState(peer::HardState),
    Base(u64, u64),
    Entry(Bytes),
}

impl Step {
    pub fn apply(&self, model: &mut Model) {
        match self {
            Self::HardState(hard_state) => model.take_hard_state(*hard_state),
            Self::Base(index, term) => {
                if model.entries.get(index).is_none_or(|e| e.0 != *term) {
                    model.entries.clear();
                }
            }
            Self::Entry(record) => model.take_entry(record),
        }
    }
}

pub fn steps(job: &LogJob) -> Vec<Step> {
    let hard_state = job.hard_state.map(Step::HardState);
    let base = job.begin_behind.map(|base| Step::Base(base.0.0, base.1.0));
    let mut steps: Vec<Step> = hard_state.into_iter().chain(base).collect();
    for piece in &job.pieces {
        let mut rest = piece.clone();
        while !rest.is_empty() {
            let record_bytes = Record::decode(&rest).expect("a test's record").record_bytes;
            steps.push(Step::Entry(rest.split_to(record_bytes)));
        }
    }
    steps
}
