//! What functions return that fail.
use quorumwire_client::Error;
use quorumwire_client::deliver::Refusal;
use quorumwire_paxos_process::MemberError;
use std::cell::RefCell;

thread_local! {
    /// The text of the last error of a call of this thread.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// It.
pub fn last_of_this_thread() -> String {
    LAST.with_borrow(Clone::clone)
}

macro_rules! codes {
    ($($(#[$says:meta])* $name:ident = $number:literal, $in_c:literal, $text:literal;)*) => {
        /// An error's number, as the header has it.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(i32)]
        pub enum Code {
            $($(#[$says])* $name = $number,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name in C.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $in_c,)*
                }
            }

            /// What it means, with a 0 at its end.
            #[must_use]
            pub const fn text(self) -> &'static std::ffi::CStr {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// All is well.
    Ok = 0, "QUORUMWIRE_OK", c"done";
    /// An argument makes no sense.
    Argument = -1, "QUORUMWIRE_ERROR_ARGUMENT", c"an argument that makes no sense";
    /// There is no such handle.
    Handle = -2, "QUORUMWIRE_ERROR_HANDLE", c"no handle, or one that is closed";
    /// The configuration file is wrong.
    Configuration = -3, "QUORUMWIRE_ERROR_CONFIGURATION", c"a configuration that cannot be used";
    /// The value is too long.
    TooLarge = -4, "QUORUMWIRE_ERROR_TOO_LARGE", c"the value is too large";
    /// It was not carried out.
    NotCarriedOut = -5, "QUORUMWIRE_ERROR_NOT_CARRIED_OUT", c"not carried out";
    /// Nobody knows.
    OutcomeUnknown = -6, "QUORUMWIRE_ERROR_OUTCOME_UNKNOWN", c"outcome unknown";
    /// It was carried out, and its answer is lost.
    AnswerGone = -7, "QUORUMWIRE_ERROR_ANSWER_GONE", c"carried out, but the answer is lost";
    /// No more is kept.
    Full = -8, "QUORUMWIRE_ERROR_FULL", c"as many bytes of values are kept as may be";
    /// Nobody keeps it any more.
    Trimmed = -9, "QUORUMWIRE_ERROR_TRIMMED", c"trimmed: nobody keeps it any more";
    /// There is no such learner.
    NoLearner = -10, "QUORUMWIRE_ERROR_NO_LEARNER", c"no such learner";
    /// It is not decided yet.
    NotDecided = -11, "QUORUMWIRE_ERROR_NOT_DECIDED", c"not decided yet";
    /// A wrong name or password.
    NotLetIn = -12, "QUORUMWIRE_ERROR_NOT_LET_IN", c"not let in";
    /// Too much waits, or somebody else polls.
    Busy = -13, "QUORUMWIRE_ERROR_BUSY", c"busy: poll first, and not from a callback";
    /// A fault of the library.
    Internal = -14, "QUORUMWIRE_ERROR_INTERNAL", c"an internal fault";
}

impl Code {
    /// What the client's error is.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::NotCarriedOut(_) | Error::NoAnswer(_) | Error::Answered(_) => {
                Self::NotCarriedOut
            }
            Error::OutcomeUnknown => Self::OutcomeUnknown,
            Error::AnswerGone | Error::StrangeAnswer => Self::AnswerGone,
            Error::NotLetIn(_) => Self::NotLetIn,
            Error::TooLong { .. } => Self::TooLarge,
            Error::Invalid(_) => Self::Argument,
            Error::Trimmed { .. } => Self::Trimmed,
            Error::Refused(refusal) => match refusal {
                Refusal::Full { .. } => Self::Full,
                Refusal::TooLarge { .. } => Self::TooLarge,
                Refusal::UnknownLearner(_) => Self::NoLearner,
                Refusal::NotDecided { .. } => Self::NotDecided,
                Refusal::Malformed => Self::NotCarriedOut,
            },
        }
    }
}

/// Why a function fails, with all that is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    pub code: Code,
    pub text: String,
}

impl Failure {
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    /// Keeps its text for this thread.
    pub fn remember(&self) {
        LAST.with_borrow_mut(|text| text.clone_from(&self.text));
    }

    /// As the code's own text says.
    pub fn plain(code: Code) -> Self {
        Self::new(code, code.text().to_string_lossy())
    }
}

impl From<MemberError> for Failure {
    fn from(error: MemberError) -> Self {
        let code = match &error {
            MemberError::NoSuchLearner { .. } => Code::NoLearner,
            MemberError::Deployment(_) => Code::Configuration,
            MemberError::System(..) | MemberError::Folder(..) => Code::Internal,
            MemberError::TooLong { .. } | MemberError::NoOpTooLong { .. } => Code::TooLarge,
            MemberError::Unknown | MemberError::Late | MemberError::LateBehind { .. } => {
                Code::OutcomeUnknown
            }
            MemberError::Behind { .. } => Code::Trimmed,
            MemberError::Delivered(_) => Code::Argument,
            MemberError::TooFar { .. } | MemberError::NotDelivered(_) => Code::NotDecided,
            MemberError::TooManyRecoveries | MemberError::TooManySubmitted => Code::Busy,
            MemberError::Closed => Code::Handle,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(Code::of(&error), error.to_string())
    }
}
