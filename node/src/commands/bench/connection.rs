//! One connection of the load: requests out, answers in, in order. Knows when each request was sent and
//! what its answer means.
use super::load::Measured;
use super::protocol::{Answer, Protocol, invalid};
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::time::Instant;

/// Read at once.
const READ_BYTES: usize = 64 << 10;

/// What to ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Request {
    /// Store this key.
    Set(u64),
    /// Read it.
    Get(u64),
}

/// A connection and the requests without answer.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    protocol: Protocol,
    last_answer: Option<Instant>,
    value: String,
    out: String,
    sent: usize,
    received: Vec<u8>,
    waiting: VecDeque<(Request, Instant)>,
    /// The first of those is stored, and waits for replicas.
    is_stored: bool,
}

impl Connection {
    /// A connection that stores values of this size.
    pub fn new(stream: TcpStream, protocol: Protocol, value_bytes: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            protocol,
            last_answer: None,
            value: "x".repeat(value_bytes),
            out: String::new(),
            sent: 0,
            received: Vec::new(),
            waiting: VecDeque::new(),
            is_stored: false,
        })
    }

    /// Requests without answer.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// When the last answer came.
    pub fn last_answer(&self) -> Option<Instant> {
        self.last_answer
    }

    /// Adds a request, to be sent by [`Self::send`].
    pub fn push(&mut self, request: Request, now: Instant) {
        self.protocol.ask(request, &self.value, &mut self.out);
        self.waiting.push_back((request, now));
    }

    /// Sends what the socket takes; the rest when it is writable again.
    pub fn send(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out.as_bytes()[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A connection that is still being made says so.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::NotConnected
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Takes all answers that are there. `ended` says that the server has closed its side: then an
    /// error follows the last answer. (A read that is not filled has emptied the socket, and saves
    /// asking again; but the end may lie behind it, and is announced only once.)
    pub fn receive(&mut self, ended: bool, measured: &mut Measured) -> io::Result<()> {
        loop {
            let filled = self.received.len();
            self.received.resize(filled + READ_BYTES, 0);
            let outcome = self.stream.read(&mut self.received[filled..]);
            let count = outcome.as_ref().copied().unwrap_or(0);
            self.received.truncate(filled + count);
            match outcome {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.take_answers(measured)?;
                    if count < READ_BYTES && !ended {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::NotConnected
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn take_answers(&mut self, measured: &mut Measured) -> io::Result<()> {
        let now = Instant::now();
        let mut taken = 0;
        while let Some((length, answer)) = self.protocol.answer(&self.received[taken..])? {
            let Some((request, sent_at)) = self.waiting.pop_front() else {
                return Err(invalid("an answer nobody asked for"));
            };
            let waits_for = match (self.protocol, request) {
                (Protocol::Redis { wait }, Request::Set(_)) => u64::from(wait),
                (Protocol::Redis { .. } | Protocol::Memcached, _) => 0,
            };
            match (request, answer) {
                (Request::Set(_), Answer::Stored) if waits_for > 0 && !self.is_stored => {
                    self.is_stored = true;
                    self.waiting.push_front((request, sent_at));
                }
                (Request::Set(_), Answer::Replicas(count)) if self.is_stored => {
                    self.is_stored = false;
                    if count >= waits_for {
                        measured.succeeded(now - sent_at);
                    } else {
                        measured.failed("too few replicas", 1);
                    }
                }
                (Request::Set(_), Answer::Stored) if waits_for == 0 => {
                    measured.succeeded(now - sent_at);
                }
                (Request::Get(_), Answer::Found) => measured.succeeded(now - sent_at),
                (Request::Get(_), Answer::Missing) => {
                    measured.succeeded(now - sent_at);
                    measured.misses += 1;
                }
                (Request::Set(_), Answer::Error(line)) if waits_for > 0 => {
                    measured.failed(line, 1);
                    return Err(invalid(
                        "a refused write, before which replicas are waited for",
                    ));
                }
                (_, Answer::Error(line)) => measured.failed(line, 1),
                (Request::Set(_), _) | (Request::Get(_), Answer::Stored | Answer::Replicas(_)) => {
                    self.waiting.push_front((request, sent_at)); // It fails with the connection.
                    return Err(invalid("an answer to another request"));
                }
            }
            taken += length;
            self.last_answer = Some(now);
        }
        self.received.drain(..taken);
        Ok(())
    }
}
