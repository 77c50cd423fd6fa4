//! Who is let in, over real sockets.
use super::*;
use mio::{Events, Interest, Poll, Token};
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::time::Instant;

const FIRST_TOKEN: usize = 10;
pub const DEADLINE: Duration = Duration::from_secs(10);

pub struct Host {
    poll: Poll,
    pub links: Links,
    pub address: SocketAddr,
    /// By whose word it is known, under TLS.
    pub authorities: Vec<CertificateDer<'static>>,
}

impl Host {
    /// Replica 0, with replica 1 a member in its life 5.
    pub fn start() -> Self {
        let poll = Poll::new().unwrap();
        let mut listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        poll.registry()
            .register(&mut listener, Token(0), Interest::READABLE)
            .unwrap();
        let mut links = Links::new(
            quorumwire_wire::hello("test", 0, 1),
            listener,
            poll.registry().try_clone().unwrap(),
            FIRST_TOKEN,
            DEADLINE,
            DEADLINE,
        );
        links.members.insert(ReplicaId(1), Incarnation(5));
        Self {
            poll,
            links,
            address,
            authorities: Vec::new(),
        }
    }

    fn connect(&self, incarnation: u64) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(self.address).unwrap();
        let hello = peer::PeerMessage {
            body: Some(Body::Hello(quorumwire_wire::hello("test", 1, incarnation))),
            ..peer::PeerMessage::default()
        };
        let mut frame = BytesMut::new();
        encode_frame(&mut frame, &hello, &[]);
        stream.write_all(&frame).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// Turns until an event tells what is waited for.
    fn turn_until(&mut self, is_it: impl Fn(&LinkEvent) -> bool) {
        self.turn_while(|_, told| !told.iter().any(&is_it));
    }

    /// Turns as long as this holds.
    pub fn turn_while(&mut self, goes_on: impl Fn(&Links, &[LinkEvent]) -> bool) {
        let begun = Instant::now();
        let mut ready = Events::with_capacity(16);
        loop {
            assert!(begun.elapsed() < DEADLINE, "it did not happen in time");
            self.poll
                .poll(&mut ready, Some(Duration::from_millis(10)))
                .unwrap();
            let (now, mut told) = (Now(begun.elapsed()), Vec::new());
            self.links.begin_turn(now);
            for event in &ready {
                match event.token() {
                    Token(0) => self.links.accept(now),
                    Token(_) => self.links.ready(event, now),
                }
            }
            self.links.read(now, &mut told);
            self.links.write(now, &mut told);
            if !goes_on(&self.links, &told) {
                return;
            }
        }
    }
}

fn peer_1(incarnation: u64) -> Peer {
    Peer {
        id: ReplicaId(1),
        incarnation: Incarnation(incarnation),
    }
}

/// The key of some fast term.
pub fn a_key() -> peer::PeerMessage {
    let key = peer::FastTermKey {
        key: vec![0x5a; 16].into(),
    };
    peer::PeerMessage {
        term: 7,
        body: Some(Body::FastTermKey(key)),
        ..peer::PeerMessage::default()
    }
}

/// It could be anybody's, and anybody could read ours.
#[test]
fn without_tls_keys_are_neither_taken_nor_sent() {
    let mut host = Host::start();
    let mut member = host.connect(5);
    let mut frames = BytesMut::new();
    encode_frame(&mut frames, &a_key(), &[]);
    let other = peer::PeerMessage {
        body: Some(Body::TransferNow(peer::TransferNow {})),
        ..peer::PeerMessage::default()
    };
    encode_frame(&mut frames, &other, &[]);
    member.write_all(&frames).unwrap();
    let body_of = |event: &LinkEvent| match event {
        LinkEvent::Message { message, .. } => message.body.clone(),
        LinkEvent::Up(..) | LinkEvent::Down(_) => None,
    };
    host.turn_while(|_, told| {
        let bodies: Vec<_> = told.iter().filter_map(body_of).collect();
        assert!(
            !bodies
                .iter()
                .any(|body| matches!(body, Body::FastTermKey(_))),
            "it was handed up"
        );
        bodies.is_empty()
    });
    assert_eq!(host.links.counters.dropped_not_certified, 1);
    assert!(!host.links.send_secret(peer_1(5), &a_key()));
    assert_eq!(host.links.counters.dropped_not_certified, 2);
    assert!(host.links.send(peer_1(5), &other, &[]), "it is connected");
}

#[test]
fn another_life_is_let_in_only_once_the_member_is_gone() {
    let mut host = Host::start();
    let member = host.connect(5);
    host.turn_until(|event| matches!(event, LinkEvent::Up(peer, _) if *peer == peer_1(5)));

    let mut impostor = host.connect(6);
    let begun = Instant::now();
    let mut told = Vec::new();
    while host.links.counters.closed_handshake_refused == 0 {
        assert!(begun.elapsed() < DEADLINE, "the impostor was not refused");
        host.links.accept(Now::default());
        for slot in host.links.slots.iter_mut().flatten() {
            slot.readable = true;
        }
        host.links.read(Now::default(), &mut told);
    }
    assert!(told.is_empty(), "the member's connection must not change");
    assert!(host.links.is_up(peer_1(5)));
    let mut answer = Vec::new();
    impostor.read_to_end(&mut answer).ok(); // a reset after the goodbye is as good as an end
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("id_in_use"), "{answer:?}");

    drop(member);
    host.turn_until(|event| matches!(event, LinkEvent::Down(peer) if *peer == peer_1(5)));
    let _new_life = host.connect(6);
    host.turn_until(|event| matches!(event, LinkEvent::Up(peer, _) if *peer == peer_1(6)));
}

/// Replica 1 dials replica 0; but it may not look for it again for a while when that was just started.
#[test]
fn who_was_just_started_dials_also_those_who_would_dial_it() {
    let mut host = Host::start();
    let member = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = member.local_addr().unwrap().to_string();
    let known = BTreeMap::from([(ReplicaId(1), address)]);
    host.links.set_addresses(&known);
    let dials = |host: &Host| host.links.slots.iter().flatten().count();
    host.links.housekeeping(Now::default(), &mut Vec::new());
    assert_eq!(dials(&host), 1, "at once");
    member.accept().unwrap();

    // Nobody said anything; from now on it is left to the other.
    for turn in 1..4 {
        let later = Now(turn * 10 * DIAL_TIMEOUT);
        host.links.housekeeping(later, &mut Vec::new());
        assert_eq!(dials(&host), 0, "again");
    }
}

#[test]
fn texts_from_outside_are_short_and_plain() {
    let shown = printable(&format!("a\x1b[31m\n{}", "x".repeat(1000)));
    assert!(shown.starts_with("a?[31m?x") && shown.len() == FOREIGN_TEXT_MAX);
}
