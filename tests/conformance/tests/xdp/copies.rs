//! How one frame becomes several: the trial of the kernel's broadcast, what is done where it does not do,
//! orders for copies that somebody forged, and a network that copies.
use crate::ethernet::Ethernet;
use crate::veth::{
    Namespaces, OUTSIDE, PORT, counted, ip, peers_at, plane_ip, port, send_once, socket, test_ip,
};
use quorumwire_conformance_tests::cluster::{GROUP, keys};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::{ClientPackets, Options, Request};
use quorumwire_interfaces::{DataPlane, Grant, Term};
use quorumwire_plane_xdp::{
    Attachment, Blames, XdpCopies, XdpLock, XdpMode, XdpPlane, let_pass, stop_passing,
};
use quorumwire_wire::packet::{Header, Kind};
use rustix::net::sockopt::set_ip_multicast_if;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Longest that anything here may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
const OPTIONS: Options = Options {
    group: GROUP,
    ring_slots: 64,
    window: 64,
};

/// A plane that leads two followers, whose parts the test plays, and a client.
pub struct Leader {
    pub plane: XdpPlane,
    pub followers: [UdpSocket; 2],
    pub client: UdpSocket,
    pub term: u64,
    requests: u64,
    pub namespaces: Namespaces,
}

impl Leader {
    /// Not engaged. `passing`: the other end of its veth pair has a program from the start.
    pub fn new(how: Attachment, passing: bool) -> Self {
        let namespaces = Namespaces::new(3);
        if passing {
            let_pass(&port(0)).expect("root, and a kernel for it");
        }
        namespaces.enter_plane(0);
        let address = SocketAddr::new(plane_ip(0).into(), PORT);
        let mut plane = XdpPlane::attach(address, None, OPTIONS, how).expect("root");
        namespaces.enter_test();
        plane.set_keys(&keys());
        Self {
            plane,
            followers: [1, 2].map(|slot| socket(test_ip(0, slot))),
            client: socket(test_ip(0, OUTSIDE)),
            term: 1,
            requests: 0,
            namespaces,
        }
    }

    /// Leads in a new term.
    pub fn engage(&mut self) {
        let registers = self.plane.disengage();
        while self.plane.poll(64, &mut |_| ()) > 0 {}
        self.term += 1;
        let peers = [plane_ip(0), test_ip(0, 1), test_ip(0, 2)];
        let grant = Grant {
            group: GROUP,
            term: Term(self.term),
            last_index: registers.last_index,
            last_term: Term(self.term - 1),
            commit_index: registers.last_index,
            me: 0,
            leader: 0,
            peers: peers_at(&peers),
            quorum: 2,
            held: false,
        };
        self.plane.engage(&grant).expect("a sound grant");
    }

    /// Waits until the broadcast was tried so often.
    fn wait_for_trials(&self, count: u64) {
        let begun = Instant::now();
        while counted(&self.plane, "copy_trials") < count {
            assert!(begun.elapsed() < PATIENCE, "nobody tries");
            std::thread::yield_now();
        }
    }

    /// A client's request comes in.
    fn request(&mut self) {
        self.requests += 1;
        let bytes = request(self.requests, b"set");
        send_once(&self.client, &bytes, (plane_ip(0), PORT));
    }

    /// What has come to a follower next.
    fn next(&self, follower: usize) -> Header {
        let begun = Instant::now();
        loop {
            if let Some(bytes) = next_datagram(&self.followers[follower]) {
                return Header::decode(bytes.first_chunk().expect("a header"));
            }
            assert!(begun.elapsed() < PATIENCE, "nothing came");
            std::thread::yield_now();
        }
    }

    /// Each follower gets the APPEND of the entry that is next, and nothing else; how many copies were made
    /// by clones.
    fn replicates(&mut self) -> u64 {
        let cloned = counted(&self.plane, "copies_cloned");
        let next = self.plane.registers().last_index.0 + 1;
        self.request();
        for follower in 0..2 {
            let append = self.next(follower);
            assert_eq!(Kind::from_byte(append.kind), Some(Kind::Append));
            assert_eq!((append.index, append.term), (next, self.term));
            assert!(next_datagram(&self.followers[follower]).is_none());
        }
        counted(&self.plane, "copies_cloned") - cloned
    }
}

/// A blind write of a client.
pub fn request(sequence: u64, payload: &[u8]) -> Vec<u8> {
    let request = Request {
        group: GROUP,
        session: 99,
        sequence,
        blind: true,
        payload,
    };
    ClientPackets::new(&keys())
        .request(&request)
        .expect("a small one")
}

pub const DRIVER: Attachment = Attachment {
    mode: XdpMode::Driver,
    copies: XdpCopies::Auto,
    multicast: None,
    vlan: 0,
    lock: XdpLock::Fit,
};

#[test]
fn the_drivers_broadcast_is_tried_and_used() {
    let mut leader = Leader::new(DRIVER, true);
    assert_eq!(counted(&leader.plane, "copy_trials"), 1);
    leader.engage();
    leader.wait_for_trials(2);
    assert_eq!(counted(&leader.plane, "copy_trials_failed"), 0);
    assert_eq!(leader.replicates(), 0);
    // The trials' own frames went nowhere.
    assert_eq!(counted(&leader.plane, "sent"), 2);
}

/// A veth device whose other end has no program takes no frames that are redirected to it.
#[test]
fn where_the_broadcast_does_not_do_clones_are_made_until_it_does() {
    let mut leader = Leader::new(DRIVER, false);
    assert_eq!(counted(&leader.plane, "copy_trials_failed"), 1);
    leader.engage();
    assert_eq!(leader.replicates(), 2);
    leader.wait_for_trials(2);
    assert_eq!(counted(&leader.plane, "copy_trials_failed"), 2);
    assert_eq!(leader.replicates(), 2);
    let_pass(&port(0)).expect("root");
    leader.engage();
    leader.wait_for_trials(3);
    assert_eq!(counted(&leader.plane, "copy_trials_failed"), 2);
    assert_eq!(leader.replicates(), 0);
    // It ends in the middle of a term: the next heartbeat finds that copies were lost.
    leader.plane.heartbeat(1).expect("it leads");
    stop_passing(&port(0)).expect("root");
    leader.request();
    let begun = Instant::now();
    while leader.plane.registers().last_index.0 < 4 {
        assert!(begun.elapsed() < PATIENCE, "the request did not come");
        std::thread::yield_now();
    }
    leader.plane.heartbeat(2).expect("it leads");
    leader.wait_for_trials(4);
    assert_eq!(counted(&leader.plane, "copy_trials_failed"), 3);
    let cloned = counted(&leader.plane, "copies_cloned");
    leader.request();
    while counted(&leader.plane, "copies_cloned") < cloned + 2 {
        assert!(begun.elapsed() < PATIENCE, "nothing is cloned");
        std::thread::yield_now();
    }
}

#[test]
pub fn nobody_else_can_order_copies() {
    const EXPERIMENTAL: u16 = 0x88b5;
    let clones = Attachment {
        copies: XdpCopies::Clone,
        ..DRIVER
    };
    let mut leader = Leader::new(clones, true);
    leader.engage();
    assert_eq!(leader.replicates(), 2);
    let sent = counted(&leader.plane, "sent");
    leader.namespaces.enter_plane(0);
    let inside = Ethernet::open("eth0", EXPERIMENTAL).expect("root");
    leader.namespaces.enter_test();
    let outside = Ethernet::open(&port(0), EXPERIMENTAL).expect("root");
    // Number, kind, group, IPv4, peer, own slot, replicas, processor: an order to send it to all.
    let mut forged = vec![1, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0];
    forged.extend_from_slice(&EXPERIMENTAL.to_be_bytes());
    // The proof's magic, and what is no secret.
    forged.extend_from_slice(&[0xff, 0x51, 0x77, 0x43]);
    forged.extend_from_slice(&[0; 200]);
    for count in 1..=3 {
        outside.send(&forged).expect("a veth pair");
        let begun = Instant::now();
        let passed = loop {
            if let Some(passed) = inside.next() {
                break passed;
            }
            assert!(begun.elapsed() < PATIENCE, "it did not pass");
            std::thread::yield_now();
        };
        assert_eq!(passed, forged, "it was changed");
        assert_eq!(counted(&leader.plane, "copy_orders_forged"), count);
    }
    assert_eq!(counted(&leader.plane, "sent"), sent);
    // What has no mark of an order is nobody's business.
    forged[14] = 0x45;
    outside.send(&forged).expect("a veth pair");
    assert_eq!(leader.replicates(), 2);
    assert_eq!(counted(&leader.plane, "copy_orders_forged"), 3);
}

/// What the kernel's broadcast does there is another thing than what it does in the driver, which a trial
/// shows.
#[test]
fn generic_mode_does_not_rely_on_the_drivers_broadcast() {
    let how = Attachment {
        mode: XdpMode::Generic,
        ..DRIVER
    };
    let mut leader = Leader::new(how, true);
    leader.engage();
    assert_eq!(counted(&leader.plane, "copy_trials"), 0);
    assert_eq!(leader.replicates(), 2);
}

/// A bridge's driver has no place for a program.
#[test]
fn generic_mode_is_for_drivers_without_a_place_for_a_program() {
    let namespaces = Namespaces::new(1);
    namespaces.enter_plane(0);
    let bridge = "link add br0 type bridge\naddr add 10.78.0.1/24 dev br0\nlink set br0 up\n";
    ip(&["-batch", "-"], bridge);
    let address = SocketAddr::from(([10, 78, 0, 1], PORT));
    let error = XdpPlane::attach(address, None, OPTIONS, DRIVER).err();
    let error = error.expect("there is no place");
    assert_eq!(error.blames, Blames::Mode, "{error}");
    for part in ["no native XDP", "`generic`"] {
        assert!(error.text.contains(part), "{part:?} in {error}");
    }
    let plane = XdpPlane::attach(address, None, OPTIONS, Attachment::default());
    let plane = plane.expect("root, and a kernel for it");
    let described = plane.described();
    assert!(
        described.starts_with("in generic mode at br0, because"),
        "{described}"
    );
    let address = SocketAddr::new(plane_ip(0).into(), PORT);
    let plane = XdpPlane::attach(address, None, OPTIONS, Attachment::default());
    let plane = plane.expect("root, and a kernel for it");
    assert_eq!(plane.described(), "in the driver of eth0");
}

/// One frame leaves for all; the others' addresses are not even asked for.
#[test]
pub fn the_network_copies_what_goes_to_a_multicast_address() {
    let all = Ipv4Addr::new(239, 77, 0, 1);
    let how = Attachment {
        multicast: Some(all),
        ..DRIVER
    };
    let mut leader = Leader::new(how, true);
    let hears = socket(all);
    hears
        .join_multicast_v4(&all, &test_ip(0, OUTSIDE))
        .expect("a device of the test");
    leader.engage();
    leader.request();
    let begun = Instant::now();
    let append = loop {
        if let Some(bytes) = next_datagram(&hears) {
            break Header::decode(bytes.first_chunk().expect("a header"));
        }
        assert!(begun.elapsed() < PATIENCE, "nothing came");
        std::thread::yield_now();
    };
    assert_eq!(Kind::from_byte(append.kind), Some(Kind::Append));
    assert_eq!(counted(&leader.plane, "sent"), 1);
    for follower in &leader.followers {
        assert!(next_datagram(follower).is_none());
    }
    // The address is for what a leader sends: requests and answers to it are counted, and come to nothing.
    set_ip_multicast_if(&leader.client, &test_ip(0, OUTSIDE)).expect("a device of the test");
    let before = leader.plane.registers();
    leader
        .client
        .send_to(&request(2, b"set"), (all, PORT))
        .expect("a veth pair");
    while counted(&leader.plane, "dropped_not_for_group") == 0 {
        assert!(begun.elapsed() < PATIENCE, "nothing came");
        std::thread::yield_now();
    }
    assert_eq!(leader.plane.registers(), before);
}
