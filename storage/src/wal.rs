//! The write-ahead log, writing side: batches of jobs, one write and one sync each, over segment
//! files. Starts no thread and knows no time: [`LogWriter`](crate::LogWriter) does.
use crate::disk::{Disk, DiskFile, is_disk_full, is_want_of_descriptors, write_all_at};
use crate::mark::{Mark, Tail};
use crate::mutants::mutant;
use crate::segment::{
    DurableNote, Position, SegmentHeader, chain_on, prologue, put_hard_state, put_record,
    segment_name, u32_at, u64_at,
};
use crate::snapshots::snapshot_places;
use crate::term_runs::TermRuns;
use crate::{LogJob, Owner};
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{Index, Term};
use quorumwire_wire::limits::RECORD_PAYLOAD_BYTES_MAX;
use quorumwire_wire::{RECORD_HEADER_BYTES, RecordKind, peer};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// There is no room. Nothing of the batch counts as written, and the same batch may be tried
    /// again once this many bytes are free.
    #[error("disk full: {needed_bytes} bytes needed")]
    DiskFull {
        /// Room to wait for.
        needed_bytes: u64,
    },
    /// No file can be opened for now, and the next one is due. Nothing of the batch counts as written, and
    /// the same batch may be tried again.
    #[error("no file descriptor is left for the next file")]
    NoDescriptor,
    /// What the disk holds is not known any more, or what was to be written makes no sense. The log
    /// takes nothing after this; the process must end and read the disk afresh.
    #[error("the log failed: {0}")]
    Failed(String),
}

/// The log, open for writing. One batch at a time: a batch is on disk when [`write`](Self::write)
/// returns, and the next begins only then.
pub struct Wal {
    disk: Arc<dyn Disk>,
    owner: Owner,
    segment_bytes: u64,
    active: Active,
    /// Full segments, oldest first.
    sealed: VecDeque<SealedSegment>,
    /// Segments that nothing needs any more and that could not be removed yet.
    to_remove: Vec<u64>,
    mark: Mark,
    hard_state: peer::HardState,
    /// What the files show.
    runs: TermRuns,
    /// A base that the files do not show yet; it goes before anything else.
    base_to_write: Option<(Index, Term)>,
    failed: bool,
}

/// The segment that is written to.
pub(crate) struct Active {
    pub sequence: u64,
    pub file: Box<dyn DiskFile>,
    pub offset: u64,
    pub chain: u32,
    /// It holds nothing but what every segment begins with.
    pub empty: bool,
}

/// A segment that is only read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedSegment {
    pub sequence: u64,
    /// The last entry of the log when the next segment was begun.
    pub next_base: (Index, Term),
    /// The lowest place at which later segments write the log anew. While it is not behind
    /// `next_base`, something up to there was replaced, and they cannot be read without this one.
    pub lowest_later: Index,
}

/// What a recovery hands over.
pub(crate) struct WalParts {
    pub disk: Arc<dyn Disk>,
    pub owner: Owner,
    pub segment_bytes: u64,
    pub active: Active,
    pub sealed: VecDeque<SealedSegment>,
    pub mark: Mark,
    pub hard_state: peer::HardState,
    pub runs: TermRuns,
    pub base_to_write: Option<(Index, Term)>,
}

/// A batch, laid out for the place it goes to; what the log will be once it is there.
struct Batch {
    pieces: Vec<Bytes>,
    bytes: u64,
    chain: u32,
    hard_state: peer::HardState,
    runs: TermRuns,
    /// The lowest place at which the batch writes the log anew.
    lowest: Index,
}

impl Wal {
    /// Begins a log without entries in a folder that holds none. Durable when it returns.
    pub(crate) fn create(
        disk: &Arc<dyn Disk>,
        owner: Owner,
        segment_bytes: u64,
    ) -> io::Result<Self> {
        let header = SegmentHeader {
            owner,
            sequence: 1,
            previous_end: 0,
            previous_chain: 0,
        };
        let hard_state = peer::HardState::default();
        let base = (Index(0), Term(0));
        let (bytes, chain) = prologue(&header, base, &hard_state);
        let offset = bytes.len() as u64;
        let file = disk.create(&segment_name(1))?;
        file.allocate(segment_bytes)?;
        write_all_at(&*file, 0, &[bytes])?;
        file.sync_data()?;
        let active = Active {
            sequence: 1,
            file,
            offset,
            chain,
            empty: true,
        };
        let mark = Mark::create(&**disk, owner.incarnation, active.tail())?;
        mark.sync()?;
        disk.sync_folder()?;
        Ok(Self::from_parts(WalParts {
            disk: Arc::clone(disk),
            owner,
            segment_bytes,
            active,
            sealed: VecDeque::new(),
            mark,
            hard_state,
            runs: TermRuns::new(base),
            base_to_write: None,
        }))
    }

    pub(crate) fn from_parts(parts: WalParts) -> Self {
        Self {
            disk: parts.disk,
            owner: parts.owner,
            segment_bytes: parts.segment_bytes,
            active: parts.active,
            sealed: parts.sealed,
            to_remove: Vec::new(),
            mark: parts.mark,
            hard_state: parts.hard_state,
            runs: parts.runs,
            base_to_write: parts.base_to_write,
            failed: false,
        }
    }

    /// Writes all jobs as one batch, in order, and syncs once. On `Ok` all of it is durable.
    pub fn write(&mut self, jobs: &[LogJob]) -> Result<(), WalError> {
        if self.failed {
            return Err(WalError::Failed("it failed before".to_owned()));
        }
        let result = self.write_batch(jobs);
        self.failed = matches!(result, Err(WalError::Failed(_)));
        result
    }

    /// Frees the disk of segments whose entries all lie at or before `upto`; the caller has a durable
    /// snapshot of everything up to there. Nothing beyond the newest snapshot in the folder is
    /// removed, whatever the caller says. The number of segments removed. After an error the rest
    /// is removed by a later call.
    pub fn compact(&mut self, upto: Index) -> io::Result<usize> {
        let newest = snapshot_places(&self.disk.list()?)
            .first()
            .map_or(Index(0), |place| place.0);
        let upto = upto.min(newest);
        let mut removed = 0;
        let removable = |sealed: &SealedSegment| {
            let covered = sealed.next_base.0 <= upto || mutant("compacted-beyond-the-snapshot");
            let replaced = sealed.lowest_later <= sealed.next_base.0;
            covered && (!replaced || mutant("compacted-what-was-replaced"))
        };
        if let Some(newest) = self.sealed.iter().rposition(removable) {
            // The newest goes first: whatever is left of the older ones then lies before a gap, and
            // counts for nothing.
            self.disk
                .remove(&segment_name(self.sealed[newest].sequence))?;
            for sealed in self.sealed.drain(..=newest) {
                // Everything up to here is in the snapshot; nothing will ever replace it.
                if self.runs.term_at(sealed.next_base.0) == Some(sealed.next_base.1) {
                    self.runs.begin_behind(sealed.next_base);
                }
                self.to_remove.push(sealed.sequence);
            }
            self.to_remove.pop();
            self.disk.sync_folder()?;
            removed = 1;
        }
        while let Some(&sequence) = self.to_remove.last() {
            self.disk.remove(&segment_name(sequence))?;
            self.to_remove.pop();
            removed += 1;
        }
        Ok(removed)
    }

    /// Segment files of the log, the one being written included.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.sealed.len() + 1
    }

    /// Bytes free on the disk; `None` if it cannot tell.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        self.disk.free_bytes().ok()
    }

    fn write_batch(&mut self, jobs: &[LogJob]) -> Result<(), WalError> {
        let here = self.active.tail();
        let bytes_max = batch_bytes_max(jobs);
        if here.position.offset + bytes_max > self.segment_bytes && !self.active.empty {
            return self.write_to_next_segment(jobs);
        }
        let batch = self.lay_out(jobs, here, here.position)?;
        let offset = self.active.offset;
        if let Err(error) = write_all_at(&*self.active.file, offset, &batch.pieces) {
            self.take_back(&error)?;
            return Err(WalError::DiskFull {
                needed_bytes: bytes_max,
            });
        }
        sync_batch(&*self.active.file)?;
        self.active.offset += batch.bytes;
        self.active.chain = batch.chain;
        self.active.empty = false;
        self.accept(batch)
    }

    fn write_to_next_segment(&mut self, jobs: &[LogJob]) -> Result<(), WalError> {
        let old = self.active.tail();
        let header = SegmentHeader {
            owner: self.owner,
            sequence: old.position.sequence + 1,
            previous_end: old.position.offset,
            previous_chain: old.chain,
        };
        let (start, chain) = prologue(&header, self.runs.last(), &self.hard_state);
        let here = Tail {
            position: Position {
                sequence: header.sequence,
                offset: start.len() as u64,
            },
            chain,
        };
        let mut batch = self.lay_out(jobs, here, old.position)?;
        let next_base = self.runs.last();
        let start_bytes = start.len() as u64;
        batch.pieces.insert(0, start);
        let file_bytes = self.segment_bytes.max(start_bytes + batch.bytes);
        let name = segment_name(header.sequence);
        let written = self.disk.create(&name).and_then(|file| {
            file.allocate(file_bytes)?;
            write_all_at(&*file, 0, &batch.pieces)?;
            Ok(file)
        });
        let file = match written {
            Ok(file) => file,
            // Only making it takes one, and without one it was not made.
            Err(error) if is_want_of_descriptors(&error) => return Err(WalError::NoDescriptor),
            Err(error) if is_disk_full(&error) => {
                return Err(self.give_up_segment(&name, file_bytes));
            }
            Err(error) => return Err(failed("write")(error)),
        };
        sync_batch(&*file)?;
        if !mutant("segment-name-not-synced") {
            self.disk.sync_folder().map_err(failed("folder sync"))?;
        }
        let active = Active {
            sequence: header.sequence,
            file,
            offset: start_bytes + batch.bytes,
            chain: batch.chain,
            empty: false,
        };
        let old = std::mem::replace(&mut self.active, active);
        // The room behind its end is not needed any more; if it stays, it is only room.
        let _ = old.file.truncate(old.offset);
        self.sealed.push_back(SealedSegment {
            sequence: old.sequence,
            next_base,
            lowest_later: Index(u64::MAX),
        });
        self.accept(batch)
    }

    /// The batch is durable: from now on it counts.
    fn accept(&mut self, batch: Batch) -> Result<(), WalError> {
        self.hard_state = batch.hard_state;
        self.runs = batch.runs;
        self.base_to_write = None;
        for sealed in &mut self.sealed {
            sealed.lowest_later = sealed.lowest_later.min(batch.lowest);
        }
        match self.mark.write(self.active.tail()) {
            // A mark that lags behind is a mark.
            Ok(()) => Ok(()),
            Err(error) if is_disk_full(&error) => Ok(()),
            Err(error) => Err(failed("write of the mark")(error)),
        }
    }

    /// Undoes a write that found no room; any other error is the end.
    fn take_back(&mut self, error: &io::Error) -> Result<(), WalError> {
        if !is_disk_full(error) {
            return Err(WalError::Failed(format!("write: {error}")));
        }
        let file = &self.active.file;
        let end = file.file_bytes().map_err(failed("file length"))?;
        if end > self.active.offset {
            file.truncate(self.active.offset)
                .map_err(failed("truncation after a full disk"))?;
        }
        Ok(())
    }

    /// Undoes the creation of a segment that found no room.
    fn give_up_segment(&self, name: &str, needed_bytes: u64) -> WalError {
        match self.disk.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                failed("removal after a full disk")(error)
            }
            Ok(()) | Err(_) => WalError::DiskFull { needed_bytes },
        }
    }

    /// Lays out a batch that begins at `here` and is written after everything up to `synced` was.
    fn lay_out(&self, jobs: &[LogJob], here: Tail, synced: Position) -> Result<Batch, WalError> {
        let group = self.owner.group;
        let note = DurableNote {
            incarnation: self.owner.incarnation,
            at: here.position,
            synced,
            chain: here.chain,
        };
        let mut layout = Layout {
            group,
            own: BytesMut::new(),
            pieces: Vec::new(),
            chain: here.chain,
            hard_state: self.hard_state,
            runs: self.runs.clone(),
            lowest: Index(u64::MAX),
        };
        put_record(
            &mut layout.own,
            &mut layout.chain,
            RecordKind::Durable,
            group,
            self.runs.last(),
            &note.encode(),
        );
        if let Some(base) = self.base_to_write {
            layout.put_base(base);
        }
        for job in jobs {
            layout.put_job(job).map_err(WalError::Failed)?;
        }
        layout.cut_own();
        Ok(Batch {
            bytes: layout.pieces.iter().map(|piece| piece.len() as u64).sum(),
            pieces: layout.pieces,
            chain: layout.chain,
            hard_state: layout.hard_state,
            runs: layout.runs,
            lowest: layout.lowest,
        })
    }
}

impl Active {
    pub(crate) fn tail(&self) -> Tail {
        Tail {
            position: Position {
                sequence: self.sequence,
                offset: self.offset,
            },
            chain: self.chain,
        }
    }
}

/// A batch in the making.
struct Layout {
    group: quorumwire_interfaces::GroupId,
    /// Records made here since the last piece of a job.
    own: BytesMut,
    pieces: Vec<Bytes>,
    chain: u32,
    hard_state: peer::HardState,
    runs: TermRuns,
    lowest: Index,
}

impl Layout {
    fn put_job(&mut self, job: &LogJob) -> Result<(), String> {
        if let Some(hard_state) = &job.hard_state {
            if hard_state.term < self.hard_state.term {
                return Err(format!(
                    "asked to go from term {} back to {}",
                    self.hard_state.term, hard_state.term
                ));
            }
            if !mutant("vote-not-written") {
                put_hard_state(&mut self.own, &mut self.chain, self.group, hard_state);
            }
            self.hard_state = *hard_state;
        }
        if let Some(base) = job.begin_behind {
            self.put_base(base);
        }
        for piece in &job.pieces {
            self.walk(piece)?;
            self.cut_own();
            self.pieces.push(piece.clone());
        }
        Ok(())
    }

    fn put_base(&mut self, base: (Index, Term)) {
        let kind = RecordKind::Base;
        if mutant("base-not-written") {
            return;
        }
        put_record(&mut self.own, &mut self.chain, kind, self.group, base, &[]);
        if !self.runs.begin_behind(base) {
            self.lowest = self.lowest.min(base.0);
        }
    }

    fn cut_own(&mut self) {
        if !self.own.is_empty() {
            self.pieces.push(self.own.split().freeze());
        }
    }

    /// Follows the records of a piece by their headers; their checksums were checked or made by
    /// whoever hands them over.
    fn walk(&mut self, mut records: &[u8]) -> Result<(), String> {
        while !records.is_empty() {
            if records.len() < RECORD_HEADER_BYTES {
                return Err("asked to write a part of a record".to_owned());
            }
            let payload_bytes = u32_at(records, 4) as usize;
            let record_bytes = RECORD_HEADER_BYTES + payload_bytes;
            if payload_bytes > RECORD_PAYLOAD_BYTES_MAX || record_bytes > records.len() {
                return Err("asked to write a part of a record".to_owned());
            }
            // The kinds of entries are the ones below those of the disk.
            if records[9] >= RecordKind::HardState as u8 || u32_at(records, 12) != self.group.0 {
                return Err("asked to write a record that is no entry of this group".to_owned());
            }
            let (term, index) = (Term(u64_at(records, 16)), Index(u64_at(records, 24)));
            self.runs.append((index, term))?;
            self.lowest = self.lowest.min(index);
            self.chain = chain_on(self.chain, records);
            records = &records[record_bytes..];
        }
        Ok(())
    }
}

/// An upper bound of the bytes these jobs take as one batch.
pub(crate) fn batch_bytes_max(jobs: &[LogJob]) -> u64 {
    let fixed = 2 * RECORD_HEADER_BYTES as u64 + crate::segment::DURABLE_PAYLOAD_BYTES as u64;
    jobs.iter().fold(fixed, |sum, job| sum + job.bytes_max())
}

/// Makes a batch durable. A sync that fails is never tried again.
fn sync_batch(file: &dyn DiskFile) -> Result<(), WalError> {
    if mutant("acknowledged-before-sync") {
        return Ok(());
    }
    let synced = file.sync_data();
    if mutant("failed-sync-tried-again") && synced.is_err() {
        return file.sync_data().map_err(failed("fdatasync"));
    }
    synced.map_err(failed("fdatasync"))
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> WalError {
    move |error| WalError::Failed(format!("{what}: {error}"))
}
