//! Random Redis commands.
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Commands, word by word. `?` stands before what is left out often, `:` between words that go together,
/// `|` between choices; [`word`] tells what capital letters behind a `%` become.
const TEMPLATES: &[&str] = &[
    "GET %K",
    "SET %K %V",
    "SET %K %V",
    "SET %K %V ?NX|XX|nx|xx ?GET ?%L",
    "SET %K %V ?EX:%T|PX:%M|EXAT:%A|PXAT:%P|KEEPTTL ?NX|XX|GET ?KEEPTTL|EX:%T|PX:%M",
    "SETNX %K %V",
    "SETEX %K %T %V",
    "PSETEX %K %M %V",
    "GETSET %K %V",
    "GETEX %K",
    "GETEX %K %L|PERSIST|KEEPTTL ?%L",
    "GETDEL %K",
    "MGET %K ?%K ?%K ?%K",
    "MSET %K %V ?%K:%V ?%K:%V",
    "MSETNX %K %V ?%K:%V",
    "APPEND %K %V",
    "STRLEN %K",
    "GETRANGE %K %R %R",
    "SUBSTR %K %R %R",
    "SETRANGE %K %O %V",
    "INCR %K",
    "DECR %K",
    "INCRBY %K %I",
    "DECRBY %K %I",
    "INCRBYFLOAT %K %F",
    "INCRBYFLOAT %K %F",
    "SETBIT %K %B 0|1|1|1|2",
    "GETBIT %K %B",
    "BITCOUNT %K",
    "BITCOUNT %K %R %R ?BYTE|BIT|bit",
    "BITPOS %K 0|1|1|2",
    "BITPOS %K 0|1 %R",
    "BITPOS %K 0|1 %R %R ?BYTE|BIT|x",
    "BITOP AND|OR|XOR|NOT|and|NAND %K %K ?%K ?%K",
    "BITFIELD %K %G ?%G ?%G",
    "BITFIELD %K GET:%Y:%B|SET:%Y:%B:%I|INCRBY:%Y:%B:%I",
    "BITFIELD_RO %K GET:%Y:%B ?GET:%Y:%B ?%G",
    "DEL %K ?%K ?%K",
    "UNLINK %K ?%K",
    "EXISTS %K ?%K ?%K",
    "TOUCH %K ?%K",
    "TYPE %K",
    "KEYS *|key*|key?|*[0-3]|k[^e]*|\\k*|[|*\\|[^|key[1-|",
    "RANDOMKEY",
    "RENAME %K %K",
    "RENAMENX %K %K",
    "COPY %K %K ?REPLACE ?DB:0|DB:1|DB:x|DB|replace",
    "EXPIRE %K %T ?%C ?%C",
    "PEXPIRE %K %M ?%C",
    "EXPIREAT %K %A ?%C",
    "PEXPIREAT %K %P ?%C",
    "TTL %K",
    "PTTL %K",
    "EXPIRETIME %K",
    "PEXPIRETIME %K",
    "PERSIST %K",
    "DBSIZE",
    "FLUSHALL ?SYNC|ASYNC|x",
    "FLUSHDB ?sync|ASYNC|x",
    "OBJECT ENCODING|REFCOUNT|encoding|nosuch %K",
    "MOVE %K 0|1|x",
    "LPUSHH|HSETT|nosuch|object|get| %K %V ?%V",
];

/// Seldom, or they leave nothing to be found.
const SELDOM: &[&str] = &["FLUSHALL", "FLUSHDB", "LPUSHH"];

/// What takes a word's place now and then. No small positive numbers: as a lifetime they would end while
/// the test runs, not at the same moment on both sides.
const ODD_WORDS: &[&str] = &[
    "",
    "x",
    "-1",
    "0",
    "-0",
    "+1",
    "01",
    " 1",
    "1 ",
    "1x",
    "nan",
    "inf",
    "-infinity",
    "0x1p3",
    ".",
    "1e400",
    "9223372036854770000",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "NX",
    "GET",
    "*",
    "#1",
    "i65",
    "u64",
    "\u{e9}",
    "a\r\nb",
];

/// A command, mostly a good one.
pub fn command(random: &mut ChaCha8Rng) -> Vec<Vec<u8>> {
    let template = loop {
        let template = pick(random, TEMPLATES);
        let is_seldom = SELDOM.iter().any(|name| template.starts_with(name));
        if !is_seldom || random.random_ratio(1, 10) {
            break template;
        }
    };
    let mut words = Vec::new();
    for part in template.split(' ') {
        expand(random, part, &mut words);
    }
    match random.random_range(0..60) {
        0 => drop(words.pop()),
        5 => words.truncate(1),
        1 => words.push(odd_word(random)),
        2 | 3 if words.len() > 1 => {
            let place = random.random_range(1..words.len());
            words[place] = odd_word(random);
        }
        _ => {}
    }
    if words.is_empty() {
        words.push(b"GET".to_vec());
    }
    if words[0].eq_ignore_ascii_case(b"BITFIELD") {
        words.iter_mut().for_each(spare_saturation);
    }
    if random.random_ratio(1, 8) {
        words[0].make_ascii_lowercase();
    }
    words
}

/// Redis saturates very negative numbers at the wrong end, because it overflows when it compares them.
fn spare_saturation(word: &mut Vec<u8>) {
    let number = std::str::from_utf8(word).map(str::parse::<i64>);
    if matches!(number, Ok(Ok(..SATURATED_RIGHT))) {
        *word = SATURATED_RIGHT.to_string().into_bytes();
    }
}

/// The least number that any field saturates at the right end.
const SATURATED_RIGHT: i64 = -(1 << 62);

fn expand(random: &mut ChaCha8Rng, part: &str, words: &mut Vec<Vec<u8>>) {
    let part = match part.strip_prefix('?') {
        Some(_) if random.random_ratio(1, 2) => return,
        Some(part) => part,
        None => part,
    };
    let choices: Vec<&str> = part.split('|').collect();
    for piece in pick(random, &choices).split(':') {
        match piece {
            "%L" => {
                let times = "EX:%T|PX:%M|EXAT:%A|PXAT:%P|px:%M|EX|PX:%I0";
                expand(random, times, words);
            }
            "%G" => {
                let fields = "GET:%Y:%B|SET:%Y:%B:%I|INCRBY:%Y:%B:%I|incrby:%Y:%B:%I|\
                              OVERFLOW:WRAP|OVERFLOW:SAT|OVERFLOW:FAIL|OVERFLOW:x|GET:%Y";
                expand(random, fields, words);
            }
            piece => words.push(word(random, piece)),
        }
    }
}

fn word(random: &mut ChaCha8Rng, piece: &str) -> Vec<u8> {
    let text = match piece {
        "%K" => return key(random),
        "%V" => return value(random),
        "%T" => time(random, 0, 1),
        "%M" => time(random, 0, 1000),
        "%A" => time(random, NOW_SECONDS, 1),
        "%P" => time(random, NOW_SECONDS, 1000),
        "%C" => pick(random, &["NX", "XX", "GT", "LT", "gt", "lt", "ZZ"]).to_owned(),
        "%R" => match random.random_range(0..10) {
            0 => "-9223372036854775808".to_owned(),
            1 => "9223372036854775807".to_owned(),
            2..5 => random.random_range(-300..300).to_string(),
            _ => random.random_range(-20..20).to_string(),
        },
        "%O" => match random.random_range(0..200) {
            0 => (1 << 20).to_string(),
            1 => ((1 << 20) - 3).to_string(),
            2 => "9223372036854775807".to_owned(),
            3..20 => "-1".to_owned(),
            _ => random.random_range(0..40).to_string(),
        },
        "%B" => match random.random_range(0..200) {
            0 => ((8 << 20) - 64).to_string(),
            1 => (8 << 20).to_string(),
            2..10 => "-1".to_owned(),
            10..40 => format!("#{}", random.random_range(0..9)),
            _ => random.random_range(0..200).to_string(),
        },
        "%Y" => {
            let sign = pick(random, &["i", "u", "i", "u", "i", "u", "x"]);
            let bits = match random.random_range(0..6) {
                0 => pick(random, &["1", "63", "64", "65", "0", "08", ""]).to_owned(),
                _ => random.random_range(1..64).to_string(),
            };
            format!("{sign}{bits}")
        }
        "%I" => integer(random),
        "%I0" => format!("-{}", random.random_range(0..100)),
        "%F" => float(random),
        other => other.to_owned(),
    };
    text.into_bytes()
}

/// A time in the past for both sides, and in the far future with what is added here.
const NOW_SECONDS: u64 = 1_900_000_000;

/// So far away and so far apart that a moment more or less makes no difference.
fn time(random: &mut ChaCha8Rng, from: u64, per_second: u64) -> String {
    match random.random_range(0..24) {
        0 => pick(random, &["0", "-1", "-5000"]).to_owned(),
        1 => pick(
            random,
            &["9223372036854775807", "-9223372036854775808", "x", "1.5"],
        )
        .to_owned(),
        // Seconds that are too many as milliseconds. Milliseconds are drawn: two of the same, one after the
        // other, are as far apart as the two sides' clocks say, and `GT` would see it.
        2 if per_second == 1 => "9223372036854770".to_owned(),
        _ => ((from + 1000 * random.random_range(1..1_000_000_u64)) * per_second).to_string(),
    }
}

pub fn key(random: &mut ChaCha8Rng) -> Vec<u8> {
    match random.random_range(0..40) {
        0 => Vec::new(),
        1 => b"\0 \r\n\xff".to_vec(),
        2 => vec![b'k'; 250],
        _ => format!("key{}", random.random_range(0..7)).into_bytes(),
    }
}

fn value(random: &mut ChaCha8Rng) -> Vec<u8> {
    match random.random_range(0..12) {
        0..3 => integer(random).into_bytes(),
        3..5 => float(random).into_bytes(),
        5 => Vec::new(),
        6 => vec![0xff; random.random_range(1..40)],
        7 => {
            let length = random.random_range(1..60);
            (0..length).map(|_| random.random::<u8>()).collect()
        }
        8 => vec![0; random.random_range(1..10)],
        9 => odd_word(random),
        10 => vec![b'v'; random.random_range(40..300)],
        _ => b"some text".to_vec(),
    }
}

fn integer(random: &mut ChaCha8Rng) -> String {
    match random.random_range(0..10) {
        0 => random.random::<i64>().to_string(),
        1 => pick(
            random,
            &["9223372036854775807", "-9223372036854775808", "0"],
        )
        .to_owned(),
        _ => random.random_range(-300..300).to_string(),
    }
}

fn float(random: &mut ChaCha8Rng) -> String {
    let digits = |random: &mut ChaCha8Rng, most: usize| -> String {
        let count = random.random_range(1..=most);
        (0..count)
            .map(|_| char::from(b'0' + random.random_range(0..10)))
            .collect()
    };
    let sign = pick(random, &["", "-", "-", "+"]);
    match random.random_range(0..8) {
        0..3 => format!("{sign}{}.{}", digits(random, 3), digits(random, 3)),
        3 => format!("{sign}{}.{}", digits(random, 25), digits(random, 25)),
        4 => format!(
            "{sign}{}e{}",
            digits(random, 3),
            random.random_range(-40..40)
        ),
        5 => format!(
            "{sign}.{}E{}",
            digits(random, 30),
            random.random_range(-20..60)
        ),
        6 => format!(
            "{sign}0x{:x}.{:x}p{}",
            random.random::<u64>(),
            random.random::<u32>(),
            random.random_range(-70..20)
        ),
        _ => pick(
            random,
            &[
                "3.0e3", "1e4931", "-1e4931", "1e-4940", "5", "1.", ".5", "1e5000", "1e-5000",
                "inf", "-inf", "nan", "0.1",
            ],
        )
        .to_owned(),
    }
}

fn odd_word(random: &mut ChaCha8Rng) -> Vec<u8> {
    pick(random, ODD_WORDS).as_bytes().to_vec()
}

fn pick<'a>(random: &mut ChaCha8Rng, choices: &[&'a str]) -> &'a str {
    choices[random.random_range(0..choices.len())]
}
