//! One leader's program, packet by packet: what it learns of Ethernet addresses, and that what it could not
//! send is counted. Needs root.
use crate::loaded::Loaded;
use crate::twin::frame_of;
use crate::veth::{
    Namespaces, OUTSIDE, PORT, counted, grant, peers_at, plane_ip, plane_mac, port, test_ip,
};
use crate::{Clones, Driver, How};
use quorumwire_conformance_tests::cluster::{GROUP, START, keys};
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::frames::{Envelope, framed};
use quorumwire_fastpath::{ClientPackets, Options, Request};
use quorumwire_interfaces::{Command, DataPlane, EntryKind};
use quorumwire_plane_xdp::{Attachment, XdpPlane, let_pass};
use quorumwire_wire::packet::Kind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Stands for a replica of which the system knows no Ethernet address.
const UNKNOWN: usize = 50;
/// Longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(10);

struct Leader {
    plane: XdpPlane,
    loaded: Loaded,
    namespaces: Namespaces,
}

impl Leader {
    /// Of three, of which the second is what this stands for.
    fn new(how: Attachment, second: usize) -> Self {
        let namespaces = Namespaces::new(1);
        // First, so that the plane finds a driver that can do all.
        let_pass(&port(0)).expect("root, and a kernel for it");
        namespaces.enter_plane(0);
        let options = Options {
            group: GROUP,
            ring_slots: 64,
            window: 64,
        };
        let plane = XdpPlane::attach((plane_ip(0), PORT).into(), None, options, how);
        let mut plane = plane.expect("root, and a kernel for it");
        plane.set_keys(&keys());
        let begins = grant(
            0,
            peers_at(&[plane_ip(0), test_ip(0, second), test_ip(0, 2)]),
            2,
        );
        plane.engage(&begins).expect("a sound grant");
        Self {
            plane,
            loaded: Loaded::at("eth0", options.ring_slots),
            namespaces,
        }
    }

    /// The second replica acknowledges, from an address and an Ethernet address.
    fn acknowledge(&mut self, index: u64, from: SocketAddr, from_mac: [u8; 6]) {
        let envelope = Envelope {
            from,
            to: (plane_ip(0), PORT).into(),
            from_mac,
            to_mac: plane_mac(0),
        };
        let said = signed(&header(Kind::AppendOk, 1, index), &[], keys().cluster.key);
        self.loaded.run(&framed(&envelope, &said));
    }
}

/// From a replica's own packets, if they are new: not from others that say its words, nor from old ones.
#[test]
pub fn ethernet_addresses_are_learnt_from_their_owners() {
    let mut leader = Leader::new(Driver::ATTACHMENT, UNKNOWN);
    let command = Command {
        kind: EntryKind::Command,
        session: 0,
        sequence: 0,
        payload: b"x",
    };
    leader.plane.submit(&[command; 8]).expect("room");
    let replica: SocketAddr = (test_ip(0, UNKNOWN), PORT).into();
    let [first, second] = [[2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]];
    assert_eq!(leader.loaded.peer_mac(1), [0; 6]);
    leader.acknowledge(START + 1, (test_ip(0, 2), PORT).into(), second);
    leader.acknowledge(START + 2, (replica.ip(), PORT + 1).into(), second);
    assert_eq!(leader.loaded.peer_mac(1), [0; 6], "another's address");
    leader.acknowledge(START + 3, replica, first);
    assert_eq!(leader.loaded.peer_mac(1), first);
    leader.acknowledge(START + 3, replica, second);
    leader.acknowledge(START + 1, replica, second);
    assert_eq!(leader.loaded.peer_mac(1), first, "it moved nothing");
    leader.acknowledge(START + 4, replica, second);
    assert_eq!(leader.loaded.peer_mac(1), second, "it has moved");
}

/// With the cable out the device takes no clones.
#[test]
pub fn what_could_not_be_sent_is_counted() {
    let leader = Leader::new(Clones::ATTACHMENT, 1);
    let request = Request {
        group: GROUP,
        session: 1,
        sequence: 1,
        blind: true,
        payload: b"x",
    };
    let request = ClientPackets::new(&keys())
        .request(&request)
        .expect("short");
    let client = (test_ip(0, OUTSIDE), PORT).into();
    let frame = frame_of(client, (plane_ip(0), PORT).into(), &request);
    leader.loaded.receive(&frame, 1);
    let begun = Instant::now();
    while counted(&leader.plane, "copies_cloned") < 2 {
        assert!(begun.elapsed() < PATIENCE, "nothing is cloned");
        std::thread::yield_now();
    }
    assert_eq!(counted(&leader.plane, "lost_unsent"), 0);
    leader
        .namespaces
        .ip_in_test(&format!("link set {} down\n", port(0)));
    while counted(&leader.plane, "lost_unsent") == 0 {
        assert!(begun.elapsed() < PATIENCE, "it is not counted");
        leader.loaded.receive(&frame, 1);
    }
}
