//! What is the socket plane's own: addresses of both kinds, datagrams that are too long or cannot go out,
//! and the budget of a poll. That it is a data plane, `tests/conformance` shows.
use quorumwire_fastpath::{ClientPackets, Options, Request};
use quorumwire_interfaces::{
    Command, DataPlane, Endpoint, EntryKind, Grant, GroupId, Index, PlaneEvent, PlaneKeyPair,
    PlaneKeys, PlanePeer, ReplicaId, Term,
};
use quorumwire_plane_socket::{DATAGRAM_BYTES_MAX, SocketPlane, endpoint_at};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

const OPTIONS: Options = Options {
    group: GroupId(1),
    ring_slots: 128,
    window: 128,
};

fn keys() -> PlaneKeys {
    let pair = PlaneKeyPair {
        epoch: 3,
        key: [9; 16],
        other: None,
    };
    PlaneKeys {
        cluster: pair,
        clients: pair,
    }
}

fn bound(address: &str) -> SocketPlane {
    let address = address.parse().expect("an address");
    let mut plane = SocketPlane::bind(address, OPTIONS).expect("a free port");
    plane.set_keys(&keys());
    plane
}

fn grant(me: u8, addresses: &[SocketAddr]) -> Grant {
    let replicas = u8::try_from(addresses.len()).expect("few");
    Grant {
        group: GroupId(1),
        term: Term(2),
        last_index: Index(0),
        last_term: Term(0),
        commit_index: Index(0),
        me,
        leader: 0,
        peers: (0..replicas)
            .zip(addresses)
            .map(|(slot, address)| PlanePeer {
                id: ReplicaId(slot.into()),
                endpoint: Some(endpoint_at(*address)),
            })
            .collect(),
        quorum: replicas / 2 + 1,
        held: false,
    }
}

fn submit(plane: &mut SocketPlane, payload: &[u8]) {
    let command = Command {
        kind: EntryKind::Command,
        session: 0,
        sequence: 0,
        payload,
    };
    plane.submit(&[command]).expect("room");
}

/// All events of one poll, as text.
fn poll(plane: &mut SocketPlane, budget: usize) -> Vec<String> {
    let mut events = Vec::new();
    let count = plane.poll(budget, &mut |event| events.push(format!("{event:?}")));
    assert_eq!(count, events.len());
    events
}

#[test]
fn a_socket_of_ipv6_speaks_with_both_kinds() {
    let mut planes = [bound("[::]:0"), bound("127.0.0.1:0"), bound("[::1]:0")];
    let port = planes[0].local_address().unwrap().port();
    let leader_by_4 = SocketAddr::from(([127, 0, 0, 1], port));
    let leader_by_6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
    let others = [1, 2].map(|slot: usize| planes[slot].local_address().unwrap());
    let seen_by = |leader| [leader, others[0], others[1]];
    planes[2].engage(&grant(2, &seen_by(leader_by_6))).unwrap();
    planes[1].engage(&grant(1, &seen_by(leader_by_4))).unwrap();
    planes[0].engage(&grant(0, &seen_by(leader_by_6))).unwrap();
    submit(&mut planes[0], b"x");
    poll(&mut planes[1], 8);
    poll(&mut planes[2], 8);
    poll(&mut planes[0], 8);
    assert_eq!(planes[0].registers().match_index[..3], [Index(1); 3]);
    // Who asked over IPv4 is answered over IPv4.
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let request = Request {
        group: GroupId(1),
        session: 1,
        sequence: 1,
        blind: false,
        payload: b"y",
    };
    let request = ClientPackets::new(&keys()).request(&request).unwrap();
    client.send_to(&request, leader_by_4).unwrap();
    let mut requester = None;
    planes[0].poll(8, &mut |event| {
        if let PlaneEvent::Entry(entry) = event {
            requester = entry.requester.or(requester);
        }
    });
    assert_eq!(requester, client.local_addr().ok());
}

#[test]
fn what_is_too_long_is_dropped_and_counted() {
    let mut plane = bound("127.0.0.1:0");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = plane.local_address().unwrap();
    for bytes in [DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MAX + 1, 9000] {
        client.send_to(&vec![b'x'; bytes], to).unwrap();
    }
    assert_eq!(poll(&mut plane, 8).len(), 1, "the one that fits");
    let counters = plane.socket_counters();
    assert_eq!((counters.received, counters.cut), (1, 2));
}

#[test]
fn what_cannot_be_sent_is_lost_and_the_rest_is_not() {
    // A socket of IPv4 cannot reach an address of IPv6, and nobody listens at port 0.
    let mut planes = [bound("127.0.0.1:0"), bound("127.0.0.1:0")];
    let addresses = [
        planes[0].local_address().unwrap(),
        "[::1]:9".parse().unwrap(),
        "127.0.0.1:0".parse().unwrap(),
        planes[1].local_address().unwrap(),
    ];
    planes[0].engage(&grant(0, &addresses)).unwrap();
    planes[1].engage(&grant(3, &addresses)).unwrap();
    for _ in 0..20 {
        submit(&mut planes[0], b"x");
    }
    let counters = *planes[0].socket_counters();
    assert_eq!((counters.sent, counters.lost_error), (20, 40));
    poll(&mut planes[1], 100);
    assert_eq!(planes[1].registers().last_index, Index(20));
}

#[test]
fn a_poll_takes_no_more_than_its_budget_and_says_so() {
    let mut plane = bound("127.0.0.1:0");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = plane.local_address().unwrap();
    assert!(plane.as_fd().as_raw_fd() >= 0);
    for number in 0..100_u8 {
        client.send_to(&[number], to).unwrap();
    }
    assert_eq!(poll(&mut plane, 0).len(), 0);
    assert_eq!(poll(&mut plane, 5).len(), 5);
    assert_eq!(plane.poll_again_within(), Some(Duration::ZERO));
    assert_eq!(poll(&mut plane, 64).len(), 64);
    let rest = poll(&mut plane, 64);
    assert_eq!(rest.len(), 31);
    assert!(rest[30].contains("99"), "{}", rest[30]);
    assert_eq!(plane.poll_again_within(), None);
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let options = Options {
        window: 129,
        ..OPTIONS
    };
    let refused = SocketPlane::bind("127.0.0.1:0".parse().unwrap(), options);
    let text = refused.err().expect("refused").to_string();
    assert!(text.contains("window"), "{text}");
}

/// Else a leader would count on a plane that it cannot send to.
#[test]
fn a_plane_of_another_kind_cannot_be_reached() {
    let plane = bound("127.0.0.1:0");
    let nowhere: SocketAddr = "192.0.2.1:7".parse().unwrap();
    assert!(plane.can_reach(&endpoint_at(nowhere)));
    assert!(!plane.can_reach(&Endpoint::new("rkey 17 at 0x7f00").unwrap()));
}
