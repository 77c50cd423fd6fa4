//! What the node counts by itself, since its start.
use super::refusals::Refusals;
use super::term_keys::TermKeyCounters;
use crate::report::Durations;
use quorumwire_kv::Command;
use quorumwire_kv::memcached::MetaKind;

/// What clients of this server have asked for. Plain numbers, as in all of these: one thread counts, the report copies.
#[derive(Clone, Debug, Default)]
pub struct RequestCounters {
    pub set_commands: u64,
    pub delete_commands: u64,
    pub number_commands: u64,
    pub touch_commands: u64,
    pub flush_commands: u64,
    pub authentications_failed: u64,
    pub redis_reads: u64,
    pub redis_writes: u64,
    pub redis_transactions: u64,
    pub refused: Refusals,
    /// Values that were refused because of their length.
    pub too_large_values: u64,
    /// Times a connection had used up its share of a turn and waited behind the others.
    pub shares_used_up: u64,
}

/// What a replicated group has done on this replica.
#[derive(Clone, Debug, Default)]
pub struct GroupCounters {
    /// Keys that memcached clients have read, whose reads were answered here.
    pub get_keys: u64,
    pub get_hits: u64,
    /// `me`.
    pub meta_debug_commands: u64,
    pub forwarded_here: u64,
    pub outcomes_unknown: u64,
    pub entries_applied: u64,
    /// Commands of sessions that had run before.
    pub commands_repeated: u64,
    /// Commands of sessions, and fragments, that could not run.
    pub session_refusals: u64,
    /// Commands of servers' clients of which pieces were dropped for want of room.
    pub commands_dropped: u64,
    pub snapshots_taken: u64,
    pub snapshots_failed: u64,
    pub malformed_messages: u64,
    pub term_keys: TermKeyCounters,
    /// From a write's arrival at the leader to its answer, whoever sent it or passed it on.
    pub commit: Durations,
}

/// What the event loop of this process has done.
#[derive(Clone, Debug, Default)]
pub struct LoopCounters {
    /// Messages for a group that is not here.
    pub unknown_group: u64,
    /// Times in which this process did not run although it wanted to.
    pub pauses: u64,
    /// How long they were together.
    pub pauses_ms: u64,
    /// Waits that began with looking, without sleep.
    pub busy_polls: u64,
    /// Those of them that ended with sleep.
    pub busy_polls_in_vain: u64,
    /// One turn of the event loop.
    pub turn: Durations,
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
