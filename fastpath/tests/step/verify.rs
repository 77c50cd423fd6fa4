//! The checks before the step: what is short, long, unknown or wrongly signed is refused by its reason.
use crate::tag::vectors;
use quorumwire_fastpath::{KeyPair, Keys, check, tag};
use quorumwire_wire::packet::{
    FLAG_EPOCH, HEADER_BYTES, Header, Kind, MAGIC, PAYLOAD_BYTES_MAX, PacketReason, TAG_OFFSET,
    VERSION,
};

const CLUSTER: [[u8; 16]; 2] = [[1; 16], [2; 16]];
const CLIENTS: [[u8; 16]; 2] = [[3; 16], [4; 16]];

/// Both epochs of both kinds are valid.
pub fn keys() -> Keys {
    Keys {
        cluster: KeyPair::new(CLUSTER.map(Some)),
        clients: KeyPair::new(CLIENTS.map(Some)),
    }
}

/// A header of a kind, with the smallest payload it can have.
pub fn plain(kind: Kind) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        payload_bytes: if kind == Kind::Forward { 18 } else { 0 },
        ..Header::default()
    }
}

/// The datagram of a header and as many payload bytes as it says, signed by one of the pair.
pub fn signed(header: &Header, pair: &KeyPair) -> Vec<u8> {
    let payload = vec![7; usize::from(header.payload_bytes)];
    let epoch = usize::from(header.flags & FLAG_EPOCH);
    let key = pair.key(epoch).expect("a valid epoch");
    let unsigned = header.encode();
    let covered = &payload[..payload.len().min(PAYLOAD_BYTES_MAX)];
    let header = Header {
        tag: tag(key, &unsigned, covered),
        ..*header
    };
    [&header.encode()[..], &payload].concat()
}

fn pair_of(keys: &Keys, kind: Kind) -> KeyPair {
    match kind {
        Kind::Request | Kind::Answer | Kind::Submit => keys.clients,
        Kind::Append
        | Kind::AppendOk
        | Kind::Retransmit
        | Kind::Heartbeat
        | Kind::HeartbeatOk
        | Kind::Forward
        | Kind::P1a
        | Kind::P1b
        | Kind::P2a
        | Kind::P2b
        | Kind::Admit
        | Kind::Checkpoint => keys.cluster,
    }
}

fn other_pair_of(keys: &Keys, kind: Kind) -> KeyPair {
    match kind {
        Kind::Request | Kind::Answer | Kind::Submit => keys.cluster,
        Kind::Append
        | Kind::AppendOk
        | Kind::Retransmit
        | Kind::Heartbeat
        | Kind::HeartbeatOk
        | Kind::Forward
        | Kind::P1a
        | Kind::P1b
        | Kind::P2a
        | Kind::P2b
        | Kind::Admit
        | Kind::Checkpoint => keys.clients,
    }
}

#[test]
fn what_is_signed_with_the_key_of_its_kind_and_epoch_passes() {
    let keys = keys();
    for kind in Kind::ALL {
        for flags in [0, FLAG_EPOCH] {
            let header = Header {
                flags,
                ..plain(kind)
            };
            let datagram = signed(&header, &pair_of(&keys, kind));
            let (found, payload) = check(&keys, &datagram).unwrap();
            assert_eq!(Header { tag: 0, ..found }, header);
            assert_eq!(payload.len(), usize::from(header.payload_bytes));
            // A client must not speak for a replica, nor a replica's key for a client.
            let other = signed(&header, &other_pair_of(&keys, kind));
            assert_eq!(check(&keys, &other), Err(PacketReason::Tag), "{kind:?}");
        }
    }
}

#[test]
fn a_client_cannot_sign_as_a_replica_by_naming_itself_one() {
    let keys = keys();
    for sender in [0, 255] {
        let append = Header {
            sender,
            ..plain(Kind::Append)
        };
        assert_eq!(
            check(&keys, &signed(&append, &keys.clients)),
            Err(PacketReason::Tag)
        );
    }
}

#[test]
fn an_epoch_that_is_over_counts_no_more() {
    let keys = keys();
    let datagram = signed(&plain(Kind::Heartbeat), &keys.cluster);
    let rotated = Keys {
        cluster: KeyPair::new([None, Some(CLUSTER[1])]),
        ..keys
    };
    assert!(check(&keys, &datagram).is_ok());
    assert_eq!(check(&rotated, &datagram), Err(PacketReason::Tag));
    assert_eq!(check(&Keys::default(), &datagram), Err(PacketReason::Tag));
}

/// Its place holds zeros, which anybody can sign with.
pub fn without_a_key() -> (Keys, Vec<u8>) {
    let known_to_all = KeyPair::new([Some([0; 16]); 2]);
    let keys = Keys {
        cluster: KeyPair::new([None, Some(CLUSTER[1])]),
        ..keys()
    };
    (keys, signed(&plain(Kind::Append), &known_to_all))
}

#[test]
fn a_key_that_is_not_there_signs_nothing() {
    let (keys, datagram) = without_a_key();
    assert_eq!(check(&keys, &datagram), Err(PacketReason::Tag));
    assert_eq!(check(&Keys::default(), &datagram), Err(PacketReason::Tag));
}

#[test]
fn no_bit_can_be_flipped() {
    let keys = keys();
    let header = Header {
        payload_bytes: 9,
        ..plain(Kind::Append)
    };
    let datagram = signed(&header, &keys.cluster);
    assert_eq!(datagram.len(), HEADER_BYTES + 9);
    for bit in 0..datagram.len() * 8 {
        let mut wrong = datagram.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(check(&keys, &wrong).is_err(), "bit {bit}");
    }
    assert_eq!(datagram[TAG_OFFSET..HEADER_BYTES].len(), 8);
}

#[test]
fn form_is_checked_first() {
    let keys = keys();
    let append = Header {
        payload_bytes: 5,
        ..plain(Kind::Append)
    };
    let signed_append = signed(&append, &keys.cluster);
    for bytes in 0..signed_append.len() {
        let expected = if bytes < HEADER_BYTES {
            PacketReason::NotOurs
        } else {
            PacketReason::Malformed
        };
        assert_eq!(
            check(&keys, &signed_append[..bytes]),
            Err(expected),
            "{bytes} bytes"
        );
    }
    let longer = [&signed_append[..], &[0]].concat();
    assert_eq!(check(&keys, &longer), Err(PacketReason::Malformed));
}

#[test]
fn fields_that_no_sender_makes_are_refused() {
    let keys = keys();
    let append = Header {
        payload_bytes: 5,
        ..plain(Kind::Append)
    };
    let most = u16::try_from(PAYLOAD_BYTES_MAX).unwrap();
    let cases = [
        (
            Header {
                magic: MAGIC + 1,
                ..append
            },
            PacketReason::NotOurs,
        ),
        (
            Header {
                version: VERSION + 1,
                ..append
            },
            PacketReason::Version,
        ),
        (Header { kind: 0, ..append }, PacketReason::Malformed),
        (Header { kind: 16, ..append }, PacketReason::Malformed),
        (
            Header {
                flags: 0x80,
                ..append
            },
            PacketReason::Malformed,
        ),
    ];
    let wrong_sizes = [
        (Kind::Append, most + 1),
        (Kind::Append, u16::MAX),
        (Kind::Forward, 17),
        (Kind::Forward, most + 1),
        (Kind::AppendOk, 1),
        (Kind::Retransmit, 1),
        (Kind::Heartbeat, 1),
        (Kind::HeartbeatOk, 1),
        (Kind::Checkpoint, 1),
        (Kind::P1a, 57),
        (Kind::Admit, 57),
    ];
    let wrong_sizes = wrong_sizes.map(|(kind, payload_bytes)| {
        let header = Header {
            payload_bytes,
            ..plain(kind)
        };
        (header, PacketReason::Malformed)
    });
    for (header, expected) in cases.into_iter().chain(wrong_sizes) {
        let datagram = signed(&header, &keys.cluster);
        assert_eq!(check(&keys, &datagram), Err(expected), "{header:?}");
    }
    let largest = Header {
        payload_bytes: most,
        ..append
    };
    assert!(check(&keys, &signed(&largest, &keys.cluster)).is_ok());
}

#[test]
fn the_vectors_pass_with_their_key() {
    let pair = KeyPair::new([Some(std::array::from_fn(|at| u8::try_from(at).unwrap())); 2]);
    let keys = Keys {
        cluster: pair,
        clients: pair,
    };
    for (name, bytes) in vectors() {
        assert!(check(&keys, &bytes).is_ok(), "{name}");
    }
}
