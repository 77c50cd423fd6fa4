//! What a replica must not forget: a segmented write-ahead log and snapshots in one folder per group,
//! behind one small [`Disk`] trait. Knows the bytes of `wire`, nothing of Raft.
//!
//! # Use
//! ```
//! use bytes::BytesMut;
//! use quorumwire_interfaces::{GroupId, Incarnation, Index, Lineage, ReplicaId, Term};
//! use quorumwire_storage::{FolderDisk, LogJob, LogWriter, OpenFolder, Settings, open};
//! use quorumwire_wire::{RecordKind, begin_record, finish_record};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! let disk = Arc::new(FolderDisk::open(path)?); // refused while another process has it
//! let settings = Settings {
//!     cluster: "demo".to_owned(),
//!     replica: ReplicaId(1),
//!     group: GroupId(0),
//!     new_incarnation: Incarnation(0x5eed), // random; used only if the folder is new
//!     segment_bytes: 64 << 20, // the log goes on in another file from here
//!     promise: Duration::from_millis(20),
//!     lineage: Lineage::default(), // not known yet
//! };
//! let ready = match open(disk, settings)? {
//!     OpenFolder::Ready(ready) => ready, // as it was left, or fresh
//!     // Never served. The replica comes back as a new life and is brought up to date by others.
//!     OpenFolder::Damaged(damaged) => damaged.start_over(Incarnation(0x5eee))?,
//! };
//! assert!(ready.fresh && ready.stored.entries.is_empty());
//!
//! let (woken, wakes) = std::sync::mpsc::channel(); // a node wakes its event loop instead
//! let log = LogWriter::start(ready.log, Box::new(move || drop(woken.send(()))))?;
//! let mut records = BytesMut::new();
//! let start = begin_record(&mut records, RecordKind::NoOp, GroupId(0), Term(1), Index(1));
//! finish_record(&mut records, start);
//! log.submit(LogJob {
//!     ticket: 1,
//!     pieces: vec![records.freeze()],
//!     ..LogJob::default()
//! })
//! .expect("the queue is not full");
//! wakes.recv()?;
//! assert_eq!(log.persisted(), 1); // on disk: it may be acknowledged
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Snapshots, from any thread: [`Snapshots::create`] (then [`LogWriter::compact`]), [`Snapshots::open`]
//! and [`SnapshotFile::body`] to restore, [`Snapshots::read_chunk`] to send,
//! [`Snapshots::store_chunk`] and [`Snapshots::install`] to receive (then a job with
//! [`LogJob::begin_behind`]). Memory mode: [`open_memory`] gives the same [`Ready`] over no log.
//!
//! # The folder
//! | file | what |
//! |---|---|
//! | `LOCK` | locked while a process uses the folder; holds its number |
//! | `identity` | cluster, its lineage, replica, group, incarnation, longest promise in force, version of the folder |
//! | `log-<number>` | segments of the log, numbered in hexadecimal without gaps |
//! | `mark` | how far the log had been synced, for telling a torn end from damage |
//! | `snapshot-<index>-<term>` | snapshots by their last entry; the newest two are kept |
//! | `*.tmp` | being written; removed at start |
//! | `damaged-*` | put aside by [`DamagedFolder::start_over`]; for people, may be removed |
//! | `given-up-*` | likewise, of a life that was given up by [`give_up`] |
//!
//! # What is promised
//! - A job that [`LogWriter::persisted`] covers is there after any crash or power cut.
//! - What was never acknowledged may be there or not, but only as a beginning of what was submitted.
//! - Bytes that had been synced and are not what they were (flipped, zeroed, missing, in another's
//!   place) make the folder [`OpenFolder::Damaged`]. They are never served and never silently dropped.
//! - A failed sync is final: nothing after it is taken, the process must end. At the next start
//!   everything whose sync had not been acknowledged is written once more before it is trusted.
//! - A full disk is not an error of the log: the batch waits ([`LogHealth::DiskFull`]) and is written when
//!   there is room; so it is where no file can be opened ([`LogHealth::NoDescriptor`]). No room is kept back
//!   for votes: a replica whose disk is full promises nothing new, in order, until there is room again.
//!
//! # A torn end, or damage?
//! A batch is written only after the one before it was synced, and begins with a Durable record that
//! says so. If something unreadable has a Durable record of a later batch behind it, or a later
//! segment, or lies before the mark, it had been synced: damage. Otherwise it is the last batch and was
//! never known to be durable: it is cut off. After `kill -9` the mark is exact. After a power cut it
//! may lag, so that damage to the very last acknowledged batch at the very moment of a power cut looks
//! like its torn end; no single disk can tell these two apart.
mod disk;
mod identity;
mod learner;
mod log_writer;
mod mark;
mod mutants;
mod open;
mod replay;
mod sealed;
mod segment;
mod snapshots;
mod term_runs;
mod votes;
mod wal;
mod watch;

pub use disk::{
    Disk, DiskFile, FILES_MAX, Faults, FaultyDisk, FolderDisk, IO_SLICES_MAX, LOCK_NAME, MemoryDisk,
};
pub use identity::{FolderOwner, Owned, owner_of};
pub use learner::{LearnerCheckpoint, LearnerFolder};
pub use log_writer::{
    BATCH_BYTES_TARGET, JOB_BYTES_WAITING_MAX, JOBS_WAITING_MAX, Log, LogCounters, LogHealth,
    LogJob, LogRefused, LogWriter, compactable,
};
pub use open::{give_up, open, open_memory, open_watched, restate_identity};
pub use snapshots::{SNAPSHOTS_KEPT, SnapshotError, SnapshotFile, Snapshots};
pub use votes::{VoteLog, VotesError, VotesFolder, VotesOwner};
pub use wal::{Wal, WalError};
pub use watch::Part;

use quorumwire_interfaces::{GroupId, Incarnation, Lineage, ReplicaId};
use quorumwire_wire::{Entry, SnapshotHead, peer};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Descriptors that a folder of one group may need at once: the folder, its lock, the mark, the log's file
/// and the next one; snapshots that are written, received, sent, and checked before they are; a list of
/// names, for each thread; and a small file that is replaced.
pub const DESCRIPTORS_MAX: usize = 5 + 4 + 3 + 1;

/// Whose folder it is, and how to keep it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the cluster.
    pub cluster: String,
    /// Who keeps this folder.
    pub replica: ReplicaId,
    /// The log kept in it.
    pub group: GroupId,
    /// The life that begins if the folder is new (in memory mode: at every start). Random, never 0.
    pub new_incarnation: Incarnation,
    /// A segment takes no further batch beyond this size.
    pub segment_bytes: u64,
    /// How long this process' promises to leaders last. Kept in whole microseconds.
    pub promise: Duration,
    /// The cluster that a new folder is of, where that is known already.
    pub lineage: Lineage,
}

impl Settings {
    fn owner(&self, incarnation: Incarnation) -> Owner {
        Owner {
            group: self.group,
            replica: self.replica,
            incarnation,
        }
    }
}

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Owner {
    group: GroupId,
    replica: ReplicaId,
    incarnation: Incarnation,
}

/// A folder that was opened.
// It exists once per start; its size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum OpenFolder {
    /// It can be used.
    Ready(Ready),
    /// Something in it is not what it was.
    Damaged(DamagedFolder),
}

/// A folder that can be used. It stays locked as long as `log` (or the writer made of it) or
/// `snapshots` lives.
pub struct Ready {
    /// The life of the replica that this folder remembers.
    pub incarnation: Incarnation,
    /// The cluster that the folder belongs to, as far as it was told.
    pub lineage: Lineage,
    /// This life has just begun: nothing is stored.
    pub fresh: bool,
    /// What was stored when the last process stopped.
    pub stored: FolderContents,
    /// The longest promise to a leader that may be in force: this process' or an earlier one's. If it is
    /// longer than [`Settings::promise`], nothing may be answered before it has passed since every
    /// process and plane of this replica stopped; then [`restate_identity`].
    pub promised: Duration,
    /// Where to write on.
    pub log: Log,
    /// The snapshots.
    pub snapshots: Snapshots,
    /// For the operator's log: what was found and put right.
    pub notes: Vec<String>,
}

/// What a folder remembers.
#[derive(Clone, Debug, Default)]
pub struct FolderContents {
    /// Term, vote and commit index; the default if none was ever written.
    pub hard_state: peer::HardState,
    /// The newest snapshot; its body is read by [`Snapshots::open`].
    pub snapshot: Option<SnapshotHead>,
    /// Entries with consecutive indexes. The first is at most one behind the snapshot's last; some
    /// may lie before it.
    pub entries: Vec<Entry>,
}

/// A folder that must not be served from.
pub struct DamagedFolder {
    disk: Arc<dyn Disk>,
    settings: Settings,
    what: String,
    incarnation: Option<Incarnation>,
    lineage: Lineage,
    /// Of the names of what is put aside.
    prefix: &'static str,
}

impl DamagedFolder {
    /// Which file, where, and what is wrong.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The life whose memory it was, if that is still known.
    #[must_use]
    pub const fn incarnation(&self) -> Option<Incarnation> {
        self.incarnation
    }
}

/// Why a folder is not opened. Nothing in it was changed, except that unfinished files may be gone.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It belongs to someone else.
    #[error("the folder belongs to {what} {found}, expected {expected}")]
    Foreign {
        /// "cluster", "replica" or "group".
        what: &'static str,
        /// What the folder says.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// It was written by a newer version.
    #[error("{what} of version {found}, this version reads {readable}")]
    Newer {
        /// What cannot be read.
        what: &'static str,
        /// Its version.
        found: u32,
        /// The version that could be read.
        readable: u32,
    },
    /// A snapshot was written by a newer version; the text says which.
    #[error("{0}")]
    NewerSnapshot(String),
    /// Memory mode was asked for, which would forget what is there.
    #[error(
        "durability memory is refused: the folder holds {0}, which durability sync wrote and memory mode would \
         forget. Start it with sync if it last ran so; to change a cluster's durability, empty one replica's \
         folder after the other, each once the one before is ready"
    )]
    HoldsData(String),
    /// The disk failed or is full.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What the disk said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
