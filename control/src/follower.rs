//! Taking in what a leader sends (Raft section 5.3), and telling it how far the log is equal and
//! durable.
use crate::mutants::mutant;
use crate::{Body, Entry, Output, Peer, Replica, Role};
use bytes::Bytes;
use quorumwire_interfaces::{Index, Term};
use quorumwire_wire::limits::APPEND_RECORDS_MAX;
use quorumwire_wire::{Malformed, Membership, Record, RecordKind};

/// What a follower knows of its log in relation to the leader of its term. Begins anew with every
/// term.
#[derive(Debug, Default)]
pub(crate) struct Following {
    /// The log is equal to the leader's up to here.
    pub(crate) matched: Index,
    /// The newest round heard.
    pub(crate) round: u64,
    /// An acknowledgement is to be sent at the end of this step.
    pub(crate) owed: bool,
    /// The index last acknowledged.
    acknowledged: Index,
}

/// The numbers in an Append.
pub(crate) struct Append {
    pub(crate) previous_index: Index,
    pub(crate) previous_term: Term,
    pub(crate) commit_index: Index,
    pub(crate) round: u64,
}

impl Replica {
    pub(crate) fn on_append(
        &mut self,
        from: Peer,
        term: Term,
        append: &Append,
        records: &[Bytes],
        outputs: &mut Vec<Output>,
    ) {
        if term < self.term && !mutant("append-of-old-term") {
            self.refuse_old_leader(from, append.round, outputs);
            return;
        }
        let Ok(entries) = self.check_records(term, append, records) else {
            self.counters.ignored_malformed += 1;
            return;
        };
        if self.refuses_lineage_of(from, &entries, outputs) {
            return;
        }
        if !self.accept_leader(from, term, outputs) {
            return;
        }
        self.following.round = self.following.round.max(append.round);
        if self.diverged {
            // Nothing that it acknowledged would be what its leader means.
            self.counters.ignored_diverged += 1;
            return;
        }
        if self.receiving.is_installing() {
            // The log is about to be replaced; until then this is a sign of life and no more.
            self.following.owed = true;
            return;
        }
        self.take_entries(from, append, entries, outputs);
    }

    /// Follows the sender of a leader's message, if it can be the leader: tells whether it is.
    pub(crate) fn accept_leader(
        &mut self,
        from: Peer,
        term: Term,
        outputs: &mut Vec<Output>,
    ) -> bool {
        if term > self.term {
            self.enter_term(term, outputs);
        }
        if self.role == Role::Leader || self.leader.is_some_and(|leader| leader != from) {
            self.counters.ignored_unexpected += 1;
            return false;
        }
        if self.leader.is_none() {
            self.follow(from, outputs);
        }
        self.plane.wish = None;
        self.hear_leader(from);
        true
    }

    /// Has learned who leads its term.
    pub(crate) fn follow(&mut self, leader: Peer, outputs: &mut Vec<Output>) {
        self.step_down(outputs);
        self.leader = Some(leader);
        // Whoever leads has every committed entry.
        self.following.matched = self.commit_index;
        self.forget_transfer_of_snapshot();
        if let Some(pending_transfer) = self.pending_transfer.take() {
            outputs.push(Output::Done(pending_transfer.ticket));
        }
    }

    /// Tells the leader of an older term that its time is over. That answers no round: the same replica may
    /// lead the newer term, too, and has begun other rounds of these numbers there.
    pub(crate) fn refuse_old_leader(&mut self, from: Peer, round: u64, outputs: &mut Vec<Output>) {
        self.counters.ignored_old_term += 1;
        let round = if mutant("refusal-answers-a-round") {
            round
        } else {
            0
        };
        let reply = Body::AppendReply {
            round,
            rejected: true,
            index: Index(0),
            hint_index: Index(0),
            hint_term: Term(0),
        };
        self.send(from, reply, outputs);
    }

    /// Makes entries of the records of a message, every one checked, before any state is touched.
    fn check_records(
        &self,
        term: Term,
        append: &Append,
        records: &[Bytes],
    ) -> Result<Vec<Entry>, Malformed> {
        if append.previous_term > term || append.previous_index.0 > u64::MAX / 2 {
            return Err(malformed(&"previous entry", append.previous_index));
        }
        let mut entries: Vec<Entry> = Vec::new();
        let mut last = (append.previous_index, append.previous_term);
        for block in records {
            let mut start = 0;
            while start < block.len() {
                let record = Record::decode(&block[start..])
                    .map_err(|error| malformed(&error, last.0.next()))?;
                let fits = record.kind.is_entry()
                    && record.group == self.config.group
                    && record.index == last.0.next()
                    && record.term >= last.1
                    && record.term <= term
                    && entries.len() < APPEND_RECORDS_MAX;
                if !fits {
                    return Err(malformed(&"record does not fit", record.index));
                }
                if record.kind == RecordKind::Membership {
                    Membership::decode(record.payload)?;
                }
                last = (record.index, record.term);
                entries.push(Entry::of_record(block, start, &record));
                start += record.record_bytes;
            }
        }
        Ok(entries)
    }

    fn take_entries(
        &mut self,
        from: Peer,
        append: &Append,
        entries: Vec<Entry>,
        outputs: &mut Vec<Output>,
    ) {
        if self.contradicts_committed(append.previous_index, append.previous_term) {
            return self.note_divergence();
        }
        let agrees = self.agrees_at(append.previous_index, append.previous_term)
            || mutant("append-without-match");
        if !agrees || append.previous_index > self.log.last_index() {
            self.reject_append(from, append, outputs);
            return;
        }
        let last_verified = entries.last().map_or(append.previous_index, |e| e.index);
        let mut given = entries.iter().map(|entry| (entry.index, entry.term));
        if given.any(|(index, term)| self.contradicts_committed(index, term)) {
            return self.note_divergence();
        }
        let Some(news) = self.find_news(entries) else {
            self.counters.ignored_unexpected += 1;
            return;
        };
        let brings_news = !news.is_empty();
        if let Some(first) = news.first() {
            if first.index <= self.log.last_index() {
                self.truncate_from(first.index, outputs);
            }
            for entry in &news {
                self.append_entry(entry.clone(), outputs);
            }
            let hard_state = self.hard_state();
            self.persistence.give(hard_state, news, outputs);
        }
        self.following.matched = self.following.matched.max(last_verified);
        let mut committed = append.commit_index.min(last_verified);
        if mutant("commit-beyond-verified") {
            committed = append.commit_index.min(self.log.last_index());
        }
        self.commit_upto(committed, outputs);
        if !brings_news {
            self.following.owed = true;
        }
    }

    /// Whether this log has that entry. Committed entries are the same in every leader's log.
    fn agrees_at(&self, index: Index, term: Term) -> bool {
        index <= self.commit_index || self.log.term_at(index) == Some(term)
    }

    /// Whether another entry is committed here in the place of that one. That cannot be where every disk
    /// keeps what it was given: this one, or the leader's, was put back to an old copy of itself, and one of
    /// both went on alone.
    pub(crate) fn contradicts_committed(&self, index: Index, term: Term) -> bool {
        let is_other = |known| known != term && !mutant("divergence-not-noticed");
        index <= self.commit_index && self.log.term_at(index).is_some_and(is_other)
    }

    /// What is committed here is not what its leader has: from now on it acknowledges nothing, so nobody
    /// counts on it.
    pub(crate) fn note_divergence(&mut self) {
        self.diverged = true;
        self.counters.ignored_diverged += 1;
    }

    /// The entries not in the log yet, the first of which may contradict what stands there. `None`:
    /// they contradict what is committed, or terms would go back; no leader does either.
    fn find_news(&self, mut entries: Vec<Entry>) -> Option<Vec<Entry>> {
        let known = |entry: &Entry| {
            entry.index <= self.log.base_index()
                || (self.log.term_at(entry.index) == Some(entry.term)
                    && !(mutant("always-truncate") && entry.index > self.commit_index))
        };
        let first_new = entries.iter().position(|entry| !known(entry));
        let news = entries.split_off(first_new.unwrap_or(entries.len()));
        let sound = news.first().is_none_or(|first| {
            let before = self.log.term_at(first.index.previous());
            first.index > self.commit_index && before.is_some_and(|term| term <= first.term)
        });
        sound.then_some(news)
    }

    fn reject_append(&mut self, from: Peer, append: &Append, outputs: &mut Vec<Output>) {
        self.counters.append_rejected += 1;
        let (hint_index, hint_term) = self
            .log
            .last_with_term_at_most(append.previous_index, append.previous_term);
        let reply = Body::AppendReply {
            round: append.round,
            rejected: true,
            index: append.previous_index,
            hint_index,
            hint_term,
        };
        self.send(from, reply, outputs);
    }

    /// The last index that is both equal to the leader's and durable: what may be acknowledged.
    pub(crate) fn durable_match(&self) -> Index {
        if mutant("ack-before-persist") {
            return self.following.matched;
        }
        if mutant("ack-more-than-matched") {
            return self.persistence.persisted_index;
        }
        self.following.matched.min(self.persistence.persisted_index)
    }

    /// Entries have arrived on the disk: the leader wants to know, by the plane if that moves the log.
    pub(crate) fn entries_persisted(&mut self, outputs: &mut Vec<Output>) {
        if self.plane.engagement.is_some() {
            self.tell_plane_persisted(outputs);
            return;
        }
        if self.leader.is_some() && self.durable_match() > self.following.acknowledged {
            self.following.owed = true;
        }
    }

    /// Sends the acknowledgement that is due. Called only while term and vote are durable: after a
    /// restart in an older term the entries might be given up for those of an older leader.
    pub(crate) fn acknowledge_if_owed(&mut self, outputs: &mut Vec<Output>) {
        let is_due = self.following.owed && !self.diverged;
        let Some(leader) = self.leader.filter(|_| is_due) else {
            return;
        };
        self.following.owed = false;
        let index = self.durable_match();
        self.following.acknowledged = index;
        let reply = Body::AppendReply {
            round: self.following.round,
            rejected: false,
            index,
            hint_index: Index(0),
            hint_term: Term(0),
        };
        self.send(leader, reply, outputs);
    }
}

fn malformed(problem: &impl ToString, index: Index) -> Malformed {
    Malformed {
        what: "Append",
        problem: format!("{} (entry {index})", problem.to_string()),
    }
}
