//! Clients that arrive: connections are accepted, and handshakes of TLS carried out, as far as there is time
//! for it, so that a flood of strangers costs those who are here little. What comes beyond it waits in the
//! listener's queue; of handshakes under way the oldest gives way.
use super::{
    Clients, Connection, ConnectionId, Front, HeldByOne, Protocol, Stream, VecDeque, clock,
};
use crate::server::handshakes::is_over;
use mio::net::TcpStream;
use mio::{Interest, Token};
use quorumwire_control::Now;
use quorumwire_group::Row;
use socket2::{SockRef, TcpKeepalive};
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

/// A client that has not said by then who it is, and must, is closed; looked at once in a while.
const UNKNOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// See [`UNKNOWN_TIMEOUT`].
const UNKNOWN_LOOKED_AT: Duration = Duration::from_secs(1);
/// A connection on which nothing comes for so long is asked whether anybody is there: its other side may be
/// gone without a word. Then again, until it is given up.
const KEEPALIVE_AFTER: Duration = Duration::from_mins(5);
/// See [`KEEPALIVE_AFTER`].
const KEEPALIVE_AGAIN: Duration = Duration::from_mins(1);
/// See [`KEEPALIVE_AFTER`].
const KEEPALIVES_MAX: u32 = 3;

impl Connection {
    /// Whether it is in its handshake.
    pub const fn is_in_handshake(&self) -> bool {
        self.handshake_since.is_some()
    }
}

impl Clients {
    /// Whoever had to wait may go on as far as there is time.
    pub fn begin_turn(&mut self, now: Now) {
        self.turn_began = now;
        self.queue.extend(self.handshakes.begin_turn(now));
        if self.handshakes.accepts_more() {
            self.accept(now);
        }
    }

    #[cfg(test)]
    pub const fn turn_began(&self) -> Now {
        self.turn_began
    }

    /// Whether the next turn has something to do for those who wait.
    pub fn has_arrivals(&self) -> bool {
        self.handshakes.has_arrivals()
    }

    /// So much time went into a handshake.
    pub fn use_up_handshake(&mut self, took: Duration) {
        self.handshakes.use_up(took);
    }

    /// Takes new connections, up to the limit; one more is told so and closed.
    pub fn accept(&mut self, now: Now) {
        self.handshakes.accepts_more();
        // One of each in turn, so that a flood at one port keeps nobody away from the others.
        let mut in_a_row_empty = 0;
        while in_a_row_empty < self.listeners.len() {
            let place = self.next_listener % self.listeners.len();
            let Some((protocol, group)) = self.next_to_accept(place, now) else {
                break;
            };
            self.next_listener = place + 1;
            let began = clock::worked();
            let listener = &self.listeners[place].socket;
            match listener.accept() {
                Ok((stream, from)) => {
                    in_a_row_empty = 0;
                    self.take_in(stream, from, (protocol, group), now);
                }
                Err(error) => {
                    in_a_row_empty += 1;
                    self.starvation.note(&error, listener, protocol.name());
                }
            }
            let took = clock::worked().saturating_sub(began);
            self.handshakes.use_up_accept(took);
        }
    }

    /// What a connection at this listener speaks, and with which group, if there is time and room for one.
    fn next_to_accept(&mut self, place: usize, now: Now) -> Option<(Protocol, usize)> {
        if !self.handshakes.may_accept(self.tls.is_some(), now) {
            return None;
        }
        let listener = &self.listeners[place];
        Some((listener.protocol, listener.group))
    }

    fn take_in(
        &mut self,
        mut stream: TcpStream,
        from: SocketAddr,
        (protocol, group): (Protocol, usize),
        now: Now,
    ) {
        if self.open_count >= self.connections_max {
            self.counters.refused_too_many += 1;
            if self.tls.is_none() {
                stream.write_all(&protocol.too_many()).ok();
            }
            return;
        }
        self.counters.accepted += 1;
        if let Some(place) = self.handshakes.displaced() {
            self.counters.handshakes_displaced += 1;
            self.give_up_handshake(place);
        }
        self.open(stream, from, (protocol, group), now);
    }

    /// Has those closed whose handshake takes too long.
    pub fn time_out_handshakes(&mut self, now: Now) {
        while let Some(place) = self.handshakes.timed_out(now) {
            self.counters.handshakes_timed_out += 1;
            self.give_up_handshake(place);
        }
    }

    /// Has those closed that must say who they are and do not.
    pub fn time_out_unknown(&mut self, now: Now) {
        if self.lets_everybody_in || !is_over(now, self.unknown_looked_at, UNKNOWN_LOOKED_AT) {
            return;
        }
        self.unknown_looked_at = now;
        let is_due =
            |it: &&Connection| !it.is_let_in && is_over(now, it.unknown_since, UNKNOWN_TIMEOUT);
        let due: Vec<_> = self.iter().filter(is_due).map(|it| it.id).collect();
        for connection in due
            .into_iter()
            .filter_map(|id| self.take(id))
            .collect::<Vec<_>>()
        {
            self.counters.closed_unknown += 1;
            self.close(connection);
        }
    }

    fn give_up_handshake(&mut self, place: u32) {
        let connection = self.connections[place as usize].take();
        let connection = connection.expect("a connection leaves the list when it ends");
        self.close(connection);
    }

    /// Takes no new connections from now on.
    pub fn stop_accepting(&mut self) {
        for mut listener in self.listeners.drain(..) {
            self.registry.deregister(&mut listener.socket).ok();
        }
    }

    fn open(
        &mut self,
        stream: TcpStream,
        from: SocketAddr,
        (protocol, group): (Protocol, usize),
        now: Now,
    ) {
        stream.set_nodelay(true).ok();
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_AGAIN)
            .with_retries(KEEPALIVES_MAX);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive).ok(); // else it stays for longer
        let Ok(mut stream) = Stream::accepted(stream, self.tls.as_ref()) else {
            return;
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            u32::try_from(self.connections.len() - 1).expect("connections_max is small")
        });
        let token = Token(self.first_token + place as usize);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self
            .registry
            .register(&mut stream, token, interest)
            .is_err()
        {
            self.free.push(place);
            return;
        }
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        self.open_count += 1;
        let handshake_since = (!stream.is_established()).then_some(now);
        if handshake_since.is_some() {
            self.handshakes.begin(now, place);
        }
        self.connections[place as usize] = Some(Box::new(Connection {
            id: ConnectionId { place, serial },
            group,
            front: Front::new(protocol, from, now),
            is_let_in: self.lets_everybody_in,
            stream,
            input: Vec::new(),
            filled: 0,
            needed: 0,
            searched: 0,
            linger: None,
            swallow: 0,
            output: Vec::new(),
            written: 0,
            slots: Row::default(),
            answers_bytes: 0,
            lines: VecDeque::new(),
            work_waiting: 0,
            stalled: false,
            wait: None,
            must_refuse: false,
            cut: false,
            keys_waiting: 0,
            readable: true,
            ending: false,
            ended: false,
            closing: false,
            is_asking: false,
            queued: false,
            is_overdrawn: false,
            held: HeldByOne::default(),
            unknown_since: now,
            handshake_since,
            last_request: now,
            bytes_in: 0,
            bytes_out: 0,
        }));
        self.enqueue(place);
    }

    /// Takes note that its handshake is done, if it is.
    pub(super) fn note_handshake(&mut self, connection: &mut Connection) {
        if connection.is_in_handshake() && connection.stream.is_established() {
            connection.unknown_since = self.turn_began;
            self.end_handshake(connection);
        }
    }

    pub(super) fn end_handshake(&mut self, connection: &mut Connection) {
        if let Some(since) = connection.handshake_since.take() {
            self.handshakes.end(since, connection.id.place);
        }
    }
}

#[cfg(test)]
#[path = "arrivals_test.rs"]
mod tests;
