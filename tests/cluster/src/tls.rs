//! A TLS client as strangers and ordinary clients have it: blocking, with the server's library and none of
//! its code. Shows what it is told to, believes what it is told to.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    StreamOwned,
};

const TIMEOUT: Duration = Duration::from_secs(10);

/// What to show: a certificate and its key, of a folder of keys.
#[derive(Clone, Debug)]
pub struct Shown {
    dir: PathBuf,
    name: String,
}

impl Shown {
    /// `NAME.pem` and `NAME-key.pem` of this folder.
    #[must_use]
    pub fn new(dir: &Path, name: &str) -> Self {
        Self {
            dir: dir.to_owned(),
            name: name.to_owned(),
        }
    }

    fn load(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let file = |end: &str| self.dir.join(format!("{}{end}", self.name));
        let chain = CertificateDer::pem_file_iter(file(".pem"))?.collect::<Result<_, _>>()?;
        Ok((chain, PrivateKeyDer::from_pem_file(file("-key.pem"))?))
    }
}

/// A connection under TLS 1.3.
#[derive(Debug)]
pub struct TlsClient(StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Connects to whoever shows a certificate of these authorities for this address; whoever it is, if none
    /// are given.
    pub fn connect(
        address: SocketAddr,
        authorities: Option<&Path>,
        shown: Option<&Shown>,
    ) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let config = match authorities {
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in CertificateDer::pem_file_iter(path)? {
                    roots.add(authority?)?;
                }
                config.with_root_certificates(roots)
            }
            None => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody(provider))),
        };
        let config = match shown {
            None => config.with_no_client_auth(),
            Some(shown) => {
                let (chain, key) = shown.load()?;
                config.with_client_auth_cert(chain, key)?
            }
        };
        let name = ServerName::IpAddress(address.ip().into());
        let tls = ClientConnection::new(Arc::new(config), name)?;
        let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(StreamOwned::new(tls, socket)))
    }

    /// Sends this and reads until what came ends like that.
    pub fn ask(&mut self, request: &[u8], end: &[u8]) -> Result<String> {
        self.0.write_all(request)?;
        let mut answer = Vec::new();
        while !answer.ends_with(end) {
            let mut byte = [0; 1];
            self.0.read_exact(&mut byte)?;
            answer.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Sends this; all that is heard until the other side ends the connection.
    #[must_use]
    pub fn say(mut self, bytes: &[u8]) -> Vec<u8> {
        let mut heard = Vec::new();
        if self.0.write_all(bytes).is_ok() {
            // An alert or a reset is an end as good as any.
            let _: io::Result<usize> = self.0.read_to_end(&mut heard);
        }
        heard
    }
}

/// Believes everybody.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a client says first, as bytes: to be said by many who mean nothing by it.
pub fn first_words() -> Result<Vec<u8>> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    let mut tls = ClientConnection::new(Arc::new(config), ServerName::try_from("anybody")?)?;
    let mut said = Vec::new();
    tls.write_tls(&mut said)?;
    Ok(said)
}
