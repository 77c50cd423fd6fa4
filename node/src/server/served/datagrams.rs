//! The clients of this replica's served program that send datagrams. A datagram is taken into a batch or
//! lost, as in the network; the program's answers leave from the port at which their client was heard.
use super::NoClients;
use anyhow::{Context as _, ensure};
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quorumwire_interfaces::counters;
use quorumwire_replay::{Batches, Done, NoRoom};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Datagrams taken of one port in one turn.
const DATAGRAMS_PER_TURN: usize = 256;
/// Largest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct DatagramCounters {
        /// Datagrams taken from clients of the served program
        pub taken: "served_datagrams_in",
        /// Datagrams of the served program sent to its clients
        pub sent: "served_datagrams_out",
        /// Datagrams of clients of the served program dropped because too many of all clients waited
        pub dropped_full: "served_datagrams_dropped_full",
        /// Datagrams of clients of the served program dropped because too many of that client waited
        pub dropped_of_one: "served_datagrams_dropped_of_one",
        /// Datagrams of clients of the served program dropped because their replica does not lead
        pub refused_by_follower: "served_datagrams_refused_by_follower",
        /// Datagrams of clients dropped because the log, kept whole, has reached its limit
        pub refused_log_full: "served_datagrams_refused_log_full",
        /// Datagrams of clients dropped because the served program had left too many unread
        pub dropped_unread: "served_datagrams_dropped_unread",
        /// Datagrams of the served program dropped because their addressee has sent none, or not for long
        pub unknown: "served_datagrams_to_unknown",
        /// Datagrams of the served program dropped because the system did not take them
        pub not_sent: "served_datagrams_not_sent",
    }
}

struct Port {
    socket: UdpSocket,
    /// Where the program listens.
    at: SocketAddr,
    /// Where its clients are served.
    served: SocketAddr,
    /// There may be more.
    may_have_more: bool,
}

/// All ports for datagrams.
pub struct Datagrams {
    ports: BTreeMap<usize, Port>,
    buffer: Vec<u8>,
    /// So many this program had no room for.
    lost: u64,
    /// None are taken, for this reason: what comes is dropped.
    pub refuses: Option<NoClients>,
    pub counters: DatagramCounters,
}

/// As the program would have it: IPv6 stands for itself.
fn bind(at: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

/// The address of this machine from which the system answers `peer`.
fn own_ip_towards(peer: SocketAddr) -> io::Result<IpAddr> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None)?;
    socket.connect(&peer.into())?; // nothing is sent
    let own = socket.local_addr()?.as_socket();
    own.map(|it| it.ip())
        .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

impl Default for Datagrams {
    fn default() -> Self {
        Self {
            ports: BTreeMap::new(),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
            lost: 0,
            refuses: None,
            counters: DatagramCounters::default(),
        }
    }
}

impl Datagrams {
    /// Whether clients are served of what the program has at `at`. An address is served once, likewise a port
    /// that is published.
    pub fn serve(&self, at: SocketAddr, is_published: bool) -> bool {
        let mut ports = self.ports.values();
        ports.any(|it| it.at == at || (is_published && it.at.port() == at.port()))
    }

    /// The program takes datagrams `at` its own place, and so does this replica at `served`.
    pub fn listen(
        &mut self,
        at: SocketAddr,
        served: SocketAddr,
        (token, registry): (usize, &Registry),
    ) -> anyhow::Result<()> {
        ensure!(
            at.is_ipv6() == served.is_ipv6(),
            "the served program takes datagrams at {at}: they cannot come in at {served}, of the other IP version"
        );
        let socket = bind(served).with_context(|| {
            format!(
                "the served program takes datagrams at {at}: cannot take any at {served}: \
                 --publish PORT=IP:PORT serves it elsewhere"
            )
        })?;
        let mut socket = UdpSocket::from_std(socket);
        registry.register(&mut socket, Token(token), Interest::READABLE)?;
        let served = socket.local_addr()?;
        tracing::info!(program = %at, published = %served, "clients of the served program send datagrams here");
        let port = Port {
            socket,
            at,
            served,
            may_have_more: true,
        };
        self.ports.insert(token, port);
        Ok(())
    }

    /// Where clients send datagrams.
    pub fn served_at(&self) -> impl Iterator<Item = SocketAddr> {
        self.ports.values().map(|port| port.served)
    }

    /// It does so no more.
    pub fn unlisten(&mut self, at: SocketAddr) {
        self.ports.retain(|_, port| port.at != at);
    }

    /// The system says that there is something; whether the token is one of these.
    pub fn note(&mut self, token: usize) -> bool {
        let Some(port) = self.ports.get_mut(&token) else {
            return false;
        };
        port.may_have_more = true;
        true
    }

    pub fn have_more(&self) -> bool {
        self.ports.values().any(|port| port.may_have_more)
    }

    /// Takes what has come. What has no room is dropped, rather than left to fill the system's buffer: there
    /// one client's datagrams would be in the way of all others'.
    pub fn take(&mut self, batches: &mut Batches) {
        for port in self.ports.values_mut() {
            if !port.may_have_more {
                continue;
            }
            for _ in 0..DATAGRAMS_PER_TURN {
                let (count, peer) = match port.socket.recv_from(&mut self.buffer) {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        port.may_have_more = false;
                        break;
                    }
                    Err(_) => continue, // of one that was sent before
                };
                let counters = &mut self.counters;
                let dropped = match (self.refuses, batches.room_for_datagram(peer.ip())) {
                    (None, Ok(())) => None,
                    (None, Err(NoRoom::ForAny)) => Some(&mut counters.dropped_full),
                    (None, Err(NoRoom::ForThis)) => Some(&mut counters.dropped_of_one),
                    (Some(NoClients::Follows), _) => Some(&mut counters.refused_by_follower),
                    (Some(NoClients::LogIsFull), _) => Some(&mut counters.refused_log_full),
                };
                if let Some(counter) = dropped {
                    *counter += 1;
                    continue;
                }
                self.counters.taken += 1;
                let own = port.own_for(peer);
                let bytes = self.buffer[..count].to_vec();
                batches.add(Done::Datagram { peer, own, bytes });
            }
        }
    }

    /// The program sends this. Whether its client was heard here is known already.
    pub fn send(&mut self, own: SocketAddr, peer: SocketAddr, bytes: &[u8]) {
        let exact = self.ports.values().find(|port| port.at == own);
        let port = exact.or_else(|| {
            let mut ports = self.ports.values();
            ports.find(|port| port.at.port() == own.port())
        });
        let sent = port.map(|port| port.socket.send_to(bytes, peer));
        match sent {
            Some(Ok(_)) => self.counters.sent += 1,
            Some(Err(_)) | None => self.counters.not_sent += 1,
        }
    }

    /// So many datagrams the program had no room for.
    pub fn note_lost(&mut self, count: u64) {
        let before = std::mem::replace(&mut self.lost, count);
        // Less: it has begun anew.
        self.counters.dropped_unread += count.checked_sub(before).unwrap_or(count);
    }
}

impl Port {
    /// Where the program would have got it: at its own port, wherever it came in.
    fn own_for(&self, peer: SocketAddr) -> SocketAddr {
        let ip = if !self.at.ip().is_unspecified() {
            self.at.ip()
        } else if !self.served.ip().is_unspecified() {
            self.served.ip()
        } else {
            own_ip_towards(peer).unwrap_or(self.at.ip())
        };
        SocketAddr::new(ip, self.at.port())
    }
}

#[cfg(test)]
#[path = "datagrams_test.rs"]
mod tests;
