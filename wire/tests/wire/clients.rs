//! Frames between clients and replicas: vectors, beginnings, and what is refused.
use crate::vectors::{all, section};
use quorumwire_wire::client::{self, from_client, from_server};
use quorumwire_wire::limits::{
    ATTACHMENT_BYTES_MAX, CLIENT_META_BYTES_MAX, COMMAND_BYTES_MAX, SESSION_COMMAND_BYTES_MAX,
};
use quorumwire_wire::prost::Message;
use quorumwire_wire::{
    ClientFrame, ClientFrameError, FrameError, take_client_frame, write_client_frame,
};

const NO_BYTES: &[u8] = b"";

fn check<M: Message + Default + PartialEq + std::fmt::Debug>(
    name: &str,
    message: &M,
    attachment: &[u8],
) {
    let bytes = section("clients", name);
    let mut written = Vec::new();
    write_client_frame(&mut written, message, attachment);
    assert_eq!(written, bytes, "{name}");
    let found = take_client_frame::<M>(&bytes, attachment.len()).unwrap();
    let ClientFrame::Whole {
        consumed,
        message: found,
        attachment: raw,
    } = found
    else {
        panic!("{name} is incomplete");
    };
    assert_eq!((consumed, raw), (bytes.len(), attachment), "{name}");
    assert_eq!(found, *message, "{name}");
    for end in 0..bytes.len() {
        let Ok(ClientFrame::Incomplete { needed }) = take_client_frame::<M>(&bytes[..end], 8)
        else {
            panic!("{name}: {end} bytes are no beginning");
        };
        assert!(needed > end && needed <= bytes.len(), "{name}");
    }
}

#[test]
fn what_clients_say_is_its_vector() {
    use from_client::Body;
    let hello = client::Hello {
        protocol_min: 1,
        protocol_max: 3,
        name: "shop".into(),
        password: "word".into(),
    };
    let submit = client::Submit {
        session: 0x0100_0000_dead_beef,
        sequence: 300,
    };
    let subscribe = client::Subscribe {
        learner: 3,
        from: 5,
        credit_bytes: 1024,
    };
    let cases = [
        ("hello", Body::Hello(hello), NO_BYTES),
        ("submit", Body::Submit(submit), b"hello"),
        ("query", Body::Query(client::Query {}), b"get a"),
        ("ping", Body::Ping(client::Ping {}), b""),
        ("subscribe", Body::Subscribe(subscribe), b""),
        ("credit", Body::Credit(client::Credit { bytes: 300 }), b""),
    ];
    for (name, body, attachment) in cases {
        let request = match name {
            "hello" => 0,
            "credit" => 43,
            _ => 42,
        };
        let body = Some(body);
        check(name, &client::FromClient { request, body }, attachment);
    }
}

#[test]
fn what_replicas_say_is_its_vector() {
    use from_server::Body;
    let leader = client::Leader {
        replica: 1,
        address: "a:1".to_owned(),
    };
    let welcome = client::Welcome {
        protocol: 1,
        replica: 2,
        cluster: "trunk".to_owned(),
        leader: Some(leader.clone()),
        command_bytes_max: 4096,
        in_flight_max: 64,
    };
    let goodbye = client::Goodbye {
        reason: client::GoodbyeReason::NotLetIn.into(),
        detail: "text".to_owned(),
    };
    let refused = client::Refused {
        reason: client::RefusedReason::UnknownSession.into(),
        detail: "text".to_owned(),
    };
    let cases = [
        ("welcome", 0, Body::Welcome(welcome), NO_BYTES),
        ("goodbye", 0, Body::Goodbye(goodbye), b""),
        ("leader", 0, Body::Leader(leader), b""),
        (
            "answer",
            42,
            Body::Answer(client::Answer { repeated: true }),
            b"+OK\r\n",
        ),
        ("refused", 42, Body::Refused(refused), b""),
        ("pong", 42, Body::Pong(client::Pong {}), b""),
        (
            "value",
            42,
            Body::Value(client::Value { instance: 300 }),
            b"hello",
        ),
        ("upto", 42, Body::Upto(client::Upto { instance: 7 }), b""),
        (
            "trimmed",
            42,
            Body::Trimmed(client::Trimmed { upto: 9 }),
            b"",
        ),
    ];
    let count = cases.len() + 6;
    for (name, request, body, attachment) in cases {
        let body = Some(body);
        check(name, &client::FromServer { request, body }, attachment);
    }
    let sections = all().into_keys().filter(|key| key.0 == "clients").count();
    assert_eq!(sections, count);
}

/// Nothing is waited for, nor any memory taken, before the lengths are known to be allowed.
#[test]
fn frames_that_are_too_long_or_damaged_are_refused() {
    let bytes = section("clients", "submit");
    let take = |bytes: &[u8]| take_client_frame::<client::FromClient>(bytes, 4096).err();
    let with = |at: usize, word: usize| {
        let mut bytes = bytes[..16].to_vec();
        let word = u32::try_from(word).unwrap();
        bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        take(&bytes)
    };
    let magic = FrameError::Magic { magic: 0x5157_5031 };
    assert_eq!(with(0, 0x5157_5031), Some(magic.into()));
    let meta = FrameError::MetaTooLong {
        bytes: CLIENT_META_BYTES_MAX + 1,
        max: CLIENT_META_BYTES_MAX,
    };
    assert_eq!(with(4, CLIENT_META_BYTES_MAX + 1), Some(meta.into()));
    let attachment = FrameError::AttachmentTooLong {
        bytes: ATTACHMENT_BYTES_MAX + 1,
        max: ATTACHMENT_BYTES_MAX,
    };
    assert_eq!(with(8, ATTACHMENT_BYTES_MAX + 1), Some(attachment.into()));
    let too_long = ClientFrameError::TooLong {
        bytes: 4097,
        max: 4096,
    };
    assert_eq!(with(8, 4097), Some(too_long));
    for at in 12..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_eq!(take(&damaged), Some(FrameError::Checksum.into()), "{at}");
    }
    let mut foreign = Vec::new();
    write_client_frame(&mut foreign, &"text".to_owned(), b"");
    foreign[16] = 0xff; // no field begins so
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&foreign[..12]), &foreign[16..]);
    foreign[12..16].copy_from_slice(&checksum.to_be_bytes());
    assert!(matches!(take(&foreign), Some(ClientFrameError::Message(_))));
    assert_eq!(SESSION_COMMAND_BYTES_MAX + 16, COMMAND_BYTES_MAX);
}
