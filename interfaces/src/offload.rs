//! What a plane can take over from its host: clients of the host that speak a protocol other than the plane's
//! own. Which protocol that is, the host and the plane agree; nothing here depends on it.
use crate::Index;
use std::net::SocketAddr;
use std::time::Duration;

/// What a plane may do for such clients by itself, until it is told otherwise. Times are since the system was
/// started, those asleep included, by the process's clock (`CLOCK_BOOTTIME`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Leave {
    /// Writes may go into the log before then.
    pub writes_until: Duration,
    /// The leader's lease holds before then, and earlier terms' entries are applied.
    pub reads_until: Duration,
    /// What [`Offload::keep_answer`] has kept shows everything up to here.
    pub applied: Index,
}

/// A plane that serves clients of its host, see [`DataPlane::offload`](crate::DataPlane::offload).
pub trait Offload {
    /// A datagram that such a client sent to the host's own socket. Leader: a write that fits a packet, and
    /// whose answer is known once it is committed, is put into the log and answered then. Whether it was
    /// taken; otherwise nothing has changed and the host serves it. A plane that sees such datagrams before
    /// the host does takes none here.
    fn take_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool;

    /// What the plane may do for clients whose datagrams it sees before the host does. Engaging and
    /// disengaging take all of it back.
    fn allow(&mut self, _leave: &Leave) {}

    /// Longest answer that the plane keeps, to give it by itself; 0: it keeps none.
    fn answer_bytes_max(&self) -> usize {
        0
    }

    /// The answer to a question from now on, or that the plane knows none. It may forget it any time, and
    /// need not take an answer to a question to which it has none.
    fn keep_answer(&mut self, _question: &[u8], _answer: Option<&[u8]>) {}

    /// The plane knows no answer to any question.
    fn forget_answers(&mut self) {}
}
