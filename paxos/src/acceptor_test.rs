use super::*;
use quorumwire_wire::packet::ROUND_OWNERS;

const DEPLOYMENT: Deployment = Deployment {
    group: 7,
    acceptors: 3,
    coordinators: 2,
    learners: 2,
    copies: 2,
    window: 16,
};
const ROUND: u64 = 3 * ROUND_OWNERS as u64;

fn first() -> Lives {
    Lives::first(3)
}

fn ask(lives: &Lives) -> (Header, Vec<u8>) {
    let header = Header {
        term: ROUND,
        session: 5,
        commit_index: lives.number(),
        ..DEPLOYMENT.header(Kind::P1a, 0)
    };
    (header, lives.encode())
}

fn admit(lives: &Lives) -> (Header, Vec<u8>) {
    let header = Header {
        term: ROUND,
        previous_term: 12,
        session: 4,
        commit_index: lives.number(),
        ..DEPLOYMENT.header(Kind::Admit, 0)
    };
    (header, lives.encode())
}

fn on(acceptor: &mut Acceptor, packet: &(Header, Vec<u8>)) -> (Noted, Orders) {
    let mut orders = Orders::new();
    let registers = PaxosRegisters {
        round: 9,
        trimmed: 2,
        ..PaxosRegisters::default()
    };
    let noted = acceptor.on_packet(&packet.0, &packet.1, &registers, &mut orders);
    (noted, orders)
}

#[test]
fn a_configuration_that_knows_all_is_taken_and_no_other() {
    let mut acceptor = Acceptor::member(DEPLOYMENT, 1, first().with(0, 5), 0);
    let other = first().with(2, 9);
    let (noted, orders) = on(&mut acceptor, &ask(&other));
    assert_eq!(noted, Noted::Nothing);
    let [
        Order::Send {
            to,
            header,
            payload,
        },
    ] = &orders[..]
    else {
        panic!("{orders:?}");
    };
    assert_eq!(
        (*to, header.kind, header.flags),
        (To::Sender, Kind::P1b as u8, FLAG_REFUSED)
    );
    assert_eq!(
        (header.term, header.previous_term, header.sequence),
        (9, ROUND, 2)
    );
    assert_eq!(header.commit_index, acceptor.lives().number());
    assert_eq!(payload, &acceptor.lives().encode());
    let both = other.with(0, 5);
    let (_, orders) = on(&mut acceptor, &ask(&both));
    assert_eq!(orders, [Order::Configure(both.number())]);
    assert_eq!(*acceptor.lives(), both);
}

#[test]
fn a_packet_whose_configuration_is_known_by_number_only_is_answered() {
    let mut acceptor = Acceptor::member(DEPLOYMENT, 1, first().with(0, 5), 0);
    let propose = Header {
        index: 3,
        term: ROUND,
        commit_index: first().number(),
        ..DEPLOYMENT.header(Kind::P2a, 0)
    };
    let (_, orders) = on(&mut acceptor, &(propose, vec![]));
    assert!(matches!(&orders[..], [Order::Send { to: To::Sender, .. }]));
    let known = Header {
        commit_index: acceptor.lives().number(),
        ..propose
    };
    assert_eq!(
        on(&mut acceptor, &(known, vec![])),
        (Noted::Nothing, vec![])
    );
    let foreign = Header {
        group: 8,
        ..propose
    };
    assert_eq!(
        on(&mut acceptor, &(foreign, vec![])),
        (Noted::Nothing, vec![])
    );
}

#[test]
fn a_newcomer_says_so_until_it_is_let_in_as_the_life_that_it_is() {
    let mut acceptor = Acceptor::newcomer(DEPLOYMENT, 1, 6).held();
    let mut orders = Orders::new();
    acceptor.tick(Duration::ZERO, &mut orders);
    acceptor.tick(Duration::from_millis(1), &mut orders);
    let [Order::Send { to, header, .. }] = &orders[..] else {
        panic!("{orders:?}");
    };
    assert_eq!((*to, header.term), (To::Coordinators, 0));
    assert_eq!(header.commit_index, first().with(1, 6).number());

    // It does not take a configuration by being asked, but learns from it.
    let asked = first().with(1, 6).with(2, 3);
    let (noted, orders) = on(&mut acceptor, &ask(&asked));
    assert_eq!((noted, orders.len()), (Noted::Nothing, 1));
    for wrong in [
        asked.clone().with(1, 5),
        asked.clone().with(1, 7),
        asked.clone().with(2, 2),
    ] {
        assert_eq!(
            on(&mut acceptor, &admit(&wrong)),
            (Noted::Nothing, vec![]),
            "{wrong:?}"
        );
    }
    let (noted, orders) = on(&mut acceptor, &admit(&asked));
    assert_eq!(noted, Noted::LetIn);
    let [Order::SwitchOn(registers)] = &orders[..] else {
        panic!("{orders:?}");
    };
    assert_eq!(
        (registers.bound, registers.trimmed, registers.round),
        (12, 4, ROUND)
    );
    assert_eq!(
        (registers.configuration, registers.held),
        (asked.number(), 1)
    );
    assert_eq!(
        on(&mut acceptor, &admit(&asked)),
        (Noted::Nothing, vec![]),
        "once"
    );
}

#[test]
fn a_later_life_of_its_own_is_told() {
    let asked = ask(&first().with(1, 7));
    for mut acceptor in [
        Acceptor::newcomer(DEPLOYMENT, 1, 6),
        Acceptor::member(DEPLOYMENT, 1, first(), 0),
    ] {
        assert_eq!(
            on(&mut acceptor, &asked),
            (Noted::LaterLife { life: 7 }, vec![])
        );
    }
}

#[test]
fn what_all_learners_have_is_forgotten() {
    let mut acceptor = Acceptor::member(DEPLOYMENT, 1, first(), 3);
    let checkpoint = |learner, kept| {
        let header = Header {
            index: kept,
            ..DEPLOYMENT.header(Kind::Checkpoint, learner)
        };
        (header, vec![])
    };
    assert_eq!(on(&mut acceptor, &checkpoint(0, 9)).1, []);
    assert_eq!(acceptor.last_checkpoint(), Some((1, 3)));
    assert_eq!(on(&mut acceptor, &checkpoint(1, 7)).1, [Order::Trim(7)]);
    assert_eq!(on(&mut acceptor, &checkpoint(2, 99)).1, []);
    let mut orders = Orders::new();
    acceptor.declare_lost(8, &mut orders);
    acceptor.declare_lost(8, &mut orders);
    assert_eq!(orders, [Order::Trim(8)]);
}
