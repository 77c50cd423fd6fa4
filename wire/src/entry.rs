//! A log entry in memory: where its record stands.
use crate::record::{RECORD_HEADER_BYTES, Record, RecordKind};
use bytes::Bytes;
use quorumwire_interfaces::{Index, Term};

/// A log entry: a record within a block of records that arrived, were made or were read together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its place in the log.
    pub index: Index,
    /// Term of the leader that made it.
    pub term: Term,
    /// What it holds.
    pub kind: RecordKind,
    /// The block the record stands in, shared with its neighbours.
    pub block: Bytes,
    /// Where the record, header included, begins in the block.
    pub start: u32,
    /// One past its last byte in the block.
    pub end: u32,
}

impl Entry {
    /// The whole record, header and payload.
    #[must_use]
    pub fn record(&self) -> &[u8] {
        &self.block[self.start as usize..self.end as usize]
    }

    /// The record's payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.record()[RECORD_HEADER_BYTES..]
    }

    /// The entry whose record, checked, stands at `start` in `block`.
    #[must_use]
    pub fn of_record(block: &Bytes, start: usize, record: &Record<'_>) -> Self {
        Self {
            index: record.index,
            term: record.term,
            kind: record.kind,
            block: block.clone(),
            start: block_offset(start),
            end: block_offset(start + record.record_bytes),
        }
    }

    /// The records of consecutive entries, neighbours in one block as one piece.
    #[must_use]
    pub fn pieces(entries: &[Self]) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        let mut rest = entries;
        while let [first, ..] = rest {
            let in_block = |(place, entry): &(usize, &Self)| {
                entry.block.as_ptr() == first.block.as_ptr()
                    && (*place == 0 || entry.start == rest[place - 1].end)
            };
            let count = rest.iter().enumerate().take_while(in_block).count();
            let end = rest[count - 1].end as usize;
            pieces.push(first.block.slice(first.start as usize..end));
            rest = &rest[count..];
        }
        pieces
    }
}

/// Where a record begins or ends in its block.
///
/// # Panics
/// At 4 GiB: no block is so large.
#[must_use]
pub fn block_offset(offset: usize) -> u32 {
    u32::try_from(offset).expect("blocks are smaller than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_in_one_block_are_one_piece() {
        let (one, other) = (Bytes::from(vec![1; 40]), Bytes::from(vec![2; 40]));
        let entry = |block: &Bytes, start, end| Entry {
            index: Index(1),
            term: Term(1),
            kind: RecordKind::NoOp,
            block: block.clone(),
            start,
            end,
        };
        let entries = [
            entry(&one, 0, 10),
            entry(&one, 10, 20),
            entry(&one, 30, 40),
            entry(&other, 0, 10),
        ];
        let pieces = Entry::pieces(&entries);
        assert_eq!(
            pieces,
            [one.slice(..20), one.slice(30..), other.slice(..10)]
        );
        assert!(Entry::pieces(&[]).is_empty());
    }
}
