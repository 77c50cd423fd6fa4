//! Turns of the protocol that every run must have taken, by what a replica puts out.
use quorumwire_control::{Body, Output, Role};

/// All of them.
pub const OUTCOMES: [&str; 13] = [
    "append rejected",
    "asked for a vote beforehand",
    "asked for a vote, to lead by a transfer",
    "asked others to begin with",
    "became a learner",
    "left out",
    "log cut",
    "not in the fast term",
    "snapshot asked for",
    "snapshot read beyond its first chunk",
    "told to lead",
    "vote given",
    "vote refused",
];

/// What an output stands for, if it is one of these.
pub fn of(output: &Output) -> Option<&'static str> {
    match output {
        Output::Send { message, .. } => match &message.body {
            Body::Bootstrap { .. } => Some("asked others to begin with"),
            Body::VoteRequest { transfer: true, .. } => {
                Some("asked for a vote, to lead by a transfer")
            }
            Body::VoteRequest { pre_vote: true, .. } => Some("asked for a vote beforehand"),
            Body::VoteReply { granted: true, .. } => Some("vote given"),
            Body::VoteReply { granted: false, .. } => Some("vote refused"),
            Body::AppendReply { rejected: true, .. } => Some("append rejected"),
            Body::TransferNow => Some("told to lead"),
            Body::Engaged { engaged: false, .. } => Some("not in the fast term"),
            Body::Fresh { .. }
            | Body::VoteRequest { .. }
            | Body::Append { .. }
            | Body::AppendReply { .. }
            | Body::SnapshotChunk { .. }
            | Body::SnapshotReply { .. }
            | Body::EngageOffer { .. }
            | Body::Engaged { .. } => None,
        },
        Output::RoleChanged(change) => match change.role {
            Role::Learner => Some("became a learner"),
            Role::Joining => Some("left out"),
            Role::Leader | Role::PreCandidate | Role::Candidate | Role::Follower => None,
        },
        Output::TakeSnapshot => Some("snapshot asked for"),
        Output::ReadSnapshot { offset: 1.., .. } => Some("snapshot read beyond its first chunk"),
        Output::Truncated(_) => Some("log cut"),
        Output::Persist { .. }
        | Output::Committed(_)
        | Output::Read(..)
        | Output::Done(_)
        | Output::Refused(..)
        | Output::OtherLineage { .. }
        | Output::MembershipChanged(_)
        | Output::ReadSnapshot { .. }
        | Output::StoreSnapshotChunk { .. }
        | Output::InstallSnapshot { .. }
        | Output::Engage(_)
        | Output::Disengage(_)
        | Output::PlaneHeartbeat { .. }
        | Output::PlanePersisted(_) => None,
    }
}
