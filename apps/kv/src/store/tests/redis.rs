//! Redis commands where random conversations with Redis do not reach: replicas side by side, versions,
//! time, the log, limits.
use super::*;
use crate::redis::{Kind, Resp, Script, TRANSACTION_COMMANDS_MAX, Words, classify, reply, spec};
use crate::{ERROR_BYTES_MAX, KEY_BYTES_MAX};

fn array(words: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    reply::array_header(&mut text, words.len());
    for word in words {
        reply::bulk(&mut text, word.as_bytes());
    }
    text
}

fn texts(commands: &[&str]) -> Vec<u8> {
    let text = |command: &&str| array(&command.split(' ').collect::<Vec<_>>());
    commands.iter().flat_map(text).collect()
}

impl Log {
    fn script(&mut self, script: Script<'_>) -> String {
        let mut encoded = Vec::new();
        Command::Redis(script).encode(&mut encoded);
        let mut reply = Vec::new();
        self.apply(&encoded, &mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    }

    pub(super) fn redis(&mut self, command: &str) -> String {
        let text = texts(&[command]);
        let words = Words::from_text(&text).unwrap();
        if classify(&words) == Ok(Kind::Read) {
            let mut reply = Vec::new();
            self.store.redis_read(Resp::V2, &words, &mut reply);
            return String::from_utf8_lossy(&reply).into_owned();
        }
        self.script(Script::single(Resp::V2, &words))
    }

    pub(super) fn transact(&mut self, watched: &[(&str, u64)], commands: &[&str]) -> String {
        let mut list = Vec::new();
        for (name, version) in watched {
            Script::watch(&mut list, Key::new(name.as_bytes()).unwrap(), *version);
        }
        self.script(Script {
            resp: Resp::V2,
            is_transaction: true,
            watched: &list,
            commands: &texts(commands),
        })
    }

    fn version(&self, name: &str) -> u64 {
        self.store.version(Key::new(name.as_bytes()).unwrap())
    }
}

#[test]
fn both_protocols_see_the_same_items() {
    let mut log = Log::new();
    log.ask("set a 7 0 2\r\n10\r\n");
    assert_eq!(log.redis("GET a"), "$2\r\n10\r\n");
    assert_eq!(log.redis("INCR a"), ":11\r\n");
    assert_eq!(log.ask("gets a\r\n"), "VALUE a 7 2 2\r\n11\r\nEND\r\n");
    log.redis("SET a 12");
    assert_eq!(log.ask("gets a\r\n"), "VALUE a 0 2 3\r\n12\r\nEND\r\n");
    assert_eq!(log.ask("cas a 0 0 1 2\r\n1\r\n"), "EXISTS\r\n");
    assert_eq!(log.redis("EXPIRE a 100"), ":1\r\n");
    assert_eq!(log.ask("gets a\r\n"), "VALUE a 0 2 5\r\n12\r\nEND\r\n");
    log.ask("touch a 50\r\n");
    assert_eq!(log.redis("TTL a"), ":50\r\n");
    log.ask("flush_all\r\n");
    assert_eq!(log.redis("DBSIZE"), ":0\r\n");
}

#[test]
fn a_version_changes_with_the_value_and_with_the_lifetime() {
    let mut log = Log::new();
    assert_eq!(log.version("a"), 0);
    for command in [
        "SET a 1",
        "SET a 1",
        "INCR a",
        "APPEND a 2",
        "SETRANGE a 0 3",
        "SETBIT a 0 1",
        "EXPIRE a 100",
        "PEXPIRE a 99999",
        "EXPIREAT a 1800000000",
        "PERSIST a",
        "GETEX a EX 10",
        "GETEX a PERSIST",
        "RENAME a a2",
        "COPY a2 a",
        "MSET a 5",
        "GETSET a 6",
        "BITOP NOT a a",
        "BITFIELD a SET u8 0 1",
        "DEL a",
        "SETNX a 1",
        "MSETNX a 1 b 1",
        "FLUSHALL",
        "SETEX a 100 7",
        "GETDEL a",
    ] {
        let before = log.version("a");
        let answer = log.redis(command);
        let changes = command != "MSETNX a 1 b 1";
        assert_eq!(log.version("a") != before, changes, "{command} {answer}");
    }
    log.redis("SET a 1");
    let before = log.version("a");
    for command in [
        "GET a",
        "SETNX a 2",
        "EXPIRE a 100 XX",
        "PERSIST a",
        "GETEX a",
        "SETBIT a 7 1",
        "SET a 1 NX",
        "BITFIELD a OVERFLOW FAIL SET u2 0 9",
        "RENAMENX none a",
        "INCRBYFLOAT a x",
        "COPY none a",
        "EXPIRE none 5",
        "APPEND none x",
        "SETRANGE a 0 ",
    ] {
        log.redis(command);
        assert_eq!(log.version("a"), before, "{command}");
    }
    log.redis("PEXPIRE a 100");
    log.pass(100);
    assert_eq!(log.version("a"), 0);
}

#[test]
fn a_transaction_is_all_or_nothing_of_what_was_watched() {
    let mut log = Log::new();
    log.redis("SET a 1");
    let version = log.version("a");
    let commands = [
        "INCR a", "GET a", "INCR b", "LPUSHH a", "INCR a", "PING", "DEL",
    ];
    assert_eq!(
        log.transact(&[("a", version), ("b", 0)], &commands),
        "*7\r\n:2\r\n$1\r\n2\r\n:1\r\n\
         -ERR unknown command 'LPUSHH', with args beginning with: 'a' \r\n\
         :3\r\n+PONG\r\n-ERR wrong number of arguments for 'del' command\r\n"
    );
    assert_eq!(log.transact(&[("a", version)], &commands), "*-1\r\n");
    assert_eq!(log.transact(&[("b", 0)], &commands), "*-1\r\n");
    assert_eq!(log.redis("GET a"), "$1\r\n3\r\n");
    assert_eq!(log.transact(&[("none", 0)], &[]), "*0\r\n");
    let refused = log.transact(&[], &["EXEC"]);
    assert_eq!(
        refused,
        "*1\r\n-ERR 'exec' cannot be part of a transaction\r\n"
    );
}

#[test]
fn a_transaction_reads_the_time_of_its_entry() {
    let mut log = Log::new();
    log.now_ms += 1;
    let seconds = START_MS / 1000;
    assert_eq!(
        log.transact(&[], &["TIME", "SET a 1 PX 5", "PTTL a"]),
        format!("*3\r\n*2\r\n$10\r\n{seconds}\r\n$4\r\n1000\r\n+OK\r\n:5\r\n")
    );
    log.now_ms += 5;
    assert_eq!(
        log.transact(&[], &["EXISTS a", "TTL a"]),
        "*2\r\n:0\r\n:-2\r\n"
    );
}

#[test]
fn lifetimes_end_to_the_millisecond_and_await_their_time() {
    const HOUR_MS: u64 = 3_600_000;
    for (command, is_later) in [
        ("SET a 1 EX 60", true),
        ("SET a 1 PX 60000", true),
        ("SETEX a 60 1", true),
        ("PSETEX a 60000 1", true),
        ("GETEX a EX 60", true),
        ("EXPIRE a 60", true),
        ("PEXPIRE a 60000", true),
        ("SET a 1 PXAT 1700000060000", false),
        ("GETEX a EXAT 1700000060", false),
        ("EXPIREAT a 1700000060", false),
    ] {
        let mut log = Log::new();
        log.redis("SET a 0");
        log.awaits_time = true;
        log.redis(command);
        assert_eq!(log.store.awaits_time(), is_later, "{command}");
        // Whatever keeps the life keeps that, too.
        for kept in ["APPEND a 2", "INCR a", "SETBIT a 900 1", "SET a 5 KEEPTTL"] {
            log.redis(kept);
        }
        log.redis("RENAME a b");
        log.redis("COPY b a");
        log.awaits_time = false;
        assert_eq!(log.store.awaits_time(), is_later, "{command}");
        log.pass(HOUR_MS);
        assert!(!log.store.awaits_time());
        assert_eq!(log.redis("EXISTS a b") == ":2\r\n", is_later, "{command}");
        if is_later {
            assert_eq!(log.redis("PTTL b"), ":60000\r\n");
            log.pass(59_999);
            assert_eq!(log.redis("EXISTS a b"), ":2\r\n", "{command}");
            log.pass(1);
        }
        assert_eq!(log.redis("DBSIZE"), ":0\r\n", "{command}");
        assert_eq!(log.store.next_deadline(), None, "{command}");
    }
    let mut log = Log::new();
    log.awaits_time = true;
    log.redis("SET a 1 EX 60");
    log.redis("PERSIST a");
    log.pass(HOUR_MS);
    assert_eq!(log.redis("PTTL a"), ":-1\r\n");
}

#[test]
fn keys_whose_time_has_passed_are_not_there() {
    let mut log = Log::new();
    // More than are removed at once.
    for number in 0..1000 {
        log.redis(&format!("SET key{number} 1 PX 10"));
    }
    log.redis("SET stays 1");
    log.redis("PEXPIRE key0 100");
    log.redis("PERSIST key1");
    log.pass(10);
    assert!(log.store.stats().curr_items > 500);
    assert_eq!(log.redis("DBSIZE"), ":3\r\n");
    assert_eq!(
        log.redis("KEYS *"),
        "*3\r\n$4\r\nkey0\r\n$4\r\nkey1\r\n$5\r\nstays\r\n"
    );
    assert!(
        log.redis("SCAN 0 COUNT 2000")
            .starts_with("*2\r\n$1\r\n0\r\n*3\r\n")
    );
    assert_eq!(log.redis("RENAME key500 x"), "-ERR no such key\r\n");
    assert_eq!(log.redis("APPEND key501 new"), ":3\r\n");
    assert_eq!(log.redis("SETBIT key502 7 1"), ":0\r\n");
    assert_eq!(log.redis("TTL key502"), ":-1\r\n");
    for _ in 0..100 {
        assert_ne!(log.redis("RANDOMKEY"), "$6\r\nkey600\r\n");
    }
}

/// Two replicas have different secrets; what clients see of the order of keys must not depend on them.
#[test]
fn replicas_with_different_secrets_are_equal() {
    let mut logs = [Log::new(), Log::new()];
    for log in &mut logs {
        for number in 0..3000 {
            log.redis(&format!(
                "SET key{} {number} PX {}",
                number % 700,
                10_000 + number
            ));
            log.redis(&format!("RENAME key{} other{number}", number % 31));
            log.transact(
                &[],
                &[
                    &format!("INCRBYFLOAT f{} 0.{number}", number % 9),
                    "RANDOMKEY",
                ],
            );
            log.pass(3);
        }
    }
    let [first, second] = &mut logs;
    assert_eq!(
        bytes(&*first.store.freeze()),
        bytes(&*second.store.freeze())
    );
    assert_eq!(
        first.transact(&[], &["RANDOMKEY"]),
        second.transact(&[], &["RANDOMKEY"])
    );
    // A scan that changes the replica at every step.
    let mut cursor = "0".to_owned();
    let mut found = 0;
    for turn in 0.. {
        let log = if turn % 2 == 0 {
            &mut *first
        } else {
            &mut *second
        };
        let answer = log.redis(&format!("SCAN {cursor} COUNT 7"));
        let lines: Vec<&str> = answer.split("\r\n").collect();
        found += lines[3][1..].parse::<u64>().unwrap();
        lines[2].clone_into(&mut cursor);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(format!(":{found}\r\n"), first.redis("DBSIZE"));
    assert!(found > 700, "{found}");
}

#[test]
fn whatever_a_script_changes_is_noted() {
    let noted = |log: &mut Log| {
        let mut noted = Vec::new();
        log.store.take_changes(&mut |changed| {
            noted.push(match changed {
                Changed::Everything => "everything".to_owned(),
                Changed::Item(key, item) => {
                    let value = item.map(|item| item.value.escape_ascii().to_string());
                    format!("{}={value:?}", key.bytes().escape_ascii())
                }
            });
        });
        noted.join(" ")
    };
    let mut log = Log::new();
    log.store.follow_changes(true);
    log.transact(
        &[],
        &["SET a 1", "MSET b 2 c 3", "GET d", "EXPIRE c 9", "PING"],
    );
    let expected = "a=Some(\"1\") b=Some(\"2\") c=None c=None";
    assert_eq!(noted(&mut log), expected);
    log.redis("BITOP NOT d a");
    assert_eq!(noted(&mut log), "d=Some(\"\\\\xce\") a=Some(\"1\")");
    log.redis("RENAME a e");
    assert_eq!(noted(&mut log), "a=None e=Some(\"1\")");
    log.redis("FLUSHDB");
    assert_eq!(noted(&mut log), "everything");
    // Every write in the table names its keys, or is everything.
    for command in ["flushall", "flushdb"] {
        assert!(spec(command.as_bytes()).unwrap().keys.is_empty());
    }
}

#[test]
fn keys_that_are_too_long_are_refused() {
    let mut log = Log::new();
    let name = "k".repeat(KEY_BYTES_MAX + 1);
    for command in [
        "GET K",
        "SET K 1",
        "MGET a K",
        "MSET a 1 K 1",
        "DEL a K",
        "RENAME a K",
        "BITOP AND a a K",
        "INCR K",
        "EXPIRE K 1",
        "TTL K",
        "EXISTS K",
        "APPEND K 1",
        "COPY a K",
        "OBJECT ENCODING K",
        "GETRANGE K 0 1",
        "BITFIELD K GET u1 0",
        "SETBIT K 0 1",
    ] {
        let answer = log.redis(&command.replace('K', &name));
        assert_eq!(answer, "-ERR key is longer than 250 bytes\r\n", "{command}");
        assert_eq!(log.redis("DBSIZE"), ":0\r\n", "{command}");
    }
}

#[test]
fn answers_that_are_too_long_are_refused_before_anything_changes() {
    let too_long = format!("-ERR answer is longer than {REPLY_BYTES_MAX} bytes\r\n");
    let mut log = Log::new();
    let value = "v".repeat(REPLY_BYTES_MAX / 4);
    log.redis(&format!("SET a {value}"));
    assert_eq!(log.redis("MGET a a a a"), too_long);
    assert!(log.redis("MGET a a a").len() > 3 * value.len());
    let commands = ["GET a", "GET a", "MGET a a", "GET a", "GETDEL a", "INCR n"];
    let answer = log.transact(&[], &commands);
    assert!(answer.ends_with(&format!("{too_long}:1\r\n")));
    assert_eq!(answer.matches(&too_long).count(), 2);
    assert_eq!(log.redis("STRLEN a"), format!(":{}\r\n", value.len()));
    let infos = format!("COMMAND INFO{}", " object".repeat(20_000));
    let answer = log.transact(&[], &[&infos, "INCR n"]);
    assert_eq!(answer, format!("*2\r\n{too_long}:2\r\n"));
    let many = vec!["GET a"; TRANSACTION_COMMANDS_MAX];
    let answer = log.transact(&[], &many);
    assert!(answer.len() <= REPLY_BYTES_MAX);
    log.redis(&format!("SET a {}", "v".repeat(VALUE_BYTES_MAX)));
    let sources = " a".repeat(65);
    let refused = log.redis(&format!("BITOP OR b{sources}"));
    assert_eq!(refused, TOO_MUCH_WORK);
}

/// A word may be as long as a value, and hold any bytes; sessions keep an error whole.
#[test]
fn an_error_is_short_whatever_words_it_repeats() {
    for word in [vec![b'x'; 200], vec![0xff; 200], b"\r\n".repeat(9)] {
        for (before, behind) in [
            (&["EXPIRE", "k", "100"][..], &[][..]),
            (&["PEXPIREAT", "k", "100", "NX"], &["GT"]),
            (&["SET", "k", "v"], &["1"]),
            (&["GETEX", "k"], &["1"]),
            (&["COPY", "k", "l"], &[]),
            (&["BITOP"], &["k", "l"]),
            (&["BITFIELD", "k", "GET"], &["0"]),
            (&["COMMAND"], &[]),
            (&["OBJECT"], &["k"]),
            (&[], &["k"]),
        ] {
            let mut text = Vec::new();
            reply::array_header(&mut text, before.len() + 1 + behind.len());
            for word in before.iter().map(|it| it.as_bytes()) {
                reply::bulk(&mut text, word);
            }
            reply::bulk(&mut text, &word);
            for word in behind.iter().map(|it| it.as_bytes()) {
                reply::bulk(&mut text, word);
            }
            let words = Words::from_text(&text).unwrap();
            let mut log = Log::new();
            log.redis("SET k v");
            let (mut encoded, mut answer) = (Vec::new(), Vec::new());
            Command::Redis(Script::single(Resp::V2, &words)).encode(&mut encoded);
            log.apply(&encoded, &mut answer);
            let shown = String::from_utf8_lossy(&answer);
            assert!(answer.len() <= ERROR_BYTES_MAX, "{before:?}: {shown}");
            assert!(
                answer.starts_with(b"-") && answer.ends_with(b"\r\n"),
                "{shown}"
            );
            assert_eq!(shown.matches("\r\n").count(), 1, "{shown}");
        }
    }
}

const TOO_MUCH_WORK: &str = "-ERR more work than 67108864 bytes for one request or transaction\r\n";

/// What comes before is done; what would be too much and all behind it changes nothing.
#[test]
fn a_transaction_stops_where_it_would_be_too_much_work() {
    let mut log = Log::new();
    let value = "v".repeat(VALUE_BYTES_MAX);
    log.redis(&format!("SET a {value}"));
    let end = VALUE_BYTES_MAX - 1;
    for (command, often) in [
        ("BITCOUNT a", 70),
        ("BITPOS a 1 0 0", 0),
        ("BITPOS a 0 8 -1 BIT", 2040),
        ("COPY a b REPLACE", 70),
        ("BITOP NOT b a", 70),
        (&format!("SETRANGE new{end} {end} x"), 0),
        ("EXPIRE a 1000", 2040),
        ("SETBIT a 7 1", 2040),
        ("KEYS *", 2040),
        ("RENAME a a", 70),
        ("INCRBYFLOAT f 1e4900", 300),
        ("GETEX a EX 10", 1),
    ] {
        let mut commands = vec!["INCR before"];
        commands.extend(vec![command; often]);
        commands.extend(["INCR behind", "PING"]);
        log.redis("DEL before behind");
        let answer = log.transact(&[], &commands);
        let is_too_much = answer.contains(TOO_MUCH_WORK);
        let much = often == 70 || command.starts_with("INCRBYFLOAT");
        assert_eq!(
            is_too_much,
            much,
            "{command}: {:?}",
            &answer[..100.min(answer.len())]
        );
        assert_eq!(
            answer.ends_with(&TOO_MUCH_WORK.repeat(2)),
            much,
            "{command}"
        );
        assert_eq!(log.get("before").as_deref(), Some("1"), "{command}");
        assert_eq!(log.get("behind").is_none(), much, "{command}");
    }
    let distinct: Vec<String> = (0..70)
        .map(|number| format!("COPY a copy{number}"))
        .collect();
    let distinct: Vec<&str> = distinct.iter().map(String::as_str).collect();
    log.transact(&[], &distinct);
    let there = (0..70).filter(|number| log.get(&format!("copy{number}")).is_some());
    assert_eq!(there.count(), 60, "and a sixteenth for each that may go");
    // Each of the values is changed the first time, and may have to be copied for that.
    let touched: Vec<String> = (0..60)
        .map(|number| format!("SETBIT copy{number} 7 0"))
        .collect();
    let twice: Vec<&str> = touched.iter().chain(&touched).map(String::as_str).collect();
    assert!(!log.transact(&[], &twice).contains(TOO_MUCH_WORK));
    log.redis(&format!("APPEND half {}", "v".repeat(VALUE_BYTES_MAX / 2)));
    let appended = log.transact(&[], &vec!["APPEND half x"; 200]);
    assert!(appended.ends_with(TOO_MUCH_WORK));
}

#[test]
fn patterns_cost_what_they_take() {
    let mut log = Log::new();
    for number in 0..100 {
        log.set(&format!("{}{number}", "a".repeat(240)), 0, "");
    }
    let slow = format!("*[^{}]!", "b".repeat(1000));
    assert_eq!(log.redis(&format!("KEYS {slow}")), TOO_MUCH_WORK);
    let scan = log.redis(&format!("SCAN 0 COUNT 4096 MATCH {slow}"));
    assert_eq!(scan, TOO_MUCH_WORK);
    assert!(log.redis("KEYS *a1").len() > 240);
}

#[test]
fn a_query_is_a_command_that_changes_nothing() {
    let mut log = Log::new();
    log.redis("SET a 1");
    let query = |log: &Log, request: &[u8]| {
        let mut reply = Vec::new();
        log.store.query(request, &mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    };
    assert_eq!(
        query(&log, &[b"2", &texts(&["GET a"])[..]].concat()),
        "$1\r\n1\r\n"
    );
    assert_eq!(
        query(&log, &[b"3", &texts(&["GET b"])[..]].concat()),
        "_\r\n"
    );
    assert_eq!(
        query(&log, &[b"2", &texts(&["SET a 2"])[..]].concat()),
        "-ERR not a read\r\n"
    );
    let bad = "-ERR not a command of this version\r\n";
    assert_eq!(query(&log, b"2"), bad);
    assert_eq!(query(&log, b"2*1\r\n$3\r\nGET"), bad);
    let versions = array(&["\0versions", "a", "b"]);
    assert_eq!(
        query(&log, &[b"3", &versions[..]].concat()),
        "*2\r\n$1\r\n1\r\n$1\r\n0\r\n"
    );
    assert_eq!(log.redis("GET a"), "$1\r\n1\r\n");
}

/// Whoever adds a row adds what it does.
#[test]
fn every_row_of_the_table_is_served() {
    let mut log = Log::new();
    let list = log.transact(&[], &["COMMAND LIST"]);
    let names = list
        .split("\r\n")
        .filter(|line| !line.starts_with(['*', '$', '\0']));
    let mut served = 0;
    for name in names.filter(|name| !name.is_empty()) {
        let spec = spec(name.as_bytes()).unwrap();
        if spec.kind == Kind::Connection || !spec.subcommands.is_empty() {
            continue;
        }
        let least = spec.arity.unsigned_abs() as usize;
        let answer = log.redis(&[vec![name], vec!["1"; least - 1]].concat().join(" "));
        assert!(
            !answer.contains("not served") && !answer.contains("wrong number"),
            "{answer}"
        );
        served += 1;
    }
    assert!(served > 50, "{served}");
    for question in ["ENCODING", "REFCOUNT", "FREQ", "IDLETIME"] {
        log.redis("SET a 1");
        assert!(
            !log.redis(&format!("OBJECT {question} a"))
                .contains("not served")
        );
    }
    assert!(log.redis("OBJECT HELP").starts_with("*11\r\n"));
}
