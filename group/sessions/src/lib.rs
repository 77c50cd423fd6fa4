//! What stands between the log and a state machine: commands of client sessions run once however often
//! they were sent, and commands that came in fragments run when the last fragment is there. It is part of the
//! replicated state: equal logs give equal tables on every replica, and snapshots contain them.
//!
//! A client numbers the commands of its session from 1 on and keeps at most [`WINDOW`] of them
//! unanswered, in any order. A repeated command is answered as it was the first time, unless that
//! answer was longer than [`ANSWER_BYTES_MAX`]; then it is known only that it ran.
//!
//! An empty command runs nothing: it opens its session. A client that opens its sessions so, never sends an
//! opening twice, and numbers its other commands from [`WINDOW`] + 1 on, has each of them run once however
//! late a copy comes: to a session that was forgotten meanwhile they are refused, because only numbers up to
//! [`WINDOW`] begin one.
//!
//! Commands of sessions come from clients that ask data planes, and no plane puts the log's time in front
//! of them. So what counts from such a command, in a session or in the state machine, counts from the
//! next tick.
mod fragments;
mod snapshot;
mod table;

#[cfg(test)]
mod tests;

pub use fragments::{FRAGMENTS_BYTES_MAX, FRAGMENTS_PER_COMMAND_MAX};

use fragments::{Fragment, Fragments};
use quorumwire_interfaces::{Application, Applied, Frozen, Index, LogTime, Reason};
use std::io;
use std::path::Path;
use table::{Before, Table};

/// Commands of one session that may be unanswered at a time.
pub const WINDOW: u64 = 64;

/// Longest answer that is kept for a repeated command, in bytes.
pub const ANSWER_BYTES_MAX: usize = 128;

/// Sessions known at a time.
pub const SESSIONS_MAX: usize = 8192;

/// A session that sent nothing for this long (by the log's time, in milliseconds, from the tick after its
/// last command on) may give way to a new one. A client must not send a command again that is older than
/// this.
pub const IDLE_MS_MIN: u64 = 60_000;

/// Bytes of a session's payload before its command: session and sequence, big-endian.
pub const SESSION_HEADER_BYTES: usize = 16;

/// Bytes of a fragment's payload before its bytes: session, sequence, number and count of fragments.
pub const FRAGMENT_HEADER_BYTES: usize = 24;

/// What became of a command, or of a fragment of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The command ran; its answer was appended.
    Applied,
    /// It had run before; its answer was appended.
    Repeated,
    /// A fragment was kept; others are missing.
    Incomplete,
    /// The command ran; its answer fits no message, and was dropped.
    AnswerTooLong,
    /// It did not run, now or here; nothing was appended.
    Refused(SessionRefusal),
}

/// Why a command of a session did not run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SessionRefusal {
    /// Its payload is shorter than its own header, a fragment has an impossible number or length, or the
    /// state machine takes nothing of clients.
    Malformed,
    /// It had run before, and its answer was too long to keep.
    AnswerGone,
    /// More than [`WINDOW`] behind the session's newest: whether it ran is not known any more.
    TooOld,
    /// The first command seen of a session is far from number 1: the session is not known (any more).
    UnknownSession,
    /// [`SESSIONS_MAX`] sessions are in use.
    TooManySessions,
}

impl SessionRefusal {
    /// What whoever asked is told.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Malformed => Reason::Malformed,
            Self::AnswerGone => Reason::AnswerGone,
            Self::TooOld => Reason::SequenceTooOld,
            Self::UnknownSession => Reason::UnknownSession,
            Self::TooManySessions => Reason::TooManySessions,
        }
    }
}

/// Where a command stands.
#[derive(Clone, Copy, Debug)]
pub struct LogPosition {
    /// Its entry's index.
    pub index: Index,
    /// The log's time there; before a command of a session it may be long past.
    pub log_time: LogTime,
}

/// A state machine whose commands may belong to sessions and may come in fragments.
#[derive(Debug, Default)]
pub struct Sessions<S> {
    inner: S,
    table: Table,
    fragments: Fragments,
    /// Of the last command: see [`Applied::number`].
    last_number: u64,
    /// A session was refused since the last tick, for want of one that is idle: time may show one.
    wants_idle: bool,
}

impl<S: Application> Sessions<S> {
    /// Nothing known yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            table: Table::default(),
            fragments: Fragments::default(),
            last_number: 0,
            wants_idle: false,
        }
    }

    /// The state machine, for reads.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// The state machine, for what is not part of its state.
    pub const fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// How many sessions are known.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.table.len()
    }

    /// Bytes of commands of which fragments are missing.
    #[must_use]
    pub fn fragments_bytes(&self) -> usize {
        self.fragments.bytes()
    }

    /// The number of the last command: see [`Applied::number`].
    #[must_use]
    pub const fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Runs a command without a session.
    pub fn command(&mut self, position: LogPosition, command: &[u8], reply: &mut Vec<u8>) {
        let applied = Applied {
            number: self.next_number(position),
            log_time: position.log_time,
            awaits_time: false,
            command,
        };
        self.inner.apply(&applied, reply);
    }

    /// The next command's number: its entry's index, or more if that entry held others before it.
    fn next_number(&mut self, position: LogPosition) -> u64 {
        self.last_number = position.index.0.max(self.last_number.saturating_add(1));
        self.last_number
    }

    /// Runs a command with a session: its payload is session, sequence (8 bytes each, big-endian) and the
    /// command.
    pub fn in_session(
        &mut self,
        position: LogPosition,
        payload: &[u8],
        reply: &mut Vec<u8>,
    ) -> Outcome {
        let Some((name, command)) = Name::split(payload) else {
            return Outcome::Refused(SessionRefusal::Malformed);
        };
        self.named(position, name, command, reply)
    }

    /// Keeps a fragment, and runs the command if it was the last one missing: the payload is session,
    /// sequence (8 bytes each), number from 0 on and count (4 bytes each), and the fragment's bytes. With
    /// session 0 the sequence must never be used for another command.
    pub fn fragment(
        &mut self,
        position: LogPosition,
        payload: &[u8],
        reply: &mut Vec<u8>,
    ) -> Outcome {
        let Some((name, rest)) = Name::split(payload) else {
            return Outcome::Refused(SessionRefusal::Malformed);
        };
        let Some(fragment) = Fragment::split(rest) else {
            return Outcome::Refused(SessionRefusal::Malformed);
        };
        if self.table.has_run(name) {
            // A repeated command: its fragments are not gathered again, and its last one answers.
            if fragment.number + 1 < fragment.count {
                return Outcome::Incomplete;
            }
            return self.named(position, name, &[], reply);
        }
        match self.fragments.take(position.index, name, &fragment) {
            None => Outcome::Incomplete,
            Some(command) => self.named(position, name, &command, reply),
        }
    }

    fn named(
        &mut self,
        position: LogPosition,
        name: Name,
        command: &[u8],
        reply: &mut Vec<u8>,
    ) -> Outcome {
        if name.session == 0 {
            self.command(position, command, reply);
            return Outcome::Applied;
        }
        if !self.inner.takes_clients() {
            return Outcome::Refused(SessionRefusal::Malformed);
        }
        let number = self.next_number(position);
        match self.table.begin(number, position.log_time, name) {
            Before::New => {}
            Before::Ran(answer) => {
                reply.extend_from_slice(&answer);
                return Outcome::Repeated;
            }
            Before::Refused(refusal) => {
                self.wants_idle |= refusal == SessionRefusal::TooManySessions;
                return Outcome::Refused(refusal);
            }
        }
        let begin = reply.len();
        if !command.is_empty() {
            let applied = Applied {
                number,
                log_time: position.log_time,
                awaits_time: true,
                command,
            };
            self.inner.apply(&applied, reply);
        }
        self.table.finish(name, &reply[begin..]);
        Outcome::Applied
    }

    /// As [`Application::advance`].
    pub fn advance(&mut self, log_time: LogTime) {
        self.wants_idle = false;
        self.table.advance(log_time);
        self.inner.advance(log_time);
    }

    /// As [`Application::set_ahead`].
    pub fn set_ahead(&mut self, ahead_ms: Option<i64>) {
        self.inner.set_ahead(ahead_ms);
    }

    /// As [`Application::awaits_time`].
    pub fn awaits_time(&self) -> bool {
        self.wants_idle || self.table.awaits_time() || self.inner.awaits_time()
    }

    /// As [`Application::next_deadline`].
    pub fn next_deadline(&self) -> Option<LogTime> {
        self.inner.next_deadline()
    }

    /// As [`Application::query`].
    pub fn query(&self, request: &[u8], reply: &mut Vec<u8>) {
        self.inner.query(request, reply);
    }

    /// As [`Application::takes_commands`].
    pub fn takes_commands(&self) -> bool {
        self.inner.takes_commands()
    }

    /// As [`Application::may_freeze`].
    pub fn may_freeze(&self) -> bool {
        self.inner.may_freeze()
    }

    /// As [`Application::freeze`].
    pub fn freeze(&self) -> Box<dyn Frozen> {
        let inner = self.inner.freeze();
        Box::new(snapshot::FrozenSessions::new(
            self.last_number,
            self.table.clone(),
            self.fragments.clone(),
            inner,
        ))
    }

    /// As [`Application::keep_files_in`].
    pub fn keep_files_in(&mut self, folder: &Path) {
        self.inner.keep_files_in(folder);
    }

    /// As [`Application::restore`]. Invalid data: the bytes are none that a snapshot writes.
    pub fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()> {
        (self.last_number, self.table, self.fragments) = snapshot::read(reader)?;
        self.wants_idle = false;
        self.inner.restore(reader)
    }
}

/// What a command is known by.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Name {
    pub(crate) session: u64,
    pub(crate) sequence: u64,
}

impl Name {
    fn split(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (session, rest) = payload.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let name = Self {
            session: u64::from_be_bytes(*session),
            sequence: u64::from_be_bytes(*sequence),
        };
        Some((name, rest))
    }
}
