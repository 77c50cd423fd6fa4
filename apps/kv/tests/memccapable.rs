//! Debian's `memccapable` against the parser and a store behind a plain TCP listener.
mod in_process;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use in_process::{Connection, Server};

#[test]
fn memccapable_finds_nothing_to_complain_about() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Both threads end with the test's process.
    thread::spawn(move || {
        let server = Arc::new(Mutex::new(Server::new(0)));
        for stream in listener.incoming() {
            let (stream, server) = (stream.unwrap(), Arc::clone(&server));
            thread::spawn(move || serve(stream, &server));
        }
    });
    let output = Command::new("memccapable")
        .args(["-a", "-h", "127.0.0.1", "-p", &port.to_string()])
        .output()
        .expect("this test needs the program memccapable: run `make setup`");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{report}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(report.matches("[pass]").count() >= 20, "{report}");
    assert!(!report.contains("[FAIL]"), "{report}");
}

fn serve(mut stream: TcpStream, server: &Mutex<Server>) {
    let mut connection = Connection::default();
    let mut buffer = [0; 4096];
    while !connection.closed {
        let Ok(bytes @ 1..) = stream.read(&mut buffer) else {
            return;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let answer = {
            let mut server = server.lock().unwrap();
            server.log_time_ms = u64::try_from(now.as_millis()).unwrap();
            server.receive(&mut connection, &buffer[..bytes])
        };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}
