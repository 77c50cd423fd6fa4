//! Network namespaces for planes in the kernel: the test has one with an end of a veth pair to each plane's.
//! Needs root.
pub use quorumwire_conformance_tests::cluster::grant;
use quorumwire_fastpath::endpoint_at;
use quorumwire_interfaces::{DataPlane, PLANE_REPLICAS_MAX, PlanePeer, ReplicaId};
use quorumwire_plane_xdp::XdpPlane;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where everybody listens, and what stands for the outside, in the numbering of [`test_ip`].
pub use quorumwire_conformance_tests::differential::{OUTSIDE, PORT};
/// Room for whatever a test lets pile up.
const SOCKET_BUFFER_BYTES: usize = 16 << 20;

/// A program is started within this.
const STARTED_WITHIN: Duration = Duration::from_secs(5);

/// What lies between the test and a plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Way {
    /// Where a plane is.
    pub fn plane_ip(self, slot: usize) -> IpAddr {
        match self {
            Self::V4 => plane_ip(slot).into(),
            Self::V6 => ipv6(slot, PLANE_HOST),
        }
    }

    /// Where the test is, as a plane sees it: what stands for a replica, or for the outside.
    pub fn test_ip(self, viewer: usize, stands_for: usize) -> IpAddr {
        match self {
            Self::V4 => test_ip(viewer, stands_for).into(),
            Self::V6 => ipv6(viewer, TEST_HOSTS + stands_for),
        }
    }

    /// All places where the test can be, as a plane sees them.
    fn test_ips(self, viewer: usize) -> impl Iterator<Item = IpAddr> {
        let all = (0..PLANE_REPLICAS_MAX).chain([OUTSIDE]);
        all.map(move |stands_for| self.test_ip(viewer, stands_for))
    }

    /// Bits of the network in an address, and that no time is to pass before it is used.
    fn prefix(self) -> &'static str {
        match self {
            Self::V4 => "24",
            Self::V6 => "64 nodad",
        }
    }
}

/// A plane's number among the hosts of its network.
const PLANE_HOST: usize = 1;
/// The test's first one.
const TEST_HOSTS: usize = 10;

fn ipv6(network: usize, host: usize) -> IpAddr {
    let (network, host) = (octet(network).into(), octet(host).into());
    Ipv6Addr::new(0xfd77, 0, 0, network, 0, 0, 0, host).into()
}

/// Ethernet address of the plane's end of a pair.
pub fn plane_mac(slot: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, octet(slot)]
}

/// Ethernet address of the test's end of a pair.
pub fn test_mac(slot: usize) -> [u8; 6] {
    [2, 0, 0, 0, 2, octet(slot)]
}

/// As `ip` takes it.
pub fn shown(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Network namespaces: the first is the test's, the others the planes'. Removed with this.
pub struct Namespaces {
    way: Way,
    names: Vec<String>,
    /// The one that the test came from.
    home: File,
}

impl Namespaces {
    /// For so many planes, joined to the test by IPv4; nobody has a program yet. Moves this thread into the
    /// test's.
    pub fn new(planes: usize) -> Self {
        Self::joined(planes, Way::V4)
    }

    /// The same, joined as said.
    pub fn joined(planes: usize, way: Way) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let names = (0..=planes)
            .map(|place| format!("qwx-{process}-{number}-{place}"))
            .collect();
        let home = File::open("/proc/thread-self/ns/net").expect("a namespace");
        let all = Self { way, names, home };
        for name in &all.names {
            ip(&["netns", "add", name], "");
        }
        for slot in 0..planes {
            all.connect(slot, "");
        }
        all.enter_test();
        all
    }

    /// Moves this thread into the test's.
    pub fn enter_test(&self) {
        self.enter(0);
    }

    /// Moves this thread into a plane's.
    pub fn enter_plane(&self, slot: usize) {
        self.enter(slot + 1);
    }

    fn enter(&self, place: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[place])).expect("just made");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
    }

    /// Waits until the kernel has told of the carrier of each plane. It does so up to a second after an
    /// interface came up, and that wakes a plane, which looks at what has changed.
    pub fn await_carriers(&self) {
        for name in &self.names[1..] {
            await_carrier(name, "eth0");
        }
    }

    /// Has `ip` do something in a plane's.
    pub fn ip_in_plane(&self, slot: usize, script: &str) {
        ip(&["-n", &self.names[slot + 1], "-batch", "-"], script);
    }

    /// Has `ip` do something in the test's.
    pub fn ip_in_test(&self, script: &str) {
        ip(&["-n", &self.names[0], "-batch", "-"], script);
    }

    /// A veth pair between the test and a plane, whose end has these further settings. Neighbours are fixed,
    /// so that no packet waits for one.
    pub fn connect(&self, slot: usize, settings: &str) {
        self.connect_both(slot, settings, "");
    }

    /// Two receive and two send queues at each end of a plane's pair, in place of the one it has.
    pub fn connect_by_two_queues(&self, slot: usize) {
        let queues = "numrxqueues 2 numtxqueues 2";
        self.ip_in_plane(slot, "link del eth0\n");
        self.connect_both(slot, queues, queues);
    }

    fn connect_both(&self, slot: usize, settings: &str, tests: &str) {
        let (test, plane) = (&self.names[0], &self.names[slot + 1]);
        let (port, way) = (port(slot), self.way);
        let (plane_mac, test_mac) = (shown(plane_mac(slot)), shown(test_mac(slot)));
        let link = format!(
            "link add eth0 netns {plane} address {plane_mac} {settings} type veth \
             peer name {port} netns {test} address {test_mac} {tests}\n"
        );
        ip(&["-batch", "-"], &link);
        let (plane_ip, prefix) = (way.plane_ip(slot), way.prefix());
        let mut in_test = format!("link set {port} up\n");
        for address in way.test_ips(slot) {
            writeln!(in_test, "addr add {address}/{prefix} dev {port}").expect("a string");
        }
        writeln!(
            in_test,
            "neigh replace {plane_ip} lladdr {plane_mac} dev {port} nud permanent"
        )
        .expect("a string");
        self.ip_in_test(&in_test);
        self.set_up_plane(slot);
        // The test's end came up before the plane's. What is sent from an end with no carrier is lost, and it
        // has one only when the kernel comes to say so.
        await_carrier(test, &port);
    }

    /// Gives both ends of a plane's pair an MTU.
    pub fn set_mtu(&self, slot: usize, mtu: u32) {
        self.ip_in_plane(slot, &format!("link set eth0 mtu {mtu}\n"));
        self.ip_in_test(&format!("link set {} mtu {mtu}\n", port(slot)));
    }

    /// Gives a plane's interface what it needs, and has it up.
    pub fn set_up_plane(&self, slot: usize) {
        let (way, test_mac) = (self.way, shown(test_mac(slot)));
        let (plane_ip, prefix) = (way.plane_ip(slot), way.prefix());
        // It makes no address for itself, word of which would wake the plane some time later.
        let mut in_plane = format!(
            "addr add {plane_ip}/{prefix} dev eth0\nlink set lo up\n\
             link set eth0 addrgenmode none\nlink set eth0 up\n"
        );
        for address in way.test_ips(slot) {
            writeln!(
                in_plane,
                "neigh replace {address} lladdr {test_mac} dev eth0 nud permanent"
            )
            .expect("a string");
        }
        let gateway = way.test_ip(slot, OUTSIDE);
        writeln!(in_plane, "route add default via {gateway}").expect("a string");
        self.ip_in_plane(slot, &in_plane);
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let network = Some(LinkNameSpaceType::Network);
        let _ = move_into_link_name_space(self.home.as_fd(), network);
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// Waits until the kernel has told of the carrier of an interface.
fn await_carrier(namespace: &str, interface: &str) {
    let begun = Instant::now();
    // It is said to be DOWN before, or LOWERLAYERDOWN.
    while !ip(&["-n", namespace, "-brief", "link", "show", interface], "").contains(" UP ") {
        let waited = begun.elapsed();
        assert!(
            waited < STARTED_WITHIN,
            "no carrier of {interface} in {namespace}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `ip` in this thread's namespace.
pub fn ip(arguments: &[&str], script: &str) -> String {
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iproute2");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(script.as_bytes()).expect("it reads");
    drop(stdin);
    let done = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {text}\n{script}");
    String::from_utf8(done.stdout).expect("names of the test")
}

/// Whether something wants the host of this plane within this time.
pub fn is_wanted(plane: &XdpPlane, within: Duration) -> bool {
    let mut waits = [PollFd::new(plane, PollFlags::IN)];
    let within = Timespec::try_from(within).expect("some seconds");
    poll(&mut waits, Some(&within)).expect("it is a descriptor") > 0
}

/// The test's end of the pair to a plane.
pub fn port(slot: usize) -> String {
    format!("p{slot}")
}

/// Where a plane is, by IPv4.
pub fn plane_ip(slot: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, octet(slot), octet(PLANE_HOST))
}

/// Where the test is, as a plane sees it: what stands for a replica, or for the outside; by IPv4.
pub fn test_ip(viewer: usize, stands_for: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, octet(viewer), octet(TEST_HOSTS + stands_for))
}

fn octet(number: usize) -> u8 {
    u8::try_from(number).expect("a small number")
}

/// The peers of a grant, where everybody listens.
pub fn peers_at<Ip: Copy + Into<IpAddr>>(ips: &[Ip]) -> Vec<PlanePeer> {
    let ids = (0..).map(ReplicaId);
    let peer = |(id, ip): (ReplicaId, &Ip)| PlanePeer {
        id,
        endpoint: Some(endpoint_at(((*ip).into(), PORT).into())),
    };
    ids.zip(ips).map(peer).collect()
}

/// A socket of the test's, which never blocks.
pub fn socket(ip: impl Into<IpAddr>) -> UdpSocket {
    socket_at(ip, PORT)
}

/// The same, with another port.
pub fn socket_at(ip: impl Into<IpAddr>, port: u16) -> UdpSocket {
    let ip = ip.into();
    let begun = Instant::now();
    // A program that another thread starts has the sockets of all for a moment, also those closed here
    // meanwhile.
    let socket = loop {
        match UdpSocket::bind((ip, port)) {
            Err(error)
                if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < STARTED_WITHIN =>
            {
                std::thread::yield_now();
            }
            bound => break bound.expect("an address of the test"),
        }
    };
    socket.set_nonblocking(true).expect("a socket");
    // Tests take packets in only after many have come.
    set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER_BYTES).expect("root");
    socket
}

/// Whether a datagram left a socket that never blocks: on a busy machine it may still be full of those
/// before.
pub fn sends(from: &UdpSocket, bytes: &[u8], to: impl Into<SocketAddr>) -> bool {
    match from.send_to(bytes, to.into()) {
        Ok(sent) => {
            assert_eq!(sent, bytes.len());
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            false
        }
    }
}

/// Sends one datagram, as soon as the socket takes it.
pub fn send_once(from: &UdpSocket, bytes: &[u8], to: impl Into<SocketAddr>) {
    let (to, begun) = (to.into(), Instant::now());
    while !sends(from, bytes, to) {
        assert!(begun.elapsed() < STARTED_WITHIN, "the socket stays full");
        std::thread::yield_now();
    }
}

/// A plane's counter of this name.
pub fn counted(plane: &XdpPlane, name: &str) -> u64 {
    let mut found = 0;
    plane.counters(&mut |one, count| found += if one.name == name { count } else { 0 });
    found
}
