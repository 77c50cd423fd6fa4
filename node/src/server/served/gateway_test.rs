//! Clients of a served program that differ in what they send and take, over real sockets.
use super::super::super::handshakes::HANDSHAKES_MAX;
use super::*;
use crate::key_folder::KeyFolder;
use crate::tls::{ClientTls, replica_name};
use quorumwire_interfaces::ReplicaId;
use quorumwire_replay::{Answer, Command, Event, Gateway};
use rustls::pki_types::ServerName;
use std::net::TcpStream as Socket;
use std::time::Instant;

const DEADLINE: Duration = Duration::from_secs(20);
const LARGE: usize = 96 << 10;
const HELD_MAX: usize = 64 << 10;

struct Bench {
    clients: Clients,
    batches: Batches,
    at: SocketAddr,
}

/// What a client has done, without its bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Did {
    Accept(u32),
    Data(u32),
    End(u32),
    Reset(u32),
}

fn own_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 6379))
}

impl Bench {
    fn new() -> Self {
        let mut clients = Clients::new(HELD_MAX, false).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        clients
            .listen(own_port(), Transport::Tcp, Some(any))
            .unwrap();
        let at = clients.ports.values().next().unwrap();
        let at = at.listener.local_addr().unwrap();
        let gateway = Gateway {
            replica: 0,
            number: 1,
        };
        Self {
            clients,
            batches: Batches::new(gateway),
            at,
        }
    }

    /// Its number is one more than the last one's.
    fn connect(&mut self) -> Socket {
        let socket = Socket::connect(self.at).unwrap();
        self.clients.accept_again();
        socket
    }

    /// One turn: what it puts into the log.
    fn turn(&mut self) -> Vec<Did> {
        self.turn_at(clock::now())
    }

    fn turn_at(&mut self, now: Now) -> Vec<Did> {
        self.clients.look().unwrap();
        self.clients.take(&mut self.batches, now);
        self.clients.write(&mut self.batches);
        let now = Now(Duration::from_secs(1));
        let mut did = Vec::new();
        while let Some((number, command)) = self.batches.next(now.0) {
            let Ok(Command::Batch { events, .. }) = Command::decode(command) else {
                panic!("no batch");
            };
            did.extend(events.iter().map(|event| match *event {
                Event::Accept { client, .. } => Did::Accept(client),
                Event::Data { client, .. } => Did::Data(client),
                Event::End { client } => Did::End(client),
                Event::Reset { client } => Did::Reset(client),
                Event::Datagram { .. } => panic!("no client sends one"),
            }));
            self.batches.sent(number);
            assert!(self.batches.answered(number, Answer::Done, now.0));
        }
        did
    }
}

#[test]
fn who_connected_last_is_heard_however_much_others_send() {
    let mut bench = Bench::new();
    let mut sockets: Vec<Socket> = (0..20).map(|_| bench.connect()).collect();
    for socket in &mut sockets {
        socket.write_all(&vec![b'x'; LARGE]).unwrap();
    }
    // Each turn has room for some of them.
    let turns: Vec<Did> = (0..8).flat_map(|_| bench.turn()).collect();
    for client in 0..20 {
        assert!(turns.contains(&Did::Data(client)), "{client}: {turns:?}");
    }
    assert!(bench.clients.have_more(&bench.batches));
}

#[test]
fn a_reset_is_seen_of_who_sends_no_more() {
    let mut bench = Bench::new();
    let socket = bench.connect();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(bench.turn(), [Did::Accept(0), Did::End(0)]);
    let socket = socket2::Socket::from(socket);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
    assert_eq!(bench.turn(), [Did::Reset(0)]);
    assert!(bench.clients.each.is_empty());
}

#[test]
fn who_holds_the_most_is_cut_when_all_hold_too_much() {
    let mut bench = Bench::new();
    let _sockets = [bench.connect(), bench.connect(), bench.connect()];
    bench.turn();
    for (client, sixteenths) in [(0, 4), (1, 10), (2, 1)] {
        let bytes = vec![0; HELD_MAX / 16 * sixteenths];
        bench.clients.tell(client, &bytes);
    }
    assert_eq!(bench.clients.counters.cut_for_memory, 0);
    bench.clients.tell(2, &[0; HELD_MAX / 8]);
    assert_eq!(bench.clients.counters.cut_for_memory, 1);
    assert_eq!(bench.turn(), [Did::Reset(1)]);
    // What is taken is held no more.
    assert_eq!(bench.clients.counters.bytes_out, HELD_MAX as u64 / 16 * 7);
    assert_eq!(bench.clients.held, 0);
}

#[test]
fn a_closed_connection_whose_client_takes_nothing_ends() {
    let mut bench = Bench::new();
    bench.clients.held_max = usize::MAX;
    let _sockets = [bench.connect(), bench.connect()];
    bench.turn();
    for client in 0..2 {
        bench.clients.tell(client, &vec![0; 16 << 20]);
    }
    bench.clients.close(0);
    assert!(bench.turn().is_empty());
    let long_ago = clock::now();
    bench.clients.cut_closed(long_ago);
    assert!(bench.turn().is_empty());
    let later = Now(long_ago.0 + CLOSED_TAKES_NOTHING);
    bench.clients.cut_closed(later);
    assert_eq!(bench.turn(), [Did::Reset(0)]);
    assert_eq!(bench.clients.counters.cut_slow, 1);
}

/// Its clients speak TLS; and how one of them does.
fn secured() -> (Bench, Arc<rustls::ClientConfig>) {
    let dir = tempfile::tempdir().unwrap();
    let members = BTreeMap::from([(ReplicaId(0), Vec::new())]);
    let keys = KeyFolder::create(&dir.path().join("keys"), "c", &members, 30).unwrap();
    let peers = keys.peer_files(ReplicaId(0));
    let tls = ClientTls::load(&peers.own, Some(&peers), None).unwrap();
    let mut bench = Bench::new();
    bench.clients.tls = Some(tls.ports);
    (bench, tls.asks.unwrap())
}

fn at(ms: u64) -> Now {
    Now(Duration::from_millis(ms))
}

/// Turns, a millisecond apart, until this holds; what went into the log.
fn turn_until(bench: &mut Bench, ms: &mut u64, is_it: impl Fn(&Clients) -> bool) -> Vec<Did> {
    let begun = Instant::now();
    let mut did = Vec::new();
    while !is_it(&bench.clients) {
        assert!(begun.elapsed() < DEADLINE, "it did not happen in time");
        *ms += 1;
        did.extend(bench.turn_at(at(*ms)));
    }
    did
}

#[test]
fn the_log_hears_of_a_client_when_its_handshake_is_done() {
    let (mut bench, asks) = secured();
    bench.clients.held_max = usize::MAX;
    let socket = bench.connect();
    assert!(bench.turn_at(at(1)).is_empty());
    let name = ServerName::try_from(replica_name(ReplicaId(0), "c")).unwrap();
    let tls = rustls::ClientConnection::new(asks, name).unwrap();
    let mut client = rustls::StreamOwned::new(tls, socket);
    let client = std::thread::spawn(move || {
        client.write_all(b"question").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).map(|_| answer)
    });
    let mut ms = 1;
    let did = turn_until(&mut bench, &mut ms, |it| it.counters.bytes_in == 8);
    assert_eq!(did, [Did::Accept(0), Did::Data(0)]);
    bench.clients.tell(0, &vec![b'x'; LARGE]);
    bench.clients.shut(0);
    turn_until(&mut bench, &mut ms, |_| client.is_finished());
    let answer = client.join().unwrap().unwrap();
    assert_eq!(answer.len(), LARGE, "it ends in order");
}

/// What a part of a question means to the program it must not take for the whole.
#[test]
fn who_ends_without_a_word_of_tls_is_reset() {
    let (mut bench, asks) = secured();
    for says_so in [true, false] {
        let socket = bench.connect();
        let name = ServerName::try_from(replica_name(ReplicaId(0), "c")).unwrap();
        let tls = rustls::ClientConnection::new(Arc::clone(&asks), name).unwrap();
        let mut client = rustls::StreamOwned::new(tls, socket);
        let client = std::thread::spawn(move || {
            client.write_all(b"question").unwrap();
            if says_so {
                client.conn.send_close_notify();
            }
            client.flush().unwrap();
            client.sock.shutdown(Shutdown::Write).unwrap();
            client
        });
        let (number, begun) = (u32::from(!says_so), Instant::now());
        let comes = if says_so {
            Did::End(number)
        } else {
            Did::Reset(number)
        };
        let (mut did, mut ms) = (Vec::new(), 1);
        while did.len() < 3 {
            assert!(begun.elapsed() < DEADLINE, "{did:?}");
            ms += 1;
            did.extend(bench.turn_at(at(ms)));
        }
        assert_eq!(did, [Did::Accept(number), Did::Data(number), comes]);
        client.join().unwrap();
    }
}

#[test]
fn handshakes_are_bounded_in_number_and_time_and_leave_nothing_in_the_log() {
    let (mut bench, _) = secured();
    let mute: Vec<Socket> = (0..HANDSHAKES_MAX).map(|_| bench.connect()).collect();
    let mut ms = 0;
    let did = turn_until(&mut bench, &mut ms, |it| it.each.len() == HANDSHAKES_MAX);
    assert!(did.is_empty());
    let _one_more = bench.connect();
    // Who is slow gives way to who waits.
    turn_until(&mut bench, &mut ms, |it| {
        it.counters.handshakes_displaced == 1
    });
    assert_eq!(bench.clients.each.len(), HANDSHAKES_MAX);
    bench.clients.time_out_handshakes(at(ms + 6000));
    assert!(bench.clients.each.is_empty() && bench.turn_at(at(ms + 6000)).is_empty());
    let counters = bench.clients.counters;
    assert_eq!(counters.handshakes_timed_out, HANDSHAKES_MAX as u64);
    assert_eq!(counters.accepted, 0);
    assert_eq!(bench.clients.held, 0);
    drop(mute);
}

#[test]
fn what_is_no_tls_is_refused_and_who_goes_is_forgotten() {
    let (mut bench, _) = secured();
    let mut plain = bench.connect();
    plain.write_all(b"SET key value\r\n").unwrap();
    let gone = bench.connect();
    drop(gone);
    let mut ms = 0;
    let did = turn_until(&mut bench, &mut ms, |it| {
        it.counters.refused_by_tls + it.counters.gone_in_handshake == 2
    });
    assert!(did.is_empty());
    assert!(bench.clients.each.is_empty());
    assert_eq!(bench.clients.counters.refused_by_tls, 1);
}

#[test]
fn a_port_is_served_on_loopback_unless_all_may_connect() {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    for (listens, served) in [
        ("0.0.0.0:6379", "127.0.0.1:6379"),
        ("[::]:6379", "[::1]:6379"),
        ("192.0.2.1:6379", "127.0.0.1:6379"),
        ("127.0.0.2:6379", "127.0.0.2:6379"),
    ] {
        let mut clients = Clients::new(HELD_MAX, false).unwrap();
        assert_eq!(clients.own_place(at(listens), Transport::Tcp), at(served));
        let (secured, _) = secured();
        for (transport, served) in [(Transport::Tcp, listens), (Transport::Udp, served)] {
            assert_eq!(
                secured.clients.own_place(at(listens), transport),
                at(served)
            );
        }
        clients.is_exposed = true;
        assert_eq!(clients.own_place(at(listens), Transport::Udp), at(listens));
    }
}

#[test]
fn an_address_is_listened_at_once_however_often_the_program_begins() {
    let mut bench = Bench::new();
    let listens = bench.clients.listen(own_port(), Transport::Tcp, None);
    listens.unwrap();
    assert_eq!(bench.clients.ports.len(), 1);
    assert_eq!(bench.clients.served_at(), [bench.at.to_string()]);
    bench.connect();
    assert_eq!(bench.turn(), [Did::Accept(0), Did::End(0)]);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listens = bench.clients.listen(own_port(), Transport::Udp, Some(any));
    listens.unwrap();
    let [_, datagrams] = &bench.clients.served_at()[..] else {
        panic!("two");
    };
    assert!(datagrams.ends_with("/udp"), "{datagrams}");
}

#[test]
fn ports_that_are_published_and_not_opened_are_named_once() {
    let mut bench = Bench::new();
    let port = |number, transport| ProgramPort { number, transport };
    let missing = [
        port(6379, Some(Transport::Udp)),
        port(6380, None),
        port(6380, Some(Transport::Tcp)),
    ];
    let opened = [port(6379, None), port(6379, Some(Transport::Tcp))];
    let published = opened.iter().chain(&missing).map(|it| (*it, own_port()));
    let published: BTreeMap<_, _> = published.collect();
    let look = |bench: &mut Bench, now| bench.clients.look_for_ports(&published, now);
    let far = Now(Duration::MAX);
    assert!(look(&mut bench, far).is_empty(), "it has not begun");
    let began = clock::now();
    bench.clients.began_at = Some(began);
    assert!(look(&mut bench, began).is_empty(), "it has the time");
    assert!(bench.clients.missing_ports(&published).is_empty());
    assert_eq!(look(&mut bench, far), missing);
    assert!(look(&mut bench, far).is_empty());
    assert_eq!(bench.clients.missing_ports(&published), missing, "still");
}

#[test]
fn a_try_to_connect_elsewhere_is_counted() {
    let mut bench = Bench::new();
    for (count, all) in [(0, 0), (1, 1), (2, 2), (2, 2), (1, 3), (1, 3)] {
        bench.clients.note_outbound((count, 80)); // less than before: of one that has begun anew
        assert_eq!(bench.clients.counters.outbound, all);
    }
}

#[test]
fn who_refuses_cuts_whom_it_has_and_takes_nobody() {
    let mut bench = Bench::new();
    let refuse = |bench: &mut Bench, why| bench.clients.refuse(why, &mut bench.batches);
    refuse(&mut bench, None);
    let mut first = bench.connect();
    assert_eq!(bench.turn(), [Did::Accept(0)]);
    refuse(&mut bench, Some(NoClients::Follows));
    refuse(&mut bench, Some(NoClients::Follows));
    assert_eq!(bench.turn(), [Did::Reset(0)]);
    let mut second = bench.connect();
    assert_eq!(bench.turn(), []);
    for socket in [&mut first, &mut second] {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap(), 0, "it is hung up");
    }
    assert_eq!(bench.clients.counters.refused_by_follower, 2);
    refuse(&mut bench, Some(NoClients::LogIsFull));
    let _fourth = bench.connect();
    assert_eq!(bench.turn(), []);
    assert_eq!(bench.clients.counters.refused_log_full, 1);
    refuse(&mut bench, None);
    let _third = bench.connect();
    assert_eq!(bench.turn(), [Did::Accept(1)]);
}
