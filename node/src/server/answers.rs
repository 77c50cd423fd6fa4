//! What clients are told when a request could not be carried out. The first words after
//! `SERVER_ERROR` classify: `not`, `no`, `busy`, `disk` mean that this sending of it was surely not
//! executed; after `not executed: sequence too old` nobody can tell whether an earlier sending was.
//! `outcome unknown` means that it may have been, or may yet be; `executed` and `already executed`, that it
//! was. Clients of the data plane decide by these words whether to ask again.
use quorumwire_sessions::Refusal;

/// A write was in the log or on its way when leadership moved, or it took too long. A follower is not told which.
pub const UNKNOWN: &str = "SERVER_ERROR outcome unknown: the write was not known to be committed in time, \
                           or before leadership moved\r\n";
/// Nobody leads, and nobody did for a while.
pub const NO_LEADER: &str = "SERVER_ERROR no leader: nothing was changed, try again\r\n";
/// The replica is no member any more.
pub const REMOVED: &str =
    "SERVER_ERROR no leader: this replica was removed from the cluster, nothing was changed\r\n";
/// Nobody leads, and nobody ever will: no replica remembers anything.
pub const DATA_GONE: &str = "SERVER_ERROR no leader: all replicas have forgotten what they held, the data is gone; see \
                             `quorumwire status`\r\n";
/// The replica stopped leading before the request reached the log.
pub const NOT_LEADER: &str = "SERVER_ERROR not leader: leadership moved, nothing was changed\r\n";
/// The write's place in the log went to another leader's entry.
pub const NOT_COMMITTED: &str =
    "SERVER_ERROR not executed: another leader took over, nothing was changed\r\n";
/// A limit on requests under way is reached.
pub const BUSY: &str = "SERVER_ERROR busy: too many requests under way, nothing was changed\r\n";
/// The leader cannot store entries.
pub const DISK_FULL: &str = "SERVER_ERROR disk full: writes are refused until space returns\r\n";
/// What is asked for is over by the leader's clock, and the log cannot say so.
pub const OVERDUE: &str = "SERVER_ERROR no answer: this key's time is over by the clock, and the log cannot say \
                           so while writes are refused or too few replicas answer\r\n";
/// The answer of a client of the data plane is longer than a packet.
pub const DOES_NOT_FIT: &str = "SERVER_ERROR executed: the answer does not fit a packet\r\n";
/// The answer was too long for a connection between replicas on which much waits already.
pub const NO_WAY_BACK: &str = "SERVER_ERROR executed: the queue of answers is full\r\n";
/// The process is stopping.
pub const STOPPING: &str = "SERVER_ERROR not executed: this replica is stopping\r\n";

/// Pieces of the command were dropped before its last one came.
pub const DROPPED: &str =
    "SERVER_ERROR not executed: too many long commands under way, nothing was changed\r\n";

/// A command of a session was not executed (again).
pub fn refused(refusal: Refusal) -> Vec<u8> {
    let text = match refusal {
        Refusal::AnswerGone => format!("SERVER_ERROR {refusal}\r\n"),
        Refusal::Malformed
        | Refusal::TooOld
        | Refusal::UnknownSession
        | Refusal::TooManySessions => format!("SERVER_ERROR not executed: {refusal}\r\n"),
    };
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_client::planes::{DEADLINE_MAX, Verdict, WINDOW};

    #[test]
    fn clients_of_the_plane_understand_every_answer() {
        for (text, verdict) in [
            (UNKNOWN, Verdict::TryAgain),
            (NO_LEADER, Verdict::TryAgain),
            (REMOVED, Verdict::TryAgain),
            (DATA_GONE, Verdict::TryAgain),
            (NOT_LEADER, Verdict::TryAgain),
            (NOT_COMMITTED, Verdict::TryAgain),
            (BUSY, Verdict::TryAgain),
            (STOPPING, Verdict::TryAgain),
            (DROPPED, Verdict::NotExecuted),
            (DISK_FULL, Verdict::TryAgain),
            (OVERDUE, Verdict::NotExecuted),
            (DOES_NOT_FIT, Verdict::AnswerGone),
            (NO_WAY_BACK, Verdict::AnswerGone),
        ] {
            assert_eq!(Verdict::of(text), verdict, "{text}");
        }
        for (refusal, verdict) in [
            (Refusal::AnswerGone, Verdict::AnswerGone),
            (Refusal::Malformed, Verdict::NotExecuted),
            (Refusal::TooOld, Verdict::Unknown),
            (Refusal::UnknownSession, Verdict::SessionGone),
            (Refusal::TooManySessions, Verdict::TryLater),
        ] {
            let text = String::from_utf8(refused(refusal)).unwrap();
            assert_eq!(Verdict::of(&text), verdict, "{text}");
        }
    }

    /// Otherwise a command could run twice, or be refused although it is new.
    #[test]
    fn clients_of_the_plane_keep_within_what_sessions_remember() {
        assert_eq!(WINDOW, quorumwire_sessions::WINDOW);
        let forgotten_after = u128::from(quorumwire_sessions::IDLE_MS_MIN);
        assert!(DEADLINE_MAX.as_millis() * 2 <= forgotten_after);
        assert!(quorumwire_client::planes::IDLE_MAX.as_millis() * 2 <= forgotten_after);
    }
}
