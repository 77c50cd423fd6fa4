//! What a client of planes makes of a refusal.
use quorumwire_interfaces::Reason;

/// What to do about a refused request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Another try, here or elsewhere, may go better. Whether this one was carried out need not be
    /// known: the session sees to it that it runs once.
    TryAgain,
    /// Another try may go better after a while, and nowhere else. This one was not carried out.
    TryLater,
    /// Not carried out: this try of it.
    NotExecuted,
    /// Carried out; its answer is lost.
    AnswerGone,
    /// The replicas do not know the session (any more): this try of the command was not carried out,
    /// and a new session is needed.
    SessionGone,
    /// Nobody can tell any more whether it was carried out.
    Unknown,
}

impl Verdict {
    /// Of a refusal's reason.
    #[must_use]
    pub const fn of(reason: Reason) -> Self {
        match reason {
            // Disk full is said of this packet only: one sent before may be in the log and wait for the very
            // disk.
            Reason::OutcomeUnknown
            | Reason::NoLeader
            | Reason::NotLeader
            | Reason::Busy
            | Reason::DiskFull
            | Reason::Stopping
            | Reason::NotCommitted
            | Reason::Removed
            | Reason::DataGone => Self::TryAgain,
            Reason::TooManySessions => Self::TryLater,
            Reason::Overdue
            | Reason::PiecesGone
            | Reason::Malformed
            | Reason::NotServed
            | Reason::TooManyKeys => Self::NotExecuted,
            Reason::AnswerGone | Reason::AnswerTooLong | Reason::NoWayBack => Self::AnswerGone,
            Reason::UnknownSession => Self::SessionGone,
            Reason::SequenceTooOld => Self::Unknown,
        }
    }
}
