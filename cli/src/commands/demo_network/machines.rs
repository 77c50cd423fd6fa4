//! The machines of `demo-network`: what runs on each, whether its link is up, and what is known of it. They
//! are started from the thread that made them only: the kernel kills a child when the thread that started it
//! ends.
use super::super::demo_host::{Order, Report};
use super::super::local_cluster::{ending, read_tail};
use super::super::namespaces::Namespaces;
use super::host_link::HostLink;
use super::page::{Asked, Change, Page, Refusal, Request};
use super::watch::{self, Watch};
use anyhow::{Context as _, bail};
use quorumwire_client::planes::{ClientKey, ClientKeys};
use quorumwire_node::planes::PlaneKind;
use quorumwire_paxos_process::SwitchReport;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const COORDINATORS: u8 = 2;
const ACCEPTORS: u8 = 3;
const HOSTS: u8 = 2;
/// All of them, in this order.
pub const MACHINES: u16 = (COORDINATORS + ACCEPTORS + HOSTS) as u16;
/// Instances that can be open: at full load a host may be away for a quarter of a minute.
pub const WINDOW: u32 = 16_384;
/// A backup takes over after so long, on slow disks, too.
const SILENCE_MS: u64 = 200;
const PORT: u16 = 7500;
/// A reader waits for the outcome of what he does at most so long.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Where a machine listens.
pub fn address(id: u16) -> anyhow::Result<SocketAddr> {
    Ok((Namespaces::address(id)?, PORT).into())
}

/// What acceptors remember when they are stopped.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Durability {
    /// Their votes, which are on disk before they are said: their processes take them
    Sync,
    /// Nothing, and the others let them in anew: votes are said where they run
    Memory,
}

impl Durability {
    const fn word(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Memory => "memory",
        }
    }

    /// In a sentence.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Sync => "Acceptors have their votes on disk before they say them.",
            Self::Memory => {
                "Acceptors keep their votes in memory: one that is stopped counts again when the others have let it \
                 in, and two that are stopped at a time end all."
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    Coordinator,
    Acceptor,
    Host,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Acceptor => "acceptor",
            Self::Host => "host",
        }
    }
}

struct Machine {
    id: u16,
    role: Role,
    number: u8,
    is_linked: bool,
    running: Option<Child>,
    /// How it ended, if that was not what a reader wanted.
    ended: Option<String>,
    /// A switch: who asks it, and what it said last.
    watch: Option<Watch>,
    said: Option<SwitchReport>,
    /// A host: its pipes, and what it said last.
    link: Option<HostLink>,
    report: Report,
}

impl Machine {
    fn name(&self) -> String {
        format!("{}-{}", self.role.name(), self.number)
    }

    fn is_reached(&self) -> bool {
        self.running.is_some() && self.is_linked
    }
}

/// All machines. Their processes are killed when it is dropped, before their network goes.
pub struct Machines {
    all: Vec<Machine>,
    dir: PathBuf,
    kind: &'static PlaneKind,
    plane: String,
    durability: Durability,
    load: bool,
    network: Namespaces,
}

impl Drop for Machines {
    fn drop(&mut self) {
        for child in self.all.iter_mut().filter_map(|it| it.running.as_mut()) {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl Machines {
    /// Writes the deployment's files. `plane` says in words where switches run.
    pub fn new(
        network: Namespaces,
        dir: &Path,
        kind: &'static PlaneKind,
        plane: String,
        durability: Durability,
    ) -> anyhow::Result<Self> {
        let each = [
            (Role::Coordinator, COORDINATORS),
            (Role::Acceptor, ACCEPTORS),
            (Role::Host, HOSTS),
        ];
        let each = each
            .into_iter()
            .flat_map(|(role, count)| (0..count).map(move |number| (role, number)));
        let machine = |(id, (role, number))| Machine {
            id,
            role,
            number,
            is_linked: true,
            running: None,
            ended: None,
            watch: None,
            said: None,
            link: None,
            report: Report::default(),
        };
        let machines = Self {
            all: (0..).zip(each).map(machine).collect(),
            dir: dir.to_owned(),
            kind,
            plane,
            durability,
            load: false,
            network,
        };
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        ClientKeys::new(1, vec![ClientKey::new(1, key)])?.write(&dir.join("keys"))?;
        let of = |role: Role| {
            let of_role = machines.all.iter().filter(move |it| it.role == role);
            let addresses = of_role.map(|it| Ok(address(it.id)?.to_string()));
            addresses.collect::<anyhow::Result<Vec<String>>>()
        };
        let text = format!(
            "name = \"demo\"\nkey-file = \"keys\"\nwindow = {WINDOW}\nsilence-ms = {SILENCE_MS}\n\
             coordinators = {:?}\nacceptors = {:?}\nlearners = {:?}\n",
            of(Role::Coordinator)?,
            of(Role::Acceptor)?,
            of(Role::Host)?
        );
        fs::write(machines.deployment(), text)?;
        Ok(machines)
    }

    /// Where switches run, in words.
    pub fn plane(&self) -> &str {
        &self.plane
    }

    /// What acceptors remember.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    fn deployment(&self) -> PathBuf {
        self.dir.join("deployment.toml")
    }

    fn log_path(&self, place: usize) -> PathBuf {
        self.dir.join(format!("{}.log", self.all[place].name()))
    }

    /// The end of a machine's log.
    pub fn log_tail(&self, place: usize) -> String {
        let tail = read_tail(&self.log_path(place));
        let tail = tail.unwrap_or_else(|error| format!("(unreadable: {error})"));
        let name = self.all[place].name();
        format!("the end of the log of {name}:\n{}", tail.trim_end())
    }

    /// Makes the acceptors' folders, and starts all.
    pub fn start_all(&mut self) -> anyhow::Result<()> {
        for place in 0..self.all.len() {
            if self.all[place].role == Role::Acceptor {
                let mut command = self.command(place)?;
                let made = command.args(["--make-folder", "first"]).output()?;
                let said = String::from_utf8_lossy(&made.stderr);
                anyhow::ensure!(made.status.success(), "{}", said.trim_end());
            }
            self.start(place)?;
        }
        Ok(())
    }

    fn command(&self, place: usize) -> anyhow::Result<Command> {
        let machine = &self.all[place];
        let mut arguments: Vec<OsString> = Vec::new();
        let mut option = |name: &str, value: OsString| {
            arguments.extend([format!("--{name}").into(), value]);
        };
        option("deployment", self.deployment().into());
        option("die-with-parent", std::process::id().to_string().into());
        option("dir", self.dir.join(machine.name()).into());
        let number = machine.number.to_string().into();
        let command = if machine.role == Role::Host {
            option("learner", number);
            "demo-host"
        } else {
            option("number", number);
            option("role", machine.role.name().into());
            option("plane", self.kind.name.into());
            option("listen-http", watch::ADDRESS.into());
            if machine.role == Role::Acceptor {
                option("durability", self.durability.word().into());
            }
            "switch"
        };
        let mut started = Command::new(std::env::current_exe()?);
        started
            .arg(command)
            .args(arguments)
            .stdin(Stdio::null())
            // Ctrl-C is for the demonstration.
            .process_group(0);
        Ok(started)
    }

    fn start(&mut self, place: usize) -> anyhow::Result<()> {
        let path = self.log_path(place);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.with_context(|| path.display().to_string())?;
        let mut command = self.command(place)?;
        let is_host = self.all[place].role == Role::Host;
        if is_host {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdout(log.try_clone()?);
        }
        command.stderr(log);
        let (id, name) = (self.all[place].id, self.all[place].name());
        let spawned = self.network.within(id, || Ok(command.spawn()?));
        let mut child = spawned.with_context(|| format!("starting {name}"))?;
        let machine = &mut self.all[place];
        if is_host {
            let mut link = HostLink::new(&mut child, &machine.report)?;
            link.tell(&Order::Load { on: self.load });
            machine.link = Some(link);
        } else {
            machine.watch = Some(Watch::start(&self.network, id)?);
        }
        machine.ended = None;
        machine.running = Some(child);
        Ok(())
    }

    /// `kill -9`.
    fn stop(&mut self, place: usize) -> anyhow::Result<()> {
        let machine = &mut self.all[place];
        if let Some(mut child) = machine.running.take() {
            child.kill()?;
            child.wait()?;
        }
        machine.forget();
        Ok(())
    }

    /// Looks what has happened since the last time.
    pub fn look(&mut self) -> anyhow::Result<()> {
        for place in 0..self.all.len() {
            let machine = &mut self.all[place];
            let Some(child) = &mut machine.running else {
                continue;
            };
            if let Some(status) = child.try_wait()? {
                machine.running = None;
                machine.forget();
                machine.ended = Some(ending(status));
                let tail = self.log_tail(place);
                errln!("{} {}; {tail}", self.all[place].name(), ending(status));
                continue;
            }
            machine.said = machine.watch.as_ref().and_then(Watch::report);
            if let Some(link) = &machine.link {
                machine.report = link.report();
            }
        }
        for machine in &self.all {
            if let Some(link) = &machine.link {
                link.expire(|| Refusal::no_answer(self.why_undecided(machine)));
            }
        }
        Ok(())
    }

    /// An error if one has ended by itself.
    pub fn must_run(&self) -> anyhow::Result<()> {
        for (place, machine) in self.all.iter().enumerate() {
            if let Some(ended) = &machine.ended {
                bail!("{} {ended}; {}", machine.name(), self.log_tail(place));
            }
        }
        Ok(())
    }

    /// The coordinator with the highest round among those that others may reach.
    fn coordinator(&self) -> Option<(&Machine, &SwitchReport)> {
        let reached = self.all.iter().filter(|it| it.is_reached());
        let said = reached.filter_map(|it| Some((it, it.said.as_ref()?)));
        let coordinating = said.filter(|(_, said)| said.coordinates);
        coordinating.max_by_key(|(_, said)| said.round)
    }

    /// Whether one coordinates.
    pub fn is_coordinated(&self) -> bool {
        self.coordinator().is_some()
    }

    fn reached(&self, role: Role) -> usize {
        let all = self.all.iter();
        all.filter(|it| it.role == role && it.is_reached()).count()
    }

    /// Why a host had nothing decided for so long.
    fn why_undecided(&self, host: &Machine) -> String {
        let acceptors = self.reached(Role::Acceptor);
        let window = self.coordinator().and_then(|(_, it)| it.window.as_ref());
        let filled_by = window.filter(|it| it.free == 0).and_then(|it| it.filled_by);
        let why = if !host.is_linked {
            format!("the link of {} is cut", host.name())
        } else if acceptors <= usize::from(ACCEPTORS) / 2 {
            format!("there is no majority: {acceptors} of {ACCEPTORS} acceptors can be reached")
        } else if self.reached(Role::Coordinator) == 0 {
            "no coordinator can be reached".to_owned()
        } else if let Some(number) = filled_by {
            format!(
                "the window is full of values that host-{number} has not learned: bring it back"
            )
        } else {
            "it takes longer than usual".to_owned()
        };
        format!(
            "not decided within {} s: {why}. It may yet be",
            ANSWER_MAX.as_secs()
        )
    }

    /// Does what a reader asks for, and shows what came of it before he is answered.
    pub fn carry_out(&mut self, asked: Asked, page: &Page) -> anyhow::Result<()> {
        let Asked { request, answer } = asked;
        let until = Instant::now() + ANSWER_MAX;
        let outcome = match request {
            Request::Put { host, key, value } => match self.host(host) {
                Ok(link) => {
                    link.ask(until, answer, |id| Order::Put { id, key, value });
                    return Ok(());
                }
                Err(refusal) => Err(refusal),
            },
            Request::Get { host, key } => match self.host(host) {
                Ok(link) => {
                    link.ask(until, answer, |id| Order::Get { id, key });
                    return Ok(());
                }
                Err(refusal) => Err(refusal),
            },
            Request::Load { on } => {
                self.load = on;
                for link in self.all.iter_mut().filter_map(|it| it.link.as_mut()) {
                    link.tell(&Order::Load { on });
                }
                Ok(json!({}))
            }
            Request::Machine { name, change } => {
                let place = self.all.iter().position(|it| it.name() == name);
                if let Some(place) = place {
                    self.change(place, change)?;
                    Ok(json!({}))
                } else {
                    let names: Vec<_> = self.all.iter().map(Machine::name).collect();
                    let allowed = names.join(", ");
                    Err(Refusal::bad(format!(
                        "there is no {name}; allowed: {allowed}"
                    )))
                }
            }
        };
        page.show(self.state().to_string());
        answer.send(outcome).ok();
        Ok(())
    }

    fn host(&mut self, number: u8) -> Result<&mut HostLink, Refusal> {
        let mut all = self.all.iter_mut();
        let host = all.find(|it| it.role == Role::Host && it.number == number);
        let host = host.ok_or_else(|| {
            Refusal::bad(format!(
                "there is no host {number}; allowed: 0 to {}",
                HOSTS - 1
            ))
        })?;
        let name = host.name();
        let link = host.link.as_mut();
        link.ok_or_else(|| Refusal::conflict(format!("{name} is stopped")))
    }

    /// What is so already stays so.
    fn change(&mut self, place: usize, change: Change) -> anyhow::Result<()> {
        let is_running = self.all[place].running.is_some();
        match change {
            Change::Stop => self.stop(place),
            Change::Start if is_running => Ok(()),
            Change::Start => self.start(place),
            Change::Cut | Change::Join => {
                let is_up = change == Change::Join;
                self.network.set_link(self.all[place].id, is_up)?;
                self.all[place].is_linked = is_up;
                Ok(())
            }
        }
    }

    /// All that the page shows.
    pub fn state(&self) -> Value {
        let coordinator = self.coordinator();
        let name = coordinator.map(|(it, _)| it.name());
        let machine = |it: &Machine| {
            let is_it = name.as_ref() == Some(&it.name());
            let window = it.said.as_ref().and_then(|said| said.window.as_ref());
            let instance = window.map(|it| it.next_instance.saturating_sub(1));
            let of_host = || (it.role == Role::Host).then_some(it.report.instance);
            json!({
                "name": it.name(),
                "role": it.role.name(),
                "address": address(it.id).map(|it| it.to_string()).unwrap_or_default(),
                "running": it.running.is_some(),
                "linked": it.is_linked,
                "coordinates": is_it,
                "does": it.does(is_it),
                "round": it.said.as_ref().map(|said| said.round),
                "instance": instance.or_else(of_host),
                "report": (it.role == Role::Host).then_some(&it.report),
            })
        };
        json!({
            "plane": self.plane,
            "durability": self.durability.in_words(),
            "load": self.load,
            "coordinates": name,
            "round": coordinator.map(|(_, said)| said.round),
            "window": WINDOW,
            "free": coordinator.and_then(|(_, it)| it.window.as_ref()).map(|it| it.free),
            "machines": self.all.iter().map(machine).collect::<Vec<_>>(),
        })
    }
}

impl Machine {
    /// What it does, in words; `is_it`: it is the one that coordinates.
    fn does(&self, is_it: bool) -> String {
        match (&self.ended, &self.running, &self.said) {
            (Some(ended), _, _) => ended.clone(),
            (None, None, _) => "stopped".to_owned(),
            (None, Some(_), None) if self.role == Role::Host => "proposes and learns".to_owned(),
            (None, Some(_), None) => "begins".to_owned(),
            (None, Some(_), Some(said)) if said.coordinates && !is_it => {
                "thinks that it coordinates".to_owned()
            }
            (None, Some(_), Some(said)) => said.state.clone(),
        }
    }

    /// What is known of a process only as long as it runs.
    fn forget(&mut self) {
        self.watch = None;
        self.said = None;
        self.link = None;
        self.report.values_per_second = 0.0;
        self.report.median_micros = None;
    }
}
