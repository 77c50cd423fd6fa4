//! Two processors at once: each packet's step is one, and no entry leaves torn while another takes its place.
//! Needs root, and two processors.
use crate::hammered::{side_by_side, stay_on};
use crate::loaded::{Loaded, XDP_DROP};
use crate::twin::frame_of;
use crate::veth::{
    Namespaces, OUTSIDE, PORT, counted, grant, peers_at, plane_ip, port, socket, test_ip,
};
use crate::{Driver, How};
use quorumwire_conformance_tests::cluster::{GROUP, START, TERM, keys};
use quorumwire_conformance_tests::faults::Dice;
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::{ClientPackets, Options, REQUEST_BYTES_MAX, Request};
use quorumwire_interfaces::{DataPlane, Grant, Index, PlaneEvent, Term};
use quorumwire_plane_xdp::{Attachment, XdpLock, XdpPlane, let_pass};
use quorumwire_wire::packet::{HEADER_BYTES, Header, Kind};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Requests of each processor.
const REQUESTS: u64 = 8_000;
/// Longest that anything may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// So long entries are asked for while others take their places.
const ASKED_FOR: Duration = Duration::from_secs(2);

/// A leader of these, with a ring of so many slots, in its namespace, where this thread is from now on. What
/// the test's end gets comes to the socket.
fn leader(ring_slots: u32, peers: &[Ipv4Addr]) -> (XdpPlane, UdpSocket, Namespaces) {
    leader_with(XdpLock::Fit, ring_slots, peers)
}

fn leader_with(
    lock: XdpLock,
    ring_slots: u32,
    peers: &[Ipv4Addr],
) -> (XdpPlane, UdpSocket, Namespaces) {
    let namespaces = Namespaces::new(1);
    // First, so that the plane finds a driver that can do all.
    let_pass(&port(0)).expect("root, and a kernel for it");
    let follower = socket(test_ip(0, 1));
    namespaces.enter_plane(0);
    let options = Options {
        group: GROUP,
        ring_slots,
        window: ring_slots,
    };
    let address = (plane_ip(0), PORT).into();
    let plane = XdpPlane::attach(
        address,
        None,
        options,
        Attachment {
            lock,
            ..Driver::ATTACHMENT
        },
    );
    let mut plane = plane.expect("root, and a kernel for it");
    plane.set_keys(&keys());
    let begins = grant(0, peers_at(peers), u8::try_from(peers.len()).expect("few"));
    plane.engage(&begins).expect("a sound grant");
    (plane, follower, namespaces)
}

/// The frame of a packet from somebody.
fn from(stands_for: usize, packet: &[u8]) -> Vec<u8> {
    let from = (test_ip(0, stands_for), PORT).into();
    frame_of(from, (plane_ip(0), PORT).into(), packet)
}

fn request(session: u64, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let request = Request {
        group: GROUP,
        session,
        sequence,
        blind: false,
        payload,
    };
    let packet = ClientPackets::new(&keys()).request(&request);
    from(OUTSIDE, &packet.expect("short"))
}

#[test]
pub fn steps_on_two_processors_are_one_behind_the_other() {
    steps_are_one_behind_the_other(XdpLock::Fit);
}

#[test]
fn steps_under_the_kernels_lock_are_one_behind_the_other() {
    steps_are_one_behind_the_other(XdpLock::Kernels);
}

/// Each request of both has a place of its own in the log.
fn steps_are_one_behind_the_other(lock: XdpLock) {
    let ring_slots = 16_384;
    let (plane, _, _namespaces) = leader_with(lock, ring_slots, &[plane_ip(0)]);
    let mut both = [0_usize, 1].map(|number| (number, Loaded::at("eth0", ring_slots)));
    std::thread::scope(|scope| {
        for (number, loaded) in &mut both {
            scope.spawn(move || {
                let frames = (1..=REQUESTS).map(|place| request(*number as u64 + 1, place, b"x"));
                let frames: Vec<Vec<u8>> = frames.collect();
                stay_on(*number);
                for frame in &frames {
                    loaded.run(frame);
                }
            });
        }
    });
    let last = plane.registers().last_index.0;
    // One processor of a virtual machine may stand still for longer than the other waits for it.
    let busy = counted(&plane, "dropped_busy");
    assert!(busy < REQUESTS / 10, "{busy} found the group held");
    let taken = 2 * REQUESTS - busy;
    assert_eq!(last, START + taken, "each has its place");
    assert_eq!(plane.registers().commit_index.0, last);
    let slots = (START + 1..=last).map(|index| both[0].1.slot(index));
    let stored: BTreeSet<_> = slots
        .map(|slot| (slot.index, slot.session, slot.sequence))
        .collect();
    let commands: BTreeSet<_> = stored
        .iter()
        .map(|(_, session, sequence)| (*session, *sequence))
        .collect();
    assert_eq!(commands.len() as u64, taken, "each stands there");
    assert_eq!(stored.first().map(|first| first.0), Some(START + 1));
}

/// What finds the group held changes nothing: a packet is dropped and counted, an order of the host is
/// carried out when the group is free again.
#[test]
fn a_group_that_is_held_is_left_alone() {
    const PACKETS: u64 = 20;
    let (mut plane, _, _namespaces) = leader(16, &[plane_ip(0)]);
    let mut loaded = Loaded::at("eth0", 16);
    loaded.hold(true);
    let before = loaded.state();
    std::thread::scope(|scope| {
        let order = scope.spawn(|| plane.heartbeat(1));
        // Each waits for the lock, so that the order has time to be given more than once.
        for _ in 0..PACKETS {
            let (verdict, _) = loaded.run(&request(1, 1, b"x"));
            assert_eq!(verdict, XDP_DROP);
        }
        assert!(!order.is_finished(), "somebody else holds the group");
        assert!(loaded.is_in(&before));
        loaded.hold(false);
        let done = order.join().expect("it does not panic");
        done.expect("it is carried out");
    });
    assert_eq!(counted(&plane, "dropped_busy"), PACKETS);
    assert_eq!(loaded.registers().round, 1);
    loaded.run(&request(1, 1, b"x"));
    assert_eq!(plane.registers().last_index.0, START + 1);
}

/// Nothing is stored behind an entry that did not get into the ring, and the host learns of it.
#[test]
pub fn a_plane_whose_ring_has_a_hole_stops() {
    let (mut plane, _, _namespaces) = leader(16, &[plane_ip(0)]);
    let mut loaded = Loaded::at("eth0", 16);
    loaded.break_group();
    plane.poll(64, &mut |_| {});
    assert!(plane.fault().is_some_and(|text| text.contains("ring")));
    loaded.run(&request(1, 1, b"x"));
    assert_eq!(plane.registers().last_index.0, START, "nothing is stored");
    plane.disengage();
    plane
        .engage(&grant(0, peers_at(&[plane_ip(0)]), 1))
        .expect_err("it has failed");
}

#[test]
fn no_entry_leaves_torn() {
    no_entry_leaves_torn_within(ASKED_FOR);
}

/// Entries that the host takes while the program, on another processor, stores the next.
const TAKEN: u64 = 50_000;

/// One processor fills the ring, the host empties it: each entry that it takes is whole.
#[test]
fn no_entry_is_taken_torn() {
    none_is_taken_torn_of(TAKEN);
}

pub fn none_is_taken_torn_of(count: u64) {
    const RING_SLOTS: u32 = 64;
    let (mut plane, _, _namespaces) = leader(RING_SLOTS, &[plane_ip(0)]);
    let mut fills = Loaded::at("eth0", RING_SLOTS);
    let over = AtomicBool::new(false);
    let fill = || {
        let requests = requests();
        for frame in requests.iter().cycle() {
            if over.load(Ordering::Acquire) {
                break;
            }
            fills.run(frame);
        }
    };
    side_by_side(&over, fill, || {
        let (begun, mut taken) = (Instant::now(), 0);
        while taken < count {
            assert!(begun.elapsed() < PATIENCE, "nothing comes");
            plane.poll(64, &mut |event| {
                if let PlaneEvent::Entry(entry) = event {
                    let command = entry.command;
                    assert!(
                        is_whole(command.sequence, command.payload),
                        "torn: {entry:?}"
                    );
                    taken += 1;
                }
            });
            plane.release(Index(START + taken)).expect("it was taken");
        }
    });
}

/// Terms that each begin behind the same entry, as if software had cut the log back there.
const TERMS: u64 = 1_000;
/// Entries of each.
const EACH: u64 = 32;

/// What the ring still holds of a term that was cut back is no entry of the next, though it has the same
/// index.
#[test]
fn no_entry_of_an_earlier_term_is_taken() {
    none_is_taken_of_an_earlier_of(TERMS);
}

pub fn none_is_taken_of_an_earlier_of(terms: u64) {
    const RING_SLOTS: u32 = 64;
    let (mut plane, _, _namespaces) = leader(RING_SLOTS, &[plane_ip(0)]);
    let mut fills = Loaded::at("eth0", RING_SLOTS);
    let over = AtomicBool::new(false);
    let running = AtomicU64::new(0);
    let fill = || {
        let mut filled = 0;
        while !over.load(Ordering::Acquire) {
            let term = running.load(Ordering::Acquire);
            if term == filled {
                std::hint::spin_loop();
                continue;
            }
            filled = term;
            let frame = request(1, term, &payload(term % SEQUENCES));
            for _ in 0..EACH {
                fills.run(&frame);
            }
        }
    };
    side_by_side(&over, fill, || {
        for number in 1..=terms {
            running.store(number, Ordering::Release);
            let (begun, mut taken) = (Instant::now(), 0);
            while taken < EACH {
                assert!(begun.elapsed() < PATIENCE, "nothing comes");
                plane.poll(64, &mut |event| {
                    if let PlaneEvent::Entry(entry) = event {
                        assert_eq!(entry.command.sequence, number, "of another term");
                        taken += 1;
                    }
                });
            }
            plane.disengage();
            let again = Grant {
                term: Term(TERM.0 + number),
                ..grant(0, peers_at(&[plane_ip(0)]), 1)
            };
            plane.engage(&again).expect("a sound grant");
        }
    });
}

/// Looks at the registers that see something new, while the program, on another processor, changes them.
const NEWS: u64 = 3_000;

/// A leader alone stores and commits in one step: no look sees the one without the other.
#[test]
pub fn registers_are_never_seen_torn() {
    const RING_SLOTS: u32 = 16_384;
    let (mut plane, _, _namespaces) = leader(RING_SLOTS, &[plane_ip(0)]);
    let mut fills = Loaded::at("eth0", RING_SLOTS);
    let over = AtomicBool::new(false);
    let fill = || {
        let frame = request(1, 1, b"x");
        while !over.load(Ordering::Acquire) {
            fills.run(&frame);
        }
    };
    side_by_side(&over, fill, || {
        let (begun, mut last, mut taken) = (Instant::now(), START, 0);
        let (mut looks, mut news) = (0_u64, 0);
        while news < NEWS {
            assert!(begun.elapsed() < PATIENCE, "it takes too long");
            let seen = plane.registers();
            let all = [seen.last_index, seen.persisted_index, seen.commit_index];
            assert_eq!(all, [seen.last_index; 3], "torn: {seen:?}");
            looks += 1;
            news += u64::from(seen.last_index.0 > last);
            last = seen.last_index.0;
            // The ring is not to be full.
            if looks.is_multiple_of(64) {
                plane.poll(1024, &mut |event: PlaneEvent<'_>| {
                    taken += u64::from(matches!(event, PlaneEvent::Entry(_)));
                });
                plane.release(Index(START + taken)).expect("it was taken");
            }
        }
    });
}

fn requests() -> Vec<Vec<u8>> {
    let numbers = 0..SEQUENCES;
    numbers
        .map(|number| request(number, number, &payload(number)))
        .collect()
}

/// One processor fills the ring, whose entries are released as soon as they are taken, the other has a
/// follower ask for what is about to be overwritten, or was stored this moment: each entry that leaves is
/// whole.
pub fn no_entry_leaves_torn_within(time: Duration) {
    const RING_SLOTS: u32 = 16;
    let (mut plane, follower, namespaces) = leader(RING_SLOTS, &[plane_ip(0), test_ip(0, 1)]);
    let [mut fills, asks] = [(); 2].map(|()| Loaded::at("eth0", RING_SLOTS));
    let over = AtomicBool::new(false);
    let (stored, seen) = std::thread::scope(|scope| {
        let over = &over;
        let asking = scope.spawn(move || {
            stay_on(1);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                ask_for_entries(&asks, &follower, RING_SLOTS, over)
            }));
            over.store(true, Ordering::Release);
            ended
        });
        stay_on(0);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            fill(&mut plane, &mut fills, RING_SLOTS, time, over)
        }));
        over.store(true, Ordering::Release);
        let asked = asking.join().expect("it catches its panics");
        match (ended, asked) {
            (Ok(stored), Ok(seen)) => (stored, seen),
            (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
        }
    });
    drop(namespaces);
    // Without these it would show nothing.
    let late = counted(&plane, "copies_not_needed");
    println!("{seen} of {stored} entries left, {late} were overwritten meanwhile");
    assert!(seen > 100 && late > 0);
}

/// Fills the ring again and again; how many entries.
fn fill(
    plane: &mut XdpPlane,
    loaded: &mut Loaded,
    ring_slots: u32,
    time: Duration,
    over: &AtomicBool,
) -> u64 {
    let requests = requests();
    let (begun, mut stored) = (Instant::now(), 0);
    while begun.elapsed() < time && !over.load(Ordering::Acquire) {
        for _ in 1..ring_slots {
            stored += 1;
            let number = usize::try_from(stored % SEQUENCES).expect("a small number");
            loaded.run(&requests[number]);
        }
        let taken = header(Kind::AppendOk, 1, START + stored);
        loaded.run(&from(1, &signed(&taken, &[], keys().cluster.key)));
        while plane.poll(64, &mut |_: PlaneEvent<'_>| {}) > 0 {}
        plane.release(Index(START + stored)).expect("it was taken");
    }
    stored
}

/// Asks for entries that the ring holds at this moment, and looks at those that come; how many.
fn ask_for_entries(
    loaded: &Loaded,
    follower: &UdpSocket,
    ring_slots: u32,
    over: &AtomicBool,
) -> u64 {
    let (mut dice, mut seen) = (Dice::new(), 0);
    while !over.load(Ordering::Acquire) {
        // The oldest, or the newest ones.
        let near = dice.below(3) as u64;
        let behind = match dice.below(2) {
            0 => near,
            _ => u64::from(ring_slots) - 1 - near,
        };
        let last = loaded.registers().last_index;
        let index = last.saturating_sub(behind).max(START + 1);
        let ask = signed(&header(Kind::Retransmit, 1, index), &[], keys().cluster.key);
        // Now and then the device is full.
        let _ = follower.send_to(&ask, (plane_ip(0), PORT));
        seen += are_whole(follower);
    }
    seen
}

/// Requests that differ: one behind the other, then again.
const SEQUENCES: u64 = 251;

/// What a request of this number asks: as long as it may be, all bytes the same.
fn payload(sequence: u64) -> Vec<u8> {
    vec![sequence.to_le_bytes()[0]; REQUEST_BYTES_MAX]
}

/// Each entry that has left is one that was stored there; how many.
fn are_whole(follower: &UdpSocket) -> u64 {
    let mut count = 0;
    while let Some(bytes) = next_datagram(follower) {
        let (head, found) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
        let header = Header::decode(head);
        assert_eq!(Kind::from_byte(header.kind), Some(Kind::Append));
        let sequence = (header.index - START) % SEQUENCES;
        assert_eq!(
            (header.session, header.sequence),
            (sequence, sequence),
            "{header:?}"
        );
        assert!(is_whole(sequence, found), "torn: {header:?}");
        count += 1;
    }
    count
}

/// Whether it is the payload of that request.
fn is_whole(sequence: u64, payload: &[u8]) -> bool {
    payload.len() == REQUEST_BYTES_MAX && payload.iter().all(|byte| u64::from(*byte) == sequence)
}
