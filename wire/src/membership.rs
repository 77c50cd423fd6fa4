//! The members of a group: payload of membership records and part of a snapshot's head.
use crate::limits::{ADDRESS_BYTES_MAX, MEMBERS_MAX, VOTERS_MAX};
use crate::{Malformed, lineage_from_proto, lineage_to_proto, peer};
use prost::Message;
use quorumwire_interfaces::{Incarnation, Lineage, ReplicaId};

/// Who takes part in a group, and how many must hold an entry to commit it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Membership {
    /// At most [`MEMBERS_MAX`], at most [`VOTERS_MAX`] of them voters; ids ascending, each once.
    pub members: Vec<Member>,
    /// How many voters must hold an entry before it is committed.
    pub quorum: CommitQuorum,
    /// Which cluster it is; none in those from before lineages.
    pub lineage: Lineage,
}

/// One member.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// Its name.
    pub id: ReplicaId,
    /// The life of it that is a member. Any other life of the same id is a stranger.
    pub incarnation: Incarnation,
    /// Where other replicas connect, such as `10.0.0.1:7400`.
    pub peer_address: String,
    /// What it counts for.
    pub role: MemberRole,
}

/// What a member counts for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MemberRole {
    /// Votes, and is counted for commitment.
    Voter,
    /// Receives the log and counts for nothing.
    Learner,
    /// A learner that becomes a voter as soon as it has caught up.
    Joining,
}

/// How many voters must hold an entry before it is committed. An election always takes a majority,
/// so both may be switched while running.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CommitQuorum {
    /// More than half.
    #[default]
    Majority,
    /// Every one: nothing commits while a voter is away (Consensus in a Box, section 3).
    All,
}

impl Membership {
    /// The member with this id, in whatever incarnation.
    #[must_use]
    pub fn member(&self, id: ReplicaId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The voters, ids ascending.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|member| member.role == MemberRole::Voter)
    }

    /// Whether this very incarnation is a voter.
    #[must_use]
    pub fn is_voter(&self, id: ReplicaId, incarnation: Incarnation) -> bool {
        self.voters()
            .any(|member| member.id == id && member.incarnation == incarnation)
    }

    /// The message form.
    #[must_use]
    pub fn to_proto(&self) -> peer::Membership {
        let members = self.members.iter().map(Member::to_proto).collect();
        let quorum = match self.quorum {
            CommitQuorum::Majority => peer::CommitQuorum::Majority,
            CommitQuorum::All => peer::CommitQuorum::All,
        };
        peer::Membership {
            members,
            quorum: quorum.into(),
            lineage: lineage_to_proto(self.lineage),
        }
    }

    /// Reads the message form, checking every limit.
    pub fn from_proto(proto: &peer::Membership) -> Result<Self, Malformed> {
        if proto.members.len() > MEMBERS_MAX {
            return Err(malformed(format!(
                "{} members, at most {MEMBERS_MAX}",
                proto.members.len()
            )));
        }
        let members = proto
            .members
            .iter()
            .map(Member::from_proto)
            .collect::<Result<Vec<_>, _>>()?;
        if !members.is_sorted_by(|a, b| a.id < b.id) {
            return Err(malformed("ids must ascend, each once"));
        }
        let quorum = match proto.quorum() {
            peer::CommitQuorum::Majority => CommitQuorum::Majority,
            peer::CommitQuorum::All => CommitQuorum::All,
            peer::CommitQuorum::Unspecified => {
                return Err(malformed(format!("commit quorum {}", proto.quorum)));
            }
        };
        let membership = Self {
            members,
            quorum,
            lineage: lineage_from_proto(proto.lineage.as_ref()),
        };
        let voter_count = membership.voters().count();
        if voter_count > VOTERS_MAX {
            return Err(malformed(format!(
                "{voter_count} voters, at most {VOTERS_MAX}"
            )));
        }
        Ok(membership)
    }

    /// The payload of a membership record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.to_proto().encode_to_vec()
    }

    /// Reads the payload of a membership record.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let proto = peer::Membership::decode(payload).map_err(|e| malformed(e.to_string()))?;
        Self::from_proto(&proto)
    }
}

impl Member {
    fn to_proto(&self) -> peer::Member {
        let role = match self.role {
            MemberRole::Voter => peer::MemberRole::Voter,
            MemberRole::Learner => peer::MemberRole::Learner,
            MemberRole::Joining => peer::MemberRole::Joining,
        };
        peer::Member {
            replica: u32::from(self.id.0),
            incarnation: self.incarnation.0,
            peer_address: self.peer_address.clone(),
            role: role.into(),
        }
    }

    fn from_proto(proto: &peer::Member) -> Result<Self, Malformed> {
        let Ok(id) = u16::try_from(proto.replica) else {
            return Err(malformed(format!("replica id {}", proto.replica)));
        };
        if proto.peer_address.len() > ADDRESS_BYTES_MAX {
            return Err(malformed(format!("address of replica {id} is too long")));
        }
        let role = match proto.role() {
            peer::MemberRole::Voter => MemberRole::Voter,
            peer::MemberRole::Learner => MemberRole::Learner,
            peer::MemberRole::Joining => MemberRole::Joining,
            peer::MemberRole::Unspecified => {
                return Err(malformed(format!("role {} of replica {id}", proto.role)));
            }
        };
        Ok(Self {
            id: ReplicaId(id),
            incarnation: Incarnation(proto.incarnation),
            peer_address: proto.peer_address.clone(),
            role,
        })
    }
}

fn malformed(problem: impl Into<String>) -> Malformed {
    Malformed::new("membership", problem)
}
