//! Rule by rule, and at random against replicas that are made up: each holds a part of one log, forgets what
//! it likes of its connections, and dies.
use super::*;
use quorumwire_wire::client::{
    FromClient, Goodbye, Pong, Refused, RefusedReason, Trimmed, Upto, Value,
};
use quorumwire_wire::{ClientFrame, take_client_frame, write_client_frame};

const MS: Duration = Duration::from_millis(1);
const WINDOW: u64 = 1000;

fn feed(from: Instance) -> Feed {
    Feed::new(&Settings::new(["a:1", "b:1", "c:1"]), (7, from), WINDOW, 1)
}

fn said(request: u64, body: Body, attachment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = Some(body);
    write_client_frame(&mut bytes, &FromServer { request, body }, attachment);
    bytes
}

fn welcome(protocol: u32, cluster: &str) -> Vec<u8> {
    let welcome = Welcome {
        protocol,
        cluster: cluster.to_owned(),
        ..Welcome::default()
    };
    said(0, Body::Welcome(welcome), b"")
}

fn value(request: u64, instance: Instance, value: &[u8]) -> Vec<u8> {
    said(request, Body::Value(Value { instance }), value)
}

/// What the client says in some bytes.
fn frames(mut bytes: &[u8]) -> Vec<(u64, from_client::Body)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let Ok(ClientFrame::Whole {
            consumed,
            message: FromClient { request, body },
            ..
        }) = take_client_frame(bytes, 0)
        else {
            panic!("the client says something strange");
        };
        frames.push((request, body.unwrap()));
        bytes = &bytes[consumed..];
    }
    frames
}

/// What it wants done: where it connects to, what it says, whether it closes.
#[derive(Debug, Default)]
struct Wants {
    connects: Option<LinkId>,
    says: Vec<(u64, from_client::Body)>,
    closes: bool,
}

fn wants(feed: &mut Feed) -> Wants {
    let mut wants = Wants::default();
    for action in feed.take_actions() {
        match action {
            Action::Connect(link, _) => wants.connects = Some(link),
            Action::Send(_, bytes) => wants.says.extend(frames(&bytes)),
            Action::Close(_) => wants.closes = true,
        }
    }
    wants
}

/// Connects it; its connection, and what it subscribes for.
fn subscribed(feed: &mut Feed, now: Since) -> (LinkId, u64, Subscribe) {
    feed.time_passed(now);
    let link = wants(feed).connects.expect("it connects");
    feed.connected(now, link);
    let hello = wants(feed).says;
    assert!(matches!(hello[..], [(0, from_client::Body::Hello(_))]));
    feed.received(now, link, &welcome(2, "one"));
    let says = wants(feed).says;
    let [(request, from_client::Body::Subscribe(subscribe))] = says[..] else {
        panic!("{says:?}");
    };
    (link, request, subscribe)
}

#[test]
fn it_subscribes_and_goes_on_at_another_replica_behind_the_last_value() {
    let mut feed = feed(5);
    assert!(feed.trouble().is_some());
    let (link, request, subscribe) = subscribed(&mut feed, MS);
    let expected = Subscribe {
        learner: 7,
        from: 5,
        credit_bytes: WINDOW,
    };
    assert_eq!((subscribe, feed.trouble()), (expected, None));
    feed.received(MS, link, &value(request, 5, b"five"));
    feed.received(MS, link, &value(request, 8, b""));
    let items = [Item::Value(5, b"five".to_vec()), Item::Value(8, Vec::new())];
    assert_eq!(feed.take_items(), items);
    feed.lost(2 * MS, link, "it died".to_owned());
    assert_eq!(feed.trouble(), Some("it died"));
    let (link, request, subscribe) = subscribed(&mut feed, 2 * MS);
    assert_eq!(subscribe.from, 9);
    assert_eq!(
        subscribe.credit_bytes,
        WINDOW - 2 * VALUE_OVERHEAD_BYTES - 4
    );
    // Nothing behind what a replica says to have given all up to.
    let upto = Upto { instance: 20 };
    feed.received(3 * MS, link, &said(request, Body::Upto(upto), b""));
    feed.lost(3 * MS, link, String::new());
    assert_eq!(subscribed(&mut feed, 3 * MS).2.from, 21);
}

#[test]
fn values_out_of_order_or_beyond_what_may_wait_end_a_connection_and_are_not_given() {
    let long = vec![0; usize::try_from(WINDOW).unwrap()];
    let cases: [&[(Instance, &[u8])]; 4] = [
        &[(5, b""), (5, b"")],
        &[(5, b""), (4, b"")],
        &[(4, b"")],
        &[(5, &long), (6, b"")],
    ];
    for values in cases {
        let mut feed = feed(5);
        let (link, request, _) = subscribed(&mut feed, MS);
        for (instance, bytes) in values {
            feed.received(MS, link, &value(request, *instance, bytes));
        }
        assert_eq!(
            feed.take_items().len(),
            values.len() - 1,
            "{}",
            values.len()
        );
        assert!(wants(&mut feed).closes && feed.counters.malformed == 1);
    }
}

#[test]
fn credit_comes_back_as_values_are_taken_and_never_more() {
    let mut feed = feed(1);
    let (link, request, _) = subscribed(&mut feed, MS);
    feed.received(MS, link, &value(request, 1, &[0; 100]));
    feed.received(MS, link, &value(request, 2, &[0; 1000]));
    feed.taken(MS, counts(&[0; 100]));
    assert!(wants(&mut feed).says.is_empty(), "too little for a message");
    feed.taken(MS, counts(&[0; 1000]));
    let says = wants(&mut feed).says;
    let [(_, from_client::Body::Credit(credit))] = says[..] else {
        panic!("{says:?}");
    };
    assert_eq!(credit.bytes, 1100 + 2 * VALUE_OVERHEAD_BYTES);
    // A replica that comes next is not told of room that is taken by what waits.
    feed.received(MS, link, &value(request, 3, &[0; 2000]));
    feed.lost(MS, link, String::new());
    let (_, _, subscribe) = subscribed(&mut feed, MS);
    assert_eq!(subscribe.credit_bytes, 0);
    feed.taken(MS, counts(&[0; 2000]));
    let says = wants(&mut feed).says;
    let [(_, from_client::Body::Credit(credit))] = says[..] else {
        panic!("{says:?}");
    };
    assert_eq!(credit.bytes, WINDOW);
}

#[test]
fn what_is_trimmed_ends_it_and_a_refusal_does_not() {
    let mut feed = feed(5);
    let (link, request, _) = subscribed(&mut feed, MS);
    let refused = Refused {
        reason: RefusedReason::NoLeader.into(),
        detail: "nobody leads".to_owned(),
    };
    feed.received(MS, link, &said(request, Body::Refused(refused), b""));
    assert_eq!(feed.trouble(), Some("nobody leads"));
    let (link, request, _) = subscribed(&mut feed, 2 * MS);
    let trimmed = |upto| said(request, Body::Trimmed(Trimmed { upto }), b"");
    feed.received(3 * MS, link, &trimmed(9));
    let over = Item::Over(Error::Trimmed { upto: 9 });
    assert_eq!(feed.take_items(), [over]);
    assert!(wants(&mut feed).closes && feed.next_wake() == Since::MAX);
}

#[test]
fn a_replica_of_another_cluster_or_version_is_left() {
    for bad in [welcome(1, "one"), welcome(2, "two")] {
        let mut feed = feed(1);
        let (link, ..) = subscribed(&mut feed, MS);
        feed.lost(MS, link, String::new());
        let link = wants(&mut feed).connects.unwrap();
        feed.connected(MS, link);
        wants(&mut feed);
        feed.received(MS, link, &bad);
        let wants = wants(&mut feed);
        assert!(wants.closes && wants.says.is_empty());
    }
}

#[test]
fn a_client_that_is_not_let_in_hears_so() {
    let mut feed = feed(1);
    feed.time_passed(MS);
    let link = wants(&mut feed).connects.unwrap();
    feed.connected(MS, link);
    let goodbye = Goodbye {
        reason: GoodbyeReason::NotLetIn.into(),
        detail: "who?".to_owned(),
    };
    feed.received(MS, link, &said(0, Body::Goodbye(goodbye), b""));
    assert_eq!(
        feed.take_items(),
        [Item::Over(Error::NotLetIn("who?".to_owned()))]
    );
}

#[test]
fn a_silent_replica_is_asked_whether_it_lives_and_left() {
    let mut feed = feed(1);
    let patience = Settings::new(["a:1"]).patience;
    let (link, ..) = subscribed(&mut feed, MS);
    assert_eq!(feed.next_wake(), MS + patience);
    feed.time_passed(MS + patience);
    let says = wants(&mut feed).says;
    let [(ping, from_client::Body::Ping(_))] = says[..] else {
        panic!("{says:?}");
    };
    feed.received(
        2 * MS + patience,
        link,
        &said(ping, Body::Pong(Pong {}), b""),
    );
    let asked_again = 2 * MS + 2 * patience;
    feed.time_passed(asked_again);
    assert_eq!(wants(&mut feed).says.len(), 1);
    feed.time_passed(asked_again + patience);
    let wants = wants(&mut feed);
    assert!(wants.closes && wants.connects.is_some());
}

#[test]
fn all_replicas_are_tried_at_once_and_then_after_a_while() {
    let mut feed = feed(1);
    let mut waits = 0;
    let mut now = Since::ZERO;
    for _ in 0..30 {
        feed.time_passed(now);
        if let Some(link) = wants(&mut feed).connects {
            feed.lost(now, link, "refused".to_owned());
        } else {
            assert!(feed.next_wake() > now);
            now = feed.next_wake();
            waits += 1;
        }
    }
    assert!(waits > 5, "{waits}");
}

/// A client's subscription at a made-up replica.
struct Subscriber {
    link: LinkId,
    request: u64,
    from: Instance,
    credit: i64,
}

/// Replicas that hold a part of one log each, and a client that is connected to one.
struct World {
    random: ChaCha8Rng,
    log: Vec<(Instance, Vec<u8>)>,
    /// How many values each has applied.
    applied: [usize; 3],
    /// Which replica the client is at, once it has connected.
    at: Option<(usize, Subscriber)>,
    feed: Feed,
    given: Vec<(Instance, Vec<u8>)>,
    taken: usize,
    deaths: u32,
    short_of_credit: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            log: Vec::new(),
            applied: [0; 3],
            at: None,
            feed: feed(1),
            given: Vec::new(),
            taken: 0,
            deaths: 0,
            short_of_credit: 0,
        }
    }

    fn decide(&mut self) {
        let last = self.log.last().map_or(0, |(instance, _)| *instance);
        let instance = last + self.random.random_range(1..4);
        let bytes = vec![self.random.random(); self.random.random_range(0..700)];
        self.log.push((instance, bytes));
    }

    /// Does what the client wants.
    fn carry_out(&mut self, now: Since) {
        for action in self.feed.take_actions() {
            match action {
                Action::Connect(link, _) => {
                    let subscriber = Subscriber {
                        link,
                        request: 0,
                        from: 0,
                        credit: 0,
                    };
                    self.at = Some((self.random.random_range(0..3), subscriber));
                    self.feed.connected(now, link);
                    self.feed.received(now, link, &welcome(2, "one"));
                    return self.carry_out(now);
                }
                Action::Close(link) => panic!("{link:?} is given up"),
                Action::Send(link, bytes) => {
                    let at = self.at.as_mut().map(|(_, subscriber)| subscriber);
                    let Some(subscriber) = at.filter(|it| it.link == link) else {
                        continue; // it was killed meanwhile
                    };
                    for (request, body) in frames(&bytes) {
                        if let from_client::Body::Subscribe(it) = &body {
                            subscriber.credit = i64::try_from(it.credit_bytes).unwrap();
                            (subscriber.request, subscriber.from) = (request, it.from);
                        } else if let from_client::Body::Credit(it) = &body {
                            subscriber.credit += i64::try_from(it.bytes).unwrap();
                        } else if let from_client::Body::Ping(_) = &body {
                            let pong = said(request, Body::Pong(Pong {}), b"");
                            self.feed.received(now, link, &pong);
                        }
                    }
                }
            }
        }
    }

    /// The replica gives what it has and has credit for.
    fn give(&mut self, now: Since) {
        let Some((replica, subscriber)) = &mut self.at else {
            return;
        };
        let applied = &self.log[..self.applied[*replica]];
        for (instance, bytes) in applied {
            if *instance < subscriber.from || subscriber.request == 0 {
                continue;
            }
            if subscriber.credit <= 0 {
                self.short_of_credit += 1;
                break;
            }
            subscriber.credit -= i64::try_from(counts(bytes)).unwrap();
            subscriber.from = instance + 1;
            let frame = value(subscriber.request, *instance, bytes);
            self.feed.received(now, subscriber.link, &frame);
        }
    }

    fn step(&mut self, now: Since) {
        self.feed.time_passed(now);
        let replica = self.random.random_range(0..3);
        let lacks = (self.log.len() - self.applied[replica]).min(5);
        self.applied[replica] += self.random.random_range(0..=lacks);
        if self.random.random_bool(0.02)
            && let Some((_, subscriber)) = self.at.take()
        {
            self.deaths += 1;
            self.feed.lost(now, subscriber.link, "killed".to_owned());
        }
        self.carry_out(now);
        self.give(now);
        for item in self.feed.take_items() {
            let Item::Value(instance, bytes) = item else {
                panic!("{item:?}");
            };
            self.given.push((instance, bytes));
        }
        let waiting = &self.given[self.taken..];
        let but_for_the_last: u64 = waiting.iter().rev().skip(1).map(|(_, it)| counts(it)).sum();
        assert!(but_for_the_last < WINDOW, "{but_for_the_last}");
        if self.random.random_bool(0.4) && self.taken < self.given.len() {
            self.feed.taken(now, counts(&self.given[self.taken].1));
            self.taken += 1;
        }
        self.carry_out(now);
    }
}

/// However replicas lag and die and however slowly values are taken: all come, once, in order, and no more
/// wait than may.
#[test]
fn every_value_comes_once_and_in_order_whatever_replicas_do() {
    let (mut deaths, mut short_of_credit) = (0, 0);
    for seed in 0..200 {
        let mut world = World::new(seed);
        for step in 0..3000 {
            if step < 1500 && world.random.random_bool(0.3) {
                world.decide();
            }
            world.step(MS * step * 10);
        }
        assert!(world.given == world.log, "seed {seed}");
        assert_eq!(world.feed.counters.malformed, 0, "seed {seed}");
        deaths += world.deaths;
        short_of_credit += world.short_of_credit;
    }
    assert!(
        deaths > 1000 && short_of_credit > 1000,
        "{deaths} {short_of_credit}"
    );
}
