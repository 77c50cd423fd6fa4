//! The bytes of a log segment besides entries: its name, its header, and the records that only the
//! disk knows. No I/O.
//!
//! ```text
//!  | header (64) | Base | HardState | Durable, batch ... | Durable, batch ... | zeros ...
//!
//!  header:  | crc32c | magic | version | group | replica | 0 | incarnation (8) | sequence (8) |
//!           | previous end (8) | previous chain | 0 (12) |
//!  Durable: | incarnation (8) | sequence (8) | offset (8) | synced sequence (8) | synced offset (8) |
//!           | chain |        (the payload; index and term are those of the last entry before it)
//! ```
//! Big-endian. The *chain* is the CRC32C over the stored checksums of all records since the segment's
//! header: it tells that no record was left out, repeated or put in another's place.
use crate::Owner;
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{GroupId, Incarnation, Index, ReplicaId, Term};
use quorumwire_wire::prost::Message;
use quorumwire_wire::{RecordKind, begin_record, finish_record, peer};

/// "QWLS": every segment's first word behind its checksum.
const SEGMENT_MAGIC: u32 = 0x5157_4c53;

/// Version of the segment format this code writes, and the only one it reads.
pub(crate) const SEGMENT_VERSION: u32 = 1;

/// Bytes before a segment's first record.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;

/// Bytes of a Durable record's payload.
pub(crate) const DURABLE_PAYLOAD_BYTES: usize = 44;

/// A place in the log's files.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Position {
    pub sequence: u64,
    pub offset: u64,
}

/// What a segment says about itself and the one before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SegmentHeader {
    pub owner: Owner,
    pub sequence: u64,
    pub previous_end: u64,
    pub previous_chain: u32,
}

/// Why bytes are not a segment header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HeaderProblem {
    Damaged,
    Version(u32),
}

/// Payload of a Durable record: where it stands, and up to where everything had been synced when it
/// was written. It names its own place and life, so that a copy of it elsewhere proves nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct DurableNote {
    pub incarnation: Incarnation,
    pub at: Position,
    pub synced: Position,
    pub chain: u32,
}

/// Name of the segment with this number.
pub(crate) fn segment_name(sequence: u64) -> String {
    format!("log-{sequence:016x}")
}

/// The number in a segment's name; `None` for any other file.
pub(crate) fn parse_segment_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?;
    let sequence = u64::from_str_radix(digits, 16).ok()?;
    (segment_name(sequence) == name).then_some(sequence)
}

/// Goes on with a chain over the checksum of one more record, as it stands in its first four bytes.
pub(crate) fn chain_on(chain: u32, record: &[u8]) -> u32 {
    crc32c::crc32c_append(chain, &record[..4])
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[4..8].copy_from_slice(&SEGMENT_MAGIC.to_be_bytes());
        bytes[8..12].copy_from_slice(&SEGMENT_VERSION.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.owner.group.0.to_be_bytes());
        bytes[16..20].copy_from_slice(&u32::from(self.owner.replica.0).to_be_bytes());
        bytes[24..32].copy_from_slice(&self.owner.incarnation.0.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[40..48].copy_from_slice(&self.previous_end.to_be_bytes());
        bytes[48..52].copy_from_slice(&self.previous_chain.to_be_bytes());
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, HeaderProblem> {
        if crc32c::crc32c(&bytes[4..]) != u32_at(bytes, 0) || u32_at(bytes, 4) != SEGMENT_MAGIC {
            return Err(HeaderProblem::Damaged);
        }
        if u32_at(bytes, 8) != SEGMENT_VERSION {
            return Err(HeaderProblem::Version(u32_at(bytes, 8)));
        }
        let replica = u16::try_from(u32_at(bytes, 16)).map_err(|_| HeaderProblem::Damaged)?;
        Ok(Self {
            owner: Owner {
                group: GroupId(u32_at(bytes, 12)),
                replica: ReplicaId(replica),
                incarnation: Incarnation(u64_at(bytes, 24)),
            },
            sequence: u64_at(bytes, 32),
            previous_end: u64_at(bytes, 40),
            previous_chain: u32_at(bytes, 48),
        })
    }
}

impl DurableNote {
    pub(crate) fn encode(&self) -> [u8; DURABLE_PAYLOAD_BYTES] {
        let mut bytes = [0; DURABLE_PAYLOAD_BYTES];
        let words = [
            self.incarnation.0,
            self.at.sequence,
            self.at.offset,
            self.synced.sequence,
            self.synced.offset,
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes[40..].copy_from_slice(&self.chain.to_be_bytes());
        bytes
    }

    /// `None` if the length is not that of a Durable record's payload.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        if payload.len() != DURABLE_PAYLOAD_BYTES {
            return None;
        }
        Some(Self {
            incarnation: Incarnation(u64_at(payload, 0)),
            at: Position {
                sequence: u64_at(payload, 8),
                offset: u64_at(payload, 16),
            },
            synced: Position {
                sequence: u64_at(payload, 24),
                offset: u64_at(payload, 32),
            },
            chain: u32_at(payload, 40),
        })
    }
}

/// Appends a record to `buffer` and goes on with the chain over it.
pub(crate) fn put_record(
    buffer: &mut BytesMut,
    chain: &mut u32,
    kind: RecordKind,
    group: GroupId,
    (index, term): (Index, Term),
    payload: &[u8],
) {
    let start = begin_record(buffer, kind, group, term, index);
    buffer.extend_from_slice(payload);
    finish_record(buffer, start);
    *chain = chain_on(*chain, &buffer[start..]);
}

/// Appends a hard state record.
pub(crate) fn put_hard_state(
    buffer: &mut BytesMut,
    chain: &mut u32,
    group: GroupId,
    hard_state: &peer::HardState,
) {
    let place = (Index(0), Term(hard_state.term));
    let payload = hard_state.encode_to_vec();
    put_record(buffer, chain, RecordKind::HardState, group, place, &payload);
}

/// Everything a segment begins with, and the chain behind it.
pub(crate) fn prologue(
    header: &SegmentHeader,
    base: (Index, Term),
    hard_state: &peer::HardState,
) -> (Bytes, u32) {
    let mut buffer = BytesMut::from(header.encode().as_slice());
    let mut chain = 0;
    let group = header.owner.group;
    put_record(&mut buffer, &mut chain, RecordKind::Base, group, base, &[]);
    put_hard_state(&mut buffer, &mut chain, group, hard_state);
    (buffer.freeze(), chain)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}
