//! What a refusal is in the native protocol.
use crate::server::answers;
use quorumwire_interfaces::Reason;
use quorumwire_wire::client::{Refused, RefusedReason};

/// Longest text that a client is shown.
const DETAIL_BYTES_MAX: usize = 256;

/// The refusal for this reason; `instead` of its usual words, if that is known better.
pub fn refused(reason: Reason, instead: &[u8]) -> Refused {
    let text = answers::text(reason, instead);
    let text = String::from_utf8_lossy(&text);
    Refused {
        reason: told(reason).into(),
        detail: text.chars().take(DETAIL_BYTES_MAX).collect(),
    }
}

/// Clients know fewer reasons than there are: each is told as one that asks the same of them.
const fn told(reason: Reason) -> RefusedReason {
    match reason {
        Reason::OutcomeUnknown => RefusedReason::OutcomeUnknown,
        Reason::SequenceTooOld => RefusedReason::SequenceTooOld,
        Reason::AnswerGone | Reason::AnswerTooLong | Reason::NoWayBack => RefusedReason::AnswerGone,
        Reason::NoLeader | Reason::Removed | Reason::DataGone => RefusedReason::NoLeader,
        Reason::NotLeader => RefusedReason::NotLeader,
        Reason::Busy => RefusedReason::Busy,
        Reason::DiskFull => RefusedReason::DiskFull,
        Reason::Stopping => RefusedReason::Stopping,
        Reason::NotCommitted => RefusedReason::NotCommitted,
        Reason::TooManySessions => RefusedReason::TooManySessions,
        Reason::UnknownSession => RefusedReason::UnknownSession,
        Reason::Overdue
        | Reason::PiecesGone
        | Reason::Malformed
        | Reason::NotServed
        | Reason::TooManyKeys => RefusedReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::Executed;

    /// From 16 on numbers say that it was not carried out.
    #[test]
    fn clients_are_told_that_it_was_not_carried_out_only_if_so() {
        for reason in Reason::ALL {
            let told = i32::from(told(reason));
            assert_eq!(told >= 16, reason.executed() == Executed::No, "{reason:?}");
        }
    }

    #[test]
    fn the_words_are_no_longer_than_a_client_is_shown() {
        let refused = refused(Reason::TooManyKeys, &[b'x'; 2 * DETAIL_BYTES_MAX]);
        assert_eq!(refused.reason(), RefusedReason::Other);
        assert_eq!(refused.detail.len(), DETAIL_BYTES_MAX);
        assert!(refused.detail.contains(": xxx"), "{}", refused.detail);
    }
}
