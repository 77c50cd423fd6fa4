//! Asks replicas by HTTP, with a limit on every wait and every answer. Which replica to ask is decided
//! elsewhere.
use anyhow::{Context as _, ensure};
use quorumwire_client::addresses::look_up;
use quorumwire_node::foreign_text::plain;
use quorumwire_node::report::Report;
use quorumwire_node::tls::{provider, read_certificates, read_key, trusting};
use quorumwire_ops::http::ErrorBody;
use quorumwire_paxos_process::SwitchReport;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::Agent;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// How long a replica may take to describe itself.
pub const REPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request that changes something may take; longer than the server allows itself.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(65);
/// How long a port may take to show whether it speaks TLS.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);
/// Where everybody tells about itself.
const STATUS: &str = "/v1/status";
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
        // The agent's own look at the clock would panic.
        let is_after_1970 = SystemTime::now() >= UNIX_EPOCH;
        ensure!(
            is_after_1970,
            "this machine's clock is before 1970: no certificate is valid then"
        );
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
        /// Nobody listens there.
        is_refused: bool,
    },
    /// It cannot be asked so, now or later: nothing has happened.
    #[error("{address}: {reason}")]
    Barred {
        /// The address tried.
        address: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The connection broke or took too long: a change may have happened, or not.
    #[error("{address} did not answer: {reason}{}", if *is_change { " (it may have been carried out)" } else { "" })]
    Unanswered {
        /// The address asked.
        address: String,
        /// Why.
        reason: String,
        /// Whether it was asked for a change.
        is_change: bool,
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

impl AskError {
    /// Whether every later try would come to the same.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Barred { .. } => true,
            Self::Unreachable { .. } | Self::Unanswered { .. } => false,
            Self::Refused { status, .. } => {
                matches!(status, 400..500) && !matches!(status, 408 | 409 | 421 | 429)
            }
        }
    }
}

/// What a replica tells about itself.
pub fn report(address: &str, timeout: Duration) -> Result<Report, AskError> {
    let said: serde_json::Value = get(address, STATUS, timeout)?;
    let address = address.to_owned();
    if let Ok(switch) = SwitchReport::of_json(&said) {
        let who = plain(&switch.in_words());
        let reason = format!("it is a switch of a Paxos deployment, no replica: {who}");
        return Err(AskError::Barred { address, reason });
    }
    serde_json::from_value(said).map_err(|error| AskError::Unanswered {
        address,
        reason: format!("what it says is no status: {error}"),
        is_change: false,
    })
}

/// What a switch of a Paxos deployment tells about itself; none: it is no switch.
pub fn switch(address: &str, timeout: Duration) -> Option<SwitchReport> {
    let said: serde_json::Value = get(address, STATUS, timeout).ok()?;
    SwitchReport::of_json(&said).ok()
}

/// Asks for something that changes nothing.
pub fn get<T: DeserializeOwned>(
    address: &str,
    path: &str,
    timeout: Duration,
) -> Result<T, AskError> {
    let sent = agent(timeout).get(url(address, path)).call();
    answer(address, sent, RequestKind::Read)
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
    answer(address, sent, RequestKind::Change)
}

/// Asks for something long; its bytes are read by the caller within `timeout`.
pub fn stream(address: &str, path: &str, timeout: Duration) -> Result<impl Read + use<>, AskError> {
    let sent = agent(timeout).get(url(address, path)).call();
    let response = sent.map_err(|error| lost(address, &error, RequestKind::Read))?;
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

/// What it is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestKind {
    /// Something that changes nothing.
    Read,
    /// A change.
    Change,
}

/// What a replica has answered, if that is what was asked for.
pub fn answer<T: DeserializeOwned>(
    address: &str,
    sent: Result<Response<ureq::Body>, ureq::Error>,
    kind: RequestKind,
) -> Result<T, AskError> {
    let mut response = sent.map_err(|error| lost(address, &error, kind))?;
    if response.status() != StatusCode::OK {
        return Err(refused(address, response));
    }
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    body.read_json()
        .map_err(|error| lost(address, &error, kind))
}

fn refused(address: &str, mut response: Response<ureq::Body>) -> AskError {
    let status = response.status();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    let mut body: ErrorBody = body.read_json().unwrap_or_else(|_| ErrorBody {
        error: format!("HTTP status {status}"),
        code: None,
        leader: None,
        leader_http: None,
    });
    body.error = plain(&body.error);
    AskError::Refused {
        address: address.to_owned(),
        status: status.as_u16(),
        body,
    }
}

/// Why there is no answer. With whom no connection came about, or a handshake of TLS that they take for done,
/// was sent nothing that they could carry out.
fn lost(address: &str, error: &ureq::Error, kind: RequestKind) -> AskError {
    let of_io = if let ureq::Error::Io(error) = error {
        Some(error)
    } else {
        None
    };
    let by_tls = of_io.and_then(|error| error.get_ref()?.downcast_ref());
    let by_tls = if let ureq::Error::Rustls(error) = error {
        Some(error)
    } else {
        by_tls
    };
    let reason = by_tls.and_then(barred_by_tls);
    let is_plain = SECURED.get().is_none();
    let reason = reason.or_else(|| {
        let is_silent = matches!(error, ureq::Error::Protocol(_)) || of_io.is_some();
        (is_plain && is_silent && speaks_tls(address)).then(|| needs_tls(kind))
    });
    let address = address.to_owned();
    if let Some(reason) = reason {
        return AskError::Barred { address, reason };
    }
    let is_other = matches!(error, ureq::Error::Protocol(_));
    if is_other && kind == RequestKind::Read {
        let reason = NO_HTTP.to_owned(); // now and later
        return AskError::Barred { address, reason };
    }
    let is_cut = of_io.is_some_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
        )
    });
    let reason = if is_other {
        NO_HTTP.to_owned()
    } else if is_cut {
        CUT.to_owned()
    } else {
        // That it came from the system is no news to people.
        of_io.map_or_else(|| error.to_string(), ToString::to_string)
    };
    if was_never_sent(error) {
        return AskError::Unreachable {
            address,
            reason,
            is_refused: of_io.is_some_and(|it| it.kind() == ErrorKind::ConnectionRefused),
        };
    }
    AskError::Unanswered {
        address,
        reason,
        is_change: kind == RequestKind::Change,
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "foreign: what is not known to be harmless is not"
)]
fn was_never_sent(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::BadUri(_)
        | ureq::Error::Tls(_)
        | ureq::Error::Rustls(_)
        | ureq::Error::Http(_)
        | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
        ureq::Error::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        _ => false,
    }
}

/// What to do about whom we ask in the clear.
pub fn needs_tls(kind: RequestKind) -> String {
    let more = match kind {
        RequestKind::Read => "",
        RequestKind::Change => " (for changes also --tls-cert and --tls-key)",
    };
    format!("it speaks TLS only: name the authority of its certificate by --tls-ca FILE{more}")
}

/// What to say of somebody who answers in another protocol.
const NO_HTTP: &str = "it does not speak HTTP: give the address that its server has in listen-http";

/// What to say of somebody who ends the connection without an answer: a replica that ends, or another
/// protocol's port.
const CUT: &str = "it closed the connection. If it does so again, it is not HTTP: --addr takes the address that its \
                   server has in listen-http";

/// What a handshake says that comes to the same whenever it is tried; none: it says something else.
#[expect(clippy::wildcard_enum_match_arm, reason = "foreign and growing")]
fn barred_by_tls(error: &rustls::Error) -> Option<String> {
    match error {
        // We did not believe what it showed, so we said nothing.
        rustls::Error::InvalidCertificate(_) => {
            Some(format!("its certificate does not fit --tls-ca: {error}"))
        }
        rustls::Error::InvalidMessage(_) => {
            Some("it does not speak TLS: leave --tls-ca out".to_owned())
        }
        // It refuses our certificate after our side is done; until its own side is, it carries out nothing.
        rustls::Error::AlertReceived(why) if is_about_handshakes(*why) => Some(format!(
            "it refused the certificate of --tls-cert, or wants one: {error}"
        )),
        _ => None,
    }
}

fn is_about_handshakes(alert: rustls::AlertDescription) -> bool {
    use rustls::AlertDescription as Alert;
    matches!(
        alert,
        Alert::HandshakeFailure
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::ProtocolVersion
            | Alert::CertificateRequired
    )
}

/// Whether who did not answer in the clear answers a greeting by TLS.
pub fn speaks_tls(address: &str) -> bool {
    greeting_is_answered(address).unwrap_or(false) // whatever went wrong: it has not shown that it does
}

fn greeting_is_answered(address: &str) -> anyhow::Result<bool> {
    let config = trusting(RootCertStore::empty())?.with_no_client_auth();
    let anybody = ServerName::try_from("replica")?;
    let mut greeting = ClientConnection::new(Arc::new(config), anybody)?;
    let found = look_up(address)?;
    let mut tried = found.iter();
    let connect = |to| TcpStream::connect_timeout(to, GREETING_TIMEOUT).ok();
    let mut stream = tried.find_map(connect).context("nothing listens there")?;
    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
    stream.set_write_timeout(Some(GREETING_TIMEOUT))?;
    greeting.write_tls(&mut stream)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    // Records of TLS begin with what they are: a handshake's part, or an alert.
    Ok(matches!(kind[0], 22 | 21))
}
