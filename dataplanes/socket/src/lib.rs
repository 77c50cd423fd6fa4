//! The common case over UDP sockets: the fallback everywhere, and the reference for other planes. All
//! decisions are the engine's; this moves its datagrams, many at a time.
mod ffi;

use ffi::{Arrived, BATCH_MAX, Leaving};
pub use quorumwire_fastpath::Options;
use quorumwire_fastpath::{Counters, Engine, Outbox};
use quorumwire_interfaces::{
    Answer, Command, DataPlane, Grant, Index, Limits, PlaneError, PlaneEvent, PlaneKeys, Registers,
};
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Longest datagram taken in. Ours are at most 1,448 bytes, those of foreign clients hardly more.
pub const DATAGRAM_BYTES_MAX: usize = 2048;
/// What is asked of the system for datagrams that wait; it may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// What happened between the plane and the network. All are numbers of datagrams but the last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SocketCounters {
    /// Came in whole.
    pub received: u64,
    /// Came in longer than [`DATAGRAM_BYTES_MAX`], or from nowhere, and were dropped.
    pub cut: u64,
    /// Went out.
    pub sent: u64,
    /// Did not go out: the system had no room.
    pub lost_full: u64,
    /// Did not go out for another reason, such as an address that cannot be reached.
    pub lost_error: u64,
    /// Times that receiving failed.
    pub receive_errors: u64,
}

/// A data plane on a UDP socket.
pub struct SocketPlane {
    engine: Engine,
    wire: Wire,
    /// Places for datagrams that come in.
    incoming: Vec<u8>,
    arrived: Vec<Arrived>,
    /// The last poll ended before everything was taken in.
    more: bool,
}

/// The socket and what is about to leave through it.
struct Wire {
    socket: UdpSocket,
    ipv6: bool,
    /// Where memcached clients are answered from.
    memcached: Option<UdpSocket>,
    counters: SocketCounters,
    /// Datagrams one behind the other, and where each ends.
    bytes: Vec<u8>,
    waiting: Vec<(SocketAddr, usize)>,
}

impl SocketPlane {
    /// A plane that is off, listening. An error names what the system refused, or the option.
    pub fn bind(address: SocketAddr, options: Options) -> io::Result<Self> {
        let refused = |error: PlaneError| {
            let PlaneError::Refused(text) = error else {
                return io::Error::other(format!("{error:?}"));
            };
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let engine = Engine::new(options).map_err(refused)?;
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let options = SockRef::from(&socket);
        // Less than asked for costs datagrams that are sent again, nothing else.
        let _ = options.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
        let _ = options.set_send_buffer_size(SOCKET_BUFFER_BYTES);
        Ok(Self {
            engine,
            wire: Wire {
                ipv6: socket.local_addr()?.is_ipv6(),
                socket,
                memcached: None,
                counters: SocketCounters::default(),
                bytes: Vec::new(),
                waiting: Vec::new(),
            },
            incoming: vec![0; BATCH_MAX * DATAGRAM_BYTES_MAX],
            arrived: Vec::with_capacity(BATCH_MAX),
            more: false,
        })
    }

    /// Answers memcached clients from this socket, which does not block: theirs are the datagrams of
    /// [`take_memcached`](DataPlane::take_memcached).
    pub fn serve_memcached(&mut self, socket: UdpSocket) {
        self.wire.memcached = Some(socket);
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.wire.socket.local_addr()
    }

    /// What the plane has done with packets.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// What the network has done with them.
    #[must_use]
    pub fn socket_counters(&self) -> &SocketCounters {
        &self.wire.counters
    }

    /// Takes in one batch of at most `budget` datagrams; how many there were.
    fn receive_batch(&mut self, budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let mut places: Vec<&mut [u8]> = self
            .incoming
            .chunks_exact_mut(DATAGRAM_BYTES_MAX)
            .take(budget)
            .collect();
        let socket = self.wire.socket.as_fd();
        if let Err(error) = ffi::receive(socket, &mut places, &mut self.arrived) {
            let nothing_there = error.kind() == io::ErrorKind::WouldBlock;
            self.wire.counters.receive_errors += u64::from(!nothing_there);
            return 0;
        }
        for (place, arrived) in places.iter().zip(&self.arrived) {
            let Some(from) = arrived.from.filter(|_| !arrived.cut) else {
                self.wire.counters.cut += 1;
                continue;
            };
            self.wire.counters.received += 1;
            let datagram = &place[..arrived.bytes];
            self.engine.receive(from, datagram, &mut self.wire, sink);
        }
        self.wire.flush();
        self.arrived.len()
    }
}

impl Outbox for Wire {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        if self.waiting.len() == BATCH_MAX {
            self.flush();
        }
        self.bytes.extend_from_slice(datagram);
        self.waiting.push((to, self.bytes.len()));
    }

    fn send_memcached(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(socket) = &self.memcached else {
            return;
        };
        match socket.send_to(datagram, to) {
            Ok(_) => self.counters.sent += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.counters.lost_full += 1,
            Err(_) => self.counters.lost_error += 1,
        }
    }
}

impl Wire {
    /// Sends everything that waits. What cannot be sent is lost, and counted.
    fn flush(&mut self) {
        let mut leaving = Vec::with_capacity(self.waiting.len());
        let mut start = 0;
        for (to, end) in &self.waiting {
            leaving.push(Leaving {
                to: *to,
                bytes: &self.bytes[start..*end],
            });
            start = *end;
        }
        let mut rest = &leaving[..];
        while !rest.is_empty() {
            let done = match ffi::send(self.socket.as_fd(), self.ipv6, rest) {
                Ok(sent) => {
                    self.counters.sent += sent as u64;
                    sent.max(1)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.counters.lost_full += rest.len() as u64;
                    rest.len()
                }
                Err(_) => {
                    self.counters.lost_error += 1;
                    1
                }
            };
            rest = rest.get(done..).unwrap_or_default();
        }
        self.waiting.clear();
        self.bytes.clear();
    }
}

impl AsFd for SocketPlane {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.socket.as_fd()
    }
}

impl DataPlane for SocketPlane {
    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        self.engine.set_keys(keys);
    }

    fn set_peer(&mut self, slot: u8, address: SocketAddr) {
        self.engine.set_peer(slot, address);
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.engine.counters().each(sink);
        let network = &self.wire.counters;
        sink("socket_received", network.received);
        sink("socket_dropped_cut", network.cut);
        sink("socket_sent", network.sent);
        sink("socket_lost_full", network.lost_full);
        sink("socket_lost_error", network.lost_error);
        sink("socket_receive_errors", network.receive_errors);
    }

    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        self.engine.engage(grant)
    }

    /// Nothing waits in this plane between two calls, so there is nothing to hold back.
    fn disengage(&mut self) -> Registers {
        self.engine.disengage()
    }

    fn registers(&self) -> Registers {
        self.engine.registers()
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        let taken = self.engine.submit(commands, &mut self.wire);
        self.wire.flush();
        taken
    }

    fn take_memcached(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let serves = self.wire.memcached.is_some();
        let taken = serves && self.engine.take_memcached(from, datagram, &mut self.wire);
        self.wire.flush();
        taken
    }

    fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError> {
        let begun = self.engine.heartbeat(round, &mut self.wire);
        self.wire.flush();
        begun
    }

    fn poll(&mut self, budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let mut events = 0;
        let mut counted = |event: PlaneEvent<'_>| {
            events += 1;
            sink(event);
        };
        let mut left = budget;
        while left > 0 {
            let asked = left.min(BATCH_MAX);
            let received = self.receive_batch(asked, &mut counted);
            left -= received;
            if received < asked {
                break;
            }
        }
        self.more = left == 0;
        self.engine.take(&mut counted);
        events
    }

    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        let done = self.engine.persisted(upto, &mut self.wire);
        self.wire.flush();
        done
    }

    fn release(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.engine.release(upto)
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        self.engine.answer(answer, &mut self.wire);
        self.wire.flush();
    }

    /// At once while datagrams wait that the last poll had no budget for: nothing else need wake the
    /// host for these.
    fn poll_again_within(&self) -> Option<Duration> {
        self.more.then_some(Duration::ZERO)
    }
}
