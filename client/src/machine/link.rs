//! One connection: what was asked on it, what comes in.
use super::{LinkId, Since, Ticket};
use crate::settings::Account;
use quorumwire_wire::client::{FromClient, FromServer, Hello, from_client::Body};
use quorumwire_wire::limits::ATTACHMENT_BYTES_MAX;
use quorumwire_wire::{
    CLIENT_PROTOCOL_VERSION_MAX, CLIENT_PROTOCOL_VERSION_MIN, ClientFrame, take_client_frame,
    write_client_frame,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// How far a connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    Connecting,
    /// Hello is said, and not answered.
    Greeting,
    Up,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestKind {
    Opening,
    Pending(Ticket),
    Ping,
}

/// A message and its attachment.
pub type Came = (FromServer, Vec<u8>);

/// One connection.
pub struct Link {
    pub id: LinkId,
    pub state: State,
    /// Who is there.
    pub replica: Option<u32>,
    /// When it began, or when bytes last came or left, or when the first of what waits now was asked.
    pub moved_at: Since,
    /// A request was answered here.
    pub was_of_use: bool,
    /// Refusals since the last answer.
    pub refused_in_a_row: u32,
    /// To be sent.
    pub out: Vec<u8>,
    next_request: u64,
    asked: BTreeMap<u64, RequestKind>,
    /// Came and is no whole frame yet: at most one frame and what came with its end.
    rest: Vec<u8>,
}

impl Link {
    pub fn new(now: Since, id: LinkId) -> Self {
        Self {
            id,
            state: State::Connecting,
            replica: None,
            moved_at: now,
            was_of_use: false,
            refused_in_a_row: 0,
            out: Vec::new(),
            next_request: 1,
            asked: BTreeMap::new(),
            rest: Vec::new(),
        }
    }

    /// Says hello.
    pub fn connected(&mut self, now: Since, account: Option<&Account>) {
        if self.state != State::Connecting {
            return;
        }
        self.state = State::Greeting;
        self.moved_at = now;
        let (name, password) = account.map_or((String::new(), String::new()), |it| {
            (it.name.clone(), it.password.clone())
        });
        let hello = Hello {
            protocol_min: CLIENT_PROTOCOL_VERSION_MIN,
            protocol_max: CLIENT_PROTOCOL_VERSION_MAX,
            name: name.into(),
            password: password.into(),
        };
        self.write(0, Body::Hello(hello), b"");
    }

    fn write(&mut self, request: u64, body: Body, attachment: &[u8]) {
        let message = FromClient {
            request,
            body: Some(body),
        };
        write_client_frame(&mut self.out, &message, attachment);
    }

    /// Asks for something.
    pub fn ask(&mut self, now: Since, kind: RequestKind, body: Body, attachment: &[u8]) {
        if self.asked.is_empty() {
            self.moved_at = now;
        }
        let request = self.next_request;
        self.next_request += 1;
        self.asked.insert(request, kind);
        self.write(request, body, attachment);
    }

    /// Says something to which no single answer belongs; its number.
    pub fn say(&mut self, body: Body) -> u64 {
        let request = self.next_request;
        self.next_request += 1;
        self.write(request, body, b"");
        request
    }

    /// What an answer with this number is for.
    pub fn answered(&mut self, request: u64) -> Option<RequestKind> {
        self.asked.remove(&request)
    }

    /// What will not be answered.
    pub fn take_asked(&mut self) -> impl Iterator<Item = RequestKind> + use<> {
        std::mem::take(&mut self.asked).into_values()
    }

    /// Takes bytes in; the messages that are whole, and whether what follows can be trusted.
    pub fn take_in(&mut self, now: Since, bytes: &[u8]) -> (Vec<Came>, Result<(), String>) {
        self.moved_at = now;
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let (mut messages, mut used) = (Vec::new(), 0);
        loop {
            match take_client_frame(&rest[used..], ATTACHMENT_BYTES_MAX) {
                Ok(ClientFrame::Incomplete { .. }) => break,
                Ok(ClientFrame::Whole {
                    consumed,
                    message,
                    attachment,
                }) => {
                    used += consumed;
                    messages.push((message, attachment.to_vec()));
                }
                Err(error) => return (messages, Err(error.to_string())),
            }
        }
        rest.drain(..used);
        self.rest = rest;
        (messages, Ok(()))
    }

    /// Whether something is owed for too long.
    pub fn is_silent(&self, now: Since, patience: Duration) -> bool {
        self.owes() && now >= self.moved_at + patience
    }

    fn owes(&self) -> bool {
        self.state != State::Up || !self.asked.is_empty()
    }

    /// Whether it is to be asked whether it lives.
    pub fn wants_ping(&self, now: Since, after: Duration) -> bool {
        !self.owes() && now >= self.moved_at + after
    }

    /// When it is to be looked at again.
    pub fn next_wake(&self, patience: Duration, ping_after: Duration) -> Since {
        let wait = if self.owes() { patience } else { ping_after };
        self.moved_at + wait
    }
}
