//! The protocols in which the load asks: requests into bytes, answers out of them. Knows no time.
use super::connection::Request;
use super::way::Account;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};

/// Longest line of an answer.
const LINE_BYTES_MAX: usize = 8192;
/// Largest value in an answer.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// What follows a value of memcached's.
const VALUE_TAIL: &[u8] = b"\r\nEND\r\n";

/// In which the load asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// Memcached's text protocol.
    Memcached,
    /// Redis' protocol.
    Redis {
        /// A write is done once so many replicas have it, by a `WAIT` behind it; 0: at its own answer.
        wait: u8,
    },
}

/// What an answer says.
#[derive(Debug, Eq, PartialEq)]
pub enum Answer<'a> {
    Stored,
    Found,
    Missing,
    /// So many replicas have the write.
    Replicas(u64),
    Error(&'a str),
}

/// What an answer means for the request it answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict<'a> {
    Done,
    /// Done, and nothing was found.
    Missed,
    /// The next answer says how many replicas have it.
    Stored,
    /// Not done, for this reason.
    Refused(&'a str),
    /// The same, and an answer that belongs to no request follows: nothing else is to be read.
    RefusedForGood(&'a str),
    /// It answers something else.
    Stray,
}

impl Protocol {
    /// What the next answer means for a request; `is_stored` after [`Verdict::Stored`].
    pub fn verdict<'a>(
        self,
        request: Request,
        answer: &Answer<'a>,
        is_stored: bool,
    ) -> Verdict<'a> {
        let waits_for = match self {
            Self::Redis { wait } => u64::from(wait),
            Self::Memcached => 0,
        };
        match (request, answer) {
            (Request::Set(_), Answer::Stored) if waits_for == 0 => Verdict::Done,
            (Request::Set(_), Answer::Stored) if !is_stored => Verdict::Stored,
            (Request::Set(_), Answer::Replicas(count)) if is_stored => {
                if *count >= waits_for {
                    Verdict::Done
                } else {
                    Verdict::Refused("too few replicas")
                }
            }
            (Request::Get(_), Answer::Found) => Verdict::Done,
            (Request::Get(_), Answer::Missing) => Verdict::Missed,
            (Request::Set(_), Answer::Error(line)) if waits_for > 0 => {
                Verdict::RefusedForGood(line)
            }
            (_, Answer::Error(line)) => Verdict::Refused(line),
            (Request::Set(_), _) | (Request::Get(_), Answer::Stored | Answer::Replicas(_)) => {
                Verdict::Stray
            }
        }
    }

    /// Appends who asks. It is answered like a write.
    pub fn introduce(self, account: &Account, out: &mut String) {
        let Account { name, password } = account;
        // Writing to a String cannot fail.
        let _ = match self {
            Self::Memcached => {
                let bytes = name.len() + 1 + password.len();
                write!(out, "set auth 0 0 {bytes}\r\n{name} {password}\r\n")
            }
            Self::Redis { .. } => {
                let (a, b) = (name.len(), password.len());
                let head = "*3\r\n$4\r\nAUTH\r\n";
                write!(out, "{head}${a}\r\n{name}\r\n${b}\r\n{password}\r\n")
            }
        };
    }

    /// Appends a request.
    pub fn ask(self, request: Request, value: &str, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = match (self, request) {
            (Self::Memcached, Request::Set(key)) => {
                let bytes = value.len();
                write!(out, "set bench-{key:010} 0 0 {bytes}\r\n{value}\r\n")
            }
            (Self::Memcached, Request::Get(key)) => write!(out, "get bench-{key:010}\r\n"),
            (Self::Redis { .. }, Request::Set(key)) => {
                let bytes = value.len();
                let head = "*3\r\n$3\r\nSET\r\n$16\r\n";
                write!(out, "{head}bench-{key:010}\r\n${bytes}\r\n{value}\r\n")
            }
            (Self::Redis { .. }, Request::Get(key)) => {
                write!(out, "*2\r\n$3\r\nGET\r\n$16\r\nbench-{key:010}\r\n")
            }
        };
        if let (Self::Redis { wait: wait @ 1.. }, Request::Set(_)) = (self, request) {
            let digits = wait.to_string();
            let bytes = digits.len();
            let _ = write!(
                out,
                "*3\r\n$4\r\nWAIT\r\n${bytes}\r\n{digits}\r\n$1\r\n0\r\n"
            );
        }
    }

    /// The first answer in `bytes` and its length; `None` if it is not complete.
    pub fn answer(self, bytes: &[u8]) -> io::Result<Option<(usize, Answer<'_>)>> {
        let Some(line_end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_BYTES_MAX)])
        else {
            if bytes.len() >= LINE_BYTES_MAX {
                return Err(invalid("a line that does not end"));
            }
            return Ok(None);
        };
        let line = bytes[..line_end].strip_suffix(b"\r");
        let line = line.and_then(|line| str::from_utf8(line).ok());
        let line = line.ok_or_else(|| invalid("a line that is no text"))?;
        let head = line_end + 1;
        match self {
            Self::Memcached => memcached_answer(bytes, line, head),
            Self::Redis { .. } => redis_answer(bytes, line, head),
        }
    }
}

fn memcached_answer<'a>(
    bytes: &'a [u8],
    line: &'a str,
    head: usize,
) -> io::Result<Option<(usize, Answer<'a>)>> {
    match line {
        "STORED" => Ok(Some((head, Answer::Stored))),
        "END" => Ok(Some((head, Answer::Missing))),
        _ if line.starts_with("VALUE ") => {
            let length = line.rsplit(' ').next().unwrap_or_default();
            value_answer(bytes, head, length, VALUE_TAIL)
        }
        _ => Ok(Some((head, Answer::Error(line)))),
    }
}

fn redis_answer<'a>(
    bytes: &'a [u8],
    line: &'a str,
    head: usize,
) -> io::Result<Option<(usize, Answer<'a>)>> {
    match (line, line.split_at_checked(1)) {
        ("+OK", _) => Ok(Some((head, Answer::Stored))),
        ("$-1", _) => Ok(Some((head, Answer::Missing))),
        (_, Some(("$", length))) => value_answer(bytes, head, length, b"\r\n"),
        (_, Some((":", number))) => {
            let number = number.parse().map_err(|_| invalid("no number"))?;
            Ok(Some((head, Answer::Replicas(number))))
        }
        (_, Some(("-", error))) => Ok(Some((head, Answer::Error(error)))),
        _ => Err(invalid("an answer of another kind")),
    }
}

/// A value of so many bytes, with `tail` behind it.
fn value_answer<'a>(
    bytes: &'a [u8],
    head: usize,
    length: &str,
    tail: &[u8],
) -> io::Result<Option<(usize, Answer<'a>)>> {
    let length = length.parse::<usize>().ok();
    let length = length.filter(|length| *length <= VALUE_BYTES_MAX);
    let length = length.ok_or_else(|| invalid("a value without sensible length"))?;
    let whole = head + length + tail.len();
    match bytes.get(head + length..whole) {
        None => Ok(None),
        Some(end) if end == tail => Ok(Some((whole, Answer::Found))),
        Some(_) => Err(invalid("a value that does not end")),
    }
}

pub fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::{Account, Answer, LINE_BYTES_MAX, Protocol, Request};

    const REDIS: Protocol = Protocol::Redis { wait: 1 };

    fn answers(protocol: Protocol, mut bytes: &[u8]) -> Vec<Answer<'_>> {
        let mut answers = Vec::new();
        while let Some((length, answer)) = protocol.answer(bytes).unwrap() {
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
            answers(Protocol::Memcached, bytes),
            [
                Answer::Stored,
                Answer::Found,
                Answer::Missing,
                Answer::Error("SERVER_ERROR busy"),
            ]
        );
        let bytes = b"+OK\r\n$5\r\nab\r\nc\r\n$-1\r\n:2\r\n-TRYAGAIN busy\r\n";
        assert_eq!(
            answers(REDIS, bytes),
            [
                Answer::Stored,
                Answer::Found,
                Answer::Missing,
                Answer::Replicas(2),
                Answer::Error("TRYAGAIN busy"),
            ]
        );
    }

    #[test]
    fn an_incomplete_answer_waits() {
        let cases: [(Protocol, &[u8]); 2] = [
            (Protocol::Memcached, b"VALUE k 0 3\r\nabc\r\nEND\r\n"),
            (REDIS, b"$3\r\nabc\r\n"),
        ];
        for (protocol, whole) in cases {
            for cut in 0..whole.len() {
                assert_eq!(
                    protocol.answer(&whole[..cut]).unwrap(),
                    None,
                    "cut at {cut}"
                );
            }
            let answer = protocol.answer(whole).unwrap();
            assert_eq!(answer, Some((whole.len(), Answer::Found)));
        }
    }

    #[test]
    fn nonsense_ends_the_connection() {
        let endless = vec![b'x'; LINE_BYTES_MAX];
        let wrong: [(Protocol, &[u8]); 8] = [
            (Protocol::Memcached, b"STORED\n"),
            (Protocol::Memcached, b"VALUE k 0 3\r\nabcd\r\nEND\r\n"),
            (Protocol::Memcached, b"VALUE k 0 99999999999\r\n"),
            (Protocol::Memcached, b"\xff\r\n"),
            (Protocol::Memcached, &endless),
            (REDIS, b"*1\r\n"),
            (REDIS, b":x\r\n"),
            (REDIS, b"$3\r\nabcd\r\n"),
        ];
        for (protocol, bytes) in wrong {
            assert!(protocol.answer(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn requests_are_what_servers_read() {
        let asked = |protocol: Protocol, request| {
            let mut out = String::new();
            protocol.ask(request, "abc", &mut out);
            out
        };
        assert_eq!(
            asked(Protocol::Memcached, Request::Set(7)),
            "set bench-0000000007 0 0 3\r\nabc\r\n"
        );
        assert_eq!(
            asked(REDIS, Request::Set(7)),
            "*3\r\n$3\r\nSET\r\n$16\r\nbench-0000000007\r\n$3\r\nabc\r\n\
             *3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n"
        );
        assert_eq!(
            asked(REDIS, Request::Get(7)),
            "*2\r\n$3\r\nGET\r\n$16\r\nbench-0000000007\r\n"
        );
        let account = Account {
            name: "ann".to_owned(),
            password: "secret".to_owned(),
        };
        let introduced = |protocol: Protocol| {
            let mut out = String::new();
            protocol.introduce(&account, &mut out);
            out
        };
        assert_eq!(
            introduced(Protocol::Memcached),
            "set auth 0 0 10\r\nann secret\r\n"
        );
        assert_eq!(
            introduced(REDIS),
            "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n"
        );
    }
}
