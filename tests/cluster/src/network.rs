//! A private network for one cluster: a network namespace for each replica, one for the client, and one
//! that is the switch between them. Breaks links and heals them; starts no process in them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{panic, thread};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Replicas (members and those that may become one) in one network; 1 to this many.
pub const REPLICAS_MAX: u16 = 16;

/// Names of everything the harness leaves in the system begin so, followed by `-PID-NUMBER`.
pub const NAME_PREFIX: &str = "qwtest";

const NAMESPACES_DIR: &str = "/run/netns";
const FIRST_REPLICA_HOST: u8 = 10;
const CLIENT_HOST: u8 = 100;

/// A machine in the network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Machine {
    /// The replica of this id, 0 to the network's replicas - 1.
    Replica(u16),
    /// Where the test itself, its clients and the command line run.
    Client,
}

impl Machine {
    fn host(self) -> u8 {
        match self {
            Self::Replica(id) => FIRST_REPLICA_HOST + u8::try_from(id).expect("below REPLICAS_MAX"),
            Self::Client => CLIENT_HOST,
        }
    }

    pub(crate) fn port(self) -> String {
        format!("p{}", self.host())
    }

    fn suffix(self) -> String {
        match self {
            Self::Replica(id) => format!("r{id}"),
            Self::Client => "cl".into(),
        }
    }

    fn hardware_address(self) -> String {
        format!("02:77:00:00:00:{:02x}", self.host())
    }
}

/// The namespaces of one cluster. They go away with this value, also when the test panics; what an
/// earlier run that was killed left behind goes away when the next run makes its first network.
#[derive(Debug)]
pub struct Network {
    name: String,
    subnet: u8,
    replicas: u16,
}

impl Network {
    /// Makes the namespaces for `replicas` replicas (1 to [`REPLICAS_MAX`]) and a client, all links up.
    /// Fails, naming the reason, without root or without `ip` and `nft`.
    pub fn new(replicas: u16) -> Result<Self> {
        static LEFTOVERS: Once = Once::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        ensure!(
            (1..=REPLICAS_MAX).contains(&replicas),
            "replicas: {replicas}, allowed: 1 to {REPLICAS_MAX}"
        );
        ensure!(
            rustix::process::geteuid().is_root(),
            "the cluster tests make network namespaces and must run as root"
        );
        LEFTOVERS.call_once(remove_leftovers);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let network = Self {
            name: format!("{NAME_PREFIX}-{}-{number}", std::process::id()),
            subnet: u8::try_from(number % 256).expect("below 256"),
            replicas,
        };
        network.build()?; // a failure half-way drops `network`, and with it what was made
        Ok(network)
    }

    /// The name of this network, unique on this machine.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many replicas have a namespace here.
    #[must_use]
    pub fn replicas(&self) -> u16 {
        self.replicas
    }

    /// The address of a machine.
    #[must_use]
    pub fn address(&self, machine: Machine) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.subnet, machine.host())
    }

    /// The other address of a machine.
    #[must_use]
    pub fn address_v6(&self, machine: Machine) -> Ipv6Addr {
        let [subnet, host] = [self.subnet, machine.host()].map(u16::from);
        Ipv6Addr::new(0xfd77, 0, 0, subnet, 0, 0, 0, host)
    }

    /// The file that names a machine's namespace, as `nsenter --net=` takes it.
    #[must_use]
    pub fn namespace(&self, machine: Machine) -> PathBuf {
        namespace_path(&self.namespace_name(&machine.suffix()))
    }

    /// The file that names the namespace of the switch.
    #[must_use]
    pub fn switch_namespace(&self) -> PathBuf {
        namespace_path(&self.namespace_name("sw"))
    }

    /// The switch's ports, all of them.
    #[must_use]
    pub fn ports(&self) -> Vec<String> {
        self.machines().map(Machine::port).collect()
    }

    /// Moves the calling thread, and every thread it starts from now on, onto a machine for good.
    pub fn enter(&self, machine: Machine) -> Result<()> {
        let path = self.namespace(machine);
        let namespace = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("entering {}", path.display()))
    }

    /// Runs `work` on a machine, on a thread of its own. A panic in it goes on here.
    pub fn run_in<T: Send>(&self, machine: Machine, work: impl FnOnce() -> T + Send) -> Result<T> {
        let outcome = thread::scope(|scope| {
            let worker = scope.spawn(|| self.enter(machine).map(|()| work()));
            worker.join()
        });
        match outcome {
            Ok(result) => result,
            Err(panic) => panic::resume_unwind(panic),
        }
    }

    /// Drops everything between two machines, both ways.
    pub fn cut(&self, a: Machine, b: Machine) -> Result<()> {
        self.drop_between(&[(a, b), (b, a)])
    }

    /// Drops everything that `from` sends to `to`; what `to` sends still arrives.
    pub fn cut_one_way(&self, from: Machine, to: Machine) -> Result<()> {
        self.drop_between(&[(from, to)])
    }

    /// Cuts a replica off from all other replicas. The client still reaches it.
    pub fn isolate(&self, replica: u16) -> Result<()> {
        let others = (0..self.replicas).filter(|other| *other != replica);
        let pairs: Vec<_> = others
            .flat_map(|other| both_ways(Machine::Replica(replica), Machine::Replica(other)))
            .collect();
        self.drop_between(&pairs)
    }

    /// Pulls a replica's cable: neither the other replicas nor the client reach it.
    pub fn unplug(&self, replica: u16) -> Result<()> {
        self.isolate(replica)?;
        self.cut(Machine::Replica(replica), Machine::Client)
    }

    /// Leaves each replica only its own group; replicas in no group are alone. The client reaches all.
    pub fn partition(&self, groups: &[&[u16]]) -> Result<()> {
        let together = |a, b| groups.iter().any(|g| g.contains(&a) && g.contains(&b));
        let mut pairs = Vec::new();
        for a in 0..self.replicas {
            for b in (0..self.replicas).filter(|b| *b != a && !together(a, *b)) {
                pairs.push((Machine::Replica(a), Machine::Replica(b)));
            }
        }
        self.drop_between(&pairs)
    }

    /// Drops this share (0 to 100) of all frames at random, the client's too; replaces the share given
    /// before.
    pub fn lose(&self, percent: u8) -> Result<()> {
        ensure!(percent <= 100, "percent: {percent}, allowed: 0 to 100");
        let rule = match percent {
            0 => String::new(),
            100 => "add rule bridge faults losses drop\n".into(),
            _ => format!("add rule bridge faults losses numgen random mod 100 < {percent} drop\n"),
        };
        self.switch(&format!("flush chain bridge faults losses\n{rule}"))
    }

    /// Every cut is joined again and nothing is lost any more.
    pub fn heal(&self) -> Result<()> {
        self.switch("flush set bridge faults cut\nflush chain bridge faults losses\n")
    }

    /// Changes the settings of a replica's interface, as `ip link set` takes them.
    pub fn set_link(&self, replica: u16, settings: &str) -> Result<()> {
        let namespace = self.namespace_name(&Machine::Replica(replica).suffix());
        ip_in(&namespace, &format!("link set eth0 {settings}\n"))
    }

    /// Makes a replica's interface a port of a bridge, `br0`, which has its addresses from now on: as on a
    /// machine that runs others.
    pub fn put_on_bridge(&self, replica: u16) -> Result<()> {
        let machine = Machine::Replica(replica);
        let hardware = machine.hardware_address();
        let bridge = format!(
            "link add br0 address {hardware} type bridge stp_state 0 mcast_snooping 0\n\
             addr flush dev eth0\nlink set eth0 master br0\nlink set br0 up\n"
        );
        let namespace = self.namespace_name(&machine.suffix());
        ip_in(&namespace, &(bridge + &self.addresses(machine, "br0")))
    }

    /// So many receive queues at a replica's interface from now on.
    pub fn set_receive_queues(&self, replica: u16, count: u32) -> Result<()> {
        let count = count.to_string();
        self.run_in(Machine::Replica(replica), || {
            let done = Command::new("ethtool")
                .args(["-L", "eth0", "rx", &count])
                .output()?;
            let text = String::from_utf8_lossy(&done.stderr);
            ensure!(done.status.success(), "ethtool: {text}");
            Ok(())
        })?
    }

    /// What `ip` says of a replica's interface.
    pub fn link(&self, replica: u16) -> Result<String> {
        let namespace = self.namespace_name(&Machine::Replica(replica).suffix());
        let arguments = ["-n", &namespace, "-details", "link", "show", "eth0"];
        let said = Command::new("ip").args(arguments).output()?;
        ensure!(said.status.success(), "{said:?}");
        Ok(String::from_utf8(said.stdout)?)
    }

    /// Removes a replica's cable and the interfaces at both its ends.
    pub fn remove_cable(&self, replica: u16) -> Result<()> {
        let namespace = self.namespace_name(&Machine::Replica(replica).suffix());
        ip_in(&namespace, "link del eth0\n")
    }

    /// Lays a cable where there is none any more.
    pub fn lay_cable(&self, replica: u16) -> Result<()> {
        self.connect(Machine::Replica(replica), &self.namespace_name("sw"))
    }

    fn machines(&self) -> impl Iterator<Item = Machine> + Clone + use<> {
        (0..self.replicas)
            .map(Machine::Replica)
            .chain([Machine::Client])
    }

    fn namespace_name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    fn build(&self) -> Result<()> {
        let switch = self.namespace_name("sw");
        add_namespace(&switch)?;
        ip_in(
            &switch,
            "link add br0 type bridge stp_state 0 mcast_snooping 0\nlink set br0 up\n",
        )?;
        for machine in self.machines() {
            self.plug_in(machine, &switch)?;
        }
        self.switch(
            "add table bridge faults\n\
             add set bridge faults cut { type ifname . ifname; }\n\
             add chain bridge faults losses\n\
             add chain bridge faults crossing { type filter hook forward priority 0; }\n\
             add rule bridge faults crossing iifname . oifname @cut drop\n\
             add rule bridge faults crossing jump losses\n",
        )
    }

    /// One machine's namespace and its cable to the switch.
    fn plug_in(&self, machine: Machine, switch: &str) -> Result<()> {
        add_namespace(&self.namespace_name(&machine.suffix()))?;
        self.connect(machine, switch)
    }

    /// A machine's cable to the switch. Neighbours are fixed: after a cut no failed address resolution
    /// outlives the healing.
    fn connect(&self, machine: Machine, switch: &str) -> Result<()> {
        let namespace = self.namespace_name(&machine.suffix());
        let port = machine.port();
        ip(&format!(
            "link add eth0 netns {namespace} address {} type veth peer name {port} netns {switch}\n",
            machine.hardware_address()
        ))?;
        ip_in(
            switch,
            &format!("link set {port} master br0\nlink set {port} up\n"),
        )?;
        // No address comes by itself a moment later: a browser breaks off what it loads when one does.
        let up = "link set lo up\nlink set eth0 addrgenmode none\nlink set eth0 up\n".to_owned();
        ip_in(&namespace, &(up + &self.addresses(machine, "eth0")))
    }

    /// Gives an interface of a machine its addresses, and tells it of the others'.
    fn addresses(&self, machine: Machine, interface: &str) -> String {
        let own = format!(
            "addr add {}/24 dev {interface}\naddr add {}/64 dev {interface} nodad\n",
            self.address(machine),
            self.address_v6(machine)
        );
        let others = self.machines().filter(|other| *other != machine);
        let neighbours = others.flat_map(|other| {
            let addresses: [IpAddr; 2] =
                [self.address(other).into(), self.address_v6(other).into()];
            addresses.map(|address| {
                let hardware = other.hardware_address();
                format!("neigh replace {address} lladdr {hardware} dev {interface} nud permanent\n")
            })
        });
        [own].into_iter().chain(neighbours).collect()
    }

    fn drop_between(&self, pairs: &[(Machine, Machine)]) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        let elements: Vec<_> = pairs
            .iter()
            .map(|(from, to)| format!("\"{}\" . \"{}\"", from.port(), to.port()))
            .collect();
        self.switch(&format!(
            "add element bridge faults cut {{ {} }}\n",
            elements.join(", ")
        ))
    }

    /// Gives the switch's packet filter a script, all or nothing.
    fn switch(&self, script: &str) -> Result<()> {
        let namespace = namespace_path(&self.namespace_name("sw"));
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", namespace.display()));
        command.args(["nft", "-f", "-"]);
        run_with_input(&mut command, script)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove_namespaces(|name| belongs_to(name, &self.name));
    }
}

fn both_ways(a: Machine, b: Machine) -> [(Machine, Machine); 2] {
    [(a, b), (b, a)]
}

fn namespace_path(name: &str) -> PathBuf {
    Path::new(NAMESPACES_DIR).join(name)
}

fn add_namespace(name: &str) -> Result<()> {
    ip(&format!("netns add {name}\n"))
}

fn ip(script: &str) -> Result<()> {
    run_with_input(Command::new("ip").args(["-batch", "-"]), script)
}

fn ip_in(namespace: &str, script: &str) -> Result<()> {
    let mut command = Command::new("ip");
    command.args(["-n", namespace, "-batch", "-"]);
    run_with_input(&mut command, script)
}

fn run_with_input(command: &mut Command, input: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`{program}` is missing; `make setup` installs it")
        }
        other => other.with_context(|| format!("starting {program}"))?,
    };
    let mut stdin = child.stdin.take().context("its input was asked for")?;
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(written?);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(anyhow!(
        "{program} refused ({}): {complaint}\n{input}",
        output.status
    ))
}

/// Removes the namespaces of runs whose process is gone. What cannot be read is left alone.
fn remove_leftovers() {
    let own = std::process::id();
    remove_namespaces(|name| owner_of(name).is_some_and(|pid| pid != own && !is_running(pid)));
}

fn remove_namespaces(condemned: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(NAMESPACES_DIR) else {
        return; // no namespace was ever made
    };
    let names: BTreeSet<_> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| condemned(name))
        .collect();
    for name in names {
        if let Err(error) = ip(&format!("netns del {name}\n")) {
            eprintln!("a network namespace stays behind: {error:#}");
        }
    }
}

fn belongs_to(namespace: &str, network: &str) -> bool {
    namespace
        .strip_prefix(network)
        .is_some_and(|rest| rest.starts_with('-'))
}

/// The process that made something called `qwtest-PID-NUMBER...`; none if the name is not ours.
pub(crate) fn owner_of(name: &str) -> Option<u32> {
    let (pid, _) = name
        .strip_prefix(NAME_PREFIX)?
        .strip_prefix('-')?
        .split_once('-')?;
    pid.parse().ok()
}

/// Whether a process of this id runs; one that has ended and waits to be reaped does not.
pub(crate) fn is_running(pid: u32) -> bool {
    let path = Path::new("/proc").join(pid.to_string()).join("stat");
    let stat = fs::read_to_string(path).unwrap_or_default();
    // The state follows the name, which is in parentheses and may contain some.
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| !['Z', 'X'].contains(&state))
}

#[cfg(test)]
#[path = "network_test.rs"]
mod tests;
