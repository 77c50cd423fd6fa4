//! Limits of memberships and heads: the largest allowed is taken, one more is refused by name.
use quorumwire_interfaces::{Incarnation, Index, ReplicaId};
use quorumwire_wire::limits::{
    ADDRESS_BYTES_MAX, APPEND_BYTES_TARGET, ATTACHMENT_BYTES_MAX, MEMBERS_MAX, META_BYTES_MAX,
    RECORD_PAYLOAD_BYTES_MAX, SNAPSHOT_HEAD_BYTES_MAX, VOTERS_MAX,
};
use quorumwire_wire::prost::Message;
use quorumwire_wire::{
    Member, MemberRole, Membership, RECORD_HEADER_BYTES, SnapshotHead, SnapshotReader,
    SnapshotWriter, peer,
};

/// The largest there is: all members, the longest addresses.
fn largest() -> Membership {
    let member = |id: usize| Member {
        id: ReplicaId(u16::MAX - u16::try_from(MEMBERS_MAX - id).unwrap()),
        incarnation: Incarnation(u64::MAX),
        peer_address: "a".repeat(ADDRESS_BYTES_MAX),
        role: if id < VOTERS_MAX {
            MemberRole::Voter
        } else {
            MemberRole::Learner
        },
    };
    Membership {
        members: (0..MEMBERS_MAX).map(member).collect(),
        ..Membership::default()
    }
}

fn problem(proto: &peer::Membership) -> String {
    let refused = Membership::from_proto(proto).expect_err("it was not refused");
    assert_eq!(refused.what, "membership");
    refused.problem
}

#[test]
fn the_largest_membership_is_taken_and_fits_everywhere() {
    let membership = largest();
    assert_eq!(
        Membership::decode(&membership.encode()),
        Ok(membership.clone())
    );
    assert!(membership.encode().len() <= META_BYTES_MAX);
    let head = SnapshotHead {
        last_index: Index(u64::MAX),
        membership_index: Index(u64::MAX),
        membership,
        ..SnapshotHead::default()
    };
    assert!(head.to_proto().encode_to_vec().len() <= SNAPSHOT_HEAD_BYTES_MAX);
    let file = SnapshotWriter::new(Vec::new(), &head)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(SnapshotReader::new(&*file).unwrap().head(), &head);
    // A message with the target of records and one more, or with the largest record alone, fits.
    let record = RECORD_HEADER_BYTES + RECORD_PAYLOAD_BYTES_MAX;
    assert!(APPEND_BYTES_TARGET + record <= ATTACHMENT_BYTES_MAX);
}

#[test]
fn one_more_is_refused_by_name() {
    let mut more = largest().to_proto();
    more.members.push(more.members[0].clone());
    assert_eq!(problem(&more), "17 members, at most 16");

    let mut voters = largest().to_proto();
    voters.members[VOTERS_MAX].role = peer::MemberRole::Voter.into();
    assert_eq!(problem(&voters), "8 voters, at most 7");

    let mut long = largest().to_proto();
    long.members[3].peer_address.push('a');
    assert_eq!(problem(&long), "address of replica 65522 is too long");

    let mut twice = largest().to_proto();
    twice.members[1].replica = twice.members[0].replica;
    assert_eq!(problem(&twice), "ids must ascend, each once");

    let mut id = largest().to_proto();
    id.members[0].replica = 65_536;
    assert_eq!(problem(&id), "replica id 65536");

    for role in [0, 4] {
        let mut unknown = largest().to_proto();
        unknown.members[0].role = role;
        assert_eq!(problem(&unknown), format!("role {role} of replica 65519"));
    }
    for quorum in [0, 3] {
        let mut unknown = largest().to_proto();
        unknown.quorum = quorum;
        assert_eq!(problem(&unknown), format!("commit quorum {quorum}"));
    }
}

#[test]
fn heads_that_make_no_sense_are_refused() {
    let good = SnapshotHead {
        last_index: Index(9),
        membership_index: Index(9),
        membership: largest(),
        ..SnapshotHead::default()
    }
    .to_proto();
    assert!(SnapshotHead::from_proto(&good).is_ok());
    let mut cases = [good.clone(), good.clone(), good];
    cases[0].membership = None;
    cases[1].last_index = 0;
    cases[1].membership_index = 0;
    cases[2].membership_index = 10;
    for case in cases {
        let refused = SnapshotHead::from_proto(&case).expect_err("it was not refused");
        assert_eq!(refused.what, "snapshot head");
    }
}
