//! The dashboard's files and what feeds it, over real sockets. How it looks is seen by a browser, in the
//! cluster tests.
use super::{Served, report, serve};
use crate::http::live::LISTENERS_MAX;
use crate::http::port::STOP_TIMEOUT;
use crate::live::LiveDocument;
use quorumwire_node::report::{MemberReport, Report};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn the_page_is_whole_and_asks_nobody_else() {
    let served = serve(Some(report()), Ok(()));
    let (status, page) = served.get("/");
    assert_eq!(status, 200);
    let mut files = 0;
    for attribute in ["src=\"", "href=\""] {
        for rest in page.split(attribute).skip(1) {
            let path = rest.split('"').next().unwrap();
            assert!(path.starts_with('/'), "{path} is elsewhere");
            let (status, body) = served.get(path);
            assert!(status == 200 && !body.is_empty(), "{path}: {status}");
            files += 1;
        }
    }
    assert!(files > 6, "{files}");
    // What belongs to the page is in files of its own, as the browser is told to insist on.
    for inline in ["<style", "style=", "onload=", "onclick=", "<script>"] {
        assert!(!page.contains(inline), "{inline}");
    }
    for path in ["/dashboard/page.js", "/dashboard/page.css"] {
        let (_, text) = served.get(path);
        assert!(
            !text.contains("http:") && !text.contains("https:"),
            "{path}"
        );
        assert!(!text.contains("innerHTML"), "{path}");
    }
    let head = served.head("/");
    for line in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert_eq!(served.get("/dashboard/").0, 404);
    assert_eq!(served.get("/dashboard/../Cargo.toml").0, 404);
}

/// A reader's browser goes where pages send it, which may be here.
#[test]
fn pages_change_nothing() {
    let served = serve(Some(report()), Ok(()));
    let post = |origin: &str| {
        let head =
            format!("POST /v1/snapshot HTTP/1.1\r\nhost: localhost\r\n{origin}content-length: 0");
        served.exchange(&format!("{head}\r\n\r\n"))
    };
    for origin in ["http://elsewhere", "http://x", "null"] {
        let (status, body) = post(&format!("Origin: {origin}\r\n"));
        assert_eq!(status, 403, "{origin}");
        assert!(body.contains("web pages"), "{body}");
    }
    assert_eq!(post("").0, 200);
    let read = "GET /v1/status HTTP/1.1\r\nhost: localhost\r\norigin: http://x\r\n\r\n";
    assert_eq!(served.exchange(read).0, 200);
}

/// Nor read they anything, whatever a browser would let them see of it; a link may lead to the dashboard.
#[test]
fn pages_of_others_read_nothing() {
    let served = serve(Some(report()), Ok(()));
    let get = |path: &str, site: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nSec-Fetch-Site: {site}");
        served.exchange(&format!("{head}\r\n\r\n"))
    };
    for path in [
        "/v1/status",
        "/v1/backup?at_least=0",
        "/metrics",
        "/healthz",
        "/other",
    ] {
        let (status, body) = get(path, "cross-site");
        assert_eq!(status, 403, "{path}");
        assert!(body.contains("web pages"), "{body}");
    }
    for path in ["/", "/dashboard/page.js"] {
        assert_eq!(get(path, "cross-site").0, 200, "{path}");
    }
    for site in ["none", "same-origin"] {
        assert_eq!(get("/v1/status", site).0, 200, "{site}");
    }
}

/// Whoever gives a name of his own our address would be read to by his readers' browsers.
#[test]
fn names_that_are_not_ours_are_refused() {
    let own = Report {
        http: "DB-1.example:7480".to_owned(),
        ..report()
    };
    let served = serve(Some(own), Ok(()));
    let ask = |version: &str, hosts: &str| {
        let asked = format!("GET /v1/status HTTP/{version}\r\n{hosts}\r\n");
        served.exchange(&asked)
    };
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_str().unwrap();
    for host in [
        "127.0.0.1:7480",
        "[::1]:7480",
        "10.0.0.1",
        "LOCALHOST:1",
        "db-1.example:9",
        "db-1.example.",
        machine,
    ] {
        let (status, body) = ask("1.1", &format!("Host: {host}\r\n"));
        assert_eq!(status, 200, "{host}: {body}");
    }
    for hosts in [
        "Host: evil.example:7480\r\n",
        "Host: evil.example\r\nHost: localhost\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: localhost.evil.example\r\n",
        "Host:\r\n",
    ] {
        let (status, body) = ask("1.1", hosts);
        assert!(matches!(status, 400 | 403), "{hosts}: {status} {body}");
        assert!(!body.contains("incarnation"), "{body}");
    }
    let (_, body) = ask("1.1", "Host: evil.example:7480\r\n");
    assert!(body.contains("advertise-http"), "{body}");
    assert_eq!(ask("1.0", "").0, 200);
}

impl Served {
    fn head(&self, path: &str) -> String {
        let mut listener = Listener::open(self, path);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(listener.0.read_line(&mut head).unwrap() > 0, "{head}");
        }
        head
    }
}

/// A connection on which something long is told.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn open(served: &Served, path: &str) -> Self {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The first line that begins so, without its beginning; none if the connection ends before.
    fn line(&mut self, begins: &str) -> Option<String> {
        let mut line = String::new();
        while self.0.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.strip_prefix(begins) {
                return Some(rest.trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    fn document(&mut self) -> LiveDocument {
        serde_json::from_str(&self.line("data: ").unwrap()).unwrap()
    }
}

fn at(id: u16, http: String) -> MemberReport {
    MemberReport {
        id,
        http: Some(http),
        ..report().members[0].clone()
    }
}

#[test]
fn a_listener_is_told_of_every_replica() {
    let other = Report { id: 2, ..report() };
    let other = serve(Some(other), Ok(()));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap(); // accepts and says nothing
    let address = |of: &TcpListener| of.local_addr().unwrap().to_string();
    let own = Report {
        members: vec![
            at(1, "not asked".to_owned()),
            at(2, other.address.to_string()),
            at(3, address(&nobody)),
            at(4, other.address.to_string()),
            at(5, "not an address".to_owned()),
        ],
        ..report()
    };
    let served = serve(Some(own), Ok(()));
    let mut listener = Listener::open(&served, "/v1/live");
    assert_eq!(
        listener.line("content-type: ").unwrap(),
        "text/event-stream"
    );
    let begun = Instant::now();
    let documents = [listener.document(), listener.document()];
    // A second apart, and none waits for long for who does not answer.
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    for document in documents {
        assert_eq!(document.made_by, Some(1));
        let ids: Vec<u16> = document.replicas.iter().map(|it| it.id).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        let errors: Vec<&str> = document
            .replicas
            .iter()
            .map(|it| it.error.as_deref().unwrap_or("none"))
            .collect();
        assert_eq!(errors[..2], ["none", "none"]);
        assert!(errors[2].contains("no answer from 127.0.0.1"), "{errors:?}");
        assert!(errors[3].ends_with("is replica 2 now"), "{errors:?}");
        assert!(errors[4].contains("not an address"), "{errors:?}");
    }
}

#[test]
fn a_loop_that_does_not_answer_leaves_the_connection_alive() {
    let served = serve(None, Ok(()));
    let mut listener = Listener::open(&served, "/v1/live");
    for _ in 0..2 {
        assert_eq!(
            listener.line(": ").as_deref(),
            Some("the replica does not answer")
        );
    }
}

#[test]
fn one_listener_too_many_is_told_so() {
    let served = serve(Some(report()), Ok(()));
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS_MAX {
        let mut listener = Listener::open(&served, "/v1/live");
        assert_eq!(listener.line("HTTP/1.1 ").unwrap(), "200 OK");
        listeners.push(listener);
    }
    let mut refused = Listener::open(&served, "/v1/live");
    let status = refused.line("HTTP/1.1 ").unwrap();
    assert_eq!(status, "503 Service Unavailable");
    let error = refused.line("{\"error\":").unwrap();
    assert!(error.contains("32 listeners are served already"), "{error}");
    assert_eq!(served.get("/healthz").0, 200);
    drop(listeners);
    // Their places are free once the next document finds them gone.
    let begun = Instant::now();
    let mut status = String::new();
    while status != "200 OK" {
        assert!(begun.elapsed() < DEADLINE);
        status = Listener::open(&served, "/v1/live")
            .line("HTTP/1.1 ")
            .unwrap();
    }
}

#[test]
fn listeners_do_not_hold_up_the_end() {
    let served = serve(Some(report()), Ok(()));
    let mut listener = Listener::open(&served, "/v1/live");
    listener.document();
    let begun = Instant::now();
    drop(served);
    assert!(begun.elapsed() < STOP_TIMEOUT, "{:?}", begun.elapsed());
    let mut rest = String::new();
    listener.0.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "ended in order: {rest:?}");
}
