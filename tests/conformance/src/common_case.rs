//! What a plane is for: entries stored on all, counted, committed, in order, within its limits.
use crate::cluster::{Cluster, Fate, START};
use crate::{Fabric, Frame, PlaneSpec};
use quorumwire_interfaces::{Command, EntryKind, Index, PlaneError};
use quorumwire_wire::packet::Kind;
use std::collections::BTreeMap;

/// A hundred commands, one after the other and many at once.
pub fn commands_reach_all_in_order_and_are_committed<F: Fabric>() {
    for replicas in [2, 3, 5, 7] {
        let mut cluster = Cluster::<F>::engaged(replicas);
        for number in 0..100_u8 {
            let index = cluster.submit(&[number]).expect("room");
            assert_eq!(index, Index(START + 1 + u64::from(number)));
            if number % 7 == 0 {
                cluster.settle();
            }
        }
        cluster.settle();
        // Followers learn the last commit from what comes next.
        cluster.fabric.plane(0).heartbeat(1).expect("it leads");
        cluster.settle();
        cluster.assert_all_committed(100);
        let expected: Vec<Vec<u8>> = (0..100).map(|number| vec![number]).collect();
        assert_eq!(cluster.hosts[replicas - 1].payloads(), expected);
        assert_eq!(assert_same_for_all(&cluster.sent, replicas), 101);
    }
}

/// What the leader, slot 0, says to all it says in the same bytes, tag included: a plane signs it once, and a
/// network may make the copies. How many packets, those sent again not counted.
fn assert_same_for_all(sent: &[Frame], replicas: usize) -> usize {
    let mut said: BTreeMap<(u8, u64), BTreeMap<usize, &[u8]>> = BTreeMap::new();
    for frame in sent {
        let header = frame.header();
        if header.kind == Kind::Append as u8 || header.kind == Kind::Heartbeat as u8 {
            let copies = said.entry((header.kind, header.index)).or_default();
            copies.entry(frame.to).or_insert(&frame.bytes);
        }
    }
    for ((kind, index), copies) in &said {
        let receivers: Vec<usize> = copies.keys().copied().collect();
        let others: Vec<usize> = (1..replicas).collect();
        assert_eq!(receivers, others, "kind {kind}, index {index}");
        let same = copies.values().all(|bytes| *bytes == copies[&1]);
        assert!(same, "kind {kind}, index {index}: not the same for all");
    }
    said.len()
}

/// Commands, pieces, ticks and bundles, with session and number, from nothing to the largest payload.
pub fn every_kind_and_size_goes_through<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    let most = cluster.fabric.plane(0).limits().payload_bytes_max;
    let kinds = [
        EntryKind::Command,
        EntryKind::Fragment,
        EntryKind::Tick,
        EntryKind::Bundle,
    ];
    let mut expected = Vec::new();
    for (number, bytes) in [0, 1, 7, 8, 9, 63, 64, 65, most - 1, most]
        .into_iter()
        .enumerate()
    {
        let payload: Vec<u8> = (0..bytes)
            .map(|at| (at * 7 + number).to_le_bytes()[0])
            .collect();
        let command = Command {
            kind: kinds[number % 4],
            session: u64::MAX - number as u64,
            sequence: number as u64,
            payload: &payload,
        };
        let taken = cluster.fabric.plane(0).submit(&[command]);
        assert_eq!(taken, Ok((Index(START + 1 + number as u64), 1)));
        expected.push((command.kind, command.session, command.sequence, payload));
        cluster.settle();
    }
    for host in &cluster.hosts {
        let found: Vec<_> = host
            .entries
            .iter()
            .map(|entry| {
                (
                    entry.kind,
                    entry.session,
                    entry.sequence,
                    entry.payload.clone(),
                )
            })
            .collect();
        assert_eq!(found, expected);
    }
}

/// A quorum of one is there at once.
pub fn one_replica_commits_alone<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(1);
    for number in 0..10 {
        cluster.submit(&[number]).expect("room");
    }
    cluster.settle();
    cluster.assert_all_committed(10);
    assert!(cluster.sent.is_empty());
}

/// With the quorum of all, one silent follower stops the commits, not the storing.
pub fn the_quorum_of_all_waits_for_all<F: Fabric>() {
    let mut cluster = Cluster::<F>::idle(PlaneSpec {
        replicas: 3,
        ring_slots: 64,
        window: 64,
    });
    cluster.engage_all(|grant| grant.quorum = 3);
    cluster.submit(b"x").expect("room");
    cluster.settle_with(&mut |frame| {
        if frame.from == 2 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    assert_eq!(cluster.registers(0).commit_index, Index(START));
    assert_eq!(
        cluster.registers(0).match_index[..3],
        [START + 1, START + 1, 0].map(Index)
    );
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    assert_eq!(cluster.registers(0).commit_index, Index(START + 1));
}

/// Rounds ascend, and what comes back shows in the registers.
pub fn heartbeats_are_heard_and_answered<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    for round in [1, 2, 7] {
        cluster
            .fabric
            .plane(0)
            .heartbeat(round)
            .expect("it ascends");
        cluster.settle();
    }
    assert!(
        cluster.fabric.plane(0).heartbeat(7).is_err(),
        "the same round"
    );
    assert_eq!(cluster.registers(0).heard_round[..3], [7, 7, 7]);
    for follower in [1, 2] {
        let registers = cluster.registers(follower);
        assert_eq!(registers.round, 7);
        assert_eq!(
            cluster.fabric.plane(follower).heartbeat(8),
            Err(PlaneError::NotEngaged)
        );
    }
}

/// Three replicas, of which the leader has taken so many commands, and takes no more.
fn full<F: Fabric>(ring_slots: u32, window: u32, taken: u32) -> Cluster<F> {
    let mut cluster = Cluster::<F>::engaged_with(PlaneSpec {
        replicas: 3,
        ring_slots,
        window,
    });
    for _ in 0..taken {
        cluster.submit(b"x").expect("room");
    }
    assert_eq!(cluster.submit(b"x"), Err(PlaneError::Full));
    cluster
}

/// Only so many entries wait for a commit.
pub fn a_full_window_takes_no_more<F: Fabric>() {
    let mut cluster = full::<F>(16, 4, 4);
    // Of many, as many are taken as there is room for.
    cluster.settle();
    let command = Command {
        kind: EntryKind::Command,
        session: 0,
        sequence: 0,
        payload: b"y",
    };
    let taken = cluster.fabric.plane(0).submit(&[command; 9]);
    assert_eq!(taken, Ok((Index(START + 5), 4)));
    cluster.settle();
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    cluster.assert_all_committed(8);
}

/// What is on its way to all others fits into the ring of a network device, however large a window was asked
/// for: three quarters of 256 frames, two for each entry.
pub fn no_more_is_on_its_way_than_a_device_holds<F: Fabric>() {
    let mut cluster = full::<F>(1024, 1024, 96);
    cluster.settle();
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    cluster.assert_all_committed(96);
}

/// An entry that the host has not taken is not overwritten.
pub fn a_full_ring_takes_no_more<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged_with(PlaneSpec {
        replicas: 1,
        ring_slots: 4,
        window: 4,
    });
    cluster.releases = false;
    for _ in 0..4 {
        cluster.submit(b"x").expect("room");
        cluster.settle();
    }
    assert_eq!(cluster.submit(b"x"), Err(PlaneError::Full));
    assert!(
        cluster.fabric.plane(0).release(Index(START + 5)).is_err(),
        "never stored"
    );
    assert_eq!(cluster.fabric.plane(0).release(Index(START + 1)), Ok(()));
    cluster.submit(b"y").expect("room again");
    assert_eq!(cluster.submit(b"z"), Err(PlaneError::Full));
    cluster.releases = true;
    cluster.settle();
    cluster.assert_all_committed(5);
}

/// A follower whose host is slow takes nothing more, and does not hold up the others.
pub fn a_follower_with_a_full_ring_catches_up<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged_with(PlaneSpec {
        replicas: 3,
        ring_slots: 8,
        window: 8,
    });
    for number in 0..12 {
        cluster.submit(&[number]).expect("room");
        // Slot 2 is not polled: its host takes nothing.
        for _ in 0..4 {
            for frame in cluster.collect() {
                if frame.to != 2 || number < 8 {
                    cluster.fabric.deliver(&frame);
                }
            }
            cluster.poll(0);
            cluster.poll(1);
        }
    }
    assert_eq!(cluster.registers(0).commit_index, Index(START + 12));
    cluster.releases = false;
    for _ in 0..3 {
        cluster.poll(2);
    }
    assert_eq!(
        cluster.registers(2).last_index,
        Index(START + 8),
        "its ring is full"
    );
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    assert_eq!(cluster.registers(2).last_index, Index(START + 8));
    cluster.releases = true;
    cluster.settle();
    for round in 2..4 {
        cluster.fabric.plane(0).heartbeat(round).expect("it leads");
        cluster.settle();
    }
    cluster.assert_all_committed(12);
}

/// What is larger than the limits is refused, and nothing of it is left.
pub fn a_planes_limits_are_kept<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(2);
    let limits = cluster.fabric.plane(0).limits();
    assert!(limits.payload_bytes_max >= 1024 && limits.replicas_max >= 7);
    let large = vec![1; limits.payload_bytes_max + 1];
    assert!(matches!(
        cluster.submit(&large),
        Err(PlaneError::Refused(_))
    ));
    cluster.submit(&large[1..]).expect("the largest");
    cluster.settle();
    assert_eq!(cluster.hosts[1].payloads(), [&large[1..]]);
    let appends = cluster
        .sent
        .iter()
        .filter(|frame| frame.header().kind == Kind::Append as u8);
    assert_eq!(appends.count(), 1);
}
