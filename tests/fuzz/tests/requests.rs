//! What clients send, through the parsers into a store.

use quorumwire_fuzz_tests::{INPUT_BYTES_MAX, ITERATIONS, Outcomes, fuzz, grown};
use quorumwire_interfaces::{Application as _, Applied, LogTime};
use quorumwire_kv::memcached::{self, Request};
use quorumwire_kv::redis::{self, Broken, Kind, Resp, Script, Skipped, Words};
use quorumwire_kv::{COMMAND_BYTES_MAX, Command, ERROR_BYTES_MAX, Query, REPLY_BYTES_MAX, Store};

/// Runs a command as the log would bring it; its answer.
fn apply(store: &mut Store, index: u64, command: &Command<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    assert_eq!(bytes.len(), command.encoded_bytes());
    assert!(bytes.len() <= COMMAND_BYTES_MAX);
    assert_eq!(Command::decode(&bytes).as_ref(), Ok(command));
    let mut reply = Vec::new();
    let entry = Applied {
        number: index,
        log_time: LogTime(1_700_000_000_000 + index),
        awaits_time: index.is_multiple_of(3),
        command: &bytes,
    };
    store.apply(&entry, &mut reply);
    assert!(reply.len() <= REPLY_BYTES_MAX);
    reply
}

const MEMCACHED: [&[u8]; 50] = [
    b"get k\r\n",
    b"gets k l\r\n",
    b"set k 0 0 1\r\n1\r\n",
    b"set l 5 100 3\r\nabc\r\n",
    b"add k 0 0 1\r\nx\r\n",
    b"cas k 0 0 1 1\r\nx\r\n",
    b"append k 0 0 2\r\nyy\r\n",
    b"incr k 5\r\n",
    b"decr k 2 noreply\r\n",
    b"touch k 10\r\n",
    b"gat 0 k l\r\n",
    b"delete k\r\n",
    b"flush_all 5\r\n",
    b"version\r\n",
    b"stats\r\n",
    b"verbosity 1\r\n",
    b"mn\r\n",
    b"mg k v t f\r\n",
    b"ms k 1 T0\r\nx\r\n",
    b"md k q\r\n",
    b"ma k N0 J13 v\r\n",
    b"me k\r\n",
    b"quit\r\n",
    b"slabs automove ",
    b"lru tune 10 25 0.1 2.0\r\n",
    b"lru_crawler crawl ",
    b"stats cachedump 1 1\r\n",
    b"watch\r\n",
    b"POST / HTTP/1.1\r\n",
    b"set ",
    b"get ",
    b"mg ",
    b"ms ",
    b"k",
    b" ",
    b" 0",
    b" -1",
    b"\r\n",
    b"\n",
    b" noreply",
    b"99999999999999999999",
    b" 1048577",
    b"\x80",
    b"\0",
    b" b",
    b" I",
    b" q",
    b" S1",
    b"xy",
    b" 4294967296",
];

#[test]
fn memcached_requests() {
    let outcomes = Outcomes::default();
    fuzz!(
        "memcached_requests",
        [],
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &MEMCACHED);
            let (mut rest, mut store) = (&bytes[..], Store::new());
            for index in 1.. {
                let parsed = memcached::parse(rest);
                let consumed = match parsed {
                    memcached::Parsed::Incomplete { needed, .. } => {
                        assert!(
                            needed > rest.len()
                                && needed
                                    <= memcached::REQUEST_BYTES_MAX.max(memcached::LINE_BYTES_MAX)
                        );
                        outcomes.count("incomplete");
                        return;
                    }
                    memcached::Parsed::Request { consumed, request } => {
                        match request {
                            Request::Write { command, .. } => {
                                outcomes.count("write");
                                apply(&mut store, index, &command);
                            }
                            Request::Read(read) => {
                                outcomes.count("read");
                                let mut reply = Vec::new();
                                let query = Query::from_line(read.line());
                                assert_eq!(query, Query::Memcached(read));
                                store.answer(&Query::of(query.form(), read.line()), &mut reply);
                                // A miss of a quiet `mg` has no answer.
                                assert!(reply.is_empty() || reply.ends_with(b"\r\n"));
                                assert!(reply.len() <= REPLY_BYTES_MAX);
                            }
                            Request::Local(_) => outcomes.count("local"),
                        }
                        consumed
                    }
                    memcached::Parsed::Refused {
                        consumed,
                        close,
                        swallow,
                        ..
                    } => {
                        outcomes.count(if close { "hung up" } else { "refused" });
                        if close || swallow > 0 {
                            return;
                        }
                        consumed
                    }
                };
                assert!(consumed > 0 && consumed <= rest.len());
                rest = &rest[consumed..];
            }
        }
    );
    outcomes.must_be(&["incomplete", "write", "read", "local", "refused", "hung up"]);
}

const REDIS: [&[u8]; 63] = [
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n5\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"SET k v EX 100\r\n",
    b"SET k 7 NX GET\r\n",
    b"GETEX k PX 5\r\n",
    b"GETDEL k\r\n",
    b"MSET a 1 b 2\r\n",
    b"MSETNX a 1 c 2\r\n",
    b"MGET a b k\r\n",
    b"APPEND k xx\r\n",
    b"SETRANGE k 5 zz\r\n",
    b"GETRANGE k 0 -1\r\n",
    b"INCR k\r\n",
    b"INCRBY k -9223372036854775808\r\n",
    b"INCRBYFLOAT k 1.5e3\r\n",
    b"SETBIT k 100 1\r\n",
    b"BITCOUNT k 0 -1 BIT\r\n",
    b"BITPOS k 1\r\n",
    b"BITOP XOR d a k\r\n",
    b"BITFIELD k SET u5 #1 9 INCRBY i8 0 200\r\n",
    b"BITFIELD k OVERFLOW FAIL GET u63 1\r\n",
    b"DEL a b\r\n",
    b"EXISTS k\r\n",
    b"KEYS *\r\n",
    b"SCAN 0 COUNT 5\r\n",
    b"RENAME k l\r\n",
    b"COPY k l REPLACE\r\n",
    b"EXPIRE k 10 NX\r\n",
    b"PTTL k\r\n",
    b"PERSIST k\r\n",
    b"OBJECT ENCODING k\r\n",
    b"RANDOMKEY\r\n",
    b"FLUSHALL\r\n",
    b"COMMAND DOCS get\r\n",
    b"COMMAND GETKEYS mset a 1\r\n",
    b"HELLO 3\r\n",
    b"LPUSH k v\r\n",
    b"TYPE k\r\n",
    b"STRLEN k\r\n",
    b"DBSIZE\r\n",
    b"SCAN 99999999999 MATCH [a-\r\n",
    b"*",
    b"$",
    b"3\r\n",
    b"-1\r\n",
    b"\r\n",
    b"\"a\\x4",
    b"'",
    b"k ",
    b"99999999999",
    b" ",
    b"*1000000000\r\n",
    b"*200000\r\n",
    b"*3\r\n$1048577\r\n",
    b"POST / HTTP/1.1\r\n",
    b"GET",
    b"SET",
    b"\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"BITFIELD k ",
    b"SET u64 0 1 ",
];

/// Whether the bytes are answers of RESP, whole ones.
fn are_answers(mut bytes: &[u8]) -> bool {
    let mut wanted = 1_u64;
    while wanted > 0 {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            return false;
        };
        let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
        let count = std::str::from_utf8(&line[1..])
            .ok()
            .and_then(|text| text.parse::<i64>().ok());
        wanted -= 1;
        bytes = rest;
        match (line[0], count) {
            (b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(', _) | (b'$' | b'*', Some(-1)) => {}
            (b'$' | b'=', Some(length)) => match rest.get(usize::try_from(length).unwrap()..) {
                Some(behind) if behind.starts_with(b"\r\n") => bytes = &behind[2..],
                _ => return false,
            },
            (b'*' | b'~', Some(length)) => wanted += u64::try_from(length).unwrap(),
            (b'%', Some(length)) => wanted += 2 * u64::try_from(length).unwrap(),
            _ => return false,
        }
    }
    bytes.is_empty()
}

fn carry_out(
    store: &mut Store,
    index: u64,
    words: &Words<'_>,
    outcomes: &Outcomes,
) -> Option<Vec<u8>> {
    let resp = if index.is_multiple_of(2) {
        Resp::V2
    } else {
        Resp::V3
    };
    match redis::classify(words) {
        Err(text) => {
            outcomes.count("no command");
            Some(text)
        }
        Ok(Kind::Connection) => {
            outcomes.count("connection");
            let is_command = words
                .get(0)
                .is_some_and(|name| name.eq_ignore_ascii_case(b"command"));
            is_command.then(|| {
                let mut reply = Vec::new();
                redis::answer_command(words, resp, REPLY_BYTES_MAX, &mut reply);
                reply
            })
        }
        Ok(Kind::Read) => {
            outcomes.count("read");
            let mut reply = Vec::new();
            let line = [&[resp.byte()], words.text()].concat();
            let query = Query::from_line(&line);
            assert_eq!(Query::of(query.form(), &line), query);
            store.answer(&query, &mut reply);
            Some(reply)
        }
        Ok(Kind::Write) => {
            outcomes.count("write");
            let is_transaction = index.is_multiple_of(5);
            let command = Command::Redis(Script {
                resp,
                is_transaction,
                watched: &[],
                commands: words.text(),
            });
            let reply = apply(store, index, &command);
            assert!(!reply.starts_with(b"-") || reply.len() <= ERROR_BYTES_MAX);
            Some(reply)
        }
    }
}

fn hang_up(broken: &Broken, outcomes: &Outcomes) {
    outcomes.count("hung up");
    let known = [&b"-ERR Protocol error"[..], b"-ERR this port speaks no TLS"];
    let is_known = known.iter().any(|text| broken.reply.starts_with(text));
    assert!(broken.reply.is_empty() || is_known);
}

#[test]
fn redis_requests() {
    let outcomes = Outcomes::default();
    fuzz!(
        "redis_requests",
        [],
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &REDIS);
            let (mut rest, mut store) = (&bytes[..], Store::new());
            for index in 1.. {
                let consumed = match redis::parse(rest) {
                    redis::Parsed::Incomplete { needed } => {
                        assert!(needed > rest.len());
                        outcomes.count("incomplete");
                        return;
                    }
                    redis::Parsed::Nothing { consumed } => consumed,
                    redis::Parsed::Refused(broken) => return hang_up(&broken, &outcomes),
                    redis::Parsed::TooLong {
                        consumed,
                        mut skip,
                        reply,
                    } => {
                        outcomes.count("passed over");
                        assert!(reply.starts_with(b"-ERR ") && reply.ends_with(b"\r\n"));
                        match skip.take(&rest[consumed..]) {
                            Skipped::Some {
                                consumed: more,
                                needed,
                            } => {
                                assert!(needed > rest.len() - consumed - more);
                                return;
                            }
                            Skipped::All { consumed: more } => consumed + more,
                            Skipped::Broken(broken) => return hang_up(&broken, &outcomes),
                        }
                    }
                    redis::Parsed::Request { consumed, words } => {
                        let again = Words::from_text(words.text()).expect("its own text");
                        assert!(again.iter().eq(words.iter()) && again.len() == words.len());
                        if let Some(reply) = carry_out(&mut store, index, &words, &outcomes) {
                            assert!(are_answers(&reply), "{}", String::from_utf8_lossy(&reply));
                            assert!(reply.len() <= REPLY_BYTES_MAX);
                        }
                        consumed
                    }
                };
                assert!(consumed > 0 && consumed <= rest.len());
                rest = &rest[consumed..];
            }
        }
    );
    outcomes.must_be(&[
        "incomplete",
        "write",
        "read",
        "connection",
        "no command",
        "passed over",
        "hung up",
    ]);
}
