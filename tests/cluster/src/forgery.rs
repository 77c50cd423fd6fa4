//! What somebody can do on the planes' network who is no replica: packets made with the keys of a stolen
//! `secret.toml`, and packets of others that are kept and sent again. Decides nothing.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hkdf::Hkdf;
use quorumwire_fastpath::{TagKey, tag};
use quorumwire_wire::packet::{
    FLAG_EPOCH, HEADER_BYTES, Header, Kind, MAGIC, ORIGIN_BYTES, TAG_OFFSET, VERSION,
};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};
use sha2::Sha256;

use crate::cluster::{CLUSTER_NAME, Cluster};
use crate::network::Machine;

/// Longest frame that is looked at.
const FRAME_BYTES_MAX: usize = 4096;
/// A frame must come within this time while a fast term runs.
const FRAME_TIMEOUT: Duration = Duration::from_secs(5);
/// Frames of an IPv4 packet without options begin so, and UDP's head follows.
const IP_HEAD_BYTES: usize = 20;
const UDP_HEAD_BYTES: usize = 8;
const UDP: u8 = 17;

/// Makes packets as a replica of a fast term would, with a key out of the secret file.
pub struct Forger {
    key: TagKey,
    socket: UdpSocket,
}

impl Forger {
    /// Has the key between replicas of this lineage that this secret file's first secret makes. To be made
    /// where it shall send.
    pub fn with_secret(file: &Path, lineage: &str) -> Result<Self> {
        let text = fs::read_to_string(file)?;
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split(' ').next_back());
            value.map(|value| value.trim_matches('"').to_owned())
        };
        let epoch = value("epoch = ").context("no epoch")?;
        let secret = hex::decode(value("hex = ").context("no secret")?)?;
        let hkdf = Hkdf::<Sha256>::new(Some(CLUSTER_NAME.as_bytes()), &secret);
        let mut of_lineages = [0; 32];
        let info = format!("quorumwire packets 2 lineages {epoch}");
        let made = hkdf.expand(info.as_bytes(), &mut of_lineages);
        ensure!(made.is_ok(), "a key is shorter than HKDF allows");
        let hkdf = Hkdf::<Sha256>::new(Some(&hex::decode(lineage)?), &of_lineages);
        let mut key = [0; 16];
        let made = hkdf.expand(b"quorumwire packets 2 replicas", &mut key);
        ensure!(made.is_ok(), "a key is shorter than HKDF allows");
        Ok(Self {
            key: TagKey::new(key),
            socket: UdpSocket::bind("0.0.0.0:0")?,
        })
    }

    /// Sends a packet of this kind, as that slot of the fast term `term` would; under either epoch's number.
    pub fn send(&self, to: SocketAddr, header: &Header, payload: &[u8]) -> Result<()> {
        for epoch in [0, FLAG_EPOCH] {
            let header = Header {
                magic: MAGIC,
                version: VERSION,
                flags: header.flags | epoch,
                payload_bytes: u16::try_from(payload.len())?,
                ..*header
            };
            let mut packet = header.encode().to_vec();
            packet.extend_from_slice(payload);
            let (head, rest) = packet
                .split_first_chunk_mut::<HEADER_BYTES>()
                .expect("it has one");
            let tag = tag(&self.key, head, rest);
            head[TAG_OFFSET..].copy_from_slice(&tag.to_be_bytes());
            self.socket.send_to(&packet, to)?;
        }
        Ok(())
    }

    /// Sends what was kept, as it is.
    pub fn repeat(&self, to: SocketAddr, packet: &[u8]) -> Result<()> {
        self.socket.send_to(packet, to)?;
        Ok(())
    }
}

/// What replica `slot` says in a fast term.
#[must_use]
pub fn said_by(slot: u8, kind: Kind, term: u64, index: u64) -> Header {
    Header {
        kind: kind as u8,
        sender: slot,
        term,
        previous_term: term,
        index,
        commit_index: index,
        sequence: u64::MAX / 4,
        ..Header::default()
    }
}

/// A client's request that a follower sends on: to set a key. The header says what its checksum is.
#[must_use]
pub fn forwarded_set(slot: u8, term: u64, key: &str, value: &[u8]) -> (Header, Vec<u8>) {
    // As `apps/kv` encodes it: format and operation, length of the key, flags, no lifetime.
    let length = u8::try_from(key.len()).expect("a short key");
    let head = [&[0x11, length][..], &[0; 4], &[0; 8]].concat();
    let command = [&head, key.as_bytes(), value].concat();
    let header = Header {
        payload_crc32c: crc32c::crc32c(&command),
        sequence: 1,
        ..said_by(slot, Kind::Forward, term, 0)
    };
    (header, [&[0; ORIGIN_BYTES][..], &command].concat())
}

/// Hears what comes to a machine and leaves it.
pub struct Listener(OwnedFd);

impl Listener {
    /// On the machine of the calling thread.
    fn here() -> Result<Self> {
        let heard = socket_with(
            AddressFamily::PACKET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(eth::IP),
        )?;
        set_socket_timeout(&heard, Timeout::Recv, Some(FRAME_TIMEOUT))?;
        Ok(Self(heard))
    }

    /// The next packets of planes from one address to another, whole.
    fn keep(&self, from: SocketAddr, to: SocketAddr, count: usize) -> Result<Vec<Vec<u8>>> {
        let end = Instant::now() + FRAME_TIMEOUT;
        let mut kept = Vec::new();
        let mut frame = [0; FRAME_BYTES_MAX];
        while kept.len() < count {
            if Instant::now() > end {
                bail!("{} packets of {count} came from {from} to {to}", kept.len());
            }
            let (bytes, _) = recv(&self.0, &mut frame[..], RecvFlags::empty())?;
            kept.extend(packet_in(&frame[..bytes], from, to).map(<[u8]>::to_vec));
        }
        Ok(kept)
    }
}

/// The planes' packet in an IPv4 packet between these two, if it is one.
fn packet_in(frame: &[u8], from: SocketAddr, to: SocketAddr) -> Option<&[u8]> {
    let (ip, rest) = frame.split_at_checked(IP_HEAD_BYTES)?;
    let (udp, rest) = rest.split_at_checked(UDP_HEAD_BYTES)?;
    let address = |place: usize, port: usize| {
        let octets: [u8; 4] = ip[place..place + 4].try_into().ok()?;
        let port = u16::from_be_bytes([udp[port], udp[port + 1]]);
        Some(SocketAddr::from((octets, port)))
    };
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]])).checked_sub(UDP_HEAD_BYTES)?;
    let is_it = ip[0] == 0x45
        && ip[9] == UDP
        && address(12, 0) == Some(from)
        && address(16, 2) == Some(to)
        && rest.starts_with(&MAGIC.to_be_bytes());
    is_it.then(|| rest.get(..length)).flatten()
}

impl Cluster<'_> {
    /// Packets that the plane of `from` sends to that of `to`, as they arrive there. Not of planes in the
    /// kernel, which take them before anybody can hear them.
    pub fn keep_packets(&self, from: u16, to: u16, count: usize) -> Result<Vec<Vec<u8>>> {
        let (from, at) = (self.plane(from), self.plane(to));
        self.network().run_in(Machine::Replica(to), || {
            Listener::here()?.keep(from, at, count)
        })?
    }
}
