//! Why a client's request is refused for what it says, or for who says it. What the client is told stands
//! elsewhere, in the words of its protocol.

use quorumwire_interfaces::counters_by;

/// First byte of whoever speaks TLS: that of a handshake's record. No request of ours begins so.
pub const TLS_HANDSHAKE: u8 = 0x16;

/// One of a few reasons, for people who look at counters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WhyRefused {
    /// It is not what the protocol has there: words that are missing or make no sense, lengths that are not
    /// kept.
    Malformed,
    /// It, or a part of it, is longer than it may be.
    TooLong,
    /// There is no such command.
    UnknownCommand,
    /// There is such a command, or protocol, and it is not served here.
    NotServed,
    /// It is the beginning of TLS, where there is none. What else is in it may be words of somebody else: a
    /// browser sends what a page has made it send.
    Tls,
    /// Its client has not said who it is, and must. No parser knows of that.
    Unauthenticated,
}

counters_by! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RefusalCounters: WhyRefused {
        /// Requests refused because they are not what the protocol has there
        Malformed: "client_requests_refused_malformed",
        /// Requests refused because they, or a part of them, are longer than they may be
        TooLong: "client_requests_refused_too_long",
        /// Requests refused because there is no such command
        UnknownCommand: "client_requests_refused_unknown_command",
        /// Requests refused because the command, or the protocol, is not served here
        NotServed: "client_requests_refused_not_served",
        /// Requests refused because they are the beginning of TLS, at a port without TLS
        Tls: "client_requests_refused_tls",
        /// Requests refused because the client is not authenticated
        Unauthenticated: "client_requests_refused_unauthenticated",
    }
}
