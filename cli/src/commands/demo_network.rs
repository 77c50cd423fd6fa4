//! `quorumwire demo-network`: a Paxos deployment in network namespaces, and a page on which a reader breaks
//! it and mends it. Real processes and links; nothing is simulated.
mod host_link;
mod machines;
mod page;
mod watch;

use super::interrupt::{Input, Interrupt};
use super::namespaces::{Namespaces, has_ended};
use super::progress::Progress;
use crate::output::Unwritten;
use anyhow::{Context as _, ensure};
use clap::builder::PossibleValuesParser;
use machines::{Durability, MACHINES, Machines};
use page::Page;
use quorumwire_node::planes::{
    BoxSetup, Demand, KINDS, KindOptions, PlaneKind, Values, beyond_loopback,
};
use rustix::process::geteuid;
use std::env::temp_dir;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long it may take until a coordinator coordinates.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the state is looked at.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Folders begin so, and go on with the process that made them.
const FOLDER_PREFIX: &str = "quorumwire-demo-network-";

/// A coordinator and its backup, three acceptors, and two hosts that propose and learn: seven processes, each
/// in a network namespace of its own. A page shows who does what, puts and gets values, stops processes and
/// cuts links. Needs root and iproute2. Ends on Ctrl-C or SIGTERM, and removes what it made.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire demo-network
  quorumwire demo-network --port 8080      # from another machine: ssh -L 8080:127.0.0.1:8080 HOST
  quorumwire demo-network --seconds 60")]
pub struct Arguments {
    /// The page's port, on 127.0.0.1; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// End after so many seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Where coordinators and acceptors run [default: in the kernel if that is possible here]
    #[arg(long, value_name = "PLANE", value_parser = PossibleValuesParser::new(KINDS.iter().map(|it| it.name)))]
    plane: Option<String>,
    /// What acceptors remember
    #[arg(long, value_enum, default_value_t = Durability::Sync)]
    durability: Durability,
}

/// Shows it.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen(Input::Ends)?;
    ensure!(
        geteuid().is_root(),
        "this makes network namespaces, and takes root"
    );
    remove_leftovers();
    // Before this thread leaves the network that the reader's browser is in.
    let page = Page::open(arguments.port)?;
    let dir = tempfile::Builder::new()
        .prefix(&format!("{FOLDER_PREFIX}{}-", std::process::id()))
        .tempdir()?;
    let network = Namespaces::new(MACHINES)?;
    let (kind, plane) = choose(&network, arguments.plane.as_deref())?;
    let mut machines = Machines::new(network, dir.path(), kind, plane, arguments.durability)?;
    match show(&mut machines, &page, arguments, &interrupt) {
        Err(_) if interrupt.has_come() => Ok(ExitCode::SUCCESS),
        shown => shown.map(|()| ExitCode::SUCCESS),
    }
}

/// Where switches run, and that in words.
fn choose(
    network: &Namespaces,
    word: Option<&str>,
) -> anyhow::Result<(&'static PlaneKind, String)> {
    let named = |name: &str| KINDS.iter().copied().find(|kind| kind.name == name);
    let process = KINDS.iter().copied().find(|kind| kind.boxes.is_none());
    let process = process.context("all kinds of planes have boxes")?;
    let in_kernel = "in the kernel's receive path".to_owned();
    if let Some(kind) = word.and_then(named) {
        if kind == process {
            return Ok((
                kind,
                "in processes with sockets, as was asked for".to_owned(),
            ));
        }
        can_run(network, kind)?;
        return Ok((kind, in_kernel));
    }
    let best = beyond_loopback().context("all planes run over loopback")?;
    Ok(match can_run(network, best) {
        Ok(()) => (best, in_kernel),
        Err(error) => (
            process,
            format!("in processes with sockets; they cannot run in the kernel here: {error:#}"),
        ),
    })
}

/// Opens one box, and makes all links ready for that.
fn can_run(network: &Namespaces, kind: &PlaneKind) -> anyhow::Result<()> {
    let Some(boxes) = &kind.boxes else {
        return Ok(());
    };
    network.make_ready(kind)?;
    network.within(0, || {
        let options = KindOptions {
            demand: Demand::Yes,
            listen: machines::address(0)?,
            listen_option: "listen",
            values: &Values::default(),
        };
        let setup = BoxSetup {
            window: machines::WINDOW,
            hears: None,
        };
        (boxes.open)(&options, setup)?;
        Ok(())
    })
}

fn show(
    machines: &mut Machines,
    page: &Page,
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    machines.start_all()?;
    let mut progress = Progress::start();
    while !machines.is_coordinated() {
        interrupt.check()?;
        machines.look()?;
        machines.must_run()?;
        ensure!(
            progress.elapsed() < START_TIMEOUT,
            "no coordinator coordinates after {} s; {}",
            START_TIMEOUT.as_secs(),
            machines.log_tail(0)
        );
        progress.say("waiting for a coordinator");
        std::thread::sleep(LOOK_PAUSE);
    }
    page.show(machines.state().to_string());
    invite(machines, page)?;
    let begun = Instant::now();
    let end = arguments.seconds.map(Duration::from_secs);
    while !interrupt.has_come() && end.is_none_or(|end| begun.elapsed() < end) {
        if let Some(asked) = page.next_within(LOOK_PAUSE) {
            machines.carry_out(asked, page)?;
        }
        machines.look()?;
        page.show(machines.state().to_string());
    }
    Ok(())
}

fn invite(machines: &Machines, page: &Page) -> Result<(), Unwritten> {
    outln!(
        "A coordinator, its backup, three acceptors and two hosts, each a process in a network namespace.\n\
         Coordinators and acceptors run {}.\n\
         {}\n\n\
         Open {}\n\n\
         Put a value at one host, and get it at the other. Stop the coordinator. Cut one acceptor's link, then\n\
         a second one's, and join them again. Ctrl-C ends it.",
        machines.plane(),
        machines.durability().in_words(),
        page.address()
    )
}

/// Folders of demonstrations that were killed.
fn remove_leftovers() {
    let Ok(entries) = fs::read_dir(temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|it| it.strip_prefix(FOLDER_PREFIX));
        let is_own = entry
            .metadata()
            .is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw());
        if is_own && rest.is_some_and(has_ended) {
            let path = entry.path();
            match fs::remove_dir_all(&path) {
                Ok(()) => errln!(
                    "removed {} of a demonstration that was killed",
                    path.display()
                ),
                Err(error) => errln!("{} stays behind: {error}", path.display()),
            }
        }
    }
}
