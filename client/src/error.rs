//! Why a request has no answer, and what is known of its outcome then.

/// What is known of a command's outcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It was carried out, once.
    CarriedOut,
    /// It was not carried out and will not be.
    NotCarriedOut,
    /// It may have been carried out, or may yet be; not more than once.
    Unknown,
}

/// Why a request has no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// It was not carried out and will not be; the text says why. It may be submitted again.
    #[error("not carried out: {0}")]
    NotCarriedOut(String),
    /// It was carried out, once. Its answer was longer than the 128 bytes that are kept for those who ask
    /// again, or longer than a message may be. Errors of the store's commands are shorter.
    #[error("carried out, without its answer")]
    AnswerGone,
    /// It may have been carried out, or may yet be, though not more than once. Look before it is submitted
    /// again.
    #[error("outcome unknown: it may have been carried out, or may yet be")]
    OutcomeUnknown,
    /// A query had no answer in time. It changes nothing.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The replicas do not know this name with this password. Nothing was carried out.
    #[error("not let in: {0}")]
    NotLetIn(String),
    /// It is longer than a command or a query may be. It was not sent.
    #[error("the request has {bytes} bytes; allowed: at most {max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is taken.
        max: usize,
    },
    /// Settings, or words of a command, that make no sense. Nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// The store answered this error and changed nothing. A transaction was refused as a whole then; what
    /// only one of its commands was answered is a [`Value::Error`](crate::kv::Value::Error) among its values.
    #[error("{0}")]
    Answered(String),
    /// Of values that are kept for learners: the command was refused, and changed nothing.
    #[error("refused: {0}")]
    Refused(quorumwire_deliver::Refusal),
    /// Some of the values that were asked for are kept by nobody any more: none up to this instance.
    #[error("all values up to instance {upto} are trimmed")]
    Trimmed {
        /// The last that is gone.
        upto: u64,
    },
    /// The answer is none that the store gives; the command was carried out.
    #[error("an answer that makes no sense")]
    StrangeAnswer,
}

impl Error {
    /// What is known of the outcome of a command that failed so.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::NotCarriedOut(_)
            | Self::NoAnswer(_)
            | Self::NotLetIn(_)
            | Self::TooLong { .. }
            | Self::Invalid(_)
            | Self::Answered(_)
            | Self::Refused(_)
            | Self::Trimmed { .. } => Outcome::NotCarriedOut,
            Self::AnswerGone | Self::StrangeAnswer => Outcome::CarriedOut,
            Self::OutcomeUnknown => Outcome::Unknown,
        }
    }
}
