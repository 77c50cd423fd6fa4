//! How a client knows its replicas: by a certificate that one of its authorities signed.
use crate::Error;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Longest file with authorities.
const AUTHORITIES_BYTES_MAX: u64 = 1 << 20;

/// The authorities that a client trusts, and nothing else: TLS 1.3.
#[derive(Clone)]
pub struct Tls {
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

impl Tls {
    /// Trusts the authorities in a PEM file, such as `ca.pem` of `quorumwire keys new`.
    pub fn from_ca_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let about = |error: std::io::Error| invalid(format!("{}: {error}", path.display()));
        let bytes = std::fs::metadata(path).map_err(about)?.len();
        if bytes > AUTHORITIES_BYTES_MAX {
            let text = format!("{bytes} bytes, at most {AUTHORITIES_BYTES_MAX}");
            return Err(about(std::io::Error::other(text)));
        }
        Self::from_ca_pem(&std::fs::read(path).map_err(about)?)
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(invalid)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
            server_name: None,
        })
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
        assert!(Tls::from_ca_file("/nowhere/ca.pem").is_err());
    }
}
