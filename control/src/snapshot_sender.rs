//! The leader's side of a snapshot transfer (Raft section 7): one chunk on its way at a time, read
//! from the disk by the node, while the group goes on. Also what a snapshot of one's own changes.
use crate::progress::{Part, Sending, SnapshotTransfer};
use crate::{Body, Output, Peer, Replica, SnapshotMeta};
use bytes::Bytes;
use quorumwire_interfaces::{Index, ReplicaId, Term};

/// Log that is kept for a member that catches up by a snapshot is at most so many times as long: it is
/// written while the snapshot is sent, and while it is installed.
const TIMES_A_SNAPSHOT: u64 = 4;

/// The numbers in a `SnapshotReply`.
pub(crate) struct Reply {
    pub(crate) last_index: Index,
    pub(crate) offset: u64,
    pub(crate) installed: bool,
    pub(crate) rejected: bool,
    pub(crate) round: u64,
}

/// Asks for the next chunk to be read.
pub(crate) const fn read_chunk(to: ReplicaId, it: &SnapshotTransfer, bytes_max: usize) -> Output {
    Output::ReadSnapshot {
        to,
        last_index: it.last_index,
        offset: it.offset,
        bytes_max,
    }
}

impl Replica {
    /// A snapshot of the own state is durable: the log behind it is needed no more, but for a tail.
    pub(crate) fn on_snapshot_taken(&mut self, meta: SnapshotMeta) {
        assert!(
            meta.last_index <= self.commit_index,
            "a snapshot of what is not committed"
        );
        // Answered, even if it comes at a moment when it is of no use: who needs one asks again then.
        self.snapshot_asked = false;
        let newest = self.snapshot.as_ref().map_or(Index(0), |s| s.last_index);
        let empty = meta.last_index == Index(0);
        if empty || meta.last_index < newest || self.receiving.is_installing() {
            self.counters.ignored_unexpected += 1;
            return;
        }
        let tail_bytes = self.config.log_tail_bytes;
        self.log.may_forget(meta.last_index, tail_bytes);
        self.members.forget(meta.last_index);
        self.persistence.covered_by_snapshot(meta.last_index);
        self.snapshot = Some(meta);
        // In place of one that cannot be read.
        let progress = self.leading.iter_mut().flat_map(|it| &mut it.progress);
        for it in progress {
            if matches!(&it.state, Sending::Snapshot(transfer) if transfer.has_failed()) {
                it.probe_from(it.next_index);
            }
        }
    }

    /// Forgets a piece of the log that the own snapshot made superfluous, but for what members lack that
    /// catch up by an older one. Under steady writes they would need the next as soon as they have that, and
    /// never be done.
    pub(crate) fn forget_log(&mut self) {
        let upto = self.lacked_behind().unwrap_or(self.log.last_index());
        self.log.forget_some(upto);
    }

    /// Leader: how far the slowest of those has the log, or soon will, who catch up by a snapshot. If much
    /// more was written meanwhile than the snapshot is long, the next snapshot is the shorter way. So it is
    /// for those who fall behind without one.
    fn lacked_behind(&mut self) -> Option<Index> {
        let (base_index, old_bytes) = (self.log.base_index(), self.log.old_bytes() as u64);
        let needed_behind = self.log.needed_behind();
        let kept_max = self.config.log_kept_bytes_max as u64;
        let heard_after = self.now.0.saturating_sub(self.config.election_timeout);
        let mut lacked = None;
        for progress in &mut self.leading.as_mut()?.progress {
            let holds = match &progress.state {
                Sending::Snapshot(transfer) => transfer.last_index,
                Sending::Probe { .. } | Sending::Replicate => progress.match_index,
            };
            if holds >= needed_behind && !matches!(progress.state, Sending::Snapshot(_)) {
                progress.catches_up_by = None;
            }
            let worth = match progress.catches_up_by {
                None => continue,
                Some(0) => kept_max,
                Some(bytes) => kept_max.min(bytes * TIMES_A_SNAPSHOT),
            };
            let served = progress.part == Part::Software && progress.heard_at.0 > heard_after;
            if served && holds >= base_index && old_bytes <= worth {
                lacked = Some(lacked.map_or(holds, |least: Index| least.min(holds)));
            }
        }
        lacked
    }

    /// Asks for a snapshot, once.
    pub(crate) fn ask_for_snapshot(&mut self, outputs: &mut Vec<Output>) {
        if !self.snapshot_asked {
            self.snapshot_asked = true;
            outputs.push(Output::TakeSnapshot);
        }
    }

    pub(crate) fn on_snapshot_read(
        &mut self,
        to: ReplicaId,
        last_index: Index,
        offset: u64,
        chunk: Option<(Bytes, u64)>,
        outputs: &mut Vec<Output>,
    ) {
        let newest = self.snapshot_index();
        let Some(leading) = &mut self.leading else {
            return;
        };
        let round = leading.rounds.current();
        let found = leading.progress.iter_mut().find(|p| p.peer.id == to);
        let Some(progress) = found else { return };
        let Sending::Snapshot(transfer) = &mut progress.state else {
            return;
        };
        if transfer.last_index != last_index || transfer.offset != offset || !transfer.reading {
            return;
        }
        let Some((bytes, total_bytes)) = chunk.filter(|(bytes, _)| !bytes.is_empty()) else {
            // Gone or damaged. Where a newer one is there, the next flush sends that.
            if newest > last_index {
                progress.probe_from(progress.next_index);
                return;
            }
            // If not, one is asked for, and this one is read again meanwhile: who serves a program has no
            // other without a majority, which may be waiting for this one.
            transfer.fail(self.now);
            self.ask_for_snapshot(outputs);
            return;
        };
        assert!(
            bytes.len() <= self.config.snapshot_chunk_bytes_max,
            "more was read than asked for"
        );
        transfer.reading = false;
        transfer.failures = 0;
        transfer.total_bytes = total_bytes;
        progress.catches_up_by = Some(total_bytes);
        transfer.moved_at = self.now;
        let body = Body::SnapshotChunk {
            last_index,
            last_term: transfer.last_term,
            offset,
            total_bytes,
            round,
            bytes,
        };
        let peer = progress.peer;
        self.send(peer, body, outputs);
    }

    pub(crate) fn on_snapshot_reply(
        &mut self,
        from: Peer,
        term: Term,
        reply: &Reply,
        outputs: &mut Vec<Output>,
    ) {
        if !self.is_reply_to_me(from, term, outputs) {
            return;
        }
        if reply.last_index > self.log.last_index() {
            self.counters.ignored_malformed += 1;
            return;
        }
        self.note_round(from, reply.round);
        let now = self.now;
        let base_index = self.log.base_index();
        let bytes_max = self.config.snapshot_chunk_bytes_max;
        let Some(progress) = self.leading.as_mut().and_then(|l| l.progress_of(from)) else {
            return;
        };
        let Sending::Snapshot(transfer) = &mut progress.state else {
            return;
        };
        if reply.installed {
            progress.matched(reply.last_index);
            progress.matched_round = progress.matched_round.max(reply.round);
            if progress.match_index >= base_index {
                progress.probe_from(progress.match_index.next());
            } else {
                // The log moved on meanwhile: it needs a newer snapshot, which the next flush begins.
                progress.probe_from(progress.next_index);
                self.counters.snapshots_outrun += 1;
            }
            return;
        }
        if reply.last_index != transfer.last_index || transfer.reading {
            return;
        }
        // Where the receiver is, whoever sent it what it has. It loses all of it with its process.
        let moved = reply.offset != transfer.offset && reply.offset <= transfer.total_bytes;
        if reply.rejected {
            transfer.offset = 0;
        } else if moved {
            transfer.offset = reply.offset;
        } else {
            return;
        }
        transfer.moved_at = now;
        if transfer.is_to_be_read() {
            transfer.reading = true;
            outputs.push(read_chunk(from.id, transfer, bytes_max));
        }
    }

    /// With a heartbeat: what has not moved for an election timeout was lost and is sent again. When
    /// everything was received, an empty chunk asks how the installation goes.
    pub(crate) fn resume_transfers(&mut self, outputs: &mut Vec<Output>) {
        let now = self.now;
        let timeout = self.config.election_timeout;
        let bytes_max = self.config.snapshot_chunk_bytes_max;
        let Some(leading) = &mut self.leading else {
            return;
        };
        let round = leading.rounds.current();
        let mut asked = Vec::new();
        for progress in &mut leading.progress {
            let Sending::Snapshot(transfer) = &mut progress.state else {
                continue;
            };
            if transfer.reading || now.0 < transfer.goes_on_at(timeout) {
                continue;
            }
            transfer.moved_at = now;
            if transfer.is_to_be_read() {
                transfer.reading = true;
                outputs.push(read_chunk(progress.peer.id, transfer, bytes_max));
            } else {
                let body = Body::SnapshotChunk {
                    last_index: transfer.last_index,
                    last_term: transfer.last_term,
                    offset: transfer.offset,
                    total_bytes: transfer.total_bytes,
                    round,
                    bytes: Bytes::new(),
                };
                asked.push((progress.peer, body));
            }
        }
        for (peer, body) in asked {
            self.send(peer, body, outputs);
        }
    }
}
