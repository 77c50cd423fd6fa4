//! Sockets for Ethernet frames, which no library wraps.
#![allow(unsafe_code)]
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Frames of every protocol: `ETH_P_ALL`.
pub const EVERY_PROTOCOL: u16 = 3;
/// Room for whatever a test lets pile up.
const SOCKET_BUFFER_BYTES: usize = 64 << 20;

/// Of `<linux/if_packet.h>`, since Linux 4.20.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Longest frame that is taken.
const FRAME_BYTES_MAX: usize = 4096;

/// An interface's frames of one protocol, as they come up behind all programs; not those that leave.
pub struct Ethernet {
    socket: OwnedFd,
}

impl Ethernet {
    /// Of an interface of this thread's namespace.
    pub fn open(interface: &str, protocol: u16) -> io::Result<Self> {
        let name = CString::new(interface).map_err(io::Error::other)?;
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let protocol = protocol.to_be();
        // SAFETY: takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, protocol.into()) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made it, for us.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: a plain C structure for which zero bytes are a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
        address.sll_protocol = protocol;
        // SAFETY: the name ends with a zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
        let bytes = libc::socklen_t::try_from(size_of_val(&address)).map_err(io::Error::other)?;
        // SAFETY: the address lives through the call.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) };
        done(bound as isize)?;
        for option in [libc::PACKET_QDISC_BYPASS, PACKET_IGNORE_OUTGOING] {
            let on: libc::c_int = 1;
            let bytes = libc::socklen_t::try_from(size_of_val(&on)).map_err(io::Error::other)?;
            // SAFETY: the number lives through the call, and is as long as said.
            let set = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_PACKET,
                    option,
                    (&raw const on).cast(),
                    bytes,
                )
            };
            done(set as isize)?;
        }
        set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER_BYTES)?;
        Ok(Self { socket })
    }

    /// Sends a frame as it is, past all programs that look at what leaves.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame lives through the call.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
            )
        };
        done(sent).map(|_| ())
    }

    /// The next frame that has come.
    pub fn next(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; FRAME_BYTES_MAX];
        // SAFETY: the place is as large as said, and lives through the call.
        let came = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                0,
            )
        };
        frame.truncate(done(came).ok()?);
        Some(frame)
    }
}

fn done(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
