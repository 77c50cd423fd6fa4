//! What the texts of `answers.rs` are in the words of the own protocol.
use quorumwire_wire::client::{Refused, RefusedReason};

/// Longest text that a client is shown.
const DETAIL_BYTES_MAX: usize = 256;

/// Text in front, what it means; the first one that fits counts.
const WORDS: [(&str, RefusedReason); 12] = [
    ("outcome unknown", RefusedReason::OutcomeUnknown),
    ("already executed", RefusedReason::AnswerGone),
    ("executed", RefusedReason::AnswerGone),
    ("no leader", RefusedReason::NoLeader),
    ("not leader", RefusedReason::NotLeader),
    ("busy", RefusedReason::Busy),
    ("disk full", RefusedReason::DiskFull),
    (
        "not executed: sequence too old",
        RefusedReason::SequenceTooOld,
    ),
    (
        "not executed: this replica is stopping",
        RefusedReason::Stopping,
    ),
    ("not executed: another leader", RefusedReason::NotCommitted),
    (
        "not executed: too many sessions",
        RefusedReason::TooManySessions,
    ),
    (
        "not executed: unknown session",
        RefusedReason::UnknownSession,
    ),
];

/// The refusal that a text is. What is not known here was not carried out, as all texts but these say.
pub fn refused(text: &[u8]) -> Refused {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_end();
    let text = text.strip_prefix("SERVER_ERROR ").unwrap_or(text);
    let known = WORDS.iter().find(|(words, _)| text.starts_with(words));
    let reason = known.map_or(RefusedReason::Other, |(_, reason)| *reason);
    let detail = text.chars().take(DETAIL_BYTES_MAX).collect();
    Refused {
        reason: reason.into(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::answers;
    use super::*;
    use quorumwire_sessions::Refusal;

    #[test]
    fn every_answer_has_its_reason() {
        for (text, reason) in [
            (answers::UNKNOWN, RefusedReason::OutcomeUnknown),
            (answers::NO_LEADER, RefusedReason::NoLeader),
            (answers::REMOVED, RefusedReason::NoLeader),
            (answers::NOT_LEADER, RefusedReason::NotLeader),
            (answers::NOT_COMMITTED, RefusedReason::NotCommitted),
            (answers::BUSY, RefusedReason::Busy),
            (answers::DISK_FULL, RefusedReason::DiskFull),
            (answers::STOPPING, RefusedReason::Stopping),
            (answers::NO_WAY_BACK, RefusedReason::AnswerGone),
            (answers::DROPPED, RefusedReason::Other),
            (answers::OVERDUE, RefusedReason::Other),
        ] {
            assert_eq!(refused(text.as_bytes()).reason(), reason, "{text}");
        }
        for (refusal, reason) in [
            (Refusal::AnswerGone, RefusedReason::AnswerGone),
            (Refusal::Malformed, RefusedReason::Other),
            (Refusal::TooOld, RefusedReason::SequenceTooOld),
            (Refusal::UnknownSession, RefusedReason::UnknownSession),
            (Refusal::TooManySessions, RefusedReason::TooManySessions),
        ] {
            let text = answers::refused(refusal);
            assert_eq!(refused(&text).reason(), reason, "{refusal}");
        }
    }
}
