//! Asks replicas by HTTP, with a limit on every wait and every answer. Which replica to ask is decided
//! elsewhere.
use crate::http::ErrorBody;
use crate::report::Report;
use crate::tls::{provider, read_certificates, read_key};
use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// How long a replica may take to describe itself.
pub const REPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request that changes something may take; longer than the server allows itself.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(65);
/// Largest answer read.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// How replicas are asked for the rest of this process; none: in the clear.
static SECURED: OnceLock<TlsConfig> = OnceLock::new();

/// How to ask replicas whose HTTP port has TLS (`client-tls`).
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsFlags {
    /// Ask over TLS; whoever answers shows a certificate of an authority in this file (PEM)
    #[arg(long = "tls-ca", value_name = "FILE", env = "QUORUMWIRE_HTTP_TLS_CA")]
    authorities: Option<PathBuf>,
    /// What to show, such as operator.pem, which lets one change something
    #[arg(long = "tls-cert", value_name = "FILE", env = "QUORUMWIRE_HTTP_TLS_CERT", requires_all = ["authorities", "key"])]
    certificate: Option<PathBuf>,
    /// The key of --tls-cert (PEM)
    #[arg(
        long = "tls-key",
        value_name = "FILE",
        env = "QUORUMWIRE_HTTP_TLS_KEY",
        requires = "certificate"
    )]
    key: Option<PathBuf>,
}

impl TlsFlags {
    /// From now on everybody is asked so. Only the first call counts: a process asks one cluster.
    pub fn apply(&self) -> anyhow::Result<()> {
        let Some(authorities) = &self.authorities else {
            return Ok(());
        };
        let roots = read_certificates(authorities).context("--tls-ca")?;
        let roots: Vec<_> = roots
            .iter()
            .map(|it| Certificate::from_der(it).to_owned())
            .collect();
        let own = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = read_certificates(certificate).context("--tls-cert")?;
                let chain: Vec<_> = chain
                    .iter()
                    .map(|it| Certificate::from_der(it).to_owned())
                    .collect();
                read_key(key).context("--tls-key")?; // nobody else can read it
                let key = PrivateKey::from_pem(&std::fs::read(key)?).context("--tls-key")?;
                Some(ClientCert::new_with_certs(&chain, key))
            }
            (None | Some(_), _) => None,
        };
        let config = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .client_cert(own)
            .unversioned_rustls_crypto_provider(provider())
            .build();
        SECURED.get_or_init(|| config);
        Ok(())
    }
}

/// Why a replica did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It could not be reached: nothing has happened.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable {
        /// The address tried.
        address: String,
        /// Why.
        reason: String,
    },
    /// The connection broke or took too long: it may have happened, or not.
    #[error("{address} did not answer: {reason} (it may have been carried out)")]
    Unanswered {
        /// The address asked.
        address: String,
        /// Why.
        reason: String,
    },
    /// It refused.
    #[error("{address} refused: {}", body.error)]
    Refused {
        /// The address asked.
        address: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        body: ErrorBody,
    },
}

/// What a replica tells about itself.
pub fn report(address: &str, timeout: Duration) -> Result<Report, AskError> {
    get(address, "/v1/status", timeout)
}

/// Asks for something that changes nothing.
pub fn get<T: DeserializeOwned>(
    address: &str,
    path: &str,
    timeout: Duration,
) -> Result<T, AskError> {
    let sent = agent(timeout).get(url(address, path)).call();
    answer(address, sent)
}

/// Asks for a change.
pub fn post<T: DeserializeOwned>(
    address: &str,
    path: &str,
    body: &impl Serialize,
) -> Result<T, AskError> {
    let sent = agent(CHANGE_TIMEOUT)
        .post(url(address, path))
        .send_json(body);
    answer(address, sent)
}

/// Asks for something long; its bytes are read by the caller within `timeout`.
pub fn stream(address: &str, path: &str, timeout: Duration) -> Result<impl Read + use<>, AskError> {
    let sent = agent(timeout).get(url(address, path)).call();
    let response = sent.map_err(|error| lost(address, &error))?;
    if response.status() == StatusCode::OK {
        return Ok(response.into_body().into_reader());
    }
    Err(refused(address, response))
}

fn url(address: &str, path: &str) -> String {
    let scheme = if SECURED.get().is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{address}{path}")
}

fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .tls_config(SECURED.get().cloned().unwrap_or_default())
        .timeout_global(Some(timeout))
        .timeout_connect(Some(timeout.min(REPORT_TIMEOUT)))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build()
        .into()
}

/// What a replica has answered, if that is what was asked for.
pub fn answer<T: DeserializeOwned>(
    address: &str,
    sent: Result<Response<ureq::Body>, ureq::Error>,
) -> Result<T, AskError> {
    let mut response = sent.map_err(|error| lost(address, &error))?;
    if response.status() != StatusCode::OK {
        return Err(refused(address, response));
    }
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    body.read_json().map_err(|error| lost(address, &error))
}

fn refused(address: &str, mut response: Response<ureq::Body>) -> AskError {
    let status = response.status();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    let body = body.read_json().unwrap_or_else(|_| ErrorBody {
        error: format!("HTTP status {status}"),
        leader: None,
        leader_http: None,
    });
    AskError::Refused {
        address: address.to_owned(),
        status: status.as_u16(),
        body,
    }
}

fn lost(address: &str, error: &ureq::Error) -> AskError {
    let never_sent = match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::BadUri(_)
        | ureq::Error::Tls(_)
        | ureq::Error::Rustls(_)
        | ureq::Error::Http(_)
        | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
        ureq::Error::Io(error) => {
            let by_tls = error.get_ref().and_then(|it| it.downcast_ref());
            // We did not believe what it showed, so we said nothing.
            let is_not_believed = matches!(by_tls, Some(rustls::Error::InvalidCertificate(_)));
            is_not_believed || error.kind() == std::io::ErrorKind::ConnectionRefused
        }
        // Foreign and growing: what is not known to be harmless is not.
        _ => false,
    };
    let (address, reason) = (address.to_owned(), error.to_string());
    if never_sent {
        AskError::Unreachable { address, reason }
    } else {
        AskError::Unanswered { address, reason }
    }
}
