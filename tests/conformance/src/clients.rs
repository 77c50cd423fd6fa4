//! Clients that ask the plane itself.
use crate::cluster::{Cluster, Fate, GROUP, START, keys};
use crate::{Fabric, PlaneSpec};
use quorumwire_fastpath::{ClientPackets, PacketAnswer, Request};
use quorumwire_interfaces::{Answer, Index, Reason};
use quorumwire_wire::packet::{Kind, ORIGIN_BYTES};

fn request(sequence: u64, blind: bool, payload: &[u8]) -> Vec<u8> {
    let request = Request {
        group: GROUP,
        session: 99,
        sequence,
        blind,
        payload,
    };
    ClientPackets::new(&keys())
        .request(&request)
        .expect("not too long")
}

/// Session, number, index, why it was refused, payload.
type AnswerParts = (u64, u64, u64, Option<Reason>, Vec<u8>);

/// Everything that came to the outside.
fn answers<F: Fabric>(cluster: &mut Cluster<F>) -> Vec<AnswerParts> {
    let asking = ClientPackets::new(&keys());
    let mut all = Vec::new();
    while let Some(bytes) = cluster.fabric.receive_outside() {
        let PacketAnswer {
            session,
            sequence,
            index,
            refused,
            piece,
            payload,
        } = asking.answer(&bytes).expect("a signed answer");
        assert_eq!(piece, None, "nothing was asked in pieces");
        all.push((session, sequence, index, refused, payload.to_vec()));
    }
    all
}

/// The host gets the entry with who asked, and its answer reaches them.
pub fn a_request_is_answered_by_the_host<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    cluster
        .fabric
        .send_from_outside(0, &request(1, false, b"set"));
    cluster.settle();
    let entry = cluster.hosts[0].entries[0].clone();
    assert_eq!(
        (entry.session, entry.sequence, &entry.payload[..]),
        (99, 1, &b"set"[..])
    );
    let to = entry.requester.expect("somebody asked");
    assert_eq!(to, cluster.fabric.outside());
    assert_eq!(
        cluster.hosts[1].entries[0].requester, None,
        "followers answer nobody"
    );
    assert!(answers(&mut cluster).is_empty());
    let largest = vec![5; cluster.fabric.plane(0).limits().payload_bytes_max];
    for (refused, payload) in [
        (None, &b"STORED"[..]),
        (Some(Reason::AnswerTooLong), b"too large"),
        (Some(Reason::TooManyKeys), b""),
        (None, &largest),
    ] {
        cluster.fabric.plane(0).answer(&Answer {
            to,
            session: 99,
            sequence: 1,
            index: Index(entry.index),
            refused,
            fragment: false,
            payload,
        });
        let expected = (99, 1, entry.index, refused, payload.to_vec());
        assert_eq!(answers(&mut cluster), [expected]);
    }
}

/// Not before the commit, and then every one of them, however many became committed at once.
pub fn blind_writes_are_answered_at_commit<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    for sequence in 1..=5 {
        cluster
            .fabric
            .send_from_outside(0, &request(sequence, true, b"set"));
    }
    cluster.settle_with(&mut |frame| {
        if frame.to == 0 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    assert!(
        answers(&mut cluster).is_empty(),
        "answered before the commit"
    );
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    let expected: Vec<_> = (1..=5)
        .map(|sequence| (99, sequence, START + sequence, None, Vec::new()))
        .collect();
    assert_eq!(answers(&mut cluster), expected);
    assert!(
        cluster.hosts[0]
            .entries
            .iter()
            .all(|entry| entry.requester.is_none())
    );
    // Acknowledgements that come again answer nobody twice.
    cluster.fabric.plane(0).heartbeat(2).expect("it leads");
    cluster.settle();
    assert!(answers(&mut cluster).is_empty());
}

/// Alone, a leader commits at once, and answers at once.
pub fn one_replica_answers_blind_writes<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(1);
    for (sequence, payload) in [(1, &b"set"[..]), (2, b""), (3, &[7; 1000])] {
        cluster
            .fabric
            .send_from_outside(0, &request(sequence, true, payload));
        cluster.settle();
        let expected = (99, sequence, START + sequence, None, Vec::new());
        assert_eq!(answers(&mut cluster), [expected]);
    }
    assert_eq!(cluster.hosts[0].entries.len(), 3);
}

/// A client may ask any replica.
pub fn a_follower_sends_requests_on<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    let most = cluster.fabric.plane(0).limits().payload_bytes_max;
    cluster
        .fabric
        .send_from_outside(2, &request(1, true, b"set"));
    cluster
        .fabric
        .send_from_outside(1, &request(2, false, &vec![9; most - ORIGIN_BYTES]));
    cluster.settle();
    let found = answers(&mut cluster);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1, found[0].3), (1, None));
    let asked = cluster.hosts[0]
        .entries
        .iter()
        .find(|entry| entry.sequence == 2);
    let asked = asked.expect("it was stored");
    assert_eq!(asked.requester, Some(cluster.fabric.outside()));
    assert_eq!(asked.payload, vec![9; most - ORIGIN_BYTES]);
    let forwards = |kind| {
        cluster
            .sent
            .iter()
            .filter(move |frame| frame.header().kind == kind)
    };
    assert_eq!(forwards(Kind::Forward as u8).count(), 2);
    // Too large to be sent on with who asked: the follower's host does it.
    let large = vec![9; most - ORIGIN_BYTES + 1];
    cluster
        .fabric
        .send_from_outside(1, &request(3, false, &large));
    cluster.settle();
    let outside = cluster.fabric.outside();
    assert_eq!(cluster.hosts[1].requests, [(outside, 99, 3, large)]);
    assert_eq!(cluster.hosts[0].entries.len(), 2);
}

/// What speaks another protocol is the host's, engaged or not. The plane itself does not answer; its host
/// may.
pub fn foreign_datagrams_are_the_hosts<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(2);
    let set = b"\x00\x01\x00\x00\x00\x01\x00\x00set k 0 0 1\r\nx\r\n";
    cluster.fabric.send_from_outside(0, set);
    cluster.settle();
    let outside = cluster.fabric.outside();
    cluster.fabric.plane(0).send_foreign(outside, b"engaged");
    let said = cluster.fabric.receive_outside();
    assert_eq!(said.as_deref(), Some(&b"engaged"[..]));
    cluster.fabric.plane(0).disengage();
    cluster.fabric.send_from_outside(0, b"x");
    cluster.settle();
    assert_eq!(cluster.hosts[0].foreign, [&set[..], b"x"]);
    assert!(cluster.fabric.receive_outside().is_none());
    assert!(cluster.sent.is_empty());
    cluster.fabric.plane(0).send_foreign(outside, b"off");
    let said = cluster.fabric.receive_outside();
    assert_eq!(said.as_deref(), Some(&b"off"[..]));
}

/// A plane that is off takes no request, not before its first grant either; its host does.
pub fn requests_to_a_plane_that_is_off_are_the_hosts<F: Fabric>() {
    let mut idle = Cluster::<F>::idle(PlaneSpec {
        replicas: 1,
        ring_slots: 64,
        window: 64,
    });
    idle.fabric
        .send_from_outside(0, &request(1, true, b"too early"));
    idle.settle();
    let early = (idle.fabric.outside(), 99, 1, b"too early".to_vec());
    assert_eq!(idle.hosts[0].requests, [early]);
    drop(idle);
    let mut cluster = Cluster::<F>::engaged(2);
    cluster.fabric.plane(0).disengage();
    cluster
        .fabric
        .send_from_outside(0, &request(1, true, b"to the leader"));
    cluster
        .fabric
        .send_from_outside(1, &request(2, false, b"to the follower"));
    cluster.settle();
    let outside = cluster.fabric.outside();
    let expected = [
        (outside, 99, 1, b"to the leader".to_vec()),
        (outside, 99, 2, b"to the follower".to_vec()),
    ];
    assert_eq!(cluster.hosts[0].requests, expected);
    assert!(cluster.fabric.receive_outside().is_none());
    assert!(cluster.hosts[0].entries.is_empty());
}
