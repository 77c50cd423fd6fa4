//! What is counted since the process started. It is no part of the state.
use quorumwire_interfaces::counters;

counters! {
    /// Of the commands that were applied.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ValueCounters {
        /// Values that were decided
        pub decided: "values_decided",
        /// Bytes of values that were decided
        pub decided_bytes: "value_bytes_decided",
        /// Values refused because as many bytes were kept as may be: some learner does not checkpoint
        pub refused_full: "values_refused_full",
        /// Values refused because of their length
        pub refused_too_large: "values_refused_too_large",
        /// Checkpoints of learners
        pub checkpoints: "value_checkpoints",
        /// Values dropped because every learner had checkpointed them, or because they were declared lost
        pub trimmed: "values_trimmed",
    }
}
