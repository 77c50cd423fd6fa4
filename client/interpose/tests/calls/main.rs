//! Each call of a program, once answered by the kernel and once by the preloaded library: what the program
//! got is the same, case by case. The cases are in `tests/programs/calls`.
mod native;
mod ringed;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use world::{Place, leave_the_network, run};

/// What a program sees differently, and why. The page says the same: see `the_page_says_what_differs`.
const BY_DESIGN: [(&str, &str); 7] = [
    (
        "accept_of_nobody_without_a_descriptor",
        "`accept` says `EMFILE` only if a client has come",
    ),
    (
        "bind_to_an_address_of_another_machine",
        "`bind` takes addresses of other machines",
    ),
    (
        "kernels_and_others_at_once",
        "`epoll_wait` says what clients have sent first",
    ),
    (
        "a_client_that_does_not_read",
        "A write to a client never says `EAGAIN`",
    ),
    ("sending_without_a_copy", "There is no `SO_ZEROCOPY`"),
    (
        "connecting_to_the_own_port",
        "The program cannot connect to itself",
    ),
    (
        "a_datagram_to_elsewhere",
        "`connect` to another server, or a datagram to one, is refused",
    ),
];

/// Groups of cases. Each is a test.
const GROUPS: [&str; 10] = [
    "accept",
    "read",
    "write",
    "descriptors",
    "epoll",
    "poll",
    "datagrams",
    "clocks",
    "chance",
    "same",
];

struct Compiled {
    program: PathBuf,
    /// Group and name; the index makes its ports.
    cases: Vec<(String, String)>,
    _folder: tempfile::TempDir,
}

fn compiled() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("calls");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/calls");
        let mut files: Vec<PathBuf> = std::fs::read_dir(sources)
            .expect("there are cases")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|it| it == "c"))
            .collect();
        files.sort();
        let status = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
            .args(["-pthread", "-o"])
            .arg(&program)
            .args(files)
            .status()
            .expect("a C compiler");
        assert!(status.success(), "the cases do not compile");
        let listed = Command::new(&program).output().expect("it lists them");
        let listed = String::from_utf8(listed.stdout).expect("text");
        let cases = listed
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(group, name)| (group.to_owned(), name.to_owned()))
            .collect();
        Compiled {
            program,
            cases,
            _folder: folder,
        }
    })
}

/// Runs the group's cases both ways, and says which ones differ.
fn compare(group: &str) {
    leave_the_network();
    let compiled = compiled();
    let only = std::env::var("QUORUMWIRE_CASE").ok();
    let mut count = 0;
    let mut faults = String::new();
    for (index, (of, name)) in compiled.cases.iter().enumerate() {
        if of != group || only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        count += 1;
        let place = Place::of(index);
        let native = run::<native::Native>(&compiled.program, name, place);
        let served = run::<ringed::Ringed>(&compiled.program, name, place);
        let reason = BY_DESIGN.iter().find(|(case, _)| case == name);
        let fault = match (native == served, reason) {
            _ if !native.contains("\ndone\n") => "it does not end with the kernel",
            (true, Some(_)) => "it is said to differ, and does not",
            (false, None) => "it differs",
            (true, None) | (false, Some(_)) => continue,
        };
        let both = format!("--- the kernel\n{native}--- served\n{served}");
        writeln!(faults, "=== {group} {name}: {fault}\n{both}").expect("text");
    }
    assert!(faults.is_empty(), "{count} cases\n{faults}");
    assert!(count > 0 || only.is_some(), "no case is in {group}");
}

#[test]
fn every_case_is_run_by_a_test() {
    let cases = &compiled().cases;
    let groups: BTreeSet<&str> = cases.iter().map(|(group, _)| group.as_str()).collect();
    assert_eq!(
        groups,
        GROUPS.into_iter().collect(),
        "the groups are the tests"
    );
    let names: BTreeSet<&str> = cases.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "no name is there twice");
    for (name, _) in BY_DESIGN {
        assert!(names.contains(name), "{name} is no case");
    }
}

/// Every reason is in the page.
#[test]
fn the_page_says_what_differs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let words: Vec<&str> = page.split_whitespace().collect();
    let page = words.join(" ");
    for (name, why) in BY_DESIGN {
        assert!(page.contains(why), "{name}: the page does not say: {why}");
    }
}

/// Another replica's program has inherited other descriptors, and runs at another moment.
#[test]
fn same() {
    leave_the_network();
    let compiled = compiled();
    let group = compiled.cases.iter().enumerate();
    let mut count = 0;
    for (index, (_, name)) in group.filter(|(_, (group, _))| group == "same") {
        let place = Place::of(index);
        let first = run::<ringed::Ringed>(&compiled.program, name, place);
        let kept: Vec<_> = std::iter::repeat_with(tempfile::tempfile).take(9).collect();
        let second = run::<ringed::Ringed>(&compiled.program, name, place);
        drop(kept);
        assert!(first.contains("\ndone\n"), "{first}");
        assert_eq!(first, second, "{name}");
        count += 1;
    }
    assert!(count > 0, "no case is in it");
}

macro_rules! groups {
    ($($group:ident)*) => {
        $(
            #[test]
            fn $group() {
                compare(stringify!($group));
            }
        )*
    };
}

groups!(accept read write descriptors epoll poll datagrams clocks chance);
