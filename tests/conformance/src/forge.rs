//! Makes packets by hand, with right and wrong keys.
use crate::cluster::{GROUP, TERM};
use quorumwire_fastpath::{TagKey, tag};
use quorumwire_wire::packet::{HEADER_BYTES, Header, Kind, MAGIC, TAG_OFFSET, VERSION};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Keys that are kept for those who sign much.
const KEYS_KEPT: usize = 8;

/// A header as a member of the suite's group would make it.
#[must_use]
pub fn header(kind: Kind, sender: u8, index: u64) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        sender,
        group: GROUP.0,
        term: TERM.0,
        previous_term: TERM.0,
        index,
        ..Header::default()
    }
}

/// The packet of a header and a payload, signed with a key of epoch 0.
#[must_use]
pub fn signed(header: &Header, payload: &[u8], key: [u8; 16]) -> Vec<u8> {
    let header = Header {
        payload_bytes: u16::try_from(payload.len()).expect("a small payload"),
        payload_crc32c: checked(payload),
        tag: 0,
        ..*header
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(payload);
    sign(&mut bytes, key);
    bytes
}

/// Signs a packet again.
pub fn sign(bytes: &mut [u8], key: [u8; 16]) {
    let (head, payload) = bytes
        .split_first_chunk_mut::<HEADER_BYTES>()
        .expect("a whole header");
    let tag = with_key(key, |key| tag(key, head, payload));
    head[TAG_OFFSET..].copy_from_slice(&tag.to_be_bytes());
}

/// What a secret makes, which costs more than a tag: of the last few it is kept.
fn with_key<T>(secret: [u8; 16], run: impl FnOnce(&TagKey) -> T) -> T {
    thread_local! {
        static MADE: RefCell<VecDeque<([u8; 16], Box<TagKey>)>> = const { RefCell::new(VecDeque::new()) };
    }
    MADE.with_borrow_mut(|made| {
        let place = made.iter().position(|(known, _)| *known == secret);
        let place = place.unwrap_or_else(|| {
            made.truncate(KEYS_KEPT - 1);
            made.push_front((secret, Box::new(TagKey::new(secret))));
            0
        });
        run(&made[place].1)
    })
}

/// The checksum of a command, as it stands in a header: CRC32C, bit by bit, for the suite shares no code with
/// what it tests where it need not; 0 for none.
#[must_use]
pub fn checked(bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        return 0;
    }
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let lowest = crc & 1;
            crc >>= 1;
            if lowest == 1 {
                crc ^= 0x82f6_3b78;
            }
        }
    }
    !crc
}
