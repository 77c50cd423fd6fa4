//! What is counted of one replicated group on this replica.
use super::key_counters::TermKeyCounters;
use crate::report::Durations;
use quorumwire_interfaces::counters;

counters! {
    /// What a replicated group has done on this replica.
    #[derive(Clone, Debug, Default)]
    pub struct GroupCounters {
        /// Requests that followers handed to this leader
        pub forwarded_here: "forwarded_from_followers",
        /// Requests whose clients were told that the outcome is unknown
        pub outcomes_unknown: "outcomes_unknown",
        /// Log entries applied to the store
        pub entries_applied: "entries_applied",
        /// Commands of client sessions that had been executed before
        pub commands_repeated: "session_commands_repeated",
        /// Commands of client sessions that were not executed
        pub session_refusals: "session_commands_refused",
        /// Commands in pieces not executed because there were too many at a time
        pub commands_dropped: "long_commands_dropped",
        /// Snapshots taken
        pub snapshots_taken: "snapshots_taken",
        /// Snapshots that could not be written
        pub snapshots_failed: "snapshots_failed",
    }
    with {
        /// Reported with those that consensus takes for malformed.
        pub malformed_messages: u64,
        pub term_keys: TermKeyCounters,
        /// From a write's arrival at the leader to its answer, whoever sent it or passed it on.
        pub commit: Durations,
    }
}
