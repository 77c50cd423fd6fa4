//! In a time namespace a process's clock is not the kernel's, by which the program finds that a lease is
//! over.
use crate::memcached;
use std::process::Command;

/// Tells the test in the namespace by how many seconds its clock differs from that outside.
const OFFSET: &str = "QUORUMWIRE_TEST_CLOCK_OFFSET";
/// The time outside when it was started, in seconds.
const STARTED_AT: &str = "QUORUMWIRE_TEST_STARTED_AT";
/// Longest that it takes to start.
const START_SECONDS_MAX: i64 = 60;
/// Tells it which check to leave out.
#[cfg(feature = "mutants")]
const LEFT_OUT: &str = "QUORUMWIRE_TEST_LEFT_OUT";

#[test]
#[ignore = "the other test runs it, in time namespaces"]
fn in_a_time_namespace() {
    #[cfg(feature = "mutants")]
    if let Ok(name) = std::env::var(LEFT_OUT) {
        quorumwire_mutants::activate(Some(name.leak()));
    }
    let said = |name| {
        std::env::var(name)
            .expect("the other test says it")
            .parse::<i64>()
    };
    let [offset, started_at] = [OFFSET, STARTED_AT].map(|name| said(name).expect("a number"));
    let since = seconds() - started_at - offset;
    assert!(
        (0..START_SECONDS_MAX).contains(&since),
        "it is in the namespace: {since}"
    );
    memcached::a_get_is_answered_only_while_that_is_linearizable();
}

fn seconds() -> i64 {
    memcached::now().as_secs().cast_signed()
}

/// Whether the process's clock is ahead of the kernel's or behind it.
#[test]
pub fn a_lease_is_over_in_time_there() {
    memcached::a_get_is_answered_only_while_that_is_linearizable();
    let behind = seconds() / 2;
    assert!(behind > 0, "the machine runs for a second already");
    for offset in [3600, -behind] {
        let mut there = Command::new("unshare");
        let this = std::env::current_exe().expect("a test has a program");
        there
            .args(["--fork", "--time", "--boottime", &offset.to_string(), "--"])
            .arg(this)
            .env(OFFSET, offset.to_string())
            .env(STARTED_AT, seconds().to_string())
            .args([
                "--ignored",
                "--exact",
                "time_namespaces::in_a_time_namespace",
            ]);
        #[cfg(feature = "mutants")]
        if let Some(name) = quorumwire_mutants::active() {
            there.env(LEFT_OUT, name);
        }
        let ended = there.output().expect("util-linux is installed");
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(ended.status.success(), "{offset} s: {said}");
        assert!(said.contains("1 passed"), "it is found: {said}");
    }
}
