//! The Redis parser against bytes that come in pieces, bytes that mean harm, and Redis itself.
#[expect(dead_code, reason = "other tests use the rest")]
mod redis_oracle;
mod seeds;

use std::io::{Read, Write};
use std::net::Shutdown;

use quorumwire_kv::VALUE_BYTES_MAX;
use quorumwire_kv::redis::{
    INLINE_BYTES_MAX, Kind, Parsed, REQUEST_BYTES_MAX, WORDS_MAX, Words, classify, parse,
};
use rand::RngExt;
use redis_oracle::{Redis, array};

/// What a stream of bytes is cut into; an eager reader looks at every piece, another one only as often as
/// the parser asks for it.
fn cut(stream: &[u8], pieces: &mut dyn FnMut() -> usize, is_eager: bool) -> (Vec<String>, u32) {
    let mut seen = Vec::new();
    let (mut start, mut arrived, mut looks) = (0, 0, 0);
    let mut needed = 1;
    loop {
        while arrived < stream.len() && arrived - start < needed {
            arrived = (arrived + pieces()).min(stream.len());
        }
        if arrived - start < needed {
            return (seen, looks);
        }
        looks += 1;
        let buffer = &stream[start..arrived];
        match parse(buffer) {
            Parsed::Incomplete { needed: more } => {
                assert!(more > buffer.len() && more <= REQUEST_BYTES_MAX);
                needed = if is_eager { buffer.len() + 1 } else { more };
            }
            Parsed::Nothing { consumed } => {
                start += consumed;
                needed = 1;
            }
            Parsed::Request { consumed, words } => {
                let listed: Vec<_> = words.iter().map(<[u8]>::escape_ascii).collect();
                assert_eq!(listed.len(), words.len());
                assert_eq!(Words::from_text(words.text()).as_ref(), Some(&words));
                let listed: Vec<_> = listed.into_iter().map(|word| word.to_string()).collect();
                seen.push(format!("{listed:?}"));
                start += consumed;
                needed = 1;
            }
            Parsed::Refused { reply, .. } => {
                seen.push(reply.escape_ascii().to_string());
                return (seen, looks);
            }
        }
    }
}

fn whole(stream: &[u8]) -> Vec<String> {
    cut(stream, &mut || stream.len().max(1), true).0
}

/// Streams and what Redis says to them in the end; nothing if it only hangs up.
const REFUSED: &[(&[u8], &str)] = &[
    (b"*x\r\n", "invalid multibulk length"),
    (b"*\r\n", "invalid multibulk length"),
    (b"*-0\r\n", "invalid multibulk length"),
    (b"*01\r\n", "invalid multibulk length"),
    (b"*1 \r\n", "invalid multibulk length"),
    (b"*99999999999999999999\r\n", "invalid multibulk length"),
    (b"*4294967297\r\n", "invalid multibulk length"),
    (b"*1\r\n:1\r\n", "expected '$', got ':'"),
    (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
    (b"*1\r\n\r\n", "expected '$', got ' '"),
    (b"*2\r\n$4\r\nPING\r\nx\r\n", "expected '$', got 'x'"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$x\r\n", "invalid bulk length"),
    (b"*1\r\n$\r\n", "invalid bulk length"),
    (b"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"),
    (b"*1\r\n$1048577\r\n", "invalid bulk length"),
    (b"*1\r\n$9223372036854775808\r\n", "invalid bulk length"),
    (b"PING\r\nGET \"a\r\n", "unbalanced quotes in request"),
    (b"GET 'a'b\r\n", "unbalanced quotes in request"),
    (b"POST / HTTP/1.1\r\nHost: here\r\n\r\n", ""),
    (b"hOsT: here\r\n", ""),
    (b"*1\r\n$4\r\npost\r\n", ""),
];

#[test]
fn what_is_no_request_is_refused_as_by_redis() {
    let redis = Redis::start();
    for (stream, why) in REFUSED {
        let mut connection = redis.connect().stream;
        connection.write_all(stream).unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
        let mut theirs = Vec::new();
        connection.read_to_end(&mut theirs).unwrap();
        let theirs = theirs.strip_prefix(b"+PONG\r\n").unwrap_or(&theirs);
        let ours = whole(stream);
        assert_eq!(
            ours.last().map(String::as_str),
            Some(theirs.escape_ascii().to_string().as_str()),
            "{}",
            stream.escape_ascii()
        );
        let expected = if why.is_empty() {
            String::new()
        } else {
            format!("-ERR Protocol error: {why}\r\n")
        };
        assert_eq!(
            theirs.escape_ascii().to_string(),
            expected.escape_default().to_string()
        );
    }
}

/// An unknown command's words come back in the error.
#[test]
fn lines_are_split_as_by_redis() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let redis = Redis::start();
    let pieces: &[&[u8]] = &[
        b" ", b" ", b"\t", b"\x0b", b"\r", b"\"", b"\"", b"'", b"'", b"\\", b"\\x4", b"\\x41",
        b"\\n", b"\\\"", b"\\'", b"a", b"b", b"0", b"\xff", b"$", b"*1",
    ];
    for _ in 0..3000 {
        let mut line = b"unheard-of".to_vec();
        for _ in 0..random.random_range(1..12) {
            line.extend_from_slice(pieces[random.random_range(0..pieces.len())]);
        }
        line.extend_from_slice(b"\r\n");
        let mut connection = redis.connect().stream;
        connection.write_all(&line).unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
        let mut theirs = Vec::new();
        connection.read_to_end(&mut theirs).unwrap();
        let ours = match parse(&line) {
            Parsed::Request { consumed, words } => {
                assert_eq!(consumed, line.len());
                reached.count("words");
                classify(&words).unwrap_err()
            }
            Parsed::Refused { reply, .. } => {
                reached.count("unbalanced");
                reply.into_owned()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(
            ours.escape_ascii().to_string(),
            theirs.escape_ascii().to_string(),
            "{}",
            line.escape_ascii()
        );
    }
    reached.require(300, &["words", "unbalanced"]);
}

#[test]
fn what_redis_would_wait_for_or_believe_is_refused() {
    let long_line = vec![b'a'; INLINE_BYTES_MAX];
    let long_count = [b"*".to_vec(), vec![b'1'; 40]].concat();
    let long_length = [b"*1\r\n$".to_vec(), vec![b'1'; 40]].concat();
    let many_words = format!("*{}\r\n", WORDS_MAX + 1).into_bytes();
    let mut too_long = b"*3\r\n$4\r\nMSET\r\n".to_vec();
    too_long.extend(format!("${VALUE_BYTES_MAX}\r\n").bytes());
    too_long.extend(vec![b'v'; VALUE_BYTES_MAX]);
    too_long.extend(b"\r\n$4000\r\n");
    for (stream, why) in [
        (long_line, "too big inline request"),
        (long_count, "too big mbulk count string"),
        (long_length, "too big bulk count string"),
        (many_words, "invalid multibulk length"),
        (too_long, "too long request"),
        (b"*1\r\n$1\r\nabc".to_vec(), "expected the end of a string"),
        (b"*1\rx".to_vec(), "invalid multibulk length"),
        (b"*1\r\n$1\rx".to_vec(), "invalid bulk length"),
    ] {
        let refused = whole(&stream);
        assert_eq!(refused, [format!("-ERR Protocol error: {why}\\r\\n")]);
    }
}

#[test]
fn the_longest_requests_are_taken() {
    let words = vec![b"w".to_vec(); WORDS_MAX];
    assert_eq!(whole(&array(&words)).len(), 1);
    let mut line = vec![b'a'; INLINE_BYTES_MAX - 1];
    line.push(b'\n');
    assert_eq!(whole(&line).len(), 1);
    let value = vec![b'v'; VALUE_BYTES_MAX];
    let longest = [
        &b"SET"[..],
        &[b'k'; 250],
        &value,
        b"PXAT",
        b"9223372036854775807",
        b"NX",
        b"GET",
        b"KEEPTTL",
    ];
    let text = array(&longest.map(<[u8]>::to_vec));
    assert!(text.len() <= REQUEST_BYTES_MAX);
    assert_eq!(whole(&text).len(), 1);
}

#[test]
fn bytes_in_any_pieces_are_the_same_requests() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let alphabet: &[&[u8]] = &[
        b"*",
        b"$",
        b"1",
        b"2",
        b"3",
        b"0",
        b"-1",
        b"\r\n",
        b"\r",
        b"\n",
        b"GET",
        b"a",
        b" ",
        b"\"",
        b"'",
        b"\\x41",
        b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"PING\r\n",
        b"*0\r\n",
        b"\0",
        b"*1\r\n$0\r\n\r\n",
        b"\xff",
    ];
    for _ in 0..20_000 {
        let mut stream = Vec::new();
        for _ in 0..random.random_range(1..12) {
            let orderly = random.random_ratio(1, 2);
            let place = if orderly { 16..20 } else { 0..alphabet.len() };
            stream.extend_from_slice(alphabet[random.random_range(place)]);
        }
        let at_once = whole(&stream);
        let (byte_wise, _) = cut(&stream, &mut || 1, true);
        let (in_pieces, _) = cut(&stream, &mut || random.random_range(1..9), true);
        assert_eq!(at_once, byte_wise, "{}", stream.escape_ascii());
        assert_eq!(at_once, in_pieces, "{}", stream.escape_ascii());
        let (when_asked_for, _) = cut(&stream, &mut || 1, false);
        let mut at_least = at_once.clone();
        at_least.retain(|seen| !seen.starts_with('-'));
        assert!(
            when_asked_for == at_once || when_asked_for == at_least,
            "{}",
            stream.escape_ascii()
        );
        reached.count(match at_once.last() {
            None => "nothing",
            Some(last) if last.starts_with('-') => "refused",
            Some(_) => "requests",
        });
    }
    reached.require(500, &["nothing", "refused", "requests"]);
}

/// A client that dribbles costs no more than a few looks.
#[test]
fn a_request_of_many_pieces_is_looked_at_seldom() {
    for (words, bytes) in [(100_000, 1), (30_000, 25), (1000, 1000), (2, 500_000)] {
        let text = array(&vec![vec![b'w'; bytes]; words]);
        let (seen, looks) = cut(&text, &mut || 1, false);
        assert_eq!(seen.len(), 1);
        assert!(
            u64::from(looks) * words as u64 <= 8_000_000,
            "{looks} looks at {words} words"
        );
    }
}

#[test]
fn texts_that_are_no_words_are_refused() {
    for text in [
        &b""[..],
        b"*0\r\n",
        b"*-1\r\n",
        b"PING\r\n",
        b"*1\r\n$4\r\nPING",
        b"*1\r\n$4\r\nPING\r\nx",
        b"*2\r\n$4\r\nPING\r\n",
        b"*1\r\n$4\r\nPINGxx",
        b"*1\r\n$-1\r\n",
        b"*1\r\n:1\r\n",
    ] {
        assert!(Words::from_text(text).is_none(), "{}", text.escape_ascii());
    }
    let text = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
    let words = Words::from_text(text).unwrap();
    assert_eq!((words.get(1), words.get(2)), (Some(&b"a"[..]), None));
    assert_eq!(classify(&words), Ok(Kind::Read));
}
