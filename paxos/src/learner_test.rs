use super::*;
use crate::orders::Order;

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 2,
    window: 16,
};
const ROUND: u64 = 0x200;

fn at(ms: u64) -> Since {
    Duration::from_millis(ms)
}

fn learner() -> Learner {
    let options = LearnerOptions {
        deployment: DEPLOYMENT,
        me: 1,
        patience: at(10),
        retry: at(5),
        report: at(100),
    };
    Learner::new(options, 44, 0, Values::default(), 8)
}

fn vote(acceptor: u8, instance: u64) -> Header {
    Header {
        term: ROUND,
        index: instance,
        previous_term: ROUND,
        commit_index: 55,
        session: 3,
        sequence: instance,
        ..DEPLOYMENT.header(Kind::P2b, acceptor)
    }
}

fn decide(learner: &mut Learner, instance: u64, orders: &mut Orders) {
    for acceptor in 0..2 {
        let counted = learner.on_packet(at(0), &vote(acceptor, instance), b"", orders);
        assert_eq!(counted, Ok(()));
    }
}

/// What was sent since, to acceptors.
fn sent(orders: &mut Orders) -> Vec<Header> {
    let all = orders.drain(..).filter_map(|order| match order {
        Order::Send {
            to: To::Acceptors,
            header,
            ..
        } => Some(header),
        Order::Send { .. } => None,
        Order::SwitchOn(_) | Order::SwitchOff | Order::Configure(_) | Order::Trim(_) => {
            panic!("{order:?}")
        }
    });
    all.collect()
}

#[test]
fn what_is_missing_is_asked_for_after_a_while_in_a_round_of_its_own() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    learner.tick(at(0), &mut orders);
    sent(&mut orders);
    decide(&mut learner, 2, &mut orders);
    learner.tick(at(1), &mut orders);
    learner.tick(at(10), &mut orders);
    assert_eq!(sent(&mut orders), []);
    learner.tick(at(11), &mut orders);
    let asked = sent(&mut orders);
    let [question] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((question.kind, question.index), (Kind::P1a as u8, 1));
    assert_eq!(
        (question.term, question.sender),
        (0x203, 3),
        "the second learner's"
    );
    assert_eq!(question.commit_index, 55, "the coordinator's configuration");
    learner.tick(at(15), &mut orders);
    assert_eq!(sent(&mut orders), []);
    learner.tick(at(16), &mut orders);
    assert_eq!(sent(&mut orders), [*question], "again");

    let promise = |acceptor| Header {
        term: question.term,
        index: 1,
        commit_index: 0x37 ^ question.session,
        ..DEPLOYMENT.header(Kind::P1b, acceptor)
    };
    learner
        .on_packet(at(17), &promise(0), b"", &mut orders)
        .unwrap();
    learner
        .on_packet(at(17), &promise(2), b"", &mut orders)
        .unwrap();
    let proposed = sent(&mut orders);
    assert_eq!(
        (proposed[0].kind, proposed[0].session),
        (Kind::P2a as u8, 0)
    );
    decide(&mut learner, 1, &mut orders);
    assert_eq!(learner.take().unwrap().decided.instance, 1);
    assert_eq!(learner.take().unwrap().decided.instance, 2);
    learner.tick(at(40), &mut orders);
    assert_eq!(sent(&mut orders), [], "nothing is missing");
}

#[test]
fn after_a_refusal_a_round_above_is_tried() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    assert!(learner.recover(at(0), 4, b"", &mut orders));
    let question = sent(&mut orders)[0];
    let refused = Header {
        flags: FLAG_REFUSED,
        term: 0x700,
        index: 4,
        previous_term: question.term,
        commit_index: 44,
        ..DEPLOYMENT.header(Kind::P1b, 0)
    };
    learner
        .on_packet(at(1), &refused, b"", &mut orders)
        .unwrap();
    assert!(learner.recover(at(1), 4, b"", &mut orders));
    assert_eq!(sent(&mut orders)[0].term, 0x703);
    assert!(!learner.recover(at(1), 0, b"", &mut orders));
    assert!(
        !learner.recover(at(1), 17, b"", &mut orders),
        "behind the window"
    );
}

#[test]
fn what_all_others_have_forgotten_takes_a_checkpoint() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    learner.recover(at(0), 4, b"", &mut orders);
    let question = sent(&mut orders)[0];
    let trimmed = Header {
        flags: FLAG_REFUSED,
        index: 4,
        previous_term: question.term,
        commit_index: 44,
        sequence: 6,
        ..DEPLOYMENT.header(Kind::P1b, 0)
    };
    assert_eq!(learner.is_behind(), None);
    learner
        .on_packet(at(1), &trimmed, b"", &mut orders)
        .unwrap();
    assert_eq!(learner.is_behind(), Some(6));
    assert!(learner.begin_behind(8, Values::default()));
    assert_eq!((learner.is_behind(), learner.next()), (None, 9));
    assert!(!learner.begin_behind(8, Values::default()), "it is further");
}

#[test]
fn it_reports_what_its_application_has_kept() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    decide(&mut learner, 1, &mut orders);
    decide(&mut learner, 2, &mut orders);
    learner.take().unwrap();
    learner.take().unwrap();
    learner.keep(1);
    learner.tick(at(0), &mut orders);
    let [report] = sent(&mut orders)[..] else {
        panic!()
    };
    assert_eq!((report.kind, report.sender), (Kind::Checkpoint as u8, 1));
    assert_eq!((report.index, report.sequence), (1, 2));
    learner.keep(99);
    learner.tick(at(99), &mut orders);
    assert_eq!(sent(&mut orders), []);
    learner.tick(at(100), &mut orders);
    assert_eq!(
        sent(&mut orders)[0].index,
        2,
        "what it does not have is not kept"
    );
}

#[test]
fn a_heartbeat_shows_what_is_missing_at_the_end() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    let beat = |round, last| Header {
        term: round,
        index: last,
        commit_index: 55,
        ..DEPLOYMENT.header(Kind::Heartbeat, 0)
    };
    learner
        .on_packet(at(0), &beat(ROUND, 3), b"", &mut orders)
        .unwrap();
    learner
        .on_packet(at(0), &beat(0x100, 9), b"", &mut orders)
        .unwrap();
    assert_eq!(learner.coordinator(), Some(0));
    learner.tick(at(0), &mut orders);
    sent(&mut orders);
    learner.tick(at(10), &mut orders);
    let asked: Vec<u64> = sent(&mut orders).iter().map(|it| it.index).collect();
    assert_eq!(asked, [1, 2, 3], "and not what an earlier coordinator says");
    let foreign = Header {
        group: 8,
        ..beat(ROUND, 3)
    };
    let refused = learner.on_packet(at(0), &foreign, b"", &mut orders);
    assert_eq!(refused, Err(Ignored::NoVote));
}

/// Who has only the clients' key could otherwise drive the rounds to their end.
#[test]
fn a_clients_packet_raises_no_round() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    let submit = Header {
        term: u64::MAX,
        ..DEPLOYMENT.header(Kind::Submit, 255)
    };
    let refused = learner.on_packet(at(0), &submit, b"", &mut orders);
    assert_eq!(refused, Err(Ignored::NoVote));
    assert!(learner.recover(at(0), 1, b"", &mut orders));
}
