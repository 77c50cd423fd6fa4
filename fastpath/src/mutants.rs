//! The safety checks that a test build can leave out one at a time, to show that each is needed: those of
//! the C, by the numbers of `include/qw_mutants.h`, and those of the engine around it, by name. Without the
//! feature `mutants` nothing can be left out.

/// A safety check of the C. `README.md` says what goes wrong without each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Mutant {
    /// Leader: an entry that the host has not taken is not overwritten.
    RequestRing = 1,
    /// Leader: a bounded number of entries waits for a commit.
    RequestWindow = 2,
    /// Follower: an entry that the host has not taken is not overwritten.
    AppendRing = 3,
    /// Follower: only the leader says what to store.
    LeaderSender = 4,
    /// A packet of an earlier term moves nothing.
    OldTerm = 5,
    /// A packet of a later term moves nothing.
    NewTerm = 6,
    /// A packet of another log moves nothing.
    Group = 7,
    /// A plane that is off moves nothing.
    RoleOff = 8,
    /// Follower: the entry before is of the term that the leader means.
    History = 9,
    /// Follower: no entry is left out.
    NextIndex = 10,
    /// Follower: an entry that is there already is not stored again.
    Repeated = 11,
    /// Follower: what software moved is not acknowledged by the plane.
    BeforeStart = 12,
    /// Only members of the grant say anything.
    Member = 13,
    /// A replica's own words do not count as another's.
    NotMyself = 14,
    /// Leader: only slots of the grant are counted.
    CountMembers = 15,
    /// Leader: a quorum holds what is committed.
    Quorum = 16,
    /// Leader: only entries of its own term are committed by counting.
    OwnTerm = 17,
    /// Leader: nobody holds what was never assigned.
    BeyondLast = 18,
    /// Leader: an old acknowledgement takes nothing back.
    MatchMonotone = 19,
    /// Leader: nobody has heard a round that was never sent.
    RoundSent = 20,
    /// Leader: an old answer to a round takes nothing back.
    HeardMonotone = 21,
    /// Follower: an old heartbeat takes no round back.
    RoundMonotone = 22,
    /// Follower: what is not here is not committed here.
    CommitWithinLast = 23,
    /// Follower: what is committed stays so.
    CommitMonotone = 24,
    /// Follower: with `held`, storing alone acknowledges nothing.
    HeldFollower = 25,
    /// Follower: an acknowledgement says only what is persisted.
    HeldReply = 26,
    /// Leader: with `held`, storing alone does not count.
    HeldLeader = 27,
    /// A request comes from a client.
    ClientSender = 28,
    /// A client does not move the log's time.
    ClientFlags = 29,
    /// Leader: what the ring holds no more is not sent again.
    BehindRing = 30,
    /// Leader: what software moved is not sent again by the plane.
    ResendStart = 31,
    /// What was never stored is not persisted.
    PersistedWithinLast = 32,
    /// What is acknowledged is not taken back.
    PersistedMonotone = 33,
    /// What was never stored is not released.
    ReleasedWithinLast = 34,
    /// There is an index after every index.
    LastIndexEver = 35,
    /// Leader: no round is sent twice.
    AscendingRounds = 36,
    /// The tag is right.
    Tag = 37,
    /// The kind decides which key counts.
    KeyOfKind = 38,
    /// Nothing stands behind a packet.
    ExactLength = 39,
    /// The format is known.
    Version = 40,
    /// All flags are known.
    FlagsKnown = 41,
    /// A client's pieces belong to its session.
    ClientPieces = 42,
    /// Switched on: the role and the slots are those of a member of the group.
    SoundSlots = 43,
    /// Switched on: any two quorums meet.
    Majority = 44,
    /// Switched on: ring and window have sizes that the step counts with.
    SoundLimits = 45,
    /// Switched on: there is a term, and no entry is of a later one.
    SoundTerms = 46,
    /// Switched on: nothing is said of entries that are not there.
    SoundIndexes = 47,
    /// A key that is not there signs nothing.
    KeyValid = 48,
    /// Follower: a request is sent on once.
    ForwardOnce = 49,
    /// Leader: who asks for an entry does not hold it.
    Question = 50,
    /// Leader: what software moved is not acknowledged to the plane.
    AnswerStart = 51,
    /// Follower: a heartbeat names no index after the last there may be.
    HeartbeatIndex = 52,
    /// Only a leader assigns.
    SubmitRole = 53,
    /// Only a leader begins rounds.
    HeartbeatRole = 54,
    /// A plane that is off promises nothing.
    PersistedRole = 55,
    /// Only with `held` the host says what is persisted.
    PersistedHeld = 56,
    /// What is released stays so.
    ReleasedMonotone = 57,
}

impl Mutant {
    /// All of them, ascending.
    pub const ALL: [Self; 57] = [
        Self::RequestRing,
        Self::RequestWindow,
        Self::AppendRing,
        Self::LeaderSender,
        Self::OldTerm,
        Self::NewTerm,
        Self::Group,
        Self::RoleOff,
        Self::History,
        Self::NextIndex,
        Self::Repeated,
        Self::BeforeStart,
        Self::Member,
        Self::NotMyself,
        Self::CountMembers,
        Self::Quorum,
        Self::OwnTerm,
        Self::BeyondLast,
        Self::MatchMonotone,
        Self::RoundSent,
        Self::HeardMonotone,
        Self::RoundMonotone,
        Self::CommitWithinLast,
        Self::CommitMonotone,
        Self::HeldFollower,
        Self::HeldReply,
        Self::HeldLeader,
        Self::ClientSender,
        Self::ClientFlags,
        Self::BehindRing,
        Self::ResendStart,
        Self::PersistedWithinLast,
        Self::PersistedMonotone,
        Self::ReleasedWithinLast,
        Self::LastIndexEver,
        Self::AscendingRounds,
        Self::Tag,
        Self::KeyOfKind,
        Self::ExactLength,
        Self::Version,
        Self::FlagsKnown,
        Self::ClientPieces,
        Self::SoundSlots,
        Self::Majority,
        Self::SoundLimits,
        Self::SoundTerms,
        Self::SoundIndexes,
        Self::KeyValid,
        Self::ForwardOnce,
        Self::Question,
        Self::AnswerStart,
        Self::HeartbeatIndex,
        Self::SubmitRole,
        Self::HeartbeatRole,
        Self::PersistedRole,
        Self::PersistedHeld,
        Self::ReleasedMonotone,
    ];
}

#[cfg(feature = "mutants")]
mod switch {
    use super::Mutant;
    use crate::ffi;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<bool> = const { Cell::new(false) };
    }

    /// Chooses the check to leave out on this thread; `None` for the real thing.
    pub fn activate(mutant: Option<Mutant>) {
        ACTIVE.set(mutant.is_some());
        ffi::mutant_set(mutant.map_or(0, |mutant| mutant as i32));
    }

    /// Whether leaving the chosen check out has made a difference to a branch since [`activate`].
    #[must_use]
    pub fn reached() -> bool {
        ffi::mutant_was_reached()
    }

    pub(crate) fn any_active() -> bool {
        ACTIVE.get()
    }
}

#[cfg(feature = "mutants")]
pub(crate) use quorumwire_mutants::mutant;
#[cfg(feature = "mutants")]
pub(crate) use switch::any_active;
#[cfg(feature = "mutants")]
pub use switch::{activate, reached};

/// Whether the named check of the engine is to be left out: never, outside the mutants' own tests.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn mutant(_name: &'static str) -> bool {
    false
}

#[cfg(all(test, feature = "mutants"))]
mod tests {
    use super::*;
    use crate::step::tests::{assert_the_c_takes_nothing_cut, form, packet};
    use quorumwire_wire::packet::Reason;

    /// Else the end of a cut packet would be read behind it.
    #[test]
    fn without_exact_length_only_what_is_longer_is_taken() {
        activate(Some(Mutant::ExactLength));
        let longer = [packet(), vec![0]].concat();
        assert_eq!(form(&longer).0, Reason::None);
        assert_the_c_takes_nothing_cut();
        activate(None);
        assert_eq!(form(&longer).0, Reason::Malformed);
    }
}
