//! A network for a demonstration: a namespace for each replica, joined by a bridge in one of its own, where
//! the demonstration itself is. Needs root and iproute2; removed when it is dropped.
use anyhow::{Context as _, bail, ensure};
use quorumwire_interfaces::GroupId;
use quorumwire_node::planes::{
    Demand, KindOptions, PlaneKind, PlaneSetup, Values, beyond_loopback, noted_nowhere,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Where namespaces have names.
const NAMESPACES_DIR: &str = "/run/netns";
/// The bridge's own host number; the replicas' follow.
const FIRST_HOST: u8 = 10;

/// The namespaces. The thread that made them is in the bridge's until they are dropped.
#[derive(Debug)]
pub struct DemoNetwork {
    name: String,
    replicas: u16,
    /// Of the planes that run in them.
    kind: &'static PlaneKind,
    /// Where the thread came from.
    home: File,
}

impl DemoNetwork {
    /// For replicas 0 to this one less. An error says what is missing.
    pub fn new(replicas: u16) -> anyhow::Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "that takes root");
        ensure!(cfg!(target_arch = "x86_64"), "that takes x86-64");
        let kind = beyond_loopback().context("all planes run over loopback")?;
        let network = Self {
            name: format!("qwdemo-{}", std::process::id()),
            replicas,
            kind,
            home: File::open("/proc/thread-self/ns/net").context("network namespaces")?,
        };
        network.build()?; // what was made half-way goes with it
        Ok(network)
    }

    /// What the planes of the replicas are.
    pub fn plane(&self) -> &'static str {
        self.kind.name
    }

    /// A replica's address.
    pub fn address(id: u16) -> anyhow::Result<Ipv4Addr> {
        Ok(host(1 + u8::try_from(id)?))
    }

    /// Does something in a replica's namespace, such as starting its process.
    pub fn within<T>(
        &self,
        id: u16,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        enter(&self.replica(id))?;
        let done = work();
        enter(&self.bridge())?;
        done
    }

    fn bridge(&self) -> String {
        format!("{}-bridge", self.name)
    }

    fn replica(&self, id: u16) -> String {
        format!("{}-{id}", self.name)
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let replicas = (0..self.replicas).map(|id| self.replica(id));
        replicas.chain([self.bridge()])
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
        for id in 0..self.replicas {
            let (name, address) = (self.replica(id), Self::address(id)?);
            let link =
                format!("link add eth0 netns {name} type veth peer name p{id} netns {bridge}\n");
            ip(&["-batch", "-"], &link)?;
            let port = format!("link set p{id} master br0\nlink set p{id} up\n");
            ip(&["-n", &bridge, "-batch", "-"], &port)?;
            let end = format!("link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n");
            ip(&["-n", &name, "-batch", "-"], &end)?;
        }
        enter(&bridge)?;
        if let Some(end) = self.kind.other_end {
            for id in 0..self.replicas {
                let ready = (end.make_ready)(&format!("p{id}"));
                ready.with_context(|| format!("interface p{id}"))?;
            }
        }
        self.within(0, || can_run(self.kind, Self::address(0)?))
    }
}

impl Drop for DemoNetwork {
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
