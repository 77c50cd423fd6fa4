//! A Paxos deployment of real processes on loopback: each coordinator and each acceptor is killed and comes
//! back, and at the end all acceptors at once. Each value that a member was told is decided comes to both
//! learners once, in one order.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::process::Process;
use quorumwire_cluster_tests::{binary, disk::Scratch, network::NAME_PREFIX};
use quorumwire_paxos_process::{
    DeploymentFile, Instance, Member, MemberError, MemberOptions, WINDOW_BYTES,
};

const OWN_NAMESPACE: &str = "/proc/self/ns/net";
const DEADLINE: Duration = Duration::from_secs(60);
const COORDINATORS: usize = 2;
const ACCEPTORS: usize = 3;
const LEARNERS: usize = 2;
/// A learner checkpoints each time that it has had so many values.
const CHECKPOINT_EVERY: usize = 40;
/// Values that each member has to have decided between two kills.
const VALUES_BETWEEN_KILLS: u64 = 60;

struct Deployment {
    binary: PathBuf,
    scratch: Scratch,
    switches: BTreeMap<(&'static str, usize), Process>,
}

impl Deployment {
    fn new(name: &str) -> Result<Self> {
        let scratch = Scratch::new(&format!("{NAME_PREFIX}-{}-{name}", std::process::id()))?;
        let deployment = Self {
            binary: binary::binary()?,
            scratch,
            switches: BTreeMap::new(),
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
        let all = COORDINATORS + ACCEPTORS + LEARNERS;
        let sockets: Vec<_> = (0..all).map(|_| UdpSocket::bind("127.0.0.1:0")).collect();
        let address = |it: std::io::Result<UdpSocket>| anyhow::Ok(it?.local_addr()?.to_string());
        let all: Vec<_> = sockets.into_iter().map(address).collect::<Result<_>>()?;
        let text = format!(
            "name = \"test\"\nkey-file = \"keys\"\nwindow = 512\ncoordinators = {:?}\nacceptors = {:?}\nlearners = {:?}\n",
            &all[..COORDINATORS],
            &all[COORDINATORS..COORDINATORS + ACCEPTORS],
            &all[COORDINATORS + ACCEPTORS..]
        );
        fs::write(deployment.path("deployment.toml"), text)?;
        Ok(deployment)
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    fn run(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let output = Command::new(&self.binary).args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.code(), said))
    }

    fn must_succeed(&self, arguments: &[&str]) -> Result<()> {
        let (code, said) = self.run(arguments)?;
        ensure!(code == Some(0), "{arguments:?}: {said}");
        Ok(())
    }

    fn arguments(&self, (role, number): (&'static str, usize)) -> Vec<String> {
        let mut arguments: Vec<String> = ["switch", "--role", role, "--deployment"]
            .map(str::to_owned)
            .into();
        arguments.push(self.path("deployment.toml"));
        arguments.extend(["--number".to_owned(), number.to_string()]);
        arguments.extend(["--dir".to_owned(), self.path(&format!("{role}-{number}"))]);
        arguments
    }

    fn start(&mut self, switch: (&'static str, usize)) -> Result<()> {
        let name = format!("{}-{}", switch.0, switch.1);
        let log = self.scratch.path().join(format!("{name}.log"));
        let arguments = self.arguments(switch);
        let namespace = Path::new(OWN_NAMESPACE);
        let process = Process::start(&name, namespace, &self.binary, &arguments, &log)?;
        self.switches.insert(switch, process);
        Ok(())
    }

    fn start_all(&mut self) -> Result<()> {
        for number in 0..ACCEPTORS {
            let switch = ("acceptor", number);
            let mut arguments = self.arguments(switch);
            arguments.extend(["--make-folder".to_owned(), "first".to_owned()]);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            self.must_succeed(&arguments)?;
            self.start(switch)?;
        }
        (0..COORDINATORS).try_for_each(|number| self.start(("coordinator", number)))
    }

    /// Dropping kills it at once (`SIGKILL`).
    fn kill(&mut self, switch: (&'static str, usize)) -> Result<()> {
        let mut process = self.switches.remove(&switch).context("it runs")?;
        ensure!(process.is_running()?, "{switch:?} has ended by itself");
        Ok(())
    }

    fn member(&self, learner: u8) -> Result<Member> {
        let file = self.path("deployment.toml");
        Ok(Member::open(&MemberOptions {
            deployment: DeploymentFile::load(Path::new(&file))?,
            learner,
            listen: None,
            dir: self.path(&format!("learner-{learner}")).into(),
            window_bytes: WINDOW_BYTES,
            deadline: DEADLINE,
            busy_poll: Duration::ZERO,
        })?)
    }
}

/// Submits until it is told to stop, and counts; which value has which instance.
fn submit(
    member: &Member,
    number: u8,
    count: &AtomicU64,
    stop: &AtomicBool,
) -> Result<BTreeMap<Vec<u8>, Instance>, MemberError> {
    let mut said = BTreeMap::new();
    for value in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut bytes = format!("{number}-{value};").into_bytes();
        if value.is_multiple_of(16) {
            bytes.resize(5000, b'x'); // in pieces
        }
        let instance = member.submit(&bytes)?;
        said.insert(bytes, instance);
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(said)
}

/// Takes all until nothing more comes after it was told to stop.
fn learn(member: &Member, stop: &AtomicBool) -> Result<Vec<(Instance, Vec<u8>)>, MemberError> {
    let mut taken: Vec<(Instance, Vec<u8>)> = Vec::new();
    loop {
        let was_told = stop.load(Ordering::Relaxed);
        match member.next_within(Duration::from_millis(500))? {
            Some(next) => taken.push(next),
            None if was_told => return Ok(taken),
            None => continue,
        }
        if taken.len().is_multiple_of(CHECKPOINT_EVERY)
            && let Some((upto, _)) = taken.last()
        {
            member.checkpoint(*upto)?;
        }
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_so() {
        ensure!(begun.elapsed() < DEADLINE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[test]
fn whoever_is_killed_no_value_is_lost_and_none_comes_twice() -> Result<()> {
    let mut deployment = Deployment::new("switches")?;
    deployment.start_all()?;
    let members = [deployment.member(0)?, deployment.member(1)?];
    let counts = [const { AtomicU64::new(0) }; 2];
    let (stop, stop_learning) = (AtomicBool::new(false), AtomicBool::new(false));
    let (said, learned) = thread::scope(|scope| -> Result<_> {
        let learning: Vec<_> = members
            .iter()
            .map(|member| scope.spawn(|| learn(member, &stop_learning)))
            .collect();
        let submitting: Vec<_> = (0_u8..)
            .zip(members.iter().zip(&counts))
            .map(|(number, (member, count))| {
                let stop = &stop;
                scope.spawn(move || submit(member, number, count, stop))
            })
            .collect();
        let both_go_on = || {
            let before = [0, 1].map(|it: usize| counts[it].load(Ordering::Relaxed));
            wait_for("values decided by both", || {
                (0..2).all(|it| {
                    counts[it].load(Ordering::Relaxed) >= before[it] + VALUES_BETWEEN_KILLS
                })
            })
        };
        let strike = |deployment: &mut Deployment| -> Result<()> {
            both_go_on()?;
            let each = [
                ("coordinator", 0),
                ("acceptor", 0),
                ("acceptor", 1),
                ("coordinator", 1),
                ("acceptor", 2),
            ];
            for switch in each {
                deployment.kill(switch)?;
                both_go_on().with_context(|| format!("{switch:?} is dead"))?;
                deployment.start(switch)?;
                both_go_on().with_context(|| format!("{switch:?} is back"))?;
            }
            for number in 0..ACCEPTORS {
                deployment.kill(("acceptor", number))?;
            }
            for number in 0..ACCEPTORS {
                deployment.start(("acceptor", number))?;
            }
            both_go_on().context("all acceptors are back")
        };
        let struck = strike(&mut deployment);
        stop.store(true, Ordering::Relaxed);
        let said: Vec<_> = submitting.into_iter().map(|it| it.join()).collect();
        stop_learning.store(true, Ordering::Relaxed);
        let learned: Vec<_> = learning.into_iter().map(|it| it.join()).collect();
        struck?;
        Ok((said, learned))
    })?;
    let mut learners = Vec::new();
    for one in learned {
        learners.push(one.expect("no panic")?);
    }
    ensure!(learners[0] == learners[1], "two orders");
    let mut instances = BTreeMap::new();
    for (instance, value) in &learners[0] {
        let earlier = instances.insert(value.clone(), *instance);
        ensure!(earlier.is_none(), "a value came twice");
    }
    for one in said {
        for (value, instance) in one.expect("no panic")? {
            let found = instances.get(&value);
            ensure!(found == Some(&instance), "{instance}, and {found:?}");
        }
    }
    println!("{} values", instances.len());
    Ok(())
}

#[test]
fn what_makes_no_sense_is_refused_by_name() -> Result<()> {
    let deployment = Deployment::new("refused")?;
    let file = deployment.path("deployment.toml");
    let nowhere = deployment.path("nowhere");
    let with = |role: &str, more: &[&str]| {
        let words = ["switch", "--role", role, "--deployment", &file];
        let words = words.iter().chain(more).map(|word| match *word {
            "DIR" => nowhere.clone(),
            other => other.to_owned(),
        });
        words.collect::<Vec<_>>()
    };
    let run = |words: &[String]| {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        deployment.run(&words)
    };
    for (words, code, part) in [
        (
            with("acceptor", &["--number", "3", "--dir", "DIR"]),
            2,
            "allowed: 0 to 2",
        ),
        (
            with("coordinator", &["--number", "2"]),
            2,
            "allowed: 0 to 1",
        ),
        (with("acceptor", &["--number", "0"]), 2, "needs a folder"),
        (
            with("leader", &["--number", "0"]),
            2,
            "[possible values: coordinator, acceptor]",
        ),
        (
            with("coordinator", &["--number", "0", "--plane", "p4"]),
            2,
            "[possible values: socket]",
        ),
        (
            with("acceptor", &["--number", "0", "--dir", "DIR"]),
            1,
            &nowhere[..],
        ),
    ] {
        let (found, said) = run(&words)?;
        let is_expected = found == Some(code) && said.contains(part);
        ensure!(is_expected, "{words:?}: {found:?}: {said}");
    }
    fs::write(&file, "name = \"test\"")?;
    let (code, said) = run(&with("coordinator", &["--number", "0"]))?;
    ensure!(code == Some(2) && said.contains("coordinators"), "{said}");
    Ok(())
}
