//! When the program wakes its host: as soon as somebody waits for it, and else seldom.
use crate::Driver;
use quorumwire_conformance_tests::Fabric;
use quorumwire_conformance_tests::cluster::{Cluster, GROUP, keys};
use quorumwire_fastpath::{ClientPackets, Request};
use quorumwire_interfaces::DataPlane;
use std::time::Duration;

type Kernel = crate::Kernel<Driver>;

/// More looks in vain than a host does before it sleeps until it is woken.
const LOOKS_IN_VAIN: usize = 20;

fn request(sequence: u64, blind: bool) -> Vec<u8> {
    let request = Request {
        group: GROUP,
        session: 1,
        sequence,
        blind,
        payload: b"x",
    };
    ClientPackets::new(&keys())
        .request(&request)
        .expect("short")
}

/// Whether something wants the host of this plane.
fn is_wanted(cluster: &Cluster<Kernel>, slot: usize) -> bool {
    crate::veth::is_wanted(&cluster.fabric.planes[slot], Duration::ZERO)
}

/// Nobody has slept for want of work.
fn busy(replicas: usize) -> Cluster<Kernel> {
    let mut cluster = Cluster::<Kernel>::engaged(replicas);
    cluster.fabric.namespaces.await_carriers();
    cluster.fabric.send_from_outside(0, &request(1, true));
    cluster.settle();
    for slot in 0..replicas {
        let look_again = cluster.fabric.planes[slot].poll_again_within();
        assert!(look_again.is_some(), "it looks again by itself");
        assert!(!is_wanted(&cluster, slot), "{slot}");
    }
    cluster
}

fn deliver_all(cluster: &mut Cluster<Kernel>) {
    for _ in 0..2 {
        for frame in cluster.collect() {
            cluster.fabric.deliver(&frame);
        }
    }
}

#[test]
fn blind_writes_wake_nobody_until_they_are_many() {
    let mut cluster = busy(3);
    let quarter = 64 / 4;
    for sequence in 2..quarter {
        cluster
            .fabric
            .send_from_outside(0, &request(sequence, true));
        deliver_all(&mut cluster);
    }
    for slot in 0..3 {
        assert!(!is_wanted(&cluster, slot), "{slot}");
    }
    for sequence in quarter..quarter + 2 {
        cluster
            .fabric
            .send_from_outside(0, &request(sequence, true));
        deliver_all(&mut cluster);
    }
    for slot in 0..3 {
        assert!(
            is_wanted(&cluster, slot),
            "a quarter of the ring is unseen at {slot}"
        );
    }
}

#[test]
fn a_leader_is_woken_when_what_somebody_waits_for_is_committed() {
    let mut cluster = busy(3);
    cluster.fabric.send_from_outside(0, &request(2, false));
    assert!(!is_wanted(&cluster, 0), "it is not committed");
    deliver_all(&mut cluster);
    assert!(is_wanted(&cluster, 0));
    assert!(!is_wanted(&cluster, 1), "nobody waits for a follower");

    let mut cluster = busy(3);
    cluster.submit(b"of the host").expect("there is room");
    deliver_all(&mut cluster);
    assert!(is_wanted(&cluster, 0));
}

#[test]
fn a_leader_is_woken_by_the_answers_to_a_round_if_somebody_waits_for_them() {
    let mut cluster = busy(3);
    for (round, expected) in [(1000, false), (1001, true), (1002, false)] {
        cluster.fabric.planes[0].expects_round(expected);
        let begun = cluster.fabric.planes[0].heartbeat(round);
        begun.expect("it leads, and rounds ascend");
        deliver_all(&mut cluster);
        assert_eq!(cluster.fabric.planes[0].registers().heard_round[1], round);
        assert_eq!(is_wanted(&cluster, 0), expected, "round {round}");
        assert!(!is_wanted(&cluster, 1), "nobody waits for a follower");
        cluster.poll(0);
        assert!(!is_wanted(&cluster, 0), "it has been told");
    }
}

#[test]
pub fn what_must_be_durable_wakes_every_host_at_once() {
    let mut cluster = Cluster::<Kernel>::idle(quorumwire_conformance_tests::PlaneSpec {
        replicas: 2,
        ring_slots: 64,
        window: 64,
    });
    cluster.engage_all(|grant| grant.held = true);
    cluster.fabric.namespaces.await_carriers();
    for slot in 0..2 {
        cluster.poll(slot);
        assert!(!is_wanted(&cluster, slot));
    }
    cluster.fabric.send_from_outside(0, &request(1, true));
    deliver_all(&mut cluster);
    for slot in 0..2 {
        assert!(is_wanted(&cluster, slot), "{slot}");
    }
}

#[test]
fn a_host_that_looks_no_more_by_itself_is_woken_by_the_first_entry() {
    let mut cluster = busy(3);
    for slot in 0..3 {
        for _ in 0..LOOKS_IN_VAIN {
            cluster.poll(slot);
        }
        let look_again = cluster.fabric.planes[slot].poll_again_within();
        assert_eq!(look_again, None);
    }
    cluster.fabric.send_from_outside(0, &request(2, true));
    deliver_all(&mut cluster);
    for slot in 0..3 {
        assert!(is_wanted(&cluster, slot), "{slot}");
    }
}
