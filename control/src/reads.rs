//! Linearizable reads: by the leader's lease, or by a round of heartbeats (Raft section 8, thesis
//! section 6.4). Both only once an entry of the leader's own term is committed.
//!
//! # Why the lease is safe
//! Every Append names a round, and the leader remembers when each round began, which is before any
//! message of it was sent. A voter that has heard a leader gives no vote for the time `lease` T on
//! its own clock, counted from the receipt, which is later. So if a majority has answered rounds that
//! began at `s` or later, no one else is elected before each of them has seen T pass since `s`. A
//! clock that is fast by the drift d shows T after T/(1+d), which is more than T(1-d): the lease ends
//! at `s + T(1-d)`. The leader's own vote is among the majority: it gives none while it leads. A
//! restarted voter behaves as if it had just heard a leader, so a restart shortens nothing. A voter
//! told by this leader to take over asks for votes at once and is given them: hence no lease any more
//! in a term in which that was said.
use crate::members::majority_of;
use crate::mutants::mutant;
use crate::{Now, Output, Refusal, Replica, Ticket};
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

    /// Computes anew until when the lease holds.
    pub(crate) fn renew_lease(&mut self) {
        let begun_at = self.answered_by_majority(Some(Now(Duration::MAX)), |p| p.acked_sent_at);
        let keeps_ppm = MILLION.saturating_sub(self.config.clock_drift_ppm);
        let promised = if mutant("lease-outlives-promise") {
            self.config.election_timeout
        } else {
            self.config.lease
        };
        let length = promised * keeps_ppm / MILLION;
        let until = begun_at.map(|begun| Now(begun.0.saturating_add(length)));
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
