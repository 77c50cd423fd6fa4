//! A member without a vote that its leader says nothing to any more. It stands for no election, so nothing
//! else ends what it believes.
use crate::turn::{disk, turn};
use crate::world::{ELECTION_TIMEOUT, LINEAGE, config};
use quorumwire_control::{
    Body, HardState, Input, Message, Now, Output, Peer, PersistedState, Promise, Replica, Role,
    SnapshotMeta,
};
use quorumwire_interfaces::{Incarnation, Index, LogTime, ReplicaId, Term};
use quorumwire_wire::{CommitQuorum, Member, MemberRole, Membership};
use std::time::Duration;

const TERM: Term = Term(3);
const LAST: Index = Index(5);

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    }
}

/// Replica 0, which has no vote, beside replica 1.
fn stored() -> PersistedState {
    let members = [(0, MemberRole::Learner), (1, MemberRole::Voter)];
    let members = members.map(|(id, role)| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
        peer_address: String::new(),
        role,
    });
    PersistedState {
        hard_state: HardState {
            term: TERM,
            vote: None,
            commit_index: LAST,
        },
        snapshot: Some(SnapshotMeta {
            last_index: LAST,
            last_term: TERM,
            membership: Membership {
                quorum: CommitQuorum::Majority,
                lineage: LINEAGE,
                members: members.into(),
            },
            membership_index: Index(1),
            log_time: LogTime(0),
        }),
        entries: Vec::new(),
        new_life: false,
    }
}

fn hears_its_leader(replica: &mut Replica, now: Now) {
    let body = Body::Append {
        previous_index: LAST,
        previous_term: TERM,
        commit_index: LAST,
        round: 1,
        records: Vec::new(),
    };
    let message = Message { term: TERM, body };
    let from = peer(1);
    turn(replica, now, Input::Message { from, message }, disk);
}

#[test]
fn a_member_without_a_vote_is_led_by_nobody_whom_it_does_not_hear() {
    let mut now = Now(ELECTION_TIMEOUT);
    let mut replica = Replica::new(config(0, 1, &[]), now, stored()).expect("sound");
    turn(
        &mut replica,
        now,
        Input::PeerUp(peer(1), Promise::default()),
        disk,
    );
    for _ in 0..2 {
        hears_its_leader(&mut replica, now);
        assert_eq!(replica.leader(), Some(ReplicaId(1)));
        now.0 += ELECTION_TIMEOUT
            .checked_sub(Duration::from_micros(1))
            .expect("longer");
        turn(&mut replica, now, Input::Timeout, disk);
        assert!(replica.is_led(), "it may be heard yet");
        now.0 += Duration::from_micros(1);
        assert!(replica.next_wake() <= now, "it looks in time");
        let outputs = turn(&mut replica, now, Input::Timeout, disk);
        assert_eq!((replica.leader(), replica.is_led()), (None, false));
        assert_eq!(replica.role(), Role::Learner);
        let asks = |it: &Output| matches!(it, Output::Send { message, .. } if matches!(message.body, Body::Fresh { .. }));
        assert!(outputs.iter().any(asks), "it asks: {outputs:?}");
    }
}
