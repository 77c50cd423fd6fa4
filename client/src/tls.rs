//! How a client knows its replicas, by a certificate that one of its authorities signed, and what it shows
//! them.
use crate::{CertificateTime, Error};
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// Longest file with authorities, certificates or a key.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The authorities that a client trusts, and nothing else, and the certificate that it shows, if it has one:
/// TLS 1.3.
#[derive(Clone)]
pub struct Tls {
    authorities: Arc<RootCertStore>,
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS, server name {:?}", self.server_name)
    }
}

fn invalid(error: impl fmt::Display) -> Error {
    Error::Invalid(format!("tls: {error}"))
}

fn about(path: &Path, error: impl fmt::Display) -> Error {
    invalid(format!("{}: {error}", path.display()))
}

/// A file that is not longer than such files are: one that never ends must not take all memory.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(|error| about(path, error))?;
    let mut bytes = Vec::new();
    let mut first = file.take(FILE_BYTES_MAX + 1);
    let count = first
        .read_to_end(&mut bytes)
        .map_err(|error| about(path, error))?;
    if count as u64 > FILE_BYTES_MAX {
        return Err(about(path, format!("more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// A client of replicas that these authorities know; what it shows itself is not said yet.
fn trusting(
    authorities: &Arc<RootCertStore>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(CertificateTime))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(invalid)?;
    Ok(builder.with_root_certificates(Arc::clone(authorities)))
}

impl Tls {
    /// Trusts the authorities in a PEM file, such as `ca.pem` of `quorumwire keys new`.
    pub fn from_ca_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_ca_pem(&read(path.as_ref())?)
    }

    /// Trusts the authorities in these PEM blocks.
    pub fn from_ca_pem(pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(invalid)?).map_err(invalid)?;
        }
        if roots.is_empty() {
            return Err(invalid("no certificate of an authority is given"));
        }
        let authorities = Arc::new(roots);
        let config = trusting(&authorities)?.with_no_client_auth();
        Ok(Self {
            authorities,
            config: Arc::new(config),
            server_name: None,
        })
    }

    /// Shows this certificate to servers that ask for one (their option `client-tls-ca`): PEM files with the
    /// chain, the client's own first, and its key, such as `client-NAME.pem` and `client-NAME-key.pem` of
    /// `quorumwire keys client`. They are read now; connections of a client that was made with this show what
    /// stood in them.
    pub fn with_certificate(
        mut self,
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, Error> {
        let (chain, key) = (chain.as_ref(), key.as_ref());
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(chain)?)
            .collect::<Result<_, _>>()
            .map_err(|error| about(chain, error))?;
        if certificates.is_empty() {
            return Err(about(chain, "no certificate stands in it"));
        }
        let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|it| about(key, it))?;
        let config = trusting(&self.authorities)?
            .with_client_auth_cert(certificates, private)
            .map_err(|error| about(chain, format!("with {}: {error}", key.display())))?;
        self.config = Arc::new(config);
        Ok(self)
    }

    /// Expects this name or IP address in every replica's certificate, and not that of the address it is
    /// reached at.
    pub fn with_server_name(mut self, name: &str) -> Result<Self, Error> {
        let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
        self.server_name = Some(name);
        Ok(self)
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The name that the certificate of a replica at this host must have.
    pub(crate) fn name_of(&self, host: &str) -> Result<ServerName<'static>, Error> {
        match &self.server_name {
            Some(name) => Ok(name.clone()),
            None => ServerName::try_from(host.to_owned()).map_err(invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_authority_is_refused() {
        for pem in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let error = Tls::from_ca_pem(pem.as_bytes()).unwrap_err();
            assert!(matches!(&error, Error::Invalid(text) if text.starts_with("tls: ")));
        }
        for (file, why) in [
            ("/nowhere/ca.pem", "No such file"),
            ("/dev/zero", "more than"),
        ] {
            let error = Tls::from_ca_file(file).unwrap_err().to_string();
            assert!(error.contains(file) && error.contains(why), "{error}");
        }
    }

    /// All else takes real certificates: `client_certificates` and `native_clients` in `tests/cluster`.
    #[test]
    fn what_cannot_be_shown_and_no_name_are_refused() {
        let authorities = Arc::new(RootCertStore::empty());
        let config = trusting(&authorities).unwrap().with_no_client_auth();
        let tls = Tls {
            config: Arc::new(config),
            authorities,
            server_name: None,
        };
        let dir = tempfile::tempdir().unwrap();
        let [empty, strange] = ["empty", "strange"].map(|name| dir.path().join(name));
        std::fs::write(&empty, "").unwrap();
        let block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&strange, block).unwrap();
        let missing = dir.path().join("missing");
        for (chain, key, about) in [
            (&empty, &strange, &empty),
            (&missing, &strange, &missing),
            (&strange, &empty, &empty),
            (&strange, &missing, &missing),
        ] {
            let error = tls.clone().with_certificate(chain, key).unwrap_err();
            let text = format!("tls: {}", about.display());
            assert!(error.to_string().starts_with(&text), "{error}");
        }
        assert!(tls.clone().with_server_name("not a name").is_err());
        let named = tls.clone().with_server_name("db.example").unwrap();
        let name = |text: &str| ServerName::try_from(text.to_owned()).unwrap();
        assert_eq!(named.name_of("10.0.0.1").unwrap(), name("db.example"));
        assert_eq!(tls.name_of("10.0.0.1").unwrap(), name("10.0.0.1"));
    }
}
