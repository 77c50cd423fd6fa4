//! `quorumwire run`: one replica of a program that was not written for it.
use super::server::die_with_parent;
use crate::flags::ServerFlags;
use anyhow::Context as _;
use quorumwire_node::options::{ServedOptions, ServerOptions};
use quorumwire_node::server::served::profiles::{SAVE_SIGNALS, number_of, profile_of};
use quorumwire_node::{logging, server};
use quorumwire_ops::http::Http;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Runs a server that knows nothing of this as one of several equal replicas: each has the same input, which
/// is the log, and answers the clients that come to it. Its clients connect to any replica, at the port where
/// the server listens. Runs until SIGTERM or SIGINT.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # the first of three replicas of Redis on one machine; the other two publish it elsewhere
  quorumwire run --id 0 --dir data/0 --listen-peer 127.0.0.1:7410 \\
    --members 0=127.0.0.1:7410,1=127.0.0.1:7420,2=127.0.0.1:7430 \\
    --publish 6379=127.0.0.1:6380 -- redis-server --port 6379")]
pub struct Arguments {
    #[command(flatten)]
    flags: ServerFlags,
    /// Serve a port of the program's elsewhere
    #[arg(long, value_name = "PORT=HOST:PORT", value_parser = published)]
    publish: Vec<(u16, SocketAddr)>,
    /// The signal upon which the program saves itself in its folder and ends, to begin again from there;
    /// `none`: it cannot, and the whole log is kept [default: TERM for redis-server, valkey-server and
    /// mosquitto, or none]
    #[arg(long, value_name = "SIGNAL", value_parser = save_signal)]
    save_signal: Option<SaveSignal>,
    /// Have the program save itself when the log behind the last time has grown so much; clients are cut then
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    cut_log_mib: u64,
    /// Die as soon as this parent process is gone
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<i32>,
    /// The program and what it is told
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// None: the program cannot save itself.
#[derive(Clone, Copy, Debug)]
struct SaveSignal(Option<u8>);

fn save_signal(text: &str) -> Result<SaveSignal, String> {
    if text == "none" {
        return Ok(SaveSignal(None));
    }
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let known = SAVE_SIGNALS.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, signal)| SaveSignal(Some(number_of(*signal))))
        .ok_or_else(|| {
            let names = SAVE_SIGNALS.map(|(name, _)| name).join(", ");
            format!("allowed: {names}, none")
        })
}

fn published(text: &str) -> Result<(u16, SocketAddr), String> {
    let (port, at) = text.split_once('=').ok_or("expected PORT=HOST:PORT")?;
    let port = port
        .parse()
        .map_err(|_| "the port is a number from 1 to 65535")?;
    let at = at
        .parse()
        .map_err(|_| "behind = stands an IP address and a port")?;
    Ok((port, at))
}

/// Runs the replica.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(parent) = arguments.die_with_parent {
        die_with_parent(parent)?;
    }
    let mut options = ServerOptions::load(&arguments.flags.0)?;
    let mut command = arguments.command.clone();
    let profile = command
        .first()
        .map(|file| profile_of(file))
        .unwrap_or_default();
    let save_signal = arguments.save_signal.map_or(profile.save_signal, |it| it.0);
    if save_signal.is_some() && save_signal == profile.save_signal {
        command.extend(profile.arguments);
    }
    options.served = Some(ServedOptions {
        command,
        save_signal,
        cut_log_bytes: arguments.cut_log_mib << 20,
        published: arguments.publish.iter().copied().collect(),
    });
    logging::start(&options);
    server::run_program(&options, &Http).context("run")?;
    Ok(ExitCode::SUCCESS)
}
