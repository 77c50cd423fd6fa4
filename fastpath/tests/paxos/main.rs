//! Tests of the Paxos roles' C: every small state and packet against a model, large numbers, registers that
//! no host may set, and what goes wrong without each check.
mod cases;
mod exhaustive;
mod model;
#[cfg(feature = "mutants")]
mod mutants;
mod random;
mod sound;
mod states;
#[path = "../walk/mod.rs"]
mod walk;
