//! The parser line by line. That the answers are memcached's is tested against memcached itself, in
//! `tests/against_memcached.rs`; that splitting changes nothing, in `tests/parser.rs`.
use super::*;
use crate::memcached::{READ_KEYS_MAX, REQUEST_BYTES_MAX, ReadKind};
use crate::{KEY_BYTES_MAX, MemoryChange};

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(bytes).unwrap()
}

fn written(value: &[u8]) -> Written<'_> {
    Written {
        key: key(b"k"),
        flags: 5,
        exptime: Exptime(-7),
        value,
    }
}

/// The command in a request that is a write and nothing else.
fn write(request: &[u8]) -> (Command<'_>, bool) {
    match parse(request) {
        Parsed::Request {
            consumed,
            request: Request::Write { command, noreply },
        } => {
            assert_eq!(consumed, request_bytes(request));
            (command, noreply)
        }
        other @ (Parsed::Incomplete { .. } | Parsed::Request { .. } | Parsed::Refused { .. }) => {
            panic!("{} is {other:?}", request.escape_ascii())
        }
    }
}

/// The tests' requests end where their bytes end, or before a `#`.
fn request_bytes(request: &[u8]) -> usize {
    request
        .iter()
        .position(|&byte| byte == b'#')
        .unwrap_or(request.len())
}

fn refused(request: &[u8]) -> (&'static [u8], usize) {
    match parse(request) {
        Parsed::Refused {
            consumed,
            swallow,
            reply,
            close: false,
            why: _,
        } => {
            let line = request
                .split_inclusive(|&byte| byte == b'\n')
                .next()
                .unwrap();
            assert_eq!(consumed, line.len(), "{}", request.escape_ascii());
            (reply, swallow)
        }
        other @ (Parsed::Incomplete { .. } | Parsed::Request { .. } | Parsed::Refused { .. }) => {
            panic!("{} is {other:?}", request.escape_ascii())
        }
    }
}

#[test]
fn every_write_is_understood() {
    let exptime = Exptime(9);
    for (request, command) in [
        (
            &b"set k 5 -7 3\r\nabc\r\n#"[..],
            Command::Set(written(b"abc")),
        ),
        (b"add k 5 -7 0\r\n\r\n", Command::Add(written(b""))),
        (
            b"replace k 5 -7 2\r\n\r\n\r\n#",
            Command::Replace(written(b"\r\n")),
        ),
        (
            b"cas k 5 -7 1 77\r\nx\r\n",
            Command::Cas {
                item: written(b"x"),
                unique: 77,
            },
        ),
        (
            b"append k 5 -7 1\r\nx\r\n",
            Command::Append {
                key: key(b"k"),
                value: b"x",
            },
        ),
        (
            b"prepend k 5 -7 1\r\nx\r\n",
            Command::Prepend {
                key: key(b"k"),
                value: b"x",
            },
        ),
        (
            b"incr k 12\r\n#",
            Command::Increment {
                key: key(b"k"),
                delta: 12,
            },
        ),
        (
            b"decr k 12\r\n",
            Command::Decrement {
                key: key(b"k"),
                delta: 12,
            },
        ),
        (
            b"touch k 9\r\n",
            Command::Touch {
                key: key(b"k"),
                exptime,
            },
        ),
        (b"delete k\r\n", Command::Delete { key: key(b"k") }),
        (b"delete k 0\r\n", Command::Delete { key: key(b"k") }),
        (b"flush_all\r\n", Command::FlushAll { delay: Exptime(0) }),
        (b"flush_all 9\r\n", Command::FlushAll { delay: exptime }),
    ] {
        assert_eq!(write(request), (command, false));
        // Without a carriage return, with more spaces, and with `noreply`.
        let text = String::from_utf8(request[..request_bytes(request)].to_vec()).unwrap();
        let (line, block) = text.split_once("\r\n").unwrap();
        assert_eq!(
            write(format!("{line}\n{block}").as_bytes()),
            (command, false)
        );
        let spaced = format!("  {}  \r\n{block}", line.replace(' ', "   "));
        assert_eq!(write(spaced.as_bytes()), (command, false));
        assert_eq!(
            write(format!("{line} noreply\r\n{block}").as_bytes()),
            (command, true)
        );
    }
    for (name, with_unique) in [("gat", false), ("gats", true)] {
        for (text, listed) in [
            ("", &b""[..]),
            (" k", b"k"),
            ("  k  noreply k ", b"k noreply k"),
        ] {
            let keys = Keys::new(listed).unwrap();
            let request = format!(" {name}  9{text}\r\n");
            let command = Command::GetAndTouch {
                keys,
                exptime,
                with_unique,
            };
            assert_eq!(write(request.as_bytes()), (command, false));
        }
    }
}

#[test]
fn a_read_gives_its_line_and_its_keys() {
    for (request, line, keys, with_unique) in [
        (&b"get a\r\n"[..], &b"get a"[..], &[&b"a"[..]][..], false),
        (
            b"  gets  b  a b \n#",
            b"gets  b  a b ",
            &[b"b", b"a", b"b"],
            true,
        ),
    ] {
        let Parsed::Request {
            consumed,
            request: Request::Read(read),
        } = parse(request)
        else {
            panic!("{} is no read", request.escape_ascii());
        };
        assert_eq!(consumed, request_bytes(request));
        assert_eq!(read.line(), line);
        let ReadKind::Items {
            keys: asked,
            with_unique: shows_unique,
        } = read.kind()
        else {
            panic!("{read:?}");
        };
        assert!(asked.iter().map(Key::bytes).eq(keys.iter().copied()));
        assert_eq!(shows_unique, with_unique);
        assert_eq!(Read::from_line(read.line()), Some(read));
    }
}

#[test]
fn local_requests_are_told_apart() {
    for (request, local) in [
        (&b"version\r\n"[..], Local::Version),
        (b"verbosity 1\r\n", Local::Tuning { noreply: false }),
        (b"verbosity 1 noreply\r\n", Local::Tuning { noreply: true }),
        (b"stats\r\n", Local::Stats { argument: None }),
        (
            b"stats reset\r\n",
            Local::Stats {
                argument: Some(b"reset"),
            },
        ),
        (b"quit\r\n", Local::Quit),
        (b"mn\r\n", Local::MetaNoop),
    ] {
        let consumed = request.len();
        assert_eq!(
            parse(request),
            Parsed::Request {
                consumed,
                request: Request::Local(local)
            }
        );
    }
}

#[test]
fn what_is_missing_is_known_as_early_as_can_be() {
    let needed = |buffer: &[u8]| match parse(buffer) {
        Parsed::Incomplete { needed, .. } => needed,
        other @ (Parsed::Request { .. } | Parsed::Refused { .. }) => {
            panic!("{} is {other:?}", buffer.escape_ascii())
        }
    };
    assert_eq!(needed(b""), 1);
    assert_eq!(needed(b"get a"), 6);
    assert_eq!(needed(b"set k 0 0 10\r\n"), 14 + 12);
    assert_eq!(needed(b"set k 0 0 10\r\n0123456789\r"), 14 + 12);
    assert_eq!(needed(b"set k 0 0 1048576\r\n"), 19 + VALUE_BYTES_MAX + 2);
    let longest_line = [
        b"set k",
        &b" ".repeat(COMMAND_LINE_BYTES_MAX - 17)[..],
        b"0 0 1048576\n",
    ];
    assert_eq!(needed(&longest_line.concat()), REQUEST_BYTES_MAX);
}

#[test]
fn a_refused_storage_line_takes_its_data_with_it() {
    let long_key = "k".repeat(KEY_BYTES_MAX + 1);
    for line in [
        format!("set {long_key} 0 0 10"),
        "set k\x01 0 0 10".to_owned(),
        "add k x 0 10".to_owned(),
        "add k -1 0 10".to_owned(),
        "add k 4294967296 0 10".to_owned(),
        "replace k 0 x 10".to_owned(),
        "cas k 0 0 10 x".to_owned(),
    ] {
        assert_eq!(
            refused(format!("{line}\r\n").as_bytes()),
            (reply::BAD_FORMAT, 12),
            "{line}"
        );
        assert_eq!(
            refused(format!("{line} noreply\r\n").as_bytes()),
            (&b""[..], 12),
            "{line}"
        );
    }
    let too_large = (reply::TOO_LARGE, VALUE_BYTES_MAX + 3);
    assert_eq!(refused(b"set k 0 0 1048577\r\n"), too_large);
    assert_eq!(refused(b"append k 0 0 1048577\r\nxx"), too_large);
    let huge = (reply::TOO_LARGE, i32::MAX as usize);
    assert_eq!(refused(b"set k 0 0 2147483645\r\n"), huge);
    for bytes in [
        "2147483646",
        "4294967297",
        "99999999999999999999",
        "-1",
        "x",
        "1x",
    ] {
        let line = format!("set k 0 0 {bytes}\r\n");
        assert_eq!(refused(line.as_bytes()), (reply::BAD_FORMAT, 0), "{line}");
    }
    assert_eq!(refused(b"ms k 10 z\r\n"), (reply::UNKNOWN_FLAG, 12));
    assert_eq!(refused(b"ms k 10 MX\r\n"), (reply::BAD_MODE_OF_SET, 12));
    assert_eq!(refused(b"ms k 1048577\r\n"), too_large);
    for line in ["ms k", "ms k c", "ms k S1", "ms k -1", "ms k 2147483646"] {
        let line = format!("{line}\r\n");
        assert_eq!(refused(line.as_bytes()), (reply::BAD_FORMAT, 0), "{line}");
    }
}

#[test]
fn a_meta_line_that_changes_nothing_is_a_read() {
    for (line, is_read) in [
        ("mg k", true),
        ("mg k v t c f s h l k O1 q u Px Lx", true),
        ("mg aw== b k v", true),
        ("mg k C1 F1 D1 J1 I ME", true),
        ("mg k N0", false),
        ("mg k v R10", false),
        ("mg k T10 v", false),
        ("md k q", false),
        ("ma k", false),
        ("me k", true),
        ("me aw== b", true),
    ] {
        let text = format!(" {line}\r\n");
        let Parsed::Request { consumed, request } = parse(text.as_bytes()) else {
            panic!("{line}");
        };
        assert_eq!(consumed, text.len());
        match request {
            Request::Read(read) => {
                assert!(is_read, "{line}");
                assert_eq!(read.line(), line.as_bytes());
                assert_eq!(read.key_count(), 1);
                assert_eq!(Read::from_line(read.line()), Some(read));
                assert_eq!(read.as_write().is_some(), line.starts_with("mg"));
            }
            Request::Write { command, noreply } => {
                assert!(!is_read && !noreply, "{line}");
                assert!(matches!(command, Command::Meta { value: b"", .. }));
                assert_eq!(Read::from_line(line.as_bytes()), None);
            }
            Request::Local(_) => panic!("{line}"),
        }
    }
    for line in ["mg", "mg k z", "mg k b", "mgk", "me", "ms k 1"] {
        assert_eq!(Read::from_line(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn bad_flags_are_refused_in_memcacheds_words_and_order() {
    for (line, reply) in [
        ("mg", reply::ERROR),
        ("md", reply::ERROR),
        ("ma", reply::ERROR),
        ("ms", reply::ERROR),
        ("me", reply::BAD_FORMAT),
        ("me k b", reply::BAD_FORMAT),
        ("mg k\x01", reply::BAD_FORMAT),
        ("mg k v v", reply::DUPLICATE_FLAG),
        ("mg k \x7f", reply::DUPLICATE_FLAG),
        ("mg k z", reply::UNKNOWN_FLAG),
        ("mg k x", reply::UNKNOWN_FLAG),
        ("mg k E5", reply::UNKNOWN_FLAG),
        ("mg k Nx z", reply::UNKNOWN_FLAG),
        ("mg k N", reply::BAD_TOKEN),
        ("mg k Nx b", reply::BAD_BASE64),
        ("mg k b Nx", reply::BAD_TOKEN),
        ("mg k b Fx", reply::BAD_BASE64),
        ("mg k Fx", reply::BAD_FORMAT),
        ("mg k M", reply::BAD_MODE_LENGTH),
        ("mg k J", reply::BAD_INITIAL),
        ("mg k D-1", reply::BAD_META_DELTA),
        ("md k D-1", reply::BAD_FLAG),
        ("ma k k k", reply::BAD_FLAG),
        ("ma k MX", reply::BAD_MODE_OF_ARITHMETIC),
        (
            "mg k O23456789012345678901234567890123",
            reply::OPAQUE_TOO_LONG,
        ),
        (
            "ma k MX O2345678901234567890123456789012x",
            reply::BAD_MODE_OF_ARITHMETIC,
        ),
        (
            "mg 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9",
            reply::TOO_MANY_FLAGS_OF_GET,
        ),
        (
            "md 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9",
            reply::TOO_MANY_FLAGS,
        ),
        (
            "ma 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9",
            reply::TOO_MANY_FLAGS,
        ),
    ] {
        let found = refused(format!("{line}\r\n").as_bytes());
        let words = (reply.escape_ascii().to_string(), 0);
        assert_eq!(
            (found.0.escape_ascii().to_string(), found.1),
            words,
            "{line}"
        );
    }
    let most = "mg k c f h k l O P L s t u v q C1 F1 D1 J1\r\n";
    assert!(matches!(parse(most.as_bytes()), Parsed::Request { .. }));
}

#[test]
fn a_data_block_must_end_where_the_line_says() {
    for (request, noreply) in [
        (&b"set k 0 0 2\r\nabcd"[..], false),
        (b"set k 0 0 2\r\nab\n#", false),
        (b"set k 0 0 2\r\na\r\n#", false),
        (b"set k 0 0 2 noreply\r\nabc\n", true),
    ] {
        let Parsed::Refused {
            consumed,
            swallow: 0,
            reply,
            why: WhyRefused::Malformed,
            close: false,
        } = parse(request)
        else {
            panic!("{} is accepted", request.escape_ascii());
        };
        assert_eq!(
            consumed,
            request.iter().position(|&byte| byte == b'\n').unwrap() + 5
        );
        assert_eq!(reply, if noreply { b"" } else { reply::BAD_CHUNK });
    }
}

#[test]
fn keys_with_control_characters_are_refused_everywhere() {
    for request in [
        &b"get a\x01\r\n"[..],
        b"gets a b\x7f\r\n",
        b"get a\r\r\n",
        b"gat 0 a\0\r\n",
        b"incr a\t 1\r\n",
        b"touch \x1f 0\r\n",
        b"delete a\x0b\r\n",
    ] {
        assert_eq!(
            refused(request),
            (reply::BAD_FORMAT, 0),
            "{}",
            request.escape_ascii()
        );
    }
}

#[test]
fn a_line_at_the_head_of_a_browsers_request_ends_the_connection() {
    let hangs_up = |buffer: &[u8]| match parse(buffer) {
        Parsed::Refused {
            consumed,
            reply: b"",
            why: WhyRefused::NotServed,
            close: true,
            ..
        } => consumed == buffer.len(),
        Parsed::Refused { .. } | Parsed::Request { .. } | Parsed::Incomplete { .. } => false,
    };
    for line in [
        "POST / HTTP/1.1",
        "GET / HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "POST /a HTTP/1.0  ",
        "POST / HTTP/",
        "HTTP/1.1",
        // Methods that a page may choose at a name that it has made ours.
        "set /key HTTP/1.1",
        "delete /key HTTP/1.1",
        "incr /key HTTP/1.1",
        "flush_all / HTTP/1.1",
        "ms /key HTTP/1.1",
        "Host: 127.0.0.1:11211",
        "host:",
        "a b c d e f g h i j HTTP/1.1",
    ] {
        let request = format!("{line}\r\n\r\nset viacurl 0 0 5\r\nowned\r\n");
        assert!(hangs_up(request.as_bytes()), "{line}");
    }
    for line in [
        "get HTTP/1.1",
        "get HTTP/ a",
        "x HTTP",
        "x http/1.1",
        "x HTTP/1.1 y",
        "Hosts: a",
    ] {
        assert!(!hangs_up(format!("{line}\r\n").as_bytes()), "{line}");
    }
}

#[test]
fn a_read_asks_for_so_many_keys_and_no_more() {
    let line = |keys: usize| format!("get{}\r\n", " k".repeat(keys));
    let most = line(READ_KEYS_MAX);
    let Parsed::Request {
        request: Request::Read(read),
        ..
    } = parse(most.as_bytes())
    else {
        panic!("the longest is none");
    };
    assert_eq!(read.key_count(), READ_KEYS_MAX);
    let more = line(READ_KEYS_MAX + 1);
    let refused = Parsed::Refused {
        consumed: more.len(),
        swallow: 0,
        reply: reply::GET_TOO_LONG,
        why: WhyRefused::TooLong,
        close: false,
    };
    assert_eq!(parse(more.as_bytes()), refused);
    assert_eq!(Read::from_line(more.trim_end().as_bytes()), None);
}

#[test]
fn a_long_line_is_searched_for_its_end_where_it_was_not_before() {
    let mut line = b"get ".to_vec();
    line.resize(100_000, b'k');
    let Parsed::Incomplete { needed, searched } = parse_on(&line, 0) else {
        panic!("it has no end");
    };
    assert_eq!((needed, searched), (line.len() + 1, line.len()));
    // What is said to be searched is not looked at again, so an end put there is not found.
    line[50_000] = b'\n';
    assert!(matches!(
        parse_on(&line, searched),
        Parsed::Incomplete { .. }
    ));
    assert!(matches!(parse_on(&line, 0), Parsed::Refused { .. }));
    let block = parse(b"set k 0 0 5\r\nabc");
    assert!(matches!(block, Parsed::Incomplete { searched: 0, .. }));
}

#[test]
fn a_line_has_a_limit_and_then_the_connection_ends() {
    let closes = |buffer: &[u8]| match parse(buffer) {
        Parsed::Refused {
            consumed,
            swallow: 0,
            reply,
            why: WhyRefused::TooLong,
            close: true,
        } => {
            assert_eq!(consumed, buffer.len());
            let names_limit = reply == reply::GET_TOO_LONG;
            assert!(names_limit || reply == reply::LINE_TOO_LONG);
            assert_eq!(names_limit, buffer.len() >= LINE_BYTES_MAX);
            true
        }
        Parsed::Refused { .. } | Parsed::Request { .. } | Parsed::Incomplete { .. } => false,
    };
    let line = |start: &str, bytes: usize| {
        let mut line = start.as_bytes().to_vec();
        line.resize(bytes - 1, b' ');
        line.push(b'\n');
        line
    };
    for (start, bytes_max) in [
        ("delete a", COMMAND_LINE_BYTES_MAX),
        ("gat 0 a", COMMAND_LINE_BYTES_MAX),
        ("getter a", COMMAND_LINE_BYTES_MAX),
        ("get a", LINE_BYTES_MAX),
        ("  gets a", LINE_BYTES_MAX),
    ] {
        let longest = line(start, bytes_max);
        assert!(!closes(&longest), "{start}");
        assert!(!closes(&longest[..bytes_max - 1]), "{start}");
        let longer = line(start, bytes_max + 1);
        assert!(closes(&longer), "{start}");
        assert!(closes(&longer[..bytes_max]), "{start}");
    }
}

#[test]
fn each_refusal_has_its_reason_also_where_the_client_wants_no_answer() {
    use WhyRefused::{Malformed, NotServed, TooLong, UnknownCommand};
    for (line, reason) in [
        (&b"\r\n"[..], UnknownCommand),
        (b"getter a\r\n", UnknownCommand),
        (b"GET a\r\n", UnknownCommand),
        (b"get\r\n", Malformed),
        (b"set k 0 0\r\n", Malformed),
        (b"set k x 0 1 noreply\r\n", Malformed),
        (b"mg k v v\r\n", Malformed),
        (b"set k 0 0 1048577\r\n", TooLong),
        (b"set k 0 0 1048577 noreply\r\n", TooLong),
        (b"ms k 1048577\r\n", TooLong),
        (b"md k O12345678901234567890123456789012\r\n", TooLong),
        (b"shutdown\r\n", NotServed),
    ] {
        let Parsed::Refused { why, .. } = parse(line) else {
            panic!("{} is taken", line.escape_ascii());
        };
        assert_eq!(why, reason, "{}", line.escape_ascii());
    }
}

#[test]
fn nothing_is_carried_out_that_stands_in_a_handshake_of_tls() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaa\r\nset k 0 0 1\r\nx\r\n";
    for bytes in 1..=hello.len() {
        let Parsed::Refused {
            close: true,
            consumed,
            reply,
            why: WhyRefused::Tls,
            ..
        } = parse(&hello[..bytes])
        else {
            panic!("{bytes} bytes are taken for text");
        };
        assert_eq!((consumed, reply), (bytes, reply::TLS));
    }
}

#[test]
fn the_binary_protocol_is_turned_away() {
    let Parsed::Refused {
        close: true,
        reply,
        why: WhyRefused::NotServed,
        ..
    } = parse(b"\x80\0\0")
    else {
        panic!("taken for text");
    };
    assert_eq!(reply, reply::BINARY_PROTOCOL);
}

#[test]
fn a_memory_limit_is_a_number_of_megabytes_as_memcached_takes_it() {
    let change = MemoryChange {
        limit_bytes: Some(100 << 20),
        ..MemoryChange::default()
    };
    for (line, noreply) in [
        (&b"cache_memlimit 100\r\n"[..], false),
        (b"cache_memlimit 100 noreply\r\n", true),
    ] {
        let Parsed::Request { request, .. } = parse(line) else {
            panic!("refused");
        };
        let command = Command::Memory(change);
        assert_eq!(request, Request::Write { command, noreply });
    }
    for (line, answer) in [
        (&b"cache_memlimit\r\n"[..], reply::ERROR),
        (b"cache_memlimit 1 2 3\r\n", reply::ERROR),
        (b"cache_memlimit much\r\n", reply::ERROR),
        (b"cache_memlimit 4294967296\r\n", reply::ERROR),
        (b"cache_memlimit 7\r\n", reply::MEMORY_TOO_SMALL),
        (b"cache_memlimit 4294967295\r\n", reply::MEMORY_TOO_LARGE),
        (b"cache_memlimit 7 noreply\r\n", b""),
    ] {
        let Parsed::Refused { reply, .. } = parse(line) else {
            panic!("taken");
        };
        assert_eq!(reply, answer, "{}", line.escape_ascii());
    }
}
