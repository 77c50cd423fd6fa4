//! Network namespaces for planes in the kernel: the test has one with an end of a veth pair to each plane's.
//! Needs root.
use quorumwire_interfaces::{DataPlane, PlanePeer, ReplicaId};
use quorumwire_plane_xdp::XdpPlane;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where everybody listens.
pub const PORT: u16 = 7000;
/// What stands for the outside, in the numbering of [`test_ip`].
pub const OUTSIDE: usize = 200;
/// Room for whatever a test lets pile up.
const SOCKET_BUFFER_BYTES: usize = 16 << 20;

/// Network namespaces: the first is the test's, the others the planes'. Removed with this.
pub struct Namespaces {
    names: Vec<String>,
    /// The one that the test came from.
    home: File,
}

impl Namespaces {
    /// For so many planes, joined to the test; nobody has a program yet. Moves this thread into the test's.
    pub fn new(planes: usize) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let names = (0..=planes)
            .map(|place| format!("qwx-{process}-{number}-{place}"))
            .collect();
        let home = File::open("/proc/thread-self/ns/net").expect("a namespace");
        let all = Self { names, home };
        for name in &all.names {
            ip(&["netns", "add", name], "");
        }
        for slot in 0..planes {
            all.connect(slot, planes, "");
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

    /// Has `ip` do something in a plane's.
    pub fn ip_in_plane(&self, slot: usize, script: &str) {
        ip(&["-n", &self.names[slot + 1], "-batch", "-"], script);
    }

    /// Has `ip` do something in the test's.
    pub fn ip_in_test(&self, script: &str) {
        ip(&["-n", &self.names[0], "-batch", "-"], script);
    }

    /// A veth pair between the test and a plane, whose end has these further settings. Neighbours are fixed, so
    /// that no packet waits for one.
    pub fn connect(&self, slot: usize, planes: usize, settings: &str) {
        let (test, plane) = (&self.names[0], &self.names[slot + 1]);
        let (port, plane_ip) = (port(slot), plane_ip(slot));
        let (plane_mac, test_mac) = (mac(1, slot), mac(2, slot));
        let link = format!(
            "link add eth0 netns {plane} address {plane_mac} {settings} type veth \
             peer name {port} netns {test} address {test_mac}\n"
        );
        ip(&["-batch", "-"], &link);
        let mut in_test = format!("link set {port} up\n");
        for stands_for in (0..planes).chain([OUTSIDE]) {
            let address = test_ip(slot, stands_for);
            writeln!(in_test, "addr add {address}/24 dev {port}").expect("a string");
        }
        writeln!(
            in_test,
            "neigh replace {plane_ip} lladdr {plane_mac} dev {port} nud permanent"
        )
        .expect("a string");
        self.ip_in_test(&in_test);
        self.set_up_plane(slot, planes);
    }

    /// Gives a plane's interface what it needs, and has it up.
    pub fn set_up_plane(&self, slot: usize, planes: usize) {
        let (plane_ip, test_mac) = (plane_ip(slot), mac(2, slot));
        // It makes no address for itself, word of which would wake the plane some time later.
        let mut in_plane = format!(
            "addr add {plane_ip}/24 dev eth0\nlink set lo up\nlink set eth0 addrgenmode none\n\
             link set eth0 up\n"
        );
        for stands_for in (0..planes).chain([OUTSIDE]) {
            let address = test_ip(slot, stands_for);
            writeln!(
                in_plane,
                "neigh replace {address} lladdr {test_mac} dev eth0 nud permanent"
            )
            .expect("a string");
        }
        let gateway = test_ip(slot, OUTSIDE);
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

/// Runs `ip` in this thread's namespace.
pub fn ip(arguments: &[&str], script: &str) {
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iproute2");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(script.as_bytes()).expect("it reads");
    drop(stdin);
    let done = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {text}\n{script}");
}

/// Ethernet addresses of planes, which are the first end of their pairs, and of the test.
pub fn mac(end: u8, slot: usize) -> String {
    format!("02:00:00:00:{end:02x}:{slot:02x}")
}

/// The test's end of the pair to a plane.
pub fn port(slot: usize) -> String {
    format!("p{slot}")
}

/// Where a plane is.
pub fn plane_ip(slot: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, octet(slot), 1)
}

/// Where the test is, as a plane sees it: what stands for a replica, or for the outside.
pub fn test_ip(viewer: usize, stands_for: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, octet(viewer), octet(10 + stands_for))
}

fn octet(number: usize) -> u8 {
    u8::try_from(number).expect("a small number")
}

/// The peers of a grant, where everybody listens.
pub fn peers_at(ips: &[Ipv4Addr]) -> Vec<PlanePeer> {
    let peer = |ip: &Ipv4Addr| PlanePeer {
        id: ReplicaId(u16::from(ip.octets()[3])),
        address: (*ip, PORT).into(),
    };
    ips.iter().map(peer).collect()
}

/// A socket of the test's, which never blocks.
pub fn socket(ip: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((ip, PORT)).expect("an address of the test");
    socket.set_nonblocking(true).expect("a socket");
    // Tests take packets in only after many have come.
    set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER_BYTES).expect("root");
    socket
}

/// A plane's counter of this name.
pub fn counted(plane: &XdpPlane, name: &str) -> u64 {
    let mut found = 0;
    plane.counters(&mut |one, count| found += if one == name { count } else { 0 });
    found
}
