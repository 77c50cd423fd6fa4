//! The way to a server: in the clear or by TLS, and as whom. Moves bytes; what they mean is known elsewhere.
use super::connection::Request;
use super::protocol::{Answer, Protocol};
use crate::commands::ask::{RequestKind, needs_tls, speaks_tls};
use anyhow::{Context as _, bail};
use mio::net::TcpStream;
use quorumwire_node::keys::read_private;
use quorumwire_node::tls::{read_certificates, read_key, store_of, trusting};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to let the first connection in.
const WAY_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest file of accounts.
const ACCOUNTS_BYTES_MAX: u64 = 64 << 10;
/// Longest answer of the first connection.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// How servers are spoken to that do not let everybody in.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WayFlags {
    /// Speak TLS; servers show a certificate of an authority in this file (PEM)
    #[arg(long = "tls-ca", value_name = "FILE")]
    authorities: Option<PathBuf>,
    /// What to show (PEM), where servers ask for it (`client-tls-ca`)
    #[arg(long = "tls-cert", value_name = "FILE", requires_all = ["authorities", "key"])]
    certificate: Option<PathBuf>,
    /// The key of --tls-cert (PEM)
    #[arg(long = "tls-key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// File of accounts, lines NAME:PASSWORD as in `client-auth-file`: each connection begins with the first
    #[arg(long, value_name = "FILE")]
    account_file: Option<PathBuf>,
}

/// A name and a password.
#[derive(Clone)]
pub struct Account {
    pub name: String,
    pub password: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The address of a server, and the name that its certificate must have.
#[derive(Clone, Debug)]
pub struct ServerAddress {
    pub address: SocketAddr,
    pub name: ServerName<'static>,
}

impl From<SocketAddr> for ServerAddress {
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            name: address.ip().into(),
        }
    }
}

/// The way of all connections of a load.
#[derive(Clone, Debug, Default)]
pub struct Way {
    tls: Option<Arc<ClientConfig>>,
    pub account: Option<Arc<Account>>,
}

impl WayFlags {
    /// Reads the files.
    pub fn way(&self) -> anyhow::Result<Way> {
        let account = self.account_file.as_deref().map(first_account).transpose();
        Ok(Way {
            tls: self.tls()?.map(Arc::new),
            account: account.context("--account-file")?.map(Arc::new),
        })
    }

    fn tls(&self) -> anyhow::Result<Option<ClientConfig>> {
        let Some(authorities) = &self.authorities else {
            return Ok(None);
        };
        let roots = read_certificates(authorities).and_then(store_of);
        let config = trusting(roots.context("--tls-ca")?)?;
        Ok(Some(match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = read_certificates(certificate).context("--tls-cert")?;
                let key = read_key(key).context("--tls-key")?;
                config
                    .with_client_auth_cert(chain, key)
                    .context("--tls-cert and --tls-key do not go together")?
            }
            (None | Some(_), _) => config.with_no_client_auth(),
        }))
    }
}

fn first_account(path: &Path) -> anyhow::Result<Account> {
    let text = read_private(path, ACCOUNTS_BYTES_MAX)?;
    let mut lines = text
        .lines()
        .filter(|it| !it.is_empty() && !it.starts_with('#'));
    let first = lines.next().and_then(|line| line.split_once(':'));
    let (name, password) =
        first.with_context(|| format!("{}: allowed: NAME:PASSWORD", path.display()))?;
    Ok(Account {
        name: name.to_owned(),
        password: password.to_owned(),
    })
}

impl Way {
    /// A stream to a server; nothing is sent yet.
    pub fn begin(&self, tcp: TcpStream, to: &ServerAddress) -> io::Result<Stream> {
        let tls = self.tls.as_ref().map(|config| {
            let tls = ClientConnection::new(Arc::clone(config), to.name.clone());
            tls.map(Box::new).map_err(io::Error::other)
        });
        let tls = tls.transpose()?;
        Ok(Stream { tcp, tls })
    }

    /// Whether this way leads anywhere: what is wrong with it would be wrong with every connection, for as
    /// long as the load lasts.
    pub fn try_out(&self, to: &ServerAddress, protocol: Protocol) -> anyhow::Result<()> {
        let address = to.address;
        let tcp = std::net::TcpStream::connect_timeout(&address, WAY_TIMEOUT)
            .with_context(|| format!("connecting to {address}"))?;
        tcp.set_read_timeout(Some(WAY_TIMEOUT))?;
        tcp.set_write_timeout(Some(WAY_TIMEOUT))?;
        let asked = self.ask(tcp, to, protocol);
        let Err(error) = asked else {
            return Ok(());
        };
        if self.tls.is_none() && speaks_tls(&address.to_string()) {
            bail!("{address}: {}", needs_tls(RequestKind::Read));
        }
        Err(error.context(format!("{address}")))
    }

    fn ask(
        &self,
        mut tcp: std::net::TcpStream,
        to: &ServerAddress,
        protocol: Protocol,
    ) -> anyhow::Result<()> {
        let mut asked = String::new();
        let mut answers = 1;
        if let Some(account) = &self.account {
            protocol.introduce(account, &mut asked);
            answers += 1;
        }
        protocol.ask(Request::Get(0), "", &mut asked);
        let Some(config) = &self.tls else {
            return exchange(&mut tcp, &asked, answers, protocol);
        };
        let mut tls = ClientConnection::new(Arc::clone(config), to.name.clone())?;
        exchange(
            &mut rustls::Stream::new(&mut tls, &mut tcp),
            &asked,
            answers,
            protocol,
        )
    }
}

/// Asks and reads so many answers. Refusals that say who may ask are errors; others may pass.
fn exchange(
    stream: &mut (impl Read + Write),
    asked: &str,
    answers: usize,
    protocol: Protocol,
) -> anyhow::Result<()> {
    stream.write_all(asked.as_bytes())?;
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    let mut taken = 0;
    for _ in 0..answers {
        let (length, answer) = loop {
            if let Some(answer) = protocol.answer(&received[taken..])? {
                break answer;
            }
            // Whatever is this long is no answer to that.
            if received.len() > ANSWER_BYTES_MAX {
                bail!("an answer that does not end");
            }
            let count = stream.read(&mut chunk)?;
            if count == 0 {
                bail!("the connection was closed");
            }
            received.extend_from_slice(&chunk[..count]);
        };
        match answer {
            Answer::Error(line) if is_about_accounts(line) => {
                bail!("{line} (--account-file FILE says as whom)")
            }
            Answer::Error(_)
            | Answer::Stored
            | Answer::Found
            | Answer::Missing
            | Answer::Replicas(_) => {}
        }
        taken += length;
    }
    Ok(())
}

/// Whether a server refuses whoever asks, and not what is asked.
pub fn is_about_accounts(line: &str) -> bool {
    let line = line.to_lowercase();
    ["noauth", "wrongpass", "authenticat"]
        .iter()
        .any(|it| line.contains(it))
}

/// A connection's bytes, with TLS around them or not.
#[derive(Debug)]
pub struct Stream {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Whether a read that was not filled has emptied the socket.
    pub const fn tells_emptiness(&self) -> bool {
        self.tls.is_none()
    }

    /// Sends what a handshake or a record still has to say.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        while tls.wants_write() {
            match tls.write_tls(&mut self.tcp) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes some of these bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let Some(tls) = &mut self.tls else {
            return self.tcp.write(bytes);
        };
        let taken = tls.writer().write(bytes)?;
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into()); // until the handshake is over
        }
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            Ok(()) | Err(_) => Ok(taken),
        }
    }

    /// Gives some of what has come.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.tcp.read(room);
        };
        loop {
            match tls.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut self.tcp)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if let Err(error) = tls.process_new_packets() {
                tls.write_tls(&mut self.tcp).ok(); // why, if there is still somebody
                return Err(io::Error::other(error));
            }
        }
    }

    /// Has the event loop told of it.
    pub fn source(&mut self) -> &mut TcpStream {
        &mut self.tcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_first_account_of_a_file_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("accounts");
        let read = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            first_account(&path)
        };
        let account = read("# ours\n\nann:a:b\nbob:c\n", 0o600).unwrap();
        assert_eq!((&*account.name, &*account.password), ("ann", "a:b"));
        assert!(!format!("{account:?}").contains("a:b"));
        assert!(read("ann\n", 0o600).is_err());
        assert!(read("ann:a\n", 0o644).is_err());
    }

    #[test]
    fn refusals_of_whoever_asks_are_told_from_others() {
        for line in [
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair or user is disabled.",
            "CLIENT_ERROR unauthenticated",
            "CLIENT_ERROR authentication failure",
        ] {
            assert!(is_about_accounts(line), "{line}");
        }
        for line in ["SERVER_ERROR busy", "CLUSTERDOWN no leader", "ERROR"] {
            assert!(!is_about_accounts(line), "{line}");
        }
    }
}
