//! The common case. `include/` holds the step in freestanding C, which every plane compiles; this crate
//! calls it and wraps the plane in ordinary memory around it. No I/O, clock or randomness.
mod ffi;
mod mutants;
mod step;

pub use mutants::Mutant;
#[cfg(feature = "mutants")]
pub use mutants::{activate, reached};
pub use step::{
    Keys, Outcome, SIPHASH_BYTES_MAX, SipKey, SipKeyPair, check, encode, heartbeat, persisted,
    registers_sound, release, siphash, step, submit, tag,
};
