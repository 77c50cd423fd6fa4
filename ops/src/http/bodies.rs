//! A request's body that makes no sense: what is wrong with it, and what is allowed.
use super::plain_error;
use axum::extract::rejection::JsonRejection;
use axum::response::Response;

/// Of `POST /v1/members`.
pub const MEMBERS: &str = r#"{"action":"add","id":N,"peer":"HOST:PORT"}, with "learner":true or without; {"action":"promote","id":N}; {"action":"remove","id":N}; {"action":"quorum","quorum":"majority"} or "all""#;
/// Of `POST /v1/memory`.
pub const MEMORY: &str =
    r#"{"limit_bytes":N,"policy":"refuse"} or "evict", or one of both; 0 bytes: no limit"#;
/// Of `POST /v1/transfer`.
pub const TRANSFER: &str = r#"{"to":N}, or {} for the most up-to-date voter"#;
/// Of `POST /v1/values/lost`.
pub const LOST: &str = r#"{"upto":INSTANCE}"#;

/// Says both.
pub fn refused(rejection: &JsonRejection, allowed: &str) -> Response {
    let error = format!("{}; allowed: {allowed}", rejection.body_text());
    plain_error(rejection.status(), &error)
}
