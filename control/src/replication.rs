//! The leader's side of replication: what goes to whom, what the answers mean, what is committed
//! (Raft sections 5.3 and 5.4.2). Everything is sent from `flush`, so that batches form.
use crate::members::majority_of;
use crate::mutants::mutant;
use crate::progress::{Part, Progress, Sending, SnapshotTransfer};
use crate::{Body, Message, Now, Output, Peer, Replica};
use bytes::Bytes;
use quorumwire_interfaces::{Index, Term};
use quorumwire_wire::CommitQuorum;
use quorumwire_wire::limits::{APPEND_BYTES_TARGET, APPEND_RECORDS_MAX, VOTERS_MAX};

/// A new round begins at most this many times in a heartbeat interval, reads aside.
const ROUNDS_PER_HEARTBEAT: u32 = 4;

/// The numbers in an `AppendReply`.
pub(crate) struct Reply {
    pub(crate) round: u64,
    pub(crate) rejected: bool,
    pub(crate) index: Index,
    pub(crate) hint_index: Index,
    pub(crate) hint_term: Term,
}

impl Replica {
    pub(crate) fn on_append_reply(
        &mut self,
        from: Peer,
        term: Term,
        reply: &Reply,
        outputs: &mut Vec<Output>,
    ) {
        if !self.is_reply_to_me(from, term, outputs) {
            return;
        }
        if reply.index > self.log.last_index() {
            self.counters.ignored_malformed += 1;
            return;
        }
        self.note_round(from, reply.round);
        let base_index = self.log.base_index();
        let resume = self
            .log
            .last_with_term_at_most(reply.hint_index, reply.hint_term);
        let Some(progress) = self.leading.as_mut().and_then(|l| l.progress_of(from)) else {
            return;
        };
        if !reply.rejected {
            progress.matched(reply.index);
            if reply.index >= progress.match_index {
                progress.matched_round = progress.matched_round.max(reply.round);
            }
            match &mut progress.state {
                Sending::Probe { .. } => progress.state = Sending::Replicate,
                // It has what the snapshot stands for, or all the log needs; if the log has moved on
                // meanwhile, the next flush begins a newer snapshot.
                Sending::Snapshot(transfer)
                    if progress.match_index >= base_index.min(transfer.last_index) =>
                {
                    progress.probe_from(progress.match_index.next());
                }
                Sending::Replicate | Sending::Snapshot(_) => {}
            }
            return;
        }
        let in_snapshot = matches!(progress.state, Sending::Snapshot(_));
        let denied = reply.index <= progress.match_index;
        let heeded = progress.part == Part::Software && !mutant("denial-unheard");
        if !in_snapshot && denied && heeded {
            // It denies in a later round what it held in an earlier one: its disk was put back to an
            // old copy. Never to ask it for less again would keep it out for as long as the term lasts.
            let later = reply.round > progress.matched_round;
            if later || mutant("denial-of-earlier-round") {
                progress.lost_all_behind(resume.0.min(reply.index.previous()));
                self.counters.acknowledgements_denied += 1;
            }
            return;
        }
        let stale = denied || reply.index >= progress.next_index;
        if !in_snapshot && !stale {
            // Its log ends before, or differs at, what came before the entries: go back to where
            // the two can agree. `index < next_index`, so this always goes back.
            let found = resume.0.next().min(reply.index);
            progress.probe_from(found);
        }
    }

    /// A member has answered a round: it has not heard of a newer leader before.
    pub(crate) fn note_round(&mut self, from: Peer, round: u64) {
        let now = self.now;
        let promise = self.countable(self.promise_of(from));
        let Some(leading) = &mut self.leading else {
            return;
        };
        if round > leading.rounds.current() {
            self.counters.ignored_malformed += 1;
            return;
        }
        let mut begun_at = leading.rounds.begun_at(round);
        if mutant("lease-from-answer") {
            begun_at = begun_at.map(|_| now);
        }
        if let Some(progress) = leading.progress_of(from)
            && round > progress.acked_round
        {
            progress.acked_round = round;
            let until = begun_at.map(|begun| Now(begun.0.saturating_add(promise)));
            progress.promised_until = until.or(progress.promised_until);
            self.renew_lease();
        }
    }

    /// Commits what enough voters hold, if it is of this term (Raft section 5.4.2: an entry of an
    /// older term is committed only along with one of this term).
    pub(crate) fn advance_commit(&mut self, outputs: &mut Vec<Output>) {
        let held = self.held_by(self.members.current().quorum);
        let own_term = self.log.term_at(held) == Some(self.term) || mutant("commit-old-term");
        if held <= self.commit_index || !own_term {
            return;
        }
        self.commit_upto(held, outputs);
        let Some(leading) = &mut self.leading else {
            return;
        };
        if let Some((ticket, _)) = leading.change.take_if(|(_, index)| *index <= held) {
            outputs.push(Output::Done(ticket));
        }
        if self.members.index() <= held {
            self.dismiss_departed(outputs);
        }
    }

    /// The last index that no later leader can lack: committed, or of this term and held by a
    /// majority. Behind the commit index only while all must agree and one is away.
    pub(crate) fn settled_index(&self) -> Index {
        let held = self.held_by(CommitQuorum::Majority);
        if self.log.term_at(held) == Some(self.term) {
            held.max(self.commit_index)
        } else {
            self.commit_index
        }
    }

    /// The last index that so many voters hold durably.
    fn held_by(&self, quorum: CommitQuorum) -> Index {
        let Some(leading) = &self.leading else {
            return Index(0);
        };
        let mut held = [Index(0); VOTERS_MAX];
        let mut voter_count = 0;
        let own = if mutant("leader-counts-unpersisted") {
            self.log.last_index()
        } else {
            self.persistence.persisted_index
        };
        let own = self.members.is_voter(self.config.me).then_some(own);
        let own = own.or(mutant("removed-leader-counts-itself").then_some(self.log.last_index()));
        let others = leading.progress.iter().filter(|p| counts(p));
        for index in others.map(|p| p.match_index).chain(own).take(VOTERS_MAX) {
            held[voter_count] = index;
            voter_count += 1;
        }
        let held = &mut held[..voter_count];
        held.sort_unstable_by(|a, b| b.cmp(a));
        let mut needed_count = match quorum {
            CommitQuorum::Majority => majority_of(voter_count),
            CommitQuorum::All if mutant("all-is-majority") => majority_of(voter_count),
            CommitQuorum::All => voter_count,
        };
        if mutant("commit-by-half") {
            needed_count = (needed_count - 1).max(1);
        }
        held.get(needed_count.wrapping_sub(1))
            .copied()
            .unwrap_or(Index(0))
    }

    /// Begins a new round if messages go out and the current one is old, or if reads wait for one.
    pub(crate) fn begin_round_if_due(&mut self) {
        let granularity = self.config.heartbeat_interval / ROUNDS_PER_HEARTBEAT;
        let now = self.now;
        let confirmed = self.confirmed_round();
        let Some(leading) = &mut self.leading else {
            return;
        };
        let current = leading.rounds.current();
        let waiting = leading.reads.back().is_some_and(|r| r.round > current);
        let for_reads = waiting && (confirmed >= leading.read_round || leading.heartbeat_due);
        let old = leading
            .rounds
            .current_begun_at()
            .is_none_or(|begun| now.0 >= begun.0 + granularity);
        if for_reads || old {
            leading.rounds.begin(now);
            if for_reads {
                leading.read_round = leading.rounds.current();
                leading.heartbeat_due = true;
            }
        }
    }

    /// Sends every member what it lacks, as far as its window allows, and a heartbeat if one is due.
    pub(crate) fn send_appends(&mut self, outputs: &mut Vec<Output>) {
        let Some(mut leading) = self.leading.take() else {
            return;
        };
        let heartbeat = std::mem::take(&mut leading.heartbeat_due);
        if heartbeat && self.plane.running().is_some() {
            // A plane is told each round once: an answer must not count for an earlier saying of it.
            if leading.rounds.current() <= leading.plane_round {
                leading.rounds.begin(self.now);
            }
            leading.plane_round = leading.rounds.current();
            outputs.push(Output::PlaneHeartbeat {
                round: leading.plane_round,
            });
        }
        let round = leading.rounds.current();
        for progress in &mut leading.progress {
            if progress.part != Part::Software && !mutant("software-beside-plane") {
                continue;
            }
            self.send_entries(progress, round, outputs);
            if heartbeat {
                self.send_heartbeat(progress, round, outputs);
            }
        }
        self.leading = Some(leading);
        if heartbeat {
            self.resume_transfers(outputs);
        }
    }

    fn send_entries(&mut self, progress: &mut Progress, round: u64, outputs: &mut Vec<Output>) {
        let messages_max = self.config.appends_in_flight_max;
        let bytes_max = self.config.append_bytes_in_flight_max;
        while progress.window_open(messages_max, bytes_max)
            && progress.next_index <= self.log.last_index()
        {
            let previous = progress.next_index.previous();
            if self.log.term_at(previous).is_none() {
                self.begin_snapshot(progress, outputs);
                return;
            }
            let (records, last_index, bytes) = self.batch_from(progress.next_index);
            outputs.push(self.append(progress.peer, previous, round, records));
            progress.sent(last_index, bytes);
        }
    }

    /// An Append without entries: a sign of life, the commit index, and (because it names the entry
    /// before the next one) the means by which a loss on the way is noticed.
    fn send_heartbeat(&mut self, progress: &mut Progress, round: u64, outputs: &mut Vec<Output>) {
        let mut previous = progress.next_index.previous();
        match &progress.state {
            Sending::Probe { .. } | Sending::Replicate => {
                if self.log.term_at(previous).is_none() {
                    self.begin_snapshot(progress, outputs);
                    previous = Index(0);
                }
            }
            Sending::Snapshot(_) => previous = Index(0),
        }
        outputs.push(self.append(progress.peer, previous, round, Vec::new()));
    }

    fn append(&self, to: Peer, previous: Index, round: u64, records: Vec<Bytes>) -> Output {
        let body = Body::Append {
            previous_index: previous,
            previous_term: self.log.term_at(previous).unwrap_or(Term(0)),
            commit_index: self.commit_index,
            round,
            records,
        };
        let message = Message {
            term: self.term,
            body,
        };
        Output::Send { to, message }
    }

    /// As many entries from `first` on as a message takes. Neighbours in one block become one piece.
    fn batch_from(&self, first: Index) -> (Vec<Bytes>, Index, usize) {
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut piece: Option<(&Bytes, u32, u32)> = None;
        let mut last_index = first;
        let mut bytes = 0;
        let entries = self.log.range(first, self.log.last_index());
        for entry in entries.take(APPEND_RECORDS_MAX) {
            if bytes >= APPEND_BYTES_TARGET {
                break;
            }
            bytes += entry.record().len();
            last_index = entry.index;
            piece = match piece {
                Some((block, start, end))
                    if end == entry.start && block.as_ptr() == entry.block.as_ptr() =>
                {
                    Some((block, start, entry.end))
                }
                other => {
                    pieces.extend(other.map(slice));
                    Some((&entry.block, entry.start, entry.end))
                }
            };
        }
        pieces.extend(piece.map(slice));
        (pieces, last_index, bytes)
    }

    /// Those whose removal is committed are told once, and then no more.
    fn dismiss_departed(&mut self, outputs: &mut Vec<Output>) {
        let Some(mut leading) = self.leading.take() else {
            return;
        };
        let round = leading.rounds.current();
        for progress in leading.progress.iter().filter(|p| p.departing) {
            let told_index = progress.match_index.max(self.members.index());
            if progress.next_index > told_index && self.log.term_at(told_index).is_some() {
                outputs.push(self.append(progress.peer, told_index, round, Vec::new()));
            }
        }
        leading.progress.retain(|progress| !progress.departing);
        self.leading = Some(leading);
    }

    /// Tells everyone the commit index at once.
    pub(crate) fn broadcast_commit(&mut self, outputs: &mut Vec<Output>) {
        if let Some(leading) = &mut self.leading {
            leading.heartbeat_due = true;
        }
        self.send_appends(outputs);
    }

    /// Starts sending a snapshot to one who needs what the log no longer holds.
    fn begin_snapshot(&mut self, progress: &mut Progress, outputs: &mut Vec<Output>) {
        let Some(snapshot) = &self.snapshot else {
            self.ask_for_snapshot(outputs);
            return;
        };
        self.counters.snapshots_sent += 1;
        progress.probe_from(progress.next_index);
        progress.catches_up_by = Some(0);
        let last = (snapshot.last_index, snapshot.last_term);
        let transfer = SnapshotTransfer::new(last, self.now);
        let bytes_max = self.config.snapshot_chunk_bytes_max;
        outputs.push(crate::snapshot_sender::read_chunk(
            progress.peer.id,
            &transfer,
            bytes_max,
        ));
        progress.state = Sending::Snapshot(transfer);
    }
}

/// Whether a member's answers count for commitment.
fn counts(progress: &Progress) -> bool {
    progress.voter || (mutant("learners-count") && !progress.departing)
}

fn slice((block, start, end): (&Bytes, u32, u32)) -> Bytes {
    block.slice(start as usize..end as usize)
}
