// Generated from apps/kv/shared.toml by `make generate`; do not edit.

/// Longest key of a memcached client.
pub const MEMCACHED_KEY_BYTES_MAX: usize = 250;
/// A command before its key: what it is, the key's length, flags, expiry.
pub const MEMCACHED_COMMAND_HEAD_BYTES: usize = 14;
/// The store's number for a `set`, in its first format.
pub const MEMCACHED_COMMAND_SET: u8 = 17;
