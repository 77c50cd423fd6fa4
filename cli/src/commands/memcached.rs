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

#[cfg(test)]
mod tests {
    use super::Client;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread;

    /// A client of a server that says this after the first line it is sent, and closes.
    fn client_of(answer: &'static [u8]) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            stream.read_line(&mut String::new()).unwrap();
            stream.get_mut().write_all(answer).unwrap();
            // Reads on, so that closing does not cut off what was answered.
            stream
                .get_ref()
                .shutdown(std::net::Shutdown::Write)
                .unwrap();
            while stream.read_line(&mut String::new()).unwrap() > 0 {}
        });
        Client::connect(&address).unwrap()
    }

    fn items(count: usize) -> Vec<(String, String)> {
        let keys = 0..count;
        keys.map(|n| (format!("k{n}"), "v".to_owned())).collect()
    }

    #[test]
    fn only_what_was_acknowledged_counts() {
        let (stored, outcome) = client_of(b"STORED\r\nSTORED\r\n").set_all(&items(2));
        assert!(stored == 2 && outcome.is_ok());
        let answer = b"STORED\r\nSERVER_ERROR outcome unknown\r\nSTORED\r\n";
        let (stored, outcome) = client_of(answer).set_all(&items(3));
        assert_eq!(stored, 1);
        assert!(outcome.unwrap_err().to_string().contains("outcome unknown"));
        let (stored, outcome) = client_of(b"STORED\r\nSTOR").set_all(&items(2));
        assert!(stored == 1 && outcome.is_err());
    }

    #[test]
    fn values_are_told_from_their_absence() {
        let answer = b"VALUE a 0 4\r\n\r\nEN\r\nEND\r\nEND\r\n";
        let values = client_of(answer).get_all(&["a", "b"]).unwrap();
        assert_eq!(values, [Some("\r\nEN".to_owned()), None]);
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_an_error() {
        let answers: [&[u8]; 6] = [
            b"VALUE other 0 1\r\nv\r\nEND\r\n",
            b"VALUE a 0 1\r\nvv\r\nEND\r\n",
            b"VALUE a 0 99999999\r\n",
            b"VALUE a 0 1\r\nv\r\n",
            b"SERVER_ERROR no leader\r\n",
            b"",
        ];
        for answer in answers {
            client_of(answer).get_all(&["a"]).unwrap_err();
        }
    }
}
