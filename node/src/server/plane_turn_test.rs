//! What the server makes of a plane that has no room, and of one that is being stopped. The plane is a
//! few lines here, so that the moments between which others cannot step are held still.
use super::*;
use crate::server::journal::Journal;
use crate::server::kv::{Core, KeyValue};
use crate::server::origin::{Origin, Proposal};
use crate::server::plane::plane_options;
use crate::server::route_outcome::RouteOutcome;
use crate::server::start::tests::Alone as Host;
use bytes::Bytes;
use quorumwire_control::{Config, Now, Output, Peer, PersistedState, Replica, Role};
use quorumwire_group::{self as group, Gate};
use quorumwire_interfaces::{
    Answer, Application as _, Command, CounterSink, DataPlane, Endpoint, EntryKind, GroupId,
    Incarnation, Index, Leave, Limits, Lineage, LogTime, Offload, PlaneEntry, PlaneError,
    PlaneEvent, PlaneKeys, ReplicaId, Term,
};
use quorumwire_kv::Store;
use quorumwire_kv::memcached::{Parsed, Request, parse};
use quorumwire_sessions::LogPosition;
use quorumwire_wire::{RecordKind, Tick, commands_of};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const HEARTBEAT: Duration = Duration::from_millis(20);
/// Heartbeats in which a group of one is elected and begins a fast term.
const BEGINNING_HEARTBEATS_MAX: usize = 50;

/// Where clients of the plane are.
const ASKED_FROM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);

/// What the test sees and sets of the plane.
#[derive(Default)]
struct Inside {
    registers: Registers,
    /// What it took.
    given: Vec<(EntryKind, Vec<u8>)>,
    /// It takes one command at a time, and gives the index behind it to a client of its own.
    has_clients: bool,
    /// Those indexes.
    asked: BTreeSet<Index>,
    /// Commands it takes before it is full.
    room: usize,
    /// It commits what is persisted, and not what is stored.
    held: bool,
    /// The last entry the host has polled.
    polled: Index,
    polled_at: Option<Now>,
    /// The times that ticks have told.
    ticks: Vec<u64>,
    /// What it may do for memcached clients, and the answers it has.
    leave: Leave,
    answers: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Default)]
pub struct Alone(Arc<Mutex<Inside>>);

impl Alone {
    /// Until when it may do what for its clients, and the answers that it has for them.
    pub fn leave_and_answers(&self) -> (Leave, BTreeMap<Vec<u8>, Vec<u8>>) {
        let inside = self.0.lock().unwrap();
        (inside.leave, inside.answers.clone())
    }

    /// Stores and commits as many entries; the client of each has its answer at once. If they are to be
    /// persisted first, it only stores them.
    fn commit(&self, count: u64) -> Index {
        let mut inside = self.0.lock().unwrap();
        inside.registers.last_index.0 += count;
        if !inside.held {
            inside.registers.commit_index = inside.registers.last_index;
        }
        inside.registers.last_index
    }
}

impl Offload for Alone {
    fn take_datagram(&mut self, _: SocketAddr, _: &[u8]) -> bool {
        self.commit(1);
        true
    }

    fn allow(&mut self, leave: &Leave) {
        self.0.lock().unwrap().leave = *leave;
    }

    fn answer_bytes_max(&self) -> usize {
        100
    }

    fn keep_answer(&mut self, question: &[u8], answer: Option<&[u8]>) {
        let answers = &mut self.0.lock().unwrap().answers;
        match answer {
            Some(answer) => answers.insert(question.to_vec(), answer.to_vec()),
            None => answers.remove(question),
        };
    }

    fn forget_answers(&mut self) {
        self.0.lock().unwrap().answers.clear();
    }
}

impl DataPlane for Alone {
    fn limits(&self) -> Limits {
        Limits {
            payload_bytes_max: 1024,
            replicas_max: 7,
            ring_slots: 64,
            authenticates: true,
        }
    }

    fn set_keys(&mut self, _: &PlaneKeys) {}

    fn engage(&mut self, grant: &quorumwire_interfaces::Grant) -> Result<(), PlaneError> {
        let mut inside = self.0.lock().unwrap();
        inside.registers = Registers {
            term: grant.term,
            last_index: grant.last_index,
            last_term: grant.last_term,
            commit_index: grant.commit_index,
            ..Registers::default()
        };
        inside.polled = grant.last_index;
        inside.held = grant.held;
        Ok(())
    }

    fn disengage(&mut self) -> Registers {
        self.registers()
    }

    fn set_peer(&mut self, _: u8, _: &Endpoint) {}

    fn registers(&self) -> Registers {
        self.0.lock().unwrap().registers
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        let mut inside = self.0.lock().unwrap();
        let at_once = if inside.has_clients {
            1
        } else {
            commands.len()
        };
        let taken = at_once.min(inside.room);
        if taken == 0 {
            return Err(PlaneError::Full);
        }
        inside.room -= taken;
        let given = commands[..taken].iter();
        inside
            .given
            .extend(given.map(|it| (it.kind, it.payload.to_vec())));
        let ticks = commands[..taken]
            .iter()
            .filter(|it| it.kind == EntryKind::Tick);
        let times = ticks.map(|it| Tick::decode(it.payload).unwrap());
        inside.ticks.extend(times.map(|it| it.log_time_ms));
        let others = u64::from(inside.has_clients);
        drop(inside);
        let first = self.registers().last_index.next();
        let last = self.commit(taken as u64 + others);
        if others > 0 {
            self.0.lock().unwrap().asked.insert(last);
        }
        Ok((first, taken))
    }

    fn offload(&mut self) -> Option<&mut dyn Offload> {
        Some(self)
    }

    fn heartbeat(&mut self, _: u64) -> Result<(), PlaneError> {
        Ok(())
    }

    fn poll(&mut self, _: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let mut inside = self.0.lock().unwrap();
        inside.polled_at = Some(clock::now());
        let first = inside.polled.0 + 1;
        for index in first..=inside.registers.last_index.0 {
            sink(PlaneEvent::Entry(PlaneEntry {
                index: Index(index),
                term: inside.registers.term,
                command: Command {
                    kind: EntryKind::Command,
                    session: 0,
                    sequence: 0,
                    payload: b"",
                },
                requester: inside.asked.contains(&Index(index)).then_some(ASKED_FROM),
            }));
        }
        inside.polled = inside.registers.last_index;
        0
    }

    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.0.lock().unwrap().registers.commit_index = upto;
        Ok(())
    }

    fn release(&mut self, _: Index) -> Result<(), PlaneError> {
        Ok(())
    }

    fn answer(&mut self, _: &Answer<'_>) {}

    fn send_foreign(&mut self, _: SocketAddr, _: &[u8]) {}

    fn counters(&self, _: CounterSink<'_>) {}
}

pub fn config() -> Config {
    Config {
        group: GroupId(0),
        me: Peer {
            id: ReplicaId(0),
            incarnation: Incarnation(1),
        },
        peer_address: "host0:7400".to_owned(),
        initial_members: vec![ReplicaId(0)],
        lineage: Lineage::default(),
        new_lineage: Lineage(1),
        seed: 1,
        election_timeout: 5 * HEARTBEAT,
        lease: 5 * HEARTBEAT,
        heartbeat_interval: HEARTBEAT,
        clock_drift_ppm: 0,
        lease_reads: true,
        uncommitted_bytes_max: 1 << 20,
        appends_in_flight_max: 4,
        append_bytes_in_flight_max: 1 << 20,
        snapshot_chunk_bytes_max: 1 << 20,
        log_tail_bytes: 100,
        log_kept_bytes_max: 1 << 20,
        waiting_requests_max: 16,
        plane: true,
        engage_interval: HEARTBEAT,
        engage_interval_max: 8 * HEARTBEAT,
        engage_window: 8,
    }
}

/// Replica 0, before it has heard or done anything; planes are the caller's.
pub fn core_of_one() -> Core {
    core_with(config())
}

/// The same with this on its disk.
pub fn core_of(stored: PersistedState) -> Core {
    core_from(config(), stored)
}

pub fn core_with(config: Config) -> Core {
    core_from(config, PersistedState::default())
}

fn core_from(config: Config, stored: PersistedState) -> Core {
    let now = Now(Duration::from_secs(1));
    let replica = Replica::new(config, now, stored).unwrap();
    Core::new(
        KeyValue::default(),
        replica,
        Journal::new(None),
        GroupId(0),
        now,
    )
}

/// Nobody goes there.
fn somewhere() -> Endpoint {
    Endpoint::new("alone").expect("it is short")
}

/// Entries are held until they are durable, or not.
fn plane_of(alone: &Alone, held: bool) -> Plane {
    let place = Box::new(alone.clone());
    Plane::new(
        place,
        plane_options(GroupId(0), somewhere(), held, 0, Store::work_max_of),
    )
}

/// A group of one that leads a software term, and has applied the beginning of it.
pub fn leader_of_one() -> Core {
    let mut core = core_with(Config {
        plane: false,
        ..config()
    });
    for _ in 0..BEGINNING_HEARTBEATS_MAX {
        core.group.now.0 += HEARTBEAT;
        core.group.step(Input::Timeout);
        core.group.applied = carry_out(&mut core).max(core.group.applied);
        core.group.step(Input::Applied(core.group.applied));
        if core.group.leads() && core.group.applied > Index(0) {
            core.group.begin_term();
            return core;
        }
    }
    panic!("no leader");
}

/// A group of one that leads a fast term.
pub fn fast_leader() -> (Core, Alone) {
    let mut core = core_of_one();
    let alone = Alone::default();
    core.group.plane = Some(plane_of(&alone, false));
    core.hosting = Some(Hosting::new("alone", somewhere()));
    for _ in 0..BEGINNING_HEARTBEATS_MAX {
        core.group.now.0 += HEARTBEAT;
        core.group.step(Input::Timeout);
        core.group.applied = carry_out(&mut core).max(core.group.applied);
        core.group.step(Input::Applied(core.group.applied));
        if core.group.leads_fast_term() {
            core.group.begin_term();
            return (core, alone);
        }
    }
    panic!("no fast term");
}

/// Does what the replica asks for, but applies nothing; the last index it says is committed.
pub fn carry_out(core: &mut Core) -> Index {
    let mut committed = Index(0);
    loop {
        core.group
            .replica
            .flush(core.group.now, &mut core.group.outputs);
        if core.group.outputs.is_empty() {
            return committed;
        }
        for output in std::mem::take(&mut core.group.outputs) {
            match output {
                Output::Persist {
                    ticket,
                    hard_state,
                    entries,
                } => {
                    let done = core.journal.persist(ticket, hard_state, &entries).unwrap();
                    core.group.step(Input::Persisted(done.unwrap()));
                }
                Output::Committed(upto) => committed = committed.max(upto),
                Output::PlanePersisted(upto) => {
                    let plane = core.group.plane.as_mut().unwrap();
                    plane.set_persisted(upto).unwrap();
                }
                Output::Engage(engage) => core.engage_plane(&engage),
                Output::Disengage(reason) => core.disengage_plane(reason),
                Output::RoleChanged(change) => {
                    let returned = core.group.role_changed(&change, 5 * HEARTBEAT);
                    assert!(returned.is_empty());
                }
                Output::Send { .. }
                | Output::Read(..)
                | Output::Done(_)
                | Output::Refused(..)
                | Output::Truncated(_)
                | Output::OtherLineage { .. }
                | Output::MembershipChanged(_)
                | Output::ReadSnapshot { .. }
                | Output::StoreSnapshotChunk { .. }
                | Output::InstallSnapshot { .. }
                | Output::TakeSnapshot
                | Output::PlaneHeartbeat { .. } => {}
            }
        }
    }
}

/// Polls the plane, as a server does.
fn poll(core: &mut Core) {
    let mut host = Host::start(&[]);
    std::mem::swap(&mut *host.server.core, core);
    group::poll_plane(&mut host.server);
    std::mem::swap(&mut *host.server.core, core);
}

fn write(core: &mut Core, number: u64) -> RouteOutcome {
    core.write(Origin::Service(number), 1, |bytes| {
        bytes.extend_from_slice(b"x");
    })
}

fn index_of(core: &Core, number: u64) -> Option<Index> {
    let its = |proposal: &&Proposal| proposal.origin == Origin::Service(number);
    core.group.proposals.iter().find(its).map(|it| it.index)
}

/// Else a promise would begin before the leader was heard, and end before the leader thinks it does.
#[test]
fn what_a_plane_has_heard_was_heard_before_now() {
    let (mut core, alone) = fast_leader();
    let before = core.group.now;
    poll(&mut core);
    let polled_at = alone.0.lock().unwrap().polled_at.expect("polled");
    assert!(before < polled_at && polled_at <= core.group.now);
    core.group.now = before;
    core.disengage_plane(LeaveReason::Transfer);
    assert!(polled_at <= core.group.now);
}

/// Else it would wait until something else happens: its round begins when the replica is flushed.
#[test]
fn a_read_that_takes_a_round_is_not_left_lying() {
    let mut core = core_with(Config {
        lease_reads: false,
        plane: false,
        ..config()
    });
    for _ in 0..BEGINNING_HEARTBEATS_MAX {
        core.group.now.0 += HEARTBEAT;
        core.group.step(Input::Timeout);
        carry_out(&mut core);
        core.group.wants_flush = false;
    }
    assert!(core.group.leads() && !core.group.has_unflushed());
    let ticket = core.group.next_ticket();
    core.group.ask_read_index(ticket);
    assert!(core.group.outputs.is_empty(), "it takes a round");
    assert!(core.group.has_unflushed());
}

/// Else it would wait until something else happens: a turn takes requests in once more behind the plane's own
/// part of it.
#[test]
fn what_came_after_the_last_submission_is_not_left_lying() {
    let (mut core, alone) = fast_leader();
    let has_unoffered = |core: &Core| core.group.plane.as_ref().unwrap().has_unoffered();
    alone.0.lock().unwrap().room = 1;
    core.group.submit_waiting();
    alone.0.lock().unwrap().room = 1;
    core.group.plane.as_mut().unwrap().has_more = false;
    assert!(!has_unoffered(&core) && !core.group.plane_has_more());
    write(&mut core, 1);
    assert!(has_unoffered(&core) && core.group.plane_has_more());
    core.group.submit_waiting();
    assert!(!has_unoffered(&core));
    write(&mut core, 2);
    core.group.submit_waiting();
    let log = core.group.plane.as_ref().unwrap();
    assert!(!log.is_idle(), "there was no room for it");
    assert!(!log.has_unoffered(), "it waits for room, not for a turn");
}

/// Else it would wait until something else happens: no packet brings word of what this replica stores and
/// persists itself.
#[test]
fn what_waits_for_this_replica_is_not_left_lying() {
    for (replicas, held, needs_us) in [(1, false, true), (3, false, false), (3, true, true)] {
        let alone = Alone::default();
        alone.0.lock().unwrap().room = 1;
        let mut plane = plane_of(&alone, held);
        let peer = |id| Peer {
            id: ReplicaId(id),
            incarnation: Incarnation(1),
        };
        let engaged = plane.engage(&Engage {
            group: GroupId(0),
            term: Term(1),
            last_index: Index(0),
            last_term: Term(0),
            commit_index: Index(0),
            me: 0,
            leader: 0,
            voters: (0..replicas).map(peer).collect(),
            quorum: 1,
        });
        engaged.unwrap();
        let now = Now(Duration::from_secs(1));
        plane.enqueue(Bytes::from_static(b"x"), Origin::Service(1), now);
        plane
            .submit(
                Tick::default(),
                Term(0),
                &mut quorumwire_group::Proposals::default(),
            )
            .unwrap();
        assert_eq!(plane.has_more, needs_us, "{replicas}, {held}: submitted");
        plane.poll();
        assert!(!plane.has_more);
        assert!(plane.take_datagram("127.0.0.1:2".parse().unwrap(), b""));
        assert_eq!(plane.has_more, needs_us, "{replicas}, {held}: taken");
        plane.poll();
        plane.set_persisted(plane.registers().last_index).unwrap();
        assert_eq!(plane.has_more, held, "it is committed");
    }
}

/// A command of the plane's own clients may have come before it meanwhile, whose life counts from it.
#[test]
fn a_tick_that_waited_tells_when_it_leaves() {
    let (mut core, alone) = fast_leader();
    let begun = core.group.leader_time_ms();
    for number in 1..=3 {
        core.group.now.0 += Duration::from_millis(50);
        assert!(matches!(write(&mut core, number), RouteOutcome::Pending));
        core.group.submit_waiting();
    }
    core.group.now.0 += Duration::from_millis(50);
    alone.0.lock().unwrap().room = 10;
    core.group.submit_waiting();
    assert_eq!(alone.0.lock().unwrap().ticks, [begun + 200]);
    assert!(index_of(&core, 3).is_some());
}

/// Seven commands that have to wait, of which three fit an entry.
fn seven_wait(core: &mut Core, alone: &Alone) {
    const LENGTH: usize = 300;
    alone.0.lock().unwrap().room = 0;
    for number in 1..=7_u8 {
        let routed = core.write(Origin::Service(u64::from(number)), LENGTH, |bytes| {
            bytes.extend_from_slice(&[number; LENGTH]);
        });
        assert!(matches!(routed, RouteOutcome::Pending));
    }
}

/// Who waits, by the entry (from the first one's index on) and the position in it.
fn waiting(core: &Core) -> Vec<(u64, u16, Origin)> {
    let first = core.group.proposals.iter().next().unwrap().index.0;
    let place = |it: &Proposal| (it.index.0 - first, it.position, it.origin);
    core.group.proposals.iter().map(place).collect()
}

/// What waits when there is room again shares entries, and each command has somebody who waits.
#[test]
fn commands_that_wait_share_entries_and_keep_their_order() {
    let (mut core, alone) = fast_leader();
    seven_wait(&mut core, &alone);
    // There is room for the tick and one entry now, for the others later.
    let mut found = Vec::new();
    for (room, left) in [(2, 4), (2, 0)] {
        let before = alone.0.lock().unwrap().given.len();
        alone.0.lock().unwrap().room = room;
        core.group.submit_waiting();
        assert_eq!(core.group.plane.as_ref().unwrap().waiting().count(), left);
        for (kind, payload) in &alone.0.lock().unwrap().given[before..] {
            if *kind == EntryKind::Tick {
                continue;
            }
            let is_bundle = *kind == EntryKind::Bundle;
            let kind = if is_bundle {
                RecordKind::Bundle
            } else {
                RecordKind::Command
            };
            let commands = commands_of(kind, payload).map(|(_, command)| command[0]);
            found.push(commands.collect::<Vec<_>>());
        }
    }
    assert_eq!(found, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
    let places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)];
    let expected = (1..).zip(places);
    let expected = expected.map(|(number, (entry, at))| (entry, at, Origin::Service(number)));
    assert_eq!(waiting(&core), expected.collect::<Vec<_>>());
    let counters = core.group.plane.as_ref().unwrap().counters();
    assert_eq!((counters.bundles, counters.commands_bundled), (2, 6));
}

/// A plane may take less at once than it has room for, and others' commands come in between.
#[test]
fn each_entry_that_is_taken_has_the_index_it_was_given() {
    let (mut core, alone) = fast_leader();
    seven_wait(&mut core, &alone);
    alone.0.lock().unwrap().room = 10;
    alone.0.lock().unwrap().has_clients = true;
    core.group.submit_waiting();
    let entries: Vec<_> = waiting(&core).into_iter().map(|it| (it.0, it.1)).collect();
    let expected = [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2), (4, 0)];
    assert_eq!(entries, expected);
}

/// Entries settle who waits in the order of the log.
#[test]
fn who_asked_through_the_plane_waits_among_who_submitted() {
    let (mut core, alone) = fast_leader();
    alone.0.lock().unwrap().room = 10;
    alone.0.lock().unwrap().has_clients = true;
    for number in 1..=3 {
        assert!(matches!(write(&mut core, number), RouteOutcome::Pending));
        core.group.submit_waiting();
    }
    assert_eq!(
        core.group.proposals.len(),
        3,
        "the others are not known yet"
    );
    poll(&mut core);
    let asked = alone.0.lock().unwrap().asked.len();
    assert_eq!(core.group.proposals.len(), 3 + asked);
    let places: Vec<_> = core
        .group
        .proposals
        .iter()
        .map(Proposal::log_position)
        .collect();
    assert!(asked >= 3 && places.is_sorted(), "{places:?}");
}

#[test]
fn a_write_that_shows_time_brings_a_tick_however_new_the_last_is() {
    let (mut core, alone) = fast_leader();
    alone.0.lock().unwrap().room = 10;
    let begun = core.group.leader_time_ms();
    for (ms, exact, ticks) in [(0, false, 1), (1, false, 1), (1, true, 2), (0, true, 2)] {
        core.group.now.0 += Duration::from_millis(ms);
        if exact {
            core.group.want_exact_time();
        }
        assert!(matches!(write(&mut core, 1), RouteOutcome::Pending));
        core.group.submit_waiting();
        assert_eq!(alone.0.lock().unwrap().ticks.len(), ticks);
    }
    assert_eq!(alone.0.lock().unwrap().ticks, [begun, begun + 2]);
}

#[test]
fn a_write_does_not_pass_those_that_wait_since_the_fast_term() {
    let (mut core, _) = fast_leader();
    assert!(matches!(write(&mut core, 1), RouteOutcome::Pending));
    core.group.submit_waiting();
    assert_eq!(index_of(&core, 1), None, "the plane is full");

    core.group.step(Input::PlaneFailed);
    carry_out(&mut core);
    assert!(!core.group.leads_fast_term());
    assert_eq!(core.group.replica.role(), Role::Leader);
    core.group.stalled = false;
    assert!(matches!(write(&mut core, 2), RouteOutcome::Stalled));
    assert!(core.group.stalled, "it is offered again");
    assert_eq!(index_of(&core, 2), None);

    assert!(core.group.submit_to_plane().is_empty());
    assert!(matches!(write(&mut core, 2), RouteOutcome::Pending));
    assert!(index_of(&core, 1).is_some());
    assert!(index_of(&core, 1) < index_of(&core, 2));
}

#[test]
fn a_read_shows_what_a_plane_has_answered_that_is_being_stopped() {
    let (mut core, plane) = fast_leader();
    let before = core.group.applied;
    let answered = plane.commit(1);
    core.group.step(Input::PlaneFailed);
    assert!(
        !core.group.leads_fast_term(),
        "it is told to stop, and has not"
    );
    // The write is answered, and the host has not seen it. A read that comes now must show it.
    let must_apply = core.group.read_barrier();

    assert_eq!(carry_out(&mut core), answered);
    assert_eq!(
        core.group.applied, before,
        "it is committed, not yet applied"
    );
    match core.group.gate(must_apply, true, b"get a") {
        Gate::Wait(index) => assert_eq!(index, answered),
        Gate::Open | Gate::Overdue => panic!("a stale read"),
        Gate::NoLease | Gate::NotLeader => panic!("a group of one has a lease"),
    }
}

#[test]
fn registers_of_an_earlier_term_say_nothing() {
    let (mut core, plane) = fast_leader();
    core.group.step(Input::PlaneFailed);
    carry_out(&mut core);
    plane.0.lock().unwrap().registers.term = Term(core.group.replica.term().0 - 1);
    plane.commit(5);
    assert_eq!(core.group.plane_registers(), None);
    assert_eq!(core.group.last_index(), core.group.replica.last_index());
}

/// Applies a memcached client's write as if it had come out of the log.
pub fn apply(core: &mut Core, request: &str) {
    let Parsed::Request {
        request: Request::Write { command, .. },
        ..
    } = parse(request.as_bytes())
    else {
        panic!("{request:?} is no write");
    };
    let mut encoded = Vec::new();
    command.encode(&mut encoded);
    core.group.applied.0 += 1;
    let position = LogPosition {
        index: core.group.applied,
        log_time: LogTime(core.group.leader_time_ms()),
    };
    core.group
        .store
        .command(position, &encoded, &mut Vec::new());
}
