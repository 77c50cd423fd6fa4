//! A key-value store as a replicated state machine, and the memcached text protocol and the Redis protocol
//! in front of it: one store, whose items both see. It opens no socket, reads no clock and knows nothing of
//! replication: the node hands it log entries.
//!
//! The way of a request: [`memcached::parse`] or [`redis::parse`] cuts it out of a connection's bytes; a
//! write becomes a [`Command`], whose encoded bytes go into the log and come back to [`Store`] through
//! [`StateMachine::apply`](quorumwire_interfaces::StateMachine::apply); a read is answered key by key
//! from [`Store::get`], or by [`Store::redis_read`]. The meta commands' `mg` is a read unless its flags ask for a
//! change; one that finds a stale item which nobody has won yet is told [`memcached::reply::MUST_WRITE`], and the
//! log carries it then.
//!
//! A value that Redis clients set has the flags 0 and a new unique number; what they only change keeps its
//! flags. A new lifetime by a Redis command is a new unique number, too, because it is what `WATCH`
//! compares; one by memcached's `touch` and `gat` is none, and `WATCH` does not notice it.
//!
//! Where it differs from memcached 1.6, on purpose:
//! - At the memory limit, items go in the order in which they were written or touched, not read; `cache_memlimit` is
//!   every replica's, and counts keys, values and [`ITEM_OVERHEAD_BYTES`]. A refused `set` leaves the old value alone.
//!   `incr` and `ma` at the limit are refused only if the number grows longer.
//! - A key holds no control characters, and a storage line that is refused takes its data block with
//!   it instead of running the data as commands.
//! - Flags beyond 32 bits are refused instead of cut off, and expiry times after 2038 work.
//! - A value holds 1,048,576 bytes whatever its key; memcached counts its own header in.
//! - The binary protocol and commands that tune memcached's memory, but for `cache_memlimit`,
//!   are not served.
//! - Meta commands are those of 1.6.18, so without the flags `E`, `S` and `x` of other versions. Flags `h` and `l`
//!   are 0: reads leave no trace. `me` tells `exp`, `cas`, `stale`, `won` and `size` and nothing else.
//! - Base64 that is not the one way to write a key is refused. With flag `k` the key comes back as the client
//!   wrote it, while memcached forgets for some items that their key was base64 and sends its bytes.
//! - A command with a token that is too long (`O`) does nothing; memcached's `ma` counts, and its `mg` makes an
//!   item, before it refuses. A `T` of an `ma` counts also if the number grows longer, which in memcached goes to
//!   the item that was just replaced. With an end in the past `t` is 0, not what C makes of a negative number.
//! - An `mg` with writes of the same connection sent right behind it may win nothing: it answers as if another
//!   client had won (`Z`), for those writes are in the log already.
//!
//! Of Redis 7.0, version 2 and 3 of the protocol, what is done to strings, their bits, and keys is served
//! (the table in `redis/table/` has all of it) but `LCS`, `SORT`, `DUMP`, `RESTORE` and `MIGRATE`; commands on
//! other kinds of values are unknown. Where it differs, on purpose:
//! - There is one database. A key has at most [`KEY_BYTES_MAX`] bytes, a value [`VALUE_BYTES_MAX`] (as if
//!   `proto-max-bulk-len` were 1mb), a request [`redis::REQUEST_BYTES_MAX`], a pattern 1,024, a transaction
//!   [`redis::TRANSACTION_COMMANDS_MAX`] commands.
//! - An answer longer than [`REPLY_BYTES_MAX`] is refused, and within a transaction what would make all answers
//!   together longer.
//! - A command, or all of a transaction, is [`WORK_MAX`] bytes of work at most: of values whose bits are counted,
//!   searched or combined, that grow, are copied, or are changed for the first time in it; a sixteenth of those that
//!   go; 128 for each word, and 256 for each key that `KEYS`, `SCAN` and `RANDOMKEY` look at, so that `KEYS` looks at
//!   262,144, and one transaction holds some 250 `SCAN`s or `RANDOMKEY`s;
//!   8 for each step of a pattern; 64 for each digit of `INCRBYFLOAT`. What would be more is refused and changes nothing,
//!   and so are all commands of the transaction behind it; those before it are done.
//! - `BITFIELD` writes nothing beyond the longest value, where Redis adds up to eight bytes, and `OVERFLOW SAT`
//!   saturates `SET` of a very negative number at the lower end, where Redis, on an overflow of its own,
//!   takes the upper one. One that only made a value longer has changed it for `WATCH`.
//! - A `SCAN` goes in one order on all replicas, its cursor has 48 bits and is good for any time and at any
//!   replica, and it never gives a key twice. It looks at 4,096 keys at most. `KEYS` answers in the order of the
//!   keys' bytes.
//! - `INCRBYFLOAT` computes with the 64 bits of mantissa that Redis has on x86, on every machine.
//! - `OBJECT ENCODING` tells how Redis would keep the value if it had been set as a whole, `REFCOUNT` is
//!   1, idle times and frequencies are not kept. `TOUCH` is `EXISTS`.
//! - At the memory limit it is the order of writes that tells which keys go, not that of reads; whether the limit is
//!   passed is looked at when a command or a transaction is carried out, not when it is queued. Meant are the bytes of
//!   keys and values and [`ITEM_OVERHEAD_BYTES`] for each.
//! - `DBSIZE` leaves out keys whose time has passed.
//! - `COMMAND` lists what is served. `COMMAND DOCS` has no history, and texts of its own.
//! - Of what is said about connections and the server, a transaction takes `PING`, `ECHO`, `SELECT`, `SWAPDB`, `TIME`,
//!   `UNWATCH` and `COMMAND`; whoever holds the connection refuses the others, which Redis queues. The rest of what
//!   differs there stands in `docs/clients.md`.
//! - A string without its line end, or a count that is no number for more than 32 bytes, is refused where
//!   Redis goes on.

mod command;
mod key;
pub mod memcached;
pub mod redis;
mod refusal;
mod store;

pub use command::{Command, DecodeError, Exptime, MemoryChange, Written};
pub use key::{Key, Keys};
pub use refusal::WhyRefused;
pub use store::{Changed, ItemView, MemoryLimit, MemoryPolicy, Outcomes, Stats, Store};

/// Longest key, in bytes; the shortest has one.
pub const KEY_BYTES_MAX: usize = 250;

/// Longest value, in bytes; the shortest is empty.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// What an item counts against the memory limit beside the bytes of its key and its value.
pub const ITEM_OVERHEAD_BYTES: u64 = 128;

/// Longest encoded [`Command`], in bytes.
pub const COMMAND_BYTES_MAX: usize = command::FRAME_BYTES_MAX + VALUE_BYTES_MAX;

/// Longest answer, in bytes, that the store assembles in memory, and what a message between replicas holds at
/// least. A command or query whose answer could be longer is refused before it changes anything.
pub const REPLY_BYTES_MAX: usize = 2 << 20;

/// Longest answer of one of Redis' commands, or of a transaction of them, that is an error, unless it repeats words of
/// the client: who must ask again what became of a command is told.
pub const ERROR_BYTES_MAX: usize = 128;

/// How much work one request or transaction of a Redis client may be, in bytes that are looked at or moved: replicas
/// apply nothing else meanwhile. What counts is in `store/redis/work.rs`.
pub const WORK_MAX: usize = 64 << 20;

/// How many items one command removes at most because their time has passed. Those that wait their
/// turn are invisible, also to snapshots.
pub const EXPIRED_PER_COMMAND_MAX: usize = 128;

/// How many items one command evicts at most; the next ones, and ticks that come because of it, go on.
pub const EVICTED_PER_COMMAND_MAX: usize = 4096;

/// After so many bytes of evicted items a command evicts no more.
pub const EVICTED_BYTES_PER_COMMAND_MAX: u64 = 64 << 20;

/// How many items one command puts at least into the order in which they are evicted, where evicting begins with
/// items there; those that share a position with the last come on top. Until all are, writes that need memory are
/// refused at the limit.
pub const SORTED_PER_COMMAND: usize = 16 << 10;
