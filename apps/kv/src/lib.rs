//! A key-value store as a replicated state machine, and the memcached text protocol in front of it.
//! It opens no socket, reads no clock and knows nothing of replication: the node hands it log entries.
//!
//! The way of a request: [`memcached::parse`] cuts it out of a connection's bytes; a write becomes a
//! [`Command`], whose encoded bytes go into the log and come back to [`Store`] through
//! [`StateMachine::apply`](quorumwire_interfaces::StateMachine::apply); a read is answered key by key
//! from [`Store::get`]. The meta commands' `mg` is a read unless its flags ask for a change; one that finds a
//! stale item which nobody has won yet is told [`memcached::reply::MUST_WRITE`], and the log carries it then.
//!
//! Where it differs from memcached 1.6, on purpose:
//! - Nothing is ever evicted, and a refused `set` leaves the old value alone.
//! - A key holds no control characters, and a storage line that is refused takes its data block with
//!   it instead of running the data as commands.
//! - Flags beyond 32 bits are refused instead of cut off, and expiry times after 2038 work.
//! - A value holds 1,048,576 bytes whatever its key; memcached counts its own header in.
//! - The binary protocol and commands that tune memcached's memory are not served.
//! - Meta commands are those of 1.6.18, so without the flags `E`, `S` and `x` of other versions. Flags `h` and `l`
//!   are 0: reads leave no trace. `me` tells `exp`, `cas`, `stale`, `won` and `size` and nothing else.
//! - Base64 that is not the one way to write a key is refused. With flag `k` the key comes back as the client
//!   wrote it, while memcached forgets for some items that their key was base64 and sends its bytes.
//! - A command with a token that is too long (`O`) does nothing; memcached's `ma` counts, and its `mg` makes an
//!   item, before it refuses. A `T` of an `ma` counts also if the number grows longer, which in memcached goes to
//!   the item that was just replaced. With an end in the past `t` is 0, not what C makes of a negative number.
//! - An `mg` with writes of the same connection sent right behind it may win nothing: it answers as if another
//!   client had won (`Z`), for those writes are in the log already.

mod command;
mod key;
pub mod memcached;
pub mod redis;
mod store;

pub use command::{Command, DecodeError, Exptime, Written};
pub use key::{Key, Keys};
pub use store::{Changed, ItemView, Outcomes, Stats, Store};

/// Longest key, in bytes; the shortest has one.
pub const KEY_BYTES_MAX: usize = 250;

/// Longest value, in bytes; the shortest is empty.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Longest encoded [`Command`], in bytes.
pub const COMMAND_BYTES_MAX: usize = command::FRAME_BYTES_MAX + VALUE_BYTES_MAX;

/// Longest answer, in bytes, that the store assembles in memory, and what a message between replicas holds at
/// least. A command or query whose answer could be longer is refused before it changes anything.
pub const REPLY_BYTES_MAX: usize = 2 << 20;

/// How many items one log entry removes at most because their time has passed. Those that wait their
/// turn are invisible, also to snapshots.
pub const EXPIRED_PER_ENTRY_MAX: usize = 128;
