//! Engage and disengage: an engaged plane alone moves the log, a disengaged plane moves nothing.
use crate::cluster::{Cluster, Fate, START, TERM, keys};
use crate::faults::Dice;
use crate::forge::{header, signed};
use crate::{Fabric, Frame, PlaneSpec};
use quorumwire_interfaces::{Grant, Index, PlaneError, Registers, Term};
use quorumwire_wire::packet::Kind;

const SMALL: PlaneSpec = PlaneSpec {
    replicas: 3,
    ring_slots: 64,
    window: 64,
};

fn promises(frame: &Frame) -> bool {
    matches!(
        Kind::from_byte(frame.header().kind),
        Some(Kind::AppendOk | Kind::HeartbeatOk)
    )
}

/// Before the first grant nothing is taken, and nothing leaves.
pub fn a_plane_that_is_off_moves_nothing<F: Fabric>() {
    let mut cluster = Cluster::<F>::idle(SMALL);
    assert_eq!(cluster.registers(1), Registers::default());
    assert_eq!(cluster.submit(b"x"), Err(PlaneError::NotEngaged));
    assert_eq!(
        cluster.fabric.plane(0).heartbeat(1),
        Err(PlaneError::NotEngaged)
    );
    assert_eq!(
        cluster.fabric.plane(0).persisted(Index(1)),
        Err(PlaneError::NotEngaged)
    );
    let append = signed(
        &header(Kind::Append, 0, START + 1),
        b"x",
        keys().cluster.key,
    );
    cluster.fabric.send_from_outside(1, &append);
    cluster.settle();
    assert_eq!(cluster.registers(1), Registers::default());
    assert!(cluster.sent.is_empty() && cluster.hosts[1].entries.is_empty());
}

/// Engaged is engaged; off is off.
pub fn engaging_is_refused_twice_and_disengaging_is_not<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    let grant = cluster.grant(1);
    assert_eq!(
        cluster.fabric.plane(1).engage(&grant),
        Err(PlaneError::Engaged)
    );
    cluster.submit(b"x").expect("room");
    cluster.settle();
    let first = cluster.fabric.plane(1).disengage();
    assert_eq!(cluster.fabric.plane(1).disengage(), first);
    assert_eq!(cluster.registers(1), first);
    assert_eq!(first.last_index, Index(START + 1));
    let wrong = Grant {
        quorum: 1,
        ..cluster.grant(2)
    };
    cluster.fabric.plane(2).disengage();
    assert!(matches!(
        cluster.fabric.plane(2).engage(&wrong),
        Err(PlaneError::Refused(_))
    ));
}

/// At whatever moment the fence comes: nothing that left says more than the registers, and afterwards
/// nothing leaves, whatever arrives or the host does.
pub fn every_acknowledgement_that_left_is_in_the_registers<F: Fabric>() {
    let mut dice = Dice::new();
    let mut stopped_at = [0_usize; 12];
    for held in [false, true] {
        for moment in 0..24 {
            let mut cluster = Cluster::<F>::idle(SMALL);
            cluster.engage_all(|grant| grant.held = held);
            for number in 0..moment {
                cluster.submit(&[number]).expect("room");
                if held && number % 3 == 0 {
                    persist_some(&mut cluster);
                }
                cluster.turn(&mut |_| {
                    if dice.below(4) == 0 {
                        Fate::Lost
                    } else {
                        Fate::Arrives
                    }
                });
            }
            let in_flight = cluster.collect();
            let registers = cluster.fabric.plane(1).disengage();
            let said = cluster
                .sent
                .iter()
                .filter(|frame| frame.from == 1 && promises(frame));
            let highest = said
                .map(|frame| frame.header().index)
                .max()
                .unwrap_or(START);
            assert!(
                highest <= registers.persisted_index.0,
                "{highest} {registers:?}"
            );
            assert!(registers.persisted_index <= registers.last_index);
            stopped_at[usize::from(moment) / 2] += usize::from(registers.last_index.0 > START);
            nothing_more_happens(&mut cluster, &in_flight, registers);
        }
    }
    assert!(stopped_at.iter().sum::<usize>() > 10, "{stopped_at:?}");
}

fn persist_some<F: Fabric>(cluster: &mut Cluster<F>) {
    for slot in 0..2 {
        let last = cluster.registers(slot).last_index;
        let half = Index(START + (last.0 - START) / 2);
        cluster
            .fabric
            .plane(slot)
            .persisted(half)
            .expect("it was stored");
    }
}

fn nothing_more_happens<F: Fabric>(
    cluster: &mut Cluster<F>,
    in_flight: &[Frame],
    registers: Registers,
) {
    for frame in in_flight.iter().filter(|frame| frame.to == 1) {
        cluster.fabric.deliver(frame);
    }
    let next = registers.last_index.0 + 1;
    let key = keys().cluster.key;
    for packet in [
        header(Kind::Append, 0, next),
        header(Kind::Heartbeat, 0, next),
    ] {
        cluster
            .fabric
            .send_from_outside(1, &signed(&packet, &[], key));
    }
    cluster.poll(1);
    assert_eq!(
        cluster.fabric.plane(1).persisted(registers.last_index),
        Err(PlaneError::NotEngaged)
    );
    let left = cluster.collect();
    assert!(
        left.iter().all(|frame| frame.from != 1),
        "it spoke after the fence"
    );
    assert_eq!(cluster.registers(1), registers, "it moved after the fence");
}

/// The ring's entries are the host's also after the fence, and only then software goes on.
pub fn what_the_ring_holds_is_handed_over_after_the_fence<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(2);
    for number in 0..5 {
        cluster.submit(&[number]).expect("room");
    }
    let registers = cluster.fabric.plane(0).disengage();
    assert_eq!(registers.last_index, Index(START + 5));
    let later = Grant {
        term: Term(TERM.0 + 1),
        last_index: registers.last_index,
        last_term: TERM,
        ..cluster.grant(0)
    };
    let early = cluster.fabric.plane(0).engage(&later);
    assert!(matches!(early, Err(PlaneError::Refused(_))), "{early:?}");
    assert!(cluster.hosts[0].entries.is_empty());
    cluster.poll(0);
    assert_eq!(cluster.hosts[0].payloads(), [[0], [1], [2], [3], [4]]);
    assert_eq!(cluster.fabric.plane(0).engage(&later), Ok(()));
}

/// A new fast term, with a new leader: packets of the old one that come late move nothing.
pub fn a_later_term_begins_empty_and_takes_nothing_from_the_one_before<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    cluster.submit(b"a").expect("room");
    cluster.settle();
    cluster.submit(b"old").expect("room");
    let late = cluster.collect();
    for slot in 0..3 {
        cluster.fabric.plane(slot).disengage();
        cluster.poll(slot);
    }
    for slot in [2, 1] {
        let grant = Grant {
            term: Term(TERM.0 + 1),
            last_index: Index(START + 1),
            last_term: TERM,
            commit_index: Index(START + 1),
            leader: 1,
            ..cluster.grant(slot)
        };
        assert_eq!(cluster.fabric.plane(slot).engage(&grant), Ok(()));
    }
    for frame in &late {
        cluster.fabric.deliver(frame);
    }
    let old_promise = signed(
        &header(Kind::AppendOk, 2, START + 2),
        &[],
        keys().cluster.key,
    );
    cluster.fabric.send_from_outside(1, &old_promise);
    for slot in [1, 2] {
        cluster.poll(slot);
        assert_eq!(cluster.registers(slot).last_index, Index(START + 1));
    }
    assert_eq!(cluster.registers(1).match_index[2], Index(0));
    assert!(cluster.collect().is_empty());
    let command = quorumwire_interfaces::Command {
        kind: quorumwire_interfaces::EntryKind::Command,
        session: 0,
        sequence: 0,
        payload: b"new",
    };
    assert_eq!(
        cluster.fabric.plane(1).submit(&[command]),
        Ok((Index(START + 2), 1))
    );
    cluster.settle();
    assert_eq!(cluster.hosts[2].payloads(), [&b"a"[..], b"new"]);
}
