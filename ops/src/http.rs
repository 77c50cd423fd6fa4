//! Status, metrics and administration over HTTP, on a thread of their own that asks the event loop.
//! Nothing here is on the way of a client's request.
mod arrivals;
mod backup;
mod bodies;
mod counters;
mod dashboard;
mod exposition;
mod handle;
mod live;
mod metrics;
mod others;
mod pages;
mod port;
mod standing;
pub mod switch_page;
mod values;

use self::arrivals::ARRIVALS_MAX;
use self::exposition::Format;
use self::handle::Handle;
use self::live::Live;
use self::pages::Names;
use self::port::{HttpThread, LOOKUP_THREADS_MAX, Limits, Port};
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Extension, Json, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use quorumwire_control::{MemberChange, Refusal};
use quorumwire_interfaces::ReplicaId;
use quorumwire_kv::{MemoryChange, MemoryPolicy};
use quorumwire_node::admin::{AdminError, AdminPort, AdminRequest, AdminService};
use quorumwire_node::descriptors::LOOKUP_DESCRIPTORS_MAX;
use quorumwire_node::report::{MemberStanding, ReplicaRole, Report};
use quorumwire_wire::limits::MEMBERS_MAX;
use quorumwire_wire::{CommitQuorum, MemberRole};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Largest body of a request.
const BODY_BYTES_MAX: usize = 4096;
/// Connections served at once, those in [`arrivals`] included; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 512;
/// Descriptors that the port may need: those of its connections, of questions to the other replicas and of
/// lookups of their names, and the listener, the thread's own event queue and what wakes it.
const DESCRIPTORS_MAX: usize =
    CONNECTIONS_MAX + MEMBERS_MAX + LOOKUP_THREADS_MAX * LOOKUP_DESCRIPTORS_MAX + 8;
/// How long the event loop may take to describe itself.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request may take in all, its body and the loop's answer included.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Serves people over HTTP.
pub struct Http;

impl AdminService for Http {
    fn descriptors_max(&self) -> usize {
        DESCRIPTORS_MAX
    }

    fn serve(&self, port: AdminPort) -> anyhow::Result<Box<dyn Any>> {
        Ok(Box::new(start(port)?))
    }
}

/// Serves HTTP until the answer is dropped; fails if no thread can be started.
fn start(port: AdminPort) -> anyhow::Result<HttpThread> {
    let AdminPort {
        listener,
        handle,
        tls,
    } = port;
    let handle = Handle::new(handle);
    let counters = Arc::clone(&handle.counters);
    let live = Live::new(handle.clone(), tls.clone());
    let names = tls.is_none().then(|| Names::new(Some(handle.clone())));
    let router = router(handle, Arc::clone(&live));
    let router = match names {
        None => router,
        Some(names) => {
            let only = middleware::from_fn_with_state(names, pages::only_by_our_names);
            router.layer(only)
        }
    };
    let port = Port {
        router,
        tls,
        counters,
    };
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        arrivals: ARRIVALS_MAX,
    };
    HttpThread::start(listener, port, limits, move || live.stop())
}

fn router(handle: Handle, live: Arc<Live>) -> Router {
    let of_everybody = Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .layer(middleware::from_fn(standing::for_everybody));
    let of_readers = Router::new()
        .merge(dashboard::router())
        .route("/metrics", get(metrics_text))
        .route("/v1/status", get(status))
        .route("/v1/live", get(live::listen))
        .route("/v1/digest", get(digest))
        .route("/v1/read-index", get(backup::read_index))
        .fallback(async || {
            plain_error(
                StatusCode::NOT_FOUND,
                "no such path; there are / /healthz /readyz /metrics /v1/status /v1/live /v1/digest \
                 /v1/read-index /v1/backup /v1/members /v1/memory /v1/transfer /v1/snapshot /v1/values/lost",
            )
        })
        .layer(middleware::from_fn(standing::for_readers));
    let of_operators = Router::new()
        .route("/v1/backup", get(backup::backup))
        .route("/v1/members", post(change_members))
        .route("/v1/transfer", post(transfer))
        .route("/v1/memory", post(change_memory))
        .route("/v1/snapshot", post(snapshot))
        .route("/v1/values/lost", post(values::declare_lost))
        .layer(middleware::from_fn(standing::for_operators));
    of_everybody
        .merge(of_readers)
        .merge(of_operators)
        .method_not_allowed_fallback(async || {
            plain_error(
                StatusCode::METHOD_NOT_ALLOWED,
                "wrong method for this path; /v1/members, /v1/memory, /v1/transfer, /v1/snapshot and /v1/values/lost take \
                 POST, all others GET",
            )
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(pages::none_of_others))
        .layer(middleware::from_fn(within_time))
        .layer(Extension(live))
        .with_state(handle)
}

async fn within_time(request: Request, next: middleware::Next) -> Response {
    let answer = timeout(REQUEST_TIMEOUT, next.run(request)).await;
    answer.unwrap_or_else(|_| {
        plain_error(
            StatusCode::SERVICE_UNAVAILABLE,
            "not finished in time; it may still take effect",
        )
    })
}

pub use backup::ReadIndexBody;
pub(crate) use counters::HttpCounts;
pub use dashboard::headers as page_headers;
pub use metrics::documentation as metrics_documentation;
pub use port::serve_page;
pub use values::LostRequest;

/// The body of every answer that is an error.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ErrorBody {
    /// What went wrong, in words.
    pub error: String,
    /// The same for programs, where it says more than the status does. Earlier versions have none.
    #[serde(default)]
    pub code: Option<ErrorCode>,
    /// Who leads, if the leader is needed and known.
    pub leader: Option<u16>,
    /// Where the leader serves HTTP, if known.
    pub leader_http: Option<String>,
}

/// Why a replica has not carried out what it was asked for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Another replica leads.
    NotLeader,
    /// A limit is reached.
    Busy,
    /// The data plane takes commands now.
    FastTerm,
    /// Leadership is being transferred.
    Transferring,
    /// Another change of the members is under way.
    ChangeInProgress,
    /// The request makes no sense.
    Invalid,
    /// Whom the change takes in is not connected, or not yet.
    NotConnected,
    /// It was begun, and may still take effect.
    TimedOut,
    /// Something outside failed, such as the disk.
    Failed,
    /// The replica does not answer.
    Unavailable,
    /// One that a later version has.
    #[serde(other)]
    Other,
}

impl From<&AdminError> for ErrorCode {
    fn from(error: &AdminError) -> Self {
        match error {
            AdminError::Refused(refusal) => match refusal {
                Refusal::NotLeader { .. } => Self::NotLeader,
                Refusal::Busy { .. } => Self::Busy,
                Refusal::FastTerm => Self::FastTerm,
                Refusal::Transferring => Self::Transferring,
                Refusal::ChangeInProgress => Self::ChangeInProgress,
                Refusal::Invalid(_) => Self::Invalid,
                Refusal::NotConnected { .. } => Self::NotConnected,
                Refusal::TimedOut => Self::TimedOut,
            },
            AdminError::Failed(_) => Self::Failed,
            AdminError::Unavailable => Self::Unavailable,
        }
    }
}

fn plain_error(status: StatusCode, error: &str) -> Response {
    let body = ErrorBody {
        error: error.to_owned(),
        code: None,
        leader: None,
        leader_http: None,
    };
    (status, Json(body)).into_response()
}

async fn report(handle: &Handle) -> Result<Report, AdminError> {
    let answer = timeout(REPORT_TIMEOUT, handle.ask(AdminRequest::Report)).await;
    let mut report = answer.unwrap_or(Err(AdminError::Unavailable))?;
    handle.counters.report(&mut report.counters);
    Ok(report)
}

async fn health(State(handle): State<Handle>) -> Response {
    match report(&handle).await {
        Ok(_) => "ok\n".into_response(),
        Err(error) => plain_error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

async fn readiness(State(handle): State<Handle>) -> Response {
    match report(&handle).await {
        Ok(report) if report.ready => ready(&report).into_response(),
        Ok(report) => {
            let leader = report.leader.map_or_else(
                || "no leader is known".to_owned(),
                |leader| format!("replica {leader} leads"),
            );
            let mut own = report.members.iter().filter(|it| it.id == report.id);
            let is_full = own.any(|it| {
                it.incarnation == report.incarnation && it.role != MemberStanding::Joining
            });
            let member = if report.role == ReplicaRole::Removed {
                ", and it was removed from the cluster"
            } else if is_full {
                ""
            } else {
                ", and it does not vote yet"
            };
            let mut error = format!("not ready: {}, {leader}{member}", report.role);
            for fault in &report.faults {
                error.push_str("; ");
                error.push_str(fault);
            }
            plain_error(StatusCode::SERVICE_UNAVAILABLE, &error)
        }
        Err(error) => plain_error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// What is wrong all the same stands below.
fn ready(report: &Report) -> String {
    let faults = report
        .faults
        .iter()
        .map(|fault| format!("fault: {fault}\n"));
    let faults: String = faults.collect();
    match &report.writes_refused {
        None => format!("ready\n{faults}"),
        Some(why) => format!("ready for reads: {why}\n{faults}"),
    }
}

async fn metrics_text(State(handle): State<Handle>, headers: HeaderMap) -> Response {
    match report(&handle).await {
        Ok(report) => metrics_page(metrics::text(report), &headers),
        Err(error) => plain_error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// In the format that whoever asks prefers.
fn metrics_page(text: Result<String, fmt::Error>, headers: &HeaderMap) -> Response {
    match text {
        Ok(text) => {
            let format = Format::asked_for(headers);
            let told = [
                (header::CONTENT_TYPE, format.content_type()),
                (header::VARY, "accept".to_owned()),
            ];
            (told, format.of(&text).into_owned()).into_response()
        }
        Err(error) => plain_error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn status(State(handle): State<Handle>) -> Response {
    match report(&handle).await {
        Ok(report) => Json(report).into_response(),
        Err(error) => plain_error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// Hash of a replica's state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DigestBody {
    /// The last command the state contains.
    pub applied_index: u64,
    /// The hash, hexadecimal; equal for equal states.
    pub digest: String,
}

async fn digest(State(handle): State<Handle>) -> Response {
    let asked = carried_out(&handle, handle.ask(AdminRequest::Digest)).await;
    asked.map_or_else(
        |refused| refused,
        |(applied_index, digest)| {
            let body = DigestBody {
                applied_index,
                digest,
            };
            Json(body).into_response()
        },
    )
}

/// Body of `POST /v1/members`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum MembersRequest {
    /// Take a replica in.
    Add {
        /// Its id.
        id: u16,
        /// Where other replicas connect to it.
        peer: String,
        /// It shall not become a voter by itself.
        #[serde(default)]
        learner: bool,
    },
    /// Let a learner vote.
    Promote {
        /// Its id.
        id: u16,
    },
    /// Take a member out.
    Remove {
        /// Its id.
        id: u16,
    },
    /// Set how many voters must hold an entry to commit it.
    Quorum {
        /// How many.
        quorum: QuorumWord,
    },
}

/// How many voters must hold an entry to commit it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuorumWord {
    /// More than half of the voters.
    Majority,
    /// Every voter: nothing commits while one is away.
    All,
}

impl MembersRequest {
    fn into_change(self) -> MemberChange {
        match self {
            Self::Add { id, peer, learner } => MemberChange::Add {
                id: ReplicaId(id),
                role: if learner {
                    MemberRole::Learner
                } else {
                    MemberRole::Joining
                },
                peer_address: peer,
            },
            Self::Promote { id } => MemberChange::Promote(ReplicaId(id)),
            Self::Remove { id } => MemberChange::Remove(ReplicaId(id)),
            Self::Quorum { quorum } => MemberChange::Quorum(match quorum {
                QuorumWord::Majority => CommitQuorum::Majority,
                QuorumWord::All => CommitQuorum::All,
            }),
        }
    }
}

async fn change_members(
    State(handle): State<Handle>,
    body: Result<Json<MembersRequest>, JsonRejection>,
) -> Response {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return bodies::refused(&rejection, bodies::MEMBERS),
    };
    if let MembersRequest::Add { peer, .. } = &request
        && quorumwire_node::options::parse_reachable(peer).is_none()
    {
        let error = format!("peer: {peer:?} is refused; allowed: HOST:PORT to connect to");
        return plain_error(StatusCode::BAD_REQUEST, &error);
    }
    let change = request.into_change();
    let asked = handle.ask(|answer| AdminRequest::ChangeMembers(change, answer));
    done(carried_out(&handle, asked).await)
}

/// Body of `POST /v1/memory`; what is not named stays as it is.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRequest {
    /// Bytes that the items may take; 0: as many as there are.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
    /// What happens there.
    #[serde(default)]
    pub policy: Option<PolicyWord>,
}

/// What happens to a write that needs memory while the items take more than the limit.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyWord {
    /// The write is refused.
    Refuse,
    /// The items that were written or touched longest ago are deleted; reads do not count.
    Evict,
}

async fn change_memory(
    State(handle): State<Handle>,
    body: Result<Json<MemoryRequest>, JsonRejection>,
) -> Response {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return bodies::refused(&rejection, bodies::MEMORY),
    };
    if request.limit_bytes.is_none() && request.policy.is_none() {
        let error = "nothing to change: limit_bytes, policy, or both";
        return plain_error(StatusCode::BAD_REQUEST, error);
    }
    let change = MemoryChange {
        limit_bytes: request.limit_bytes,
        policy: request.policy.map(|word| match word {
            PolicyWord::Refuse => MemoryPolicy::Refuse,
            PolicyWord::Evict => MemoryPolicy::Evict,
        }),
        ..MemoryChange::default()
    };
    let asked = handle.ask(|answer| AdminRequest::ChangeMemory(change, answer));
    done(carried_out(&handle, asked).await)
}

/// Body of `POST /v1/transfer`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// Who shall lead; nobody named means the most up-to-date voter.
    #[serde(default)]
    pub to: Option<u16>,
}

async fn transfer(
    State(handle): State<Handle>,
    body: Result<Json<TransferRequest>, JsonRejection>,
) -> Response {
    let to = match body {
        Ok(Json(request)) => request.to.map(ReplicaId),
        Err(rejection) => return bodies::refused(&rejection, bodies::TRANSFER),
    };
    let asked = handle.ask(|answer| AdminRequest::Transfer(to, answer));
    done(carried_out(&handle, asked).await)
}

/// Answer of `POST /v1/snapshot`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct SnapshotBody {
    /// The last command the snapshot contains.
    pub last_index: u64,
}

async fn snapshot(State(handle): State<Handle>) -> Response {
    let asked = carried_out(&handle, handle.ask(AdminRequest::Snapshot)).await;
    asked.map_or_else(
        |refused| refused,
        |last_index| Json(SnapshotBody { last_index }).into_response(),
    )
}

fn done(outcome: Result<(), Response>) -> Response {
    outcome.map_or_else(
        |refused| refused,
        |()| Json(serde_json::json!({ "done": true })).into_response(),
    )
}

/// Waits for the loop's answer; what it refuses becomes the answer to the client.
async fn carried_out<T>(
    handle: &Handle,
    asked: impl Future<Output = Result<Result<T, AdminError>, AdminError>>,
) -> Result<T, Response> {
    let error = match asked.await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) | Err(error) => error,
    };
    let status = status_of(&error);
    let mut body = ErrorBody {
        error: error.to_string(),
        code: Some(ErrorCode::from(&error)),
        leader: None,
        leader_http: None,
    };
    if let AdminError::Refused(Refusal::NotLeader { leader }) = error {
        body.leader = leader.map(|leader| leader.0);
        if let Ok(report) = report(handle).await {
            body.leader = body.leader.or(report.leader);
            let member = report.members.iter().find(|m| Some(m.id) == body.leader);
            body.leader_http = member.and_then(|member| member.http.clone());
        }
    }
    Err((status, Json(body)).into_response())
}

fn status_of(error: &AdminError) -> StatusCode {
    match error {
        AdminError::Refused(refusal) => match refusal {
            Refusal::NotLeader { .. } => StatusCode::MISDIRECTED_REQUEST,
            Refusal::FastTerm | Refusal::Transferring | Refusal::ChangeInProgress => {
                StatusCode::CONFLICT
            }
            Refusal::Invalid(_) | Refusal::NotConnected { .. } => StatusCode::BAD_REQUEST,
            Refusal::Busy { .. } | Refusal::TimedOut => StatusCode::SERVICE_UNAVAILABLE,
        },
        AdminError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        AdminError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

#[cfg(test)]
#[path = "http/fuzz_test.rs"]
mod fuzz_test;
#[cfg(test)]
#[path = "http_test.rs"]
mod tests;
