//! Frames between clients and replicas: what a server takes from anybody, and what a client takes from what
//! claims to be a server.

use std::time::Duration;

use prost::Message as _;
use quorumwire_client::Settings;
use quorumwire_client::kv::Value;
use quorumwire_client::machine::{Action, LinkId, Machine};
use quorumwire_fuzz_tests::{INPUT_BYTES_MAX, ITERATIONS, Outcomes, Seed, fuzz, grown, named};
use quorumwire_wire::client::{
    Answer, FromClient, FromServer, Goodbye, GoodbyeReason, Hello, Leader, Ping, Pong, Query,
    Refused, RefusedReason, Submit, Welcome, from_client, from_server,
};
use quorumwire_wire::limits::{ATTACHMENT_BYTES_MAX, CLIENT_META_BYTES_MAX};
use quorumwire_wire::{
    ClientFrame, ClientFrameError, FRAME_HEADER_BYTES, FrameError, take_client_frame,
    write_client_frame,
};

/// Bytes as somebody typed them; what does not begin as they do is made into frames.
const VECTORS: &str = include_str!("../../../wire/vectors/clients.txt");

fn from_client(request: u64, body: from_client::Body, attachment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = Some(body);
    write_client_frame(&mut bytes, &FromClient { request, body }, attachment);
    bytes
}

fn from_server(request: u64, body: from_server::Body, attachment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = Some(body);
    write_client_frame(&mut bytes, &FromServer { request, body }, attachment);
    bytes
}

/// A frame around any bytes, whose checksum is right.
fn framed(meta: &[u8], attachment: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short").to_be_bytes();
    let head = [&b"QWC1"[..], &length(meta), &length(attachment)].concat();
    let covered = crc32c::crc32c_append(crc32c::crc32c(&head), meta);
    let checksum = crc32c::crc32c_append(covered, attachment).to_be_bytes();
    [&head, &checksum[..], meta, attachment].concat()
}

fn clients_words() -> Vec<Vec<u8>> {
    use from_client::Body;
    let hello = Hello {
        protocol_min: 1,
        protocol_max: 1,
        name: "kim".into(),
        password: "opensesame".into(),
    };
    let submit = Submit {
        session: 7,
        sequence: 65,
    };
    vec![
        from_client(0, Body::Hello(hello), b""),
        from_client(1, Body::Submit(submit), b"command"),
        from_client(2, Body::Query(Query {}), b"get a"),
        from_client(3, Body::Ping(Ping {}), b""),
        b"QWC1".to_vec(),
        vec![0; 4],
        vec![0xff; 4],
        vec![0, 0, 0, 9],
    ]
}

fn client_seeds() -> Vec<Seed> {
    let mut seeds = named(VECTORS, &["hello", "submit", "query", "ping"]);
    let subscribes = named(VECTORS, &["subscribe", "credit"]);
    let all: Vec<u8> = seeds.iter().flat_map(|(_, it)| it.clone()).collect();
    let mut long = from_client(1, from_client::Body::Query(Query {}), &[b'k'; 101]);
    seeds.push(("longer-than-allowed", long.clone()));
    long[8..12].fill(0xff);
    seeds.push(("announces-too-much", long));
    seeds.push(("begins-and-submits", all));
    let subscribes = subscribes.into_iter().flat_map(|(_, bytes)| bytes);
    seeds.push(("subscribes", subscribes.collect()));
    seeds
}

/// Whole messages come out as they went in, what is announced is within its limits, and nothing else is
/// taken.
#[test]
fn client_frames() {
    let outcomes = Outcomes::default();
    let words = clients_words();
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    fuzz!(
        "client_frames",
        client_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = match input {
                [b'Q', b'W', ..] => input.to_vec(),
                [0x20..0x40, rest @ ..] => framed(rest, b"attached"),
                [length @ 0x40..0x80, rest @ ..] => framed(rest, &[0; 256][..usize::from(*length)]),
                input => grown(input, &words).into_owned(),
            };
            let mut rest = &bytes[..];
            loop {
                match take_client_frame::<FromClient>(rest, 100) {
                    Ok(ClientFrame::Incomplete { needed }) => {
                        assert!(needed > rest.len());
                        let most = FRAME_HEADER_BYTES + CLIENT_META_BYTES_MAX + 100;
                        assert!(needed <= most);
                        return outcomes.count("incomplete");
                    }
                    Ok(ClientFrame::Whole {
                        consumed,
                        message,
                        attachment,
                    }) => {
                        assert!(consumed >= FRAME_HEADER_BYTES + attachment.len());
                        let again = FromClient::decode(&*message.encode_to_vec());
                        assert_eq!(again, Ok(message));
                        rest = &rest[consumed..];
                        outcomes.count("whole");
                    }
                    Err(ClientFrameError::TooLong { bytes, max: 100 }) => {
                        assert!(bytes > 100);
                        return outcomes.count("too long");
                    }
                    Err(ClientFrameError::TooLong { .. }) => panic!("another limit"),
                    Err(ClientFrameError::Message(_)) => return outcomes.count("no message"),
                    Err(ClientFrameError::Frame(FrameError::Magic { .. })) => {
                        return outcomes.count("magic");
                    }
                    Err(ClientFrameError::Frame(FrameError::Checksum)) => {
                        return outcomes.count("checksum");
                    }
                    Err(ClientFrameError::Frame(
                        FrameError::MetaTooLong { .. } | FrameError::AttachmentTooLong { .. },
                    )) => return outcomes.count("announced too much"),
                }
            }
        }
    );
    outcomes.must_be(&[
        "incomplete",
        "whole",
        "too long",
        "no message",
        "magic",
        "checksum",
        "announced too much",
    ]);
}

fn servers_words() -> Vec<Vec<u8>> {
    use from_server::Body;
    let leader = |replica, address: &str| Leader {
        replica,
        address: address.to_owned(),
    };
    let welcome = Welcome {
        protocol: 1,
        replica: 0,
        cluster: "c".to_owned(),
        leader: Some(leader(1, "b:1")),
        ..Welcome::default()
    };
    let mut words = vec![
        from_server(0, Body::Welcome(welcome), b""),
        from_server(0, Body::Leader(leader(2, "c:1")), b""),
        from_server(0, Body::Leader(leader(0, "")), b""),
        from_server(9, Body::Pong(Pong {}), b""),
        b"QWC1".to_vec(),
        vec![0xff; 8],
    ];
    for request in 1..5 {
        let answer = Answer { repeated: false };
        words.push(from_server(request, Body::Answer(answer), b"+OK\r\n"));
        for reason in [
            RefusedReason::UnknownSession,
            RefusedReason::TooManySessions,
            RefusedReason::OutcomeUnknown,
            RefusedReason::Busy,
            RefusedReason::Other,
            RefusedReason::Unspecified,
        ] {
            let refused = Refused {
                reason: reason.into(),
                detail: "why".to_owned(),
            };
            words.push(from_server(request, Body::Refused(refused), b""));
        }
    }
    for reason in [GoodbyeReason::NotLetIn, GoodbyeReason::Malformed] {
        let goodbye = Goodbye {
            reason: reason.into(),
            detail: String::new(),
        };
        words.push(from_server(0, Body::Goodbye(goodbye), b""));
    }
    words
}

fn server_seeds() -> Vec<Seed> {
    use from_server::Body;
    let words = servers_words();
    let welcomed = |bytes: Vec<u8>| [words[0].clone(), bytes].concat();
    let answers = (1..4).flat_map(|request| {
        let answer = Answer {
            repeated: request == 2,
        };
        from_server(request, Body::Answer(answer), b"$1\r\na\r\n")
    });
    let refused = |reason: RefusedReason| {
        let reason = reason.into();
        let detail = "why".to_owned();
        from_server(1, Body::Refused(Refused { reason, detail }), b"")
    };
    let mut seeds = named(VECTORS, &["welcome", "goodbye"]);
    let of_vectors = named(VECTORS, &["answer", "refused", "leader", "pong"]);
    let of_vectors = of_vectors.into_iter().flat_map(|(_, bytes)| bytes);
    seeds.extend([
        ("answers", welcomed(answers.collect())),
        (
            "session-unknown",
            welcomed(refused(RefusedReason::UnknownSession)),
        ),
        (
            "outcome-unknown",
            welcomed(refused(RefusedReason::OutcomeUnknown)),
        ),
        ("busy", welcomed(refused(RefusedReason::Busy))),
        ("another-leads", welcomed(words[1].clone())),
        ("every-message", welcomed(of_vectors.collect())),
    ]);
    seeds
}

/// The newest connection that was wanted.
fn newest(machine: &mut Machine, before: Option<LinkId>) -> Option<LinkId> {
    let mut newest = before;
    for action in machine.take_actions() {
        match action {
            Action::Connect(link, _) => newest = Some(link),
            Action::Send(_, bytes) => assert!(bytes.len() < 10_000),
            Action::Close(_) => {}
        }
    }
    newest
}

/// Whatever a server says, each request has one result by its deadline, and the client never turns without
/// rest.
#[test]
fn what_servers_say() {
    let outcomes = Outcomes::default();
    let words = servers_words();
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    fuzz!(
        "what_servers_say",
        server_seeds(),
        2 * ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = match input {
                [b'Q', b'W', ..] => input.to_vec(),
                [0x20..0x40, rest @ ..] => [words[0], &framed(rest, b"attached")].concat(),
                [0x40..0x60, rest @ ..] => [words[0], &grown(rest, &words)].concat(),
                input => grown(input, &words).into_owned(),
            };
            let settings = Settings::new(["a:1", "b:1", "c:1"]);
            let mut now = Duration::ZERO;
            let mut machine = Machine::new(&settings, 1, [1; 32]);
            machine.submit(now, b"a".to_vec()).expect("short");
            machine.submit(now, b"b".to_vec()).expect("short");
            machine.query(now, b"q".to_vec()).expect("short");
            let (mut link, mut results, mut turns) = (None, 0, 0);
            while results < 3 {
                turns += 1;
                assert!(turns < 20_000, "it turns without rest");
                let last = link;
                link = newest(&mut machine, link);
                if let Some(link) = link.filter(|_| link != last) {
                    machine.connected(now, link);
                    for piece in bytes.chunks(37) {
                        machine.received(now, link, piece);
                    }
                }
                for (_, done) in machine.take_done() {
                    results += 1;
                    outcomes.count(match done {
                        Ok(_) => "answered",
                        Err(error) => match error.outcome() {
                            quorumwire_client::Outcome::CarriedOut => "carried out",
                            quorumwire_client::Outcome::NotCarriedOut => "not carried out",
                            quorumwire_client::Outcome::Unknown => "unknown",
                        },
                    });
                }
                if results < 3 {
                    now = now.max(machine.next_wake());
                    machine.time_passed(now);
                }
            }
            assert_eq!((results, machine.pending_count()), (3, 0));
            assert!(now <= settings.deadline);
            if machine.counters.malformed > 0 {
                outcomes.count("malformed");
            }
        }
    );
    outcomes.must_be(&["answered", "not carried out", "unknown", "malformed"]);
}

const ANSWERS: [&[u8]; 16] = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":7\r\n",
    b",1.5\r\n",
    b"#t\r\n",
    b"_\r\n",
    b"$1\r\na\r\n",
    b"$-1\r\n",
    b"*2\r\n",
    b"~1\r\n",
    b"%1\r\n",
    b"*99999999\r\n",
    b"=5\r\ntxt:a\r\n",
    b"!1\r\na\r\n",
    b"$",
    b"\r\n",
];

fn answer_seeds() -> [Seed; 6] {
    let text = |it: &str| it.as_bytes().to_vec();
    [
        ("simple", text("+OK\r\n")),
        ("no-such-key", text("$-1\r\n")),
        ("map", text("%2\r\n+a\r\n:-1\r\n$1\r\nb\r\n,1.5e3\r\n")),
        (
            "nested",
            text("*3\r\n*1\r\n#t\r\n~2\r\n_\r\n_\r\n=5\r\ntxt:a\r\n"),
        ),
        ("error", text("!7\r\nERR why\r\n")),
        ("one-is-missing", text("*2\r\n:1\r\n")),
    ]
}

#[test]
fn store_answers() {
    let outcomes = Outcomes::default();
    fuzz!(
        "store_answers",
        answer_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &ANSWERS);
            assert!(bytes.len() <= ATTACHMENT_BYTES_MAX);
            outcomes.count(match Value::parse(&bytes) {
                None => "none",
                Some(Value::Array(_) | Value::Map(_)) => "several",
                Some(_) => "one",
            });
        }
    );
    outcomes.must_be(&["none", "several", "one"]);
}
