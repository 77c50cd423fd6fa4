//! Records in the making, and how entries stand in blocks of records. Copies no payload.
use crate::{Entry, Refusal, Replica};
use bytes::BytesMut;
use quorumwire_interfaces::{Index, Term};
use quorumwire_wire::limits::RECORD_PAYLOAD_BYTES_MAX;
use quorumwire_wire::{RECORD_HEADER_BYTES, RecordKind, begin_record, block_offset, finish_record};

/// A block of records is closed when it has grown this big, even within one turn.
const BLOCK_BYTES_TARGET: usize = 1 << 20;

/// Records being made, not in the log yet.
#[derive(Debug, Default)]
pub(crate) struct Building {
    pub(crate) block: BytesMut,
    pub(crate) records: Vec<Built>,
}

#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) kind: RecordKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Replica {
    /// Writes one record behind the newest entry. The caller has checked that it may.
    pub(crate) fn build(
        &mut self,
        kind: RecordKind,
        payload: impl FnOnce(&mut BytesMut),
    ) -> Result<(Index, Term), Refusal> {
        let index = self.last_index().next();
        let block = &mut self.building.block;
        let start = begin_record(block, kind, self.config.group, self.term, index);
        payload(block);
        let payload_bytes = block.len() - start - RECORD_HEADER_BYTES;
        if payload_bytes > RECORD_PAYLOAD_BYTES_MAX {
            block.truncate(start);
            return Err(Refusal::Invalid(format!(
                "command of {payload_bytes} bytes, at most {RECORD_PAYLOAD_BYTES_MAX} are taken"
            )));
        }
        finish_record(block, start);
        let end = block.len();
        if let Some(leading) = &mut self.leading {
            leading.uncommitted_bytes += end - start;
        }
        self.building.records.push(Built {
            kind,
            start: block_offset(start),
            end: block_offset(end),
        });
        if end > BLOCK_BYTES_TARGET {
            self.seal();
        }
        Ok((index, self.term))
    }

    /// Closes the block being built and puts its records into the log.
    pub(crate) fn seal(&mut self) {
        if self.building.records.is_empty() {
            return;
        }
        let block = self.building.block.split().freeze();
        for built in self.building.records.drain(..) {
            self.log.push(Entry {
                index: self.log.last_index().next(),
                term: self.term,
                kind: built.kind,
                block: block.clone(),
                start: built.start,
                end: built.end,
            });
        }
    }
}
