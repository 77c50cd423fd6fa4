//! What is counted of what memcached and Redis clients ask.
use super::refusals::Refusals;
use quorumwire_interfaces::counters;
use quorumwire_kv::Command;
use quorumwire_kv::memcached::MetaKind;

counters! {
    /// What clients of this server have asked for, and what was found.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RequestCounters {
        /// Storage commands from clients (set, add, replace, append, prepend, cas, ms)
        pub set_commands: "command_set",
        /// Delete and md commands from clients
        pub delete_commands: "command_delete",
        /// Incr, decr and ma commands from clients
        pub number_commands: "command_number",
        /// Touch and get-and-touch commands from clients, and mg with a change
        pub touch_commands: "command_touch",
        /// Flush_all commands from clients
        pub flush_commands: "command_flush",
        /// Reads from Redis clients
        pub redis_reads: "command_redis_reads",
        /// Writes from Redis clients, but for those in transactions
        pub redis_writes: "command_redis_writes",
        /// Transactions from Redis clients
        pub redis_transactions: "command_redis_transactions",
        /// Keys asked for
        pub get_keys: "command_get_keys",
        /// Keys asked for and found
        pub get_hits: "command_get_hits",
    }
    with {
        pub refused: Refusals,
        /// Values that were refused because of their length.
        pub too_large_values: u64,
        /// `me`.
        pub meta_debug_commands: u64,
    }
}

impl RequestCounters {
    pub fn count_command(&mut self, command: &Command<'_>) {
        match command {
            Command::Set(_)
            | Command::Add(_)
            | Command::Replace(_)
            | Command::Append { .. }
            | Command::Prepend { .. }
            | Command::Cas { .. } => self.set_commands += 1,
            Command::Delete { .. } => self.delete_commands += 1,
            Command::Increment { .. } | Command::Decrement { .. } => self.number_commands += 1,
            Command::Touch { .. } | Command::GetAndTouch { .. } => self.touch_commands += 1,
            Command::FlushAll { .. } => self.flush_commands += 1,
            // Those of Redis are counted where they are told from a transaction.
            Command::Memory(_) | Command::Redis(_) => {}
            Command::Meta { meta, .. } => match meta.kind() {
                MetaKind::Get => self.touch_commands += 1,
                MetaKind::Set => self.set_commands += 1,
                MetaKind::Delete => self.delete_commands += 1,
                MetaKind::Arithmetic => self.number_commands += 1,
            },
        }
    }
}
