//! The endpoint of a plane whose packets are datagrams: the text of an IP address and a port, as in
//! `127.0.0.1:7401`.
use quorumwire_interfaces::{Endpoint, PlanePeer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where nothing arrives.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The endpoint of a plane that listens there.
///
/// # Panics
///
/// Never: an address is shorter than an endpoint may be.
#[must_use]
pub fn endpoint_at(address: SocketAddr) -> Endpoint {
    Endpoint::new(&address.to_string()).expect("addresses are short")
}

/// Where such a plane listens; `None` if this is the endpoint of another kind of plane.
#[must_use]
pub fn address_of(endpoint: &Endpoint) -> Option<SocketAddr> {
    endpoint.as_str().parse().ok()
}

/// Where a replica of a grant listens: nowhere if its endpoint is not known, or is of another kind of plane.
#[must_use]
pub fn address_of_peer(peer: &PlanePeer) -> SocketAddr {
    let endpoint = peer.endpoint.as_ref();
    endpoint.and_then(address_of).unwrap_or(NOWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_what_earlier_versions_said_of_addresses() {
        for text in [
            "127.0.0.1:7401",
            "[2001:db8::1]:65535",
            "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535",
        ] {
            let address: SocketAddr = text.parse().unwrap();
            let endpoint = endpoint_at(address);
            assert_eq!(endpoint.as_str(), text);
            assert_eq!(address_of(&endpoint), Some(address));
        }
        for other in ["127.0.0.1", "rkey 17 at 0x7f00", "0000:01:00.0"] {
            assert_eq!(address_of(&Endpoint::new(other).unwrap()), None);
        }
    }
}
