use super::*;
use crate::votes::Decided;

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 1,
    copies: 1,
    window: 16,
};
const RETRY: Duration = Duration::from_millis(10);

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What was sent since: where to, number and flags.
fn sent(orders: &mut Orders) -> Vec<(To, u64, u8)> {
    use crate::orders::Order;
    let all = orders.drain(..).map(|order| match order {
        Order::Send { to, header, .. } => (to, header.sequence, header.flags),
        Order::SwitchOn(_) | Order::SwitchOff | Order::Configure(_) | Order::Trim(_) => {
            panic!("{order:?}")
        }
    });
    all.collect()
}

fn learned(proposer: &Proposer, instance: u64, sequence: u64, fate: Fate) -> Learned {
    let decided = Decided {
        instance,
        session: proposer.session,
        sequence,
        is_fragment: fate == Fate::Piece,
        payload: piece_header(0, 3).to_vec(),
    };
    Learned { decided, fate }
}

fn opened() -> (Proposer, Orders) {
    let mut proposer = Proposer::new(DEPLOYMENT, RETRY, 3);
    let mut orders = Orders::new();
    assert_eq!(proposer.submit(at(0), b"x", Some(1), &mut orders), Ok(1));
    assert_eq!(sent(&mut orders), [(To::Coordinator(1), OPENING, 0)]);
    let opening = learned(&proposer, 1, OPENING, Fate::NoOp);
    assert_eq!(
        proposer.on_learned(at(1), &opening, Some(1), &mut orders),
        []
    );
    (proposer, orders)
}

/// What was sent to a coordinator that is gone does not wait for its next try.
#[test]
fn who_begins_to_coordinate_is_sent_what_others_were_sent_before() {
    let (mut proposer, mut orders) = opened();
    let first = WINDOW + 1;
    for ms in [11, 31, 71] {
        proposer.tick(at(ms), Some(1), &mut orders);
    }
    sent(&mut orders);
    proposer.tick(at(100), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), [], "the next try is far");
    proposer.coordinated_anew(at(100), Some(0), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinators, first, 0)]);
    // From then on it is tried as if it were new.
    proposer.tick(at(119), Some(0), &mut orders);
    assert_eq!(sent(&mut orders), []);
    proposer.tick(at(120), Some(0), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinators, first, 0)]);
}

/// A window that is full each time that a value is tried would keep it out for ever, while later ones come
/// through.
#[test]
fn a_value_that_later_ones_overtake_is_tried_soon() {
    let (mut proposer, mut orders) = opened();
    let first = WINDOW + 1;
    let later = proposer.submit(at(1), b"y", Some(1), &mut orders);
    assert_eq!(later, Ok(2));
    for ms in [11, 31, 71] {
        proposer.tick(at(ms), Some(1), &mut orders);
    }
    sent(&mut orders);
    let value = learned(&proposer, 5, first + 1, Fate::Value(b"y".to_vec()));
    let settled = proposer.on_learned(at(82), &value, Some(1), &mut orders);
    assert_eq!(settled.len(), 1);
    proposer.tick(at(82), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinators, first, 0)]);
    // Not for each of them.
    let again = learned(&proposer, 6, first + 1, Fate::Repeated);
    proposer.on_learned(at(83), &again, Some(1), &mut orders);
    proposer.tick(at(83), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), []);
}

/// A session that was being opened at a coordinator that is gone is not waited for.
#[test]
fn who_begins_to_coordinate_opens_the_session_that_another_one_did_not() {
    let mut proposer = Proposer::new(DEPLOYMENT, RETRY, 3);
    let mut orders = Orders::new();
    assert_eq!(proposer.submit(at(0), b"x", Some(1), &mut orders), Ok(1));
    let first = proposer.session;
    assert_eq!(sent(&mut orders), [(To::Coordinator(1), OPENING, 0)]);
    proposer.coordinated_anew(at(5), Some(0), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinator(0), OPENING, 0)]);
    assert_ne!(proposer.session, first, "the first one may be opened yet");
}

#[test]
fn values_wait_for_their_session_and_are_sent_until_they_are_heard_of() {
    let (mut proposer, mut orders) = opened();
    let first = WINDOW + 1;
    assert_eq!(sent(&mut orders), [(To::Coordinator(1), first, 0)]);
    proposer.tick(at(10), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), []);
    proposer.tick(at(11), Some(1), &mut orders);
    assert_eq!(
        sent(&mut orders),
        [(To::Coordinators, first, 0)],
        "to all of them now"
    );
    proposer.tick(at(30), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), [], "after longer");
    let value = learned(&proposer, 5, first, Fate::Value(b"x".to_vec()));
    let settled = Settled {
        ticket: 1,
        instance: Some(5),
    };
    assert_eq!(
        proposer.on_learned(at(31), &value, None, &mut orders),
        [settled]
    );
    assert_eq!(
        proposer.on_learned(at(31), &value, None, &mut orders),
        [],
        "once"
    );
    let mut foreign = value;
    foreign.decided.session ^= 1;
    assert_eq!(proposer.on_learned(at(31), &foreign, None, &mut orders), []);
    proposer.tick(at(99), None, &mut orders);
    assert_eq!(sent(&mut orders), []);
}

/// A session is never opened twice: of several coordinators each might give that an instance.
#[test]
fn a_session_that_is_not_opened_in_time_gives_way_to_another() {
    let mut proposer = Proposer::new(DEPLOYMENT, RETRY, 3);
    let mut orders = Orders::new();
    proposer.submit(at(0), b"x", None, &mut orders).unwrap();
    let before = proposer.session;
    proposer.tick(at(9), None, &mut orders);
    assert_eq!(sent(&mut orders), [], "to whom is not known");
    proposer.tick(at(10), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinator(1), OPENING, 0)]);
    proposer.tick(at(89), Some(1), &mut orders);
    assert_eq!((sent(&mut orders), proposer.session), (vec![], before));
    proposer.tick(at(90), Some(1), &mut orders);
    assert_ne!(proposer.session, before);
    // Who is heard may be gone, and the other one not know that it is outdated.
    assert_eq!(sent(&mut orders), [(To::Coordinator(0), OPENING, 0)]);
    proposer.tick(at(250), Some(1), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinator(1), OPENING, 0)]);
    proposer.coordinated_anew(at(260), Some(0), &mut orders);
    assert_eq!(sent(&mut orders), [(To::Coordinator(0), OPENING, 0)]);
}

#[test]
fn all_coordinators_have_their_turn_to_open_a_session() {
    let all = Deployment {
        coordinators: 4,
        ..DEPLOYMENT
    };
    let mut proposer = Proposer::new(all, RETRY, 3);
    let asked: Vec<u8> = (0..7)
        .map(|in_vain| {
            proposer.opened_in_vain = in_vain;
            proposer.opens_at(2)
        })
        .collect();
    assert_eq!(asked, [2, 3, 2, 0, 2, 1, 2]);
}

#[test]
fn what_was_sent_in_a_session_that_is_gone_is_unknown() {
    let (mut proposer, mut orders) = opened();
    proposer.submit(at(2), b"y", None, &mut orders).unwrap();
    let gone = Fate::Refused(SessionRefusal::UnknownSession);
    let refused = learned(&proposer, 9, WINDOW + 1, gone);
    let settled = proposer.on_learned(at(3), &refused, None, &mut orders);
    let unknown = |ticket| Settled {
        ticket,
        instance: None,
    };
    assert_eq!(settled, [unknown(1), unknown(2)]);
    assert_eq!(proposer.outstanding(), 0);
    sent(&mut orders);
    proposer.submit(at(4), b"z", Some(0), &mut orders).unwrap();
    assert_eq!(
        sent(&mut orders),
        [(To::Coordinator(0), OPENING, 0)],
        "another session"
    );
}

#[test]
fn values_are_refused_that_are_too_long_or_too_many() {
    let (mut proposer, mut orders) = opened();
    let bytes = VALUE_BYTES_MAX + 1;
    let long = proposer.submit(at(2), &vec![0; bytes], None, &mut orders);
    assert_eq!(long, Err(NotTaken::TooLong { bytes }));
    for _ in 1..OUTSTANDING_MAX {
        proposer.submit(at(2), b"y", None, &mut orders).unwrap();
    }
    let full = proposer.submit(at(2), b"y", None, &mut orders);
    assert_eq!(full, Err(NotTaken::WindowFull));
    let longest = vec![0; VALUE_BYTES_MAX];
    let mut other = Proposer::new(DEPLOYMENT, RETRY, 4);
    other.submit(at(2), &longest, None, &mut orders).unwrap();
}

#[test]
fn a_long_value_goes_in_pieces() {
    let (mut proposer, mut orders) = opened();
    sent(&mut orders);
    proposer
        .submit(at(2), &vec![0; 3000], Some(0), &mut orders)
        .unwrap();
    let sequence = WINDOW + 2;
    let piece = (To::Coordinator(0), sequence, FLAG_FRAGMENT);
    assert_eq!(sent(&mut orders), [piece; 3]);
    let kept = learned(&proposer, 7, sequence, Fate::Piece);
    assert_eq!(proposer.on_learned(at(3), &kept, Some(0), &mut orders), []);
    proposer.tick(at(13), Some(0), &mut orders);
    let again = sent(&mut orders);
    let pieces = again.iter().filter(|(_, it, _)| *it == sequence).count();
    assert_eq!(pieces, 2, "those that were not heard of: {again:?}");
}
