//! A client of the replicas' data planes: commands over UDP, each carried out once however often it has to
//! be sent. Blocking, without a runtime; knows nothing of what the commands mean.
//!
//! - A lifetime in a command given here never ends early: it counts from the next tick of the log's time. If
//!   the leader dies within some 20 ms of the command, it ends late by as long as nobody led. A client of
//!   another make that sends commands without a session to a plane gets lifetimes that count from the last
//!   tick.
//! - A blind write ([`PlaneClient::submit_blind`]) is answered when it is committed, before it is carried
//!   out: nobody hears what the state machine says to it, also not that a memory limit refused it.
mod keys;
pub mod lineage;
mod refusal;
mod requests;
mod settings;
mod udp;

#[cfg(test)]
mod lineage_test;
#[cfg(test)]
mod requests_test;

pub use keys::{ClientKey, ClientKeys, KeyFileError};
pub use refusal::Verdict;
pub use requests::{Counters, Requests, Ticket};
pub use settings::{
    DEADLINE_MAX, IDLE_MAX, REPLICAS_MAX, RETRY_MIN, Settings, SettingsError, WINDOW,
};
pub use udp::PlaneClient;

/// Longest command, in bytes.
pub const COMMAND_BYTES_MAX: usize = (1 << 20) + 4096;

/// Why a command has no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// No answer came before the deadline, or a refusal of one try after others were made: the command may
    /// have been carried out, or may yet be.
    #[error("outcome unknown: it may have been carried out, or may yet be")]
    OutcomeUnknown,
    /// It was sent once and not carried out, and why.
    #[error("refused: {0}")]
    Refused(String),
    /// It was carried out, and the answer of the state machine is lost.
    #[error("carried out, without its answer: {0}")]
    AnswerGone(String),
    /// It is longer than [`COMMAND_BYTES_MAX`]: it was not sent.
    #[error("{0} bytes are more than a command may have ({COMMAND_BYTES_MAX})")]
    TooLong(usize),
    /// As many commands as a session may have are unanswered: it was not sent. Only from
    /// [`PlaneClient::try_submit`].
    #[error("too many commands are unanswered")]
    WindowFull,
    /// The ticket's answer was taken already, or it is another client's.
    #[error("nothing is known of this ticket")]
    UnknownTicket,
    /// The socket failed; outstanding commands may have been carried out.
    #[error("socket: {0}")]
    Socket(String),
}
