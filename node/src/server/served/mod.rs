//! The server of a program that was not written for it. The program's input is the log; each replica runs
//! one, and each answers the clients that came to it with what its own program says.
mod batches;
mod checker;
mod commands;
mod datagrams;
mod gateway;
mod outputs;
pub mod profiles;
mod program;
mod saved;
pub mod trial;
mod unchecked;

use self::batches::Batches;
use self::checker::CheckerCounters;
use self::datagrams::DatagramCounters;
use self::gateway::{Clients, GatewayCounters, published_at};
use self::outputs::Comparison;
use self::program::{Serving, elsewhere};
pub use self::saved::NoProgram;
use self::trial::{Tried, try_program};
use super::clients::AnswerKind;
use super::core::{Core, Hosted};
use super::fronts::Protocol;
use super::origin::Origin;
use super::random::random_number;
use super::route_outcome::RouteOutcome;
use super::service::Service;
use super::{TOKEN_DATAGRAMS, clock};
use crate::options::{ProgramPort, Refused, ServedOptions, ServerOptions, Transport};
use crate::report::{self, Durations, Report};
use anyhow::Context as _;
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use quorumwire_control::Now;
use quorumwire_group as group;
use quorumwire_interfaces::{CounterSink, Executed, ReplicaId};
use quorumwire_interpose::{Said, fits};
use quorumwire_kv::QueryForm;
use quorumwire_replay::{Answer, Command, Gateway, Replay, Reporter};
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

/// Folder of the program's files, in the replica's.
pub const PROGRAM_FOLDER: &str = "program";

/// A leader that has not heard a replica for so long ends its clients' connections.
const GATEWAY_SILENCE: Duration = Duration::from_secs(5);
/// Things that the program has said, taken in one turn.
const SAID_PER_TURN: usize = 4096;

/// Requests of this service that are no batches, by number.
const BEGIN: u64 = u64::MAX;
const GATEWAY_ENDS: u64 = u64::MAX - 1;
const CUT: u64 = u64::MAX - 2;
const OUTPUTS: u64 = u64::MAX - 3;
const VERDICT: u64 = u64::MAX - 4;

const CLIENTS_GONE: &str =
    "the log holds the clients of this replica to be gone: their connections end";

/// A server of a program.
type Server = super::Server<Served>;

/// Whether the program does what it must.
#[derive(Default)]
enum Trial {
    #[default]
    NotBegun,
    /// It is tried elsewhere.
    Runs(RunningTrial),
    Passed,
}

/// Dropped, it is over.
struct RunningTrial {
    result: Receiver<anyhow::Result<Tried>>,
    is_over: Arc<AtomicBool>,
}

impl Drop for RunningTrial {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

/// What a server keeps for the program beside the group.
#[derive(Default)]
pub struct Served {
    clients: Option<Clients>,
    /// Until the server begins; then the application has it.
    program: Option<Serving>,
    batches: Option<Batches>,
    /// For how long what clients did had to wait for its batch.
    waits: Durations,
    published: BTreeMap<ProgramPort, SocketAddr>,
    has_doorbell: bool,
    trial: Trial,
    /// The program's beginning, or a gateway's end, is on its way into the log.
    begins: bool,
    ends: bool,
    cuts: bool,
    /// Somebody wants a state of the program, which is there only at a cut.
    is_state_wanted: bool,
    /// The last cut that clients were told of, and the last one of which a snapshot is taken.
    told_cut: u64,
    taken_cut: u64,
    save_signal: Option<u8>,
    cut_log_bytes: u64,
    followers_refuse: bool,
    heard: BTreeMap<ReplicaId, Now>,
    comparison: Comparison,
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
        Ok(Self {
            clients: Some(clients),
            program: Some(Serving::of(served, &options.dir, PROGRAM_FOLDER)?),
            batches: Some(Batches::new(new_gateway(options.id)?)),
            waits: Durations::default(),
            published: served.published.clone(),
            save_signal: served.how_to_save(),
            cut_log_bytes: served.cut_log_bytes,
            followers_refuse: served.followers_refuse,
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
        server.begin_from_state(program);
        server.core.service.told_cut = server.core.service.taken_cut; // there is no client yet
    }

    /// The program of the state before is ended, and begins anew from what the snapshot has.
    fn state_replaced(server: &mut Server, before: &mut Self::Application) {
        let program = before.program.take();
        server.begin_from_state(program);
    }

    fn makes_state(server: &mut Server) -> bool {
        let makes = server.core.service.save_signal.is_some();
        server.core.service.is_state_wanted |= makes;
        makes
    }

    fn has_no_state(core: &Core<Self>) -> Option<&'static str> {
        let is_unable = core.service.save_signal.is_none();
        is_unable.then_some(
            "the served program cannot save itself: see options save-signal and snapshot-command",
        )
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
        core.service.batches.as_ref().is_none_or(Batches::are_empty)
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
        outputs::faults(core)
    }

    fn report(core: &Core<Self>, report: &mut Report) {
        outputs::report(core, report);
        if let Some(clients) = &core.service.clients {
            report.program = clients.served_at();
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
    }

    fn declare(sink: CounterSink<'_>) {
        GatewayCounters::default().each(sink);
        CheckerCounters::default().each(sink);
        DatagramCounters::default().each(sink);
    }
}

const fn transport(is_datagrams: bool) -> Transport {
    if is_datagrams {
        Transport::Udp
    } else {
        Transport::Tcp
    }
}

fn new_gateway(replica: ReplicaId) -> anyhow::Result<Gateway> {
    Ok(Gateway {
        replica: replica.0,
        number: random_number()?,
    })
}

fn new_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        part.copy_from_slice(&random_number()?.to_le_bytes());
    }
    Ok(key)
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
    let (found, whole) =
        which(file, std::env::var_os("PATH").as_deref()).context("option COMMAND")?;
    if let Err(unfit) = fits(&whole) {
        let allowed = format!("a program that can be served; {unfit}");
        let refused = Refused::flag("COMMAND", file.to_string_lossy(), allowed);
        return Err(refused).context("option COMMAND");
    }
    *file = found;
    Ok(())
}

/// What is to be started, by a name to be looked for in `path` or else from this process's folder; its file.
fn which(file: &OsStr, path: Option<&OsStr>) -> Result<(OsString, PathBuf), Refused> {
    let is_program = |file: &Path| {
        let about = fs::metadata(file);
        about.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let is_name = Path::new(file).components().count() == 1 && !file.as_bytes().contains(&b'/');
    let found = if is_name {
        let folders = std::env::split_paths(path.unwrap_or_default());
        let mut files = folders.map(|folder| folder.join(file));
        let whole = files.find(|it| is_program(it));
        whole.map(|whole| (file.to_owned(), whole))
    } else {
        let whole = std::path::absolute(file).ok();
        let whole = whole.filter(|it| is_program(it));
        whole.map(|whole| (whole.clone().into(), whole))
    };
    found.ok_or_else(|| {
        let allowed = "a program's file, or a name that is found in PATH";
        Refused::flag("COMMAND", file.to_string_lossy(), allowed)
    })
}

impl Served {
    fn may_take_more(&self) -> bool {
        match (&self.clients, &self.batches) {
            (Some(clients), Some(batches)) => clients.have_more(batches),
            _ => false,
        }
    }
}

impl Server {
    /// What clients have done goes into batches, and those on their way.
    fn take_what_clients_do(&mut self) {
        let service = &mut self.core.service;
        let (Some(clients), Some(batches)) = (&mut service.clients, &mut service.batches) else {
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
        clients.refuse(
            service.followers_refuse && !self.core.group.leads(),
            batches,
        );
        let now = clock::now();
        batches.look_at_clock(now);
        clients.take(batches, now);
        self.send_batches();
    }

    fn send_batches(&mut self) {
        let Some(mut batches) = self.core.service.batches.take() else {
            return;
        };
        let now = clock::now();
        while let Some((number, command)) = batches.next(now) {
            if !self.propose(number, command) {
                break; // at the next housekeeping
            }
            batches.sent(number);
        }
        let waits = &mut self.core.service.waits;
        for waited in batches.waits() {
            waits.record(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        }
        self.core.service.batches = Some(batches);
    }

    fn completed(&mut self, number: u64, said: AnswerKind, answer: &[u8]) {
        if number == BEGIN {
            self.core.service.begins = false;
            return;
        }
        if number == GATEWAY_ENDS {
            self.core.service.ends = false;
            return;
        }
        if number == CUT {
            self.core.service.cuts = false;
            return;
        }
        if number == OUTPUTS || number == VERDICT {
            let is_done = matches!(said, AnswerKind::Answer | AnswerKind::Repeated)
                && Answer::decode(answer) == Some(Answer::Done);
            self.comparison_said(number == OUTPUTS, is_done);
            return;
        }
        let Some(batches) = &mut self.core.service.batches else {
            return;
        };
        let answer = match said {
            AnswerKind::Refused(reason) if reason.executed() == Executed::No => {
                return batches.refused(number);
            }
            AnswerKind::Refused(_) => None,
            AnswerKind::Answer | AnswerKind::Repeated => Answer::decode(answer),
        };
        let now = clock::now();
        match answer {
            None => batches.went_astray(number, now),
            Some(answer) => {
                if !batches.answered(number, answer, now) {
                    self.begin_gateway(CLIENTS_GONE);
                }
            }
        }
    }

    /// The log holds the one before to be gone, and with it all clients.
    fn begin_gateway(&mut self, why: &'static str) {
        tracing::warn!("{why}");
        let service = &mut self.core.service;
        if let Some(clients) = &mut service.clients {
            clients.drop_all();
        }
        match new_gateway(self.options.id) {
            Ok(gateway) => {
                let before = service.batches.take();
                service.batches = Some(match before {
                    Some(before) => before.followed_by(gateway),
                    None => Batches::new(gateway),
                });
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, why: anyhow::Error) {
        if let Some(program) = &mut self.core.group.store.inner_mut().program {
            program.fail(why);
        }
    }

    /// With what the log or a snapshot has made of the state.
    fn begin_from_state(&mut self, program: Option<Serving>) {
        let replay = self.core.group.store.inner_mut();
        replay.program = program;
        replay.reporter = Some(Reporter {
            replica: self.options.id.0,
            life: self.incarnation.0,
        });
        replay.go_on();
        self.core.service.taken_cut = replay.cut();
        self.core.service.has_doorbell = false;
    }

    /// Goes on with a cut: the program saves itself, a snapshot is taken of that, it begins anew.
    fn go_on_with_cut(&mut self) {
        let replay = self.core.group.store.inner_mut();
        let saved = replay.program.as_mut().and_then(Serving::go_on);
        if let Some(saved) = saved.filter(|_| replay.is_saving()) {
            replay.has_saved(saved);
        }
        let cut = replay.cut();
        let service = &mut self.core.service;
        if service.told_cut != cut {
            service.told_cut = cut;
            service.is_state_wanted = false;
            self.begin_gateway("the served program saves itself: its clients' connections end");
        }
    }

    fn keep_cut(&mut self) {
        if self.core.group.store.may_freeze() {
            let cut = self.core.group.store.inner().cut();
            if self.core.service.taken_cut == cut {
                // Whoever waited for a state has had it since then.
                self.core.group.store.inner_mut().go_on();
                self.core.service.has_doorbell = false;
                return;
            }
            group::Driver::take_snapshot(self);
            if self.upkeep.snapshots.is_taking() {
                self.core.service.taken_cut = cut;
            }
            return;
        }
        let replay = self.core.group.store.inner();
        let (behind, bytes) = (replay.cut(), replay.bytes_since_cut());
        let service = &self.core.service;
        let is_long = bytes > service.cut_log_bytes && self.core.group.leads();
        let is_wanted = service.is_state_wanted || self.upkeep.snapshots.backups.are_waiting();
        let Some(signal) = service.save_signal.filter(|_| is_long || is_wanted) else {
            return;
        };
        if replay.has_begun() && !replay.is_saving() && !service.cuts {
            let command = Command::Cut { behind, signal }.encode();
            self.core.service.cuts = self.propose(CUT, &command);
        }
    }

    /// Hands over what the program has said.
    fn tell_clients(&mut self) {
        self.go_on_with_cut();
        let service = &mut self.core.service;
        let (Some(clients), Some(batches)) = (&mut service.clients, &mut service.batches) else {
            return;
        };
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
                let here = |connection| {
                    let client = replay.client(connection)?;
                    (client.gateway == batches.gateway()).then_some(client.client)
                };
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
                            Some(gateway) if gateway == batches.gateway() => {
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
        clients.write(batches);
    }

    /// What is to be done every now and then.
    fn keep_program(&mut self) {
        if let Some(clients) = &mut self.core.service.clients {
            clients.accept_again();
            clients.cut_closed(clock::now());
            clients.time_out_handshakes(clock::now());
            clients.look_for_ports(&self.core.service.published, clock::now());
        }
        self.look_at_own_gateway();
        self.send_batches();
        self.keep_cut();
        let now = clock::now();
        self.compare_outputs(now);
        for id in self.core.group.peers.connected.keys() {
            self.core.service.heard.insert(*id, now);
        }
        if self.core.group.store.inner().has_begun() {
            self.core.service.trial = Trial::Passed; // another leader's has
        }
        if !self.core.group.leads() {
            return;
        }
        if !self.core.group.store.inner().has_begun() {
            self.begin_program();
            return;
        }
        self.end_silent_gateway(now);
    }

    /// Clients that have nothing to say learn from this, and not from an answer, that the log holds them to
    /// be gone.
    fn look_at_own_gateway(&mut self) {
        let gateway = self.core.service.batches.as_ref().map(Batches::gateway);
        if gateway.is_some_and(|it| self.core.group.store.inner().has_ended(it)) {
            self.begin_gateway(CLIENTS_GONE);
        }
    }

    fn begin_program(&mut self) {
        if self.core.service.begins {
            return;
        }
        match self.go_on_with_trial() {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => return self.fail(error),
        }
        match new_key() {
            Ok(key) => {
                self.core.service.begins = self.propose(BEGIN, &Command::Begin { key }.encode());
            }
            Err(error) => self.fail(error),
        }
    }

    /// Before the log says that the program begins: what does not work then is in no log, from where it would
    /// end every replica again and again. Whether it has passed.
    fn go_on_with_trial(&mut self) -> anyhow::Result<bool> {
        let trial = &mut self.core.service.trial;
        match trial {
            Trial::NotBegun => {
                let served = self.options.served.clone();
                let served = served.context("a program is served")?;
                let is_over = Arc::new(AtomicBool::new(false));
                let told = Arc::clone(&is_over);
                let result = elsewhere("try-program", move || try_program(&served, &told))?;
                *trial = Trial::Runs(RunningTrial { result, is_over });
            }
            Trial::Runs(runs) => match runs.result.try_recv() {
                Ok(tried) => {
                    tried.context("tried before it is served")?;
                    *trial = Trial::Passed;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => anyhow::bail!("trying the program failed"),
            },
            Trial::Passed => {}
        }
        Ok(matches!(self.core.service.trial, Trial::Passed))
    }

    fn end_silent_gateway(&mut self, now: Now) {
        if self.core.service.ends {
            return;
        }
        let own = self.options.id;
        let heard = &mut self.core.service.heard;
        let replay = self.core.group.store.inner();
        let silent = replay.gateways().find(|gateway| {
            let id = ReplicaId(gateway.replica);
            let heard = *heard.entry(id).or_insert(now);
            id != own && now.0.saturating_sub(heard.0) >= GATEWAY_SILENCE
        });
        if let Some(gateway) = silent {
            tracing::warn!(
                replica = gateway.replica,
                "not heard for long: its clients' connections end"
            );
            self.core.service.ends =
                self.propose(GATEWAY_ENDS, &Command::GatewayEnds(gateway).encode());
        }
    }

    /// Whether it is on its way into the log.
    fn propose(&mut self, number: u64, command: &[u8]) -> bool {
        let routed = self
            .core
            .write(Origin::Service(number), command.len(), |buffer| {
                buffer.extend_from_slice(command);
            });
        matches!(routed, RouteOutcome::Pending)
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
        let refused = which(name, path).unwrap_err();
        assert_eq!(refused.option, "COMMAND", "nobody may start it");
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
