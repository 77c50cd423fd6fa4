//! A Paxos deployment of real processes, on loopback or each on a machine of its own: coordinators,
//! acceptors, and members in the test.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_paxos_process::{DeploymentFile, Member, MemberOptions, SwitchReport};
use rustix::process::Signal;

use crate::binary::binary;
use crate::disk::Scratch;
use crate::network::{Machine, NAME_PREFIX, Network};
use crate::process::{Process, let_planes_through};
use crate::waiting::wait_within;

/// Whatever is waited for comes within this time.
pub const DEADLINE: Duration = Duration::from_mins(1);
/// How long a page may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Coordinators of a deployment.
pub const COORDINATORS: usize = 2;
/// Acceptors of a deployment, where a test says nothing else.
pub const ACCEPTORS: usize = 3;

/// Where everybody listens who has a machine of its own.
const PORT: u16 = 7500;

/// The network of this process. What starts processes may run on a thread that another test has moved into a
/// network of its own, so it must not be called `self`.
#[must_use]
pub fn own_namespace() -> PathBuf {
    format!("/proc/{}/ns/net", std::process::id()).into()
}

/// A deployment. Its switches are killed when it is dropped.
pub struct Deployment<'n> {
    binary: PathBuf,
    scratch: Scratch,
    switches: BTreeMap<(&'static str, usize), Process>,
    acceptors: usize,
    /// Machines: coordinators first, then acceptors, then learners.
    network: Option<&'n Network>,
    /// What all switches are told besides.
    options: Vec<String>,
    /// And what one of them is told.
    own_options: BTreeMap<(&'static str, usize), Vec<String>>,
}

/// The machine of the one with this number among all.
fn machine(place: usize) -> Machine {
    Machine::Replica(u16::try_from(place).expect("a few"))
}

fn machine_of((role, number): (&'static str, usize)) -> Machine {
    let before = if role == "acceptor" { COORDINATORS } else { 0 };
    machine(before + number)
}

impl Deployment<'static> {
    /// Makes its files, for loopback.
    pub fn new(name: &str, learners: usize) -> Result<Self> {
        Self::of_acceptors(name, ACCEPTORS, learners)
    }

    /// The same with so many acceptors.
    pub fn of_acceptors(name: &str, acceptors: usize, learners: usize) -> Result<Self> {
        let all = COORDINATORS + acceptors + learners;
        let sockets: Vec<_> = (0..all).map(|_| UdpSocket::bind("127.0.0.1:0")).collect();
        let address = |it: std::io::Result<UdpSocket>| anyhow::Ok(it?.local_addr()?.to_string());
        let all: Vec<_> = sockets.into_iter().map(address).collect::<Result<_>>()?;
        Self::at(name, &all, acceptors, None, &[])
    }
}

impl<'n> Deployment<'n> {
    /// Makes its files, for a network in which each has a machine. Switches get these options, too.
    pub fn across(network: &'n Network, name: &str, options: &[&str]) -> Result<Self> {
        let all = (0..network.replicas()).map(Machine::Replica);
        let all: Vec<String> = all
            .map(|it| format!("{}:{PORT}", network.address(it)))
            .collect();
        let made = Self::at(name, &all, ACCEPTORS, Some(network), options)?;
        let_planes_through(network, &network.ports(), &made.binary, made.scratch.path())?;
        Ok(made)
    }

    fn at(
        name: &str,
        all: &[String],
        acceptors: usize,
        network: Option<&'n Network>,
        options: &[&str],
    ) -> Result<Self> {
        let scratch = Scratch::new(&format!("{NAME_PREFIX}-{}-{name}", std::process::id()))?;
        let deployment = Self {
            binary: binary()?,
            scratch,
            switches: BTreeMap::new(),
            acceptors,
            network,
            options: options.iter().map(|it| (*it).to_owned()).collect(),
            own_options: BTreeMap::new(),
        };
        let (secret, keys) = (deployment.path("secret"), deployment.path("keys"));
        deployment.must_succeed(&["keys", "new", "--file", &secret])?;
        deployment.must_succeed(&[
            "keys",
            "plane-clients",
            "--file",
            &secret,
            "--cluster",
            "test",
            "--out",
            &keys,
        ])?;
        let text = format!(
            "name = \"test\"\nkey-file = \"keys\"\nwindow = 4096\nsilence-ms = 200\ncoordinators = {:?}\nacceptors = {:?}\nlearners = {:?}\n",
            &all[..COORDINATORS],
            &all[COORDINATORS..COORDINATORS + acceptors],
            &all[COORDINATORS + acceptors..]
        );
        fs::write(deployment.path("deployment.toml"), text)?;
        Ok(deployment)
    }

    /// A file of its.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    /// Switches get these options, too, from now on.
    #[must_use]
    pub fn told(mut self, options: &[&str]) -> Self {
        self.options
            .extend(options.iter().map(|it| (*it).to_owned()));
        self
    }

    /// This switch gets these options, too, from now on.
    #[must_use]
    pub fn told_one(mut self, switch: (&'static str, usize), options: &[&str]) -> Self {
        let own = self.own_options.entry(switch).or_default();
        own.extend(options.iter().map(|it| (*it).to_owned()));
        self
    }

    /// Before its switches start: a backup takes over later than a busy machine lets a coordinator wait, so
    /// that it is the first who coordinates, until it is killed.
    pub fn patient(self) -> Result<Self> {
        let file = self.path("deployment.toml");
        let text = fs::read_to_string(&file)?;
        let patient = text.replace("silence-ms = 200\n", "silence-ms = 3000\n");
        ensure!(text != patient, "{text}");
        fs::write(file, patient)?;
        Ok(self)
    }

    /// Before its switches start: so many instances may be open, a power of two.
    pub fn with_window(self, instances: u32) -> Result<Self> {
        let file = self.path("deployment.toml");
        let text = fs::read_to_string(&file)?;
        let other = text.replace("window = 4096\n", &format!("window = {instances}\n"));
        ensure!(text != other, "{text}");
        fs::write(file, other)?;
        Ok(self)
    }

    /// Where a switch that runs serves its page, as it has logged.
    pub fn page_address(&self, switch: (&'static str, usize)) -> Result<SocketAddr> {
        let log = self.log(switch)?;
        let mut lines = log.lines().rev();
        let line = lines.find(|line| line.contains("the switch's page is served"));
        let line = line.with_context(|| format!("{switch:?} serves no page: {log}"))?;
        let (_, address) = line.split_once("address=").context("with its address")?;
        let address = address.split(' ').next().unwrap_or_default();
        Ok(address.parse()?)
    }

    /// What a switch's page says at a path: its status and its body.
    pub fn ask_page(
        &self,
        switch: (&'static str, usize),
        method: &str,
        path: &str,
    ) -> Result<(u16, String)> {
        let address = self.page_address(switch)?;
        let ask = || -> Result<String> {
            let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
            stream.write_all(format!("{head}content-length: 0\r\n\r\n").as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = match self.network {
            Some(network) => network.run_in(machine_of(switch), ask)??,
            None => ask()?,
        };
        let (head, body) = answer.split_once("\r\n\r\n").context("a whole answer")?;
        let code = head.split(' ').nth(1).context("a status")?;
        Ok((code.parse()?, body.to_owned()))
    }

    /// What it says of itself.
    pub fn report(&self, switch: (&'static str, usize)) -> Result<SwitchReport> {
        let (code, body) = self.ask_page(switch, "GET", "/v1/status")?;
        ensure!(code == 200, "{switch:?}: {code}: {body}");
        Ok(serde_json::from_str(&body)?)
    }

    /// Waits until a switch says so of itself.
    pub fn wait_until(
        &self,
        switch: (&'static str, usize),
        what: &str,
        is_so: impl Fn(&SwitchReport) -> bool,
    ) -> Result<SwitchReport> {
        let mut last = None;
        wait_within(what, DEADLINE, || {
            // Its port may not be open yet.
            last = self.report(switch).ok().filter(&is_so);
            Ok(last.is_some())
        })
        .with_context(|| format!("{switch:?}: {:?}", self.report(switch)))?;
        Ok(last.expect("it was so"))
    }

    /// Runs `quorumwire` with these arguments: its exit code, and what it complains of.
    pub fn run(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let (code, _, said) = self.output(arguments)?;
        Ok((code, said))
    }

    fn output(&self, arguments: &[&str]) -> Result<(Option<i32>, String, String)> {
        let output = Command::new(&self.binary).args(arguments).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        Ok((output.status.code(), printed, said))
    }

    /// Puts a load of values on it, as its first learner: the exit code, what was measured, and what it
    /// complains of.
    pub fn load(&self, more: &[&str]) -> Result<(Option<i32>, serde_json::Value, String)> {
        let (file, dir) = (self.path("deployment.toml"), self.path("learner-0"));
        let words = ["bench", "--json", "--deployment", &file, "--dir", &dir];
        let (code, printed, said) = self.output(&[&words[..], more].concat())?;
        let measured = serde_json::from_str(&printed).unwrap_or_default();
        Ok((code, measured, said))
    }

    /// Runs `quorumwire` with these arguments: its exit code, and what it shows.
    pub fn show(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let output = Command::new(&self.binary).args(arguments).output()?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code(), shown))
    }

    fn must_succeed(&self, arguments: &[&str]) -> Result<()> {
        let (code, said) = self.run(arguments)?;
        ensure!(code == Some(0), "{arguments:?}: {said}");
        Ok(())
    }

    fn arguments(&self, switch: (&'static str, usize)) -> Vec<String> {
        let (role, number) = switch;
        let mut arguments: Vec<String> = ["switch", "--role", role, "--deployment"]
            .map(str::to_owned)
            .into();
        arguments.push(self.path("deployment.toml"));
        arguments.extend(["--number".to_owned(), number.to_string()]);
        arguments.extend(["--dir".to_owned(), self.path(&format!("{role}-{number}"))]);
        let own = self.own_options.get(&switch).into_iter().flatten();
        arguments.extend(self.options.iter().chain(own).cloned());
        arguments
    }

    /// Starts a switch: its role and number.
    pub fn start(&mut self, switch: (&'static str, usize)) -> Result<()> {
        self.start_as(switch, &self.arguments(switch))
    }

    /// Starts another one of this role and number, which listens elsewhere: it is `("twin", number)`. An
    /// acceptor has lost its folder.
    pub fn start_twin(
        &mut self,
        (role, number): (&'static str, usize),
        listen: SocketAddr,
    ) -> Result<()> {
        let mut arguments = self.arguments((role, number));
        if role == "acceptor" {
            let folder = arguments.iter().position(|it| it == "--dir");
            arguments[folder.context("it has one")? + 1] = self.path("twin");
            let made: Vec<_> = arguments.iter().map(String::as_str).collect();
            self.must_succeed(&[&made[..], &["--make-folder", "lost"]].concat())?;
        }
        arguments.extend(["--listen".to_owned(), listen.to_string()]);
        self.start_as(("twin", number), &arguments)
    }

    fn start_as(&mut self, switch: (&'static str, usize), arguments: &[String]) -> Result<()> {
        let name = format!("{}-{}", switch.0, switch.1);
        let log = self.scratch.path().join(format!("{name}.log"));
        let namespace = match self.network {
            Some(network) => network.namespace(machine_of(switch)),
            None => own_namespace(),
        };
        let process = Process::start(&name, &namespace, &self.binary, arguments, &log)?;
        self.switches.insert(switch, process);
        Ok(())
    }

    /// Makes the acceptors' folders, and starts all.
    pub fn start_all(&mut self) -> Result<()> {
        for number in 0..self.acceptors {
            let switch = ("acceptor", number);
            let mut arguments = self.arguments(switch);
            arguments.extend(["--make-folder".to_owned(), "first".to_owned()]);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            self.must_succeed(&arguments)?;
            self.start(switch)?;
        }
        (0..COORDINATORS).try_for_each(|number| self.start(("coordinator", number)))
    }

    /// What a switch has logged since it was first started.
    pub fn log(&self, switch: (&'static str, usize)) -> Result<String> {
        let name = format!("{}-{}.log", switch.0, switch.1);
        Ok(fs::read_to_string(self.scratch.path().join(name))?)
    }

    /// Sends one a signal.
    pub fn signal(&self, switch: (&'static str, usize), signal: Signal) -> Result<()> {
        let process = self.switches.get(&switch).context("it runs")?;
        process.signal(signal)
    }

    /// Dropping kills it at once (`SIGKILL`).
    pub fn kill(&mut self, switch: (&'static str, usize)) -> Result<()> {
        let mut process = self.switches.remove(&switch).context("it runs")?;
        ensure!(process.is_running()?, "{switch:?} has ended by itself");
        Ok(())
    }

    /// A member with the number of this learner, in this process.
    pub fn member(&self, learner: u8) -> Result<Member> {
        let file = self.path("deployment.toml");
        let deployment = DeploymentFile::load(Path::new(&file))?;
        let dir = self.path(&format!("learner-{learner}"));
        let options = MemberOptions {
            deadline: DEADLINE,
            ..MemberOptions::new(deployment, learner, dir)
        };
        let place = COORDINATORS + self.acceptors + usize::from(learner);
        Ok(match self.network {
            Some(network) => network.run_in(machine(place), || Member::open(&options))??,
            None => Member::open(&options)?,
        })
    }
}
