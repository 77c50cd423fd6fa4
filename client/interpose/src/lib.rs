//! A program that was not written for it, served by a replica: the library that is preloaded into it (the C
//! of this folder), and the replica's side of the memory that both share.
//!
//! The program has no socket of a client. What clients send is given to it in turns, one return of its
//! `epoll_wait` each; what it says leaves through a second ring. Time and chance come with the turns. So
//! every replica's program does the same.
mod ffi;
mod fit;
/// What both sides have in common.
#[allow(clippy::unreadable_literal)]
#[path = "generated/rings.rs"]
pub mod layout;
mod program;
mod rings;

pub use fit::{Unfit, fits};
pub use program::{Program, Started, end_group};
pub use rings::{Broken, Endpoint, Refusal, Rings, Said, Sizes, Start};

/// The preloaded library, of a program of which one thread serves.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libquorumwire-interpose.so"));

/// Of one of which several do, one at a time.
pub const SERIAL_LIBRARY: &[u8] = include_bytes!(concat!(
    env!("OUT_DIR"),
    "/libquorumwire-interpose-serial.so"
));
