//! Ethernet, IP and UDP around datagrams, written down without the plane's help: makes frames, reads those
//! that left with all that a receiver checks, and says what a plane is to find in any bytes.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const UDP: u8 = 17;
pub const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;

/// Where a datagram comes from and goes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Envelope {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub from_mac: [u8; 6],
    pub to_mac: [u8; 6],
}

/// The ones' complement sum of 16-bit words, as if a zero followed an odd byte.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("just folded")
}

/// What a UDP checksum covers beside the datagram.
fn pseudo_header(from: IpAddr, to: IpAddr, udp_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ip in [from, to] {
        match ip {
            IpAddr::V4(ip) => bytes.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes.extend_from_slice(&ip.octets()),
        }
    }
    bytes.extend_from_slice(&u32::try_from(udp_bytes).expect("a datagram").to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, UDP]);
    bytes
}

/// The frame of a datagram, with all checksums.
#[must_use]
pub fn framed(envelope: &Envelope, datagram: &[u8]) -> Vec<u8> {
    let udp_bytes = UDP_BYTES + datagram.len();
    let length = |bytes: usize| u16::try_from(bytes).expect("a datagram").to_be_bytes();
    let mut frame = [envelope.to_mac, envelope.from_mac].concat();
    match (envelope.from.ip(), envelope.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend_from_slice(&IPV4);
            let mut ip = [0x45, 0, 0, 0, 0, 7, 0, 0, 63, UDP, 0, 0].to_vec();
            ip[2..4].copy_from_slice(&length(20 + udp_bytes));
            ip.extend_from_slice(&from.octets());
            ip.extend_from_slice(&to.octets());
            let check = !sum(&[&ip]);
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            frame.extend_from_slice(&ip);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.extend_from_slice(&IPV6);
            frame.extend_from_slice(&[0x60, 0, 0, 0]);
            frame.extend_from_slice(&length(udp_bytes));
            frame.extend_from_slice(&[UDP, 63]);
            frame.extend_from_slice(&from.octets());
            frame.extend_from_slice(&to.octets());
        }
        _ => panic!("one family for both"),
    }
    let mut udp = Vec::new();
    for port in [envelope.from.port(), envelope.to.port()] {
        udp.extend_from_slice(&port.to_be_bytes());
    }
    udp.extend_from_slice(&length(udp_bytes));
    udp.extend_from_slice(&[0, 0]);
    udp.extend_from_slice(datagram);
    let pseudo = pseudo_header(envelope.from.ip(), envelope.to.ip(), udp_bytes);
    let check = match !sum(&[&pseudo, &udp]) {
        0 => 0xffff,
        check => check,
    };
    udp[6..8].copy_from_slice(&check.to_be_bytes());
    frame.extend_from_slice(&udp);
    frame
}

/// Whose UDP checksum stands in a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Checksum {
    /// The plane's.
    Made,
    /// The system's, which leaves it to the device: a pair makes none.
    LeftToDevice,
}

/// Reads a frame as a careful receiver does: `None` if it is no UDP, an error if something is wrong with it.
#[must_use]
pub fn unframed(frame: &[u8], checksum: Checksum) -> Option<Result<(Envelope, &[u8]), String>> {
    let ip = frame.get(ETHERNET_BYTES..)?;
    let (from, to, udp): (IpAddr, IpAddr, &[u8]) = if frame[12..14] == IPV4 {
        if *ip.get(9)? != UDP {
            return None;
        }
        let header: &[u8; 20] = ip.first_chunk()?;
        let bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] != 0x45 || sum(&[header]) != 0xffff || bytes != ip.len() {
            return Some(Err(format!(
                "IPv4 header {header:02x?}, {} bytes",
                ip.len()
            )));
        }
        let address = |at: usize| -> [u8; 4] { *header[at..].first_chunk().expect("an address") };
        (
            Ipv4Addr::from(address(12)).into(),
            Ipv4Addr::from(address(16)).into(),
            &ip[20..],
        )
    } else if frame[12..14] == IPV6 {
        if *ip.get(6)? != UDP {
            return None;
        }
        let header: &[u8; 40] = ip.first_chunk()?;
        let bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if header[0] >> 4 != 6 || header[7] == 0 || 40 + bytes != ip.len() {
            return Some(Err(format!(
                "IPv6 header {header:02x?}, {} bytes",
                ip.len()
            )));
        }
        let address = |at: usize| -> [u8; 16] { *header[at..].first_chunk().expect("an address") };
        (
            Ipv6Addr::from(address(8)).into(),
            Ipv6Addr::from(address(24)).into(),
            &ip[40..],
        )
    } else {
        return None;
    };
    let header: &[u8; UDP_BYTES] = udp.first_chunk()?;
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let has_checksum = header[6..] != [0, 0];
    let checked = checksum == Checksum::LeftToDevice
        || sum(&[&pseudo_header(from, to, udp.len()), udp]) == 0xffff;
    // IPv6 has none of its own.
    if usize::from(port(4)) != udp.len()
        || (has_checksum && !checked)
        || (!has_checksum && from.is_ipv6())
    {
        return Some(Err(format!(
            "UDP header {header:02x?}, {} bytes",
            udp.len()
        )));
    }
    let envelope = Envelope {
        from: (from, port(0)).into(),
        to: (to, port(2)).into(),
        to_mac: *frame.first_chunk().expect("a header"),
        from_mac: *frame[6..].first_chunk().expect("a header"),
    };
    Some(Ok((envelope, &udp[UDP_BYTES..])))
}

/// What a sender writes that leaves the UDP checksum of so many bytes to its device.
#[must_use]
pub fn check_left_to_device(from: IpAddr, to: IpAddr, udp_bytes: usize) -> [u8; 2] {
    sum(&[&pseudo_header(from, to, udp_bytes)]).to_be_bytes()
}

/// Where a plane is.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    pub ip: IpAddr,
    /// Where all replicas hear.
    pub all: Option<Ipv4Addr>,
    pub ports: &'a [u16],
}

/// A datagram that a plane is to find in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub from: SocketAddr,
    /// The plane's.
    pub port: u16,
    /// It is to the address of all replicas.
    pub to_all: bool,
    /// So a receiver would find it, or the sender left it to a device.
    pub checksum_is_right: bool,
    pub datagram: &'a [u8],
}

/// The datagram that a plane is to find in any bytes. What has tags, options, or pieces is software's; so is
/// what is cut.
#[must_use]
pub fn found<'a>(frame: &'a [u8], home: &Home<'_>) -> Option<Found<'a>> {
    let kind = frame.get(12..14)?;
    let ip = &frame[ETHERNET_BYTES..];
    let number = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let (from, to, room, udp): (IpAddr, IpAddr, usize, &[u8]) = match home.ip {
        IpAddr::V4(_) => {
            let header: &[u8; 20] = ip.first_chunk()?;
            let address = |at: usize| -> Option<[u8; 4]> { header[at..].first_chunk().copied() };
            let (from, to) = (Ipv4Addr::from(address(12)?), Ipv4Addr::from(address(16)?));
            let whole = number(6) & !0xc000 == 0;
            if kind != IPV4 || header[0] != 0x45 || header[9] != UDP || !whole {
                return None;
            }
            let room = usize::from(number(2)).checked_sub(20)?;
            (from.into(), to.into(), room, &ip[20..])
        }
        IpAddr::V6(_) => {
            let header: &[u8; 40] = ip.first_chunk()?;
            let address = |at: usize| -> Option<[u8; 16]> { header[at..].first_chunk().copied() };
            let (from, to) = (Ipv6Addr::from(address(8)?), Ipv6Addr::from(address(24)?));
            if kind != IPV6 || header[0] >> 4 != 6 || header[6] != UDP {
                return None;
            }
            (from.into(), to.into(), usize::from(number(4)), &ip[40..])
        }
    };
    let header: &[u8; UDP_BYTES] = udp.first_chunk()?;
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (bytes, to_all) = (
        usize::from(field(4)),
        home.all.map(IpAddr::from) == Some(to),
    );
    if !(to_all || to == home.ip)
        || !home.ports.contains(&field(2))
        || bytes < UDP_BYTES
        || bytes > room
    {
        return None;
    }
    let udp = udp.get(..bytes)?;
    let pseudo = pseudo_header(from, to, bytes);
    let checksum_is_right = match field(6) {
        0 => to.is_ipv4(),
        check => sum(&[&pseudo, udp]) == 0xffff || check == sum(&[&pseudo]),
    };
    Some(Found {
        // An IPv4 address in one of IPv6 is that.
        from: (from.to_canonical(), field(0)).into(),
        port: field(2),
        to_all,
        checksum_is_right,
        datagram: &udp[UDP_BYTES..],
    })
}
