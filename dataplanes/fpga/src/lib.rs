//! The core in gates (`rtl/`), simulated by Verilator: a data plane for tests of the core. Frames come and go
//! over a packet socket, registers and the log's memory are in this process, and the core's clock runs while
//! it has something to do. It is far slower than any other plane.
#![cfg(feature = "simulated")]
mod card;
mod counters;
mod door;
mod ffi;
mod frame;
mod network;
mod plane;
#[allow(dead_code, clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/shared.rs"]
mod shared;
mod store;

pub use counters::COUNTERS;
pub use door::KIND;
pub use frame::{Network, datagram_in};
pub use plane::FpgaPlane;
