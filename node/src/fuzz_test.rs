//! Bytes of all kinds in the files that people write: options, accounts, secrets. What comes of them is a
//! value or a refusal that says where to look, never a panic, and never shows a secret. `make fuzz` tries
//! more of them.
use crate::accounts::Accounts;
use crate::keys::SecretFile;
use crate::options::{Fault, Flags, Origin, Refused, ServerOptions, TABLE, resolve_in};
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz};
use std::path::Path;

const ITERATIONS: usize = 10_000;
const INPUT_BYTES_MAX: usize = 256;

/// The input as it came, if its first byte is a character's; else each byte names one of the words, or says
/// that the one behind it stands for itself.
fn grown(input: &[u8], words: &[String]) -> String {
    let Some((128.., script)) = input.split_first() else {
        return String::from_utf8_lossy(input).into_owned();
    };
    let mut text = String::new();
    let mut bytes = script.iter();
    while let Some(&byte) = bytes.next() {
        match words.get(usize::from(byte) % (words.len() + 1)) {
            Some(word) => text.push_str(word),
            None => text.extend(bytes.next().map(|&it| char::from(it))),
        }
    }
    text
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

const FILE: &str = "quorumwire.toml";

/// What is enough for a server; what else is given is wrong by itself.
const ENOUGH: &str = "id = 1\ndir = \"d\"\nmembers = \"0=h:1,1=h:2,2=h:3\"\ninsecure = true\n";

/// Values that some option takes, each as a file has it and as a flag.
const VALUES: [(&str, &str); 22] = [
    ("0", "0"),
    ("1", "1"),
    ("100", "100"),
    ("-1", "-1"),
    ("9223372036854775807", "18446744073709551616"),
    ("true", "true"),
    ("false", "false"),
    ("\"\"", ""),
    ("\"on\"", "on"),
    ("\"socket\"", "socket"),
    ("\"xdp\"", "xdp"),
    ("\"memory\"", "memory"),
    ("\"json\"", "json"),
    ("\"127.0.0.1:1\"", "127.0.0.1:1"),
    ("\"0.0.0.0:0\"", "[::]:0"),
    ("\"host:1\"", "host:1"),
    ("\"239.1.2.3\"", "239.1.2.3"),
    ("\"0=h:1\"", "0=h:1"),
    ("\"file\"", "file"),
    ("1.5", "1e9"),
    ("[1]", "\u{0}"),
    ("1979-05-27", "\u{fffd}"),
];

/// Options out of a file, and out of flags, which are of the form `name value`.
fn options(input: &[u8], words: &[String]) -> Result<ServerOptions, Refused> {
    let text = match input.split_last() {
        // A file that is enough, and one more thing.
        Some((last, rest)) if last % 2 == 0 => format!("{ENOUGH}{}", grown(rest, words)),
        _ => grown(input, words),
    };
    let (file, given) = text.split_once("--").unwrap_or((&text, ""));
    let mut flags = Flags::default();
    for flag in given.split("--") {
        let (name, value) = flag.split_once(' ').unwrap_or((flag, ""));
        let spec = TABLE.iter().find(|spec| spec.name == name.trim());
        if let Some(spec) = spec {
            flags.0.insert(spec.name, value.trim_end().to_owned());
        }
    }
    let values = resolve_in(Some((Path::new(FILE), file)), &flags, &|_| None)?;
    ServerOptions::from_values(&values)
}

/// Which kind of refusal it is; it names an option, or the key or the file at fault, and says what is
/// allowed.
fn kind_of(refused: &Refused) -> &'static str {
    let text = refused.to_string();
    let is_toml = refused.fault == Fault::Format;
    let shown = format!("{:?}", refused.option);
    let is_shown = text.contains(&refused.option) || text.contains(&shown);
    assert!(is_toml || is_shown, "{text}");
    let is_key = refused.fault == Fault::Name;
    assert!(
        (is_key || text.contains("allowed: ")) && !refused.allowed.is_empty(),
        "{text}"
    );
    let is_option = TABLE.iter().any(|spec| spec.name == refused.option);
    match (&refused.origin, is_option) {
        (Origin::File(_), false) if is_toml => "no TOML",
        (Origin::File(path), false) => {
            assert!(
                ["--help` shows", "did you mean", "no table"]
                    .iter()
                    .any(|it| text.contains(it))
                    && path == Path::new(FILE),
                "{text}"
            );
            "no such key"
        }
        (Origin::File(_), true) => "refused from the file",
        (Origin::Flag, true) => "refused from a flag",
        (Origin::Default, true) => "missing",
        _ => panic!("whose fault is it? {text}"),
    }
}

fn texts<const N: usize>(seeds: [(&'static str, &str); N]) -> [Seed; N] {
    seeds.map(|(name, text)| (name, text.as_bytes().to_vec()))
}

/// Whatever stands behind `--` is a flag; a file that ends with an even byte comes behind one that is enough.
fn option_seeds() -> [Seed; 7] {
    let whole = format!("{ENOUGH}lease-ms = 20\nplane = \"socket\" #");
    texts([
        ("enough", "#\u{2}"),
        ("whole", &whole),
        ("flags", "--plane socket--durability memory--lease-ms 20\n"),
        ("refused-flag", "--plane sockets\n"),
        ("refused-value", "lease-ms = -1\n"),
        ("no-such-option", "no_such_key = 1\n"),
        ("no-toml", "id = = \"\n#"),
    ])
}

#[test]
fn any_options_are_taken_or_refused_by_name() {
    let mut words = owned(&["\n", " = ", "[", "]", "\"", "#", "no_such_key = 1\n"]);
    for (in_file, as_flag) in VALUES {
        words.push(format!("= {in_file}\n"));
        words.push(format!(" {as_flag}\n"));
    }
    for spec in TABLE.iter() {
        words.push(spec.key());
        words.push(format!("--{}", spec.name));
    }
    let outcomes = Outcomes::default();
    fuzz!(
        "options",
        option_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| match options(input, &words) {
            Ok(_) => outcomes.count("taken"),
            Err(refused) => outcomes.count(kind_of(&refused)),
        }
    );
    outcomes.must_be(&[
        "taken",
        "no TOML",
        "no such key",
        "refused from the file",
        "refused from a flag",
        "missing",
    ]);
}

fn account_seeds() -> [Seed; 6] {
    texts([
        ("one", "ann:opensesame\n"),
        ("several", "# people\nann:a\n\nbob:b:c\ndefault:hush"),
        ("windows", "ann:a\r\nbob:b\r\n"),
        ("no-password", "ann\n"),
        ("same-name-twice", "ann:a\nann:b\n"),
        ("none", "# nobody\n"),
    ])
}

#[test]
fn any_accounts_are_taken_or_refused_by_line() {
    let long = "x".repeat(300);
    let words = owned(&[
        "ann",
        ":",
        "secret",
        "\n",
        "\r\n",
        "#",
        "default:hush\n",
        &long,
        "a:b\n",
    ]);
    let outcomes = Outcomes::default();
    fuzz!(
        "accounts",
        account_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let text = grown(input, &words);
            match Accounts::parse(&text, Path::new("accounts")) {
                Ok(accounts) => {
                    outcomes.count("taken");
                    let lines = text
                        .lines()
                        .filter(|it| !it.is_empty() && !it.starts_with('#'));
                    let mut count = 0;
                    for line in lines {
                        let (name, password) = line.split_once(':').unwrap();
                        assert!(accounts.has(name.as_bytes(), password.as_bytes()), "{line}");
                        count += 1;
                    }
                    assert_eq!(accounts.count(), count);
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(!text.contains("secret") && !text.contains("hush"), "{text}");
                    let has_line = text.contains(", line ");
                    outcomes.count(if has_line { "a line" } else { "none" });
                    assert!(has_line || text.contains(" has 0 accounts"), "{text}");
                }
            }
        }
    );
    outcomes.must_be(&["taken", "a line", "none"]);
}

/// The last byte says which secrets come before.
fn secret_seeds(secret: &str) -> [Seed; 8] {
    let one = |epoch: u32| format!("[[secret]]\nepoch = {epoch}\nhex = \"{secret}\"\n#");
    texts([
        ("one-secret", "# "),
        ("two-secrets", "#\u{2}"),
        ("other-epochs", &format!("use = 7\n{}\n{}#", one(7), one(8))),
        ("three-secrets", &format!("{}\u{2}", one(3))),
        ("epochs-apart", &format!("{} ", one(3))),
        (
            "a-secret-for-an-epoch",
            &format!("use = 1\n[[secret]]\nepoch = \"{secret}\"\n#"),
        ),
        ("a-secret-for-a-name", &format!("use = 1\n{secret} = 1\n#")),
        ("short", "use = 1\n[[secret]]\nepoch = 1\nhex = \"5e5e\"\n#"),
    ])
}

#[test]
fn any_secrets_are_taken_or_refused_without_showing_one() {
    let secret = "5e".repeat(32);
    let one = |epoch: u32| format!("[[secret]]\nepoch = {epoch}\nhex = \"{secret}\"\n");
    let words = [
        "use = 1\n",
        "use = 2\n",
        "use = 4294967295\n",
        "use = -1\n",
        &one(1),
        &one(2),
        &one(u32::MAX),
        "[[secret]]\n",
        "epoch = 1\n",
        "hex = \"5e5e\"\n",
        &format!("hex = \"{secret}\"\n"),
        "more = 1\n",
        "\"",
    ];
    let words = owned(&words);
    let outcomes = Outcomes::default();
    fuzz!(
        "secrets",
        secret_seeds(&secret),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            // Files that are good so far, with one secret or two, and something more.
            let (last, rest) = input.split_last().unwrap_or((&1, b""));
            let more = grown(rest, &words);
            let text = match last % 4 {
                0 => format!("use = 1\n{}{more}", one(1)),
                2 => format!("use = 1\n{}{}{more}", one(1), one(2)),
                _ => more,
            };
            match SecretFile::parse(&text, Path::new("secret.toml")) {
                Ok(file) => {
                    outcomes.count(if file.describe().contains(',') {
                        "two"
                    } else {
                        "one"
                    });
                    let keys = file.keys("cluster").unwrap();
                    assert!(keys.accepted.iter().any(|it| it.epoch == keys.in_use));
                }
                Err(error) => {
                    outcomes.count("refused");
                    let text = format!("{error:#}");
                    assert!(
                        text.contains("secret.toml") && !text.contains("5e5e"),
                        "{text}"
                    );
                }
            }
        }
    );
    outcomes.must_be(&["one", "two", "refused"]);
}
