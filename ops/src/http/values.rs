//! Values for learners: what an operator gives up.
use super::handle::Handle;
use super::{bodies, carried_out, done};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::Response;
use quorumwire_node::admin::AdminRequest;
use serde::{Deserialize, Serialize};

/// Body of `POST /v1/values/lost`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LostRequest {
    /// Nobody is given values up to this instance any more.
    pub upto: u64,
}

pub async fn declare_lost(
    State(handle): State<Handle>,
    body: Result<Json<LostRequest>, JsonRejection>,
) -> Response {
    let LostRequest { upto } = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return bodies::refused(&rejection, bodies::LOST),
    };
    let asked = handle.ask(|answer| AdminRequest::DeclareLost(upto, answer));
    done(carried_out(&handle, asked).await)
}
