//! Checks that tests leave out by name, to show that each is needed. Only with the feature `mutants`;
//! otherwise `mutant` is the constant `false`.

#[cfg(feature = "mutants")]
pub(crate) use quorumwire_mutants::mutant;

/// Whether the named check is to be left out: never, outside of hunts.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn mutant(_name: &'static str) -> bool {
    false
}
