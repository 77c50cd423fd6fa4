//! The packets of the fast path as bytes: what was written by hand decodes to these values and back.
use crate::vectors::all;
use quorumwire_wire::packet::{
    FLAG_BLIND, FLAG_BUNDLE, FLAG_EPOCH, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TELL, FLAG_TICK,
    HEADER_BYTES, Header, Kind, MAGIC, ORIGIN_BYTES, PAYLOAD_BYTES_MAX, PacketReason, Role,
    VERSION,
};

const SESSION: u64 = 0x0123_4567_89ab_cdef;
/// Stands for the lives 0, 0x1c0de and 0.
const CONFIGURATION: u64 = 0xadea_4782_f2ad_777b;

/// What every vector has in common.
fn plain(kind: Kind, sender: u8, flags: u8) -> Header {
    Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        sender,
        flags,
        group: 7,
        term: 5,
        ..Header::default()
    }
}

/// Name, header without payload's size, checksum and tag, and payload of every vector.
fn expected() -> Vec<(&'static str, Header, Vec<u8>)> {
    let mut all = commands();
    all.extend(between_replicas());
    all.extend(of_paxos());
    all
}

fn commands() -> Vec<(&'static str, Header, Vec<u8>)> {
    let request = Header {
        term: 0,
        session: SESSION,
        sequence: 42,
        ..plain(Kind::Request, 255, FLAG_BLIND)
    };
    let answer = Header {
        index: 100,
        commit_index: 100,
        session: SESSION,
        sequence: 42,
        ..plain(Kind::Answer, 1, 0)
    };
    let refused = Header {
        index: 0,
        sequence: 43,
        flags: FLAG_REFUSED,
        ..answer
    };
    let with_reason = Header {
        previous_term: 4, // the answer is too long
        ..refused
    };
    let forward = Header {
        commit_index: 99,
        session: SESSION,
        sequence: 42,
        ..plain(Kind::Forward, 1, FLAG_BLIND)
    };
    let mut forwarded = vec![0; 10];
    forwarded.extend_from_slice(&[0xff, 0xff, 192, 0, 2, 33]);
    forwarded.extend_from_slice(&11311_u16.to_be_bytes());
    assert_eq!(forwarded.len(), ORIGIN_BYTES);
    forwarded.extend_from_slice(b"hello");
    vec![
        ("request", request, b"hello".to_vec()),
        ("answer", answer, b"STORED\r\n".to_vec()),
        ("answer_refused", refused, b"too large".to_vec()),
        (
            "answer_refused_with_reason",
            with_reason,
            b"too large".to_vec(),
        ),
        ("forward", forward, forwarded),
    ]
}

fn between_replicas() -> Vec<(&'static str, Header, Vec<u8>)> {
    let append = Header {
        term: 0x0102_0304_0506_0708,
        index: 0x1112_1314_1516_1718,
        previous_term: 0x0102_0304_0506_0707,
        commit_index: 0x1112_1314_1516_1717,
        session: 0x2122_2324_2526_2728,
        sequence: 0x3132_3334_3536_3738,
        ..plain(Kind::Append, 0, FLAG_EPOCH | FLAG_BLIND)
    };
    let tick = Header {
        index: 1,
        previous_term: 4,
        sequence: 9,
        ..plain(Kind::Append, 6, FLAG_TICK)
    };
    let fragment = Header {
        index: 2,
        previous_term: 5,
        commit_index: 1,
        session: 3,
        sequence: 4,
        ..plain(Kind::Append, 2, FLAG_FRAGMENT)
    };
    let bundle = Header {
        index: 3,
        previous_term: 5,
        commit_index: 2,
        ..plain(Kind::Append, 0, FLAG_BUNDLE)
    };
    let ok = Header {
        index: 100,
        commit_index: 99,
        sequence: 17,
        ..plain(Kind::AppendOk, 2, 0)
    };
    let retransmit = Header {
        index: 101,
        ..Header {
            kind: Kind::Retransmit as u8,
            sender: 3,
            flags: FLAG_EPOCH,
            ..ok
        }
    };
    let heartbeat = Header {
        group: u32::MAX,
        term: u64::MAX,
        index: u64::MAX,
        commit_index: u64::MAX,
        sequence: u64::MAX,
        ..plain(Kind::Heartbeat, 0, 0)
    };
    let heartbeat_ok = Header {
        group: 0,
        term: 1,
        sequence: 1,
        ..plain(Kind::HeartbeatOk, 6, 0)
    };
    let time = 1_714_704_486_400_u64.to_be_bytes().to_vec();
    let piece = [&[0, 0, 0, 1, 0, 0, 0, 2][..], b"world"].concat();
    vec![
        ("append", append, b"hello".to_vec()),
        ("append_tick", tick, time),
        ("append_fragment", fragment, piece),
        ("append_bundle", bundle, b"\x02\0\x01a\x02\0\x01b".to_vec()),
        ("append_ok", ok, vec![]),
        ("retransmit", retransmit, vec![]),
        ("heartbeat", heartbeat, vec![]),
        ("heartbeat_ok", heartbeat_ok, vec![]),
    ]
}

fn of_paxos() -> Vec<(&'static str, Header, Vec<u8>)> {
    let submit = Header {
        term: 0,
        session: SESSION,
        sequence: 42,
        ..plain(Kind::Submit, 255, 0)
    };
    let of_round = |kind, sender, flags| Header {
        term: 0x302,
        commit_index: 6,
        ..plain(kind, sender, flags)
    };
    let ask = Header {
        commit_index: CONFIGURATION,
        session: 0x2122_2324_2526_2728,
        ..of_round(Kind::P1a, 2, FLAG_EPOCH)
    };
    let promise_all = Header {
        previous_term: 20,
        session: 10,
        sequence: 100,
        ..of_round(Kind::P1b, 0, 0)
    };
    let promise = Header {
        index: 100,
        previous_term: 0x201,
        session: SESSION,
        sequence: 42,
        ..of_round(Kind::P1b, 0, FLAG_FRAGMENT)
    };
    let propose = Header {
        index: 101,
        session: SESSION,
        sequence: 42,
        ..of_round(Kind::P2a, 2, 0)
    };
    let told = Header {
        flags: FLAG_TELL,
        ..propose
    };
    let vote = Header {
        kind: Kind::P2b as u8,
        sender: 1,
        previous_term: 0x302,
        ..propose
    };
    let refused = Header {
        flags: FLAG_REFUSED,
        term: 0x401,
        session: 0,
        sequence: 10,
        ..vote
    };
    let other = Header {
        term: 0x201,
        previous_term: 0x302,
        commit_index: CONFIGURATION,
        sequence: 10,
        ..of_round(Kind::P1b, 0, FLAG_REFUSED)
    };
    let beat = Header {
        index: 101,
        commit_index: CONFIGURATION,
        ..of_round(Kind::Heartbeat, 2, 0)
    };
    let twin = Header {
        commit_index: 0,
        ..of_round(Kind::Heartbeat, 2, FLAG_REFUSED)
    };
    let admit = Header {
        index: 0,
        kind: Kind::Admit as u8,
        previous_term: 100,
        session: 10,
        ..beat
    };
    let checkpoint = Header {
        kind: Kind::Checkpoint as u8,
        sender: 1,
        term: 0,
        index: 90,
        sequence: 101,
        ..beat
    };
    let value = || b"hello".to_vec();
    let configuration = || [0, 0x1_c0de, 0_u64].map(u64::to_be_bytes).concat();
    vec![
        ("submit", submit, value()),
        ("p1a", ask, configuration()),
        ("p1b_other", other, configuration()),
        ("heartbeat_paxos", beat, vec![]),
        ("heartbeat_paxos_refused", twin, vec![]),
        ("admit", admit, configuration()),
        ("checkpoint", checkpoint, vec![]),
        ("p1b_of_all", promise_all, vec![]),
        ("p1b", promise, value()),
        ("p2a", propose, value()),
        ("p2a_tell", told, value()),
        ("p2b", vote, value()),
        ("p2b_refused", refused, vec![]),
    ]
}

#[test]
fn every_packet_is_its_vector() {
    let vectors = all();
    let mut kinds = Vec::new();
    for (name, header, payload) in expected() {
        let bytes = &vectors[&("packets", name.to_owned())];
        let (head, behind) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
        let found = Header::decode(head);
        let commands = if header.kind == Kind::Forward as u8 {
            &payload[ORIGIN_BYTES..]
        } else {
            &payload[..]
        };
        let expected = Header {
            payload_bytes: u16::try_from(payload.len()).unwrap(),
            payload_crc32c: crc32c::crc32c(commands),
            tag: u64::from_be_bytes(*head.last_chunk().unwrap()),
            ..header
        };
        assert_ne!(found.tag, 0, "{name}");
        assert_eq!(found, expected, "{name}");
        assert_eq!(expected.encode(), *head, "{name}");
        assert_eq!(behind, payload, "{name}");
        kinds.push(Kind::from_byte(found.kind).unwrap());
    }
    let sections = vectors.keys().filter(|key| key.0 == "packets").count();
    assert_eq!(sections, expected().len());
    for kind in Kind::ALL {
        assert!(kinds.contains(&kind), "no vector of {}", kind.name());
    }
}

#[test]
fn numbers_and_names_go_both_ways() {
    for byte in 0..=u8::MAX {
        assert!(Kind::from_byte(byte).is_none_or(|kind| kind as u8 == byte));
        assert!(Role::from_byte(byte).is_none_or(|role| role as u8 == byte));
        assert!(PacketReason::from_byte(byte).is_none_or(|reason| reason as u8 == byte));
    }
    for (place, reason) in PacketReason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place);
    }
    assert_eq!((Kind::ALL.len(), Role::ALL.len()), (15, 3));
    assert_eq!(Kind::AppendOk.name(), "append_ok");
    assert_eq!(PacketReason::BeforeStart.name(), "before_start");
}

// 40 bytes of IPv6 and 8 of UDP are the most that stands before a packet; tags are made word by word.
const _: () =
    assert!(HEADER_BYTES + PAYLOAD_BYTES_MAX + 48 <= 1500 && PAYLOAD_BYTES_MAX.is_multiple_of(8));
