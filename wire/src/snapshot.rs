//! Snapshot files: what they stand for, then the state machine's bytes in checked blocks
//! (`blocks.rs`). Knows no disk: it writes to and reads from whatever it is handed.
use crate::blocks::{BlockReader, BlockWriter};
use crate::{Malformed, Membership, SNAPSHOT_VERSION, peer};
use prost::Message;
use quorumwire_interfaces::{GroupId, Index, LogTime, Term};
use std::io::{self, Read, Write};

/// "QWSN": the first bytes of every snapshot file.
const SNAPSHOT_MAGIC: u32 = 0x5157_534e;

/// What a snapshot stands for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SnapshotHead {
    /// The log it replaces the beginning of.
    pub group: GroupId,
    /// The last entry it contains.
    pub last_index: Index,
    /// That entry's term.
    pub last_term: Term,
    /// The log's time as of that entry.
    pub log_time: LogTime,
    /// The members as of that entry.
    pub membership: Membership,
    /// The entry that set them.
    pub membership_index: Index,
}

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The first four bytes are not ours.
    #[error("not a quorumwire snapshot (begins with {magic:#010x})")]
    Magic {
        /// What stood there.
        magic: u32,
    },
    /// It was written by a newer version.
    #[error("snapshot version {version}, this code reads {SNAPSHOT_VERSION}")]
    Version {
        /// The version it claims.
        version: u32,
    },
    /// A length is beyond its limit.
    #[error("snapshot {what} of {bytes} bytes is longer than {bytes_max}")]
    TooLong {
        /// "head" or "block".
        what: &'static str,
        /// The length it claims.
        bytes: usize,
        /// The longest allowed.
        bytes_max: usize,
    },
    /// A checksum does not match; the text says where.
    #[error("snapshot checksum mismatch in the {0}")]
    Checksum(&'static str),
    /// The end names another length than what was read.
    #[error("snapshot body of {found} bytes, its end says {said}")]
    Length {
        /// Bytes read.
        found: u64,
        /// Bytes the end names.
        said: u64,
    },
    /// The file ends early.
    #[error("snapshot cut short")]
    Short,
    /// Something follows the end.
    #[error("bytes behind the end of the snapshot")]
    Trailing,
    /// The head's checksum is right and its contents are not.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The bytes could not be had.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for SnapshotError {
    /// A reader that ends early is a file cut short; an error that carries one of ours is that one.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::Short;
        }
        match error.downcast::<Self>() {
            Ok(ours) => ours,
            Err(other) => Self::Io(other),
        }
    }
}

impl From<SnapshotError> for io::Error {
    fn from(error: SnapshotError) -> Self {
        if let SnapshotError::Io(error) = error {
            return error;
        }
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl SnapshotHead {
    /// The message form.
    #[must_use]
    pub fn to_proto(&self) -> peer::SnapshotHead {
        peer::SnapshotHead {
            group: self.group.0,
            last_index: self.last_index.0,
            last_term: self.last_term.0,
            log_time_ms: self.log_time.0,
            membership: Some(self.membership.to_proto()),
            membership_index: self.membership_index.0,
        }
    }

    /// Reads the message form, checking every limit.
    pub fn from_proto(proto: &peer::SnapshotHead) -> Result<Self, Malformed> {
        let Some(membership) = &proto.membership else {
            return Err(Malformed::new("snapshot head", "no membership"));
        };
        if proto.last_index == 0 || proto.membership_index > proto.last_index {
            let problem = format!(
                "membership index {} and last index {}; the first lies within the second, which is not 0",
                proto.membership_index, proto.last_index
            );
            return Err(Malformed::new("snapshot head", problem));
        }
        Ok(Self {
            group: GroupId(proto.group),
            last_index: Index(proto.last_index),
            last_term: Term(proto.last_term),
            log_time: LogTime(proto.log_time_ms),
            membership: Membership::from_proto(membership)?,
            membership_index: Index(proto.membership_index),
        })
    }
}

/// Writes a snapshot: what is written to it becomes the body. Without [`finish`](Self::finish) the
/// file has no end and no reader takes it.
#[derive(Debug)]
pub struct SnapshotWriter<W> {
    blocks: BlockWriter<W>,
}

impl<W: Write> SnapshotWriter<W> {
    /// Writes the head. An error is that of `inner`.
    pub fn new(inner: W, head: &SnapshotHead) -> io::Result<Self> {
        let head = head.to_proto().encode_to_vec();
        let blocks = BlockWriter::begin(inner, SNAPSHOT_MAGIC, SNAPSHOT_VERSION, &head)?;
        Ok(Self { blocks })
    }

    /// Writes the end and gives back what was written to, not flushed.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}

impl<W: Write> Write for SnapshotWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.blocks.write(bytes)
    }

    /// Does nothing: blocks have a fixed size, so that equal states give equal files.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a snapshot: what is read from it is the body. It gives out no byte whose block it has not
/// checked, holds one block in memory, and says the body is at its end (a read of 0 bytes) only after
/// the end was there, was right, and nothing followed it.
#[derive(Debug)]
pub struct SnapshotReader<R> {
    blocks: BlockReader<R>,
    head: SnapshotHead,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads and checks the head.
    pub fn new(inner: R) -> Result<Self, SnapshotError> {
        let (blocks, head) = BlockReader::begin(inner, SNAPSHOT_MAGIC, SNAPSHOT_VERSION)?;
        let head = peer::SnapshotHead::decode(head.as_slice())
            .map_err(|error| Malformed::new("snapshot head", error.to_string()))?;
        let head = SnapshotHead::from_proto(&head)?;
        Ok(Self { blocks, head })
    }

    /// What the snapshot stands for.
    #[must_use]
    pub const fn head(&self) -> &SnapshotHead {
        &self.head
    }

    /// Reads to the end, checking everything; gives back the length of the body.
    pub fn verify(self) -> Result<u64, SnapshotError> {
        self.blocks.verify()
    }
}

impl<R: Read> Read for SnapshotReader<R> {
    /// Errors of the format come as `InvalidData` with a [`SnapshotError`] inside. After any error
    /// every later call fails too.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.blocks.read(buffer)
    }
}
