//! Any bytes at the HTTP port: one answer that is HTTP, or a closed connection, and a change only where
//! somebody asked for one. No socket: a connection is its bytes, and whoever sends them says nothing more.
use super::arrivals::{ARRIVALS_MAX, Arrivals};
use super::counters::HttpCounters;
use super::handle::Handle;
use super::port::{Port, serve_connection};
use super::{
    AdminError, DigestBody, ErrorBody, Live, LostRequest, MembersRequest, MemoryRequest,
    ReadIndexBody, SnapshotBody, TransferRequest, router,
};
use crate::live::LiveDocument;
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz, grown};
use quorumwire_node::admin::{ADMIN_QUEUE_MAX, AdminHandle, AdminRequest};
use quorumwire_node::report::Report;
use quorumwire_node::tls::Standing;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const ITERATIONS: usize = 2_000;
const ITERATIONS_OF_BODIES: usize = 50_000;
const INPUT_BYTES_MAX: usize = 256;
/// Looks at a connection until it must have ended.
const TURNS_MAX: u32 = 100;
/// Of an answer; the dashboard's program is the longest.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const HOST: &str = "host: localhost\r\n";

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\n{HOST}\r\n").into_bytes()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\n{HOST}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

const ADD: &str = r#"{"action":"add","id":3,"peer":"h:1","learner":true}"#;
const MEMORY: &str = r#"{"limit_bytes":1048576,"policy":"evict"}"#;
const LOST: &str = r#"{"upto":7}"#;

fn seeds() -> Vec<Seed> {
    let chunked = format!(
        "POST /v1/transfer HTTP/1.1\r\n{HOST}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
         8\r\n{{\"to\":2}}\r\n0\r\n\r\n"
    );
    let of_a_page = format!("POST /v1/snapshot HTTP/1.1\r\n{HOST}origin: http://a.example\r\n\r\n");
    vec![
        ("dashboard", get("/")),
        ("status", get("/v1/status")),
        ("live", get("/v1/live")),
        ("backup", get("/v1/backup?at_least=7")),
        ("read-index", get("/v1/read-index")),
        ("add-a-member", post("/v1/members", ADD)),
        (
            "quorum-of-all",
            post("/v1/members", r#"{"action":"quorum","quorum":"all"}"#),
        ),
        ("memory-limit", post("/v1/memory", MEMORY)),
        ("values-lost", post("/v1/values/lost", LOST)),
        ("transfer-in-chunks", chunked.into_bytes()),
        (
            "another-request-behind",
            format!("{}{of_a_page}", of_a_page.replace("origin", "from")).into_bytes(),
        ),
        ("snapshot-of-a-page", of_a_page.into_bytes()),
    ]
}

fn words() -> Vec<Vec<u8>> {
    let texts = [
        "GET ",
        "POST ",
        "HEAD ",
        "/v1/status",
        "/v1/live",
        "/v1/backup?at_least=",
        "/v1/members",
        "/metrics",
        "/readyz",
        "/v1/digest",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        HOST,
        "content-length: 9\r\n",
        "content-type: application/json\r\n",
        "transfer-encoding: chunked\r\n",
        "expect: 100-continue\r\n",
        "sec-fetch-site: cross-site\r\n",
        "18446744073709551616",
        "\r\n",
        "{\"action\":\"remove\",\"id\":",
        "7}",
        ": ",
    ];
    let whole = [
        get("/v1/status"),
        post("/v1/members", ADD),
        post("/v1/memory", MEMORY),
    ];
    let texts = texts.iter().map(|it| it.as_bytes().to_vec());
    texts.chain(whole).collect()
}

/// The bytes of a connection, and what was said to them.
struct Bytes<'i> {
    left: &'i [u8],
    /// Nothing more comes, and that is said.
    has_ended: Arc<Mutex<bool>>,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Bytes<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_empty() && !*self.has_ended.lock().unwrap() {
            return Poll::Pending;
        }
        let (taken, left) = self.left.split_at(into.remaining().min(self.left.len()));
        into.put_slice(taken);
        self.left = left;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bytes<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.answer.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Answers what the event loop was asked; how often that was, and how many changes were among it.
fn answer_asked(asked: &Receiver<AdminRequest>) -> (u32, u32) {
    let (mut count, mut changes) = (0, 0);
    while let Ok(request) = asked.try_recv() {
        count += 1;
        match request {
            AdminRequest::Report(answer) => drop(answer.send(Report::default())),
            AdminRequest::Digest(answer) => drop(answer.send(Ok((78, "abcd".to_owned())))),
            AdminRequest::ReadIndex(answer) => drop(answer.send(Ok(79))),
            AdminRequest::Freeze(_, answer) => drop(answer.send(Err(AdminError::Unavailable))),
            AdminRequest::ChangeMembers(_, answer)
            | AdminRequest::Transfer(_, answer)
            | AdminRequest::DeclareLost(_, answer)
            | AdminRequest::ChangeMemory(_, answer) => {
                changes += 1;
                answer.send(Ok(())).ok();
            }
            AdminRequest::Snapshot(answer) => {
                changes += 1;
                answer.send(Ok(77)).ok();
            }
        }
    }
    (count, changes)
}

/// What is said to these bytes, and how many changes they made.
fn exchange(input: &[u8]) -> (Vec<u8>, u32) {
    let (queue, asked) = sync_channel(ADMIN_QUEUE_MAX);
    let poll = mio::Poll::new().unwrap();
    let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
    let handle = Handle::new(AdminHandle::new(queue, waker));
    let live = Live::new(handle.clone(), None);
    let port = Port {
        router: router(handle, Arc::clone(&live)),
        tls: None,
        counters: Arc::<HttpCounters>::default(),
    };
    let (has_ended, answer) = (
        Arc::new(Mutex::new(false)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let stream = Bytes {
        left: input,
        has_ended: Arc::clone(&has_ended),
        answer: Arc::clone(&answer),
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().enable_time().build().unwrap();
    let changes = runtime.block_on(async {
        let (arrival, _gives_way) = Arc::new(Arrivals::new(ARRIVALS_MAX)).take_in().await;
        let mut connection = pin!(serve_connection(stream, port, arrival, Standing::Operator));
        let (mut turns, mut changes, mut idle) = (0, 0, 0);
        poll_fn(|context| {
            turns += 1;
            if turns == TURNS_MAX {
                // Whoever listens and says more than was asked is told something each second, until that
                // fails.
                let said = answer.lock().unwrap();
                let is_told_more = memchr::memmem::find(&said, b"text/event-stream").is_some();
                assert!(is_told_more, "{:?}", String::from_utf8_lossy(&said));
                return Poll::Ready(());
            }
            let polled = connection.as_mut().poll(context);
            let (count, made) = answer_asked(&asked);
            changes += made;
            // Tasks have had their turn, and there is nothing to wait for: the other side goes.
            idle = if count == 0 { idle + 1 } else { 0 };
            if idle > 2 {
                *has_ended.lock().unwrap() = true;
            }
            context.waker().wake_by_ref();
            polled
        })
        .await;
        changes
    });
    live.stop();
    let answer = std::mem::take(&mut *answer.lock().unwrap());
    (answer, changes)
}

/// The status of an answer whose head is HTTP and whose body is what that says.
fn status_of(answer: &[u8]) -> u16 {
    let end = memchr::memmem::find(answer, b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&answer[..end]).expect("text");
    let body = &answer[end + 4..];
    let status = head.strip_prefix("HTTP/1.").expect("HTTP");
    let status = status[2..5].parse().expect("a status");
    if head.contains("application/json") && !body.is_empty() {
        let value: Value = serde_json::from_slice(body).expect("whole JSON");
        assert_eq!(status != 200, value.get("error").is_some(), "{value}");
    }
    status
}

#[test]
fn any_bytes_have_one_answer_and_change_only_what_they_ask_for() {
    let outcomes = Outcomes::default();
    let words = words();
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    fuzz!(
        "http_requests",
        seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            let (answer, changes) = exchange(&bytes);
            assert!(answer.len() <= ANSWER_BYTES_MAX);
            assert!(changes <= 1, "one request, one change");
            if changes > 0 {
                assert!(memchr::memmem::find(&bytes, b"POST ").is_some());
                assert!(!is_of_a_page(&bytes));
            }
            if answer.is_empty() {
                return outcomes.count("closed");
            }
            let answer = answer
                .strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n")
                .unwrap_or(&answer);
            if answer.is_empty() {
                return outcomes.count("to be continued");
            }
            match (status_of(answer), changes) {
                (200, 1) => outcomes.count("changed"),
                (200, _) => outcomes.count("told"),
                (503, 0) => outcomes.count("not now"),
                (400..500, 0) => outcomes.count("refused"),
                other => panic!("{other:?}: {}", String::from_utf8_lossy(answer)),
            }
        }
    );
    outcomes.must_be(&["closed", "changed", "told", "not now", "refused"]);
}

/// Whether the head says so; what stands behind it is nobody's.
fn is_of_a_page(bytes: &[u8]) -> bool {
    let begins = bytes.iter().position(|it| !b"\r\n".contains(it));
    let lines = bytes[begins.unwrap_or(0)..].split(|it| *it == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
        .any(|line| line.starts_with(b"origin:"))
}

/// What is understood is the same when it is written and read again.
fn is_read_again<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else {
        return false;
    };
    let written = serde_json::to_value(&value).expect("JSON");
    let again: T = serde_json::from_value(written.clone()).expect("what we wrote");
    assert_eq!(serde_json::to_value(&again).expect("JSON"), written);
    true
}

fn body_seeds() -> Vec<Seed> {
    let error = r#"{"error":"not the leader","leader":2,"leader_http":"h:1"}"#;
    let report = Report {
        leader: Some(2),
        snapshot_age_ms: Some(7),
        ..Report::default()
    };
    let report = serde_json::to_vec(&report).expect("JSON");
    let document = serde_json::to_vec(&LiveDocument::default()).expect("JSON");
    vec![
        ("members", ADD.as_bytes().to_vec()),
        ("memory", MEMORY.as_bytes().to_vec()),
        ("lost", LOST.as_bytes().to_vec()),
        ("transfer", br#"{"to":null}"#.to_vec()),
        ("error", error.as_bytes().to_vec()),
        ("read-index", br#"{"index":18446744073709551615}"#.to_vec()),
        ("digest", br#"{"applied_index":7,"digest":"ab"}"#.to_vec()),
        ("report", report),
        ("live-document", document),
    ]
}

/// Bodies of requests, and of the answers that other replicas give.
#[test]
fn any_bodies_are_refused_or_read_as_they_are_written() {
    let outcomes = Outcomes::default();
    let words: [&[u8]; 16] = [
        b"{\"action\":\"add\",\"id\":",
        b"{\"action\":\"quorum\",\"quorum\":\"all\"}",
        b"{\"limit_bytes\":",
        b"{\"to\":",
        b"{\"index\":",
        b",\"peer\":\"h:1\"",
        b",\"policy\":\"refuse\"",
        b"{\"error\":\"",
        b"\\u0000\\ud83d",
        b"\"",
        b"null",
        b"65536",
        b"7",
        b"-1",
        b"1e3",
        b"}",
    ];
    fuzz!(
        "http_bodies",
        body_seeds(),
        ITERATIONS_OF_BODIES,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            let mut is_any = false;
            for (is_it, what) in [
                (is_read_again::<MembersRequest>(&bytes), "members"),
                (is_read_again::<MemoryRequest>(&bytes), "memory"),
                (is_read_again::<LostRequest>(&bytes), "lost"),
                (is_read_again::<TransferRequest>(&bytes), "transfer"),
                (is_read_again::<ErrorBody>(&bytes), "error"),
                (is_read_again::<ReadIndexBody>(&bytes), "read index"),
                (is_read_again::<SnapshotBody>(&bytes), "snapshot"),
                (is_read_again::<DigestBody>(&bytes), "digest"),
                (is_read_again::<Report>(&bytes), "report"),
                (is_read_again::<LiveDocument>(&bytes), "document"),
            ] {
                if is_it {
                    is_any = true;
                    outcomes.count(what);
                }
            }
            if !is_any {
                outcomes.count("none");
            }
        }
    );
    outcomes.must_be(&[
        "members",
        "memory",
        "transfer",
        "error",
        "read index",
        "digest",
        "report",
        "document",
        "none",
    ]);
}
