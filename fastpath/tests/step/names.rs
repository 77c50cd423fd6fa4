//! The list of checks against the C: each name stands at one place, and what the list says proves a check
//! does.
use quorumwire_fastpath::Mutant;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How the C writes a check; the name comes last in the brackets.
const WRITTEN: [&str; 6] = [
    "QW_TO_SOFTWARE_IF(",
    "QW_DROP_IF(",
    "QW_REFUSE_IF(",
    "QW_PAXOS_REFUSE_IF(",
    "QW_BAD(",
    "QW_VALUE(",
];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts of a folder's files.
fn texts(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(here(folder)).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("a folder can be read").path());
    files
        .filter(|path| path.is_file())
        .map(|path| text(&path))
        .collect()
}

/// What stands in brackets from here on, without the bracket that ends it.
fn in_brackets(text: &str) -> &str {
    let mut open = 1;
    let end = text.find(|sign| {
        open += match sign {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        open == 0
    });
    &text[..end.expect("brackets end")]
}

/// How often each name stands at a check of the C, macros themselves left aside.
fn used() -> BTreeMap<String, u32> {
    let mut used = BTreeMap::new();
    for text in texts("include") {
        for written in WRITTEN {
            for (at, _) in text.match_indices(written) {
                let line = text[..at].rsplit('\n').next().unwrap_or_default();
                let arguments = in_brackets(&text[at + written.len()..]);
                let name = arguments.rsplit(',').next().unwrap_or_default().trim();
                if name == "name" || line.ends_with('_') {
                    continue;
                }
                *used.entry(name.to_ascii_lowercase()).or_default() += 1;
            }
        }
    }
    used
}

/// The quoted words behind a key of the list.
fn listed(key: &str) -> Vec<String> {
    let list = text(&here("checks.toml"));
    let before = format!(" {key} = \"");
    let words = list.split(before.as_str()).skip(1);
    words
        .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn every_name_of_the_list_stands_at_one_check_and_no_other_does() {
    let used = used();
    let names = listed("name");
    for name in &names {
        let times = used.get(name).copied().unwrap_or_default();
        assert_eq!(times, 1, "{name} stands at {times} checks");
    }
    for name in used.keys() {
        assert!(names.contains(name), "{name} is not in the list");
    }
    assert_eq!(names.len(), used.len());
    println!("{} names", names.len());
}

/// Else a condition could have a switch beside the list.
#[test]
fn nothing_but_the_macros_of_checks_asks_what_is_left_out() {
    let texts = texts("include");
    let asked: usize = texts
        .iter()
        .map(|it| it.matches("qw_mutant(").count())
        .sum();
    // The function and the constant that it is in other builds, the comment on both, and the two macros.
    assert_eq!(asked, 5);
}

#[test]
fn what_no_build_leaves_out_has_a_test() {
    let (names, tests) = (listed("name"), listed("test"));
    assert_eq!(names.len(), Mutant::ALL.len() + tests.len());
    let sources = [texts("src"), texts("tests/step")].concat();
    for test in tests {
        let called = format!("fn {test}()");
        assert!(
            sources.iter().any(|it| it.contains(&called)),
            "no test is called {test}"
        );
    }
    for mutant in Mutant::ALL {
        assert!(
            names.iter().any(|name| name == mutant.name()),
            "{mutant:?} is not in the list"
        );
    }
}
