//! The log's own thread: it takes jobs from a bounded queue, writes all that wait as one batch with one
//! sync, and says how far it is. What is in the log is not its business.
use crate::mutants::mutant;
use crate::segment::u64_at;
use crate::wal::{Wal, WalError, batch_bytes_max};
use bytes::Bytes;
use quorumwire_interfaces::{Index, Term, counters};
use quorumwire_wire::{RECORD_HEADER_BYTES, peer};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most jobs waiting to be written.
pub const JOBS_WAITING_MAX: usize = 65_536;

/// Most bytes of jobs waiting to be written; one more job is taken below it, however large.
pub const JOB_BYTES_WAITING_MAX: u64 = 256 << 20;

/// A batch takes no further job once it holds this much.
pub const BATCH_BYTES_TARGET: u64 = 8 << 20;

/// First and longest wait before a full disk is tried again.
const DISK_FULL_RETRY_MIN: Duration = Duration::from_millis(20);
const DISK_FULL_RETRY_MAX: Duration = Duration::from_secs(1);

/// Bytes a hard state record may take.
const HARD_STATE_BYTES_MAX: u64 = RECORD_HEADER_BYTES as u64 + 64;

/// Something to write durably: hard state first, then the base, then the entries.
#[derive(Clone, Debug, Default)]
pub struct LogJob {
    /// Names this job; never falls. A job that nobody waits for bears the ticket of the job before it,
    /// or 0 before the first: never one that a later job will bear.
    pub ticket: u64,
    /// New hard state, if it changed; its term never falls.
    pub hard_state: Option<peer::HardState>,
    /// A snapshot with this last entry has been installed: the log begins behind it. Entries further
    /// on stay if the log has the entry of this index and term, otherwise all are dropped.
    pub begin_behind: Option<(Index, Term)>,
    /// Entry records of this group as they travel, whole, checksums in place; cut anywhere between
    /// records. Indexes are consecutive; the first may lie within the log and then replaces what
    /// stood there and behind.
    pub pieces: Vec<Bytes>,
}

impl LogJob {
    /// At most so many bytes on disk.
    pub(crate) fn bytes_max(&self) -> u64 {
        let entries: u64 = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        entries + HARD_STATE_BYTES_MAX + RECORD_HEADER_BYTES as u64
    }

    /// The lowest place at which it may write the log anew.
    fn lowest_index(&self) -> Option<Index> {
        let piece = self.pieces.first();
        let head = piece.and_then(|piece| piece.get(..RECORD_HEADER_BYTES));
        let first = head.map(|head| Index(u64_at(head, 24)));
        let base = self.begin_behind.map(|base| base.0);
        [first, base].into_iter().flatten().min()
    }
}

/// How far a log may be compacted that was asked to be up to `upto`, while these jobs are not written: not
/// beyond where one of them writes it anew. The snapshot may hold what they bring; the log would begin
/// behind what they replace, and could not take them any more.
#[must_use]
pub fn compactable<'a>(upto: Index, waiting: impl IntoIterator<Item = &'a LogJob>) -> Index {
    if mutant("compacted-what-will-be-replaced") {
        return upto;
    }
    let lowest = waiting.into_iter().filter_map(LogJob::lowest_index);
    lowest.map(Index::previous).fold(upto, Index::min)
}

/// A log to start a [`LogWriter`] on: the one of a folder, or none (memory mode).
#[derive(Default)]
pub struct Log {
    wal: Option<Wal>,
}

impl Log {
    pub(crate) const fn of(wal: Wal) -> Self {
        Self { wal: Some(wal) }
    }

    /// A log that keeps nothing: every job is done at once, durable nowhere.
    #[must_use]
    pub const fn memory() -> Self {
        Self { wal: None }
    }

    /// The log itself, for those who write it without a thread; `None` in memory mode.
    #[must_use]
    pub fn into_wal(self) -> Option<Wal> {
        self.wal
    }
}

/// How the log is doing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogHealth {
    /// It writes.
    Working,
    /// There is no room. Jobs wait, in order, and are written when there is room again; until then
    /// new writes should be refused.
    DiskFull,
    /// The process, or the system, has as many files open as it may, and the log needs one more. As with a
    /// full disk.
    NoDescriptor,
    /// It takes nothing any more; the text says why. The replica must stop.
    Failed(String),
}

/// Why a job was not taken. Jobs must not be left out: whoever sees `Full` hands the same job over
/// again later, before any other.
#[derive(Debug)]
pub enum LogRefused {
    /// [`JOBS_WAITING_MAX`] or [`JOB_BYTES_WAITING_MAX`] is reached.
    Full(LogJob),
    /// The log has failed.
    Failed,
}

counters! {
    /// What the log has done since its start.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct LogCounters {
        /// Groups of writes made durable together
        pub batches: "log_batches",
        /// Writes to the log
        pub jobs: "log_jobs",
        /// Bytes written to the log
        pub bytes: "log_bytes",
        /// Time spent writing and syncing the log
        pub busy_us: "log_busy_microseconds",
        /// Writes that found the disk full
        pub disk_full: "log_disk_full",
        /// Times that no file descriptor was left for the next file of the log
        pub without_descriptor: "log_without_descriptor",
        /// Old log files removed behind a snapshot
        pub segments_removed: "log_segments_removed",
        /// Old log files that could not be removed
        pub removals_failed: "log_removals_failed",
    }
    with {
        /// The time spent, to the nanosecond.
        busy_ns: u64,
        /// Segment files there are.
        pub segments: u64,
    }
}

/// The log with its thread. Dropping it writes what waits (unless the disk is full or has failed) and
/// ends the thread.
pub struct LogWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    persisted: AtomicU64,
}

struct Queue {
    jobs: VecDeque<LogJob>,
    bytes: u64,
    compact_upto: Option<Index>,
    stop: bool,
    health: LogHealth,
    counters: LogCounters,
}

impl LogWriter {
    /// Starts the thread. `wake` is called from that thread after [`persisted`](Self::persisted) or
    /// [`health`](Self::health) changed. In memory mode there is no thread and `wake` is never called:
    /// `persisted` has moved on when [`submit`](Self::submit) returns.
    pub fn start(log: Log, wake: Box<dyn Fn() + Send>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new());
        let Some(wal) = log.wal else {
            return Ok(Self {
                shared,
                thread: None,
            });
        };
        let writing = Writing {
            shared: Arc::clone(&shared),
            wal,
            wake,
            batch: Vec::new(),
            compact_later: None,
        };
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writing.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Hands a job over. Never blocks on the disk.
    pub fn submit(&self, job: LogJob) -> Result<(), LogRefused> {
        let mut queue = self.shared.lock();
        if self.thread.is_none() {
            queue.counters.jobs += 1;
            self.shared.persisted.store(job.ticket, Ordering::Release);
            return Ok(());
        }
        if matches!(queue.health, LogHealth::Failed(_)) {
            return Err(LogRefused::Failed);
        }
        let full = queue.jobs.len() >= JOBS_WAITING_MAX || queue.bytes >= JOB_BYTES_WAITING_MAX;
        if full {
            return Err(LogRefused::Full(job));
        }
        queue.bytes += job.bytes_max();
        let was_empty = queue.jobs.is_empty();
        queue.jobs.push_back(job);
        drop(queue);
        if was_empty {
            self.shared.arrived.notify_one();
        }
        Ok(())
    }

    /// Removes segments whose entries all lie at or before `upto`, some time soon. A snapshot of
    /// everything up to there is durable.
    pub fn compact(&self, upto: Index) {
        let mut queue = self.shared.lock();
        queue.compact_upto = queue.compact_upto.max(Some(upto));
        drop(queue);
        self.shared.arrived.notify_one();
    }

    /// All jobs up to this ticket are durable; 0 before the first.
    #[must_use]
    pub fn persisted(&self) -> u64 {
        self.shared.persisted.load(Ordering::Acquire)
    }

    /// How it is doing.
    #[must_use]
    pub fn health(&self) -> LogHealth {
        self.shared.lock().health.clone()
    }

    /// What it has done.
    #[must_use]
    pub fn counters(&self) -> LogCounters {
        self.shared.lock().counters
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.arrived.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was a broken invariant, said on stderr; what it did not write was never
            // reported as written.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new() -> Self {
        Self {
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                bytes: 0,
                compact_upto: None,
                stop: false,
                health: LogHealth::Working,
                counters: LogCounters::default(),
            }),
            arrived: Condvar::new(),
            persisted: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to do.
    fn wait(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.lock();
        while queue.jobs.is_empty() && queue.compact_upto.is_none() && !queue.stop {
            queue = self
                .arrived
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue
    }
}

/// The thread's own part.
struct Writing {
    shared: Arc<Shared>,
    wal: Wal,
    wake: Box<dyn Fn() + Send>,
    /// Jobs that are being written.
    batch: Vec<LogJob>,
    /// How far the log is to be compacted once jobs that wait are written.
    compact_later: Option<Index>,
}

impl Drop for Writing {
    /// A thread that panicked (a broken invariant) must not look like one that is only slow.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.report_health(LogHealth::Failed("the log's thread panicked".to_owned()));
        }
    }
}

impl Writing {
    fn run(mut self) {
        loop {
            let stop = self.take_batch();
            let idle = self.batch.is_empty();
            if !idle && !self.write_batch() {
                return;
            }
            self.batch.clear();
            self.compact();
            if idle && stop {
                return;
            }
        }
    }

    /// Takes all jobs that wait, as far as a batch goes. Whether the thread shall stop.
    fn take_batch(&mut self) -> bool {
        let mut queue = self.shared.wait();
        let mut bytes = 0;
        while bytes < BATCH_BYTES_TARGET {
            let Some(job) = queue.jobs.pop_front() else {
                break;
            };
            bytes += job.bytes_max();
            self.batch.push(job);
        }
        queue.bytes -= bytes;
        queue.counters.segments = self.wal.segment_count() as u64;
        queue.stop
    }

    /// Writes the batch, waiting for room as long as it takes. False: the thread must end.
    fn write_batch(&mut self) -> bool {
        let mut retry_after = DISK_FULL_RETRY_MIN;
        loop {
            let begun = Instant::now();
            match self.wal.write(&self.batch) {
                Ok(()) => {
                    self.report_written(begun.elapsed());
                    return true;
                }
                Err(WalError::DiskFull { needed_bytes }) => {
                    self.report_health(LogHealth::DiskFull);
                    if !self.wait_for_room(needed_bytes, &mut retry_after) {
                        return false;
                    }
                }
                Err(WalError::NoDescriptor) => {
                    self.report_health(LogHealth::NoDescriptor);
                    if !self.wait_for_room(0, &mut retry_after) {
                        return false;
                    }
                }
                Err(WalError::Failed(problem)) => {
                    self.report_health(LogHealth::Failed(problem));
                    return false;
                }
            }
        }
    }

    fn report_written(&self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mut queue = self.shared.lock();
        let counters = &mut queue.counters;
        counters.batches += 1;
        counters.jobs += self.batch.len() as u64;
        counters.bytes += batch_bytes_max(&self.batch);
        counters.busy_ns = counters.busy_ns.saturating_add(took_ns);
        counters.busy_us = counters.busy_ns / 1000;
        counters.segments = self.wal.segment_count() as u64;
        queue.health = LogHealth::Working;
        drop(queue);
        if let Some(last) = self.batch.last() {
            self.shared.persisted.store(last.ticket, Ordering::Release);
        }
        (self.wake)();
    }

    fn report_health(&self, health: LogHealth) {
        let mut queue = self.shared.lock();
        if queue.health == health {
            return;
        }
        match health {
            LogHealth::DiskFull => queue.counters.disk_full += 1,
            LogHealth::NoDescriptor => queue.counters.without_descriptor += 1,
            LogHealth::Working | LogHealth::Failed(_) => {}
        }
        queue.health = health;
        drop(queue);
        (self.wake)();
    }

    /// Waits until there may be room, compacting meanwhile: that makes room. False: stop.
    fn wait_for_room(&mut self, needed_bytes: u64, retry_after: &mut Duration) -> bool {
        loop {
            self.compact();
            let queue = self.shared.lock();
            if queue.stop {
                return false;
            }
            let (queue, _) = self
                .shared
                .arrived
                .wait_timeout_while(queue, *retry_after, |queue| {
                    !queue.stop && queue.compact_upto.is_none()
                })
                .unwrap_or_else(PoisonError::into_inner);
            drop(queue);
            *retry_after = (*retry_after * 2).min(DISK_FULL_RETRY_MAX);
            // A disk that cannot tell is simply tried.
            if self
                .wal
                .free_bytes()
                .is_none_or(|free| free >= needed_bytes)
            {
                return true;
            }
        }
    }

    fn compact(&mut self) {
        let mut queue = self.shared.lock();
        let Some(upto) = self.compact_later.max(queue.compact_upto.take()) else {
            return;
        };
        let possible = compactable(upto, self.batch.iter().chain(&queue.jobs));
        drop(queue);
        self.compact_later = (possible < upto).then_some(upto);
        let result = self.wal.compact(possible);
        let mut queue = self.shared.lock();
        match result {
            Ok(removed) => queue.counters.segments_removed += removed as u64,
            Err(_) => queue.counters.removals_failed += 1,
        }
        queue.counters.segments = self.wal.segment_count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDisk, OpenFolder, Settings, open};
    use quorumwire_interfaces::{GroupId, Incarnation, Lineage, ReplicaId};

    /// A disk that stays full is tried again and again.
    #[test]
    fn how_the_log_does_is_told_when_it_changes() {
        let settings = Settings {
            cluster: "test".to_owned(),
            replica: ReplicaId(1),
            group: GroupId(0),
            new_incarnation: Incarnation(7),
            segment_bytes: 1 << 20,
            promise: Duration::from_millis(20),
            lineage: Lineage::default(),
        };
        let Ok(OpenFolder::Ready(ready)) = open(Arc::new(MemoryDisk::new()), settings) else {
            panic!("a new folder is not damaged");
        };
        let wakes = Arc::new(AtomicU64::new(0));
        let woken = Arc::clone(&wakes);
        let writing = Writing {
            shared: Arc::new(Shared::new()),
            wal: ready.log.wal.expect("not in memory mode"),
            wake: Box::new(move || {
                woken.fetch_add(1, Ordering::Relaxed);
            }),
            batch: Vec::new(),
            compact_later: None,
        };
        let told = |health: &LogHealth, times: usize| {
            for _ in 0..times {
                writing.report_health(health.clone());
            }
            let LogCounters {
                disk_full,
                without_descriptor,
                ..
            } = writing.shared.lock().counters;
            [wakes.load(Ordering::Relaxed), disk_full, without_descriptor]
        };
        assert_eq!(told(&LogHealth::Working, 1), [0, 0, 0]);
        assert_eq!(told(&LogHealth::DiskFull, 3), [1, 1, 0]);
        assert_eq!(told(&LogHealth::NoDescriptor, 3), [2, 1, 1]);
        assert_eq!(told(&LogHealth::DiskFull, 1), [3, 2, 1]);
    }
}
