//! Linearizable reads: by the leader's lease, or by a round of heartbeats (Raft section 8, thesis
//! section 6.4). Both only once an entry of the leader's own term is committed. Where reads may not rest on
//! clocks (`lease_reads` is false) there is no lease to read by, and nothing below matters to them.
//!
//! # Why the lease is safe
//! Every Append names a round, and the leader remembers when each round began, which is before any
//! message of it was sent. A voter that has heard a leader gives no vote for the time T that it
//! promised when it connected, on its own clock, counted from the receipt, which is later. A clock that
//! is fast by the drift d shows T after T/(1+d), which is more than T(1-d): a voter that answered a
//! round begun at `s` votes for no one else before `s + T(1-d)`, and the lease ends when a majority
//! would no longer be bound. The leader's own vote is among the majority: it gives none while it leads.
//! A voter told by this leader to take over asks for votes at once and is given them: hence no lease
//! any more in a term in which that was said.
//!
//! T is the voter's, not the leader's: they may be configured differently, at least while an operator
//! changes one replica after the other. The leader counts on no more than its own `lease` and the larger
//! of both drifts; on a voter whose promise it does not know it does not count.
//!
//! # Restarts
//! A restarted voter behaves as if it had just heard a leader, so a restart shortens no promise that is
//! not longer than the new one. A longer one the node waits for before it makes the replica, also if the
//! process in between was cut short: see [`Promise`]. So it does not matter which of a voter's processes
//! an answer came from, and which one's promise it is counted with: if the later one's is longer, that
//! one keeps it from its start, which is after the answer; if it is shorter, less is counted.
use crate::members::majority_of;
use crate::mutants::mutant;
use crate::{Now, Output, Promise, Refusal, Replica, Ticket};
use quorumwire_wire::limits::VOTERS_MAX;
use std::time::Duration;

/// A read that waits for a round to be answered by a majority.
#[derive(Debug)]
pub(crate) struct WaitingRead {
    pub(crate) ticket: Ticket,
    /// The first round that begins after the read came.
    pub(crate) round: u64,
}

const MILLION: u32 = 1_000_000;

impl Replica {
    pub(crate) fn on_read(&mut self, ticket: Ticket, outputs: &mut Vec<Output>) {
        if let Some(index) = self.lease_read(self.now) {
            outputs.push(Output::Read(ticket, index));
            return;
        }
        let leader = self.leader();
        let Some(leading) = &mut self.leading else {
            outputs.push(Output::Refused(ticket, Refusal::NotLeader { leader }));
            return;
        };
        if leading.reads.len() >= self.config.waiting_requests_max {
            let limit = "waiting_requests_max";
            outputs.push(Output::Refused(ticket, Refusal::Busy { limit }));
            return;
        }
        let mut round = leading.rounds.current() + 1;
        if mutant("read-by-earlier-round") {
            round -= 1;
        }
        leading.reads.push_back(WaitingRead { ticket, round });
    }

    /// Serves the reads whose round a majority has answered, or all while the lease holds.
    pub(crate) fn serve_reads(&mut self, outputs: &mut Vec<Output>) {
        let leased = self.lease_read(self.now).is_some();
        let confirmed = self.confirmed_round();
        if !self.committed_in_own_term() && !mutant("read-before-own-commit") {
            return;
        }
        let index = self.read_index();
        let Some(leading) = &mut self.leading else {
            return;
        };
        while let Some(read) = leading.reads.front() {
            if read.round > confirmed && !leased {
                break;
            }
            outputs.push(Output::Read(read.ticket, index));
            leading.reads.pop_front();
        }
    }

    /// The newest round that a majority of the voters has answered.
    pub(crate) fn confirmed_round(&self) -> u64 {
        let Some(leading) = &self.leading else {
            return 0;
        };
        self.answered_by_majority(leading.rounds.current(), |p| p.acked_round)
    }

    /// For how long, by the own clock, a voter with this promise is surely bound by an answer.
    pub(crate) fn countable(&self, promise: Promise) -> Duration {
        if mutant("lease-outlives-promise") {
            return self.config.election_timeout;
        }
        let own = self.config.promise();
        let mut lasts = own.lasts.min(promise.lasts);
        if mutant("voters-promise-not-asked") {
            lasts = own.lasts;
        }
        let mut drift_ppm = own.clock_drift_ppm.max(promise.clock_drift_ppm);
        if mutant("voters-drift-not-asked") {
            drift_ppm = own.clock_drift_ppm;
        }
        if mutant("drift-not-allowed-for") {
            drift_ppm = 0;
        }
        lasts * MILLION.saturating_sub(drift_ppm) / MILLION
    }

    /// Computes anew until when the lease holds.
    pub(crate) fn renew_lease(&mut self) {
        let until = self.answered_by_majority(Some(Now(Duration::MAX)), |p| p.promised_until);
        if let Some(leading) = &mut self.leading {
            leading.lease_until = until;
        }
    }

    /// The highest value that a majority of the voters has reached; the leader itself has `own`.
    fn answered_by_majority<V: Copy + Default + Ord>(
        &self,
        own: V,
        reached: impl Fn(&crate::progress::Progress) -> V,
    ) -> V {
        let Some(leading) = &self.leading else {
            return V::default();
        };
        let mut values = [V::default(); VOTERS_MAX];
        let mut voter_count = 0;
        let own = self.members.is_voter(self.config.me).then_some(own);
        let others = leading.progress.iter().filter(|p| p.voter).map(reached);
        for value in others.chain(own).take(VOTERS_MAX) {
            values[voter_count] = value;
            voter_count += 1;
        }
        let values = &mut values[..voter_count];
        values.sort_unstable_by(|a, b| b.cmp(a));
        let needed_count = majority_of(voter_count);
        values.get(needed_count - 1).copied().unwrap_or_default()
    }
}
