//! A switch's page over a real socket.
use super::{ARRIVALS_MAX, serve};
use quorumwire_paxos_process::{
    DeploymentFile, DeploymentParts, Durability, Role, StatusCell, SwitchIdentity, SwitchOptions,
    SwitchReport,
};
use std::any::Any;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Served {
    address: SocketAddr,
    _page: Box<dyn Any>,
}

/// The page of a switch that has not begun.
fn served() -> Served {
    let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let deployment = DeploymentFile::of_parts(DeploymentParts {
        name: "orders".to_owned(),
        addresses: quorumwire_paxos_process::Addresses {
            coordinators: vec![address(1)],
            acceptors: vec![address(2)],
            learners: vec![address(3)],
            all_acceptors: None,
        },
        copies: 1,
        window: 8,
        silence: Duration::from_millis(40),
        key: [0; 16],
    });
    let options = SwitchOptions {
        deployment: deployment.unwrap(),
        role: Role::Coordinator,
        number: 0,
        listen: None,
        dir: None,
        memory: None,
        durability: Durability::Sync,
        busy_poll: Duration::ZERO,
        plane: None,
        declare_lost: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let status = Arc::<StatusCell>::default();
    Served {
        address,
        _page: serve(listener, SwitchIdentity::of(&options), status).unwrap(),
    }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Its status and its body.
    fn ask(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
    }
}

#[test]
fn each_path_answers_a_question_and_nothing_else() {
    let served = served();
    let (status, text) = served.get("/v1/status");
    let report: SwitchReport = serde_json::from_str(&text).unwrap();
    assert_eq!((status, report.deployment.as_str()), (200, "orders"));
    assert_eq!(
        (report.kind.as_str(), report.state.as_str()),
        ("switch", "begins")
    );
    let (status, text) = served.get("/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("quorumwire_switch_coordinates 0\n"), "{text}");
    assert!(
        text.contains("# TYPE quorumwire_http_requests_total counter\n"),
        "{text}"
    );
    let (status, text) = served.get("/readyz");
    assert!(
        status == 503 && text.contains("coordinator 0 of the deployment orders"),
        "{text}"
    );
    assert_eq!(served.get("/healthz").0, 200, "it has had no time to hang");
    assert_eq!(served.get("/").0, 404);
    for path in ["/metrics", "/v1/status", "/healthz", "/readyz"] {
        for method in ["POST", "PUT", "DELETE"] {
            let head =
                format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n");
            assert_eq!(served.ask(&format!("{head}\r\n")).0, 405, "{method} {path}");
            let from_a_page = format!("{head}origin: http://a.example\r\n\r\n");
            assert_eq!(served.ask(&from_a_page).0, 403, "{method} {path}");
        }
    }
}

#[test]
fn a_name_that_is_not_ours_is_refused() {
    let served = served();
    let (status, text) = served.ask("GET /v1/status HTTP/1.1\r\nhost: a.example\r\n\r\n");
    assert!(status == 403 && !text.contains("advertise-http"), "{text}");
    let cross = "GET /v1/status HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: cross-site\r\n\r\n";
    assert_eq!(served.ask(cross).0, 403);
}

/// They are cut, and whoever speaks is answered meanwhile.
#[test]
fn silent_clients_hinder_nobody() {
    let served = served();
    let begun = Instant::now();
    let mut silent: Vec<_> = (0..2 * ARRIVALS_MAX).map(|_| served.connect()).collect();
    silent[0].write_all(b"GET /metrics HT").unwrap();
    assert_eq!(served.get("/metrics").0, 200);
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    for stream in &mut silent {
        let ended = stream.read(&mut [0; 1024]).unwrap_or(0);
        assert!(ended == 0 || begun.elapsed() > Duration::from_secs(1));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let (_, text) = served.get("/v1/status");
    let report: SwitchReport = serde_json::from_str(&text).unwrap();
    let cut = ["http_connections_gave_way", "http_connections_timed_out"];
    let cut: u64 = cut.iter().map(|it| report.counters[*it]).sum();
    assert!(cut >= ARRIVALS_MAX as u64, "{text}");
}
