//! What the plane is lent, and until when.
use super::*;
use crate::server::origin::Origin;
use crate::server::plane_turn::tests::{apply, fast_leader};
use crate::server::route_outcome::RouteOutcome;
use quorumwire_control::Now;
use quorumwire_interfaces::{Application as _, Applied, Index, LogTime};
use quorumwire_kv::{Command as Write, MemoryChange};

#[test]
fn a_plane_is_lent_what_it_may_answer_and_until_when() {
    let (mut core, plane) = fast_leader();
    let leave_and_answers = || plane.leave_and_answers();
    core.service.read_lease.reads = true;
    core.lend_to_plane();
    let (leave, answers) = leave_and_answers();
    assert_eq!(leave.applied, core.group.applied);
    assert_eq!(leave.writes_until, Duration::MAX);
    assert_eq!(
        Some(Now(leave.reads_until)),
        core.group.replica.lease_until()
    );
    assert!(leave.reads_until > core.group.now.0 && answers.is_empty());

    apply(&mut core, "set a 0 0 1\r\n1\r\n");
    apply(&mut core, "set with-an-end 0 60 1\r\n1\r\n");
    let long = format!("set long 0 0 100\r\n{}\r\n", "x".repeat(100));
    apply(&mut core, &long);
    let deadline = core.group.now.0 + Duration::from_mins(1);
    core.lend_to_plane();
    let (leave, answers) = leave_and_answers();
    assert_eq!(leave.applied, core.group.applied);
    // A tick comes first from then on; the log's time may run faster by a tenth.
    let early = deadline.saturating_sub(leave.writes_until);
    assert!(
        early > Duration::from_secs(5) && early < Duration::from_secs(6),
        "{early:?}"
    );
    let shown: Vec<_> = answers.iter().collect();
    let a = b"VALUE a 0 1\r\n1\r\nEND\r\n".to_vec();
    assert_eq!(shown, [(&b"a".to_vec(), &a)]);

    apply(&mut core, "delete a\r\n");
    core.group.clock.barrier = core.group.applied.next();
    core.draining = true;
    core.lend_to_plane();
    let (leave, answers) = leave_and_answers();
    assert!(answers.is_empty());
    assert!(
        leave.reads_until > core.group.now.0,
        "no tick ends what it has"
    );
    assert_eq!(leave.writes_until, Duration::ZERO, "it takes no more");
    core.group.clock.barrier = Index(0);
    core.group.term_start = core.group.applied.next();
    core.lend_to_plane();
    assert_eq!(
        leave_and_answers().0.reads_until,
        Duration::ZERO,
        "an earlier term's entry"
    );
    core.group.term_start = Index(0);
    core.lend_to_plane();
    assert!(leave_and_answers().0.reads_until > Duration::ZERO);
    core.service.read_lease.reads = false;
    core.lend_to_plane();
    assert_eq!(
        leave_and_answers().0.reads_until,
        Duration::ZERO,
        "switched off"
    );
}

/// The plane answers before the store could refuse.
#[test]
fn a_plane_takes_no_sets_with_a_memory_limit_or_one_on_its_way() {
    let (mut core, plane) = fast_leader();
    let writes_until = |core: &mut Core| {
        core.lend_to_plane();
        plane.leave_and_answers().0.writes_until
    };
    assert_eq!(writes_until(&mut core), Duration::MAX);
    core.limit_is_on_its_way();
    assert_eq!(
        plane.leave_and_answers().0.writes_until,
        Duration::ZERO,
        "before it is in the log"
    );
    apply(&mut core, "cache_memlimit 8\r\n");
    assert_eq!(writes_until(&mut core), Duration::ZERO, "it holds");
    let from = SocketAddr::from(([192, 0, 2, 1], 1));
    assert!(!core.plane_takes_memcached(from, b"\0\0\0\0\0\x01\0\0set a 0 0 1\r\n1\r\n"));
    let none = Write::Memory(MemoryChange {
        limit_bytes: Some(0),
        ..MemoryChange::default()
    });
    let entry = Applied {
        number: core.group.applied.next().0,
        log_time: LogTime(core.group.leader_time_ms()),
        awaits_time: false,
        command: &encoded(&none),
    };
    core.group.store.inner_mut().apply(&entry, &mut Vec::new());
    let until = writes_until(&mut core);
    assert_eq!(until, Duration::ZERO, "another may be on its way");
    begin_next_term(&mut core);
    assert_eq!(writes_until(&mut core), Duration::MAX, "in the next term");
    core.group.term_start = core.group.applied.next();
    assert_eq!(
        writes_until(&mut core),
        Duration::ZERO,
        "an earlier leader's"
    );
}

#[test]
fn a_memory_limit_that_waits_since_the_last_fast_term_is_remembered() {
    let (mut core, _) = fast_leader();
    assert!(core.stores_every_set());
    let origin = Origin::Admin(core.group.next_ticket());
    let change = Write::Memory(MemoryChange {
        limit_bytes: Some(1),
        ..MemoryChange::default()
    });
    let routed = core.write_or_limit(origin, &change);
    assert!(matches!(routed, RouteOutcome::Pending), "the plane is full");
    begin_next_term(&mut core);
    assert!(!core.stores_every_set());
}

/// As if what was put on its way until now had been in the term before.
fn begin_next_term(core: &mut Core) {
    core.service.limit_changed_in = core.service.limit_changed_in.map(|term| Term(term.0 - 1));
    core.group.clock.term = Term(0);
    core.group.begin_term();
    core.group.term_start = Index(0);
}

fn encoded(command: &Write<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    bytes
}
