//! What is asked: commands of the key-value store, as requests of sessions.
use anyhow::{Context as _, Result, ensure};
use quorumwire_client::planes::{ClientKeys, lineage};
use quorumwire_fastpath::store::{MEMCACHED_COMMAND_HEAD_BYTES, MEMCACHED_COMMAND_SET};
use quorumwire_fastpath::{ClientPackets, Request, TagKey, tag};
use quorumwire_interfaces::{GroupId, PlaneKeyPair, PlaneKeys};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

/// Where they stand in a packet.
pub const SESSION: Range<usize> = 48..56;
pub const SEQUENCE: Range<usize> = 56..64;
const TAG: Range<usize> = 64..72;

/// Different keys that are written.
pub const KEYS: u64 = 64;

/// The clients' keys for requests to a replica, of those in a file.
pub fn keys_for(replica: SocketAddr, file: &Path) -> Result<PlaneKeyPair> {
    let keys = load_keys(file)?;
    match lineage::keys_told_by(replica, &keys) {
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(keys), // programs of `alone` tell none
        told => Ok(told?),
    }
}

/// The clients' keys of a file.
pub fn load_keys(path: &Path) -> Result<PlaneKeyPair> {
    let load = || ClientKeys::load(path)?.pair();
    load().with_context(|| format!("{}", path.display()))
}

/// A client's side of the packets; without keys, made with one that nobody has.
pub fn asking(keys: Option<PlaneKeyPair>) -> ClientPackets {
    ClientPackets::new(&PlaneKeys {
        clients: keys.unwrap_or_default(),
        ..PlaneKeys::default()
    })
}

/// A `set` of so many bytes; its key depends on the number.
fn command(number: u64, bytes: usize) -> Result<Vec<u8>> {
    let key = number % KEYS;
    let long = format!("key-{key:012}");
    let short = format!("{key:02}");
    let key = if bytes >= MEMCACHED_COMMAND_HEAD_BYTES + long.len() {
        &long
    } else {
        &short
    };
    let head_bytes = MEMCACHED_COMMAND_HEAD_BYTES + key.len();
    ensure!(
        bytes >= head_bytes && bytes.is_multiple_of(8),
        "payload-bytes: {bytes} is refused; allowed: multiples of 8 from {head_bytes} on"
    );
    let mut command = vec![MEMCACHED_COMMAND_SET, u8::try_from(key.len())?];
    command.resize(MEMCACHED_COMMAND_HEAD_BYTES, 0);
    command.extend_from_slice(key.as_bytes());
    command.resize(bytes, b'v');
    Ok(command)
}

/// Requests of sessions, made once; what differs between two is written anew for each.
pub struct Packets {
    /// One for each key that is written.
    made: Vec<Vec<u8>>,
    /// `None`: their tag is zero.
    key: Option<TagKey>,
}

impl Packets {
    /// With commands of so many bytes, signed if that is asked for and there are keys.
    pub fn new(keys: Option<PlaneKeyPair>, bytes: usize, signed: bool) -> Result<Self> {
        let asking = asking(keys);
        let made = |number| {
            let payload = command(number, bytes)?;
            let request = Request {
                group: GroupId(0),
                session: 0,
                sequence: 0,
                blind: true,
                payload: &payload,
            };
            asking.request(&request).context("the command is too long")
        };
        Ok(Self {
            made: (0..KEYS).map(made).collect::<Result<_>>()?,
            key: keys.filter(|_| signed).map(|pair| TagKey::new(pair.key)),
        })
    }

    /// The packet of a request.
    pub fn of(&mut self, session: u64, sequence: u64) -> &[u8] {
        let place = usize::try_from(sequence % KEYS).unwrap_or(0);
        let packet = &mut self.made[place][..];
        packet[SESSION].copy_from_slice(&session.to_be_bytes());
        packet[SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
        let tag = match (&self.key, packet.split_first_chunk()) {
            (Some(key), Some((header, payload))) => tag(key, header, payload),
            _ => 0,
        };
        packet[TAG].copy_from_slice(&tag.to_be_bytes());
        packet
    }
}

/// A session for each lane: the lane in its lowest byte, the rest by chance.
pub fn first_session() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    (RandomState::new().hash_one(0) | 1 << 32) & !0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_size_that_was_asked_for_and_different_keys() {
        for bytes in [16, 32, 64, 1376] {
            let commands: Vec<_> = (0..KEYS).map(|n| command(n, bytes).unwrap()).collect();
            assert!(commands.iter().all(|it| it.len() == bytes));
            assert!(commands.windows(2).all(|two| two[0] != two[1]));
            // As the store reads it: the key's length, and all of the key is there.
            assert!(usize::from(commands[0][1]) + MEMCACHED_COMMAND_HEAD_BYTES <= bytes);
        }
        for bytes in [0, 8, 60] {
            assert!(command(0, bytes).is_err(), "{bytes}");
        }
    }

    #[test]
    fn a_packet_is_what_a_client_would_send() {
        let keys = PlaneKeyPair {
            key: [7; 16],
            ..PlaneKeyPair::default()
        };
        let mut packets = Packets::new(Some(keys), 64, true).unwrap();
        for (session, sequence) in [(1 << 40, 1), (5, 70), (1 << 40, 65)] {
            let payload = command(sequence, 64).unwrap();
            let request = Request {
                group: GroupId(0),
                session,
                sequence,
                blind: true,
                payload: &payload,
            };
            let expected = asking(Some(keys)).request(&request).unwrap();
            assert_eq!(packets.of(session, sequence), expected);
        }
        let mut unsigned = Packets::new(Some(keys), 64, false).unwrap();
        assert_eq!(unsigned.of(1, 1)[TAG], [0; 8]);
    }

    #[test]
    fn a_session_has_room_for_its_lane() {
        assert_eq!(first_session() & 0xff, 0);
        assert_ne!(first_session(), 0);
    }
}
