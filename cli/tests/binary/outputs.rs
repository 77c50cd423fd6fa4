//! Outputs that are full, unread or closed: a command says so by its exit code, and never panics. Starts no
//! server.
use super::quorumwire;
use std::fs::File;
use std::io::pipe;
use std::process::{Command, Output, Stdio};

/// What a shell shows for a program that SIGPIPE ended.
const UNREAD: i32 = 141;
/// Commands that answer something, whatever there is.
const ANSWERS: [&[&str]; 9] = [
    &["config", "docs"],
    &["config", "docs", "metrics"],
    &["man"],
    &["completions", "bash"],
    &["--version"],
    &["--help"],
    &["server", "--help"],
    &["status", "--addr", "127.0.0.1:1"],
    &["status", "--json", "--addr", "127.0.0.1:1"],
];

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe that nobody reads any more.
fn unread() -> Stdio {
    pipe().unwrap().1.into()
}

fn complaints(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_answer_that_finds_no_room_is_an_error() {
    for arguments in ANSWERS {
        let output = quorumwire(arguments).stdout(full()).output().unwrap();
        let text = complaints(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        let begin = "error: standard output: No space left on device";
        assert!(text.starts_with(begin), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    }
}

#[test]
fn an_answer_that_nobody_reads_is_left_quietly() {
    for arguments in ANSWERS {
        let output = quorumwire(arguments).stdout(unread()).output().unwrap();
        let text = complaints(&output);
        assert_eq!(output.status.code(), Some(UNREAD), "{arguments:?}: {text}");
        assert_eq!(text, "", "{arguments:?}");
    }
}

#[test]
fn a_complaint_that_cannot_be_written_changes_no_exit_code() {
    let server = ["server", "--id", "0", "--dir", "/dev/null/no", "--members"];
    let cases: [(&[&str], i32); 4] = [
        (&["explode"], 2),
        (&["dev", "--durability", "maybe"], 2),
        (&["backup", "--verify", "/no/such"], 1),
        (&[&server[..], &["0=127.0.0.1:1"]].concat(), 1),
    ];
    for (arguments, code) in cases {
        let said = quorumwire(arguments).output().unwrap();
        assert_eq!(said.status.code(), Some(code), "{arguments:?}: {said:?}");
        for nowhere in [full().into(), unread()] {
            let status = quorumwire(arguments).stderr(nowhere).status().unwrap();
            assert_eq!(status.code(), Some(code), "{arguments:?}");
        }
    }
}

#[test]
fn with_both_closed_nothing_panics() {
    for arguments in ANSWERS {
        let status = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" <&- >&- 2>&-"])
            .arg(env!("CARGO_BIN_EXE_quorumwire"))
            .args(arguments)
            .status()
            .unwrap();
        let code = i32::from(arguments[0] == "status"); // no leader is there
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}
