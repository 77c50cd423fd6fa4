//! `quorumwire server`: one replica. Prepares the process; the work is the server's.
use crate::flags::ServerFlags;
use anyhow::{Context as _, ensure};
use quorumwire_node::options::{Refused, ServerOptions, unknown_variables};
use quorumwire_node::server::SECOND_GROUP;
use quorumwire_node::{logging, server};
use quorumwire_ops::http::Http;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::net::SocketAddr;
use std::process::ExitCode;

/// Runs until SIGTERM or SIGINT, then finishes what it began, transfers leadership and exits with 0. `-h`
/// shows the options that most servers need, `--help` all of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # the first of three replicas on one machine
  quorumwire server --id 0 --dir data/0 --listen-peer 127.0.0.1:7410 \\
    --members 0=127.0.0.1:7410,1=127.0.0.1:7420,2=127.0.0.1:7430
  # (the other two also need --listen-... for ports of their own)

  # the same from a file and the environment
  QUORUMWIRE_LOG_FORMAT=json quorumwire server --config /etc/quorumwire.toml")]
pub struct Arguments {
    #[command(flatten)]
    flags: ServerFlags,
    /// Die as soon as this parent process is gone
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<i32>,
    /// Replicate a second log, whose clients of the native protocol connect here
    #[arg(long = SECOND_GROUP, value_name = "IP:PORT", hide = true)]
    second_group: Option<SocketAddr>,
}

impl Arguments {
    /// Refuses what the options alone, without environment, have wrong.
    pub(super) fn check(&self) -> Result<(), Refused> {
        self.flags.0.check()
    }
}

/// Runs the server.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(parent) = arguments.die_with_parent {
        die_with_parent(parent)?;
    }
    let mut options = ServerOptions::load(&arguments.flags.0)?;
    options.second_group = arguments.second_group;
    logging::start(&options);
    for warning in unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(
            warning,
            "the environment has what looks like an option and is none"
        );
    }
    server::run(&options, &Http)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the kernel for SIGKILL when the parent ends; then looks whether it had ended before.
pub fn die_with_parent(parent: i32) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("asking to be killed with the parent process")?;
    let alive = Pid::as_raw(getppid()) == parent;
    ensure!(alive, "the parent process {parent} has ended");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Http;
    use quorumwire_node::admin::AdminService as _;
    use quorumwire_node::descriptors::reserve;
    use quorumwire_node::planes::{KINDS, PlaneChoice};
    use quorumwire_node::server::DESCRIPTORS_MAX;

    #[test]
    fn what_a_server_may_open_beside_its_clients_fits_a_shells_limit() {
        let others = DESCRIPTORS_MAX + Http.descriptors_max();
        let usual = reserve(PlaneChoice::None, others);
        assert!(usual > others);
        let each = KINDS.iter().copied().map(PlaneChoice::One);
        for plane in each.chain([PlaneChoice::Auto]) {
            let with_plane = reserve(plane, others + 3);
            assert!(usual < with_plane && with_plane < 1024, "{with_plane}");
        }
    }
}
