//! Who may ask for what. A path is for whom its router is for; whoever asks without a standing is a stranger.
use super::plain_error;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use quorumwire_node::tls::Standing;

/// What everybody may ask: strangers are told whether the server is up, for so are load balancers. Why it is
/// not is for those who are known.
pub async fn for_everybody(request: Request, next: Next) -> Response {
    let standing = standing_of(&request);
    let is_readiness = request.uri().path() == "/readyz";
    let answer = next.run(request).await;
    if standing == Standing::Nobody && answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        return plain_error(StatusCode::SERVICE_UNAVAILABLE, "not now");
    }
    if standing == Standing::Nobody && is_readiness && answer.status() == StatusCode::OK {
        return "ready\n".into_response();
    }
    answer
}

/// How the server and its cluster do.
pub async fn for_readers(request: Request, next: Next) -> Response {
    match standing_of(&request) {
        Standing::Operator | Standing::Reader => next.run(request).await,
        Standing::Nobody => plain_error(
            StatusCode::FORBIDDEN,
            "this takes a certificate of an authority in client-tls-ca or tls-ca: --tls-cert and --tls-key",
        ),
    }
}

/// Changes; and data, which clients need a password for.
pub async fn for_operators(request: Request, next: Next) -> Response {
    match standing_of(&request) {
        Standing::Operator => next.run(request).await,
        Standing::Reader | Standing::Nobody => plain_error(
            StatusCode::FORBIDDEN,
            "a change, or a backup, takes a certificate of an authority in tls-ca that names no replica, such as \
             operator.pem: --tls-cert and --tls-key",
        ),
    }
}

fn standing_of(request: &Request) -> Standing {
    let found = request.extensions().get::<Standing>();
    found.copied().unwrap_or(Standing::Nobody)
}
