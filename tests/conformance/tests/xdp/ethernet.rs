//! Whole Ethernet frames, made by hand. Needs root.
mod ffi;

pub use ffi::{EVERY_PROTOCOL, Ethernet};
