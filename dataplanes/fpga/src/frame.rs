//! Frames, and where they go.
use quorumwire_fastpath::Outbox;
use quorumwire_interfaces::CounterSink;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest frame: of a packet with the longest payload, by IPv6, with a VLAN's tag.
pub const FRAME_BYTES_MAX: usize = 1514 + 4;

/// What a card is connected to, and by what its host sends datagrams of its own.
pub trait Network: Outbox + Send {
    /// The card's Ethernet address.
    fn mac(&self) -> [u8; 6];

    /// That of a neighbour; `None` while nobody knows it.
    fn mac_of(&mut self, ip: IpAddr) -> Option<[u8; 6]>;

    /// The next frame that came; how long it is.
    fn next_frame(&mut self, frame: &mut [u8]) -> Option<usize>;

    /// The card sends a frame.
    fn send_frame(&mut self, frame: &[u8]);

    /// The host's own datagrams leave now.
    fn flush(&mut self);

    /// Looks at what the system has counted.
    fn look(&mut self) {}

    /// What it has counted.
    fn count(&self, sink: CounterSink<'_>);
}

/// The UDP datagram in a frame without a VLAN's tag, and from where to where it goes.
pub fn datagram_in(frame: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let (ethernet, packet) = frame.split_at_checked(14)?;
    let (source, destination, udp): (IpAddr, IpAddr, &[u8]) = match ethernet[12..] {
        [0x08, 0x00] => {
            let head: &[u8; 20] = packet.first_chunk()?;
            // Options and fragments: the system would put them together, which nobody does here.
            let is_part = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
            if head[0] != 0x45 || head[9] != 17 || is_part {
                return None;
            }
            let ip = |at: usize| head[at..at + 4].try_into().map(u32::from_be_bytes);
            let (source, destination) = (ip(12).ok()?, ip(16).ok()?);
            let [source, destination] = [source, destination].map(Ipv4Addr::from);
            (source.into(), destination.into(), &packet[20..])
        }
        [0x86, 0xdd] => {
            let head: &[u8; 40] = packet.first_chunk()?;
            if head[0] >> 4 != 6 || head[6] != 17 {
                return None;
            }
            let ip = |at: usize| head[at..at + 16].try_into().map(u128::from_be_bytes);
            let (source, destination) = (ip(8).ok()?, ip(24).ok()?);
            let [source, destination] = [source, destination].map(Ipv6Addr::from);
            (source.into(), destination.into(), &packet[40..])
        }
        _ => return None,
    };
    let head: &[u8; 8] = udp.first_chunk()?;
    let [from, to, length] = [0, 2, 4].map(|at| u16::from_be_bytes([head[at], head[at + 1]]));
    let datagram = udp.get(8..usize::from(length))?;
    Some((
        SocketAddr::new(source, from),
        SocketAddr::new(destination, to),
        datagram,
    ))
}
