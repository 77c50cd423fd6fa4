//! Clients that speak UDP to a real cluster: the data planes' own client, and memcached's UDP protocol by
//! datagrams made by hand. Needs nothing but the binary and loopback.
use super::udp_cluster::{BadNetwork, Cluster, Memcached, wait_for};
use quorumwire_client::planes::{Error, PlaneClient, Settings, Ticket};
use quorumwire_kv::{Command, Exptime, Key, Keys, VALUE_BYTES_MAX, Written};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 3;
/// Commands that one thread has under way.
const AHEAD: usize = 16;
/// What is acknowledged before the leader is killed, and how much more after it.
const BEFORE_KILL: u64 = 300;
const AFTER_KILL: u64 = 600;
/// A command of about a hundred pieces.
const LONG_BYTES: usize = 128 << 10;
/// Of 100 datagrams each way, those lost and those sent twice.
const LOST_PERCENT: u64 = 15;
const TWICE_PERCENT: u64 = 10;
/// A life, and how late its end may show on a busy machine.
const LIFE: Duration = Duration::from_secs(2);
const LATENESS_MAX: Duration = Duration::from_secs(1);
/// Counted from what the log knew last, a life would end early by as much.
const QUIET: Duration = Duration::from_millis(1500);

fn encoded(command: &Command<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    bytes
}

fn key(name: &str) -> Key<'_> {
    Key::new(name.as_bytes()).unwrap()
}

fn set(name: &str, value: &[u8]) -> Vec<u8> {
    encoded(&Command::Set(Written {
        key: key(name),
        flags: 0,
        exptime: Exptime(0),
        value,
    }))
}

fn set_for(name: &str, life: Duration) -> Vec<u8> {
    encoded(&Command::Set(Written {
        key: key(name),
        flags: 0,
        exptime: Exptime(i64::try_from(life.as_secs()).unwrap()),
        value: b"x",
    }))
}

/// A read that goes through the log.
fn read(name: &str) -> Vec<u8> {
    encoded(&Command::GetAndTouch {
        keys: Keys::new(name.as_bytes()).unwrap(),
        exptime: Exptime(0),
        with_unique: false,
    })
}

fn settings(cluster: &Cluster, replicas: &[usize]) -> Settings {
    let addresses = replicas.iter().map(|id| cluster.plane_address(*id));
    let mut settings = Settings::new(addresses.collect(), cluster.client_keys());
    settings.deadline = Duration::from_secs(30);
    settings
}

#[test]
fn every_acknowledged_command_runs_once_though_the_leader_dies() {
    let cluster = Cluster::start(&["--plane", "socket"], &[]);
    cluster.wait_for_fast_term();
    let mut client = PlaneClient::connect(settings(&cluster, &[0, 1, 2])).unwrap();
    assert_eq!(
        client.execute(&set("counter", b"0")),
        Ok(b"STORED\r\n".to_vec())
    );
    let acknowledged = AtomicU64::new(0);
    let unknown = AtomicU64::new(0);
    let enough = AtomicU64::new(u64::MAX);
    let last_long = AtomicU64::new(0);
    let leader = cluster.leader();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let settings = settings(&cluster, &[0, 1, 2]);
            let (acknowledged, unknown, enough) = (&acknowledged, &unknown, &enough);
            scope.spawn(move || count_up(settings, acknowledged, unknown, enough));
        }
        let long = settings(&cluster, &[0, 1, 2]);
        scope.spawn(|| write_long(long, &acknowledged, &enough, &last_long));
        wait_for("the first acknowledgements", || {
            acknowledged.load(Ordering::Relaxed) >= BEFORE_KILL
        });
        cluster.kill(leader);
        let at_kill = acknowledged.load(Ordering::Relaxed);
        println!("{at_kill} acknowledged when the leader was killed");
        enough.store(at_kill + AFTER_KILL, Ordering::Relaxed);
    });
    let (acknowledged, unknown) = (acknowledged.into_inner(), unknown.into_inner());
    let last_long = last_long.into_inner();
    println!(
        "{acknowledged} acknowledged, {unknown} unknown, {last_long} long ones before the last"
    );
    assert!(acknowledged >= enough.into_inner());
    assert!(unknown <= THREADS * AHEAD as u64);
    for survivor in (0..3).filter(|id| *id != leader) {
        let long = cluster.get_over_tcp(survivor, "long");
        assert!(long.len() == LONG_BYTES && long[8..].iter().all(|byte| *byte == b'v'));
        assert_eq!(long[..8], last_long.to_be_bytes());
        let mut client = PlaneClient::connect(settings(&cluster, &[survivor])).unwrap();
        let answer = String::from_utf8(client.execute(&read("counter")).unwrap()).unwrap();
        let counter: u64 = answer.lines().nth(1).unwrap().parse().unwrap();
        let expected = acknowledged..=acknowledged + unknown;
        assert!(expected.contains(&counter), "{counter}, {expected:?}");
    }
    cluster.wait_for_fast_term();
    cluster.stop();
}

fn count_up(settings: Settings, acknowledged: &AtomicU64, unknown: &AtomicU64, enough: &AtomicU64) {
    let mut client = PlaneClient::connect(settings).unwrap();
    let increment = encoded(&Command::Increment {
        key: key("counter"),
        delta: 1,
    });
    let mut ahead: VecDeque<Ticket> = VecDeque::new();
    while acknowledged.load(Ordering::Relaxed) < enough.load(Ordering::Relaxed) {
        ahead.push_back(client.submit(&increment).unwrap());
        if ahead.len() < AHEAD {
            continue;
        }
        settle(&mut client, ahead.pop_front(), acknowledged, unknown);
    }
    for ticket in ahead {
        settle(&mut client, Some(ticket), acknowledged, unknown);
    }
}

/// Commands in pieces, before and after the leader dies and under way meanwhile. The last one's value stays.
fn write_long(
    settings: Settings,
    acknowledged: &AtomicU64,
    enough: &AtomicU64,
    last_long: &AtomicU64,
) {
    let mut client = PlaneClient::connect(settings).unwrap();
    let mut value = vec![b'v'; LONG_BYTES];
    for number in 0_u64.. {
        value[..8].copy_from_slice(&number.to_be_bytes());
        let stored = client.execute(&set("long", &value));
        assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
        last_long.store(number, Ordering::Relaxed);
        if acknowledged.load(Ordering::Relaxed) >= enough.load(Ordering::Relaxed) {
            break;
        }
    }
    assert!(client.counters().pieces_kept > 0);
}

fn settle(
    client: &mut PlaneClient,
    ticket: Option<Ticket>,
    acknowledged: &AtomicU64,
    unknown: &AtomicU64,
) {
    let Some(ticket) = ticket else {
        return;
    };
    match client.wait(ticket) {
        Ok(_) => acknowledged.fetch_add(1, Ordering::Relaxed),
        Err(Error::OutcomeUnknown) => unknown.fetch_add(1, Ordering::Relaxed),
        Err(error) => panic!("{error}"),
    };
}

/// Between the client and the planes datagrams are lost and sent twice, requests and answers alike.
#[test]
fn a_bad_network_loses_and_repeats_no_command() {
    let cluster = Cluster::start(&["--plane", "socket"], &[]);
    cluster.wait_for_fast_term();
    let proxy = BadNetwork::start(cluster.plane_address(1), LOST_PERCENT, TWICE_PERCENT);
    let mut settings = settings(&cluster, &[1]);
    settings.replicas = vec![proxy.address];
    settings.retry = Duration::from_millis(20);
    let mut client = PlaneClient::connect(settings).unwrap();
    let stored = client.execute(&set("counter", b"0"));
    assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
    let increment = encoded(&Command::Increment {
        key: key("counter"),
        delta: 1,
    });
    let tickets: Vec<Ticket> = (0..500)
        .map(|_| client.submit(&increment).unwrap())
        .collect();
    for ticket in tickets {
        assert!(client.wait(ticket).is_ok());
    }
    assert_eq!(cluster.get_over_tcp(0, "counter"), b"500");
    let value = vec![b'v'; VALUE_BYTES_MAX];
    let stored = client.execute(&set("long", &value));
    assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
    assert!(cluster.get_over_tcp(2, "long") == value);
    let counters = client.counters();
    println!("{counters:?}");
    let repeated = cluster.counter(0, "session_commands_repeated");
    assert!(repeated > 0, "commands did arrive twice");
    assert!(counters.sent_again > 0 && counters.dropped_not_awaited > 0);
    cluster.stop();
}

#[test]
fn every_replicas_plane_takes_small_long_and_blind_writes() {
    let cluster = Cluster::start(&["--plane", "socket"], &[]);
    cluster.wait_for_fast_term();
    let value: Vec<u8> = (0..VALUE_BYTES_MAX)
        .map(|at| b'a' + at.to_le_bytes()[1] % 23)
        .collect();
    for id in 0..3 {
        let mut client = PlaneClient::connect(settings(&cluster, &[id])).unwrap();
        let name = format!("small-{id}");
        let stored = client.execute(&set(&name, name.as_bytes()));
        assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
        let long = format!("long-{id}");
        let stored = client.execute(&set(&long, &value));
        assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
        assert!(
            client.counters().pieces_kept > 700,
            "{:?}",
            client.counters()
        );
        let too_long = client.execute(&read(&long));
        assert!(
            matches!(too_long, Err(Error::AnswerGone(_))),
            "{too_long:?}"
        );
        let blind: Vec<Ticket> = (0..200)
            .map(|number| {
                let name = format!("blind-{id}-{number}");
                client.submit_blind(&set(&name, b"x")).unwrap()
            })
            .collect();
        for ticket in blind {
            assert_eq!(client.wait(ticket), Ok(Vec::new()));
        }
        assert!(client.counters().sent_blind > 0);
    }
    for id in 0..3 {
        let mut client = PlaneClient::connect(settings(&cluster, &[id])).unwrap();
        for writer in 0..3 {
            let name = format!("small-{writer}");
            let expected = format!("VALUE {name} 0 7\r\n{name}\r\nEND\r\n");
            assert_eq!(client.execute(&read(&name)), Ok(expected.into_bytes()));
            let found = cluster.get_over_tcp(id, &format!("long-{writer}"));
            assert!(found == value, "replica {id}");
            for number in [0, 199] {
                let found = cluster.get_over_tcp(id, &format!("blind-{writer}-{number}"));
                assert_eq!(found, b"x");
            }
        }
    }
    cluster.stop();
}

/// No tick goes before a command that comes straight to the plane: the first one in a cluster's life, and
/// one after a quiet spell.
#[test]
fn a_life_given_through_a_plane_counts_from_now() {
    let cluster = Cluster::start(&["--plane", "socket"], &[]);
    cluster.wait_for_fast_term();
    let mut client = PlaneClient::connect(settings(&cluster, &[0, 1, 2])).unwrap();
    let leader = cluster.leader();
    check_life(&cluster, &mut client, "first");
    nothing_is_applied(&cluster, leader);
    check_life(&cluster, &mut client, "second");
    // A blind write, too, and a session that is used does not let the log's time stand still.
    nothing_is_applied(&cluster, leader);
    let before = cluster.counter(leader, "entries_applied");
    let ticket = client.submit_blind(&set("blind", b"x")).unwrap();
    assert_eq!(client.wait(ticket), Ok(Vec::new()));
    assert_eq!(client.counters().sent_blind, 1);
    wait_for("the write and a tick behind it", || {
        cluster.counter(leader, "entries_applied") == before + 2
    });
    nothing_is_applied(&cluster, leader);
    cluster.stop();
}

/// A cluster that nobody uses writes nothing.
fn nothing_is_applied(cluster: &Cluster, leader: usize) {
    let applied = || cluster.counter(leader, "entries_applied");
    let mut before = applied();
    wait_for("the last tick", || {
        let now = applied();
        std::mem::replace(&mut before, now) == now
    });
    let begun = Instant::now();
    wait_for("a quiet spell", || {
        assert_eq!(applied(), before, "nothing comes into the log when idle");
        begun.elapsed() >= QUIET
    });
}

fn check_life(cluster: &Cluster, client: &mut PlaneClient, name: &str) {
    let begun = Instant::now();
    let stored = client.execute(&set_for(name, LIFE));
    assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
    let answered = Instant::now();
    let mut last_seen = begun;
    wait_for("the end of a life", || {
        let asked = Instant::now();
        let is_there = cluster.find_over_tcp(0, name).is_some();
        if is_there {
            last_seen = asked;
        }
        !is_there
    });
    let lived = begun.elapsed();
    println!("{name} lived {lived:?}");
    assert!(lived >= LIFE, "{name} ended after {lived:?}");
    let late = last_seen.saturating_duration_since(answered + LIFE);
    assert!(late <= LATENESS_MAX, "{name} ended late by {late:?}");
}

#[test]
fn memcached_clients_are_served_over_udp() {
    for plane in ["socket", "none"] {
        let cluster = Cluster::start(&["--plane", plane], &["--memcached-udp"]);
        if plane == "socket" {
            cluster.wait_for_fast_term();
        }
        let leader = cluster.leader();
        for id in [leader, (leader + 1) % 3] {
            let mut memcached = Memcached::connect(cluster.memcached_address(id));
            let name = format!("udp-{id}");
            let ask = format!("set {name} 5 0 5\r\nhello\r\n");
            assert_eq!(memcached.ask(ask.as_bytes()), b"STORED\r\n");
            if plane == "socket" {
                // The leader's plane replicates and answers it; a follower's process asks its leader.
                let taken = cluster.counter(id, "plane_memcached_taken");
                assert_eq!(taken, u64::from(id == leader));
                let answered = cluster.counter(id, "datagram_answers");
                assert_eq!(answered, u64::from(id != leader));
            }
            let expected = format!("VALUE {name} 5 5\r\nhello\r\nEND\r\n");
            let get = format!("get {name}\r\n");
            assert_eq!(memcached.ask(get.as_bytes()), expected.as_bytes());
            assert_eq!(memcached.ask(b"get nothing\r\n"), b"END\r\n");
            memcached.send(format!("set {name} 0 0 1 noreply\r\n1\r\n").as_bytes());
            wait_for("the write without an answer", || {
                memcached.ask(get.as_bytes()).ends_with(b"\r\n1\r\nEND\r\n")
            });
            assert_eq!(
                memcached.ask(format!("incr {name} 41\r\n").as_bytes()),
                b"42\r\n"
            );
            let bad = memcached.ask(b"incr x y\r\n");
            assert_eq!(bad, b"CLIENT_ERROR invalid numeric delta argument\r\n");
            answers_are_bounded(&mut memcached, id);
            requests_come_together(&cluster, &mut memcached, id);
            requests_come_in_parts(&cluster, &mut memcached, id);
            what_is_no_request_is_dropped(&cluster, &mut memcached, id);
        }
        cluster.stop();
    }
}

fn answers_are_bounded(memcached: &mut Memcached, id: usize) {
    let value = vec![b'v'; 8000];
    let short = format!("s{id}");
    let long = format!("{id}{}", "k".repeat(200));
    for name in [&short, &long] {
        let head = format!("set {name} 0 0 8000\r\n");
        let set = [head.as_bytes(), &value, b"\r\n"].concat();
        assert_eq!(memcached.ask(&set), b"STORED\r\n");
    }
    let too_large = memcached.ask(format!("get {short}\r\n").as_bytes());
    assert!(too_large.starts_with(b"SERVER_ERROR answer too large"));
    // A longer request may have a longer answer, in several datagrams.
    let found = memcached.ask(format!("get {long}\r\n").as_bytes());
    assert!(found.len() > 8000 && found.starts_with(b"VALUE "));
    let all = format!("get {}\r\n", [&long[..]; 3].join(" "));
    let too_large = memcached.ask(all.as_bytes());
    assert!(too_large.starts_with(b"SERVER_ERROR answer too large"));
}

/// Each is carried out when those before it are answered, and has an answer of its own.
fn requests_come_together(cluster: &Cluster, memcached: &mut Memcached, id: usize) {
    let name = format!("together-{id}");
    let requests = cluster.counter(id, "datagram_requests");
    memcached.send(
        format!(
            "set {name} 0 0 1\r\n1\r\nincr {name} 1 noreply\r\nmg {name} v\r\nmn\r\nmd {name} q\r\n\
             mg {name} k\r\nbad\r\nmg {name} v\r\n"
        )
        .as_bytes(),
    );
    for answer in ["STORED\r\n", "VA 1\r\n2\r\n", "MN\r\n"] {
        assert_eq!(memcached.answer().as_deref(), Some(answer.as_bytes()));
    }
    let miss = format!("EN k{name}\r\n");
    assert_eq!(memcached.answer().as_deref(), Some(miss.as_bytes()));
    assert_eq!(memcached.ask(b"get nothing\r\n"), b"END\r\n");
    let taken = cluster.counter(id, "datagram_requests") - requests;
    assert_eq!(taken, 7);
    let dropped = cluster.counter(id, "datagram_dropped_malformed");
    assert!(dropped > 0, "what is bad");
    // An answer is bounded by its own request, not by what comes with it.
    let many = format!("get s{id}\r\n{}", "mn\r\n".repeat(40));
    let set = [
        format!("set s{id} 0 0 1000\r\n").as_bytes(),
        &[b'v'; 1000],
        b"\r\n",
    ]
    .concat();
    assert_eq!(memcached.ask(&set), b"STORED\r\n");
    let too_large = memcached.ask(many.as_bytes());
    assert!(too_large.starts_with(b"SERVER_ERROR answer too large"));
}

fn requests_come_in_parts(cluster: &Cluster, memcached: &mut Memcached, id: usize) {
    let value = vec![b'p'; 30_000];
    let name = format!("parts-{id}");
    let set = format!("set {name} 0 0 30000\r\n");
    let set = [set.as_bytes(), &value, b"\r\n"].concat();
    assert_eq!(memcached.ask_in_parts(&set, 1392), b"STORED\r\n");
    assert_eq!(cluster.get_over_tcp(id, &name), value);
    let line = format!("set s{id} 3 0 1\r\nx\r\n");
    assert_eq!(memcached.ask_in_parts(line.as_bytes(), 1), b"STORED\r\n");
    // As much as a request in several datagrams, and no more than fits the answer to any.
    let found = memcached.ask_in_parts(format!("gat 0 s{id} s{id}\r\n").as_bytes(), 7);
    let one = format!("VALUE s{id} 3 1\r\nx\r\n");
    assert_eq!(found, format!("{one}{one}END\r\n").as_bytes());
    let too_large = memcached.ask_in_parts(format!("get {name}\r\n").as_bytes(), 7);
    assert!(too_large.starts_with(b"SERVER_ERROR answer too large"));
    assert_eq!(cluster.counter(id, "datagram_requests_assembled"), 4);
    memcached.send_raw(b"\0\x01\0\0\x04\x01\0\0x"); // of 1025
    assert_eq!(memcached.ask(b"get nothing\r\n"), b"END\r\n");
    let too_long = cluster.counter(id, "datagram_dropped_request_too_long");
    assert_eq!(too_long, 1);
}

fn what_is_no_request_is_dropped(cluster: &Cluster, memcached: &mut Memcached, id: usize) {
    let dropped = || cluster.counter(id, "datagram_dropped_malformed");
    let before = dropped();
    for datagram in [
        &b""[..],
        b"\0\x01\0\0\0\x01\0",
        b"\0\x01\0\0\0\x01\0\0",
        b"\0\x01\0\0\0\x02\0\0get x\r\n",
        b"\0\x01\0\x01\0\x01\0\0get x\r\n",
        b"\0\x01\0\0\0\x01\0\0get x",
        b"\0\x01\0\0\0\x01\0\0set x 0 0 9\r\nx\r\n",
        b"\0\x01\0\0\0\x01\0\0END\r\n",
        b"\0\x01\0\0\0\x01\0\0\x80\0\0\0",
    ] {
        memcached.send_raw(datagram);
    }
    assert_eq!(memcached.ask(b"get nothing\r\n"), b"END\r\n");
    assert_eq!(dropped() - before, 8);
    wait_for("the first half of a request to be given up", || {
        cluster.counter(id, "datagram_requests_incomplete") == 1
    });
    assert!(cluster.counter(id, "datagram_answers_too_large") >= 2);
}

#[test]
fn without_the_option_nothing_is_served_over_udp() {
    let cluster = Cluster::start(&[], &[]);
    let address = cluster.memcached_address(0);
    let free = std::net::UdpSocket::bind(address);
    assert!(free.is_ok(), "{free:?}");
    cluster.stop();
}
