//! The fence while packets pour in on another processor: what left before it is in the registers, and nothing
//! leaves after it. Here a follower's.
use crate::veth::{
    Namespaces, PORT, counted, peers_at, plane_ip, port, send_once, socket, test_ip,
};
use quorumwire_conformance_tests::cluster::{GROUP, keys};
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::Options;
use quorumwire_interfaces::{DataPlane, Grant, Index, PlaneEvent, Term};
use quorumwire_plane_xdp::{Attachment, XdpInterface, XdpPlane, let_pass};
use quorumwire_wire::packet::{Header, Kind};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Times that the plane is engaged and disengaged.
const ROUNDS: u64 = 10_000;
/// Packets, or bursts of them, that come in before and after each fence, at least.
const PACKETS_AROUND: u64 = 4;
/// Longest that all of it may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// What the hammering thread sends: packets of this term, about entries from this index on.
pub struct Target {
    pub term: AtomicU64,
    pub next: AtomicU64,
    pub sent: AtomicU64,
    pub over: AtomicBool,
}

/// Sends entries of the running term, each index a few times, until it is over.
fn hammer(target: &Target, leader: &UdpSocket) {
    let to = (plane_ip(0), PORT);
    while !target.over.load(Ordering::Acquire) {
        let term = target.term.load(Ordering::Acquire);
        let index = target.next.fetch_add(1, Ordering::AcqRel);
        let append = Header {
            term,
            previous_term: term,
            ..header(Kind::Append, 1, index)
        };
        let bytes = signed(&append, b"hammered", keys().cluster.key);
        send_once(leader, &bytes, to);
        target.sent.fetch_add(1, Ordering::AcqRel);
    }
}

/// Keeps this thread on one of the processors, so that the two threads run side by side.
pub fn stay_on(number: usize) {
    static ALL: OnceLock<CpuSet> = OnceLock::new();
    // As before the first thread was kept: those that it starts, or what it runs next, begin with its own
    // only.
    let all = ALL.get_or_init(|| sched_getaffinity(None).expect("a thread"));
    let mut processors = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).cycle();
    let mut one = CpuSet::new();
    one.set(processors.nth(number).expect("at least one"));
    sched_setaffinity(None, &one).expect("one of ours");
}

/// Does one thing on another processor while this thread does its work, after which, whatever becomes of
/// that, it is `over`: then the other is to end.
pub fn side_by_side<T>(
    over: &AtomicBool,
    other: impl FnOnce() + Send,
    work: impl FnOnce() -> T,
) -> T {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(1);
            other();
        });
        stay_on(0);
        let ended = catch_unwind(AssertUnwindSafe(work));
        over.store(true, Ordering::Release);
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Waits until packets have been sent, enough to be around a fence.
pub fn wait_for_packets(target: &Target, begun: Instant) {
    wait_for_more(&target.sent, PACKETS_AROUND, begun + PATIENCE);
}

/// Waits until another thread has sent so many more.
pub fn wait_for_more(sent: &AtomicU64, count: u64, end: Instant) {
    let enough = sent.load(Ordering::Acquire) + count;
    while sent.load(Ordering::Acquire) < enough {
        assert!(Instant::now() < end, "nobody sends");
        std::thread::yield_now();
    }
}

#[test]
fn what_left_before_is_in_the_registers_and_nothing_leaves_after() {
    let namespaces = Namespaces::new(1);
    namespaces.enter_plane(0);
    let options = Options {
        group: GROUP,
        ring_slots: 1024,
        window: 1024,
    };
    let address = SocketAddr::new(plane_ip(0).into(), PORT);
    // In the second place, so that it is seen whose steps its fence waits for.
    let interface = XdpInterface::open(address.ip(), None, 2, 1024, Attachment::default());
    let interface = interface.expect("root, and a kernel for it");
    let plane_at = |port| {
        let plane = interface.plane((address.ip(), port).into(), options);
        plane.expect("there is a place")
    };
    let _first = plane_at(PORT + 1);
    let mut plane = plane_at(PORT);
    namespaces.enter_test();
    let_pass(&port(0)).expect("root, and a kernel for it");
    plane.set_keys(&keys());
    let leader = socket(test_ip(0, 0));
    let target = Target {
        term: AtomicU64::new(0),
        next: AtomicU64::new(u64::MAX / 2),
        sent: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    let hammers = || {
        namespaces.enter_test();
        hammer(&target, &leader);
    };
    let (stored, seen) = side_by_side(&target.over, hammers, || {
        rounds(&mut plane, &target, &leader)
    });
    // Without these the rounds would show nothing.
    assert!(stored > ROUNDS / 10, "{stored} entries in {ROUNDS} rounds");
    assert_eq!(
        seen,
        counted(&plane, "sent"),
        "frames that left and were not looked at"
    );
    println!(
        "{stored} entries, {seen} frames, {} slow fences",
        plane.slow_fences()
    );
}

/// All rounds; how many entries were stored, and how many frames came back.
fn rounds(plane: &mut XdpPlane, target: &Target, leader: &UdpSocket) -> (u64, u64) {
    let begun = Instant::now();
    let mut last = Index(10);
    let mut last_term = Term(1);
    // By term: what the registers said after the fence.
    let mut promised = vec![0_u64; 2];
    let mut seen = 0;
    for round in 0..ROUNDS {
        let term = Term(round + 2);
        let grant = Grant {
            group: GROUP,
            term,
            last_index: last,
            last_term,
            commit_index: last,
            me: 0,
            leader: 1,
            peers: peers_at(&[test_ip(0, 99), test_ip(0, 0)]),
            quorum: 2,
            held: false,
        };
        plane.engage(&grant).expect("a sound grant");
        first_entry(last, last_term, term, leader);
        target.next.store(last.0 + 2, Ordering::Release);
        target.term.store(term.0, Ordering::Release);
        wait_for_packets(target, begun);
        let registers = plane.disengage();
        let sent = counted(plane, "sent");
        wait_for_packets(target, begun);
        assert_eq!(
            counted(plane, "sent"),
            sent,
            "round {round}: it spoke after the fence"
        );
        assert_eq!(
            plane.registers(),
            registers,
            "round {round}: it moved after the fence"
        );
        promised.push(registers.persisted_index.0);
        plane.poll(256, &mut |event| {
            assert!(!matches!(event, PlaneEvent::Behind(_)));
        });
        last = registers.last_index;
        last_term = if last > grant.last_index {
            term
        } else {
            last_term
        };
        seen += check_promises(leader, &promised);
    }
    (last.0 - 10, seen)
}

/// The first entry of a term names the term before.
fn first_entry(last: Index, last_term: Term, term: Term, leader: &UdpSocket) {
    let append = Header {
        term: term.0,
        previous_term: last_term.0,
        ..header(Kind::Append, 1, last.0 + 1)
    };
    let bytes = signed(&append, b"first", keys().cluster.key);
    send_once(leader, &bytes, (plane_ip(0), PORT));
}

/// No frame that left says more than the registers of its term; how many there were.
fn check_promises(leader: &UdpSocket, promised: &[u64]) -> u64 {
    let mut seen = 0;
    while let Some(bytes) = next_datagram(leader) {
        let header = Header::decode(bytes.first_chunk().expect("a header"));
        let term = usize::try_from(header.term).expect("a small number");
        if Kind::from_byte(header.kind) == Some(Kind::AppendOk) {
            assert!(
                header.index <= promised[term],
                "term {term}: {} was promised, the registers said {}",
                header.index,
                promised[term]
            );
        }
        seen += 1;
    }
    seen
}
