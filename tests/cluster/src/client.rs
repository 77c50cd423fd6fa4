//! A small memcached text client that tells apart what was done, what certainly was not, and what
//! nobody knows. One connection, blocking, no retry of its own.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest line of an answer that is read.
const LINE_BYTES_MAX: usize = 4096;

/// The largest value that is read: memcached's own limit.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// How the errors of a server begin that has certainly not executed, and never will, what was asked.
/// Everything else is unknown, which is always safe to believe.
const REFUSALS: [&str; 9] = [
    "SERVER_ERROR not leader",
    "SERVER_ERROR not executed",
    "SERVER_ERROR no leader",
    "SERVER_ERROR no answer",
    "SERVER_ERROR busy",
    "SERVER_ERROR disk full",
    "SERVER_ERROR object too large for cache",
    "CLIENT_ERROR",
    "ERROR",
];

/// Whether this line says that what was asked has not been executed and never will be.
pub(crate) fn is_refusal(line: &str) -> bool {
    REFUSALS.iter().any(|refusal| line.starts_with(refusal))
}

/// What became of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub enum Outcome<T> {
    /// Done, with this answer.
    Done(T),
    /// Certainly not done: the server's line says so, or the request never left.
    Refused(String),
    /// It may have been done, or may still be, or not: the connection broke or timed out, or the server
    /// itself does not know.
    Unknown(String),
}

impl<T> Outcome<T> {
    /// The answer, if there is one.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(answer) => Some(answer),
            Self::Refused(_) | Self::Unknown(_) => None,
        }
    }

    /// The answer; panics, naming `what` and the reason, if there is none.
    #[track_caller]
    pub fn expect(self, what: &str) -> T {
        match self {
            Self::Done(answer) => answer,
            Self::Refused(reason) => panic!("{what}: refused: {reason}"),
            Self::Unknown(reason) => panic!("{what}: outcome unknown: {reason}"),
        }
    }

    /// Applies `f` to the answer.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(answer) => Outcome::Done(f(answer)),
            Self::Refused(reason) => Outcome::Refused(reason),
            Self::Unknown(reason) => Outcome::Unknown(reason),
        }
    }
}

/// An item as `gets` shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Item {
    /// The key asked for.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// What a `cas` must name.
    pub token: u64,
}

/// The answer to a request that changes something: the server's line, e.g. `STORED`, `NOT_FOUND`, `12`.
pub type Line = String;

/// One connection to one replica.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    broken: bool,
}

impl Client {
    /// Connects; `timeout` bounds this and every later wait for bytes.
    pub fn connect(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            stream: BufReader::new(stream),
            broken: false,
        })
    }

    /// Whether the connection can still be used. After an error in the middle of an answer it cannot:
    /// a later answer could be taken for that of an earlier request.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !self.broken
    }

    /// Reads one key.
    pub fn get(&mut self, key: &str) -> Outcome<Option<Vec<u8>>> {
        self.gets(key).map(|item| item.map(|item| item.value))
    }

    /// Reads one key with its token.
    pub fn gets(&mut self, key: &str) -> Outcome<Option<Item>> {
        self.gets_many(&[key]).map(|mut items| items.pop())
    }

    /// Reads many keys; what is not there is left out of the answer.
    pub fn gets_many(&mut self, keys: &[&str]) -> Outcome<Vec<Item>> {
        let request = format!("gets {}\r\n", keys.join(" "));
        self.exchange(request.as_bytes(), |client| client.items(keys.len()))
    }

    /// Writes a key, whatever was there.
    pub fn set(&mut self, key: &str, value: &[u8]) -> Outcome<Line> {
        self.store(&format!("set {key} 0 0 {}", value.len()), value)
    }

    /// Writes a key if nothing is there.
    pub fn add(&mut self, key: &str, value: &[u8]) -> Outcome<Line> {
        self.store(&format!("add {key} 0 0 {}", value.len()), value)
    }

    /// Writes a key if it still is what `gets` showed with `token`.
    pub fn cas(&mut self, key: &str, value: &[u8], token: u64) -> Outcome<Line> {
        self.store(&format!("cas {key} 0 0 {} {token}", value.len()), value)
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &str) -> Outcome<Line> {
        self.line(&format!("delete {key}"))
    }

    /// Adds to the number a key holds.
    pub fn increment(&mut self, key: &str, delta: u64) -> Outcome<Line> {
        self.line(&format!("incr {key} {delta}"))
    }

    /// Sends one line and reads one line.
    pub fn line(&mut self, request: &str) -> Outcome<Line> {
        self.exchange(format!("{request}\r\n").as_bytes(), Self::plain_line)
    }

    fn store(&mut self, head: &str, value: &[u8]) -> Outcome<Line> {
        let mut request = Vec::with_capacity(head.len() + value.len() + 4);
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        self.exchange(&request, Self::plain_line)
    }

    fn exchange<T>(
        &mut self,
        request: &[u8],
        answer: impl FnOnce(&mut Self) -> io::Result<Result<T, Line>>,
    ) -> Outcome<T> {
        if self.broken {
            return Outcome::Refused("the connection is broken".into());
        }
        let sent = self.stream.get_mut().write_all(request);
        match sent.and_then(|()| answer(self)) {
            Ok(Ok(answer)) => Outcome::Done(answer),
            Ok(Err(line)) if is_refusal(&line) => Outcome::Refused(line),
            Ok(Err(line)) => Outcome::Unknown(line),
            Err(error) => {
                self.broken = true;
                Outcome::Unknown(error.to_string())
            }
        }
    }

    /// One line; the inner error is the server's error line.
    fn plain_line(&mut self) -> io::Result<Result<Line, Line>> {
        let mut bytes = Vec::new();
        let limit = LINE_BYTES_MAX as u64;
        (&mut self.stream)
            .take(limit)
            .read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(line) = bytes.strip_suffix(b"\r\n") else {
            return Err(bad_answer(&bytes));
        };
        let line = String::from_utf8(line.to_vec()).map_err(|_| bad_answer(&bytes))?;
        let is_error = ["SERVER_ERROR", "CLIENT_ERROR", "ERROR"]
            .iter()
            .any(|error| line.starts_with(error));
        Ok(if is_error { Err(line) } else { Ok(line) })
    }

    fn items(&mut self, asked: usize) -> io::Result<Result<Vec<Item>, Line>> {
        let mut items = Vec::new();
        loop {
            let line = match self.plain_line()? {
                Ok(line) => line,
                Err(error) => return Ok(Err(error)),
            };
            if line == "END" {
                return Ok(Ok(items));
            }
            let item = self.item(&line)?;
            if items.len() == asked {
                return Err(bad_answer(line.as_bytes()));
            }
            items.push(item);
        }
    }

    fn item(&mut self, line: &str) -> io::Result<Item> {
        let words: Vec<_> = line.split(' ').collect();
        let bad = || bad_answer(line.as_bytes());
        let ["VALUE", key, _flags, length, token] = words[..] else {
            return Err(bad());
        };
        let length: usize = length.parse().map_err(|_| bad())?;
        let token = token.parse().map_err(|_| bad())?;
        if length > VALUE_BYTES_MAX {
            return Err(bad());
        }
        let mut value = vec![0; length + 2];
        self.stream.read_exact(&mut value)?;
        if !value.ends_with(b"\r\n") {
            return Err(bad());
        }
        value.truncate(length);
        Ok(Item {
            key: key.into(),
            value,
            token,
        })
    }
}

fn bad_answer(bytes: &[u8]) -> io::Error {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not an answer: {shown:?}"),
    )
}

#[cfg(test)]
#[path = "client_test.rs"]
mod tests;
