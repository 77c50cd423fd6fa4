//! Snapshot files: what they stand for, then the state machine's bytes in checked blocks. Knows no
//! disk: it writes to and reads from whatever it is handed.
//!
//! ```text
//!  0       4         8            12       16
//!  | magic | version | head bytes | crc32c | head (protobuf) | block | block ... | end |
//!
//!  block: | body bytes, 1 to 262144 | crc32c | body ... |
//!  end:   | 0 | body bytes in all (8) | crc32c |
//! ```
//! Big-endian. Each checksum goes on from the one before it, so that blocks can be neither swapped,
//! left out nor repeated; nothing may follow the end.
use crate::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_HEAD_BYTES_MAX};
use crate::{Malformed, Membership, SNAPSHOT_VERSION, peer};
use prost::Message;
use quorumwire_interfaces::{GroupId, Index, LogTime, Term};
use std::io::{self, Read, Write};

/// "QWSN": the first bytes of every snapshot file.
const SNAPSHOT_MAGIC: u32 = 0x5157_534e;

/// Bytes before the head.
const PREFIX_BYTES: usize = 16;

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
        match error {
            SnapshotError::Io(error) => error,
            other => Self::new(io::ErrorKind::InvalidData, other),
        }
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
    inner: W,
    block: Vec<u8>,
    body_bytes: u64,
    checksum: u32,
}

impl<W: Write> SnapshotWriter<W> {
    /// Writes the head. An error is that of `inner`.
    pub fn new(mut inner: W, head: &SnapshotHead) -> io::Result<Self> {
        let head = head.to_proto().encode_to_vec();
        assert!(
            head.len() <= SNAPSHOT_HEAD_BYTES_MAX,
            "a membership is limited"
        );
        let mut prefix = Vec::with_capacity(PREFIX_BYTES);
        prefix.extend_from_slice(&SNAPSHOT_MAGIC.to_be_bytes());
        prefix.extend_from_slice(&SNAPSHOT_VERSION.to_be_bytes());
        prefix.extend_from_slice(&length_word(head.len()));
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix), &head);
        prefix.extend_from_slice(&checksum.to_be_bytes());
        inner.write_all(&prefix)?;
        inner.write_all(&head)?;
        Ok(Self {
            inner,
            block: Vec::with_capacity(SNAPSHOT_BLOCK_BYTES),
            body_bytes: 0,
            checksum,
        })
    }

    /// Writes the end and gives back what was written to, not flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        let mut end = [0; 12];
        end[4..].copy_from_slice(&self.body_bytes.to_be_bytes());
        let checksum = crc32c::crc32c_append(self.checksum, &end);
        self.inner.write_all(&end)?;
        self.inner.write_all(&checksum.to_be_bytes())?;
        Ok(self.inner)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let length = length_word(self.block.len());
        self.checksum = crc32c::crc32c_append(self.checksum, &length);
        self.checksum = crc32c::crc32c_append(self.checksum, &self.block);
        self.inner.write_all(&length)?;
        self.inner.write_all(&self.checksum.to_be_bytes())?;
        self.inner.write_all(&self.block)?;
        self.body_bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for SnapshotWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == SNAPSHOT_BLOCK_BYTES {
            self.write_block()?;
        }
        let taken = bytes.len().min(SNAPSHOT_BLOCK_BYTES - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        Ok(taken)
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
    inner: R,
    head: SnapshotHead,
    block: Vec<u8>,
    /// First byte of `block` not given out yet.
    given: usize,
    body_bytes: u64,
    checksum: u32,
    ended: bool,
    broken: bool,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads and checks the head.
    pub fn new(mut inner: R) -> Result<Self, SnapshotError> {
        let mut prefix = [0; PREFIX_BYTES];
        inner.read_exact(&mut prefix)?;
        let word = |at: usize| {
            u32::from_be_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
        };
        if word(0) != SNAPSHOT_MAGIC {
            return Err(SnapshotError::Magic { magic: word(0) });
        }
        let head_bytes = word(8) as usize;
        if head_bytes > SNAPSHOT_HEAD_BYTES_MAX {
            return Err(SnapshotError::TooLong {
                what: "head",
                bytes: head_bytes,
                bytes_max: SNAPSHOT_HEAD_BYTES_MAX,
            });
        }
        let mut head = vec![0; head_bytes];
        inner.read_exact(&mut head)?;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), &head);
        if checksum != word(12) {
            return Err(SnapshotError::Checksum("head"));
        }
        if word(4) != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version { version: word(4) });
        }
        let head = peer::SnapshotHead::decode(head.as_slice())
            .map_err(|error| Malformed::new("snapshot head", error.to_string()))?;
        Ok(Self {
            inner,
            head: SnapshotHead::from_proto(&head)?,
            block: Vec::new(),
            given: 0,
            body_bytes: 0,
            checksum,
            ended: false,
            broken: false,
        })
    }

    /// What the snapshot stands for.
    #[must_use]
    pub const fn head(&self) -> &SnapshotHead {
        &self.head
    }

    /// Reads to the end, checking everything; gives back the length of the body.
    pub fn verify(mut self) -> Result<u64, SnapshotError> {
        while !self.ended {
            self.read_block()?;
        }
        Ok(self.body_bytes)
    }

    fn read_block(&mut self) -> Result<(), SnapshotError> {
        self.block.clear();
        self.given = 0;
        let mut length = [0; 4];
        self.inner.read_exact(&mut length)?;
        let bytes = u32::from_be_bytes(length) as usize;
        if bytes == 0 {
            return self.read_end();
        }
        if bytes > SNAPSHOT_BLOCK_BYTES {
            return Err(SnapshotError::TooLong {
                what: "block",
                bytes,
                bytes_max: SNAPSHOT_BLOCK_BYTES,
            });
        }
        let mut said = [0; 4];
        self.inner.read_exact(&mut said)?;
        let mut block = std::mem::take(&mut self.block);
        block.resize(bytes, 0);
        self.inner.read_exact(&mut block)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &length);
        self.checksum = crc32c::crc32c_append(self.checksum, &block);
        if self.checksum != u32::from_be_bytes(said) {
            return Err(SnapshotError::Checksum("body"));
        }
        self.body_bytes += bytes as u64;
        self.block = block;
        Ok(())
    }

    /// The end's leading 0 has been read.
    fn read_end(&mut self) -> Result<(), SnapshotError> {
        let mut end = [0; 12];
        self.inner.read_exact(&mut end[4..])?;
        let mut said = [0; 4];
        self.inner.read_exact(&mut said)?;
        if crc32c::crc32c_append(self.checksum, &end) != u32::from_be_bytes(said) {
            return Err(SnapshotError::Checksum("end"));
        }
        let [_, _, _, _, total @ ..] = end;
        let said = u64::from_be_bytes(total);
        if said != self.body_bytes {
            return Err(SnapshotError::Length {
                found: self.body_bytes,
                said,
            });
        }
        match self.inner.read_exact(&mut [0]) {
            Ok(()) => Err(SnapshotError::Trailing),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.ended = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl<R: Read> Read for SnapshotReader<R> {
    /// Errors of the format come as `InvalidData` with a [`SnapshotError`] inside. After any error
    /// every later call fails too.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.broken {
            return Err(SnapshotError::Checksum("body").into());
        }
        if self.given == self.block.len() && !self.ended {
            self.broken = true;
            self.read_block()?;
            self.broken = false;
        }
        let given = buffer.len().min(self.block.len() - self.given);
        buffer[..given].copy_from_slice(&self.block[self.given..self.given + given]);
        self.given += given;
        Ok(given)
    }
}

fn length_word(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes)
        .expect("a block or head is limited")
        .to_be_bytes()
}
