//! An end of a datagram's way, which programs and host share, as an address and back.
use crate::shared::Endpoint;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

impl Endpoint {
    /// The end at an address, with an Ethernet address or zeros.
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
    pub fn socket_address(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.address).to_canonical();
        SocketAddr::new(ip, u16::from_be_bytes(self.port))
    }
}
