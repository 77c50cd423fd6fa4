//! `quorumwire quorum`: how many voters must hold a write before it is acknowledged.
use super::confirm;
use super::view::{ClusterView, Target, ask_leader, gather_with_leader, listed};
use anyhow::Context as _;
use quorumwire_node::report::Report;
use quorumwire_ops::http::{MembersRequest, QuorumWord};
use serde_json::Value;
use std::process::ExitCode;

/// Shown, or switched while running. An election always takes a majority.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire quorum --addr 10.0.0.10:7480       # what holds
  quorumwire quorum all --addr 10.0.0.10:7480")]
pub struct Arguments {
    /// How many [default: show what holds]
    #[arg(value_enum)]
    quorum: Option<Quorum>,
    /// Do it without asking, also if writes stop
    #[arg(long, requires = "quorum")]
    yes: bool,
    #[command(flatten)]
    target: Target,
}

/// How many voters must hold an entry to commit it.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Quorum {
    /// More than half of the voters.
    Majority,
    /// Every voter: nothing commits while one is away.
    All,
}

impl From<Quorum> for QuorumWord {
    fn from(quorum: Quorum) -> Self {
        match quorum {
            Quorum::Majority => Self::Majority,
            Quorum::All => Self::All,
        }
    }
}

/// Shows it, or sets it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(quorum) = arguments.quorum.map(QuorumWord::from) {
        if quorum == QuorumWord::All && !arguments.yes {
            let before = gather_with_leader(&arguments.target)?;
            let leader = before.leader().with_context(|| before.why_no_leader())?;
            if let Some(stop) = who_stops_writes(leader) {
                confirm::unless_yes(false, &stop)?;
            }
        }
        let request = MembersRequest::Quorum { quorum };
        let _: Value = ask_leader(&arguments.target, "/v1/members", &request)?;
        outln!("{}", in_words(quorum))?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = ClusterView::gather(&arguments.target)?;
    let report = view.best_report().with_context(|| view.why_no_leader())?;
    let quorum = match report.quorum.as_str() {
        "all" => QuorumWord::All,
        _ => QuorumWord::Majority,
    };
    outln!("{}", in_words(quorum))?;
    Ok(ExitCode::SUCCESS)
}

fn in_words(quorum: QuorumWord) -> &'static str {
    match quorum {
        QuorumWord::Majority => "majority: a majority of the voters must hold a write",
        QuorumWord::All => "all: every voter must hold a write",
    }
}

/// Which voters are away, so that no write would be acknowledged where all must hold it.
fn who_stops_writes(leader: &Report) -> Option<String> {
    let away = leader.silent_voters();
    (!away.is_empty()).then(|| {
        format!(
            "the leader does not hear replica {}: with quorum all, writes stop until it is back or is removed",
            listed(&away)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::who_stops_writes;
    use quorumwire_node::report::{FollowerReport, MemberReport, Report};

    #[test]
    fn who_is_away_when_all_must_hold_a_write_is_named() {
        let follower = |id, active| FollowerReport {
            id,
            active,
            ..FollowerReport::default()
        };
        let mut leader = Report {
            members: (0..4).map(|id| MemberReport::voter(id, None)).collect(),
            followers: vec![follower(1, true), follower(2, true), follower(3, true)],
            ..Report::default()
        };
        assert_eq!(who_stops_writes(&leader), None);
        leader.followers[0].active = false;
        leader.followers.pop();
        let said = who_stops_writes(&leader).unwrap();
        assert!(said.contains("replica 1, 3"), "{said}");
        leader.members[1].voter = false;
        leader.members.truncate(3);
        assert_eq!(who_stops_writes(&leader), None);
    }
}
