//! Held acknowledgements: only what the host has made durable is promised.
use crate::cluster::{Cluster, START};
use crate::{Fabric, Frame, PlaneSpec};
use quorumwire_interfaces::{Index, PlaneError};
use quorumwire_wire::packet::Kind;

const THREE: PlaneSpec = PlaneSpec {
    replicas: 3,
    ring_slots: 64,
    window: 64,
};

fn promised<F>(cluster: &Cluster<F>, from: usize) -> Vec<u64> {
    let promises = |frame: &&Frame| {
        let kind = Kind::from_byte(frame.header().kind);
        frame.from == from && matches!(kind, Some(Kind::AppendOk | Kind::HeartbeatOk))
    };
    let sent = cluster.sent.iter().filter(promises);
    sent.map(|frame| frame.header().index).collect()
}

/// A follower stores at once and promises later; a repeated packet or a heartbeat does not loosen it.
pub fn what_is_held_is_acknowledged_when_it_is_durable<F: Fabric>() {
    let mut cluster = Cluster::<F>::idle(THREE);
    cluster.engage_all(|grant| grant.held = true);
    cluster.submit(b"a").expect("room");
    cluster.submit(b"b").expect("room");
    let appends = cluster.collect();
    for frame in appends.iter().chain(&appends) {
        cluster.fabric.deliver(frame);
    }
    cluster.settle();
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    assert_eq!(cluster.hosts[1].entries.len(), 2, "stored");
    assert!(promised(&cluster, 1).iter().all(|index| *index == START));
    cluster
        .fabric
        .plane(1)
        .persisted(Index(START + 1))
        .expect("it was stored");
    cluster.settle();
    assert_eq!(promised(&cluster, 1).last(), Some(&(START + 1)));
    assert_eq!(cluster.registers(0).match_index[1], Index(START + 1));
    let beyond = cluster.fabric.plane(1).persisted(Index(START + 3));
    assert!(matches!(beyond, Err(PlaneError::Refused(_))), "{beyond:?}");
    // Less than before changes nothing.
    assert_eq!(cluster.fabric.plane(1).persisted(Index(START)), Ok(()));
    assert_eq!(cluster.registers(1).persisted_index, Index(START + 1));
}

/// The leader's own copy counts like another's: when it is durable.
pub fn a_leader_counts_itself_only_when_durable<F: Fabric>() {
    let mut cluster = Cluster::<F>::idle(THREE);
    cluster.engage_all(|grant| grant.held = true);
    cluster.submit(b"a").expect("room");
    cluster.settle();
    cluster
        .fabric
        .plane(1)
        .persisted(Index(START + 1))
        .expect("it was stored");
    cluster.settle();
    assert_eq!(
        cluster.registers(0).commit_index,
        Index(START),
        "one of three"
    );
    assert_eq!(cluster.registers(0).match_index[0], Index(START));
    cluster
        .fabric
        .plane(0)
        .persisted(Index(START + 1))
        .expect("it was stored");
    cluster.settle();
    assert_eq!(cluster.registers(0).commit_index, Index(START + 1));
    assert_eq!(cluster.hosts[0].committed, START + 1);
    // Where nothing is held, there is nothing to release.
    let mut memory = Cluster::<F>::engaged(2);
    memory.submit(b"x").expect("room");
    let refused = memory.fabric.plane(0).persisted(Index(START + 1));
    assert!(
        matches!(refused, Err(PlaneError::Refused(_))),
        "{refused:?}"
    );
}
