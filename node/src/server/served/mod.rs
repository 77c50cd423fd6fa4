//! The server of a program that was not written for it. The program's input is the log; each replica runs
//! one, and each answers the clients that came to it with what its own program says.
//!
//! What is to be done is decided by a [`Keeper`]; here it is carried out (`keep.rs`).
mod commands;
mod datagrams;
pub mod ended;
mod fills;
mod gateway;
mod health;
mod keep;
mod outputs;
pub mod profiles;
mod program;
mod saved;
pub mod trial;

use self::datagrams::DatagramCounters;
use self::gateway::{Clients, GatewayCounters, published_at};
use self::health::HealthCounters;
use self::keep::RunningTrial;
use self::program::{Late, Serving};
pub use self::saved::NoProgram;
use super::clients::AnswerKind;
use super::core::{Core, Hosted};
use super::fronts::Protocol;
use super::random::random_number;
use super::service::Service;
use super::{TOKEN_DATAGRAMS, clock};
use crate::options::{ProgramPort, Refused, ServedOptions, ServerOptions, Transport};
use crate::report::{self, Durations, Report};
use anyhow::Context as _;
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use quorumwire_interfaces::CounterSink;
use quorumwire_interpose::{Said, fits};
use quorumwire_kv::QueryForm;
use quorumwire_replay::{CheckerCounters, Gateway, Input, Keeper, Keeping, Replay, Reporter};
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folder of the program's files, in the replica's.
pub const PROGRAM_FOLDER: &str = "program";

/// Things that the program has said, taken in one turn.
const SAID_PER_TURN: usize = 4096;

/// A server of a program.
type Server = super::Server<Served>;

/// What a server keeps for the program beside the group.
#[derive(Default)]
pub struct Served {
    clients: Option<Clients>,
    /// Until the server begins; then the application has it.
    program: Option<Serving>,
    keeper: Option<Keeper>,
    /// For how long what clients did had to wait for its batch.
    waits: Durations,
    published: BTreeMap<ProgramPort, SocketAddr>,
    has_doorbell: bool,
    followers_refuse: bool,
    trial: Option<RunningTrial>,
    is_able_to_save: bool,
    /// Nobody is served when the whole log, if it is kept, is as long.
    whole_log_bytes_max: u64,
    /// People were told that it is.
    has_told_full: bool,
    /// So many verdicts were told to people.
    told_verdicts: u64,
    /// The turn from which the program has not come back, as people were told.
    told_late: Option<Late>,
    health: HealthCounters,
}

/// Why a replica serves no clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoClients {
    /// It does not lead.
    Follows,
    /// The whole log is kept, and has reached its limit.
    LogIsFull,
}

impl Hosted for Served {
    type Application = Replay<Serving>;
}

impl Service for Served {
    const PROTOCOLS: &'static [Protocol] = &[];

    fn open(
        options: &ServerOptions,
        _: Option<SocketAddr>,
        registry: &Registry,
    ) -> anyhow::Result<Self> {
        let clients = Clients::new(options.client_buffers_bytes_max, options.insecure)?;
        let descriptor = clients.descriptor();
        registry.register(
            &mut SourceFd(&descriptor),
            TOKEN_DATAGRAMS,
            Interest::READABLE,
        )?;
        let served = options.served.as_ref().context("a program is served")?;
        if served.how_to_save().is_none() {
            tracing::warn!(
                limit_mib = served.whole_log_bytes_max >> 20,
                "the served program cannot save itself as far as is known: the whole log is kept, also in memory"
            );
        }
        Ok(Self {
            clients: Some(clients),
            program: Some(Serving::of(served, &options.dir, PROGRAM_FOLDER)?),
            keeper: Some(Keeper::new(
                Gateway::next(options.id.0, 0, clock::wall_ms(), random_number()?),
                Keeping {
                    save_signal: served.how_to_save(),
                    cut_log_bytes: served.cut_log_bytes,
                },
            )),
            published: served.published.clone(),
            waits: Durations::default(),
            followers_refuse: served.followers_refuse,
            is_able_to_save: served.how_to_save().is_some(),
            whole_log_bytes_max: served.whole_log_bytes_max,
            ..Self::default()
        })
    }

    fn secure(&mut self, tls: &Arc<ServerConfig>) {
        if let Some(clients) = &mut self.clients {
            clients.tls = Some(Arc::clone(tls));
        }
    }

    fn begin(server: &mut Server) {
        let program = server.core.service.program.take();
        server.begin_from_state(program, Input::Begins);
    }

    /// The program of the state before is ended, and begins anew from what the snapshot has.
    fn state_replaced(server: &mut Server, before: &mut Self::Application) {
        let program = before.program.take();
        server.begin_from_state(program, Input::StateReplaced);
    }

    fn makes_state(server: &mut Server) -> bool {
        server.keeper_hears(Input::StateWanted);
        server.core.service.is_able_to_save
    }

    fn has_no_state(core: &Core<Self>) -> Option<&'static str> {
        let is_unable = !core.service.is_able_to_save;
        is_unable.then_some(
            "the served program cannot save itself: see options save-signal and snapshot-command",
        )
    }

    fn has_no_digest() -> Option<&'static str> {
        Some(
            "the state of a served program has no digest: what replicas' programs say is compared instead, see \
             output_differences in /v1/status",
        )
    }

    fn serves(core: &Core<Self>) -> bool {
        health::faults(core).is_empty()
    }

    fn form_of_query(_: &[u8]) -> Option<(QueryForm, u32)> {
        None
    }

    /// What clients of the native protocol send would be taken for a gateway's.
    fn asks_for_too_many(_: &[u8]) -> Option<String> {
        Some("a served program takes no commands here: ask it at its own port".into())
    }

    fn complete(server: &mut Server, number: u64, said: AnswerKind, answer: &[u8]) {
        server.completed(number, said, answer);
    }

    fn take_in(server: &mut Server) {
        server.take_what_clients_do();
    }

    fn end_turn(server: &mut Server) {
        server.tell_clients();
    }

    fn is_busy(core: &Core<Self>) -> bool {
        let service = &core.service;
        let has_said = core
            .group
            .store
            .inner()
            .program
            .as_ref()
            .is_some_and(Serving::has_said);
        has_said || service.may_take_more()
    }

    fn is_idle(core: &Core<Self>) -> bool {
        let keeper = core.service.keeper.as_ref();
        keeper.is_none_or(|it| it.batches.are_empty())
    }

    fn housekeeping(server: &mut Server) {
        server.keep_program();
    }

    fn check(server: &mut Server) -> anyhow::Result<()> {
        server.end_if_outvoted()?;
        match &mut server.core.group.store.inner_mut().program {
            Some(program) => program.check(),
            None => Ok(()),
        }
    }

    fn faults(core: &Core<Self>) -> Vec<String> {
        let mut faults = outputs::faults(core);
        faults.extend(health::faults(core));
        let limit_mib = core.service.whole_log_bytes_max >> 20;
        faults.extend(is_log_full(core).then(|| {
            format!(
                "the served program cannot save itself, so the whole log is kept, and has reached {limit_mib} MiB: \
                 no client is served (see whole-log-max-mib)"
            )
        }));
        faults
    }

    fn report(core: &Core<Self>, report: &mut Report) {
        outputs::report(core, report);
        if let Some(clients) = &core.service.clients {
            report.program = clients.served_at();
            let (count, bytes) = clients.load();
            report.connections += count;
            report.client_buffer_bytes += bytes;
        }
        let waits = core.service.waits.clone();
        report.durations.insert(report::WAIT.to_owned(), waits);
    }

    fn count(&self, application: &Self::Application, sink: CounterSink<'_>) {
        let checker = application.program.as_ref().map(|it| it.checker.counters());
        let compared = application.outputs().counts();
        checker.unwrap_or_default().with(compared).each(sink);
        if let Some(clients) = &self.clients {
            clients.counters.each(sink);
            clients.datagrams.counters.each(sink);
        }
        self.health.each(sink);
    }

    fn declare(sink: CounterSink<'_>) {
        GatewayCounters::default().each(sink);
        CheckerCounters::default().each(sink);
        DatagramCounters::default().each(sink);
        HealthCounters::default().each(sink);
    }
}

const fn transport(is_datagrams: bool) -> Transport {
    if is_datagrams {
        Transport::Udp
    } else {
        Transport::Tcp
    }
}

fn new_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        part.copy_from_slice(&random_number()?.to_le_bytes());
    }
    Ok(key)
}

/// The program cannot save itself, and the log, all of which is kept, is as long as it may be.
fn is_log_full(core: &Core<Served>) -> bool {
    let bytes = core.group.store.inner().bytes_since_cut();
    !core.service.is_able_to_save && bytes >= core.service.whole_log_bytes_max
}

/// A port that the program opened in this turn is not served. At its start it ends; later a client may have
/// asked for that port, and would end every replica.
fn refused_port(turn: u64, why: anyhow::Error) -> anyhow::Result<()> {
    if turn == 0 {
        return Err(why);
    }
    let why = format!("{why:#}");
    tracing::error!(
        why,
        "a port that the served program opened cannot be served"
    );
    Ok(())
}

/// What of the options cannot be served.
pub fn check(options: &mut ServerOptions) -> anyhow::Result<()> {
    let insecure = options.insecure;
    let is_encrypted = options.client_tls.is_some();
    let served = options.served.as_mut().context("no program is named")?;
    let is_safe = |port: &ProgramPort, at: &SocketAddr| {
        let is_encrypted = is_encrypted && port.transport != Some(Transport::Udp);
        insecure || at.ip().is_loopback() || is_encrypted
    };
    let mut published = served.published.iter();
    if let Some((port, at)) = published.find(|(port, at)| !is_safe(port, at)) {
        let allowed = "a loopback address, unless `client-tls` is on and it is for TCP; --insecure lets anybody who \
                       reaches it speak with the program";
        return Err(Refused::flag("publish", format!("{port}={at}"), allowed).into());
    }
    check_file(served)
}

/// Looks for the program's file, and at it.
fn check_file(served: &mut ServedOptions) -> anyhow::Result<()> {
    let file = served.command.first_mut().context("no program is named")?;
    let name = file.to_string_lossy().into_owned();
    let refused = |why: &str| Refused::because("COMMAND", &*name, why);
    let (found, whole) =
        which(file, std::env::var_os("PATH").as_deref()).map_err(|why| refused(&why))?;
    fits(&whole).map_err(|unfit| refused(&unfit.to_string()))?;
    *file = found;
    match profiles::unfit(&served.command) {
        Some(why) => Err(refused(why).into()),
        None => Ok(()),
    }
}

/// What is wrong with a program's file, if something is.
fn unstartable(file: &Path) -> Option<String> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("it is not found".to_owned()),
        Err(error) => Some(error.to_string()),
        Ok(it) if it.is_dir() => Some("it is a folder".to_owned()),
        Ok(it) if !it.is_file() => Some("it is no file".to_owned()),
        Ok(it) if it.permissions().mode() & 0o111 == 0 => Some("it is not executable".to_owned()),
        Ok(_) => None,
    }
}

/// What is to be started, by a name to be looked for in `path` or else from this process's folder; its file.
/// Or why not.
fn which(file: &OsStr, path: Option<&OsStr>) -> Result<(OsString, PathBuf), String> {
    let is_name = Path::new(file).components().count() == 1 && !file.as_bytes().contains(&b'/');
    if is_name {
        let folders = std::env::split_paths(path.unwrap_or_default());
        let mut files = folders.map(|folder| folder.join(file));
        let whole = files.find(|it| unstartable(it).is_none());
        let whole = whole.ok_or("it is not found in PATH, as an executable file")?;
        return Ok((file.to_owned(), whole));
    }
    let whole = std::path::absolute(file).map_err(|error| error.to_string())?;
    unstartable(&whole).map_or_else(|| Ok((whole.clone().into(), whole.clone())), Err)
}

impl Served {
    fn may_take_more(&self) -> bool {
        match (&self.clients, &self.keeper) {
            (Some(clients), Some(keeper)) => clients.have_more(&keeper.batches),
            _ => false,
        }
    }
}

impl Server {
    /// What clients have done goes into batches, and those on their way.
    fn take_what_clients_do(&mut self) {
        let is_full = is_log_full(&self.core);
        if is_full && !std::mem::replace(&mut self.core.service.has_told_full, true) {
            tracing::error!(
                "the whole log of the served program has reached its limit: no client is served"
            );
        }
        let service = &mut self.core.service;
        let (Some(clients), Some(keeper)) = (&mut service.clients, &mut service.keeper) else {
            return;
        };
        match clients.look() {
            Ok(true) => {
                if let Some(running) = self
                    .core
                    .group
                    .store
                    .inner_mut()
                    .program
                    .as_mut()
                    .and_then(Serving::running)
                {
                    running.rings.heard();
                }
            }
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "the clients of the served program cannot be looked at");
            }
        }
        let follows = service.followers_refuse && !self.core.group.leads();
        let why = follows.then_some(NoClients::Follows);
        let why = why.or(is_full.then_some(NoClients::LogIsFull));
        clients.refuse(why, &mut keeper.batches);
        let now = clock::now();
        keeper.batches.look_at_clock(now.0);
        if self.draining_since.is_none() {
            clients.take(&mut keeper.batches, now);
        }
        self.send_batches();
    }

    fn fail(&mut self, why: anyhow::Error) {
        if let Some(program) = &mut self.core.group.store.inner_mut().program {
            program.fail(why);
        }
    }

    /// With what the log or a snapshot has made of the state.
    fn begin_from_state(&mut self, program: Option<Serving>, how: Input) {
        let replay = self.core.group.store.inner_mut();
        replay.program = program;
        replay.reporter = Some(Reporter::of(self.options.id, self.incarnation));
        replay.go_on();
        self.core.service.has_doorbell = false;
        self.keeper_hears(how);
    }

    /// Hands over what the program has said.
    fn tell_clients(&mut self) {
        self.go_on_with_cut();
        let service = &mut self.core.service;
        let (Some(clients), Some(keeper)) = (&mut service.clients, &mut service.keeper) else {
            return;
        };
        let gateway = keeper.batches.gateway();
        let replay = self.core.group.store.inner_mut();
        // One that ends to begin anew stops to listen; whoever connects meanwhile waits.
        let is_saving = replay.is_saving();
        let mut program = replay.program.take();
        let mut failed = None;
        let running = program.as_mut().and_then(Serving::running_and_checker);
        if let Some((running, checker)) = running {
            // Read first: what was said before it is in the ring.
            let turn_done = running.rings.turn_done();
            if !std::mem::replace(&mut service.has_doorbell, true)
                && let Err(error) = clients.watch_doorbell(running.rings.doorbell().as_raw_fd())
            {
                failed = Some(error.into());
            }
            clients.note_outbound(running.rings.outbound());
            clients.datagrams.note_lost(running.rings.lost_datagrams());
            for _ in 0..SAID_PER_TURN {
                let (turn, said) = match running.rings.take() {
                    Ok(Some(taken)) => taken,
                    Ok(None) => {
                        checker.done(turn_done);
                        break;
                    }
                    Err(broken) => {
                        failed = Some(broken.into());
                        break;
                    }
                };
                let here = |connection| replay.client_here(connection, gateway);
                match said {
                    Said::Data { connection, bytes } => {
                        checker.said(turn, connection, bytes);
                        if let Some(client) = here(connection) {
                            clients.tell(client, bytes);
                        }
                    }
                    Said::Shut { connection } => {
                        if let Some(client) = here(connection) {
                            clients.shut(client);
                        }
                    }
                    Said::Close { connection } => {
                        checker.closed(turn, connection);
                        if let Some(client) = here(connection) {
                            clients.close(client);
                        }
                    }
                    Said::Listen { at, is_datagrams } => {
                        let transport = transport(is_datagrams);
                        let published = published_at(&service.published, at.port(), transport);
                        let listens = clients.listen(at, transport, published);
                        failed = failed.or(listens.or_else(|it| refused_port(turn, it)).err());
                    }
                    Said::Unlisten { at, .. } if is_saving => {
                        tracing::debug!(%at, "it will listen there again");
                    }
                    Said::Unlisten { at, is_datagrams } => {
                        clients.unlisten(at, transport(is_datagrams));
                    }
                    Said::Datagram { peer, own, bytes } => {
                        checker.sent(turn, (peer, own), bytes);
                        match replay.gateway_of(peer, own.port(), turn) {
                            Some(it) if it == gateway => {
                                clients.datagrams.send(own, peer, bytes);
                            }
                            Some(_) => {} // another replica's program says the same there
                            None => clients.datagrams.counters.unknown += 1,
                        }
                    }
                }
            }
        }
        if let (Some(failed), Some(program)) = (failed, &mut program) {
            program.fail(failed);
        }
        replay.program = program;
        clients.write(&mut keeper.batches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_cannot_be_served_ends_a_program_at_its_start_only() {
        let why = || anyhow::anyhow!("it is in use");
        assert!(refused_port(0, why()).is_err());
        assert!(refused_port(1, why()).is_ok());
    }

    #[test]
    fn a_program_is_found_or_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        fs::write(&file, "").unwrap();
        let path = Some(folder.path().as_os_str());
        let name = OsStr::new("program");
        let absolute = |file: &Path| which(file.as_os_str(), None);
        assert!(which(name, path).is_err(), "nobody may start it");
        assert_eq!(absolute(&file), Err("it is not executable".to_owned()));
        assert_eq!(absolute(folder.path()), Err("it is a folder".to_owned()));
        assert_eq!(
            absolute(&folder.path().join("no")),
            Err("it is not found".to_owned())
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(which(name, path), Ok((name.to_owned(), file.clone())));
        assert_eq!(
            which(file.as_os_str(), None),
            Ok((file.clone().into(), file.clone()))
        );
        for missing in ["another", "./program", ""] {
            assert!(which(OsStr::new(missing), path).is_err(), "{missing}");
        }
    }
}
