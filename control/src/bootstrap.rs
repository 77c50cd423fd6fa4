//! How a group begins, and how a replica that lost its memory comes back.
//!
//! # The first entry
//! A replica without a membership says [`Body::Fresh`] to everyone it is connected to, addressed to
//! the life it is talking to. Only the initial member with the lowest id may make the first entry,
//! and only while it knows nothing itself and holds a `Fresh`, addressed to its present life, from
//! the present life of every other initial member. The entry names all of them with their lives as
//! voters. When it is durable, it is sent to all as [`Body::Bootstrap`]; a replica takes it only if
//! it knows nothing, is named in exactly its present life, and last said `Fresh` to exactly the life
//! that sends it.
//!
//! Two different first entries cannot both be taken up. Both would come from the same replica, in two
//! lives p and p'. For the later one, p' holds a `Fresh` to p' of every other member named in it; a
//! member that said `Fresh` to p' knew nothing then, and from then on takes nothing from p. So nobody
//! named in the later entry ever takes the earlier one, and a member of the earlier entry that has
//! since taken it knows something, and is not among those who said `Fresh` to p'.
//!
//! Whoever is ready to begin says with whom. While anybody who is connected was told otherwise, no first
//! entry is made, and none is taken that does not name the members one was told: two lists could begin two
//! clusters.
//!
//! # Amnesia
//! A replica that has lost its memory starts empty, in a new life. It has no membership, so it does not
//! stand for election, and its votes and acknowledgements count for nothing, because every count is over
//! lives named in a membership. (A voter of the first entry that has not received it yet looks the same, but
//! its life is named: its vote counts.) The leader hears its `Fresh` and, once the old life has
//! been silent for an election timeout, replaces the old life by the new one as a joining learner: for
//! a voter that is the removal of one voter, a single-server change. When it has caught up it is
//! promoted, a second such change. So a new life counts only after a quorum without it has committed
//! to that, and has handed it everything committed (compare Viewstamped Replication's recovery, and
//! Michael et al., "Recovering Shared Objects Without Stable Storage", 2017). Messages of the old life
//! that are still on their way are attributed to the old life: they are the last words of a replica
//! that has crashed for good, were true when said, and count only where the old life is still a voter.
use crate::connections::ReadyToBegin;
use crate::members::{changed_life, peer_of};
use crate::mutants::mutant;
use crate::{Body, Entry, Now, Output, Peer, Replica};
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{Index, ReplicaId, Term};
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, RECORD_PAYLOAD_BYTES_MAX};
use quorumwire_wire::{
    CommitQuorum, Member, MemberRole, Membership, Record, RecordKind, begin_record, finish_record,
};
use std::collections::BTreeSet;

/// Index and term of a group's first entry.
const FIRST: (Index, Term) = (Index(1), Term(1));

/// Whether the first entry is being made here.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// It was made in this life and is not durable yet.
    persisting: bool,
}

impl Replica {
    fn knows_nothing(&self) -> bool {
        !self.members.is_known() && self.log.last_index() == Index(0)
    }

    /// When it is next to say that nobody should count on what it remembers: it knows no membership, or
    /// it is no voter of the one it knows, in its present life, and hears no leader. The leader that had
    /// begun to bring it up to date may have taken that change with it. Whoever has seen itself listed and
    /// is not listed now was removed, and says nothing: its id may be another one's.
    pub(crate) fn says_fresh_at(&self) -> Option<Now> {
        if !self.members.is_known() {
            return Some(self.fresh_at);
        }
        let is_listed = self.members.current().member(self.config.me.id).is_some();
        let was_removed = !is_listed
            && (self.was_listed && !mutant("removed-asks-again") || mutant("unlisted-asks-nobody"));
        if self.is_still_voter() || was_removed {
            return None;
        }
        let timeout = self.config.election_timeout;
        let unheard_at = self.leader_heard_at.map(|heard| Now(heard.0 + timeout));
        Some(unheard_at.map_or(self.fresh_at, |unheard| unheard.max(self.fresh_at)))
    }

    /// Says so, to everyone, every heartbeat interval. Whom it does not hear leads it no more: it stands for
    /// no election, which would find that out, and may have been removed without a word of that.
    pub(crate) fn say_fresh_to_all(&mut self, outputs: &mut Vec<Output>) {
        self.fresh_at = Now(self.now.0 + self.config.heartbeat_interval);
        if self.leader.is_some() && !self.has_heard_leader_within(self.config.election_timeout) {
            self.step_down(outputs);
        }
        let up = self.connections.iter().filter(|(_, c)| c.up);
        let peers: Vec<Peer> = up
            .map(|(id, connection)| Peer {
                id: *id,
                incarnation: connection.incarnation,
            })
            .collect();
        for peer in peers {
            self.say_fresh(peer, outputs);
        }
        self.bootstrap_if_unanimous(outputs);
    }

    /// Notes whether the group has taken this life in. Only what is committed says so: anything else may be
    /// taken back. Likewise which cluster it is.
    pub(crate) fn note_committed_members(&mut self) {
        self.was_listed =
            self.was_listed || self.members.has_named(self.config.me, self.commit_index);
        let (set_at, committed) = self.members.at(self.commit_index);
        let is_out = !committed.members.is_empty() && committed.member(self.config.me.id).is_none();
        self.left_out_at = is_out.then_some(set_at);
        self.note_lineage();
    }

    /// Whom it was told to begin a cluster with, ascending.
    fn begins_with(&self) -> Vec<ReplicaId> {
        let ids: BTreeSet<ReplicaId> = self.config.initial_members.iter().copied().collect();
        ids.into_iter().collect()
    }

    pub(crate) fn say_fresh(&mut self, to: Peer, outputs: &mut Vec<Output>) {
        // No first entry may rest on one that knows something.
        let join = self.config.initial_members.is_empty() || !self.knows_nothing();
        let body = Body::Fresh {
            to_incarnation: to.incarnation,
            peer_address: self.config.peer_address.clone(),
            join,
            initial_members: if join { Vec::new() } else { self.begins_with() },
        };
        if let Some(connection) = self.connections.get_mut(&to.id) {
            connection.fresh_sent_to = Some(to.incarnation);
        }
        self.send(to, body, outputs);
    }

    pub(crate) fn on_fresh(&mut self, from: Peer, fresh: Body, outputs: &mut Vec<Output>) {
        let Body::Fresh {
            to_incarnation,
            peer_address,
            join,
            initial_members: members,
        } = fresh
        else {
            return;
        };
        if peer_address.len() > ADDRESS_BYTES_MAX {
            self.counters.ignored_malformed += 1;
            return;
        }
        if self.members.is_known() {
            self.answer_fresh(from, outputs);
            self.replace_old_life(from, outputs);
            return;
        }
        let to_me = to_incarnation == self.config.me.incarnation
            || mutant("bootstrap-from-fresh-to-old-life");
        if join || !to_me {
            self.counters.ignored_unexpected += 1;
            return;
        }
        if let Some(connection) = self.connections.get_mut(&from.id) {
            connection.fresh_from = Some(ReadyToBegin {
                peer_address,
                members,
            });
        }
        self.bootstrap_if_unanimous(outputs);
    }

    /// Makes the first entry, if it falls to this replica and everyone is there.
    fn bootstrap_if_unanimous(&mut self, outputs: &mut Vec<Output>) {
        let me = self.config.me;
        let initial = &self.config.initial_members;
        let mine = initial.iter().min() == Some(&me.id);
        if !mine || !self.knows_nothing() || self.term != Term(0) || self.is_contradicted() {
            return;
        }
        let mut members = vec![voter(me, self.config.peer_address.clone())];
        let mut all_keep_lineage = true;
        for id in initial.iter().filter(|id| **id != me.id) {
            let Some(connection) = self.connections.get(id).filter(|c| c.up) else {
                return;
            };
            let Some(ready) = &connection.fresh_from else {
                return;
            };
            let peer = Peer {
                id: *id,
                incarnation: connection.incarnation,
            };
            all_keep_lineage &= self.promise_of(peer).keeps_lineage;
            members.push(voter(peer, ready.peer_address.clone()));
        }
        members.sort_by_key(|member| member.id);
        members.dedup_by_key(|member| member.id);
        let membership = Membership {
            members,
            quorum: CommitQuorum::Majority,
            // Known already where earlier code has noted it before the entry was durable. Where a member's
            // code would drop it, it is given later.
            lineage: if all_keep_lineage {
                self.lineage.or(self.config.new_lineage)
            } else {
                self.lineage
            },
        };
        self.bootstrap.persisting = true;
        let record = first_record(self.config.group, &membership);
        self.take_first_entry(record, outputs);
    }

    /// Whether somebody else who is ready to begin was told to begin with others.
    fn is_contradicted(&self) -> bool {
        let own = self.begins_with();
        let ready = self.connections.values().filter(|c| c.up);
        let mut ready = ready.filter_map(|connection| connection.fresh_from.as_ref());
        ready.any(|it| !it.members.is_empty() && it.members != own)
            && !mutant("begins-though-contradicted")
    }

    fn take_first_entry(&mut self, record: Bytes, outputs: &mut Vec<Output>) {
        let (index, term) = FIRST;
        if self.term < term {
            self.enter_term(term, outputs);
        }
        let end = u32::try_from(record.len()).expect("a record is smaller than 4 GiB");
        let entry = Entry {
            index,
            term,
            kind: RecordKind::Membership,
            block: record,
            start: 0,
            end,
        };
        self.append_entry(entry.clone(), outputs);
        let hard_state = self.hard_state();
        self.persistence.give(hard_state, vec![entry], outputs);
        self.commit_upto(index, outputs);
        // What it has promised it keeps: a leader that it could not follow yet counts on its answers, also if
        // a process before this one gave them. Who hears of no leader in a new life waits for nothing.
        if mutant("first-entry-ends-promise") && self.leader_heard.is_none() {
            self.leader_heard_at = None;
        }
        self.put_off_election();
    }

    /// The first entry, made here, is durable: it is told to all, and an election may begin.
    pub(crate) fn bootstrap_persisted(&mut self, outputs: &mut Vec<Output>) {
        if !self.bootstrap.persisting || self.persistence.persisted_index < FIRST.0 {
            return;
        }
        self.bootstrap.persisting = false;
        let members = self.members.at(FIRST.0).1;
        let others: Vec<Peer> = members.members.iter().map(peer_of).collect();
        for peer in others {
            self.answer_fresh(peer, outputs);
        }
        if self.leader.is_none() {
            self.election_deadline = self.now;
        }
    }

    /// Gives the first entry to one who is named in it and does not have it.
    fn answer_fresh(&mut self, to: Peer, outputs: &mut Vec<Output>) {
        if self.bootstrap.persisting || to == self.config.me {
            return;
        }
        let (index, term) = FIRST;
        let (set_at, membership) = self.members.at(index);
        let known = set_at == index && self.log.term_at(index) == Some(term);
        if known && membership.is_voter(to.id, to.incarnation) {
            // The same members give the same bytes, also when a snapshot stands for them now.
            let record = first_record(self.config.group, membership);
            self.send(to, Body::Bootstrap { record }, outputs);
        }
    }

    pub(crate) fn on_bootstrap(&mut self, from: Peer, record: &Bytes, outputs: &mut Vec<Output>) {
        let last_fresh_to = self
            .connections
            .get(&from.id)
            .and_then(|connection| connection.fresh_sent_to);
        let asked = last_fresh_to == Some(from.incarnation);
        if !self.knows_nothing() || !asked {
            self.counters.ignored_unexpected += 1;
            return;
        }
        let first = Record::decode(record).ok().filter(|decoded| {
            (decoded.index, decoded.term) == FIRST
                && decoded.kind == RecordKind::Membership
                && decoded.group == self.config.group
                && decoded.record_bytes == record.len()
        });
        let membership = first.and_then(|decoded| Membership::decode(decoded.payload).ok());
        let me = self.config.me;
        match membership {
            None => self.counters.ignored_malformed += 1,
            Some(membership) if !membership.is_voter(me.id, me.incarnation) => {
                self.counters.ignored_old_incarnation += 1;
            }
            Some(membership) if self.is_of_another_lineage(&membership) => {
                self.refuse_lineage(from, membership.lineage, outputs);
            }
            Some(membership) if !self.may_begin_with(&membership) => {
                self.counters.ignored_unexpected += 1;
            }
            Some(_) => self.take_first_entry(record.clone(), outputs),
        }
    }

    /// Whether a first entry names whom this replica was told to begin with.
    fn may_begin_with(&self, first: &Membership) -> bool {
        let named = first.members.iter().map(|member| member.id);
        let told = self.begins_with();
        told.is_empty() || named.eq(told) || mutant("begins-with-whomever")
    }

    /// Leader: a member came back without its memory. Its old life, silent for long enough, gives way
    /// to the new one.
    fn replace_old_life(&mut self, fresh: Peer, outputs: &mut Vec<Output>) {
        if self.would_replace(fresh).is_some() && self.may_append_membership().is_ok() {
            let next = changed_life(self.members.current(), fresh);
            self.append_membership(next, outputs);
        }
    }

    /// The old life that is to give way to this one, if it is time.
    pub(crate) fn would_replace(&self, fresh: Peer) -> Option<Peer> {
        let leading = self.leading.as_ref()?;
        let member = self.members.current().member(fresh.id)?;
        let old = peer_of(member);
        let timeout = self.config.election_timeout;
        let silent = leading
            .progress
            .iter()
            .any(|p| p.peer == old && self.now.0 >= p.heard_at.0 + timeout);
        let possible = old != fresh
            && silent
            && self.connected(fresh.id) == Some(fresh.incarnation)
            && self.may_change_members();
        possible.then_some(old)
    }
}

fn voter(peer: Peer, peer_address: String) -> Member {
    Member {
        id: peer.id,
        incarnation: peer.incarnation,
        peer_address,
        role: MemberRole::Voter,
    }
}

fn first_record(group: quorumwire_interfaces::GroupId, membership: &Membership) -> Bytes {
    let payload = membership.encode();
    assert!(
        payload.len() <= RECORD_PAYLOAD_BYTES_MAX,
        "a membership fits"
    );
    let mut block = BytesMut::new();
    let start = begin_record(&mut block, RecordKind::Membership, group, FIRST.1, FIRST.0);
    block.extend_from_slice(&payload);
    finish_record(&mut block, start);
    block.freeze()
}
