//! Asks another replica's HTTP port how it is, with a limit on time and bytes. Asks for nothing but what may
//! be read.
use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use quorumwire_client::addresses::{connect_to_any, look_up};
use quorumwire_node::report::Report;
use quorumwire_wire::limits::MEMBERS_MAX;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

/// Largest report taken.
const REPORT_BYTES_MAX: usize = 1 << 20;

/// How replicas are asked here.
#[derive(Clone, Debug)]
pub enum Transport {
    /// In the clear: so is this replica's own port.
    Plain,
    /// Whoever answers shows a certificate of an authority that is known.
    Tls(Arc<ClientConfig>),
    /// This replica's port has TLS, and it knows no authority.
    None,
}

type Resolve = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up on other threads, where one goes on when nobody waits for it any more: one at a time for
/// each name.
#[derive(Clone)]
pub struct Lookups {
    resolve: Arc<Resolve>,
    under_way: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for Lookups {
    fn default() -> Self {
        Self::by(look_up)
    }
}

impl Lookups {
    fn by(resolve: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self {
            resolve: Arc::new(resolve),
            under_way: Arc::default(),
        }
    }

    /// Where this is; what is an address already takes no lookup.
    async fn addresses(&self, address: &str) -> io::Result<Vec<SocketAddr>> {
        if let Ok(known) = address.parse() {
            return Ok(vec![known]);
        }
        let lookup = self.begin(address)?;
        let resolve = Arc::clone(&self.resolve);
        let looked_up = tokio::task::spawn_blocking(move || resolve(&lookup.address));
        looked_up.await.map_err(io::Error::other)?
    }

    fn begin(&self, address: &str) -> io::Result<Lookup> {
        let mut under_way = under_way(&self.under_way);
        if under_way.len() >= MEMBERS_MAX || !under_way.insert(address.to_owned()) {
            let error = "looking up its name takes long; there is no answer yet";
            return Err(io::Error::other(error));
        }
        Ok(Lookup {
            address: address.to_owned(),
            under_way: Arc::clone(&self.under_way),
        })
    }
}

/// One under way, until it is dropped.
struct Lookup {
    address: String,
    under_way: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for Lookup {
    fn drop(&mut self) {
        under_way(&self.under_way).remove(&self.address);
    }
}

fn under_way(of: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the replica at `address` says, or why there is no answer.
pub async fn report(
    address: &str,
    transport: &Transport,
    lookups: &Lookups,
    within: Duration,
) -> Result<Report, String> {
    let until = Instant::now() + within;
    let answer = timeout(within, ask(address, transport, lookups, until)).await;
    answer.unwrap_or_else(|_| {
        Err(format!(
            "no answer from {address} within {} ms",
            within.as_millis()
        ))
    })
}

async fn ask(
    address: &str,
    transport: &Transport,
    lookups: &Lookups,
    until: Instant,
) -> Result<Report, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{address}: {error}");
    let connect = async || {
        let addresses = lookups.addresses(address).await;
        let addresses = addresses.map_err(|error| failed(&error))?;
        let stream = connect_to_any(&addresses, until).await;
        stream.map_err(|error| failed(&error))
    };
    match transport {
        Transport::Plain => exchange(connect().await?, address).await,
        Transport::Tls(config) => {
            let (host, _) = address.rsplit_once(':').unwrap_or((address, ""));
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = connector.connect(name, connect().await?).await;
            exchange(stream.map_err(|error| failed(&error))?, address).await
        }
        Transport::None => {
            Err("not asked: this replica has no tls-ca to know others by".to_owned())
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    address: &str,
) -> Result<Report, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{address}: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    let request = Request::get("/v1/status")
        .header("host", address)
        .body(Body::empty())
        .map_err(|error| failed(&error))?;
    let mut asked = pin!(async {
        let response = sender.send_request(request).await;
        read(response.map_err(|error| failed(&error))?).await
    });
    tokio::select! {
        biased;
        answer = &mut asked => answer,
        // The other side closes when it has said all: what it said is still to be taken.
        _ = connection => asked.await,
    }
}

async fn read(response: Response<hyper::body::Incoming>) -> Result<Report, String> {
    let status = response.status();
    let body = to_bytes(Body::new(response.into_body()), REPORT_BYTES_MAX).await;
    let body = body.map_err(|error| error.to_string())?;
    if status != StatusCode::OK {
        return Err(format!("HTTP status {status}"));
    }
    serde_json::from_slice(&body).map_err(|error| format!("no report: {error}"))
}

#[cfg(test)]
#[path = "others_test.rs"]
mod tests;
