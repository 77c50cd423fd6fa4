//! `quorumwire transfer`: another replica leads.
use super::progress::Progress;
use super::view::{ClusterView, POLL_INTERVAL, Target, ask_leader};
use anyhow::bail;
use quorumwire_ops::http::TransferRequest;
use serde_json::Value;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// How long the new leader may take to serve.
const NEW_LEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// Clients wait for a few milliseconds, and lose nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  quorumwire transfer --to 2 --addr 10.0.0.10:7480")]
pub struct Arguments {
    /// Which replica to make the leader [default: the most up-to-date voter]
    #[arg(long, value_name = "N")]
    to: Option<u16>,
    #[command(flatten)]
    target: Target,
}

/// Transfers leadership and waits until someone leads.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(leader) = ClusterView::gather(&arguments.target)?.leader()
        && arguments.to == Some(leader.id)
    {
        outln!("replica {} leads", leader.id)?;
        return Ok(ExitCode::SUCCESS);
    }
    let request = TransferRequest { to: arguments.to };
    let _: Value = ask_leader(&arguments.target, "/v1/transfer", &request)?;
    let mut progress = Progress::start();
    loop {
        let view = ClusterView::gather(&arguments.target)?;
        let why = match view.leader() {
            Some(leader) if arguments.to.is_none_or(|to| to == leader.id) => {
                outln!("replica {} leads", leader.id)?;
                return Ok(ExitCode::SUCCESS);
            }
            Some(leader) => format!("replica {} leads", leader.id),
            None => view.why_no_leader(),
        };
        if progress.elapsed() > NEW_LEADER_TIMEOUT {
            bail!("handed over, but {why}");
        }
        progress.say(&why);
        thread::sleep(POLL_INTERVAL);
    }
}
