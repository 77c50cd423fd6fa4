//! The fence of a leader while requests pour in on another processor as a driver hands them over: nothing
//! leaves after it, no copy is under way, and what left before is in the registers. Clones:
//! `hammered_copies.rs`. Needs root.
use crate::hammered::{Target, side_by_side, wait_for_packets};
use crate::loaded::Loaded;
use crate::twin::frame_of;
use crate::veth::{Namespaces, OUTSIDE, PORT, peers_at, plane_ip, port, socket, test_ip};
use crate::{Driver, How};
use quorumwire_conformance_tests::cluster::{GROUP, keys};
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::Options;
use quorumwire_interfaces::{DataPlane, Grant, Index, PlaneEvent, Term};
use quorumwire_plane_xdp::{XdpPlane, let_pass};
use quorumwire_wire::packet::{FLAG_BLIND, Header, Kind, PAYLOAD_BYTES_MAX};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// On a busy machine fewer rounds must do, each of which waits for the other thread: after this long, so
/// many.
const ROUNDS_FOR: Duration = Duration::from_secs(8);
const ROUNDS_MIN: u64 = 50;

/// What a leader is hammered with.
struct Requests {
    bytes: usize,
    /// So many come in at once.
    burst: u32,
    /// So many of them are acknowledged after the next.
    acknowledged: u64,
    /// Times that the leader is engaged and disengaged.
    rounds: u64,
    /// But no longer than this, if it is enough.
    rounds_for: Duration,
}

/// Sends requests in bursts, as a driver hands them over, and acknowledges some of what they became.
fn hammer_leader(target: &Target, loaded: &Loaded, requests: &Requests) {
    let to = (plane_ip(0), PORT).into();
    let frame =
        |stands_for, datagram: &[u8]| frame_of((test_ip(0, stands_for), PORT).into(), to, datagram);
    let request = Header {
        flags: FLAG_BLIND,
        term: 0,
        previous_term: 0,
        ..header(Kind::Request, 255, 0)
    };
    let request = signed(&request, &vec![7; requests.bytes], keys().clients.key);
    let request = frame(OUTSIDE, &request);
    while !target.over.load(Ordering::Acquire) {
        loaded.receive(&request, requests.burst);
        let index = target
            .next
            .fetch_add(requests.acknowledged, Ordering::AcqRel);
        let acknowledged = Header {
            term: target.term.load(Ordering::Acquire),
            previous_term: 0,
            ..header(Kind::AppendOk, 1, index)
        };
        let acknowledged = signed(&acknowledged, &[], keys().cluster.key);
        loaded.receive(&frame(1, &acknowledged), 1);
        target.sent.fetch_add(1, Ordering::AcqRel);
    }
}

/// What many packets at once bring leaves at their end, long after the steps.
#[test]
fn a_leaders_copies_left_before_the_fence_or_not_at_all() {
    copies_left_before(300, ROUNDS_FOR);
}

/// So many fences, within this time if they can be.
pub fn copies_left_before(rounds: u64, rounds_for: Duration) {
    a_leader_is_silent_after_the_fence(&Requests {
        bytes: 8,
        burst: 60,
        acknowledged: 50,
        rounds,
        rounds_for,
    });
}

/// The longest packets, one by one: the most that a step leaves to be done.
#[test]
fn a_leaders_steps_are_over_before_the_fence() {
    steps_are_over_before(1_500, ROUNDS_FOR);
}

/// So many fences, within this time if they can be.
pub fn steps_are_over_before(rounds: u64, rounds_for: Duration) {
    a_leader_is_silent_after_the_fence(&Requests {
        bytes: PAYLOAD_BYTES_MAX,
        burst: 1,
        acknowledged: 1,
        rounds,
        rounds_for,
    });
}

fn a_leader_is_silent_after_the_fence(requests: &Requests) {
    let namespaces = Namespaces::new(1);
    // First, so that the plane finds a driver that can do all.
    let_pass(&port(0)).expect("root, and a kernel for it");
    let sockets = [1, 2, OUTSIDE].map(|stands_for| socket(test_ip(0, stands_for)));
    namespaces.enter_plane(0);
    let options = Options {
        group: GROUP,
        ring_slots: 1024,
        window: 1024,
    };
    let address = (plane_ip(0), PORT).into();
    let plane = XdpPlane::attach(address, None, options, Driver::ATTACHMENT);
    let mut plane = plane.expect("root, and a kernel for it");
    let [loaded, hammered] = [(); 2].map(|()| Loaded::at("eth0", options.ring_slots));
    plane.set_keys(&keys());
    let target = Target {
        term: AtomicU64::new(0),
        next: AtomicU64::new(0),
        sent: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    let (target, namespaces) = (&target, &namespaces);
    let hammers = move || {
        namespaces.enter_plane(0);
        hammer_leader(target, &hammered, requests);
    };
    let (appends, answers) = side_by_side(&target.over, hammers, || {
        leader_rounds(&mut plane, &loaded, target, &sockets, requests)
    });
    println!(
        "{appends} entries sent, {answers} answers, {} slow fences",
        plane.slow_fences()
    );
    // Without these the rounds would show nothing.
    let rounds = ROUNDS_MIN.min(requests.rounds);
    assert!(appends > rounds && answers > rounds / 10);
}

/// Takes entries that are there; how many.
fn entries(plane: &mut XdpPlane) -> u64 {
    let mut taken = 0;
    plane.poll(256, &mut |event: PlaneEvent<'_>| {
        taken += u64::from(matches!(event, PlaneEvent::Entry(_)));
    });
    taken
}

/// All rounds; how many entries and answers came.
fn leader_rounds(
    plane: &mut XdpPlane,
    loaded: &Loaded,
    target: &Target,
    sockets: &[UdpSocket],
    requests: &Requests,
) -> (u64, u64) {
    let begun = Instant::now();
    let mut last = Index(10);
    let (mut appends, mut answers) = (0, 0);
    // By term: the last and the commit index that the registers said after the fence.
    let mut said = vec![(0, 0); 2];
    for round in 0..requests.rounds {
        if round >= ROUNDS_MIN && begun.elapsed() > requests.rounds_for {
            println!("{round} rounds: the machine is busy");
            break;
        }
        let term = Term(round + 2);
        let grant = Grant {
            group: GROUP,
            term,
            last_index: last,
            last_term: Term(term.0 - 1),
            commit_index: last,
            me: 0,
            leader: 0,
            peers: peers_at(&[99, 1, 2].map(|stands_for| test_ip(0, stands_for))),
            quorum: 2,
            held: false,
        };
        target.term.store(term.0, Ordering::Release);
        plane.engage(&grant).expect("a sound grant");
        target.next.store(last.0, Ordering::Release);
        wait_for_packets(target, begun);
        // What it has taken, the fence need not look at: it is over the sooner.
        let mut taken = entries(plane);
        let registers = plane.disengage();
        let (sent, under_way) = (loaded.sent(), loaded.copies_under_way());
        // What follows a fence looks at all entries that there are.
        while let more @ 1.. = entries(plane) {
            taken += more;
        }
        assert_eq!(
            grant.last_index.0 + taken,
            registers.last_index.0,
            "round {round}: an entry was on its way after the fence"
        );
        assert!(
            under_way <= 0,
            "round {round}: copies were under way after the fence"
        );
        wait_for_packets(target, begun);
        assert_eq!(
            loaded.sent(),
            sent,
            "round {round}: it spoke after the fence"
        );
        assert_eq!(
            plane.registers(),
            registers,
            "round {round}: it moved after the fence"
        );
        said.push((registers.last_index.0, registers.commit_index.0));
        last = registers.last_index;
        for bytes in sockets
            .iter()
            .flat_map(|socket| std::iter::from_fn(|| next_datagram(socket)))
        {
            let header = Header::decode(bytes.first_chunk().expect("a header"));
            let (last, committed) = said[usize::try_from(header.term).expect("a small number")];
            assert!(
                header.commit_index <= committed,
                "{header:?} of {committed}"
            );
            match Kind::from_byte(header.kind) {
                Some(Kind::Append) => {
                    assert!(header.index <= last, "{header:?} of {last}");
                    appends += 1;
                }
                Some(Kind::Answer) => {
                    assert!(header.index <= committed, "{header:?} of {committed}");
                    answers += 1;
                }
                other => panic!("{other:?} from a leader"),
            }
        }
    }
    (appends, answers)
}
