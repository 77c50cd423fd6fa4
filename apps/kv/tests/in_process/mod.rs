//! The parser and a store, joined as a server joins them, without a network or a log in between.
use bytes::BytesMut;
use quorumwire_interfaces::{Application, Applied, LogTime};
use quorumwire_kv::Store;
use quorumwire_kv::memcached::{Local, Parsed, REQUEST_BYTES_MAX, Request, parse_on, reply};

/// The server's side of one or more connections.
pub struct Server {
    pub store: Store,
    index: u64,
    pub log_time_ms: u64,
    /// Commands come from where no tick goes before them.
    pub awaits_time: bool,
}

/// The bytes of one connection that were not used yet.
#[derive(Default)]
pub struct Connection {
    buffer: Vec<u8>,
    searched: usize,
    swallow: usize,
    pub closed: bool,
}

impl Server {
    pub fn new(log_time_ms: u64) -> Self {
        Self {
            store: Store::new(),
            index: 0,
            log_time_ms,
            awaits_time: false,
        }
    }

    /// Takes bytes as they arrive and gives the bytes to send.
    pub fn receive(&mut self, connection: &mut Connection, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        connection.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut connection.buffer);
        let mut rest = buffer.as_slice();
        let mut searched = std::mem::take(&mut connection.searched);
        while !connection.closed {
            let skip = connection.swallow.min(rest.len());
            connection.swallow -= skip;
            rest = &rest[skip..];
            match parse_on(rest, std::mem::take(&mut searched)) {
                Parsed::Incomplete { needed, searched } => {
                    assert!((rest.len() + 1..=REQUEST_BYTES_MAX).contains(&needed));
                    connection.searched = searched;
                    break;
                }
                Parsed::Request { consumed, request } => {
                    connection.closed = self.answer(&request, &mut out);
                    rest = &rest[consumed..];
                }
                Parsed::Refused {
                    consumed,
                    swallow,
                    reply,
                    close,
                    why: _,
                } => {
                    out.extend_from_slice(reply);
                    connection.swallow = swallow;
                    connection.closed = close;
                    rest = &rest[consumed..];
                }
            }
        }
        connection.buffer = rest.to_vec();
        out
    }

    fn answer(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
        match request {
            Request::Write { command, noreply } => {
                let mut encoded = BytesMut::new();
                command.encode(&mut encoded);
                let mut reply = Vec::new();
                self.apply(&encoded, &mut reply);
                if !noreply {
                    out.extend_from_slice(&reply);
                }
            }
            Request::Read(read) => {
                self.store.advance(LogTime(self.log_time_ms));
                let before = out.len();
                self.store.query(read.line(), out);
                if out[before..] == *reply::MUST_WRITE {
                    out.truncate(before);
                    let command = read.as_write().expect("only an `mg` is told so");
                    let noreply = false;
                    return self.answer(&Request::Write { command, noreply }, out);
                }
            }
            Request::Local(Local::Version) => out.extend_from_slice(b"VERSION 1.6.18\r\n"),
            Request::Local(Local::Tuning { noreply: true }) => {}
            Request::Local(Local::Tuning { noreply: false }) => out.extend_from_slice(reply::OK),
            Request::Local(Local::Stats { argument: None }) => {
                out.extend_from_slice(b"STAT curr_items ");
                reply::push_decimal(out, self.store.stats().curr_items);
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(reply::END);
            }
            Request::Local(Local::Stats {
                argument: Some(b"reset"),
            }) => {
                out.extend_from_slice(reply::RESET);
            }
            Request::Local(Local::Stats {
                argument: Some(b"cachedump"),
            }) => out.extend_from_slice(reply::END),
            Request::Local(Local::Stats { argument: Some(_) }) => {
                out.extend_from_slice(reply::ERROR);
            }
            Request::Local(Local::Quit) => return true,
            Request::Local(Local::MetaNoop) => out.extend_from_slice(reply::META_NOOP),
        }
        false
    }

    pub fn apply(&mut self, command: &[u8], reply: &mut Vec<u8>) {
        self.index += 1;
        let log_time = LogTime(self.log_time_ms);
        self.store.apply(
            &Applied {
                number: self.index,
                log_time,
                awaits_time: self.awaits_time,
                command,
            },
            reply,
        );
    }
}
