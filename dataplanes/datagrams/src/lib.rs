//! A plane's UDP socket: takes in and sends many datagrams with one system call, and counts what the
//! network does with them. What is in a datagram is the plane's.
mod ffi;

use ffi::{BATCH_MAX, IncomingDatagram, OutgoingDatagram};
use quorumwire_fastpath::Outbox;
use quorumwire_interfaces::counters;
use socket2::{Domain, SockRef, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Longest datagram taken in. Ours are at most 1,448 bytes, those of foreign clients hardly more.
pub const DATAGRAM_BYTES_MAX: usize = 2048;
/// What is asked of the system for datagrams that wait; it may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

counters! {
    /// What happened between the plane and the network.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketCounters {
        /// Datagrams received whole by the data plane's socket
        pub received: "socket_received",
        /// Datagrams dropped because they are too long or come from no address
        pub cut: "socket_dropped_cut",
        /// Datagrams that the data plane sent, its answers to memcached clients among them
        pub sent: "socket_sent",
        /// Datagrams not sent because the system had no room for them
        pub lost_full: "socket_lost_full",
        /// Datagrams not sent because the system reported an error
        pub lost_error: "socket_lost_error",
        /// Times that receiving datagrams failed
        pub receive_errors: "socket_receive_errors",
    }
}

/// Where datagrams come in.
pub struct Incoming {
    places: Vec<u8>,
    arrived: Vec<IncomingDatagram>,
}

impl Default for Incoming {
    fn default() -> Self {
        Self {
            places: vec![0; BATCH_MAX * DATAGRAM_BYTES_MAX],
            arrived: Vec::with_capacity(BATCH_MAX),
        }
    }
}

impl Incoming {
    /// Takes in at most `budget` datagrams without waiting. `take` gets each with the socket to answer from.
    /// Whether the budget ended before the datagrams did.
    pub fn receive(
        &mut self,
        from: &mut Datagrams,
        budget: usize,
        take: &mut dyn FnMut(SocketAddr, &[u8], &mut Datagrams),
    ) -> bool {
        let mut left = budget;
        while left > 0 {
            let asked = left.min(BATCH_MAX);
            let received = self.receive_batch(from, asked, take);
            left -= received;
            if received < asked {
                return false;
            }
        }
        true
    }

    /// One batch; how many there were.
    fn receive_batch(
        &mut self,
        from: &mut Datagrams,
        budget: usize,
        take: &mut dyn FnMut(SocketAddr, &[u8], &mut Datagrams),
    ) -> usize {
        let mut places: Vec<&mut [u8]> = self
            .places
            .chunks_exact_mut(DATAGRAM_BYTES_MAX)
            .take(budget)
            .collect();
        if let Err(error) = ffi::receive(from.socket.as_fd(), &mut places, &mut self.arrived) {
            let nothing_there = error.kind() == io::ErrorKind::WouldBlock;
            from.counters.receive_errors += u64::from(!nothing_there);
            return 0;
        }
        for (place, arrived) in places.iter().zip(&self.arrived) {
            let Some(sender) = arrived.from.filter(|_| !arrived.cut) else {
                from.counters.cut += 1;
                continue;
            };
            from.counters.received += 1;
            take(sender, &place[..arrived.bytes], from);
        }
        from.flush();
        self.arrived.len()
    }
}

/// A socket and what is about to leave through it.
pub struct Datagrams {
    socket: UdpSocket,
    ipv6: bool,
    /// Where memcached clients are answered from.
    memcached: Option<UdpSocket>,
    counters: SocketCounters,
    /// Datagrams one behind the other, and where each ends.
    bytes: Vec<u8>,
    waiting: Vec<(SocketAddr, usize)>,
}

impl Datagrams {
    /// Listens. An error is what the system says.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::of(UdpSocket::bind(address)?)
    }

    fn of(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let options = SockRef::from(&socket);
        // Less than asked for costs datagrams that are sent again, nothing else.
        let _ = options.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
        let _ = options.set_send_buffer_size(SOCKET_BUFFER_BYTES);
        Ok(Self {
            ipv6: socket.local_addr()?.is_ipv6(),
            socket,
            memcached: None,
            counters: SocketCounters::default(),
            bytes: Vec::new(),
            waiting: Vec::new(),
        })
    }

    /// Listens where many do: at a multicast address, at the interface that has this address. Others on this
    /// machine may, too.
    pub fn bind_group(group: SocketAddrV4, own: Ipv4Addr) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from(group).into())?;
        socket.join_multicast_v4(group.ip(), &own)?;
        Self::of(socket.into())
    }

    /// What goes to multicast addresses leaves by the interface that has this address.
    pub fn send_to_groups_by(&self, own: Ipv4Addr) -> io::Result<()> {
        SockRef::from(&self.socket).set_multicast_if_v4(&own)
    }

    /// Answers memcached clients from this socket, which does not block.
    pub fn serve_memcached(&mut self, socket: UdpSocket) {
        self.memcached = Some(socket);
    }

    /// Whether memcached clients can be answered.
    #[must_use]
    pub fn serves_memcached(&self) -> bool {
        self.memcached.is_some()
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the network has done.
    #[must_use]
    pub fn counters(&self) -> &SocketCounters {
        &self.counters
    }

    /// Sends everything that waits. What cannot be sent is lost, and counted.
    pub fn flush(&mut self) {
        let mut leaving = Vec::with_capacity(self.waiting.len());
        let mut start = 0;
        for (to, end) in &self.waiting {
            leaving.push(OutgoingDatagram {
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

impl Outbox for Datagrams {
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

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
