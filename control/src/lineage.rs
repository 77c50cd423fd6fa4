//! Which cluster it is, among all of its name. The first entry carries the number, and so does every later
//! membership. Nothing of another lineage is taken in.
//!
//! # A cluster from before lineages
//! Its leader draws the number, and commits it as a membership that changes nothing else. It does so only
//! while every member is connected and says that it keeps lineages: from then on no code leads that would
//! drop the number. A number that an uncommitted entry named may be replaced by another leader's; so only a
//! committed one counts, and only that is told to others and kept on disk, once the entry naming it is
//! durable here.
//!
//! # A cluster that went back to code from before lineages
//! That code drops the number from its log and its snapshots, and then one member may remember it where
//! others do not. So each member's hello names the number that it remembers, and no leader draws one while a
//! member names one: it puts that one back. While two members name two numbers it does nothing; those two
//! refuse each other, and say so.
use crate::members::peer_of;
use crate::mutants::mutant;
use crate::{Entry, LeaveReason, Output, Peer, Replica};
use quorumwire_interfaces::Lineage;
use quorumwire_wire::{Membership, RecordKind};

impl Replica {
    /// The lineage of its cluster, once that is committed and would be known after a crash, too. It never
    /// changes.
    #[must_use]
    pub const fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// The lineage as its log says, committed or not: replicas whose logs are equal agree on it.
    #[must_use]
    pub fn lineage_in_log(&self) -> Lineage {
        self.members.current().lineage.or(self.committed_lineage())
    }

    /// The lineage as far as it is committed. The entry that says so may not be durable here.
    pub(crate) fn committed_lineage(&self) -> Lineage {
        self.lineage
            .or(self.members.lineage_upto(self.commit_index))
    }

    /// Notes which cluster it is.
    pub(crate) fn note_lineage(&mut self) {
        if self.lineage.is_known() {
            return;
        }
        let mut upto = self.commit_index.min(self.persistence.persisted_index);
        if mutant("lineage-kept-before-durable") {
            upto = self.commit_index;
        }
        self.lineage = self.members.lineage_upto(upto);
    }

    /// Whether these are the members of another cluster of this name.
    pub(crate) fn is_of_another_lineage(&self, membership: &Membership) -> bool {
        self.committed_lineage().contradicts(membership.lineage) && !mutant("other-lineage-taken")
    }

    /// Whether there are members of another cluster of this name among these, each of which was checked. Then
    /// none is taken, and that is said.
    pub(crate) fn refuses_lineage_of(
        &mut self,
        from: Peer,
        entries: &[Entry],
        outputs: &mut Vec<Output>,
    ) -> bool {
        let memberships = entries
            .iter()
            .filter(|it| it.kind == RecordKind::Membership);
        let mut decoded = memberships.filter_map(|it| Membership::decode(it.payload()).ok());
        let other = decoded.find(|membership| self.is_of_another_lineage(membership));
        if let Some(membership) = &other {
            self.refuse_lineage(from, membership.lineage, outputs);
        }
        other.is_some()
    }

    /// What is of another cluster of this name is not taken.
    pub(crate) fn refuse_lineage(
        &mut self,
        from: Peer,
        lineage: Lineage,
        outputs: &mut Vec<Output>,
    ) {
        self.counters.ignored_other_lineage += 1;
        outputs.push(Output::OtherLineage { from, lineage });
    }

    /// Leader: gives a cluster from before lineages one.
    pub(crate) fn give_lineage(&mut self, outputs: &mut Vec<Output>) {
        if self.members.current().lineage.is_known() || !self.may_change_members() {
            return;
        }
        let lineage = self.lineage_to_give();
        if !lineage.is_known() {
            return;
        }
        if self.plane.engagement.is_some() {
            self.leave(LeaveReason::MembershipChange, outputs);
        } else if self.may_append_membership().is_ok() {
            let next = Membership {
                lineage,
                ..self.members.current().clone()
            };
            self.append_membership(next, outputs);
        }
    }

    /// The number that is to be this cluster's: the one that somebody remembers, or else a new one. None
    /// while a member is away or would drop it, and where two remember two.
    fn lineage_to_give(&self) -> Lineage {
        let mut remembered = self.committed_lineage();
        let members = self.members.current().members.iter().map(peer_of);
        for peer in members.filter(|peer| *peer != self.config.me) {
            let said = self.promise_of(peer);
            let is_here = self.connected(peer.id) == Some(peer.incarnation);
            let keeps_it = is_here && said.keeps_lineage || mutant("lineage-given-early");
            if !keeps_it || remembered.contradicts(said.lineage) {
                return Lineage::default();
            }
            if !mutant("second-lineage-drawn") {
                remembered = remembered.or(said.lineage);
            }
        }
        remembered.or(self.config.new_lineage)
    }
}
