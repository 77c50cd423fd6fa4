//! What an entry of the log does to the state machine, and who waits for it. The same in a running server, in
//! the simulator, and in a folder that is read without a server.
use crate::group::Group;
use crate::mutants::mutant;
use crate::proposals::Proposal;
use crate::requester::Requester;
use quorumwire_control::{Entry, SnapshotMeta};
use quorumwire_interfaces::{Application, DataPlane, Index, LogTime};
use quorumwire_sessions::{LogPosition, Outcome, SESSION_HEADER_BYTES, SessionRefusal, Sessions};
use quorumwire_wire::limits::ATTACHMENT_BYTES_MAX;
use quorumwire_wire::{RecordKind, Tick};
use std::iter::Peekable;

/// A command of an entry, or an entry that is none. Only [`commands_of`] makes one, so nothing is applied
/// that was not split.
#[derive(Clone, Copy, Debug)]
pub struct Split<'a> {
    kind: RecordKind,
    payload: &'a [u8],
}

impl<'a> Split<'a> {
    /// What it is.
    #[must_use]
    pub const fn kind(self) -> RecordKind {
        self.kind
    }

    /// Its bytes.
    #[must_use]
    pub const fn payload(self) -> &'a [u8] {
        self.payload
    }
}

/// What an entry is applied as, one after the other: the commands that it bundles, or itself.
pub fn commands_of(kind: RecordKind, payload: &[u8]) -> impl Iterator<Item = Split<'_>> {
    quorumwire_wire::commands_of(kind, payload).map(|(kind, payload)| Split { kind, payload })
}

/// Applies what stands at this index; what its client is told is appended to `reply`.
pub fn apply<S: Application>(
    store: &mut Sessions<S>,
    (index, log_time): (Index, &mut LogTime),
    Split { kind, payload }: Split<'_>,
    reply: &mut Vec<u8>,
) -> Outcome {
    let position = LogPosition {
        index,
        log_time: *log_time,
    };
    match kind {
        RecordKind::Command => {
            store.command(position, payload, reply);
            Outcome::Applied
        }
        RecordKind::SessionCommand if mutant("session-forgets") => {
            store.command(
                position,
                payload.get(SESSION_HEADER_BYTES..).unwrap_or(b""),
                reply,
            );
            Outcome::Applied
        }
        RecordKind::SessionCommand => store.in_session(position, payload, reply),
        RecordKind::Fragment => store.fragment(position, payload, reply),
        RecordKind::Tick => {
            if let Some(tick) = Tick::decode(payload) {
                *log_time = (*log_time).max(LogTime(tick.log_time_ms));
                store.set_ahead(tick.ahead_ms(log_time.0));
                store.advance(*log_time);
            }
            Outcome::Applied
        }
        // One that could not be split: the leader that made it is at fault.
        RecordKind::Bundle => Outcome::Refused(SessionRefusal::Malformed),
        RecordKind::NoOp
        | RecordKind::Membership
        | RecordKind::HardState
        | RecordKind::Durable
        | RecordKind::Base => Outcome::Applied,
    }
}

/// An entry that is being applied, command by command: [`Group::begin_entry`] makes one,
/// [`Group::apply_next`] goes on, [`Group::end_entry`] says who waits in vain. One at a time: who waits for
/// its commands is kept in the group.
#[derive(Debug)]
pub struct Applying<'a, C: Iterator<Item = Split<'a>>> {
    entry: &'a Entry,
    commands: Peekable<C>,
    /// Of the next command.
    position: u16,
}

/// A command that was applied.
#[derive(Debug)]
pub struct AppliedCommand<'a, O> {
    /// Which of its entry's commands: 0 is the first one.
    pub position: u16,
    /// What it was, as it stands in the log.
    pub command: Split<'a>,
    /// What became of it.
    pub outcome: Outcome,
    /// Who waits for its answer here.
    pub proposal: Option<Proposal<O>>,
}

impl<'a, C: Iterator<Item = Split<'a>>> Applying<'a, C> {
    /// How many commands it has held so far.
    #[must_use]
    pub const fn commands(&self) -> u16 {
        self.position
    }
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Takes out of what waits all that this entry settles. All at once: what is answered may begin a term,
    /// which takes what waits for that of another one.
    pub(crate) fn begin_entry<'a>(
        &mut self,
        entry: &'a Entry,
    ) -> Applying<'a, impl Iterator<Item = Split<'a>> + use<'a, S, O, P>> {
        self.settled
            .take(&mut self.proposals, (entry.index, entry.term));
        Applying {
            entry,
            commands: commands_of(entry.kind, entry.payload()).peekable(),
            position: 0,
        }
    }

    /// The positions of these were replaced by a snapshot: nobody can tell what became of them.
    pub(crate) fn take_unknown(&mut self) -> Vec<Proposal<O>> {
        std::mem::take(&mut self.settled.unknown)
    }

    /// The positions of these went to the entry that is being applied, which is another: they were not
    /// executed.
    pub(crate) fn take_displaced(&mut self) -> Vec<Proposal<O>> {
        std::mem::take(&mut self.settled.displaced)
    }

    /// Who waits for the command that is next, if there is one and somebody does.
    #[must_use]
    pub(crate) fn next_waits<'a, C: Iterator<Item = Split<'a>>>(
        &self,
        applying: &Applying<'a, C>,
    ) -> Option<&Proposal<O>> {
        let next = self.settled.own.front();
        next.filter(|proposal| proposal.position == applying.position)
    }

    /// Applies the entry's next command; what its client is told is left in `reply`, which was empty. An
    /// answer that fits no message is none. With the last command the entry counts as applied.
    pub(crate) fn apply_next<'a, C: Iterator<Item = Split<'a>>>(
        &mut self,
        applying: &mut Applying<'a, C>,
        reply: &mut Vec<u8>,
    ) -> Option<AppliedCommand<'a, O>> {
        let command = applying.commands.next()?;
        let position = applying.position;
        applying.position += 1;
        let at = (applying.entry.index, &mut self.log_time);
        let mut outcome = apply(&mut self.store, at, command, reply);
        if reply.len() > ATTACHMENT_BYTES_MAX {
            *reply = Vec::new();
            outcome = Outcome::AnswerTooLong;
        }
        if command.kind == RecordKind::Tick {
            self.follow_log_time();
        }
        if applying.commands.peek().is_none() {
            self.applied = applying.entry.index;
            self.bytes_since_snapshot += applying.entry.record().len() as u64;
        }
        Some(AppliedCommand {
            position,
            command,
            outcome,
            proposal: self.settled.take_own(position),
        })
    }

    /// What a snapshot of all that is applied says of itself, if there is more than the newest one has. It
    /// counts as begun. None, too, while the application gives none.
    pub fn begin_snapshot(&mut self) -> Option<SnapshotMeta> {
        let last_index = self.applied;
        let last_term = self.replica.term_at(last_index)?;
        if last_index == Index(0) {
            return None;
        }
        if !self.store.may_freeze() {
            // Consensus asks once. So it is due from now on, and is tried again.
            self.bytes_since_snapshot = u64::MAX / 2;
            return None;
        }
        let (membership_index, membership) = self.replica.membership_at(last_index);
        let meta = SnapshotMeta {
            last_index,
            last_term,
            membership: membership.clone(),
            membership_index,
            log_time: self.log_time,
        };
        self.bytes_since_snapshot = 0;
        Some(meta)
    }

    /// Those who still wait for a command of the entry that was applied: it holds none at their position.
    /// Nobody can tell what became of them.
    pub(crate) fn end_entry(&mut self) -> Vec<Proposal<O>> {
        self.settled.own.drain(..).collect()
    }
}
