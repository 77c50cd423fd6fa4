//! `quorumwire snapshot`: a snapshot now, on every replica the target names.
use super::ask;
use super::progress::while_doing;
use super::view::Target;
use quorumwire_ops::http::SnapshotBody;
use std::process::ExitCode;

/// Every replica has snapshots of its own: --addr names one of them, the --dir of a dev cluster all.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  quorumwire snapshot --addr 10.0.0.10:7480")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
}

/// Takes them one after the other.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut outcome = ExitCode::SUCCESS;
    for (_, address) in arguments.target.addresses()? {
        let nothing = serde_json::json!({});
        let take = || ask::post::<SnapshotBody>(&address, "/v1/snapshot", &nothing);
        let waits = || format!("{address}: a snapshot is being written");
        match while_doing(waits, take) {
            Ok(taken) => outln!("{address}: snapshot up to index {}", taken.last_index)?,
            Err(error) => {
                errln!("error: {error}");
                outcome = ExitCode::FAILURE;
            }
        }
    }
    Ok(outcome)
}
