//! Tests of the C: every small state and packet against a model, the published hashes, the checks before
//! the step, and what goes wrong without each check.
mod cases;
mod exhaustive;
mod gap;
mod model;
#[cfg(feature = "mutants")]
mod mutants;
mod names;
mod random;
mod siphash;
mod sound;
mod states;
mod tag;
mod verify;
#[path = "../walk/mod.rs"]
mod walk;
