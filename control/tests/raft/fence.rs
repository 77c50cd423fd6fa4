//! What waits for a plane to stop is bounded, keeps its order, and what does not fit is refused or
//! counted.
use crate::turn::{disk_and_plane, turn as turn_of};
use crate::world::{ELECTION_TIMEOUT, GROUP, HEARTBEAT, LINEAGE, config};
use bytes::{Bytes, BytesMut};
use quorumwire_control::{
    Body, HardState, Input, LeaveReason, Message, Now, Output, Peer, PersistedState, Promise,
    Refusal, Replica, Role, SnapshotMeta, Ticket,
};
use quorumwire_interfaces::{Incarnation, Index, LogTime, Registers, ReplicaId, Term};
use quorumwire_wire::{
    CommitQuorum, Member, MemberRole, Membership, RecordKind, begin_record, finish_record,
};
use std::time::Duration;

/// A group of one that leads a fast term.
fn fast_leader() -> (Replica, Now) {
    let mut config = config(0, 1, &[0]);
    config.plane = true;
    let mut now = Now(ELECTION_TIMEOUT);
    let mut replica = Replica::new(config, now, PersistedState::default()).expect("sound");
    for _ in 0..20 {
        now.0 += HEARTBEAT;
        turn(&mut replica, now, Input::Timeout);
    }
    assert!(replica.fast_term().is_some_and(|fast| fast.leading));
    (replica, now)
}

/// One input and what follows at once; the plane never stops by itself.
fn turn(replica: &mut Replica, now: Now, input: Input) -> Vec<Output> {
    turn_of(replica, now, input, |output| {
        if let Output::Committed(index) = output {
            return Some(Input::Applied(*index));
        }
        disk_and_plane(output)
    })
}

fn from_elsewhere(term: u64, records: Vec<Bytes>) -> Input {
    Input::Message {
        from: Peer {
            id: ReplicaId(1),
            incarnation: Incarnation(1),
        },
        message: Message {
            term: Term(term),
            body: Body::Append {
                previous_index: Index(9),
                previous_term: Term(9),
                commit_index: Index(0),
                round: 1,
                records,
            },
        },
    }
}

fn begin_to_stop(replica: &mut Replica, now: Now) {
    let outputs = turn(replica, now, from_elsewhere(50, Vec::new()));
    let told = |o: &Output| matches!(o, Output::Disengage(LeaveReason::HigherTerm));
    assert!(outputs.iter().any(told), "{outputs:?}");
    let before = replica.term();
    assert!(
        before < Term(50),
        "no new term before the plane has stopped"
    );
}

fn stop(replica: &mut Replica, now: Now) -> Vec<Output> {
    let registers = Registers {
        term: replica.term(),
        last_index: replica.last_index(),
        ..Registers::default()
    };
    turn(replica, now, Input::Disengaged { registers })
}

#[test]
fn proposals_go_to_the_plane_and_wait_while_it_stops() {
    let (mut replica, now) = fast_leader();
    let proposed = replica.propose(RecordKind::Command, |_| {});
    assert_eq!(proposed, Err(Refusal::FastTerm));
    begin_to_stop(&mut replica, now);
    let proposed = replica.propose(RecordKind::Command, |_| {});
    assert!(
        matches!(proposed, Err(Refusal::Busy { .. })),
        "{proposed:?}"
    );
    assert_eq!(
        replica.lease_read(now),
        None,
        "the plane may have committed more"
    );
}

#[test]
fn inputs_that_wait_are_bounded_by_count() {
    let (mut replica, now) = fast_leader();
    begin_to_stop(&mut replica, now);
    let mut refused = 0;
    for number in 0..6_000 {
        let outputs = turn(&mut replica, now, Input::Read(Ticket(number)));
        refused += outputs
            .iter()
            .filter(|o| matches!(o, Output::Refused(_, Refusal::Busy { .. })))
            .count();
        turn(&mut replica, now, from_elsewhere(40, Vec::new()));
    }
    let counters = replica.status().fast_counters;
    assert_eq!(counters.fence_waited, 4096);
    assert_eq!(refused as u64 + counters.fence_dropped + 4096, 12_001);
    // All that waited is answered in its order, then the replica takes part in the new term.
    let outputs = stop(&mut replica, now);
    assert_eq!(replica.term(), Term(50));
    let answered = outputs.iter().filter_map(|output| {
        let (Output::Refused(ticket, _) | Output::Read(ticket, _)) = output else {
            return None;
        };
        Some(*ticket)
    });
    let answered: Vec<Ticket> = answered.collect();
    assert_eq!(answered.len() + refused, 6_000);
    assert!(answered.is_sorted(), "in the order in which they came");
}

#[test]
fn inputs_that_wait_are_bounded_by_bytes() {
    let (mut replica, now) = fast_leader();
    begin_to_stop(&mut replica, now);
    let big = Bytes::from(vec![0; 1 << 20]);
    for _ in 0..20 {
        turn(&mut replica, now, from_elsewhere(50, vec![big.clone()]));
    }
    let counters = replica.status().fast_counters;
    assert_eq!((counters.fence_waited, counters.fence_dropped), (17, 4));
    stop(&mut replica, now);
    assert_ne!(replica.role(), Role::Leader);
}

/// What a replica of the group {0, 1, 2}, all in their first lives, has stored.
fn stored_of_three() -> PersistedState {
    let member = |id| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
        peer_address: format!("host{id}:7400"),
        role: MemberRole::Voter,
    };
    let snapshot = SnapshotMeta {
        last_index: Index(1),
        last_term: Term(1),
        membership: Membership {
            members: vec![member(0), member(1), member(2)],
            quorum: CommitQuorum::Majority,
            lineage: LINEAGE,
        },
        membership_index: Index(1),
        log_time: LogTime(0),
    };
    PersistedState {
        hard_state: HardState {
            term: Term(1),
            vote: None,
            commit_index: Index(1),
        },
        snapshot: Some(snapshot),
        entries: Vec::new(),
        new_life: false,
    }
}

/// Whoever hears others often must not put off, each time, what is due by its own clock.
#[test]
fn a_lost_life_says_so_however_much_it_hears() {
    let mut now = Now(ELECTION_TIMEOUT);
    let mut replica = Replica::new(config(2, 2, &[]), now, stored_of_three()).expect("sound");
    let other = Peer {
        id: ReplicaId(1),
        incarnation: Incarnation(1),
    };
    turn(&mut replica, now, Input::PeerUp(other, Promise::default()));
    let ends = Now(now.0 + 3 * ELECTION_TIMEOUT);
    let mut said = 0;
    while now < ends {
        now.0 += HEARTBEAT;
        let message = Message {
            term: Term(0),
            body: Body::Fresh {
                to_incarnation: Incarnation(2),
                peer_address: "host1:7400".to_owned(),
                join: true,
                initial_members: Vec::new(),
            },
        };
        let input = Input::Message {
            from: other,
            message,
        };
        let mut outputs = turn(&mut replica, now, input);
        if replica.next_wake() <= now {
            outputs.extend(turn(&mut replica, now, Input::Timeout));
            assert!(replica.next_wake() > now, "it would spin");
        }
        let fresh = |o: &&Output| {
            matches!(o, Output::Send { to, message }
            if *to == other && matches!(message.body, Body::Fresh { .. }))
        };
        said += outputs.iter().filter(fresh).count();
    }
    assert!(said >= 3, "said so {said} times");
}

/// The leader counted on the answer to its Append, whatever the log was then.
#[test]
fn the_first_entry_ends_no_promise() {
    let members = |id| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
        peer_address: format!("host{id}:7400"),
        role: MemberRole::Voter,
    };
    let membership = Membership {
        members: vec![members(0), members(1), members(2)],
        quorum: CommitQuorum::Majority,
        lineage: LINEAGE,
    };
    let mut record = BytesMut::new();
    let begun = begin_record(
        &mut record,
        RecordKind::Membership,
        GROUP,
        Term(1),
        Index(1),
    );
    record.extend_from_slice(&membership.encode());
    finish_record(&mut record, begun);
    let mut config = config(2, 1, &[0, 1, 2]);
    config.lease = 3 * HEARTBEAT;
    let mut now = Now(ELECTION_TIMEOUT);
    let mut replica = Replica::new(config, now, PersistedState::default()).expect("sound");
    now.0 += 2 * ELECTION_TIMEOUT;
    let peer = |id| Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    };
    for id in [0, 1] {
        turn(
            &mut replica,
            now,
            Input::PeerUp(peer(id), Promise::default()),
        );
    }
    let mut hear = |id, term, body| {
        let message = Message {
            term: Term(term),
            body,
        };
        let from = peer(id);
        turn(&mut replica, now, Input::Message { from, message });
    };
    let append = Body::Append {
        previous_index: Index(2),
        previous_term: Term(2),
        commit_index: Index(2),
        round: 5,
        records: Vec::new(),
    };
    hear(0, 2, append);
    let record = record.freeze();
    hear(1, 2, Body::Bootstrap { record });
    let request = Body::VoteRequest {
        last_index: Index(2),
        last_term: Term(2),
        pre_vote: false,
        transfer: false,
        engage: false,
    };
    hear(1, 3, request);
    assert_eq!(replica.last_index(), Index(1));
    assert_eq!(replica.term(), Term(2), "a vote within its promise");
}

/// A leader counts on it, in whatever term the voter is by then: a message of a candidate's that promises
/// nothing may bring the candidate's term before its request comes.
#[test]
pub fn a_promise_outlasts_its_term() {
    let mut config = config(2, 1, &[]);
    config.lease = 3 * HEARTBEAT;
    let mut now = Now(ELECTION_TIMEOUT);
    let mut replica = Replica::new(config, now, stored_of_three()).expect("sound");
    now.0 += 2 * ELECTION_TIMEOUT;
    let peer = |id| Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    };
    let mut hear = |now, id, term, body| {
        let message = Message {
            term: Term(term),
            body,
        };
        let from = peer(id);
        turn(&mut replica, now, Input::Message { from, message })
    };
    let heartbeat = Body::Append {
        previous_index: Index(1),
        previous_term: Term(1),
        commit_index: Index(1),
        round: 5,
        records: Vec::new(),
    };
    let refused_beforehand = Body::VoteReply {
        granted: false,
        pre_vote: true,
        engaged: false,
    };
    let request = || Body::VoteRequest {
        last_index: Index(1),
        last_term: Term(1),
        pre_vote: false,
        transfer: false,
        engage: false,
    };
    let is_vote = |o: &Output| {
        let Output::Send { message, .. } = o else {
            return false;
        };
        matches!(
            message.body,
            Body::VoteReply {
                granted: true,
                pre_vote: false,
                ..
            }
        )
    };
    hear(now, 0, 1, heartbeat);
    hear(now, 1, 2, refused_beforehand);
    now.0 += 3 * HEARTBEAT;
    let promised_until = now.0;
    now.0 = now.0.saturating_sub(HEARTBEAT / 8);
    let said = hear(now, 1, 2, request());
    assert!(!said.iter().any(is_vote), "a vote within its promise");
    now.0 = promised_until;
    let said = hear(now, 1, 2, request());
    assert!(said.iter().any(is_vote), "{said:?}");
    // Repeated, for what it said was lost on the way.
    let said = hear(now, 1, 2, request());
    assert!(said.iter().any(is_vote), "{said:?}");
}

/// A voter of three that was asked to engage along with its vote, and whose plane has not answered.
fn asked_voter() -> (Replica, Now) {
    let mut config = config(2, 1, &[]);
    config.plane = true;
    let mut now = Now(ELECTION_TIMEOUT);
    let mut replica = Replica::new(config, now, stored_of_three()).expect("sound");
    now.0 += ELECTION_TIMEOUT;
    let request = Message {
        term: Term(2),
        body: Body::VoteRequest {
            last_index: Index(1),
            last_term: Term(1),
            pre_vote: false,
            transfer: false,
            engage: true,
        },
    };
    let mut outputs = Vec::new();
    let (from, message) = (candidate(), request);
    replica.step(now, Input::Message { from, message }, &mut outputs);
    let tickets = outputs.iter().filter_map(|output| {
        let Output::Persist { ticket, .. } = output else {
            return None;
        };
        Some(*ticket)
    });
    let ticket = tickets.last().expect("its vote is persisted");
    outputs.clear();
    replica.step(now, Input::Persisted(ticket), &mut outputs);
    assert!(matches!(outputs[..], [Output::Engage(_)]), "{outputs:?}");
    (replica, now)
}

fn candidate() -> Peer {
    Peer {
        id: ReplicaId(0),
        incarnation: Incarnation(1),
    }
}

#[test]
fn a_vote_is_told_although_the_plane_was_stopped_before_it_ran() {
    let (mut replica, now) = asked_voter();
    let outputs = turn(&mut replica, now, Input::PlaneFailed);
    let told = |o: &Output| matches!(o, Output::Disengage(LeaveReason::PlaneFailed));
    assert!(outputs.iter().any(told), "{outputs:?}");
    let engaged = Input::Engaged {
        term: Term(2),
        engaged: true,
    };
    let outputs = turn(&mut replica, now, engaged);
    assert!(
        outputs.is_empty(),
        "how it stops is what counts: {outputs:?}"
    );
    let outputs = stop(&mut replica, now);
    let sent: Vec<_> = outputs.iter().filter_map(vote_in).collect();
    assert_eq!(sent, [(candidate(), (true, false, false))], "{outputs:?}");
}

#[test]
fn a_vote_is_not_told_once_its_term_is_over() {
    let (mut replica, now) = asked_voter();
    let outputs = turn(&mut replica, now, from_elsewhere(50, Vec::new()));
    let told = |o: &Output| matches!(o, Output::Disengage(LeaveReason::HigherTerm));
    assert!(outputs.iter().any(told), "{outputs:?}");
    let outputs = stop(&mut replica, now);
    assert_eq!(replica.term(), Term(50));
    assert!(outputs.iter().all(|o| vote_in(o).is_none()), "{outputs:?}");
}

/// To whom a vote is told: whether it is granted, for a pre-vote, along with an engaged plane.
fn vote_in(output: &Output) -> Option<(Peer, (bool, bool, bool))> {
    let Output::Send { to, message } = output else {
        return None;
    };
    let Body::VoteReply {
        granted,
        pre_vote,
        engaged,
    } = message.body
    else {
        return None;
    };
    Some((*to, (granted, pre_vote, engaged)))
}

#[test]
fn engage_intervals_that_could_not_work_are_refused() {
    for (interval, longest) in [(Duration::ZERO, HEARTBEAT), (2 * HEARTBEAT, HEARTBEAT)] {
        let mut config = config(0, 1, &[0]);
        config.plane = true;
        config.engage_interval = interval;
        config.engage_interval_max = longest;
        let refused = Replica::new(config, Now::default(), PersistedState::default());
        let problem = refused.expect_err("refused").problem;
        assert!(problem.starts_with("engage_interval"), "{problem}");
    }
}

#[test]
#[should_panic(expected = "kept entries back")]
fn a_plane_that_keeps_entries_back_stops_the_replica() {
    let (mut replica, now) = fast_leader();
    begin_to_stop(&mut replica, now);
    let registers = Registers {
        term: replica.term(),
        last_index: replica.last_index().next(),
        ..Registers::default()
    };
    turn(&mut replica, now, Input::Disengaged { registers });
}
