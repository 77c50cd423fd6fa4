//! What a switch of a Paxos deployment says of itself over HTTP. All of it is read out of what the switch's
//! loop has said last: nobody waits for the loop, nor it for anybody, and nothing can be changed.
mod metrics;

use super::counters::HttpCounters;
use super::pages::{self, Names};
use super::port::{HttpThread, Limits, Port};
use super::{BODY_BYTES_MAX, metrics_page, plain_error, within_time};
use axum::extract::{DefaultBodyLimit, Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
pub(super) use metrics::documentation;
use quorumwire_paxos_process::{StatusCell, SwitchIdentity, SwitchReport};
use std::any::Any;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

/// Connections served at once, those without a request's whole head included: the descriptors of the switch's
/// disk and plane are not to lack because of them.
const CONNECTIONS_MAX: usize = 64;
const ARRIVALS_MAX: usize = 32;

/// Whose page it is.
#[derive(Clone)]
struct Shown {
    identity: Arc<SwitchIdentity>,
    status: Arc<StatusCell>,
    counters: Arc<HttpCounters>,
}

impl Shown {
    fn report(&self) -> SwitchReport {
        let status = self.status.get();
        let mut report = SwitchReport::new(&self.identity, &status, Instant::now());
        self.counters.report(&mut report.counters);
        report
    }
}

/// Serves a switch's page until the answer is dropped; fails if no thread can be started.
///
/// # Errors
/// The system has no thread, or no event queue, for it.
pub fn serve(
    listener: TcpListener,
    identity: SwitchIdentity,
    status: Arc<StatusCell>,
) -> anyhow::Result<Box<dyn Any>> {
    let counters = Arc::<HttpCounters>::default();
    let router = router(Shown {
        identity: Arc::new(identity),
        status,
        counters: Arc::clone(&counters),
    });
    let port = Port {
        router,
        tls: None,
        counters,
    };
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        arrivals: ARRIVALS_MAX,
    };
    Ok(Box::new(HttpThread::start(listener, port, limits, || {})?))
}

fn router(shown: Shown) -> Router {
    let names = middleware::from_fn_with_state(Names::new(None), pages::only_by_our_names);
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics_text))
        .route("/v1/status", get(status))
        .fallback(async || {
            let error = "no such path; a switch has /healthz /readyz /metrics /v1/status";
            plain_error(StatusCode::NOT_FOUND, error)
        })
        .method_not_allowed_fallback(async || {
            let error = "wrong method for this path: a switch is only read here, by GET";
            plain_error(StatusCode::METHOD_NOT_ALLOWED, error)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(pages::none_of_others))
        .layer(middleware::from_fn(within_time))
        .layer(names)
        .with_state(shown)
}

async fn health(State(shown): State<Shown>) -> Response {
    let report = shown.report();
    if report.is_alive() {
        return "ok\n".into_response();
    }
    let error = format!("the switch has said nothing for {} ms", report.silent_ms);
    plain_error(StatusCode::SERVICE_UNAVAILABLE, &error)
}

async fn readiness(State(shown): State<Shown>) -> Response {
    let report = shown.report();
    let faults = || report.faults.iter();
    if report.ready && report.is_alive() {
        let faults = faults().map(|fault| format!("fault: {fault}\n"));
        return format!("ready\n{}", faults.collect::<String>()).into_response();
    }
    let silence = format!("; it has said nothing for {} ms", report.silent_ms);
    let silence = if report.is_alive() { "" } else { &silence };
    let mut error = format!("not ready: {}{silence}", report.in_words());
    for fault in faults() {
        error.push_str("; ");
        error.push_str(fault);
    }
    plain_error(StatusCode::SERVICE_UNAVAILABLE, &error)
}

async fn metrics_text(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    metrics_page(metrics::text(shown.report()), &headers)
}

async fn status(State(shown): State<Shown>) -> Response {
    Json(shown.report()).into_response()
}

#[cfg(test)]
#[path = "switch_page_test.rs"]
mod tests;
