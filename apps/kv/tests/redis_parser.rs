//! The Redis parser against bytes that come in pieces, bytes that mean harm, and Redis itself.
#[expect(dead_code, reason = "other tests use the rest")]
mod redis_oracle;
mod seeds;

use std::io::{Read, Write};
use std::net::Shutdown;

use quorumwire_kv::VALUE_BYTES_MAX;
use quorumwire_kv::redis::{
    INLINE_BYTES_MAX, Kind, Parsed, REQUEST_BYTES_MAX, Skip, Skipped, WORD_BYTES_SKIPPED_MAX,
    WORDS_BYTES_SKIPPED_MAX, WORDS_MAX, WORDS_SKIPPED_MAX, Words, classify, parse,
};
use rand::RngExt;
use redis_oracle::{Redis, array};

/// What a stream of bytes is cut into; an eager reader looks at every piece, another one only as often as
/// the parser asks for it.
fn cut(stream: &[u8], pieces: &mut dyn FnMut() -> usize, is_eager: bool) -> (Vec<String>, u32) {
    let mut seen = Vec::new();
    let (mut start, mut arrived, mut looks) = (0, 0, 0);
    let mut needed = 1;
    let mut skip: Option<Skip> = None;
    loop {
        while arrived < stream.len() && arrived - start < needed {
            arrived = (arrived + pieces()).min(stream.len());
        }
        if arrived - start < needed {
            return (seen, looks);
        }
        looks += 1;
        let buffer = &stream[start..arrived];
        if let Some(rest) = &mut skip {
            match rest.take(buffer) {
                Skipped::Some {
                    consumed,
                    needed: more,
                } => {
                    start += consumed;
                    assert!(more > arrived - start, "it takes what it can");
                    needed = more;
                }
                Skipped::All { consumed } => {
                    start += consumed;
                    needed = 1;
                    skip = None;
                }
                Skipped::Broken(broken) => {
                    seen.push(broken.reply.escape_ascii().to_string());
                    return (seen, looks);
                }
            }
            continue;
        }
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
            Parsed::TooLong {
                consumed,
                skip: rest,
                reply,
            } => {
                seen.push(reply.escape_ascii().to_string());
                start += consumed;
                needed = 1;
                skip = Some(rest);
            }
            Parsed::Refused(broken) => {
                seen.push(broken.reply.escape_ascii().to_string());
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
    (b"*1\r\n$536870913\r\n", "invalid bulk length"),
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

/// Redis takes its lines for commands.
#[test]
fn nothing_is_carried_out_that_stands_in_a_handshake_of_tls() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaa\r\nSET k v\r\n";
    for bytes in 1..=hello.len() {
        let said = cut(&hello[..bytes], &mut || 1, true).0;
        assert_eq!(said, [r"-ERR this port speaks no TLS\r\n"], "{bytes}");
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
            Parsed::Refused(broken) => {
                reached.count("unbalanced");
                broken.reply.into_owned()
            }
            other @ (Parsed::Incomplete { .. }
            | Parsed::Nothing { .. }
            | Parsed::TooLong { .. }) => panic!("{other:?}"),
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
    let many_words = format!("*{}\r\n", WORDS_SKIPPED_MAX + 1).into_bytes();
    let long_word = format!("*2\r\n$3\r\nGET\r\n${}\r\n", WORD_BYTES_SKIPPED_MAX + 1);
    for (stream, why) in [
        (long_line, "too big inline request"),
        (long_count, "too big mbulk count string"),
        (long_length, "too big bulk count string"),
        (many_words, "invalid multibulk length"),
        (long_word.into_bytes(), "invalid bulk length"),
        (b"GET /key HTTP/1.1\r\n".to_vec(), ""),
        (b"SET /key HTTP/1.0\r\n".to_vec(), ""),
        (b"*1\r\n$1\r\nabc".to_vec(), "expected the end of a string"),
        (b"*1\rx".to_vec(), "invalid multibulk length"),
        (b"*1\r\n$1\rx".to_vec(), "invalid bulk length"),
    ] {
        let refused = whole(&stream);
        let expected = if why.is_empty() {
            String::new()
        } else {
            format!("-ERR Protocol error: {why}\\r\\n")
        };
        assert_eq!(refused, [expected]);
    }
    // No line of a browser has so many words, or so few.
    for line in ["SET k HTTP/1.1 GET\r\n", "GET HTTP/1.1\r\n"] {
        assert!(whole(line.as_bytes())[0].starts_with('['), "{line}");
    }
}

/// Redis would close the connection at such a string if its limit were ours; we find the next request behind
/// it.
#[test]
fn a_request_that_is_too_long_is_answered_and_passed_over() {
    let long = vec![b'\n'; VALUE_BYTES_MAX + 1];
    let longest = vec![b'v'; VALUE_BYTES_MAX];
    let words =
        |words: &[&[u8]]| array(&words.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
    let string = format!(
        "string of {} bytes is longer than {VALUE_BYTES_MAX} bytes (proto-max-bulk-len)",
        VALUE_BYTES_MAX + 1
    );
    let request = format!("request is longer than {REQUEST_BYTES_MAX} bytes");
    let many = format!(
        "request of {} words is longer than {WORDS_MAX} words",
        WORDS_MAX + 1
    );
    for (stream, text) in [
        (words(&[b"SET", b"k", &long]), &string),
        (words(&[b"SET", &long, b"v", b"EX", b"10"]), &string),
        (words(&[&long]), &string),
        (
            words(&[b"MSET", b"a", &longest, b"b", &longest, b"c", b"d"]),
            &request,
        ),
        (
            words(&[b"MSET", b"a", &longest, b"b", &[b'v'; 5000]]),
            &request,
        ),
        (array(&vec![b"w".to_vec(); WORDS_MAX + 1]), &many),
    ] {
        let stream = [stream, b"*1\r\n$4\r\nPING\r\nECHO a\r\n".to_vec()].concat();
        let expected = [
            format!("-ERR {text}\\r\\n"),
            "[\"PING\"]".to_owned(),
            "[\"ECHO\", \"a\"]".to_owned(),
        ];
        assert_eq!(whole(&stream), expected);
        for piece_bytes in [1_009, 65_536] {
            let (seen, _) = cut(&stream, &mut || piece_bytes, false);
            assert_eq!(seen, expected, "{piece_bytes}");
        }
    }
}

#[test]
fn what_is_passed_over_must_be_words_and_has_a_limit() {
    let begun = |tail: &str| format!("*9\r\n$1048577\r\n{}\r\n{tail}", "v".repeat(1_048_577));
    for (tail, why) in [
        ("x", "expected '$', got 'x'"),
        ("$1\r\nvv\r\n", "expected '$', got ' '"),
        ("$-1\r\n", "invalid bulk length"),
        ("$536870913\r\n", "invalid bulk length"),
    ] {
        let seen = whole(begun(tail).as_bytes());
        assert_eq!(seen.len(), 2, "{tail}");
        let expected = format!("-ERR Protocol error: {why}\r\n");
        assert_eq!(seen[1], expected.as_bytes().escape_ascii().to_string());
    }
    let Parsed::TooLong { mut skip, .. } = parse(b"*9\r\n$536870912\r\n") else {
        panic!("so long a string is passed over");
    };
    // Nothing is kept, so the bytes need not be there to be counted.
    let piece = vec![b'v'; 1 << 20];
    let mut passed_over = 0;
    let broken = loop {
        match skip.take(&piece) {
            Skipped::Some { consumed, .. } => passed_over += consumed,
            Skipped::All { .. } => panic!("words are missing"),
            Skipped::Broken(broken) => break broken,
        }
        if passed_over == WORD_BYTES_SKIPPED_MAX {
            assert!(matches!(
                skip.take(b"\r\n$536870912\r\n"),
                Skipped::Some { .. }
            ));
        }
    };
    assert!(passed_over <= WORDS_BYTES_SKIPPED_MAX);
    assert!(passed_over + 2 * piece.len() > WORDS_BYTES_SKIPPED_MAX);
    assert_eq!(
        broken.reply[..],
        *b"-ERR Protocol error: too long request\r\n"
    );
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
