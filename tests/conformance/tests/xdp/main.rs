//! The suite on the XDP plane. Each plane has a network namespace of its own; the test has one with a socket
//! for each two planes, which takes what one sends to the other until the test lets it arrive. Needs root.
mod alone;
mod at_once;
mod boxes;
mod copies;
mod differential;
mod ethernet;
mod forged;
mod groups;
mod hammered;
mod hammered_copies;
mod hammered_leader;
mod life;
mod loaded;
mod memcached;
#[cfg(feature = "mutants")]
mod mutants;
mod tagged;
mod time_namespaces;
mod twin;
mod veth;
mod wakes;

use groups::Busy;
use quorumwire_conformance_tests::cluster::GROUP;
use quorumwire_conformance_tests::{Fabric, Frame, PlaneSpec, conformance, next_datagram};
use quorumwire_fastpath::Options;
use quorumwire_interfaces::DataPlane;
use quorumwire_plane_xdp::{
    Attachment, XdpCopies, XdpInterface, XdpLock, XdpMode, XdpPlane, let_pass,
};
use rustix::net::sockopt::set_ip_multicast_if;
use std::collections::{HashSet, VecDeque};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use veth::{Namespaces, OUTSIDE, PORT, Way, counted, port, send_once, socket, test_ip};

/// How planes use their interfaces.
trait How {
    const ATTACHMENT: Attachment;
    /// What lies before them.
    const WAY: Way = Way::V4;
    /// The slot of a plane that does not know of the multicast address.
    const DEAF: Option<usize> = None;
    /// Whether another group is at work at the first one's interface.
    const HAS_NEIGHBOUR: bool = false;
}

/// In the driver, where the kernel's broadcast makes copies.
struct Driver;

impl How for Driver {
    const ATTACHMENT: Attachment = Attachment {
        mode: XdpMode::Driver,
        copies: XdpCopies::Auto,
        multicast: None,
        vlan: 0,
        lock: XdpLock::Fit,
    };
}

/// In the driver, where a program behind the receive path makes copies, with the lock that older kernels
/// need.
struct Clones;

impl How for Clones {
    const ATTACHMENT: Attachment = Attachment {
        copies: XdpCopies::Clone,
        lock: XdpLock::Kernels,
        ..Driver::ATTACHMENT
    };
}

/// In generic mode, with the lock that older kernels need.
struct Generic;

impl How for Generic {
    const ATTACHMENT: Attachment = Attachment {
        mode: XdpMode::Generic,
        lock: XdpLock::Kernels,
        ..Driver::ATTACHMENT
    };
}

/// In the driver, by IPv6.
struct OverIpv6;

impl How for OverIpv6 {
    const ATTACHMENT: Attachment = Driver::ATTACHMENT;
    const WAY: Way = Way::V6;
}

/// In generic mode, by IPv6, where the system takes copies over from the program that makes them.
struct GenericOverIpv6;

impl How for GenericOverIpv6 {
    const ATTACHMENT: Attachment = Generic::ATTACHMENT;
    const WAY: Way = Way::V6;
}

/// In the driver, beside a group that is at work all the time.
struct Beside;

impl How for Beside {
    const ATTACHMENT: Attachment = Driver::ATTACHMENT;
    const HAS_NEIGHBOUR: bool = true;
}

/// Where all planes hear.
const ALL: Ipv4Addr = Ipv4Addr::new(239, 77, 0, 1);

/// In the driver, where the network copies what the leader sends; one of the planes has not been told.
struct Multicast;

impl How for Multicast {
    const ATTACHMENT: Attachment = Attachment {
        multicast: Some(ALL),
        ..Driver::ATTACHMENT
    };
    const DEAF: Option<usize> = Some(2);
}

/// Planes in the kernel.
struct Kernel<H> {
    planes: Vec<XdpPlane>,
    /// What stands for the second slot where the first one sends.
    between: Vec<(usize, usize, UdpSocket)>,
    outside: UdpSocket,
    /// What the leader, which has the first slot, sends to all.
    all: Option<UdpSocket>,
    /// What has come there.
    to_all: HashSet<Vec<u8>>,
    /// What has come to the test and was not asked for yet.
    frames: Vec<Frame>,
    answers: VecDeque<Vec<u8>>,
    /// Datagrams sent to each plane.
    sent: Vec<u64>,
    /// Datagrams that have come from all planes.
    come: u64,
    /// Ends before the namespaces do.
    _neighbour: Option<Busy>,
    namespaces: Arc<Namespaces>,
    _how: PhantomData<H>,
}

/// Longest time that packets may be on their way between two namespaces of this machine.
const ON_THE_WAY_MAX: Duration = Duration::from_secs(5);

impl<H: How> Kernel<H> {
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
        let to_all = self.to_all.contains(bytes);
        let own = H::WAY.plane_ip(slot);
        let to = if to_all { ALL.into() } else { own };
        send_once(from, bytes, (to, PORT));
        if to_all && H::DEAF == Some(slot) {
            return;
        }
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
            while let Some(bytes) = self.all.as_ref().and_then(next_datagram) {
                self.come += 1;
                for to in 1..self.planes.len() {
                    let bytes = bytes.clone();
                    self.frames.push(Frame { from: 0, to, bytes });
                }
                self.to_all.insert(bytes);
            }
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

impl<H: How> Fabric for Kernel<H> {
    fn new(wanted: PlaneSpec) -> Self {
        let options = Options {
            group: GROUP,
            ring_slots: wanted.ring_slots,
            window: wanted.window,
        };
        let namespaces = Arc::new(Namespaces::joined(wanted.replicas, H::WAY));
        let is_tagged = H::ATTACHMENT.vlan != 0;
        // First, so that the planes find a driver that can do all.
        for slot in 0..wanted.replicas {
            if is_tagged {
                let number = H::ATTACHMENT.vlan;
                tagged::put_vlan_between(&namespaces, slot, number);
            }
            let_pass(&port(slot)).expect("root, and a kernel for it");
        }
        let mut planes = Vec::new();
        let mut neighbour = None;
        for slot in 0..wanted.replicas {
            namespaces.enter_plane(slot);
            let address = SocketAddr::new(H::WAY.plane_ip(slot), PORT);
            let mut how = H::ATTACHMENT;
            how.multicast = how.multicast.filter(|_| H::DEAF != Some(slot));
            let plane = if slot == 0 && H::HAS_NEIGHBOUR {
                let ring_slots = wanted.ring_slots;
                let opened = XdpInterface::open(address.ip(), None, 2, ring_slots, how);
                let opened = opened.expect("root, and a kernel for it");
                let plane = opened.plane(address, options);
                neighbour = Some(Busy::beside(&namespaces, &opened, 1));
                plane
            } else {
                let carrier = is_tagged.then_some(tagged::LOWER);
                XdpPlane::attach(address, carrier, options, how)
            };
            planes.push(plane.expect("root, and a kernel for it"));
        }
        namespaces.enter_test();
        let all = H::ATTACHMENT.multicast.map(|group| {
            let all = socket(group);
            let joined = all.join_multicast_v4(&group, &test_ip(0, OUTSIDE));
            joined.expect("a device of the test");
            all
        });
        let slots = 0..wanted.replicas;
        let pairs = slots
            .clone()
            .flat_map(|from| slots.clone().map(move |to| (from, to)));
        Self {
            planes,
            between: pairs
                .map(|(from, to)| {
                    let ip = H::WAY.test_ip(from, to);
                    let socket = socket(ip);
                    if let IpAddr::V4(ip) = ip {
                        set_ip_multicast_if(&socket, &ip).expect("an address of the test");
                    }
                    (from, to, socket)
                })
                .collect(),
            outside: socket(H::WAY.test_ip(0, OUTSIDE)),
            all,
            to_all: HashSet::new(),
            frames: Vec::new(),
            answers: VecDeque::new(),
            sent: vec![0; wanted.replicas],
            come: 0,
            _neighbour: neighbour,
            namespaces,
            _how: PhantomData,
        }
    }

    fn plane(&mut self, slot: usize) -> &mut dyn DataPlane {
        &mut self.planes[slot]
    }

    fn address(&self, viewer: usize, slot: usize) -> SocketAddr {
        SocketAddr::new(H::WAY.test_ip(viewer, slot), PORT)
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

mod driver {
    use super::*;
    conformance!(Kernel<Driver>);
}

mod clones {
    use super::*;
    conformance!(Kernel<Clones>);
}

mod multicast {
    use super::*;
    conformance! { Kernel<Multicast>:
        common_case: commands_reach_all_in_order_and_are_committed;
        faults: nothing_is_lost_by_loss_repetition_and_reordering, a_gap_is_filled;
        clients: a_follower_sends_requests_on;
    }
}

mod beside {
    use super::*;
    // A neighbour that never rests leaves little of a small machine to the others: not all of the suite.
    conformance! { Kernel<Beside>:
        faults: a_gap_is_filled;
        fence: what_the_ring_holds_is_handed_over_after_the_fence;
        clients: blind_writes_are_answered_at_commit;
    }
}

mod generic {
    use super::*;
    conformance!(Kernel<Generic>);
}

/// The receiving sockets check what IPv6 demands: a kernel drops what has a wrong checksum.
mod over_ipv6 {
    use super::*;
    conformance!(Kernel<OverIpv6>);
}

mod generic_over_ipv6 {
    use super::*;
    conformance! { Kernel<GenericOverIpv6>:
        common_case: every_kind_and_size_goes_through;
        faults: the_last_entry_is_sent_again_whatever_its_size;
        clients: blind_writes_are_answered_at_commit, a_follower_sends_requests_on;
    }
}
