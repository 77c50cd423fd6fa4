//! In a time namespace a process's clock is not the kernel's, by which the program finds that a lease is over.
use crate::memcached;
use std::process::Command;

/// Tells the test in the namespace which check to leave out.
#[cfg(feature = "mutants")]
const LEFT_OUT: &str = "QUORUMWIRE_TEST_LEFT_OUT";

#[test]
#[ignore = "the other test runs it, in time namespaces"]
fn in_a_time_namespace() {
    #[cfg(feature = "mutants")]
    if let Ok(name) = std::env::var(LEFT_OUT) {
        quorumwire_mutants::activate(Some(name.leak()));
    }
    memcached::a_get_is_answered_only_while_that_is_linearizable();
}

/// Whether the process's clock is ahead of the kernel's or behind it.
#[test]
pub fn a_lease_is_over_in_time_there() {
    memcached::a_get_is_answered_only_while_that_is_linearizable();
    let behind = memcached::now().as_secs() / 2;
    assert!(behind > 0, "the machine runs for a second already");
    for offset in ["3600".to_owned(), format!("-{behind}")] {
        let mut there = Command::new("unshare");
        let this = std::env::current_exe().expect("a test has a program");
        there
            .args(["--time", "--boottime", &offset, "--"])
            .arg(this)
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
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{offset} s: {said}");
        assert!(said.contains("1 passed"), "it is found: {said}");
    }
}
