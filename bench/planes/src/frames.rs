//! Frames around packets: Ethernet, IPv4, UDP.
use anyhow::{Context as _, Result};
use std::net::SocketAddrV4;

/// Bytes before a packet.
pub const PACKET_AT: usize = 42;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// What stands before a packet.
#[derive(Clone, Copy)]
pub struct FrameHead {
    pub from: (SocketAddrV4, Mac),
    pub to: (SocketAddrV4, Mac),
}

/// An Ethernet address as text.
pub fn mac(text: &str) -> Result<Mac> {
    let bytes: Result<Vec<u8>, _> = text
        .split(':')
        .map(|it| u8::from_str_radix(it, 16))
        .collect();
    let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
    bytes.with_context(|| format!("{text} is no Ethernet address"))
}

impl FrameHead {
    /// The frame of a packet.
    pub fn of(&self, packet: &[u8]) -> Result<Vec<u8>> {
        let ((from, from_mac), (to, to_mac)) = (self.from, self.to);
        let udp_bytes = u16::try_from(8 + packet.len())?;
        let mut ip = vec![0x45, 0];
        ip.extend_from_slice(&(20 + udp_bytes).to_be_bytes());
        ip.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
        ip.extend_from_slice(&from.ip().octets());
        ip.extend_from_slice(&to.ip().octets());
        let checksum = checksum(&ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let mut frame = [to_mac, from_mac].concat();
        frame.extend_from_slice(&[8, 0]);
        frame.extend_from_slice(&ip);
        for port in [from.port(), to.port()] {
            frame.extend_from_slice(&port.to_be_bytes());
        }
        frame.extend_from_slice(&udp_bytes.to_be_bytes());
        frame.extend_from_slice(&[0, 0]); // no checksum
        frame.extend_from_slice(packet);
        Ok(frame)
    }
}

/// Of an IP header whose checksum is zero.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u64 = words
        .map(|word| u64::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded & 0xffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_what_a_receiver_expects() {
        let end = |host: u8| {
            let address = SocketAddrV4::new([10, 77, 0, host].into(), 7401);
            (address, [2, 0x77, 0, 0, 0, host])
        };
        let head = FrameHead {
            from: end(100),
            to: end(10),
        };
        let frame = head.of(&[7; 136]).unwrap();
        assert_eq!(frame.len(), PACKET_AT + 136);
        assert_eq!(frame[..6], mac("02:77:00:00:00:0a").unwrap());
        assert_eq!(frame[16..18], 164_u16.to_be_bytes());
        assert_eq!(frame[38..40], 144_u16.to_be_bytes());
        // Summed with its checksum, a header gives nothing.
        assert_eq!(checksum(&frame[14..34]), 0);
        assert_ne!(frame[24..26], [0, 0]);
        assert!(mac("02:77").is_err());
    }
}
