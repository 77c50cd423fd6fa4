//! The follower's side of a snapshot transfer: chunks are stored in order, then the whole is
//! installed in place of the log. While it is being installed the log stands still.
use crate::{Body, IncomingSnapshot, Output, Peer, Replica, SnapshotMeta, SnapshotProgress};
use bytes::Bytes;
use quorumwire_interfaces::{Index, Lineage, Term};
use quorumwire_wire::SnapshotReader;

/// A snapshot being received.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    transfer: Option<Transfer>,
    /// A chunk given to the disk and not answered yet: of which snapshot, and where the next one
    /// belongs. While there is one, nothing else is given.
    storing: Option<(Index, u64)>,
    /// The snapshot being installed.
    installing: Option<(Index, Term)>,
}

#[derive(Debug)]
struct Transfer {
    last_index: Index,
    last_term: Term,
    total_bytes: u64,
    next_offset: u64,
    round: u64,
}

/// A `SnapshotChunk`.
pub(crate) struct Chunk {
    pub(crate) last_index: Index,
    pub(crate) last_term: Term,
    pub(crate) offset: u64,
    pub(crate) total_bytes: u64,
    pub(crate) round: u64,
    pub(crate) bytes: Bytes,
}

impl Receiving {
    pub(crate) fn is_installing(&self) -> bool {
        self.installing.is_some()
    }

    /// What comes in, for people.
    pub(crate) fn incoming(&self) -> Option<IncomingSnapshot> {
        if self.is_installing() {
            return Some(IncomingSnapshot::Installing);
        }
        let transfer = self.transfer.as_ref()?;
        Some(IncomingSnapshot::Receiving(SnapshotProgress {
            stored_bytes: transfer.next_offset,
            total_bytes: transfer.total_bytes,
        }))
    }
}

impl Chunk {
    fn makes_sense(&self, term: Term) -> bool {
        let upto = self.offset.checked_add(self.bytes.len() as u64);
        let at_end = self.offset == self.total_bytes;
        upto.is_some_and(|upto| upto <= self.total_bytes)
            && (at_end || !self.bytes.is_empty())
            && self.total_bytes > 0
            && self.last_term <= term
            && (1..u64::MAX / 2).contains(&self.last_index.0)
    }
}

impl Replica {
    pub(crate) fn on_snapshot_chunk(
        &mut self,
        from: Peer,
        term: Term,
        chunk: Chunk,
        outputs: &mut Vec<Output>,
    ) {
        if term < self.term {
            self.refuse_old_leader(from, chunk.round, outputs);
            return;
        }
        if !chunk.makes_sense(term) {
            self.counters.ignored_malformed += 1;
            return;
        }
        if let Some(other) = self.lineage_of_another(&chunk) {
            return self.refuse_lineage(from, other, outputs);
        }
        if !self.accept_leader(from, term, outputs) {
            return;
        }
        self.following.round = self.following.round.max(chunk.round);
        if let Some((last_index, _)) = self.receiving.installing {
            if last_index == chunk.last_index {
                self.reply_to_chunk(&chunk, chunk.total_bytes, false, outputs);
            }
            return;
        }
        if self.diverged || self.contradicts_committed(chunk.last_index, chunk.last_term) {
            return self.note_divergence();
        }
        if self.has_already(chunk.last_index, chunk.last_term, outputs) {
            self.receiving.transfer = None;
            return;
        }
        if self.receiving.storing.is_none() {
            self.take_chunk(chunk, outputs);
        }
    }

    /// The lineage that a snapshot's first piece names, if it is another one. Where the piece is too short to
    /// name it, whoever installs the snapshot finds out.
    fn lineage_of_another(&self, chunk: &Chunk) -> Option<Lineage> {
        let first = (chunk.offset == 0).then_some(&chunk.bytes[..])?;
        let membership = SnapshotReader::new(first).ok()?.head().membership.clone();
        let other = self.is_of_another_lineage(&membership);
        other.then_some(membership.lineage)
    }

    /// Whether the log (or an earlier snapshot) contains what the snapshot stands for. Then it is not
    /// needed, but it says that all of that is committed.
    fn has_already(&mut self, index: Index, term: Term, outputs: &mut Vec<Output>) -> bool {
        if index > self.commit_index {
            if self.log.term_at(index) != Some(term) {
                return false;
            }
            self.commit_upto(index, outputs);
        }
        self.following.matched = self.following.matched.max(index);
        self.following.owed = true;
        true
    }

    fn take_chunk(&mut self, chunk: Chunk, outputs: &mut Vec<Output>) {
        let same = self.receiving.transfer.as_ref().is_some_and(|transfer| {
            transfer.last_index == chunk.last_index
                && transfer.last_term == chunk.last_term
                && transfer.total_bytes == chunk.total_bytes
        });
        if !same && chunk.offset != 0 {
            self.reply_to_chunk(&chunk, 0, true, outputs);
            return;
        }
        let transfer = match &mut self.receiving.transfer {
            Some(transfer) if same => transfer,
            other => other.insert(Transfer {
                last_index: chunk.last_index,
                last_term: chunk.last_term,
                total_bytes: chunk.total_bytes,
                next_offset: 0,
                round: 0,
            }),
        };
        transfer.round = chunk.round;
        let next_offset = transfer.next_offset;
        if chunk.offset != next_offset {
            self.reply_to_chunk(&chunk, next_offset, false, outputs);
            return;
        }
        let stored_upto = chunk.offset + chunk.bytes.len() as u64;
        self.receiving.storing = Some((chunk.last_index, stored_upto));
        outputs.push(Output::StoreSnapshotChunk {
            last_index: chunk.last_index,
            offset: chunk.offset,
            bytes: chunk.bytes,
        });
    }

    fn reply_to_chunk(
        &self,
        chunk: &Chunk,
        offset: u64,
        rejected: bool,
        outputs: &mut Vec<Output>,
    ) {
        self.reply_snapshot(chunk.last_index, offset, rejected, chunk.round, outputs);
    }

    fn reply_snapshot(
        &self,
        last_index: Index,
        offset: u64,
        rejected: bool,
        round: u64,
        outputs: &mut Vec<Output>,
    ) {
        let body = Body::SnapshotReply {
            last_index,
            offset,
            installed: false,
            rejected,
            round,
        };
        if let Some(leader) = self.leader {
            self.send(leader, body, outputs);
        }
    }

    pub(crate) fn on_snapshot_chunk_stored(
        &mut self,
        last_index: Index,
        next_offset: u64,
        stored: bool,
        outputs: &mut Vec<Output>,
    ) {
        if self.receiving.storing != Some((last_index, next_offset)) && stored {
            self.counters.ignored_unexpected += 1;
            return;
        }
        self.receiving.storing = None;
        let Some(transfer) = &mut self.receiving.transfer else {
            return;
        };
        if transfer.last_index != last_index {
            return;
        }
        if !stored {
            let round = transfer.round;
            self.receiving.transfer = None;
            self.reply_snapshot(last_index, 0, true, round, outputs);
            return;
        }
        transfer.next_offset = next_offset;
        let (last_term, round) = (transfer.last_term, transfer.round);
        if next_offset == transfer.total_bytes {
            self.receiving.transfer = None;
            if self.has_already(last_index, last_term, outputs) {
                return;
            }
            self.receiving.installing = Some((last_index, last_term));
            outputs.push(Output::InstallSnapshot {
                last_index,
                last_term,
            });
        }
        self.reply_snapshot(last_index, next_offset, false, round, outputs);
    }

    pub(crate) fn on_snapshot_installed(
        &mut self,
        last_index: Index,
        meta: Option<SnapshotMeta>,
        outputs: &mut Vec<Output>,
    ) {
        let expected = self.receiving.installing.take();
        let Some((_, last_term)) = expected.filter(|(index, _)| *index == last_index) else {
            self.receiving.installing = expected;
            self.counters.ignored_unexpected += 1;
            return;
        };
        self.put_off_election();
        let round = self.following.round;
        let whole = meta.filter(|m| {
            m.last_index == last_index
                && m.last_term == last_term
                && m.membership_index <= last_index
        });
        let Some(meta) = whole else {
            self.counters.ignored_malformed += 1;
            self.reply_snapshot(last_index, 0, true, round, outputs);
            return;
        };
        self.replace_log(meta, outputs);
        if let Some(leader) = self.leader {
            let body = Body::SnapshotReply {
                last_index,
                offset: 0,
                installed: true,
                rejected: false,
                round,
            };
            self.promise(leader, body);
        }
    }

    /// The snapshot stands in place of the log, all of which is older or contradicts it.
    fn replace_log(&mut self, meta: SnapshotMeta, outputs: &mut Vec<Output>) {
        assert!(
            meta.last_index > self.commit_index,
            "a snapshot older than what is committed"
        );
        self.counters.snapshots_installed += 1;
        if self.log.last_index() > meta.last_index {
            outputs.push(Output::Truncated(meta.last_index.next()));
        }
        self.log.reset(meta.last_index, meta.last_term);
        self.persistence.replaced_by_snapshot(meta.last_index);
        self.commit_index = meta.last_index;
        self.applied_index = meta.last_index;
        self.following.matched = meta.last_index;
        self.members
            .reset(meta.membership_index, meta.membership.clone());
        self.note_committed_members();
        self.snapshot_asked = false;
        self.snapshot = Some(meta);
        self.members_changed(outputs);
    }

    /// The leader changed: a transfer begins anew.
    pub(crate) fn forget_transfer_of_snapshot(&mut self) {
        self.receiving.transfer = None;
    }
}
