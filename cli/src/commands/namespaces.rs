//! A network for a demonstration: a namespace for each machine, joined by a bridge in one of its own, where
//! the demonstration itself is. Needs root and iproute2; removed when it is dropped.
use anyhow::{Context as _, bail, ensure};
use quorumwire_interfaces::GroupId;
use quorumwire_node::planes::{Demand, KindOptions, PlaneKind, PlaneSetup, Values, noted_nowhere};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;

/// Where namespaces have names.
const NAMESPACES_DIR: &str = "/run/netns";
/// Their names begin so, and go on with the process that made them.
const NAME_PREFIX: &str = "qwdemo-";
/// The bridge's own host number; the machines' follow.
const FIRST_HOST: u8 = 10;

/// The namespaces. The thread that made them is in the bridge's until they are dropped.
#[derive(Debug)]
pub struct Namespaces {
    name: String,
    machines: u16,
    /// Where the thread came from.
    home: File,
}

impl Namespaces {
    /// For machines 0 to this one less. An error says what is missing. What a demonstration that was killed
    /// has left behind is removed before.
    pub fn new(machines: u16) -> anyhow::Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "that takes root");
        remove_leftovers();
        let network = Self {
            name: format!("{NAME_PREFIX}{}", std::process::id()),
            machines,
            home: File::open("/proc/thread-self/ns/net").context("network namespaces")?,
        };
        network.build()?; // what was made half-way goes with it
        Ok(network)
    }

    /// The same with planes of this kind, which can run there.
    pub fn with_planes(machines: u16, kind: &PlaneKind) -> anyhow::Result<Self> {
        ensure!(cfg!(target_arch = "x86_64"), "that takes x86-64");
        let network = Self::new(machines)?;
        network.make_ready(kind)?;
        network.within(0, || can_run(kind, Self::address(0)?))?;
        Ok(network)
    }

    /// Does for all machines what planes of this kind need at the other end of their links.
    pub fn make_ready(&self, kind: &PlaneKind) -> anyhow::Result<()> {
        if let Some(end) = kind.other_end {
            for id in 0..self.machines {
                let port = port(id);
                (end.make_ready)(&port).with_context(|| format!("interface {port}"))?;
            }
        }
        Ok(())
    }

    /// Cuts a machine's link, or joins it again.
    pub fn set_link(&self, id: u16, is_up: bool) -> anyhow::Result<()> {
        let to = if is_up { "up" } else { "down" };
        ip(&["-n", &self.bridge(), "link", "set", &port(id), to], "")
    }

    /// A machine's address.
    pub fn address(id: u16) -> anyhow::Result<Ipv4Addr> {
        Ok(host(1 + u8::try_from(id)?))
    }

    /// Does something in a machine's namespace, such as starting its process.
    pub fn within<T>(
        &self,
        id: u16,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        enter(&self.machine(id))?;
        let done = work();
        enter(&self.bridge())?;
        done
    }

    /// Starts a thread that is in a machine's namespace.
    pub fn spawn_within(
        &self,
        id: u16,
        work: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<()> {
        let name = self.machine(id);
        let spawned = thread::Builder::new().spawn(move || match enter(&name) {
            Ok(()) => work(),
            Err(error) => errln!("network namespace {name}: {error:#}"),
        });
        spawned.context("starting a thread").map(drop)
    }

    fn bridge(&self) -> String {
        format!("{}-bridge", self.name)
    }

    fn machine(&self, id: u16) -> String {
        format!("{}-{id}", self.name)
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let machines = (0..self.machines).map(|id| self.machine(id));
        machines.chain([self.bridge()])
    }

    fn build(&self) -> anyhow::Result<()> {
        for name in self.names() {
            ip(&["netns", "add", &name], "")?;
        }
        let bridge = self.bridge();
        let own = host(0);
        let script = format!(
            "link set lo up\nlink add br0 type bridge stp_state 0 mcast_snooping 0\n\
             addr add {own}/24 dev br0\nlink set br0 up\n"
        );
        ip(&["-n", &bridge, "-batch", "-"], &script)?;
        for id in 0..self.machines {
            let (name, address, port) = (self.machine(id), Self::address(id)?, port(id));
            let link =
                format!("link add eth0 netns {name} type veth peer name {port} netns {bridge}\n");
            ip(&["-batch", "-"], &link)?;
            let port = format!("link set {port} master br0\nlink set {port} up\n");
            ip(&["-n", &bridge, "-batch", "-"], &port)?;
            let end = format!("link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n");
            ip(&["-n", &name, "-batch", "-"], &end)?;
        }
        enter(&bridge)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let _ = move_into_link_name_space(self.home.as_fd(), Some(LinkNameSpaceType::Network));
        for name in self.names() {
            let _ = ip(&["netns", "del", &name], "");
        }
    }
}

/// Whether a plane runs where this address is: the kernel may take simpler programs alone.
fn can_run(kind: &PlaneKind, address: Ipv4Addr) -> anyhow::Result<()> {
    let kind_options = KindOptions {
        demand: Demand::Yes,
        listen: (address, 0).into(),
        listen_option: "listen-plane",
        values: &Values::default(),
    };
    let setup = PlaneSetup {
        groups: vec![GroupId(1)],
        ring_slots: 16,
        advertised: None,
        datagrams: None,
        note: noted_nowhere(),
    };
    (kind.open)(&kind_options, setup)?;
    Ok(())
}

/// The bridge's end of a machine's link.
fn port(id: u16) -> String {
    format!("p{id}")
}

/// Of demonstrations whose process has ended. What cannot be removed is named.
fn remove_leftovers() {
    let Ok(entries) = fs::read_dir(NAMESPACES_DIR) else {
        return; // no namespace was ever made
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|it| is_leftover(it)) else {
            continue;
        };
        match ip(&["netns", "del", name], "") {
            Ok(()) => errln!("removed network namespace {name} of a demonstration that was killed"),
            Err(error) => {
                errln!("a demonstration that was killed has left {name} behind: {error:#}");
            }
        }
    }
}

fn is_leftover(name: &str) -> bool {
    name.strip_prefix(NAME_PREFIX).is_some_and(has_ended)
}

/// Whether the process is gone whose number this begins with, up to a hyphen.
pub fn has_ended(rest: &str) -> bool {
    let owner = rest.split_once('-');
    let owner = owner
        .and_then(|(pid, _)| pid.parse().ok())
        .and_then(Pid::from_raw);
    owner.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

fn host(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, FIRST_HOST + number)
}

fn enter(name: &str) -> anyhow::Result<()> {
    let path = format!("{NAMESPACES_DIR}/{name}");
    let file = File::open(&path).with_context(|| path.clone())?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).context(path)
}

fn ip(arguments: &[&str], script: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C is for the demonstration, which then removes what it made.
        .process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("the program `ip` is missing; it is in the package iproute2")
        }
        Err(error) => return Err(error).context("starting `ip`"),
    };
    let mut stdin = child.stdin.take().context("its input was asked for")?;
    // If it has ended already, what it says is of more use.
    let _ = stdin.write_all(script.as_bytes());
    drop(stdin);
    let done = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        said.trim_end()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_demonstration_left_is_told_from_what_is_in_use_and_from_what_others_have() {
        let gone = format!("{NAME_PREFIX}{}-3", i32::MAX); // above the highest that there can be
        assert!(is_leftover(&gone));
        let own = format!("{NAME_PREFIX}{}-3", std::process::id());
        for other in [
            &own,
            "qwdemo-",
            "qwdemo-x-1",
            "qwdemo-0-1",
            "qwdemo--4-1",
            "qwtest-1-1",
        ] {
            assert!(!is_leftover(other), "{other}");
        }
    }
}
