use super::*;

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 1,
    copies: 1,
    window: 4,
};

fn vote(acceptor: u8, instance: u64, round: u64, sequence: u64) -> Header {
    Header {
        kind: Kind::P2b as u8,
        sender: acceptor,
        group: 7,
        term: round,
        index: instance,
        session: 5,
        sequence,
        ..Header::default()
    }
}

fn votes() -> Votes {
    Votes::new(DEPLOYMENT, 1)
}

fn decide(votes: &mut Votes, instance: u64, round: u64, sequence: u64) {
    for acceptor in [0, 2] {
        let counted = votes.on_vote(&vote(acceptor, instance, round, sequence), b"x");
        assert_eq!(counted, Ok(()));
    }
}

#[test]
fn a_majority_of_one_round_decides_and_no_other() {
    let mut votes = votes();
    assert_eq!(votes.on_vote(&vote(0, 1, 0x101, 1), b"x"), Ok(()));
    assert_eq!(votes.on_vote(&vote(1, 1, 0x201, 1), b"x"), Ok(()));
    assert_eq!(
        votes.on_vote(&vote(0, 1, 0x101, 1), b"x"),
        Err(Ignored::Repeated)
    );
    assert_eq!(votes.take(), None, "one vote in each of two rounds");
    assert_eq!(votes.on_vote(&vote(2, 1, 0x201, 1), b"x"), Ok(()));
    let decided = votes.take().unwrap();
    assert_eq!((decided.instance, decided.sequence), (1, 1));
    assert_eq!(decided.payload, b"x");
    assert_eq!(votes.take(), None);
    assert_eq!(
        votes.on_vote(&vote(1, 1, 0x101, 1), b"x"),
        Err(Ignored::Late)
    );
}

#[test]
fn instances_are_given_in_order_and_what_is_missing_is_named() {
    let mut votes = votes();
    decide(&mut votes, 2, 0x101, 2);
    decide(&mut votes, 4, 0x101, 4);
    assert_eq!(votes.take(), None);
    assert_eq!(votes.missing(3).collect::<Vec<_>>(), [1, 3]);
    decide(&mut votes, 1, 0x101, 1);
    assert_eq!(votes.take().unwrap().instance, 1);
    assert_eq!(votes.take().unwrap().instance, 2);
    assert_eq!(votes.take(), None);
    assert_eq!(votes.missing(3).collect::<Vec<_>>(), [3]);
}

#[test]
fn what_is_no_vote_of_this_deployment_is_not_counted() {
    let mut votes = votes();
    let good = vote(0, 1, 0x101, 1);
    let refused = Header {
        flags: FLAG_REFUSED,
        ..good
    };
    let cases = [
        (
            Header {
                kind: Kind::P2a as u8,
                ..good
            },
            Ignored::NoVote,
        ),
        (Header { group: 8, ..good }, Ignored::NoVote),
        (Header { sender: 3, ..good }, Ignored::NoVote),
        (Header { index: 0, ..good }, Ignored::NoVote),
        (refused, Ignored::Refused),
        (Header { index: 5, ..good }, Ignored::Beyond),
        (
            Header {
                index: u64::MAX,
                ..good
            },
            Ignored::Beyond,
        ),
    ];
    for (header, expected) in cases {
        assert_eq!(votes.on_vote(&header, b"x"), Err(expected), "{header:?}");
    }
    assert!(votes.open.is_empty());
}

/// Each part of a value tells it from others.
#[test]
fn two_values_in_a_round_are_told() {
    let good = vote(0, 1, 0x101, 1);
    let others = [
        (
            Header {
                sequence: 2,
                ..good
            },
            &b"x"[..],
        ),
        (Header { session: 6, ..good }, b"x"),
        (
            Header {
                flags: FLAG_FRAGMENT,
                ..good
            },
            b"x",
        ),
        (good, b"y"),
    ];
    for (other, payload) in others {
        let other = Header { sender: 1, ..other };
        let mut votes = votes();
        assert_eq!(votes.on_vote(&good, b"x"), Ok(()));
        assert_eq!(votes.on_vote(&other, payload), Err(Ignored::TwoValues));
        decide(&mut votes, 2, 0x101, 1);
        let again = Header { index: 2, ..other };
        assert_eq!(votes.on_vote(&again, payload), Err(Ignored::TwoValues));
        let later = Header {
            term: 0x201,
            ..again
        };
        assert_eq!(votes.on_vote(&later, payload), Err(Ignored::Contradiction));
    }
}

/// A value of an earlier round that was not decided is none of these: it may come late.
#[test]
fn an_earlier_round_may_have_had_another_value() {
    let mut votes = votes();
    decide(&mut votes, 1, 0x201, 1);
    assert_eq!(
        votes.on_vote(&vote(1, 1, 0x101, 9), b"y"),
        Err(Ignored::OldRound)
    );
    assert_eq!(
        votes.on_vote(&vote(1, 1, 0x301, 1), b"x"),
        Err(Ignored::Repeated)
    );
}

#[test]
fn the_highest_rounds_have_the_room_there_is() {
    let mut votes = votes();
    let rounds = u64::try_from(ROUNDS_MAX).unwrap();
    for round in 1..=rounds {
        assert_eq!(
            votes.on_vote(&vote(0, 1, 0x101 + 0x100 * round, 1), b"x"),
            Ok(())
        );
    }
    assert_eq!(
        votes.on_vote(&vote(0, 1, 0x101, 1), b"x"),
        Err(Ignored::OldRound)
    );
    let newest = 0x101 + 0x100 * (rounds + 1);
    assert_eq!(votes.on_vote(&vote(0, 1, newest, 1), b"x"), Ok(()));
    assert_eq!(votes.open[&1].rounds.len(), ROUNDS_MAX);
    assert_eq!(votes.on_vote(&vote(1, 1, newest, 1), b"x"), Ok(()));
    assert_eq!(votes.take().unwrap().instance, 1);
}

#[test]
fn a_learner_goes_on_behind_a_checkpoint() {
    let mut votes = votes();
    decide(&mut votes, 2, 0x101, 2);
    decide(&mut votes, 3, 0x101, 3);
    votes.begin_behind(2);
    assert_eq!(votes.take().unwrap().instance, 3);
    votes.begin_behind(1);
    assert_eq!(votes.next(), 4, "it is further than that");
    assert_eq!(votes.on_vote(&vote(0, 7, 0x101, 1), b"x"), Ok(()));
}
