//! `quorumwire values`: what is kept for which learner, and what is given up.
use super::confirm;
use super::status::columns;
use super::view::{Target, ask_leader, gather_with_leader, listed};
use anyhow::{Context as _, ensure};
use quorumwire_node::report::{Report, ValuesReport};
use quorumwire_ops::http::LostRequest;
use serde_json::Value;
use std::process::ExitCode;

/// Show what is kept for learners, or declare lost what one of them lacks.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show how far the learners are, and how much is kept for them
    List {
        #[command(flatten)]
        target: Target,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Drop what is kept only for a learner that will not come back
    #[command(after_help = "\
The other learners lose nothing, unless --upto goes further than they have checkpointed. If the
learner does come back, it is told up to where it has lost values; it needs another learner's state
then. What is decided from now on is kept for it again: to be rid of it, start the servers with
other --learners.

Example:
  quorumwire values declare-lost --learner 2 --addr 10.0.0.10:7480")]
    DeclareLost {
        /// Who will not come back
        #[arg(long, value_name = "N", required_unless_present = "upto")]
        learner: Option<u16>,
        /// Up to this instance, whoever lacks it [default: what all others have checkpointed]
        #[arg(long, value_name = "INSTANCE")]
        upto: Option<u64>,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        target: Target,
    },
}

/// Shows them, or declares them lost.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::List { target, json } => list(target, *json)?,
        Command::DeclareLost {
            learner,
            upto,
            yes,
            target,
        } => {
            let view = gather_with_leader(target)?;
            let leader = view.leader().with_context(|| view.why_no_leader())?;
            let values = values_of(leader)?;
            let upto = what_to_lose(values, *learner, *upto)?;
            confirm::unless_yes(*yes, &what_goes(values, upto))?;
            let _: Value = ask_leader(target, "/v1/values/lost", &LostRequest { upto })?;
            outln!("values up to instance {upto} are lost")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn values_of(leader: &Report) -> anyhow::Result<&ValuesReport> {
    let values = leader.values.as_ref();
    values.context("these servers keep no values for learners: they have no option `learners`")
}

fn list(target: &Target, json: bool) -> anyhow::Result<()> {
    let view = gather_with_leader(target)?;
    let leader = view.leader().with_context(|| view.why_no_leader())?;
    let values = values_of(leader)?;
    if json {
        let answer = serde_json::json!({
            "values": values, "kept": leader.items, "kept_bytes": leader.memory_used_bytes,
            "kept_bytes_max": leader.memory_limit_bytes,
        });
        outln!("{answer}")?;
        return Ok(());
    }
    let mut rows = vec![
        ["LEARNER", "CHECKPOINT", "BEHIND"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for learner in &values.learners {
        let behind = values.last.saturating_sub(learner.checkpoint);
        let numbers = [u64::from(learner.id), learner.checkpoint, behind];
        rows.push(numbers.map(|it| it.to_string()).to_vec());
    }
    out!("{}", columns(&rows))?;
    outln!(
        "{} values are kept, {} of {} bytes; the last instance is {}, and all up to {} are trimmed",
        leader.items,
        leader.memory_used_bytes,
        leader.memory_limit_bytes,
        values.last,
        values.trimmed
    )?;
    Ok(())
}

/// Up to which instance: what all but this learner have checkpointed, unless it is said.
fn what_to_lose(
    values: &ValuesReport,
    learner: Option<u16>,
    upto: Option<u64>,
) -> anyhow::Result<u64> {
    let known = || {
        let ids: Vec<_> = values.learners.iter().map(|it| it.id).collect();
        listed(&ids)
    };
    let mut needed_by_others = values.last;
    if let Some(learner) = learner {
        let it = values.learners.iter().find(|it| it.id == learner);
        let it = it.with_context(|| format!("there is no learner {learner}, only {}", known()))?;
        let others = values.learners.iter().filter(|it| it.id != learner);
        let least = others.min_by_key(|it| it.checkpoint);
        needed_by_others = least.map_or(values.last, |it| it.checkpoint);
        let (of, checkpoint) = least.map_or((learner, values.last), |it| (it.id, it.checkpoint));
        ensure!(
            upto.is_some() || checkpoint > it.checkpoint,
            "nothing is kept for learner {learner} only: learner {of} has checkpointed up to {checkpoint}, \
             and learner {learner} up to {}",
            it.checkpoint
        );
    }
    let upto = upto.unwrap_or(needed_by_others);
    ensure!(
        upto <= values.last,
        "instance {upto} is not decided; the last one is {}",
        values.last
    );
    ensure!(
        upto > values.trimmed,
        "all up to instance {} is trimmed already",
        values.trimmed
    );
    Ok(upto)
}

/// Who lacks some of it, in words.
fn what_goes(values: &ValuesReport, upto: u64) -> String {
    let lacks = values.learners.iter().filter(|it| it.checkpoint < upto);
    let who: Vec<_> = lacks.map(|it| it.id).collect();
    format!(
        "values up to instance {upto} are given to nobody any more, and learner {} has not checkpointed all of them",
        listed(&who)
    )
}

#[cfg(test)]
mod tests {
    use super::{what_goes, what_to_lose};
    use quorumwire_node::report::{LearnerReport, ValuesReport};

    fn values(checkpoints: &[u64]) -> ValuesReport {
        let learner = |(id, checkpoint): (u16, &u64)| LearnerReport {
            id,
            checkpoint: *checkpoint,
        };
        ValuesReport {
            last: 90,
            trimmed: checkpoints.iter().min().copied().unwrap_or(0),
            learners: (1..).zip(checkpoints).map(learner).collect(),
        }
    }

    #[test]
    fn the_others_lose_nothing_unless_it_is_said_up_to_where() {
        let three = values(&[50, 7, 60]);
        assert_eq!(what_to_lose(&three, Some(2), None).unwrap(), 50);
        assert_eq!(what_to_lose(&three, Some(2), Some(55)).unwrap(), 55);
        assert_eq!(what_to_lose(&three, None, Some(8)).unwrap(), 8);
        assert_eq!(what_to_lose(&values(&[7]), Some(1), None).unwrap(), 90);
        assert!(what_goes(&three, 50).contains("instance 50 "));
        assert!(what_goes(&three, 50).contains("learner 2 has"));
        assert!(what_goes(&three, 55).contains("learner 1, 2 has"));
    }

    #[test]
    fn what_would_free_nothing_is_refused() {
        let three = values(&[50, 7, 60]);
        for (learner, upto, text) in [
            (Some(9), None, "no learner 9, only 1, 2, 3"),
            (Some(1), None, "learner 2 has checkpointed up to 7"),
            (None, Some(7), "up to instance 7 is trimmed"),
            (Some(2), Some(91), "the last one is 90"),
        ] {
            let refused = what_to_lose(&three, learner, upto).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        }
        let even = what_to_lose(&values(&[7, 7]), Some(1), None);
        let refused = even.unwrap_err().to_string();
        assert!(refused.contains("for learner 1 only"), "{refused}");
        let all = what_to_lose(&values(&[90]), Some(1), None);
        assert!(all.is_err());
    }
}
