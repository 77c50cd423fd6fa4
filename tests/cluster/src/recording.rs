//! Frames of a network: heard on a machine or made here, taken apart, and written to a file that programs for
//! recordings read. Decides nothing.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};

use crate::network::{Machine, Network};

/// Longest frame that is heard: what the kernel has not cut into segments yet.
const FRAME_BYTES_MAX: usize = 1 << 17;
/// Most frames of one recording.
const FRAMES_MAX: usize = 200_000;
/// Frames that the kernel keeps for a recorder that waits for the processor.
const BUFFER_BYTES: usize = 64 << 20;
/// A recorder that is to end looks this often.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

const ETHERNET_HEAD_BYTES: usize = 14;
const ETHERNET_IPV4: [u8; 2] = [0x08, 0x00];
/// IPv4 without options.
const IP_HEAD_BYTES: usize = 20;
const UDP_HEAD_BYTES: usize = 8;
const TCP_HEAD_BYTES: usize = 20;
const TCP_SYN: u8 = 0x02;
const TCP_PUSH_AND_ACK: u8 = 0x18;
const UDP: u8 = 17;
const TCP: u8 = 6;

/// Hears all frames that come to a machine and leave it, until it is told to end.
pub struct Recorder {
    end: Arc<AtomicBool>,
    heard: JoinHandle<Result<Vec<Vec<u8>>>>,
}

impl Recorder {
    /// Begins on a machine. What planes in the kernel take, nobody can hear.
    pub fn start(network: &Network, machine: Machine) -> Result<Self> {
        let socket = network.run_in(machine, || -> Result<OwnedFd> {
            let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
            let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(eth::ALL))?;
            set_socket_timeout(&socket, Timeout::Recv, Some(POLL_INTERVAL))?;
            set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
            Ok(socket)
        })??;
        let end = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&end);
        let heard = thread::spawn(move || hear(&socket, &told));
        Ok(Self { end, heard })
    }

    /// What was heard, in order.
    pub fn finish(self) -> Result<Vec<Vec<u8>>> {
        self.end.store(true, Ordering::Relaxed);
        self.heard.join().expect("a recorder does not panic")
    }
}

fn hear(socket: &OwnedFd, end: &AtomicBool) -> Result<Vec<Vec<u8>>> {
    let mut frames = Vec::new();
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    while frames.len() < FRAMES_MAX {
        // At the end still what has come before.
        let is_ending = end.load(Ordering::Relaxed);
        let wait = if is_ending {
            RecvFlags::DONTWAIT
        } else {
            RecvFlags::empty()
        };
        match recv(socket, &mut buffer[..], wait) {
            Ok((bytes, _)) => frames.push(buffer[..bytes].to_vec()),
            Err(Errno::AGAIN) if is_ending => return Ok(frames),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("more than {FRAMES_MAX} frames")
}

/// What is in a frame of IPv4.
#[derive(Clone, Copy, Debug)]
pub enum Carried<'a> {
    /// One datagram's payload.
    Datagram(&'a [u8]),
    /// A segment of a stream.
    Segment {
        /// From and to.
        between: [SocketAddrV4; 2],
        /// Whether the stream begins with it.
        begins: bool,
        /// Where its bytes stand in the stream, as TCP counts.
        sequence: u32,
        /// Its bytes.
        bytes: &'a [u8],
    },
}

/// What a frame carries; none if it is neither UDP nor TCP over IPv4.
#[must_use]
pub fn carried(frame: &[u8]) -> Option<Carried<'_>> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_HEAD_BYTES)?;
    let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let (ip, rest) = packet.get(..length)?.split_at_checked(IP_HEAD_BYTES)?;
    if ethernet[12..] != ETHERNET_IPV4 || ip[0] != 0x45 {
        return None;
    }
    let address = |place: usize, port: usize| {
        let octets: [u8; 4] = ip[place..place + 4].try_into().ok()?;
        let port = u16::from_be_bytes([*rest.get(port)?, *rest.get(port + 1)?]);
        Some(SocketAddrV4::new(Ipv4Addr::from(octets), port))
    };
    match ip[9] {
        UDP => Some(Carried::Datagram(rest.get(UDP_HEAD_BYTES..)?)),
        TCP => Some(Carried::Segment {
            between: [address(12, 0)?, address(16, 2)?],
            begins: rest.get(13)? & TCP_SYN != 0,
            sequence: u32::from_be_bytes(rest.get(4..8)?.try_into().ok()?),
            bytes: rest.get(usize::from(rest.get(12)? >> 4) * 4..)?,
        }),
        _ => None,
    }
}

/// The frame of a datagram between two ports of made-up machines.
#[must_use]
pub fn datagram_frame(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut udp = [from.to_be_bytes(), to.to_be_bytes()].concat();
    udp.extend_from_slice(&length(UDP_HEAD_BYTES + payload.len()));
    udp.extend_from_slice(&[0, 0]); // no checksum
    frame(UDP, &[&udp, payload].concat())
}

/// The frames of a stream between two ports of made-up machines, in these segments.
#[must_use]
pub fn stream_frames(from: u16, to: u16, segments: &[&[u8]]) -> Vec<Vec<u8>> {
    let segment = |sequence: u32, flags: u8, bytes: &[u8]| {
        let mut tcp = [from.to_be_bytes(), to.to_be_bytes()].concat();
        tcp.extend_from_slice(&sequence.to_be_bytes());
        let words = u8::try_from(TCP_HEAD_BYTES / 4).expect("five");
        tcp.extend_from_slice(&[0, 0, 0, 1, words << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        frame(TCP, &[&tcp, bytes].concat())
    };
    let mut next = 1;
    let mut frames = vec![segment(0, TCP_SYN, &[])];
    for bytes in segments {
        frames.push(segment(next, TCP_PUSH_AND_ACK, bytes));
        next += u32::try_from(bytes.len()).expect("a short stream");
    }
    frames
}

fn frame(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let [high, low] = length(IP_HEAD_BYTES + rest.len());
    let mut frame = vec![2; ETHERNET_HEAD_BYTES - 2];
    frame.extend_from_slice(&ETHERNET_IPV4);
    frame.extend_from_slice(&[0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend_from_slice(rest);
    frame
}

fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes)
        .expect("it fits a packet")
        .to_be_bytes()
}

/// Writes a recording in the format of libpcap. Each frame has its bytes, and how many it had on the wire.
pub fn write<'a>(path: &Path, frames: impl Iterator<Item = (&'a [u8], usize)>) -> io::Result<()> {
    let word = |number: usize| u32::try_from(number).expect("it fits").to_le_bytes();
    let (version, ethernet) = ([2, 0, 4, 0], 1);
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend_from_slice(&version);
    for number in [0, 0, FRAME_BYTES_MAX, ethernet] {
        file.extend_from_slice(&word(number));
    }
    for (second, (bytes, on_wire)) in frames.enumerate() {
        for number in [second, 0, bytes.len(), on_wire] {
            file.extend_from_slice(&word(number));
        }
        file.extend_from_slice(bytes);
    }
    fs::write(path, file)
}
