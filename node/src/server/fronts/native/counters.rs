//! What is counted of clients of the native protocol.
use quorumwire_interfaces::{counters, counters_by};
use quorumwire_wire::client::{GoodbyeReason, RefusedReason};

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CloseReason {
    Malformed,
    ProtocolVersion,
    NotLetIn,
    NoHello,
}

impl CloseReason {
    /// Its name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::ProtocolVersion => "protocol_version",
            Self::NotLetIn => "not_let_in",
            Self::NoHello => "no_hello",
        }
    }

    /// What the client is told.
    pub const fn reason(self) -> GoodbyeReason {
        match self {
            Self::Malformed => GoodbyeReason::Malformed,
            Self::ProtocolVersion => GoodbyeReason::ProtocolVersion,
            Self::NotLetIn => GoodbyeReason::NotLetIn,
            Self::NoHello => GoodbyeReason::NoHello,
        }
    }
}

counters_by! {
    /// Refused requests, by reason.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RefusedCounters: RefusedReason but not [Unspecified] {
        /// Commands of clients of the port `client` with an unknown outcome
        OutcomeUnknown: "client_port_refused_outcome_unknown",
        /// Commands of clients of the port `client` numbered too far behind the newest of their session
        SequenceTooOld: "client_port_refused_sequence_too_old",
        /// Repeated commands of clients of the port `client` that had run before; the answer was too long
        /// to be kept
        AnswerGone: "client_port_refused_answer_gone",
        /// Requests of clients of the port `client` refused because nobody led
        NoLeader: "client_port_refused_no_leader",
        /// Requests of clients of the port `client` refused because leadership moved
        NotLeader: "client_port_refused_not_leader",
        /// Requests of clients of the port `client` refused because too many were under way
        Busy: "client_port_refused_busy",
        /// Requests of clients of the port `client` refused because the leader's disk is full
        DiskFull: "client_port_refused_disk_full",
        /// Requests of clients of the port `client` refused because the replica was stopping
        Stopping: "client_port_refused_stopping",
        /// Commands of clients of the port `client` whose place in the log another leader took
        NotCommitted: "client_port_refused_not_committed",
        /// Sessions of clients of the port `client` that found no room
        TooManySessions: "client_port_refused_too_many_sessions",
        /// Commands of clients of the port `client` whose session was forgotten
        UnknownSession: "client_port_refused_unknown_session",
        /// Requests of clients of the port `client` refused for another reason
        Other: "client_port_refused_other",
    }
}

counters_by! {
    /// Connections that were closed, by reason.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ClosedCounters: CloseReason {
        /// Clients of the port `client` closed because what they sent is not its protocol, or too long
        Malformed: "client_port_closed_malformed",
        /// Clients of the port `client` closed because they speak another version of it
        ProtocolVersion: "client_port_closed_protocol_version",
        /// Clients of the port `client` closed because of a wrong name or password
        NotLetIn: "client_port_closed_not_let_in",
        /// Clients of the port `client` closed because they did not authenticate
        NoHello: "client_port_closed_no_hello",
    }
}

counters! {
    /// Of one connection since it was asked last, or of all.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct NativeCounters {
        /// Clients of the port `client` that were let in
        pub welcomed: "client_port_welcomed",
        /// Commands from clients of the port `client`, openings of sessions and those sent again included
        pub submits: "client_port_commands",
        /// Queries on the port `client`
        pub queries: "client_port_queries",
        /// Pings on the port `client`
        pub pings: "client_port_pings",
        /// Subscriptions for values begun on the port `client`
        pub subscriptions: "client_port_subscriptions",
        /// Subscriptions on the port `client` that ended because some of what they lacked was trimmed
        pub subscriptions_trimmed: "client_port_subscriptions_trimmed",
        /// Values given to subscriptions on the port `client`
        pub values: "client_port_values",
        /// Bytes of values given to subscriptions on the port `client`
        pub value_bytes: "client_port_value_bytes",
        /// Commands of clients of the port `client` that had run before, answered as they were then
        pub answers_repeated: "client_port_commands_repeated",
    }
    with {
        pub refused: RefusedCounters,
        pub closed: ClosedCounters,
    }
}

impl NativeCounters {
    /// A reason that newer replicas give, or none, is another one.
    pub fn count_refused(&mut self, why: RefusedReason) {
        self.refused.count(match why {
            RefusedReason::Unspecified => RefusedReason::Other,
            known @ (RefusedReason::OutcomeUnknown
            | RefusedReason::SequenceTooOld
            | RefusedReason::AnswerGone
            | RefusedReason::NoLeader
            | RefusedReason::NotLeader
            | RefusedReason::Busy
            | RefusedReason::DiskFull
            | RefusedReason::Stopping
            | RefusedReason::NotCommitted
            | RefusedReason::TooManySessions
            | RefusedReason::UnknownSession
            | RefusedReason::Other) => known,
        });
    }

    /// Adds all that another one has counted.
    pub fn add_all(&mut self, other: &Self) {
        self.add(other);
        self.refused.add(&other.refused);
        self.closed.add(&other.closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_reason_has_another_one_and_all_are_added_up() {
        let mut counters = NativeCounters::default();
        counters.count_refused(RefusedReason::Unspecified);
        counters.count_refused(RefusedReason::Busy);
        counters.closed.count(CloseReason::NoHello);
        counters.pings += 1;
        let mut all = counters;
        all.add_all(&counters);
        let refused = |why| all.refused.of(why);
        let refused = [RefusedReason::Other, RefusedReason::Busy].map(refused);
        assert_eq!((refused, all.refused.sum()), ([2, 2], 4));
        assert_eq!((all.closed.of(CloseReason::NoHello), all.pings), (2, 2));
    }
}
