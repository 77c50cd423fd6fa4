//! The clients of this replica's served program: their connections, what they have done, and what they are
//! told.
use super::batches::{Batches, Done};
use anyhow::Context as _;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use quorumwire_interfaces::counters;
use socket2::{Domain, Socket, Type};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::Duration;

/// Clients at once; more are closed at once.
const CLIENTS_MAX: usize = 10_000;
/// Bytes taken of one client in one turn.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a client may leave untaken before it is cut.
const UNTAKEN_BYTES_MAX: usize = 64 << 20;
/// Clients that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Events taken from the system in one turn.
const EVENTS_PER_TURN: usize = 1024;

const TOKEN_DOORBELL: Token = Token(0);
const TOKEN_FIRST_LISTENER: usize = 1;
const TOKEN_FIRST_CLIENT: usize = 1 << 16;

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct GatewayCounters {
        /// Clients of the served program whose connections were accepted
        pub accepted: "served_connections_accepted",
        /// Clients of the served program closed because there are too many
        pub too_many: "served_connections_refused_too_many",
        /// Clients of the served program cut because they took nothing of what it said
        pub cut_slow: "served_connections_cut_slow",
        /// Clients of the served program cut because the log held their replica to be gone
        pub cut_with_gateway: "served_connections_cut_with_gateway",
        /// Bytes taken from clients of the served program
        pub bytes_in: "served_bytes_in",
        /// Bytes of the served program given to its clients
        pub bytes_out: "served_bytes_out",
    }
}

struct Client {
    stream: TcpStream,
    /// The program's bytes that the client has not taken.
    output: VecDeque<u8>,
    /// It sends no more.
    has_ended: bool,
    /// The program sends no more: what is left is written, then that direction ends.
    is_shut: bool,
    /// The program has closed it: what is left is written, then it ends.
    is_closed: bool,
}

/// As the program would have it: IPv6 stands for itself.
fn bind(at: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

struct Port {
    listener: TcpListener,
    /// Where the program listens.
    at: SocketAddr,
}

/// All of them.
pub struct Clients {
    poll: Poll,
    events: Events,
    ports: BTreeMap<usize, Port>,
    each: BTreeMap<u32, Client>,
    next_client: u32,
    next_port: usize,
    /// May have something to be read.
    readable: BTreeSet<u32>,
    /// The program has said something to these.
    told: BTreeSet<u32>,
    /// What connects.
    to_accept: bool,
    buffer: Vec<u8>,
    pub counters: GatewayCounters,
}

impl Clients {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS_PER_TURN),
            ports: BTreeMap::new(),
            each: BTreeMap::new(),
            next_client: 0,
            next_port: TOKEN_FIRST_LISTENER,
            readable: BTreeSet::new(),
            told: BTreeSet::new(),
            to_accept: false,
            buffer: vec![0; READ_BYTES],
            counters: GatewayCounters::default(),
        })
    }

    /// Readable when something is to be done here.
    pub fn descriptor(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    /// The program rings there.
    pub fn watch_doorbell(&self, doorbell: RawFd) -> io::Result<()> {
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&doorbell), TOKEN_DOORBELL, Interest::READABLE)
    }

    /// The program listens there: so does this replica, where `published` says or else at the same place.
    /// A port that is published is so once, however often the program listens there.
    pub fn listen(&mut self, at: SocketAddr, published: Option<SocketAddr>) -> anyhow::Result<()> {
        if self.ports.values().any(|port| port.at == at) {
            return Ok(()); // also of the program before it was saved
        }
        let is_served = self.ports.values().any(|port| port.at.port() == at.port());
        if published.is_some() && is_served {
            return Ok(());
        }
        let published = published.unwrap_or(at);
        let listener = bind(published).map(TcpListener::from_std);
        let mut listener = listener.with_context(|| {
            format!(
                "the served program listens at {at}: cannot listen on {published} (option publish)"
            )
        })?;
        let token = self.next_port;
        self.next_port += 1;
        let registry = self.poll.registry();
        registry.register(&mut listener, Token(token), Interest::READABLE)?;
        tracing::info!(program = %at, published = %listener.local_addr()?, "clients of the served program connect here");
        self.ports.insert(token, Port { listener, at });
        self.to_accept = true;
        Ok(())
    }

    /// It does so no more.
    pub fn unlisten(&mut self, at: SocketAddr) {
        self.ports.retain(|_, port| port.at != at);
    }

    /// Takes note of what the system says; whether the program has rung.
    pub fn look(&mut self) -> io::Result<bool> {
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let looked = self.poll.poll(&mut events, Some(Duration::ZERO));
        let mut has_rung = false;
        for event in &events {
            match event.token() {
                TOKEN_DOORBELL => has_rung = true,
                Token(token) if token < TOKEN_FIRST_CLIENT => self.to_accept = true,
                Token(token) => {
                    let client = u32::try_from(token - TOKEN_FIRST_CLIENT).unwrap_or(u32::MAX);
                    if event.is_readable() || event.is_error() || event.is_read_closed() {
                        self.readable.insert(client);
                    }
                    if event.is_writable() {
                        self.told.insert(client);
                    }
                }
            }
        }
        self.events = events;
        match looked {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(()) | Err(_) => Ok(has_rung),
        }
    }

    /// Looks for those again that could not be accepted, such as for want of a descriptor.
    pub const fn accept_again(&mut self) {
        self.to_accept = true;
    }

    /// Whether somebody may have something to be taken.
    pub fn have_more(&self) -> bool {
        self.to_accept || !self.readable.is_empty()
    }

    /// Takes what clients have done, as far as there is room.
    pub fn take(&mut self, batches: &mut Batches) {
        self.accept(batches);
        for client in std::mem::take(&mut self.readable) {
            if !batches.have_room() {
                self.readable.insert(client); // later
            } else if self.read(client, batches) {
                self.readable.insert(client);
            }
        }
    }

    fn accept(&mut self, batches: &mut Batches) {
        if !std::mem::take(&mut self.to_accept) {
            return;
        }
        let mut accepted = Vec::new();
        for port in self.ports.values() {
            while let Ok((stream, peer)) = port.listener.accept() {
                accepted.push((stream, peer, port.at));
            }
        }
        for (stream, peer, at) in accepted {
            self.add(stream, (peer, at), batches);
        }
    }

    fn add(
        &mut self,
        mut stream: TcpStream,
        (peer, at): (SocketAddr, SocketAddr),
        batches: &mut Batches,
    ) {
        if self.each.len() >= CLIENTS_MAX {
            self.counters.too_many += 1;
            return;
        }
        let client = self.next_client;
        let token = Token(TOKEN_FIRST_CLIENT + client as usize);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut stream, token, interest);
        if registered.and_then(|()| stream.set_nodelay(true)).is_err() {
            return; // gone already
        }
        self.next_client = self.next_client.wrapping_add(1);
        // As the program would see it: at its own port, wherever the client came in.
        let own = if at.ip().is_unspecified() {
            let here = stream.local_addr().map_or(at.ip(), |it| it.ip());
            SocketAddr::new(here, at.port())
        } else {
            at
        };
        let peer = if peer.is_ipv6() == own.is_ipv6() {
            peer
        } else {
            SocketAddr::new(own.ip(), peer.port())
        };
        self.counters.accepted += 1;
        batches.add(Done::Accept { client, peer, own });
        self.each.insert(
            client,
            Client {
                stream,
                output: VecDeque::new(),
                has_ended: false,
                is_shut: false,
                is_closed: false,
            },
        );
        self.readable.insert(client);
    }

    /// Reads once; whether there may be more.
    fn read(&mut self, number: u32, batches: &mut Batches) -> bool {
        let Some(client) = self.each.get_mut(&number) else {
            return false;
        };
        if client.has_ended {
            return false;
        }
        match client.stream.read(&mut self.buffer) {
            Ok(0) => {
                client.has_ended = true;
                batches.add(Done::End { client: number });
                false
            }
            Ok(count) => {
                self.counters.bytes_in += count as u64;
                batches.add(Done::Data {
                    client: number,
                    bytes: self.buffer[..count].to_vec(),
                });
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(_) => {
                self.remove(number, batches);
                false
            }
        }
    }

    /// It is gone.
    fn remove(&mut self, number: u32, batches: &mut Batches) {
        if self.each.remove(&number).is_some() {
            batches.add(Done::Reset { client: number });
        }
    }

    /// The program says something to a client.
    pub fn tell(&mut self, number: u32, bytes: &[u8]) {
        if let Some(client) = self.each.get_mut(&number) {
            client.output.extend(bytes);
            self.told.insert(number);
        }
    }

    /// The program sends this client no more.
    pub fn shut(&mut self, number: u32) {
        if let Some(client) = self.each.get_mut(&number) {
            client.is_shut = true;
            self.told.insert(number);
        }
    }

    /// The program has closed the connection.
    pub fn close(&mut self, number: u32) {
        if let Some(client) = self.each.get_mut(&number) {
            client.is_closed = true;
            self.told.insert(number);
        }
    }

    /// Writes what clients were told.
    pub fn write(&mut self, batches: &mut Batches) {
        for number in std::mem::take(&mut self.told) {
            let Some(client) = self.each.get_mut(&number) else {
                continue;
            };
            let Ok(written) = client.write() else {
                self.remove(number, batches);
                continue;
            };
            self.counters.bytes_out += written;
            if client.output.len() > UNTAKEN_BYTES_MAX {
                self.counters.cut_slow += 1;
                self.remove(number, batches);
            } else if client.output.is_empty() && client.is_closed {
                self.remove(number, batches);
            }
        }
    }

    /// The log holds all of them to be gone.
    pub fn drop_all(&mut self) {
        self.counters.cut_with_gateway += self.each.len() as u64;
        self.each.clear();
        self.readable.clear();
        self.told.clear();
    }
}

impl Client {
    /// Writes what the socket takes; how much.
    fn write(&mut self) -> io::Result<u64> {
        let mut written = 0;
        while !self.output.is_empty() {
            let (bytes, _) = self.output.as_slices();
            match self.stream.write(bytes) {
                Ok(count) => {
                    self.output.drain(..count);
                    written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.is_shut && !self.is_closed {
            self.stream.shutdown(Shutdown::Write).ok(); // gone: reading says so
        }
        Ok(written)
    }
}
