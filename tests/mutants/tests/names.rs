//! A check is chosen by its name alone, so no two crates may use the same one: it would leave out both.
//! What the checks do is not looked at here.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates in which checks can be left out.
const CRATES: [&str; 5] = ["apps/replay", "control", "fastpath", "sim", "storage"];

#[test]
fn no_name_stands_in_two_crates() {
    let mut home: BTreeMap<String, &str> = BTreeMap::new();
    for place in CRATES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(place);
        let mut names = Vec::new();
        for file in rust_files(&folder.join("src")) {
            let text = fs::read_to_string(&file).expect("a source file is text");
            names.extend(names_in(&text, &file));
        }
        assert!(!names.is_empty(), "{place} has checks that can be left out");
        for name in names {
            let first = *home.entry(name.clone()).or_insert(place);
            assert_eq!(first, place, "{name} stands in both");
        }
    }
    println!("{} names", home.len());
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a crate has sources");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}

/// The names that `mutant` is called with. One that is not written at the call could not be compared.
fn names_in(text: &str, file: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for (at, call) in text.match_indices("mutant(") {
        let before = &text[..at];
        let longer_word = before.ends_with(|it: char| it.is_alphanumeric() || it == '_');
        if longer_word || before.ends_with("fn ") {
            continue;
        }
        let argument = text[at + call.len()..].trim_start();
        let name = argument.strip_prefix('"').and_then(|it| it.split_once('"'));
        let Some((name, _)) = name else {
            panic!("{}: a name that is not written at the call", file.display());
        };
        names.push(name.to_owned());
    }
    names
}
