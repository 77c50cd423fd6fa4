//! Which cluster a client asks. Its key file names none: it is made before there is a cluster, and serves the
//! next one of the same name and secret, too. So a client first asks a replica for the cluster's lineage, and
//! signs its requests with a key that is made from both. What was recorded in an earlier life of the cluster
//! is then nothing in the next.
//!
//! Question and answer are signed with a key that is made from the file's. Whoever records an answer cannot
//! use it again: it repeats the question, and a client draws a new one after each answer.
use super::udp::socket_to;
use hkdf::Hkdf;
use quorumwire_interfaces::{Lineage, PlaneKeyPair};
use quorumwire_wire::{
    LINEAGE_PACKET_BYTES, LINEAGE_PACKET_TAG_BYTES, LineageMessage, LineagePacket,
};
use sha2::Sha256;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use subtle::ConstantTimeEq as _;

/// Drawn for one question.
pub type Question = [u8; 16];
type Key = [u8; 16];
type Tag = [u8; LINEAGE_PACKET_TAG_BYTES];

/// What the tags of questions and answers are made for.
const SALT: &[u8] = b"quorumwire lineage 1";
/// What a key is made for.
const PACKETS: &[u8] = b"quorumwire packets 2 clients";

/// How often [`keys_told_by`] asks, and how long it waits each time.
const TRIES: u32 = 10;
const TRY: Duration = Duration::from_millis(100);

/// The keys that clients of a cluster sign with, and replicas check with, of those in their files. A cluster
/// without a lineage uses the files' own.
#[must_use]
pub fn keys_of(file: &PlaneKeyPair, lineage: Lineage) -> PlaneKeyPair {
    if !lineage.is_known() {
        return *file;
    }
    let of = |key: Key| expand(&lineage.0.to_be_bytes(), &key, PACKETS);
    PlaneKeyPair {
        epoch: file.epoch,
        key: of(file.key),
        other: file.other.map(of),
    }
}

/// A client's datagram that asks for the lineage.
#[must_use]
pub fn ask(file: &PlaneKeyPair, question: Question) -> [u8; LINEAGE_PACKET_BYTES] {
    seal(
        file.key,
        bit(file.epoch),
        question,
        LineageMessage::Question,
    )
}

/// A replica's answer to a datagram; `None`: nothing is to be answered.
#[must_use]
pub fn tell(
    file: &PlaneKeyPair,
    datagram: &[u8],
    lineage: Lineage,
) -> Option<[u8; LINEAGE_PACKET_BYTES]> {
    let (packet, key) = open(file, datagram)?;
    let message = LineageMessage::Answer(lineage);
    let asked = packet.message == LineageMessage::Question;
    asked.then(|| seal(key, packet.epoch, packet.question, message))
}

/// What a replica has told; `None`: it is no answer to this question.
#[must_use]
pub fn told(file: &PlaneKeyPair, datagram: &[u8], question: Question) -> Option<Lineage> {
    let (packet, _) = open(file, datagram)?;
    match packet.message {
        LineageMessage::Answer(lineage) if packet.question == question => Some(lineage),
        LineageMessage::Answer(_) | LineageMessage::Question => None,
    }
}

/// Whether a datagram is a question or an answer of somebody with the key.
pub(super) fn is_authentic(file: &PlaneKeyPair, datagram: &[u8]) -> bool {
    open(file, datagram).is_some()
}

/// Asks a replica for the lineage, up to 10 times in a second, and makes the keys for requests to it. For
/// whoever makes requests without a [`super::PlaneClient`], which asks by itself.
///
/// # Errors
///
/// `TimedOut`: no replica of a cluster with this key answers there. Or the socket failed.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the system's errors are many"
)]
pub fn keys_told_by(replica: SocketAddr, file: &PlaneKeyPair) -> io::Result<PlaneKeyPair> {
    let socket = socket_to(&[replica])?;
    socket.connect(replica)?;
    socket.set_read_timeout(Some(TRY))?;
    let mut question = Question::default();
    getrandom::fill(&mut question)?;
    let mut datagram = [0; LINEAGE_PACKET_BYTES];
    for _ in 0..TRIES {
        socket.send(&ask(file, question)).ok(); // nobody may listen there yet
        match socket.recv(&mut datagram) {
            Ok(bytes) => {
                if let Some(lineage) = told(file, &datagram[..bytes], question) {
                    return Ok(keys_of(file, lineage));
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused => std::thread::sleep(TRY),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    let text = format!("{replica} does not tell the cluster's lineage");
    Err(io::Error::new(ErrorKind::TimedOut, text))
}

/// Reads a datagram whose tag is right; its key.
fn open(file: &PlaneKeyPair, datagram: &[u8]) -> Option<(LineagePacket, Key)> {
    let (packet, tag) = LineagePacket::decode(datagram)?;
    let in_use = packet.epoch == bit(file.epoch);
    let key = if in_use { Some(file.key) } else { file.other }?;
    let right = tag_of(key, &packet);
    bool::from(right.ct_eq(tag)).then_some((packet, key))
}

fn seal(
    key: Key,
    epoch: u8,
    question: Question,
    message: LineageMessage,
) -> [u8; LINEAGE_PACKET_BYTES] {
    let packet = LineagePacket {
        epoch,
        question,
        message,
    };
    let mut datagram = [0; LINEAGE_PACKET_BYTES];
    let (body, tag) = datagram.split_at_mut(LINEAGE_PACKET_BYTES - LINEAGE_PACKET_TAG_BYTES);
    body.copy_from_slice(&packet.encode());
    tag.copy_from_slice(&tag_of(key, &packet));
    datagram
}

fn tag_of(key: Key, packet: &LineagePacket) -> Tag {
    expand(SALT, &key, &packet.encode())
}

/// HKDF-SHA256 (RFC 5869).
fn expand(salt: &[u8], key: &Key, info: &[u8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    Hkdf::<Sha256>::new(Some(salt), key)
        .expand(info, &mut bytes)
        .expect("16 bytes are few");
    bytes
}

fn bit(epoch: u64) -> u8 {
    u8::from(epoch % 2 == 1)
}
