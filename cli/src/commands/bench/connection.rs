//! One connection of the load: requests out, answers in, in order. Knows when each request was due and what
//! its answer means.
use super::clock::Clock;
use super::measured::Measurements;
use super::protocol::{Answer, Protocol, Verdict, invalid};
use super::way::{Account, Stream};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
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

/// A request, and when it was to be sent: its latency counts from then.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub request: Request,
    pub at: Instant,
}

/// A connection and the requests without answer.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    protocol: Protocol,
    clock: Clock,
    /// When the last answer came, or the oldest request without one was asked, if that was later.
    moved_at: Instant,
    value: String,
    out: String,
    sent: usize,
    /// What came; only its first `filled` bytes are real, and not taken yet.
    received: Vec<u8>,
    filled: usize,
    waiting: VecDeque<Due>,
    /// It has said who it is, and was not answered yet.
    is_introducing: bool,
    /// The first of those is stored, and waits for replicas.
    is_stored: bool,
    /// Requests that were refused, if somebody will try them again. Whoever adds requests takes them before.
    refused: Option<Vec<Due>>,
}

impl Connection {
    /// A connection that stores values of this size.
    pub fn new(stream: Stream, protocol: Protocol, value_bytes: usize, clock: Clock) -> Self {
        Self {
            stream,
            protocol,
            moved_at: clock.now(),
            clock,
            value: "x".repeat(value_bytes),
            out: String::new(),
            sent: 0,
            received: Vec::new(),
            filled: 0,
            waiting: VecDeque::new(),
            is_introducing: false,
            is_stored: false,
            refused: None,
        }
    }

    /// Begins with who asks.
    pub fn introduce(&mut self, account: &Account) {
        self.protocol.introduce(account, &mut self.out);
        self.is_introducing = true;
    }

    /// From now on what is refused is kept for [`Self::take_refused`].
    pub fn keep_refused(&mut self) {
        self.refused = Some(Vec::new());
    }

    /// What was refused since this was last asked.
    pub fn take_refused(&mut self) -> Vec<Due> {
        self.refused
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// The requests without answer, of a connection that is given up.
    pub fn into_waiting(self) -> VecDeque<Due> {
        self.waiting
    }

    /// Since when an answer is waited for without any having come.
    pub fn waits_since(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.moved_at)
    }

    /// Requests without answer.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a request, to be sent by [`Self::send`].
    pub fn push(&mut self, due: Due, now: Instant) {
        self.protocol.ask(due.request, &self.value, &mut self.out);
        if self.waiting.is_empty() {
            self.moved_at = now;
        }
        self.waiting.push_back(due);
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
        match self.stream.flush() {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::NotConnected
                ) =>
            {
                Ok(())
            }
            flushed => flushed,
        }
    }

    /// Takes all answers that are there. `ended` says that the server has closed its side: then an
    /// error follows the last answer. (A read that is not filled has emptied the socket, and saves
    /// asking again; but the end may lie behind it, and is announced only once.)
    pub fn receive(&mut self, ended: bool, measured: &mut Measurements) -> io::Result<()> {
        loop {
            let room = self.filled..self.filled + READ_BYTES;
            if self.received.len() < room.end {
                self.received.resize(room.end, 0);
            }
            let outcome = self.stream.read(&mut self.received[room]);
            self.filled += outcome.as_ref().copied().unwrap_or(0);
            match outcome {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.take_answers(measured)?;
                    if count < READ_BYTES && !ended && self.stream.tells_emptiness() {
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

    fn take_answers(&mut self, measured: &mut Measurements) -> io::Result<()> {
        let now = self.clock.now();
        let mut taken = 0;
        let mut has_written = false;
        let outcome = loop {
            let (length, answer) = match self.protocol.answer(&self.received[taken..self.filled]) {
                Ok(Some(answer)) => answer,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            if std::mem::take(&mut self.is_introducing) {
                match answer {
                    Answer::Stored => {}
                    Answer::Error(why) => {
                        measured.failed(why, 1, now);
                        break Err(invalid("the account is refused"));
                    }
                    Answer::Found | Answer::Missing | Answer::Replicas(_) => {
                        break Err(invalid("an answer to something else than an account"));
                    }
                }
                taken += length;
                continue;
            }
            let Some(due) = self.waiting.pop_front() else {
                break Err(invalid("an answer nobody asked for"));
            };
            let verdict = self.protocol.verdict(due.request, &answer, self.is_stored);
            self.is_stored = verdict == Verdict::Stored;
            match verdict {
                Verdict::Done => {
                    measured.succeeded(due.at, now);
                    has_written |= matches!(due.request, Request::Set(_));
                }
                Verdict::Missed => {
                    measured.succeeded(due.at, now);
                    measured.misses += 1;
                }
                // It waits for replicas, or fails with the connection.
                Verdict::Stored | Verdict::Stray => self.waiting.push_front(due),
                Verdict::Refused(why) | Verdict::RefusedForGood(why) => {
                    measured.failed(why, 1, now);
                    if let Some(refused) = &mut self.refused {
                        refused.push(due);
                    }
                }
            }
            match verdict {
                Verdict::Stray => break Err(invalid("an answer to another request")),
                Verdict::RefusedForGood(_) => {
                    let what = "a refused write, before which replicas are waited for";
                    break Err(invalid(what));
                }
                Verdict::Done | Verdict::Missed | Verdict::Stored | Verdict::Refused(_) => {}
            }
            taken += length;
            self.moved_at = now;
        };
        if taken > 0 {
            measured.elapsed = now.saturating_duration_since(measured.begun);
        }
        if let Some(gaps) = measured.gaps.as_ref().filter(|_| has_written) {
            gaps.wrote(now);
        }
        self.received.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        outcome
    }
}
