//! What clients are told when a request could not be carried out. The first word after
//! `SERVER_ERROR` classifies: `not`, `no`, `busy`, `disk`, `read` mean surely not executed;
//! `outcome unknown` means it may have been, or may yet be; `executed` and `already executed`, that it
//! was. Clients of the data plane decide by these words whether to ask again.
use quorumwire_sessions::Refusal;

/// A write was in the log or on its way when leadership moved, or it took too long.
pub const UNKNOWN: &str = "SERVER_ERROR outcome unknown: leadership moved before the write was \
                           known to be committed\r\n";
/// Nobody leads, and nobody did for a while.
pub const NO_LEADER: &str = "SERVER_ERROR no leader: nothing was changed, try again\r\n";
/// The replica stopped leading before the request reached the log.
pub const NOT_LEADER: &str = "SERVER_ERROR not leader: leadership moved, nothing was changed\r\n";
/// The write's place in the log went to another leader's entry.
pub const NOT_COMMITTED: &str =
    "SERVER_ERROR not executed: another leader took over, nothing was changed\r\n";
/// A limit on requests under way is reached.
pub const BUSY: &str = "SERVER_ERROR busy: too many requests under way, nothing was changed\r\n";
/// The leader cannot store entries.
pub const DISK_FULL: &str = "SERVER_ERROR disk full: writes are refused until space returns\r\n";
/// See `requests.rs`.
pub const LEASE_LOST: &[u8] = b"SERVER_ERROR read not executed: the leader's lease ran out\r\n";
/// The process is stopping.
pub const STOPPING: &str = "SERVER_ERROR not executed: this replica is stopping\r\n";

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
