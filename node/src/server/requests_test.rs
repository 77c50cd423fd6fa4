//! What one connection may have done before the others have their turn. Connections are real sockets; no
//! event loop goes round, so that nothing depends on how long anything takes.
use super::*;
use crate::server::admission::Identity;
use crate::server::budget::Budget;
use crate::server::clients::{Clients, Listener, ReadState};
use crate::server::fronts::Protocol;
use crate::server::kv::{Core, line_to_forward, take_part};
use crate::server::origin::Reader;
use crate::server::plane_turn::tests::leader_of_one;
use crate::server::read_line::ReadLine;
use crate::server::reads;
use crate::server::start::tests::Alone;
use mio::net::TcpListener;
use mio::{Events, Poll};
use quorumwire_control::Now;
use quorumwire_group::{self as group, Follower, FollowerRead, RequestId};
use quorumwire_interfaces::{Application as _, Index, LogTime, ReplicaId};
use quorumwire_kv::redis::{Resp, Script, Words, reply};
use quorumwire_kv::{Command, Query, VALUE_BYTES_MAX};
use quorumwire_sessions::LogPosition;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

impl Connection {
    /// Adds a read with this line, as if it had just been parsed.
    pub fn push_read(&mut self, line: &[u8], keys: u32, state: ReadState) {
        let form = Query::from_line(line).form();
        self.push_read_line(ReadLine { line, form }, keys, state);
    }
}

const FIRST_TOKEN: usize = 10;
/// A search through all of them is more than a connection's share.
const KEYS: usize = 20_000;
const TURNS_MAX: usize = 100;

/// A server without its loop.
struct Host {
    poll: Poll,
    clients: Clients,
    admission: Admission,
    core: Core,
    redis: SocketAddr,
    scratch: Vec<u8>,
}

impl Host {
    fn start() -> Self {
        let poll = Poll::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let redis = listener.local_addr().unwrap();
        let clients = Clients::new(
            vec![Listener {
                socket: listener,
                protocol: Protocol::Redis,
                group: 0,
            }],
            poll.registry().try_clone().unwrap(),
            FIRST_TOKEN,
            10,
        );
        Self {
            poll,
            clients,
            admission: Admission::new(Identity::default(), None, 0),
            core: leader_of_one(),
            redis,
            scratch: vec![0; 1 << 20],
        }
    }

    fn connect(&mut self) -> (TcpStream, ConnectionId) {
        let socket = TcpStream::connect(self.redis).unwrap();
        let before = self.clients.count();
        for _ in 0..TURNS_MAX {
            self.clients.begin_turn(Now::default());
            self.clients.accept(Now::default());
            if self.clients.count() > before {
                let newest = self.clients.iter().max_by_key(|it| it.id.number());
                let id = newest.unwrap().id;
                return (socket, id);
            }
            self.wait();
        }
        panic!("not accepted");
    }

    /// Until something happens; who has something to read asks.
    fn wait(&mut self) {
        let mut events = Events::with_capacity(256);
        let some = Duration::from_millis(100);
        self.poll.poll(&mut events, Some(some)).unwrap();
        for event in events.iter().filter(|it| it.token().0 >= FIRST_TOKEN) {
            self.clients.ready(event);
        }
    }

    /// Until this connection has something to read.
    fn wait_for(&mut self, id: ConnectionId) {
        for _ in 0..TURNS_MAX {
            self.wait();
            if self.clients.get(id).unwrap().wants_intake() {
                return;
            }
        }
        panic!("nothing came");
    }

    /// Looks at this connection once, as a turn does.
    fn serve(&mut self, id: ConnectionId) {
        let mut connection = self.clients.take(id).unwrap();
        let (admission, core) = (&mut self.admission, &mut self.core);
        serve(admission, core, &mut connection, &mut self.scratch);
        self.clients.put_back(connection);
    }

    /// Looks at it until it has sent nothing new that can be taken on; how often that was.
    fn serve_all(&mut self, id: ConnectionId) -> usize {
        for turn in 1..TURNS_MAX {
            self.serve(id);
            let connection = self.clients.get(id).unwrap();
            if !connection.wants_intake() && !connection.wants_output() {
                return turn;
            }
        }
        panic!("it never ends");
    }

    fn apply(&mut self, command: &str) {
        let text = text(command);
        let words = Words::from_text(&text).unwrap();
        let mut encoded = Vec::new();
        Command::Redis(Script::single(Resp::V2, &words)).encode(&mut encoded);
        let position = LogPosition {
            index: self.core.group.applied,
            log_time: LogTime(1),
        };
        self.core
            .group
            .store
            .command(position, &encoded, &mut Vec::new());
    }
}

fn text(command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut text = Vec::new();
    reply::array_header(&mut text, words.len());
    for word in words {
        reply::bulk(&mut text, word.as_bytes());
    }
    text
}

/// A server with many keys.
fn with_keys() -> Host {
    let mut host = Host::start();
    for number in 0..KEYS {
        host.apply(&format!("SET k{number} 1"));
    }
    host
}

/// Ten thousand bytes of them once stopped a leader for thirteen seconds.
#[test]
fn searches_of_one_connection_are_answered_share_by_share() {
    let mut host = with_keys();
    let (mut socket, id) = host.connect();
    socket.write_all(&b"KEYS zz*\r\n".repeat(30)).unwrap();
    host.wait_for(id);
    let answered = |host: &mut Host| host.clients.get(id).unwrap().output_waiting() / 4;
    for turn in 1..=30 {
        host.serve(id);
        assert_eq!(answered(&mut host), turn, "one in a turn");
        let connection = host.clients.get(id).unwrap();
        let is_left = connection.wants_intake() || connection.wants_output();
        assert_eq!(is_left, turn < 30);
    }
}

#[test]
fn what_is_cheap_is_answered_at_once() {
    let mut host = with_keys();
    let (mut socket, id) = host.connect();
    socket.write_all(&b"GET k1\r\n".repeat(500)).unwrap();
    host.wait_for(id);
    assert_eq!(host.serve_all(id), 1);
    assert!(host.admission.has_share(host.core.work_done()));
    let output = host.clients.get(id).unwrap().output_waiting();
    assert_eq!(output, 500 * b"$1\r\n1\r\n".len());
}

/// Nobody sees these answers, so nothing else stops whoever asks for them.
#[test]
fn what_is_said_about_the_server_is_work_too() {
    let mut host = Host::start();
    let (mut socket, id) = host.connect();
    let quiet = [&b"CLIENT REPLY OFF\r\n"[..], &b"COMMAND\r\n".repeat(100)].concat();
    socket.write_all(&quiet).unwrap();
    host.wait_for(id);
    let turns = host.serve_all(id);
    assert!(turns > 10, "{turns} turns");
}

#[test]
fn who_has_used_up_its_share_waits_behind_those_who_ask() {
    let mut host = with_keys();
    let (mut greedy, greedy_id) = host.connect();
    greedy.write_all(&b"KEYS zz*\r\n".repeat(30)).unwrap();
    host.wait_for(greedy_id);
    host.clients.let_readable_in(false);
    let connection = host.clients.take_next().unwrap();
    assert_eq!(connection.id, greedy_id);
    host.clients.put_back(connection);
    host.clients.attend_behind_others(greedy_id);
    // It goes on sending, and is answered: that is no reason to be looked at before.
    greedy.write_all(b"KEYS zz*\r\n").unwrap();
    host.clients.attend(greedy_id);
    let (mut modest, modest_id) = host.connect();
    modest.write_all(b"PING\r\n").unwrap();
    host.wait_for(modest_id);
    host.clients.let_readable_in(false);
    host.clients.let_overdrawn_in();
    let next = |host: &mut Host| {
        let connection = host.clients.take_next()?;
        let id = connection.id;
        host.clients.put_back(connection);
        Some(id)
    };
    assert_eq!(next(&mut host), Some(modest_id));
    assert_eq!(next(&mut host), Some(greedy_id));
    assert_eq!(next(&mut host), None);
    assert!(!host.clients.has_overdrawn());
}

/// All of them at once would stand in the log before whatever others write.
#[test]
fn expensive_writes_of_one_connection_go_into_the_log_one_by_one() {
    let mut host = Host::start();
    for number in 0..12 {
        host.apply(&format!("SETRANGE v{number} {} x", VALUE_BYTES_MAX - 1));
    }
    let sources = (0..12).fold(String::new(), |keys, number| format!("{keys} v{number}"));
    let bitop = text(&format!("BITOP OR to{sources}"));
    let (mut greedy, greedy_id) = host.connect();
    greedy.write_all(&bitop.repeat(50)).unwrap();
    host.wait_for(greedy_id);
    host.serve_all(greedy_id);
    assert_eq!(host.core.group.proposals.len(), 1);
    assert!(host.clients.get(greedy_id).unwrap().stalled);
    // Others go on.
    let (mut modest, modest_id) = host.connect();
    modest.write_all(&text("SET k 1").repeat(100)).unwrap();
    host.wait_for(modest_id);
    host.serve_all(modest_id);
    assert_eq!(host.core.group.proposals.len(), 1 + 100);
    // Once it is answered, the next one goes.
    let mut connection = host.clients.take(greedy_id).unwrap();
    connection.pop_slot();
    host.clients.put_back(connection);
    host.serve_all(greedy_id);
    assert_eq!(host.core.group.proposals.len(), 1 + 100 + 1);
}

/// Each connection has but one on its way, and there can be thousands.
#[test]
fn expensive_writes_of_many_connections_wait_for_each_other() {
    let mut host = Host::start();
    for number in 0..12 {
        host.apply(&format!("SETRANGE v{number} {} x", VALUE_BYTES_MAX - 1));
    }
    let sources = (0..12).fold(String::new(), |keys, number| format!("{keys} v{number}"));
    let bitop = text(&format!("BITOP OR to{sources}"));
    let mut sockets = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..8 {
        let (mut socket, id) = host.connect();
        socket.write_all(&bitop).unwrap();
        host.wait_for(id);
        host.serve_all(id);
        sockets.push(socket);
        ids.push(id);
    }
    assert_eq!(host.core.group.proposals.len(), 5, "64 MiB");
    let (mut modest, modest_id) = host.connect();
    modest.write_all(&text("SET k 1")).unwrap();
    host.wait_for(modest_id);
    host.serve_all(modest_id);
    assert_eq!(host.core.group.proposals.len(), 6);
    // One is answered: the one that has waited the longest goes.
    assert_eq!(host.admission.in_flight.end(ids[0], 0), Some(ids[5]));
    for (id, expected) in [(ids[7], 6), (ids[5], 7), (ids[6], 7)] {
        host.serve_all(id);
        assert_eq!(host.core.group.proposals.len(), expected);
    }
    // Who has waited for too long is told, as of whatever else cannot go.
    let connection = host.clients.get(ids[6]).unwrap();
    connection.must_refuse = true;
    host.serve_all(ids[6]);
    let connection = host.clients.get(ids[6]).unwrap();
    let told = connection.slots.first().map(|slot| slot.answer.clone());
    assert!(told.is_none() && connection.output_waiting() > 0);
}

#[test]
fn a_long_answer_is_asked_for_in_ever_smaller_parts() {
    let mut host = Host::start();
    let (_socket, id) = host.connect();
    let connection = host.clients.get(id).unwrap();
    let keys = (0..10).fold(String::new(), |keys, number| format!("{keys} k{number}"));
    connection.push_read(format!("get{keys}").as_bytes(), 10, ReadState::Forwarded(1));
    let asked = |connection: &mut Connection| {
        let SlotKind::Read {
            line_bytes,
            keys,
            keys_done,
            keys_at_once,
            form,
            ..
        } = connection.slots.first().unwrap().kind
        else {
            panic!("no read");
        };
        let progress = ReadProgress {
            line_bytes,
            keys,
            keys_done,
            keys_at_once,
            form,
        };
        let (line, _) = connection.first_line_and_output(line_bytes);
        let line = line.to_vec();
        String::from_utf8(line_to_forward(progress, &line)).unwrap()
    };
    assert_eq!(asked(connection), format!("get{keys}"));
    for line in ["get k0 k1 k2 k3 k4", "get k0 k1"] {
        reads::forward_in_parts(connection, 0);
        assert_eq!(asked(connection), line);
    }
    take_part(connection, b"VALUE k0 0 1\r\na\r\nEND\r\n");
    assert_eq!(asked(connection), "get k2 k3");
    reads::forward_in_parts(connection, 0);
    for number in 2..10 {
        assert_eq!(asked(connection), format!("get k{number}"));
        reads::forward_in_parts(connection, 0); // it cannot get smaller
        take_part(connection, b"END\r\n");
    }
    assert!(connection.slots.is_empty());
    assert_eq!(connection.output, b"VALUE k0 0 1\r\na\r\nEND\r\n");
}

#[test]
fn a_long_line_is_read_in_long_pieces() {
    const LINE_BYTES: usize = 1 << 18;
    let mut host = Host::start();
    let (mut socket, id) = host.connect();
    let sending = std::thread::spawn(move || {
        socket.write_all(&vec![b'k'; LINE_BYTES]).unwrap();
        socket
    });
    let (mut seen, mut looks) = (0, 0);
    while seen < LINE_BYTES {
        host.wait_for(id);
        let mut connection = host.clients.take(id).unwrap();
        let mut scratch = vec![0; 4 << 10];
        // Of a line whose end has not come, one byte more may be all that it needs.
        connection.take_in(&mut scratch, |_, bytes| {
            (seen, looks) = (bytes.len(), looks + 1);
            (0, bytes.len() + 1)
        });
        host.clients.put_back(connection);
    }
    assert!(looks <= LINE_BYTES / 256, "looked at {looks} times");
    drop(sending.join().unwrap());
}

/// Else it would have to be answered in one go, together with others, before that write is applied.
#[test]
fn no_write_is_put_behind_a_search_that_waits() {
    let mut host = with_keys();
    let (mut socket, id) = host.connect();
    socket
        .write_all(b"SET a 1\r\nKEYS zz*\r\nSET b 1\r\n")
        .unwrap();
    host.wait_for(id);
    host.serve_all(id);
    assert_eq!(host.core.group.proposals.len(), 1);
    let connection = host.clients.get(id).unwrap();
    assert_eq!((connection.slots.len(), connection.stalled), (2, true));
}

#[test]
fn a_read_that_a_follower_passed_on_waits_for_time() {
    let mut host = with_keys();
    let peer = host.core.group.member(ReplicaId(0)).unwrap();
    let line = [&b"2"[..], &text("KEYS zz*")].concat();
    let ask = |core: &mut Core, time: Duration| {
        let id = RequestId {
            term: core.group.replica.term(),
            ..RequestId::default()
        };
        let read = FollowerRead {
            from: Follower { peer, id },
            line: line.clone().into(),
            at: core.group.now,
        };
        let applied = core.group.applied;
        core.answer_follower_if_time(&mut Budget::new(time), applied, read);
    };
    let work = host.core.group.store.inner().work_done();
    ask(&mut host.core, Duration::MAX);
    let cost = host.core.group.store.inner().work_done() - work;
    assert!(cost > KEYS as u64 * 256, "answered at once");
    assert!(!host.core.group.reads.has_late);
    ask(&mut host.core, Duration::ZERO);
    assert_eq!(host.core.group.store.inner().work_done(), work + cost);
    assert!(host.core.group.reads.has_late);
    // Whoever asks next comes behind it, also where there is time.
    ask(&mut host.core, Duration::MAX);
    assert_eq!(host.core.group.store.inner().work_done(), work + cost);
    assert_eq!(host.core.group.reads.len(), 2);
    let waiting = host.core.group.take_ready().pop();
    let Some((index, group::Reader::Follower(read))) = waiting else {
        panic!("it does not wait");
    };
    assert!(index <= host.core.group.applied);
    let mut budget = Budget::new(Duration::MAX);
    host.core.answer_follower_if_time(&mut budget, index, read);
    assert_eq!(host.core.group.store.inner().work_done(), work + 2 * cost);
}

/// Many may come before the connection is looked at.
#[test]
fn a_long_answer_counts_as_soon_as_it_has_come() {
    let mut host = Host::start();
    host.clients.held.bytes_max = 2 << 20;
    let (_socket, id) = host.connect();
    for count in 1..=3 {
        keep_long_answer(host.clients.get(id).unwrap());
        host.clients.count_answer(id, VALUE_BYTES_MAX);
        assert!(host.clients.held.bytes >= count * VALUE_BYTES_MAX);
        let closed = host.clients.shed(Now::default());
        assert_eq!(closed.is_some(), count > 1);
        if closed.is_some() {
            return;
        }
    }
    panic!("nobody was closed");
}

/// Nothing else takes them out: a read's round may come back for as long as this replica leads.
#[test]
fn reads_of_a_connection_that_is_gone_are_forgotten() {
    for is_shed in [false, true] {
        let mut alone = Alone::leading();
        let (socket, id) = alone.connect();
        let server = &mut alone.server;
        let reader = || group::Reader::Here(Reader::Client(id));
        let ticket = server.core.group.ask_round(Index(0), reader());
        server.core.group.wait_for(Index(1_000_000), reader());
        let connection = server.clients.get(id).unwrap();
        connection.push_read(b"get a", 1, ReadState::Round(ticket));
        if is_shed {
            keep_long_answer(server.clients.get(id).unwrap());
            server.clients.held.bytes_max = 0;
            server.clients.count_answer(id, VALUE_BYTES_MAX);
            server.shed_clients();
        } else {
            // Nobody takes an answer: the connection is reset.
            let now = Some(std::time::Duration::ZERO);
            socket2::SockRef::from(&socket).set_linger(now).unwrap();
            drop(socket);
        }
        alone.until("it is closed", |server| server.clients.count() == 0);
        assert!(alone.server.core.group.reads.is_empty());
    }
}

/// By now the state machine may show the write, or another replica's does: such as where the write was given
/// up, and its entry is committed after all.
#[test]
fn a_read_in_front_of_a_write_with_unknown_outcome_does_not_show_it() {
    let mut alone = Alone::leading();
    let (mut socket, id) = alone.connect();
    let server = &mut alone.server;
    let connection = server.clients.get(id).unwrap();
    connection.push_read(b"get a", 1, ReadState::Gated(Index(u64::MAX)));
    let write = connection.next_slot();
    connection.push_write(false, 0);
    connection.push_read(b"get a", 1, ReadState::ANEW);
    let unknown = AnswerKind::Refused(Reason::OutcomeUnknown);
    server.complete(id, write, unknown, b"");
    alone.until("all is answered", |server| server.clients.are_idle());
    let mut told = String::new();
    socket
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    let _ = std::io::Read::read_to_string(&mut socket, &mut told); // ends with the time-out
    let begins: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    let expected = [
        "SERVER_ERROR no leader",
        "SERVER_ERROR outcome unknown",
        "END",
    ];
    assert_eq!(begins, expected, "{told}");
}

/// An answer has come that waits behind all else of its connection.
fn keep_long_answer(connection: &mut Connection) {
    connection.push_write(false, 0);
    let number = connection.next_slot() - 1;
    connection.keep_answer(number, AnswerKind::Answer, &vec![b'x'; VALUE_BYTES_MAX]);
}
