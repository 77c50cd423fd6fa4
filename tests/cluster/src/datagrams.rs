//! A memcached client over UDP: one request, one answer, each a datagram. It sends nothing again.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::client::{Line, Outcome, is_refusal};

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 2048;
/// Memcached's frame: number of the request, of the datagram, count of datagrams, zero.
const FRAME_BYTES: usize = 8;

/// One socket, for any server.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    timeout: Duration,
    request: u16,
}

impl Datagrams {
    /// Waits for an answer this long.
    pub fn new(timeout: Duration) -> io::Result<Self> {
        let anywhere = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Ok(Self {
            socket: UdpSocket::bind(anywhere)?,
            timeout,
            request: 0,
        })
    }

    /// Reads one key.
    pub fn get(&mut self, to: SocketAddr, key: &str) -> Outcome<Option<Vec<u8>>> {
        let body = match self.ask(to, format!("get {key}\r\n").as_bytes()) {
            Ok(body) => body,
            Err(outcome) => return outcome.map(|never: std::convert::Infallible| match never {}),
        };
        match value_in(&body, key) {
            _ if body == b"END\r\n" => Outcome::Done(None),
            Some(value) => Outcome::Done(Some(value)),
            None => unusual(&body),
        }
    }

    /// Writes a key, whatever was there.
    pub fn set(&mut self, to: SocketAddr, key: &str, value: &[u8]) -> Outcome<Line> {
        let body = match self.ask(to, &set_request(key, value)) {
            Ok(body) => body,
            Err(outcome) => return outcome.map(|never: std::convert::Infallible| match never {}),
        };
        match &body[..] {
            b"STORED\r\n" => Outcome::Done("STORED".into()),
            _ => unusual(&body),
        }
    }

    /// Asks for a key to be written, and waits for nothing.
    pub fn post_set(&mut self, to: SocketAddr, key: &str, value: &[u8]) -> io::Result<()> {
        self.send(to, &set_request(key, value))?;
        Ok(())
    }

    /// The frame in front of the request, which its answer has, too.
    fn send(&mut self, to: SocketAddr, body: &[u8]) -> io::Result<Vec<u8>> {
        self.request = self.request.wrapping_add(1);
        let frame = [self.request, 0, 1, 0].map(u16::to_be_bytes).concat();
        self.socket.send_to(&[&frame, body].concat(), to)?;
        Ok(frame)
    }

    /// The answer's body.
    fn ask(
        &mut self,
        to: SocketAddr,
        body: &[u8],
    ) -> Result<Vec<u8>, Outcome<std::convert::Infallible>> {
        let sent = self.send(to, body);
        let frame = sent.map_err(|error| Outcome::Refused(error.to_string()))?;
        let end = Instant::now() + self.timeout;
        let mut bytes = [0; ANSWER_BYTES_MAX];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Outcome::Unknown("no datagram came".into()));
            }
            let _ = self.socket.set_read_timeout(Some(left)); // not zero
            match self.socket.recv(&mut bytes) {
                // Others are late answers to what was given up.
                Ok(length) if bytes[..length].starts_with(&frame) => {
                    return Ok(bytes[FRAME_BYTES..length].to_vec());
                }
                Ok(_) => {}
                // It may be of an earlier datagram, to a server that was dead.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(Outcome::Unknown(error.to_string())),
            }
        }
    }
}

fn set_request(key: &str, value: &[u8]) -> Vec<u8> {
    let line = format!("set {key} 0 0 {}\r\n", value.len());
    [line.as_bytes(), value, b"\r\n"].concat()
}

/// The value in the answer to a `get` of one key that is there.
fn value_in(body: &[u8], key: &str) -> Option<Vec<u8>> {
    let head = format!("VALUE {key} 0 ");
    let rest = body.strip_prefix(head.as_bytes())?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let length: usize = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    let value = rest[end + 2..].strip_suffix(b"\r\nEND\r\n")?;
    (value.len() == length).then(|| value.to_vec())
}

/// An error, or no answer that this client knows.
fn unusual<T>(body: &[u8]) -> Outcome<T> {
    let text = String::from_utf8_lossy(body).trim_end().to_string();
    if is_refusal(&text) {
        Outcome::Refused(text)
    } else {
        Outcome::Unknown(text)
    }
}
