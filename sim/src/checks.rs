//! What must hold whatever happens, checked after every step of every replica. Judges; changes nothing.
use crate::machine::Machine;
use crate::plane::Plane;
use crate::queue::Nanos;
use quorumwire_control::{Body, Engage, Entry, Output, Peer, Replica, Role, Ticket};
use quorumwire_interfaces::{DataPlane as _, Incarnation, Index, Lineage, ReplicaId, Term};
use quorumwire_wire::packet::Header;
use quorumwire_wire::{CommitQuorum, Member, Membership, RecordKind};
use std::collections::{BTreeMap, BTreeSet};

/// Replicas' states are compared whenever they have applied a multiple of this many entries.
pub const DIGEST_EVERY: u64 = 128;

/// What has been seen so far in one run.
#[derive(Default)]
pub struct Checks {
    /// I1: who led each term.
    leaders: BTreeMap<Term, Peer>,
    /// I4: the entry committed at each index: term, checksum, and the term of who said so first. The
    /// first has index 1.
    committed: Vec<(Term, u32, Term)>,
    /// I7: the highest index at which a plane has told a client that its write is done, or could have.
    answered_blind: Index,
    /// I3: the last entry that a plane was seen to have committed.
    committed_by_plane: Option<(Index, Term)>,
    /// I1: for whom planes were engaged in each term.
    fast_leaders: BTreeMap<Term, Peer>,
    /// I2: the entries ever written at each index: term, checksum and the term before.
    written: Vec<Vec<(Term, u32, Option<Term>)>>,
    /// Who has written a first entry.
    first_written_by: BTreeSet<ReplicaId>,
    /// I11: the highest term in which each life has said anything.
    terms_said: BTreeMap<(ReplicaId, Incarnation), Term>,
    /// I10: each life's last vote.
    votes: BTreeMap<(ReplicaId, Incarnation), (Term, Peer)>,
    /// I9: what applying each index answered.
    replies: Vec<u32>,
    /// I9: the whole state at some indexes.
    digests: BTreeMap<u64, u64>,
    /// I13: the members as of the last committed change.
    membership: Option<(Index, Membership)>,
    /// I13: which cluster it is.
    lineage: Lineage,
    /// I8: operations that were committed.
    operations: BTreeSet<u32>,
    /// The last operation carried out of each client that waits for no answer.
    bursts: BTreeMap<u32, u32>,
    /// I8: where each command of a session ran.
    ran: BTreeMap<(u64, u64), (Index, u16)>,
    /// I7: what must show in reads by a round.
    reads: BTreeMap<(ReplicaId, Ticket), Index>,
    /// Whether stale reads are errors: clocks keep to what is allowed.
    pub reads_judged: bool,
    /// The first thing found wrong.
    pub violation: Option<String>,
}

fn checksum(entry: &Entry) -> u32 {
    let record = entry.record();
    u32::from_be_bytes([record[0], record[1], record[2], record[3]])
}

const fn life(peer: Peer) -> (ReplicaId, Incarnation) {
    (peer.id, peer.incarnation)
}

fn position(index: Index) -> usize {
    usize::try_from(index.0.saturating_sub(1)).unwrap_or(usize::MAX)
}

impl Checks {
    /// Notes that something does not hold, unless something was noted before.
    pub fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    /// The highest index anyone has reported as committed.
    #[must_use]
    pub fn committed_upto(&self) -> Index {
        Index(self.committed.len() as u64)
    }

    /// The highest index that a client may know to be committed: a plane answers before anyone reports it.
    #[must_use]
    pub fn known_upto(&self) -> Index {
        self.committed_upto().max(self.answered_blind)
    }

    /// The term of the entry that anyone has reported as committed there.
    #[must_use]
    pub fn committed_term(&self, index: Index) -> Option<Term> {
        self.committed.get(position(index)).map(|it| it.0)
    }

    /// The last entry anyone has reported as committed.
    #[must_use]
    pub fn last_committed(&self) -> Option<(Index, Term)> {
        let last = self.committed.last()?;
        Some((self.committed_upto(), last.0))
    }

    /// Judges what a step of a replica has put out: the outputs from `first` on.
    pub fn after_step(&mut self, machines: &[Machine], machine: usize, first: usize, now: Nanos) {
        let it = &machines[machine];
        let Some(process) = &it.process else {
            return;
        };
        let replica = &process.group.replica;
        let (peer, seen, term) = (it.peer, process.seen, replica.term());
        if let (Some(fast), Some(plane)) = (replica.fast_term(), &process.group.plane) {
            let moves = plane.data_plane().term();
            self.require((fast.term, moves) == (term, term), || {
                format!(
                    "I11: {peer:?} is in term {term}, fast in {}, its plane moves {moves}",
                    fast.term
                )
            });
        }
        self.require(term >= seen.term, || {
            format!("I10: {peer:?} went back from term {} to {term}", seen.term)
        });
        let (lineage, known) = (replica.lineage(), self.lineage);
        self.require(!known.contradicts(lineage), || {
            format!("I13: {peer:?} is of lineage {lineage}, others of {known}")
        });
        self.lineage = known.or(lineage);
        if replica.role() == Role::Leader && !(seen.led && seen.term == term) {
            self.leads(peer, replica);
            self.leases_are_over(machines, peer, term, now);
        }
        for (at, output) in process.group.outputs.iter().enumerate().skip(first) {
            match output {
                Output::Persist { entries, .. } => self.writes(peer, entries),
                Output::Send { to, message } => {
                    self.promises(it, *to, message.term, &message.body);
                }
                Output::Committed(index) => {
                    let later = &process.group.outputs[at + 1..];
                    let changes = later
                        .iter()
                        .any(|later| matches!(later, Output::MembershipChanged(_)));
                    self.commits(machines, it, (*index, changes));
                }
                Output::Read(ticket, index) => self.grants_read(peer, *ticket, *index),
                Output::MembershipChanged(membership) => {
                    self.members_change(machines, peer, replica, membership);
                }
                Output::Done(_)
                | Output::Refused(..)
                | Output::RoleChanged(_)
                | Output::Truncated(_)
                | Output::OtherLineage { .. }
                | Output::ReadSnapshot { .. }
                | Output::StoreSnapshotChunk { .. }
                | Output::InstallSnapshot { .. }
                | Output::TakeSnapshot
                | Output::Disengage(_) => {}
                Output::Engage(engage) => self.engages(it, engage),
                Output::PlaneHeartbeat { .. } => self.engaged_hold_the_start(peer, replica),
                Output::PlanePersisted(index) => {
                    let durable = it.in_memory || it.durable.last_index() >= *index;
                    self.require(durable, || {
                        format!(
                            "I5: {peer:?} tells its plane that {index} is durable, which is not"
                        )
                    });
                }
            }
        }
    }

    /// I1, I5: a plane begins behind a durable log, in a durable term, for the one leader of that term.
    fn engages(&mut self, machine: &Machine, engage: &Engage) {
        let (peer, durable) = (machine.peer, &machine.durable);
        let is_durable = machine.in_memory
            || (durable.term == engage.term
                && durable.last_index() == engage.last_index
                && durable.holds(engage.last_index, engage.last_term));
        self.require(is_durable, || {
            format!(
                "I5: {peer:?} engages its plane behind {} before that is durable",
                engage.last_index
            )
        });
        let leader = engage.voters[usize::from(engage.leader)];
        let known = *self.fast_leaders.entry(engage.term).or_insert(leader);
        self.require(known == leader, || {
            format!(
                "I1: term {} is fast for {known:?} and {leader:?}",
                engage.term
            )
        });
    }

    /// I5: who takes part in a fast term holds all before it, and its leader knows that, because no plane
    /// will ever say so. Judged at each heartbeat.
    fn engaged_hold_the_start(&mut self, peer: Peer, replica: &Replica) {
        let Some(fast) = replica.fast_term() else {
            return;
        };
        for member in replica.status().followers {
            let known = !member.engaged || member.match_index >= fast.start_index;
            self.require(known, || {
                let (id, matched) = (member.id, member.match_index);
                format!(
                    "I5: {peer:?}: {id} is engaged behind {}, known to hold {matched}",
                    fast.start_index
                )
            });
        }
    }

    /// I1 and I3: one leader a term, and it has everything committed.
    fn leads(&mut self, peer: Peer, replica: &Replica) {
        let term = replica.term();
        let known = *self.leaders.entry(term).or_insert(peer);
        self.require(known == peer, || {
            format!("I1: term {term} has two leaders, {known:?} and {peer:?}")
        });
        let first = replica.first_index();
        // Who is elected late may lack what a later term has committed; it can commit nothing.
        let lacks = (first.0..=self.committed.len() as u64).find(|index| {
            let committed = self.committed[position(Index(*index))];
            committed.2 < term && replica.term_at(Index(*index)) != Some(committed.0)
        });
        self.require(lacks.is_none(), || {
            format!("I3: {peer:?} leads term {term} without committed entry {lacks:?}, its log ends with {}", replica.last_index())
        });
        // It has all before that one, too, because no two logs differ there.
        let by_plane = self.committed_by_plane.filter(|last| last.1 < term);
        let lacks = by_plane.filter(|last| !has(replica, *last));
        self.require(lacks.is_none(), || {
            format!("I3: {peer:?} leads term {term} without {lacks:?}, which a plane has committed")
        });
    }

    /// I7: whoever is elected may commit at once, so nobody may read by the lease of an earlier term.
    fn leases_are_over(&mut self, machines: &[Machine], leader: Peer, term: Term, now: Nanos) {
        if !self.reads_judged {
            return;
        }
        for machine in machines.iter().filter(|it| it.peer != leader) {
            let replica = machine.process.as_ref().map(|it| &it.group.replica);
            let reads = replica.filter(|it| it.term() < term).is_some_and(|it| {
                it.role() == Role::Leader && it.lease_read(machine.clock(now)).is_some()
            });
            self.require(!reads, || {
                let old = machine.peer;
                format!("I7: {leader:?} leads term {term} while {old:?} reads by an earlier lease")
            });
        }
    }

    /// I2: index and term name one entry, and one history before it.
    fn writes(&mut self, peer: Peer, entries: &[Entry]) {
        let mut previous = None;
        for entry in entries {
            let at = position(entry.index);
            if at == 0 {
                self.first_written_by.insert(peer.id);
            }
            if self.written.len() <= at {
                self.written.resize(at + 1, Vec::new());
            }
            let found = (entry.term, checksum(entry), previous);
            let known = self.written[at]
                .iter_mut()
                .find(|known| known.0 == entry.term);
            let same = match known {
                None => {
                    self.written[at].push(found);
                    true
                }
                Some(known) => {
                    let same_before =
                        known.2.is_none() || previous.is_none() || known.2 == previous;
                    known.2 = known.2.or(previous);
                    known.1 == found.1 && same_before
                }
            };
            self.require(same, || {
                format!(
                    "I2: {peer:?} writes another entry {}@{}",
                    entry.index, entry.term
                )
            });
            previous = Some(entry.term);
        }
    }

    /// Votes and acknowledgements are durable when they leave, and a vote is given once a term.
    fn promises(&mut self, machine: &Machine, to: Peer, term: Term, body: &Body) {
        let peer = machine.peer;
        let in_memory = machine
            .process
            .as_ref()
            .is_none_or(|process| !process.journal.is_durable());
        let durable = &machine.durable;
        let asks_only = matches!(
            body,
            Body::VoteRequest { pre_vote: true, .. } | Body::VoteReply { pre_vote: true, .. }
        );
        if !asks_only {
            let said = self.terms_said.entry(life(peer)).or_default();
            *said = term.max(*said);
        }
        match body {
            Body::VoteReply {
                granted: true,
                pre_vote: false,
                ..
            } => {
                let kept = in_memory || (durable.term == term && durable.vote == Some(to));
                self.require(kept, || {
                    format!("I10: {peer:?} votes in term {term} before that is durable")
                });
                self.note_vote(peer, term, to);
            }
            Body::VoteRequest {
                pre_vote: false, ..
            } => {
                let kept = in_memory || (durable.term == term && durable.vote == Some(peer));
                self.require(kept, || {
                    format!("I10: {peer:?} stands in term {term} before that is durable")
                });
                self.note_vote(peer, term, peer);
            }
            Body::AppendReply {
                rejected: false,
                index,
                ..
            } => {
                let kept = in_memory || (durable.last_index() >= *index && durable.term >= term);
                self.require(kept, || {
                    format!("I5: {peer:?} acknowledges {index} before it is durable")
                });
            }
            Body::Engaged { index, .. } => {
                let kept = in_memory || durable.last_index() >= *index;
                self.require(kept, || {
                    format!("I5: {peer:?} says that it has {index} before it is durable")
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
            | Body::EngageOffer { .. } => {}
        }
    }

    /// For whom planes were engaged in this term.
    #[must_use]
    pub fn fast_leader(&self, term: Term) -> Option<Peer> {
        self.fast_leaders.get(&term).copied()
    }

    /// I11: a plane acknowledges nothing of a term once its replica has taken part in a later one; and
    /// nothing that its replica could lose.
    pub fn plane_promises(&mut self, machine: &Machine, header: &Header) {
        let peer = machine.peer;
        let (term, index) = (Term(header.term), Index(header.index));
        let said = self.terms_said.get(&life(peer)).copied();
        self.require(said.is_none_or(|said| said <= term), || {
            format!("I11: the plane of {peer:?} acknowledges {index} in term {term} after {said:?}")
        });
        let Some(plane) = machine.plane().map(Plane::data_plane) else {
            return;
        };
        let registers = plane.registers();
        let accounted = plane.is_engaged()
            && registers.term == term
            && registers.persisted_index >= index
            && registers.last_index >= index;
        self.require(accounted, || {
            format!("I11: the plane of {peer:?} acknowledges {index}, its registers do not")
        });
        let durable = &machine.durable;
        let on_disk = machine.in_memory
            || (durable.last_index() >= index
                && (index <= plane.start_index || durable.holds(index, term)));
        self.require(on_disk, || {
            format!("I5: the plane of {peer:?} acknowledges {index} before it is durable")
        });
    }

    /// A replica's disk was put back to an old copy: its promises are broken, which nobody can tell from
    /// promises that were never made.
    pub fn forgets_promises(&mut self, peer: Peer) {
        self.votes.remove(&life(peer));
        self.terms_said.remove(&life(peer));
    }

    /// I5: what a plane answers at once is committed and cannot be lost.
    pub fn plane_answers_blind(
        &mut self,
        machines: &[Machine],
        machine: &Machine,
        header: &Header,
    ) {
        let peer = machine.peer;
        let (term, index) = (Term(header.term), Index(header.index));
        let Some(process) = &machine.process else {
            return; // its plane goes on alone; who voted then is not known any more
        };
        let (_, membership) = process
            .group
            .replica
            .membership_at(process.group.replica.last_index());
        self.answered_blind = self.answered_blind.max(index);
        let (held, needed) = held_and_needed(machines, membership, (index, term));
        self.require(held >= needed, || {
            format!("I5: the plane of {peer:?} answers {index}@{term}, held by {held} of {needed}")
        });
    }

    /// I8: a command of a session runs at one place: an entry, and which of its commands.
    pub fn runs(&mut self, name: (u64, u64), position: (Index, u16)) {
        let known = *self.ran.entry(name).or_insert(position);
        self.require(known == position, || {
            format!(
                "I8: command {} of session {:x} runs at {known:?} and at {position:?}",
                name.1, name.0
            )
        });
    }

    fn note_vote(&mut self, peer: Peer, term: Term, candidate: Peer) {
        let known = *self.votes.entry(life(peer)).or_insert((term, candidate));
        let once = known.0 < term || known == (term, candidate);
        self.votes.insert(life(peer), (term, candidate));
        self.require(once, || {
            format!("I10: {peer:?} votes for {candidate:?} in term {term} after {known:?}")
        });
    }

    /// I4, I12: one entry per index for ever; held by a quorum when the leader says so; known to
    /// whoever leads a later term. The members may have changed in the same step, after it was said.
    fn commits(
        &mut self,
        machines: &[Machine],
        machine: &Machine,
        (index, members_changed_later): (Index, bool),
    ) {
        let Some(process) = &machine.process else {
            return;
        };
        let (peer, replica) = (machine.peer, &process.group.replica);
        let before = process.seen.commit_index;
        self.require(index > before, || {
            format!("I12: {peer:?} commits {index} after {before}")
        });
        for entry in replica.entries(before.next(), index) {
            self.commit(peer, entry, replica.term());
        }
        let Some(term) = replica.term_at(index) else {
            return;
        };
        if replica.role() != Role::Leader {
            return;
        }
        let (set_at, mut members) = replica.membership_at(replica.last_index());
        if members_changed_later {
            members = replica.membership_at(set_at.previous()).1;
        }
        self.is_held(machines, peer, members, (index, term));
        self.later_leaders_have(machines, (peer, replica.term()), (index, term));
    }

    /// I3: whoever leads a later term has what somebody commits in this one.
    fn later_leaders_have(
        &mut self,
        machines: &[Machine],
        (peer, said_in): (Peer, Term),
        entry: (Index, Term),
    ) {
        for other in machines {
            let later = other.process.as_ref().map(|process| &process.group.replica);
            let Some(later) =
                later.filter(|later| later.role() == Role::Leader && later.term() > said_in)
            else {
                continue;
            };
            self.require(has(later, entry), || {
                format!(
                    "I3: {peer:?} commits {}, which leader {:?} lacks",
                    entry.0, other.peer
                )
            });
        }
    }

    /// I3, I4, I5: what a leader's plane commits is committed for ever, as if its process had said so.
    pub fn plane_commits(&mut self, machines: &[Machine], machine: &Machine, entry: (Index, Term)) {
        let (peer, (index, term)) = (machine.peer, entry);
        let Some(process) = &machine.process else {
            return;
        };
        let replica = &process.group.replica;
        let known = self.committed_term(index);
        self.require(known.is_none_or(|known| known == term), || {
            format!(
                "I4: the plane of {peer:?} commits {index}@{term}, committed was one of {known:?}"
            )
        });
        self.answered_blind = self.answered_blind.max(index);
        self.committed_by_plane = self.committed_by_plane.max(Some(entry));
        let (_, members) = replica.membership_at(replica.last_index());
        let (held, needed) = held_and_needed(machines, members, entry);
        self.require(held >= needed, || {
            format!("I5: the plane of {peer:?} commits {index}@{term} held by {held} of {needed}")
        });
        self.later_leaders_have(machines, (peer, term), entry);
    }

    fn commit(&mut self, peer: Peer, entry: &Entry, said_in: Term) {
        let found = (entry.term, checksum(entry));
        let at = position(entry.index);
        if let Some(known) = self.committed.get(at) {
            let same = (known.0, known.1) == found;
            let known = known.0;
            self.require(same, || {
                format!(
                    "I4: {peer:?} commits {}@{}, committed was one of term {known}",
                    entry.index, entry.term
                )
            });
            return;
        }
        let gap = self.committed.len() != at;
        self.require(!gap, || {
            format!("I12: {peer:?} commits {} with a gap before it", entry.index)
        });
        self.committed.push((found.0, found.1, said_in));
        if entry.kind == RecordKind::Membership
            && let Ok(membership) = Membership::decode(entry.payload())
        {
            let last = self.membership.replace((entry.index, membership.clone()));
            if let Some((_, last)) = last {
                let overlap = overlaps(&last, &membership);
                self.require(overlap, || {
                    format!("I13: members {last:?} and then {membership:?}")
                });
            }
        }
    }

    /// The entry is in so many voters' stores that no later leader can lack it. A life that was lost
    /// since may have had it.
    fn is_held(
        &mut self,
        machines: &[Machine],
        peer: Peer,
        membership: &Membership,
        (index, term): (Index, Term),
    ) {
        let (held, needed) = held_and_needed(machines, membership, (index, term));
        self.require(held >= needed, || {
            format!("I5: {peer:?} commits {index}@{term} held by {held} of {needed} needed")
        });
    }

    /// I13: what a leader of the newest term acts on has common voters with what is committed, unless a
    /// majority already holds a change between them, which settles that one before it is committed.
    fn members_change(
        &mut self,
        machines: &[Machine],
        peer: Peer,
        replica: &Replica,
        membership: &Membership,
    ) {
        let newest = self.leaders.keys().next_back().copied();
        if replica.role() != Role::Leader || newest != Some(replica.term()) {
            return;
        }
        let (set_at, _) = replica.membership_at(replica.last_index());
        let (before_at, before) = replica.membership_at(set_at.previous());
        let Some((committed_at, committed)) = self.membership.clone() else {
            return;
        };
        let term = replica.term_at(before_at);
        let needed = before.voters().count() / 2 + 1;
        let settled = term.is_some_and(|term| {
            let held = before.voters().filter(|voter| {
                is_held_by(machines, voter.id, voter.incarnation, (before_at, term))
            });
            held.count() >= needed
        });
        if before_at > committed_at && settled {
            return;
        }
        let overlap = overlaps(&committed, membership);
        self.require(overlap, || {
            format!("I13: {peer:?} goes from committed {committed:?} to {membership:?}")
        });
    }

    /// A read by a round was asked for: it must show all that is committed now.
    pub fn asks_read(&mut self, peer: Peer, ticket: Ticket) {
        self.reads.insert((peer.id, ticket), self.known_upto());
    }

    fn grants_read(&mut self, peer: Peer, ticket: Ticket, index: Index) {
        let needed = self.reads.remove(&(peer.id, ticket)).unwrap_or_default();
        let judged = self.reads_judged;
        self.require(!judged || index >= needed, || {
            format!("I7: {peer:?} grants {ticket:?} at {index}, {needed} was committed before")
        });
    }

    /// I7: whoever could read by its lease now would miss nothing.
    pub fn may_read(&mut self, peer: Peer, index: Index) {
        let (judged, needed) = (self.reads_judged, self.known_upto());
        self.require(!judged || index >= needed, || {
            format!("I7: {peer:?} may read at {index} by its lease, {needed} is committed")
        });
    }

    /// A read is answered out of a state that has applied so much.
    pub fn answers_read(&mut self, peer: Peer, applied: Index, needed: Index) {
        let judged = self.reads_judged;
        self.require(!judged || applied >= needed, || {
            format!("I7: {peer:?} answers a read at {applied}, {needed} was committed before")
        });
    }

    /// A process starts anew: what was asked of it before is forgotten. So is a first entry that it lost
    /// before it was durable, if nobody else has written it: the next one has another lineage, which is drawn
    /// by chance.
    pub fn starts(&mut self, peer: Peer, last_index: Index) {
        self.reads.retain(|(id, _), _| *id != peer.id);
        let is_alone = self.first_written_by.iter().eq([&peer.id]);
        if last_index == Index(0) && is_alone && self.committed.len() <= 1 {
            self.first_written_by.clear();
            self.written.clear();
            self.committed.clear();
            self.membership = None;
            self.lineage = Lineage::default();
        }
    }

    /// I9: every replica's answer at an index is the same.
    pub fn applies(&mut self, peer: Peer, index: Index, reply: &[u8]) {
        let answer = crc32c::crc32c(reply);
        let at = position(index);
        if self.replies.len() <= at {
            self.replies.resize(at + 1, 0);
        }
        let known = self.replies[at];
        self.replies[at] = answer;
        self.require(known == 0 || known == answer || answer == 0, || {
            format!("I9: {peer:?} answers differently at {index}")
        });
    }

    /// I9: every replica's state after an index is the same.
    pub fn digest(&mut self, peer: Peer, index: Index, digest: u64) {
        let known = *self.digests.entry(index.0).or_insert(digest);
        self.require(known == digest, || {
            format!("I9: {peer:?} has another state after {index}")
        });
    }

    /// I8: an operation is committed once.
    pub fn carries_out(&mut self, index: Index, operation: u32) {
        let new = self.operations.insert(operation);
        self.require(new, || {
            format!("I8: operation {operation} is committed again at {index}")
        });
    }

    /// I8: what one client has asked for, without waiting for answers, is carried out in the order in which
    /// it did.
    pub fn keeps_order(&mut self, index: Index, burst: u32, operation: u32) {
        let before = self.bursts.insert(burst, operation);
        self.require(before < Some(operation), || {
            format!("I8: operation {operation} is carried out at {index}, behind {before:?} of the same client")
        });
    }

    /// A snapshot is put in place: it must stand for what was committed.
    pub fn installs(&mut self, peer: Peer, last_index: Index, last_term: Term) {
        let known = self
            .committed
            .get(position(last_index))
            .map(|known| known.0);
        self.require(known == Some(last_term), || {
            format!("I4: {peer:?} installs a snapshot of {last_index}@{last_term}, committed was {known:?}")
        });
    }
}

/// Whether a replica's log has this very entry, or has gone on from a snapshot of it.
fn has(replica: &Replica, (index, term): (Index, Term)) -> bool {
    replica.term_at(index) == Some(term) || replica.first_index() > index
}

/// Whether this life has the entry, or is over and may have had it.
fn is_held_by(
    machines: &[Machine],
    id: ReplicaId,
    incarnation: Incarnation,
    (index, term): (Index, Term),
) -> bool {
    let holder = machines.iter().find(|machine| machine.peer.id == id);
    holder.is_some_and(|holder| {
        let had = holder
            .owes
            .as_ref()
            .is_some_and(|owes| owes.held.holds(index, term));
        holder.peer.incarnation != incarnation || had || holder.holds(index, term)
    })
}

/// How many voters hold an entry, and how many must before it is committed.
fn held_and_needed(
    machines: &[Machine],
    membership: &Membership,
    entry: (Index, Term),
) -> (usize, usize) {
    let holds = |v: &&Member| is_held_by(machines, v.id, v.incarnation, entry);
    let held = membership.voters().filter(holds).count();
    let voter_count = membership.voters().count();
    let needed = match membership.quorum {
        CommitQuorum::Majority => voter_count / 2 + 1,
        CommitQuorum::All => voter_count,
    };
    (held, needed)
}

/// Whether any majority of one has a voter in common with any majority of the other.
fn overlaps(a: &Membership, b: &Membership) -> bool {
    let lives = |membership: &Membership| -> BTreeSet<(ReplicaId, Incarnation)> {
        let voters = membership.voters();
        voters.map(|voter| (voter.id, voter.incarnation)).collect()
    };
    let (a, b) = (lives(a), lives(b));
    let majorities = a.len() / 2 + 1 + b.len() / 2 + 1;
    majorities > a.union(&b).count()
}
