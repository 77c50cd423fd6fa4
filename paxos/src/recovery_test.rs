use super::*;

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 4,
    copies: 4,
    window: 4,
};
const ROUND: u64 = 0x205;

fn recovery() -> Recovery {
    let asking = Asking {
        configuration: 4,
        round: ROUND,
        drawn: 0x21,
    };
    Recovery::new(DEPLOYMENT, asking, 9, b"none")
}

fn promise(acceptor: u8) -> Header {
    Header {
        kind: Kind::P1b as u8,
        sender: acceptor,
        group: 7,
        term: ROUND,
        index: 9,
        commit_index: 4 ^ 0x21,
        ..Header::default()
    }
}

fn voted(acceptor: u8, round: u64, sequence: u64) -> Header {
    Header {
        flags: FLAG_FRAGMENT,
        previous_term: round,
        session: 5,
        sequence,
        payload_crc32c: quorumwire_wire::payload_checksum(b"value"),
        ..promise(acceptor)
    }
}

#[test]
fn without_a_vote_the_no_op_is_proposed() {
    let mut recovery = recovery();
    let question = recovery.question();
    assert_eq!((question.kind, question.sender), (Kind::P1a as u8, 5));
    assert_eq!((question.term, question.index), (ROUND, 9));
    assert_eq!((question.session, question.commit_index), (0x21, 4));
    assert_eq!(recovery.on_answer(&promise(0), b""), Heard::Promised);
    assert!(recovery.proposal().is_none());
    assert_eq!(
        recovery.on_answer(&promise(0), b""),
        Heard::Nothing,
        "one of the same"
    );
    assert_eq!(recovery.on_answer(&promise(2), b""), Heard::Majority);
    let (header, payload) = recovery.proposal().unwrap();
    assert_eq!(
        (header.kind, header.sender, header.session),
        (Kind::P2a as u8, 5, 0)
    );
    assert_eq!(
        (header.term, header.index, header.commit_index),
        (ROUND, 9, 4)
    );
    assert_eq!((payload, header.payload_bytes), (&b"none"[..], 4));
    assert_eq!(
        header.payload_crc32c,
        quorumwire_wire::payload_checksum(b"none")
    );
    assert_eq!(
        recovery.on_answer(&promise(1), b""),
        Heard::Nothing,
        "it is proposed already"
    );
}

#[test]
fn the_vote_of_the_highest_round_is_proposed_whole() {
    for order in [[0, 1], [1, 0]] {
        let mut recovery = recovery();
        let votes = [
            (voted(0, 0x101, 1), b"other"),
            (voted(1, 0x104, 2), b"value"),
        ];
        for place in order {
            let (header, payload) = votes[place];
            assert_ne!(recovery.on_answer(&header, payload), Heard::Nothing);
        }
        let (header, payload) = recovery.proposal().unwrap();
        assert_eq!(
            (header.session, header.sequence, payload),
            (5, 2, &b"value"[..])
        );
        assert_eq!(
            (header.flags, header.payload_bytes),
            (FLAG_FRAGMENT | FLAG_TELL, 5)
        );
        assert_eq!(
            header.payload_crc32c,
            quorumwire_wire::payload_checksum(b"value")
        );
        assert_eq!(header.previous_term, 0);
    }
}

#[test]
fn what_answers_another_question_is_nothing() {
    let mut recovery = recovery();
    let good = promise(0);
    for header in [
        Header { group: 8, ..good },
        Header {
            commit_index: 5,
            ..good
        },
        Header { index: 8, ..good },
        Header {
            term: ROUND - 0x100,
            ..good
        },
        Header { sender: 3, ..good },
        Header {
            kind: Kind::P2b as u8,
            ..good
        },
        Header {
            kind: Kind::P2a as u8,
            ..good
        },
    ] {
        assert_eq!(
            recovery.on_answer(&header, b""),
            Heard::Nothing,
            "{header:?}"
        );
    }
}

#[test]
fn a_refusal_says_why() {
    let mut recovery = recovery();
    let refused = Header {
        flags: FLAG_REFUSED,
        commit_index: 4,
        term: 0x301,
        previous_term: ROUND,
        sequence: 8,
        ..promise(0)
    };
    let of_another = Header {
        previous_term: ROUND + 1,
        ..refused
    };
    assert_eq!(recovery.on_answer(&of_another, b""), Heard::Nothing);
    let expected = Heard::Refused { promised: 0x301 };
    assert_eq!(recovery.on_answer(&refused, b""), expected);
    let of_vote = Header {
        kind: Kind::P2b as u8,
        ..refused
    };
    assert_eq!(recovery.on_answer(&of_vote, b""), expected);
    let trimmed = Header {
        sequence: 9,
        ..refused
    };
    assert_eq!(
        recovery.on_answer(&trimmed, b""),
        Heard::Trimmed { upto: 9 }
    );
    let impossible = Header {
        sequence: u64::MAX,
        ..refused
    };
    assert_eq!(recovery.on_answer(&impossible, b""), Heard::Nothing);
    // Its own round, and a majority has promised: a late copy of the question.
    let late = Header {
        term: ROUND,
        ..refused
    };
    let own = Heard::Refused { promised: ROUND };
    assert_eq!(recovery.on_answer(&late, b""), own);
    let _ = recovery.on_answer(&promise(0), b"");
    let _ = recovery.on_answer(&promise(1), b"");
    assert_eq!(recovery.on_answer(&late, b""), Heard::Nothing);
}

#[test]
fn a_majority_of_votes_decides() {
    let mut recovery = recovery();
    let vote = |acceptor| Header {
        kind: Kind::P2b as u8,
        commit_index: 4,
        ..promise(acceptor)
    };
    assert_eq!(recovery.on_answer(&vote(1), b""), Heard::Nothing);
    assert_eq!(recovery.on_answer(&vote(1), b""), Heard::Nothing);
    let other = Header {
        term: ROUND + 0x100,
        ..vote(0)
    };
    assert_eq!(recovery.on_answer(&other, b""), Heard::Nothing);
    assert_eq!(recovery.on_answer(&vote(0), b""), Heard::Decided);
}

/// Who asks may have asked for this round in a former life. What was promised then knows less.
#[test]
fn a_promise_to_another_question_for_the_same_round_counts_for_nothing() {
    let mut recovery = recovery();
    let to_former_life = Header {
        commit_index: 4 ^ 0x22,
        ..promise(0)
    };
    assert_eq!(recovery.on_answer(&to_former_life, b""), Heard::Nothing);
    assert_eq!(recovery.on_answer(&promise(0), b""), Heard::Promised);
}
