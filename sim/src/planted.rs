//! Bugs that the simulator plants in what it joins itself, one at a time, to show that its checks notice
//! them. Only with the feature `mutants`; otherwise there are none.

/// All of them: planes that answer blind writes as soon as they have stored them, processes that count what
/// they have promised from when they read their folder, and processes that promise less than the ones before
/// them, at once.
#[cfg(feature = "mutants")]
pub(crate) const PLANTED: &[&str] = &[
    "blind-before-commit",
    "promise-before-plane-is-off",
    "shorter-promise-at-once",
];

#[cfg(feature = "mutants")]
pub(crate) use quorumwire_mutants::mutant;

/// Whether this bug is there: never, outside of hunts.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn mutant(_name: &'static str) -> bool {
    false
}
