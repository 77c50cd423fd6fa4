//! `quorumwire member`: who takes part in a cluster.
use super::ask::AskError;
use super::confirm;
use super::progress::Progress;
use super::status::{self, columns};
use super::view::{
    ClusterView, POLL_INTERVAL, Target, as_text, ask_leader, ask_leader_while, gather_with_leader,
    listed, try_again,
};
use anyhow::{Context as _, bail};
use quorumwire_node::options::reachable_argument;
use quorumwire_node::report::{MemberReport, Report};
use quorumwire_ops::http::{ErrorCode, MembersRequest};
use serde_json::Value;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// List, add, promote or remove members.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the members
    List {
        #[command(flatten)]
        target: Target,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Take a running replica in; it votes as soon as it has caught up
    #[command(after_help = "\
Example: the replica is started first, and waits
  quorumwire server --id 3 --dir data/3 --join --members 0=10.0.0.10:7400,1=... ...
  quorumwire member add --id 3 --peer 10.0.0.13:7400 --addr 10.0.0.10:7480")]
    Add {
        /// Its id: what its server was started with
        #[arg(long, value_name = "N")]
        id: u16,
        /// Where other replicas connect to it: its --listen-peer or --advertise-peer; the leader looks for it
        /// there
        #[arg(long, value_name = "HOST:PORT", value_parser = reachable_argument)]
        peer: String,
        /// It shall receive everything and not vote
        #[arg(long)]
        learner: bool,
        /// Seconds to wait until it votes
        #[arg(long, value_name = "S", default_value_t = 120,
              value_parser = clap::value_parser!(u64).range(1..=86_400))]
        timeout_s: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Let a learner vote
    Promote {
        /// Its id
        #[arg(long, value_name = "N")]
        id: u16,
        #[command(flatten)]
        target: Target,
    },
    /// Take a member out; its server can be stopped afterwards
    Remove {
        /// Its id
        #[arg(long, value_name = "N")]
        id: u16,
        /// Do it without asking, also where no other voter may fail afterwards
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        target: Target,
    },
}

/// Shows or changes the members.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::List { target, json } => list(target, *json)?,
        Command::Add {
            id,
            peer,
            learner,
            timeout_s,
            target,
        } => {
            let request = MembersRequest::Add {
                id: *id,
                peer: peer.clone(),
                learner: *learner,
            };
            let _: Value = ask_leader_while(target, "/v1/members", &request, |error| {
                try_again(error) || is_not_connected_yet(error)
            })?;
            if *learner {
                outln!("replica {id} is a learner")?;
            } else {
                wait_until_voter(target, *id, Duration::from_secs(*timeout_s))?;
                outln!("replica {id} is a voter")?;
            }
        }
        Command::Promote { id, target } => {
            let request = MembersRequest::Promote { id: *id };
            let _: Value = ask_leader(target, "/v1/members", &request)?;
            outln!("replica {id} is a voter")?;
        }
        Command::Remove { id, yes, target } => {
            let before = gather_with_leader(target)?;
            let leader = before.leader().with_context(|| before.why_no_leader())?;
            match risk_of_removal(leader, *id) {
                Some(Risk::Stop(why)) => bail!("nothing was changed: {why}"),
                Some(Risk::NoneMayFail(what)) => confirm::unless_yes(*yes, &what)?,
                None => {}
            }
            let request = MembersRequest::Remove { id: *id };
            let _: Value = ask_leader(target, "/v1/members", &request)?;
            outln!("replica {id} is no longer a member")?;
            let left = ClusterView::gather(target)?;
            if let Some(few) = left.leader().and_then(few_voters) {
                errln!("{few}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the removal of a voter would take away, where others do not answer.
#[derive(Debug, PartialEq, Eq)]
enum Risk {
    /// Writes would stop.
    Stop(String),
    /// The next one that fails would stop them.
    NoneMayFail(String),
}

/// To take out one that does not answer makes nothing worse.
fn risk_of_removal(leader: &Report, id: u16) -> Option<Risk> {
    let silent = leader.silent_voters();
    let is_voter = |it: &&MemberReport| it.voter && it.id == id;
    leader.members.iter().find(is_voter)?;
    if silent.is_empty() || silent.contains(&id) {
        return None;
    }
    let left = leader.members.iter().filter(|it| it.voter && it.id != id);
    let left: Vec<u16> = left.map(|it| it.id).collect();
    let needed = match leader.quorum.as_str() {
        "all" => left.len(),
        _ => left.len() / 2 + 1,
    };
    let answering = left.len() - silent.len();
    let away = format!(
        "the leader does not hear replica {}. Without replica {id}, {needed} of {} voters must hold a write, and \
         {answering} answer",
        listed(&silent),
        left.len()
    );
    if answering < needed {
        return Some(Risk::Stop(format!(
            "{away}: writes would stop. Remove who does not answer, or bring it back, first"
        )));
    }
    (answering == needed).then(|| {
        Risk::NoneMayFail(format!(
            "{away}: writes would stop as soon as one more is away. Remove who does not answer first"
        ))
    })
}

/// What follows from there being so few voters.
fn few_voters(leader: &Report) -> Option<&'static str> {
    match leader.members.iter().filter(|it| it.voter).count() {
        1 => Some("one voter is left: what it loses is lost"),
        2 => Some("two voters are left: nothing is written while either is away"),
        _ => None, // the loss of one changes nothing
    }
}

/// A replica that was started a moment ago takes a moment to connect.
fn is_not_connected_yet(error: &AskError) -> bool {
    match error {
        AskError::Refused { body, .. } => body.code == Some(ErrorCode::NotConnected),
        AskError::Unreachable { .. } | AskError::Barred { .. } | AskError::Unanswered { .. } => {
            false
        }
    }
}

fn list(target: &Target, json: bool) -> anyhow::Result<()> {
    let view = ClusterView::gather_patiently(target)?;
    let report = view.best_report().with_context(|| view.why_no_leader())?;
    if json {
        let leader = view.leader().map(|leader| leader.id);
        let answer = serde_json::json!({
            "leader": leader, "quorum": report.quorum, "members": report.members,
            "followers": report.followers,
        });
        outln!("{answer}")?;
        return Ok(());
    }
    let headings = ["ID", "ROLE", "INCARNATION", "PEER", "MEMCACHED", "HTTP"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let or_dash = |text: &Option<String>| {
        let text = text.clone().filter(|text| !text.is_empty());
        text.unwrap_or_else(|| "-".to_owned())
    };
    for member in &report.members {
        rows.push(vec![
            member.id.to_string(),
            member.role.to_string(),
            member.incarnation.clone(),
            member.peer.clone(),
            or_dash(&member.memcached),
            or_dash(&member.http),
        ]);
    }
    out!("{}", columns(&rows))?;
    outln!("quorum: {}", as_text(&report.quorum))?;
    if !report.lineage.is_empty() {
        outln!("lineage: {}", as_text(&report.lineage))?;
    }
    for of in view.reports() {
        if let Some(line) = status::snapshot(of, view.leader()) {
            outln!("replica {}: {}", of.id, as_text(&line))?;
        }
    }
    Ok(())
}

fn wait_until_voter(target: &Target, id: u16, timeout: Duration) -> anyhow::Result<()> {
    let mut progress = Progress::start();
    loop {
        let view = ClusterView::gather(target)?;
        let state = match view.leader() {
            None => view.why_no_leader(),
            Some(leader) => {
                let member = leader.members.iter().find(|member| member.id == id);
                match member {
                    Some(member) if member.voter => return Ok(()),
                    Some(_) => how_far(leader, id),
                    None => bail!("replica {id} was taken in, and removed again by someone else"),
                }
            }
        };
        if progress.elapsed() > timeout {
            bail!(
                "replica {id} is a member and does not vote yet after {} s: {state}",
                timeout.as_secs()
            );
        }
        progress.show(&state);
        thread::sleep(POLL_INTERVAL);
    }
}

fn how_far(leader: &Report, id: u16) -> String {
    let follower = leader.followers.iter().find(|follower| follower.id == id);
    match follower {
        Some(follower) => match follower.snapshot_in_words() {
            Some(snapshot) => format!("replica {id} {snapshot}"),
            None => format!("replica {id} is {} entries behind", follower.lag),
        },
        None => format!("replica {id} has not answered yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_node::report::FollowerReport;
    use quorumwire_ops::http::ErrorBody;

    #[test]
    fn only_who_is_not_connected_is_waited_for() {
        let refused = |code| AskError::Refused {
            address: String::new(),
            status: 400,
            body: ErrorBody {
                error: "replica 3 is not connected".to_owned(),
                code,
                leader: None,
                leader_http: None,
            },
        };
        assert!(is_not_connected_yet(&refused(Some(
            ErrorCode::NotConnected
        ))));
        for other in [None, Some(ErrorCode::Invalid), Some(ErrorCode::Other)] {
            assert!(!is_not_connected_yet(&refused(other)), "{other:?}");
        }
    }

    #[test]
    fn it_is_said_that_few_voters_are_left() {
        for (count, says) in [(1, "one voter"), (2, "two voters"), (3, "")] {
            let members = (0..3).map(|id| MemberReport {
                voter: id < count,
                ..MemberReport::voter(id, None)
            });
            let leader = Report {
                members: members.collect(),
                ..Report::default()
            };
            let said = few_voters(&leader).unwrap_or_default();
            assert!(said.starts_with(says), "{count}: {said}");
            assert_eq!(said.is_empty(), says.is_empty());
        }
    }

    /// Voters 0 to `count`, of which these do not answer; 0 leads.
    fn voters(count: u16, silent: &[u16]) -> Report {
        let heard = (1..count).filter(|id| !silent.contains(id));
        Report {
            members: (0..count).map(|id| MemberReport::voter(id, None)).collect(),
            followers: heard
                .map(|id| FollowerReport {
                    id,
                    active: true,
                    ..FollowerReport::default()
                })
                .collect(),
            quorum: "majority".to_owned(),
            ..Report::default()
        }
    }

    #[test]
    fn a_removal_that_leaves_a_bare_quorum_with_one_away_is_asked_about() {
        let risk = |count, silent: &[u16], id| risk_of_removal(&voters(count, silent), id);
        // The case that was seen: of four, 3 is dead, and 0 is taken out.
        let Some(Risk::NoneMayFail(what)) = risk(4, &[3], 0) else {
            panic!("nobody was asked");
        };
        assert!(
            what.starts_with("the leader does not hear replica 3. "),
            "{what}"
        );
        assert!(what.contains("2 of 3 voters"), "{what}");
        let Some(Risk::Stop(why)) = risk(3, &[2], 1) else {
            panic!("it was not refused");
        };
        assert!(
            why.contains("2 of 2 voters must hold a write, and 1 answer"),
            "{why}"
        );
        assert!(matches!(risk(5, &[3, 4], 1), Some(Risk::Stop(_))));
        assert!(matches!(risk(6, &[4, 5], 1), Some(Risk::NoneMayFail(_))));
        // All answer, enough others do, the dead one itself is taken out, or it is no voter.
        for (count, silent, id) in [
            (3, &[][..], 2),
            (7, &[6], 1),
            (4, &[3], 3),
            (5, &[3, 4], 3),
            (3, &[2], 7),
        ] {
            assert_eq!(
                risk(count, silent, id),
                None,
                "{id} of {count}, without {silent:?}"
            );
        }
        let mut all = voters(4, &[3]);
        all.quorum = "all".to_owned();
        assert!(matches!(risk_of_removal(&all, 1), Some(Risk::Stop(_))));
        assert_eq!(risk_of_removal(&all, 3), None);
    }

    #[test]
    fn it_is_said_how_far_a_new_member_is() {
        let mut leader = Report::default();
        assert_eq!(how_far(&leader, 3), "replica 3 has not answered yet");
        leader.followers.push(FollowerReport {
            id: 3,
            lag: 12,
            ..FollowerReport::default()
        });
        assert_eq!(how_far(&leader, 3), "replica 3 is 12 entries behind");
        leader.followers[0].in_snapshot = true;
        leader.followers[0].snapshot_sent_bytes = 3 << 20;
        leader.followers[0].snapshot_bytes = 7 << 20;
        let sent = "replica 3 is being sent a snapshot: 3 of 7 MiB";
        assert_eq!(how_far(&leader, 3), sent);
    }
}
