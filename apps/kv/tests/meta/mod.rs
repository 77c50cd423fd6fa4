//! Meta commands, random and odd ones, answered as memcached answers them.
use std::collections::HashMap;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::in_process::Connection;
use crate::{COMMANDS, Pair, command, pick, seeds, value};

/// Before this many commands a unique number may be as low as those that are meant to be too low.
const COMMANDS_BEFORE: u32 = 20;

/// Keys in base64, and what they stand for.
const BINARY_KEYS: [(&str, &str); 2] = [("YmluMQ==", "bin1"), ("YmluYXJ5", "binary")];

/// One meta command in words, but for the unique number it compares.
struct MetaCommand {
    name: &'static str,
    key: String,
    flags: Vec<String>,
    value: Option<String>,
}

impl MetaCommand {
    fn new(random: &mut ChaCha8Rng) -> Self {
        let name = ["mg", "mg", "ms", "md", "ma"][random.random_range(0..5)];
        let mut flags: Vec<String> = Vec::new();
        let mut may = |random: &mut ChaCha8Rng, percent: u32, choices: &[&str]| {
            if random.random_range(0..100) < percent {
                flags.push(pick(random, choices).to_owned());
            }
        };
        for flag in ["k", "O1", "t", "c", "q", "v", "P/x", "L"] {
            may(random, 25, &[flag]);
        }
        for flag in ["f", "s", "h", "l", "u", "s22"] {
            may(random, if name == "mg" { 15 } else { 2 }, &[flag]);
        }
        let ends = ["0", "1000", "100000", "-1", "+3000", "2592000"];
        let times: Vec<String> = ends.iter().map(|end| format!("T{end}")).collect();
        let mut times: Vec<&str> = times.iter().map(String::as_str).collect();
        // See `ask`: an item that has ended for one and not for the other would be counted apart.
        times.retain(|time| name != "ma" || *time != "T-1");
        may(random, 15, &times);
        may(random, 15, &["N0", "N1000", "N-1", "N100000"]);
        may(
            random,
            if name == "mg" { 15 } else { 2 },
            &["R500", "R1500", "R0", "R-1", "R50000"],
        );
        let compares = if name == "mg" { 2 } else { 25 };
        may(
            random,
            compares,
            &["C", "C", "C", "C0", "C1", "C9999999999"],
        );
        may(random, if name == "mg" { 2 } else { 30 }, &["I"]);
        let modes: &[&str] = match name {
            "ms" => &["ME", "MA", "MP", "MR", "MS", "MR", "M", "MX"],
            "ma" => &["MI", "M+", "MD", "M-", "MX", "MI", "MD"],
            _ => &["MS"],
        };
        may(random, if name == "ms" { 45 } else { 10 }, modes);
        may(random, 8, &["F5", "F+3", "F007", "F4294967295"]);
        may(random, 8, &["J5", "J18446744073709551615", "J+7", "Jx"]);
        may(random, 8, &["D5", "D0", "D18446744073709551615", "Dx"]);
        may(random, 1, &["z", "x", "E5", "S1", "k", "v"]);
        let is_binary = random.random_range(0..5) == 0;
        let key = if is_binary {
            flags.push("b".into());
            BINARY_KEYS[random.random_range(0..BINARY_KEYS.len())]
                .0
                .to_owned()
        } else {
            format!("key{}", random.random_range(0..5))
        };
        flags.shuffle(random);
        // One has shown too late that a line is bad: it has done then what it was to do.
        flags.truncate(16);
        Self {
            name,
            key,
            flags,
            value: (name == "ms").then(|| value(random)),
        }
    }

    fn text(&self, unique: u64) -> String {
        let mut words = vec![self.name.to_owned(), self.key.clone()];
        words.extend(self.value.as_ref().map(|value| value.len().to_string()));
        words.extend(self.flags.iter().map(|flag| match flag.as_str() {
            "C" => format!("C{unique}"),
            _ => flag.clone(),
        }));
        let block = self.value.as_ref().map(|value| format!("{value}\r\n"));
        format!("{}\r\n{}", words.join(" "), block.unwrap_or_default())
    }
}

/// The answer without what differs between any two servers: unique numbers, of which only is told whether
/// they are new; the time left, to the next thousand of seconds; who read what before.
fn comparable(pair: &mut Pair, key: &str, answer: &[u8], is_theirs: bool) -> String {
    let answer = String::from_utf8_lossy(answer).into_owned();
    let Some((head, rest)) = answer.split_once("\r\n") else {
        return answer;
    };
    if head.starts_with("CLIENT_ERROR") {
        return answer;
    }
    let mut words: Vec<String> = Vec::new();
    for (place, word) in head.split(' ').enumerate() {
        let (letter, token) = word.split_at(word.len().min(1));
        words.push(match letter {
            _ if place == 0 => word.to_owned(),
            "c" if token != "0" => {
                let unique: u64 = token.parse().unwrap();
                let known = pair.uniques.entry(key.to_owned()).or_default();
                let known = if is_theirs {
                    &mut known.0
                } else {
                    &mut known.1
                };
                let is_new = std::mem::replace(known, unique) != unique;
                format!("c(new: {is_new})")
            }
            "t" if token != "-1" => {
                let seconds: u64 = token.parse().unwrap();
                // What they let end in the past has a negative time left, cut to 32 bits.
                let seconds = if seconds > u64::from(u32::MAX / 2) {
                    0
                } else {
                    seconds
                };
                format!("t{}", (seconds + 500) / 1000 * 1000)
            }
            "h" | "l" => letter.to_owned(),
            // Some of their items forget that their key is written in base64.
            "k" => BINARY_KEYS
                .iter()
                .find(|(_, plain)| token == *plain)
                .map_or_else(|| word.to_owned(), |(text, _)| format!("k{text} b")),
            _ => word.to_owned(),
        });
    }
    format!("{}\r\n{rest}", words.join(" "))
}

fn ask(pair: &mut Pair, asked: &MetaCommand) -> Option<String> {
    let known = pair
        .uniques
        .get(&asked.key)
        .copied()
        .unwrap_or((u64::MAX / 2, u64::MAX / 2));
    let (theirs, ours) = (asked.text(known.0), asked.text(known.1));
    if pair.memcached_looks_behind_the_value(&ours) {
        return None;
    }
    let their_answer = pair.memcached.ask(theirs.as_bytes());
    let our_answer = pair
        .ours
        .receive(&mut Connection::default(), ours.as_bytes());
    let their_answer = comparable(pair, &asked.key, &their_answer, true);
    let our_answer = comparable(pair, &asked.key, &our_answer, false);
    assert_eq!(our_answer, their_answer, "to {}", theirs.escape_debug());
    if asked.name == "ma" && asked.flags.iter().any(|flag| flag.starts_with('T')) {
        // Theirs gives the new end to the item that a longer number has just replaced.
        let flag = if asked.flags.contains(&"b".to_owned()) {
            " b"
        } else {
            ""
        };
        let delete = format!("md {}{flag}\r\n", asked.key);
        pair.memcached.ask(delete.as_bytes());
        pair.ours
            .receive(&mut Connection::default(), delete.as_bytes());
    }
    Some(our_answer)
}

/// What an answer says, without what it repeats.
fn outcome(name: &str, answer: &str) -> String {
    let head = answer.lines().next().unwrap_or_default();
    if head.starts_with("CLIENT_ERROR") {
        return head.to_owned();
    }
    let mut words = head.split(' ');
    let code = words.next().unwrap_or_default();
    let marks: Vec<&str> = words
        .filter(|word| ["W", "X", "Z"].contains(word))
        .collect();
    format!("{name} {code} {}", marks.join(" "))
        .trim_end()
        .to_owned()
}

#[test]
fn random_meta_commands_are_answered_as_by_memcached() {
    let mut random = seeds::generator();
    let mut reached = seeds::Reached::default();
    let mut pair = Pair::new();
    for _ in 0..COMMANDS_BEFORE {
        pair.ask("set before 0 0 1\r\nx\r\n");
    }
    for _ in 0..2 * COMMANDS {
        pair.ours.log_time_ms += 1;
        if random.random_range(0..4) == 0 {
            let line = command(&mut random);
            if !pair.memcached_looks_behind_the_value(&line) {
                pair.ask(&line);
            }
            continue;
        }
        let asked = MetaCommand::new(&mut random);
        if let Some(answer) = ask(&mut pair, &asked) {
            reached.count(&outcome(asked.name, &answer));
        }
    }
    outcomes_are_counted_alike(&mut pair);
    reached.require(
        5,
        &[
            "mg HD",
            "mg VA",
            "mg EN",
            "mg",
            "mg HD W",
            "mg HD Z",
            "mg HD X W",
            "mg HD Z X",
            "mg VA W",
            "mg VA Z",
            "mg VA X W",
            "mg VA Z X",
            "ms HD",
            "ms NS",
            "ms EX",
            "ms NF",
            "ms",
            "md HD",
            "md EX",
            "md NF",
            "md",
            "ma HD",
            "ma VA",
            "ma EX",
            "ma NF",
            "ma",
            "CLIENT_ERROR cannot increment or decrement non-numeric value",
            "CLIENT_ERROR duplicate flag",
            "CLIENT_ERROR invalid flag",
            "CLIENT_ERROR invalid or duplicate flag",
            "CLIENT_ERROR invalid mode for ms M token",
            "CLIENT_ERROR invalid mode for ma M token",
            "CLIENT_ERROR incorrect length for M token",
            "CLIENT_ERROR invalid numeric initial value",
            "CLIENT_ERROR invalid numeric delta value",
        ],
    );
}

fn outcomes_are_counted_alike(pair: &mut Pair) {
    let theirs = String::from_utf8(pair.memcached.ask(b"stats\r\n")).unwrap();
    let theirs: HashMap<&str, &str> = theirs
        .lines()
        .filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '))
        .collect();
    let ours = pair.ours.store.stats().outcomes;
    for (name, count) in [
        ("touch_hits", ours.touch_hits),
        ("touch_misses", ours.touch_misses),
        ("delete_hits", ours.delete_hits),
        ("delete_misses", ours.delete_misses),
        ("incr_hits", ours.incr_hits),
        ("incr_misses", ours.incr_misses),
        ("decr_hits", ours.decr_hits),
        ("decr_misses", ours.decr_misses),
        ("cas_hits", ours.cas_hits),
        ("cas_misses", ours.cas_misses),
        ("cas_badval", ours.cas_badval),
    ] {
        assert!(count > 0, "{name}");
        assert_eq!(count.to_string(), theirs[name], "{name}");
    }
}

/// Lines that are not quite commands.
const ODD_LINES: &[&str] = &[
    "mg",
    "mg ",
    "mgx key",
    "md",
    "ma",
    "ms",
    "ms none",
    "ms none x",
    "ms none -1",
    "ms none 2147483646",
    "me",
    "me none",
    "me none b",
    "me none x y z",
    "me a b",
    "mg none k O1 q",
    "mg none k O1",
    "mg  none   k",
    " mg none k",
    "mg none O123456789012345678901234567890123",
    "mg none O12345678901234567890123456789012",
    "mg none O1234567890123456789012345678901",
    "mg none O",
    "md none O12345678901234567890123456789012",
    "ma none O12345678901234567890123456789012",
    "ma none MX O12345678901234567890123456789012",
    "mg none v v",
    "mg none vv",
    "mg none v1 k2 s3",
    "mg none N",
    "mg none Nx",
    "mg none N5.5",
    "mg none Tx z",
    "mg none Tx Fx",
    "mg none Fx Tx",
    "mg none F",
    "mg none C",
    "mg none C-1",
    "mg none R0x",
    "mg none Jx Dx",
    "mg none b",
    "mg ! b",
    "mg !!!! b",
    "mg ==== b",
    "mg YQ b",
    "mg YWJjZ b",
    "mg YWJj= b",
    "mg YWJ-_w== b",
    "mg none b Nx",
    "mg none Nx b",
    "mg none \x7f",
    "mg none M",
    "mg none MM",
    "mg none MMM",
    "md none MM",
    "ma none MM",
    "ma none M",
    "mg none noreply",
    "mg none c f h k l O P L s t u v q C1 F1 D1 J1",
    "mg none c f h k l O P L s t u v q C1 F1 D1 J1 I",
    "md none c f h k l O P L s t u v q C1 F1 D1 J1 I",
    "ma none c f h k l O P L s t u v q C1 F1 D1 J1 I",
    "mg none 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9",
];

/// Those with a data block that memcached takes along as we do.
const ODD_STORES: &[&str] = &[
    "ms none 4 S5",
    "ms none 4 b",
    "ms none 4 M",
    "ms none 4 MX O12345678901234567890123456789012",
    "ms none 4 O12345678901234567890123456789012",
    "ms none 4 Fx",
    "ms none 4 Fx Tx",
    "ms none 4 F1 F1",
    "ms none 4 k k",
    "ms none 04",
    "ms none +4 MR",
    "ms none 4 C5",
    "ms none 3 MR",
];

#[test]
fn odd_meta_lines_are_answered_as_by_memcached() {
    let mut pair = Pair::new();
    for line in ODD_LINES {
        pair.ask(&format!("{line}\r\n"));
        pair.ask(&format!(
            "{}\r\n",
            line.replacen("none", &"k".repeat(250), 1)
        ));
    }
    for line in ["mg", "md", "ma", "me"] {
        let line = format!("{line} {} k\r\n", "k".repeat(251));
        assert_eq!(pair.ask(&line), "CLIENT_ERROR bad command line format\r\n");
    }
    for line in ODD_STORES {
        pair.ask(&format!("{line}\r\ndata\r\n"));
        pair.ask("md none\r\n");
    }
    assert_eq!(
        pair.ask("ms none 2 q\r\nlong\r\n"),
        "CLIENT_ERROR bad data chunk\r\nERROR\r\n"
    );
}

/// Keys of all bytes, spelt in base64.
#[test]
fn keys_of_any_bytes_are_stored_and_found() {
    let mut pair = Pair::new();
    let keys = [
        "AA==",
        "DQo=",
        "IA==",
        "/////w==",
        "AAECAwQFBgcICQoLDA0ODxAREhM=",
    ];
    for key in keys {
        assert_eq!(pair.ask(&format!("mg {key} b v\r\n")), "EN\r\n");
        let set = format!("ms {key} 4 b k O1\r\n{}\r\n", &key[..4]);
        assert_eq!(pair.ask(&set), format!("HD k{key} b O1\r\n"));
    }
    for key in keys {
        let shown = format!("VA 4 k{key} b\r\n{}\r\n", &key[..4]);
        assert_eq!(pair.ask(&format!("mg {key} b v k\r\n")), shown);
        assert_eq!(pair.ask(&format!("mg {key}\r\n")), "EN\r\n");
        assert_eq!(
            pair.ask(&format!("md {key} b k\r\n")),
            format!("HD k{key} b\r\n")
        );
        assert_eq!(pair.ask(&format!("mg {key} b\r\n")), "EN\r\n");
    }
    assert_eq!(pair.ask("ms dGV4dA== 1 b\r\nx\r\n"), "HD\r\n");
    assert_eq!(pair.ask("get text\r\n"), "VALUE text 0 1\r\nx\r\nEND\r\n");
}
