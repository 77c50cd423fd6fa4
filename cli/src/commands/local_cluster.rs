//! A cluster on this machine, each replica a process of its own. Starts, kills and stops them; restarts
//! nothing by itself.
mod record;

use super::Cli;
use super::ask;
use super::interrupt::Interrupt;
use super::namespaces::Namespaces;
use super::progress::Progress;
use super::view::{ClusterView, ReplicaView};
use anyhow::{Context as _, bail};
use clap::Parser as _;
use quorumwire_interfaces::ReplicaId;
use quorumwire_node::key_folder::KeyFolder;
use quorumwire_node::options::{Durability, Hosts, Refused, TABLE};
use quorumwire_node::planes::PlaneKind;
use quorumwire_node::privileges::make_folder;
use quorumwire_node::report::Report;
pub use record::{ClusterRecord, Program, ReplicaAddresses, ServiceAddresses};
use record::{fresh_name, word};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::iter;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LOCK_FILE: &str = "dev.lock";
/// Folder of the cluster's keys.
const KEYS_FOLDER: &str = "keys";
/// How long certificates of clusters for trying things out last.
const KEYS_DAYS: u32 = 3650;
/// In a network of its own a replica has these: for replicas, memcached clients, Redis clients, clients of
/// the native protocol, and HTTP.
const OWN_PORTS: [u16; 5] = [7400, 11_211, 6379, 7402, 7480];
/// And its plane this one.
const PLANE_PORT: u16 = 7401;
/// How much of a log's end is shown when its replica fails.
const LOG_TAIL_BYTES: u64 = 2048;
/// How long the replicas may take to elect a leader.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long stopping replicas may take; their own limit is `drain-timeout-ms`, 5 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const REPORT_TIMEOUT: Duration = Duration::from_millis(500);

/// How a cluster's folder was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FolderState {
    /// A new cluster.
    New,
    /// Its data is there.
    Again,
    /// Its data was in memory and is gone: a new cluster at the old addresses.
    Emptied,
}

/// Processes that make a cluster. All are killed when it is dropped.
#[derive(Debug)]
pub struct LocalCluster {
    dir: PathBuf,
    recorded: ClusterRecord,
    running: BTreeMap<u16, Child>,
    extra: Vec<String>,
    keys: KeyFolder,
    /// Replicas speak TLS to each other.
    pub has_tls: bool,
    /// The folder is removed at the end, and its logs with it.
    pub is_temporary: bool,
    /// Where the processes run, if not where this one does, and what their planes are there.
    network: Option<(Namespaces, &'static PlaneKind)>,
    _lock: File,
}

impl LocalCluster {
    /// Prepares a cluster in `dir`: the one that was there, or a new one. `replica_count` `None` means
    /// what was there, or 3. Starts nothing.
    pub fn open(
        dir: &Path,
        replica_count: Option<u16>,
        durability: Durability,
        extra: &[String],
    ) -> anyhow::Result<(Self, FolderState)> {
        Self::open_serving(dir, replica_count, durability, extra, None)
    }

    /// The same for a program. `None` means what was there, or the store.
    pub fn open_serving(
        dir: &Path,
        replica_count: Option<u16>,
        durability: Durability,
        extra: &[String],
        program: Option<&Program>,
    ) -> anyhow::Result<(Self, FolderState)> {
        make_folder(dir)?;
        let lock = lock(dir)?;
        let (recorded, opened) = match ClusterRecord::read(dir)? {
            None => {
                if !holds_only_the_lock(dir)? {
                    let allowed =
                        "a new folder, an empty one, or one of an earlier `quorumwire dev`";
                    bail!(Refused::flag("dir", dir.display().to_string(), allowed));
                }
                (
                    ClusterRecord::new(replica_count.unwrap_or(3), durability, program)?,
                    FolderState::New,
                )
            }
            Some(recorded) => {
                check_program(dir, &recorded, program)?;
                again(dir, recorded, replica_count, durability)?
            }
        };
        recorded.write(dir)?;
        let hosts = hosts(&recorded, extra);
        let keys = keys_for(&dir.join(KEYS_FOLDER), &recorded, hosts)?;
        let cluster = Self {
            dir: dir.to_owned(),
            keys,
            has_tls: true,
            is_temporary: false,
            recorded,
            running: BTreeMap::new(),
            extra: extra.to_vec(),
            network: None,
            _lock: lock,
        };
        cluster.check_ports_free()?;
        Ok((cluster, opened))
    }

    /// Prepares a new cluster in an empty folder, whose replicas run in a network of their own and have their
    /// planes in its interfaces. Starts nothing.
    pub fn open_within(
        dir: &Path,
        durability: Durability,
        network: Namespaces,
        kind: &'static PlaneKind,
        extra: &[String],
    ) -> anyhow::Result<Self> {
        let (mut cluster, _) = Self::open(dir, None, durability, extra)?;
        for replica in &mut cluster.recorded.replicas {
            let ip = Namespaces::address(replica.id)?;
            let [peer, memcached, redis, client, http] =
                OWN_PORTS.map(|port| format!("{ip}:{port}"));
            replica.peer = peer;
            replica.service = ServiceAddresses::Store { memcached, redis };
            replica.client = client;
            replica.http = http;
        }
        cluster.network = Some((network, kind));
        Ok(cluster)
    }

    /// Where the replicas listen.
    #[must_use]
    pub fn replicas(&self) -> &[ReplicaAddresses] {
        &self.recorded.replicas
    }

    /// What is served, unless it is the store.
    #[must_use]
    pub const fn program(&self) -> Option<&Program> {
        self.recorded.program.as_ref()
    }

    /// Where one of them listens.
    pub fn replica(&self, id: u16) -> anyhow::Result<&ReplicaAddresses> {
        let mut replicas = self.replicas().iter();
        let replica = replicas.find(|replica| replica.id == id);
        replica.with_context(|| format!("there is no replica {id}"))
    }

    /// The process of a replica that was started and has not been found dead.
    #[must_use]
    pub fn pid(&self, id: u16) -> Option<u32> {
        self.running.get(&id).map(Child::id)
    }

    /// Says which port is taken, if any.
    fn check_ports_free(&self) -> anyhow::Result<()> {
        for replica in self.replicas() {
            let uses = [
                ("peer", &replica.peer),
                ("client", &replica.client),
                ("http", &replica.http),
            ];
            for (port_use, address) in uses.into_iter().chain(replica.service.each()) {
                TcpListener::bind(address.as_str()).with_context(|| {
                    format!(
                        "{address}, the {port_use} address of replica {} in {}, is taken: stop what \
                         uses it, or choose another --dir",
                        replica.id,
                        self.dir.display()
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Starts all replicas that do not run. To be called from the main thread only: the kernel kills
    /// a child when the thread that started it ends.
    pub fn start_all(&mut self) -> anyhow::Result<()> {
        let ids: Vec<u16> = self.replicas().iter().map(|replica| replica.id).collect();
        ids.into_iter().try_for_each(|id| self.start(id))
    }

    /// Starts one replica, if it does not run.
    pub fn start(&mut self, id: u16) -> anyhow::Result<()> {
        if self.running.contains_key(&id) {
            return Ok(());
        }
        let log = self.log_path(id);
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("opening {}", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        // What is set for servers in this environment is not meant for these.
        for spec in TABLE.iter() {
            command.env_remove(spec.variable());
        }
        command
            .env_remove("QUORUMWIRE_CONFIG")
            .args(self.arguments(id)?)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C is for the parent, which then stops its children in good order.
            .process_group(0);
        let child = match &self.network {
            None => command.spawn(),
            Some((network, _)) => network.within(id, || Ok(command.spawn()))?,
        };
        let child = child.with_context(|| format!("starting replica {id}"))?;
        self.running.insert(id, child);
        Ok(())
    }

    /// What its servers do.
    pub fn hosts(&self) -> Hosts {
        hosts(&self.recorded, &self.extra)
    }

    /// What a replica's process is told.
    fn arguments(&self, id: u16) -> anyhow::Result<Vec<OsString>> {
        let replica = self.replica(id)?;
        let members: Vec<String> = self
            .replicas()
            .iter()
            .map(|replica| format!("{}={}", replica.id, replica.peer))
            .collect();
        let program = self.program();
        let mut arguments: Vec<OsString> =
            vec![if program.is_some() { "run" } else { "server" }.into()];
        let mut option = |name: &str, value: OsString| {
            arguments.extend([format!("--{name}").into(), value]);
        };
        option("id", id.to_string().into());
        option("dir", self.dir.join(id.to_string()).into());
        option("cluster", self.recorded.cluster.clone().into());
        option("members", members.join(",").into());
        option("durability", self.recorded.durability.clone().into());
        option("listen-peer", replica.peer.clone().into());
        option("listen-client", replica.client.clone().into());
        option("listen-http", replica.http.clone().into());
        option("secret-file", self.keys.secret_file().into());
        option("die-with-parent", std::process::id().to_string().into());
        for (port_use, address) in replica.service.each() {
            match program {
                None => option(&format!("listen-{port_use}"), address.into()),
                Some(it) => option("publish", format!("{}={address}", it.port).into()),
            }
        }
        if let Some((_, kind)) = &self.network {
            let listen = format!("{}:{PLANE_PORT}", Namespaces::address(id)?);
            option("plane", kind.name.into());
            option("listen-plane", listen.into());
            arguments.push("--insecure".into()); // nobody else is in that network
        }
        arguments.extend(self.tls_options(id));
        arguments.extend(self.extra.iter().map(OsString::from));
        if let Some(program) = program {
            arguments.push("--".into());
            arguments.extend(program.command.iter().map(OsString::from));
        }
        Ok(arguments)
    }

    /// Refuses what the replicas' processes would refuse in what they are told.
    pub fn check_arguments(&self) -> anyhow::Result<()> {
        for replica in self.replicas() {
            let arguments = self.arguments(replica.id)?;
            let read = Cli::try_parse_from(iter::once("quorumwire".into()).chain(arguments))?;
            read.check_options()?;
        }
        Ok(())
    }

    /// With which files a replica speaks to the others.
    fn tls_options(&self, id: u16) -> Vec<OsString> {
        if !self.has_tls {
            return Vec::new();
        }
        let files = self.keys.peer_files(ReplicaId(id));
        [
            ("--tls-ca", files.authorities),
            ("--tls-cert", files.own.certificate),
            ("--tls-key", files.own.key),
        ]
        .into_iter()
        .flat_map(|(name, path)| [name.into(), path.into()])
        .collect()
    }

    /// Where a replica's log is.
    #[must_use]
    pub fn log_path(&self, id: u16) -> PathBuf {
        self.dir.join(format!("{id}.log"))
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self, id: u16) -> anyhow::Result<()> {
        let child = self.running.remove(&id);
        let mut child = child.with_context(|| format!("replica {id} does not run"))?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Replicas that have ended since the last call.
    pub fn ended(&mut self) -> anyhow::Result<Vec<(u16, ExitStatus)>> {
        let mut ended = Vec::new();
        for (id, child) in &mut self.running {
            if let Some(status) = child.try_wait()? {
                ended.push((*id, status));
            }
        }
        for (id, _) in &ended {
            self.running.remove(id);
        }
        Ok(ended)
    }

    /// Whether any replica runs.
    #[must_use]
    pub fn any_runs(&self) -> bool {
        !self.running.is_empty()
    }

    /// Waits until a running replica leads and serves; an error with the end of its log if one of
    /// them ends meanwhile.
    pub fn wait_for_leader(&mut self, interrupt: &Interrupt) -> anyhow::Result<Report> {
        let end = Instant::now() + START_TIMEOUT;
        let mut progress = Progress::start();
        loop {
            interrupt.check()?;
            if let Some((id, status)) = self.ended()?.first() {
                bail!("replica {id} {}; {}", ending(*status), self.log_tail(*id));
            }
            let view = self.view();
            if let Some(leader) = view.leader() {
                return Ok(leader.clone());
            }
            let why = view.why_no_leader();
            if !view.may_find_leader() {
                bail!("{why}");
            }
            if Instant::now() > end {
                let id = self.replicas().first().map_or(0, |replica| replica.id);
                bail!(
                    "after {} s {why}; {}",
                    START_TIMEOUT.as_secs(),
                    self.log_tail(id)
                );
            }
            progress.say(&why);
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until clients can connect to the program of each replica.
    pub fn wait_for_program(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let Some(port) = self.program().map(|program| program.port) else {
            return Ok(());
        };
        let mut progress = Progress::start();
        let replicas = self.replicas().iter();
        let mut left: Vec<(u16, String)> = replicas
            .flat_map(|it| {
                it.service
                    .each()
                    .into_iter()
                    .map(|at| (it.id, at.1.clone()))
            })
            .collect();
        loop {
            interrupt.check()?;
            if let Some((id, status)) = self.ended()?.first() {
                bail!("replica {id} {}; {}", ending(*status), self.log_tail(*id));
            }
            left.retain(|(_, address)| TcpStream::connect(address).is_err());
            let Some((id, _)) = left.first() else {
                return Ok(());
            };
            if progress.elapsed() > START_TIMEOUT {
                bail!(
                    "the program of replica {id} does not listen at port {port} after {} s: does --serve name \
                     its port? {}",
                    START_TIMEOUT.as_secs(),
                    self.log_tail(*id)
                );
            }
            progress.say(&format!("waiting for the program of replica {id}"));
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// What the running replicas say.
    #[must_use]
    pub fn view(&self) -> ClusterView {
        let running = self.replicas().iter();
        let running = running.filter(|replica| self.running.contains_key(&replica.id));
        let mut view = ClusterView {
            replicas: BTreeMap::new(),
            strangers: BTreeMap::new(),
            barred: BTreeMap::new(),
            closed: std::collections::BTreeSet::new(),
        };
        for replica in running {
            let seen = match ask::report(&replica.http, REPORT_TIMEOUT) {
                Ok(report) => ReplicaView::Report(Box::new(report)),
                Err(error) => {
                    let reason = error.to_string();
                    if error.is_final() {
                        view.barred.insert(replica.http.clone(), reason.clone());
                    }
                    ReplicaView::Unreachable(reason)
                }
            };
            view.replicas.insert(replica.id, seen);
        }
        view
    }

    /// The end of a replica's log, introduced by the file's name, if it stays.
    #[must_use]
    pub fn log_tail(&self, id: u16) -> String {
        let path = self.log_path(id);
        let tail = read_tail(&path).unwrap_or_else(|error| format!("(unreadable: {error})"));
        let name = if self.is_temporary {
            "its log".to_owned() // which will be gone
        } else {
            path.display().to_string()
        };
        format!("the end of {name}:\n{}", tail.trim_end())
    }

    /// SIGTERM to all, so that they finish what they began; SIGKILL to those that take too long, also for
    /// whoever interrupts.
    pub fn stop(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        for child in self.running.values() {
            let pid = Pid::from_raw(i32::try_from(child.id())?).context("a process has an id")?;
            kill_process(pid, Signal::TERM)?;
        }
        let mut progress = Progress::start();
        while self.any_runs() && progress.elapsed() < STOP_TIMEOUT && !interrupt.is_impatient() {
            for (id, status) in self.ended()? {
                if !status.success() {
                    errln!("replica {id} {}; {}", ending(status), self.log_tail(id));
                }
            }
            progress.say(&format!(
                "waiting for {} replicas to stop",
                self.running.len()
            ));
            thread::sleep(POLL_INTERVAL);
        }
        for id in self.running.keys().copied().collect::<Vec<_>>() {
            let waited = progress.elapsed().as_secs();
            errln!("replica {id} has not stopped after {waited} s and is killed");
            self.kill(id)?;
        }
        Ok(())
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            // Both fail only when the process is gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How a process ended, in words.
#[must_use]
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// A folder that was used before.
fn again(
    dir: &Path,
    mut recorded: ClusterRecord,
    replica_count: Option<u16>,
    durability: Durability,
) -> anyhow::Result<(ClusterRecord, FolderState)> {
    let there = recorded.replicas.len();
    if let Some(count) = replica_count
        && usize::from(count) != there
    {
        let allowed = format!("{there}, as in {}", dir.display());
        bail!(Refused::flag("replicas", count.to_string(), allowed));
    }
    if recorded.durability != word(durability) {
        let allowed = format!("{}, as in {}", recorded.durability, dir.display());
        bail!(Refused::flag("durability", word(durability), allowed));
    }
    match durability {
        Durability::Sync => Ok((recorded, FolderState::Again)),
        Durability::Memory => {
            for replica in &recorded.replicas {
                let folder = dir.join(replica.id.to_string());
                match fs::remove_dir_all(&folder) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(error)
                            .with_context(|| format!("removing {}", folder.display()));
                    }
                }
            }
            recorded.cluster = fresh_name()?;
            Ok((recorded, FolderState::Emptied))
        }
    }
}

/// A folder's log is the input of one program only.
fn check_program(
    dir: &Path,
    recorded: &ClusterRecord,
    program: Option<&Program>,
) -> Result<(), Refused> {
    let Some(program) = program.filter(|it| recorded.program.as_ref() != Some(it)) else {
        return Ok(());
    };
    let (there, dir) = (&recorded.program, dir.display());
    let allowed = match there {
        None => format!("no program, as in {dir}; or another --dir"),
        Some(it) if it.command == program.command => {
            return Err(Refused::flag(
                "serve",
                program.port.to_string(),
                format!("{}, as in {dir}", it.port),
            ));
        }
        Some(it) => format!("{:?}, as in {dir}; or another --dir", it.command.join(" ")),
    };
    Err(Refused::flag("COMMAND", program.command.join(" "), allowed))
}

/// The keys that are there if they are this cluster's, else new ones.
fn keys_for(dir: &Path, recorded: &ClusterRecord, hosts: Hosts) -> anyhow::Result<KeyFolder> {
    let name = recorded.name_in_keys(hosts);
    if dir.exists() {
        if let Some(keys) = KeyFolder::open(dir)
            .ok()
            .filter(|keys| keys.cluster() == name)
        {
            return Ok(keys);
        }
        fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    let ids = recorded.replicas.iter().map(|replica| replica.id);
    let members = ids.map(|id| (ReplicaId(id), Vec::new())).collect();
    KeyFolder::create(dir, &name, &members, KEYS_DAYS)
}

/// What the servers do, with these further options.
fn hosts(recorded: &ClusterRecord, extra: &[String]) -> Hosts {
    let is_learners = |word: &String| word == "--learners" || word.starts_with("--learners=");
    match recorded.program {
        Some(_) => Hosts::Program,
        None if extra.iter().any(is_learners) => Hosts::Values,
        None => Hosts::Store,
    }
}

/// Keeps a folder for as long as the file is open.
pub fn lock(dir: &Path) -> anyhow::Result<File> {
    let path = dir.join(LOCK_FILE);
    let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("{} is in use by another `quorumwire dev`", dir.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("locking {}", path.display()))
        }
    }
}

fn holds_only_the_lock(dir: &Path) -> anyhow::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if entry?.file_name() != LOCK_FILE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The end of a log.
pub fn read_tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let bytes_max = file.metadata()?.len().min(LOG_TAIL_BYTES);
    file.seek(SeekFrom::End(-i64::try_from(bytes_max).unwrap_or(0)))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[path = "local_cluster_test.rs"]
mod tests;
