//! Elections: pre-vote, vote, and the rules by which both are given (Raft section 5.2 and 5.4.1,
//! thesis sections 6.4.1 and 9.6). What a leader does is in `leader.rs`.
//!
//! Votes are asked of and given to lives of replicas. A voter gives its vote to any peer of the
//! cluster whose log is up to date, member or not: a candidate may know a newer membership than the
//! voter, and a voter that missed the first entry knows none at all. A candidate counts only lives that are
//! voters in its own newest membership.
use crate::engagement::Initiator;
use crate::members::{majority_of, peer_of};
use crate::mutants::mutant;
use crate::{Body, LeaveReason, Now, Output, Peer, Replica, Role};
use quorumwire_interfaces::{Index, Term};

/// Answers gathered by a (pre-)candidate.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    granted: Vec<Peer>,
    refused: Vec<Peer>,
    /// The leader itself asked for this election.
    transfer: bool,
    /// The term is to be a fast one.
    pub(crate) engaging: Option<Engaging>,
}

/// What becomes of an election that is to begin a fast term.
#[derive(Debug)]
pub(crate) struct Engaging {
    /// Until then answers are waited for.
    pub(crate) until: Now,
    /// Whose logs were equal.
    pub(crate) asked: Vec<Peer>,
    /// Who has engaged.
    pub(crate) engaged: Vec<Peer>,
}

/// Why one stands for election.
#[derive(Debug)]
pub(crate) enum Campaign {
    /// No leader was heard.
    Silence,
    /// The leader transfers leadership.
    Transfer,
    /// The leader itself wants a fast term.
    Engage {
        /// How long to wait for planes to engage.
        until: Now,
        /// Whose are expected to.
        asked: Vec<Peer>,
    },
}

impl Votes {
    pub(crate) fn give_up_engaging(&mut self) {
        self.engaging = None;
    }

    pub(crate) fn engaging_until(&self) -> Option<Now> {
        self.engaging.as_ref().map(|engaging| engaging.until)
    }

    pub(crate) fn has_answered(&self, peer: Peer) -> bool {
        self.granted.contains(&peer)
    }

    /// Who has engaged, and who was expected to.
    pub(crate) fn engaged_and_asked(&mut self) -> (Vec<Peer>, Vec<Peer>) {
        let engaging = self.engaging.take();
        engaging.map_or_else(Default::default, |e| (e.engaged, e.asked))
    }
}

impl Replica {
    /// Whether it may stand for election at all: a voter that is not in the middle of replacing its
    /// log by a snapshot.
    pub(crate) fn may_campaign(&self) -> bool {
        self.is_still_voter() && !self.receiving.is_installing()
    }

    /// Whether it is a voter. One whose removal is in its log but not committed yet must still stand for
    /// election: it may be the only one that can be elected (Raft thesis section 4.2.2). It counts the
    /// votes of the newest membership, its own not among them.
    pub(crate) fn is_still_voter(&self) -> bool {
        let me = self.config.me;
        let (_, committed) = self.members.at(self.commit_index);
        let removable = self.members.index() > self.commit_index
            && committed.is_voter(me.id, me.incarnation)
            && !mutant("removed-voter-never-stands");
        self.members.is_voter(me) || removable
    }

    pub(crate) fn is_sole_voter(&self) -> bool {
        self.members.is_voter(self.config.me) && self.members.current().voters().count() == 1
    }

    /// The election timeout has passed: asks whether an election could be won (pre-vote). Changes no
    /// term, so that a replica that cannot win disturbs nobody.
    pub(crate) fn ask_before_election(&mut self, outputs: &mut Vec<Output>) {
        self.counters.elections_asked_about += 1;
        self.put_off_election();
        self.hasten_election();
        if self.is_sole_voter() || mutant("no-pre-vote") {
            self.campaign(Campaign::Silence, outputs);
            return;
        }
        self.step_down(outputs);
        self.role = Role::PreCandidate;
        self.votes = Votes::default();
        let request = self.vote_request(true);
        let term = Term(self.term.0 + 1);
        for voter in self.other_voters() {
            let message = crate::Message {
                term,
                body: request.clone(),
            };
            outputs.push(Output::Send { to: voter, message });
        }
    }

    /// Stands for election in a new term. The requests leave once term and own vote are durable.
    pub(crate) fn campaign(&mut self, why: Campaign, outputs: &mut Vec<Output>) {
        assert!(self.may_campaign(), "only a voter stands for election");
        self.enter_term(Term(self.term.0 + 1), outputs);
        self.put_off_election();
        self.role = Role::Candidate;
        self.vote = Some(self.config.me);
        let (transfer, engaging) = match why {
            Campaign::Silence => {
                self.counters.elections_upon_silence += 1;
                (false, None)
            }
            Campaign::Transfer => (true, None),
            Campaign::Engage { until, asked } => {
                let engaged = Vec::new();
                (
                    false,
                    Some(Engaging {
                        until,
                        asked,
                        engaged,
                    }),
                )
            }
        };
        self.votes = Votes {
            granted: Vec::new(),
            refused: Vec::new(),
            transfer,
            engaging,
        };
        self.counters.elections_started += 1;
        let request = self.vote_request(false);
        for voter in self.other_voters() {
            self.promise(voter, request.clone());
        }
    }

    fn vote_request(&self, pre_vote: bool) -> Body {
        Body::VoteRequest {
            last_index: self.log.last_index(),
            last_term: self.log.last_term(),
            pre_vote,
            transfer: self.votes.transfer && !pre_vote,
            engage: self.votes.engaging.is_some() && !pre_vote,
        }
    }

    fn other_voters(&self) -> Vec<Peer> {
        let voters = self.members.current().voters().map(peer_of);
        voters.filter(|peer| peer.id != self.config.me.id).collect()
    }

    /// Whether a log that ends so misses nothing that this one has (Raft section 5.4.1).
    fn is_up_to_date(&self, candidate_log: (Term, Index)) -> bool {
        candidate_log >= (self.log.last_term(), self.log.last_index()) || mutant("vote-for-any-log")
    }

    pub(crate) fn on_pre_vote_request(
        &mut self,
        from: Peer,
        term: Term,
        candidate_log: (Term, Index),
        outputs: &mut Vec<Output>,
    ) {
        let loyal = self.is_loyal();
        if loyal {
            self.counters.vote_refused_recent_leader += 1;
        }
        let granted = term > self.term && !loyal && self.is_up_to_date(candidate_log);
        let message = crate::Message {
            // A grant speaks of the term asked about, a refusal of the refuser's own.
            term: if granted { term } else { self.term },
            body: Body::VoteReply {
                granted,
                pre_vote: true,
                engaged: false,
            },
        };
        outputs.push(Output::Send { to: from, message });
    }

    /// Whether a candidate is to be heeded: not while another leader counts on this voter, unless that
    /// leader asks for the election, for somebody else or for its own next term.
    pub(crate) fn heeds_candidate(&self, from: Peer, transfer: bool, engage: bool) -> bool {
        let own_leader = engage && self.leader == Some(from);
        transfer || own_leader || !self.is_loyal()
    }

    /// The same in the term that it is in. Another message may have brought that term here before the
    /// candidate's request did, and ends no promise. Whoever has the vote got it when nothing was promised.
    fn may_vote_in_own_term(&mut self, from: Peer, transfer: bool, engage: bool) -> bool {
        let own_leader = engage && self.leader_heard == Some(from);
        let has_vote = self.vote == Some(from);
        if transfer || own_leader || has_vote || !self.has_promised() {
            return true;
        }
        self.counters.vote_refused_recent_leader += 1;
        mutant("promise-ends-with-its-term")
    }

    pub(crate) fn on_vote_request(
        &mut self,
        from: Peer,
        term: Term,
        candidate_log: (Term, Index),
        (transfer, engage): (bool, bool),
        outputs: &mut Vec<Output>,
    ) {
        let heeded = if term > self.term {
            if !self.heeds_candidate(from, transfer, engage) {
                self.counters.vote_refused_recent_leader += 1;
                return;
            }
            self.enter_term(term, outputs);
            true
        } else {
            self.may_vote_in_own_term(from, transfer, engage)
        };
        if self.plane.engagement.is_some() || self.plane.wish.is_some() {
            // Its vote in this term is given, or its leader known: this is a repetition.
            self.counters.ignored_unexpected += 1;
            return;
        }
        let free = self.vote.is_none() || self.vote == Some(from) || mutant("vote-twice");
        let leaderless = self.leader.is_none() && self.role != Role::Leader;
        let granted =
            heeded && term == self.term && free && leaderless && self.is_up_to_date(candidate_log);
        let reply = Body::VoteReply {
            granted,
            pre_vote: false,
            engaged: false,
        };
        if granted {
            self.vote = Some(from);
            self.put_off_election();
            if engage && self.may_engage_for(from, candidate_log) {
                // The vote is told along with whether the plane is engaged.
                self.plane.wish = Some(Initiator::Candidate(from));
            } else {
                self.promise(from, reply);
            }
        } else {
            self.send(from, reply, outputs);
        }
    }

    pub(crate) fn on_vote_reply(
        &mut self,
        from: Peer,
        term: Term,
        granted: bool,
        pre_vote: bool,
        engaged: bool,
        outputs: &mut Vec<Output>,
    ) {
        if !self.members.is_voter(from) && !mutant("votes-of-strangers") {
            self.ignore_stranger(from);
            return;
        }
        if term > self.term && !(granted && pre_vote) {
            self.enter_term(term, outputs);
            self.put_off_election();
            return;
        }
        if self.role == Role::Leader && term == self.term && granted && !pre_vote {
            self.on_member_engaged(from, engaged);
            return;
        }
        let asked = match self.role {
            Role::PreCandidate => pre_vote && term.0 == self.term.0 + 1,
            Role::Candidate => !pre_vote && term == self.term,
            Role::Joining | Role::Learner | Role::Follower | Role::Leader => false,
        };
        if !asked || !granted {
            if term < self.term {
                self.counters.ignored_old_term += 1;
            } else if asked {
                self.vote_refused_by(from);
            }
            return;
        }
        if !self.votes.granted.contains(&from) {
            self.votes.granted.push(from);
        }
        if let Some(engaging) = &mut self.votes.engaging
            && engaged
            && !engaging.engaged.contains(&from)
        {
            engaging.engaged.push(from);
        }
        self.count_votes(outputs);
    }

    /// A candidate that cannot win any more need not wait for those who will not answer.
    fn vote_refused_by(&mut self, from: Peer) {
        if self.role != Role::Candidate {
            return;
        }
        if !self.votes.refused.contains(&from) {
            self.votes.refused.push(from);
        }
        let voters = self.members.current().voters().map(peer_of);
        let hopeless = |peer: &Peer| self.votes.refused.contains(peer) || self.is_cut_off(*peer);
        let open_count = voters.filter(|peer| !hopeless(peer)).count();
        if open_count < majority_of(self.members.current().voters().count()) {
            self.hasten_election();
        }
    }

    /// Goes on to the election, or to leading it, if a majority agrees. The own vote counts once it
    /// is durable.
    pub(crate) fn count_votes(&mut self, outputs: &mut Vec<Output>) {
        let own = match self.role {
            Role::PreCandidate => true,
            Role::Candidate => self.promises_are_durable(),
            Role::Joining | Role::Learner | Role::Follower | Role::Leader => return,
        };
        let me = self.config.me;
        let membership = self.members.current();
        let counted = |peer: Peer| {
            if peer == me {
                own
            } else {
                self.votes.granted.contains(&peer)
            }
        };
        let mut vote_count = membership.voters().filter(|v| counted(peer_of(v))).count();
        if mutant("votes-of-strangers") {
            vote_count = self.votes.granted.len() + usize::from(own);
        }
        let mut needed_count = majority_of(membership.voters().count());
        if mutant("election-by-half") {
            needed_count -= 1;
        }
        if vote_count < needed_count || !self.may_campaign() {
            return;
        }
        if self.role == Role::PreCandidate {
            self.stand(outputs);
        } else if !self.engage_after_majority(outputs) {
            self.counters.elections_won += 1;
            self.begin_to_lead();
        }
    }

    /// Enough would vote for it: stands for election, but not before its plane has stopped, because only
    /// then it knows where its log ends.
    fn stand(&mut self, outputs: &mut Vec<Output>) {
        if self.plane.engagement.is_some() && !mutant("stand-before-fence") {
            self.leave(LeaveReason::LeaderSilent, outputs);
        } else {
            self.campaign(Campaign::Silence, outputs);
        }
    }

    pub(crate) fn is_told_to_take_over(&self, from: Peer, term: Term) -> bool {
        let mine = term == self.term && self.leader == Some(from) && self.role == Role::Follower;
        mine && self.may_campaign()
    }

    /// The leader transfers leadership: stands for election at once, without asking before.
    pub(crate) fn on_transfer_now(&mut self, from: Peer, term: Term, outputs: &mut Vec<Output>) {
        if !self.is_told_to_take_over(from, term) {
            self.counters.ignored_unexpected += 1;
            return;
        }
        self.campaign(Campaign::Transfer, outputs);
    }

    /// Someone who is no member, or a member in another life, said something that cannot count.
    pub(crate) fn ignore_stranger(&mut self, from: Peer) {
        if self.members.current().member(from.id).is_some() {
            self.counters.ignored_old_incarnation += 1;
        } else {
            self.counters.ignored_stranger += 1;
        }
    }
}
