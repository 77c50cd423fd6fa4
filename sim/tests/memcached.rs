//! A plane's own reading of memcached's `set` against the parser of the key-value store: what the plane
//! takes, the parser would have read in the same way.
use quorumwire_fastpath::memcached_set;
use quorumwire_kv::Command;
use quorumwire_kv::memcached::{Parsed, Request, parse};
use quorumwire_linearizability::seed::seed;
use quorumwire_sim::random::Random;

const DATAGRAMS: u32 = 200_000;

/// How a datagram's body is put together.
const KEYS: [&str; 6] = ["k", "key:1", "noreply", "a\u{e9}b", "set", ""];
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "5",
    "007",
    "60",
    "-1",
    "-0",
    "+3",
    "4294967295",
    "4294967296",
    "9999999999",
    "99999999999",
    "-",
    "x",
];
const GAPS: [&str; 8] = [" ", " ", " ", " ", " ", " ", " ", "  "];
const ENDS: [&str; 6] = ["", "", "", " noreply", " noreply ", " 7"];
const LINE_ENDS: [&str; 5] = ["\r\n", "\r\n", "\r\n", "\r\n", "\n"];

fn body(random: &mut Random) -> Vec<u8> {
    let mut one = |list: &[&'static str]| random.pick(list).unwrap_or_default();
    let words = [
        one(&["set", "set", "set", "set", "add", "get"]),
        one(&GAPS),
        one(&KEYS),
        one(&GAPS),
        one(&NUMBERS),
        one(&GAPS),
        one(&NUMBERS),
        one(&GAPS),
    ];
    let (end, line_end, block_end) = (one(&ENDS), one(&LINE_ENDS), one(&LINE_ENDS));
    let value = vec![b'v'; usize::try_from(random.below(12)).unwrap_or(0)];
    let told = match random.below(4) {
        0 => random.below(12).to_string(),
        1 => format!("0{}", value.len()),
        _ => value.len().to_string(),
    };
    let line = [&words.concat(), &told, end, line_end].concat();
    [line.as_bytes(), &value, block_end.as_bytes()].concat()
}

fn datagram(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0];
    bytes.extend(body(random));
    if random.permille(300) {
        let place = usize::try_from(random.below(bytes.len() as u64)).unwrap_or(0);
        match random.below(3) {
            0 => bytes[place] ^= 1 << random.below(8),
            1 => bytes.truncate(place),
            _ => bytes.insert(place, b" \r\n0-"[place % 5]),
        }
    }
    bytes
}

#[test]
fn what_a_plane_takes_the_parser_reads_in_the_same_way() {
    let mut random = Random::new(seed());
    let (mut taken, mut quiet, mut sets_left, mut others_left) = (0, 0, 0, 0);
    let mut command = Vec::new();
    for _ in 0..DATAGRAMS {
        let bytes = datagram(&mut random);
        let read = memcached_set(&bytes, &mut command);
        let body = bytes.get(8..).unwrap_or_default();
        let whole = match parse(body) {
            Parsed::Request { consumed, request } if consumed == body.len() => Some(request),
            Parsed::Request { .. } | Parsed::Incomplete { .. } | Parsed::Refused { .. } => None,
        };
        let set = match whole {
            Some(Request::Write {
                command: command @ Command::Set(_),
                noreply,
            }) => Some((command, noreply)),
            Some(Request::Write { .. } | Request::Read(_) | Request::Local(_)) | None => None,
        };
        match (read, set) {
            (Some(read), Some((set, noreply))) => {
                let mut expected = Vec::new();
                set.encode(&mut expected);
                assert_eq!(command, expected, "{}", bytes.escape_ascii());
                assert_eq!(read.noreply, noreply, "{}", bytes.escape_ascii());
                assert_eq!(bytes[2..8], [0, 0, 0, 1, 0, 0]);
                assert_eq!(read.request.to_be_bytes(), bytes[..2]);
                taken += 1;
                quiet += u32::from(noreply);
            }
            (Some(_), None) => panic!("not a set: {}", bytes.escape_ascii()),
            (None, Some(_)) => sets_left += 1,
            (None, None) => others_left += 1,
        }
    }
    let reached = [taken, quiet, sets_left, others_left];
    assert!(reached.iter().all(|times| *times > 10), "{reached:?}");
}
