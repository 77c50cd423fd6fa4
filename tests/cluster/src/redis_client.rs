//! A small Redis client that gives its answers in memcached's words, so that a load need not know which of
//! the two it speaks. One connection, blocking, no retry of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::{Client, Item, Line, Outcome};
use crate::cluster::{REDIS_PORT, REQUEST_TIMEOUT};

/// The longest line of an answer that is read.
const LINE_BYTES_MAX: u64 = 4096;
/// The longest value that is read: the load's are numbers.
const VALUE_BYTES_MAX: usize = 4096;
/// The most answers within one.
const ANSWERS_MAX: usize = 16;

/// How the errors begin of a server that has certainly not executed, and never will, what was asked:
/// docs/clients.md. Of everything else nobody knows.
const REFUSALS: [&str; 6] = [
    "CLUSTERDOWN",
    "EXECABORT",
    "MISCONF",
    "READONLY",
    "TRYAGAIN",
    "ERR not executed",
];

/// The token of an item of which it is not known whether it is the one that is watched.
pub const UNKNOWN_WATCHED: u64 = u64::MAX;
/// What a transaction says whose key had changed since it was watched, which may have been before it was
/// read.
pub const CHANGED: &str = "CHANGED";

/// What a server says.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Reply {
    Simple(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Option<Vec<Reply>>),
    Error(String),
}

/// One connection to one replica's Redis port.
#[derive(Debug)]
pub struct RedisClient {
    stream: BufReader<TcpStream>,
    broken: bool,
}

impl RedisClient {
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

    fn get(&mut self, key: &str) -> Outcome<Option<Vec<u8>>> {
        self.ask(&[&["GET", key]], |reply| match reply {
            Reply::Bulk(value) => Some(value),
            Reply::Simple(_) | Reply::Integer(_) | Reply::Array(_) | Reply::Error(_) => None,
        })
    }

    /// Reads a key that a transaction will depend on. `WATCH` does not tell a key that is not there from one
    /// that was made and removed since (docs/compatibility.md). Values are written once, so a key that has
    /// the same one before and after had it meanwhile, and that is what is watched; else it is not known
    /// what is ([`UNKNOWN_WATCHED`]).
    fn watch(&mut self, key: &str) -> Outcome<Option<Item>> {
        let before = match self.get(key) {
            Outcome::Done(before) => before,
            Outcome::Refused(reason) | Outcome::Unknown(reason) => return Outcome::Refused(reason),
        };
        let value = self.ask(&[&["WATCH", key], &["GET", key]], |reply| match reply {
            Reply::Bulk(value) => Some(value),
            Reply::Simple(_) | Reply::Integer(_) | Reply::Array(_) | Reply::Error(_) => None,
        });
        value.map(|value| {
            let is_known = value == before;
            value.map(|value| Item {
                key: key.into(),
                value,
                token: if is_known { 0 } else { UNKNOWN_WATCHED }, // the connection remembers what it watches
            })
        })
    }

    fn set(&mut self, key: &str, value: &str) -> Outcome<Line> {
        self.ask(&[&["SET", key, value]], |reply| stored(&reply))
    }

    fn add(&mut self, key: &str, value: &str) -> Outcome<Line> {
        self.ask(&[&["SET", key, value, "NX"]], |reply| match reply {
            Reply::Bulk(None) => Some("NOT_STORED".into()),
            reply @ (Reply::Simple(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Array(_)
            | Reply::Error(_)) => stored(&reply),
        })
    }

    fn set_if_watched(&mut self, key: &str, value: &str) -> Outcome<Line> {
        let commands: [&[&str]; 3] = [&["MULTI"], &["SET", key, value], &["EXEC"]];
        self.ask(&commands, |reply| match reply {
            Reply::Array(None) => Some(CHANGED.into()),
            Reply::Array(Some(replies)) => match &replies[..] {
                [reply] => stored(reply),
                _ => None,
            },
            Reply::Simple(_) | Reply::Integer(_) | Reply::Bulk(_) | Reply::Error(_) => None,
        })
    }

    fn delete(&mut self, key: &str) -> Outcome<Line> {
        self.ask(&[&["DEL", key]], |reply| match reply {
            Reply::Integer(1) => Some("DELETED".into()),
            Reply::Integer(0) => Some("NOT_FOUND".into()),
            Reply::Integer(_)
            | Reply::Simple(_)
            | Reply::Bulk(_)
            | Reply::Array(_)
            | Reply::Error(_) => None,
        })
    }

    /// Adds to a number that is there, and that nobody deletes: Redis would begin one that is not.
    fn increment(&mut self, key: &str, delta: u64) -> Outcome<Line> {
        match self.get(key) {
            Outcome::Done(Some(_)) => {}
            Outcome::Done(None) => return Outcome::Done("NOT_FOUND".into()),
            Outcome::Refused(reason) | Outcome::Unknown(reason) => return Outcome::Refused(reason),
        }
        let delta = delta.to_string();
        self.ask(&[&["INCRBY", key, &delta]], |reply| match reply {
            Reply::Integer(number) => Some(number.to_string()),
            Reply::Simple(_) | Reply::Bulk(_) | Reply::Array(_) | Reply::Error(_) => None,
        })
    }

    /// Sends all of these at once; what the last one is answered, if none is an error.
    fn ask<T>(
        &mut self,
        commands: &[&[&str]],
        understand: impl FnOnce(Reply) -> Option<T>,
    ) -> Outcome<T> {
        if self.broken {
            return Outcome::Refused("the connection is broken".into());
        }
        match self.exchange(commands) {
            Ok(Reply::Error(line)) => {
                // Something may be left watched, or half of a transaction.
                self.broken = true;
                if REFUSALS.iter().any(|refusal| line.starts_with(refusal)) {
                    Outcome::Refused(line)
                } else {
                    Outcome::Unknown(line)
                }
            }
            Ok(reply) => {
                let shown = format!("{reply:?}");
                match understand(reply) {
                    Some(answer) => Outcome::Done(answer),
                    None => panic!("{commands:?} is answered {shown}"),
                }
            }
            Err(error) => {
                self.broken = true;
                Outcome::Unknown(error.to_string())
            }
        }
    }

    fn exchange(&mut self, commands: &[&[&str]]) -> io::Result<Reply> {
        let mut text = String::new();
        for words in commands {
            let _ = write!(text, "*{}\r\n", words.len()); // to memory
            for word in *words {
                let _ = write!(text, "${}\r\n{word}\r\n", word.len());
            }
        }
        self.stream.get_mut().write_all(text.as_bytes())?;
        let mut last = self.reply()?;
        let mut error = None;
        for _ in 1..commands.len() {
            let next = self.reply()?;
            let before = std::mem::replace(&mut last, next);
            error = matches!(before, Reply::Error(_))
                .then_some(before)
                .or(error);
        }
        // What is behind a command that was refused means nothing: of `EXEC` it says whether that is so, too.
        Ok(match (last, error) {
            (last @ Reply::Error(_), _) | (last, None) => last,
            (_, Some(error)) => error,
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        (&mut self.stream)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = bytes
            .strip_suffix(b"\r\n")
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        if let Some(count) = line.strip_prefix('*') {
            let Some(count) = length(count, ANSWERS_MAX)? else {
                return Ok(Reply::Array(None));
            };
            let mut replies = Vec::new();
            for _ in 0..count {
                let line = self.line()?;
                replies.push(self.plain(&line)?);
            }
            return Ok(Reply::Array(Some(replies)));
        }
        self.plain(&line)
    }

    fn plain(&mut self, line: &str) -> io::Result<Reply> {
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
        Ok(match kind {
            "+" => Reply::Simple(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Integer(rest.parse().map_err(|_| io::ErrorKind::InvalidData)?),
            "$" => {
                let Some(bytes) = length(rest, VALUE_BYTES_MAX)? else {
                    return Ok(Reply::Bulk(None));
                };
                let mut value = vec![0; bytes + 2];
                self.stream.read_exact(&mut value)?;
                value.truncate(bytes);
                Reply::Bulk(Some(value))
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

/// A length, or that there is nothing.
fn length(text: &str, max: usize) -> io::Result<Option<usize>> {
    if text == "-1" {
        return Ok(None);
    }
    let length = text.parse().ok().filter(|length| *length <= max);
    length.map(Some).ok_or(io::ErrorKind::InvalidData.into())
}

fn stored(reply: &Reply) -> Option<Line> {
    (*reply == Reply::Simple("OK".into())).then(|| "STORED".into())
}

/// A connection of a load: it asks the same in either protocol.
#[derive(Debug)]
pub enum Connection {
    /// To the memcached port.
    Memcached(Client),
    /// To the Redis port.
    Redis(RedisClient),
}

impl Connection {
    /// To a port of Redis', or of memcached's.
    pub fn to(address: SocketAddr) -> io::Result<Self> {
        if address.port() == REDIS_PORT {
            RedisClient::connect(address, REQUEST_TIMEOUT).map(Self::Redis)
        } else {
            Client::connect(address, REQUEST_TIMEOUT).map(Self::Memcached)
        }
    }

    /// Whether it can still be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        match self {
            Self::Memcached(client) => client.is_usable(),
            Self::Redis(client) => !client.broken,
        }
    }

    /// Whether it is one to the Redis port.
    #[must_use]
    pub const fn is_redis(&self) -> bool {
        matches!(self, Self::Redis(_))
    }

    /// Reads one key.
    pub fn get(&mut self, key: &str) -> Outcome<Option<Vec<u8>>> {
        match self {
            Self::Memcached(client) => client.get(key),
            Self::Redis(client) => client.get(key),
        }
    }

    /// Reads many keys: those that are there.
    pub fn get_many(&mut self, keys: &[&str]) -> Outcome<BTreeMap<String, Vec<u8>>> {
        let client = match self {
            Self::Memcached(client) => {
                let items = client.gets_many(keys);
                return items.map(|items| items.into_iter().map(|it| (it.key, it.value)).collect());
            }
            Self::Redis(client) => client,
        };
        let mut found = BTreeMap::new();
        for key in keys {
            match client.get(key) {
                Outcome::Done(value) => found.extend(value.map(|value| ((*key).to_owned(), value))),
                Outcome::Refused(reason) => return Outcome::Refused(reason),
                Outcome::Unknown(reason) => return Outcome::Unknown(reason),
            }
        }
        Outcome::Done(found)
    }

    /// Reads one key for a [`cas`](Self::cas).
    pub fn gets(&mut self, key: &str) -> Outcome<Option<Item>> {
        match self {
            Self::Memcached(client) => client.gets(key),
            Self::Redis(client) => client.watch(key),
        }
    }

    /// Writes a key, whatever was there.
    pub fn set(&mut self, key: &str, value: &str) -> Outcome<Line> {
        match self {
            Self::Memcached(client) => client.set(key, value.as_bytes()),
            Self::Redis(client) => client.set(key, value),
        }
    }

    /// Writes a key if nothing is there.
    pub fn add(&mut self, key: &str, value: &str) -> Outcome<Line> {
        match self {
            Self::Memcached(client) => client.add(key, value.as_bytes()),
            Self::Redis(client) => client.add(key, value),
        }
    }

    /// Writes a key if it still is what [`gets`](Self::gets) has just shown with `token`; or [`CHANGED`].
    pub fn cas(&mut self, key: &str, value: &str, token: u64) -> Outcome<Line> {
        match self {
            Self::Memcached(client) => client.cas(key, value.as_bytes(), token),
            Self::Redis(client) => client.set_if_watched(key, value),
        }
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &str) -> Outcome<Line> {
        match self {
            Self::Memcached(client) => client.delete(key),
            Self::Redis(client) => client.delete(key),
        }
    }

    /// Adds to the number a key holds, which nobody deletes.
    pub fn increment(&mut self, key: &str, delta: u64) -> Outcome<Line> {
        match self {
            Self::Memcached(client) => client.increment(key, delta),
            Self::Redis(client) => client.increment(key, delta),
        }
    }
}
