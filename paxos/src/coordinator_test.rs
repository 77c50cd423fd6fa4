use super::*;

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 2,
    copies: 2,
    window: 16,
};

fn at(ms: u64) -> Since {
    Duration::from_millis(ms)
}

fn coordinator(me: u8) -> Coordinator {
    let options = CoordinatorOptions {
        deployment: DEPLOYMENT,
        me,
        is_where_known: true,
        heartbeat: at(10),
        silence: at(50),
        retry: at(5),
    };
    Coordinator::new(options, at(0), 1)
}

fn off() -> PaxosRegisters {
    PaxosRegisters::default()
}

fn sent(orders: &mut Orders) -> Vec<(To, Header)> {
    let all = orders.drain(..).filter_map(|order| match order {
        Order::Send { to, header, .. } => Some((to, header)),
        Order::SwitchOn(_) | Order::SwitchOff | Order::Configure(_) | Order::Trim(_) => None,
    });
    all.collect()
}

/// A coordinator that has asked for its first round, and what it asked.
fn asking(me: u8) -> (Coordinator, Header) {
    let (mut coordinator, mut orders) = (coordinator(me), Orders::new());
    let turn = coordinator.take_over(at(0), &mut orders);
    let asked = sent(&mut orders);
    let [(To::Acceptors, question)] = asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(
        turn,
        Turn::Asks {
            round: question.term
        }
    );
    (coordinator, question)
}

fn promise(question: &Header, acceptor: u8, highest: u64) -> Header {
    Header {
        term: question.term,
        index: question.index,
        commit_index: question.commit_index ^ question.session,
        sequence: highest,
        ..DEPLOYMENT.header(Kind::P1b, acceptor)
    }
}

fn refused(question: &Header, acceptor: u8, promised: u64) -> Header {
    Header {
        flags: FLAG_REFUSED,
        term: promised,
        commit_index: question.commit_index,
        previous_term: question.term,
        sequence: 0,
        ..promise(question, acceptor, 0)
    }
}

fn on(coordinator: &mut Coordinator, header: &Header) -> (Turn, Orders) {
    let mut orders = Orders::new();
    let turn = coordinator.on_packet(at(1), header, b"", &mut orders);
    (turn, orders)
}

fn coordinating() -> (Coordinator, Header) {
    let (mut coordinator, question) = asking(0);
    assert_eq!(
        on(&mut coordinator, &promise(&question, 0, 0)),
        (Turn::Nothing, vec![])
    );
    let (turn, orders) = on(&mut coordinator, &promise(&question, 2, 0));
    assert_eq!(
        turn,
        Turn::Coordinates {
            round: 0x100,
            next: 1
        }
    );
    let [Order::SwitchOn(registers)] = &orders[..] else {
        panic!("{orders:?}");
    };
    assert_eq!((registers.round, registers.next_instance), (0x100, 1));
    (coordinator, question)
}

#[test]
fn silence_lets_backups_take_over_one_after_the_other() {
    for (me, after) in [(0, 50), (1, 1050)] {
        let (mut coordinator, mut orders) = (coordinator(me), Orders::new());
        assert_eq!(
            coordinator.tick(at(after - 1), &off(), &mut orders),
            Turn::Nothing
        );
        let beat = Header {
            term: 0x201 - u64::from(me),
            ..DEPLOYMENT.header(Kind::Heartbeat, 1 - me)
        };
        coordinator.on_packet(at(30), &beat, b"", &mut orders);
        let older = Header {
            term: beat.term - 0x100,
            ..beat
        };
        coordinator.on_packet(at(45), &older, b"", &mut orders);
        assert_eq!(coordinator.tick(at(79), &off(), &mut orders), Turn::Nothing);
        let turn = coordinator.tick(at(80), &off(), &mut orders);
        let Turn::Asks { round } = turn else {
            panic!("{turn:?}")
        };
        assert!(round > beat.term);
    }
}

#[test]
fn what_was_voted_is_proposed_again_beside_the_box() {
    let (mut coordinator, question) = asking(0);
    on(&mut coordinator, &promise(&question, 0, 2));
    let (turn, mut orders) = on(&mut coordinator, &promise(&question, 1, 1));
    assert_eq!(
        turn,
        Turn::Coordinates {
            round: 0x100,
            next: 3
        },
        "behind all that may have a vote"
    );
    let asked: Vec<u64> = sent(&mut orders).iter().map(|(_, it)| it.index).collect();
    assert_eq!(asked, [2, 1]);
    let of = |acceptor, instance, voted_in| Header {
        index: instance,
        previous_term: voted_in,
        session: if voted_in > 0 { 5 } else { 0 },
        ..promise(&question, acceptor, 0)
    };
    assert_eq!(
        on(&mut coordinator, &of(0, 1, 0x80)),
        (Turn::Nothing, vec![])
    );
    let (_, mut orders) = on(&mut coordinator, &of(1, 1, 0));
    let proposed = sent(&mut orders);
    assert_eq!(
        (proposed[0].1.kind, proposed[0].1.session),
        (Kind::P2a as u8, 5)
    );
    on(&mut coordinator, &of(1, 2, 0));
    let (_, mut orders) = on(&mut coordinator, &of(2, 2, 0));
    let proposed = sent(&mut orders);
    assert_eq!(
        (proposed[0].1.index, proposed[0].1.session),
        (2, 0),
        "a no-op"
    );
    // Both are proposed to all again until they are decided.
    let vote = |acceptor, instance| Header {
        kind: Kind::P2b as u8,
        commit_index: question.commit_index,
        previous_term: question.term,
        ..of(acceptor, instance, 0)
    };
    on(&mut coordinator, &vote(0, 1));
    on(&mut coordinator, &vote(1, 1));
    coordinator.tick(at(6), &off(), &mut orders);
    let again: Vec<u64> = sent(&mut orders)
        .iter()
        .filter(|(to, it)| (*to, it.kind) == (To::Acceptors, Kind::P2a as u8))
        .map(|(_, it)| it.index)
        .collect();
    assert_eq!(again, [2]);
}

/// The next one by number waits for the shortest time, whoever it is; who coordinated itself for the longest.
#[test]
fn whoever_is_next_behind_the_last_coordinator_takes_over_first() {
    for (me, last, after) in [(1, 0, 50), (2, 0, 100), (0, 0, 150), (2, 1, 50), (0, 2, 50)] {
        let (mut coordinator, mut orders) = (coordinator(me), Orders::new());
        coordinator.options.deployment.coordinators = 3;
        coordinator.coordinated_round = 0x200 + last;
        assert_eq!(
            coordinator.tick(at(after - 1), &off(), &mut orders),
            Turn::Nothing
        );
        let turn = coordinator.tick(at(after), &off(), &mut orders);
        assert!(
            matches!(turn, Turn::Asks { .. }),
            "{me} behind {last}: {turn:?}"
        );
    }
}

/// Promises may take longer than backups wait: two that hinder each other must give each other more time.
#[test]
fn a_backup_that_is_hindered_waits_twice_as_long_each_time() {
    let (mut coordinator, mut question) = asking(0);
    let mut waits = Vec::new();
    let mut now = 60;
    for _ in 0..8 {
        let mut orders = Orders::new();
        let refused = refused(&question, 1, question.term + 0x101);
        let turn = coordinator.on_packet(at(now), &refused, b"", &mut orders);
        assert!(matches!(turn, Turn::StandsBy { .. }), "{turn:?}");
        let begun = now;
        while coordinator.tick(at(now), &off(), &mut orders) == Turn::Nothing {
            now += 1;
        }
        waits.push(now - begun);
        let asked = sent(&mut orders).into_iter();
        let mut asked = asked.map(|(_, header)| header);
        question = asked.next_back().expect("it asks");
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 3200, 3200]);
    // Somebody coordinates: it is heard as before.
    let beat = Header {
        term: question.term + 0x101,
        ..DEPLOYMENT.header(Kind::Heartbeat, 1)
    };
    let mut orders = Orders::new();
    coordinator.on_packet(at(now), &beat, b"", &mut orders);
    assert_eq!(
        coordinator.tick(at(now + 49), &off(), &mut orders),
        Turn::Nothing
    );
    let turn = coordinator.tick(at(now + 50), &off(), &mut orders);
    assert!(matches!(turn, Turn::Asks { .. }), "{turn:?}");
}

#[test]
fn a_round_that_was_promised_to_another_makes_a_backup() {
    for on_its_own in [false, true] {
        let (mut coordinator, question) = if on_its_own {
            coordinating()
        } else {
            asking(0)
        };
        let (turn, orders) = on(&mut coordinator, &refused(&question, 1, 0x101));
        assert_eq!(turn, Turn::StandsBy { round: 0x101 });
        assert_eq!(orders.contains(&Order::SwitchOff), on_its_own);
        assert!(!coordinator.coordinates());
        let (turn, _) = on(&mut coordinator, &promise(&question, 2, 0));
        assert_eq!(turn, Turn::Nothing, "too late");
    }
}

#[test]
fn a_learners_round_makes_no_backup() {
    let (mut coordinator, question) = asking(0);
    let (turn, _) = on(&mut coordinator, &refused(&question, 1, 0x502));
    assert_eq!(turn, Turn::Asks { round: 0x600 }, "a round above it");
    let (mut coordinator, question) = coordinating();
    let single = Header {
        index: 4,
        ..question
    };
    let (turn, orders) = on(&mut coordinator, &refused(&single, 1, 0x502));
    assert_eq!((turn, orders), (Turn::Nothing, vec![]));
}

/// Two of one number that do not hear each other: each asks for a round above the other's, and is told by the
/// acceptors only.
#[test]
fn two_of_one_number_that_do_not_hear_each_other_are_found() {
    for is_where_known in [false, true] {
        let (mut coordinator, mut question) = coordinating();
        coordinator.options.is_where_known = is_where_known;
        for time in 0.. {
            let vote = Header {
                index: 1,
                ..question
            };
            let above = question.term + 0x100;
            // One acceptor may have had what an earlier life of this coordinator had asked.
            for _ in 0..2 {
                let (turn, orders) = on(&mut coordinator, &refused(&vote, 1, above));
                assert_eq!((turn, orders), (Turn::Nothing, vec![]));
            }
            let (turn, mut orders) = on(&mut coordinator, &refused(&vote, 2, above));
            assert_eq!(orders.first(), Some(&Order::SwitchOff));
            if time == TAKEN_MAX {
                let waits = Turn::StandsBy { round: above };
                let ends = if is_where_known {
                    waits
                } else {
                    Turn::SameNumber
                };
                assert_eq!(turn, ends);
                break;
            }
            let round = above + 0x100;
            assert_eq!(turn, Turn::Asks { round });
            question = sent(&mut orders)[0].1;
            on(&mut coordinator, &promise(&question, 0, 0));
            let (turn, _) = on(&mut coordinator, &promise(&question, 2, 0));
            assert!(matches!(turn, Turn::Coordinates { .. }));
        }
    }
}

/// An acceptor that has promised what an earlier life had asked is asked for a round above that: without it
/// there may be no majority, when another one is gone.
#[test]
fn an_acceptor_that_has_promised_an_earlier_life_is_asked_anew() {
    let (mut coordinator, question) = coordinating();
    on(
        &mut coordinator,
        &refused(&question, 1, question.term + 0x100),
    );
    let mut orders = Orders::new();
    assert_eq!(coordinator.tick(at(50), &off(), &mut orders), Turn::Nothing);
    let turn = coordinator.tick(at(51), &off(), &mut orders);
    let round = question.term + 0x200;
    assert_eq!(turn, Turn::Asks { round });
    assert_eq!(coordinator.taken, 0);
}

#[test]
fn two_that_ask_for_the_same_rounds_are_found() {
    for is_where_known in [false, true] {
        let (mut coordinator, mut question) = asking(0);
        coordinator.options.is_where_known = is_where_known;
        for time in 0..TAKEN_MAX {
            // Its own, or one above.
            let promised = question.term + 0x100 * u64::from(time % 2);
            let (turn, orders) = on(&mut coordinator, &refused(&question, 1, promised));
            let Turn::Asks { round } = turn else {
                panic!("{turn:?}")
            };
            let Some(Order::Send { header, .. }) = orders.last() else {
                panic!()
            };
            assert!(round > promised);
            question = *header;
        }
        let (turn, _) = on(&mut coordinator, &refused(&question, 1, question.term));
        let mut orders = Orders::new();
        if !is_where_known {
            assert_eq!(turn, Turn::SameNumber);
            continue;
        }
        // It asks again, later than after a silence.
        let round = question.term;
        assert_eq!(turn, Turn::StandsBy { round });
        assert_eq!(
            coordinator.tick(at(100), &off(), &mut orders),
            Turn::Nothing
        );
        let turn = coordinator.tick(at(1000), &off(), &mut orders);
        assert!(matches!(turn, Turn::Asks { .. }), "{turn:?}");
    }
}

#[test]
fn that_its_number_was_taken_long_ago_does_not_count() {
    let (mut coordinator, mut question) = asking(0);
    coordinator.options.is_where_known = false;
    for time in 0..3 * u64::from(TAKEN_MAX) {
        let now = TAKEN_LASTS.mul_f64(1.1) * u32::try_from(time).expect("a few");
        let refused = refused(&question, 1, question.term);
        let mut orders = Orders::new();
        let turn = coordinator.on_packet(now, &refused, b"", &mut orders);
        assert!(matches!(turn, Turn::Asks { .. }), "{turn:?}");
        question = sent(&mut orders)[0].1;
    }
}

fn sign_of_life() -> Header {
    Header {
        term: 0x300,
        ..DEPLOYMENT.header(Kind::Heartbeat, 0)
    }
}

/// Who is where others know the number tells the other one, whatever it does itself, and goes on.
#[test]
fn who_has_its_number_elsewhere_is_told() {
    let told = Order::Send {
        to: To::Sender,
        header: Header {
            flags: FLAG_REFUSED,
            ..sign_of_life()
        },
        payload: vec![],
    };
    let (mut coordinator, _) = coordinating();
    let (turn, orders) = on(&mut coordinator, &sign_of_life());
    assert_eq!(turn, Turn::Asks { round: 0x400 }, "above the other one's");
    assert_eq!(orders[..2], [told.clone(), Order::SwitchOff]);
    let again = on(&mut coordinator, &sign_of_life());
    assert_eq!(again, (Turn::Nothing, vec![told.clone()]));
    coordinator.retire(&mut Orders::new());
    let retired = on(&mut coordinator, &sign_of_life());
    assert_eq!(retired, (Turn::Nothing, vec![told]));
}

#[test]
fn who_is_told_that_its_number_is_anothers_stops() {
    let (mut coordinator, question) = coordinating();
    // Of another round: of an earlier life.
    for (round, turn) in [(0x300, Turn::Nothing), (question.term, Turn::SameNumber)] {
        let told = Header {
            flags: FLAG_REFUSED,
            term: round,
            ..sign_of_life()
        };
        assert_eq!(on(&mut coordinator, &told).0, turn);
    }
    // That stays so, until the operator says otherwise.
    let mut orders = Orders::new();
    coordinator.retire(&mut orders);
    assert_eq!(coordinator.standing(), CoordinatorStanding::SameNumber);
    assert_eq!(
        coordinator.tick(at(9999), &off(), &mut orders),
        Turn::Nothing
    );
    let turn = coordinator.take_over(at(9999), &mut orders);
    assert!(matches!(turn, Turn::Asks { .. }));
    // What others are told does not concern it.
    let (mut coordinator, _) = coordinating();
    let told = Header {
        flags: FLAG_REFUSED,
        term: 0x301,
        ..DEPLOYMENT.header(Kind::Heartbeat, 1)
    };
    assert_eq!(on(&mut coordinator, &told), (Turn::Nothing, vec![]));
}

#[test]
fn who_listens_elsewhere_stops_when_the_other_one_lives_on() {
    let hear = |coordinator: &mut Coordinator, ms| {
        let mut orders = Orders::new();
        let turn = coordinator.on_packet(at(ms), &sign_of_life(), b"", &mut orders);
        (turn, orders)
    };
    let (mut coordinator, _) = coordinating();
    coordinator.options.is_where_known = false;
    // An earlier life's may have been on its way for some time.
    for ms in [35, 50, 84, 200, 240] {
        assert_eq!(hear(&mut coordinator, ms), (Turn::Nothing, vec![]));
    }
    let stopped = (Turn::SameNumber, vec![Order::SwitchOff]);
    assert_eq!(hear(&mut coordinator, 250), stopped);
    assert_eq!(hear(&mut coordinator, 260), (Turn::Nothing, vec![]), "once");
}

/// Both believe that they are where others know them: one of them goes on.
#[test]
fn of_two_where_they_are_known_one_stops() {
    let (mut first, _) = coordinating();
    let (mut second, _) = coordinating();
    second.led = 0x300;
    let beat = |term| Header {
        term,
        ..DEPLOYMENT.header(Kind::Heartbeat, 0)
    };
    let (_, mut orders) = on(&mut first, &beat(0x300));
    let told = sent(&mut orders)[0].1;
    assert_eq!(on(&mut second, &told).0, Turn::SameNumber);
    assert_eq!(on(&mut second, &beat(0x400)), (Turn::Nothing, vec![]));
}

#[test]
fn what_it_has_said_itself_may_come_back() {
    for is_where_known in [false, true] {
        let (mut coordinator, question) = coordinating();
        coordinator.options.is_where_known = is_where_known;
        let own = Header {
            term: question.term,
            ..sign_of_life()
        };
        for ms in 0..1000 {
            let mut orders = Orders::new();
            let turn = coordinator.on_packet(at(ms), &own, b"", &mut orders);
            assert_eq!((turn, orders), (Turn::Nothing, vec![]));
        }
    }
}

#[test]
fn the_host_is_told_that_no_round_is_left() {
    let (mut coordinator, mut orders) = (coordinator(0), Orders::new());
    let beat = Header {
        term: u64::MAX - 0xfe,
        ..DEPLOYMENT.header(Kind::Heartbeat, 1)
    };
    assert_eq!(on(&mut coordinator, &beat), (Turn::Nothing, vec![]));
    for time in [at(60), at(600)] {
        let turn = coordinator.tick(time, &off(), &mut orders);
        let expected = if time == at(60) {
            Turn::NoRoundLeft
        } else {
            Turn::Nothing
        };
        assert_eq!((turn, &orders[..]), (expected, &[][..]));
    }
}

#[test]
fn an_acceptor_with_a_new_life_is_let_in_behind_what_the_others_have_voted() {
    let (mut coordinator, question) = asking(0);
    on(&mut coordinator, &promise(&question, 0, 0));
    on(&mut coordinator, &promise(&question, 1, 0));
    assert!(coordinator.coordinates());
    let lives = Lives::first(3).with(2, 9);
    let announcement = Header {
        flags: FLAG_REFUSED,
        commit_index: lives.number(),
        ..DEPLOYMENT.header(Kind::P1b, 2)
    };
    // Who only announces it may be another one of that number. The acceptor is asked where others know it.
    let mut orders = Orders::new();
    for asked in [1, 0] {
        let turn = coordinator.on_packet(at(1), &announcement, &lives.encode(), &mut orders);
        assert_eq!(turn, Turn::Announced { acceptor: 2 });
        let sent = sent(&mut orders);
        let questions = sent.iter().filter(|(to, it)| {
            (*to, it.kind, it.term) == (To::Acceptor(2), Kind::P1a as u8, question.term)
        });
        assert_eq!((questions.count(), sent.len()), (asked, asked));
        assert_eq!(coordinator.standing(), CoordinatorStanding::Coordinates);
    }
    let answer = Header {
        previous_term: question.term,
        ..announcement
    };
    let turn = coordinator.on_packet(at(1), &answer, &lives.encode(), &mut orders);
    assert_eq!(turn, Turn::Asks { round: 0x200 });
    assert_eq!(orders[0], Order::SwitchOff);
    let question = sent(&mut orders)[0].1;
    assert_eq!(question.commit_index, lives.number());

    // Nobody lets it in before the others have promised.
    coordinator.on_packet(at(1), &announcement, &lives.encode(), &mut orders);
    assert!(
        sent(&mut orders)
            .iter()
            .all(|(_, it)| it.kind == Kind::P1a as u8)
    );
    on(&mut coordinator, &promise(&question, 0, 0));
    on(&mut coordinator, &promise(&question, 1, 6));
    coordinator.on_packet(at(1), &announcement, &lives.encode(), &mut orders);
    assert_eq!(
        sent(&mut orders),
        [],
        "not more often than it asks by itself"
    );
    coordinator.tick(at(6), &off(), &mut orders);
    coordinator.on_packet(at(6), &announcement, &lives.encode(), &mut orders);
    let told = sent(&mut orders);
    let Some((to, admit)) = told.iter().find(|(_, it)| it.kind == Kind::Admit as u8) else {
        panic!("{told:?}");
    };
    assert_eq!(
        (*to, admit.previous_term, admit.term),
        (To::Acceptor(2), 6, 0x200)
    );

    // Not as another life than the one that was asked for.
    let earlier = Lives::first(3).with(2, 8);
    let announcement = Header {
        commit_index: earlier.number(),
        ..announcement
    };
    coordinator.on_packet(at(1), &announcement, &earlier.encode(), &mut orders);
    assert!(
        sent(&mut orders)
            .iter()
            .all(|(_, it)| it.kind != Kind::Admit as u8)
    );
}

/// Else a second loss stops an instance that two of three know. It is its own proposal: who was asked again
/// in the same round might have it propose something else.
#[test]
fn who_is_let_in_gets_what_was_decided_before() {
    let (mut coordinator, question) = asking(0);
    on(&mut coordinator, &promise(&question, 0, 3));
    on(&mut coordinator, &promise(&question, 1, 3));
    let of = |acceptor, instance| Header {
        index: instance,
        previous_term: 0x80,
        session: 5,
        sequence: instance,
        ..promise(&question, acceptor, 0)
    };
    let vote = |acceptor, instance| Header {
        kind: Kind::P2b as u8,
        commit_index: question.commit_index,
        previous_term: question.term,
        ..of(acceptor, instance)
    };
    for instance in 1..=3 {
        for acceptor in 0..2 {
            on(&mut coordinator, &of(acceptor, instance));
        }
        for acceptor in 0..2 {
            on(&mut coordinator, &vote(acceptor, instance));
        }
    }
    let proposed_at = |coordinator: &mut Coordinator, ms| {
        let mut orders = Orders::new();
        coordinator.tick(at(ms), &off(), &mut orders);
        let sent = sent(&mut orders).into_iter();
        sent.filter(|(_, it)| it.kind != Kind::Heartbeat as u8)
            .map(|(to, it)| {
                assert_eq!(it.kind, Kind::P2a as u8, "nobody is asked again");
                assert_eq!((it.term, it.session, it.sequence), (0x100, 5, it.index));
                (to, it.index)
            })
            .collect::<Vec<(To, u64)>>()
    };
    let newcomer = To::Acceptor(2);
    assert_eq!(proposed_at(&mut coordinator, 6), [(newcomer, 1)]);
    assert_eq!(proposed_at(&mut coordinator, 7), [], "not yet");
    assert_eq!(
        proposed_at(&mut coordinator, 12),
        [(newcomer, 1)],
        "it may be there by now"
    );
    on(&mut coordinator, &vote(2, 1));
    assert_eq!(
        proposed_at(&mut coordinator, 18),
        [(newcomer, 2), (newcomer, 3)],
        "it is"
    );
    on(&mut coordinator, &vote(2, 3));
    assert_eq!(proposed_at(&mut coordinator, 24), [(newcomer, 2)]);
    let checkpoint = |learner| Header {
        index: 2,
        sequence: 3,
        ..DEPLOYMENT.header(Kind::Checkpoint, learner)
    };
    on(&mut coordinator, &checkpoint(0));
    on(&mut coordinator, &checkpoint(1));
    assert_eq!(proposed_at(&mut coordinator, 30), [], "nobody needs it");
}

/// What a learner decides by itself meanwhile comes to who is let in with the next round.
#[test]
fn what_was_left_to_a_learner_is_asked_for_anew() {
    for all_know in [false, true] {
        let (mut coordinator, question) = asking(0);
        on(&mut coordinator, &promise(&question, 0, 1));
        on(&mut coordinator, &promise(&question, 1, 1));
        if all_know {
            on(&mut coordinator, &promise(&question, 2, 1));
        }
        let single = Header {
            index: 1,
            ..question
        };
        on(
            &mut coordinator,
            &Header {
                index: 1,
                ..refused(&single, 1, 0x503)
            },
        );
        let mut orders = Orders::new();
        let turns = (1..20).map(|time| coordinator.tick(at(6 * time), &off(), &mut orders));
        let turns: Vec<Turn> = turns.filter(|it| *it != Turn::Nothing).collect();
        if all_know {
            assert_eq!(turns, []);
        } else {
            assert_eq!(turns, [Turn::Asks { round: 0x600 }], "above the learner's");
        }
    }
}

#[test]
fn it_says_that_it_lives_and_trims() {
    let (mut coordinator, _) = coordinating();
    let mut orders = Orders::new();
    let registers = PaxosRegisters {
        round: 0x100,
        next_instance: 8,
        configuration: 3,
        ..off()
    };
    coordinator.tick(at(10), &registers, &mut orders);
    let beats: Vec<(To, Header)> = sent(&mut orders);
    assert_eq!(beats.len(), 2);
    let (_, beat) = beats[1];
    assert_eq!(
        (beat.kind, beat.index, beat.term),
        (Kind::Heartbeat as u8, 7, 0x100)
    );
    let checkpoint = |learner, kept| Header {
        index: kept,
        ..DEPLOYMENT.header(Kind::Checkpoint, learner)
    };
    assert_eq!(on(&mut coordinator, &checkpoint(0, 5)).1, []);
    assert_eq!(on(&mut coordinator, &checkpoint(1, 4)).1, [Order::Trim(4)]);
    assert_eq!(coordinator.last_checkpoint(), Some((1, 4)));
    let further = Header {
        sequence: 11,
        ..checkpoint(1, 4)
    };
    on(&mut coordinator, &further);
    let wild = Header {
        sequence: 4 + 16 + 1,
        ..further
    };
    on(&mut coordinator, &wild);
    coordinator.tick(at(20), &registers, &mut orders);
    assert_eq!(sent(&mut orders)[1].1.index, 11, "a learner has had more");
    assert_eq!(coordinator.implausible(), 1);
    coordinator.declare_lost(3, &mut orders);
    assert_eq!(orders, [], "all have kept more");
    coordinator.declare_lost(9, &mut orders);
    assert_eq!(orders.pop(), Some(Order::Trim(9)));
    assert_eq!(on(&mut coordinator, &checkpoint(1, 9)).1, [], "known");
    coordinator.retire(&mut orders);
    assert_eq!(orders, [Order::SwitchOff]);
}

/// As in a recovery.
#[test]
fn a_promise_to_a_former_lifes_question_makes_nobody_coordinate() {
    let (mut coordinator, question) = asking(0);
    let former = Header {
        session: question.session ^ 1,
        ..question
    };
    for acceptor in 0..3 {
        let (turn, _) = on(&mut coordinator, &promise(&former, acceptor, 0));
        assert_eq!(turn, Turn::Nothing);
    }
    assert!(!coordinator.coordinates());
}
