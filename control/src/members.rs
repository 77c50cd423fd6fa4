//! The memberships in the log, newest in force at once; and what a wished-for change makes of one.
//! Does not append or count anything.
use crate::mutants::mutant;
use crate::{MemberChange, Peer, Refusal};
use quorumwire_interfaces::{Incarnation, Index, Lineage, ReplicaId};
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, MEMBERS_MAX, VOTERS_MAX};
use quorumwire_wire::{Member, MemberRole, Membership};

/// Every membership from the snapshot's (or the first) to the newest, by the index that set it. An
/// entry takes effect when it is in the log and is taken back when it is cut off.
#[derive(Debug, Default)]
pub(crate) struct Members {
    history: Vec<(Index, Membership)>,
    nobody: Membership,
}

impl Members {
    /// The membership in force; empty if none is known.
    pub(crate) fn current(&self) -> &Membership {
        self.history.last().map_or(&self.nobody, |(_, m)| m)
    }

    /// The entry that set it; 0 if none is known.
    pub(crate) fn index(&self) -> Index {
        self.history.last().map_or(Index(0), |(index, _)| *index)
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.history.is_empty()
    }

    /// The membership that was in force at an index, and the entry that set it.
    pub(crate) fn at(&self, index: Index) -> (Index, &Membership) {
        self.history
            .iter()
            .rev()
            .find(|(set_at, _)| *set_at <= index)
            .map_or((Index(0), &self.nobody), |(set_at, m)| (*set_at, m))
    }

    /// Whether a membership set at this index or before, as far as it is remembered, names this life.
    pub(crate) fn has_named(&self, peer: Peer, upto: Index) -> bool {
        let names = |(set_at, membership): &(Index, Membership)| {
            let member = membership.member(peer.id);
            *set_at <= upto && member.is_some_and(|it| it.incarnation == peer.incarnation)
        };
        self.history.iter().any(names)
    }

    /// The lineage that a membership set at this index or before names, as far as they are remembered. Code
    /// from before lineages may have left it out of later ones.
    pub(crate) fn lineage_upto(&self, upto: Index) -> Lineage {
        let settled = self
            .history
            .iter()
            .take_while(|(set_at, _)| *set_at <= upto);
        settled.fold(Lineage::default(), |known, (_, it)| known.or(it.lineage))
    }

    pub(crate) fn push(&mut self, index: Index, membership: Membership) {
        assert!(index > self.index() || !self.is_known(), "membership order");
        self.history.push((index, membership));
    }

    /// Takes back what was set at this index or behind it; tells whether anything was.
    pub(crate) fn truncate_from(&mut self, index: Index) -> bool {
        let kept = self.history.partition_point(|(set_at, _)| *set_at < index);
        let changed = kept < self.history.len();
        self.history.truncate(kept);
        changed
    }

    /// Forgets what was replaced at or before this index.
    pub(crate) fn forget(&mut self, upto: Index) {
        let settled = self.history.partition_point(|(set_at, _)| *set_at <= upto);
        self.history.drain(..settled.saturating_sub(1));
    }

    pub(crate) fn reset(&mut self, index: Index, membership: Membership) {
        self.history = vec![(index, membership)];
    }

    pub(crate) fn is_voter(&self, peer: Peer) -> bool {
        self.current().is_voter(peer.id, peer.incarnation)
    }

    pub(crate) fn is_member(&self, peer: Peer) -> bool {
        self.current()
            .member(peer.id)
            .is_some_and(|member| member.incarnation == peer.incarnation)
    }
}

/// The one a member entry names.
pub(crate) fn peer_of(member: &Member) -> Peer {
    Peer {
        id: member.id,
        incarnation: member.incarnation,
    }
}

/// More than half of so many voters.
pub(crate) const fn majority_of(voter_count: usize) -> usize {
    voter_count / 2 + 1
}

/// What the change makes of the membership, or why it is refused. `connected` tells the life in
/// which a replica is connected now.
pub(crate) fn changed(
    membership: &Membership,
    change: &MemberChange,
    connected: impl Fn(ReplicaId) -> Option<Incarnation>,
) -> Result<Membership, Refusal> {
    let mut next = membership.clone();
    match change {
        MemberChange::Add {
            id,
            role,
            peer_address,
        } => add(&mut next, *id, *role, peer_address, connected(*id))?,
        MemberChange::Promote(id) => {
            room_for_voter(membership, false)?;
            let member = member_mut(&mut next, *id)?;
            if member.role == MemberRole::Voter {
                return invalid(format!("replica {id} is a voter already"));
            }
            member.role = MemberRole::Voter;
        }
        MemberChange::Remove(id) => {
            let role = member_mut(&mut next, *id)?.role;
            if role == MemberRole::Voter && membership.voters().count() == 1 {
                return invalid(format!("replica {id} is the last voter"));
            }
            next.members.retain(|member| member.id != *id);
        }
        MemberChange::Quorum(quorum) => {
            if membership.quorum == *quorum {
                return invalid("that quorum is in force already");
            }
            next.quorum = *quorum;
        }
        MemberChange::Move { peer, peer_address } => {
            let member = member_mut(&mut next, peer.id)?;
            if peer_of(member) != *peer && !mutant("move-of-another-life") {
                let id = peer.id;
                return invalid(format!("another life of replica {id} is the member"));
            }
            fits_address(peer_address)?;
            if member.peer_address == *peer_address {
                return invalid(format!("replica {} is there already", peer.id));
            }
            member.peer_address.clone_from(peer_address);
        }
    }
    Ok(next)
}

fn fits_address(peer_address: &str) -> Result<(), Refusal> {
    if peer_address.len() > ADDRESS_BYTES_MAX {
        return invalid(format!("an address has at most {ADDRESS_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// The membership in which a replica's old life gives way to its new one, as a learner. For a voter that
/// removes one voter and adds none: a single-server change. Its address stays: that the new life is elsewhere
/// is its own word, and whoever looks for it there tells by [`MemberChange::Move`].
pub(crate) fn changed_life(membership: &Membership, fresh: Peer) -> Membership {
    let mut next = membership.clone();
    for member in &mut next.members {
        if member.id == fresh.id {
            member.incarnation = fresh.incarnation;
            member.role = match member.role {
                MemberRole::Voter | MemberRole::Joining => MemberRole::Joining,
                MemberRole::Learner => MemberRole::Learner,
            };
        }
    }
    next
}

fn add(
    next: &mut Membership,
    id: ReplicaId,
    role: MemberRole,
    peer_address: &str,
    connected: Option<Incarnation>,
) -> Result<(), Refusal> {
    if next.member(id).is_some() {
        return invalid(format!("replica {id} is a member already"));
    }
    match role {
        MemberRole::Voter => {
            return invalid("a new member begins as a learner, or as joining to vote later");
        }
        MemberRole::Joining => room_for_voter(next, true)?,
        MemberRole::Learner => {}
    }
    if next.members.len() >= MEMBERS_MAX {
        return invalid(format!("at most {MEMBERS_MAX} members"));
    }
    fits_address(peer_address)?;
    let Some(incarnation) = connected else {
        return Err(Refusal::NotConnected { id });
    };
    let place = next.members.partition_point(|member| member.id < id);
    next.members.insert(
        place,
        Member {
            id,
            incarnation,
            peer_address: peer_address.into(),
            role,
        },
    );
    Ok(())
}

fn room_for_voter(membership: &Membership, with_joining: bool) -> Result<(), Refusal> {
    let count = membership
        .members
        .iter()
        .filter(|member| match member.role {
            MemberRole::Voter => true,
            MemberRole::Joining => with_joining,
            MemberRole::Learner => false,
        })
        .count();
    if count >= VOTERS_MAX {
        return invalid(format!("at most {VOTERS_MAX} voters"));
    }
    Ok(())
}

fn member_mut(membership: &mut Membership, id: ReplicaId) -> Result<&mut Member, Refusal> {
    membership
        .members
        .iter_mut()
        .find(|member| member.id == id)
        .ok_or_else(|| Refusal::Invalid(format!("replica {id} is not a member")))
}

fn invalid<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Invalid(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_life_takes_the_old_ones_place_and_leaves_the_address() {
        let member = |incarnation| Member {
            id: ReplicaId(2),
            incarnation: Incarnation(incarnation),
            peer_address: "listed:7400".to_owned(),
            role: MemberRole::Learner,
        };
        let before = Membership {
            members: vec![member(1)],
            ..Membership::default()
        };
        let after = changed_life(&before, peer_of(&member(5)));
        assert_eq!(after.members, [member(5)]);
    }

    #[test]
    fn a_lineage_that_a_later_membership_leaves_out_still_counts() {
        let mut members = Members::default();
        for (index, lineage) in [(1, 0), (3, 7), (5, 0)] {
            let lineage = Lineage(lineage);
            let membership = Membership {
                lineage,
                ..Membership::default()
            };
            members.push(Index(index), membership);
        }
        let upto = [0, 2, 3, 5, 9].map(|index| members.lineage_upto(Index(index)).0);
        assert_eq!(upto, [0, 0, 7, 7, 7]);
    }
}
