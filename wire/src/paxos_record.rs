//! What an acceptor keeps on disk: records in the order in which things happened. The last one of its kind
//! and instance counts.
//!
//! ```text
//!  0        4         8     9     10      12
//!  | crc32c | behind  | ver | kind| zero  | ...
//! ```
//! Big-endian. The checksum covers everything behind it. `behind`: bytes behind these 12.
use crate::packet::{ACCEPTORS_MAX, LIFE_BYTES, PAYLOAD_BYTES_MAX, PaxosRegisters, PaxosSlot};
use bytes::{Buf as _, BufMut as _};

/// Version of these records that this code writes, and the only one it reads.
pub const PAXOS_RECORD_VERSION: u8 = 1;

/// Bytes before what a record holds.
pub const PAXOS_RECORD_HEADER_BYTES: usize = 12;

const REGISTERS_BYTES: usize = 75;
const SLOT_BYTES: usize = 55;
const KIND_LIVES: u8 = 1;
const KIND_REGISTERS: u8 = 2;
const KIND_SLOT: u8 = 3;
const KIND_SYNCED: u8 = 4;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub enum PaxosRecord {
    /// Which life of each acceptor counts, by acceptor; the registers' `configuration` stands for it.
    Lives(Vec<u64>),
    /// The registers.
    Registers(Box<PaxosRegisters>),
    /// The registers and what is known of one instance, with the value voted for.
    Slot(Box<PaxosRegisters>, Box<PaxosSlot>, Vec<u8>),
    /// All that stands before this byte of the file was durable when this record was written.
    Synced(u64),
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PaxosRecordError {
    /// There are too few.
    #[error("the record is cut")]
    Cut,
    /// The checksum is another one.
    #[error("the record's checksum is wrong")]
    Checksum,
    /// Another version wrote it.
    #[error("the record has version {0}; this program reads 1")]
    Version(u8),
    /// No version of ours writes such a record.
    #[error("the record is malformed")]
    Malformed,
}

impl PaxosRecord {
    /// Appends it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.put_u64(0);
        to.put_u8(PAXOS_RECORD_VERSION);
        match self {
            Self::Lives(lives) => {
                to.put_u8(KIND_LIVES);
                to.put_u16(0);
                for life in lives {
                    to.put_u64(*life);
                }
            }
            Self::Registers(registers) => {
                to.put_u8(KIND_REGISTERS);
                to.put_u16(0);
                put_registers(registers, to);
            }
            Self::Slot(registers, slot, value) => {
                to.put_u8(KIND_SLOT);
                to.put_u16(0);
                put_registers(registers, to);
                put_slot(slot, to);
                to.put_slice(value);
            }
            Self::Synced(before) => {
                to.put_u8(KIND_SYNCED);
                to.put_u16(0);
                to.put_u64(*before);
            }
        }
        let behind = to.len() - begin - PAXOS_RECORD_HEADER_BYTES;
        let behind = u32::try_from(behind).unwrap_or(u32::MAX); // a record is short
        to[begin + 4..begin + 8].copy_from_slice(&behind.to_be_bytes());
        let checksum = crc32c::crc32c(&to[begin + 4..]);
        to[begin..begin + 4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The record at the start of some bytes, and its length.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), PaxosRecordError> {
        let (mut head, rest) = bytes
            .split_first_chunk::<PAXOS_RECORD_HEADER_BYTES>()
            .map(|(head, rest)| (&head[..], rest))
            .ok_or(PaxosRecordError::Cut)?;
        let (checksum, behind) = (head.get_u32(), head.get_u32());
        let longest = REGISTERS_BYTES + SLOT_BYTES + PAYLOAD_BYTES_MAX;
        let behind = usize::try_from(behind).ok().filter(|it| *it <= longest);
        let behind = behind.ok_or(PaxosRecordError::Malformed)?;
        let body = rest.get(..behind).ok_or(PaxosRecordError::Cut)?;
        let whole = PAXOS_RECORD_HEADER_BYTES + behind;
        if crc32c::crc32c(&bytes[4..whole]) != checksum {
            return Err(PaxosRecordError::Checksum);
        }
        let (version, kind, zero) = (head.get_u8(), head.get_u8(), head.get_u16());
        if version != PAXOS_RECORD_VERSION {
            return Err(PaxosRecordError::Version(version));
        }
        let record = match kind {
            KIND_LIVES => take_lives(body),
            KIND_REGISTERS if behind == REGISTERS_BYTES => {
                Some(Self::Registers(Box::new(take_registers(&mut &*body))))
            }
            KIND_SLOT => take_slot(body),
            KIND_SYNCED => body
                .as_array()
                .map(|it| Self::Synced(u64::from_be_bytes(*it))),
            _ => None,
        };
        let record = record.filter(|_| zero == 0);
        Ok((record.ok_or(PaxosRecordError::Malformed)?, whole))
    }
}

fn take_lives(body: &[u8]) -> Option<PaxosRecord> {
    let (lives, rest) = body.as_chunks::<LIFE_BYTES>();
    let fits = rest.is_empty() && (1..=ACCEPTORS_MAX).contains(&lives.len());
    let lives = lives.iter().map(|life| u64::from_be_bytes(*life)).collect();
    fits.then_some(PaxosRecord::Lives(lives))
}

fn take_slot(body: &[u8]) -> Option<PaxosRecord> {
    let (mut head, value) = body.split_at_checked(REGISTERS_BYTES + SLOT_BYTES)?;
    let registers = take_registers(&mut head);
    let slot = PaxosSlot {
        instance: head.get_u64(),
        round: head.get_u64(),
        promised_to: head.get_u64(),
        vote_round: head.get_u64(),
        session: head.get_u64(),
        sequence: head.get_u64(),
        payload_crc32c: head.get_u32(),
        payload_bytes: head.get_u16(),
        flags: head.get_u8(),
        reserved: 0,
    };
    let fits = usize::from(slot.payload_bytes) == value.len();
    fits.then(|| PaxosRecord::Slot(Box::new(registers), Box::new(slot), value.to_vec()))
}

fn put_registers(registers: &PaxosRegisters, to: &mut Vec<u8>) {
    for number in [
        registers.configuration,
        registers.round,
        registers.promised_to,
        registers.single_round,
        registers.next_instance,
        registers.trimmed,
        registers.bound,
        registers.highest,
    ] {
        to.put_u64(number);
    }
    to.put_u32(registers.group);
    to.put_u32(registers.window);
    to.put_slice(&[registers.role, registers.me, registers.held]);
}

/// # Panics
/// If there are too few bytes.
fn take_registers(from: &mut &[u8]) -> PaxosRegisters {
    PaxosRegisters {
        configuration: from.get_u64(),
        round: from.get_u64(),
        promised_to: from.get_u64(),
        single_round: from.get_u64(),
        next_instance: from.get_u64(),
        trimmed: from.get_u64(),
        bound: from.get_u64(),
        highest: from.get_u64(),
        group: from.get_u32(),
        window: from.get_u32(),
        role: from.get_u8(),
        me: from.get_u8(),
        held: from.get_u8(),
        reserved: [0; 5],
    }
}

fn put_slot(slot: &PaxosSlot, to: &mut Vec<u8>) {
    for number in [
        slot.instance,
        slot.round,
        slot.promised_to,
        slot.vote_round,
        slot.session,
        slot.sequence,
    ] {
        to.put_u64(number);
    }
    to.put_u32(slot.payload_crc32c);
    to.put_u16(slot.payload_bytes);
    to.put_u8(slot.flags);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> PaxosRegisters {
        PaxosRegisters {
            configuration: 1,
            round: 2,
            promised_to: 3,
            single_round: 4,
            next_instance: 5,
            trimmed: 6,
            bound: 7,
            highest: 8,
            group: 9,
            window: 10,
            role: 11,
            me: 12,
            held: 13,
            reserved: [0; 5],
        }
    }

    fn records() -> [PaxosRecord; 4] {
        let slot = PaxosSlot {
            instance: 1,
            round: 2,
            promised_to: 3,
            vote_round: 4,
            session: 5,
            sequence: 6,
            payload_crc32c: 7,
            payload_bytes: 3,
            flags: 8,
            reserved: 0,
        };
        let registers = Box::new(registers());
        [
            PaxosRecord::Lives(vec![1, 2, 3]),
            PaxosRecord::Registers(registers.clone()),
            PaxosRecord::Slot(registers, Box::new(slot), b"abc".to_vec()),
            PaxosRecord::Synced(7),
        ]
    }

    #[test]
    fn records_go_to_disk_and_back() {
        let mut bytes = Vec::new();
        for record in records() {
            record.encode(&mut bytes);
        }
        let mut rest = &bytes[..];
        for record in records() {
            let (found, length) = PaxosRecord::decode(rest).unwrap();
            assert_eq!(found, record);
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        assert_eq!(PaxosRecord::decode(rest), Err(PaxosRecordError::Cut));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for record in records() {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            for length in 0..bytes.len() {
                let cut = PaxosRecord::decode(&bytes[..length]);
                assert_eq!(cut, Err(PaxosRecordError::Cut), "{length}");
            }
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert!(PaxosRecord::decode(&changed).is_err(), "{place}");
            }
        }
        let malformed = [
            (PAXOS_RECORD_VERSION + 1, KIND_LIVES, 8),
            (PAXOS_RECORD_VERSION, KIND_LIVES, 0),
            (PAXOS_RECORD_VERSION, KIND_LIVES, 9),
            (PAXOS_RECORD_VERSION, KIND_LIVES, 64),
            (PAXOS_RECORD_VERSION, KIND_REGISTERS, REGISTERS_BYTES + 1),
            (PAXOS_RECORD_VERSION, KIND_SLOT, REGISTERS_BYTES),
            (
                PAXOS_RECORD_VERSION,
                KIND_SLOT,
                REGISTERS_BYTES + SLOT_BYTES + 1,
            ),
            (PAXOS_RECORD_VERSION, KIND_SYNCED, 9),
            (PAXOS_RECORD_VERSION, 5, 8),
        ];
        for (version, kind, behind) in malformed {
            let mut bytes = vec![0; PAXOS_RECORD_HEADER_BYTES + behind];
            bytes[7] = u8::try_from(behind).unwrap();
            (bytes[8], bytes[9]) = (version, kind);
            let checksum = crc32c::crc32c(&bytes[4..]);
            bytes[..4].copy_from_slice(&checksum.to_be_bytes());
            let expected = if version == PAXOS_RECORD_VERSION {
                PaxosRecordError::Malformed
            } else {
                PaxosRecordError::Version(version)
            };
            assert_eq!(
                PaxosRecord::decode(&bytes),
                Err(expected),
                "{kind} {behind}"
            );
        }
    }
}
