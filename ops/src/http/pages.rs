//! What web pages of others may do here with the browser of somebody who reaches us: look at the dashboard's
//! address, and nothing else. A page has its reader's way to us, and maybe certificate.
use super::handle::Handle;
use super::{REPORT_TIMEOUT, dashboard, plain_error};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use quorumwire_node::admin::AdminRequest;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use tokio::time::timeout;

/// Says how far the page that asks is from here; browsers send it, and let no page write it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Our page changes nothing, so a page that does is another's; and nobody else's page reads here. Links may
/// lead to ours.
pub async fn none_of_others(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_read = request.method().is_safe();
    if !is_read && headers.contains_key(header::ORIGIN) {
        return plain_error(StatusCode::FORBIDDEN, "web pages may change nothing here");
    }
    let is_cross_site = headers
        .get(SEC_FETCH_SITE)
        .is_some_and(|it| it == "cross-site");
    if is_cross_site && !(is_read && dashboard::has(request.uri().path())) {
        return plain_error(StatusCode::FORBIDDEN, "web pages may read nothing here");
    }
    next.run(request).await
}

/// The names by which this replica is asked in the clear. Who gives a name of his own our address would have
/// browsers take us for his, and his pages read all of it; with TLS our certificate does not bear his name.
pub struct Names {
    handle: Option<Handle>,
    machine: String,
    /// Of `advertise-http`; the loop is asked for it once it is needed.
    advertised: OnceLock<String>,
}

impl Names {
    /// Of the replica behind this handle; none: of one that advertises no name.
    pub fn new(handle: Option<Handle>) -> Arc<Self> {
        let system = rustix::system::uname();
        Arc::new(Self {
            handle,
            machine: without_dot(&system.nodename().to_string_lossy()),
            advertised: OnceLock::new(),
        })
    }

    async fn are_ours(&self, headers: &HeaderMap) -> bool {
        for given in headers.get_all(header::HOST) {
            let given = given.to_str().ok().and_then(host_of);
            let Some(host) = given else {
                return false;
            };
            if !self.is_ours(&host).await {
                return false;
            }
        }
        true
    }

    async fn is_ours(&self, host: &str) -> bool {
        is_address(host) || host == "localhost" || host == self.machine || {
            let advertised = self.advertised().await;
            advertised.is_some_and(|it| it == host)
        }
    }

    async fn advertised(&self) -> Option<&str> {
        if self.advertised.get().is_none() {
            let asked = self.handle.as_ref()?.ask(AdminRequest::Report);
            let report = timeout(REPORT_TIMEOUT, asked).await.ok()?.ok()?;
            self.advertised.set(host_of(&report.http)?).ok(); // another request may have been faster
        }
        self.advertised.get().map(String::as_str)
    }
}

/// Browsers always name a host, so who names none is none.
pub async fn only_by_our_names(
    State(names): State<Arc<Names>>,
    request: Request,
    next: Next,
) -> Response {
    if names.are_ours(request.headers()).await {
        return next.run(request).await;
    }
    let error = if names.handle.is_some() {
        "this replica is asked by an IP address, localhost, its machine's host name or the name in advertise-http"
    } else {
        "this is asked by an IP address, localhost or its machine's host name"
    };
    plain_error(StatusCode::FORBIDDEN, error)
}

/// The host of `HOST:PORT` or `HOST`.
fn host_of(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    Some(without_dot(authority.host()))
}

fn without_dot(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix('.').unwrap_or(&name).to_owned()
}

fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.map_or_else(
        || host.parse::<Ipv4Addr>().is_ok(),
        |it| it.parse::<Ipv6Addr>().is_ok(),
    )
}

#[cfg(test)]
#[path = "pages_test.rs"]
mod tests;
