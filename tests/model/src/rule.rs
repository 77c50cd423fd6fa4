//! The rules that make the handover safe. Each can be taken out of the model by itself.

/// One rule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Rule {
    /// A voter's plane stops, and its ring is in the log, before it enters a higher term and votes.
    FenceBeforeVote,
    /// A candidate's plane stops before it stands for election and says how long its log is.
    CandidateFences,
    /// What is in the ring when the plane stops goes into the log before anything else happens.
    RingIsTaken,
    /// A voter gives its vote only to a candidate whose log misses nothing of its own.
    VoterComparesLogs,
    /// A vote is on disk before it leaves.
    VoteIsPersisted,
    /// A voter engages its plane only if its log is exactly the candidate's.
    EqualLogEngages,
    /// The leader engages its plane only after a majority, itself included, has engaged.
    MajorityEngagesFirst,
    /// Only a leader stands for a fast term.
    LeaderStands,
    /// A leader stands for a fast term only if everything in its log is committed.
    WhollyCommitted,
    /// A plane ignores packets of other terms than its own.
    PlaneDropsOtherTerms,
    /// A plane stores only the entry right behind its last one.
    Contiguous,
    /// A plane stores an entry only if the entry before it is of the term that the packet says.
    PreviousTermMatches,
    /// A plane acknowledges, and counts for its own replica, only what is on disk.
    HeldAcknowledgement,
    /// A straggler takes an offer only in the term that it is made for.
    OfferOfOwnTerm,
    /// A straggler engages only if its log is known to be its leader's up to its last entry.
    StragglerVerified,
    /// A straggler engages only if its last entry is on disk.
    StragglerDurable,
    /// An engaged follower stops its plane before it takes an Append of software.
    AppendFences,
    /// A leader stops its plane before its software gives out an index.
    LeaderFences,
    /// A leader's plane counts only acknowledgements of its own term.
    OwnTermCounts,
    /// A leader's plane counts only acknowledgements of members.
    MembersCount,
    /// Software counts replicas only for an entry of its own term.
    CommitsOwnTerm,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::FenceBeforeVote,
        Self::CandidateFences,
        Self::RingIsTaken,
        Self::VoterComparesLogs,
        Self::VoteIsPersisted,
        Self::EqualLogEngages,
        Self::MajorityEngagesFirst,
        Self::LeaderStands,
        Self::WhollyCommitted,
        Self::PlaneDropsOtherTerms,
        Self::Contiguous,
        Self::PreviousTermMatches,
        Self::HeldAcknowledgement,
        Self::OfferOfOwnTerm,
        Self::StragglerVerified,
        Self::StragglerDurable,
        Self::AppendFences,
        Self::LeaderFences,
        Self::OwnTermCounts,
        Self::MembersCount,
        Self::CommitsOwnTerm,
    ];
}
