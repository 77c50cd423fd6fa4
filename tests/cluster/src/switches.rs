//! The environment variables that these tests obey. A wrong value is an error, and so is a name that no test
//! knows: it is a slip of the pen, or would reach the servers as an option. What a switch does is not here.

use std::env;
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;

use quorumwire_linearizability::seed::SEED_VARIABLE;

/// Names the server's binary.
pub const BINARY: &str = "QUORUMWIRE_BIN";
/// Names a folder in which the logs of a failed test are kept.
pub const KEEP_LOGS: &str = "QUORUMWIRE_KEEP_LOGS";
/// Names the data plane of all clusters whose test does not choose one: the same tests hold with each.
pub const PLANE: &str = "QUORUMWIRE_TEST_PLANE";
/// What is encrypted in all clusters whose test does not choose: the same tests hold with it.
pub const TLS: &str = "QUORUMWIRE_TEST_TLS";
/// How long the soak of a busy machine is.
pub const SOAK_MINUTES: &str = "QUORUMWIRE_SOAK_MINUTES";
/// The replicas' option `raise-priority` in that soak, to measure what it does.
pub const SOAK_RAISE_PRIORITY: &str = "QUORUMWIRE_SOAK_RAISE_PRIORITY";
/// Set for a test that plays a run which is killed.
pub(crate) const PLAYS_VICTIM: &str = "QUORUMWIRE_TEST_PLAYS_VICTIM";

const PREFIX: &str = "QUORUMWIRE_";
const KNOWN: [&str; 8] = [
    BINARY,
    KEEP_LOGS,
    PLANE,
    TLS,
    SOAK_MINUTES,
    SOAK_RAISE_PRIORITY,
    SEED_VARIABLE,
    PLAYS_VICTIM,
];
/// Those of other tests, which may run beside these: neither they nor servers obey them.
const OF_OTHERS: [&str; 3] = ["QUORUMWIRE_ACCEPT", "QUORUMWIRE_MUTANT", "QUORUMWIRE_SEEDS"];

/// The word that a switch is set to; the first of the allowed ones if it is not set. Panics on any other.
#[must_use]
pub fn word(name: &str, allowed: &[&'static str]) -> &'static str {
    chosen_word(name, env::var_os(name).as_deref(), allowed)
        .unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The number that a switch is set to, if it is. Panics on what is none, or not allowed.
#[must_use]
pub fn number(name: &str, allowed: RangeInclusive<u32>) -> Option<u32> {
    let given = env::var_os(name)?;
    Some(chosen_number(name, &given, allowed).unwrap_or_else(|wrong| panic!("{wrong}")))
}

/// Panics if the environment has a switch that no test knows.
pub(crate) fn check() {
    if let Some(wrong) = unknown(env::vars_os().map(|(name, _)| name)) {
        panic!("{wrong}");
    }
}

fn chosen_word(
    name: &str,
    given: Option<&OsStr>,
    allowed: &[&'static str],
) -> Result<&'static str, String> {
    let Some(given) = given else {
        return Ok(allowed[0]);
    };
    let found = allowed.iter().find(|word| given == OsStr::new(word));
    let given = given.to_string_lossy();
    found
        .copied()
        .ok_or_else(|| format!("{name}: given {given:?}, allowed: {}", allowed.join(", ")))
}

fn chosen_number(name: &str, given: &OsStr, allowed: RangeInclusive<u32>) -> Result<u32, String> {
    let number = given.to_str().and_then(|text| text.parse::<u32>().ok());
    number
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| {
            let (given, (least, most)) = (given.to_string_lossy(), allowed.into_inner());
            format!("{name}: given {given:?}, allowed: {least} to {most}")
        })
}

fn unknown(names: impl Iterator<Item = OsString>) -> Option<String> {
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut ours = names.filter(|name| name.starts_with(PREFIX));
    let wrong = ours.find(|name| {
        let mut known = KNOWN.iter().chain(&OF_OTHERS);
        !known.any(|known| known == name)
    })?;
    Some(format!(
        "{wrong}: no switch of these tests, and servers would take it for an option; allowed: {}",
        KNOWN.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_refused_with_those_that_are_allowed() {
        let word =
            |given: Option<&str>| chosen_word("SWITCH", given.map(OsStr::new), &["none", "socket"]);
        assert_eq!(word(None), Ok("none"));
        assert_eq!(word(Some("socket")), Ok("socket"));
        for wrong in ["Socket", "sockets", " socket", ""] {
            let said = word(Some(wrong)).expect_err("is none of them");
            let expected = format!("SWITCH: given {wrong:?}, allowed: none, socket");
            assert_eq!(said, expected);
        }
        let number = |given: &str| chosen_number("SWITCH", OsStr::new(given), 1..=600);
        assert_eq!((number("1"), number("600")), (Ok(1), Ok(600)));
        for wrong in ["0", "601", "-1", "ten", "1 ", ""] {
            let said = number(wrong).expect_err("is none of them");
            let expected = format!("SWITCH: given {wrong:?}, allowed: 1 to 600");
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_switch_that_nobody_knows_is_refused_by_name() {
        let names = |last: &str| {
            let all = KNOWN.iter().chain(&OF_OTHERS);
            let mut all: Vec<_> = all.map(OsString::from).collect();
            all.push(last.into());
            unknown(all.into_iter())
        };
        assert_eq!(names("PATH"), None);
        for wrong in ["QUORUMWIRE_TEST_TSL", "QUORUMWIRE_LEASE_MS"] {
            let said = names(wrong).expect("it is unknown");
            assert!(said.starts_with(&format!("{wrong}: ")), "{said}");
            assert!(said.contains(TLS), "{said}");
        }
    }
}
