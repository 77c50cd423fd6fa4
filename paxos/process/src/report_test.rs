//! What a switch says in words.
use super::{KIND, SwitchIdentity, SwitchReport, declared_counters};
use crate::status::{SlowStatus, Standing, SwitchStatus};
use crate::switch::{Durability, Role};
use quorumwire_fastpath::Surroundings;
use quorumwire_paxos::CoordinatorStanding;
use quorumwire_wire::packet::{PacketReason, PaxosRegisters};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn identity(role: Role) -> SwitchIdentity {
    SwitchIdentity {
        deployment: "orders".to_owned(),
        role,
        number: 1,
        address: "10.0.0.2:7500".parse().ok(),
        elsewhere: None,
        durability: Durability::Sync,
        plane: "socket",
        of_plane: ["received", "instances_assigned"].into(),
        begun: Instant::now(),
    }
}

fn coordinating() -> SwitchStatus {
    SwitchStatus {
        at: Some(Instant::now()),
        is_on: true,
        standing: Some(Standing::Coordinator(CoordinatorStanding::Coordinates)),
        round: 3 * 256 + 1,
        registers: PaxosRegisters {
            window: 8,
            trimmed: 4,
            next_instance: 7,
            ..PaxosRegisters::default()
        },
        last_checkpoint: Some((2, 4)),
        ..SwitchStatus::default()
    }
}

fn report(role: Role, status: &SwitchStatus) -> SwitchReport {
    SwitchReport::new(&identity(role), status, Instant::now())
}

#[test]
fn who_coordinates_says_what_is_open() {
    let said = report(Role::Coordinator, &coordinating());
    assert!(said.coordinates && said.ready && said.is_alive() && said.faults.is_empty());
    assert_eq!((said.kind.as_str(), said.coordinator), (KIND, Some(1)));
    let window = said.window.clone().expect("it is on");
    // 5 and 6 are open.
    let found = (window.first_open, window.next_instance, window.free);
    assert_eq!(found, (5, 7, 6));
    assert_eq!((window.filled_by, window.checkpointed), (Some(2), Some(4)));
    assert_eq!((said.durability.as_deref(), said.life), (None, None));
    assert!(
        said.in_words()
            .contains("coordinator 1 of the deployment orders")
    );
}

#[test]
fn a_backup_is_ready_once_it_knows_who_coordinates() {
    let backup = SwitchStatus {
        is_on: false,
        standing: Some(Standing::Coordinator(CoordinatorStanding::Backup)),
        round: 2 * 256,
        ..coordinating()
    };
    let said = report(Role::Coordinator, &backup);
    assert!(said.ready && !said.coordinates && said.window.is_none());
    assert_eq!((said.coordinator, said.state.as_str()), (Some(0), "backup"));
    let alone = SwitchStatus {
        round: 0,
        ..backup.clone()
    };
    let said = report(Role::Coordinator, &alone);
    assert!(!said.ready && said.coordinator.is_none());
    for standing in [
        CoordinatorStanding::Asks,
        CoordinatorStanding::Retired,
        CoordinatorStanding::SameNumber,
        CoordinatorStanding::NoRoundLeft,
    ] {
        let other = SwitchStatus {
            standing: Some(Standing::Coordinator(standing)),
            ..backup.clone()
        };
        let said = report(Role::Coordinator, &other);
        assert!(!said.ready && said.coordinator.is_none(), "{standing:?}");
    }
}

#[test]
fn a_full_window_names_who_fills_it() {
    let mut full = coordinating();
    full.registers.next_instance = 13;
    let said = report(Role::Coordinator, &full);
    assert_eq!(said.window.map(|it| it.free), Some(0));
    let fault = "the window is full: learner 2 has checkpointed up to instance 4";
    assert_eq!(said.faults, [fault]);
}

#[test]
fn an_acceptor_says_its_life_and_waits_to_be_let_in() {
    let newcomer = SwitchStatus {
        is_on: false,
        standing: Some(Standing::Newcomer),
        life: Some(3),
        ..coordinating()
    };
    let said = report(Role::Acceptor, &newcomer);
    assert!(!said.ready && said.window.is_none() && said.coordinator.is_none());
    assert_eq!(
        (said.life, said.durability.as_deref()),
        (Some(3), Some("sync"))
    );
    let mut votes = SwitchStatus {
        is_on: true,
        standing: Some(Standing::Votes),
        ..newcomer
    };
    votes.registers.highest = 9;
    let said = report(Role::Acceptor, &votes);
    assert_eq!(said.window.map(|it| it.next_instance), Some(10));
    assert_eq!((said.ready, said.coordinator), (true, Some(1)));
}

#[test]
fn a_switch_that_says_nothing_hangs() {
    let began = report(Role::Acceptor, &SwitchStatus::default());
    assert!(began.is_alive() && !began.ready);
    assert_eq!(began.state, "begins");
    let status = coordinating();
    let later = Instant::now() + Duration::from_secs(5);
    let said = SwitchReport::new(&identity(Role::Coordinator), &status, later);
    assert!(!said.is_alive() && said.silent_ms >= 5000);
}

#[test]
fn counters_of_the_box_and_of_its_plane_have_names_of_their_own() {
    let mut status = coordinating();
    status.counters.received = 5;
    status.counters.reasons.count(PacketReason::Tag);
    status.of_software.take_overs = 2;
    status.of_socket.sent = 9;
    status.slow = Arc::new(SlowStatus {
        of_plane: [("received", 4), ("instances_assigned", 3), ("none", 7)].into(),
        surroundings: Surroundings {
            is_engaged: true,
            trouble: Some("it is gone".to_owned()),
        },
    });
    let said = report(Role::Coordinator, &status);
    for (name, count) in [
        ("switch_received", 5),
        ("switch_tag", 1),
        ("switch_take_overs", 2),
        ("plane_received", 4),
        ("plane_instances_assigned", 3),
        ("plane_socket_sent", 9),
    ] {
        assert_eq!(said.counters.get(name), Some(&count), "{name}");
    }
    assert!(!said.counters.contains_key("plane_none"));
    assert_eq!(
        (said.plane.state.as_str(), said.faults.len()),
        ("engaged", 1)
    );
}

#[test]
fn no_counter_is_declared_twice() {
    let mut seen = BTreeSet::new();
    declared_counters(&mut |counter, _| assert!(seen.insert(counter.name), "{}", counter.name));
    assert!(seen.len() > 25);
}

#[test]
fn two_acceptors_of_one_number_show_on_the_coordinators_page_and_on_the_ones_that_hears_nothing() {
    let from = "10.0.0.9:7500".parse().expect("an address");
    let status = SwitchStatus {
        unreached: Some((1, from)),
        ..coordinating()
    };
    let said = report(Role::Coordinator, &status);
    assert!(said.faults[0].contains("acceptor 1 announces itself from 10.0.0.9:7500"));

    let mut elsewhere = identity(Role::Acceptor);
    elsewhere.elsewhere = Some(from);
    let mut status = SwitchStatus {
        standing: Some(Standing::Votes),
        ..coordinating()
    };
    let faults =
        |status: &SwitchStatus| SwitchReport::new(&elsewhere, status, Instant::now()).faults;
    let [fault] = &faults(&status)[..] else {
        panic!("{:?}", faults(&status));
    };
    assert!(fault.contains("10.0.0.9:7500") && fault.contains("has it at 10.0.0.2:7500"));
    status.of_socket.received = 1;
    assert!(faults(&status).is_empty());

    // Somebody knows of a later life: it does not count, whatever it does.
    status.of_software.later_lives = 1;
    let said = report(Role::Acceptor, &status);
    assert!(!said.ready && said.faults[0].contains("later life"));
}
