//! A disk that was put back to a copy in which its replica was the only voter: it went on alone, and meets
//! the others.
use crate::turn::{disk, turn};
use crate::world::{ELECTION_TIMEOUT, GROUP, LINEAGE, config};
use bytes::{Bytes, BytesMut};
use quorumwire_control::{
    Body, Entry, HardState, Input, Message, Now, Output, Peer, PersistedState, Replica, Role,
};
use quorumwire_interfaces::{Incarnation, Index, ReplicaId, Term};
use quorumwire_wire::{
    CommitQuorum, Member, MemberRole, Membership, Record, RecordKind, begin_record, finish_record,
};

/// In which the others' leader leads.
const NEWEST: Term = Term(9);

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    }
}

fn record(index: u64, term: u64) -> Bytes {
    let member = Member {
        id: ReplicaId(0),
        incarnation: Incarnation(1),
        peer_address: String::new(),
        role: MemberRole::Voter,
    };
    let alone = Membership {
        members: vec![member],
        quorum: CommitQuorum::Majority,
        lineage: LINEAGE,
    };
    let (kind, payload) = match index {
        1 => (RecordKind::Membership, alone.encode()),
        _ => (RecordKind::Command, b"x".to_vec()),
    };
    let mut block = BytesMut::new();
    let start = begin_record(&mut block, kind, GROUP, Term(term), Index(index));
    block.extend_from_slice(&payload);
    finish_record(&mut block, start);
    block.freeze()
}

/// Replica 0, which was the only voter, has committed three entries, the last two of them in the term 2,
/// alone.
fn went_on_alone() -> Replica {
    let entry = |(index, term)| {
        let block = record(index, term);
        let record = Record::decode(&block).expect("just made");
        Entry::of_record(&block, 0, &record)
    };
    let stored = PersistedState {
        hard_state: HardState {
            term: Term(2),
            vote: None,
            commit_index: Index(3),
        },
        snapshot: None,
        entries: [(1, 1), (2, 2), (3, 2)].map(entry).to_vec(),
        new_life: false,
    };
    Replica::new(config(0, 1, &[]), Now(ELECTION_TIMEOUT), stored).expect("sound")
}

/// What it answers, its disk at hand.
fn hear(replica: &mut Replica, body: Body) -> Vec<Body> {
    let message = Message { term: NEWEST, body };
    let from = peer(1);
    let input = Input::Message { from, message };
    let outputs = turn(replica, Now(ELECTION_TIMEOUT), input, disk);
    let said = outputs.into_iter().filter_map(|output| {
        if let Output::Send { message, .. } = output {
            return Some(message.body);
        }
        None
    });
    said.collect()
}

fn append(previous: (u64, u64), records: Vec<Bytes>) -> Body {
    Body::Append {
        previous_index: Index(previous.0),
        previous_term: Term(previous.1),
        commit_index: Index(0),
        round: 1,
        records,
    }
}

#[test]
fn what_was_committed_alone_is_noticed_and_nothing_is_acknowledged_from_then_on() {
    let chunk = Body::SnapshotChunk {
        last_index: Index(2),
        last_term: Term(1),
        offset: 0,
        total_bytes: 3,
        round: 1,
        bytes: Bytes::from_static(b"all"),
    };
    for shows in [
        append((3, 5), Vec::new()),
        append((1, 1), vec![record(2, 5)]),
        chunk,
    ] {
        let mut replica = went_on_alone();
        assert_eq!(hear(&mut replica, shows.clone()), [], "{shows:?}");
        assert_eq!(replica.status().counters.ignored_diverged, 1, "{shows:?}");
        // Not even what is the same at both.
        let said = hear(&mut replica, append((1, 1), vec![record(2, 2)]));
        assert_eq!(said, [], "after {shows:?}");
        assert_eq!(replica.status().counters.ignored_diverged, 2);
        let start_index = Index(3);
        let said = hear(&mut replica, Body::EngageOffer { start_index });
        assert_eq!(said, [], "after {shows:?}");
        assert_eq!(replica.status().counters.ignored_diverged, 3);
        assert_eq!(replica.role(), Role::Follower, "it disturbs nobody");
        assert_eq!(replica.commit_index(), Index(3), "what it committed stays");
    }
}

#[test]
fn what_is_the_same_at_both_is_no_divergence() {
    let mut replica = went_on_alone();
    let said = hear(&mut replica, append((3, 2), vec![record(4, 9)]));
    assert!(
        matches!(
            said[..],
            [Body::AppendReply {
                rejected: false,
                index: Index(4),
                ..
            }]
        ),
        "{said:?}"
    );
    assert_eq!(replica.status().counters.ignored_diverged, 0);
}
