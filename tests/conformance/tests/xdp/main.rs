//! The suite on the XDP plane. Each plane has a network namespace of its own; the test has one with a socket
//! for each two planes, which takes what one sends to the other until the test lets it arrive. Needs root.
mod hammered;
mod life;
mod memcached;
mod veth;
mod wakes;

use quorumwire_conformance_tests::cluster::GROUP;
use quorumwire_conformance_tests::{Fabric, Frame, Wanted, conformance, next_datagram};
use quorumwire_fastpath::Options;
use quorumwire_interfaces::DataPlane;
use quorumwire_plane_xdp::{XdpPlane, let_pass};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use veth::{Namespaces, OUTSIDE, PORT, counted, plane_ip, port, socket, test_ip};

/// Planes in the kernel.
struct Kernel {
    planes: Vec<XdpPlane>,
    /// What stands for the second slot where the first one sends.
    between: Vec<(usize, usize, UdpSocket)>,
    outside: UdpSocket,
    /// What has come to the test and was not asked for yet.
    frames: Vec<Frame>,
    answers: VecDeque<Vec<u8>>,
    /// Datagrams sent to each plane.
    sent: Vec<u64>,
    /// Datagrams that have come from all planes.
    come: u64,
    namespaces: Namespaces,
}

/// Longest time that packets may be on their way between two namespaces of this machine.
const ON_THE_WAY_MAX: Duration = Duration::from_secs(5);

impl Kernel {
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
        self.sent[slot] += 1;
        let begun = Instant::now();
        loop {
            let (came, sent) = (counted(&self.planes[slot], "received"), self.sent[slot]);
            if came >= sent {
                return;
            }
            assert!(
                begun.elapsed() < ON_THE_WAY_MAX,
                "{came} of {sent} datagrams came"
            );
            std::thread::yield_now();
        }
    }

    /// Takes in what has come from planes to each other by now.
    fn take_what_is_there(&mut self) -> Vec<Frame> {
        for (from, to, socket) in &self.between {
            while let Some(bytes) = next_datagram(socket) {
                let (from, to) = (*from, *to);
                self.frames.push(Frame { from, to, bytes });
                self.come += 1;
            }
        }
        std::mem::take(&mut self.frames)
    }

    /// Takes in everything that planes have sent.
    fn take_in(&mut self) {
        let begun = Instant::now();
        loop {
            let slots = 0..self.planes.len();
            let on_the_way: u64 = slots.map(|slot| counted(&self.planes[slot], "sent")).sum();
            self.frames = self.take_what_is_there();
            while let Some(bytes) = next_datagram(&self.outside) {
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

impl Fabric for Kernel {
    fn new(wanted: Wanted) -> Self {
        let options = Options {
            group: GROUP,
            ring_slots: wanted.ring_slots,
            window: wanted.window,
        };
        let namespaces = Namespaces::new(wanted.replicas);
        let mut planes = Vec::new();
        for slot in 0..wanted.replicas {
            namespaces.enter_plane(slot);
            let address = SocketAddr::new(IpAddr::V4(plane_ip(slot)), PORT);
            planes
                .push(XdpPlane::attach(address, None, options).expect("root, and a kernel for it"));
        }
        namespaces.enter_test();
        for slot in 0..wanted.replicas {
            let_pass(&port(slot)).expect("root, and a kernel for it");
        }
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
            sent: vec![0; wanted.replicas],
            come: 0,
            namespaces,
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
