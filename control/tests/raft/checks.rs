//! What must hold whatever happens, checked after every step of every replica. What planes must keep to
//! besides is judged in `sim/`.
use crate::world::{Disk, Node};
use quorumwire_control::{Body, Engage, Entry, Output, Peer, Replica, Role, Ticket};
use quorumwire_interfaces::{Index, Lineage, Term};
use quorumwire_wire::{Membership, RecordKind};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// What has been seen so far.
#[derive(Default)]
pub struct Checks {
    leaders: BTreeMap<Term, Peer>,
    /// For every index ever committed, its term and content.
    committed: BTreeMap<Index, (Term, u64)>,
    /// The term of whoever reported that first.
    committed_in: BTreeMap<Index, Term>,
    /// For every entry ever written, its content and the term of the one before it.
    written: BTreeMap<(Index, Term), (u64, Option<Term>)>,
    votes: BTreeMap<((u16, u64), Term), Peer>,
    terms: BTreeMap<(u16, u64), Term>,
    commits: BTreeMap<(u16, u64), Index>,
    wiped: BTreeSet<(u16, u64)>,
    /// Of the group, once a replica knows it.
    lineage: Lineage,
    /// The lives that have taken up the group's first entry.
    founded: BTreeSet<(u16, u64)>,
    reads: BTreeMap<Ticket, Index>,
    /// The first thing found wrong.
    pub violation: Option<String>,
}

fn key(peer: Peer) -> (u16, u64) {
    (peer.id.0, peer.incarnation.0)
}

fn content(kind: RecordKind, payload: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    payload.hash(&mut hasher);
    hasher.finish()
}

impl Checks {
    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    /// The highest index any replica has reported as committed.
    pub fn committed_upto(&self) -> Index {
        self.committed
            .keys()
            .next_back()
            .copied()
            .unwrap_or_default()
    }

    pub fn wiped(&mut self, peer: Peer) {
        self.wiped.insert(key(peer));
        let was_alone = self.founded.len() == 1 && self.founded.contains(&key(peer));
        if was_alone {
            // The group's first entry is lost with the only one who had it: the group has not begun.
            self.founded.clear();
            self.committed.clear();
            self.written.clear();
            self.lineage = Lineage::default();
        }
    }

    /// A read was asked for now: it must show everything committed until now.
    pub fn read_asked(&mut self, ticket: Ticket) {
        self.reads.insert(ticket, self.committed_upto());
    }

    /// A replica starts from its disk: it may tell again what it has committed.
    pub fn starts(&mut self, peer: Peer, disk: &Disk) {
        self.terms.insert(key(peer), disk.hard_state.term);
        self.commits.remove(&key(peer));
    }

    pub fn after_step(
        &mut self,
        node: &Node,
        replica: &Replica,
        outputs: &[Output],
        nodes: &BTreeMap<u16, Node>,
    ) {
        let peer = node.peer;
        let term = replica.term();
        let before = self.terms.insert(key(peer), term).unwrap_or_default();
        self.require(term >= before, || {
            format!("{peer:?} went back to term {term}")
        });
        let (lineage, known) = (replica.lineage(), self.lineage);
        self.require(!known.contradicts(lineage), || {
            format!("{peer:?} is of lineage {lineage}, the group of {known}")
        });
        self.lineage = known.or(lineage);
        if replica.role() == Role::Leader {
            self.check_leader(peer, replica);
        }
        for (place, output) in outputs.iter().enumerate() {
            match output {
                Output::Persist { entries, .. } => self.check_written(peer, replica, entries),
                Output::Send { to, message } => {
                    self.check_promise(node, *to, message.term, &message.body);
                }
                Output::Committed(index) => {
                    // What was committed before the members changed, in one step, was counted over
                    // those before.
                    let changed = |o: &Output| matches!(o, Output::MembershipChanged(_));
                    let members = if outputs[place..].iter().any(changed) {
                        replica.membership_at(*index).1
                    } else {
                        replica.membership()
                    };
                    self.check_commit((node, replica), *index, members, nodes);
                }
                Output::Read(ticket, index) => self.check_read(peer, *ticket, *index),
                Output::Engage(engage) => self.check_engage(node, engage),
                Output::Done(_)
                | Output::Refused(..)
                | Output::RoleChanged(_)
                | Output::Truncated(_)
                | Output::OtherLineage { .. }
                | Output::MembershipChanged(_)
                | Output::ReadSnapshot { .. }
                | Output::StoreSnapshotChunk { .. }
                | Output::InstallSnapshot { .. }
                | Output::TakeSnapshot
                | Output::Disengage(_)
                | Output::PlaneHeartbeat { .. }
                | Output::PlanePersisted(_) => {}
            }
        }
    }

    /// A plane begins at the end of a durable log, in a durable term.
    fn check_engage(&mut self, node: &Node, engage: &Engage) {
        let (peer, disk) = (node.peer, &node.disk);
        let durable = disk.hard_state.term == engage.term
            && disk.holds(engage.last_index, engage.last_term)
            && disk.last_index() == engage.last_index;
        self.require(durable, || {
            format!(
                "{peer:?} engages at {} before that is durable",
                engage.last_index
            )
        });
    }

    /// One leader a term, and it has everything committed.
    fn check_leader(&mut self, peer: Peer, replica: &Replica) {
        let term = replica.term();
        let known = self.leaders.insert(term, peer);
        if known == Some(peer) {
            return;
        }
        self.require(known.is_none(), || {
            format!("term {term} has two leaders, {known:?} and {peer:?}")
        });
        for (index, (entry_term, _)) in self.committed.clone() {
            // Who wins an election late may lack what a later term has committed meanwhile.
            let later = self.committed_in.get(&index).is_some_and(|by| *by > term);
            let has = later || has(replica, index, entry_term);
            self.require(has, || {
                format!("{peer:?} leads term {term} without committed entry {index}@{entry_term}")
            });
        }
    }

    /// Log matching: index and term name one entry, and one history before it.
    fn check_written(&mut self, peer: Peer, replica: &Replica, entries: &[Entry]) {
        for entry in entries {
            let previous = replica.term_at(entry.index.previous());
            let found = content(entry.kind, entry.payload());
            let place = (entry.index, entry.term);
            let known = *self.written.entry(place).or_insert((found, previous));
            let same = known.0 == found
                && (known.1 == previous || known.1.is_none() || previous.is_none());
            self.require(same, || format!("{peer:?} writes another entry {place:?}"));
        }
    }

    /// A vote is given once a term; votes and acknowledgements are durable when they leave.
    fn check_promise(&mut self, node: &Node, to: Peer, term: Term, body: &Body) {
        let peer = node.peer;
        let hard = node.disk.hard_state;
        match body {
            Body::VoteReply {
                granted: true,
                pre_vote: false,
                ..
            } => {
                let durable = hard.term == term && hard.vote == Some(to);
                self.require(durable, || format!("{peer:?} votes before it is durable"));
                self.note_vote(peer, term, to);
            }
            Body::VoteRequest {
                pre_vote: false, ..
            } => {
                let durable = hard.term == term && hard.vote == Some(peer);
                self.require(durable, || format!("{peer:?} stands before it is durable"));
                self.note_vote(peer, term, peer);
            }
            Body::AppendReply {
                rejected: false,
                index,
                ..
            } => {
                let durable = node.disk.last_index() >= *index && hard.term >= term;
                self.require(durable, || {
                    format!("{peer:?} acknowledges {index} before it is durable")
                });
            }
            Body::Fresh { .. }
            | Body::Bootstrap { .. }
            | Body::VoteRequest { .. }
            | Body::VoteReply { .. }
            | Body::Append { .. }
            | Body::AppendReply { .. }
            | Body::SnapshotChunk { .. }
            | Body::SnapshotReply { .. }
            | Body::TransferNow
            | Body::EngageOffer { .. }
            | Body::Engaged { .. } => {}
        }
    }

    fn note_vote(&mut self, peer: Peer, term: Term, candidate: Peer) {
        let known = *self.votes.entry((key(peer), term)).or_insert(candidate);
        self.require(known == candidate, || {
            format!("{peer:?} votes for {known:?} and {candidate:?} in term {term}")
        });
    }

    /// State machine safety: one entry per index for ever; held durably by a quorum when the leader
    /// says so; in the log of whoever leads a later term.
    fn check_commit(
        &mut self,
        (node, replica): (&Node, &Replica),
        index: Index,
        membership: &Membership,
        nodes: &BTreeMap<u16, Node>,
    ) {
        let peer = node.peer;
        self.founded.insert(key(peer));
        let previous = self.commits.insert(key(peer), index).unwrap_or_default();
        self.require(index > previous, || {
            format!("{peer:?} commits {index} twice")
        });
        for entry in replica.entries(previous.next(), index) {
            let found = (entry.term, content(entry.kind, entry.payload()));
            let known = *self.committed.entry(entry.index).or_insert(found);
            self.committed_in
                .entry(entry.index)
                .or_insert(replica.term());
            self.require(known == found, || {
                format!("{peer:?} commits another entry {}", entry.index)
            });
        }
        if replica.role() != Role::Leader {
            return;
        }
        let Some(term) = replica.term_at(index) else {
            return;
        };
        let holders = membership.voters().filter(|voter| {
            let holder = nodes.get(&voter.id.0);
            self.wiped.contains(&(voter.id.0, voter.incarnation.0))
                || holder.is_some_and(|node| node.holds(index, term))
        });
        let (held, needed) = (holders.count(), membership.voters().count() / 2 + 1);
        self.require(held >= needed, || {
            format!("{peer:?} commits {index}@{term} held by {held} of {needed} needed")
        });
        for other in nodes.values() {
            if let Some(leader) = &other.replica
                && leader.role() == Role::Leader
                && leader.term() > replica.term()
            {
                self.require(has(leader, index, term), || {
                    format!(
                        "{peer:?} commits {index}, which leader {:?} lacks",
                        other.peer
                    )
                });
            }
        }
    }

    /// No read misses what was committed when it was asked for.
    fn check_read(&mut self, peer: Peer, ticket: Ticket, index: Index) {
        let needed = self.reads.remove(&ticket).unwrap_or_default();
        self.require(index >= needed, || {
            format!("{peer:?} serves {ticket:?} at {index}, {needed} was committed before")
        });
    }
}

fn has(replica: &Replica, index: Index, term: Term) -> bool {
    let first = replica.status().first_index;
    index < first.previous() || replica.term_at(index) == Some(term)
}
