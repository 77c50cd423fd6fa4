//! What is counted of clients of the own protocol.
use quorumwire_wire::client::{GoodbyeReason, RefusedReason};
use std::collections::BTreeMap;

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Closed {
    Malformed,
    ProtocolVersion,
    NotLetIn,
    NoHello,
}

impl Closed {
    const ALL: [Self; 4] = [
        Self::Malformed,
        Self::ProtocolVersion,
        Self::NotLetIn,
        Self::NoHello,
    ];

    /// Its name in metrics and logs.
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

/// Every reason of a refusal, and its name in metrics.
const REFUSED: [(RefusedReason, &str); 12] = [
    (RefusedReason::OutcomeUnknown, "outcome_unknown"),
    (RefusedReason::SequenceTooOld, "sequence_too_old"),
    (RefusedReason::AnswerGone, "answer_gone"),
    (RefusedReason::NoLeader, "no_leader"),
    (RefusedReason::NotLeader, "not_leader"),
    (RefusedReason::Busy, "busy"),
    (RefusedReason::DiskFull, "disk_full"),
    (RefusedReason::Stopping, "stopping"),
    (RefusedReason::NotCommitted, "not_committed"),
    (RefusedReason::TooManySessions, "too_many_sessions"),
    (RefusedReason::UnknownSession, "unknown_session"),
    (RefusedReason::Other, "other"),
];

/// Of one connection since it was asked last, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCounters {
    /// Clients that said who they are, and were let in.
    pub welcomed: u64,
    pub submits: u64,
    pub queries: u64,
    pub pings: u64,
    /// Commands that had run before, answered again.
    pub answers_repeated: u64,
    refused: [u64; REFUSED.len()],
    closed: [u64; Closed::ALL.len()],
}

impl OwnCounters {
    pub fn count_refused(&mut self, why: RefusedReason) {
        let place = REFUSED.iter().position(|(reason, _)| *reason == why);
        self.refused[place.unwrap_or(REFUSED.len() - 1)] += 1;
    }

    pub fn count_closed(&mut self, why: Closed) {
        let place = Closed::ALL.iter().position(|reason| *reason == why);
        self.closed[place.unwrap_or_default()] += 1;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.welcomed += other.welcomed;
        self.submits += other.submits;
        self.queries += other.queries;
        self.pings += other.pings;
        self.answers_repeated += other.answers_repeated;
        for (sum, count) in self.refused.iter_mut().zip(other.refused) {
            *sum += count;
        }
        for (sum, count) in self.closed.iter_mut().zip(other.closed) {
            *sum += count;
        }
    }

    /// Named for a report.
    pub fn report(&self, into: &mut BTreeMap<String, u64>) {
        let named = [
            ("client_port_welcomed", self.welcomed),
            ("client_port_commands", self.submits),
            ("client_port_queries", self.queries),
            ("client_port_pings", self.pings),
            ("client_port_commands_repeated", self.answers_repeated),
        ];
        into.extend(named.map(|(name, count)| (name.to_owned(), count)));
        let refused = REFUSED.iter().zip(self.refused);
        into.extend(
            refused.map(|((_, name), count)| (format!("client_port_refused_{name}"), count)),
        );
        let closed = Closed::ALL.iter().zip(self.closed);
        into.extend(
            closed.map(|(why, count)| (format!("client_port_closed_{}", why.name()), count)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_under_its_own_name() {
        for (reason, name) in REFUSED {
            let mut counters = OwnCounters::default();
            counters.count_refused(reason);
            let mut all = OwnCounters::default();
            all.add(&counters);
            all.add(&counters);
            let mut report = BTreeMap::new();
            all.report(&mut report);
            assert_eq!(report[&format!("client_port_refused_{name}")], 2);
            assert_eq!(report.values().sum::<u64>(), 2, "{name}");
        }
        for why in Closed::ALL {
            let mut counters = OwnCounters::default();
            counters.count_closed(why);
            let mut report = BTreeMap::new();
            counters.report(&mut report);
            assert_eq!(report[&format!("client_port_closed_{}", why.name())], 1);
        }
    }
}
