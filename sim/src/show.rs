//! Outputs and messages as one readable line each.
use quorumwire_control::{Body, Entry, Message, Output};
use quorumwire_wire::{CommitQuorum, MemberRole, Membership, Record, RecordKind};

/// One output.
pub(crate) fn output(output: &Output) -> String {
    match output {
        Output::Persist {
            ticket,
            hard_state,
            entries: written,
        } => {
            let hard = hard_state.map_or(String::new(), |hard| {
                let vote = hard
                    .vote
                    .map_or(String::new(), |v| format!(" vote={}", v.id));
                format!(" term={}{vote} commit={}", hard.term, hard.commit_index)
            });
            let written = if written.is_empty() {
                String::new()
            } else {
                format!(" [{}]", entries(written))
            };
            format!("persist #{}{hard}{written}", ticket.0)
        }
        Output::Send { to, message: said } => format!("send {} {}", to.id, message(said)),
        Output::Committed(index) => format!("commit {index}"),
        Output::Read(ticket, index) => format!("read r{} may be served at {index}", ticket.0),
        Output::Done(ticket) => format!("done q{}", ticket.0),
        Output::Refused(ticket, refusal) => format!("refused {}: {refusal}", ticket.0),
        Output::RoleChanged(change) => {
            let leader = change.leader.map_or("-".into(), |id| id.to_string());
            format!("is {:?} term={} leader={leader}", change.role, change.term)
        }
        Output::Truncated(index) => format!("cut from {index}"),
        Output::OtherLineage { from, lineage } => {
            format!("{} is of lineage {}", from.id, lineage.0)
        }
        Output::MembershipChanged(m) => format!("members {}", membership(m)),
        Output::ReadSnapshot {
            last_index, offset, ..
        } => format!("read snapshot {last_index} from {offset}"),
        Output::StoreSnapshotChunk {
            last_index,
            offset,
            bytes,
        } => format!("store snapshot {last_index} at {offset} +{}", bytes.len()),
        Output::InstallSnapshot { last_index, .. } => format!("install snapshot {last_index}"),
        Output::TakeSnapshot => "asks for a snapshot".into(),
        Output::Engage(engage) => format!(
            "engage plane t{} behind {}@{} slot {} of {} leader {}",
            engage.term,
            engage.last_index,
            engage.last_term,
            engage.me,
            engage.voters.len(),
            engage.leader
        ),
        Output::Disengage(reason) => format!("disengage plane: {}", reason.name()),
        Output::PlaneHeartbeat { round } => format!("plane heartbeat {round}"),
        Output::PlanePersisted(index) => format!("plane persisted {index}"),
    }
}

pub(crate) fn membership(membership: &Membership) -> String {
    let members: Vec<String> = membership
        .members
        .iter()
        .map(|m| {
            let life = if m.incarnation.0 == 1 {
                String::new()
            } else {
                format!("/{}", m.incarnation.0)
            };
            let mark = match m.role {
                MemberRole::Voter => "",
                MemberRole::Learner => "(learner)",
                MemberRole::Joining => "(joining)",
            };
            format!("{}{life}{mark}", m.id)
        })
        .collect();
    let quorum = match membership.quorum {
        CommitQuorum::Majority => "",
        CommitQuorum::All => " quorum=all",
    };
    format!("{}{quorum}", members.join(","))
}

fn entries(list: &[Entry]) -> String {
    let shown: Vec<String> = list
        .iter()
        .map(|e| entry(e.index.0, e.term.0, e.kind, e.payload()))
        .collect();
    shown.join(" ")
}

fn entry(index: u64, term: u64, kind: RecordKind, payload: &[u8]) -> String {
    let content = match kind {
        RecordKind::NoOp => "noop".into(),
        RecordKind::Command if payload.len() > 20 => format!("{} bytes", payload.len()),
        RecordKind::SessionCommand => "session command".into(),
        RecordKind::Fragment => "fragment".into(),
        RecordKind::Bundle => "bundle".into(),
        RecordKind::Command => String::from_utf8_lossy(payload).into_owned(),
        RecordKind::Membership => "members".into(),
        RecordKind::Tick => "tick".into(),
        RecordKind::HardState | RecordKind::Durable | RecordKind::Base => "not an entry".into(),
    };
    format!("{index}@{term}:{content}")
}

pub(crate) fn message(message: &Message) -> String {
    format!("t{} {}", message.term, body(&message.body))
}

pub(crate) fn body(body: &Body) -> String {
    match body {
        Body::Fresh { join, .. } => if *join { "Fresh join" } else { "Fresh" }.into(),
        Body::Bootstrap { .. } => "Bootstrap".into(),
        Body::VoteRequest {
            last_index,
            last_term,
            pre_vote,
            transfer,
            engage,
        } => {
            let kind = if *pre_vote { "PreVote" } else { "Vote" };
            let transfer = if *transfer { " transfer" } else { "" };
            let engage = if *engage { " engage" } else { "" };
            format!("{kind}Request last={last_index}@{last_term}{transfer}{engage}")
        }
        Body::VoteReply {
            granted,
            pre_vote,
            engaged,
        } => {
            let kind = if *pre_vote { "PreVote" } else { "Vote" };
            let answer = if *granted { "granted" } else { "refused" };
            let engaged = if *engaged { " engaged" } else { "" };
            format!("{kind}Reply {answer}{engaged}")
        }
        Body::Append {
            previous_index,
            previous_term,
            commit_index,
            round,
            records: pieces,
        } => format!(
            "Append after {previous_index}@{previous_term} [{}] commit={commit_index} round={round}",
            records(pieces)
        ),
        Body::AppendReply {
            round,
            rejected,
            index,
            hint_index,
            hint_term,
        } => {
            if *rejected {
                format!("AppendReply rejected {index} hint={hint_index}@{hint_term} round={round}")
            } else {
                format!("AppendReply has {index} round={round}")
            }
        }
        Body::SnapshotChunk {
            last_index,
            last_term,
            offset,
            total_bytes,
            bytes,
            ..
        } => format!(
            "SnapshotChunk {last_index}@{last_term} at {offset} +{} of {total_bytes}",
            bytes.len()
        ),
        Body::SnapshotReply {
            last_index,
            offset,
            installed,
            rejected,
            ..
        } => {
            if *installed {
                format!("SnapshotReply {last_index} installed")
            } else if *rejected {
                format!("SnapshotReply {last_index} rejected")
            } else {
                format!("SnapshotReply {last_index} next={offset}")
            }
        }
        Body::TransferNow => "TransferNow".into(),
        Body::EngageOffer { start_index } => format!("EngageOffer start={start_index}"),
        Body::Engaged { engaged, index } => {
            let word = if *engaged { "Engaged" } else { "NotEngaged" };
            format!("{word} has {index}")
        }
    }
}

fn records(pieces: &[bytes::Bytes]) -> String {
    let mut shown = Vec::new();
    for piece in pieces {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            match Record::decode(rest) {
                Ok(r) => {
                    shown.push(entry(r.index.0, r.term.0, r.kind, r.payload));
                    rest = &rest[r.record_bytes..];
                }
                Err(error) => {
                    shown.push(error.to_string());
                    rest = &[];
                }
            }
        }
    }
    if shown.len() > 6 {
        return format!("{} .. {}", shown[0], shown[shown.len() - 1]);
    }
    shown.join(" ")
}
