//! Datagrams over real sockets, of clients that send more than is theirs.
use super::*;
use mio::Poll;
use quorumwire_replay::{Command, Event, Gateway};
use std::net::UdpSocket as Plain;
use std::time::Duration;

const OWN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 53);

struct Bench {
    datagrams: Datagrams,
    batches: Batches,
    at: SocketAddr,
    _poll: Poll,
}

impl Bench {
    fn new() -> Self {
        let poll = Poll::new().unwrap();
        let mut datagrams = Datagrams::default();
        let any = SocketAddr::new(OWN.ip(), 0);
        datagrams.listen(OWN, any, (1, poll.registry())).unwrap();
        let at = datagrams.ports[&1].served;
        let gateway = Gateway {
            replica: 0,
            number: 1,
        };
        Self {
            datagrams,
            batches: Batches::new(gateway),
            at,
            _poll: poll,
        }
    }

    fn take(&mut self) {
        assert!(self.datagrams.note(1) && self.datagrams.have_more());
        while self.datagrams.have_more() {
            self.datagrams.take(&mut self.batches);
        }
    }

    /// What goes into the log: from where, and how long.
    fn logged(&mut self) -> Vec<(SocketAddr, usize)> {
        let mut logged = Vec::new();
        while let Some((number, command)) = self.batches.next(Duration::ZERO) {
            let Ok(Command::Batch { events, .. }) = Command::decode(command) else {
                panic!("no batch");
            };
            logged.extend(events.iter().map(|event| match *event {
                Event::Datagram { peer, own, bytes } => {
                    assert_eq!(own, OWN);
                    (peer, bytes.len())
                }
                Event::Accept { .. }
                | Event::Data { .. }
                | Event::End { .. }
                | Event::Reset { .. } => panic!("only datagrams were sent"),
            }));
            self.batches.sent(number);
            let done = quorumwire_replay::Answer::Done;
            assert!(self.batches.answered(number, done, Duration::ZERO));
        }
        logged
    }
}

/// A client at this address of loopback.
fn client(last: u8) -> Plain {
    Plain::bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap()
}

#[test]
fn who_sends_much_is_in_nobodys_way() {
    let mut bench = Bench::new();
    let (loud, quiet) = (client(2), client(3));
    // The system's buffer holds more than that, and this is taken before it is full.
    for _ in 0..3 {
        for _ in 0..50 {
            loud.send_to(&[0; 500], bench.at).unwrap();
        }
        bench.take();
    }
    quiet.send_to(b"", bench.at).unwrap();
    quiet.send_to(&vec![0; 65_507], bench.at).unwrap();
    bench.take();
    let logged = bench.logged();
    let of = |client: &Plain| {
        let own = client.local_addr().unwrap();
        let of_it = logged.iter().filter(|(peer, _)| *peer == own);
        of_it.map(|(_, bytes)| *bytes).collect::<Vec<_>>()
    };
    assert_eq!(of(&quiet), [0, 65_507]);
    let counters = bench.datagrams.counters;
    assert!(counters.dropped_of_one > 0);
    assert_eq!(of(&loud).len() as u64 + counters.dropped_of_one, 150);
    assert_eq!(counters.taken, logged.len() as u64);
    assert_eq!(counters.dropped_full, 0);
    // All together have their share, too.
    for last in 2..10 {
        client(last).send_to(&[0; 10_000], bench.at).unwrap();
    }
    bench.take();
    let taken = bench.logged().len() as u64;
    assert!(bench.datagrams.counters.dropped_full > 0);
    assert_eq!(taken + bench.datagrams.counters.dropped_full, 8);
}

#[test]
fn an_answer_leaves_from_where_its_question_came_in() {
    let mut bench = Bench::new();
    let client = client(1);
    client.connect(bench.at).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let peer = client.local_addr().unwrap();
    let anywhere = SocketAddr::from(([0, 0, 0, 0], OWN.port()));
    for own in [OWN, anywhere] {
        bench.datagrams.send(own, peer, b"answer");
        let mut answer = [0; 10];
        assert_eq!(client.recv(&mut answer).unwrap(), 6);
    }
    let other = SocketAddr::new(OWN.ip(), 54);
    bench.datagrams.send(other, peer, b"answer");
    let counters = bench.datagrams.counters;
    assert_eq!((counters.sent, counters.not_sent), (2, 1));
}

#[test]
fn a_port_is_served_once_and_in_its_own_ip_version() {
    let mut bench = Bench::new();
    assert!(bench.datagrams.serve(OWN, false));
    let other = SocketAddr::from(([127, 0, 0, 2], OWN.port()));
    assert!(bench.datagrams.serve(other, true) && !bench.datagrams.serve(other, false));
    let poll = Poll::new().unwrap();
    let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 0));
    let refused = bench.datagrams.listen(other, v6, (2, poll.registry()));
    assert!(refused.unwrap_err().to_string().contains("IP version"));
    bench.datagrams.unlisten(OWN);
    assert!(!bench.datagrams.serve(OWN, false));
}

#[test]
fn what_a_program_had_no_room_for_is_counted_over_its_beginnings() {
    let mut datagrams = Datagrams::default();
    for (lost, all) in [(0, 0), (2, 2), (2, 2), (1, 3)] {
        datagrams.note_lost(lost);
        assert_eq!(datagrams.counters.dropped_unread, all);
    }
}

#[test]
fn who_refuses_drops_what_comes() {
    let mut bench = Bench::new();
    let one = client(2);
    for why in [NoClients::Follows, NoClients::LogIsFull] {
        bench.datagrams.refuses = Some(why);
        one.send_to(b"lost", bench.at).unwrap();
        bench.take();
    }
    bench.datagrams.refuses = None;
    one.send_to(b"taken", bench.at).unwrap();
    bench.take();
    let logged = bench.logged();
    assert_eq!(logged, [(one.local_addr().unwrap(), 5)]);
    let counters = &bench.datagrams.counters;
    assert_eq!(counters.refused_by_follower, 1);
    assert_eq!(counters.refused_log_full, 1);
}
