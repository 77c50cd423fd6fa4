//! However a connection's bytes are split, damaged or made up: the same answers as in one piece, and
//! no panic.
mod in_process;
mod seeds;

use in_process::{Connection, Server};
use quorumwire_kv::memcached::{LINE_BYTES_MAX, Parsed, parse};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const LOG_TIME_MS: u64 = 1_700_000_000_000;

/// Pieces of conversations, good and bad.
const PIECES: &[&[u8]] = &[
    b"set a 1 0 5\r\nhello\r\n",
    b"set b 0 0 0\r\n\r\n",
    b"set c 0 0 3 noreply\r\n\r\n\n\r\n",
    b"add a 0 0 2\r\nxy\r\n",
    b"cas a 0 0 2 1\r\nxy\r\n",
    b"append a 0 0 1\r\n!\r\n",
    b"prepend a 0 0 4\nget \r\n",
    b"get a\r\n",
    b"get a b c\n",
    b"gets  a   zz \r\n",
    b"gat 0 a b\r\n",
    b"incr n 5\r\n",
    b"set n 0 0 2\r\n41\r\n",
    b"decr n 1 noreply\r\n",
    b"touch a 100\r\n",
    b"delete b 0 noreply\r\n",
    b"flush_all 100\r\n",
    b"flush_all\r\n",
    b"version\r\n",
    b"verbosity 1\r\n",
    b"stats\r\n",
    b"mn\r\n",
    b"\r\n",
    b" \n",
    b"nonsense\r\n",
    b"set a 0 0 2\r\ntoo long\r\n",
    b"set a x 0 7\r\nversion\r\n",
    b"set a\x01 0 0 7\r\nversion\r\n",
    b"add big 0 0 1048577\r\n",
    b"ms a 3 c\r\nxyz\r\n",
    b"ms YQ== 3 b k T100 MA\n\r\n\0\r\n",
    b"ms a 2 z\r\nmn\r\n",
    b"ms a 2\r\nmn!\r\n",
    b"mg a v c t k Oab\r\n",
    b"mg b N30 v R10 q\r\n",
    b"md a I T30 q\r\n",
    b"ma n N0 J5 v\r\n",
    b"me a\r\n",
    b"set a 0 0 -1\r\n",
];

/// What noise is made of.
const NOISE: &[&[u8]] = &[
    b"get",
    b"gets ",
    b"set ",
    b"cas ",
    b"gat ",
    b"incr ",
    b"touch ",
    b"delete ",
    b"flush_all ",
    b"mg ",
    b"ms ",
    b"md ",
    b"ma ",
    b"me ",
    b" b",
    b" v",
    b" I",
    b" N",
    b" T",
    b" C",
    b" O",
    b" =",
    b" a",
    b" 0",
    b" 1",
    b" -1",
    b" 99999999999999999999",
    b" noreply",
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\0",
    b"\x80",
    b"\x16",
    b"\xff",
];

#[test]
fn a_split_at_any_byte_changes_nothing() {
    for first in PIECES {
        for second in PIECES {
            let bytes = [*first, second, b"mn\r\n"].concat();
            let whole = answers(&[&bytes]);
            for place in 0..=bytes.len() {
                let (left, right) = bytes.split_at(place);
                assert_eq!(
                    answers(&[left, right]),
                    whole,
                    "{} at {place}",
                    bytes.escape_ascii()
                );
            }
        }
    }
}

#[test]
fn byte_by_byte_is_as_good_as_at_once() {
    let small = PIECES.iter().filter(|piece| !piece.starts_with(b"add big"));
    let bytes = small.copied().collect::<Vec<_>>().concat();
    let singles: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(answers(&singles), answers(&[&bytes]));
}

#[test]
fn the_data_of_a_refused_value_is_thrown_away_however_it_comes() {
    for piece_bytes in [1009, 65_536, 1 << 21] {
        let bytes = [
            b"set a 0 0 1048577\r\n",
            &b"version\r\n".repeat(116_509)[..1_048_579],
            b"mn\r\n",
        ];
        let mut server = Server::new(LOG_TIME_MS);
        let mut connection = Connection::default();
        let mut out = Vec::new();
        for piece in bytes.concat().chunks(piece_bytes) {
            out.extend(server.receive(&mut connection, piece));
        }
        assert_eq!(out, b"SERVER_ERROR object too large for cache\r\nMN\r\n");
    }
}

#[test]
fn damaged_bytes_split_at_random_places_change_nothing() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..random.random_range(1..8) {
            bytes.extend_from_slice(PIECES[random.random_range(0..PIECES.len())]);
        }
        damage(&mut random, &mut bytes);
        let whole = answers(&[&bytes]);
        let first = random.random_range(0..=bytes.len());
        let second = random.random_range(first..=bytes.len());
        let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
        assert_eq!(answers(&pieces), whole, "{}", bytes.escape_ascii());
        for line in whole.split(|&byte| byte == b'\n') {
            reached.count(&String::from_utf8_lossy(line.trim_ascii_end()));
        }
    }
    reached.require(
        10,
        &[
            "STORED",
            "END",
            "OK",
            "MN",
            "ERROR",
            "NOT_FOUND",
            "CLIENT_ERROR bad data chunk",
            "CLIENT_ERROR bad command line format",
            "CLIENT_ERROR invalid flag",
            "HD",
            "EN",
            "NF",
            "SERVER_ERROR object too large for cache",
        ],
    );
}

#[test]
fn noise_is_parsed_without_a_panic_and_with_progress() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    for _ in 0..20_000 {
        let words = random.random_range(1..40);
        let bytes: Vec<u8> = (0..words)
            .flat_map(|_| NOISE[random.random_range(0..NOISE.len())])
            .copied()
            .collect();
        let mut rest = bytes.as_slice();
        loop {
            let consumed = match parse(rest) {
                Parsed::Incomplete { needed, .. } => {
                    reached.count("incomplete");
                    assert!(needed > rest.len());
                    break;
                }
                Parsed::Request { consumed, .. } => {
                    reached.count("request");
                    consumed
                }
                Parsed::Refused {
                    consumed, close, ..
                } => {
                    reached.count(if close { "closed" } else { "refused" });
                    consumed
                }
            };
            assert!((1..=rest.len()).contains(&consumed));
            rest = &rest[consumed..];
        }
    }
    reached.require(100, &["incomplete", "request", "refused", "closed"]);
}

#[test]
fn a_long_read_in_pieces_is_found_where_it_ends() {
    let mut line = b"get".to_vec();
    line.extend(
        [&b" "[..], &[b'k'; 63]]
            .concat()
            .repeat((LINE_BYTES_MAX - 5) / 64),
    );
    line.extend_from_slice(b"\r\n");
    let mut server = Server::new(LOG_TIME_MS);
    let mut connection = Connection::default();
    for piece in line[..line.len() - 1].chunks(97) {
        assert_eq!(server.receive(&mut connection, piece), b"");
    }
    assert!(!connection.closed);
    assert_eq!(server.receive(&mut connection, b"\n"), b"END\r\n");
}

/// Everything that a new server says to these bytes, and the state it ends in.
fn answers(pieces: &[&[u8]]) -> Vec<u8> {
    let mut server = Server::new(LOG_TIME_MS);
    let mut connection = Connection::default();
    let mut out = Vec::new();
    for piece in pieces {
        out.extend(server.receive(&mut connection, piece));
    }
    if connection.closed {
        out.extend_from_slice(b"closed");
    }
    let mut observer = Connection::default();
    out.extend(server.receive(&mut observer, b"gets a b c n\r\n"));
    out
}

fn damage(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.random_range(0..4) {
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[place] = random.random(),
            1 => bytes.insert(place, b" \r\n0-"[random.random_range(0..5)]),
            2 if bytes.len() > 1 => drop(bytes.remove(place)),
            _ => bytes.truncate(place.max(1)),
        }
    }
}
