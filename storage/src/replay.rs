//! Reading the log back: tells what is whole, what is only the torn end of something never
//! acknowledged, and what is damage to something that had been synced. Changes nothing on the disk.
use crate::Owner;
use crate::disk::{Disk, DiskFile, is_unreadable, read_full_at};
use crate::mark::Tail;
use crate::mutants::mutant;
use crate::segment::{
    DURABLE_PAYLOAD_BYTES, DurableNote, HeaderProblem, Position, SEGMENT_HEADER_BYTES,
    SEGMENT_VERSION, SegmentHeader, chain_on, parse_segment_name, segment_name,
};
use crate::term_runs::TermRuns;
use crate::wal::SealedSegment;
use crate::watch::Watch;
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{Index, Term};
use quorumwire_wire::prost::Message;
use quorumwire_wire::{
    Entry, RECORD_HEADER_BYTES, RECORD_VERSION, Record, RecordError, RecordKind, peer,
};
use std::collections::VecDeque;
use std::io;

/// How much of a segment is read at a time; no record is longer.
const READ_BYTES: usize = 4 << 20;

/// File systems know of blocks of so many bytes, or of larger ones, whether they were written.
const BLOCK_BYTES: u64 = 4096;

/// So much is enough for everything a segment begins with.
const START_BYTES: usize = 4096;

/// A record of the Durable kind is so long.
const DURABLE_RECORD_BYTES: usize = RECORD_HEADER_BYTES + DURABLE_PAYLOAD_BYTES;

/// What the log holds.
pub(crate) struct Replay {
    pub hard_state: peer::HardState,
    pub runs: TermRuns,
    /// The entries behind the base of `runs`.
    pub entries: Vec<Entry>,
    /// Where writing goes on.
    pub tail: Tail,
    /// The file of the last segment.
    pub file: Box<dyn DiskFile>,
    /// The last segment holds nothing but what every segment begins with.
    pub empty: bool,
    pub sealed: VecDeque<SealedSegment>,
    /// Up to where the last segment is known to have been synced.
    pub synced_offset: u64,
    /// Something never acknowledged stands behind the tail.
    pub torn: bool,
    /// A segment that was being created and must be removed.
    pub unfinished: Option<u64>,
    /// Segments from before a gap, which nothing needs if the snapshot reaches `runs.base()`.
    pub stale: Vec<u64>,
}

/// Why the log cannot be used.
#[derive(Debug)]
pub(crate) enum ReplayError {
    /// Something that had been synced is not what it was.
    Damaged(String),
    /// It was written by a newer version of this format.
    Newer {
        what: &'static str,
        version: u32,
        readable: u32,
    },
    /// The disk could not be asked.
    Io(io::Error),
}

/// Reads the log of `owner`. `mark` is what is known about how far it was synced; `watch` hears how many
/// bytes were read, and of how many.
pub(crate) fn replay(
    disk: &dyn Disk,
    names: &[String],
    owner: Owner,
    mark: Option<Tail>,
    watch: &mut Watch<'_>,
) -> Result<Replay, ReplayError> {
    let mut sequences: Vec<u64> = names.iter().filter_map(|n| parse_segment_name(n)).collect();
    sequences.sort_unstable();
    let stale = split_before_gap(&mut sequences);
    let last_sequence = sequences.last().copied();
    let mut segments = Vec::with_capacity(sequences.len());
    let mut unfinished = None;
    for sequence in sequences {
        let file = disk
            .open(&segment_name(sequence))
            .map_err(ReplayError::Io)?;
        match read_start(&*file, sequence, owner)? {
            Ok(start) => segments.push(Segment { file, start }),
            Err(what) if Some(sequence) == last_sequence => {
                let begin = Position {
                    sequence,
                    offset: 0,
                };
                refuse_if_synced(&*file, begin, owner, what)?;
                unfinished = Some(sequence);
            }
            Err(what) => return Err(damaged(sequence, 0, what)),
        }
    }
    let Some(first) = segments.first() else {
        return Err(ReplayError::Damaged("the log is missing".to_owned()));
    };
    let mut reading = Reading::new(owner, mark, &first.start);
    let mut total_bytes = 0;
    for segment in &segments {
        total_bytes += segment.file.file_bytes().map_err(ReplayError::Io)?;
    }
    let mut read_before = 0;
    for (place, segment) in segments.iter().enumerate() {
        let next = segments.get(place + 1).map(|next| &next.start.header);
        let mut watch = |offset| watch(read_before + offset, total_bytes);
        reading.read_segment(segment, next, &mut watch)?;
        read_before += segment.file.file_bytes().map_err(ReplayError::Io)?;
    }
    reading.finish(segments, unfinished, stale)
}

struct Segment {
    file: Box<dyn DiskFile>,
    start: SegmentStart,
}

/// What a segment begins with.
struct SegmentStart {
    header: SegmentHeader,
    base: (Index, Term),
    hard_state: peer::HardState,
    /// Where it ends.
    offset: u64,
    chain: u32,
}

/// Keeps the highest consecutive numbers; gives back the others.
fn split_before_gap(sequences: &mut Vec<u64>) -> Vec<u64> {
    let gap = sequences
        .windows(2)
        .rposition(|pair| pair[0] + 1 != pair[1]);
    let kept = sequences.split_off(gap.map_or(0, |gap| gap + 1));
    std::mem::replace(sequences, kept)
}

/// Reads what a segment begins with. The inner error says what is wrong with it.
fn read_start(
    file: &dyn DiskFile,
    sequence: u64,
    owner: Owner,
) -> Result<Result<SegmentStart, &'static str>, ReplayError> {
    let mut bytes = vec![0; START_BYTES];
    let read = match read_full_at(file, 0, &mut bytes) {
        Ok(read) => read,
        Err(error) if is_unreadable(&error) => return Ok(Err("its start cannot be read")),
        Err(error) => return Err(ReplayError::Io(error)),
    };
    bytes.truncate(read);
    let Some((header, mut records)) = bytes.split_first_chunk::<SEGMENT_HEADER_BYTES>() else {
        return Ok(Err("its header is cut short"));
    };
    let header = match SegmentHeader::decode(header) {
        Ok(header) => header,
        Err(HeaderProblem::Damaged) => return Ok(Err("its header is damaged")),
        Err(HeaderProblem::Version(version)) => {
            return Err(ReplayError::Newer {
                what: "log segment",
                version,
                readable: SEGMENT_VERSION,
            });
        }
    };
    if header.owner != owner || header.sequence != sequence {
        return Err(damaged(sequence, 0, "it is of another life or place"));
    }
    let mut chain = 0;
    let base = match next_start_record(&mut records, &mut chain, RecordKind::Base, owner)? {
        Ok(base) => base,
        Err(what) => return Ok(Err(what)),
    };
    let kind = RecordKind::HardState;
    let hard_state = match next_start_record(&mut records, &mut chain, kind, owner)? {
        Ok(hard_state) => hard_state,
        Err(what) => return Ok(Err(what)),
    };
    let Ok(hard_state_message) = peer::HardState::decode(hard_state.payload) else {
        return Err(damaged(sequence, 0, "its hard state makes no sense"));
    };
    Ok(Ok(SegmentStart {
        header,
        base: (base.index, base.term),
        hard_state: hard_state_message,
        offset: (SEGMENT_HEADER_BYTES + base.record_bytes + hard_state.record_bytes) as u64,
        chain,
    }))
}

fn next_start_record<'a>(
    records: &mut &'a [u8],
    chain: &mut u32,
    kind: RecordKind,
    owner: Owner,
) -> Result<Result<Record<'a>, &'static str>, ReplayError> {
    let record = match Record::decode(records) {
        Ok(record) => record,
        Err(error) => return damage_of(error).map(Err),
    };
    if record.kind != kind || record.group != owner.group {
        return Ok(Err("its first records are not those of a segment"));
    }
    *chain = chain_on(*chain, records);
    *records = &records[record.record_bytes..];
    Ok(Ok(record))
}

/// What has been read so far.
struct Reading {
    owner: Owner,
    mark: Option<Tail>,
    hard_state: peer::HardState,
    runs: TermRuns,
    entries: Vec<Entry>,
    sealed: VecDeque<SealedSegment>,
    position: Position,
    chain: u32,
    /// Up to where the Durable records say that all was synced.
    synced: Position,
    torn: bool,
    empty: bool,
}

impl Reading {
    fn new(owner: Owner, mark: Option<Tail>, first: &SegmentStart) -> Self {
        let position = Position {
            sequence: first.header.sequence,
            offset: first.offset,
        };
        Self {
            owner,
            mark,
            hard_state: first.hard_state,
            runs: TermRuns::new(first.base),
            entries: Vec::new(),
            sealed: VecDeque::new(),
            position,
            chain: first.chain,
            synced: Position {
                sequence: 0,
                offset: 0,
            },
            torn: false,
            empty: true,
        }
    }

    /// Reads one segment. `next` is the header of the one behind it, if there is one: then all of
    /// this one had been synced.
    fn read_segment(
        &mut self,
        segment: &Segment,
        next: Option<&SegmentHeader>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<(), ReplayError> {
        let start = &segment.start;
        let sequence = start.header.sequence;
        if start.base != self.runs.last() || start.hard_state != self.hard_state {
            let what = "it does not begin with what the log before it ends with";
            return Err(damaged(sequence, 0, what));
        }
        self.position = Position {
            sequence,
            offset: start.offset,
        };
        self.chain = start.chain;
        self.empty = true;
        self.check_mark()?;
        let file = &*segment.file;
        let limit = match next {
            Some(next) => next.previous_end,
            None => file.file_bytes().map_err(ReplayError::Io)?,
        };
        let problem = self.read_records(file, limit, watch)?;
        if let Some(next) = next {
            if let Some(what) = problem {
                return Err(self.damaged_here(what));
            }
            if self.chain != next.previous_chain {
                return Err(self.damaged_here("it does not end with what the next one says"));
            }
            self.sealed.push_back(SealedSegment {
                sequence,
                next_base: self.runs.last(),
                lowest_later: Index(u64::MAX),
            });
            return Ok(());
        }
        let what = problem.unwrap_or("it ends");
        if let Some(mark) = self.mark
            && mark.position.sequence == sequence
            && mark.position > self.position
            && !mutant("mark-not-looked-at")
        {
            let what = format!("{what}, and the mark shows that more had been synced");
            return Err(self.damaged_here(&what));
        }
        self.torn = refuse_if_synced(file, self.position, self.owner, what)?;
        Ok(())
    }

    /// Reads records from the current position on; stops before what is none, and says what is wrong
    /// with it. `None` at the limit.
    fn read_records(
        &mut self,
        file: &dyn DiskFile,
        limit: u64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<&'static str>, ReplayError> {
        loop {
            watch(self.position.offset);
            let left = limit.saturating_sub(self.position.offset);
            let wanted = usize::try_from(left).map_or(READ_BYTES, |left| left.min(READ_BYTES));
            if wanted == 0 {
                return Ok(None);
            }
            let mut block = BytesMut::zeroed(wanted);
            let read = match read_full_at(file, self.position.offset, &mut block) {
                Ok(read) => read,
                Err(error) if is_unreadable(&error) => return Ok(Some("it cannot be read")),
                Err(error) => return Err(ReplayError::Io(error)),
            };
            if read == 0 {
                return Ok(Some("the file ends early"));
            }
            block.truncate(read);
            let more_follows = read == READ_BYTES;
            match self.read_block(&block.freeze())? {
                None => {}
                Some(RecordError::Short { .. }) if more_follows => {}
                Some(error) => return damage_of(error).map(Some),
            }
        }
    }

    /// Reads the records of a block; what stopped it, or `None` at its very end.
    fn read_block(&mut self, block: &Bytes) -> Result<Option<RecordError>, ReplayError> {
        let mut at = 0;
        while at < block.len() {
            let record = match Record::decode(&block[at..]) {
                Ok(record) => record,
                Err(error) => return Ok(Some(error)),
            };
            let end = at + record.record_bytes;
            self.take_record(&record, block, at)?;
            self.chain = chain_on(self.chain, &block[at..]);
            self.position.offset += record.record_bytes as u64;
            self.empty = false;
            self.check_mark()?;
            at = end;
        }
        Ok(None)
    }

    fn take_record(
        &mut self,
        record: &Record<'_>,
        block: &Bytes,
        start: usize,
    ) -> Result<(), ReplayError> {
        if record.group != self.owner.group {
            return Err(self.damaged_here("a record is of another group"));
        }
        match record.kind {
            RecordKind::NoOp
            | RecordKind::Command
            | RecordKind::Tick
            | RecordKind::Membership
            | RecordKind::SessionCommand
            | RecordKind::Fragment
            | RecordKind::Bundle => self.take_entry(record, block, start),
            RecordKind::HardState => {
                let Ok(hard_state) = peer::HardState::decode(record.payload) else {
                    return Err(self.damaged_here("a hard state makes no sense"));
                };
                if hard_state.term < self.hard_state.term {
                    return Err(self.damaged_here("the term goes back"));
                }
                self.hard_state = hard_state;
                Ok(())
            }
            RecordKind::Durable => self.take_durable(record),
            RecordKind::Base => {
                let kept = self.runs.begin_behind((record.index, record.term));
                let last = self.runs.last().0;
                if kept {
                    let left = count_between(self.runs.base().0, last);
                    self.entries.drain(..self.entries.len() - left);
                } else {
                    self.entries.clear();
                    self.note_written(record.index);
                }
                Ok(())
            }
        }
    }

    fn take_entry(
        &mut self,
        record: &Record<'_>,
        block: &Bytes,
        start: usize,
    ) -> Result<(), ReplayError> {
        if let Err(problem) = self.runs.append((record.index, record.term)) {
            return Err(self.damaged_here(&problem));
        }
        self.note_written(record.index);
        let before = count_between(self.runs.base().0, record.index.previous());
        if !mutant("replaced-entries-stay") {
            self.entries.truncate(before);
        }
        self.entries.push(Entry::of_record(block, start, record));
        Ok(())
    }

    /// The log is written anew from here on.
    fn note_written(&mut self, index: Index) {
        for sealed in &mut self.sealed {
            sealed.lowest_later = sealed.lowest_later.min(index);
        }
    }

    fn take_durable(&mut self, record: &Record<'_>) -> Result<(), ReplayError> {
        let fits = DurableNote::decode(record.payload).filter(|note| {
            note.incarnation == self.owner.incarnation
                && note.at == self.position
                && note.chain == self.chain
                && note.synced <= note.at
                && (record.index, record.term) == self.runs.last()
        });
        match fits {
            Some(note) => {
                self.synced = note.synced;
                Ok(())
            }
            None => Err(self.damaged_here("what stands before a batch is not what was written")),
        }
    }

    /// At the place the mark names, the log must be what it was when the mark was written.
    fn check_mark(&self) -> Result<(), ReplayError> {
        match self.mark {
            Some(mark) if mark.position == self.position && mark.chain != self.chain => {
                Err(self.damaged_here("what stands before the mark is not what was written"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn damaged_here(&self, what: &str) -> ReplayError {
        damaged(self.position.sequence, self.position.offset, what)
    }

    fn finish(
        self,
        mut segments: Vec<Segment>,
        unfinished: Option<u64>,
        stale: Vec<u64>,
    ) -> Result<Replay, ReplayError> {
        let last = segments.pop().expect("the caller has at least one");
        if let Some(mark) = self.mark
            && mark.position.sequence > self.position.sequence
        {
            let what = "the mark shows that a segment behind it had been synced";
            return Err(self.damaged_here(what));
        }
        let known = [Some(self.synced), self.mark.map(|mark| mark.position)];
        let synced_offset = known
            .into_iter()
            .flatten()
            .filter(|known| known.sequence == self.position.sequence)
            .map(|known| known.offset)
            .max()
            .unwrap_or(0);
        Ok(Replay {
            hard_state: self.hard_state,
            runs: self.runs,
            entries: self.entries,
            tail: Tail {
                position: self.position,
                chain: self.chain,
            },
            file: last.file,
            empty: self.empty,
            sealed: self.sealed,
            synced_offset,
            torn: self.torn,
            unfinished,
            stale,
        })
    }
}

/// Decides about something unreadable at `from` in the last segment: an error if it had been synced.
/// Otherwise whether anything but zeros stands there.
fn refuse_if_synced(
    file: &dyn DiskFile,
    from: Position,
    owner: Owner,
    what: &str,
) -> Result<bool, ReplayError> {
    if mutant("later-batches-not-looked-for") {
        return Ok(true);
    }
    let file_bytes = file.file_bytes().map_err(ReplayError::Io)?;
    let unreadable = |error: io::Error, offset| {
        if is_unreadable(&error) {
            damaged(from.sequence, offset, "it cannot be read")
        } else {
            ReplayError::Io(error)
        }
    };
    let left = file_bytes.saturating_sub(from.offset);
    let chunk_bytes = READ_BYTES + DURABLE_RECORD_BYTES;
    let mut chunk =
        vec![0; usize::try_from(left).map_or(chunk_bytes, |left| left.min(chunk_bytes))];
    let mut anything = false;
    let mut offset = from.offset;
    while offset < file_bytes {
        // A block: of one that was read in part it would not be known whether it was written.
        let end = (offset + READ_BYTES as u64) / BLOCK_BYTES * BLOCK_BYTES;
        // A record that begins before may end with zeros that were never written.
        let read_end = (end + DURABLE_RECORD_BYTES as u64).min(file_bytes);
        let wanted = usize::try_from(read_end - offset).expect("no longer than a chunk");
        // Most of the last segment is only set aside. Asked before anything near is read: what the system
        // has read, also ahead, counts as written although it is zeros.
        let found = file
            .next_data(end)
            .map_err(|error| unreadable(error, end))?
            .max(end);
        let read = read_full_at(file, offset, &mut chunk[..wanted])
            .map_err(|error| unreadable(error, offset))?;
        let bytes = &chunk[..read];
        if bytes.iter().any(|byte| *byte != 0) {
            anything = true;
            if later_batch(bytes, offset, from, owner) {
                let what = format!("{what}, and a later batch shows that it had been synced");
                return Err(damaged(from.sequence, from.offset, &what));
            }
        }
        if read < wanted || found >= file_bytes {
            break;
        }
        // It may also begin with zeros before what was found.
        offset = found - DURABLE_RECORD_BYTES as u64;
    }
    Ok(anything)
}

/// Whether a Durable record in these bytes, which stand at `offset`, shows that `from` had been synced.
fn later_batch(bytes: &[u8], offset: u64, from: Position, owner: Owner) -> bool {
    let tag = [RECORD_VERSION, RecordKind::Durable as u8, 0, 0];
    bytes
        .windows(DURABLE_RECORD_BYTES)
        .enumerate()
        .filter(|(_, window)| window[8..12] == tag)
        .any(|(place, window)| {
            let at = Position {
                sequence: from.sequence,
                offset: offset + place as u64,
            };
            Record::decode(window)
                .ok()
                .filter(|record| record.group == owner.group)
                .and_then(|record| DurableNote::decode(record.payload))
                .is_some_and(|note| {
                    note.incarnation == owner.incarnation && note.at == at && note.synced > from
                })
        })
}

/// How many entries lie behind `base` up to `last`.
fn count_between(base: Index, last: Index) -> usize {
    usize::try_from(last.0.saturating_sub(base.0)).expect("they are in memory")
}

fn damaged(sequence: u64, offset: u64, what: &str) -> ReplayError {
    let name = segment_name(sequence);
    ReplayError::Damaged(format!("{name} at byte {offset}: {what}"))
}

/// What is wrong with a record, unless it is only too new.
fn damage_of(error: RecordError) -> Result<&'static str, ReplayError> {
    match error {
        RecordError::Short { .. } => Ok("a record is cut short"),
        RecordError::TooLong { .. } => Ok("a record is too long"),
        RecordError::Checksum => Ok("a record's checksum does not match"),
        RecordError::Version { version } => Err(ReplayError::Newer {
            what: "log record",
            version: u32::from(version),
            readable: u32::from(RECORD_VERSION),
        }),
        RecordError::Kind { kind } => Err(ReplayError::Newer {
            what: "log record kind",
            version: u32::from(kind),
            readable: u32::from(RECORD_VERSION),
        }),
    }
}
