//! What is told over TLS to those who show no certificate where all must.
use super::{Served, report, serve_with};
use quorumwire_interfaces::ReplicaId;
use quorumwire_node::admin::AdminTls;
use quorumwire_node::key_folder::KeyFolder;
use quorumwire_node::report::Report;
use quorumwire_node::tls::{ClientTls, provider, read_certificates, store_of};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// With the keys of a cluster, in a folder that is made.
fn secured(dir: &Path, report: Report) -> Served {
    served(dir, report, true)
}

fn served(dir: &Path, report: Report, are_all_known: bool) -> Served {
    let members = BTreeMap::from([(ReplicaId(0), Vec::new())]);
    let mut folder = KeyFolder::create(dir, "c", &members, 365).unwrap();
    folder.add_client("kim").unwrap();
    let files = folder.peer_files(ReplicaId(0));
    let clients = dir.join("clients-ca.pem");
    let clients = are_all_known.then_some(clients.as_path());
    let tls = ClientTls::load(&files.own, Some(&files), clients).unwrap();
    serve_with(Some(report), Ok(()), Some(AdminTls::new(&tls)))
}

fn get(served: &Served, dir: &Path, path: &str) -> String {
    ask(served, dir, &format!("GET {path} HTTP/1.1"))
}

fn ask(served: &Served, dir: &Path, first_line: &str) -> String {
    let roots = read_certificates(&dir.join("ca.pem")).and_then(store_of);
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots.unwrap())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(served.address).unwrap();
    let patience = Some(Duration::from_secs(10));
    socket.set_read_timeout(patience).unwrap();
    let mut stream = StreamOwned::new(tls, socket);
    // By whatever name: who has another than ours fails at our certificate.
    write!(stream, "{first_line}\r\nhost: any.example\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn strangers_are_told_whether_it_is_ready_and_not_why() {
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let faulty = Report {
        faults: vec!["why".to_owned()],
        ..report()
    };
    let served = secured(&ready, faulty);
    let answer = get(&served, &ready, "/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 200") && !answer.contains("why"),
        "{answer}"
    );
    assert!(get(&served, &ready, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(&served, &ready, "/v1/status").starts_with("HTTP/1.1 403"));
    let unready = dir.path().join("unready");
    let served = secured(
        &unready,
        Report {
            ready: false,
            ..report()
        },
    );
    let answer = get(&served, &unready, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    for secret in ["follower", "replica", "leads"] {
        assert!(!answer.contains(secret), "{answer}");
    }
    assert!(answer.contains("not now"), "{answer}");
}

/// Where nobody must show a certificate, all may see how the cluster does; what is in it takes more.
#[test]
fn strangers_are_given_no_backup() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("keys");
    let served = served(&dir, report(), false);
    assert!(get(&served, &dir, "/v1/status").starts_with("HTTP/1.1 200"));
    for path in [
        "/v1/backup",
        "/v1/backup?at_least=0",
        "/v1//backup",
        "/v1/%62ackup",
    ] {
        let answer = get(&served, &dir, path);
        let is_refused = ["403", "404"].map(|code| answer.starts_with(&format!("HTTP/1.1 {code}")));
        assert!(is_refused.contains(&true), "{path}: {answer}");
    }
}

const PATHS_OF_READERS: [&str; 7] = [
    "/",
    "/metrics",
    "/v1/status",
    "/v1/live",
    "/v1/digest",
    "/v1/read-index",
    "/v1/no-such-path",
];
const LINES_OF_OPERATORS: [&str; 6] = [
    "GET /v1/backup HTTP/1.1",
    "POST /v1/members HTTP/1.1",
    "POST /v1/transfer HTTP/1.1",
    "POST /v1/memory HTTP/1.1",
    "POST /v1/snapshot HTTP/1.1",
    "POST /v1/values/lost HTTP/1.1",
];

#[test]
fn nothing_but_its_health_is_told_to_strangers() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("keys");
    let served = secured(&dir, report());
    let reads = PATHS_OF_READERS.map(|path| format!("GET {path} HTTP/1.1"));
    let changes = LINES_OF_OPERATORS.map(str::to_owned);
    for line in reads.iter().chain(&changes) {
        let answer = ask(&served, &dir, line);
        assert!(answer.starts_with("HTTP/1.1 403"), "{line}: {answer}");
        assert!(answer.contains("takes a certificate"), "{line}: {answer}");
    }
}

#[test]
fn readers_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("keys");
    let served = served(&dir, report(), false);
    for line in LINES_OF_OPERATORS {
        let answer = ask(&served, &dir, line);
        assert!(answer.starts_with("HTTP/1.1 403"), "{line}: {answer}");
    }
    assert!(served.asked.lock().unwrap().is_empty());
    assert!(get(&served, &dir, "/v1/no-such-path").starts_with("HTTP/1.1 404"));
    let wrong = ask(&served, &dir, "POST /v1/status HTTP/1.1");
    assert!(wrong.starts_with("HTTP/1.1 405"), "{wrong}");
}
