//! libquorumwire: `client/`'s values for programs in C and C++. `quorumwire.h` says what each function does;
//! a test compares it with what is here.
//!
//! `ffi.rs` has the functions, and is all that touches pointers. What a program holds is no pointer but a
//! number in the form of one (`table.rs`), so a handle that was closed is known to be none. What was asked
//! and what is to be called back is `handle.rs`' business.
mod backend;
mod bell;
mod configuration;
mod error;
mod evpaxos;
mod ffi;
mod handle;
mod replica;
mod table;

pub use error::Code;
pub use ffi::{DeliveredFn, Recovered, SubmittedFn};
pub use handle::{CALLBACKS_MAX, SUBMITS_BYTES_MAX, SUBMITS_MAX};
