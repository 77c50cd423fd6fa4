//! The fence of a leader whose copies are made behind the receive path, while requests pour in on another
//! processor, and a follower asks for all entries again and again: no copy leaves after it, and what left is
//! in the registers.
use crate::copies::{DRIVER, Leader, PATIENCE, request};
use crate::hammered::{side_by_side, wait_for_more};
use crate::veth::{PORT, counted, plane_ip, sends};
use quorumwire_conformance_tests::cluster::keys;
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_interfaces::DataPlane;
use quorumwire_plane_xdp::{Attachment, XdpCopies, XdpMode};
use quorumwire_wire::packet::{Header, Kind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Times that the plane is engaged and disengaged.
const ROUNDS: usize = 1_000;
/// So long that a fence which waited for no copies would be over before them.
const PAYLOAD: &[u8] = &[7; 1000];
/// Requests that come in before and after each fence, at least.
const REQUESTS_AROUND: u64 = 4;

#[test]
fn no_clone_leaves_after_the_fence_in_the_driver() {
    hammer(Attachment {
        copies: XdpCopies::Clone,
        ..DRIVER
    });
}

#[test]
fn no_clone_leaves_after_the_fence_in_generic_mode() {
    hammer(Attachment {
        mode: XdpMode::Generic,
        ..DRIVER
    });
}

fn hammer(how: Attachment) {
    let mut leader = Leader::new(how, true);
    let client = leader.client.try_clone().expect("a socket");
    let (term, sent, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let asks = || {
        let to = (plane_ip(0), PORT);
        while !over.load(Ordering::Acquire) {
            let running = term.load(Ordering::Acquire);
            let ask_again = Header {
                term: running >> 32,
                ..header(Kind::Retransmit, 1, running & u64::from(u32::MAX))
            };
            let ask_again = signed(&ask_again, b"", keys().cluster.key);
            for bytes in [&ask_again, &request(1, PAYLOAD)] {
                if sends(&client, bytes, to) {
                    sent.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
    };
    side_by_side(&over, asks, || rounds(&mut leader, &term, &sent));
    // Without these the rounds would show nothing.
    let cloned = counted(&leader.plane, "copies_cloned");
    assert!(cloned > ROUNDS as u64, "{cloned} clones in {ROUNDS} rounds");
    // A fence that waits for clones sees them done; only a busy machine has it wait for the grace period.
    let slow = leader.plane.slow_fences();
    assert!(slow < ROUNDS as u64 / 2, "{slow} slow fences");
    println!("{cloned} clones, {slow} slow fences");
}

/// `term` is the running one and, in its lower half, where it begins.
fn rounds(leader: &mut Leader, term: &AtomicU64, sent: &AtomicU64) {
    let end = Instant::now() + 10 * PATIENCE;
    let wait_for_requests = || wait_for_more(sent, REQUESTS_AROUND, end);
    for round in 0..ROUNDS {
        let first = leader.plane.registers().last_index.0 + 1;
        leader.engage();
        term.store(leader.term << 32 | first, Ordering::Release);
        wait_for_requests();
        let registers = leader.plane.disengage();
        let left = counted(&leader.plane, "sent");
        wait_for_requests();
        assert_eq!(
            counted(&leader.plane, "sent"),
            left,
            "round {round}: a copy left after the fence"
        );
        assert_eq!(
            leader.plane.registers(),
            registers,
            "round {round}: it moved after the fence"
        );
        for follower in &leader.followers {
            while let Some(bytes) = next_datagram(follower) {
                let header = Header::decode(bytes.first_chunk().expect("a header"));
                assert_eq!(Kind::from_byte(header.kind), Some(Kind::Append));
                assert_eq!(header.term, leader.term, "round {round}");
                assert!(header.index <= registers.last_index.0, "round {round}");
            }
        }
    }
}
