//! The suite on the XDP plane. Each plane has a network namespace of its own with one end of a veth pair; the
//! test has a namespace with all the other ends, and in it a socket for each two planes, which takes what one
//! sends to the other until the test lets it arrive. Needs root.
use quorumwire_conformance_tests::cluster::GROUP;
use quorumwire_conformance_tests::{Fabric, Frame, Wanted, conformance};
use quorumwire_fastpath::Options;
use quorumwire_interfaces::DataPlane;
use quorumwire_plane_xdp::{Passing, XdpPlane};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::VecDeque;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where all planes listen.
const PORT: u16 = 7000;

/// Network namespaces that are removed with it, and what is in them.
struct Namespaces {
    names: Vec<String>,
    /// The one that the test came from.
    home: File,
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip")
        .args(arguments)
        .output()
        .expect("iproute2");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {text}");
}

impl Namespaces {
    fn new(count: usize) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let names: Vec<String> = (0..count)
            .map(|place| format!("qwx-{process}-{number}-{place}"))
            .collect();
        for name in &names {
            ip(&["netns", "add", name]);
        }
        let home = File::open("/proc/thread-self/ns/net").expect("a namespace");
        Self { names, home }
    }

    /// Moves this thread.
    fn enter(&self, place: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[place])).expect("just made");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
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

/// Planes in the kernel.
struct Kernel {
    planes: Vec<XdpPlane>,
    /// What stands for the second slot where the first one sends.
    between: Vec<(usize, usize, UdpSocket)>,
    outside: UdpSocket,
    /// What has come to the test and was not asked for yet.
    frames: Vec<Frame>,
    answers: VecDeque<Vec<u8>>,
    /// Datagrams sent to planes, and come from them.
    sent: u64,
    come: u64,
    _passing: Vec<Passing>,
    _namespaces: Namespaces,
}

/// Room for whatever the suite lets pile up.
const SOCKET_BUFFER_BYTES: usize = 16 << 20;

/// Longest time that packets may be on their way between two namespaces of this machine.
const ON_THE_WAY_MAX: Duration = Duration::from_secs(5);

impl Kernel {
    fn counted(&self, name: &str) -> u64 {
        let mut sum = 0;
        for plane in &self.planes {
            plane.counters(&mut |one, count| sum += if one == name { count } else { 0 });
        }
        sum
    }

    /// Sends a datagram to a plane, and waits until its program has seen it.
    fn send(&mut self, pair: Option<(usize, usize)>, slot: usize, bytes: &[u8]) {
        let mut between = self.between.iter();
        let from = match pair {
            Some(pair) => {
                let found = between.find(|(from, to, _)| (*from, *to) == pair);
                &found.expect("a pair of slots").2
            }
            None => &self.outside,
        };
        let to = (plane_ip(slot), PORT);
        from.send_to(bytes, to).expect("a veth pair");
        self.sent += 1;
        let begun = Instant::now();
        while self.counted("kernel_received") < self.sent {
            assert!(
                begun.elapsed() < ON_THE_WAY_MAX,
                "{} of {} datagrams came",
                self.counted("kernel_received"),
                self.sent
            );
            std::thread::yield_now();
        }
    }

    /// Takes in everything that planes have sent.
    fn take_in(&mut self) {
        let begun = Instant::now();
        loop {
            let on_the_way = self.counted("kernel_sent") + self.counted("socket_sent");
            for (from, to, socket) in &self.between {
                while let Some(bytes) = next(socket) {
                    let (from, to) = (*from, *to);
                    self.frames.push(Frame { from, to, bytes });
                    self.come += 1;
                }
            }
            while let Some(bytes) = next(&self.outside) {
                self.answers.push_back(bytes);
                self.come += 1;
            }
            if self.come >= on_the_way {
                return;
            }
            assert!(
                begun.elapsed() < ON_THE_WAY_MAX,
                "{} of {on_the_way} packets came",
                self.come
            );
            std::thread::yield_now();
        }
    }
}

/// Where a plane is.
fn plane_ip(slot: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, octet(slot), 1)
}

/// Where the test is, as a plane sees it: what stands for a replica, or for the outside.
fn test_ip(viewer: usize, stands_for: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, octet(viewer), octet(10 + stands_for))
}

fn octet(number: usize) -> u8 {
    u8::try_from(number).expect("a small number")
}

fn socket(ip: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((ip, PORT)).expect("an address of the test");
    socket.set_nonblocking(true).expect("a socket");
    // The suite takes packets in only after many have come.
    set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER_BYTES).expect("root");
    socket
}

fn next(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    match socket.recv(&mut bytes) {
        Ok(length) => {
            bytes.truncate(length);
            Some(bytes)
        }
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
            None
        }
    }
}

/// What stands for the outside, in the numbering of `test_ip`.
const OUTSIDE: usize = 200;

/// A veth pair between the test (namespace 0) and a plane.
fn connect(namespaces: &Namespaces, slot: usize, replicas: usize) {
    let (test, plane) = (&namespaces.names[0], &namespaces.names[slot + 1]);
    let port = format!("p{slot}");
    let mac = |end: u8| format!("02:00:00:00:{end:02x}:{slot:02x}");
    ip(&[
        &[
            "link",
            "add",
            "eth0",
            "netns",
            plane,
            "address",
            &mac(1),
            "type",
            "veth",
        ][..],
        &["peer", "name", &port, "netns", test, "address", &mac(2)],
    ]
    .concat());
    let in_plane = |arguments: &[&str]| ip(&[&["-n", plane][..], arguments].concat());
    let in_test = |arguments: &[&str]| ip(&[&["-n", test][..], arguments].concat());
    in_plane(&[
        "addr",
        "add",
        &format!("{}/24", plane_ip(slot)),
        "dev",
        "eth0",
    ]);
    for stands_for in (0..replicas).chain([OUTSIDE]) {
        let address = format!("{}/24", test_ip(slot, stands_for));
        in_test(&["addr", "add", &address, "dev", &port]);
    }
    in_plane(&["link", "set", "lo", "up"]);
    in_plane(&["link", "set", "eth0", "up"]);
    in_test(&["link", "set", &port, "up"]);
    for stands_for in (0..replicas).chain([OUTSIDE]) {
        let address = test_ip(slot, stands_for).to_string();
        in_plane(&[
            "neigh",
            "replace",
            &address,
            "lladdr",
            &mac(2),
            "dev",
            "eth0",
            "nud",
            "permanent",
        ]);
    }
    let gateway = test_ip(slot, OUTSIDE).to_string();
    in_plane(&["route", "add", "default", "via", &gateway]);
    let plane_ip = plane_ip(slot).to_string();
    in_test(&[
        "neigh",
        "replace",
        &plane_ip,
        "lladdr",
        &mac(1),
        "dev",
        &port,
        "nud",
        "permanent",
    ]);
}

impl Fabric for Kernel {
    fn new(wanted: Wanted) -> Self {
        let options = Options {
            group: GROUP,
            ring_slots: wanted.ring_slots,
            window: wanted.window,
        };
        let namespaces = Namespaces::new(wanted.replicas + 1);
        for slot in 0..wanted.replicas {
            connect(&namespaces, slot, wanted.replicas);
        }
        let mut planes = Vec::new();
        for slot in 0..wanted.replicas {
            namespaces.enter(slot + 1);
            let address = SocketAddr::new(IpAddr::V4(plane_ip(slot)), PORT);
            planes
                .push(XdpPlane::attach(address, None, options).expect("root, and a kernel for it"));
        }
        namespaces.enter(0);
        let passing = (0..wanted.replicas)
            .map(|slot| Passing::attach(&format!("p{slot}")).expect("root, and a kernel for it"))
            .collect();
        let slots = 0..wanted.replicas;
        let pairs = slots
            .clone()
            .flat_map(|from| slots.clone().map(move |to| (from, to)));
        Self {
            planes,
            between: pairs
                .map(|(from, to)| (from, to, socket(test_ip(from, to))))
                .collect(),
            outside: socket(test_ip(0, OUTSIDE)),
            frames: Vec::new(),
            answers: VecDeque::new(),
            sent: 0,
            come: 0,
            _passing: passing,
            _namespaces: namespaces,
        }
    }

    fn plane(&mut self, slot: usize) -> &mut dyn DataPlane {
        &mut self.planes[slot]
    }

    fn address(&self, viewer: usize, slot: usize) -> SocketAddr {
        SocketAddr::new(test_ip(viewer, slot).into(), PORT)
    }

    fn collect(&mut self) -> Vec<Frame> {
        self.take_in();
        std::mem::take(&mut self.frames)
    }

    /// From where the plane sees the sender.
    fn deliver(&mut self, frame: &Frame) {
        self.send(Some((frame.to, frame.from)), frame.to, &frame.bytes);
    }

    fn send_from_outside(&mut self, slot: usize, bytes: &[u8]) {
        self.send(None, slot, bytes);
    }

    fn receive_outside(&mut self) -> Option<Vec<u8>> {
        self.take_in();
        self.answers.pop_front()
    }

    fn outside(&self) -> SocketAddr {
        self.outside.local_addr().expect("it is bound")
    }
}

conformance!(Kernel);
