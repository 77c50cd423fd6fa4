//! Messages to and from their wire form (a protobuf part and an attachment), and what is kept on disk to
//! and from its form there. What they mean is not looked at here, only whether they are what they seem.
use crate::{Body, HardState, Message, Peer, SnapshotMeta};
use bytes::Bytes;
use quorumwire_interfaces::{GroupId, Incarnation, Index, ReplicaId, Term};
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, ATTACHMENT_BYTES_MAX, VOTERS_MAX};
use quorumwire_wire::peer::{self, PeerMessage, peer_message};
use quorumwire_wire::{Malformed, RECORD_HEADER_BYTES, SnapshotHead};

impl Message {
    /// The wire form: the protobuf part, and the pieces whose concatenation is the attachment.
    #[must_use]
    pub fn to_proto(&self, group: GroupId) -> (PeerMessage, Vec<Bytes>) {
        let message = PeerMessage {
            group: group.0,
            term: self.term.0,
            body: Some(body_to_proto(&self.body)),
        };
        (message, attachment_of(&self.body))
    }

    /// Reads the wire form. Malformed: no body, a body that is the node's own affair (`Hello`, `Goodbye`,
    /// `Forward`, `ForwardReply`, `FastTermKey`), an attachment where none belongs or none where one does, a
    /// number beyond its limits. The group is the caller's to check; records in the attachment are checked by
    /// [`crate::Replica::step`].
    pub fn from_proto(message: PeerMessage, attachment: Bytes) -> Result<Self, Malformed> {
        if attachment.len() > ATTACHMENT_BYTES_MAX {
            return Err(malformed(format!(
                "attachment of {} bytes, at most {ATTACHMENT_BYTES_MAX}",
                attachment.len()
            )));
        }
        let body = message.body.ok_or_else(|| malformed("no body"))?;
        let body = body_from_proto(body, attachment)?;
        Ok(Self {
            term: Term(within_range("term", message.term)?),
            body,
        })
    }
}

impl HardState {
    /// As a record of the log holds it.
    #[must_use]
    pub fn to_proto(&self) -> peer::HardState {
        let vote = self.vote.unwrap_or_default();
        peer::HardState {
            term: self.term.0,
            voted: self.vote.is_some(),
            vote_replica: u32::from(vote.id.0),
            vote_incarnation: vote.incarnation.0,
            commit_index: self.commit_index.0,
        }
    }

    /// Reads what [`to_proto`](Self::to_proto) made. A number that no replica has stays one: the vote is
    /// given, to nobody else.
    #[must_use]
    pub fn from_proto(state: &peer::HardState) -> Self {
        let vote = Peer {
            id: ReplicaId(u16::try_from(state.vote_replica).unwrap_or(u16::MAX)),
            incarnation: Incarnation(state.vote_incarnation),
        };
        Self {
            term: Term(state.term),
            vote: state.voted.then_some(vote),
            commit_index: Index(state.commit_index),
        }
    }
}

impl From<&SnapshotHead> for SnapshotMeta {
    fn from(head: &SnapshotHead) -> Self {
        Self {
            last_index: head.last_index,
            last_term: head.last_term,
            membership: head.membership.clone(),
            membership_index: head.membership_index,
            log_time: head.log_time,
        }
    }
}

/// The pieces of a message that travel as they are.
fn attachment_of(body: &Body) -> Vec<Bytes> {
    match body {
        Body::Bootstrap { record } => vec![record.clone()],
        Body::Append { records, .. } => records.clone(),
        Body::SnapshotChunk { bytes, .. } => vec![bytes.clone()],
        Body::Fresh { .. }
        | Body::VoteRequest { .. }
        | Body::VoteReply { .. }
        | Body::AppendReply { .. }
        | Body::SnapshotReply { .. }
        | Body::TransferNow
        | Body::EngageOffer { .. }
        | Body::Engaged { .. } => Vec::new(),
    }
}

fn body_to_proto(body: &Body) -> peer_message::Body {
    use peer_message::Body as Proto;
    match body {
        Body::Fresh {
            to_incarnation,
            peer_address,
            join,
            initial_members,
        } => Proto::Fresh(peer::Fresh {
            to_incarnation: to_incarnation.0,
            peer_address: peer_address.clone(),
            join: *join,
            initial_members: initial_members.iter().map(|id| u32::from(id.0)).collect(),
        }),
        Body::Bootstrap { .. } => Proto::Bootstrap(peer::Bootstrap {}),
        Body::VoteRequest {
            last_index,
            last_term,
            pre_vote,
            transfer,
            engage,
        } => Proto::VoteRequest(peer::VoteRequest {
            last_index: last_index.0,
            last_term: last_term.0,
            pre_vote: *pre_vote,
            transfer: *transfer,
            engage: *engage,
        }),
        Body::VoteReply {
            granted,
            pre_vote,
            engaged,
        } => Proto::VoteReply(peer::VoteReply {
            granted: *granted,
            pre_vote: *pre_vote,
            engaged: *engaged,
        }),
        Body::Append {
            previous_index,
            previous_term,
            commit_index,
            round,
            ..
        } => Proto::Append(peer::Append {
            previous_index: previous_index.0,
            previous_term: previous_term.0,
            commit_index: commit_index.0,
            round: *round,
        }),
        Body::AppendReply {
            round,
            rejected,
            index,
            hint_index,
            hint_term,
        } => Proto::AppendReply(peer::AppendReply {
            round: *round,
            rejected: *rejected,
            index: index.0,
            hint_index: hint_index.0,
            hint_term: hint_term.0,
        }),
        Body::SnapshotChunk {
            last_index,
            last_term,
            offset,
            total_bytes,
            round,
            ..
        } => Proto::SnapshotChunk(peer::SnapshotChunk {
            last_index: last_index.0,
            last_term: last_term.0,
            offset: *offset,
            total_bytes: *total_bytes,
            round: *round,
        }),
        Body::SnapshotReply {
            last_index,
            offset,
            installed,
            rejected,
            round,
        } => Proto::SnapshotReply(peer::SnapshotReply {
            last_index: last_index.0,
            offset: *offset,
            installed: *installed,
            rejected: *rejected,
            round: *round,
        }),
        Body::TransferNow => Proto::TransferNow(peer::TransferNow {}),
        Body::EngageOffer { start_index } => Proto::EngageOffer(peer::EngageOffer {
            start_index: start_index.0,
        }),
        Body::Engaged { engaged, index } => Proto::Engaged(peer::Engaged {
            engaged: *engaged,
            index: index.0,
        }),
    }
}

fn body_from_proto(body: peer_message::Body, attachment: Bytes) -> Result<Body, Malformed> {
    use peer_message::Body as Proto;
    match &body {
        Proto::Append(_) | Proto::SnapshotChunk(_) => {}
        Proto::Bootstrap(_) if attachment.len() >= RECORD_HEADER_BYTES => {}
        Proto::Bootstrap(_) => return Err(malformed("bootstrap without a record")),
        Proto::Hello(_)
        | Proto::Goodbye(_)
        | Proto::Forward(_)
        | Proto::ForwardSession(_)
        | Proto::ForwardReply(_)
        | Proto::FastTermKey(_) => {
            return Err(malformed("the node's own message, not a replica's"));
        }
        Proto::Fresh(_)
        | Proto::VoteRequest(_)
        | Proto::VoteReply(_)
        | Proto::AppendReply(_)
        | Proto::SnapshotReply(_)
        | Proto::TransferNow(_)
        | Proto::EngageOffer(_)
        | Proto::Engaged(_) => {
            if !attachment.is_empty() {
                return Err(malformed("attachment where none belongs"));
            }
        }
    }
    Ok(match body {
        Proto::Fresh(fresh) => fresh_from_proto(fresh)?,
        Proto::Bootstrap(_) => Body::Bootstrap { record: attachment },
        Proto::VoteRequest(request) => Body::VoteRequest {
            last_index: Index(within_range("last_index", request.last_index)?),
            last_term: Term(within_range("last_term", request.last_term)?),
            pre_vote: request.pre_vote,
            transfer: request.transfer,
            engage: request.engage,
        },
        Proto::VoteReply(reply) => Body::VoteReply {
            granted: reply.granted,
            pre_vote: reply.pre_vote,
            engaged: reply.engaged,
        },
        Proto::Append(append) => Body::Append {
            previous_index: Index(within_range("previous_index", append.previous_index)?),
            previous_term: Term(within_range("previous_term", append.previous_term)?),
            commit_index: Index(within_range("commit_index", append.commit_index)?),
            round: within_range("round", append.round)?,
            records: if attachment.is_empty() {
                Vec::new()
            } else {
                vec![attachment]
            },
        },
        Proto::AppendReply(reply) => Body::AppendReply {
            round: within_range("round", reply.round)?,
            rejected: reply.rejected,
            index: Index(within_range("index", reply.index)?),
            hint_index: Index(within_range("hint_index", reply.hint_index)?),
            hint_term: Term(within_range("hint_term", reply.hint_term)?),
        },
        Proto::SnapshotChunk(chunk) => Body::SnapshotChunk {
            last_index: Index(within_range("last_index", chunk.last_index)?),
            last_term: Term(within_range("last_term", chunk.last_term)?),
            offset: within_range("offset", chunk.offset)?,
            total_bytes: within_range("total_bytes", chunk.total_bytes)?,
            round: within_range("round", chunk.round)?,
            bytes: attachment,
        },
        Proto::SnapshotReply(reply) => Body::SnapshotReply {
            last_index: Index(within_range("last_index", reply.last_index)?),
            offset: within_range("offset", reply.offset)?,
            installed: reply.installed,
            rejected: reply.rejected,
            round: within_range("round", reply.round)?,
        },
        Proto::TransferNow(_) => Body::TransferNow,
        Proto::EngageOffer(offer) => Body::EngageOffer {
            start_index: Index(within_range("start_index", offer.start_index)?),
        },
        Proto::Engaged(engaged) => Body::Engaged {
            engaged: engaged.engaged,
            index: Index(within_range("index", engaged.index)?),
        },
        Proto::Hello(_)
        | Proto::Goodbye(_)
        | Proto::Forward(_)
        | Proto::ForwardSession(_)
        | Proto::ForwardReply(_)
        | Proto::FastTermKey(_) => {
            return Err(malformed("the node's own message, not a replica's"));
        }
    })
}

/// Counted numbers stay far from overflow: half of what 64 bits hold is beyond any real log.
pub(crate) const NUMBER_MAX: u64 = u64::MAX / 2;

fn fresh_from_proto(fresh: peer::Fresh) -> Result<Body, Malformed> {
    if fresh.peer_address.len() > ADDRESS_BYTES_MAX {
        return Err(malformed("peer_address is too long"));
    }
    Ok(Body::Fresh {
        to_incarnation: Incarnation(fresh.to_incarnation),
        peer_address: fresh.peer_address,
        join: fresh.join,
        initial_members: initial_members(&fresh.initial_members)?,
    })
}

/// Ids of the members that a new cluster begins with.
fn initial_members(given: &[u32]) -> Result<Vec<ReplicaId>, Malformed> {
    if given.len() > VOTERS_MAX {
        let given = given.len();
        return Err(malformed(format!(
            "{given} initial members, at most {VOTERS_MAX}"
        )));
    }
    let id = |id: &u32| u16::try_from(*id).map(ReplicaId);
    let ids: Result<Vec<_>, _> = given.iter().map(id).collect();
    ids.map_err(|_| malformed("initial_members: a replica id beyond 65,535"))
}

fn within_range(field: &str, number: u64) -> Result<u64, Malformed> {
    if number > NUMBER_MAX {
        return Err(malformed(format!(
            "{field} is {number}, at most {NUMBER_MAX}"
        )));
    }
    Ok(number)
}

fn malformed(problem: impl Into<String>) -> Malformed {
    Malformed {
        what: "PeerMessage",
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_state_comes_back_with_and_without_a_vote() {
        let vote = Peer {
            id: ReplicaId(3),
            incarnation: Incarnation(9),
        };
        for vote in [None, Some(vote), Some(Peer::default())] {
            let state = HardState {
                term: Term(7),
                vote,
                commit_index: Index(5),
            };
            assert_eq!(HardState::from_proto(&state.to_proto()), state);
        }
    }
}
