//! Client connections: bytes in, answers out, and the order between them. Knows the requests only as
//! slots that are answered in the order in which they came; what they ask is `requests.rs`' business.
use super::clock;
use super::connection_id::ConnectionId;
use super::fronts::native::{NativeClient, NativeCounters};
use super::fronts::redis::RedisClient;
use super::fronts::{Front, Protocol};
use super::handshakes::Handshakes;
use super::stream::Stream;
use crate::descriptors::Starvation;
use mio::Registry;
use mio::event::Event;
use mio::net::TcpListener;
use quorumwire_control::Now;
use quorumwire_group::Row;
use quorumwire_interfaces::counters;
use rustls::ServerConfig;
use std::collections::VecDeque;
use std::io::{self, Read, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
mod arrivals;
mod linger;
mod memory;
mod overdrawn;
mod readable;
mod slots;
mod waits;

use self::linger::Linger;
use self::memory::{Held, HeldByOne};
use self::readable::Readable;
pub use self::slots::{Slot, SlotKind, Statistics};
use self::waits::Wait;
pub use quorumwire_group::{AnswerKind, ReadState};

/// Requests of one connection that may wait for their answers; it is read no further until some are
/// answered.
pub const SLOTS_MAX: usize = 1024;
/// Answers of one connection that may wait to be taken; it is read no further until it takes some.
pub const OUTPUT_BYTES_MAX: usize = 2 << 20;
/// Lines of one connection's reads that may wait, but for the last: Redis' are as long as a command.
const LINES_BYTES_MAX: usize = 4 << 20;
/// Bytes taken from one connection in one turn, so that none starves the others.
const READ_BYTES_PER_TURN: usize = 1 << 20;
/// Room made at least for the rest of a request that came in pieces.
const INPUT_BYTES_MIN: usize = 4 << 10;
/// A connection keeps its buffer for answers from one to the next up to this size.
const KEPT_BUFFER_BYTES: usize = 256 << 10;

/// Where clients connect.
pub struct Listener {
    pub socket: TcpListener,
    /// What they speak there.
    pub protocol: Protocol,
    /// The place of the group that they ask in the list of the server's.
    pub group: usize,
}

/// One client.
pub struct Connection {
    pub id: ConnectionId,
    /// The place of the group that it asks in the list of the server's.
    pub group: usize,
    /// What its client speaks.
    pub front: Front,
    stream: Stream,
    /// Whether the client may ask for anything: it has said who it is, or need not.
    pub is_let_in: bool,
    /// Bytes that came and are not parsed yet; `input[..filled]` is real.
    input: Vec<u8>,
    filled: usize,
    /// Nothing new can be found before this many bytes are there.
    needed: usize,
    /// So many of them hold no end of a line.
    pub searched: usize,
    /// Bytes to throw away before the next request.
    pub swallow: usize,
    pub output: Vec<u8>,
    written: usize,
    pub slots: Row<Slot>,
    /// Bytes of answers in `slots`.
    answers_bytes: usize,
    /// Lines of the reads in `slots`, one behind the other.
    lines: VecDeque<u8>,
    /// What those in `slots` are likely to cost that are on their way.
    work_waiting: usize,
    /// The next request can go nowhere now (no leader, no room): looked at again when that changes.
    pub stalled: bool,
    /// Since when it has waited for the same thing.
    wait: Option<Wait>,
    /// What can go nowhere is refused until something can: it has waited for long enough.
    pub must_refuse: bool,
    /// The answer of the first read was cut for want of room.
    pub cut: bool,
    /// Keys of the reads among `slots`.
    pub keys_waiting: usize,
    readable: bool,
    ending: bool,
    /// The client sends nothing more; it may still want its answers.
    ended: bool,
    /// Nothing more is read; closed once all is answered and taken.
    pub closing: bool,
    /// It is hung up on, and told why.
    linger: Option<Linger>,
    /// Something it asked of the whole server is not answered yet.
    pub is_asking: bool,
    queued: bool,
    /// It has used up its share of a turn, and waits for those who have not.
    is_overdrawn: bool,
    /// What it held when it was last looked at.
    held: HeldByOne,
    /// Since when it has had time to say who it is: the end of its handshake, or when it came without one.
    pub unknown_since: Now,
    /// When it came, as long as its handshake is under way.
    handshake_since: Option<Now>,
    /// When its last request was taken on; before the first, when it came.
    pub last_request: Now,
    /// Bytes that came and went and are not counted yet.
    bytes_in: u64,
    bytes_out: u64,
}

/// What reading a connection came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Intake {
    /// There may be more.
    More,
    /// Nothing more for now.
    Drained,
    /// The connection is broken.
    Broken,
}

impl Connection {
    /// What is kept of a Redis client.
    pub fn redis(&self) -> Option<&RedisClient> {
        match &self.front {
            Front::Redis(client) => Some(client),
            Front::Memcached | Front::Native(_) => None,
        }
    }

    /// See [`Self::redis`].
    pub fn redis_mut(&mut self) -> Option<&mut RedisClient> {
        match &mut self.front {
            Front::Redis(client) => Some(client),
            Front::Memcached | Front::Native(_) => None,
        }
    }

    /// What is kept of a client of the native protocol.
    pub fn native(&self) -> Option<&NativeClient> {
        match &self.front {
            Front::Native(client) => Some(client),
            Front::Memcached | Front::Redis(_) => None,
        }
    }

    /// See [`Self::native`].
    pub fn native_mut(&mut self) -> Option<&mut NativeClient> {
        match &mut self.front {
            Front::Native(client) => Some(client),
            Front::Memcached | Front::Redis(_) => None,
        }
    }

    /// Whether another request may be taken on.
    pub fn has_room(&self) -> bool {
        let waiting = self.output_waiting() + self.answers_bytes;
        !self.closing && self.slots.len() < SLOTS_MAX && waiting < OUTPUT_BYTES_MAX
    }

    /// Answers that wait to be taken, in bytes.
    pub fn output_waiting(&self) -> usize {
        self.output.len() - self.written
    }

    /// The number the next slot will get.
    pub fn next_slot(&self) -> u64 {
        self.slots.next_number()
    }

    /// Its number among those that are open, and where it comes from and goes to.
    pub fn address(&self) -> (u32, [io::Result<SocketAddr>; 2]) {
        let socket = self.stream.socket();
        let ends = [socket.peer_addr(), socket.local_addr()];
        (self.id.place, ends)
    }

    /// The number of its socket in this process, and the address that its client connected to.
    pub fn own_end(&self) -> (i32, Option<SocketAddr>) {
        let socket = self.stream.socket();
        (socket.as_raw_fd(), socket.local_addr().ok())
    }

    /// Takes bytes off the socket and has `parse` look at everything unparsed; `parse` gives back how
    /// many bytes it took and how many it needs to see before it can take more.
    pub fn take_in(
        &mut self,
        scratch: &mut [u8],
        mut parse: impl FnMut(&mut Self, &[u8]) -> (usize, usize),
    ) -> Intake {
        if self.has_to_drain() {
            return self.drain(scratch);
        }
        self.stalled = false;
        self.reparse(&mut parse);
        let mut taken = 0;
        while self.readable && self.has_room() && taken < READ_BYTES_PER_TURN {
            if self.stalled || (self.filled > 0 && self.filled >= self.needed) {
                return Intake::Drained; // parse is held up by something else than bytes
            }
            let result = if self.filled == 0 {
                self.stream.read(scratch)
            } else {
                // Room for as much again as came already: what was only announced takes no memory.
                let more = self.filled.clamp(INPUT_BYTES_MIN, scratch.len());
                let missing = self.needed.saturating_sub(self.filled);
                // Of a line whose end has not come only one byte more is known to be needed.
                let wanted = missing.max(INPUT_BYTES_MIN);
                self.input.resize(self.filled + more.min(wanted), 0);
                self.stream.read(&mut self.input[self.filled..])
            };
            let count = match result {
                Ok(0) => {
                    self.readable = false;
                    self.ended = true;
                    return Intake::Drained;
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Intake::Drained;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Intake::Broken,
            };
            taken += count;
            self.bytes_in += count as u64;
            if self.filled == 0 {
                self.readable = count == scratch.len() || self.has_more();
                let (used, needed) = parse(self, &scratch[..count]);
                self.keep(&scratch[used..count], needed);
            } else {
                let room = self.input.len() - self.filled;
                self.readable = count == room || self.has_more();
                self.filled += count;
                self.reparse(&mut parse);
            }
        }
        if self.readable {
            Intake::More
        } else {
            Intake::Drained
        }
    }

    /// Whether `take_in` has something to do, and room to do it.
    pub fn wants_intake(&self) -> bool {
        let may_parse = self.has_room() && !self.stalled && (self.readable || self.has_unparsed());
        may_parse || self.has_to_drain()
    }

    /// Whether an answer was cut for want of room and there is room again.
    pub fn wants_output(&self) -> bool {
        self.cut && self.output_waiting() < OUTPUT_BYTES_MAX
    }

    fn reparse(&mut self, parse: &mut impl FnMut(&mut Self, &[u8]) -> (usize, usize)) {
        if self.filled == 0 || self.filled < self.needed {
            return;
        }
        let input = std::mem::take(&mut self.input);
        let filled = self.filled;
        let (used, needed) = parse(self, &input[..filled]);
        self.input = input;
        self.needed = needed;
        if used > 0 {
            self.input.copy_within(used..filled, 0);
            self.filled = filled - used;
        }
        if self.filled == 0 {
            self.input = Vec::new(); // idle connections hold no buffer
        }
    }

    fn keep(&mut self, rest: &[u8], needed: usize) {
        self.needed = needed;
        self.filled = rest.len();
        if !rest.is_empty() {
            self.input.clear();
            self.input.extend_from_slice(rest);
        }
    }

    /// Sends what waits. False: the connection is broken.
    fn send(&mut self) -> bool {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return false,
                Ok(count) => {
                    self.written += count;
                    self.bytes_out += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.written >= OUTPUT_BYTES_MAX / 2 {
                        self.output.drain(..self.written); // or it would grow while it is taken slowly
                        self.written = 0;
                    }
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.output.clear();
        self.written = 0;
        if self.output.capacity() > KEPT_BUFFER_BYTES {
            self.output = Vec::new(); // a large answer's buffer is not kept
        }
        self.stream.flush().is_ok()
    }

    /// Whether its client sends nothing more, or is gone.
    pub fn is_leaving(&self) -> bool {
        self.ending || self.ended
    }

    fn is_done(&mut self) -> bool {
        let takes_no_more = self.closing || (self.ended && !self.has_unparsed());
        let is_sent = self.output_waiting() == 0 && !self.stream.has_unsent();
        takes_no_more && self.slots.is_empty() && is_sent && !self.lingers()
    }

    /// Whether a read that came to little may have left something.
    fn has_more(&self) -> bool {
        self.ending || self.stream.may_have_more()
    }

    /// Whether a request has begun to come and its end has not.
    fn is_within_request(&self) -> bool {
        self.swallow > 0
            || self.front.is_skipping()
            || (self.filled > 0 && self.filled < self.needed)
    }

    /// Whether something came that has not been looked at in full.
    fn has_unparsed(&self) -> bool {
        self.filled > 0 && self.filled >= self.needed
    }
}

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ClientCounters {
        /// Client connections accepted
        pub accepted: "client_connections_accepted",
        /// Client connections refused at connections-max
        pub refused_too_many: "client_connections_refused_too_many",
        /// Client connections closed by their client
        pub closed_by_client: "client_connections_closed_by_client",
        /// Client connections closed because they broke
        pub closed_broken: "client_connections_closed_broken",
        /// Client connections ended by CLIENT KILL
        pub killed: "client_connections_killed",
        /// Client connections closed because all of them held more than client-buffers-mib, and these the
        /// most for the longest
        pub closed_for_memory: "client_connections_closed_for_memory",
        /// Client connections closed because they did not authenticate in time
        pub closed_unknown: "client_connections_closed_unknown",
        /// Bytes taken from client connections
        pub bytes_in: "client_bytes_in",
        /// Bytes given to client connections
        pub bytes_out: "client_bytes_out",
        /// Client connections closed because they did not speak TLS 1.3, or broke it
        pub refused_by_tls: "client_connections_refused_by_tls",
        /// Client connections closed because their TLS handshake took too long
        pub handshakes_timed_out: "client_handshakes_timed_out",
        /// Client connections closed in their TLS handshake because they were slow and others waited
        pub handshakes_displaced: "client_handshakes_displaced",
        /// Times a client's TLS handshake had to wait for its share of the server's time
        pub handshakes_postponed: "client_handshakes_postponed",
        /// Clients of the port `client` that broke off within a message
        pub native_truncated: "client_port_closed_truncated",
        /// Memcached and Redis clients that broke off within a request
        pub closed_truncated: "client_connections_closed_truncated",
    }
}

/// All client connections.
pub struct Clients {
    listeners: Vec<Listener>,
    registry: Registry,
    first_token: usize,
    connections_max: usize,
    /// No client need say who it is.
    pub lets_everybody_in: bool,
    /// How connections are secured; none: not at all.
    pub tls: Option<Arc<ServerConfig>>,
    handshakes: Handshakes,
    turn_began: Now,
    /// Whose turn it is to accept.
    next_listener: usize,
    /// Those that could not be accepted for want of a descriptor.
    pub starvation: Starvation,
    /// What connections hold together.
    pub held: Held,
    unknown_looked_at: Now,
    waits_looked_at: Now,
    /// When it is looked next for clients that do not say hello.
    pub hellos_next: Now,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    next_serial: u32,
    open_count: usize,
    readable: Readable,
    /// Connections to look at before the turn ends: something to read, an answer to send.
    queue: VecDeque<u32>,
    /// Those that used up their share of a turn: they come behind who asks in the next one.
    overdrawn: Vec<ConnectionId>,
    pub counters: ClientCounters,
    /// Of the native protocol.
    pub native_counters: NativeCounters,
}

impl Clients {
    pub fn new(
        listeners: Vec<Listener>,
        registry: Registry,
        first_token: usize,
        connections_max: usize,
    ) -> Self {
        Self {
            listeners,
            registry,
            first_token,
            connections_max,
            lets_everybody_in: true,
            tls: None,
            handshakes: Handshakes::default(),
            turn_began: Now::default(),
            next_listener: 0,
            starvation: Starvation::default(),
            held: Held::default(),
            unknown_looked_at: Now::default(),
            waits_looked_at: Now::default(),
            hellos_next: Now::default(),
            connections: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            open_count: 0,
            readable: Readable::default(),
            queue: VecDeque::new(),
            overdrawn: Vec::new(),
            counters: ClientCounters::default(),
            native_counters: NativeCounters::default(),
        }
    }

    /// Connections open now.
    pub fn count(&self) -> usize {
        self.open_count
    }

    /// Those that are not lent.
    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().flatten().map(AsRef::as_ref)
    }

    /// Handles readiness of one of our tokens.
    pub fn ready(&mut self, event: &Event) {
        let place = event.token().0 - self.first_token;
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return; // closed earlier in this turn
        };
        connection.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        connection.ending |= event.is_read_closed() || event.is_error();
        self.readable
            .add(u32::try_from(place).expect("places are u32"));
    }

    /// Has those looked at that have something to read; if this turn has answered others, perhaps in the next
    /// one.
    pub fn let_readable_in(&mut self, has_answered: bool) {
        let mut readable = std::mem::take(&mut self.readable);
        for place in readable.take(has_answered) {
            self.enqueue(place);
        }
        self.readable = readable;
    }

    /// Whether some wait for the next turn.
    pub fn has_readable(&self) -> bool {
        self.readable.are_waiting()
    }

    /// The connection, unless it is gone.
    pub fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(id.place as usize)?.as_mut()?;
        (connection.id == id).then_some(connection)
    }

    /// Has the connection looked at before the turn ends.
    pub fn attend(&mut self, id: ConnectionId) {
        if self.get(id).is_some() {
            self.enqueue(id.place);
        }
    }

    /// Has every connection looked at: leadership changed, or room came back.
    pub fn attend_all(&mut self) {
        for place in 0..self.connections.len() {
            if self.connections[place].is_some() {
                self.enqueue(u32::try_from(place).expect("places are u32"));
            }
        }
    }

    fn enqueue(&mut self, place: u32) {
        if let Some(Some(connection)) = self.connections.get_mut(place as usize)
            && !connection.queued
            && !connection.is_overdrawn
        {
            connection.queued = true;
            self.queue.push_back(place);
        }
    }

    /// How many connections wait to be looked at.
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Lends the next connection that is to be looked at; give it back with [`Self::put_back`].
    pub fn take_next(&mut self) -> Option<Box<Connection>> {
        while let Some(place) = self.queue.pop_front() {
            let Some(mut connection) = self.connections[place as usize].take() else {
                continue;
            };
            if connection.handshake_since.is_some() && !self.handshakes.may_go_on() {
                self.handshakes.postpone(place);
                self.counters.handshakes_postponed += 1;
                self.connections[place as usize] = Some(connection); // and it stays marked as queued
                continue;
            }
            connection.queued = false;
            return Some(connection);
        }
        None
    }

    /// Lends this connection, if it is open.
    pub fn take(&mut self, id: ConnectionId) -> Option<Box<Connection>> {
        self.get(id)?;
        self.connections[id.place as usize].take()
    }

    /// Takes a lent connection back without sending.
    pub fn put_back(&mut self, connection: Box<Connection>) {
        let place = connection.id.place as usize;
        debug_assert!(self.connections[place].is_none());
        self.connections[place] = Some(connection);
    }

    /// Takes a lent connection back, sends its answers, closes it if it is done or `broken`. Returns
    /// whether it is still open.
    pub fn send_and_put_back(&mut self, mut connection: Box<Connection>, broken: bool) -> bool {
        let broken = broken || !connection.send();
        self.note_handshake(&mut connection);
        self.counters.bytes_in += std::mem::take(&mut connection.bytes_in);
        self.counters.bytes_out += std::mem::take(&mut connection.bytes_out);
        if let Some(native) = connection.native_mut() {
            self.native_counters.add_all(&native.take_counters());
        }
        if !broken && !connection.is_done() {
            connection.give_back();
            self.count_held(&mut connection);
            self.put_back(connection);
            return true;
        }
        if connection.stream.has_failed() {
            self.counters.refused_by_tls += 1;
        } else if broken {
            self.counters.closed_broken += 1;
        } else {
            self.counters.closed_by_client += 1;
        }
        if connection.is_within_request() && !connection.closing {
            let counters = &mut self.counters;
            match connection.front {
                Front::Native(_) => counters.native_truncated += 1,
                Front::Memcached | Front::Redis(_) => counters.closed_truncated += 1,
            }
        }
        self.close(connection);
        false
    }

    /// Ends a connection that is not lent, whatever it waits for.
    pub fn kill(&mut self, id: ConnectionId) {
        if let Some(connection) = self.take(id) {
            self.counters.killed += 1;
            self.close(connection);
        }
    }

    fn close(&mut self, mut connection: Box<Connection>) {
        self.end_handshake(&mut connection);
        self.forget_held(&connection);
        connection.stream.say_end();
        self.registry.deregister(&mut connection.stream).ok();
        self.free.push(connection.id.place);
        self.open_count -= 1;
    }

    /// Takes no request from anybody any more; each connection closes once it has its answers.
    pub fn close_all(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            connection.closing = true;
        }
        self.attend_all();
    }

    /// Whether every request taken on has been answered and every answer taken.
    pub fn are_idle(&self) -> bool {
        self.connections.iter().flatten().all(|connection| {
            let is_sent = connection.output_waiting() == 0 && !connection.stream.has_unsent();
            connection.slots.is_empty() && is_sent
        })
    }
}
