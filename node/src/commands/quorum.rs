//! `quorumwire quorum`: how many voters must hold a write before it is acknowledged.
use super::view::{Target, ask_leader};
use crate::http::{MembersRequest, QuorumWord};
use serde_json::Value;
use std::process::ExitCode;

/// Switched while running. An election always takes a majority.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  quorumwire quorum all --addr 10.0.0.10:7480")]
pub struct Arguments {
    /// How many
    #[arg(value_enum)]
    quorum: QuorumWord,
    #[command(flatten)]
    target: Target,
}

/// Sets it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let quorum = arguments.quorum;
    let request = MembersRequest::Quorum { quorum };
    let _: Value = ask_leader(&arguments.target, "/v1/members", &request)?;
    match quorum {
        QuorumWord::Majority => outln!("a majority of the voters must hold a write")?,
        QuorumWord::All => outln!("every voter must hold a write")?,
    }
    Ok(ExitCode::SUCCESS)
}
