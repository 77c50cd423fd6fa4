//! Why a request has no answer: one list for all who say it, send it and read it.

/// The list: the number of each reason, and whether what was refused so has been carried out.
macro_rules! reasons {
    ($($(#[$says:meta])* $name:ident = $number:literal => $executed:ident,)*) => {
        /// Why a request has no answer of the state machine. Each has a number, which is the same in answers
        /// between replicas, in packets of planes and for ever.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$says])* $name = $number,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$name),*];

            /// Whether what was refused so has been carried out.
            #[must_use]
            pub const fn executed(self) -> Executed {
                match self {
                    $(Self::$name => Executed::$executed,)*
                }
            }
        }
    };
}

reasons! {
    /// It may have been carried out, or may yet be.
    OutcomeUnknown = 1 => Unknown,
    /// Its sequence is too far behind its session's newest: this sending was not carried out, and nobody can
    /// tell whether an earlier one was.
    SequenceTooOld = 2 => Unknown,
    /// It had been carried out before, and its answer was too long to be kept.
    AnswerGone = 3 => Yes,
    /// It was carried out, and its answer does not fit a message, or a packet.
    AnswerTooLong = 4 => Yes,
    /// It was carried out, and too much waits already on the connection that its answer should take.
    NoWayBack = 5 => Yes,
    /// Nobody leads, and nobody did for a while.
    NoLeader = 16 => No,
    /// Another replica leads, or leadership moves.
    NotLeader = 17 => No,
    /// A limit on requests under way is reached.
    Busy = 18 => No,
    /// The leader cannot store entries.
    DiskFull = 19 => No,
    /// The process is stopping.
    Stopping = 20 => No,
    /// Its index went to another leader's entry.
    NotCommitted = 21 => No,
    /// There are as many sessions as may be.
    TooManySessions = 22 => No,
    /// Its session was not opened, or is forgotten.
    UnknownSession = 23 => No,
    /// The replica is no member any more.
    Removed = 27 => No,
    /// All replicas have forgotten what they held, so nobody can ever lead.
    DataGone = 28 => No,
    /// What is asked for is over by the leader's clock, and the log cannot say so.
    Overdue = 29 => No,
    /// Pieces of the command were dropped before its last one came.
    PiecesGone = 30 => No,
    /// It makes no sense as what it claims to be.
    Malformed = 31 => No,
    /// It is no read that is served there.
    NotServed = 32 => No,
    /// It asks for more keys than one request may.
    TooManyKeys = 33 => No,
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
    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The one with this number. Of one that is not known here nobody can tell whether it was carried out.
    #[must_use]
    pub fn from_code(code: u64) -> Self {
        let known = Self::ALL
            .into_iter()
            .find(|it| u64::from(it.code()) == code);
        known.unwrap_or(Self::OutcomeUnknown)
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

    /// So that people see it in the number, too.
    #[test]
    fn numbers_tell_what_may_have_been_carried_out() {
        for reason in Reason::ALL {
            let may_be = reason.executed() != Executed::No;
            assert_eq!(reason.code() < 16, may_be, "{reason:?}");
        }
    }
}
