//! The switches of these tests in the environment. A wrong value is an error: taken for none, it would pass
//! without doing what was asked for.
use std::env;
use std::ffi::OsStr;

/// Which seed to run.
pub const SEED: &str = "QUORUMWIRE_SEED";
/// Rewrites what is expected.
pub const ACCEPT: &str = "QUORUMWIRE_ACCEPT";

/// A number above zero, if the switch is set.
pub fn number(name: &str) -> Option<u64> {
    let given = env::var_os(name)?;
    Some(parsed(name, &given).unwrap_or_else(|wrong| panic!("{wrong}")))
}

/// Whether a switch is on that is either on or not set.
pub fn is_on(name: &str) -> bool {
    let given = env::var_os(name);
    given.is_some_and(|given| on(name, &given).unwrap_or_else(|wrong| panic!("{wrong}")))
}

fn parsed(name: &str, given: &OsStr) -> Result<u64, String> {
    let number = given.to_str().and_then(|text| text.parse::<u64>().ok());
    let given = given.to_string_lossy();
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{name}: given {given:?}, allowed: 1 to 2^64 - 1"))
}

fn on(name: &str, given: &OsStr) -> Result<bool, String> {
    if given == "1" {
        return Ok(true);
    }
    let given = given.to_string_lossy();
    Err(format!("{name}: given {given:?}, allowed: 1, or not set"))
}

#[test]
fn wrong_values_are_refused_with_what_is_allowed() {
    let parsed = |given: &str| parsed(SEED, OsStr::new(given));
    assert_eq!((parsed("1"), parsed("77")), (Ok(1), Ok(77)));
    for wrong in ["0", "-1", "1 ", "seven", ""] {
        let said = parsed(wrong).expect_err("is no number above zero");
        assert!(said.starts_with("QUORUMWIRE_SEED: given "), "{said}");
    }
    assert_eq!(on(ACCEPT, OsStr::new("1")), Ok(true));
    for wrong in ["0", "yes", ""] {
        assert!(on(ACCEPT, OsStr::new(wrong)).is_err(), "{wrong:?}");
    }
}
