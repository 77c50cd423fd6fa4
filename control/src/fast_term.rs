//! The words of the handover between software terms and fast terms (terms in which data planes move
//! the log). What is done with them is in `engagement.rs`, `fence.rs` and `fast_leader.rs`.
use crate::{Now, Peer};
use quorumwire_interfaces::{GroupId, Index, Term, counters, counters_by};

/// What a replica's data plane is to be engaged with: it continues the log behind `last_index`. The
/// node adds addresses and durability and makes an `interfaces::Grant` of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Engage {
    /// Which log.
    pub group: GroupId,
    /// The fast term.
    pub term: Term,
    /// The last entry that software moved; durable here.
    pub last_index: Index,
    /// That entry's term.
    pub last_term: Term,
    /// What is known to be committed; at most `last_index`.
    pub commit_index: Index,
    /// Slot of this replica in `voters`.
    pub me: u8,
    /// Slot of the leader in `voters`.
    pub leader: u8,
    /// All voters, in slot order, the same on all of them.
    pub voters: Vec<Peer>,
    /// How many of them must hold an entry to commit it, the leader included.
    pub quorum: u8,
}

/// Where a replica stands while its data plane is engaged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FastTerm {
    /// The term.
    pub term: Term,
    /// Since when this replica's plane is engaged.
    pub since: Now,
    /// The entry behind which its plane took over.
    pub start_index: Index,
    /// Whether it leads.
    pub leading: bool,
}

/// Why a replica's data plane stops.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum LeaveReason {
    /// Somebody takes part in a higher term.
    HigherTerm,
    /// Its leader has not been heard for long, and others agree: an election comes.
    LeaderSilent,
    /// The leader goes on in software, or repairs this replica by software.
    Software,
    /// The members are to be changed.
    MembershipChange,
    /// Leadership is to be transferred.
    Transfer,
    /// Leader: too few engaged replicas answer.
    TooFewEngaged,
    /// Leader: enough answer, but entries wait and none was committed for long. A disk is stuck, perhaps
    /// of a member that software can do without.
    CommitsStandStill,
    /// The plane broke.
    PlaneFailed,
}

impl LeaveReason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::HigherTerm,
        Self::LeaderSilent,
        Self::Software,
        Self::MembershipChange,
        Self::Transfer,
        Self::TooFewEngaged,
        Self::CommitsStandStill,
        Self::PlaneFailed,
    ];

    /// As status calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HigherTerm => "higher_term",
            Self::LeaderSilent => "leader_silent",
            Self::Software => "software",
            Self::MembershipChange => "membership_change",
            Self::Transfer => "transfer",
            Self::TooFewEngaged => "too_few_engaged",
            Self::CommitsStandStill => "commits_stand_still",
            Self::PlaneFailed => "plane_failed",
        }
    }
}

counters! {
    /// What the handover has done since the replica's start.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct FastCounters {
        /// Times this leader stopped taking requests in order to engage data planes
        pub engage_attempts: "fast_term_attempts",
        /// Times that led to no fast term
        pub engage_failures: "fast_term_attempts_failed",
        /// Times this replica's data plane was engaged
        pub engaged: "plane_engaged",
        /// Times this replica's data plane was not engaged although it was asked to
        pub engage_refused: "plane_engage_refused",
        /// Offers to members close behind to join the running fast term
        pub offers: "plane_offers",
        /// Engaged members that fell silent or behind and were taken over by software
        pub members_lost: "plane_members_lost",
        /// Inputs of consensus that waited for the data plane to stop
        pub fence_waited: "plane_fence_waited",
        /// Peer messages dropped because too many waited for the data plane to stop
        pub fence_dropped: "message_dropped_plane_fence_full",
    }
    with {
        /// How often a plane stopped, by reason.
        pub left: LeaveCounters,
        /// Why the last one stopped.
        pub last_left: Option<LeaveReason>,
    }
}

counters_by! {
    /// How often a plane stopped, by reason.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct LeaveCounters: LeaveReason {
        /// Data plane stopped: somebody took part in a higher term
        HigherTerm: "fast_term_left_higher_term",
        /// Data plane stopped: the leader was not heard and others agreed
        LeaderSilent: "fast_term_left_leader_silent",
        /// Data plane stopped: its leader went on in software, or repaired this replica by software
        Software: "fast_term_left_software",
        /// Data plane stopped: the members were to be changed
        MembershipChange: "fast_term_left_membership_change",
        /// Data plane stopped: leadership was to be transferred
        Transfer: "fast_term_left_transfer",
        /// Data plane stopped: too few engaged replicas answered
        TooFewEngaged: "fast_term_left_too_few_engaged",
        /// Data plane stopped: entries waited, enough replicas answered, and none was committed
        CommitsStandStill: "fast_term_left_commits_stand_still",
        /// Data plane stopped: it had failed
        PlaneFailed: "fast_term_left_plane_failed",
    }
}
