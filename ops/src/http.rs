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
mod standing;
mod values;

use self::arrivals::{Arrival, Arrivals, GivesWay};
use self::backup::HandedOver;
use self::counters::HttpCounters;
use self::exposition::Format;
use self::handle::Handle;
use self::live::Live;
use self::pages::Names;
use anyhow::Context as _;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Extension, Json, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use quorumwire_control::{MemberChange, Refusal};
use quorumwire_interfaces::ReplicaId;
use quorumwire_kv::{MemoryChange, MemoryPolicy};
use quorumwire_node::admin::{
    AdminConfigs, AdminError, AdminPort, AdminRequest, AdminService, AdminTls,
};
use quorumwire_node::descriptors::{LOOKUP_DESCRIPTORS_MAX, Starvation};
use quorumwire_node::report::{MemberStanding, ReplicaRole, Report};
use quorumwire_node::sparing::Sparing;
use quorumwire_node::tls::Standing;
use quorumwire_wire::limits::MEMBERS_MAX;
use quorumwire_wire::{CommitQuorum, MemberRole};
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use std::any::Any;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_rustls::TlsAcceptor;

/// Largest body of a request.
const BODY_BYTES_MAX: usize = 4096;
/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Connections served at once, those in [`arrivals`] included; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 512;
/// Descriptors that the port may need: those of its connections, of questions to the other replicas and of
/// lookups of their names, and the listener, the thread's own event queue and what wakes it.
const DESCRIPTORS_MAX: usize =
    CONNECTIONS_MAX + MEMBERS_MAX + LOOKUP_THREADS_MAX * LOOKUP_DESCRIPTORS_MAX + 8;
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two handshakes of TLS at least: a flood of them is not to take a processor from the event loop.
const HANDSHAKE_PAUSE: Duration = Duration::from_millis(5);
/// How long the event loop may take to describe itself.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request may take in all, its body and the loop's answer included.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a connection may live: one request, and the time to take the answer. One that takes a backup
/// lives on as long as it takes something of it in every such time.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(75);
/// A connection on which nothing of what was sent is acknowledged for so long is closed: its client is gone.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);
/// Threads that look names up for questions to other replicas; addresses need none.
const LOOKUP_THREADS_MAX: usize = 4;
/// How long requests that are under way, and lookups of names, may go on when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
static ACCEPT_FAILED: Sparing = Sparing::new();
static TIMELESS: Sparing = Sparing::new();
/// The end of the year 9999, and with it of HTTP's dates, since 1970.
const DATES_END: Duration = Duration::from_hours(70_389_528);
/// Pause after a failed accept, such as for want of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The running HTTP server. Dropping it stops it and waits for its thread.
#[derive(Debug)]
struct HttpThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the HTTP thread panicked");
        }
    }
}

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
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(LOOKUP_THREADS_MAX)
        .build()
        .context("starting the HTTP runtime")?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).context("registering the HTTP listener")?
    };
    let counters = Arc::clone(&handle.counters);
    let live = Live::new(handle.clone(), tls.clone());
    let names = tls.is_none().then(|| Names::new(handle.clone()));
    let router = router(handle, Arc::clone(&live));
    let router = match names {
        None => router,
        Some(names) => {
            let only = middleware::from_fn_with_state(names, pages::only_by_our_names);
            router.layer(only)
        }
    };
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || {
            let port = Port {
                router,
                tls,
                counters,
            };
            run(runtime, serve(listener, port, &live, stopped));
        })
        .context("starting the HTTP thread")?;
    Ok(HttpThread {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Ends soon after `serving` does, also while a name is being looked up by something that hangs.
fn run(runtime: Runtime, serving: impl Future<Output = ()>) {
    runtime.block_on(serving);
    runtime.shutdown_timeout(STOP_TIMEOUT);
}

/// What every connection is served with.
#[derive(Clone)]
struct Port {
    router: Router,
    tls: Option<AdminTls>,
    counters: Arc<HttpCounters>,
}

async fn serve(
    listener: tokio::net::TcpListener,
    port: Port,
    live: &Live,
    mut stopped: oneshot::Receiver<()>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let arrivals = Arc::new(Arrivals::default());
    let mut connections = JoinSet::new();
    let mut starvation = Starvation::default();
    let mut pauses = tokio::time::interval(HANDSHAKE_PAUSE);
    pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = async {
            if port.tls.is_some() {
                pauses.tick().await;
            }
            let accepted = accept(&listener, &slots, &mut starvation).await;
            port.counters.note(|it| it.starved = starvation.count);
            let (stream, slot) = accepted?;
            Some((stream, slot, arrivals.take_in().await))
        };
        let accepted = tokio::select! {
            _ = &mut stopped => break,
            accepted = next => accepted,
        };
        while connections.try_join_next().is_some() {}
        if let Some((stream, slot, (arrival, gives_way))) = accepted {
            port.counters.note(|it| it.accepted += 1);
            let served = serve_one(stream, port.clone(), arrival);
            let counters = Arc::clone(&port.counters);
            connections.spawn(unless_it_gives_way(served, gives_way, slot, counters));
        }
    }
    drop(listener);
    live.stop();
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_TIMEOUT, all).await.is_err() {
        tracing::warn!("stopped with HTTP requests unanswered");
    }
}

/// The next connection once there is a slot for it; `None` if accepting failed.
async fn accept(
    listener: &tokio::net::TcpListener,
    slots: &Arc<Semaphore>,
    starvation: &mut Starvation,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, slot)),
        Err(error) => {
            if !starvation.note(&error, listener, "http") && ACCEPT_FAILED.says(&error.to_string())
            {
                tracing::warn!(%error, "accepting an HTTP connection failed");
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Whoever gives way is told so by closing.
async fn unless_it_gives_way(
    served: impl Future<Output = ()>,
    gives_way: GivesWay,
    slot: OwnedSemaphorePermit,
    counters: Arc<HttpCounters>,
) {
    tokio::select! {
        biased; // once it is told so, nothing is carried out for it any more
        () = gives_way.wait() => counters.note(|it| it.gave_way += 1),
        () = served => {}
    }
    drop(slot);
}

async fn serve_one(stream: TcpStream, port: Port, arrival: Arrival) {
    // What fails here is noticed later, by its time limit.
    SockRef::from(&stream)
        .set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))
        .ok();
    let Some(tls) = &port.tls else {
        return serve_connection(stream, port, arrival, Standing::Operator).await;
    };
    let AdminConfigs {
        accepts, people, ..
    } = tls.get();
    let accepted = TlsAcceptor::from(accepts).accept(stream);
    // Who does not speak TLS, or not in time, is told so by closing.
    let stream = match timeout(HEAD_TIMEOUT, accepted).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(_)) => return port.counters.note(|it| it.refused_by_tls += 1),
        Err(_) => return port.counters.note(|it| it.timed_out += 1),
    };
    let shown = stream.get_ref().1.peer_certificates();
    let standing = people.standing(shown);
    serve_connection(stream, port, arrival, standing).await;
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    port: Port,
    arrival: Arrival,
    standing: Standing,
) {
    let Port {
        router, counters, ..
    } = port;
    if !can_be_told(SystemTime::now()) {
        if TIMELESS.says("") {
            tracing::error!("the time of day is before 1970 or after 9999: HTTP answers nobody");
        }
        return counters.note(|it| it.broken += 1);
    }
    let handed_over = HandedOver::default();
    let router = router
        .layer(Extension(handed_over.clone()))
        .layer(Extension(standing));
    let router = TowerToHyperService::new(router);
    let requests = Arc::clone(&counters);
    let service = service_fn(move |request| {
        arrival.end();
        requests.note(|it| it.requests += 1);
        router.call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .auto_date_header(false) // those who ask have clocks of their own
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A connection that broke or took too long has told its client by closing.
    loop {
        match timeout(CONNECTION_TIMEOUT, connection.as_mut()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) if error.is_timeout() => return counters.note(|it| it.timed_out += 1),
            Ok(Err(_)) => return counters.note(|it| it.broken += 1),
            Err(_) if handed_over.take() => {}
            Err(_) => return counters.note(|it| it.timed_out += 1),
        }
    }
}

/// Whether HTTP has a date for it. For another one hyper panics, whether an answer is to have one or not.
fn can_be_told(time: SystemTime) -> bool {
    let since_epoch = time.duration_since(UNIX_EPOCH);
    since_epoch.is_ok_and(|since| since < DATES_END)
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
        .layer(middleware::from_fn(
            async |request, next: middleware::Next| {
                let answer = timeout(REQUEST_TIMEOUT, next.run(request)).await;
                answer.unwrap_or_else(|_| {
                    plain_error(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "not finished in time; it may still take effect",
                    )
                })
            },
        ))
        .layer(Extension(live))
        .with_state(handle)
}

pub use backup::ReadIndexBody;
pub(crate) use counters::HttpCounts;
pub use metrics::documentation as metrics_documentation;
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
    let text = match report(&handle).await {
        Ok(report) => metrics::text(report),
        Err(error) => return plain_error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    };
    match text {
        Ok(text) => {
            let format = Format::asked_for(&headers);
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
