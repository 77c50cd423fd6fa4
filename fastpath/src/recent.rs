//! Where an answer stands in a plane's table, as safe Rust around `qw_recent.h`. Nothing is decided here.
use crate::ffi;
use crate::store::MEMCACHED_KEY_BYTES_MAX;

/// A key takes the place of another one when keys other than that have been offered so often: two that share
/// a place and are both read would otherwise take it from each other with every read, and with it an answer
/// that is just being copied.
pub const RECENT_OFFERS_TO_REPLACE: u8 = 16;

/// The place of a key; `None` for what is no memcached key.
#[must_use]
pub fn recent_place(key: &[u8]) -> Option<usize> {
    let is_key = (1..=MEMCACHED_KEY_BYTES_MAX).contains(&key.len());
    is_key.then(|| ffi::recent_place(key) as usize)
}
