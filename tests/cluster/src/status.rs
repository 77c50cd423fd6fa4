//! Asks replicas how they are, by HTTP, and gives the answers names. Asks only; decides nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::Agent;

use crate::cluster::Cluster;

/// How long an answer may take. Replicas answer from memory; a stopped or unreachable one never does.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// What a replica is at the moment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Leads.
    Leader,
    /// Follows.
    Follower,
    /// Stands for election.
    Candidate,
    /// Follows without a vote.
    Learner,
    /// Is being brought up to date before it may vote or acknowledge.
    Joining,
}

/// What a replica says of itself at `/v1/status`.
#[derive(Clone, Debug, Deserialize)]
pub struct Status {
    /// Its id.
    pub id: u16,
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: u64,
    /// Whom it takes for the leader.
    pub leader: Option<u16>,
    /// The highest index it knows to be committed.
    pub commit_index: u64,
    /// The last index of its log.
    pub last_index: u64,
    /// The last index its state machine has applied.
    pub applied_index: u64,
    /// The last index that is on its disk.
    pub persisted_index: u64,
    /// The index of its newest snapshot, 0 if it has none.
    pub snapshot_index: u64,
    /// The first index its log still has.
    pub first_index: u64,
    /// `sync` or `memory`.
    pub durability: String,
    /// Which cluster of its name it is of, hexadecimal; empty: it does not know.
    #[serde(default)]
    pub lineage: String,
    /// Which life of its memory this is, hexadecimal.
    pub incarnation: String,
    /// Its data plane, if it has one.
    pub data_plane: Option<DataPlane>,
    /// The fast term its data plane runs, if it does.
    pub fast_term: Option<FastTerm>,
    /// Why the last fast term here ended, if one did.
    pub fast_term_ended: Option<String>,
    /// What it has counted, by name.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// Whether it leads and may answer reads alone.
    pub lease: bool,
    /// The members it knows.
    pub members: Vec<Member>,
    /// How far each other member is, if it leads.
    #[serde(default)]
    pub followers: Vec<Follower>,
    /// What is wrong with it, in words.
    #[serde(default)]
    pub faults: Vec<String>,
    /// Where the programs that replicas serve have said different things.
    #[serde(default)]
    pub output_differences: Vec<OutputDifference>,
}

/// What the program of a replica has said and others' have not.
#[derive(Clone, Debug, Deserialize)]
pub struct OutputDifference {
    /// Whose.
    pub replica: u16,
    /// In which life of it.
    pub incarnation: String,
    /// Most say something else.
    pub quarantined: bool,
    /// Whether that life is a member still.
    pub is_member: bool,
    /// To which client.
    pub connection: u64,
    /// From where on.
    pub first_byte: u64,
    /// How much.
    pub bytes: u64,
    /// In which turn.
    pub turn: u64,
}

/// Which data plane a replica has, and why.
#[derive(Clone, Debug, Deserialize)]
pub struct DataPlane {
    /// As the option `plane` calls it.
    pub name: String,
    /// Where it runs, for planes that may in several places.
    pub runs: Option<String>,
    /// `option` or `auto`.
    pub chosen_by: String,
    /// Those that cannot run there.
    pub refused: Vec<RefusedPlane>,
}

/// A data plane that cannot run where a replica is.
#[derive(Clone, Debug, Deserialize)]
pub struct RefusedPlane {
    /// As the option `plane` calls it.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A fast term, as one replica sees it.
#[derive(Clone, Debug, Deserialize)]
pub struct FastTerm {
    /// The term.
    pub term: u64,
    /// How long its plane has been engaged, in milliseconds.
    pub for_ms: u64,
}

/// A member as a replica knows it.
#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: u16,
    /// Which of its lives is the member.
    pub incarnation: String,
    /// Whether it votes.
    pub voter: bool,
    /// Where the list says that other replicas connect to it.
    pub peer: String,
}

/// A member as its leader sees it.
#[derive(Clone, Debug, Deserialize)]
pub struct Follower {
    /// Its id.
    pub id: u16,
    /// Entries it is behind.
    pub lag: u64,
    /// Whether it is being sent a snapshot.
    pub in_snapshot: bool,
    /// Bytes of that snapshot that it has.
    #[serde(default)]
    pub snapshot_sent_bytes: u64,
    /// How long that snapshot is.
    #[serde(default)]
    pub snapshot_bytes: u64,
}

impl Status {
    /// The ids of the members that vote, ascending.
    #[must_use]
    pub fn voters(&self) -> Vec<u16> {
        let voters = self.members.iter().filter(|member| member.voter);
        let mut ids: Vec<_> = voters.map(|member| member.id).collect();
        ids.sort_unstable();
        ids
    }
}

/// The state of a replica's state machine at one index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Digest {
    /// How far it has applied.
    pub applied_index: u64,
    /// A hash of everything it holds.
    pub digest: String,
}

impl Cluster<'_> {
    /// What a replica has counted under this name.
    pub fn counter(&self, id: u16, name: &str) -> Result<u64> {
        let counters = self.status(id)?.counters;
        let count = counters.get(name).copied();
        count.with_context(|| format!("replica {id} counts no {name}"))
    }
}

/// The status of the replica at `http`.
pub fn status(http: SocketAddr) -> Result<Status> {
    json(http, "/v1/status")
}

/// The digest of the replica at `http`.
pub fn digest(http: SocketAddr) -> Result<Digest> {
    json(http, "/v1/digest")
}

/// The HTTP status and body of a page; an error only if there was no answer.
pub fn page(http: SocketAddr, path: &str) -> Result<(u16, String)> {
    page_within(http, path, ANSWER_TIMEOUT)
}

/// The same with a deadline of its own.
pub fn page_within(http: SocketAddr, path: &str, timeout: Duration) -> Result<(u16, String)> {
    let agent: Agent = Agent::config_builder()
        .proxy(None)
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .build()
        .new_agent();
    let mut response = agent.get(format!("http://{http}{path}")).call()?;
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    let text = body.read_to_string()?;
    Ok((response.status().as_u16(), text))
}

fn json<T: DeserializeOwned>(http: SocketAddr, path: &str) -> Result<T> {
    let (code, body) = page(http, path)?;
    ensure!(code == 200, "{path}: {code}: {body}");
    serde_json::from_str(&body).with_context(|| format!("{path}: {body}"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers one request with the given code and body.
    fn answering(code: u16, body: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accept");
            let mut request = [0; 4096];
            let length = stream.read(&mut request).expect("request");
            assert!(request[..length].starts_with(b"GET /"));
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {code} X\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .expect("answer");
        });
        address
    }

    #[test]
    fn reads_a_status() {
        let address = answering(
            200,
            r#"{"id":1,"cluster":"c","group":0,"role":"joining","term":3,"leader":null,
            "commit_index":5,"last_index":6,"applied_index":4,"persisted_index":6,"snapshot_index":2,"first_index":3,
            "durability":"memory","plane":"none","quorum":"majority","incarnation":"0a",
            "lease":false,
            "members":[{"id":2,"incarnation":"01","voter":true,"peer":"10.0.0.1:1"},
            {"id":0,"incarnation":"01","voter":true,"peer":"10.0.0.2:1"},
            {"id":7,"incarnation":"01","voter":false,"peer":"10.0.0.3:1"}],"faults":["disk full"]}"#,
        );
        let status = status(address).expect("a status");
        assert_eq!(status.voters(), [0, 2]);
        assert_eq!((status.role, status.leader), (Role::Joining, None));
        assert_eq!(status.faults, ["disk full"]);
    }

    #[test]
    fn tells_refusals_from_silence() {
        assert_eq!(
            page(answering(503, "no"), "/readyz").expect("answer"),
            (503, "no".into())
        );
        assert!(
            digest(answering(503, "{}"))
                .expect_err("503")
                .to_string()
                .contains("503")
        );
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let silent = listener.local_addr().expect("bound");
        assert!(page(silent, "/readyz").is_err());
    }
}
