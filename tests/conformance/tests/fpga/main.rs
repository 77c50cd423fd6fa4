//! The suite on the core in gates, simulated. Frames go from card to card through the test, in one thread.
#![cfg(feature = "fpga-sim")]
mod differential;

use quorumwire_conformance_tests::cluster::GROUP;
use quorumwire_conformance_tests::differential::PORT;
use quorumwire_conformance_tests::frames::{Envelope, framed};
use quorumwire_conformance_tests::{Fabric, Frame, PlaneSpec, conformance};
use quorumwire_fastpath::{Options, Outbox};
use quorumwire_interfaces::{CounterSink, DataPlane};
use quorumwire_plane_fpga::{FpgaPlane, Network, datagram_in};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

/// Of the addresses of planes, and of who is outside.
const PLANES: u8 = 100;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 77, 200, 1);

/// Where a plane is.
fn own(slot: usize) -> SocketAddr {
    at(PLANES, slot)
}

fn at(net: u8, slot: usize) -> SocketAddr {
    let host = u8::try_from(slot).expect("a few");
    (Ipv4Addr::new(10, 77, net, host), PORT).into()
}

fn mac_at(ip: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = ip.octets();
    [2, 0, a, b, c, d]
}

fn ipv4(address: SocketAddr) -> Ipv4Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(ip) => panic!("{ip}"),
    }
}

/// A frame with a datagram, as a card gets it.
fn frame_of(from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let envelope = Envelope {
        from,
        to,
        from_mac: mac_at(ipv4(from)),
        to_mac: mac_at(ipv4(to)),
    };
    framed(&envelope, datagram)
}

/// What goes between the cards.
#[derive(Default)]
struct World {
    coming: Vec<VecDeque<Vec<u8>>>,
    /// By whom, to where, and what.
    sent: Vec<(usize, SocketAddr, Vec<u8>)>,
}

/// Where a card is connected to it.
struct Cable {
    slot: usize,
    world: Arc<Mutex<World>>,
}

impl Cable {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("nobody panics with it")
    }
}

impl Outbox for Cable {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.world().sent.push((self.slot, to, datagram.to_vec()));
    }
}

impl Network for Cable {
    fn mac(&self) -> [u8; 6] {
        mac_at(ipv4(own(self.slot)))
    }

    fn mac_of(&mut self, ip: IpAddr) -> Option<[u8; 6]> {
        Some(mac_at(ipv4((ip, 0).into())))
    }

    fn next_frame(&mut self, frame: &mut [u8]) -> Option<usize> {
        let come = self.world().coming[self.slot].pop_front()?;
        frame[..come.len()].copy_from_slice(&come);
        Some(come.len())
    }

    fn send_frame(&mut self, frame: &[u8]) {
        let (from, to, datagram) = datagram_in(frame).expect("the card sends datagrams");
        assert_eq!(from, own(self.slot), "the sender");
        assert_eq!(frame[..6], mac_at(ipv4(to)), "the neighbour");
        self.world().sent.push((self.slot, to, datagram.to_vec()));
    }

    fn flush(&mut self) {}

    fn count(&self, _: CounterSink<'_>) {}
}

/// Planes in gates.
struct Cards {
    planes: Vec<FpgaPlane<Cable>>,
    world: Arc<Mutex<World>>,
}

impl Cards {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("nobody panics with it")
    }

    fn come(&self, slot: usize, from: SocketAddr, bytes: &[u8]) {
        let frame = frame_of(from, own(slot), bytes);
        self.world().coming[slot].push_back(frame);
    }
}

impl Fabric for Cards {
    fn new(wanted: PlaneSpec) -> Self {
        let world = World {
            coming: vec![VecDeque::new(); wanted.replicas],
            sent: Vec::new(),
        };
        let world = Arc::new(Mutex::new(world));
        let options = Options {
            group: GROUP,
            ring_slots: wanted.ring_slots,
            window: wanted.window,
        };
        let plane = |slot| {
            let world = Arc::clone(&world);
            FpgaPlane::new(own(slot), options, Cable { slot, world }).expect("sound options")
        };
        Self {
            planes: (0..wanted.replicas).map(plane).collect(),
            world,
        }
    }

    fn plane(&mut self, slot: usize) -> &mut dyn DataPlane {
        &mut self.planes[slot]
    }

    fn address(&self, viewer: usize, slot: usize) -> SocketAddr {
        at(u8::try_from(viewer).expect("a few"), slot)
    }

    fn collect(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut world = self.world();
        world.sent.retain(|(from, to, bytes)| {
            let [_, _, net, host] = ipv4(*to).octets();
            let is_planes = usize::from(net) == *from && ipv4(*to) != OUTSIDE;
            if is_planes {
                frames.push(Frame {
                    from: *from,
                    to: host.into(),
                    bytes: bytes.clone(),
                });
            }
            !is_planes
        });
        frames
    }

    fn deliver(&mut self, frame: &Frame) {
        let from = self.address(frame.to, frame.from);
        self.come(frame.to, from, &frame.bytes);
    }

    fn send_from_outside(&mut self, slot: usize, bytes: &[u8]) {
        self.come(slot, self.outside(), bytes);
    }

    fn receive_outside(&mut self) -> Option<Vec<u8>> {
        let outside = self.outside();
        let mut world = self.world();
        let at = world.sent.iter().position(|(_, to, _)| *to == outside)?;
        Some(world.sent.remove(at).2)
    }

    fn outside(&self) -> SocketAddr {
        (OUTSIDE, 9000).into()
    }
}

conformance!(Cards);
