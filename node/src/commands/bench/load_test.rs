//! The load against servers of a few lines: every request is counted once, whatever the server does.
use super::{ERROR_REASONS_MAX, Load, Measured, OTHER_REASONS, Phase, Protocol, Share};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

/// A server that answers each `set` by `answer(how many came before on this connection)`, and closes
/// the connection where that is `None`.
fn server(answer: fn(u64) -> Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap(), answer);
        }
    });
    address
}

fn serve(stream: TcpStream, answer: fn(u64) -> Option<&'static str>) {
    let mut reader = BufReader::new(stream);
    for count in 0.. {
        let mut lines = String::new();
        for _ in 0..2 {
            if reader.read_line(&mut lines).unwrap_or(0) == 0 {
                return;
            }
        }
        assert!(lines.starts_with("set bench-"), "{lines}");
        let Some(text) = answer(count) else {
            return;
        };
        if reader.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn run(address: SocketAddr, operations: u64) -> Measured {
    let share = Share {
        number: 0,
        address,
        operations: Some(operations),
        first_key: 0,
    };
    let load = Load {
        protocol: Protocol::Memcached,
        phase: Phase::Measure,
        duration: Duration::from_secs(30),
        in_flight: 8,
        keys: 10,
        value_bytes: 3,
        write_percent: 100,
        connections: vec![share],
        answered: Arc::new(AtomicU64::new(0)),
    };
    load.run().unwrap()
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
    let failed: u64 = measured.errors.values().sum();
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
    let failed: u64 = measured.errors.values().sum();
    assert_eq!((measured.latencies_ns.len(), failed), (0, 20));
}

#[test]
fn nobody_there_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let share = Share {
        number: 0,
        address,
        operations: None,
        first_key: 0,
    };
    let load = Load {
        protocol: Protocol::Memcached,
        phase: Phase::Fill,
        duration: Duration::from_secs(1),
        in_flight: 1,
        keys: 1,
        value_bytes: 1,
        write_percent: 100,
        connections: vec![share],
        answered: Arc::new(AtomicU64::new(0)),
    };
    let error = load.run().unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn reasons_are_limited() {
    let mut measured = Measured::new().unwrap();
    for n in 0..100 {
        measured.failed(&format!("reason {n}"), 1);
    }
    assert_eq!(measured.errors.len(), ERROR_REASONS_MAX + 1);
    assert_eq!(
        measured.errors[OTHER_REASONS],
        100 - ERROR_REASONS_MAX as u64
    );
    assert_eq!(measured.errors.values().sum::<u64>(), 100);
}
