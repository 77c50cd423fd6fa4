//! How long a replica without word from its leader waits before it asks for an election, and before it
//! lets others have one. What an election is, is in `election.rs`.
//!
//! # Two times
//! Within `lease` since it heard a leader, a voter gives nobody else a vote: that is a promise, on which
//! the leader's lease rests, and nothing shortens it. Up to the election timeout, which is longer, it
//! waits out of patience only: a leader that is silent for a moment is probably still there, and an
//! election would cost more. That patience ends early if the connection to the leader breaks, because
//! its process is probably gone then. One replica's broken connection alone topples nobody: the others,
//! whose connections stand, refuse it their pre-votes.
use crate::members::peer_of;
use crate::mutants::mutant;
use crate::{Now, Peer, Replica, Role};
use std::time::Duration;

impl Replica {
    /// The time without a leader begins anew.
    pub(crate) fn put_off_election(&mut self) {
        let timeout = self.random_election_timeout();
        self.election_deadline = Now(self.now.0 + timeout);
    }

    /// When it asks for an election: never before its own promise is over, however early its deadline is. A
    /// vote for itself is a vote, and where nobody else votes it is all that an election takes.
    pub(crate) fn stands_at(&self) -> Now {
        match self.leader_heard_at {
            Some(heard) if !mutant("stand-within-own-promise") => {
                let promise_ends = Now(heard.0 + self.config.lease);
                self.election_deadline.max(promise_ends)
            }
            Some(_) | None => self.election_deadline,
        }
    }

    /// The leader of this term was heard: no election, and no vote for anyone else, for a while.
    pub(crate) fn hear_leader(&mut self, leader: Peer) {
        self.leader_heard_at = Some(self.now);
        self.leader_heard = Some(leader);
        self.leader_lost = self.is_cut_off(leader);
        self.put_off_election();
        self.hasten_election();
    }

    /// Whether a leader may still count on this voter, who therefore gives no vote to anyone
    /// (thesis section 6.4.1: leases and undisturbed leaders rest on this).
    pub(crate) fn is_loyal(&self) -> bool {
        let lost = self.leader_lost;
        let promised = self.has_promised();
        // A restart renews the promise that may have been given before; it hears no leader by itself.
        let patient = self.has_heard_leader_within(self.config.election_timeout)
            && self.leader_heard.is_some()
            && !lost
            && !mutant("only-promise-protects-leader");
        (self.role == Role::Leader || promised || patient) && !mutant("vote-despite-leader")
    }

    /// Whether it has promised to give nobody else a vote, and that has not passed.
    pub(crate) fn has_promised(&self) -> bool {
        self.has_heard_leader_within(self.config.lease)
            && !(self.leader_lost && mutant("lost-connection-breaks-promise"))
    }

    pub(crate) fn has_heard_leader_within(&self, time: Duration) -> bool {
        self.leader_heard_at
            .is_some_and(|heard| self.now.0 < heard.0 + time)
    }

    /// If the leader is probably gone, an election is asked for as soon as the voters' promises to it
    /// have passed. They ask at different times, so that the first one's election is over before the
    /// next one's would begin; and the longer it takes, the more rarely, until the election timeout is
    /// what comes first: otherwise those who cannot win would ask without end.
    pub(crate) fn hasten_election(&mut self) {
        let Some(leader) = self.leader_heard.filter(|_| self.leader_lost) else {
            return;
        };
        let lease = self.config.lease;
        let me = self.config.me;
        let before_me = self.members.current().voters().map(peer_of);
        let before_me = before_me.filter(|peer| *peer != leader && peer.id < me.id);
        let rank = u32::try_from(before_me.count()).unwrap_or(u32::MAX);
        let turn = (lease / 2).saturating_mul(rank) + self.random_below(lease / 4);
        // Others may have heard the leader a little later than this one did.
        let margin = lease / 8;
        let heard_at = self.leader_heard_at.unwrap_or(self.now);
        // A voter that is reached only now may have just started, and keeps the promise it may have given.
        let voter_found_at = self.voter_found_at.unwrap_or(heard_at);
        let promise_ends = Now(heard_at.max(voter_found_at).0 + lease);
        let in_vain = self.now.0.saturating_sub(promise_ends.0) / 2;
        let asks_at = promise_ends.max(self.now).0 + margin + turn + in_vain;
        self.election_deadline = self.election_deadline.min(Now(asks_at));
    }

    /// A connection broke, or turned out to lead to another life. If it led to the leader last heard,
    /// that is lost until it is heard again; that the connection stands again says nothing, because a
    /// process that was started anew leads nobody.
    pub(crate) fn lose_sight_of(&mut self, peer: Peer) {
        if self.leader_heard == Some(peer) {
            self.leader_lost = true;
            self.hasten_election();
        }
    }

    /// A connection to a voter stands. Without a leader that is news: an election that could not be won for
    /// want of voters may be won now, so what was asked in vain until then makes the next question no later.
    pub(crate) fn find_voter(&mut self, peer: Peer) {
        if self.leader_lost && self.members.is_voter(peer) && !mutant("found-voter-is-no-news") {
            self.voter_found_at = Some(self.now);
            self.hasten_election();
        }
    }

    /// Time that passed while this process did not run counts for nobody's silence. A voter's promise
    /// only gets longer by it, and a leader's lease, which counts from when it asked, does not change.
    pub(crate) fn stood_still(&mut self, time: Duration) {
        if mutant("own-pause-is-silence") {
            return;
        }
        let now = self.now;
        let later = |at: Now| Now(at.0.saturating_add(time)).min(now);
        self.leader_heard_at = self.leader_heard_at.map(later);
        self.election_deadline = Now(self.election_deadline.0.saturating_add(time));
        if let Some(leading) = &mut self.leading {
            for progress in &mut leading.progress {
                progress.heard_at = later(progress.heard_at);
                progress.plane_heard_at = later(progress.plane_heard_at);
            }
        }
        if let Some(engagement) = &mut self.plane.engagement {
            engagement.too_few_since = engagement.too_few_since.map(later);
            let standing = engagement.standing_since;
            engagement.standing_since = standing.map(|(index, at)| (index, later(at)));
        }
    }

    fn next_random(&mut self) -> u64 {
        // SplitMix64: one addition and a mixing of it, good enough to spread timeouts.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A time in `[election_timeout, 2 * election_timeout)`, by chance.
    fn random_election_timeout(&mut self) -> Duration {
        let base = self.config.election_timeout;
        base + self.random_below(base)
    }

    /// A time in `[0, span)`, by chance, in whole microseconds.
    fn random_below(&mut self, span: Duration) -> Duration {
        let span_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(self.next_random() % span_us)
    }
}
