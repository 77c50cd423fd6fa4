//! What is kept of a Redis client: how it is answered, its transaction, its name.
use crate::accounts::DEFAULT_NAME;
use crate::server::answers;
use quorumwire_control::Now;
use quorumwire_interfaces::Reason;
use quorumwire_kv::redis::{Resp, Skip};
use std::net::SocketAddr;

/// What a client has asked for so far.
pub struct RedisClient {
    pub resp: Resp,
    pub from: SocketAddr,
    pub since: Now,
    pub last_at: Now,
    /// None: it was none, or there was none yet.
    pub last_command: Option<&'static str>,
    pub name: Vec<u8>,
    /// Who it is, where clients have names; empty if it has not said.
    pub user: Vec<u8>,
    pub library: [Vec<u8>; 2],
    pub transaction: Option<Transaction>,
    pub watched: WatchedKeys,
    /// `CLIENT REPLY OFF`.
    pub replies_off: bool,
    /// `CLIENT REPLY SKIP` came just before.
    pub skips_next: bool,
    /// The command that is being looked at is not answered.
    pub is_quiet: bool,
    /// Bytes of answers that were made here, said or not, and are not counted as work yet.
    pub made_bytes: usize,
    /// What is still to come of a request that was too long.
    pub skip: Option<Skip>,
}

impl RedisClient {
    pub fn new(from: SocketAddr, now: Now) -> Self {
        Self {
            resp: Resp::V2,
            from,
            since: now,
            last_at: now,
            last_command: None,
            name: Vec::new(),
            user: Vec::new(),
            library: [Vec::new(), Vec::new()],
            transaction: None,
            watched: WatchedKeys::default(),
            replies_off: false,
            skips_next: false,
            is_quiet: false,
            made_bytes: 0,
            skip: None,
        }
    }

    /// Whether the rest of a request is still to come, to be thrown away.
    pub const fn is_skipping(&self) -> bool {
        self.skip.is_some()
    }

    /// Another request: whether `CLIENT REPLY SKIP` was for it.
    pub fn begin_request(&mut self) -> bool {
        let is_skipped = std::mem::take(&mut self.skips_next);
        self.is_quiet = self.replies_off || is_skipped;
        is_skipped
    }

    /// Whether the client wants no answer to what it asks now.
    pub const fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Who it is; where clients have no names, all have this one.
    pub fn user(&self) -> &[u8] {
        if self.user.is_empty() {
            DEFAULT_NAME
        } else {
            &self.user
        }
    }

    /// Memory of what is kept between its requests.
    pub fn held_bytes(&self) -> usize {
        let transaction = self.transaction.as_ref();
        transaction.map_or(0, Transaction::held_bytes) + self.watched.held_bytes()
    }

    /// As it was when it connected; its protocol stays only if that is not reset, too.
    pub fn reset(&mut self) {
        *self = Self {
            since: self.since,
            ..Self::new(self.from, self.last_at)
        };
    }
}

/// Commands between `MULTI` and `EXEC`.
#[derive(Default)]
pub struct Transaction {
    pub commands: Vec<u8>,
    pub count: usize,
    pub has_failed: bool,
}

impl Transaction {
    /// How many commands there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Memory of its commands.
    pub const fn held_bytes(&self) -> usize {
        self.commands.capacity()
    }

    /// A command was refused: `EXEC` will refuse the others.
    pub fn fail(&mut self) {
        self.has_failed = true;
        self.commands = Vec::new();
    }
}

/// Watched keys with their versions.
#[derive(Default)]
pub struct WatchedKeys {
    /// As [`Script::watched`] wants them.
    pub keys: Vec<u8>,
    pub count: usize,
    /// Whose versions are not known yet, one list for each `WATCH`.
    pub asked: usize,
    /// How many keys those are.
    pub asked_count: usize,
}

impl WatchedKeys {
    /// How many keys there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Memory of the keys.
    pub const fn held_bytes(&self) -> usize {
        self.keys.capacity()
    }

    /// Whether versions are still to come.
    pub const fn is_asked(&self) -> bool {
        self.asked > 0
    }
}

/// Appends why there is no answer, as an error of Redis' protocol.
pub fn put_refusal(output: &mut Vec<u8>, reason: Reason, instead: &[u8]) {
    output.push(b'-');
    output.extend_from_slice(kind(reason).as_bytes());
    output.push(b' ');
    output.extend_from_slice(&answers::text(reason, instead));
    output.extend_from_slice(b"\r\n");
}

/// Redis' word for it.
const fn kind(reason: Reason) -> &'static str {
    match reason {
        Reason::NoLeader | Reason::Removed | Reason::DataGone | Reason::Stopping => "CLUSTERDOWN",
        Reason::NotLeader => "READONLY",
        Reason::Busy | Reason::Overdue => "TRYAGAIN",
        Reason::DiskFull => "MISCONF",
        Reason::OutcomeUnknown
        | Reason::SequenceTooOld
        | Reason::AnswerGone
        | Reason::AnswerTooLong
        | Reason::NoWayBack
        | Reason::NotCommitted
        | Reason::TooManySessions
        | Reason::UnknownSession
        | Reason::PiecesGone
        | Reason::Malformed
        | Reason::NotServed
        | Reason::TooManyKeys => "ERR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_error_of_redis() {
        for (reason, begins) in [
            (Reason::OutcomeUnknown, "ERR outcome unknown"),
            (Reason::NoLeader, "CLUSTERDOWN no leader"),
            (Reason::Removed, "CLUSTERDOWN no leader"),
            (
                Reason::DataGone,
                "CLUSTERDOWN no leader: all replicas have forgotten",
            ),
            (Reason::NotLeader, "READONLY not leader"),
            (Reason::NotCommitted, "ERR not executed"),
            (Reason::Busy, "TRYAGAIN busy"),
            (Reason::Overdue, "TRYAGAIN no answer"),
            (Reason::DiskFull, "MISCONF disk full"),
            (Reason::Stopping, "CLUSTERDOWN not executed"),
        ] {
            let mut output = b"+OK\r\n".to_vec();
            put_refusal(&mut output, reason, b"");
            let output = String::from_utf8(output).unwrap();
            assert!(output.starts_with(&format!("+OK\r\n-{begins}")), "{output}");
            assert!(output.ends_with("\r\n"), "{output}");
        }
    }
}
