//! What the documents say of the code is so: every event of the log and every counter is explained, and every
//! test that a promise rests on is there.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const OPERATING: &str = include_str!("../../docs/operating.md");
const EVENTS: &str = include_str!("../../docs/events.md");
const METRICS: &str = include_str!("../../docs/metrics.md");
/// Of a plane that a program has only if it was built so.
const SIMULATED_CORE: &str = include_str!("../../dataplanes/fpga/README.md");
const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];
/// Deepest folder looked into.
const DEPTH_MAX: usize = 5;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    assert!(depth < DEPTH_MAX, "{}", folder.display());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.to_str().unwrap().ends_with("_test.rs");
        if path.ends_with("__fuzz__") {
            // No sources, but bytes that tests begin with.
        } else if path.is_dir() {
            sources(&path, depth + 1, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !is_test {
            found.push(path);
        }
    }
}

/// The first text in the arguments of a macro, without line breaks.
fn first_text(arguments: &str) -> String {
    let mut text = String::new();
    let mut characters = arguments.split_once('"').unwrap().1.chars().peekable();
    loop {
        match characters.next().expect("a text ends") {
            '"' => return text,
            '\\' => match characters.next().expect("something is escaped") {
                '\n' => while characters.next_if(|c| c.is_whitespace()).is_some() {},
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

#[test]
fn every_event_of_the_log_is_explained() {
    let mut files = Vec::new();
    for folder in ["node/src", "ops/src", "cli/src", "paxos/process/src"] {
        sources(&root().join(folder), 0, &mut files);
    }
    let mut said = BTreeSet::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        for level in LEVELS {
            let begin = format!("tracing::{level}!(");
            for arguments in source.split(&begin).skip(1) {
                said.insert((level.to_owned(), first_text(arguments)));
            }
        }
    }
    assert!(said.len() > 30, "{said:?}");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (level, event) = (cells.next()?, cells.next()?);
        let event = event.strip_prefix('`')?.strip_suffix('`')?;
        Some((level.to_owned(), event.to_owned()))
    };
    let explained: BTreeSet<_> = EVENTS.lines().filter_map(row).collect();
    let missing: Vec<_> = said.difference(&explained).collect();
    assert!(
        missing.is_empty(),
        "docs/events.md does not explain {missing:#?}"
    );
    let gone: Vec<_> = explained.difference(&said).collect();
    assert!(
        gone.is_empty(),
        "docs/events.md explains {gone:#?}, which nothing says"
    );
}

#[test]
fn every_test_that_a_promise_rests_on_is_there() {
    let mut count = 0;
    for word in OPERATING.split('`') {
        let Some((file, test)) = word.split_once(".rs::") else {
            continue;
        };
        let path = root().join(format!("{file}.rs"));
        let source = fs::read_to_string(&path).unwrap_or_else(|_| panic!("no file {file}.rs"));
        let marked = source.split("#[test]").skip(1);
        let is_there = marked
            .filter_map(|part| part.split_once("fn "))
            .any(|(_, part)| part.starts_with(&format!("{test}(")));
        assert!(is_there, "no test {test} in {file}.rs");
        count += 1;
    }
    assert!(count > 15, "only {count} tests named");
}

/// The names that a source declares by `counters!` and `counters_by!`.
fn counters_of(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for block in source.split("\ncounters").skip(1) {
        if !block.starts_with("! {") && !block.starts_with("_by! {") {
            continue;
        }
        let declared = block.split("\n}\n").next().expect("a block ends");
        let counters = declared.split("\n    with {").next();
        for line in counters.expect("a text begins").lines() {
            let before = line.trim().strip_suffix("\",");
            names.extend(before.and_then(|it| Some(it.split_once(": \"")?.1)));
        }
    }
    names
}

/// One that is declared and in no report would be counted for nobody.
#[test]
fn every_counter_that_is_declared_is_on_the_metrics_page() {
    let is_on = |page: &str, name: &str| {
        let name = name.replace("_microseconds", "_seconds");
        let row = |of: &str| format!("| `quorumwire_{of}{name}_total` | counter |");
        let mut all = ["", "plane_", "switch_"].iter();
        all.any(|of| page.contains(&row(of)))
    };
    let mut files = Vec::new();
    for folder in [
        "apps",
        "control",
        "dataplanes",
        "fastpath",
        "group",
        "node",
        "ops",
        "paxos",
        "storage",
    ] {
        sources(&root().join(folder), 0, &mut files);
    }
    let mut count = 0;
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        for name in counters_of(&source) {
            let is_simulated = file.starts_with(root().join("dataplanes/fpga"));
            let page = if is_simulated {
                SIMULATED_CORE
            } else {
                METRICS
            };
            assert!(is_on(page, name), "{}: {name}", file.display());
            count += usize::from(!is_simulated);
        }
    }
    let shown = METRICS.matches("` | counter |").count();
    // Beside those of the programs in the kernel, and of all refused requests together.
    assert!(count + 20 > shown && shown >= count, "{count} of {shown}");
}
