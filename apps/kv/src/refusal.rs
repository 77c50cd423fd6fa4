//! Why a client's request is refused for what it says, or for who says it. What the client is told stands elsewhere, in
//! the words of its protocol.

/// One of a few reasons, for people who look at counters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WhyRefused {
    /// It is not what the protocol has there: words that are missing or make no sense, lengths that are not kept.
    Malformed,
    /// It, or a part of it, is longer than it may be.
    TooLong,
    /// There is no such command.
    UnknownCommand,
    /// There is such a command, or protocol, and it is not served here.
    NotServed,
    /// Its client has not said who it is, and must. No parser knows of that.
    Unauthenticated,
}

impl WhyRefused {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Malformed,
        Self::TooLong,
        Self::UnknownCommand,
        Self::NotServed,
        Self::Unauthenticated,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLong => "too_long",
            Self::UnknownCommand => "unknown_command",
            Self::NotServed => "not_served",
            Self::Unauthenticated => "unauthenticated",
        }
    }
}
