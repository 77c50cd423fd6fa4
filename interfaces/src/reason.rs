/// Why a request has no answer of the state machine. Each has a number, which is the same in answers between replicas,
/// in packets of planes and for ever: what a program from before it makes of it is that nobody can tell.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Reason {
    /// It may have been carried out, or may yet be.
    OutcomeUnknown = 1,
    /// Its sequence is too far behind its session's newest: this sending was not carried out, and nobody can tell
    /// whether an earlier one was.
    SequenceTooOld = 2,
    /// It had been carried out before, and its answer was too long to be kept.
    AnswerGone = 3,
    /// It was carried out, and its answer does not fit a packet.
    AnswerTooLong = 4,
    /// It was carried out, and too much waits already on the connection that its answer should take.
    NoWayBack = 5,
    /// Nobody leads, and nobody did for a while.
    NoLeader = 16,
    /// Another replica leads, or leadership moves.
    NotLeader = 17,
    /// A limit on requests under way is reached.
    Busy = 18,
    /// The leader cannot store entries.
    DiskFull = 19,
    /// The process is stopping.
    Stopping = 20,
    /// Its place in the log went to another leader's entry.
    NotCommitted = 21,
    /// Every place for a session is in use.
    TooManySessions = 22,
    /// Its session was not opened, or is forgotten.
    UnknownSession = 23,
    /// The replica is no member any more.
    Removed = 27,
    /// All replicas have forgotten what they held, so nobody can ever lead.
    DataGone = 28,
    /// What is asked for is over by the leader's clock, and the log cannot say so.
    Overdue = 29,
    /// Pieces of the command were dropped before its last one came.
    PiecesGone = 30,
    /// It makes no sense as what it claims to be.
    Malformed = 31,
    /// It is no read that is served there.
    NotServed = 32,
    /// It asks for more keys than one request may.
    TooManyKeys = 33,
}

/// Whether a request that was refused has been carried out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Executed {
    /// This sending of it was not and will not be; an earlier one may have been.
    No,
    /// It was.
    Yes,
    /// It may have been, or may yet be.
    Unknown,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::OutcomeUnknown,
        Self::SequenceTooOld,
        Self::AnswerGone,
        Self::AnswerTooLong,
        Self::NoWayBack,
        Self::NoLeader,
        Self::NotLeader,
        Self::Busy,
        Self::DiskFull,
        Self::Stopping,
        Self::NotCommitted,
        Self::TooManySessions,
        Self::UnknownSession,
        Self::Removed,
        Self::DataGone,
        Self::Overdue,
        Self::PiecesGone,
        Self::Malformed,
        Self::NotServed,
        Self::TooManyKeys,
    ];

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The one with this number. Nobody can tell what one that is not known here means.
    #[must_use]
    pub fn from_code(code: u64) -> Self {
        let known = Self::ALL
            .into_iter()
            .find(|it| u64::from(it.code()) == code);
        known.unwrap_or(Self::OutcomeUnknown)
    }

    /// Whether what was refused so has been carried out.
    #[must_use]
    pub const fn executed(self) -> Executed {
        match self {
            Self::OutcomeUnknown | Self::SequenceTooOld => Executed::Unknown,
            Self::AnswerGone | Self::AnswerTooLong | Self::NoWayBack => Executed::Yes,
            Self::NoLeader
            | Self::NotLeader
            | Self::Busy
            | Self::DiskFull
            | Self::Stopping
            | Self::NotCommitted
            | Self::TooManySessions
            | Self::UnknownSession
            | Self::Removed
            | Self::DataGone
            | Self::Overdue
            | Self::PiecesGone
            | Self::Malformed
            | Self::NotServed
            | Self::TooManyKeys => Executed::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_that_of_one_reason_and_others_tell_nothing() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code().into()), reason);
        }
        for unknown in [0, 15, 24, 26, 255, 256 + 17, u64::MAX] {
            assert_eq!(Reason::from_code(unknown), Reason::OutcomeUnknown);
        }
    }

    /// Numbers below 16 say that it may have been carried out, so that whoever knows a reason only by its number errs on
    /// no side.
    #[test]
    fn numbers_tell_what_may_have_been_carried_out() {
        for reason in Reason::ALL {
            let may_be = reason.executed() != Executed::No;
            assert_eq!(reason.code() < 16, may_be, "{reason:?}");
        }
    }
}
