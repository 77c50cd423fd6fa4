//! Who is let in, over real sockets.
use super::dialing::{LOWER_DIALS_AFTER, MISSED_AFTER};
use super::strangers::Who;
use super::*;
use crate::server::dial::Source;
use mio::{Events, Interest, Poll, Token};
use rustls::pki_types::CertificateDer;
use std::net::{Ipv4Addr, SocketAddr};
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
        self.connect_as(&quorumwire_wire::hello("test", 1, incarnation))
    }

    /// A connection on which this was said.
    pub fn connect_as(&self, hello: &peer::Hello) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(self.address).unwrap();
        let hello = peer::PeerMessage {
            body: Some(Body::Hello(hello.clone())),
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

/// The list of members says that this replica is there.
pub fn only_at(id: ReplicaId, address: String) -> BTreeMap<ReplicaId, Vec<(Source, String)>> {
    BTreeMap::from([(id, vec![(Source::List, address)])])
}

/// What comes of asking whether this replica is there.
pub fn proof(host: &mut Host, id: ReplicaId, address: &str) -> Result<Peer, String> {
    let begun = Instant::now();
    assert!(
        host.links
            .prove(id, (Source::Question, address), Now::default())
    );
    assert!(
        !host
            .links
            .prove(id, (Source::Question, address), Now::default()),
        "one at a time"
    );
    loop {
        let (now, mut told) = (Now(begun.elapsed()), Vec::new());
        host.links.housekeeping(now, &mut told);
        if let Some(LinkEvent::Proved { outcome, .. }) = told.pop() {
            host.turn_while(|links, told| {
                assert!(told.is_empty(), "whoever asks is nobody");
                links.slots.iter().flatten().count() > 0
            });
            return outcome;
        }
        assert!(told.is_empty(), "nobody is connected");
        host.turn_while(|_, told| {
            assert!(told.is_empty(), "whoever asks is nobody");
            false
        });
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
        LinkEvent::Up(..) | LinkEvent::Down(_) | LinkEvent::Proved { .. } => None,
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

/// Else it would wait until something else happens: requests are forwarded behind a turn's writing, too.
#[test]
fn what_is_queued_after_a_turn_has_written_is_not_left_lying() {
    let mut host = Host::start();
    let _member = host.connect(5);
    host.turn_until(|event| matches!(event, LinkEvent::Up(..)));
    assert!(!host.links.has_more());
    let message = peer::PeerMessage::default();
    assert!(host.links.send(peer_1(5), &message, &[]));
    assert!(host.links.has_more());
    host.links.write(Now::default(), &mut Vec::new());
    assert!(!host.links.has_more());
}

/// The log keeps what an entry's frame had attached. That must not keep what came beside it.
#[test]
fn what_is_kept_of_a_short_frame_keeps_no_long_one() {
    let mut host = Host::start();
    let mut member = host.connect(5);
    let message = peer::PeerMessage {
        body: Some(Body::TransferNow(peer::TransferNow {})),
        ..peer::PeerMessage::default()
    };
    let mut frames = BytesMut::new();
    for bytes in [1 << 20, 1, 2] {
        let attachment = Bytes::from(vec![7; bytes]);
        encode_frame(&mut frames, &message, std::slice::from_ref(&attachment));
        frames.extend_from_slice(&attachment);
    }
    let sent = std::thread::spawn(move || member.write_all(&frames).map(|()| member));
    let kept = std::cell::RefCell::new(Vec::new());
    host.turn_while(|_, told| {
        let mut kept = kept.borrow_mut();
        for event in told {
            if let LinkEvent::Message { attachment, .. } = event {
                kept.push(Bytes::clone(attachment));
            }
        }
        kept.len() < 3
    });
    sent.join().unwrap().unwrap();
    let kept = kept.into_inner();
    let long = kept.iter().filter(|bytes| bytes.len() == 1 << 20);
    assert_eq!(long.count(), 1);
    assert!(kept.iter().all(Bytes::is_unique), "they share a buffer");
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

/// Replica 1 dials replica 0; but it may not look for it again for a while when that was just started, and it
/// may look for it where it is not any more.
#[test]
fn the_lower_id_dials_at_once_and_when_there_has_been_no_connection_for_a_while() {
    let mut host = Host::start();
    let member = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = member.local_addr().unwrap().to_string();
    host.links
        .set_addresses(&only_at(ReplicaId(1), address), Now::default());
    let dials = |host: &Host| host.links.slots.iter().flatten().count();
    host.links.housekeeping(Now::default(), &mut Vec::new());
    assert_eq!(dials(&host), 1, "at once");
    member.accept().unwrap();

    // Nobody said anything. It is left to the other, until it has been too long.
    let after = DIAL_TIMEOUT + Duration::from_millis(1);
    for later in [after, LOWER_DIALS_AFTER.mul_f32(0.99)] {
        host.links.housekeeping(Now(later), &mut Vec::new());
        assert_eq!(dials(&host), 0, "{later:?}");
    }
    host.links
        .housekeeping(Now(LOWER_DIALS_AFTER), &mut Vec::new());
    assert_eq!(dials(&host), 1, "again");
    assert_eq!(host.links.missing().count(), 0);
    host.links.housekeeping(Now(MISSED_AFTER), &mut Vec::new());
    let missing: Vec<_> = host.links.missing().collect();
    assert_eq!(missing[0].0, ReplicaId(1));
    assert!(
        missing[0]
            .1
            .contains("(the list of members): dial timed out"),
        "{missing:?}"
    );
}

#[test]
fn whether_a_replica_is_at_an_address_is_found_out_by_its_hello() {
    let mut host = Host::start();
    let own = host.address.to_string();
    let found = proof(&mut host, ReplicaId(0), &own).unwrap();
    assert_eq!(
        (found.id, found.incarnation),
        (ReplicaId(0), Incarnation(1))
    );
    // By a name that may mean another address first, at which nobody listens.
    let by_name = format!("localhost:{}", host.address.port());
    assert_eq!(proof(&mut host, ReplicaId(0), &by_name), Ok(found));
    let error = proof(&mut host, ReplicaId(1), &own).unwrap_err();
    assert!(error.contains("replica 0 is there"), "{error}");
    host.links.hello.cluster = "other".to_owned();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = closed.local_addr().unwrap().to_string();
    drop(closed);
    let error = proof(&mut host, ReplicaId(1), &nobody).unwrap_err();
    assert!(error.contains("refused"), "{error}");
    let error = proof(&mut host, ReplicaId(1), "[fe80::1%nowhere]:1").unwrap_err();
    assert!(error.contains("no interface"), "{error}");
}

/// A port that says hello as replica 1, and goodbye: another life of it is there.
fn refuses_all() -> (std::net::TcpListener, Vec<u8>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut frames = BytesMut::new();
    let said = [
        Body::Hello(quorumwire_wire::hello("test", 1, 5)),
        Body::Goodbye(Goodbye::IdInUse.message("replica 0 is connected and a member".to_owned())),
    ];
    for body in said {
        let message = peer::PeerMessage {
            body: Some(body),
            ..peer::PeerMessage::default()
        };
        encode_frame(&mut frames, &message, &[]);
    }
    (listener, frames.to_vec())
}

/// The other side's hello comes first; whether it takes ours shows behind that.
#[test]
fn who_is_refused_behind_a_hello_is_not_connected_and_the_reason_stays() {
    let mut host = Host::start();
    let (listener, frames) = refuses_all();
    let address = listener.local_addr().unwrap().to_string();
    host.links.dial_all = true;
    host.links
        .set_addresses(&only_at(ReplicaId(1), address), Now::default());
    for round in 0..3 {
        let now = Now(Duration::from_secs(2 * round));
        host.links.housekeeping(now, &mut Vec::new());
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&frames).unwrap();
        host.turn_until(|event| matches!(event, LinkEvent::Down(peer) if *peer == peer_1(5)));
        let said: Vec<_> = host.links.refusals().collect();
        assert!(said.len() == 1 && said[0].contains("id_in_use"), "{said:?}");
    }
    host.links.housekeeping(Now(MISSED_AFTER), &mut Vec::new());
    assert_eq!(host.links.missing().count(), 1, "it never was connected");
}

#[test]
fn the_log_says_each_reason_once_in_half_a_minute_and_again_if_it_goes_on() {
    let mut host = Host::start();
    let mut said = Vec::new();
    for tenth in 0..650 {
        host.links
            .begin_turn(Now(Duration::from_millis(100 * tenth)));
        for why in ["id_in_use replica 1", "id_in_use replica 2"] {
            if host
                .links
                .note_refused(Who::At(Ipv4Addr::LOCALHOST.into()), why.to_owned())
            {
                said.push(tenth);
            }
        }
    }
    assert_eq!(said, [0, 0, 300, 300, 600, 600]);
    // Whoever makes up reasons fills neither the log nor the page.
    for number in 0..100 {
        let stranger = Who::At([192, 0, 2, 1].into());
        host.links
            .note_refused(stranger, format!("cluster {number}"));
    }
    assert_eq!(host.links.refusals().count(), 2 + 4);
    // Nor do those who come from everywhere keep back what is said of a replica.
    for number in 0..100 {
        let stranger = Who::At([198, 51, 100, number].into());
        host.links.note_refused(stranger, "cluster".to_owned());
    }
    assert_eq!(host.links.refusals().count(), LINKS_MAX);
    assert!(
        host.links
            .note_refused(Who::Replica(ReplicaId(1)), "own_id".to_owned())
    );
}
