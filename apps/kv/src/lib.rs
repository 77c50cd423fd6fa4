//! A key-value store as a replicated state machine, and the memcached text protocol and the Redis protocol
//! in front of it: one store, whose items both see. It opens no socket, reads no clock and knows nothing of
//! replication: the node hands it log entries.
//!
//! The way of a request: [`memcached::parse`] or [`redis::parse`] cuts it out of a connection's bytes; a
//! write becomes a [`Command`], whose encoded bytes go into the log and come back to [`Store`] through
//! [`Application::apply`](quorumwire_interfaces::Application::apply); a read is answered key by key from
//! [`Store::get`], or by [`Store::answer`], however long after it was parsed: its [`QueryForm`] is kept. The
//! meta commands' `mg` is a read unless its flags ask for a change; one that finds a stale item which nobody
//! has won yet is told [`memcached::reply::MUST_WRITE`], and the log carries it then.
//!
//! What differs from memcached 1.6.18 and Redis 7.0, on purpose, stands in `docs/compatibility.md`.

mod command;
mod key;
pub mod memcached;
mod query;
pub mod redis;
mod refusal;
#[cfg(test)]
#[path = "../tests/seeds/mod.rs"]
mod seeds;
/// What planes know of the store, too, as generated.
#[allow(clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/shared.rs"]
mod shared;
mod store;

pub use command::{Command, DecodeError, Exptime, MemoryChange, Written};
pub use key::{Key, Keys};
pub use query::{Query, QueryForm};
pub use refusal::{RefusalCounters, TLS_HANDSHAKE, WhyRefused};
pub use store::{
    Changed, Discarded, ItemView, MemoryCounters, MemoryLimit, MemoryPolicy, Outcomes, Search,
    SearchProgress, Stats, Store,
};

/// Longest key, in bytes; the shortest has one.
pub const KEY_BYTES_MAX: usize = shared::MEMCACHED_KEY_BYTES_MAX;

/// Longest value, in bytes; the shortest is empty.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// What an item counts against the memory limit beside the bytes of its key and its value.
pub const ITEM_OVERHEAD_BYTES: u64 = 128;

/// Longest encoded [`Command`], in bytes.
pub const COMMAND_BYTES_MAX: usize = command::FRAME_BYTES_MAX + VALUE_BYTES_MAX;

/// Longest answer, in bytes, that the store assembles in memory, and what a message between replicas holds at
/// least. A command or query whose answer could be longer is refused before it changes anything.
pub const REPLY_BYTES_MAX: usize = 2 << 20;

/// Longest answer of one of Redis' commands in the log, or of a transaction of them, that is an error,
/// whatever words of the client it repeats: who must ask again what became of a command is told.
pub const ERROR_BYTES_MAX: usize = 128;

/// How much work one request or transaction of a Redis client may be, in bytes that are looked at or moved:
/// replicas apply nothing else meanwhile. What counts is in `store/redis/work.rs`.
pub const WORK_MAX: usize = 64 << 20;

/// How many items one command removes because their time has passed, if so many are due: and as many more as
/// the one before it gave an end, and while all items take more memory than when they began to wait. Those
/// that wait their turn are invisible, also to snapshots.
pub const EXPIRED_PER_COMMAND: usize = 128;

/// How many it removes at most: as much work as one command may be, in the measure of [`WORK_MAX`].
pub const EXPIRED_PER_COMMAND_MAX: usize = WORK_MAX / store::PER_ITEM_GONE;

/// How many items one command evicts at most; the next ones, and ticks that come because of it, go on.
pub const EVICTED_PER_COMMAND_MAX: usize = 4096;

/// After so many bytes of evicted items a command evicts no more.
pub const EVICTED_BYTES_PER_COMMAND_MAX: u64 = 64 << 20;

/// How many items one command puts at least into the order in which they are evicted, where evicting begins
/// with items there; those that share a position with the last come on top. Until all are, writes that need
/// memory are refused at the limit.
pub const SORTED_PER_COMMAND: usize = 16 << 10;
