//! The common case over UDP sockets: the fallback everywhere, and the reference for other planes. All
//! decisions are the engine's; this moves its datagrams, many at a time.
mod door;

pub use door::KIND;
pub use quorumwire_datagrams::DATAGRAM_BYTES_MAX;
use quorumwire_datagrams::{Datagrams, Incoming, SocketCounters};
use quorumwire_fastpath::{Counters, Engine, Outbox as _, ReasonCounters, address_of};
pub use quorumwire_fastpath::{Options, endpoint_at, window_max};
use quorumwire_interfaces::{
    Answer, Command, Counter, CounterSink, DataPlane, Endpoint, Grant, Index, Limits, Offload,
    PlaneError, PlaneEvent, PlaneKeys, Registers,
};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A data plane on a UDP socket.
pub struct SocketPlane {
    engine: Engine,
    wire: Datagrams,
    incoming: Incoming,
    /// The last poll ended before everything was taken in.
    more: bool,
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
        Ok(Self {
            engine: Engine::new(options).map_err(refused)?,
            wire: Datagrams::bind(address)?,
            incoming: Incoming::default(),
            more: false,
        })
    }

    /// Answers memcached clients from this socket, which does not block: theirs are the datagrams of
    /// [`take_datagram`](Offload::take_datagram).
    pub fn serve_memcached(&mut self, socket: UdpSocket) {
        self.wire.serve_memcached(socket);
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.wire.local_address()
    }

    /// What the plane has done with packets.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// What the network has done with them.
    #[must_use]
    pub fn socket_counters(&self) -> &SocketCounters {
        self.wire.counters()
    }
}

/// All that this plane counts.
pub const COUNTERS: [&[Counter]; 3] = [
    Counters::DECLARED,
    ReasonCounters::DECLARED,
    SocketCounters::DECLARED,
];

impl AsFd for SocketPlane {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// For memcached clients: it puts their writes into the log, and keeps no answers.
impl Offload for SocketPlane {
    fn take_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let serves = self.wire.serves_memcached();
        let taken = serves && self.engine.take_memcached(from, datagram, &mut self.wire);
        self.wire.flush();
        taken
    }
}

impl DataPlane for SocketPlane {
    fn can_reach(&self, endpoint: &Endpoint) -> bool {
        address_of(endpoint).is_some()
    }

    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        self.engine.set_keys(keys);
    }

    fn set_peer(&mut self, slot: u8, endpoint: &Endpoint) {
        self.engine.set_peer(slot, endpoint);
    }

    fn counters(&self, sink: CounterSink<'_>) {
        self.engine.counters().each_and_reasons(sink);
        self.wire.counters().each(sink);
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

    fn offload(&mut self) -> Option<&mut dyn Offload> {
        Some(self)
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
        let engine = &mut self.engine;
        let mut take = |from, datagram: &[u8], wire: &mut Datagrams| {
            engine.receive(from, datagram, wire, &mut counted);
        };
        self.more = self.incoming.receive(&mut self.wire, budget, &mut take);
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

    fn send_foreign(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.wire.send(to, bytes);
        self.wire.flush();
    }

    /// At once while datagrams wait that the last poll had no budget for: nothing else need wake the
    /// host for these.
    fn poll_again_within(&self) -> Option<Duration> {
        self.more.then_some(Duration::ZERO)
    }
}
