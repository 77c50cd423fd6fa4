//! Log records: how an entry stands in memory, between replicas and on disk, byte for byte the same.
//!
//! ```text
//!  0        4         8     9     10      12      16      24       32
//!  | crc32c | payload | ver | kind| zero  | group | term  | index  | payload ...
//! ```
//! Big-endian. The checksum covers everything behind it, payload included. A leader computes it
//! once; every follower and every later reading of the disk checks it.
use crate::limits::RECORD_PAYLOAD_BYTES_MAX;
use bytes::{BufMut, BytesMut};
use quorumwire_interfaces::{GroupId, Index, Term};

/// Bytes before a record's payload.
pub const RECORD_HEADER_BYTES: usize = 32;

/// Version of the record format this code writes, and the only one it reads.
pub const RECORD_VERSION: u8 = 1;

/// What a record holds.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum RecordKind {
    /// Log entry without effect, with which a leader begins its term.
    NoOp = 1,
    /// Log entry with a command for the state machine.
    Command = 2,
    /// Log entry that moves the log's time: see [`Tick`](crate::Tick).
    Tick = 3,
    /// Log entry with a new membership.
    Membership = 4,
    /// Log entry with a command of a client's session: session and sequence (8 bytes each, big-endian),
    /// then the command.
    SessionCommand = 5,
    /// Log entry with a fragment of a command: session, sequence (8 bytes each), number from 0 on and
    /// count of fragments (4 bytes each), then the fragment. Session 0: none.
    Fragment = 6,
    /// Log entry with several commands, each carried out by itself, in this order: see
    /// [`Bundle`](crate::Bundle).
    Bundle = 7,
    /// Not an entry: term, vote and commit index; only on disk.
    HardState = 16,
    /// Not an entry: everything before it had reached the disk when it was written; only on disk.
    Durable = 17,
    /// Not an entry: the log begins behind this record's index and term; only on disk.
    Base = 18,
}

impl RecordKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::NoOp,
            2 => Self::Command,
            3 => Self::Tick,
            4 => Self::Membership,
            5 => Self::SessionCommand,
            6 => Self::Fragment,
            7 => Self::Bundle,
            16 => Self::HardState,
            17 => Self::Durable,
            18 => Self::Base,
            _ => return None,
        })
    }

    /// Whether a record of this kind is a log entry and may stand in an Append message.
    #[must_use]
    pub const fn is_entry(self) -> bool {
        match self {
            Self::NoOp
            | Self::Command
            | Self::Tick
            | Self::Membership
            | Self::SessionCommand
            | Self::Fragment
            | Self::Bundle => true,
            Self::HardState | Self::Durable | Self::Base => false,
        }
    }
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RecordError {
    /// More bytes are needed: at least this many in all.
    #[error("record cut short: {needed_bytes} bytes needed")]
    Short {
        /// Bytes from the record's start that must be there to go on.
        needed_bytes: usize,
    },
    /// The payload length is beyond [`RECORD_PAYLOAD_BYTES_MAX`].
    #[error("record of {payload_bytes} bytes is longer than {RECORD_PAYLOAD_BYTES_MAX}")]
    TooLong {
        /// The length it claims.
        payload_bytes: usize,
    },
    /// The checksum does not match.
    #[error("record checksum mismatch")]
    Checksum,
    /// The checksum is right, but the version is not one this code reads.
    #[error("record version {version}, this code reads {RECORD_VERSION}")]
    Version {
        /// The version it claims.
        version: u8,
    },
    /// The checksum is right, but the kind is unknown.
    #[error("record kind {kind} is unknown")]
    Kind {
        /// The kind it claims.
        kind: u8,
    },
}

/// A record, checked, in place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record<'a> {
    /// What it holds.
    pub kind: RecordKind,
    /// The log it belongs to.
    pub group: GroupId,
    /// Term of the leader that made it.
    pub term: Term,
    /// Its place in the log.
    pub index: Index,
    /// The bytes behind the header.
    pub payload: &'a [u8],
    /// Header and payload together.
    pub record_bytes: usize,
}

impl<'a> Record<'a> {
    /// Reads the record at the start of `bytes`, checking length, checksum, version and kind.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let Some(header) = bytes.first_chunk::<RECORD_HEADER_BYTES>() else {
            return Err(RecordError::Short {
                needed_bytes: RECORD_HEADER_BYTES,
            });
        };
        let payload_bytes = u32_at(header, 4) as usize;
        if payload_bytes > RECORD_PAYLOAD_BYTES_MAX {
            return Err(RecordError::TooLong { payload_bytes });
        }
        let record_bytes = RECORD_HEADER_BYTES + payload_bytes;
        let Some(record) = bytes.get(..record_bytes) else {
            return Err(RecordError::Short {
                needed_bytes: record_bytes,
            });
        };
        if crc32c::crc32c(&record[4..]) != u32_at(header, 0) {
            return Err(RecordError::Checksum);
        }
        if header[8] != RECORD_VERSION {
            return Err(RecordError::Version { version: header[8] });
        }
        let Some(kind) = RecordKind::from_byte(header[9]) else {
            return Err(RecordError::Kind { kind: header[9] });
        };
        Ok(Self {
            kind,
            group: GroupId(u32_at(header, 12)),
            term: Term(u64_at(header, 16)),
            index: Index(u64_at(header, 24)),
            payload: &record[RECORD_HEADER_BYTES..],
            record_bytes,
        })
    }
}

/// Starts a record at the end of `buffer`; append the payload, then call [`finish_record`] with the
/// offset returned here.
pub fn begin_record(
    buffer: &mut BytesMut,
    kind: RecordKind,
    group: GroupId,
    term: Term,
    index: Index,
) -> usize {
    let start = buffer.len();
    buffer.reserve(RECORD_HEADER_BYTES);
    buffer.put_u64(0);
    buffer.put_u8(RECORD_VERSION);
    buffer.put_u8(kind as u8);
    buffer.put_u16(0);
    buffer.put_u32(group.0);
    buffer.put_u64(term.0);
    buffer.put_u64(index.0);
    start
}

/// Ends the record begun at `start`: fills in length and checksum. The caller has kept the payload
/// within [`RECORD_PAYLOAD_BYTES_MAX`]; a longer one is a broken invariant and panics.
pub fn finish_record(buffer: &mut BytesMut, start: usize) {
    let payload_bytes = buffer.len() - start - RECORD_HEADER_BYTES;
    assert!(
        payload_bytes <= RECORD_PAYLOAD_BYTES_MAX,
        "record of {payload_bytes} bytes"
    );
    let length = u32::try_from(payload_bytes).expect("checked against the limit");
    let record = &mut buffer[start..];
    record[4..8].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c::crc32c(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_be_bytes());
}

fn u32_at(bytes: &[u8; RECORD_HEADER_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; RECORD_HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}
