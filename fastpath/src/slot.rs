//! A slot of a ring that a plane writes, in the kernel or in gates, and its host reads; and where somebody
//! is, as it stands there.
use crate::ring::{EntryHead, ReplyAddress};
use crate::shared::{Endpoint, REQUESTER_MEMCACHED, REQUESTER_NONE, REQUESTER_PACKET, SlotHead};
use quorumwire_wire::packet::FLAG_BLIND;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

impl Endpoint {
    /// The end at an address, with an Ethernet address or zeros.
    #[must_use]
    pub fn new(address: SocketAddr, mac: [u8; 6]) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Self {
            address: ip.octets(),
            port: address.port().to_be_bytes(),
            mac,
        }
    }

    /// The address without the Ethernet address.
    #[must_use]
    pub fn socket_address(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.address).to_canonical();
        SocketAddr::new(ip, u16::from_be_bytes(self.port))
    }
}

impl SlotHead {
    /// Of an entry that the host puts there, but for its index, which is written last.
    #[must_use]
    pub fn of(entry: &EntryHead) -> Self {
        let (requester, client, request) = match entry.requester {
            None => (REQUESTER_NONE, Endpoint::default(), 0),
            Some(ReplyAddress::Packet(client)) => {
                (REQUESTER_PACKET, Endpoint::new(client, [0; 6]), 0)
            }
            Some(ReplyAddress::Memcached(client, request)) => {
                (REQUESTER_MEMCACHED, Endpoint::new(client, [0; 6]), request)
            }
        };
        Self {
            index: 0,
            previous_term: entry.previous_term,
            session: entry.session,
            sequence: entry.sequence,
            payload_crc32c: entry.payload_crc32c,
            payload_bytes: entry.payload_bytes,
            flags: entry.flags,
            requester,
            client,
            request,
            answered_here: 0,
            reserved: [0; 5],
        }
    }

    /// The entry that it has.
    #[must_use]
    pub fn entry(&self) -> EntryHead {
        let client = || self.client.socket_address();
        EntryHead {
            index: self.index,
            previous_term: self.previous_term,
            session: self.session,
            sequence: self.sequence,
            payload_crc32c: self.payload_crc32c,
            payload_bytes: self.payload_bytes,
            flags: self.flags,
            requester: match self.requester {
                REQUESTER_PACKET => Some(ReplyAddress::Packet(client())),
                REQUESTER_MEMCACHED => Some(ReplyAddress::Memcached(client(), self.request)),
                _ => None,
            },
        }
    }

    /// Whether, once it is committed, it is a blind write that the plane has not answered and never will.
    #[must_use]
    pub fn is_left_to_host(&self) -> bool {
        self.flags & FLAG_BLIND != 0 && self.requester != REQUESTER_NONE && self.answered_here == 0
    }
}
