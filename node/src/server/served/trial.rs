//! A program is tried without a cluster: whether it starts, and where it listens.
use super::check_file;
use super::program::STEP_NS;
use crate::options::ServedOptions;
use anyhow::{Context as _, ensure};
use quorumwire_interpose::{Program, Rings, Said, Sizes, Start, Started};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long it has to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// How long it is watched once it listens.
const WATCHED_FOR: Duration = Duration::from_secs(1);
/// From turn to turn.
const TURN: Duration = Duration::from_millis(10);

/// What was seen of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tried {
    /// Where it listens for TCP, and the same for UDP.
    pub listens: BTreeSet<SocketAddr>,
    /// See there.
    pub datagrams: BTreeSet<SocketAddr>,
}

/// It ends with this.
struct Ends(Started);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.child.kill().ok(); // gone already
        self.0.child.wait().ok();
    }
}

/// Looks at its file, starts it in a folder of its own, which is removed, and gives it turns without clients.
pub fn try_program(served: &ServedOptions) -> anyhow::Result<Tried> {
    let mut served = served.clone();
    check_file(&mut served)?;
    let (file, arguments) = served.command.split_first().context("a command to run")?;
    let folder = tempfile::tempdir().context("a folder to try the program in")?;
    let mut program = Program::of(file, folder.path());
    program.arguments = arguments.to_vec();
    let day = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let wall_ns = u64::try_from(day.as_nanos())?;
    let start = Start {
        log_time_ns: wall_ns,
        wall_ns,
        step_ns: STEP_NS,
        key: [7; 32],
    };
    let mut rings =
        Rings::new(Sizes::default(), &start).context("memory for the program's rings")?;
    let name = file.to_string_lossy().into_owned();
    let started = program.start(&rings);
    let mut running = Ends(started.with_context(|| format!("starting {name}"))?);
    let (begun, mut tried) = (Instant::now(), Tried::default());
    let mut listens_since = None;
    for number in 1.. {
        thread::sleep(TURN);
        if let Some(why) = rings.refusal() {
            anyhow::bail!("{name} cannot be served: {why}");
        }
        if let Some(status) = running.0.child.try_wait()? {
            anyhow::bail!("{name} has ended ({status}), before anybody has asked it for something");
        }
        while let Some((_, said)) = rings.take()? {
            match said {
                Said::Listen { at, is_datagrams } => {
                    if is_datagrams {
                        tried.datagrams.insert(at);
                    } else {
                        tried.listens.insert(at);
                    }
                    listens_since.get_or_insert_with(Instant::now);
                }
                Said::Unlisten { at, is_datagrams } => {
                    if is_datagrams {
                        tried.datagrams.remove(&at);
                    } else {
                        tried.listens.remove(&at);
                    }
                }
                Said::Data { .. }
                | Said::Shut { .. }
                | Said::Close { .. }
                | Said::Datagram { .. } => {}
            }
        }
        if listens_since.is_some_and(|since: Instant| since.elapsed() >= WATCHED_FOR) {
            break;
        }
        ensure!(
            begun.elapsed() < STARTS_WITHIN,
            "{name} listens nowhere, {} s after its start",
            STARTS_WITHIN.as_secs()
        );
        if rings.has_room() {
            let now = wall_ns + u64::try_from(begun.elapsed().as_nanos())?;
            rings.give(number, now, now, &[]);
        }
    }
    Ok(tried)
}
