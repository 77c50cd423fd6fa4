//! Several threads serve, one at a time: what they answer follows from the turns alone.
mod harness;

use harness::{Served, compiled};
use quorumwire_replay::TurnEvent;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: u64 = 12;
const ROUNDS: u64 = 20;
const PORT: u16 = 7000;
/// Programs that are compared.
const TIMES: usize = 10;
/// Of clients of which every fifth is silent in each round.
const LINES: usize = 192;

type Outputs = BTreeMap<u64, String>;

/// Who says something in a round, in an order of its own.
fn speakers(round: u64) -> impl Iterator<Item = u64> {
    (1..=CLIENTS)
        .map(move |it| (it * 7 + round) % CLIENTS + 1)
        .filter(move |it| !(it + round).is_multiple_of(5))
}

/// All that clients are told, of the same turns.
fn outputs(file: &str, arguments: &[&str]) -> Outputs {
    let mut pool = Served::start_serial(file, arguments);
    pool.until("a port", |it| !it.listens.is_empty());
    for client in 1..=CLIENTS {
        pool.connect(client, PORT);
    }
    for round in 0..ROUNDS {
        let lines: Vec<(u64, String)> = speakers(round)
            .map(|client| (client, format!("{client}.{round}\n")))
            .collect();
        let events: Vec<_> = lines
            .iter()
            .map(|(connection, line)| TurnEvent::Data {
                connection: *connection,
                bytes: line.as_bytes(),
            })
            .collect();
        pool.give(&events);
        pool.rest();
    }
    texts(&pool)
}

fn texts(served: &Served) -> Outputs {
    let said = served.said.iter();
    said.map(|(client, text)| (*client, String::from_utf8_lossy(text).into_owned()))
        .collect()
}

/// Keeps the processors busy, in bursts, while `what` is done.
fn beside_noise<T>(what: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for burst in [50, 300, 1100] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let end = Instant::now() + Duration::from_micros(burst);
                    while Instant::now() < end {
                        std::hint::spin_loop();
                    }
                    thread::yield_now();
                }
            });
        }
        let done = what();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

#[test]
fn threads_that_are_handed_work_answer_the_same_whatever_the_scheduler_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "pool");
    for way in ["pipe", "eventfd", "condition", "connection"] {
        let first = outputs(&file, &[way, "drawn"]);
        let lines: usize = first.values().map(|it| it.lines().count()).sum();
        assert_eq!(lines, LINES, "{way}");
        for again in 1..TIMES {
            let outputs = beside_noise(|| outputs(&file, &[way, "drawn"]));
            assert_eq!(outputs, first, "{way} {again}");
        }
    }
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The same of the program itself: its threads go on as the kernel has them.
fn native_outputs(file: &str, way: &str) -> Outputs {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = free.expect("a port").port();
    let mut command = Command::new(file);
    let command = command
        .args([way, "", &port.to_string()])
        .stdin(Stdio::null());
    let _ends = Ends(command.spawn().expect("it starts"));
    let end = Instant::now() + Duration::from_secs(20);
    let mut clients = BTreeMap::new();
    while clients.len() < usize::try_from(CLIENTS).expect("few") {
        assert!(Instant::now() < end, "it listens nowhere");
        let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else {
            thread::yield_now();
            continue;
        };
        clients.insert(clients.len() as u64 + 1, BufReader::new(stream));
    }
    let mut told = Outputs::new();
    for round in 0..ROUNDS {
        for client in speakers(round) {
            let line = format!("{client}.{round}\n");
            let stream = clients.get_mut(&client).expect("it is one").get_mut();
            stream.write_all(line.as_bytes()).expect("it listens");
        }
        for client in speakers(round) {
            let answer = told.entry(client).or_default();
            let stream = clients.get_mut(&client).expect("it is one");
            stream.read_line(answer).expect("an answer");
        }
    }
    told
}

/// So the test before this one is one of something.
#[test]
fn without_it_they_answer_what_the_scheduler_makes_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "pool");
    for way in ["pipe", "eventfd", "condition", "connection"] {
        let first = native_outputs(&file, way);
        let differs = |_| beside_noise(|| native_outputs(&file, way)) != first;
        assert!((0..100).any(differs), "{way}");
    }
}

#[test]
fn a_second_thread_that_reads_is_refused_and_told_of_the_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), "pool");
    let mut pool = Served::start(&file, &["eventfd"]);
    pool.until("a port", |it| !it.listens.is_empty());
    pool.connect(1, PORT);
    let end = Instant::now() + Duration::from_secs(20);
    let why = loop {
        if let Some(why) = pool.rings.refusal() {
            break why.to_string();
        }
        assert!(Instant::now() < end, "it is not refused");
        thread::yield_now();
    };
    assert!(
        why.contains("a second thread") && why.contains("--serial"),
        "{why}"
    );
}

/// First there are so many items that the table grows, then more bytes than fit. Some end by time.
fn requests_of(client: u64, round: u64) -> String {
    let (key, value) = ((client + round) % 7, format!("{client}.{round};"));
    let (length, ends) = (value.len(), round % 3);
    let mut requests = vec![
        format!("append k{key} 0 0 {length}\r\n{value}\r\n"),
        format!("prepend k{key} 0 0 {length}\r\n{value}\r\n"),
        format!("add k{key} 0 0 1\r\nx\r\n"),
        format!("incr n{key} 1\r\nadd n{key} 0 0 1\r\n0\r\n"),
    ];
    if round < ROUNDS * 5 {
        let small = |number| format!("set s{client}.{round}.{number} 0 0 1 noreply\r\nx\r\n");
        requests.extend((0..16).map(small));
    } else {
        let long = "x".repeat(9000);
        requests.push(format!("set l{client}.{round} 0 {ends} 9000\r\n{long}\r\n"));
    }
    requests.push(format!("gets k{key}\r\n"));
    requests.concat()
}

/// What a memcached with four threads says to the same requests, and how it looks inside then.
fn memcached_outputs(more: &[&str]) -> Outputs {
    let arguments = "-u root -t 4 -p 7000 -l 127.0.0.1".split(' ');
    let arguments: Vec<&str> = arguments.chain(more.iter().copied()).collect();
    let mut cache = Served::start_serial("memcached", &arguments);
    cache.until("a port", |it| !it.listens.is_empty());
    for client in 1..=CLIENTS {
        cache.connect(client, PORT);
    }
    for round in 0..ROUNDS * 10 {
        let requests: Vec<(u64, String)> = speakers(round)
            .map(|client| (client, requests_of(client, round)))
            .collect();
        let events: Vec<_> = requests
            .iter()
            .map(|(connection, text)| TurnEvent::Data {
                connection: *connection,
                bytes: text.as_bytes(),
            })
            .collect();
        cache.give(&events);
        cache.end_turn();
        cache.give(&[]);
        cache.end_turn();
    }
    for what in ["", " items", " slabs", " conns"] {
        cache.ask(1, format!("stats{what}\r\n").as_bytes());
        cache.end_turn();
    }
    let mut texts = texts(&cache);
    // Of the processor's time nothing is in the log.
    let stats = texts.get_mut(&1).expect("it asks");
    *stats = stats
        .lines()
        .filter(|it| !it.contains("STAT rusage"))
        .collect();
    texts
}

#[test]
fn a_memcached_with_four_threads_is_equal_also_inside() {
    // Its table grows; or things are thrown out to make room.
    for (more, its_table) in [
        (["-o", "hashpower=13"], "STAT hash_power_level 14"),
        (["-m", "2"], "STAT hash_power_level 16"),
    ] {
        let first = memcached_outputs(&more);
        let stats = &first[&1];
        assert!(stats.contains(its_table), "{stats}");
        let throws_out = !stats.contains("STAT evictions 0");
        assert_eq!(throws_out, more[0] == "-m", "{stats}");
        for _ in 1..TIMES {
            assert_eq!(beside_noise(|| memcached_outputs(&more)), first);
        }
    }
}

/// A program of ours that does what its client, the first one, asks for.
fn asked(name: &str) -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let file = compiled(folder.path(), name);
    let mut program = Served::start_serial(&file, &[]);
    program.until("a port", |it| !it.listens.is_empty());
    program.connect(1, PORT);
    program
}

/// What comes of locks and their like where only one outcome is possible.
#[test]
fn threads_wait_for_each_other_as_they_do_without_it() {
    let mut locks = asked("locks");
    for (what, comes) in [
        ("locks", "m1 u1 m2 u2 m3 u3 last met j1 j2 j3 ."),
        ("conditions", "there late 1 1 1 in time."),
        ("errors", "1 1 1 1 1 0."),
        ("ends", "cleaned 1 1 0 1 1 1."),
        ("outside", "sent 0 1."),
    ] {
        locks.ask(1, what.as_bytes());
        if what == "outside" {
            // When that ends is not known, so it is given time.
            locks.end_turn();
            locks.give(&[]);
        } else {
            locks.rest();
        }
        locks.answer(1, comes);
    }
}

/// Of what is longer than there is room for: a thread takes it, on six ways; late bytes; datagrams.
fn all_is_sent() -> String {
    let taken = "1048576 1 ";
    format!("1 {}4 4 4 {taken}.", format!("{taken}1; ").repeat(6))
}

/// What comes of meeting threads, signals and descriptors that are not in the log.
#[test]
fn threads_meet_with_what_is_not_in_order() {
    let mut meets = asked("meets");
    for (what, comes) in [
        ("numbers", "1 0 2 0 ."),
        ("strangers", "0 1 slept joined."),
        ("cancels", "1 locked 1 0 1 1 slept ."),
        ("comes back", "a w b back 1."),
        ("shuts", "1 joined."),
        ("timers", "3 6."),
        ("sends", &all_is_sent()),
    ] {
        meets.ask(1, what.as_bytes());
        meets.answer_by_itself(1, comes);
    }
}

#[test]
fn connections_end_with_the_thread_that_waited_for_them() {
    let mut meets = asked("meets");
    meets.ask(1, b"closes");
    meets.connect(2, PORT);
    meets.connect(3, PORT);
    meets.rest();
    meets.give(&[TurnEvent::End { connection: 3 }]);
    meets.answer_by_itself(1, "1 joined.");
    meets.until("their ends", |it| {
        it.closed.contains(&2) && it.closed.contains(&3)
    });
}
