//! Which key a replica has for its plane: the one of its fast term and leader, or one that nobody else knows.
use super::*;
use quorumwire_interfaces::{Incarnation, Lineage};
use quorumwire_wire::{CommitQuorum, Member, MemberRole};
use std::cell::Cell;
use std::convert::Infallible;

thread_local! {
    static DRAWN: Cell<u8> = const { Cell::new(0) };
}

/// A key that was never drawn before.
#[expect(clippy::unnecessary_wraps, reason = "as whoever draws them")]
fn draw() -> Result<TermKey, Infallible> {
    DRAWN.set(DRAWN.get() + 1);
    Ok(TermKey([DRAWN.get(); TERM_KEY_BYTES]))
}

fn fresh() -> TermKeys {
    let Ok(nobodys) = draw();
    TermKeys::new(nobodys)
}

const TERM: Term = Term(7);
const KEY: [u8; TERM_KEY_BYTES] = [0x5a; TERM_KEY_BYTES];
const OTHER_KEY: [u8; TERM_KEY_BYTES] = [0x6b; TERM_KEY_BYTES];

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(u64::from(id) + 1),
    }
}

fn membership(roles: &[(u16, MemberRole)]) -> Membership {
    let member = |(id, role): &(u16, MemberRole)| Member {
        id: ReplicaId(*id),
        incarnation: peer(*id).incarnation,
        peer_address: String::new(),
        role: *role,
    };
    Membership {
        members: roles.iter().map(member).collect(),
        quorum: CommitQuorum::Majority,
        lineage: Lineage::default(),
    }
}

fn three() -> Membership {
    membership(&[0, 1, 2].map(|id| (id, MemberRole::Voter)))
}

/// What is known where replica 1 is thought to lead term 7.
fn known(membership: &Membership) -> Known<'_> {
    Known {
        term: TERM,
        leader: Some(ReplicaId(1)),
        membership,
    }
}

#[test]
fn a_key_counts_for_its_own_term_and_sender_alone() {
    let members = three();
    let next = Term(TERM.0 + 2);
    let mut keys = fresh();
    let nobodys = keys.pair();
    assert_eq!(keys.take((peer(1), next), &KEY, &known(&members)), Ok(()));
    assert!(keys.pair() == nobodys, "it is not engaged");
    assert!(!keys.begin(TERM, peer(1)), "an earlier term");
    assert!(!keys.begin(Term(next.0 + 1), peer(1)), "a later term");
    assert_eq!(keys.take((peer(1), next), &KEY, &known(&members)), Ok(()));
    assert!(!keys.begin(next, peer(2)), "another leader");
    assert_eq!(keys.take((peer(1), next), &KEY, &known(&members)), Ok(()));
    let later_life = Peer {
        incarnation: Incarnation(99),
        ..peer(1)
    };
    assert!(!keys.begin(next, later_life), "another life");
    assert!(keys.pair() == nobodys);
    assert_eq!(keys.take((peer(1), next), &KEY, &known(&members)), Ok(()));
    assert!(keys.begin(next, peer(1)));
    let agreed = keys.pair();
    assert_eq!((agreed.epoch, agreed.key, agreed.other), (9, KEY, None));
    keys.end();
    assert!(keys.pair() == nobodys, "it opens nothing any more");
    assert!(!keys.begin(next, peer(1)), "it is not kept for another try");
}

/// A leader that offers its term again to one that fell behind does not know whether that one has left it
/// yet.
#[test]
fn a_key_that_comes_before_the_fence_of_its_term_is_there_after_it() {
    let members = three();
    let mut keys = fresh();
    let nobodys = keys.pair();
    for (from, term) in [(1, TERM), (2, Term(TERM.0 + 1))] {
        assert_eq!(
            keys.take((peer(from), term), &KEY, &known(&members)),
            Ok(())
        );
    }
    assert!(keys.begin(TERM, peer(1)));
    let again = (peer(1), TERM);
    assert_eq!(keys.take(again, &OTHER_KEY, &known(&members)), Ok(()));
    assert_eq!(keys.pair().key, KEY, "it runs with the one it has");
    keys.end();
    assert!(keys.pair() == nobodys, "it opens nothing by itself");
    assert!(keys.begin(TERM, peer(1)));
    assert_eq!(keys.pair().key, OTHER_KEY);
    keys.end();
    assert!(!keys.begin(TERM, peer(1)), "each is used once");
    // Those of terms that are over are forgotten.
    assert!(keys.begin(Term(TERM.0 + 1), peer(2)));
    assert_eq!(keys.given.len(), 0);
    assert_eq!(keys.take(again, &KEY, &known(&members)), Ok(()));
    keys.end();
    assert_eq!(keys.given.len(), 0, "term 7 is below the one that ran");
}

#[test]
fn who_cannot_lead_that_term_has_its_key_ignored() {
    let members = membership(&[
        (0, MemberRole::Voter),
        (1, MemberRole::Voter),
        (2, MemberRole::Voter),
        (3, MemberRole::Learner),
        (4, MemberRole::Joining),
    ]);
    let known = known(&members);
    let mut keys = fresh();
    let before = Term(TERM.0 - 1);
    let old_life = Peer {
        incarnation: Incarnation(99),
        ..peer(2)
    };
    let refused = [
        (peer(1), before, &KEY[..], KeyRefusal::OldTerm),
        (peer(2), TERM, &KEY, KeyRefusal::NotLeader),
        (peer(3), Term(9), &KEY, KeyRefusal::Stranger),
        (peer(4), Term(9), &KEY, KeyRefusal::Stranger),
        (peer(5), Term(9), &KEY, KeyRefusal::Stranger),
        (old_life, Term(9), &KEY, KeyRefusal::Stranger),
        (peer(1), Term(9), &KEY[1..], KeyRefusal::Malformed),
        (peer(1), Term(9), &[], KeyRefusal::Malformed),
        (peer(1), Term(9), &[0; 17], KeyRefusal::Malformed),
    ];
    for (from, term, bytes, refusal) in refused {
        assert_eq!(keys.take((from, term), bytes, &known), Err(refusal));
        assert!(!keys.begin(term, from), "{refusal:?}");
    }
    // Of a later term anybody who votes may be the candidate; of this one its leader.
    assert_eq!(keys.take((peer(2), Term(8)), &KEY, &known), Ok(()));
    assert_eq!(keys.take((peer(1), TERM), &KEY, &known), Ok(()));
    assert_eq!(keys.given.len(), 2);
}

/// One that is sent late, or for a term far ahead, must not cost another leader's.
#[test]
fn no_voter_displaces_anothers_key_and_few_are_kept() {
    let members = three();
    let known = known(&members);
    let mut keys = fresh();
    assert_eq!(keys.take((peer(1), Term(9)), &KEY, &known), Ok(()));
    for term in 8..1000 {
        let theirs = (peer(2), Term(term));
        assert_eq!(keys.take(theirs, &OTHER_KEY, &known), Ok(()));
    }
    assert_eq!(keys.given.len(), 2, "one for each voter");
    assert!(keys.begin(Term(9), peer(1)));
    assert_eq!(keys.pair().key, KEY);
    // Replica 2 is a member no more: what it sent goes with the next that comes.
    let two = membership(&[0, 1].map(|id| (id, MemberRole::Voter)));
    let known = Known {
        membership: &two,
        ..known
    };
    assert_eq!(keys.take((peer(1), Term(11)), &KEY, &known), Ok(()));
    let senders: Vec<_> = keys.given.keys().copied().collect();
    assert_eq!(senders, [ReplicaId(1)]);
}

#[test]
fn a_leader_has_one_key_in_a_term_and_another_in_the_next() {
    let mut keys = fresh();
    let (first, is_new) = keys.own(TERM, &mut draw).unwrap();
    assert!(is_new);
    assert!(
        keys.own(TERM, &mut draw).unwrap() == (first, false),
        "for all it asks"
    );
    assert!(!keys.begin_own(TERM, &mut draw).unwrap(), "and for itself");
    assert!(keys.pair().key == first.0);
    assert!(
        keys.own(TERM, &mut draw).unwrap() == (first, false),
        "for stragglers"
    );
    keys.end();
    let (next, is_new) = keys.own(Term(TERM.0 + 1), &mut draw).unwrap();
    assert!(is_new && next != first);
    assert!(next != keys.nobodys && first != keys.nobodys);
    keys.end();
}
