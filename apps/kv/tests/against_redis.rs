//! The same conversation with Redis itself and with our parser and store: the same bytes come back, in both
//! versions of the protocol. Where the two differ on purpose stands in the crate's first page.
mod redis_commands;
mod redis_oracle;
mod seeds;

use std::collections::{BTreeMap, BTreeSet};

use quorumwire_kv::redis::{Kind, Resp, Script, spec};
use quorumwire_kv::{REPLY_BYTES_MAX, WORK_MAX};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use redis_commands::{command, key};
use redis_oracle::{Connection, Ours, Redis, answer_end, array, now_ms, parts};

const COMMANDS: u32 = 100_000;

/// Both, and connections to Redis that speak either version.
struct Pair {
    connections: [(Resp, Connection); 2],
    ours: Ours,
    _redis: Redis,
}

impl Pair {
    fn new() -> Self {
        let redis = Redis::start();
        let mut newer = redis.connect();
        newer.ask(&words("HELLO 3"));
        Self {
            connections: [(Resp::V2, redis.connect()), (Resp::V3, newer)],
            ours: Ours::new(now_ms()),
            _redis: redis,
        }
    }

    /// Asks both and compares.
    fn ask(&mut self, version: usize, words: &[Vec<u8>]) -> Vec<u8> {
        let (resp, connection) = &mut self.connections[version];
        self.ours.log_time_ms = now_ms();
        let ours = self.ours.ask(*resp, words);
        let theirs = connection.ask(words);
        compare(words, &ours, &theirs);
        if spec(&words[0]).is_some_and(|spec| spec.kind == Kind::Write) && words.len() > 1 {
            let get = [b"GET".to_vec(), words[1].clone()];
            let after = connection.ask(&get);
            assert_eq!(
                self.ours.ask(*resp, &get).escape_ascii().to_string(),
                after.escape_ascii().to_string(),
                "after {}",
                array(words).escape_ascii()
            );
        }
        ours
    }

    fn ask_text(&mut self, text: &str) -> Vec<u8> {
        self.ask(0, &words(text))
    }

    /// A transaction, after a command that may change what it watches.
    fn transact(
        &mut self,
        version: usize,
        watched: &[Vec<u8>],
        before: &[Vec<u8>],
        commands: &[Vec<Vec<u8>>],
    ) -> Vec<u8> {
        let list = if watched.is_empty() {
            Vec::new()
        } else {
            let mut watch = words("WATCH");
            watch.extend_from_slice(watched);
            self.connections[version].1.ask(&watch);
            self.ours.watch(watched)
        };
        self.ask(version, before);
        let (resp, connection) = &mut self.connections[version];
        connection.ask(&words("MULTI"));
        let mut text = Vec::new();
        let mut queued = Vec::new();
        for command in commands {
            // What is no command is not queued by either.
            if connection.ask(command) == b"+QUEUED\r\n" {
                text.extend(array(command));
                queued.push(command);
            } else {
                connection.ask(&words("DISCARD"));
                return Vec::new();
            }
        }
        self.ours.log_time_ms = now_ms();
        let ours = self.ours.apply(&Script {
            resp: *resp,
            is_transaction: true,
            watched: &list,
            commands: &text,
        });
        let theirs = connection.ask(&words("EXEC"));
        if holds(&ours, &too_long()) {
            assert!(theirs.len() > REPLY_BYTES_MAX - 4096, "{}", theirs.len());
            // What was refused has changed nothing here.
            self.ask(version, &words("FLUSHALL"));
            return ours;
        }
        if holds(&ours, &too_much_work()) {
            self.ask(version, &words("FLUSHALL")); // likewise
            return ours;
        }
        if ours.starts_with(b"*") && theirs.starts_with(b"*") && ours != b"*-1\r\n" {
            let (ours, theirs) = (parts(&ours), parts(&theirs));
            assert_eq!(ours.len(), theirs.len());
            for ((command, ours), theirs) in queued.iter().zip(ours).zip(theirs) {
                compare(command, ours, theirs);
            }
        } else {
            assert_eq!(
                ours.escape_ascii().to_string(),
                theirs.escape_ascii().to_string(),
                "after {}",
                array(before).escape_ascii()
            );
        }
        ours
    }

    /// All keys as `SCAN` gives them, a few at a time.
    fn scan_both(&mut self, options: &str) -> BTreeSet<Vec<u8>> {
        let (resp, connection) = &mut self.connections[0];
        let ours = scan(options, |words| self.ours.ask(*resp, words));
        let theirs = scan(options, |words| connection.ask(words));
        assert_eq!(ours, theirs, "{options}");
        ours
    }
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn scan(options: &str, mut ask: impl FnMut(&[Vec<u8>]) -> Vec<u8>) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let answer = ask(&words(format!("SCAN {cursor}{options}").trim_end()));
        let [next, keys] = parts(&answer)[..] else {
            panic!("{}", answer.escape_ascii());
        };
        found.extend(parts(keys).into_iter().map(<[u8]>::to_vec));
        String::from_utf8_lossy(next)
            .split("\r\n")
            .nth(1)
            .unwrap()
            .clone_into(&mut cursor);
        if cursor == "0" {
            return found;
        }
    }
}

/// What is said instead of an answer that Redis gives, however long.
fn too_long() -> Vec<u8> {
    format!("-ERR answer is longer than {REPLY_BYTES_MAX} bytes\r\n").into_bytes()
}

/// The same for work.
fn too_much_work() -> Vec<u8> {
    format!("-ERR more work than {WORK_MAX} bytes for one request or transaction\r\n").into_bytes()
}

fn holds(answer: &[u8], part: &[u8]) -> bool {
    answer.windows(part.len()).any(|window| window == part)
}

/// The same bytes, as far as they are the same when asked a moment later.
fn compare(words: &[Vec<u8>], ours: &[u8], theirs: &[u8]) {
    let name = String::from_utf8_lossy(&words[0]).to_ascii_lowercase();
    let is_error = ours.starts_with(b"-") || theirs.starts_with(b"-");
    let same = match name.as_str() {
        _ if ours == too_long() => theirs.len() > REPLY_BYTES_MAX,
        _ if is_error => ours == theirs,
        "ttl" | "pttl" | "expiretime" | "pexpiretime" => {
            let number = |answer: &[u8]| -> i64 {
                let text = std::str::from_utf8(&answer[1..]).unwrap();
                text.trim_end().parse().unwrap()
            };
            let (ours, theirs) = (number(ours), number(theirs));
            let tolerance = if name.starts_with('p') { 3000 } else { 3 };
            ours == theirs || (ours.min(theirs) > 0 && ours.abs_diff(theirs) < tolerance)
        }
        "keys" => {
            let sorted = |answer| parts(answer).into_iter().collect::<BTreeSet<_>>();
            sorted(ours) == sorted(theirs) && parts(ours).len() == parts(theirs).len()
        }
        "randomkey" => ours.len() > 5 && theirs.len() > 5 || ours == theirs,
        // Redis keeps a value that was changed in another way than one that was set as a whole, and
        // small numbers once for all who have them.
        "object" if ours != theirs => {
            ours.starts_with(b"$") && theirs.starts_with(b"$")
                || ours == b":1\r\n" && theirs.starts_with(b":")
        }
        _ => ours == theirs,
    };
    let request: Vec<String> = words
        .iter()
        .map(|word| word.escape_ascii().to_string())
        .collect();
    assert!(
        same,
        "{request:.1000?}\n  ours: {:.1000}\ntheirs: {:.1000}",
        ours.escape_ascii().to_string(),
        theirs.escape_ascii().to_string()
    );
}

fn count(reached: &mut seeds::Reached, words: &[Vec<u8>], answer: &[u8]) {
    let Some(spec) = spec(&words[0]) else {
        reached.count("unknown");
        return;
    };
    let kind = if answer.starts_with(b"-") {
        "fails"
    } else {
        "answers"
    };
    reached.count(&format!("{} {kind}", spec.name));
    reached.count(&format!("any {}", char::from(answer[0])));
}

/// Commands that are answered in no other way here.
const ALWAYS_FAIL: &[&str] = &["move"];

#[test]
fn random_commands_are_answered_as_by_redis() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut pair = Pair::new();
    let mut names = BTreeSet::new();
    for _ in 0..COMMANDS {
        let version = random.random_range(0..2);
        let words = command(&mut random);
        let answer = pair.ask(version, &words);
        count(&mut reached, &words, &answer);
        names.extend(spec(&words[0]).map(|spec| spec.name));
    }
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        reached.require(5, &[&format!("{name} fails")]);
        if !ALWAYS_FAIL.contains(&name) {
            reached.require(5, &[&format!("{name} answers")]);
        }
    }
    reached.require(
        50,
        &[
            "unknown", "any +", "any :", "any $", "any *", "any _", "any -",
        ],
    );
}

#[test]
fn random_transactions_are_answered_as_by_redis() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut pair = Pair::new();
    for _ in 0..3000 {
        let version = random.random_range(0..2);
        let watched: Vec<Vec<u8>> = (0..random.random_range(0..3))
            .map(|_| key(&mut random))
            .collect();
        let before = command(&mut random);
        if before.contains(&b"FAIL".to_vec()) {
            continue; // such a BITFIELD may make a value longer without Redis noticing that it changed
        }
        let commands: Vec<_> = (0..random.random_range(0..6))
            .map(|_| transacted(&mut random))
            .collect();
        let answer = pair.transact(version, &watched, &before, &commands);
        reached.count(match answer.as_slice() {
            b"" => "discarded",
            b"*-1\r\n" | b"_\r\n" => "changed before",
            b"*0\r\n" => "empty",
            _ => "done",
        });
    }
    reached.require(50, &["discarded", "changed before", "empty", "done"]);
}

/// A command, or one of a connection that may be part of a transaction.
fn transacted(random: &mut ChaCha8Rng) -> Vec<Vec<u8>> {
    let others = [
        "PING",
        "PING hello",
        "PING a b",
        "ECHO hello",
        "SELECT 0",
        "SELECT 1",
        "SELECT x",
        "SWAPDB 0 0",
        "SWAPDB x 0",
        "SWAPDB 0 x",
        "SWAPDB 0 1",
        "UNWATCH",
        "COMMAND GETKEYS GET a",
    ];
    if random.random_ratio(1, 8) {
        words(others[random.random_range(0..others.len())])
    } else {
        command(random)
    }
}

/// Edges that a random command seldom meets.
#[test]
fn limits_are_answered_as_by_redis() {
    let mut pair = Pair::new();
    let longest = "v".repeat(1 << 20);
    pair.ask_text(&format!("SET long {longest}"));
    for text in [
        "SETBIT bits 8388607 1",
        "SETBIT bits 8388608 1",
        "GETBIT bits 8388607",
        "BITPOS bits 1",
        "BITPOS bits 0 -1",
        "BITCOUNT bits 0 -1",
        "BITCOUNT bits 8388607 8388607 BIT",
        "BITOP NOT other bits",
        "BITOP OR other bits long",
        "BITCOUNT other",
        "BITFIELD bits GET i64 8388544 GET u1 8388607 GET u1 8388608",
        "SETRANGE range 1048575 x",
        "SETRANGE range 1048576 x",
        "SETRANGE none 1048576 ",
        "STRLEN range",
        "APPEND long x",
        "APPEND range x",
        "GETRANGE long 1048570 2000000",
        "COPY long long2",
        "STRLEN long2",
        "INCRBYFLOAT long 1",
        "INCR long",
        "MGET long none",
        "SET a 10 EX 9223372036854775",
        "SET a 10 EX 9223372036854776",
        "SET a 10 PX 9223372036854775807",
        "SET a 10 PXAT 9223372036854775000",
        "PEXPIRETIME a",
        "EXPIRE a -9223372036854775808",
        "EXPIRE a -9223372036854775",
        "EXISTS a",
    ] {
        pair.ask_text(text);
    }
    let refused = pair
        .ours
        .ask(Resp::V2, &words("BITFIELD bits SET u2 8388607 1"));
    assert!(refused.starts_with(b"-ERR string exceeds"));
    for (value, encoding) in [("12", "int"), ("012", "embstr"), (&longest[..44], "embstr")] {
        pair.ask_text(&format!("SET a {value}"));
        let answer = pair.ask_text("OBJECT ENCODING a");
        assert!(
            answer.ends_with(format!("\r\n{encoding}\r\n").as_bytes()),
            "{value}"
        );
    }
}

#[test]
fn at_the_memory_limit_commands_are_refused_as_by_redis() {
    let mut both = Pair::new();
    for line in ["SET a 1", "SET b 2", "SET c 3", "SET d 4"] {
        both.ask_text(line);
    }
    let limit = |both: &mut Pair, bytes: u64| {
        let line = format!("CONFIG SET maxmemory {bytes}");
        assert_eq!(both.connections[1].1.ask(&words(&line)), b"+OK\r\n");
        both.ours.limit(bytes);
    };
    limit(&mut both, 1);
    let mut refused = 0;
    for line in [
        "SET a 2",
        "SET new 1",
        "SETNX new 1",
        "SETEX new 10 1",
        "GETSET a 1",
        "MSET a 1 new 1",
        "APPEND a 1",
        "SETRANGE a 0 1",
        "INCR a",
        "DECRBY a 2",
        "INCRBYFLOAT a 1.5",
        "SETBIT a 1 1",
        "BITOP NOT a b",
        "BITFIELD a SET u8 0 1",
        "COPY a new",
        "GET a",
        "STRLEN a",
        "EXPIRE a 100",
        "PERSIST a",
        "GETEX a PERSIST",
        "RENAME a e",
        "GETDEL b",
        "DEL c",
        "UNLINK c",
    ] {
        refused += u32::from(both.ask_text(line).starts_with(b"-OOM"));
    }
    assert_eq!(refused, 15);
    for (commands, is_refused) in [(["GET d", "SET d 5"], true), (["GET d", "DEL d"], false)] {
        limit(&mut both, 0);
        let theirs = &mut both.connections[0].1;
        theirs.ask(&words("MULTI"));
        for line in commands {
            theirs.ask(&words(line)); // queued before there is a limit: at it, Redis queues nothing
        }
        limit(&mut both, 1);
        let theirs = both.connections[0].1.ask(&words("EXEC"));
        let ours = both.ours.apply(&Script {
            resp: Resp::V2,
            is_transaction: true,
            watched: b"",
            commands: &commands.map(|line| array(&words(line))).concat(),
        });
        assert_eq!(
            ours.escape_ascii().to_string(),
            theirs.escape_ascii().to_string()
        );
        assert_eq!(ours.starts_with(b"-EXECABORT"), is_refused);
    }
}

#[test]
fn scans_find_all_keys() {
    let mut pair = Pair::new();
    for number in 0..2000 {
        pair.ask_text(&format!("SET key{number} value"));
    }
    for options in [
        "",
        " COUNT 1",
        " COUNT 100",
        " COUNT 100000",
        " TYPE string",
        " TYPE list",
    ] {
        let found = pair.scan_both(options);
        assert_eq!(
            found.len(),
            if options.ends_with("list") { 0 } else { 2000 }
        );
    }
    assert_eq!(pair.scan_both(" MATCH key1?5* COUNT 50").len(), 110);
    for bad in [
        "SCAN",
        "SCAN x",
        "SCAN 0 COUNT",
        "SCAN 0 COUNT 0",
        "SCAN 0 COUNT x",
        "SCAN 0 x 1",
        "SCAN 1x",
        "SCAN 99999999999999999999",
        "SCAN 0 MATCH",
    ] {
        assert!(pair.ask_text(bad).starts_with(b"-"), "{bad}");
    }
}

/// Subcommands that this version of Redis does not have.
const ARE_NEWER: [&str; 2] = ["client|no-touch", "client|setinfo"];

/// Containers of which nothing is served.
const ARE_EMPTY_HERE: [&str; 1] = ["debug"];

#[test]
fn the_command_table_is_that_of_redis() {
    let mut pair = Pair::new();
    let all = pair.ours.ask(Resp::V2, &words("COMMAND LIST"));
    let names: Vec<String> = parts(&all).into_iter().map(text_of).collect();
    assert!(names.len() > 70);
    let count = pair.ours.ask(Resp::V2, &words("COMMAND COUNT"));
    assert_eq!(count, format!(":{}\r\n", names.len()).into_bytes());
    for resp in [Resp::V2, Resp::V3] {
        for text in [
            "COMMAND",
            "COMMAND INFO",
            "COMMAND DOCS",
            "COMMAND DOCS get object nosuch object|help",
            "COMMAND HELP",
            "COMMAND LIST FILTERBY ACLCAT string",
        ] {
            let answer = pair.ours.ask(resp, &words(text));
            assert_eq!(answer_end(&answer), Some(answer.len()), "{text}");
            assert!(parts(&answer).len() > 4, "{text}");
        }
    }
    for version in 0..2 {
        for name in &names {
            // A container's row has its subcommands in an order that Redis chooses anew whenever it starts.
            let subcommands = spec(name.as_bytes()).unwrap().subcommands;
            if subcommands.is_empty() && !ARE_EMPTY_HERE.contains(&name.as_str()) {
                pair.ask(version, &words(&format!("COMMAND INFO {name}")));
            }
            for subcommand in subcommands {
                if !ARE_NEWER.contains(&subcommand.name) {
                    pair.ask(
                        version,
                        &words(&format!("COMMAND INFO {}", subcommand.name)),
                    );
                }
            }
        }
        for text in [
            "COMMAND INFO nosuch object|encoding get command|info object|nosuch",
            "COMMAND GETKEYS get a",
            "COMMAND GETKEYS nosuch a",
            "COMMAND GETKEYS ping a",
            "COMMAND GETKEYS mset a b c d",
            "COMMAND GETKEYS set a",
            "COMMAND GETKEYS bitop and a b c",
            "COMMAND GETKEYS rename a b",
            "COMMAND GETKEYS object encoding a",
            "COMMAND GETKEYSANDFLAGS set a b",
            "COMMAND GETKEYSANDFLAGS set a b get",
            "COMMAND GETKEYSANDFLAGS mget a b",
            "COMMAND GETKEYSANDFLAGS bitfield a get u1 1",
            "COMMAND GETKEYSANDFLAGS bitfield a set u1 1 1",
            "COMMAND LIST FILTERBY PATTERN getr*",
            "COMMAND LIST FILTERBY PATTERN GETR*",
            "COMMAND LIST FILTERBY ACLCAT nosuch",
            "COMMAND LIST FILTERBY MODULE x",
            "COMMAND LIST FILTERBY x x",
            "COMMAND LIST x PATTERN getr*",
            "COMMAND LIST x",
            "COMMAND COUNT x",
            "COMMAND NOSUCH",
            "COMMAND GETKEYS",
        ] {
            pair.ask(version, &words(text));
        }
    }
}

/// How a command is written is what Redis says; what it does is told in other words, and how long it takes in
/// fewer.
#[test]
fn commands_are_documented_as_by_redis() {
    let mut pair = Pair::new();
    let mut with_arguments = 0;
    for (resp, connection) in &mut pair.connections {
        let all = pair.ours.ask(*resp, &words("COMMAND LIST"));
        let all: Vec<_> = parts(&all).into_iter().map(text_of).collect();
        let rows = all.iter().map(|name| spec(name.as_bytes()).unwrap());
        for row in rows.flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            if ARE_NEWER.contains(&row.name) {
                continue;
            }
            let line = words(&format!("COMMAND DOCS {}", row.name));
            let mut ours = documented(&pair.ours.ask(*resp, &line));
            let mut theirs = documented(&connection.ask(&line));
            for told_otherwise in ["summary", "complexity", "subcommands"] {
                ours.remove(told_otherwise);
                theirs.remove(told_otherwise);
            }
            theirs.remove("history");
            if row.name == "debug" {
                theirs.remove("doc_flags");
            }
            assert_eq!(ours, theirs, "{}", row.name);
            with_arguments += usize::from(ours.contains_key("arguments"));
        }
    }
    assert!(with_arguments > 150, "{with_arguments}");
}

/// What `COMMAND DOCS` says of one command, part by part.
fn documented(answer: &[u8]) -> BTreeMap<String, String> {
    let all = parts(answer);
    let [_, document] = all[..] else {
        panic!("{}", answer.escape_ascii());
    };
    let document = parts(document);
    let (pairs, rest) = document.as_chunks::<2>();
    assert!(rest.is_empty());
    let pair = |[name, value]: &[&[u8]; 2]| (text_of(name), value.escape_ascii().to_string());
    pairs.iter().map(pair).collect()
}

/// What a string says.
fn text_of(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.split("\r\n").nth(1).unwrap().to_owned()
}
