//! Backup files: whose state they hold and as of when, then the state machine's bytes in checked blocks
//! (`blocks.rs`). Knows no disk: it writes to and reads from whatever it is handed.
use crate::blocks::{BlockReader, BlockWriter};
use crate::limits::CLUSTER_NAME_BYTES_MAX;
use crate::{Malformed, SnapshotError, SnapshotHead, peer};
use prost::Message;
use quorumwire_interfaces::ReplicaId;
use std::io::{self, Read, Write};

/// Version of the backup files this code writes and reads.
pub const BACKUP_VERSION: u32 = 1;

/// "QWBK": the first bytes of every backup file.
const BACKUP_MAGIC: u32 = 0x5157_424b;

/// What a backup holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BackupHead {
    /// Name of the cluster that was backed up.
    pub cluster: String,
    /// The replica that wrote it.
    pub replica: ReplicaId,
    /// What that replica's clock showed, milliseconds since 1970-01-01.
    pub taken_ms: u64,
    /// What the state stands for.
    pub state: SnapshotHead,
}

/// Why a backup cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The first four bytes are not ours.
    #[error("not a Quorumwire backup (it begins with {magic:#010x})")]
    Foreign {
        /// What stood there.
        magic: u32,
    },
    /// It was written by a newer version.
    #[error("backup of version {version}, this version reads {BACKUP_VERSION}")]
    Newer {
        /// The version it claims.
        version: u32,
    },
    /// It is not what was written. Nothing of it may be used.
    #[error("the backup is damaged: {0}")]
    Damaged(SnapshotError),
    /// The bytes could not be had.
    #[error(transparent)]
    Io(io::Error),
}

impl From<SnapshotError> for BackupError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Magic { magic } => Self::Foreign { magic },
            SnapshotError::Version { version } => Self::Newer { version },
            SnapshotError::Io(error) => Self::Io(error),
            SnapshotError::TooLong { .. }
            | SnapshotError::Checksum(_)
            | SnapshotError::Length { .. }
            | SnapshotError::Short
            | SnapshotError::Trailing
            | SnapshotError::Malformed(_) => Self::Damaged(error),
        }
    }
}

impl From<io::Error> for BackupError {
    /// As for snapshots: an error that carries one of the format is that one.
    fn from(error: io::Error) -> Self {
        Self::from(SnapshotError::from(error))
    }
}

/// Writes a backup: what is written to it becomes the body. Without [`finish`](Self::finish) the file
/// has no end and no reader takes it.
#[derive(Debug)]
pub struct BackupWriter<W> {
    blocks: BlockWriter<W>,
}

impl<W: Write> BackupWriter<W> {
    /// Writes the head. An error is that of `inner`.
    pub fn new(inner: W, head: &BackupHead) -> io::Result<Self> {
        let head = peer::BackupHead {
            cluster: head.cluster.clone(),
            replica: u32::from(head.replica.0),
            taken_ms: head.taken_ms,
            state: Some(head.state.to_proto()),
        };
        let blocks =
            BlockWriter::begin(inner, BACKUP_MAGIC, BACKUP_VERSION, &head.encode_to_vec())?;
        Ok(Self { blocks })
    }

    /// Writes the end and gives back what was written to, not flushed.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}

impl<W: Write> Write for BackupWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.blocks.write(bytes)
    }

    /// Does nothing: blocks have a fixed size.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a backup, as [`crate::SnapshotReader`] a snapshot.
#[derive(Debug)]
pub struct BackupReader<R> {
    blocks: BlockReader<R>,
    head: BackupHead,
}

impl<R: Read> BackupReader<R> {
    /// Reads and checks the head.
    pub fn new(inner: R) -> Result<Self, BackupError> {
        let (blocks, head) = BlockReader::begin(inner, BACKUP_MAGIC, BACKUP_VERSION)?;
        let head = head_of(&head).map_err(SnapshotError::from)?;
        Ok(Self { blocks, head })
    }

    /// What the backup holds.
    #[must_use]
    pub const fn head(&self) -> &BackupHead {
        &self.head
    }

    /// Reads to the end, checking everything; gives back the length of the body.
    pub fn verify(self) -> Result<u64, BackupError> {
        Ok(self.blocks.verify()?)
    }
}

impl<R: Read> Read for BackupReader<R> {
    /// Errors of the format come as `InvalidData` with a [`SnapshotError`] inside. After any error every
    /// later call fails too.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.blocks.read(buffer)
    }
}

fn head_of(bytes: &[u8]) -> Result<BackupHead, Malformed> {
    let malformed = |problem: String| Malformed::new("backup head", problem);
    let proto = peer::BackupHead::decode(bytes).map_err(|error| malformed(error.to_string()))?;
    let Some(state) = &proto.state else {
        return Err(malformed(
            "it does not say what the state stands for".to_owned(),
        ));
    };
    if proto.cluster.is_empty() || proto.cluster.len() > CLUSTER_NAME_BYTES_MAX {
        let bytes = proto.cluster.len();
        let problem = format!("a name of {bytes} bytes; 1 to {CLUSTER_NAME_BYTES_MAX} are allowed");
        return Err(malformed(problem));
    }
    let replica = u16::try_from(proto.replica)
        .map_err(|_| malformed(format!("replica {}, at most {}", proto.replica, u16::MAX)))?;
    Ok(BackupHead {
        cluster: proto.cluster,
        replica: ReplicaId(replica),
        taken_ms: proto.taken_ms,
        state: SnapshotHead::from_proto(state)?,
    })
}
