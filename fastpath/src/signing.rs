//! Keys, and datagrams made with them: header, tag and payload put together, checked and taken apart.
//! Where a datagram goes is the engine's.
use crate::mutants::mutant;
use crate::step::{self, KeyPair, Keys};
use quorumwire_interfaces::{PlaneKeyPair, PlaneKeys};
use quorumwire_wire::packet::{
    FLAG_EPOCH, HEADER_BYTES, Header, Kind, MAGIC, ORIGIN_BYTES, PacketReason, TAG_OFFSET,
};
use quorumwire_wire::payload_checksum;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The keys of a plane; none before they are set.
#[derive(Default)]
pub struct Signing {
    checked_with: Box<Keys>,
    /// Lowest bits of the epochs to sign with; `None` before keys are set.
    sending: Option<Sending>,
}

#[derive(Clone, Copy)]
struct Sending {
    cluster: u8,
    clients: u8,
}

impl Signing {
    /// Signs and checks with these from now on.
    pub fn set(&mut self, keys: &PlaneKeys) {
        *self.checked_with = Keys::from(keys);
        self.sending = Some(Sending {
            cluster: epoch(&keys.cluster),
            clients: epoch(&keys.clients),
        });
    }

    /// Whether there are keys.
    pub fn is_set(&self) -> bool {
        self.sending.is_some()
    }

    /// Makes `datagram` the packet of this header, signed, with the payload in two parts. `false` if
    /// there is no key yet.
    pub fn seal(&self, header: Header, parts: [&[u8]; 2], datagram: &mut Vec<u8>) -> bool {
        let Some(sending) = self.sending else {
            return false;
        };
        let is_clients = Kind::from_byte(header.kind).is_some_and(is_clients);
        let (pair, epoch) = if is_clients {
            (&self.checked_with.clients, sending.clients)
        } else {
            (&self.checked_with.cluster, sending.cluster)
        };
        let Some(key) = pair.key(usize::from(epoch)) else {
            return false;
        };
        let flags = header.flags & !FLAG_EPOCH | epoch;
        let head = Header {
            flags,
            tag: 0,
            ..header
        }
        .encode();
        datagram.clear();
        datagram.extend_from_slice(&head);
        for part in parts {
            datagram.extend_from_slice(part);
        }
        let tag = step::tag(key, &head, &datagram[HEADER_BYTES..]);
        datagram[TAG_OFFSET..HEADER_BYTES].copy_from_slice(&tag.to_be_bytes());
        true
    }

    /// Checks all that can be checked without state.
    pub fn open<'a>(&self, datagram: &'a [u8]) -> Result<(Header, &'a [u8]), PacketReason> {
        let (header, payload) = step::check(&self.checked_with, datagram)?;
        // As qw_brings_command() in C.
        let command = match Kind::from_byte(header.kind) {
            Some(Kind::Forward) => payload.get(ORIGIN_BYTES..).ok_or(PacketReason::Malformed)?,
            Some(Kind::Request | Kind::Submit) => payload,
            Some(
                Kind::Append
                | Kind::AppendOk
                | Kind::Retransmit
                | Kind::Heartbeat
                | Kind::HeartbeatOk
                | Kind::Answer
                | Kind::P1a
                | Kind::P1b
                | Kind::P2a
                | Kind::P2b
                | Kind::Admit
                | Kind::Checkpoint,
            )
            | None => return Ok((header, payload)),
        };
        if header.payload_crc32c != payload_checksum(command) && !mutant("checksum-not-looked-at") {
            return Err(PacketReason::Checksum);
        }
        Ok((header, payload))
    }
}

impl From<&PlaneKeys> for Keys {
    fn from(keys: &PlaneKeys) -> Self {
        Self {
            cluster: pair(&keys.cluster),
            clients: pair(&keys.clients),
        }
    }
}

fn epoch(pair: &PlaneKeyPair) -> u8 {
    u8::from(pair.epoch % 2 == 1)
}

fn pair(pair: &PlaneKeyPair) -> KeyPair {
    if epoch(pair) == 0 {
        KeyPair::new([Some(pair.key), pair.other])
    } else {
        KeyPair::new([pair.other, Some(pair.key)])
    }
}

/// As `qw_is_clients` in the C.
fn is_clients(kind: Kind) -> bool {
    match kind {
        Kind::Request | Kind::Answer | Kind::Submit => true,
        Kind::Append
        | Kind::AppendOk
        | Kind::Retransmit
        | Kind::Heartbeat
        | Kind::HeartbeatOk
        | Kind::Forward
        | Kind::P1a
        | Kind::P1b
        | Kind::P2a
        | Kind::P2b
        | Kind::Admit
        | Kind::Checkpoint => false,
    }
}

/// Whether a datagram claims to be one of the fast path's packets.
pub fn is_ours(datagram: &[u8]) -> bool {
    datagram.starts_with(&MAGIC.to_be_bytes())
}

/// Who asked, as it stands before a forwarded request's payload.
pub fn encode_origin(origin: SocketAddr) -> [u8; ORIGIN_BYTES] {
    let address = match origin.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut bytes = [0; ORIGIN_BYTES];
    let (ip, port) = bytes.split_at_mut(16);
    ip.copy_from_slice(&address.octets());
    port.copy_from_slice(&origin.port().to_be_bytes());
    bytes
}

/// Who asked, and the request's own payload; `None` if there is too little.
pub fn split_origin(payload: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = payload.split_first_chunk::<16>()?;
    let (port, command) = rest.split_first_chunk::<2>()?;
    let ip = Ipv6Addr::from(*ip).to_canonical();
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_go_both_ways() {
        for text in [
            "192.0.2.33:11311",
            "[2001:db8::1]:65535",
            "0.0.0.0:0",
            "[::]:1",
        ] {
            let origin: SocketAddr = text.parse().unwrap();
            let bytes = [&encode_origin(origin)[..], b"command"].concat();
            assert_eq!(
                split_origin(&bytes),
                Some((origin, &b"command"[..])),
                "{text}"
            );
            assert_eq!(split_origin(&bytes[..ORIGIN_BYTES - 1]), None);
        }
    }
}
