//! Tags: another implementation's, payloads that differ, and the packets' vectors.
use quorumwire_fastpath::{TagKey, encode, tag};
use quorumwire_wire::packet::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, TAG_OFFSET};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const HEADER: [u8; HEADER_BYTES] = [0x3c; HEADER_BYTES];

fn siphash(parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&KEY);
    for part in parts {
        hasher.write(part);
    }
    hasher.finish()
}

/// One of the payload's two digests, of numbers of four bytes: the key of the second is moved by two.
fn digest(payload: &[u8], moved: usize) -> [u8; 8] {
    let key: Vec<u32> = (0_u64..173)
        .flat_map(|place| siphash(&[&place.to_le_bytes()]).to_le_bytes())
        .collect::<Vec<u8>>()
        .chunks(4)
        .map(number)
        .collect();
    let mut padded = payload.to_vec();
    padded.resize(payload.len().next_multiple_of(8), 0);
    let message: Vec<u32> = padded.chunks(4).map(number).collect();
    let pairs = message.chunks(2).zip(key[moved..].chunks(2));
    let sum = pairs.fold(0_u64, |sum, (message, key)| {
        let [one, other] = [0, 1].map(|at| u64::from(message[at].wrapping_add(key[at])));
        sum.wrapping_add(one.wrapping_mul(other))
    });
    sum.to_le_bytes()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

fn payload() -> Vec<u8> {
    (0..PAYLOAD_BYTES_MAX)
        .map(|at| u8::try_from(at * 7 % 241).unwrap())
        .collect()
}

#[test]
fn a_tag_is_the_hash_of_the_header_and_of_the_payloads_digests() {
    let header: [u8; HEADER_BYTES] = std::array::from_fn(|at| u8::try_from(at * 3).unwrap());
    for bytes in 0..=PAYLOAD_BYTES_MAX {
        let payload = &payload()[..bytes];
        let expected = if bytes == 0 {
            siphash(&[&header[..TAG_OFFSET]])
        } else {
            siphash(&[
                &header[..TAG_OFFSET],
                &digest(payload, 0),
                &digest(payload, 2),
            ])
        };
        assert_eq!(
            tag(&TagKey::new(KEY), &header, payload),
            expected,
            "{bytes} bytes"
        );
    }
}

#[test]
fn each_bit_of_a_payload_moves_its_tag() {
    let key = TagKey::new(KEY);
    for bytes in [1, 7, 8, 9, 64, PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX] {
        let mut payload = payload()[..bytes].to_vec();
        let unchanged = tag(&key, &HEADER, &payload);
        for bit in 0..8 * bytes {
            payload[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(
                tag(&key, &HEADER, &payload),
                unchanged,
                "bit {bit} of {bytes} bytes"
            );
            payload[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Words of four bytes that are exchanged, in pairs or one by one, are not the same payload.
#[test]
fn exchanged_words_move_a_tag() {
    let key = TagKey::new(KEY);
    let whole = payload();
    let unchanged = tag(&key, &HEADER, &whole);
    for size in [4, 8, 16] {
        for at in (0..whole.len() - 2 * size).step_by(size) {
            let mut exchanged = whole.clone();
            exchanged[at..at + 2 * size].rotate_left(size);
            assert_ne!(
                tag(&key, &HEADER, &exchanged),
                unchanged,
                "{size} bytes at {at}"
            );
        }
    }
}

/// The bytes of every packet typed by hand.
pub fn vectors() -> Vec<(String, Vec<u8>)> {
    let text = include_str!("../../../wire/vectors/packets.txt");
    let mut vectors: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            vectors.push((name.trim_end_matches(']').to_owned(), Vec::new()));
            continue;
        }
        for word in line.split_whitespace() {
            let (_, bytes) = vectors.last_mut().expect("a section");
            bytes.push(u8::from_str_radix(word, 16).expect("hexadecimal"));
        }
    }
    vectors
}

#[test]
fn the_vectors_in_c_are_those_in_rust() {
    let vectors = vectors();
    assert!(vectors.len() >= 11);
    for (name, bytes) in vectors {
        let (head, payload) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        let header = Header::decode(head);
        assert_eq!(encode(&header), *head, "{name}");
        assert_eq!(tag(&TagKey::new(KEY), head, payload), header.tag, "{name}");
    }
}
