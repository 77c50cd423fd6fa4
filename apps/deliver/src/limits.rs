//! The limits of values, each with its unit in its name.
use std::time::Duration;

/// Longest value. With what stands before it, it is a command that a session may have.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// What a value takes beside its bytes, on every machine.
pub const OVERHEAD_BYTES: u64 = 64;

/// A replica that for so long was no member, or knew no leader, may be cut off from the others: who waits for
/// values does so elsewhere.
pub const LEADERLESS_MAX: Duration = Duration::from_secs(1);

/// Most learners.
pub const LEARNERS_MAX: usize = 64;

/// The least that a configuration may say of the bytes that are kept: room for some of the longest values.
pub const KEPT_BYTES_MIN: u64 = 4 << 20;

/// The most.
pub const KEPT_BYTES_MAX: u64 = 1 << 40;

/// Bytes that are kept before a command has said how many.
pub const KEPT_BYTES_UNCONFIGURED: u64 = 64 << 20;
