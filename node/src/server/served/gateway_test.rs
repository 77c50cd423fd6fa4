//! Clients of a served program that differ in what they send and take, over real sockets.
use super::*;
use quorumwire_replay::{Answer, Command, Event, Gateway};
use std::net::TcpStream as Socket;

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
        self.clients.look().unwrap();
        self.clients.take(&mut self.batches);
        self.clients.write(&mut self.batches);
        let now = Now(Duration::from_secs(1));
        let mut did = Vec::new();
        while let Some((number, command)) = self.batches.next(now) {
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
            assert!(self.batches.answered(number, Answer::Done, now));
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
        assert_eq!(clients.own_place(at(listens)), at(served));
        clients.is_exposed = true;
        assert_eq!(clients.own_place(at(listens)), at(listens));
    }
}

#[test]
fn an_address_is_listened_at_once_however_often_the_program_begins() {
    let mut bench = Bench::new();
    let listens = bench.clients.listen(own_port(), Transport::Tcp, None);
    listens.unwrap();
    assert_eq!(bench.clients.ports.len(), 1);
    bench.connect();
    assert_eq!(bench.turn(), [Did::Accept(0), Did::End(0)]);
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
    assert_eq!(look(&mut bench, far), missing);
    assert!(look(&mut bench, far).is_empty());
}

#[test]
fn a_try_to_connect_elsewhere_is_counted() {
    let mut bench = Bench::new();
    for (count, all) in [(0, 0), (1, 1), (2, 2), (2, 2), (1, 3), (1, 3)] {
        bench.clients.note_outbound((count, 80)); // less than before: of one that has begun anew
        assert_eq!(bench.clients.counters.outbound, all);
    }
}
