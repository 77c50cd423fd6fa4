//! What has become of the keys of fast terms.
use quorumwire_group::KeyRefusal;
use quorumwire_interfaces::{counters, counters_by};

counters_by! {
    /// Keys that were not kept, by reason.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct KeyRefusals: KeyRefusal {
        /// Keys of fast terms dropped because no data plane runs here
        Unexpected: "fast_term_keys_dropped_unexpected",
        /// Keys of fast terms dropped because they have not the length of a key
        Malformed: "fast_term_keys_dropped_malformed",
        /// Keys of fast terms dropped because their sender does not vote in this life
        Stranger: "fast_term_keys_dropped_stranger",
        /// Keys of fast terms dropped because their term is over
        OldTerm: "fast_term_keys_dropped_old_term",
        /// Keys of fast terms dropped because another replica leads that term
        NotLeader: "fast_term_keys_dropped_not_leader",
    }
}

counters! {
    /// What has become of keys since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct TermKeyCounters {
        /// Keys that this replica drew for fast terms which it led or stood for
        pub drawn: "fast_term_keys_drawn",
        /// Keys of fast terms sent to replicas that were asked to engage
        pub sent: "fast_term_keys_sent",
        /// Keys of fast terms received from leaders and candidates
        pub kept: "fast_term_keys_kept",
        /// Times that the data plane was not engaged because its leader's key had not come
        pub missing: "fast_term_keys_missing",
    }
    with {
        pub dropped: KeyRefusals,
    }
}
