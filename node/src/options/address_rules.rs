//! How addresses are read, and which of them cannot be told apart. Opens nothing.
use crate::foreign_text::is_plain;
use quorumwire_client::addresses::look_up;
use quorumwire_interfaces::ReplicaId;
use quorumwire_wire::limits::{ADDRESS_BYTES_MAX, MEMBERS_MAX};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a cluster's members are: `0=HOST:PORT,1=HOST:PORT`.
#[must_use]
pub fn parse_members(text: &str) -> Option<BTreeMap<ReplicaId, String>> {
    let mut members = BTreeMap::new();
    for part in text.split(',') {
        let (id, address) = part.trim().split_once('=')?;
        let id = ReplicaId(id.parse().ok()?);
        let fresh = members.insert(id, parse_reachable(address)?).is_none();
        if !fresh || members.len() > MEMBERS_MAX {
            return None;
        }
    }
    Some(members)
}

/// A `HOST:PORT` that one can connect to: not port 0, not an unspecified address.
#[must_use]
pub fn parse_reachable(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let unspecified = text
        .parse::<SocketAddr>()
        .is_ok_and(|address| address.ip().is_unspecified());
    let strange = |c: char| c.is_whitespace() || !is_plain(c) || matches!(c, '/' | '=' | ',');
    let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    let refused = host.is_empty()
        || port == 0
        || unspecified
        || bare_v6
        || host.contains(strange)
        || text.len() > ADDRESS_BYTES_MAX;
    (!refused).then(|| text.to_owned())
}

/// The same for the arguments of other commands.
pub fn reachable_argument(text: &str) -> Result<String, &'static str> {
    parse_reachable(text).ok_or("allowed: HOST:PORT to connect to")
}

/// Two members that are said to be at one address.
#[must_use]
pub fn members_at_one_address(
    members: &BTreeMap<ReplicaId, String>,
) -> Option<(ReplicaId, ReplicaId)> {
    let mut known: BTreeMap<String, ReplicaId> = BTreeMap::new();
    members
        .iter()
        .find_map(|(id, text)| Some((known.insert(spelled_alike(text), *id)?, *id)))
}

/// The same for all spellings that are known to mean the same, without asking a name server.
fn spelled_alike(text: &str) -> String {
    match text.parse::<SocketAddr>() {
        Ok(address) => SocketAddr::new(address.ip().to_canonical(), address.port()).to_string(),
        Err(_) => text.to_ascii_lowercase(),
    }
}

/// Whether one process can listen at only one of them. Port 0 stands for any that is free.
pub fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() != 0
        && one.port() == other.port()
        && (ip == other_ip || contains(ip, other_ip) || contains(other_ip, ip))
}

/// Whether listening at the first address takes in the second.
fn contains(everywhere: IpAddr, ip: IpAddr) -> bool {
    match everywhere {
        IpAddr::V4(all) => all.is_unspecified() && ip.is_ipv4(),
        IpAddr::V6(all) => all == Ipv6Addr::UNSPECIFIED,
    }
}

/// An address to listen at. Its interface may be named, as in `[fe80::1%eth0]:7400`; why there is no such
/// address, if so.
pub fn parse_listen(text: &str) -> Result<SocketAddr, Option<String>> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let names_interface = inner.and_then(|(host, _)| host.split_once('%'));
    if names_interface.is_none_or(|(ip, _)| ip.parse::<Ipv6Addr>().is_err()) {
        return Err(None);
    }
    let found = look_up(text).map_err(|error| Some(error.to_string()))?;
    found.first().copied().ok_or(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_collides() {
        let cases = [
            ("127.0.0.1:1", "127.0.0.1:1", true),
            ("127.0.0.1:1", "127.0.0.1:2", false),
            ("127.0.0.1:1", "127.0.0.2:1", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            ("0.0.0.0:1", "127.0.0.1:1", true),
            ("0.0.0.0:1", "[::1]:1", false),
            ("[::]:1", "127.0.0.1:1", true),
            ("[::]:1", "[fe80::1%3]:1", true),
            ("[::ffff:10.0.0.1]:1", "10.0.0.1:1", true),
        ];
        for (one, other, expected) in cases {
            let (a, b) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(collide(a, b), expected, "{one} {other}");
            assert_eq!(collide(b, a), expected, "{other} {one}");
        }
    }

    #[test]
    fn an_address_to_listen_at_may_name_its_interface() {
        assert_eq!(
            parse_listen("[fe80::1%lo]:7400"),
            Ok("[fe80::1%1]:7400".parse().unwrap())
        );
        let error = parse_listen("[fe80::1%nowhere]:7400").unwrap_err();
        assert!(error.unwrap().contains("no interface \"nowhere\""));
        for text in ["localhost:1", "[a%lo]:1", "a%lo:1", "", "[fe80::1%lo"] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
    }
}
