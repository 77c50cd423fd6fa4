//! Snapshots are written, read and checked by threads of their own: the event loop hands work over
//! and takes results in. At most one snapshot is written and one piece moved at a time.
use super::Server;
use super::backups::Backups;
use super::clock;
use super::freeing::Freeing;
use super::service::Service;
use crate::admin::AdminError;
use crate::sparing::Sparing;
use crate::stage::{MeteredStream, Progress, Stage};
use anyhow::{Context, ensure};
use bytes::Bytes;
use quorumwire_control::{Input, Now, SnapshotMeta};
use quorumwire_group as group;
use quorumwire_interfaces::{Application, Frozen, GroupId, Index, Lineage, ReplicaId, Term};
use quorumwire_sessions::Sessions;
use quorumwire_storage as storage;
use quorumwire_wire::SnapshotHead;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Pieces of snapshots that may wait to be read or written; more than members there can be.
const PIECES_WAITING_MAX: usize = 64;
/// A snapshot that could not be taken is tried again after this.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// People who may wait for a snapshot or a digest.
const WAITING_MAX: usize = 16;

// What is tried again at once, or every second, is not said each time.
static READ_FAILED: Sparing = Sparing::new();
static STORE_FAILED: Sparing = Sparing::new();
static TOO_MANY: Sparing = Sparing::new();
static TAKING_FAILED: Sparing = Sparing::new();
static INSTALLING_FAILED: Sparing = Sparing::new();

/// How much log a replica counts at its start towards its first snapshot: all apply the same, and with
/// nothing to tell them apart all would take every snapshot at the same moment. Multiples of the golden ratio
/// are far apart for any number of replicas.
pub fn head_start(snapshot_log_bytes: u64, id: ReplicaId) -> u64 {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9; // of 2^32
    let share = (u64::from(id.0) * GOLDEN_RATIO) & 0xffff_ffff;
    u64::try_from((u128::from(snapshot_log_bytes) * u128::from(share)) >> 32).unwrap_or(0)
}

/// A state that was made of a snapshot, and what that says of itself.
type Restored<A> = Result<(SnapshotMeta, Box<Sessions<A>>), String>;

type Job<A> = Box<dyn FnOnce() -> Event<A> + Send>;

/// What a thread has finished.
enum Event<A> {
    Taken(Result<SnapshotMeta, String>),
    Read(Input),
    Stored(Input),
    Installed(Index, Restored<A>),
    /// Something was freed.
    Discarded,
    Digest(
        u64,
        Result<String, String>,
        oneshot::Sender<Result<(u64, String), AdminError>>,
    ),
}

/// The threads and what they are at.
pub struct Snapshots<A> {
    group: GroupId,
    /// The replica's folder.
    place: PathBuf,
    files: storage::Snapshots,
    pieces: SyncSender<Job<A>>,
    writes: SyncSender<Job<A>>,
    results: Receiver<Event<A>>,
    /// What a thread could not take is answered here.
    refusals: Sender<Event<A>>,
    wake: Arc<mio::Waker>,
    taking: bool,
    waiting: Vec<oneshot::Sender<Result<u64, AdminError>>>,
    fault: Option<String>,
    /// When the newest one was taken or installed; none by this process.
    pub newest_at: Option<Now>,
    /// What waits on behalf of backups.
    pub backups: Backups,
    /// How far the snapshot is that is being installed.
    pub installing: Arc<Stage>,
    freeing: Freeing,
}

impl<A: Application + Default + 'static> Snapshots<A> {
    /// Starts the threads. `wake` has the event loop look at [`Server::take_snapshot_events`].
    pub fn start(
        files: storage::Snapshots,
        (group, place): (GroupId, &Path),
        wake: Arc<mio::Waker>,
    ) -> anyhow::Result<Self> {
        let (results_in, results) = mpsc::channel();
        let pieces = worker("snapshot-pieces", results_in.clone(), Arc::clone(&wake))?;
        let writes = worker("snapshot-write", results_in.clone(), Arc::clone(&wake))?;
        Ok(Self {
            group,
            place: place.to_owned(),
            files,
            pieces,
            writes,
            results,
            refusals: results_in,
            wake,
            taking: false,
            waiting: Vec::new(),
            fault: None,
            newest_at: None,
            backups: Backups::default(),
            installing: Arc::default(),
            freeing: Freeing::default(),
        })
    }

    /// Whether one is being written.
    pub fn is_taking(&self) -> bool {
        self.taking
    }

    /// What is wrong, for people.
    pub fn fault(&self) -> Option<String> {
        self.fault.clone()
    }

    /// Somebody wants to know when the snapshot being taken next is there.
    pub fn notify(&mut self, reply: oneshot::Sender<Result<u64, AdminError>>) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push(reply);
        } // otherwise it is dropped, which whoever asked sees as Unavailable
    }

    /// No snapshot is being taken because the newest one has everything: say so.
    pub fn answer_if_idle(&mut self, newest: Index) {
        if !self.taking {
            for reply in self.waiting.drain(..) {
                reply.send(Ok(newest.0)).ok(); // gone: whoever asked has stopped waiting
            }
        }
    }

    /// Begins to write one. An error if too much waits for the thread that does it.
    pub fn take(&mut self, meta: SnapshotMeta, frozen: Box<dyn Frozen>) -> Result<(), String> {
        let files = self.files.clone();
        let head = SnapshotHead {
            group: self.group,
            last_index: meta.last_index,
            last_term: meta.last_term,
            log_time: meta.log_time,
            membership: meta.membership.clone(),
            membership_index: meta.membership_index,
        };
        let job: Job<A> = Box::new(move || {
            let result = files.create(&head, |out| frozen.write(out));
            Event::Taken(result.map(|()| meta).map_err(|error| error.to_string()))
        });
        self.writes.try_send(job).map_err(|_| busy())?;
        self.taking = true;
        Ok(())
    }

    pub fn read(&mut self, to: ReplicaId, last_index: Index, offset: u64, bytes_max: usize) {
        let files = self.files.clone();
        let read = move |chunk| {
            Event::Read(Input::SnapshotRead {
                to,
                last_index,
                offset,
                chunk,
            })
        };
        let job: Job<A> = Box::new(move || {
            let chunk = files
                .read_chunk(last_index, offset, bytes_max)
                .unwrap_or_else(|error| {
                    if READ_FAILED.says(&error.to_string()) {
                        tracing::error!(%error, "a snapshot cannot be read; a new one is needed");
                    }
                    None
                });
            read(chunk)
        });
        self.piece(job, read(None));
    }

    pub fn store_chunk(&mut self, last_index: Index, offset: u64, bytes: Bytes) {
        let files = self.files.clone();
        let stored = move |next_offset: Option<u64>| {
            Event::Stored(Input::SnapshotChunkStored {
                last_index,
                next_offset: next_offset.unwrap_or(0),
                stored: next_offset.is_some(),
            })
        };
        let job: Job<A> = Box::new(move || {
            let result = files.store_chunk(last_index, offset, bytes);
            if let Err(error) = &result
                && STORE_FAILED.says(&error.to_string())
            {
                tracing::warn!(%error, "a piece of a snapshot could not be stored");
            }
            stored(result.ok())
        });
        self.piece(job, stored(None));
    }

    /// `lineage` is the cluster's, if that is known: a snapshot of another one is refused before anything of
    /// it counts.
    pub fn install(&mut self, (last_index, last_term): (Index, Term), lineage: Lineage) {
        let (files, place) = (self.files.clone(), self.place.clone());
        let stage = Arc::clone(&self.installing);
        stage.set(Progress::of_bytes("installing a snapshot", 0, 0)); // it may wait behind pieces of others
        let job: Job<A> = Box::new(move || {
            let result = install((&files, &place), (last_index, last_term), lineage, &stage);
            let result = result.map_err(|error| format!("{error:#}"));
            Event::Installed(last_index, result)
        });
        self.piece(job, Event::Installed(last_index, Err(busy())));
    }

    /// Frees a store elsewhere: with many items it takes seconds.
    fn discard(&mut self, store: Box<Sessions<A>>) {
        let bytes = store.inner().memory_bytes();
        self.free_elsewhere(store, bytes);
    }

    /// Frees what the application has thrown away: elsewhere, if it is much. False: it is freed by now.
    pub fn free(&mut self, discarded: impl Send + 'static, bytes: u64) -> bool {
        self.freeing.takes(bytes) && self.free_elsewhere(Box::new(discarded), bytes)
    }

    /// False: too much waits for that thread, and it was freed here.
    fn free_elsewhere(&mut self, what: Box<dyn Send>, bytes: u64) -> bool {
        let waiting = self.freeing.begin(what, bytes);
        let job: Job<A> = Box::new(move || {
            drop(waiting);
            Event::Discarded
        });
        self.pieces.try_send(job).is_ok()
    }

    /// Hashes a state: the same state has the same hash on every replica.
    pub fn digest(
        &mut self,
        applied: Index,
        frozen: Box<dyn Frozen>,
        reply: oneshot::Sender<Result<(u64, String), AdminError>>,
    ) {
        let job: Job<A> = Box::new(move || {
            let mut hasher = Hasher::default();
            let result = frozen.write(&mut hasher).map_err(|error| error.to_string());
            Event::Digest(applied.0, result.map(|()| hasher.text()), reply)
        });
        self.writes.try_send(job).ok(); // dropped: whoever asked sees Unavailable
    }

    /// Consensus has one piece under way for each member; but a disk that stands still for many terms has
    /// those of each before it. One too many is answered as if it had failed: it begins anew.
    fn piece(&mut self, job: Job<A>, refused: Event<A>) {
        match self.pieces.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                if TOO_MANY.says("") {
                    tracing::warn!(
                        "too many snapshot pieces wait for the disk; one snapshot starts again"
                    );
                }
                self.refusals.send(refused).ok(); // received by itself
                self.wake.wake().ok(); // the event loop is gone
            }
            Err(TrySendError::Disconnected(_)) => panic!("the thread for snapshots has ended"),
        }
    }
}

impl<S: Service> Server<S> {
    /// Takes in what the snapshot threads have finished.
    pub fn take_snapshot_events(&mut self) -> anyhow::Result<()> {
        while let Ok(event) = self.upkeep.snapshots.results.try_recv() {
            match event {
                Event::Taken(result) => self.snapshot_taken(result),
                Event::Read(input) | Event::Stored(input) => self.core.group.step(input),
                Event::Installed(last_index, result) => {
                    self.snapshot_installed(last_index, result)?;
                }
                Event::Discarded => {}
                Event::Digest(applied, result, reply) => {
                    let answer = result
                        .map(|hash| (applied, hash))
                        .map_err(AdminError::Failed);
                    reply.send(answer).ok(); // gone: whoever asked has stopped waiting
                }
            }
        }
        Ok(())
    }

    pub(super) fn snapshot_taken(&mut self, result: Result<SnapshotMeta, String>) {
        self.upkeep.snapshots.taking = false;
        let answer = match result {
            Ok(meta) => {
                let last_index = meta.last_index;
                tracing::info!(last_index = last_index.0, "snapshot taken");
                self.core.counters.snapshots_taken += 1;
                if self.at_hand == 0 {
                    self.admission.last_saved_s = clock::wall_ms() / 1000;
                }
                self.upkeep.snapshots.fault = None;
                self.upkeep.snapshots.newest_at = Some(self.core.group.now);
                self.upkeep.snapshot_retry_at = None;
                self.core.group.step(Input::SnapshotTaken(meta));
                self.core.journal.compact(last_index);
                Ok(last_index.0)
            }
            Err(problem) => {
                if TAKING_FAILED.says(&problem) {
                    tracing::error!(problem, "no snapshot could be taken; the log keeps growing");
                }
                self.core.counters.snapshots_failed += 1;
                self.upkeep.snapshots.fault =
                    Some(format!("no snapshot could be taken: {problem}"));
                self.upkeep.snapshot_retry_at = Some(Now(self.core.group.now.0 + RETRY_PAUSE));
                Err(AdminError::Failed(problem))
            }
        };
        for reply in self.upkeep.snapshots.waiting.drain(..) {
            reply.send(answer.clone()).ok(); // gone: whoever asked has stopped waiting
        }
    }

    fn snapshot_installed(
        &mut self,
        last_index: Index,
        result: Restored<S::Application>,
    ) -> anyhow::Result<()> {
        let meta = match result {
            Ok((meta, mut store)) => {
                tracing::info!(last_index = last_index.0, "snapshot installed");
                self.core.journal.begin_behind(last_index, meta.last_term)?;
                group::install(self, &meta, &mut store);
                S::state_replaced(self, store.inner_mut());
                self.upkeep.snapshots.discard(store); // the state before it
                self.upkeep.snapshots.newest_at = Some(self.core.group.now);
                Some(meta)
            }
            Err(problem) => {
                if INSTALLING_FAILED.says(&problem) {
                    tracing::error!(problem, "a received snapshot could not be installed");
                }
                self.core.counters.snapshots_failed += 1;
                None
            }
        };
        let installed = meta.is_some();
        self.core
            .group
            .step(Input::SnapshotInstalled { last_index, meta });
        if installed {
            self.core.journal.compact(last_index);
        }
        Ok(())
    }
}

/// Makes a received snapshot durable and a store out of it.
fn install<A: Application + Default>(
    (files, place): (&storage::Snapshots, &Path),
    (last_index, last_term): (Index, Term),
    lineage: Lineage,
    stage: &Stage,
) -> anyhow::Result<(SnapshotMeta, Box<Sessions<A>>)> {
    let mut check = |read, of| stage.set(Progress::of_bytes("checking a snapshot", read, of));
    let head = files.install_watched((last_index, last_term), lineage, &mut check)?;
    ensure!(
        head.membership_index <= last_index,
        "its members are newer than itself"
    );
    let file = files
        .open_watched(last_index, &mut check)?
        .context("it is gone right after it came")?;
    let mut store = Box::<Sessions<A>>::default();
    store.keep_files_in(place);
    let total = file.total_bytes();
    let restored = |read| stage.set(Progress::of_bytes("restoring a snapshot", read, total));
    store.restore(&mut MeteredStream::new(file.body()?, restored))?;
    Ok((SnapshotMeta::from(&head), store))
}

fn busy() -> String {
    format!("{PIECES_WAITING_MAX} pieces of work wait for the disk")
}

/// A thread that does one job after the other.
fn worker<A: Send + 'static>(
    name: &str,
    results: Sender<Event<A>>,
    wake: Arc<mio::Waker>,
) -> anyhow::Result<SyncSender<Job<A>>> {
    let (jobs_in, jobs) = mpsc::sync_channel::<Job<A>>(PIECES_WAITING_MAX);
    let work = move || {
        while let Ok(job) = jobs.recv() {
            if results.send(job()).is_err() || wake.wake().is_err() {
                return; // the event loop is gone
            }
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(jobs_in)
}

/// Checksum and length of everything written: to see whether replicas differ, not to withstand an
/// attacker.
#[derive(Default)]
struct Hasher {
    checksum: u32,
    bytes: u64,
}

impl Hasher {
    fn text(&self) -> String {
        format!("{:08x}-{:x}", self.checksum, self.bytes)
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::kv::KeyValue;
    use crate::server::start::tests::Alone;
    use bytes::BytesMut;
    use quorumwire_control::{Entry, Ticket};
    use quorumwire_interfaces::{Applied, Incarnation, LogTime};
    use quorumwire_kv::{Command, Discarded, Exptime, Key, Store, Written};
    use quorumwire_storage::{MemoryDisk, OpenFolder, Settings, open};
    use quorumwire_wire::{Membership, RecordKind, begin_record, finish_record};
    use std::sync::Mutex;
    use std::time::Instant;

    /// A state that takes its time: it says that it is being written, and is done when the
    /// other end says so, or is gone.
    struct Slow {
        begun: mpsc::Sender<()>,
        go_on: Mutex<Receiver<()>>,
    }

    impl Slow {
        fn new() -> (Box<Self>, Receiver<()>, mpsc::Sender<()>) {
            let (begun, has_begun) = mpsc::channel();
            let (may_go_on, go_on) = mpsc::channel();
            let go_on = Mutex::new(go_on);
            (Box::new(Self { begun, go_on }), has_begun, may_go_on)
        }
    }

    impl Frozen for Slow {
        fn write(&self, _: &mut dyn Write) -> io::Result<()> {
            self.begun.send(()).ok(); // nobody waits for this one
            self.go_on.lock().unwrap().recv().ok();
            Ok(())
        }
    }

    fn started() -> (mio::Poll, Snapshots<Store>) {
        let settings = Settings {
            cluster: "test".to_owned(),
            replica: ReplicaId(1),
            group: GroupId(0),
            new_incarnation: Incarnation(7),
            segment_bytes: 1 << 20,
            promise: Duration::from_millis(20),
            lineage: quorumwire_interfaces::Lineage::default(),
        };
        let OpenFolder::Ready(ready) = open(Arc::new(MemoryDisk::new()), settings).unwrap() else {
            panic!("a new folder is not damaged");
        };
        let poll = mio::Poll::new().unwrap();
        let wake = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
        let snapshots =
            Snapshots::start(ready.snapshots, (GroupId(0), Path::new("")), wake).unwrap();
        (poll, snapshots)
    }

    /// Writes an entry into the log, and waits until it is there.
    fn log_entry(server: &mut Server<KeyValue>, index: u64, payload_bytes: usize) {
        let mut block = BytesMut::new();
        let (term, at) = (Term(1), Index(index));
        let start = begin_record(&mut block, RecordKind::Command, GroupId(0), term, at);
        block.resize(block.len() + payload_bytes, 0);
        finish_record(&mut block, start);
        let entry = Entry {
            index: at,
            term,
            kind: RecordKind::Command,
            start: 0,
            end: u32::try_from(block.len()).unwrap(),
            block: block.freeze(),
        };
        let journal = &mut server.core.journal;
        let done = journal.persist(Ticket(index), None, &[entry]).unwrap();
        assert_eq!(done, None, "a thread writes it");
        wait(server, |server| {
            server.core.journal.take_persisted().unwrap() == Some(Ticket(index))
        });
    }

    /// Until this holds, which another thread brings about.
    fn wait(server: &mut Server<KeyValue>, mut holds: impl FnMut(&mut Server<KeyValue>) -> bool) {
        let begun = Instant::now();
        let mut events = mio::Events::with_capacity(8);
        while !holds(server) {
            assert!(begun.elapsed() < Duration::from_secs(10), "it never does");
            let some = Some(Duration::from_millis(5));
            server.poll.poll(&mut events, some).unwrap();
        }
    }

    /// Otherwise it would stay, beside the snapshot that replaces it, until this replica takes a snapshot of
    /// its own.
    #[test]
    fn the_log_behind_an_installed_snapshot_is_removed() {
        let mut alone = Alone::start(&[("durability", "sync"), ("segment-mib", "4")]);
        let server = &mut alone.server;
        for index in 1..=9 {
            log_entry(server, index, 1_000_000);
        }
        let segments = |server: &mut Server<KeyValue>| {
            let journal = &server.core.journal;
            (
                journal.segments(),
                journal.counters().unwrap().segments_removed,
            )
        };
        let (before, removed) = segments(server);
        assert!(before > 2 && removed == 0, "{before}, {removed}");
        let head = SnapshotHead {
            last_index: Index(10),
            last_term: Term(2),
            ..SnapshotHead::default()
        };
        server
            .upkeep
            .snapshots
            .files
            .create(&head, |_| Ok(()))
            .unwrap();
        let meta = SnapshotMeta::from(&head);
        let installed = Ok((meta, Box::default()));
        server.snapshot_installed(Index(10), installed).unwrap();
        wait(server, |server| segments(server).1 == before - 1);
    }

    #[test]
    fn a_piece_for_which_there_is_no_room_is_answered() {
        let (_poll, mut snapshots) = started();
        let (begun, has_begun) = mpsc::channel();
        let (may_go_on, go_on) = mpsc::channel::<()>();
        let digest = |_| Event::Digest(0, Ok(String::new()), oneshot::channel().0);
        let slow: Job<Store> = Box::new(move || {
            begun.send(()).ok(); // nobody else waits
            digest(go_on.recv())
        });
        snapshots.piece(slow, digest(Ok(())));
        has_begun.recv().unwrap();
        let mut read = || snapshots.read(ReplicaId(2), Index(5), 0, 10);
        for _ in 0..PIECES_WAITING_MAX {
            read();
        }
        read();
        let answer = snapshots.results.try_recv();
        assert!(matches!(
            answer,
            Ok(Event::Read(Input::SnapshotRead { chunk: None, .. }))
        ));
        drop(may_go_on);
    }

    /// A job for a thread that goes on only when told to.
    fn slow_job() -> (Job<Store>, Receiver<()>, mpsc::Sender<()>) {
        let (slow, has_begun, may_go_on) = Slow::new();
        let job: Job<Store> = Box::new(move || {
            slow.write(&mut io::sink()).ok(); // it only takes its time
            Event::Discarded
        });
        (job, has_begun, may_go_on)
    }

    /// What a store throws away that holds so many items of 100 KB.
    fn thrown_away(items: u64) -> Discarded {
        let mut store = Store::new();
        let value = vec![0; 100_000];
        let name = |number: u64| number.to_string().into_bytes();
        let mut run = |number, command: &Command<'_>| {
            let mut bytes = Vec::new();
            command.encode(&mut bytes);
            let entry = Applied {
                number,
                log_time: LogTime(1),
                awaits_time: false,
                command: &bytes,
            };
            store.apply(&entry, &mut Vec::new());
        };
        for number in 0..items {
            run(
                number,
                &Command::Set(Written {
                    key: Key::new(&name(number)).unwrap(),
                    flags: 0,
                    exptime: Exptime(0),
                    value: &value,
                }),
            );
        }
        run(items, &Command::FlushAll { delay: Exptime(0) });
        store.take_discarded().unwrap()
    }

    /// Whether a thread frees it.
    fn free(snapshots: &mut Snapshots<Store>, discarded: Discarded) -> bool {
        let bytes = discarded.bytes();
        snapshots.free(discarded, bytes)
    }

    /// Whoever fills and flushes again and again does not outrun it.
    #[test]
    fn what_is_thrown_away_waits_for_a_thread_up_to_a_limit() {
        let (_poll, mut snapshots) = started();
        assert!(
            !free(&mut snapshots, thrown_away(1)),
            "little is freed at once"
        );
        let (slow, has_begun, may_go_on) = slow_job();
        snapshots.pieces.try_send(slow).unwrap();
        has_begun.recv().unwrap();
        assert!(free(&mut snapshots, thrown_away(400)));
        assert!(free(&mut snapshots, thrown_away(200)));
        assert!(!free(&mut snapshots, thrown_away(100)));
        drop(may_go_on);
        for _ in 0..3 {
            let event = snapshots.results.recv().unwrap();
            assert!(matches!(event, Event::Discarded));
        }
        assert!(free(&mut snapshots, thrown_away(400)));
        // The queue is full.
        let (slow, has_begun, may_go_on) = slow_job();
        snapshots.pieces.send(slow).unwrap();
        has_begun.recv().unwrap();
        for _ in 0..PIECES_WAITING_MAX {
            snapshots.read(ReplicaId(2), Index(5), 0, 10);
        }
        assert!(!free(&mut snapshots, thrown_away(100)));
        drop(may_go_on);
    }

    #[test]
    fn a_snapshot_for_which_there_is_no_room_is_not_being_taken() {
        let (_poll, mut snapshots) = started();
        let (slow, has_begun, may_go_on) = Slow::new();
        let (reply, _) = oneshot::channel();
        snapshots.digest(Index(1), slow, reply);
        has_begun.recv().unwrap(); // the thread has it, so it takes nothing else
        for _ in 0..PIECES_WAITING_MAX {
            let (reply, _) = oneshot::channel();
            snapshots.digest(Index(1), Slow::new().0, reply);
        }
        let meta = SnapshotMeta {
            last_index: Index(1),
            last_term: Term(1),
            membership: Membership::default(),
            membership_index: Index(1),
            log_time: LogTime(0),
        };
        let taken = snapshots.take(meta, Slow::new().0);
        assert!(taken.is_err());
        assert!(!snapshots.is_taking());
        drop(may_go_on);
    }

    #[test]
    fn replicas_take_their_snapshots_at_different_times() {
        let limit = 1000;
        for replicas in [3, 5, 7] {
            let mut starts: Vec<u64> = (0..replicas)
                .map(|id| head_start(limit, ReplicaId(id)))
                .collect();
            starts.sort_unstable();
            starts.push(limit + starts[0]);
            let nearest = starts.windows(2).map(|two| two[1] - two[0]).min();
            assert!(
                nearest > Some(limit / 2 / u64::from(replicas)),
                "{starts:?}"
            );
        }
        assert!(head_start(u64::MAX, ReplicaId(u16::MAX)) < u64::MAX);
    }
}
