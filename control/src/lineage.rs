//! Which cluster it is, among all of its name. The first entry carries the number, and so does every later
//! membership. Nothing of another lineage is taken in.
//!
//! # A cluster from before lineages
//! Its leader draws the number, and commits it as a membership that changes nothing else. It does so only
//! while every member is connected and says that it keeps lineages: from then on no code leads that would
//! drop the number, so no second one is ever drawn. A number that an uncommitted entry named may be replaced
//! by another leader's; so only a committed one counts, and only that is told to others and kept on disk.
use crate::members::peer_of;
use crate::mutants::mutant;
use crate::{LeaveReason, Output, Replica};
use quorumwire_interfaces::Lineage;
use quorumwire_wire::Membership;

impl Replica {
    /// The lineage of its cluster, once that is committed. It never changes.
    #[must_use]
    pub const fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// The lineage as its log says, committed or not: replicas whose logs are equal agree on it.
    #[must_use]
    pub fn lineage_in_log(&self) -> Lineage {
        self.members.current().lineage.or(self.lineage)
    }

    /// Notes which cluster it is.
    pub(crate) fn note_lineage(&mut self) {
        let committed = self.members.at(self.commit_index).1;
        self.lineage = self.lineage.or(committed.lineage);
    }

    /// Whether these are the members of another cluster of this name.
    pub(crate) fn is_of_another_lineage(&self, membership: &Membership) -> bool {
        self.lineage.contradicts(membership.lineage) && !mutant("other-lineage-taken")
    }

    /// Leader: gives a cluster from before lineages one.
    pub(crate) fn give_lineage(&mut self, outputs: &mut Vec<Output>) {
        let current = self.members.current();
        let lineage = self.lineage.or(self.config.new_lineage);
        if current.lineage.is_known() || !lineage.is_known() || !self.may_change_members() {
            return;
        }
        let me = self.config.me;
        let mut others = current
            .members
            .iter()
            .map(peer_of)
            .filter(|peer| *peer != me);
        let all_keep_it = others.all(|peer| {
            self.connected(peer.id) == Some(peer.incarnation) && self.promise_of(peer).keeps_lineage
        });
        if !all_keep_it && !mutant("lineage-given-early") {
            return;
        }
        let next = Membership {
            lineage,
            ..current.clone()
        };
        if self.plane.engagement.is_some() {
            self.leave(LeaveReason::MembershipChange, outputs);
        } else if self.may_append_membership().is_ok() {
            self.append_membership(next, outputs);
        }
    }
}
