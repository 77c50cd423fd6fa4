//! A small memcached client for the demonstration: one connection, blocking, every wait limited.
use anyhow::{Context as _, bail, ensure};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for a connection or an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest line of an answer.
const LINE_BYTES_MAX: u64 = 8192;
/// Largest value taken.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// A connection to a replica.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects to `IP:PORT`.
    pub fn connect(address: &str) -> anyhow::Result<Self> {
        let address: SocketAddr = address.parse()?;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)
            .with_context(|| format!("connecting to {address}"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Stores all of them; fails at the first that is not acknowledged. The answer says how many were.
    pub fn set_all(&mut self, items: &[(String, String)]) -> (usize, anyhow::Result<()>) {
        let mut request = String::new();
        for (key, value) in items {
            // Writing to a String cannot fail.
            let _ = write!(request, "set {key} 0 0 {}\r\n{value}\r\n", value.len());
        }
        if let Err(error) = self.stream.get_mut().write_all(request.as_bytes()) {
            return (0, Err(error.into()));
        }
        for stored in 0..items.len() {
            let failed = match self.line() {
                Ok(answer) if answer == "STORED" => continue,
                Ok(answer) => anyhow::anyhow!("answer {answer:?}"),
                Err(error) => error,
            };
            return (stored, Err(failed));
        }
        (items.len(), Ok(()))
    }

    /// The values of these keys, in their order; `None` for one that is not there.
    pub fn get_all(&mut self, keys: &[&str]) -> anyhow::Result<Vec<Option<String>>> {
        let mut request = String::new();
        for key in keys {
            let _ = write!(request, "get {key}\r\n");
        }
        self.stream.get_mut().write_all(request.as_bytes())?;
        keys.iter().map(|key| self.read_value(key)).collect()
    }

    fn read_value(&mut self, key: &str) -> anyhow::Result<Option<String>> {
        let line = self.line()?;
        if line == "END" {
            return Ok(None);
        }
        let words: Vec<&str> = line.split(' ').collect();
        let ["VALUE", given, _flags, length] = words[..] else {
            bail!("answer {line:?}");
        };
        let length: usize = length.parse()?;
        ensure!(
            given == key && length <= VALUE_BYTES_MAX,
            "answer {line:?} for {key}"
        );
        let mut value = vec![0; length + 2];
        self.stream.read_exact(&mut value)?;
        ensure!(value.ends_with(b"\r\n"), "the value of {key} does not end");
        value.truncate(length);
        let end = self.line()?;
        ensure!(end == "END", "answer {end:?} after the value of {key}");
        Ok(Some(String::from_utf8(value)?))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        (&mut self.stream)
            .take(LINE_BYTES_MAX)
            .read_line(&mut line)?;
        let line = line.strip_suffix("\r\n");
        Ok(line.context("the connection has ended")?.to_owned())
    }
}
