//! Many datagrams with one system call. The only file of this crate with unsafe code; nothing here keeps
//! a pointer beyond a call.
#![allow(unsafe_code)]
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most datagrams of one call.
pub const BATCH_MAX: usize = 32;

/// A datagram that has come in.
#[derive(Clone, Copy, Debug)]
pub struct IncomingDatagram {
    /// Who sent it; `None` if the system says nothing that is an IP address.
    pub from: Option<SocketAddr>,
    /// Its bytes, as far as they fit.
    pub bytes: usize,
    /// It was longer than the place for it.
    pub cut: bool,
}

/// A datagram that is to go out.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingDatagram<'a> {
    /// To whom.
    pub to: SocketAddr,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Takes in what is there, at most `places.len()` and [`BATCH_MAX`] datagrams, without waiting.
pub fn receive(
    socket: BorrowedFd<'_>,
    places: &mut [&mut [u8]],
    arrived: &mut Vec<IncomingDatagram>,
) -> io::Result<()> {
    arrived.clear();
    let count = places.len().min(BATCH_MAX);
    // SAFETY: all three are plain C structures for which zero bytes are a value.
    let mut addresses: [libc::sockaddr_storage; BATCH_MAX] = unsafe { zeroed() };
    let mut parts: [libc::iovec; BATCH_MAX] = unsafe { zeroed() };
    let mut messages: [libc::mmsghdr; BATCH_MAX] = unsafe { zeroed() };
    for (at, place) in places.iter_mut().take(count).enumerate() {
        parts[at].iov_base = place.as_mut_ptr().cast();
        parts[at].iov_len = place.len();
        let message = &mut messages[at].msg_hdr;
        message.msg_iov = &raw mut parts[at];
        message.msg_iovlen = 1;
        message.msg_name = (&raw mut addresses[at]).cast();
        message.msg_namelen = address_bytes::<libc::sockaddr_storage>();
    }
    // SAFETY: the first `count` messages point to places and addresses that live through the call.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            u32::try_from(count).unwrap_or(0),
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for at in 0..received.min(count) {
        let message = &messages[at];
        arrived.push(IncomingDatagram {
            from: decode(&addresses[at]),
            bytes: (message.msg_len as usize).min(places[at].len()),
            cut: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        });
    }
    Ok(())
}

/// Sends at most [`BATCH_MAX`] datagrams without waiting; how many went out. An error is the first
/// one's. `ipv6` says that the socket is one of IPv6, which reaches IPv4 addresses as mapped ones.
pub fn send(
    socket: BorrowedFd<'_>,
    ipv6: bool,
    leaving: &[OutgoingDatagram<'_>],
) -> io::Result<usize> {
    let count = leaving.len().min(BATCH_MAX);
    // SAFETY: all three are plain C structures for which zero bytes are a value.
    let mut addresses: [libc::sockaddr_storage; BATCH_MAX] = unsafe { zeroed() };
    let mut parts: [libc::iovec; BATCH_MAX] = unsafe { zeroed() };
    let mut messages: [libc::mmsghdr; BATCH_MAX] = unsafe { zeroed() };
    for (at, datagram) in leaving.iter().take(count).enumerate() {
        // The system reads through this pointer and never writes.
        parts[at].iov_base = datagram.bytes.as_ptr().cast_mut().cast();
        parts[at].iov_len = datagram.bytes.len();
        let message = &mut messages[at].msg_hdr;
        message.msg_namelen = encode(datagram.to, ipv6, &mut addresses[at]);
        message.msg_name = (&raw mut addresses[at]).cast();
        message.msg_iov = &raw mut parts[at];
        message.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages point to bytes and addresses that live through the call.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            u32::try_from(count).unwrap_or(0),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn address_bytes<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

/// Writes an address where the system reads it; its size.
fn encode(to: SocketAddr, ipv6: bool, into: &mut libc::sockaddr_storage) -> libc::socklen_t {
    let to = match (to.ip(), ipv6) {
        (IpAddr::V4(ip), true) => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
        _ => to,
    };
    match to {
        SocketAddr::V4(to) => {
            // SAFETY: a plain C structure for which zero bytes are a value.
            let mut address: libc::sockaddr_in = unsafe { zeroed() };
            address.sin_family = family(libc::AF_INET);
            address.sin_port = to.port().to_be();
            address.sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
            // SAFETY: sockaddr_storage is larger than, and aligned for, every kind of address.
            unsafe { (&raw mut *into).cast::<libc::sockaddr_in>().write(address) };
            address_bytes::<libc::sockaddr_in>()
        }
        SocketAddr::V6(to) => {
            // SAFETY: a plain C structure for which zero bytes are a value.
            let mut address: libc::sockaddr_in6 = unsafe { zeroed() };
            address.sin6_family = family(libc::AF_INET6);
            address.sin6_port = to.port().to_be();
            address.sin6_addr.s6_addr = to.ip().octets();
            address.sin6_flowinfo = to.flowinfo();
            address.sin6_scope_id = to.scope_id();
            // SAFETY: sockaddr_storage is larger than, and aligned for, every kind of address.
            unsafe { (&raw mut *into).cast::<libc::sockaddr_in6>().write(address) };
            address_bytes::<libc::sockaddr_in6>()
        }
    }
}

fn family(number: libc::c_int) -> libc::sa_family_t {
    libc::sa_family_t::try_from(number).unwrap_or(0)
}

/// The address that the system wrote; mapped IPv4 addresses as what they are.
fn decode(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(from.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which structure the system has written, and it fits.
            let address = unsafe { (&raw const *from).cast::<libc::sockaddr_in>().read() };
            let ip = address.sin_addr.s_addr.to_ne_bytes();
            Some(SocketAddr::from((ip, u16::from_be(address.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says which structure the system has written, and it fits.
            let address = unsafe { (&raw const *from).cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
            let port = u16::from_be(address.sin6_port);
            match ip.to_canonical() {
                IpAddr::V4(ip) => Some(SocketAddr::from((ip, port))),
                IpAddr::V6(ip) => Some(SocketAddr::V6(std::net::SocketAddrV6::new(
                    ip,
                    port,
                    address.sin6_flowinfo,
                    address.sin6_scope_id,
                ))),
            }
        }
        _ => None,
    }
}
