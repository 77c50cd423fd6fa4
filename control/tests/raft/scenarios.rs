//! Runs the scripts of `tests/scenarios`: commands above `----`, the expected trace below it. With
//! `QUORUMWIRE_ACCEPT=1` the traces are rewritten, to be read in review like code.
use crate::environment;
use crate::script;
use std::fs;
use std::path::PathBuf;

const SEPARATOR: &str = "----\n";

/// The scripts, in order of their names.
pub fn scripts() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/scenarios");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    paths
}

/// What a script's trace is, and what it should be.
pub fn run(path: &PathBuf) -> (String, String, String) {
    let whole = fs::read_to_string(path).expect("readable");
    let (commands, expected) = whole.split_once(SEPARATOR).unwrap_or((&whole, ""));
    let trace = script::run(commands).unwrap_or_else(|problem| format!("SCRIPT: {problem}"));
    (commands.to_string(), expected.to_string(), trace + "\n")
}

#[test]
fn traces_are_as_accepted() {
    let accept = environment::is_on(environment::ACCEPT);
    let paths = scripts();
    assert!(!paths.is_empty(), "there are scenarios");
    let mut wrong = Vec::new();
    for path in &paths {
        let (commands, expected, trace) = run(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let sound = !trace.contains("VIOLATION") && !trace.contains("SCRIPT:");
        if !sound {
            wrong.push(format!("{name}:\n{trace}"));
        } else if accept {
            fs::write(path, format!("{commands}{SEPARATOR}{trace}")).expect("writable");
        } else if expected != trace {
            wrong.push(format!("{name}: {}", first_difference(&expected, &trace)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} scenarios differ:\n{}",
        wrong.len(),
        paths.len(),
        wrong.join("\n")
    );
}

#[test]
fn headers_name_rule_and_source() {
    for path in scripts() {
        let whole = fs::read_to_string(&path).expect("readable");
        let header = whole.lines().next().unwrap_or_default();
        assert!(header.starts_with("# "), "{}: no header", path.display());
    }
}

fn first_difference(expected: &str, found: &str) -> String {
    let pairs = expected.lines().zip(found.lines());
    for (place, (expected, found)) in pairs.enumerate() {
        if expected != found {
            return format!(
                "line {}\n  expected {expected}\n  found    {found}",
                place + 1
            );
        }
    }
    "one trace is longer than the other".to_string()
}
