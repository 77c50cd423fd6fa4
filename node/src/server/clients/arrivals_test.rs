//! Who arrives over real sockets, while the clock is moved by hand.
use super::super::{Intake, Listener, Protocol};
use super::*;
use crate::key_folder::KeyFolder;
use crate::server::handshakes::{ACCEPT_TIME, HANDSHAKES_MAX, HANDSHAKES_TIME};
use crate::tls::{ClientTls, replica_name};
use mio::net::TcpListener;
use mio::{Events, Poll};
use quorumwire_interfaces::ReplicaId;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::collections::BTreeMap;
use std::net::TcpStream as Socket;
use std::sync::Arc;
use std::time::Instant;

const DEADLINE: Duration = Duration::from_secs(20);
const FIRST_TOKEN: usize = 10;

struct Host {
    poll: Poll,
    clients: Clients,
    address: SocketAddr,
    /// Of the port for Redis clients.
    redis: SocketAddr,
    /// As a client shakes hands.
    asks: Arc<ClientConfig>,
}

impl Host {
    fn start(connections_max: usize, is_secured: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let members = BTreeMap::from([(ReplicaId(0), Vec::new())]);
        let keys = KeyFolder::create(&dir.path().join("keys"), "c", &members, 30).unwrap();
        let peers = keys.peer_files(ReplicaId(0));
        let poll = Poll::new().unwrap();
        let listen = || TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (listener, redis_listener) = (listen(), listen());
        let address = listener.local_addr().unwrap();
        let redis = redis_listener.local_addr().unwrap();
        let mut clients = Clients::new(
            [
                (listener, Protocol::Memcached),
                (redis_listener, Protocol::Redis),
            ]
            .map(|(socket, protocol)| Listener {
                socket,
                protocol,
                group: 0,
            })
            .into(),
            poll.registry().try_clone().unwrap(),
            FIRST_TOKEN,
            connections_max,
        );
        let tls = ClientTls::load(&peers.own, Some(&peers), None).unwrap();
        clients.tls = is_secured.then(|| Arc::clone(&tls.ports));
        Self {
            poll,
            clients,
            address,
            redis,
            asks: tls.asks.unwrap(),
        }
    }

    fn connect(&self, count: usize) -> Vec<Socket> {
        (0..count)
            .map(|_| Socket::connect(self.address).unwrap())
            .collect()
    }

    /// One turn at this time: accepts, and looks at whoever is to be looked at.
    fn turn(&mut self, now: Now) {
        let mut events = Events::with_capacity(256);
        let timeout = Some(Duration::ZERO);
        self.poll.poll(&mut events, timeout).unwrap();
        self.clients.begin_turn(now);
        for event in &events {
            self.clients.ready(event);
        }
        self.clients.let_readable_in(false);
        self.clients.accept(now);
        for _ in 0..self.clients.queue_len() {
            let Some(mut connection) = self.clients.take_next() else {
                break;
            };
            let took = connection.take_in(&mut [0; 1000], |_, bytes| (bytes.len(), 0));
            self.clients.use_up_handshake(Duration::from_micros(400));
            self.clients
                .send_and_put_back(connection, took == Intake::Broken);
        }
    }

    /// Turns, a millisecond apart, until this holds.
    fn turn_until(&mut self, ms: &mut u64, is_it: impl Fn(&Clients) -> bool) {
        let begun = Instant::now();
        while !is_it(&self.clients) {
            assert!(begun.elapsed() < DEADLINE, "it did not happen in time");
            *ms += 1;
            self.turn(at(*ms));
        }
    }
}

fn at(ms: u64) -> Now {
    Now(Duration::from_millis(ms))
}

#[test]
fn handshakes_under_way_are_bounded_and_the_oldest_gives_way() {
    let mut host = Host::start(10_000, true);
    let mut mute = host.connect(HANDSHAKES_MAX);
    let mut ms = 0;
    host.turn_until(&mut ms, |clients| clients.count() == HANDSHAKES_MAX);
    mute.extend(host.connect(3));
    for _ in 0..100 {
        ms += 1;
        host.turn(at(ms));
    }
    assert_eq!(host.clients.count(), HANDSHAKES_MAX, "the others wait");
    assert!(!host.clients.has_arrivals(), "and nothing turns in vain");
    // Nobody has got on for a second: whoever came first goes.
    ms += 1200;
    host.turn_until(&mut ms, |it| it.counters.handshakes_displaced == 3);
    assert_eq!(host.clients.count(), HANDSHAKES_MAX);
    assert_eq!(host.clients.counters.accepted, HANDSHAKES_MAX as u64 + 3);
    // In the end nobody is left: each had its time.
    ms += 6000;
    host.clients.time_out_handshakes(at(ms));
    assert_eq!(host.clients.count(), 0);
    let timed_out = host.clients.counters.handshakes_timed_out;
    assert_eq!(timed_out, HANDSHAKES_MAX as u64);
    drop(mute);
}

#[test]
fn a_handshake_goes_on_when_there_is_time_again() {
    let mut host = Host::start(100, true);
    let mut garbage = host.connect(20);
    host.clients.handshakes.use_up(HANDSHAKES_TIME);
    for socket in &mut garbage {
        socket.write_all(b"get key\r\n").unwrap();
    }
    let mut ms = 0;
    host.turn_until(&mut ms, |it| it.counters.handshakes_postponed >= 20);
    assert_eq!(host.clients.counters.refused_by_tls, 0);
    assert!(!host.clients.has_arrivals() && host.clients.queue_len() == 0);
    ms += 1000;
    host.turn_until(&mut ms, |it| it.counters.refused_by_tls == 20);
    assert_eq!(host.clients.count(), 0);
}

#[test]
fn connections_are_accepted_as_far_as_there_is_time() {
    let mut host = Host::start(10, false);
    let mut held = host.connect(12);
    host.clients.handshakes.use_up_accept(ACCEPT_TIME);
    host.clients.accept(at(0));
    assert_eq!(host.clients.count(), 0);
    assert!(!host.clients.has_arrivals());
    let mut ms = 1000;
    host.turn_until(&mut ms, |it| it.counters.refused_too_many == 2);
    assert_eq!(host.clients.count(), 10);
    held.clear();
    host.turn_until(&mut ms, |it| it.count() == 0);
}

#[test]
fn a_flood_at_one_port_keeps_nobody_away_from_another() {
    let mut host = Host::start(4, false);
    let flood = host.connect(20);
    let few: Vec<_> = (0..2)
        .map(|_| Socket::connect(host.redis).unwrap())
        .collect();
    let mut ms = 0;
    host.turn_until(&mut ms, |it| it.counters.refused_too_many == 18);
    let of_redis = host.clients.iter().filter(|it| it.redis().is_some());
    assert_eq!(of_redis.count(), 2, "one of each in turn");
    drop((flood, few));
}

#[test]
fn a_port_that_was_served_last_is_served_last_again() {
    let mut host = Host::start(10, false);
    let flood = host.connect(3);
    let late = Socket::connect(host.redis).unwrap();
    for count in 1..=3 {
        // Time for one.
        host.clients
            .handshakes
            .have_time_for_accepts(Duration::from_nanos(4));
        host.clients.accept(at(0));
        assert_eq!(host.clients.count(), count);
        let of_redis = host.clients.iter().filter(|it| it.redis().is_some());
        assert_eq!(of_redis.count(), usize::from(count > 1));
    }
    drop((flood, late));
}

#[test]
fn the_time_to_say_who_one_is_begins_with_the_end_of_the_handshake() {
    let mut host = Host::start(10, true);
    host.clients.lets_everybody_in = false;
    let mut slow = host.connect(1).remove(0);
    let mut ms = 0;
    host.turn_until(&mut ms, |it| it.count() == 1);
    ms += 4000;
    let name = ServerName::try_from(replica_name(ReplicaId(0), "c")).unwrap();
    let mut session = ClientConnection::new(Arc::clone(&host.asks), name).unwrap();
    let shakes = std::thread::spawn(move || {
        while session.is_handshaking() {
            session.complete_io(&mut slow).unwrap();
        }
        (session, slow)
    });
    host.turn_until(&mut ms, |it| it.handshakes.are_over());
    let held = shakes.join().unwrap();
    assert!(ms > 4000);
    host.clients.time_out_unknown(at(ms + 29_000));
    assert_eq!(host.clients.count(), 1);
    host.clients.time_out_unknown(at(ms + 31_000));
    assert_eq!(host.clients.count(), 0);
    drop(held);
}

#[test]
fn who_must_say_who_it_is_has_thirty_seconds_for_it() {
    let mut host = Host::start(10, false);
    host.clients.lets_everybody_in = false;
    let held = host.connect(3);
    let mut ms = 0;
    host.turn_until(&mut ms, |it| it.count() == 3);
    let known = host.clients.iter().next().unwrap().id;
    host.clients.get(known).unwrap().is_let_in = true;
    host.clients.time_out_unknown(at(29_000));
    assert_eq!(host.clients.count(), 3);
    host.clients.time_out_unknown(at(31_000));
    assert_eq!(host.clients.count(), 1);
    assert_eq!(host.clients.counters.closed_unknown, 2);
    assert!(host.clients.get(known).is_some());
    drop(held);
}

#[test]
fn of_all_who_hold_too_much_the_one_goes_that_held_the_most_for_the_longest() {
    let mut host = Host::start(10, false);
    host.clients.held.bytes_max = 1 << 20;
    let held = host.connect(4);
    let mut ms = 0;
    host.turn_until(&mut ms, |it| it.count() == 4);
    let ids: Vec<_> = host.clients.iter().map(|it| it.id).collect();
    // One holds little, two hold much, the second of them for longer.
    let since = [None, Some(at(ms + 1000)), Some(at(ms)), None];
    let bytes = [1 << 10, 600 << 10, 600 << 10, 1 << 10];
    for ((id, bytes), since) in ids.iter().zip(bytes).zip(since) {
        let mut connection = host.clients.take(*id).unwrap();
        connection.lines.reserve(bytes);
        host.clients.count_held(&mut connection);
        assert_eq!(connection.held.much_since.is_some(), since.is_some());
        connection.held.much_since = since;
        host.clients.put_back(connection);
    }
    assert!(host.clients.held.bytes > 1 << 20);
    let later = at(ms + 60_000);
    assert_eq!(host.clients.shed(later), Some(ids[2]));
    assert_eq!(host.clients.shed(later), None, "one is enough");
    assert_eq!(host.clients.counters.closed_for_memory, 1);
    assert!(host.clients.held.bytes < 1 << 20);
    drop(held);
}
