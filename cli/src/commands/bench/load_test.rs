//! The load against servers of a few lines: every request is counted once, whatever the server does.
use super::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

/// A server that answers each `set` by `answer(how many came before on this connection)`, and closes
/// the connection where that is `None`.
fn server(answer: impl Fn(u64) -> Option<&'static str> + Send + 'static) -> SocketAddr {
    listening("set bench-", 2, answer)
}

/// The same for each `SET` with a `WAIT` behind it.
fn redis_server(answer: fn(u64) -> Option<&'static str>) -> SocketAddr {
    listening("*3\r\n$3\r\nSET\r\n", 14, answer)
}

/// Serves one connection after the other, for which see [`serve`].
fn listening(
    begins: &'static str,
    lines: usize,
    answer: impl Fn(u64) -> Option<&'static str> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap(), begins, lines, &answer);
        }
    });
    address
}

fn serve(
    stream: TcpStream,
    begin: &str,
    line_count: usize,
    answer: &impl Fn(u64) -> Option<&'static str>,
) {
    let mut reader = BufReader::new(stream);
    for count in 0.. {
        let mut lines = String::new();
        for _ in 0..line_count {
            if reader.read_line(&mut lines).unwrap_or(0) == 0 {
                return;
            }
        }
        assert!(lines.starts_with(begin), "{lines}");
        let Some(text) = answer(count) else {
            return;
        };
        if reader.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// A load of one connection to the first of these addresses.
fn load(addresses: &[SocketAddr], operations: Option<u64>) -> Load {
    let share = Share {
        number: 0,
        operations,
        first_key: 0,
    };
    Load {
        protocol: Protocol::Memcached,
        phase: Phase::Measure,
        duration: Duration::from_secs(30),
        in_flight: 8,
        keys: 10,
        value_bytes: 3,
        write_percent: 100,
        addresses: addresses.iter().copied().map(ServerAddress::from).collect(),
        way: Way::default(),
        connections: vec![share],
        pace: None,
        survive: false,
        interval: None,
        gaps: None,
        answered: Arc::new(AtomicU64::new(0)),
        clock: Clock::default(),
    }
}

fn run_load(load: Load) -> Measurements {
    let begun = load.clock.now();
    load.open().unwrap().run(begun).unwrap()
}

fn run(address: SocketAddr, operations: u64) -> Measurements {
    run_load(load(&[address], Some(operations)))
}

fn failed(measured: &Measurements) -> u64 {
    measured.errors.values().sum()
}

/// Where nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn requests_that_succeed_and_fail_are_counted_apart() {
    let address = server(|count| match count % 4 {
        3 => Some("SERVER_ERROR busy\r\n"),
        _ => Some("STORED\r\n"),
    });
    let measured = run(address, 1000);
    assert_eq!(measured.latencies_ns.len(), 750);
    assert_eq!(measured.errors["SERVER_ERROR busy"], 250);
    assert!(!measured.elapsed.is_zero());
}

#[test]
fn a_broken_connection_is_made_anew_and_its_requests_are_counted_as_failed() {
    let address = server(|count| (count < 10).then_some("STORED\r\n"));
    let measured = run(address, 50);
    let failed = failed(&measured);
    assert_eq!(measured.latencies_ns.len() + failed, 50);
    assert!(measured.latencies_ns.len() > 10, "more than one connection");
    assert!(failed > 0);
    assert!(
        measured
            .errors
            .keys()
            .all(|reason| reason.starts_with("connection:"))
    );
}

#[test]
fn a_server_that_talks_nonsense_ends_nothing_but_its_connection() {
    let address = server(|_| Some("END\r\n"));
    let measured = run(address, 20);
    assert_eq!((measured.latencies_ns.len(), failed(&measured)), (0, 20));
}

#[test]
fn nobody_there_is_an_error() {
    let address = nobody();
    let error = load(&[address], None).open().err().unwrap();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

/// How long the server of the next test stands still, and what counts as having waited for that.
const STALL: Duration = Duration::from_secs(10);
const STALLED_NS: u64 = 9_000_000_000;
const STALLED_REQUEST: u64 = 1000;
const REQUESTS: u64 = 2000;

/// A load on a server that stands still once, before it answers this request: time passes.
fn stalled(pace: Option<Pace>) -> Measurements {
    let clock = Clock::default();
    let servers = clock.clone();
    let address = server(move |count| {
        if count == STALLED_REQUEST {
            servers.move_on(STALL);
        }
        Some("STORED\r\n")
    });
    run_load(Load {
        pace,
        clock,
        ..load(&[address], Some(REQUESTS))
    })
}

/// A closed loop asks nothing while it waits, so the stall is a few slow requests of many. In an open loop
/// all that were due meanwhile have waited.
#[test]
fn a_server_that_stands_still_shows_in_the_percentiles_of_an_open_loop_alone() {
    let closed = stalled(None);
    assert_eq!(closed.latencies_ns.len(), REQUESTS);
    assert!(closed.latencies_ns.max() > STALLED_NS);
    assert!(closed.latencies_ns.value_at_quantile(0.99) < STALLED_NS);

    let pace = Pace {
        per_second: 1_000_000, // all are due within 2 ms, half of them before the stall
        connections: 1,
    };
    let open = stalled(Some(pace));
    assert_eq!(open.latencies_ns.len(), REQUESTS);
    assert_eq!(failed(&open), 0);
    assert!(open.latencies_ns.value_at_quantile(0.51) > STALLED_NS);
    assert!(open.latencies_ns.value_at_quantile(0.3) < STALLED_NS);
}

#[test]
fn requests_of_an_open_loop_are_sent_when_they_are_due() {
    let address = server(|_| Some("STORED\r\n"));
    let pace = Pace {
        per_second: 1000,
        connections: 1,
    };
    let duration = Duration::from_millis(50);
    let begun = Instant::now();
    let measured = run_load(Load {
        pace: Some(pace),
        duration,
        ..load(&[address], None)
    });
    assert!(begun.elapsed() >= Duration::from_millis(49), "the last one");
    assert_eq!((measured.latencies_ns.len(), failed(&measured)), (50, 0));
    assert!(measured.elapsed >= duration && measured.ran == duration);
}

/// The server stands still for longer than late requests are sent.
#[test]
fn what_an_open_loop_could_not_send_is_counted() {
    let clock = Clock::default();
    let servers = clock.clone();
    let address = server(move |count| {
        servers.move_on(if count == 2 {
            4 * STALL
        } else {
            Duration::ZERO
        });
        Some("STORED\r\n")
    });
    let pace = Pace {
        per_second: 1_000_000,
        connections: 1,
    };
    let measured = run_load(Load {
        in_flight: 1,
        pace: Some(pace),
        duration: Duration::from_millis(1),
        clock,
        ..load(&[address], None)
    });
    assert_eq!(measured.errors["not sent in time"], 997);
    assert_eq!(measured.latencies_ns.len() + failed(&measured), 1000);
    assert!(measured.unsent_at_end >= 997, "{}", measured.unsent_at_end);
}

/// What survives: everything is answered in the end, and each failed try is counted.
fn survived(addresses: &[SocketAddr], protocol: Protocol, operations: u64) -> Measurements {
    let clock = Clock::default();
    let gaps = Arc::new(WriteGaps::new(clock.now()));
    let measured = run_load(Load {
        protocol,
        survive: true,
        gaps: Some(gaps),
        interval: Some(Duration::from_secs(1)),
        clock,
        ..load(addresses, Some(operations))
    });
    assert_eq!(measured.latencies_ns.len(), operations, "{measured:?}");
    let gap = measured.gaps.as_ref().unwrap();
    let gap = gap.longest(measured.begun + measured.ran)[0];
    assert!(gap.ms > 0.0 && gap.ms <= measured.elapsed.as_secs_f64() * 1e3);
    let intervals = measured.intervals.as_ref().unwrap();
    let intervals = intervals.ended(measured.ran + Duration::from_secs(1));
    let errors: u64 = intervals.iter().map(|(_, it)| it.errors).sum();
    assert_eq!(errors, failed(&measured));
    measured
}

#[test]
fn a_load_that_survives_tries_what_failed_at_the_next_address() {
    let breaks = server(|count| (count < 10).then_some("STORED\r\n"));
    let refuses = server(|count| match count {
        0..5 => Some("STORED\r\n"),
        _ => Some("SERVER_ERROR no leader\r\n"),
    });
    let talks_nonsense = server(|_| Some("END\r\n"));
    let addresses = [nobody(), breaks, refuses, talks_nonsense];
    let measured = survived(&addresses, Protocol::Memcached, 100);
    let reasons: Vec<_> = measured.errors.keys().collect();
    for wanted in ["Connection refused", "no leader", "another request"] {
        let found = reasons.iter().any(|reason| reason.contains(wanted));
        assert!(found, "no {wanted} in {reasons:?}");
    }
}

#[test]
fn a_load_that_survives_tries_redis_writes_again_that_too_few_replicas_have() {
    let has_too_few = redis_server(|count| match count % 3 {
        0 => Some("+OK\r\n:1\r\n"),
        _ => Some("+OK\r\n:0\r\n"),
    });
    let refuses = redis_server(|count| match count {
        0..2 => Some("+OK\r\n:2\r\n"),
        _ => Some("-TRYAGAIN busy\r\n-TRYAGAIN busy\r\n"),
    });
    let redis = Protocol::Redis { wait: 1 };
    let measured = survived(&[has_too_few, refuses], redis, 60);
    for reason in ["too few replicas", "TRYAGAIN busy"] {
        assert!(measured.errors[reason] > 0, "{reason}");
    }
}

#[test]
fn a_load_that_survives_needs_no_first_connection_and_ends() {
    let measured = run_load(Load {
        survive: true,
        duration: Duration::from_millis(20),
        ..load(&[nobody(), nobody()], None)
    });
    assert_eq!(measured.latencies_ns.len(), 0);
    assert!(failed(&measured) > 0);
}

/// The first server takes requests and says nothing, while time passes.
#[test]
fn a_server_that_says_nothing_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let clock = Clock::default();
    let servers = clock.clone();
    let answers = server(|_| Some("STORED\r\n"));
    let (left, is_left) = channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 1];
        stream.read_exact(&mut bytes).unwrap();
        servers.move_on(TRY_TIMEOUT);
        // Until the load has gone: what it sent before is read, too.
        let rest = std::io::copy(&mut stream, &mut std::io::sink());
        left.send(rest.is_ok()).unwrap();
    });
    let measured = run_load(Load {
        survive: true,
        clock,
        ..load(&[silent, answers], Some(20))
    });
    assert_eq!(measured.latencies_ns.len(), 20);
    assert!(measured.errors["no answer in time"] >= 8, "all in flight");
    let tried_ns = u64::try_from(TRY_TIMEOUT.as_nanos()).unwrap();
    let late = measured.latencies_ns.count_between(tried_ns, u64::MAX);
    assert!(late >= 8, "latency counts from the first try");
    assert!(is_left.recv().unwrap());
}
