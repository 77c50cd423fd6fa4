//! Why a client's request is refused for what it says, or for who says it. What the client is told stands elsewhere, in
//! the words of its protocol.

/// First byte of whoever speaks TLS: that of a handshake's record. No request of ours begins so.
pub const TLS_HANDSHAKE: u8 = 0x16;

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
    /// It is the beginning of TLS, where there is none. What else is in it may be words of somebody else: a browser
    /// sends what a page has made it send.
    Tls,
    /// Its client has not said who it is, and must. No parser knows of that.
    Unauthenticated,
}

impl WhyRefused {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Malformed,
        Self::TooLong,
        Self::UnknownCommand,
        Self::NotServed,
        Self::Tls,
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
            Self::Tls => "tls",
            Self::Unauthenticated => "unauthenticated",
        }
    }
}
