//! What TLS needs out of files: who may speak as which replica, and under which certificates this process
//! speaks. TLS 1.3 only. Makes no certificate and moves no byte.
use crate::keys::read_private;
use anyhow::{Context as _, bail, ensure};
use quorumwire_client::CertificateTime;
use quorumwire_interfaces::{ReplicaId, counters_by};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, ConfigBuilder, Connection, RootCertStore,
    ServerConfig, ServerConnection,
};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Largest file of certificates, or of a key.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Most certificates in one file.
const CERTIFICATES_MAX: usize = 16;
/// How long before its end a certificate is complained about.
const EXPIRY_NOTICE: Duration = Duration::from_hours(30 * 24);
/// The last part of every name in a replica's certificate.
const NAMES_END: &str = "quorumwire";
/// How the part that stands for a cluster begins if it is not the cluster's name itself.
const HASHED: &str = "sha256-";
/// Longest part of a DNS name.
const LABEL_BYTES_MAX: usize = 63;

/// Files with which replicas know each other.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerFiles {
    /// The authorities whose certificates are accepted.
    pub authorities: PathBuf,
    /// What this process shows.
    pub own: OwnFiles,
}

/// A certificate and its key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnFiles {
    /// The certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key; readable by its owner only.
    pub key: PathBuf,
}

/// Why a handshake came to nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TlsRefusal {
    /// It showed no certificate.
    NoCertificate,
    /// No authority of ours has signed it.
    UnknownAuthority,
    /// Its time is over, or has not come.
    Expired,
    /// It is another's: of another cluster, replica or purpose.
    WrongName,
    /// The other side refused us.
    ByOtherSide,
    /// No TLS 1.3, or a broken one.
    Malformed,
}

counters_by! {
    /// Handshakes that came to nothing, by reason.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct TlsRefusals: TlsRefusal {
        /// Peers refused because they showed no certificate
        NoCertificate: "peer_tls_refused_no_certificate",
        /// Peers refused because no authority of tls-ca had signed their certificate
        UnknownAuthority: "peer_tls_refused_unknown_authority",
        /// Peers refused because their certificate had expired or was not valid yet
        Expired: "peer_tls_refused_expired",
        /// Peers refused because their certificate was that of another replica, cluster or purpose
        WrongName: "peer_tls_refused_wrong_name",
        /// Peers that refused our certificate or our TLS
        ByOtherSide: "peer_tls_refused_by_other_side",
        /// Peers refused because they did not speak TLS 1.3
        Malformed: "peer_tls_refused_malformed",
    }
}

impl TlsRefusal {
    /// What an error means.
    #[expect(clippy::wildcard_enum_match_arm, reason = "foreign and growing")]
    pub fn of(error: &rustls::Error) -> Self {
        use CertificateError as Bad;
        match error {
            rustls::Error::NoCertificatesPresented => Self::NoCertificate,
            rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
                Self::UnknownAuthority
            }
            rustls::Error::InvalidCertificate(
                Bad::Expired
                | Bad::ExpiredContext { .. }
                | Bad::NotValidYet
                | Bad::NotValidYetContext { .. },
            ) => Self::Expired,
            rustls::Error::InvalidCertificate(
                Bad::NotValidForName
                | Bad::NotValidForNameContext { .. }
                | Bad::InvalidPurpose
                | Bad::InvalidPurposeContext { .. },
            ) => Self::WrongName,
            rustls::Error::AlertReceived(_) => Self::ByOtherSide,
            _ => Self::Malformed,
        }
    }
}

impl std::fmt::Display for TlsRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoCertificate => "it showed no certificate",
            Self::UnknownAuthority => "its certificate is not signed by an authority in tls-ca",
            Self::Expired => "its certificate has expired, or is not valid yet",
            Self::WrongName => "its certificate belongs to another replica",
            Self::ByOtherSide => "it refused our certificate, or our TLS",
            Self::Malformed => "it does not speak TLS 1.3",
        })
    }
}

/// Until when something is valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Expiry {
    what: String,
    not_after: SystemTime,
}

impl Expiry {
    /// What is to be said about it now, if anything.
    pub fn complaint(&self, now: SystemTime) -> Option<String> {
        let what = &self.what;
        match self.not_after.duration_since(now) {
            Err(_) => Some(format!("{what} has expired")),
            Ok(left) if left < EXPIRY_NOTICE => Some(format!(
                "{what} expires in {} days",
                left.as_secs() / (24 * 60 * 60)
            )),
            Ok(_) => None,
        }
    }
}

/// How replicas speak to each other.
pub(crate) struct PeerTls {
    accepts: Arc<ServerConfig>,
    dials: Arc<ClientConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
    /// As certificates have it.
    cluster: String,
    cluster_name: String,
    /// Until when the files are good.
    pub(crate) expiries: Vec<Expiry>,
}

impl PeerTls {
    /// Reads and checks the files. Refused: the certificate is not this replica's, or of no authority among
    /// those accepted; its key is another's, or can be read by others.
    pub fn load(files: &PeerFiles, cluster: &str, me: ReplicaId) -> anyhow::Result<Self> {
        let authorities = read_certificates(&files.authorities).context("option tls-ca")?;
        let own = read_certificates(&files.own.certificate).context("option tls-cert")?;
        let key = read_key(&files.own.key).context("option tls-key")?;
        let expiries = expiries(&[("tls-ca", &authorities), ("tls-cert", &own)])?;
        let roots = Arc::new(store_of(authorities).context("option tls-ca")?);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider()).build()?;
        let tls = Self {
            accepts: accepting(Arc::clone(&verifier), own.clone(), key.clone_key())
                .context(PEER_PAIR)?
                .into(),
            dials: dialing(roots, own.clone(), key).context(PEER_PAIR)?.into(),
            verifier,
            cluster: cluster_label(cluster),
            cluster_name: cluster.to_owned(),
            expiries,
        };
        tls.check_own(&own, me).context("option tls-cert")?;
        Ok(tls)
    }

    fn check_own(&self, own: &[CertificateDer<'static>], me: ReplicaId) -> anyhow::Result<()> {
        let Ok(named) = self.replica_of(Some(own)) else {
            let cluster = &self.cluster_name;
            bail!(
                "the certificate does not name replica {me} of the cluster {cluster:?} ({}); `quorumwire keys new \
                 --cluster {cluster} --dir DIR --members ...` makes keys for it",
                name_of(me, &self.cluster)
            );
        };
        ensure!(
            named == me,
            "the certificate belongs to replica {named}, this is replica {me}"
        );
        match self.verify(own) {
            // Said as a fault: whoever looks at this replica is to see why nobody talks to it.
            Ok(()) | Err(TlsRefusal::Expired) => Ok(()),
            Err(refusal) => bail!("no other replica would accept it: {refusal}"),
        }
    }

    /// For a connection that came in.
    pub fn accept(&self) -> Result<Connection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.accepts)).map(Connection::from)
    }

    /// For a connection to this replica.
    pub(crate) fn dial(&self, to: ReplicaId) -> Result<Connection, rustls::Error> {
        let name = ServerName::try_from(name_of(to, &self.cluster))
            .map_err(|_| CertificateError::NotValidForName)?;
        ClientConnection::new(Arc::clone(&self.dials), name).map(Connection::from)
    }

    /// Which replica of this cluster a verified certificate names.
    pub(crate) fn replica_of(
        &self,
        chain: Option<&[CertificateDer<'_>]>,
    ) -> Result<ReplicaId, TlsRefusal> {
        let end = chain.and_then(<[_]>::first);
        let end = end.ok_or(TlsRefusal::NoCertificate)?;
        let names = dns_names(end)?;
        let mut replicas = names.iter().filter_map(|name| self.replica_in(name));
        match (replicas.next(), replicas.next()) {
            (Some(id), None) => Ok(id),
            (None | Some(_), _) => Err(TlsRefusal::WrongName),
        }
    }

    /// The id in `replica-3.CLUSTER.quorumwire`.
    fn replica_in(&self, name: &str) -> Option<ReplicaId> {
        let digits = name.strip_prefix("replica-")?.split('.').next()?;
        let id = ReplicaId(digits.parse().ok()?);
        (name == name_of(id, &self.cluster)).then_some(id)
    }

    /// Whether a new connection under this certificate would be let in now.
    pub fn verify(&self, chain: &[CertificateDer<'_>]) -> Result<(), TlsRefusal> {
        verify_by(&self.verifier, chain)
    }
}

/// How clients and people are spoken to.
pub struct ClientTls {
    /// At the ports for clients, who say by certificate or by password who they are.
    pub ports: Arc<ServerConfig>,
    /// At the port for HTTP.
    pub http: Arc<ServerConfig>,
    /// What somebody who asks over HTTP may do.
    pub people: People,
    /// How the other replicas' ports for HTTP are asked; none: there is no authority to know them by.
    pub asks: Option<Arc<ClientConfig>>,
    /// Until when the files are good.
    pub(crate) expiries: Vec<Expiry>,
}

/// Who asks over HTTP: known by certificates of these authorities.
#[derive(Clone, Debug, Default)]
pub struct People {
    /// Of those who may change something; none: everybody may, unless all must be known.
    operators: Option<Arc<dyn ClientCertVerifier>>,
    /// Whoever shows nothing is told next to nothing.
    are_all_known: bool,
}

/// What somebody may do over HTTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Read and change.
    Operator,
    /// Read.
    Reader,
    /// Learn whether the server is up.
    Nobody,
}

impl People {
    /// What somebody may do who has shown this, which is of an authority of ours if it is anything. Replicas
    /// read, to show each other's figures: the key of one gives no commands.
    #[must_use]
    pub fn standing(&self, shown: Option<&[CertificateDer<'_>]>) -> Standing {
        if self.are_all_known && shown.is_none() {
            return Standing::Nobody;
        }
        let Some(operators) = &self.operators else {
            // A certificate of a client makes nobody an operator, also where there are none.
            return if self.are_all_known {
                Standing::Reader
            } else {
                Standing::Operator
            };
        };
        let is_operator = |chain: &[CertificateDer<'_>]| {
            verify_by(operators, chain).is_ok() && !is_replicas(chain)
        };
        if shown.is_some_and(is_operator) {
            Standing::Operator
        } else {
            Standing::Reader
        }
    }
}

impl ClientTls {
    /// Reads and checks the files. `peers`: whose certificates let people change something over HTTP, and
    /// what this replica shows when it asks others there; `clients`: whose certificates clients must show.
    pub fn load(
        own: &OwnFiles,
        peers: Option<&PeerFiles>,
        clients: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let chain = read_certificates(&own.certificate).context("option client-tls-cert")?;
        let key = read_key(&own.key).context("option client-tls-key")?;
        let read = |path: Option<&Path>, option: &'static str| {
            let read = path.map(read_certificates).transpose();
            Ok::<_, anyhow::Error>(read.context(option)?.unwrap_or_default())
        };
        let operators = peers.map(|files| files.authorities.as_path());
        let operators = read(operators, "option tls-ca")?;
        let clients = read(clients, "option client-tls-ca")?;
        check_apart(&operators, &clients)?;
        let expiries = expiries(&[("client-tls-cert", &chain), ("client-tls-ca", &clients)])?;
        let people = People {
            operators: verifier(&operators)
                .context("option tls-ca")?
                .map(ClientCertVerifierBuilder::build)
                .transpose()?
                .map(|verifier| verifier as Arc<dyn ClientCertVerifier>),
            are_all_known: !clients.is_empty(),
        };
        let nobody = WebPkiClientVerifier::no_client_auth();
        let known = verifier(&clients).context("option client-tls-ca")?;
        let ports = known.map_or(Ok(Arc::clone(&nobody)), ClientCertVerifierBuilder::build)?;
        let all = verifier(&[operators, clients].concat())?;
        let all = all.map(|all| all.allow_unauthenticated().build());
        let all = all.unwrap_or(Ok(nobody))?;
        Ok(Self {
            ports: accepting(ports, chain.clone(), key.clone_key())
                .context(CLIENT_PAIR)?
                .into(),
            http: accepting(all, chain, key).context(CLIENT_PAIR)?.into(),
            people,
            asks: peers.map(asking).transpose()?.map(Arc::new),
            expiries,
        })
    }
}

/// Refuses an authority that makes clients operators: one of both by its key, whatever else its certificates
/// say.
fn check_apart(
    operators: &[CertificateDer<'static>],
    clients: &[CertificateDer<'static>],
) -> anyhow::Result<()> {
    let operators = store_of(operators.to_vec()).context("option tls-ca")?;
    let clients = store_of(clients.to_vec()).context("option client-tls-ca")?;
    let is_in_both = clients.roots.iter().any(|client| {
        let mut operators = operators.roots.iter();
        operators.any(|it| it.subject_public_key_info == client.subject_public_key_info)
    });
    ensure!(
        !is_in_both,
        "options tls-ca and client-tls-ca: an authority stands in both files; allowed: each in one of them, \
         else every client could give commands as an operator"
    );
    Ok(())
}

/// Believes certificates of these authorities; none, if there is none.
fn verifier(
    authorities: &[CertificateDer<'static>],
) -> anyhow::Result<Option<ClientCertVerifierBuilder>> {
    if authorities.is_empty() {
        return Ok(None);
    }
    let roots = Arc::new(store_of(authorities.to_vec())?);
    Ok(Some(WebPkiClientVerifier::builder_with_provider(
        roots,
        provider(),
    )))
}

fn verify_by(
    verifier: &Arc<dyn ClientCertVerifier>,
    chain: &[CertificateDer<'_>],
) -> Result<(), TlsRefusal> {
    let (end, between) = chain.split_first().ok_or(TlsRefusal::NoCertificate)?;
    verifier
        .verify_client_cert(end, between, CertificateTime::now())
        .map(drop)
        .map_err(|error| TlsRefusal::of(&error))
}

/// All of a server's TLS; none where it is not wanted.
#[derive(Default)]
pub(crate) struct ServerTls {
    /// Between replicas.
    pub peers: Option<PeerTls>,
    /// For clients and people.
    pub clients: Option<ClientTls>,
}

impl ServerTls {
    /// Until when all files are good.
    pub(crate) fn expiries(&self) -> Vec<Expiry> {
        let peers = self.peers.iter().flat_map(|tls| &tls.expiries);
        let clients = self.clients.iter().flat_map(|tls| &tls.expiries);
        peers.chain(clients).cloned().collect()
    }
}

/// The one provider of cryptography.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The name in the certificate of a replica.
pub(crate) fn replica_name(id: ReplicaId, cluster: &str) -> String {
    name_of(id, &cluster_label(cluster))
}

/// The names in a certificate.
fn dns_names(certificate: &CertificateDer<'_>) -> Result<Vec<String>, TlsRefusal> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) = parsed.map_err(|_| TlsRefusal::Malformed)?;
    let names = parsed.subject_alternative_name();
    let names = names.map_err(|_| TlsRefusal::WrongName)?;
    let names = names.map_or(&[][..], |names| &names.value.general_names);
    let names = names.iter().filter_map(|name| {
        let GeneralName::DNSName(name) = name else {
            return None;
        };
        Some((*name).to_owned())
    });
    Ok(names.collect())
}

/// Whether a certificate is one of a replica, of whichever cluster, or cannot be read.
fn is_replicas(chain: &[CertificateDer<'_>]) -> bool {
    let names = chain.first().map(dns_names);
    let of_replica = |name: &String| name.starts_with("replica-") && name.ends_with(NAMES_END);
    names.is_none_or(|names| names.map_or(true, |names| names.iter().any(of_replica)))
}

fn name_of(id: ReplicaId, cluster_label: &str) -> String {
    format!("replica-{id}.{cluster_label}.{NAMES_END}")
}

/// The name in the certificate of those who may change something over HTTP.
pub(crate) fn operator_name(cluster: &str) -> String {
    format!("operator.{}.{NAMES_END}", cluster_label(cluster))
}

/// The name in the certificate of a client; none if it cannot be one.
pub(crate) fn client_name(name: &str, cluster: &str) -> Option<String> {
    let is_one = is_label(name);
    is_one.then(|| format!("{name}.client.{}.{NAMES_END}", cluster_label(cluster)))
}

/// Whether this can be a part of a DNS name, and of a file's.
fn is_label(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=LABEL_BYTES_MAX).contains(&text.len())
        && text.chars().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A cluster's name as part of a DNS name: itself, or a hash if it cannot be one.
fn cluster_label(cluster: &str) -> String {
    if is_label(cluster) && !cluster.starts_with(HASHED) {
        return cluster.to_owned();
    }
    let digest = Sha256::digest(cluster.as_bytes());
    format!("{HASHED}{}", hex::encode(&digest[..16]))
}

/// Every certificate in a file; at least one.
pub fn read_certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let name = path.display();
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .with_context(|| format!("reading {name}"))?;
    certificates_in(&bytes, path)
}

/// The certificates in the bytes of this file.
fn certificates_in(bytes: &[u8], path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let name = path.display();
    let fits = bytes.len() as u64 <= FILE_BYTES_MAX;
    ensure!(fits, "{name} is too long; allowed: {FILE_BYTES_MAX} bytes");
    let found: Vec<_> = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{name} holds no certificates (PEM)"))?;
    ensure!(
        (1..=CERTIFICATES_MAX).contains(&found.len()),
        "{name} holds {} certificates; allowed: 1 to {CERTIFICATES_MAX}",
        found.len()
    );
    Ok(found)
}

/// The private key in a file that nobody else can read.
pub fn read_key(path: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    key_in(&read_private(path, FILE_BYTES_MAX)?, path)
}

/// The private key in the text of this file.
fn key_in(text: &str, path: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .with_context(|| format!("{} holds no private key (PEM)", path.display()))
}

/// Certificates as authorities.
pub fn store_of(certificates: Vec<CertificateDer<'static>>) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Where a certificate and a key are those of replicas.
const PEER_PAIR: &str = "options tls-cert and tls-key do not go together";
/// Where they are those that clients and people see.
const CLIENT_PAIR: &str = "options client-tls-cert and client-tls-key do not go together";

/// In words, where the library has none for people.
fn no_pair(error: rustls::Error) -> anyhow::Error {
    if matches!(error, rustls::Error::InconsistentKeys(_)) {
        return anyhow::anyhow!(
            "the key is another certificate's; allowed: two files that were made together, such as replica-0.pem and \
             replica-0-key.pem by `quorumwire keys`"
        );
    }
    error.into()
}

fn accepting(
    verifier: Arc<dyn ClientCertVerifier>,
    own: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> anyhow::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_details(provider(), Arc::new(CertificateTime))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own, key)
        .map_err(no_pair)?;
    // Every connection shows its certificate again: nothing outlives a rotation.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// One who connects and trusts these authorities; what it shows itself is not said yet.
pub fn trusting(
    roots: impl Into<Arc<RootCertStore>>,
) -> anyhow::Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    Ok(
        ClientConfig::builder_with_details(provider(), Arc::new(CertificateTime))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots),
    )
}

fn dialing(
    roots: Arc<RootCertStore>,
    own: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> anyhow::Result<ClientConfig> {
    let config = trusting(roots)?.with_client_auth_cert(own, key);
    let mut config = config.map_err(no_pair)?;
    config.resumption = Resumption::disabled();
    config.enable_sni = false; // it would tell the cluster's name to whoever listens
    Ok(config)
}

/// Asks as the replica that it is, for where `client-tls-ca` is given nobody else may read.
fn asking(files: &PeerFiles) -> anyhow::Result<ClientConfig> {
    let roots = read_certificates(&files.authorities).and_then(store_of);
    let own = read_certificates(&files.own.certificate).context("option tls-cert")?;
    let key = read_key(&files.own.key).context("option tls-key")?;
    dialing(Arc::new(roots.context("option tls-ca")?), own, key).context(PEER_PAIR)
}

fn expiries(files: &[(&str, &Vec<CertificateDer<'static>>)]) -> anyhow::Result<Vec<Expiry>> {
    let mut expiries = Vec::new();
    for (option, certificates) in files {
        for certificate in *certificates {
            let (_, parsed) = X509Certificate::from_der(certificate)
                .with_context(|| format!("option {option}: no certificate"))?;
            let seconds = parsed.validity().not_after.timestamp();
            expiries.push(Expiry {
                what: format!("the certificate of {} ({option})", parsed.subject()),
                not_after: UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap_or(0)),
            });
        }
    }
    Ok(expiries)
}

#[cfg(test)]
#[path = "tls_fuzz_test.rs"]
mod fuzz_test;
#[cfg(test)]
#[path = "tls_test.rs"]
mod tests;
