//! Asks another replica's HTTP port how it is, with a limit on time and bytes. Asks for nothing but what may
//! be read.
use crate::report::Report;
use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Largest report taken.
const REPORT_BYTES_MAX: usize = 1 << 20;

/// How replicas are asked here.
#[derive(Clone, Debug)]
pub enum Asks {
    /// In the clear: so is this replica's own port.
    Plainly,
    /// Whoever answers shows a certificate of an authority that is known.
    OverTls(Arc<ClientConfig>),
    /// This replica's port has TLS, and it knows no authority.
    Nobody,
}

/// What the replica at `address` says, or why there is no answer.
pub async fn report(address: &str, asks: &Asks, within: Duration) -> Result<Report, String> {
    let answer = timeout(within, ask(address, asks)).await;
    answer.unwrap_or_else(|_| {
        Err(format!(
            "no answer from {address} within {} ms",
            within.as_millis()
        ))
    })
}

async fn ask(address: &str, asks: &Asks) -> Result<Report, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{address}: {error}");
    let connect = async || {
        let stream = TcpStream::connect(address).await;
        stream.map_err(|error| failed(&error))
    };
    match asks {
        Asks::Plainly => exchange(connect().await?, address).await,
        Asks::OverTls(config) => {
            let (host, _) = address.rsplit_once(':').unwrap_or((address, ""));
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = connector.connect(name, connect().await?).await;
            exchange(stream.map_err(|error| failed(&error))?, address).await
        }
        Asks::Nobody => Err("not asked: this replica has no tls-ca to know others by".to_owned()),
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
