//! The network of a simulated card: a packet socket at an interface. The host's own datagrams leave by a UDP
//! socket, as from a machine whose card the core is in.
use crate::counters::NetworkCounters;
use crate::ffi::{Link, frames_dropped, hear_nothing, links, next_frame, packet_socket};
use crate::frame::Network;
use quorumwire_datagrams::Datagrams;
use quorumwire_fastpath::Outbox;
use quorumwire_interfaces::CounterSink;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::{fs, io};

/// What the system knows of neighbours.
const NEIGHBOURS: &str = "/proc/net/arp";

/// At the interface that has the address.
pub struct AtInterface {
    link: Link,
    frames: OwnedFd,
    datagrams: Datagrams,
    counters: NetworkCounters,
}

impl AtInterface {
    /// In the network namespace that this is called in. An error says what is missing.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let IpAddr::V4(ip) = address.ip() else {
            return Err(io::Error::other("the simulated core has IPv4 only"));
        };
        let link = links()?
            .into_iter()
            .find(|link| link.addresses.contains(&ip) && link.mac != [0; 6]);
        let Some(link) = link else {
            let text = format!("no Ethernet interface has the address {ip}");
            return Err(io::Error::other(text));
        };
        let frames = packet_socket(link.index).map_err(|error| {
            io::Error::new(error.kind(), format!("interface {}: {error}", link.name))
        })?;
        let datagrams = Datagrams::bind(address)?;
        // What comes to this address the core takes, or hands over.
        hear_nothing(datagrams.as_fd())?;
        Ok(Self {
            link,
            frames,
            datagrams,
            counters: NetworkCounters::default(),
        })
    }

    /// Readable when a frame has come.
    pub fn wakes(&self) -> RawFd {
        self.frames.as_raw_fd()
    }

    /// Where the host's datagrams come from.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.datagrams.local_address()
    }

    /// Where it is, for people.
    pub fn described(&self) -> String {
        format!("simulated, at interface {}", self.link.name)
    }
}

impl Outbox for AtInterface {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.datagrams.send(to, datagram);
    }
}

impl Network for AtInterface {
    fn mac(&self) -> [u8; 6] {
        self.link.mac
    }

    fn mac_of(&mut self, ip: IpAddr) -> Option<[u8; 6]> {
        let ip = ip.to_string();
        let known = fs::read_to_string(NEIGHBOURS).ok()?;
        let line = known.lines().find(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(&ip) && words.last() == Some(&self.link.name)
        })?;
        let mac = line.split_whitespace().nth(3)?;
        let bytes: Vec<u8> = mac
            .split(':')
            .filter_map(|it| u8::from_str_radix(it, 16).ok())
            .collect();
        let mac: [u8; 6] = bytes.try_into().ok()?;
        (mac != [0; 6]).then_some(mac)
    }

    fn next_frame(&mut self, frame: &mut [u8]) -> Option<usize> {
        match next_frame(self.frames.as_fd(), frame) {
            Ok(Some(bytes)) => {
                self.counters.received += 1;
                Some(bytes)
            }
            Ok(None) => None,
            Err(_) => {
                self.counters.receive_errors += 1;
                None
            }
        }
    }

    fn send_frame(&mut self, frame: &[u8]) {
        // One that is lost is asked for again.
        if rustix::io::write(&self.frames, frame).is_err() {
            self.counters.not_sent += 1;
        }
    }

    fn flush(&mut self) {
        self.datagrams.flush();
    }

    fn look(&mut self) {
        match frames_dropped(self.frames.as_fd()) {
            Ok(dropped) => self.counters.dropped += dropped,
            Err(_) => self.counters.receive_errors += 1,
        }
    }

    fn count(&self, sink: CounterSink<'_>) {
        self.counters.each(sink);
        self.datagrams.counters().each(sink);
    }
}
