//! The page of `demo-network`, on loopback. It stops processes as root, so it is only for whoever was given
//! its address: a number that nobody can guess is a part of that. What is asked for is handed to the
//! demonstration.
use super::super::demo_host::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use anyhow::Context as _;
use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Json, Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use quorumwire_ops::http::{page_headers, serve_page};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::any::Any;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::sync::oneshot;

/// Requests that wait for the demonstration.
const ASKED_MAX: usize = 64;
const BODY_BYTES_MAX: usize = 4096;

/// The files: name, kind, and bytes.
const FILES: [(&str, &str, &str); 4] = [
    (
        "",
        "text/html; charset=utf-8",
        include_str!("page/page.html"),
    ),
    (
        "page.css",
        "text/css; charset=utf-8",
        include_str!("page/page.css"),
    ),
    (
        "page.js",
        "text/javascript; charset=utf-8",
        include_str!("page/page.js"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

/// What a reader asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// Have a value decided.
    Put {
        host: u8,
        key: String,
        value: String,
    },
    /// What a host has learned.
    Get { host: u8, key: String },
    /// Begin or end the load.
    Load { on: bool },
    /// Break something, or mend it.
    Machine { name: String, change: Change },
}

/// What is done to a machine.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Stop,
    Start,
    Cut,
    Join,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutBody {
    host: u8,
    key: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetBody {
    host: u8,
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadBody {
    on: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineBody {
    name: String,
    change: Change,
}

/// Why something is not done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    status: StatusCode,
    error: String,
}

impl Refusal {
    /// It makes no sense.
    pub fn bad(error: String) -> Self {
        let status = StatusCode::BAD_REQUEST;
        Self { status, error }
    }

    /// Not as things are.
    pub fn conflict(error: String) -> Self {
        let status = StatusCode::CONFLICT;
        Self { status, error }
    }

    /// It was tried, and nobody answered.
    pub fn no_answer(error: String) -> Self {
        let status = StatusCode::GATEWAY_TIMEOUT;
        Self { status, error }
    }

    fn forbidden(error: &str) -> Self {
        let (status, error) = (StatusCode::FORBIDDEN, error.to_owned());
        Self { status, error }
    }

    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.error }))).into_response()
    }
}

/// What came of it.
pub type Outcome = Result<Value, Refusal>;

/// A request, and who waits for its outcome.
pub struct Asked {
    pub request: Request,
    pub answer: oneshot::Sender<Outcome>,
}

/// What requests are served with.
struct Desk {
    token: String,
    state: Mutex<String>,
    asked: SyncSender<Asked>,
}

impl Desk {
    async fn ask(&self, request: Request) -> Response {
        let (answer, answered) = oneshot::channel();
        if self.asked.try_send(Asked { request, answer }).is_err() {
            let error = "too much is asked for at once".to_owned();
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Refusal { status, error }.into_response();
        }
        let ended = || Err(Refusal::no_answer("it ended before it answered".to_owned()));
        match answered.await.unwrap_or_else(|_| ended()) {
            Ok(value) => Json(value).into_response(),
            Err(refusal) => refusal.into_response(),
        }
    }
}

/// The page. It is served until this is dropped.
pub struct Page {
    address: String,
    desk: Arc<Desk>,
    asked: Receiver<Asked>,
    _served: Box<dyn Any>,
}

impl Page {
    /// Serves it at this port of the network in which the calling thread is.
    pub fn open(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("option port: cannot listen on 127.0.0.1:{port}"))?;
        let token = format!("{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?);
        let address = format!("http://{}/{token}/", listener.local_addr()?);
        let (ask, asked) = sync_channel(ASKED_MAX);
        let desk = Arc::new(Desk {
            token,
            state: Mutex::new("{}".to_owned()),
            asked: ask,
        });
        let served = serve_page(listener, router(Arc::clone(&desk)))?;
        Ok(Self {
            address,
            desk,
            asked,
            _served: served,
        })
    }

    /// Its address, with the number in it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What is shown from now on.
    pub fn show(&self, state: String) {
        *(self.desk.state.lock()).unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// What a reader asks for, if one does within this time.
    pub fn next_within(&self, at_most: Duration) -> Option<Asked> {
        self.asked.recv_timeout(at_most).ok()
    }
}

fn router(desk: Arc<Desk>) -> Router {
    let files = FILES
        .into_iter()
        .fold(Router::new(), |router, (name, kind, bytes)| {
            let answer = move || async move { (page_headers(kind), bytes) };
            router.route(&format!("/{{token}}/{name}"), get(answer))
        });
    files
        .route("/{token}/state", get(state))
        .route("/{token}/put", post(put))
        .route("/{token}/get", post(get_value))
        .route("/{token}/load", post(load))
        .route("/{token}/machine", post(machine))
        .fallback(async || refuse(StatusCode::NOT_FOUND, "there is no such path"))
        .method_not_allowed_fallback(async || {
            let error = "wrong method: put, get, load and machine take POST, all others GET";
            refuse(StatusCode::METHOD_NOT_ALLOWED, error)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&desk), only_with_token))
        .layer(from_fn(only_from_itself))
        .with_state(desk)
}

fn refuse(status: StatusCode, error: &str) -> Response {
    let error = error.to_owned();
    Refusal { status, error }.into_response()
}

async fn only_with_token(
    State(desk): State<Arc<Desk>>,
    request: HttpRequest,
    next: Next,
) -> Response {
    if has_token(request.uri().path(), &desk.token) {
        return next.run(request).await;
    }
    Refusal::forbidden("the address that the demonstration printed has a number in it: use that")
        .into_response()
}

/// How long the comparison takes says nothing of how much is right.
fn has_token(path: &str, token: &str) -> bool {
    let given = path.strip_prefix('/').and_then(|it| it.split('/').next());
    given.is_some_and(|it| bool::from(it.as_bytes().ct_eq(token.as_bytes())))
}

/// No other page reads or changes anything with the reader's browser, not even one whose name leads here.
async fn only_from_itself(request: HttpRequest, next: Next) -> Response {
    match asked_from(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn asked_from(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|it| it.to_str().ok());
    let host = host.filter(|it| hosts.next().is_none() && is_loopback(it));
    let Some(host) = host else {
        return Err(Refusal::forbidden(
            "this page is asked for at 127.0.0.1 or localhost",
        ));
    };
    let own = format!("http://{host}");
    let is_other = |it: &axum::http::HeaderValue| it.as_bytes() != own.as_bytes();
    if headers.get_all(header::ORIGIN).iter().any(is_other) {
        return Err(Refusal::forbidden("other web pages may do nothing here"));
    }
    Ok(())
}

/// Whether this host and port are of this machine, by name. Ports differ where somebody passes one on.
fn is_loopback(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "80"));
    let is_port = port.parse::<u16>().is_ok();
    is_port && (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
}

async fn state(State(desk): State<Arc<Desk>>) -> Response {
    let state = (desk.state.lock()).unwrap_or_else(PoisonError::into_inner);
    (page_headers("application/json"), state.clone()).into_response()
}

type Body<T> = Result<Json<T>, JsonRejection>;

/// Takes a body as a request, and has it carried out.
async fn ask<T: DeserializeOwned>(
    desk: &Desk,
    body: Body<T>,
    request: impl FnOnce(T) -> Result<Request, Refusal>,
) -> Response {
    let body = body.map(|Json(body)| body).map_err(|rejected| Refusal {
        status: rejected.status(),
        error: rejected.body_text(),
    });
    match body.and_then(request) {
        Ok(request) => desk.ask(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn put(State(desk): State<Arc<Desk>>, body: Body<PutBody>) -> Response {
    ask(&desk, body, |PutBody { host, key, value }| {
        let key = checked("key", key, 1, KEY_BYTES_MAX)?;
        let value = checked("value", value, 0, VALUE_BYTES_MAX)?;
        Ok(Request::Put { host, key, value })
    })
    .await
}

async fn get_value(State(desk): State<Arc<Desk>>, body: Body<GetBody>) -> Response {
    ask(&desk, body, |GetBody { host, key }| {
        let key = checked("key", key, 1, KEY_BYTES_MAX)?;
        Ok(Request::Get { host, key })
    })
    .await
}

async fn load(State(desk): State<Arc<Desk>>, body: Body<LoadBody>) -> Response {
    ask(&desk, body, |LoadBody { on }| Ok(Request::Load { on })).await
}

async fn machine(State(desk): State<Arc<Desk>>, body: Body<MachineBody>) -> Response {
    ask(&desk, body, |MachineBody { name, change }| {
        Ok(Request::Machine { name, change })
    })
    .await
}

fn checked(what: &str, text: String, min: usize, max: usize) -> Result<String, Refusal> {
    let bytes = text.len();
    if (min..=max).contains(&bytes) {
        return Ok(text);
    }
    Err(Refusal::bad(format!(
        "the {what} has {bytes} bytes; allowed: {min} to {max}"
    )))
}

#[cfg(test)]
#[path = "page_test.rs"]
mod tests;
