//! One connection of the load: requests out, answers in, in order. Knows when each request was sent and
//! what its answer means.
use super::load::Measured;
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::time::Instant;

/// Longest line of an answer.
const LINE_BYTES_MAX: usize = 8192;
/// Largest value in an answer.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// What follows a value.
const VALUE_TAIL: &[u8] = b"\r\nEND\r\n";
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
    last_answer: Option<Instant>,
    value: String,
    out: String,
    sent: usize,
    received: Vec<u8>,
    waiting: VecDeque<(Request, Instant)>,
}

/// What an answer says.
#[derive(Debug, Eq, PartialEq)]
enum Answer<'a> {
    Stored,
    Found,
    Missing,
    Error(&'a str),
}

impl Connection {
    /// A connection that stores values of this size.
    pub fn new(stream: TcpStream, value_bytes: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            last_answer: None,
            value: "x".repeat(value_bytes),
            out: String::new(),
            sent: 0,
            received: Vec::new(),
            waiting: VecDeque::new(),
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
        // Writing to a String cannot fail.
        let _ = match request {
            Request::Set(key) => write!(
                self.out,
                "set bench-{key:010} 0 0 {}\r\n{}\r\n",
                self.value.len(),
                self.value
            ),
            Request::Get(key) => write!(self.out, "get bench-{key:010}\r\n"),
        };
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
        while let Some((length, answer)) = parse(&self.received[taken..])? {
            let Some((request, sent_at)) = self.waiting.pop_front() else {
                return Err(invalid("an answer nobody asked for"));
            };
            match (request, answer) {
                (Request::Set(_), Answer::Stored) | (Request::Get(_), Answer::Found) => {
                    measured.succeeded(now - sent_at);
                }
                (Request::Get(_), Answer::Missing) => {
                    measured.succeeded(now - sent_at);
                    measured.misses += 1;
                }
                (_, Answer::Error(line)) => measured.failed(line, 1),
                (Request::Set(_), Answer::Found | Answer::Missing)
                | (Request::Get(_), Answer::Stored) => {
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

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// The first answer in `bytes` and its length; `None` if it is not complete.
fn parse(bytes: &[u8]) -> io::Result<Option<(usize, Answer<'_>)>> {
    let Some(line_end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_BYTES_MAX)]) else {
        if bytes.len() >= LINE_BYTES_MAX {
            return Err(invalid("a line that does not end"));
        }
        return Ok(None);
    };
    let line = bytes[..line_end].strip_suffix(b"\r");
    let line = line.and_then(|line| str::from_utf8(line).ok());
    let line = line.ok_or_else(|| invalid("a line that is no text"))?;
    let head = line_end + 1;
    match line {
        "STORED" => Ok(Some((head, Answer::Stored))),
        "END" => Ok(Some((head, Answer::Missing))),
        _ if line.starts_with("VALUE ") => {
            let length = line
                .rsplit(' ')
                .next()
                .and_then(|n| n.parse::<usize>().ok());
            let length = length.filter(|length| *length <= VALUE_BYTES_MAX);
            let length = length.ok_or_else(|| invalid("a value without sensible length"))?;
            let whole = head + length + VALUE_TAIL.len();
            match bytes.get(head + length..whole) {
                None => Ok(None),
                Some(tail) if tail == VALUE_TAIL => Ok(Some((whole, Answer::Found))),
                Some(_) => Err(invalid("a value that does not end")),
            }
        }
        _ => Ok(Some((head, Answer::Error(line)))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, LINE_BYTES_MAX, parse};

    fn answers(mut bytes: &[u8]) -> Vec<Answer<'_>> {
        let mut answers = Vec::new();
        while let Some((length, answer)) = parse(bytes).unwrap() {
            answers.push(answer);
            bytes = &bytes[length..];
        }
        assert!(bytes.is_empty());
        answers
    }

    #[test]
    fn answers_are_told_apart() {
        let bytes = b"STORED\r\nVALUE k 0 5\r\nab\r\nc\r\nEND\r\nEND\r\nSERVER_ERROR busy\r\n";
        assert_eq!(
            answers(bytes),
            [
                Answer::Stored,
                Answer::Found,
                Answer::Missing,
                Answer::Error("SERVER_ERROR busy"),
            ]
        );
    }

    #[test]
    fn an_incomplete_answer_waits() {
        let whole = b"VALUE k 0 3\r\nabc\r\nEND\r\n";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).unwrap(), None, "cut at {cut}");
        }
        assert_eq!(parse(whole).unwrap(), Some((whole.len(), Answer::Found)));
    }

    #[test]
    fn nonsense_ends_the_connection() {
        let endless = vec![b'x'; LINE_BYTES_MAX];
        let wrong: [&[u8]; 5] = [
            b"STORED\n",
            b"VALUE k 0 3\r\nabcd\r\nEND\r\n",
            b"VALUE k 0 99999999999\r\n",
            b"\xff\r\n",
            &endless,
        ];
        for bytes in wrong {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
