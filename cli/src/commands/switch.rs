//! `quorumwire switch`: a coordinator or an acceptor of a Paxos deployment. Only reads options; the work is
//! done in `paxos/process`.
use super::server::die_with_parent;
use crate::flags::BoxFlags;
use anyhow::Context as _;
use quorumwire_node::logging;
use quorumwire_node::options::LogFormat;
use quorumwire_ops::http::switch_page;
use quorumwire_paxos_process::{
    DeploymentFile, Durability, Lives, Role, StatusCell, SwitchError, SwitchIdentity,
    SwitchOptions, SwitchSignals, make_folder,
};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Runs until SIGTERM or SIGINT. A deployment is coordinators, of which one gives values their instances and
/// the others are its backups; acceptors, a majority of which has to vote for each; and learners, which are
/// parts of other programs (libquorumwire). A file that all of them have names their addresses.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # the key of a deployment, in a file that all its hosts have a copy of
  quorumwire keys new --file secret.toml
  quorumwire keys plane-clients --file secret.toml --cluster orders --out orders.keys

  # orders.toml, likewise
  name = \"orders\"
  coordinators = [\"10.0.0.1:7500\", \"10.0.0.2:7500\"]
  acceptors = [\"10.0.0.3:7500\", \"10.0.0.4:7500\", \"10.0.0.5:7500\"]
  learners = [\"10.0.0.6:7500\", \"10.0.0.7:7500\"]
  key-file = \"orders.keys\"

  # once, on the first acceptor's host; then, and after each restart
  quorumwire switch --deployment orders.toml --role acceptor --number 0 --dir votes --make-folder first
  quorumwire switch --deployment orders.toml --role acceptor --number 0 --dir votes

  # a coordinator
  quorumwire switch --deployment orders.toml --role coordinator --number 0

Signals to a coordinator:
  SIGUSR1  take over, whoever coordinates
  SIGUSR2  leave it to others, until SIGUSR1 comes")]
pub struct Arguments {
    /// The deployment's file
    #[arg(long, value_name = "FILE")]
    deployment: PathBuf,
    /// What it does there
    #[arg(long, value_enum)]
    role: RoleName,
    /// Its number among those of its role: its place in the deployment's file, from 0
    #[arg(long, value_name = "N")]
    number: u8,
    /// An acceptor's folder: its votes, and how many lives it has had
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What an acceptor remembers: `sync`: its votes are on disk before it says them; `memory`: nothing, each
    /// start is a new life that the others have to let in
    #[arg(long, value_enum, default_value_t = DurabilityName::Sync)]
    durability: DurabilityName,
    /// Make an acceptor's folder and stop: `first`, as a new deployment begins; `lost`, where it has run
    /// before and its folder is gone
    #[arg(long, value_enum, value_name = "WHEN")]
    make_folder: Option<LivesName>,
    #[command(flatten)]
    plane: BoxFlags,
    /// Where to listen, if not at the address in the deployment's file
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,
    /// Look for packets this long before sleeping, in microseconds: lower latency for a processor of its own
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    busy_poll_us: u64,
    /// Values up to this instance are lost to learners that have not checkpointed them, so that nobody waits
    /// for those any more: said to each switch, when a learner is gone for good (docs/paxos.md)
    #[arg(long, value_name = "INSTANCE")]
    declare_lost: Option<u64>,
    /// Where status and metrics are served, if at all: `/v1/status`, `/metrics`, `/healthz`, `/readyz`
    /// (docs/paxos.md). They are only read, and not encrypted: a loopback address, unless `--insecure` is
    /// given. Port 0 takes a free one
    #[arg(long, value_name = "IP:PORT")]
    listen_http: Option<SocketAddr>,
    /// Allow `--listen-http` beyond loopback: everyone who reaches it can read how the switch does
    #[arg(long, requires = "listen_http")]
    insecure: bool,
    /// Least level of what is logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: tracing::Level,
    /// How the log looks
    #[arg(long, value_enum, default_value_t = FormatName::Text)]
    log_format: FormatName,
    /// Die as soon as this parent process is gone
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<i32>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RoleName {
    Coordinator,
    Acceptor,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DurabilityName {
    Sync,
    Memory,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LivesName {
    First,
    Lost,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatName {
    Text,
    Json,
}

/// Runs the switch, or makes its folder.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(parent) = arguments.die_with_parent {
        die_with_parent(parent)?;
    }
    let options = SwitchOptions {
        deployment: DeploymentFile::load(&arguments.deployment).map_err(SwitchError::from)?,
        role: match arguments.role {
            RoleName::Coordinator => Role::Coordinator,
            RoleName::Acceptor => Role::Acceptor,
        },
        number: arguments.number,
        listen: arguments.listen,
        dir: arguments.dir.clone(),
        memory: None,
        durability: match arguments.durability {
            DurabilityName::Sync => Durability::Sync,
            DurabilityName::Memory => Durability::Memory,
        },
        busy_poll: Duration::from_micros(arguments.busy_poll_us),
        plane: Some(arguments.plane.0.clone()),
        declare_lost: arguments.declare_lost,
    };
    if let Some(lives) = arguments.make_folder {
        let lives = match lives {
            LivesName::First => Lives::First,
            LivesName::Lost => Lives::ReplacesLost,
        };
        make_folder(&options, lives)?;
        let dir = arguments.dir.as_deref().unwrap_or(Path::new(""));
        outln!("{}: the folder is made", dir.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let listener = open_page(arguments)?;
    let told = SwitchSignals::default();
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&told.stop))?;
    }
    for (signal, what) in [
        (SIGUSR1, SwitchSignals::TAKE_OVER),
        (SIGUSR2, SwitchSignals::RETIRE),
    ] {
        signal_hook::flag::register_usize(signal, Arc::clone(&told.operator), what)?;
    }
    logging::start_as(
        arguments.log_level,
        match arguments.log_format {
            FormatName::Text => LogFormat::Text,
            FormatName::Json => LogFormat::Json,
        },
    );
    logging::start_writing()?;
    let status = Arc::<StatusCell>::default();
    let _page = match listener {
        Some(listener) => {
            tracing::info!(address = %listener.local_addr()?, "the switch's page is served");
            let (identity, status) = (SwitchIdentity::of(&options), Arc::clone(&status));
            Some(switch_page::serve(listener, identity, status)?)
        }
        None => None,
    };
    quorumwire_paxos_process::run(&options, &told, &status)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the port of the page before anything is begun.
fn open_page(arguments: &Arguments) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = arguments.listen_http else {
        return Ok(None);
    };
    if !address.ip().is_loopback() && !arguments.insecure {
        let text = format!(
            "{address} is refused; allowed: a loopback address; --insecure lets anybody who reaches it read how the \
             switch does"
        );
        let option = "listen-http";
        return Err(SwitchError::Option { option, text }.into());
    }
    let listener = TcpListener::bind(address);
    let said = || format!("option listen-http: cannot listen on {address}");
    listener.map(Some).with_context(said)
}
