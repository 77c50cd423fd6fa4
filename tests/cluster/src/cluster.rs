//! A cluster of real replicas, each a process in its own network namespace with its own directory, and
//! what can be done to them. Starts, stops, breaks and asks; judges no history.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use crate::binary;
use crate::client::{Client, Outcome};
use crate::disk::{self, Scratch};
use crate::network::{Machine, Network};
use crate::plan::slowness;
pub use crate::plan::{Durability, OnFollower, Plan, Tls};
use crate::process::{self, CommandOutput, Process};
use crate::served;
use crate::status::{self, Digest, Role, Status};
use crate::switches;
use crate::waiting::{POLL_INTERVAL, wait_within};

/// How long a healthy cluster may take to settle after anything was done to it.
pub const SETTLE_DEADLINE: Duration = Duration::from_secs(30);

/// How long one client request may take before its outcome counts as unknown.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

const COMMAND_DEADLINE: Duration = Duration::from_secs(20);
pub(crate) const CLUSTER_NAME: &str = "harness";
const PEER_PORT: u16 = 7400;
pub(crate) const MEMCACHED_PORT: u16 = 11211;
pub(crate) const REDIS_PORT: u16 = 6379;
const OWN_PORT: u16 = 7402;
const HTTP_PORT: u16 = 8080;
const PLANE_PORT: u16 = 7401;
/// How far above a replica's ports those of a second server on its directory are.
const SECOND_PORTS: u16 = 1000;

/// How a server is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Start {
    /// As a member from the beginning.
    Founder,
    /// To be added.
    Joining,
    /// As a founder that runs already, on other ports.
    Second,
}

/// Held while a cluster runs: two at once would take each other's processor and time out.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `body` with a network and no replica started yet, on a thread in the client's machine. A failure
/// shows the end of every replica's log. Everything started is gone when this returns.
pub fn run(plan: Plan, body: impl FnOnce(&mut Cluster<'_>) -> Result<()> + Send) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let network = Network::new(plan.replicas + plan.spares).unwrap_or_else(|e| panic!("{e:#}"));
    let ran = network.run_in(Machine::Client, || {
        let mut cluster = Cluster::new(&network, plan).unwrap_or_else(|e| panic!("{e:#}"));
        let done = body(&mut cluster).and_then(|()| served::check_outputs(&mut cluster));
        if let Err(error) = done {
            panic!("{error:#}\n{}", cluster.describe());
        }
    });
    ran.unwrap_or_else(|e| panic!("{e:#}"));
}

/// As [`run`], with all of the plan's replicas started and a leader serving.
pub fn run_started(plan: Plan, body: impl FnOnce(&mut Cluster<'_>) -> Result<()> + Send) {
    run(plan, |cluster| {
        cluster.start_all()?;
        cluster.wait_for_leader()?;
        body(cluster)
    });
}

/// The cluster of one test. Its processes and disks go away with it.
#[derive(Debug)]
pub struct Cluster<'n> {
    // Fields are dropped in this order: processes before the disks they use.
    processes: BTreeMap<u16, Process>,
    paused: BTreeSet<u16>,
    network: &'n Network,
    plan: Plan,
    /// What servers that start from now on call their cluster.
    name: String,
    /// Where servers that start from now on listen for their peers.
    peer_port: u16,
    binary: PathBuf,
    scratch: Scratch,
}

impl<'n> Cluster<'n> {
    fn new(network: &'n Network, plan: Plan) -> Result<Self> {
        switches::check();
        let cluster = Self {
            processes: BTreeMap::new(),
            paused: BTreeSet::new(),
            network,
            name: CLUSTER_NAME.into(),
            peer_port: PEER_PORT,
            binary: binary::binary()?,
            scratch: Scratch::new(network.name())?,
            plan,
        };
        for id in 0..network.replicas() {
            match cluster.plan.disk_mib {
                Some(size) => disk::mount_small_disk(&cluster.disk(id), size)?,
                None => fs::create_dir(cluster.disk(id))?,
            }
        }
        cluster.make_keys(&cluster.keys())?;
        if ["xdp", "auto"].contains(&&cluster.plan.plane[..]) {
            cluster.let_planes_through(&network.ports())?;
        }
        Ok(cluster)
    }

    /// Makes a folder of keys for a cluster like this one.
    pub fn make_keys(&self, dir: &Path) -> Result<()> {
        let members = (0..self.network.replicas()).map(|id| format!("{id}={}", self.ip(id)));
        let members: Vec<String> = members.collect();
        let dir = dir.display().to_string();
        let name = format!("{CLUSTER_NAME}{}", self.plan.end_of_name());
        let new = ["keys", "new", "--cluster", &name, "--dir", &dir];
        self.command(&[&new[..], &["--members", &members.join(",")]].concat())?;
        Ok(())
    }

    /// The switch's ports deliver what a plane in the kernel sends only with a program of their own.
    pub(crate) fn let_planes_through(&self, ports: &[String]) -> Result<()> {
        process::let_planes_through(self.network, ports, &self.binary, self.scratch.path())
    }

    /// The network, to break it.
    #[must_use]
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// Whether replicas have a data plane, so that fast terms begin by themselves.
    #[must_use]
    pub fn has_planes(&self) -> bool {
        self.plan.plane != "none"
    }

    /// The ids the cluster starts with.
    pub fn founders(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.plan.replicas
    }

    /// Where the replica's data directory is mounted or made; the directory itself is inside.
    #[must_use]
    pub fn disk(&self, id: u16) -> PathBuf {
        self.scratch.path().join(format!("disk-{id}"))
    }

    /// The replica's `--dir`.
    #[must_use]
    pub fn dir(&self, id: u16) -> PathBuf {
        self.disk(id).join("data")
    }

    /// Everything the replica has said since the test began.
    #[must_use]
    pub fn log(&self, id: u16) -> String {
        fs::read_to_string(self.log_path(id)).unwrap_or_default()
    }

    /// Where the replica serves memcached clients.
    #[must_use]
    pub fn memcached(&self, id: u16) -> SocketAddr {
        (self.ip(id), MEMCACHED_PORT).into()
    }

    /// Where the replica serves clients of the native protocol.
    #[must_use]
    pub fn native(&self, id: u16) -> SocketAddr {
        (self.ip(id), OWN_PORT).into()
    }

    /// Where the replica serves Redis clients.
    #[must_use]
    pub fn redis(&self, id: u16) -> SocketAddr {
        (self.ip(id), REDIS_PORT).into()
    }

    /// Where the replica serves HTTP.
    #[must_use]
    pub fn http(&self, id: u16) -> SocketAddr {
        (self.ip(id), HTTP_PORT).into()
    }

    /// Where the replica talks to its peers.
    #[must_use]
    pub fn peer(&self, id: u16) -> SocketAddr {
        (self.ip(id), self.peer_port).into()
    }

    /// Where the replica's data plane listens.
    #[must_use]
    pub fn plane(&self, id: u16) -> SocketAddr {
        let address = if self.plan.planes_over_ipv6 {
            self.network.address_v6(Machine::Replica(id)).into()
        } else {
            self.ip(id).into()
        };
        SocketAddr::new(address, PLANE_PORT)
    }

    /// The folder with all keys of the cluster.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.scratch.path().join("keys")
    }

    /// The secret that all replicas have.
    #[must_use]
    pub fn secret_file(&self) -> PathBuf {
        self.keys().join("secret.toml")
    }

    /// Has a replica read its files again (`SIGHUP`).
    pub fn reload(&self, id: u16) -> Result<()> {
        self.process(id)?.signal(Signal::HUP)
    }

    /// The memcached addresses of all founders.
    #[must_use]
    pub fn targets(&self) -> Vec<SocketAddr> {
        self.founders().map(|id| self.memcached(id)).collect()
    }

    /// Starts all founders.
    pub fn start_all(&mut self) -> Result<()> {
        for id in self.founders() {
            self.start(id)?;
        }
        Ok(())
    }

    /// Starts a founder, for the first time or again on the directory it left.
    pub fn start(&mut self, id: u16) -> Result<()> {
        let arguments = self.arguments(id, Start::Founder);
        self.start_with(id, &arguments)
    }

    /// Starts a replica that is to join the cluster of the founders, for the first time or again.
    pub fn start_joining(&mut self, id: u16) -> Result<()> {
        let arguments = self.arguments(id, Start::Joining);
        self.start_with(id, &arguments)
    }

    /// Servers that start from now on have these further options: name without dashes, value.
    pub fn set_options(&mut self, options: Vec<(&'static str, &'static str)>) {
        self.plan.options = options;
    }

    /// Servers that start from now on are started by this plan.
    pub fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// Servers that start from now on call their cluster so; what they did before.
    pub fn set_name(&mut self, name: &str) -> String {
        std::mem::replace(&mut self.name, name.into())
    }

    /// Servers that start from now on are at this port for each other, and are told so.
    pub fn move_peers(&mut self, port: u16) {
        self.peer_port = port;
    }

    /// Tries to start a founder that ends by itself, and gives what it said.
    pub fn start_in_vain(&self, id: u16) -> Result<CommandOutput> {
        let arguments = self.arguments(id, Start::Founder);
        self.run_to_end(Machine::Replica(id), &self.binary, &arguments)
    }

    /// Kills a replica (`SIGKILL`); it must run.
    pub fn kill(&mut self, id: u16) -> Result<()> {
        self.paused.remove(&id);
        self.processes.remove(&id).context("not started")?.kill()
    }

    /// Kills every replica before any of them can notice that another is gone.
    pub fn kill_all(&mut self) -> Result<()> {
        for process in self.processes.values() {
            process.signal(Signal::KILL)?;
        }
        for id in self.running() {
            self.kill(id)?;
        }
        Ok(())
    }

    /// Stops a replica's process where it stands (`SIGSTOP`).
    pub fn pause(&mut self, id: u16) -> Result<()> {
        self.process(id)?.signal(Signal::STOP)?;
        self.paused.insert(id);
        Ok(())
    }

    /// Lets a paused replica go on (`SIGCONT`).
    pub fn resume(&mut self, id: u16) -> Result<()> {
        self.paused.remove(&id);
        self.process(id)?.signal(Signal::CONT)
    }

    /// Asks a replica to end (`SIGTERM`) and waits for it.
    pub fn terminate(&mut self, id: u16) -> Result<ExitStatus> {
        self.process(id)?.signal(Signal::TERM)?;
        self.wait_for_exit(id)
    }

    /// Waits for a replica to end by itself.
    pub fn wait_for_exit(&mut self, id: u16) -> Result<ExitStatus> {
        let mut process = self.processes.remove(&id).context("not started")?;
        process.wait(SETTLE_DEADLINE)
    }

    /// Whether the replica's process is there.
    pub fn is_running(&mut self, id: u16) -> Result<bool> {
        self.processes
            .get_mut(&id)
            .map_or(Ok(false), Process::is_running)
    }

    /// The process id of a replica that runs.
    pub fn pid(&self, id: u16) -> Result<u32> {
        self.process(id).map(Process::pid)
    }

    /// Starts a second server on a replica's directory, on other ports, and gives what it said when it
    /// ended; an error if it does not end.
    pub fn start_second_on_dir_of(&self, id: u16) -> Result<CommandOutput> {
        let arguments = self.arguments(id, Start::Second);
        let machine = Machine::Replica(id);
        self.run_to_end(machine, &self.binary, &arguments)
    }

    /// Removes all a replica, which must not run, had on its disk.
    pub fn wipe(&mut self, id: u16) -> Result<()> {
        ensure!(!self.processes.contains_key(&id), "replica {id} runs");
        Ok(fs::remove_dir_all(self.dir(id))?)
    }

    /// Flips a bit in every copy of `bytes` on a replica's disk, which must not run; how many.
    pub fn rot(&mut self, id: u16, bytes: &[u8]) -> Result<usize> {
        ensure!(!self.processes.contains_key(&id), "replica {id} runs");
        let places = disk::find_bytes(&self.dir(id), bytes)?;
        for (path, offset) in &places {
            disk::rot(path, *offset)?;
        }
        Ok(places.len())
    }

    /// Asks the leader's `member` command about one member: `add` (also with `--learner`), `promote` or
    /// `remove`. It waits for a replica that was started a moment ago and has not found the leader yet.
    pub fn change_member(&self, change: &[&str], id: u16) -> Result<String> {
        let (id_text, peer) = (id.to_string(), self.peer(id).to_string());
        let http = self.http(self.wait_for_leader()?).to_string();
        let mut arguments = vec!["member"];
        arguments.extend(change);
        arguments.extend(["--id", &id_text, "--addr", &http]);
        if change.first() == Some(&"add") {
            arguments.extend(["--peer", &peer]);
        }
        self.command(&arguments)
    }

    /// Runs `quorumwire` with these arguments in the client's machine; an error unless it exits with 0.
    pub fn command(&self, arguments: &[&str]) -> Result<String> {
        let finished = self.run_at(Machine::Client, arguments)?;
        ensure!(
            finished.success,
            "quorumwire {} failed: {}{}",
            arguments.join(" "),
            finished.stderr,
            finished.stdout
        );
        Ok(finished.stdout)
    }

    /// As [`Self::command`], whatever the command's exit code.
    pub fn try_command(&self, arguments: &[&str]) -> Result<CommandOutput> {
        self.run_at(Machine::Client, arguments)
    }

    /// A file beside the replicas' disks, gone when the test ends.
    #[must_use]
    pub fn scratch_file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A file of names and passwords, for the option `client-auth-file`.
    pub fn accounts_file(&self, text: &str) -> Result<&'static str> {
        let path = self.scratch_file("accounts");
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(path.display().to_string().leak())
    }

    /// Runs another program in the client's machine to its end.
    pub fn run_program(&self, program: &str, arguments: &[&str]) -> Result<CommandOutput> {
        let owned: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        self.run_to_end(Machine::Client, Path::new(program), &owned)
    }

    /// Starts another program in the client's machine, which is spoken with.
    pub fn start_beside(
        &self,
        program: &Path,
        arguments: &[String],
        standard: [Stdio; 3],
    ) -> Result<Process> {
        let namespace = self.network.namespace(Machine::Client);
        Process::start_with(&namespace, program, arguments, standard)
    }

    /// The binary that all of this is about.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A client of one replica.
    pub fn client(&self, id: u16) -> Result<Client> {
        Client::connect(self.memcached(id), REQUEST_TIMEOUT * slowness())
            .with_context(|| format!("connecting to replica {id}"))
    }

    /// The status of one replica.
    pub fn status(&self, id: u16) -> Result<Status> {
        status::status(self.http(id)).with_context(|| format!("replica {id}"))
    }

    /// The digest of one replica's state.
    pub fn digest(&self, id: u16) -> Result<Digest> {
        status::digest(self.http(id)).with_context(|| format!("replica {id}"))
    }

    /// The statuses of all replicas that run, are not paused, and answer.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        let awake = self.running().into_iter();
        let awake = awake.filter(|id| !self.paused.contains(id));
        awake.filter_map(|id| self.status(id).ok()).collect()
    }

    /// The leader that a majority of the voters agrees on, in the same term.
    #[must_use]
    pub fn leader(&self) -> Option<u16> {
        let statuses = self.statuses();
        let leads = |s: &&Status| s.role == Role::Leader;
        let leader = statuses.iter().filter(leads).max_by_key(|s| s.term)?;
        let voters = leader.voters();
        let agree = statuses.iter().filter(|s| {
            voters.contains(&s.id) && s.leader == Some(leader.id) && s.term == leader.term
        });
        (agree.count() > voters.len() / 2).then_some(leader.id)
    }

    /// Waits until a majority agrees on a leader.
    pub fn wait_for_leader(&self) -> Result<u16> {
        let mut leader = None;
        self.wait_for("a leader that a majority follows", || {
            leader = self.leader();
            Ok(leader.is_some())
        })?;
        leader.context("waited for one")
    }

    /// Waits until a majority agrees on a leader other than `old`.
    pub fn wait_for_leader_other_than(&self, old: u16) -> Result<u16> {
        let mut leader = None;
        self.wait_for(&format!("a leader other than replica {old}"), || {
            leader = self.leader().filter(|id| *id != old);
            Ok(leader.is_some())
        })?;
        leader.context("waited for one")
    }

    /// Waits until `/readyz` of these replicas says yes.
    pub fn wait_for_ready(&self, ids: &[u16]) -> Result<()> {
        self.wait_for(&format!("replicas {ids:?} to be ready"), || {
            Ok(ids.iter().all(|id| {
                status::page(self.http(*id), "/readyz").is_ok_and(|(code, _)| code == 200)
            }))
        })
    }

    /// Waits until these replicas have applied equally much and hold the same. Two that hold different
    /// things at one index are an error at once.
    pub fn wait_for_equal(&self, ids: &[u16]) -> Result<Digest> {
        let mut seen: BTreeMap<u64, (u16, String)> = BTreeMap::new();
        let mut last: Vec<Digest> = Vec::new();
        self.wait_for(&format!("replicas {ids:?} to hold the same"), || {
            last.clear();
            for id in ids {
                let Ok(digest) = self.digest(*id) else {
                    return Ok(false);
                };
                let first = seen
                    .entry(digest.applied_index)
                    .or_insert_with(|| (*id, digest.digest.clone()));
                ensure!(
                    first.1 == digest.digest,
                    "replicas {} and {id} differ at index {}",
                    first.0,
                    digest.applied_index
                );
                last.push(digest);
            }
            Ok(last.windows(2).all(|pair| pair[0] == pair[1]))
        })?;
        last.pop().context("at least one replica")
    }

    /// Waits until `condition` holds, or fails after [`SETTLE_DEADLINE`], naming what was waited for.
    pub fn wait_for(&self, what: &str, condition: impl FnMut() -> Result<bool>) -> Result<()> {
        self.wait_for_within(what, SETTLE_DEADLINE, condition)
    }

    /// As [`Cluster::wait_for`], with a deadline of its own.
    pub fn wait_for_within(
        &self,
        what: &str,
        deadline: Duration,
        condition: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        wait_within(what, deadline, condition)
    }

    /// Watches for `duration` that `condition` keeps holding; an error, naming `what`, when it does not.
    pub fn stays(
        &self,
        what: &str,
        duration: Duration,
        mut condition: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            ensure!(condition()?, "no longer: {what}");
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Writes a key, asking one replica after the other until one acknowledges; an error after
    /// [`SETTLE_DEADLINE`]. The key holds the value at least once afterwards.
    pub fn put(&self, key: &str, value: &str) -> Result<()> {
        self.ask(&format!("{key} to be written"), |client| {
            client.set(key, value.as_bytes())
        })
        .and_then(|line| {
            ensure!(line == "STORED", "set {key}: {line}");
            Ok(())
        })
    }

    /// Reads a key, asking one replica after the other until one answers.
    pub fn get(&self, key: &str) -> Result<Option<String>> {
        let value = self.ask(&format!("{key} to be read"), |client| client.get(key))?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Asks replica after replica until one has done it.
    fn ask<T>(&self, what: &str, request: impl Fn(&mut Client) -> Outcome<T>) -> Result<T> {
        let mut answer = None;
        self.wait_for(what, || {
            for id in self.running() {
                if self.paused.contains(&id) {
                    continue;
                }
                if let Ok(mut client) = self.client(id) {
                    answer = request(&mut client).done();
                }
                if answer.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        answer.context("waited for it")
    }

    /// What every replica says of itself, for a failure's message.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut lines = String::new();
        for id in self.running() {
            let line = match self.status(id) {
                Ok(status) => format!("{status:?}\n"),
                Err(error) => format!("replica {id}: {error:#}\n"),
            };
            lines.push_str(&line);
        }
        lines
    }

    fn running(&self) -> Vec<u16> {
        self.processes.keys().copied().collect()
    }

    fn process(&self, id: u16) -> Result<&Process> {
        self.processes
            .get(&id)
            .with_context(|| format!("replica {id} is not started"))
    }

    fn ip(&self, id: u16) -> Ipv4Addr {
        self.network.address(Machine::Replica(id))
    }

    fn log_path(&self, id: u16) -> PathBuf {
        self.scratch.path().join(format!("replica-{id}.log"))
    }

    fn start_with(&mut self, id: u16, arguments: &[String]) -> Result<()> {
        let binary = self.binary.clone();
        self.start_program(id, &binary, arguments)
    }

    /// Starts a founder in a session of its own, as a service manager does.
    pub fn start_in_own_session(&mut self, id: u16) -> Result<()> {
        self.start_by(id, Path::new("setsid"), Vec::new())
    }

    /// Starts a founder whose log nobody reads any more: the reader of that pipe has ended.
    pub fn start_with_unread_log(&mut self, id: u16) -> Result<()> {
        let unread = ["-c", "exec \"$0\" \"$@\" 2> >(:)"];
        self.start_by(id, Path::new("bash"), unread.map(String::from).to_vec())
    }

    /// Starts a founder by a program that becomes it, which is given these arguments, the binary and its own.
    pub(crate) fn start_by(&mut self, id: u16, starter: &Path, given: Vec<String>) -> Result<()> {
        let arguments = self.behind(given, id);
        self.start_program(id, starter, &arguments)
    }

    /// As [`Self::start_by`], for a server that ends by itself: what it said.
    pub(crate) fn try_by(
        &self,
        id: u16,
        starter: &Path,
        given: Vec<String>,
    ) -> Result<CommandOutput> {
        let arguments = self.behind(given, id);
        self.run_to_end(Machine::Replica(id), starter, &arguments)
    }

    /// Runs the command line on a machine to its end.
    pub(crate) fn run_at(&self, machine: Machine, arguments: &[&str]) -> Result<CommandOutput> {
        let owned: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        self.run_to_end(machine, &self.binary, &owned)
    }

    fn behind(&self, mut given: Vec<String>, id: u16) -> Vec<String> {
        given.push(self.binary.display().to_string());
        given.extend(self.arguments(id, Start::Founder));
        given
    }

    fn start_program(&mut self, id: u16, program: &Path, arguments: &[String]) -> Result<()> {
        ensure!(
            !self.processes.contains_key(&id),
            "replica {id} runs already"
        );
        let process = Process::start(
            &format!("replica {id}"),
            &self.network.namespace(Machine::Replica(id)),
            program,
            arguments,
            &self.log_path(id),
        )?;
        self.processes.insert(id, process);
        Ok(())
    }

    fn run_to_end(
        &self,
        machine: Machine,
        program: &Path,
        arguments: &[String],
    ) -> Result<CommandOutput> {
        let namespace = self.network.namespace(machine);
        let scratch = self.scratch.path();
        process::run_to_end(&namespace, program, arguments, scratch, COMMAND_DEADLINE)
    }

    fn arguments(&self, id: u16, start: Start) -> Vec<String> {
        let extra = match start {
            Start::Founder | Start::Joining => 0,
            Start::Second => SECOND_PORTS,
        };
        let beside = |at: SocketAddr| SocketAddr::new(at.ip(), at.port() + extra).to_string();
        let members: Vec<_> = self
            .founders()
            .map(|id| format!("{id}={}", self.peer(id)))
            .collect();
        let begin = if self.plan.serves.is_empty() {
            "server"
        } else {
            "run"
        };
        let mut arguments: Vec<String> =
            [begin, "--cluster", &self.name].map(String::from).to_vec();
        if self.plan.tls != Tls::All {
            arguments.push("--insecure".into());
        }
        let mut option = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        option("id", id.to_string());
        option("dir", self.dir(id).display().to_string());
        option("members", members.join(","));
        option("durability", self.plan.durability.word().into());
        option("listen-peer", beside(self.peer(id)));
        if self.plan.serves.is_empty() {
            option("on-follower", self.plan.on_follower.word().into());
            option("listen-memcached", beside(self.memcached(id)));
            option("listen-redis", beside(self.redis(id)));
        }
        option("listen-client", beside(self.native(id)));
        option("listen-http", beside(self.http(id)));
        option("plane", self.plan.plane.clone());
        option("listen-plane", beside(self.plane(id)));
        option("secret-file", self.secret_file().display().to_string());
        option("log-format", "json".into());
        if self.plan.tls != Tls::Off {
            let file = |name: String| self.keys().join(name).display().to_string();
            option("tls-ca", file("ca.pem".into()));
            option("tls-cert", file(format!("replica-{id}.pem")));
            option("tls-key", file(format!("replica-{id}-key.pem")));
        }
        if self.plan.tls == Tls::All {
            option("client-tls", "on".into());
        }
        for (name, value) in &self.plan.options {
            option(name, (*value).into());
        }
        arguments.extend(self.plan.switches.iter().map(|name| format!("--{name}")));
        if start == Start::Joining {
            arguments.push("--join".into());
        }
        if let Some(program) = self.plan.serves.first() {
            arguments.extend(["--".into(), (*program).into()]);
            arguments.extend(self.plan.serves.iter().skip(1).map(|it| (*it).into()));
        }
        arguments
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        for id in 0..self.network.replicas() {
            let path = self.log_path(id);
            if path.exists() {
                eprintln!(
                    "--- end of replica {id}'s log\n{}",
                    process::log_tail(&path)
                );
            }
            if let Some(kept) = env::var_os(switches::KEEP_LOGS) {
                let name = format!("{}-replica-{id}.log", self.network.name());
                let _ = fs::copy(&path, Path::new(&kept).join(name));
            }
        }
    }
}
