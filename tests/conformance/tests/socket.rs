//! The suite on the socket plane, over the loopback device. Between each two planes stands a socket that
//! takes what one sends to the other until the test lets it arrive; all in one thread, so nothing waits.
use quorumwire_conformance_tests::cluster::GROUP;
use quorumwire_conformance_tests::{Fabric, Frame, PlaneSpec, conformance, next_datagram};
use quorumwire_fastpath::Options;
use quorumwire_interfaces::DataPlane;
use quorumwire_plane_socket::SocketPlane;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Planes on sockets.
struct Sockets {
    planes: Vec<SocketPlane>,
    /// What stands for the second slot where the first one sends.
    between: Vec<(usize, usize, UdpSocket)>,
    outside: UdpSocket,
}

const ANYWHERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(ANYWHERE).expect("a loopback device");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

impl Sockets {
    fn send(&self, from: &UdpSocket, slot: usize, bytes: &[u8]) {
        let to = self.planes[slot].local_address().expect("it is bound");
        assert_eq!(from.send_to(bytes, to).expect("loopback"), bytes.len());
    }
}

impl Fabric for Sockets {
    fn new(wanted: PlaneSpec) -> Self {
        let options = Options {
            group: GROUP,
            ring_slots: wanted.ring_slots,
            window: wanted.window,
        };
        let slots = 0..wanted.replicas;
        let pairs = slots
            .clone()
            .flat_map(|from| slots.clone().map(move |to| (from, to)));
        Self {
            planes: slots
                .clone()
                .map(|_| SocketPlane::bind(ANYWHERE.into(), options).expect("a free port"))
                .collect(),
            between: pairs.map(|(from, to)| (from, to, socket())).collect(),
            outside: socket(),
        }
    }

    fn plane(&mut self, slot: usize) -> &mut dyn DataPlane {
        &mut self.planes[slot]
    }

    fn address(&self, viewer: usize, slot: usize) -> SocketAddr {
        let mut between = self.between.iter();
        let found = between.find(|(from, to, _)| (*from, *to) == (viewer, slot));
        found
            .and_then(|(.., socket)| socket.local_addr().ok())
            .expect("a pair of slots")
    }

    fn collect(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        for (from, to, socket) in &self.between {
            while let Some(bytes) = next_datagram(socket) {
                let (from, to) = (*from, *to);
                frames.push(Frame { from, to, bytes });
            }
        }
        frames
    }

    fn deliver(&mut self, frame: &Frame) {
        let pair = (frame.from, frame.to);
        let mut between = self.between.iter();
        let found = between.find(|(from, to, _)| (*from, *to) == pair);
        let (.., socket) = found.expect("a pair of slots");
        self.send(socket, frame.to, &frame.bytes);
    }

    fn send_from_outside(&mut self, slot: usize, bytes: &[u8]) {
        self.send(&self.outside, slot, bytes);
    }

    fn receive_outside(&mut self) -> Option<Vec<u8>> {
        next_datagram(&self.outside)
    }

    fn outside(&self) -> SocketAddr {
        self.outside.local_addr().expect("it is bound")
    }
}

conformance!(Sockets);
