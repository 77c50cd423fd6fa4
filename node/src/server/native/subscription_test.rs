//! What a learner is given, looked at without an event loop: credit, room, and why a subscription ends.
use super::*;
use crate::server::admission::Identity;
use crate::server::clients::{Clients, Listener};
use crate::server::connection_id::ConnectionId;
use crate::server::core::tests::core_of;
use crate::server::fronts::Protocol;
use crate::server::requests;
use crate::server::values::Delivering;
use mio::net::TcpListener;
use mio::{Events, Poll};
use quorumwire_control::Now;
use quorumwire_deliver::{Command, KEPT_BYTES_MIN};
use quorumwire_interfaces::{Index, LogTime};
use quorumwire_sessions::LogPosition;
use quorumwire_wire::client::{FromClient, FromServer, from_client, from_server::Body};
use quorumwire_wire::limits::ATTACHMENT_BYTES_MAX;
use quorumwire_wire::{ClientFrame, take_client_frame, write_client_frame};
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

const FIRST_TOKEN: usize = 10;
const TURNS_MAX: usize = 100;
const REQUEST: u64 = 9;

/// A server without its loop, and one client.
struct Host {
    poll: Poll,
    clients: Clients,
    admission: Admission,
    core: Core<Delivering>,
    socket: TcpStream,
    id: ConnectionId,
    applied: u64,
}

impl Host {
    /// With a client that has said hello and speaks versions up to this one.
    fn welcoming(protocol_max: u32) -> Self {
        let poll = Poll::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let listeners = vec![Listener {
            socket: listener,
            protocol: Protocol::Native,
            group: 0,
        }];
        let registry = poll.registry().try_clone().unwrap();
        let mut clients = Clients::new(listeners, registry, FIRST_TOKEN, 10);
        let socket = TcpStream::connect(address).unwrap();
        while clients.count() == 0 {
            clients.begin_turn(Now::default());
            clients.accept(Now::default());
        }
        let id = clients.iter().next().unwrap().id;
        let mut host = Self {
            poll,
            clients,
            admission: Admission::new(Identity::default(), None, 0),
            core: core_of(),
            socket,
            id,
            applied: 0,
        };
        let hello = client::Hello {
            protocol_min: 1,
            protocol_max,
            ..client::Hello::default()
        };
        let said = host.ask(0, from_client::Body::Hello(hello));
        assert!(matches!(said[..], [(0, Body::Welcome(_))]), "{said:?}");
        host.apply(&Command::Configure {
            learners: vec![7],
            kept_bytes_max: 4 * KEPT_BYTES_MIN,
        });
        host
    }

    fn apply(&mut self, command: &Command<'_>) {
        self.applied += 1;
        let position = LogPosition {
            index: Index(self.applied),
            log_time: LogTime(1),
        };
        let store = &mut self.core.group.store;
        store.command(position, &command.encode(), &mut Vec::new());
    }

    /// The client says this; what it is told then.
    fn ask(&mut self, request: u64, body: from_client::Body) -> Vec<(u64, Body)> {
        let mut frame = Vec::new();
        let body = Some(body);
        write_client_frame(&mut frame, &FromClient { request, body }, b"");
        self.socket.write_all(&frame).unwrap();
        for _ in 0..TURNS_MAX {
            let mut events = Events::with_capacity(16);
            let some = Duration::from_millis(100);
            self.poll.poll(&mut events, Some(some)).unwrap();
            for event in events.iter().filter(|it| it.token().0 >= FIRST_TOKEN) {
                self.clients.ready(event);
            }
            if self.clients.get(self.id).unwrap().wants_intake() {
                return self.serve();
            }
        }
        panic!("nothing came");
    }

    /// Looks at the client as a turn does; what it is told.
    fn serve(&mut self) -> Vec<(u64, Body)> {
        let mut connection = self.clients.take(self.id).unwrap();
        let mut scratch = vec![0; 1 << 16];
        let (admission, core) = (&mut self.admission, &mut self.core);
        requests::serve(admission, core, &mut connection, &mut scratch);
        requests::advance(admission, core, &mut connection);
        let output = std::mem::take(&mut connection.output);
        self.clients.put_back(connection);
        let (mut said, mut left) = (Vec::new(), &output[..]);
        while !left.is_empty() {
            let frame = take_client_frame::<FromServer>(left, ATTACHMENT_BYTES_MAX);
            let Ok(ClientFrame::Whole {
                consumed, message, ..
            }) = frame
            else {
                panic!("half a frame");
            };
            said.push((message.request, message.body.unwrap()));
            left = &left[consumed..];
        }
        said
    }

    fn subscribe(&mut self, learner: u32, from: u64, credit_bytes: u64) -> Vec<(u64, Body)> {
        let asked = client::Subscribe {
            learner,
            from,
            credit_bytes,
        };
        self.ask(REQUEST, from_client::Body::Subscribe(asked))
    }

    fn closed(&mut self) -> bool {
        self.clients.get(self.id).unwrap().closing
    }
}

fn value(instance: u64) -> (u64, Body) {
    (REQUEST, Body::Value(client::Value { instance }))
}

fn upto(instance: u64) -> (u64, Body) {
    (REQUEST, Body::Upto(client::Upto { instance }))
}

#[test]
fn values_are_given_as_they_are_applied_and_no_more_than_there_is_credit_for() {
    let mut host = Host::welcoming(2);
    assert_eq!(host.subscribe(7, 1, 200), [upto(1)]);
    assert_eq!(host.serve(), [], "nothing is new");
    for _ in 0..5 {
        host.apply(&Command::Value(b"0123456789"));
    }
    // Each counts 74: the third takes what is left, and more.
    assert_eq!(host.serve(), [value(2), value(3), value(4)]);
    assert_eq!(host.serve(), []);
    let credit = |bytes| from_client::Body::Credit(client::Credit { bytes });
    assert_eq!(host.ask(0, credit(22)), [], "as much as was too much");
    assert_eq!(host.ask(0, credit(1)), [value(5)]);
    assert_eq!(host.ask(0, credit(u64::MAX)), [value(6)]);
    host.apply(&Command::Checkpoint {
        learner: 7,
        upto: 3,
    });
    assert_eq!(host.serve(), [upto(7)]);
}

#[test]
fn what_waits_for_a_client_that_takes_nothing_is_bounded() {
    let mut host = Host::welcoming(2);
    let mebibyte = vec![1; 1 << 20];
    for _ in 0..10 {
        host.apply(&Command::Value(&mebibyte));
    }
    let asked = client::Subscribe {
        learner: 7,
        from: 1,
        credit_bytes: u64::MAX,
    };
    let mut connection = host.clients.take(host.id).unwrap();
    take(&mut host.core, &mut connection, &asked);
    for _ in 0..20 {
        host.admission.begin_share(host.core.work_done());
        give(&host.admission, &mut host.core, &mut connection);
    }
    let waiting = connection.output_waiting();
    assert!(waiting > OUTPUT_BYTES_MAX / 2, "{waiting}");
    assert!(waiting < OUTPUT_BYTES_MAX + (1 << 20) + 100, "{waiting}");
    assert!(connection.cut, "it goes on when there is room");
}

#[test]
fn what_is_trimmed_and_who_is_no_learner_is_said() {
    let mut host = Host::welcoming(2);
    let said = host.subscribe(8, 1, 100);
    let [(REQUEST, Body::Refused(refused))] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(refused.detail.contains("no learner 8"), "{refused:?}");
    for _ in 0..3 {
        host.apply(&Command::Value(b""));
    }
    host.apply(&Command::DeclareLost { upto: 3 });
    let trimmed = (REQUEST, Body::Trimmed(client::Trimmed { upto: 3 }));
    assert_eq!(host.subscribe(7, 3, 100), [trimmed]);
    // It has ended, so another one may begin, and be overtaken.
    assert_eq!(host.subscribe(7, 4, 0), []);
    host.apply(&Command::DeclareLost { upto: 4 });
    let trimmed = (REQUEST, Body::Trimmed(client::Trimmed { upto: 4 }));
    assert_eq!(host.serve(), [trimmed]);
    assert!(!host.closed());
}

#[test]
fn a_second_subscription_instance_0_and_version_1_close_the_connection() {
    let mut twice = Host::welcoming(2);
    twice.subscribe(7, 1, 100);
    let mut from_0 = Host::welcoming(2);
    let mut old = Host::welcoming(1);
    for (host, from) in [(&mut twice, 1), (&mut from_0, 0), (&mut old, 1)] {
        let said = host.subscribe(7, from, 100);
        let is_goodbye = matches!(said[..], [(0, Body::Goodbye(_))]);
        assert!(is_goodbye && host.closed(), "{said:?}");
    }
}
