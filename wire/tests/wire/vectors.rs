//! Golden vectors: bytes written by hand decode to the expected values, and these encode to the same
//! bytes. A change that breaks one breaks every folder and every connection out there.
use bytes::{Bytes, BytesMut};
use quorumwire_interfaces::{
    GroupId, Incarnation, Index, Lineage, LogTime, Reason, ReplicaId, Term,
};
use quorumwire_wire::peer::{self, peer_message::Body};
use quorumwire_wire::prost::Message;
use quorumwire_wire::put_bundled;
use quorumwire_wire::{
    CommitQuorum, FrameHeader, Member, MemberRole, Membership, Record, RecordKind, SnapshotHead,
    SnapshotReader, SnapshotWriter, begin_record, encode_frame, finish_record, lineage_to_proto,
};
use std::collections::BTreeMap;
use std::io::{Read, Write};

const LIFE: u64 = 0x0100_0000_dead_beef;
const LINEAGE: Lineage = Lineage(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);

/// The sections of all vector files by file and name.
pub fn all() -> BTreeMap<(&'static str, String), Vec<u8>> {
    let files = [
        ("clients", include_str!("../../vectors/clients.txt")),
        ("frames", include_str!("../../vectors/frames.txt")),
        ("messages", include_str!("../../vectors/messages.txt")),
        ("packets", include_str!("../../vectors/packets.txt")),
        ("records", include_str!("../../vectors/records.txt")),
        ("snapshots", include_str!("../../vectors/snapshots.txt")),
        ("stored", include_str!("../../vectors/stored.txt")),
    ];
    let mut vectors = BTreeMap::new();
    for (file, text) in files {
        let mut bytes: Option<&mut Vec<u8>> = None;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').expect("a section's name");
                let entry = vectors.entry((file, name.to_owned()));
                bytes = Some(entry.or_default());
                continue;
            }
            for word in line.split_whitespace() {
                let byte = u8::from_str_radix(word, 16).expect("hexadecimal");
                bytes.as_mut().expect("a section").push(byte);
            }
        }
    }
    vectors
}

pub fn section(file: &'static str, name: &str) -> Vec<u8> {
    let vectors = all();
    let key = (file, name.to_owned());
    let bytes = vectors.get(&key).cloned();
    bytes.unwrap_or_else(|| panic!("no [{name}] in {file}.txt"))
}

fn expected_bodies() -> Vec<(&'static str, Body)> {
    let mut bodies = session_bodies();
    bodies.extend(passed_on_bodies());
    bodies.extend(replication_bodies());
    bodies.extend(handover_bodies());
    bodies.extend(native_clients_bodies());
    bodies.extend(agreement_bodies());
    bodies
}

fn session_bodies() -> Vec<(&'static str, Body)> {
    vec![
        (
            "hello",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                replica: 2,
                incarnation: LIFE,
                protocol_min: 1,
                protocol_max: 3,
                record_version: 1,
                snapshot_version: 2,
                client_address: "127.0.0.1:9011".to_owned(),
                http_address: "127.0.0.1:9021".to_owned(),
                plane_address: "127.0.0.1:9031".to_owned(),
                ..peer::Hello::default()
            }),
        ),
        (
            "hello_with_redis",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                redis_address: "127.0.0.1:9041".to_owned(),
                ..peer::Hello::default()
            }),
        ),
        (
            "hello_with_promise",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                replica: 2,
                incarnation: LIFE,
                promise_us: 20_000,
                clock_drift_ppm: 1_000,
                ..peer::Hello::default()
            }),
        ),
        (
            "goodbye",
            Body::Goodbye(peer::Goodbye {
                reason: "other_cluster".to_owned(),
                detail: "text".to_owned(),
            }),
        ),
        (
            "fresh",
            Body::Fresh(peer::Fresh {
                to_incarnation: LIFE,
                peer_address: "127.0.0.1:7401".to_owned(),
                join: true,
                initial_members: Vec::new(),
            }),
        ),
        (
            "forward",
            Body::Forward(peer::Forward {
                request: 42,
                read: true,
                process: 0,
            }),
        ),
        (
            "forward_reply",
            Body::ForwardReply(peer::ForwardReply {
                request: 42,
                outcome: peer::ForwardOutcome::DiskFull.into(),
                ..peer::ForwardReply::default()
            }),
        ),
    ]
}

/// What replicas tell each other so that they do not disagree silently.
fn agreement_bodies() -> Vec<(&'static str, Body)> {
    vec![
        (
            "hello_with_lineage",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                lineage: lineage_to_proto(LINEAGE),
                memory: peer::Memory::Members.into(),
                settings: vec![peer::Setting {
                    option: "durability".to_owned(),
                    value: "sync".to_owned(),
                }],
                ..peer::Hello::default()
            }),
        ),
        (
            "fresh_to_begin",
            Body::Fresh(peer::Fresh {
                to_incarnation: LIFE,
                peer_address: "127.0.0.1:7401".to_owned(),
                join: false,
                initial_members: vec![0, 1, 300],
            }),
        ),
    ]
}

/// What serving clients of the native protocol adds.
fn native_clients_bodies() -> Vec<(&'static str, Body)> {
    vec![
        (
            "hello_with_native_address",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                native_address: "127.0.0.1:9051".to_owned(),
                ..peer::Hello::default()
            }),
        ),
        (
            "hello_with_peer_address",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                peer_address: "127.0.0.1:9061".to_owned(),
                ..peer::Hello::default()
            }),
        ),
        (
            "hello_that_keeps_wall_clock",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                keeps_wall_clock: true,
                ..peer::Hello::default()
            }),
        ),
        (
            "hello_that_names_members",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                members_index: 300,
                member_ids: vec![0, 3],
                ..peer::Hello::default()
            }),
        ),
        (
            "hello_with_a_further_group",
            Body::Hello(peer::Hello {
                cluster: "trunk".to_owned(),
                further_groups: vec![peer::FurtherGroup {
                    native_address: "a:1".to_owned(),
                    plane_address: "b:2".to_owned(),
                }],
                ..peer::Hello::default()
            }),
        ),
        (
            "forward_session",
            Body::ForwardSession(peer::ForwardSession {
                request: 42,
                process: 0,
            }),
        ),
        (
            "forward_reply_refused",
            Body::ForwardReply(peer::ForwardReply {
                request: 42,
                outcome: peer::ForwardOutcome::Refused.into(),
                ..peer::ForwardReply::default() // of a replica that knows no reasons
            }),
        ),
        (
            "forward_reply_refused_with_reason",
            Body::ForwardReply(peer::ForwardReply {
                request: 42,
                outcome: peer::ForwardOutcome::Refused.into(),
                reason: Reason::Overdue.code().into(),
                ..peer::ForwardReply::default()
            }),
        ),
    ]
}

/// Requests that are passed on, named by their process, too.
fn passed_on_bodies() -> Vec<(&'static str, Body)> {
    vec![
        (
            "forward_of_a_process",
            Body::Forward(peer::Forward {
                request: 42,
                read: true,
                process: LIFE,
            }),
        ),
        (
            "forward_session_of_a_process",
            Body::ForwardSession(peer::ForwardSession {
                request: 42,
                process: LIFE,
            }),
        ),
        (
            "forward_reply_to_a_process",
            Body::ForwardReply(peer::ForwardReply {
                request: 42,
                outcome: peer::ForwardOutcome::Done.into(),
                reason: 0,
                process: LIFE,
                sent_in_term: 300,
            }),
        ),
    ]
}

fn replication_bodies() -> Vec<(&'static str, Body)> {
    vec![
        ("bootstrap", Body::Bootstrap(peer::Bootstrap {})),
        (
            "vote_request",
            Body::VoteRequest(peer::VoteRequest {
                last_index: 128,
                last_term: 2,
                pre_vote: true,
                transfer: true,
                engage: false,
            }),
        ),
        (
            "vote_reply",
            Body::VoteReply(peer::VoteReply {
                granted: true,
                pre_vote: true,
                engaged: false,
            }),
        ),
        ("append", append_body()),
        (
            "append_reply",
            Body::AppendReply(peer::AppendReply {
                round: 5,
                rejected: true,
                index: 9,
                hint_index: 7,
                hint_term: 1,
            }),
        ),
        (
            "snapshot_chunk",
            Body::SnapshotChunk(peer::SnapshotChunk {
                last_index: 100,
                last_term: 2,
                offset: 262_144,
                total_bytes: 524_288,
                round: 3,
            }),
        ),
        (
            "snapshot_reply",
            Body::SnapshotReply(peer::SnapshotReply {
                last_index: 100,
                offset: 262_144,
                installed: true,
                rejected: true,
                round: 3,
            }),
        ),
        ("transfer_now", Body::TransferNow(peer::TransferNow {})),
    ]
}

fn append_body() -> Body {
    Body::Append(peer::Append {
        previous_index: 9,
        previous_term: 2,
        commit_index: 8,
        round: u64::MAX,
    })
}

/// Between software and the data planes.
fn handover_bodies() -> Vec<(&'static str, Body)> {
    vec![
        (
            "engaging_vote_request",
            Body::VoteRequest(peer::VoteRequest {
                last_index: 128,
                last_term: 2,
                engage: true,
                ..Default::default()
            }),
        ),
        (
            "engaged_vote_reply",
            Body::VoteReply(peer::VoteReply {
                granted: true,
                engaged: true,
                ..Default::default()
            }),
        ),
        (
            "engage_offer",
            Body::EngageOffer(peer::EngageOffer { start_index: 128 }),
        ),
        (
            "fast_term_key",
            Body::FastTermKey(peer::FastTermKey {
                key: (0..16).collect::<Vec<u8>>().into(),
            }),
        ),
        (
            "engaged",
            Body::Engaged(peer::Engaged {
                engaged: true,
                index: 130,
            }),
        ),
    ]
}

/// The name of a body's vector. A new kind of message does not compile here without one.
fn vector_name(body: &Body) -> &'static str {
    match body {
        Body::Hello(hello) if hello.promise_us > 0 => "hello_with_promise",
        Body::Hello(hello) if !hello.redis_address.is_empty() => "hello_with_redis",
        Body::Hello(hello) if !hello.native_address.is_empty() => "hello_with_native_address",
        Body::Hello(hello) if !hello.peer_address.is_empty() => "hello_with_peer_address",
        Body::Hello(hello) if hello.members_index > 0 => "hello_that_names_members",
        Body::Hello(hello) if hello.keeps_wall_clock => "hello_that_keeps_wall_clock",
        Body::Hello(hello) if !hello.further_groups.is_empty() => "hello_with_a_further_group",
        Body::Hello(hello) if hello.lineage.is_some() => "hello_with_lineage",
        Body::Hello(_) => "hello",
        Body::Goodbye(_) => "goodbye",
        Body::Fresh(fresh) if !fresh.initial_members.is_empty() => "fresh_to_begin",
        Body::Fresh(_) => "fresh",
        Body::Bootstrap(_) => "bootstrap",
        Body::VoteRequest(request) if request.engage => "engaging_vote_request",
        Body::VoteRequest(_) => "vote_request",
        Body::VoteReply(reply) if reply.engaged => "engaged_vote_reply",
        Body::VoteReply(_) => "vote_reply",
        Body::EngageOffer(_) => "engage_offer",
        Body::FastTermKey(_) => "fast_term_key",
        Body::Engaged(_) => "engaged",
        Body::Append(_) => "append",
        Body::AppendReply(_) => "append_reply",
        Body::SnapshotChunk(_) => "snapshot_chunk",
        Body::SnapshotReply(_) => "snapshot_reply",
        Body::TransferNow(_) => "transfer_now",
        Body::Forward(forward) if forward.process != 0 => "forward_of_a_process",
        Body::Forward(_) => "forward",
        Body::ForwardReply(reply) if reply.process != 0 => "forward_reply_to_a_process",
        Body::ForwardReply(reply) if reply.reason != 0 => "forward_reply_refused_with_reason",
        Body::ForwardReply(reply) if reply.outcome() == peer::ForwardOutcome::Refused => {
            "forward_reply_refused"
        }
        Body::ForwardReply(_) => "forward_reply",
        Body::ForwardSession(forward) if forward.process != 0 => "forward_session_of_a_process",
        Body::ForwardSession(_) => "forward_session",
    }
}

#[test]
fn every_message_is_its_vector() {
    let bodies = expected_bodies();
    for (name, body) in &bodies {
        assert_eq!(vector_name(body), *name);
        let message = peer::PeerMessage {
            group: 7,
            term: if *name == "bootstrap" { 1 } else { 300 },
            body: Some(body.clone()),
        };
        let bytes = section("messages", name);
        assert_eq!(
            peer::PeerMessage::decode(&*bytes),
            Ok(message.clone()),
            "{name}"
        );
        assert_eq!(message.encode_to_vec(), bytes, "{name}");
    }
    let sections = all().into_keys().filter(|key| key.0 == "messages").count();
    assert_eq!(sections, bodies.len());
}

#[test]
fn a_message_from_a_newer_version_keeps_what_is_known_of_it() {
    let mut bytes = section("messages", "vote_reply");
    // Field 900, a varint, that this version does not know.
    bytes.extend_from_slice(&[0xa0, 0x38, 0x05]);
    let message = peer::PeerMessage::decode(&*bytes).unwrap();
    assert_eq!((message.group, message.term), (7, 300));
    assert!(matches!(message.body, Some(Body::VoteReply(reply)) if reply.granted));
}

/// Who logs a message logs no key.
#[test]
fn a_message_with_a_key_does_not_show_it() {
    let key = peer::FastTermKey {
        key: vec![0xab; 16].into(),
    };
    let message = peer::PeerMessage {
        group: 7,
        term: 300,
        body: Some(Body::FastTermKey(key)),
    };
    let shown = format!("{message:?} {message:#?}");
    assert!(shown.contains("FastTermKey"), "{shown}");
    for secret in ["171", "ab", "AB", "\\x"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

fn membership() -> Membership {
    let member = |id, incarnation, address: &str, role| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(incarnation),
        peer_address: address.to_owned(),
        role,
    };
    Membership {
        members: vec![
            member(0, 1, "a", MemberRole::Voter),
            member(5, 2, "b", MemberRole::Joining),
        ],
        quorum: CommitQuorum::All,
        lineage: Lineage::default(),
    }
}

fn head() -> SnapshotHead {
    SnapshotHead {
        group: GroupId(7),
        last_index: Index(100),
        last_term: Term(2),
        log_time: LogTime(1000),
        membership: membership(),
        membership_index: Index(99),
    }
}

fn stored_hard_state() -> peer::HardState {
    peer::HardState {
        term: 3,
        voted: true,
        vote_replica: 2,
        vote_incarnation: LIFE,
        commit_index: 128,
    }
}

#[test]
fn what_is_stored_is_its_vector() {
    let bytes = section("stored", "membership");
    assert_eq!(Membership::decode(&bytes), Ok(membership()));
    assert_eq!(membership().encode(), bytes);
    let of_a_lineage = Membership {
        lineage: LINEAGE,
        ..membership()
    };
    let bytes = section("stored", "membership_with_lineage");
    assert_eq!(Membership::decode(&bytes), Ok(of_a_lineage.clone()));
    assert_eq!(of_a_lineage.encode(), bytes);

    let bytes = section("stored", "hard_state");
    assert_eq!(peer::HardState::decode(&*bytes), Ok(stored_hard_state()));
    assert_eq!(stored_hard_state().encode_to_vec(), bytes);

    let identity = peer::Identity {
        cluster: "trunk".to_owned(),
        replica: 2,
        incarnation: LIFE,
        group: 7,
        promise_us: 0,
        lineage: None,
    };
    let bytes = section("stored", "identity");
    assert_eq!(peer::Identity::decode(&*bytes), Ok(identity.clone()));
    assert_eq!(identity.encode_to_vec(), bytes);
    let identity = peer::Identity {
        promise_us: 20_000,
        ..identity
    };
    let bytes = section("stored", "identity_with_promise");
    assert_eq!(peer::Identity::decode(&*bytes), Ok(identity.clone()));
    assert_eq!(identity.encode_to_vec(), bytes);

    let identity = peer::Identity {
        lineage: lineage_to_proto(LINEAGE),
        ..identity
    };
    let bytes = section("stored", "identity_with_lineage");
    assert_eq!(peer::Identity::decode(&*bytes), Ok(identity.clone()));
    assert_eq!(identity.encode_to_vec(), bytes);

    let bytes = section("stored", "snapshot_head");
    let found = peer::SnapshotHead::decode(&*bytes).unwrap();
    assert_eq!(SnapshotHead::from_proto(&found), Ok(head()));
    assert_eq!(head().to_proto().encode_to_vec(), bytes);
}

/// Name, kind, term, index and payload of every kind of record.
fn records() -> Vec<(&'static str, RecordKind, u64, u64, Vec<u8>)> {
    let durable = [
        0xa11e_u64.to_be_bytes(),
        2_u64.to_be_bytes(),
        256_u64.to_be_bytes(),
        1_u64.to_be_bytes(),
        2048_u64.to_be_bytes(),
    ]
    .concat();
    let durable = [durable, vec![0x12, 0x34, 0x56, 0x78]].concat();
    let time = 1_714_704_486_400_u64.to_be_bytes().to_vec();
    let session = [1, 2, 3, 4, 5, 6, 7, 8];
    let fragment = [
        &session[..],
        &10_u64.to_be_bytes(),
        &2_u32.to_be_bytes(),
        &3_u32.to_be_bytes(),
        b"lo",
    ]
    .concat();
    let mut bundle = BytesMut::new();
    put_bundled(&mut bundle, RecordKind::Command, |out| {
        out.extend_from_slice(b"a");
    });
    put_bundled(&mut bundle, RecordKind::SessionCommand, |out| {
        out.extend_from_slice(&[&7_u64.to_be_bytes()[..], &9_u64.to_be_bytes(), b"b"].concat());
    });
    let bundle = bundle.to_vec();
    let (term, index) = (0x0102_0304_0506_0708, 0x1112_1314_1516_1718);
    vec![
        ("no_op", RecordKind::NoOp, 3, 1, vec![]),
        ("command", RecordKind::Command, 3, 2, b"hello".to_vec()),
        ("tick", RecordKind::Tick, 3, 3, time),
        (
            "membership",
            RecordKind::Membership,
            term,
            index,
            membership().encode(),
        ),
        (
            "session_command",
            RecordKind::SessionCommand,
            3,
            4,
            [&session[..], &9_u64.to_be_bytes(), b"hello"].concat(),
        ),
        ("fragment", RecordKind::Fragment, 3, 5, fragment),
        ("bundle", RecordKind::Bundle, 3, 6, bundle),
        (
            "hard_state",
            RecordKind::HardState,
            3,
            0,
            stored_hard_state().encode_to_vec(),
        ),
        ("durable", RecordKind::Durable, 3, 4, durable),
        ("base", RecordKind::Base, 3, 100, vec![]),
    ]
}

#[test]
fn every_kind_of_record_is_its_vector() {
    for (name, kind, term, index, payload) in records() {
        let bytes = section("records", name);
        let record = Record::decode(&bytes).unwrap();
        let expected = Record {
            kind,
            group: GroupId(7),
            term: Term(term),
            index: Index(index),
            payload: &payload,
            record_bytes: bytes.len(),
        };
        assert_eq!(record, expected, "{name}");
        let mut buffer = BytesMut::new();
        let start = begin_record(&mut buffer, kind, GroupId(7), Term(term), Index(index));
        buffer.extend_from_slice(&payload);
        finish_record(&mut buffer, start);
        assert_eq!(buffer, bytes, "{name}");
    }
    let sections = all().into_keys().filter(|key| key.0 == "records").count();
    assert_eq!(sections, records().len());
    let entries = records().into_iter().filter(|record| record.1.is_entry());
    assert_eq!(entries.count(), 7);
}

#[test]
fn frames_are_their_vectors() {
    let record = Bytes::from(section("records", "no_op"));
    let cases = [
        (
            "append_with_one_record",
            section("messages", "append"),
            vec![record.slice(..10), record.slice(10..)],
        ),
        (
            "goodbye_without_attachment",
            section("messages", "goodbye"),
            vec![],
        ),
    ];
    for (name, meta, attachment) in cases {
        let bytes = section("frames", name);
        let header = FrameHeader::decode(&bytes)
            .unwrap()
            .expect("a whole header");
        assert_eq!(header.frame_bytes(), bytes.len(), "{name}");
        let (found_meta, found_attachment) = header.open(bytes.clone().into()).unwrap();
        assert_eq!(found_meta, meta, "{name}");
        assert_eq!(found_attachment, attachment.concat(), "{name}");
        let message = peer::PeerMessage::decode(&*meta).unwrap();
        let mut buffer = BytesMut::new();
        encode_frame(&mut buffer, &message, &attachment);
        buffer.extend_from_slice(&attachment.concat());
        assert_eq!(buffer, bytes, "{name}");
    }
}

#[test]
fn snapshot_files_are_their_vectors() {
    for (name, body) in [("hello_world", "hello world"), ("empty_body", "")] {
        let bytes = section("snapshots", name);
        let mut reader = SnapshotReader::new(&*bytes).unwrap();
        assert_eq!(reader.head(), &head(), "{name}");
        let mut found = String::new();
        reader.read_to_string(&mut found).unwrap();
        assert_eq!(found, body);
        let mut writer = SnapshotWriter::new(Vec::new(), &head()).unwrap();
        writer.write_all(body.as_bytes()).unwrap();
        assert_eq!(writer.finish().unwrap(), bytes, "{name}");
    }
}
