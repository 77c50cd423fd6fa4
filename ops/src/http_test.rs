//! Every path over a real socket, with an event loop made of a thread that answers.
use super::arrivals::{ARRIVALS_MAX, PATIENCE};
use super::{BODY_BYTES_MAX, CONNECTIONS_MAX, HttpThread, start};
use quorumwire_control::{MemberChange, Refusal};
use quorumwire_interfaces::ReplicaId;
use quorumwire_kv::{MemoryChange, MemoryPolicy};
use quorumwire_node::admin::{
    ADMIN_QUEUE_MAX, AdminError, AdminHandle, AdminPort, AdminRequest, AdminTls,
};
use quorumwire_node::report::{MemberReport, Report};
use quorumwire_wire::{CommitQuorum, MemberRole};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[path = "http/backup_test.rs"]
mod backup_test;
#[path = "http/dashboard_test.rs"]
mod dashboard_test;
#[path = "http/strangers_test.rs"]
mod strangers_test;

/// A server, and the changes it was asked for.
struct Served {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    // Before the loop's end, which comes when the last handle is gone.
    _http: HttpThread,
}

fn report() -> Report {
    let member = |id: u16| MemberReport::voter(id, Some(format!("127.0.0.1:{id}")));
    Report {
        id: 1,
        role: "follower".into(),
        leader: Some(2),
        ready: true,
        members: vec![member(1), member(2)],
        ..Report::default()
    }
}

/// Serves with a loop that tells `report` and answers every change with `outcome`.
fn serve(report: Option<Report>, outcome: Result<(), AdminError>) -> Served {
    serve_with(report, outcome, None)
}

fn serve_with(
    report: Option<Report>,
    outcome: Result<(), AdminError>,
    tls: Option<AdminTls>,
) -> Served {
    let (queue, requests) = sync_channel(ADMIN_QUEUE_MAX);
    let poll = mio::Poll::new().unwrap();
    let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        let _poll = poll;
        let mut unanswered = Vec::new();
        let mut waiting = Vec::new();
        for request in requests {
            match request {
                AdminRequest::Report(answer) => match &report {
                    Some(report) => drop(answer.send(report.clone())),
                    None => unanswered.push(answer),
                },
                AdminRequest::ChangeMembers(change, answer) => {
                    log.lock().unwrap().push(format!("{change:?}"));
                    let _ = answer.send(outcome.clone());
                }
                AdminRequest::Transfer(to, answer) => {
                    log.lock().unwrap().push(format!("transfer {to:?}"));
                    let _ = answer.send(outcome.clone());
                }
                AdminRequest::ChangeMemory(change, answer) => {
                    log.lock().unwrap().push(format!("{change:?}"));
                    let _ = answer.send(outcome.clone());
                }
                AdminRequest::DeclareLost(upto, answer) => {
                    log.lock().unwrap().push(format!("lost {upto}"));
                    let _ = answer.send(outcome.clone());
                }
                AdminRequest::Snapshot(answer) => {
                    let _ = answer.send(outcome.clone().map(|()| 77));
                }
                AdminRequest::Digest(answer) => {
                    let _ = answer.send(outcome.clone().map(|()| (78, "abcd".to_owned())));
                }
                AdminRequest::ReadIndex(answer) => {
                    let _ = answer.send(outcome.clone().map(|()| 79));
                }
                AdminRequest::Freeze(backup_test::AHEAD, answer) => {
                    waiting.push(answer);
                    log.lock().unwrap().push("a state".to_owned());
                }
                AdminRequest::Freeze(at_least, answer) => {
                    let frozen = outcome.clone().map(|()| backup_test::frozen(at_least));
                    let _ = answer.send(frozen);
                }
            }
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Served {
        address: listener.local_addr().unwrap(),
        asked,
        _http: start(AdminPort {
            listener,
            handle: AdminHandle::new(queue, waker),
            tls,
        })
        .unwrap(),
    }
}

impl Served {
    /// The whole answer.
    fn hear(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Its status and its body.
    fn exchange(&self, request: &str) -> (u16, String) {
        let answer = self.hear(request);
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, body.to_owned())
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let report: Report = serde_json::from_str(&self.get("/v1/status").1).unwrap();
        report.counters
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.exchange(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}

#[test]
fn a_ready_replica_says_so() {
    let served = serve(Some(report()), Ok(()));
    assert_eq!(served.get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(served.get("/readyz"), (200, "ready\n".to_owned()));
    let (status, body) = served.get("/v1/status");
    let told: Report = serde_json::from_str(&body).unwrap();
    assert_eq!((status, told.id, told.leader), (200, 1, Some(2)));
    let (status, body) = served.get("/metrics");
    assert_eq!(status, 200);
    assert!(body.contains("quorumwire_ready 1\n"), "{body}");
}

#[test]
fn metrics_are_told_in_the_format_that_is_asked_for() {
    let served = serve(Some(report()), Ok(()));
    let ask = |accept: &str| {
        let head = format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\n{accept}\r\n");
        served.hear(&head)
    };
    let plain = ask("");
    assert!(
        plain.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{plain}"
    );
    assert!(
        plain.contains("\n# TYPE quorumwire_replica_info gauge\n"),
        "{plain}"
    );
    assert!(!plain.contains("# EOF"), "{plain}");
    let open = ask("accept: application/openmetrics-text; version=1.0.0, */*;q=0.1\r\n");
    let named = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    assert!(open.contains(named), "{open}");
    assert!(
        open.contains("\n# TYPE quorumwire_replica info\n"),
        "{open}"
    );
    assert!(open.ends_with("# EOF\n"), "{open}");
}

#[test]
fn a_ready_replica_says_that_writes_are_refused() {
    let full = Report {
        writes_refused: Some("disk full".to_owned()),
        ..report()
    };
    let served = serve(Some(full), Ok(()));
    let said = "ready for reads: disk full\n".to_owned();
    assert_eq!(served.get("/readyz"), (200, said));
    let (_, body) = served.get("/metrics");
    assert!(body.contains("quorumwire_writes_refused 1\n"), "{body}");
}

#[test]
fn a_replica_that_is_not_ready_is_healthy() {
    let unready = Report {
        role: "candidate".into(),
        ..Report::default()
    };
    let served = serve(Some(unready), Ok(()));
    assert_eq!(served.get("/healthz").0, 200);
    let (status, body) = served.get("/readyz");
    assert_eq!(status, 503);
    assert!(body.contains("candidate"), "{body}");
}

#[test]
fn what_is_wrong_stands_in_the_answer_about_readiness() {
    let faulty = |ready| Report {
        ready,
        faults: vec!["one".to_owned(), "two".to_owned()],
        ..report()
    };
    let served = serve(Some(faulty(true)), Ok(()));
    let expected = (200, "ready\nfault: one\nfault: two\n".to_owned());
    assert_eq!(served.get("/readyz"), expected);
    let (status, body) = serve(Some(faulty(false)), Ok(())).get("/readyz");
    assert!(status == 503 && body.contains("; one; two"), "{body}");
}

#[test]
fn a_loop_that_does_not_answer_is_not_healthy() {
    let served = serve(None, Ok(()));
    let begun = Instant::now();
    for path in ["/healthz", "/readyz", "/metrics", "/v1/status"] {
        let (status, body) = served.get(path);
        assert_eq!(status, 503, "{path}: {body}");
    }
    assert!(begun.elapsed() >= super::REPORT_TIMEOUT);
}

#[test]
fn changes_reach_the_loop() {
    let served = serve(Some(report()), Ok(()));
    let changes = [
        (
            "/v1/members",
            r#"{"action":"add","id":3,"peer":"h:1","learner":true}"#,
            format!(
                "{:?}",
                MemberChange::Add {
                    id: ReplicaId(3),
                    role: MemberRole::Learner,
                    peer_address: "h:1".to_owned(),
                }
            ),
        ),
        (
            "/v1/members",
            r#"{"action":"add","id":3,"peer":"h:1"}"#,
            format!(
                "{:?}",
                MemberChange::Add {
                    id: ReplicaId(3),
                    role: MemberRole::Joining,
                    peer_address: "h:1".to_owned(),
                }
            ),
        ),
        (
            "/v1/members",
            r#"{"action":"promote","id":4}"#,
            format!("{:?}", MemberChange::Promote(ReplicaId(4))),
        ),
        (
            "/v1/members",
            r#"{"action":"remove","id":5}"#,
            format!("{:?}", MemberChange::Remove(ReplicaId(5))),
        ),
        (
            "/v1/members",
            r#"{"action":"quorum","quorum":"all"}"#,
            format!("{:?}", MemberChange::Quorum(CommitQuorum::All)),
        ),
        (
            "/v1/members",
            r#"{"action":"quorum","quorum":"majority"}"#,
            format!("{:?}", MemberChange::Quorum(CommitQuorum::Majority)),
        ),
        (
            "/v1/transfer",
            r#"{"to":2}"#,
            "transfer Some(ReplicaId(2))".to_owned(),
        ),
        ("/v1/transfer", r#"{"to":null}"#, "transfer None".to_owned()),
        ("/v1/transfer", "{}", "transfer None".to_owned()),
        ("/v1/values/lost", r#"{"upto":7}"#, "lost 7".to_owned()),
        (
            "/v1/memory",
            r#"{"limit_bytes":7,"policy":"evict"}"#,
            format!(
                "{:?}",
                MemoryChange {
                    limit_bytes: Some(7),
                    policy: Some(MemoryPolicy::Evict),
                    ..MemoryChange::default()
                }
            ),
        ),
    ];
    for (path, body, _) in &changes {
        let (status, answer) = served.post(path, body);
        assert_eq!(status, 200, "{body}: {answer}");
    }
    let asked = served.asked.lock().unwrap();
    let expected = changes.map(|(_, _, expected)| expected);
    assert_eq!(asked[..], expected);
}

#[test]
fn snapshot_and_digest_answer_figures() {
    let served = serve(Some(report()), Ok(()));
    let taken = served.post("/v1/snapshot", "{}");
    assert_eq!(taken, (200, r#"{"last_index":77}"#.to_owned()));
    let digest = r#"{"applied_index":78,"digest":"abcd"}"#;
    assert_eq!(served.get("/v1/digest"), (200, digest.to_owned()));
}

#[test]
fn nonsense_is_refused_and_asked_of_nobody() {
    let served = serve(Some(report()), Ok(()));
    for (path, body) in [
        ("/v1/members", ""),
        ("/v1/memory", "{}"),
        ("/v1/values/lost", "{}"),
        ("/v1/values/lost", r#"{"upto":-1}"#),
        ("/v1/values/lost", r#"{"upto":7,"learner":1}"#),
        ("/v1/memory", r#"{"policy":"random"}"#),
        ("/v1/memory", r#"{"limit_bytes":-1}"#),
        ("/v1/members", "{}"),
        ("/v1/members", r#"{"action":"destroy","id":1}"#),
        ("/v1/members", r#"{"action":"remove","id":65536}"#),
        ("/v1/members", r#"{"action":"remove","id":1,"force":true}"#),
        (
            "/v1/members",
            r#"{"action":"add","id":1,"peer":"0.0.0.0:1"}"#,
        ),
        ("/v1/members", r#"{"action":"add","id":1}"#),
        ("/v1/members", r#"{"action":"quorum","quorum":"half"}"#),
        ("/v1/transfer", r#"{"to":"2"}"#),
        ("/v1/transfer", r#"{"whom":2}"#),
    ] {
        let (status, answer) = served.post(path, body);
        assert!(matches!(status, 400 | 422), "{body}: {status} {answer}");
        assert!(answer.contains("\"error\""), "{answer}");
        assert!(status == 400 || answer.contains("; allowed: {"), "{answer}");
    }
    // What a foreign web page can make a browser send is not taken.
    let form = "POST /v1/transfer HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(served.exchange(form).0, 415);
    assert_eq!(served.get("/v1/transfer").0, 405);
    assert_eq!(served.get("/other").0, 404);
    assert_eq!(served.asked.lock().unwrap().len(), 0);
}

#[test]
fn a_large_body_is_refused() {
    let served = serve(Some(report()), Ok(()));
    let name = "h".repeat(BODY_BYTES_MAX);
    let body = format!(r#"{{"action":"add","id":1,"peer":"{name}:1"}}"#);
    assert_eq!(served.post("/v1/members", &body).0, 413);
}

#[test]
fn refusals_have_their_status() {
    let (nonsense, id) = ("no such member".to_owned(), ReplicaId(9));
    let refusals = [
        (Refusal::Busy { limit: "x" }.into(), 503, "busy"),
        (Refusal::FastTerm.into(), 409, "fast_term"),
        (Refusal::Transferring.into(), 409, "transferring"),
        (Refusal::ChangeInProgress.into(), 409, "change_in_progress"),
        (Refusal::Invalid(nonsense).into(), 400, "invalid"),
        (Refusal::NotConnected { id }.into(), 400, "not_connected"),
        (Refusal::TimedOut.into(), 503, "timed_out"),
        (AdminError::Failed("disk".to_owned()), 500, "failed"),
        (AdminError::Unavailable, 503, "unavailable"),
    ];
    for (error, expected, code) in refusals {
        let text = error.to_string();
        let served = serve(Some(report()), Err(error));
        let answers = [
            served.post("/v1/members", r#"{"action":"remove","id":1}"#),
            served.post("/v1/transfer", "{}"),
            served.post("/v1/snapshot", "{}"),
            served.get("/v1/digest"),
        ];
        for (status, body) in answers {
            assert_eq!(status, expected, "{body}");
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["error"], text);
            assert_eq!(body["code"], code);
        }
    }
}

#[test]
fn errors_of_other_versions_are_read() {
    let code = |text| serde_json::from_str::<super::ErrorBody>(text).unwrap().code;
    let before = r#"{"error":"no","leader":null,"leader_http":null}"#;
    assert_eq!(code(before), None);
    let later = r#"{"error":"no","code":"too_cold","leader":null,"leader_http":null}"#;
    assert_eq!(code(later), Some(super::ErrorCode::Other));
}

#[test]
fn who_is_not_the_leader_says_who_is() {
    for leader in [None, Some(ReplicaId(2))] {
        let served = serve(Some(report()), Err(Refusal::NotLeader { leader }.into()));
        let (status, body) = served.post("/v1/transfer", "{}");
        let body: super::ErrorBody = serde_json::from_str(&body).unwrap();
        assert_eq!((status, body.leader), (421, Some(2)));
        assert_eq!(body.code, Some(super::ErrorCode::NotLeader));
        assert_eq!(body.leader_http.as_deref(), Some("127.0.0.1:2"));
    }
}

#[test]
fn a_slow_client_does_not_keep_others_waiting_and_is_cut_off() {
    let served = serve(Some(report()), Ok(()));
    let mut slow = TcpStream::connect(served.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost:").unwrap();
    assert_eq!(served.get("/healthz").0, 200);
    // Closed by the server within its limit, whatever it says first.
    let begun = Instant::now();
    slow.read_to_end(&mut Vec::new()).unwrap();
    assert!(begun.elapsed() < super::port::HEAD_TIMEOUT * 3);
}

#[test]
fn silent_connections_leave_room_for_those_that_speak() {
    let served = serve(Some(report()), Ok(()));
    let begun = Instant::now();
    let mut silent: Vec<TcpStream> = (0..=ARRIVALS_MAX)
        .map(|_| TcpStream::connect(served.address).unwrap())
        .collect();
    assert_eq!(served.get("/healthz").0, 200);
    // The oldest gave way, long before it was timed out.
    let oldest = &mut silent[0];
    oldest
        .set_read_timeout(Some(super::port::HEAD_TIMEOUT))
        .unwrap();
    assert_eq!(oldest.read(&mut [0]).unwrap(), 0);
    let took = begun.elapsed();
    assert!(
        took >= PATIENCE && took < super::port::HEAD_TIMEOUT,
        "{took:?}"
    );
    let counted = served.counters();
    let accepted = ARRIVALS_MAX as u64 + 3;
    assert_eq!(counted["http_connections_accepted"], accepted);
    assert_eq!(counted["http_requests"], 2);
    assert!(counted["http_connections_gave_way"] >= 1);
}

#[test]
fn connections_that_end_without_an_answer_are_counted_with_the_reason() {
    let served = serve(Some(report()), Ok(()));
    let closed = |text: &[u8]| {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(text).unwrap();
        let soon = Some(super::port::HEAD_TIMEOUT * 3);
        stream.set_read_timeout(soon).unwrap();
        stream.read_to_end(&mut Vec::new()).ok();
    };
    closed(b"not of this protocol\r\n\r\n");
    assert_eq!(served.counters()["http_connections_broken"], 1);
    closed(b"GET / HTTP/1.1\r\n");
    let counted = served.counters();
    assert_eq!(counted["http_connections_timed_out"], 1);
    assert_eq!(counted["http_connections_broken"], 1);
    assert_eq!(counted["http_connections_gave_way"], 0);
}

#[test]
fn connections_beyond_the_limit_wait_for_a_slot() {
    let served = serve(Some(report()), Ok(()));
    // Their heads have come, and their bodies never do.
    let head = b"POST /v1/members HTTP/1.1\r\nhost: localhost\r\n\
        content-type: application/json\r\ncontent-length: 9\r\n\r\n";
    let slow: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            stream.write_all(head).unwrap();
            stream
        })
        .collect();
    let mut next = TcpStream::connect(served.address).unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    next.write_all(request).unwrap();
    let soon = Some(PATIENCE + Duration::from_millis(200));
    next.set_read_timeout(soon).unwrap();
    let waiting = next.read(&mut [0]).unwrap_err();
    assert_eq!(waiting.kind(), std::io::ErrorKind::WouldBlock, "{waiting}");
    drop(slow);
    next.set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut answer = String::new();
    next.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn what_hangs_in_a_lookup_does_not_hold_up_the_end() {
    let (end, ended) = sync_channel::<()>(0);
    let (hangs, has_begun) = tokio::sync::oneshot::channel();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.build().unwrap();
    let begun = Instant::now();
    super::port::run(runtime, async move {
        drop(tokio::task::spawn_blocking(move || {
            hangs.send(()).unwrap();
            ended.recv()
        }));
        has_begun.await.unwrap();
    });
    assert!(begun.elapsed() < super::port::STOP_TIMEOUT * 5);
    assert!(end.send(()).is_ok(), "it still waits for its answer");
}

#[test]
fn dropping_it_frees_the_port() {
    let served = serve(Some(report()), Ok(()));
    let address = served.address;
    drop(served);
    TcpListener::bind(address).unwrap();
}

#[test]
fn nobody_is_answered_at_a_time_that_http_has_no_date_for() {
    let can = super::port::can_be_told;
    assert!(can(UNIX_EPOCH) && can(SystemTime::now()));
    assert!(!can(UNIX_EPOCH - Duration::from_nanos(1)));
    assert!(can(
        UNIX_EPOCH + super::port::DATES_END - Duration::from_nanos(1)
    ));
    assert!(!can(UNIX_EPOCH + super::port::DATES_END));
}
