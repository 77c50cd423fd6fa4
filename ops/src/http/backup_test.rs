//! A backup over a real socket: whole or visibly cut short, one at a time, and none for nobody.
use super::{Served, report, serve};
use quorumwire_control::Refusal;
use quorumwire_interfaces::{Frozen, Index, ReplicaId};
use quorumwire_node::admin::{AdminError, FrozenState};
use quorumwire_wire::{BackupHead, BackupReader, Membership, SnapshotHead};
use std::io::{self, Read as _, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);

/// A state that cannot be written to its end.
const BROKEN: Index = Index(1);
/// A state that has no end.
const ENDLESS: Index = Index(2);

/// A state that does not come.
pub const AHEAD: Index = Index(3);

struct State(Index);

impl Frozen for State {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let piece = vec![7; 100_003];
        match self.0 {
            BROKEN => {
                writer.write_all(&piece.repeat(9))?;
                Err(io::Error::other("it broke"))
            }
            ENDLESS => loop {
                writer.write_all(&piece)?;
            },
            Index(_) => writer.write_all(&piece.repeat(9)),
        }
    }
}

/// The loop's answer to whoever asks for a state that has this index.
pub fn frozen(at_least: Index) -> FrozenState {
    let state = SnapshotHead {
        last_index: at_least,
        membership: Membership::default(),
        ..SnapshotHead::default()
    };
    FrozenState {
        head: BackupHead {
            cluster: "c".to_owned(),
            state,
            ..BackupHead::default()
        },
        state: Box::new(State(at_least)),
    }
}

impl Served {
    fn stream(&self, at_least: Index) -> (u16, impl io::Read + use<>) {
        let url = format!("http://{}/v1/backup?at_least={at_least}", self.address);
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent: ureq::Agent = config.timeout_global(Some(DEADLINE)).build().into();
        let answer = agent.get(url).call().unwrap();
        let status = answer.status().as_u16();
        (status, answer.into_body().into_reader())
    }
}

#[test]
fn a_backup_comes_whole() {
    let served = serve(Some(report()), Ok(()));
    assert_eq!(
        served.get("/v1/read-index"),
        (200, r#"{"index":79}"#.to_owned())
    );
    let (status, body) = served.stream(Index(79));
    assert_eq!(status, 200);
    let reader = BackupReader::new(body).unwrap();
    assert_eq!(reader.head().state.last_index, Index(79));
    assert_eq!(reader.verify().unwrap(), 9 * 100_003);
}

#[test]
fn a_backup_that_breaks_is_cut_short() {
    let served = serve(Some(report()), Ok(()));
    let (status, mut body) = served.stream(BROKEN);
    assert_eq!(status, 200);
    let error = body.read_to_end(&mut Vec::new());
    error.expect_err("it must not look as if it were complete");
}

#[test]
fn a_second_backup_waits_until_nobody_reads_the_first() {
    let served = serve(Some(report()), Ok(()));
    let (status, mut first) = served.stream(ENDLESS);
    assert_eq!(status, 200);
    first.read_exact(&mut vec![0; 1 << 20]).unwrap();
    let (status, body) = served.get("/v1/backup?at_least=5");
    assert_eq!(status, 409, "{body}");
    drop(first);
    let begun = Instant::now();
    while served.stream(Index(5)).0 != 200 {
        assert!(
            begun.elapsed() < DEADLINE,
            "the first one goes on for nobody"
        );
        std::thread::yield_now();
    }
}

#[test]
fn who_waits_for_a_state_keeps_nobody_from_one_that_is_there() {
    let served = serve(Some(report()), Ok(()));
    let mut waits = TcpStream::connect(served.address).unwrap();
    let request = format!("GET /v1/backup?at_least={AHEAD} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    waits.write_all(request.as_bytes()).unwrap();
    let begun = Instant::now();
    while served.asked.lock().unwrap().is_empty() {
        assert!(begun.elapsed() < DEADLINE, "it was not asked for");
        std::thread::yield_now();
    }
    assert_eq!(served.stream(Index(5)).0, 200);
}

#[test]
fn what_makes_no_sense_or_cannot_be_is_refused() {
    let served = serve(Some(report()), Ok(()));
    for path in [
        "/v1/backup",
        "/v1/backup?at_least=x",
        "/v1/backup?at_least=1&x=1",
    ] {
        assert_eq!(served.get(path).0, 400, "{path}");
    }
    let leader = Some(ReplicaId(2));
    let refusal = AdminError::Refused(Refusal::NotLeader { leader });
    let served = serve(Some(report()), Err(refusal));
    let (status, body) = served.get("/v1/read-index");
    assert_eq!(status, 421);
    assert!(body.contains(r#""leader_http":"127.0.0.1:2""#), "{body}");
    let served = serve(Some(report()), Err(AdminError::Unavailable));
    assert_eq!(served.get("/v1/backup?at_least=5").0, 503);
}
