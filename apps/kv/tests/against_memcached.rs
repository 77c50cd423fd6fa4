//! The same conversation with memcached itself and with our parser and store: the same bytes come back,
//! but for the numbers of `gets`. Where the two differ on purpose stands in the crate's first page.
mod in_process;
mod meta;
mod seeds;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use in_process::{Connection, Server};
use quorumwire_kv::memcached::{COMMAND_LINE_BYTES_MAX, Read as ReadRequest, ReadKind};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

const COMMANDS: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Answered with [`MARK`]; no value of these tests contains that.
const MARKER: &[u8] = b"mn\r\n";
const MARK: &[u8] = b"MN\r\n";

/// A memcached of our own; it ends with the test, also with one that fails.
struct Memcached {
    process: Child,
    stream: UnixStream,
    socket: PathBuf,
    _directory: TempDir,
}

impl Drop for Memcached {
    fn drop(&mut self) {
        // It may have ended already; there is nothing else to be done here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Without threads that hold items for a moment: while one does, `incr` fills no blanks up.
const QUIET: [&str; 2] = ["-o", "no_lru_maintainer,no_lru_crawler"];

impl Memcached {
    fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("memcached");
        let process = Command::new("memcached")
            .arg("-s")
            .arg(&socket)
            .args(["-m", "256", "-M", "-t", "1", "-u", "root"])
            .args(options)
            .stdin(Stdio::null())
            .spawn()
            .expect("this test needs the program memcached: run `make setup`");
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(
                    Instant::now() < deadline,
                    "memcached does not start: {error}"
                ),
            }
            thread::yield_now();
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            process,
            stream,
            socket,
            _directory: directory,
        }
    }

    /// What it says on a connection of its own, and whether it then hangs up by itself.
    fn hear(&self, request: &[u8]) -> (Vec<u8>, bool) {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&[request, MARKER].concat()).unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        while !answer.ends_with(MARK) {
            match stream.read(&mut buffer) {
                Ok(0) => return (answer, true),
                Ok(bytes) => answer.extend_from_slice(&buffer[..bytes]),
                // It has closed without having read all of it.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return (answer, true),
                Err(error) => panic!("{error} after {}", request.escape_ascii()),
            }
        }
        answer.truncate(answer.len() - MARK.len());
        (answer, false)
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.stream.write_all(&[request, MARKER].concat()).unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        while !answer.ends_with(MARK) {
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("memcached hung up after {}", request.escape_ascii()),
                Ok(bytes) => answer.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error} after {}", request.escape_ascii()),
            }
        }
        answer.truncate(answer.len() - MARK.len());
        answer
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// Whether memcached refuses because its crawler, a thread of its own, still works for the line before:
/// `disable` does not wait until the thread has ended, and until then `enable` fails.
fn is_crawler_not_ready(answer: &[u8]) -> bool {
    answer.starts_with(b"BUSY ") || answer.starts_with(b"ERROR failed to start lru crawler thread")
}

/// Both, and what their numbers for the same value are.
struct Pair {
    memcached: Memcached,
    ours: Server,
    /// For each key, the numbers that the last `gets` showed: theirs and ours.
    uniques: HashMap<String, (u64, u64)>,
}

impl Pair {
    fn new() -> Self {
        Self::with(Memcached::start(&QUIET))
    }

    fn with(memcached: Memcached) -> Self {
        Self {
            memcached,
            ours: Server::new(now_ms()),
            uniques: HashMap::new(),
        }
    }

    /// Asks both and compares; `ours` may differ from `theirs` in the number of a `cas`. What comes
    /// back is the answer without numbers.
    fn ask_with(&mut self, theirs: &[u8], ours: &[u8], data_runs_as_command: bool) -> String {
        let mut their_answer = self.memcached.ask(theirs);
        let begun = Instant::now();
        while is_crawler_not_ready(&their_answer) && begun.elapsed() < PATIENCE {
            their_answer = self.memcached.ask(theirs);
        }
        let mut our_answer = self.ours.receive(&mut Connection::default(), ours);
        if data_runs_as_command {
            our_answer.extend_from_slice(b"ERROR\r\n");
        }
        if ours.starts_with(b"gets ") || ours.starts_with(b"gats ") {
            their_answer = self.take_uniques(&their_answer, true);
            our_answer = self.take_uniques(&our_answer, false);
        }
        let theirs = theirs.escape_ascii();
        assert_eq!(
            our_answer.escape_ascii().to_string(),
            their_answer.escape_ascii().to_string(),
            "to {theirs}"
        );
        String::from_utf8_lossy(&our_answer).into_owned()
    }

    fn ask(&mut self, request: &str) -> String {
        self.ask_with(request.as_bytes(), request.as_bytes(), false)
    }

    /// Whether `line` counts with a value of 2^63 or more: there memcached also searches the memory
    /// behind the value for a minus, and refuses the number if an older item left one.
    fn memcached_looks_behind_the_value(&mut self, line: &str) -> bool {
        let mut words = line.split_whitespace();
        let (Some(name @ ("incr" | "decr" | "ma")), Some(key)) = (words.next(), words.next())
        else {
            return false;
        };
        let is_base64 = name == "ma" && words.any(|word| word == "b");
        let get = format!("mg {key} v{}\r\n", if is_base64 { " b" } else { "" });
        let mut answer = Vec::new();
        let read = ReadRequest::from_line(get.trim_end().as_bytes()).unwrap();
        let ReadKind::Meta(meta) = read.kind() else {
            panic!("{read:?}");
        };
        self.ours.store.answer_without_win(&meta, &mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let value = answer.split("\r\n").nth(1).unwrap_or_default();
        value
            .trim()
            .parse()
            .is_ok_and(|number: u64| number >= 1 << 63)
    }

    /// Takes the numbers out of an answer to `gets` and remembers them; a value that has not changed
    /// for one side must not have changed for the other.
    fn take_uniques(&mut self, answer: &[u8], theirs: bool) -> Vec<u8> {
        let mut without = Vec::new();
        let mut rest = answer;
        while rest.starts_with(b"VALUE ") {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap();
            let head = String::from_utf8(rest[..end - 1].to_vec()).unwrap();
            let [value, key, flags, bytes, unique] = head.split(' ').collect::<Vec<_>>()[..] else {
                panic!("no number in {head:?}");
            };
            let unique: u64 = unique.parse().unwrap();
            let known = self.uniques.entry(key.to_owned()).or_default();
            let changed = if theirs {
                let changed = known.0 != unique;
                known.0 = unique;
                changed
            } else {
                let changed = known.1 != unique;
                known.1 = unique;
                changed
            };
            let data_end = end + 1 + bytes.parse::<usize>().unwrap() + 2;
            without.extend(format!("{value} {key} {flags} {bytes} changed:{changed}\r\n").bytes());
            without.extend_from_slice(&rest[end + 1..data_end]);
            rest = &rest[data_end..];
        }
        without.extend_from_slice(rest);
        without
    }
}

fn pick<'a>(random: &mut ChaCha8Rng, choices: &[&'a str]) -> &'a str {
    choices[random.random_range(0..choices.len())]
}

fn key(random: &mut ChaCha8Rng) -> String {
    match random.random_range(0..20) {
        0 => "k".repeat(250),
        1 => "noreply".into(),
        _ => format!("key{}", random.random_range(0..12)),
    }
}

fn keys(random: &mut ChaCha8Rng, most: usize) -> String {
    let keys: Vec<_> = (0..random.random_range(1..=most))
        .map(|_| key(random))
        .collect();
    keys.join(pick(random, &[" ", "  "]))
}

/// Not blanks alone and without a minus: there memcached also reads the memory behind the value.
fn value(random: &mut ChaCha8Rng) -> String {
    match random.random_range(0..8) {
        0 => random.random_range(0..12_u64).to_string(),
        1 => random.random::<u64>().to_string(),
        2 => (u64::MAX - random.random_range(0..3)).to_string(),
        3 => "v".repeat(random.random_range(0..3000)),
        4 => pick(
            random,
            &["", "a\r\nb", " 7", "+7", "9 9", "7 7", "7\t", "7x", "0x7"],
        )
        .into(),
        5 => "0".repeat(random.random_range(1..30)) + "9",
        _ => pick(random, &["END", "same", "VALUE a 0 1", "99", "100"]).into(),
    }
}

/// Times far from now: the two clocks are not the same.
fn exptime(random: &mut ChaCha8Rng) -> String {
    let later = now_ms() / 1000 + 100_000;
    match random.random_range(0..10) {
        0..5 => "0".into(),
        5 => "1000".into(),
        6 => pick(random, &["2592000", "+1000", "01000"]).into(),
        7 => pick(random, &["2592001", "1000000000"]).into(),
        8 => pick(random, &["-1", "-2147483648"]).into(),
        _ => later.to_string(),
    }
}

/// A good command other than `cas`.
fn command(random: &mut ChaCha8Rng) -> String {
    let key = key(random);
    let noreply = pick(random, &["", "", "", " noreply"]);
    let end = pick(random, &["\r\n", "\r\n", "\n", "  \r\n"]);
    match random.random_range(0..100) {
        0..45 => {
            let how = pick(
                random,
                &["set", "set", "set", "add", "replace", "append", "prepend"],
            );
            let flags = pick(random, &["0", "1", "4294967295", "+3", "007"]);
            let (exptime, value) = (exptime(random), value(random));
            let bytes = value.len();
            format!("{how} {key} {flags} {exptime} {bytes}{noreply}{end}{value}\r\n")
        }
        45..62 => {
            let how = pick(random, &["incr", "decr"]);
            let delta = pick(
                random,
                &["0", "1", "9", "90", "+1", "-0", "18446744073709551615"],
            );
            format!("{how} {key} {delta}{noreply}{end}")
        }
        62..68 => format!("touch {key} {}{noreply}{end}", exptime(random)),
        68..74 => format!("delete {key}{}{noreply}{end}", pick(random, &["", " 0"])),
        74..82 => {
            let how = pick(random, &["gat", "gats"]);
            // We refuse a longer line; memcached does when it comes in pieces.
            let keys = keys(random, COMMAND_LINE_BYTES_MAX / 251 - 1);
            format!("{how} {} {keys}{end}", exptime(random))
        }
        82..99 => format!(
            "{} {}{end}",
            pick(random, &["get", "gets"]),
            keys(random, 30)
        ),
        _ => format!(
            "flush_all{}{noreply}{end}",
            pick(random, &["", " 0", " -1"])
        ),
    }
}

/// Lines that are not quite commands, and how memcached answers them is to be found out.
const ODD_LINES: &[&str] = &[
    "",
    " ",
    "get",
    "gets",
    "gat",
    "gat 0",
    "gat x",
    "gat x key1",
    "touch",
    "touch key1",
    "touch key1 x",
    "touch key1 0 0",
    "touch key1 0 0 0",
    "touch key1 noreply",
    "incr",
    "incr key1",
    "incr key1 x",
    "incr key1 -1",
    "incr key1 1x",
    "incr key1 18446744073709551616",
    "incr key1 noreply",
    "incr key1 1 1",
    "incr key1 1 1 1",
    "incr key1 1 noreply noreply",
    "decr key1 x noreply",
    "delete",
    "delete key1 1",
    "delete key1 00",
    "delete key1 x",
    "delete key1 0 x",
    "delete key1 x noreply",
    "delete key1 0 0 0",
    "delete noreply noreply",
    "flush_all x",
    "flush_all x noreply",
    "flush_all 0 x",
    "flush_all noreply noreply",
    "flush_all 0 0 0",
    "verbosity",
    "verbosity 1",
    "verbosity 0 noreply",
    "verbosity x",
    "verbosity noreply",
    "verbosity 0 0",
    "verbosity 0 0 0",
    "version",
    "version x",
    "stats reset",
    "stats no_such_thing",
    "shutdown",
    "GET key1",
    "Get key1",
    "get\tkey1",
    "getx key1",
    "set1 key1 0 0 1",
    "set",
    "set key1",
    "set key1 0 0",
    "set key1 0 0 -1",
    "set key1 0 0 x",
    "set key1 0 0 2147483647",
    "set key1 0 0 noreply",
    "set key1 0 0 1 x noreply",
    "cas key1 0 0 1",
    "cas key1 0 0 x 1",
    "cas key1 0 0 1 1 x noreply",
    "add key1 x",
    "x",
    "xx",
    "slabs",
    "lru",
    "noreply",
];

/// Storage lines that are refused for another reason than their length. Memcached would go on with
/// the data as the next command, we throw it away.
const REFUSED_WITH_DATA: &[&str] = &[
    "set key1 x 0 4",
    "set key1 -1 0 4",
    "add key1 0 x 4",
    "replace key1 0 0x1 4",
    "cas key1 0 0 4 x",
    "cas key1 0 0 4 -1",
    "cas key1 0 0 4 noreply",
    "append key1 x 0 4 noreply",
];

#[test]
fn random_commands_are_answered_as_by_memcached() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut pair = Pair::new();
    for _ in 0..COMMANDS {
        let answer = match random.random_range(0..100) {
            0..75 => {
                let line = command(&mut random);
                if pair.memcached_looks_behind_the_value(&line) {
                    continue;
                }
                pair.ask(&line)
            }
            75..83 => {
                let key = key(&mut random);
                let known = pair
                    .uniques
                    .get(&key)
                    .copied()
                    .unwrap_or((u64::MAX, u64::MAX));
                let (exptime, value) = (exptime(&mut random), value(&mut random));
                let noreply = pick(&mut random, &["", " noreply"]);
                let text = |unique| {
                    let bytes = value.len();
                    format!("cas {key} 6 {exptime} {bytes} {unique}{noreply}\r\n{value}\r\n")
                };
                pair.ask_with(text(known.0).as_bytes(), text(known.1).as_bytes(), false)
            }
            83..95 => {
                let line = pick(&mut random, ODD_LINES);
                if pair.memcached_looks_behind_the_value(line) {
                    continue;
                }
                pair.ask(&format!("{line}\r\n"))
            }
            95..98 => {
                let line = pick(&mut random, REFUSED_WITH_DATA);
                let text = format!("{line}\r\ndata\r\n");
                pair.ask_with(text.as_bytes(), text.as_bytes(), true)
            }
            98 => {
                let bytes = random.random_range(1..5);
                pair.ask(&format!(
                    "set key1 0 0 {bytes}\r\n{}\r\n",
                    "x".repeat(bytes + 3)
                ))
            }
            _ => {
                let line = format!(
                    "{} {} 0",
                    pick(&mut random, &["get", "delete", "touch"]),
                    "k".repeat(251)
                );
                pair.ask(&format!("{line}\r\n"))
            }
        };
        pair.ours.log_time_ms += 1;
        let kind = answer.trim_end_matches("\r\n");
        reached.count(if kind.starts_with("VALUE") {
            "VALUE"
        } else {
            kind
        });
    }
    reached.require(
        5,
        &[
            "STORED",
            "NOT_STORED",
            "EXISTS",
            "NOT_FOUND",
            "DELETED",
            "TOUCHED",
            "OK",
            "END",
            "VALUE",
            "ERROR",
            "",
            "RESET",
            "0",
            "CLIENT_ERROR bad command line format",
            "CLIENT_ERROR bad command line format\r\nERROR",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            "CLIENT_ERROR bad data chunk\r\nERROR",
            "CLIENT_ERROR invalid exptime argument",
            "CLIENT_ERROR invalid numeric delta argument",
            "CLIENT_ERROR cannot increment or decrement non-numeric value",
        ],
    );
}

/// In memory that nothing was stored in before: see [`value`].
#[test]
fn a_value_is_a_number_when_memcached_says_so() {
    let values = [
        "",
        "0",
        "-",
        "-0",
        "-1",
        "-7 ",
        "+",
        "+-1",
        "+7",
        "--7",
        "7-",
        "7 -",
        " 7",
        "\t7",
        "7\t",
        "7\0x",
        "7\r\n7",
        "7x",
        "x7",
        "0x7",
        "1e3",
        "7.0",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551615 -",
        "9223372036854775807 -",
        "9223372036854775808 -",
        "-9223372036854775808",
        "-9223372036854775809",
        "-18446744073709551615",
        "-18446744073709551616",
        "000000000000000000000000000000000000007",
    ];
    let mut pair = Pair::new();
    let mut numbers = 0;
    for (index, value) in values.into_iter().enumerate() {
        pair.ask(&format!(
            "set key{index} 0 0 {}\r\n{value}\r\n",
            value.len()
        ));
        let answer = pair.ask(&format!("incr key{index} 1\r\n"));
        numbers += u32::from(answer.trim_end().parse::<u64>().is_ok());
        pair.ask(&format!("get key{index}\r\n"));
    }
    assert!(
        (10..30).contains(&numbers),
        "{numbers} of the values are numbers"
    );
}

#[test]
fn large_values_are_answered_as_by_memcached() {
    let mut pair = Pair::new();
    let large = "v".repeat(600_000);
    let too_large = "v".repeat((1 << 20) + 1);
    pair.ask(&format!("set a 1 0 600000\r\n{large}\r\n"));
    pair.ask("get a a\r\n");
    assert_eq!(
        pair.ask(&format!("append a 0 0 600000\r\n{large}\r\n")),
        "NOT_STORED\r\n"
    );
    assert_eq!(
        pair.ask(&format!("prepend a 0 0 600000\r\n{large}\r\n")),
        "NOT_STORED\r\n"
    );
    pair.ask("get a\r\n");
    for how in ["add", "append", "replace", "set"] {
        let answer = pair.ask(&format!("{how} b 0 0 1048577\r\n{too_large}\r\n"));
        assert_eq!(answer, "SERVER_ERROR object too large for cache\r\n");
        assert_eq!(
            pair.ask(&format!("{how} b 0 0 1048577 noreply\r\n{too_large}\r\n")),
            ""
        );
    }
    for keys in [
        "key ".repeat(10_000),
        "a-key-of-some-length-0123456789 ".repeat(30_000),
    ] {
        for how in ["get", "gets"] {
            assert_eq!(pair.ask(&format!("{how} {keys}\r\n")), "END\r\n");
        }
    }
}

/// What tunes memcached is answered in the same words, although there is nothing to be tuned.
const TUNING: &[&str] = &[
    "stats cachedump",
    "stats cachedump 1",
    "stats cachedump 1 1",
    "stats cachedump 63 0",
    "stats cachedump 64 1",
    "stats cachedump x 1",
    "stats cachedump 1 x",
    "stats cachedump 1 -1",
    "stats cachedump 1 1 1",
    "cache_memlimit",
    "cache_memlimit 50",
    "cache_memlimit 50 noreply",
    "cache_memlimit 7",
    "cache_memlimit x",
    "cache_memlimit 4000000000",
    "cache_memlimit 1 2 3",
    "verbosity",
    "verbosity x",
    "verbosity x noreply",
    "verbosity -1",
    "verbosity 1 2",
    "slabs",
    "slabs automove",
    "slabs automove x",
    "slabs automove x noreply",
    "slabs automove 0",
    "slabs automove 1",
    "slabs automove 2",
    "slabs automove 3",
    "slabs automove -1",
    "slabs automove 1 noreply",
    "slabs automove 1 2",
    "slabs automove noreply",
    "slabs automove ratio",
    "slabs automove ratio x",
    "slabs automove ratio 0.5",
    "slabs automove ratio 0.5 noreply",
    "slabs automove ratio noreply",
    "slabs automove window 10",
    "slabs reassign",
    "slabs reassign 1",
    "slabs reassign 1 2",
    "slabs reassign 1 1",
    "slabs reassign 39 0",
    "slabs reassign 40 1",
    "slabs reassign -1 2",
    "slabs reassign x y",
    "slabs reassign 1 2 noreply",
    "slabs x",
    "slabs x y",
    "slabs noreply",
    "lru",
    "lru x",
    "lru noreply",
    "lru mode",
    "lru mode flat",
    "lru mode segmented",
    "lru mode flat noreply",
    "lru mode x",
    "lru tune",
    "lru tune 10 25",
    "lru tune 10 25 0.1 2.0",
    "lru tune 10 71 0.1 2.0",
    "lru tune 10 25 0 1",
    "lru tune 10 25 x 1",
    "lru tune x y z a",
    "lru tune -1 25 1 1",
    "lru temp_ttl",
    "lru temp_ttl 0",
    "lru temp_ttl -1",
    "lru temp_ttl x",
    "lru_crawler",
    "lru_crawler x",
    "lru_crawler noreply",
    "lru_crawler crawl",
    "lru_crawler crawl all",
    "lru_crawler crawl 1",
    "lru_crawler crawl 1,63",
    "lru_crawler crawl 0",
    "lru_crawler crawl 64",
    "lru_crawler crawl x",
    "lru_crawler crawl ,",
    "lru_crawler crawl 1 2",
    "lru_crawler crawl noreply",
    "lru_crawler metadump",
    "lru_crawler metadump all",
    "lru_crawler metadump x",
    "lru_crawler sleep",
    "lru_crawler sleep 100",
    "lru_crawler sleep 1000001",
    "lru_crawler sleep x",
    "lru_crawler tocrawl",
    "lru_crawler tocrawl 100",
    "lru_crawler tocrawl x",
    "lru_crawler tocrawl 5 noreply",
    "lru_crawler mgdump all",
    "lru_crawler disable x",
    "lru_crawler disable",
    "lru_crawler enable",
    "watch",
    "watch x",
    "watch fetchers mutations",
    "watch noreply",
    "shutdown",
    "shutdown x",
    "misbehave",
    "extstore",
    "extstore x y",
    "no_such_thing x",
];

/// Beside a memcached that lets nobody watch, and one that lets nobody list its keys: so do we.
#[test]
fn what_tunes_memcached_is_answered_as_by_memcached() {
    let mut open = Pair::with(Memcached::start(&["-W"]));
    let mut closed = Pair::with(Memcached::start(&["-W", "-X"]));
    let mut kinds = std::collections::BTreeSet::new();
    for line in TUNING {
        let lists_keys = line.starts_with("lru_crawler metadump");
        let pair = if lists_keys { &mut closed } else { &mut open };
        let answer = pair.ask(&format!("{line}\r\n"));
        kinds.insert(answer);
    }
    assert!(kinds.len() > 15, "{kinds:?}");
}

/// A browser's request ends its connection, before what stands in its body could be run.
#[test]
fn browsers_are_hung_up_on_as_by_memcached() {
    let memcached = Memcached::start(&QUIET);
    for (line, hangs_up) in [
        ("POST / HTTP/1.1", true),
        ("GET / HTTP/1.1", true),
        ("PUT /a HTTP/1.0", true),
        ("POST HTTP/", true),
        ("HTTP/1.1", true),
        ("prefix a HTTP/1.1  ", true),
        ("get HTTP/1.1", false),
        ("mg HTTP/1.1", false),
        ("POST / HTTP/1.1 x", false),
        ("POST / HTTP", false),
        ("POST / http/1.1", false),
    ] {
        let request = format!("{line}\r\nset viacurl 0 0 5\r\nowned\r\n");
        let mut connection = Connection::default();
        let mut server = Server::new(now_ms());
        let ours = server.receive(&mut connection, request.as_bytes());
        assert_eq!(connection.closed, hangs_up, "{line}");
        assert_eq!(
            (ours, hangs_up),
            memcached.hear(request.as_bytes()),
            "{line}"
        );
    }
}

/// Waits for memcached's clock, by asking it, and moves ours.
#[test]
fn items_end_and_flushes_come_when_their_time_comes() {
    let mut pair = Pair::new();
    pair.ask("set stays 0 0 1\r\n1\r\n");
    pair.ask("set ends 0 3 1\r\n1\r\n");
    pair.ask("set touched 0 0 1\r\n1\r\n");
    pair.ask("touch touched 3\r\n");
    pair.ask("set saved 0 3 1\r\n1\r\n");
    pair.ask("gat 1000 saved\r\n");
    pair.ask("get stays ends touched saved\r\n");
    wait_for(&mut pair.memcached, "get ends touched\r\n", "END\r\n");
    pair.ours.log_time_ms += 3000;
    assert!(
        pair.ask("get stays ends touched saved\r\n")
            .starts_with("VALUE stays")
    );
    pair.ask("add ends 0 0 1\r\n2\r\n");

    pair.ask("flush_all 3\r\n");
    pair.ask("get stays ends touched saved\r\n");
    wait_for(
        &mut pair.memcached,
        "get stays ends touched saved\r\n",
        "END\r\n",
    );
    pair.ours.log_time_ms += 3000;
    assert_eq!(pair.ask("get stays ends touched saved\r\n"), "END\r\n");
}

fn wait_for(memcached: &mut Memcached, request: &str, answer: &str) {
    let deadline = Instant::now() + PATIENCE;
    while memcached.ask(request.as_bytes()) != answer.as_bytes() {
        assert!(
            Instant::now() < deadline,
            "memcached never answers {answer:?} to {request:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
