use super::*;
use crate::orders::Order;
use std::collections::{BTreeSet, VecDeque};

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 2,
    copies: 2,
    window: 16,
};
const ROUND: u64 = 0x200;

fn at(ms: u64) -> Since {
    Duration::from_millis(ms)
}

fn learner() -> Learner {
    learner_with(8)
}

fn learner_with(seed: u64) -> Learner {
    let options = LearnerOptions {
        deployment: DEPLOYMENT,
        me: 1,
        patience: at(10),
        retry: at(5),
        report: at(100),
    };
    Learner::new(options, 44, 0, Values::default(), seed)
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

fn refused(question: &Header, acceptor: u8, promised: u64) -> Header {
    Header {
        flags: FLAG_REFUSED,
        term: promised,
        previous_term: question.term,
        session: 0,
        ..Header {
            sender: acceptor,
            kind: Kind::P1b as u8,
            ..*question
        }
    }
}

/// Questions that were sent since, in the order of time.
fn asked_until(learner: &mut Learner, ms: u64) -> Vec<(u64, Header)> {
    let mut asked = Vec::new();
    let mut orders = Orders::new();
    for now in 0..=ms {
        learner.tick(at(now), &mut orders);
        let questions = sent(&mut orders).into_iter();
        let questions = questions.filter(|it| it.kind == Kind::P1a as u8);
        asked.extend(questions.map(|it| (now, it)));
    }
    asked
}

#[test]
fn after_a_refusal_a_round_above_is_tried() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    assert_eq!(learner.recover(at(0), 4, b"", &mut orders), Ok(()));
    let question = sent(&mut orders)[0];
    learner
        .on_packet(at(0), &refused(&question, 0, 0x700), b"", &mut orders)
        .unwrap();
    let asked = asked_until(&mut learner, 5);
    assert_eq!((asked[0].1.term, asked[0].1.index), (0x703, 4));
}

/// Else two learners would refuse each other for ever.
#[test]
fn refused_learners_wait_for_different_times_and_longer_each_time() {
    let mut waits = Vec::new();
    let mut longest = 0;
    for seed in 0..20 {
        let (mut learner, mut orders) = (learner_with(seed), Orders::new());
        learner.recover(at(0), 4, b"", &mut orders).unwrap();
        let mut question = sent(&mut orders)[0];
        let mut now = 0;
        for time in 0..8 {
            for acceptor in 0..3 {
                let refused = refused(&question, acceptor, question.term + 0xff);
                learner
                    .on_packet(at(now), &refused, b"", &mut orders)
                    .unwrap();
            }
            let begun = now;
            let next = loop {
                now += 1;
                learner.tick(at(now), &mut orders);
                let mut sent = sent(&mut orders).into_iter();
                if let Some(next) = sent.find(|it| it.kind == Kind::P1a as u8) {
                    break next;
                }
            };
            assert!(next.term > question.term);
            if time == 0 {
                waits.push(now - begun);
            }
            longest = longest.max(now - begun);
            question = next;
        }
    }
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 3, "{waits:?}");
    assert!((40..=640).contains(&longest), "{longest} ms");
}

/// Rounds that a learner asks in until an instance is decided, if each answer comes so late.
fn rounds_until_decided(
    learner: &mut Learner,
    now: &mut u64,
    instance: u64,
    late_ms: u64,
) -> usize {
    let mut orders = Orders::new();
    learner
        .recover(at(*now), instance, b"", &mut orders)
        .unwrap();
    let (mut rounds, mut promised) = (BTreeSet::new(), 0);
    let mut on_the_way: VecDeque<(u64, Header)> = VecDeque::new();
    while !learner.votes.is_decided(instance) && instance >= learner.next() {
        for sent in sent(&mut orders) {
            on_the_way.push_back((*now + late_ms, sent));
        }
        *now += 1;
        while let Some((_, header)) = on_the_way.pop_front_if(|(due, _)| due <= now) {
            if header.term < promised {
                continue;
            }
            promised = header.term;
            rounds.insert(header.term);
            let asks = header.kind == Kind::P1a as u8;
            for acceptor in 0..2 {
                let answer = Header {
                    kind: if asks { Kind::P1b } else { Kind::P2b } as u8,
                    sender: acceptor,
                    previous_term: if asks { 0 } else { header.term },
                    commit_index: header.commit_index ^ if asks { header.session } else { 0 },
                    session: 0,
                    ..header
                };
                let heard = learner.on_packet(at(*now), &answer, b"", &mut orders);
                assert!(heard.is_ok() || heard == Err(Ignored::NoVote), "{heard:?}");
            }
        }
        learner.tick(at(*now), &mut orders);
        assert!(*now < 10_000, "never decided");
    }
    rounds.len()
}

/// Else each instance would take as many rounds as the first, and each round hinders a coordinator.
#[test]
fn what_it_has_found_out_about_waiting_holds_for_all_instances() {
    let (mut learner, mut now) = (learner(), 0);
    assert!(rounds_until_decided(&mut learner, &mut now, 1, 100) > 1);
    for instance in 2..6 {
        assert_eq!(
            rounds_until_decided(&mut learner, &mut now, instance, 100),
            1
        );
    }
    // Once answers are fast again it asks again soon.
    for instance in 6..12 {
        assert_eq!(rounds_until_decided(&mut learner, &mut now, instance, 1), 1);
    }
    assert_eq!(learner.patience.doublings, 0);
}

#[test]
fn what_the_caller_asks_for_stays_asked_for_with_its_own_no_op() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    learner.recover(at(0), 4, b"mine", &mut orders).unwrap();
    let first = sent(&mut orders)[0];
    let asked = asked_until(&mut learner, 40);
    let (_, later) = asked.last().unwrap();
    assert_eq!(later.index, 4);
    assert!(later.term > first.term, "nobody has answered");
    for acceptor in 0..2 {
        let promise = Header {
            kind: Kind::P1b as u8,
            sender: acceptor,
            commit_index: later.commit_index ^ later.session,
            session: 0,
            ..*later
        };
        learner
            .on_packet(at(41), &promise, b"", &mut orders)
            .unwrap();
    }
    let [Order::Send { payload, .. }] = &orders[..] else {
        panic!("{orders:?}");
    };
    assert_eq!(payload, b"mine");
    decide(&mut learner, 4, &mut orders);
    sent(&mut orders);
    learner.tick(at(49), &mut orders);
    assert!(!learner.recovering.contains_key(&4), "it is decided");
}

#[test]
fn what_cannot_be_asked_for_is_refused_with_the_reason() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    let mut recover = |instance, no_op: &[u8]| learner.recover(at(0), instance, no_op, &mut orders);
    assert_eq!(recover(0, b""), Err(NotAsked::Given));
    assert_eq!(recover(17, b""), Err(NotAsked::Beyond));
    let too_long = NotAsked::TooLong {
        bytes: PAYLOAD_BYTES_MAX + 1,
        bytes_max: PAYLOAD_BYTES_MAX,
    };
    assert_eq!(recover(1, &[0; PAYLOAD_BYTES_MAX + 1]), Err(too_long));
    assert_eq!(recover(1, &[0; PAYLOAD_BYTES_MAX]), Ok(()));
    assert_eq!(recover(1, b"another"), Ok(()));
}

#[test]
fn the_caller_cannot_ask_for_all_at_a_time() {
    let options = LearnerOptions {
        deployment: Deployment {
            window: 128,
            ..DEPLOYMENT
        },
        ..learner().options
    };
    let mut learner = Learner::new(options, 44, 0, Values::default(), 8);
    let mut orders = Orders::new();
    let mut recover = |instance| learner.recover(at(0), instance, b"", &mut orders);
    let last = RECOVERING_MAX as u64;
    assert!((1..=last).all(|instance| recover(instance).is_ok()));
    assert_eq!(recover(last + 1), Err(NotAsked::TooMany));
    assert_eq!(recover(last), Ok(()), "it is asked for already");
}

/// One packet of somebody who has the key, and what is asked for because of it.
#[test]
fn what_cannot_be_is_not_believed() {
    let beat = Header {
        term: ROUND,
        index: 17,
        commit_index: 55,
        ..DEPLOYMENT.header(Kind::Heartbeat, 0)
    };
    for wild in [beat, vote(0, 17)] {
        for index in [17, 1000, u64::MAX] {
            let (mut learner, mut orders) = (learner(), Orders::new());
            let wild = Header { index, ..wild };
            let believed = learner.on_packet(at(0), &wild, b"", &mut orders);
            assert_eq!(believed, Err(Ignored::Beyond));
            let asked = asked_until(&mut learner, 20);
            assert!(!asked.is_empty(), "whether the others have forgotten more");
            assert!(asked.iter().all(|(_, it)| it.index == 1), "{asked:?}");
            decide(&mut learner, 1, &mut orders);
            learner.take().unwrap();
            assert_eq!(asked_until(&mut learner, 40), []);
        }
    }
}

#[test]
fn what_all_others_have_forgotten_takes_a_checkpoint() {
    let (mut learner, mut orders) = (learner(), Orders::new());
    learner.recover(at(0), 4, b"", &mut orders).unwrap();
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

/// Who was away for long asks for the next instance as soon as one is decided: a batch does not wait for a
/// tick, nor for what has just been given.
#[test]
fn who_lacks_many_does_not_wait_between_them() {
    let window = 128;
    let options = LearnerOptions {
        deployment: Deployment {
            window,
            ..DEPLOYMENT
        },
        ..learner().options
    };
    let mut learner = Learner::new(options, 44, 0, Values::default(), 8);
    let mut orders = Orders::new();
    let last = u64::from(window);
    let beat = Header {
        term: ROUND,
        index: last,
        commit_index: 55,
        ..DEPLOYMENT.header(Kind::Heartbeat, 0)
    };
    learner.on_packet(at(0), &beat, b"", &mut orders).unwrap();
    learner.tick(at(0), &mut orders);
    learner.tick(at(10), &mut orders);
    let mut asked: VecDeque<Header> = sent(&mut orders).into();
    asked.retain(|it| it.kind == Kind::P1a as u8);
    assert_eq!(asked.len(), RECOVERING_MAX);
    while let Some(header) = asked.pop_front() {
        assert!(header.index <= last, "{header:?}");
        let asks = header.kind == Kind::P1a as u8;
        for acceptor in 0..2 {
            let answer = Header {
                kind: if asks { Kind::P1b } else { Kind::P2b } as u8,
                flags: 0,
                sender: acceptor,
                previous_term: if asks { 0 } else { header.term },
                commit_index: header.commit_index ^ if asks { header.session } else { 0 },
                session: 0,
                ..header
            };
            learner.on_packet(at(10), &answer, b"", &mut orders).ok();
        }
        asked.extend(sent(&mut orders));
        while learner.take().is_some() {}
    }
    assert_eq!(learner.next(), last + 1);
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
    assert_eq!(learner.recover(at(0), 1, b"", &mut orders), Ok(()));
}
