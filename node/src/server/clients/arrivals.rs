//! Clients that arrive: connections are accepted, and handshakes of TLS carried out, as far as there is time
//! for it, so that a flood of strangers costs those who are here little. What comes beyond it waits in the
//! listener's queue; of handshakes under way the oldest gives way.
use super::{
    Clients, Connection, ConnectionId, Front, HeldByOne, Protocol, Stream, TimeBudget, VecDeque,
    clock,
};
use mio::net::TcpStream;
use mio::{Interest, Token};
use quorumwire_control::Now;
use quorumwire_group::Row;
use socket2::{SockRef, TcpKeepalive};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

/// Of each second, for accepting connections.
const ACCEPT_TIME: Duration = Duration::from_millis(150);
/// Of each second, for handshakes of TLS.
const HANDSHAKES_TIME: Duration = Duration::from_millis(250);
/// Handshakes under way at once; no more connections are accepted until one is done, or gives way.
pub const HANDSHAKES_MAX: usize = 128;
/// As many as may go on in a turn, if there is time.
const GO_ON_PER_TURN: usize = 8;
/// A client that has not finished its handshake by then is closed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
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
/// With as many as there may be, one that takes longer than this gives way to who waits.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(1);

/// Handshakes under way, and the time for them.
pub struct Handshakes {
    accepts: TimeBudget,
    time: TimeBudget,
    turn_began: Now,
    /// More connections may wait to be accepted.
    accepts_more: bool,
    /// Whose turn it is to accept.
    next_listener: usize,
    /// Since when, and at which place.
    open: BTreeSet<(Now, u32)>,
    /// Connections that go on when there is time again.
    postponed: VecDeque<u32>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            accepts: TimeBudget::new(ACCEPT_TIME),
            time: TimeBudget::new(HANDSHAKES_TIME),
            turn_began: Now::default(),
            next_listener: 0,
            accepts_more: false,
            open: BTreeSet::new(),
            postponed: VecDeque::new(),
        }
    }
}

impl Handshakes {
    /// Whether there is time for one.
    pub fn may_go_on(&self) -> bool {
        self.time.is_left()
    }

    /// This one goes on later.
    pub fn postpone(&mut self, place: u32) {
        self.postponed.push_back(place);
    }
}

impl Connection {
    /// Whether it is in its handshake.
    pub const fn is_in_handshake(&self) -> bool {
        self.handshake_since.is_some()
    }
}

impl Clients {
    /// Whoever had to wait may go on as far as there is time.
    pub fn begin_turn(&mut self, now: Now) {
        self.handshakes.accepts.begin_turn(now);
        self.handshakes.time.begin_turn(now);
        self.handshakes.turn_began = now;
        if self.handshakes.may_go_on() {
            let postponed = &mut self.handshakes.postponed;
            let go_on = postponed.len().min(GO_ON_PER_TURN);
            self.queue.extend(postponed.drain(..go_on));
        }
        if self.handshakes.accepts_more {
            self.accept(now);
        }
    }

    #[cfg(test)]
    pub const fn turn_began(&self) -> Now {
        self.handshakes.turn_began
    }

    /// Whether the next turn has something to do for those who wait.
    pub fn has_arrivals(&self) -> bool {
        let Handshakes {
            accepts,
            time,
            accepts_more,
            open,
            postponed,
            turn_began: _,
            next_listener: _,
        } = &self.handshakes;
        (*accepts_more && accepts.will_be_left() && open.len() < HANDSHAKES_MAX)
            || (!postponed.is_empty() && time.will_be_left())
    }

    /// So much time went into a handshake.
    pub fn use_up_handshake(&mut self, took: Duration) {
        self.handshakes.time.use_up(took);
    }

    /// Takes new connections, up to the limit; one more is told so and closed.
    pub fn accept(&mut self, now: Now) {
        self.handshakes.accepts_more = false;
        // One of each in turn, so that a flood at one port keeps nobody away from the others.
        let mut in_a_row_empty = 0;
        while in_a_row_empty < self.listeners.len() {
            let place = self.handshakes.next_listener % self.listeners.len();
            let Some((protocol, group)) = self.next_to_accept(place, now) else {
                break;
            };
            self.handshakes.next_listener = place + 1;
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
            self.handshakes.accepts.use_up(took);
        }
    }

    /// What a connection at this listener speaks, and with which group, if there is time and room for one.
    fn next_to_accept(&mut self, place: usize, now: Now) -> Option<(Protocol, usize)> {
        let is_room = self.tls.is_none() || self.has_room_for_handshake(now);
        if !is_room || !self.handshakes.accepts.is_left() {
            self.handshakes.accepts_more = true;
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
        if self.handshakes.open.len() >= HANDSHAKES_MAX
            && let Some((_, place)) = self.handshakes.open.first().copied()
        {
            self.counters.handshakes_displaced += 1;
            self.give_up_handshake(place);
        }
        self.open(stream, from, (protocol, group), now);
    }

    /// Whether one more may begin its handshake, if only because another gives way.
    fn has_room_for_handshake(&self, now: Now) -> bool {
        let oldest = self.handshakes.open.first();
        self.handshakes.open.len() < HANDSHAKES_MAX
            || oldest.is_some_and(|(since, _)| is_over(now, *since, HANDSHAKE_PATIENCE))
    }

    /// Has those closed whose handshake takes too long.
    pub fn time_out_handshakes(&mut self, now: Now) {
        while let Some((since, place)) = self.handshakes.open.first().copied()
            && is_over(now, since, HANDSHAKE_TIMEOUT)
        {
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
            self.handshakes.open.insert((now, place));
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
            connection.unknown_since = self.handshakes.turn_began;
            self.end_handshake(connection);
        }
    }

    pub(super) fn end_handshake(&mut self, connection: &mut Connection) {
        if let Some(since) = connection.handshake_since.take() {
            self.handshakes.open.remove(&(since, connection.id.place));
        }
    }
}

fn is_over(now: Now, since: Now, time: Duration) -> bool {
    now.0.saturating_sub(since.0) > time
}

#[cfg(test)]
#[path = "arrivals_test.rs"]
mod tests;
