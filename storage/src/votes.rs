//! What a Paxos acceptor must not forget: who it is, its lives, and its promises and votes, in a folder of
//! its own. A file of records grows by batches, each durable before anything in it is said; when much of it
//! says nothing any more, another file takes its place.
//!
//! # The folder
//! | file | what |
//! |---|---|
//! | `LOCK` | locked while a process uses the folder; holds its number |
//! | `acceptor` | deployment, number, how it remembers, and its next life |
//! | `votes-<number>` | the records, in the order in which things happened; the highest number counts |
//! | `mark` | how far that file was synced, to tell a torn end from damage |
//! | `*.tmp` | being written; removed at start |
//!
//! ```text
//!  acceptor: | crc32c | magic | version | me | acceptors | durable | group | life (8) |
//! ```
//! Big-endian. Each batch begins with a record that says up to where the file was durable before it. What
//! cannot be read is damage if it lies before that place or before the mark. Otherwise it is the end of a
//! batch that was never said: it is cut off.
use crate::disk::{ASIDE_SUFFIX, Disk, DiskFile, read_whole, replace_durably, write_all_at};
use crate::mark::{MARK_NAME, Mark, Tail};
use crate::mutants::mutant;
use crate::sealed::{is_whole, seal};
use crate::segment::{Position, u32_at, u64_at};
use bytes::Bytes;
use quorumwire_interfaces::Incarnation;
use quorumwire_wire::{PAXOS_RECORD_HEADER_BYTES, PaxosRecord, PaxosRecordError};
use std::io;
use std::sync::Arc;

/// Name of the file that says whose folder it is.
const IDENTITY_NAME: &str = "acceptor";
/// What the names of files with votes begin with.
const VOTES_PREFIX: &str = "votes-";
/// "QWAC".
const IDENTITY_MAGIC: u32 = 0x5157_4143;
const IDENTITY_VERSION: u8 = 1;
const IDENTITY_BYTES: usize = 24;
/// A file with fewer bytes is never written anew.
const REWRITTEN_FROM_BYTES: u64 = 16 << 20;
/// A file is written anew when it is so many times as long as what it says.
const TIMES_ITS_WORTH: u64 = 4;
/// The longest file that is read: the largest window with the longest values, as often as a file may hold it,
/// and more.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a record that says what was durable.
const SYNCED_BYTES: usize = PAXOS_RECORD_HEADER_BYTES + size_of::<u64>();

/// Whose folder it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VotesOwner {
    /// The deployment.
    pub group: u32,
    /// How many acceptors it has.
    pub acceptors: u8,
    /// Which of them this is.
    pub me: u8,
    /// Votes are durable before they are said; else only lives are counted here.
    pub is_durable: bool,
}

/// Why a folder cannot be used. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum VotesError {
    /// It was made for somebody else.
    #[error("the folder is of {found}, not of {expected}")]
    Foreign {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        expected: String,
    },
    /// There is an acceptor in it already.
    #[error("the folder holds an acceptor already")]
    Exists,
    /// There is none in it.
    #[error("the folder holds no acceptor: it has to be made first")]
    Nobody,
    /// Another version wrote it.
    #[error("{what} has version {found}; this program reads {readable}")]
    Version {
        /// What cannot be read.
        what: &'static str,
        /// Its version.
        found: u8,
        /// The version that could be read.
        readable: u8,
    },
    /// What was durable is not what it was.
    #[error("{name} is damaged: {what}")]
    Damaged {
        /// The file.
        name: String,
        /// Where, and what is wrong.
        what: String,
    },
    /// The disk failed or is full.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What the disk said.
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> VotesError {
    move |source| VotesError::Io { what, source }
}

impl VotesOwner {
    fn in_words(self) -> String {
        let durability = if self.is_durable { "sync" } else { "memory" };
        format!(
            "acceptor {} of {} with durability {durability}, in the deployment whose name, window and numbers of hosts \
             make the number {}",
            self.me, self.acceptors, self.group
        )
    }

    fn encode(self, life: u64) -> Bytes {
        let mut bytes = [0; IDENTITY_BYTES];
        bytes[4..8].copy_from_slice(&IDENTITY_MAGIC.to_be_bytes());
        bytes[8] = IDENTITY_VERSION;
        bytes[9] = self.me;
        bytes[10] = self.acceptors;
        bytes[11] = u8::from(self.is_durable);
        bytes[12..16].copy_from_slice(&self.group.to_be_bytes());
        bytes[16..].copy_from_slice(&life.to_be_bytes());
        seal(&mut bytes);
        Bytes::copy_from_slice(&bytes)
    }

    fn decode(bytes: &[u8]) -> Result<(Self, u64), VotesError> {
        let damaged = |what: &str| VotesError::Damaged {
            name: IDENTITY_NAME.to_owned(),
            what: what.to_owned(),
        };
        if bytes.len() != IDENTITY_BYTES || u32_at(bytes, 4) != IDENTITY_MAGIC {
            return Err(damaged("it is none of an acceptor"));
        }
        if !is_whole(bytes) {
            return Err(damaged("its checksum is wrong"));
        }
        if bytes[8] != IDENTITY_VERSION {
            return Err(VotesError::Version {
                what: "the folder",
                found: bytes[8],
                readable: IDENTITY_VERSION,
            });
        }
        let owner = Self {
            group: u32_at(bytes, 12),
            acceptors: bytes[10],
            me: bytes[9],
            is_durable: bytes[11] == 1,
        };
        Ok((owner, u64_at(bytes, 16)))
    }
}

/// An acceptor's folder, open.
pub struct VotesFolder {
    disk: Arc<dyn Disk>,
    owner: VotesOwner,
    next_life: u64,
}

impl VotesFolder {
    /// Makes an acceptor's folder. `life`: 0 where it has never promised anything; else a number above those
    /// of all lives it ever had.
    ///
    /// # Errors
    /// There is one already, or the disk fails.
    pub fn create(disk: &dyn Disk, owner: &VotesOwner, life: u64) -> Result<(), VotesError> {
        let names = disk.list().map_err(failed("listing the folder"))?;
        let is_there = |name: &String| name == IDENTITY_NAME || name.starts_with(VOTES_PREFIX);
        for name in names.into_iter().filter(is_there) {
            // A file with nothing in it is one of an attempt that failed.
            let file = disk.open(&name).map_err(failed("opening a file"))?;
            let is_empty = file.file_bytes().map_err(failed("opening a file"))? == 0;
            if name == IDENTITY_NAME || !is_empty {
                return Err(VotesError::Exists);
            }
        }
        if let Err(error) = disk.remove(MARK_NAME)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(failed("removing a file")(error));
        }
        if owner.is_durable {
            let file = disk.create(&name_of(0)).map_err(failed("making a file"))?;
            file.sync_data().map_err(failed("syncing a file"))?;
        }
        // With this the folder is complete, and not before.
        replace_durably(disk, IDENTITY_NAME, owner.encode(life)).map_err(failed("making a file"))
    }

    /// Opens a folder that there is.
    ///
    /// # Errors
    /// It is another one's, or damaged, or the disk fails.
    pub fn open(disk: Arc<dyn Disk>, owner: VotesOwner) -> Result<Self, VotesError> {
        let file = match disk.open(IDENTITY_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(VotesError::Nobody);
            }
            Err(error) => return Err(failed("opening a file")(error)),
        };
        let bytes = read_whole(&*file, FILE_BYTES_MAX).map_err(failed("reading a file"))?;
        let (found, next_life) = VotesOwner::decode(&bytes)?;
        if found != owner {
            return Err(VotesError::Foreign {
                found: found.in_words(),
                expected: owner.in_words(),
            });
        }
        for name in disk.list().map_err(failed("listing the folder"))? {
            if name.ends_with(ASIDE_SUFFIX) {
                disk.remove(&name).map_err(failed("removing a file"))?;
            }
        }
        Ok(Self {
            disk,
            owner,
            next_life,
        })
    }

    /// The life that begins now; the next one is counted before this returns. 0: it has never promised
    /// anything.
    ///
    /// # Errors
    /// The disk fails.
    pub fn begin_life(&mut self) -> Result<u64, VotesError> {
        let life = self.next_life;
        let next = life.saturating_add(1);
        replace_durably(&*self.disk, IDENTITY_NAME, self.owner.encode(next))
            .map_err(failed("counting a life"))?;
        self.next_life = next;
        Ok(life)
    }

    /// What has been kept, and where to go on.
    ///
    /// # Errors
    /// What was durable is damaged, or the disk fails.
    pub fn votes(&self) -> Result<(VoteLog, Vec<PaxosRecord>), VotesError> {
        VoteLog::open(Arc::clone(&self.disk))
    }
}

fn name_of(sequence: u64) -> String {
    format!("{VOTES_PREFIX}{sequence:016x}")
}

fn sequence_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(VOTES_PREFIX)?;
    let sequence = u64::from_str_radix(digits, 16).ok()?;
    (name_of(sequence) == name).then_some(sequence)
}

/// Records on disk, to be written on.
pub struct VoteLog {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    mark: Mark,
    sequence: u64,
    /// What is durable.
    synced_bytes: u64,
    /// How long a file would be that says the same.
    worth_bytes: u64,
    batch: Vec<u8>,
}

/// The chain of a mark means nothing here.
fn tail(sequence: u64, offset: u64) -> Tail {
    Tail {
        position: Position { sequence, offset },
        chain: 0,
    }
}

/// Nor does its life: the folder has one file that counts.
const MARKS_LIFE: Incarnation = Incarnation(1);

impl VoteLog {
    fn open(disk: Arc<dyn Disk>) -> Result<(Self, Vec<PaxosRecord>), VotesError> {
        let names = disk.list().map_err(failed("listing the folder"))?;
        let found = names.iter().filter_map(|name| sequence_of(name)).max();
        let Some(sequence) = found else {
            return Err(VotesError::Damaged {
                name: name_of(0),
                what: "it is gone".to_owned(),
            });
        };
        let name = name_of(sequence);
        let file = disk.open(&name).map_err(failed("opening votes"))?;
        let bytes = read_whole(&*file, FILE_BYTES_MAX).map_err(failed("reading votes"))?;
        let mark = Mark::read(&*disk, MARKS_LIFE).map_err(failed("reading the mark"))?;
        let marked = mark.filter(|it| it.position.sequence == sequence);
        let marked = marked.map_or(0, |it| it.position.offset);
        let newer = mark.is_some_and(|it| it.position.sequence > sequence);
        let (records, sound) = decode(&bytes, marked).map_err(|what| match what {
            Wrong::Version(found) => VotesError::Version {
                what: "a record",
                found,
                readable: quorumwire_wire::PAXOS_RECORD_VERSION,
            },
            Wrong::Damaged(at, error) => VotesError::Damaged {
                name: name.clone(),
                what: format!("at byte {at}: {error}, in what was durable"),
            },
        })?;
        if newer {
            return Err(VotesError::Damaged {
                name,
                what: "a later file is gone".to_owned(),
            });
        }
        if sound < bytes.len() as u64 {
            file.truncate(sound).map_err(failed("cutting votes"))?;
        }
        // What was written and not said may have been synced or not: it counts from here on.
        file.sync_data().map_err(failed("syncing votes"))?;
        let mark = Mark::open(&*disk, MARKS_LIFE, tail(sequence, sound))
            .and_then(|mark| mark.sync().map(|()| mark))
            .map_err(failed("writing the mark"))?;
        for name in names {
            if sequence_of(&name).is_some_and(|it| it < sequence) {
                disk.remove(&name).map_err(failed("removing a file"))?;
            }
        }
        disk.sync_folder().map_err(failed("syncing the folder"))?;
        let log = Self {
            disk,
            file,
            mark,
            sequence,
            synced_bytes: sound,
            worth_bytes: 0,
            batch: Vec::new(),
        };
        Ok((log, records))
    }

    /// Puts a record behind the others. It is durable after the next [`sync`](Self::sync).
    pub fn append(&mut self, record: &PaxosRecord) {
        if self.batch.is_empty() {
            PaxosRecord::Synced(self.synced_bytes).encode(&mut self.batch);
        }
        record.encode(&mut self.batch);
    }

    /// Whether there is anything to sync.
    #[must_use]
    pub fn has_unsynced(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Makes all that was appended durable. After an error nothing is known about it, and the process ends.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = Bytes::from(std::mem::take(&mut self.batch));
        write_all_at(&*self.file, self.synced_bytes, std::slice::from_ref(&batch))?;
        if !mutant("vote-said-before-sync") {
            self.file.sync_data()?;
        }
        self.synced_bytes += batch.len() as u64;
        self.mark.write(tail(self.sequence, self.synced_bytes))
    }

    /// Whether most of the file says nothing any more.
    #[must_use]
    pub fn is_to_be_rewritten(&self) -> bool {
        self.synced_bytes
            >= REWRITTEN_FROM_BYTES.max(self.worth_bytes.saturating_mul(TIMES_ITS_WORTH))
    }

    /// Writes these records into another file, in place of all that was kept.
    ///
    /// # Errors
    /// The disk fails: the process ends.
    pub fn rewrite(&mut self, records: impl Iterator<Item = PaxosRecord>) -> io::Result<()> {
        let mut all = Vec::new();
        records.for_each(|record| record.encode(&mut all));
        let length = (SYNCED_BYTES + all.len()) as u64;
        let mut bytes = Vec::with_capacity(SYNCED_BYTES + all.len());
        PaxosRecord::Synced(length).encode(&mut bytes); // the file has no name before that
        bytes.append(&mut all);
        let (before, sequence) = (name_of(self.sequence), self.sequence + 1);
        let name = name_of(sequence);
        replace_durably(&*self.disk, &name, Bytes::from(bytes))?;
        self.file = self.disk.open(&name)?;
        self.sequence = sequence;
        self.synced_bytes = length;
        self.worth_bytes = length;
        self.batch.clear();
        self.mark.write(tail(sequence, length))?;
        self.disk.remove(&before)
    }
}

/// What is wrong with a file.
enum Wrong {
    Damaged(u64, PaxosRecordError),
    Version(u8),
}

/// The records, and up to where they can be read. All before `durable` was durable, as far as is known.
fn decode(bytes: &[u8], mut durable: u64) -> Result<(Vec<PaxosRecord>, u64), Wrong> {
    let (mut records, mut at) = (Vec::new(), 0);
    let error = loop {
        if at == bytes.len() {
            break PaxosRecordError::Cut;
        }
        match PaxosRecord::decode(&bytes[at..]) {
            Ok((PaxosRecord::Synced(before), length)) => {
                durable = durable.max(before);
                at += length;
            }
            Ok((record, length)) => {
                records.push(record);
                at += length;
            }
            Err(PaxosRecordError::Version(version)) => return Err(Wrong::Version(version)),
            Err(error) => break error,
        }
    };
    let was_durable = (at as u64) < durable && !mutant("what-the-mark-covers-is-cut")
        || later_batch(bytes, at) && !mutant("what-later-batches-cover-is-cut");
    if was_durable {
        return Err(Wrong::Damaged(at as u64, error));
    }
    Ok((records, at as u64))
}

/// Whether behind this place a batch begins that says that the place was durable. Such a record says where it
/// stands itself: the bytes of a value could look like any other.
fn later_batch(bytes: &[u8], place: usize) -> bool {
    let places = place + 1..bytes.len().saturating_sub(SYNCED_BYTES - 1);
    places.into_iter().any(|at| {
        let found = PaxosRecord::decode(&bytes[at..at + SYNCED_BYTES]);
        found.is_ok_and(|(record, _)| record == PaxosRecord::Synced(at as u64))
    })
}
