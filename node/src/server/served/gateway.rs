//! The clients of this replica's served program: their connections, what they have done, and what they are
//! told.
use super::super::clock;
use super::super::handshakes::Handshakes;
use super::super::stream::Stream;

use super::NoClients;
use super::datagrams::Datagrams;
use crate::options::{ProgramPort, Transport};
use anyhow::Context as _;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use quorumwire_control::Now;
use quorumwire_interfaces::counters;
use quorumwire_replay::{Batches, Done};
use rustls::ServerConfig;
use socket2::{Domain, Socket, Type};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// Clients at once; more are closed at once.
const CLIENTS_MAX: usize = 10_000;
/// Bytes taken of one client in one turn.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a client may leave untaken before it is cut.
const UNTAKEN_BYTES_MAX: usize = 64 << 20;
/// A client whose connection the program has closed is cut when it has taken nothing of the rest for so long.
const CLOSED_TAKES_NOTHING: Duration = Duration::from_secs(10);
/// A port that is published and that the program has not opened so long after its start is worth a warning.
const OPENS_PORTS_WITHIN: Duration = Duration::from_secs(10);
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
        /// Clients of the served program cut because all together held too much of what it said
        pub cut_for_memory: "served_connections_cut_for_memory",
        /// Clients of the served program cut because the log held their replica to be gone
        pub cut_with_gateway: "served_connections_cut_with_gateway",
        /// Clients of the served program refused, or cut, because their replica does not lead
        pub refused_by_follower: "served_connections_refused_by_follower",
        /// Clients of the served program refused, or cut, because the log, kept whole, has reached its limit
        pub refused_log_full: "served_connections_refused_log_full",
        /// Clients of the served program refused, or lost, because of TLS
        pub refused_by_tls: "served_connections_refused_by_tls",
        /// Clients of the served program that went away before their TLS handshake was done
        pub gone_in_handshake: "served_connections_gone_in_handshake",
        /// Clients of the served program closed because their TLS handshake took too long
        pub handshakes_timed_out: "served_handshakes_timed_out",
        /// Clients of the served program closed in a slow TLS handshake because others waited
        pub handshakes_displaced: "served_handshakes_displaced",
        /// Times the TLS handshake of a client of the served program had to wait for its share of time
        pub handshakes_postponed: "served_handshakes_postponed",
        /// Bytes taken from clients of the served program
        pub bytes_in: "served_bytes_in",
        /// Bytes of the served program given to its clients
        pub bytes_out: "served_bytes_out",
        /// Times the served program wanted to connect to another server, and was refused
        pub outbound: "served_outbound_refused",
    }
}

/// Where clients reach this port of the program's, if that was said.
pub fn published_at(
    published: &BTreeMap<ProgramPort, SocketAddr>,
    number: u16,
    transport: Transport,
) -> Option<SocketAddr> {
    let mut ports = [Some(transport), None].into_iter();
    ports.find_map(|transport| {
        let port = ProgramPort { number, transport };
        published.get(&port).copied()
    })
}

struct Client {
    stream: Stream,
    /// From where to where it has connected, as the program sees it.
    ends: (SocketAddr, SocketAddr),
    /// Since when it is in its handshake; the log knows nothing of it then.
    handshake_since: Option<Now>,
    /// The program's bytes that the client has not taken.
    output: VecDeque<u8>,
    /// Memory of that, as it was counted.
    held: usize,
    /// It waits to be read.
    is_queued: bool,
    /// It sends no more.
    has_ended: bool,
    /// The program sends no more: what is left is written, then that direction ends.
    is_shut: bool,
    /// The program has closed it: what is left is written, then it ends.
    is_closed: bool,
    /// When it was closed, or has taken something since.
    took_at: Now,
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
    pub datagrams: Datagrams,
    each: BTreeMap<u32, Client>,
    next_client: u32,
    next_port: usize,
    /// May have something to be read: who has waited longest first.
    readable: VecDeque<u32>,
    /// The program has said something to these.
    told: BTreeSet<u32>,
    /// Cut, and the log does not know.
    cut: Vec<u32>,
    /// Memory of what all have not taken.
    held: usize,
    held_max: usize,
    /// The program is served wherever it listens, also beyond loopback.
    is_exposed: bool,
    /// When the program began, until its ports were looked at.
    began_at: Option<Now>,
    has_looked_for_ports: bool,
    /// This replica does not lead, and is to serve nobody then.
    refuses: Option<NoClients>,
    /// How connections are secured; none: not at all.
    pub tls: Option<Arc<ServerConfig>>,
    handshakes: Handshakes,
    /// Whose turn it is to accept.
    first_port: usize,
    /// Ports at which it listens or has listened.
    opened: BTreeSet<(u16, Transport)>,
    /// How often this program wanted to connect to another server.
    outbound: u64,
    /// What connects.
    to_accept: bool,
    buffer: Vec<u8>,
    pub counters: GatewayCounters,
}

impl Clients {
    pub fn new(held_max: usize, is_exposed: bool) -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS_PER_TURN),
            ports: BTreeMap::new(),
            datagrams: Datagrams::default(),
            each: BTreeMap::new(),
            next_client: 0,
            next_port: TOKEN_FIRST_LISTENER,
            readable: VecDeque::new(),
            told: BTreeSet::new(),
            cut: Vec::new(),
            held: 0,
            held_max,
            is_exposed,
            began_at: None,
            has_looked_for_ports: false,
            refuses: None,
            tls: None,
            handshakes: Handshakes::default(),
            first_port: 0,
            opened: BTreeSet::new(),
            outbound: 0,
            to_accept: false,
            buffer: vec![0; READ_BYTES],
            counters: GatewayCounters::default(),
        })
    }

    /// Readable when something is to be done here.
    pub fn descriptor(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    /// The program begins, and rings there.
    pub fn watch_doorbell(&mut self, doorbell: RawFd) -> io::Result<()> {
        self.began_at = Some(clock::now());
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&doorbell), TOKEN_DOORBELL, Interest::READABLE)
    }

    /// The program listens there: so does this replica, where `published` says or else at the same place.
    /// A port that is published is so once, however often the program listens there; likewise an address, at
    /// which it may listen again when it begins anew.
    pub fn listen(
        &mut self,
        at: SocketAddr,
        transport: Transport,
        published: Option<SocketAddr>,
    ) -> anyhow::Result<()> {
        self.opened.insert((at.port(), transport));
        match transport {
            Transport::Tcp => self.listen_for_connections(at, published),
            Transport::Udp if self.datagrams.serve(at, published.is_some()) => Ok(()),
            Transport::Udp => {
                let served = published.unwrap_or_else(|| self.own_place(at, transport));
                anyhow::ensure!(
                    self.is_exposed || served.ip().is_loopback(),
                    "the served program takes datagrams at {at}: {served} is no loopback address, and datagrams \
                     are not encrypted: --insecure serves them there, and --publish PORT/udp=IP:PORT elsewhere"
                );
                let token = self.next_port;
                self.next_port += 1;
                self.datagrams
                    .listen(at, served, (token, self.poll.registry()))
            }
        }
    }

    fn listen_for_connections(
        &mut self,
        at: SocketAddr,
        published: Option<SocketAddr>,
    ) -> anyhow::Result<()> {
        let is_published = published.is_some();
        let is_served =
            |port: &Port| port.at == at || (is_published && port.at.port() == at.port());
        if self.ports.values().any(is_served) {
            return Ok(());
        }
        let published = published.unwrap_or_else(|| self.own_place(at, Transport::Tcp));
        let listener = bind(published).map(TcpListener::from_std);
        let mut listener = listener.with_context(|| {
            format!(
                "the served program listens at {at}: cannot listen on {published}: \
                 --publish PORT=IP:PORT serves it elsewhere"
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

    /// How many there are, and what they hold in memory.
    pub fn load(&self) -> (u64, u64) {
        (self.each.len() as u64, self.held as u64)
    }

    /// Where clients reach the program.
    pub fn served_at(&self) -> Vec<String> {
        let ports = self.ports.values();
        let at = ports.filter_map(|port| port.listener.local_addr().ok());
        let connections = at.map(|at| at.to_string());
        let datagrams = self.datagrams.served_at().map(|at| format!("{at}/udp"));
        connections.chain(datagrams).collect()
    }

    /// Where a port is served that is not published: where the program says, but on loopback only unless all
    /// may connect, or connections are encrypted.
    fn own_place(&self, at: SocketAddr, transport: Transport) -> SocketAddr {
        let is_encrypted = transport == Transport::Tcp && self.tls.is_some();
        match at.ip() {
            _ if self.is_exposed || is_encrypted => at,
            IpAddr::V4(ip) if !ip.is_loopback() => {
                SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), at.port())
            }
            IpAddr::V6(ip) if !ip.is_loopback() => {
                SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), at.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => at,
        }
    }

    /// Ports that are published and that the program has not opened, once it has had the time.
    pub fn look_for_ports(
        &mut self,
        published: &BTreeMap<ProgramPort, SocketAddr>,
        now: Now,
    ) -> Vec<ProgramPort> {
        let is_time = |began: &mut Now| now.0.saturating_sub(began.0) >= OPENS_PORTS_WITHIN;
        if self.began_at.take_if(is_time).is_none() {
            return Vec::new();
        }
        self.has_looked_for_ports = true;
        self.missing_ports(published)
    }

    /// The same at any time later.
    pub fn missing_ports(&self, published: &BTreeMap<ProgramPort, SocketAddr>) -> Vec<ProgramPort> {
        let is_opened = |port: &ProgramPort| {
            let mut opened = self.opened.iter();
            opened.any(|(number, transport)| {
                *number == port.number && port.transport.is_none_or(|it| it == *transport)
            })
        };
        let has_looked = self.has_looked_for_ports;
        let missing = published.keys().filter(|it| has_looked && !is_opened(it));
        missing.copied().collect()
    }

    /// It does so no more.
    pub fn unlisten(&mut self, at: SocketAddr, transport: Transport) {
        match transport {
            Transport::Tcp => self.ports.retain(|_, port| port.at != at),
            Transport::Udp => self.datagrams.unlisten(at),
        }
    }

    /// Takes note of what the system says; whether the program has rung.
    pub fn look(&mut self) -> io::Result<bool> {
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let looked = self.poll.poll(&mut events, Some(Duration::ZERO));
        let mut has_rung = false;
        for event in &events {
            match event.token() {
                TOKEN_DOORBELL => has_rung = true,
                Token(token) if token < TOKEN_FIRST_CLIENT => {
                    self.to_accept |= !self.datagrams.note(token);
                }
                Token(token) => {
                    let client = u32::try_from(token - TOKEN_FIRST_CLIENT).unwrap_or(u32::MAX);
                    if event.is_readable() || event.is_error() || event.is_read_closed() {
                        self.enqueue(client);
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

    /// Whether somebody may have something to be taken, and there is room for it.
    pub fn have_more(&self, batches: &Batches) -> bool {
        // Few can have used up their share.
        let has_room = |client: &u32| batches.have_room_for(*client);
        let have_more = || self.to_accept || self.readable.iter().any(has_room);
        self.datagrams.have_more()
            || (batches.have_room() && (have_more() || self.handshakes.has_arrivals()))
    }

    fn enqueue(&mut self, number: u32) {
        if let Some(client) = self.each.get_mut(&number)
            && !std::mem::replace(&mut client.is_queued, true)
        {
            self.readable.push_back(number);
        }
    }

    /// Takes what clients have done, as far as there is room: of each something, before anything more.
    pub fn take(&mut self, batches: &mut Batches, now: Now) {
        self.readable.extend(self.handshakes.begin_turn(now));
        self.to_accept |= self.handshakes.accepts_more();
        self.datagrams.take(batches);
        self.accept(batches, now);
        for _ in 0..self.readable.len() {
            if !batches.have_room() {
                break;
            }
            let Some(client) = self.readable.pop_front() else {
                break;
            };
            if self.must_wait(client) {
                continue;
            }
            if let Some(queued) = self.each.get_mut(&client) {
                queued.is_queued = false;
            }
            if !batches.have_room_for(client) || self.read(client, batches) {
                self.enqueue(client);
            }
        }
    }

    /// Whether nobody is served here from now on, and why: those who are connected are cut.
    pub fn refuse(&mut self, why: Option<NoClients>, batches: &mut Batches) {
        self.datagrams.refuses = why;
        if std::mem::replace(&mut self.refuses, why) == why {
            return;
        }
        let Some(why) = why else { return };
        let clients: Vec<u32> = self.each.keys().copied().collect();
        self.count_refused(why, clients.len() as u64);
        for client in clients {
            self.remove(client, batches);
        }
    }

    const fn count_refused(&mut self, why: NoClients, clients: u64) {
        match why {
            NoClients::Follows => self.counters.refused_by_follower += clients,
            NoClients::LogIsFull => self.counters.refused_log_full += clients,
        }
    }

    /// One of each port in turn, so that a flood at one keeps nobody away from the others.
    fn accept(&mut self, batches: &mut Batches, now: Now) {
        if !std::mem::take(&mut self.to_accept) {
            return;
        }
        let mut tokens: VecDeque<usize> = self.ports.keys().copied().collect();
        let first = self.first_port % tokens.len().max(1);
        tokens.rotate_left(first);
        while let Some(token) = tokens.pop_front() {
            if !batches.have_room() {
                self.to_accept = true; // later
                return;
            }
            if !self.handshakes.may_accept(self.tls.is_some(), now) {
                self.first_port += 1;
                return;
            }
            let began = clock::worked();
            let port = self.ports.get(&token);
            let accepted = port.and_then(|port| Some((port.listener.accept().ok()?, port.at)));
            if let Some(((stream, peer), at)) = accepted {
                self.add(stream, (peer, at), batches, now);
                tokens.push_back(token);
            }
            let took = clock::worked().saturating_sub(began);
            self.handshakes.use_up_accept(took);
        }
    }

    fn add(
        &mut self,
        stream: TcpStream,
        (peer, at): (SocketAddr, SocketAddr),
        batches: &mut Batches,
        now: Now,
    ) {
        if let Some(why) = self.refuses {
            return self.count_refused(why, 1);
        }
        if self.each.len() >= CLIENTS_MAX {
            self.counters.too_many += 1;
            return;
        }
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
        stream.set_nodelay(true).ok(); // gone already: reading says so
        let Ok(mut stream) = Stream::accepted(stream, self.tls.as_ref()) else {
            self.counters.refused_by_tls += 1;
            return;
        };
        let client = self.next_client;
        let token = Token(TOKEN_FIRST_CLIENT + client as usize);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if registry.register(&mut stream, token, interest).is_err() {
            return; // gone already
        }
        self.next_client = self.next_client.wrapping_add(1);
        let handshake_since = (!stream.is_established()).then_some(now);
        if handshake_since.is_some() {
            if let Some(slow) = self.handshakes.displaced() {
                self.counters.handshakes_displaced += 1;
                self.forget(slow);
            }
            self.handshakes.begin(now, client);
        }
        let mut added = Client {
            stream,
            ends: (peer, own),
            handshake_since,
            output: VecDeque::new(),
            held: 0,
            is_queued: false,
            has_ended: false,
            is_shut: false,
            is_closed: false,
            took_at: Now::default(),
        };
        self.introduce(client, &mut added, batches);
        self.each.insert(client, added);
        self.enqueue(client);
    }

    /// The log hears of a client when its handshake is done.
    fn introduce(&mut self, number: u32, client: &mut Client, batches: &mut Batches) {
        if !client.stream.is_established() {
            return;
        }
        if let Some(since) = client.handshake_since.take() {
            self.handshakes.end(since, number);
        }
        self.counters.accepted += 1;
        let (peer, own) = client.ends;
        batches.add(Done::Accept {
            client: number,
            peer,
            own,
        });
    }

    /// Whether its handshake goes on later, because there is no time for it in this turn.
    fn must_wait(&mut self, number: u32) -> bool {
        let client = self.each.get(&number);
        let waits =
            client.is_some_and(|it| it.handshake_since.is_some()) && !self.handshakes.may_go_on();
        if waits {
            self.counters.handshakes_postponed += 1;
            self.handshakes.postpone(number); // and it stays marked as queued
        }
        waits
    }

    /// Those whose handshake takes too long are closed.
    pub fn time_out_handshakes(&mut self, now: Now) {
        while let Some(client) = self.handshakes.timed_out(now) {
            self.counters.handshakes_timed_out += 1;
            self.forget(client);
        }
    }

    /// Reads once; whether there may be more.
    fn read(&mut self, number: u32, batches: &mut Batches) -> bool {
        let Some(mut client) = self.each.remove(&number) else {
            return false;
        };
        let handshake_began = client.handshake_since.map(|_| clock::worked());
        let read = client.read(&mut self.buffer);
        if let Some(began) = handshake_began {
            let took = clock::worked().saturating_sub(began);
            self.handshakes.use_up(took);
            self.introduce(number, &mut client, batches);
        }
        self.held += client.count();
        let is_known = client.handshake_since.is_none();
        let has_failed = client.stream.has_failed();
        let is_cut = client.stream.is_cut();
        self.each.insert(number, client);
        match read {
            Ok(0) if is_known && !is_cut => {
                if let Some(client) = self.each.get_mut(&number) {
                    client.has_ended = true;
                }
                batches.add(Done::End { client: number });
                false
            }
            Ok(count) if count > 0 => {
                self.counters.bytes_in += count as u64;
                batches.add(Done::Data {
                    client: number,
                    bytes: self.buffer[..count].to_vec(),
                });
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(_) | Err(_) => {
                if has_failed {
                    self.counters.refused_by_tls += 1;
                } else if !is_known {
                    self.counters.gone_in_handshake += 1;
                }
                self.remove(number, batches);
                false
            }
        }
    }

    /// It is gone.
    fn remove(&mut self, number: u32, batches: &mut Batches) {
        if self.forget(number) {
            batches.add(Done::Reset { client: number });
        }
    }

    /// Its connection ends at once. Whether the log knows it.
    fn forget(&mut self, number: u32) -> bool {
        let Some(mut client) = self.each.remove(&number) else {
            return false;
        };
        self.held -= client.held;
        if client.output.is_empty() {
            client.stream.say_end(); // else it would take a part for the whole
        }
        if let Some(since) = client.handshake_since {
            self.handshakes.end(since, number);
        }
        client.handshake_since.is_none()
    }

    /// The program says something to a client.
    pub fn tell(&mut self, number: u32, bytes: &[u8]) {
        let Some(client) = self.each.get_mut(&number) else {
            return;
        };
        client.output.extend(bytes);
        self.held += client.count();
        self.told.insert(number);
        if client.output.len() > UNTAKEN_BYTES_MAX {
            self.counters.cut_slow += 1;
            self.cut(number);
        }
        while self.held > self.held_max {
            let largest = self.each.iter().max_by_key(|(_, client)| client.held);
            let Some((&largest, _)) = largest else {
                break;
            };
            self.counters.cut_for_memory += 1;
            self.cut(largest);
        }
    }

    /// Its connection ends at once; the log hears of it later.
    fn cut(&mut self, number: u32) {
        if self.forget(number) {
            self.cut.push(number);
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
            client.took_at = clock::now();
            self.told.insert(number);
        }
    }

    /// Writes what clients were told.
    pub fn write(&mut self, batches: &mut Batches) {
        for client in std::mem::take(&mut self.cut) {
            batches.add(Done::Reset { client });
        }
        for number in std::mem::take(&mut self.told) {
            let Some(client) = self.each.get_mut(&number) else {
                continue;
            };
            let written = client.write();
            self.held -= client.held;
            client.held = 0;
            self.held += client.count();
            let Ok(written) = written else {
                self.remove(number, batches);
                continue;
            };
            self.counters.bytes_out += written;
            if client.is_closed && written > 0 {
                client.took_at = clock::now();
            }
            let is_all_gone = client.output.is_empty() && !client.stream.has_unsent();
            if is_all_gone && client.is_closed {
                self.remove(number, batches);
            }
        }
    }

    /// Those whose connections the program has closed, and who take nothing of the rest, are cut.
    pub fn cut_closed(&mut self, now: Now) {
        let is_late =
            |client: &Client| now.0.saturating_sub(client.took_at.0) >= CLOSED_TAKES_NOTHING;
        let late = self.each.iter();
        let late = late.filter(|(_, client)| client.is_closed && is_late(client));
        for number in late.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.counters.cut_slow += 1;
            self.cut(number);
        }
    }

    /// So often the program wanted to connect to another server, the last time at this port.
    pub fn note_outbound(&mut self, (count, port): (u64, u32)) {
        let before = std::mem::replace(&mut self.outbound, count);
        let more = count.checked_sub(before).unwrap_or(count); // less: it has begun anew
        if more > 0 && self.counters.outbound == 0 {
            tracing::warn!(
                port,
                "the served program wants to connect to another server, and is refused: see --allow-outbound"
            );
        }
        self.counters.outbound += more;
    }

    /// The log holds all of them to be gone.
    pub fn drop_all(&mut self) {
        let known = self.each.values().filter(|it| it.handshake_since.is_none());
        self.counters.cut_with_gateway += known.count() as u64;
        self.each.clear();
        self.handshakes.clear();
        self.readable.clear();
        self.told.clear();
        self.cut.clear();
        self.held = 0;
    }
}

impl Client {
    /// By how much its memory has grown since it was counted.
    fn count(&mut self) -> usize {
        if self.output.is_empty() {
            self.output = VecDeque::new();
        }
        let all = self.output.capacity() + self.stream.held_bytes();
        let grown = all.saturating_sub(self.held);
        self.held += grown;
        grown
    }

    /// Reads what is there, or lets the handshake go on.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_ended || self.is_closed {
            // There is nothing to be read, but it may be gone.
            return match self.stream.socket().take_error() {
                Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(Some(error)) | Err(error) => Err(error),
            };
        }
        self.stream.read(buffer)
    }

    /// Writes what the socket takes; how much.
    fn write(&mut self) -> io::Result<u64> {
        self.stream.flush()?;
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
            self.stream.say_end();
            if !self.stream.has_unsent() {
                self.stream.socket().shutdown(Shutdown::Write).ok(); // gone: reading says so
            }
        }
        Ok(written)
    }
}

#[cfg(test)]
#[path = "gateway_test.rs"]
mod tests;
