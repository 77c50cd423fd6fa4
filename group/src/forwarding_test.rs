//! What a follower waits for, and for how long; and which answers it takes.
use super::*;
use crate::effects::Effect;
use crate::forwards::{Forwards, Succession};
use crate::group::tests::{HEARTBEAT, One, Who, one_of};
use crate::passed_on::GroupMessage;
use crate::peers::PeerConnection;
use quorumwire_control::{Input, Output, Promise, Role};
use quorumwire_interfaces::{Incarnation, Index, ReplicaId};

const PATIENCE: Duration = Duration::from_millis(400);

fn forward(to: u16, term: u64) -> Forward<Who> {
    Forward {
        origin: Who(1),
        is_read: false,
        to: member(to),
        term: Term(term),
        at: Now::default(),
    }
}

fn successor(id: u16, term: u64, known_for: Duration) -> Successor {
    Successor {
        id: ReplicaId(id),
        term: Term(term),
        known_for,
    }
}

#[test]
fn a_write_sent_to_a_silent_leader_is_given_up_once_another_leads() {
    let at_once = successor(2, 6, Duration::ZERO);
    assert!(forward(1, 5).is_left_behind(at_once, true, PATIENCE));
    // Who leads, or led on, answers by itself; and of this term's leader nothing else is known.
    assert!(!forward(2, 5).is_left_behind(at_once, true, PATIENCE));
    assert!(!forward(1, 6).is_left_behind(at_once, true, PATIENCE));
    let read = Forward {
        is_read: true,
        ..forward(1, 5)
    };
    assert!(!read.is_left_behind(at_once, true, PATIENCE));
}

#[test]
fn a_leader_that_can_still_be_heard_has_a_while_to_find_out() {
    for (known_for, is_given_up) in [
        (Duration::ZERO, false),
        (PATIENCE, false),
        (PATIENCE + Duration::from_millis(1), true),
    ] {
        let successor = successor(2, 6, known_for);
        let given_up = forward(1, 5).is_left_behind(successor, false, PATIENCE);
        assert_eq!(given_up, is_given_up, "{known_for:?}");
    }
}

#[test]
fn that_while_begins_with_the_first_word_of_each_new_leader() {
    let change = |term: u64, leader: Option<u16>| RoleChange {
        role: Role::Follower,
        term: Term(term),
        leader: leader.map(ReplicaId),
    };
    let at = |ms: u64| Now(Duration::from_millis(ms));
    let mut succession = Succession::default();
    for (ms, change, since) in [
        (10, change(1, None), 0),
        (20, change(1, Some(1)), 20),
        (30, change(1, Some(1)), 20),
        (40, change(2, None), 20),
        (50, change(2, Some(2)), 50),
    ] {
        succession.note(&change, at(ms));
        assert_eq!(succession.since, at(since), "at {ms} ms");
    }
}

/// Of another process, or of another term, it is the answer to something else.
#[test]
fn an_answer_is_taken_from_whom_it_was_asked_of_and_for_what_was_asked() {
    const ID: RequestId = RequestId {
        term: Term(5),
        process: 77,
        number: 3,
    };
    let earlier_version = RequestId {
        term: Term(0),
        process: 0,
        ..ID
    };
    for (from, id, is_taken) in [
        (1, ID, true),
        (2, ID, false),
        (1, RequestId { process: 78, ..ID }, false),
        (1, RequestId { process: 0, ..ID }, false),
        (
            1,
            RequestId {
                term: Term(4),
                ..ID
            },
            false,
        ),
        (1, RequestId { number: 4, ..ID }, false),
        (1, earlier_version, true),
    ] {
        let mut forwards = Forwards::new(Now::default());
        forwards.begin(77, 3);
        forwards.waiting.insert(3, forward(1, 5));
        let taken = forwards.take(member(from), id);
        assert_eq!(taken.is_some(), is_taken, "{from} {id:?}");
        assert_eq!(forwards.is_empty(), is_taken);
    }
}

fn member(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    }
}

/// Two replicas, 0 and 1, that have met, and 0 leads.
fn two() -> [One; 2] {
    let mut groups = [0, 1].map(|id| {
        let mut group = one_of(2, id);
        let other = member(1 - id);
        group.step(Input::PeerUp(other, Promise::default()));
        let connected = PeerConnection {
            peer: other,
            ..PeerConnection::default()
        };
        group.peers.connected.insert(other.id, connected);
        group
    });
    for _ in 0..50 {
        for group in &mut groups {
            group.now.0 += HEARTBEAT;
            group.step(Input::Timeout);
        }
        exchange(&mut groups);
    }
    assert!(groups[0].leads() && groups[0].replica.commit_index() > Index(0));
    groups
}

/// Does what they ask for until they ask for nothing.
fn exchange(groups: &mut [One; 2]) {
    let mut is_quiet = false;
    while !is_quiet {
        is_quiet = true;
        for (from, to) in [(0_u16, 1_u16), (1, 0)] {
            groups[usize::from(from)].flush();
            for output in std::mem::take(&mut groups[usize::from(from)].outputs) {
                is_quiet = false;
                if let Output::Persist { ticket, .. } = output {
                    groups[usize::from(from)].step(Input::Persisted(ticket));
                } else if let Output::Send { message, .. } = output {
                    let from = member(from);
                    groups[usize::from(to)].step(Input::Message { from, message });
                }
            }
        }
    }
}

/// A client of the follower waits for the leader; whose answer is anew what its connection is worth.
#[test]
fn a_follower_whose_connection_breaks_asks_anew_what_changes_nothing_and_nothing_else() {
    let [_, mut follower] = two();
    let leader = follower.leader_to_ask().unwrap();
    for (number, kind) in [
        (7, ForwardKind::Write),
        (8, ForwardKind::Read),
        (9, ForwardKind::Session),
    ] {
        let sent = follower.forward(leader, Who(number), kind, Bytes::new());
        assert_eq!(sent, Some(number - 7));
    }
    let returned = follower.give_up_sent_to(leader);
    let became: Vec<(u64, bool)> = returned
        .iter()
        .map(|it| match it {
            ForwardResult::Again { forward, .. } => (forward.origin.0, true),
            ForwardResult::Answered(forward, said) => {
                assert_eq!(*said, AnswerKind::Refused(Reason::OutcomeUnknown));
                (forward.origin.0, false)
            }
        })
        .collect();
    assert_eq!(became, [(7, false), (8, true), (9, false)]);
    assert!(follower.forwards.is_empty());
}

/// Who says so leads no more, until something is heard of another term.
#[test]
fn nothing_more_is_sent_to_a_replica_that_says_that_it_does_not_lead() {
    let [_, mut follower] = two();
    let leader = follower.leader_to_ask().unwrap();
    let number = follower.forward(leader, Who(1), ForwardKind::Write, Bytes::new());
    let id = RequestId {
        term: follower.replica.term(),
        process: 0,
        number: number.unwrap(),
    };
    let said = AnswerKind::Refused(Reason::NotLeader);
    let returned = follower.take_reply(leader, id, said);
    assert!(
        matches!(returned, Some(ForwardResult::Answered(it, heard)) if it.origin == Who(1) && heard == said)
    );
    assert_eq!(follower.serving_leader(), None);
    assert_eq!(follower.leader_to_ask(), Err(SubmitOutcome::NoRoom));
    follower.now.0 += LEADER_WAIT + Duration::from_millis(1);
    let refused = SubmitOutcome::Refused(Reason::NoLeader);
    assert_eq!(follower.leader_to_ask(), Err(refused));
    let change = RoleChange {
        role: Role::Follower,
        term: follower.replica.term(),
        leader: Some(leader.id),
    };
    assert!(follower.role_changed(&change, PATIENCE).is_empty());
    assert_eq!(follower.serving_leader(), Some(leader));
}

/// A write that was sent before others led may stand behind one that its client sent later.
#[test]
fn a_leader_takes_no_write_that_was_sent_before_others_led() {
    let [mut leader, _] = two();
    let term = leader.replica.term();
    let mut take = |sent_in: Term, kind| {
        let id = RequestId {
            term: sent_in,
            ..RequestId::default()
        };
        let from = Follower {
            peer: member(1),
            id,
        };
        let taken = leader.take_request(from, kind, command_of(7, 1));
        matches!(taken, FollowerRequest::Write(..))
    };
    assert!(take(term, ForwardKind::Write) && take(term, ForwardKind::Session));
    assert!(!take(Term(term.0 - 1), ForwardKind::Write));
    assert!(!take(Term(term.0 + 1), ForwardKind::Write));
}

/// As a follower passes it on.
fn command_of(session: u64, sequence: u64) -> Bytes {
    let mut whole = BytesMut::new();
    put_in_session(&mut whole, (session, sequence), b"x");
    whole.freeze()
}

#[test]
fn a_command_of_a_session_comes_as_it_was_passed_on_or_not_at_all() {
    let is = FollowerCommand::InSession((7, 1), Bytes::from_static(b"x"));
    assert_eq!(in_session(command_of(7, 1)), Some(is));
    let long = vec![0; SESSION_COMMAND_BYTES_MAX + 1];
    let mut too_long = BytesMut::new();
    put_in_session(&mut too_long, (7, 1), &long);
    for broken in [command_of(0, 1), command_of(7, 0), too_long.freeze()] {
        assert_eq!(in_session(broken), None);
    }
    for length in 0..16 {
        assert_eq!(in_session(command_of(7, 1).slice(..length)), None);
    }
}

/// Its clients wait for another leader: they have not sent too much.
#[test]
fn while_leadership_is_transferred_requests_have_nowhere_to_go() {
    assert!(!one_of(2, 0).has_somewhere_to_go());
    let [mut leader, follower] = two();
    assert!(leader.has_somewhere_to_go() && follower.has_somewhere_to_go());
    let ticket = leader.next_ticket();
    leader.step(Input::Transfer(ticket, Some(ReplicaId(1))));
    let submitted = leader.write(Who(1), 1, |it| it.extend_from_slice(b"x"));
    assert!(submitted == SubmitOutcome::NoRoom && leader.leads());
    assert!(!leader.has_somewhere_to_go());
}

/// One member could otherwise have a leader keep as much as it likes.
#[test]
fn reads_that_followers_pass_on_wait_up_to_so_many_bytes() {
    let [mut leader, follower] = two();
    leader.now.0 += 100 * HEARTBEAT; // without a lease, they wait
    let peer = member(1);
    let mut pass_on = |number: u64| {
        let id = RequestId {
            term: follower.replica.term(),
            process: 1,
            number,
        };
        let line = Bytes::from(vec![0; COMMAND_BYTES_MAX]);
        leader.take_request(Follower { peer, id }, ForwardKind::Read, line);
        leader.reads.len()
    };
    let waiting: Vec<usize> = (1..=70).map(&mut pass_on).collect();
    assert_eq!(waiting[..63], (1..=63).collect::<Vec<_>>());
    assert_eq!(waiting[69], (64 << 20) / COMMAND_BYTES_MAX);
    leader.reads.keep(|_| false);
    assert!(leader.reads.has_room_for(COMMAND_BYTES_MAX) && leader.reads.is_empty());
}

/// An application may answer with more than a frame holds.
#[test]
fn a_read_whose_answer_fits_no_message_has_none() {
    let [mut leader, _] = two();
    let to = Follower {
        peer: member(1),
        id: RequestId::default(),
    };
    for (bytes, said) in [
        (ATTACHMENT_BYTES_MAX, AnswerKind::Answer),
        (
            ATTACHMENT_BYTES_MAX + 1,
            AnswerKind::Refused(Reason::AnswerTooLong),
        ),
    ] {
        leader.answer_follower_read(to, vec![0; bytes].into());
        let Some(Effect::Send { message, .. }) = leader.effects.pop() else {
            panic!("{bytes} bytes: nothing is said");
        };
        let heard = GroupMessage::from_proto(message, Bytes::new());
        let Ok(GroupMessage::PassedOn(PassedOn::Reply(_, heard, _))) = heard else {
            panic!("{bytes} bytes: no reply");
        };
        assert_eq!(heard, said, "{bytes} bytes");
    }
}
