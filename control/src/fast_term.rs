//! The words of the handover between software terms and fast terms (terms in which data planes move
//! the log). What is done with them is in `handover.rs`, `fence.rs` and `fast_leader.rs`.
use crate::{Now, Peer};
use quorumwire_interfaces::{GroupId, Index, Term};

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
    /// Leadership is to be handed over.
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
    /// All of them; a reason's place here is its place in [`FastCounters::left`].
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

    /// As status and metrics call it.
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

/// What the handover has done since the replica's start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FastCounters {
    /// Leader: how often it stopped taking proposals in order to engage.
    pub engage_attempts: u64,
    /// Leader: how often that led to no fast term.
    pub engage_failures: u64,
    /// How often this replica's plane was engaged, for whatever part.
    pub engaged: u64,
    /// How often it was not, although it was told to.
    pub engage_refused: u64,
    /// Leader: offers made to those who were close behind.
    pub offers: u64,
    /// Leader: engaged members that fell silent or behind and were taken over by software.
    pub members_lost: u64,
    /// How often a plane stopped, by reason, in the order of [`LeaveReason::ALL`].
    pub left: [u64; LeaveReason::ALL.len()],
    /// Inputs that waited for a plane to stop.
    pub fence_waited: u64,
    /// Messages dropped because too much waited for a plane to stop.
    pub fence_dropped: u64,
    /// Why the last one stopped.
    pub last_left: Option<LeaveReason>,
}
