//! The session in use: its name, its numbers, whether the replicas know it.
use super::Since;
use quorumwire_wire::client::{Submit, from_client::Body};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// Commands in a row that may be unanswered: what replicas remember of a session. Numbers up to this begin
/// one, if they come first.
const WINDOW: u64 = 64;
/// What opens a session has this number; all that is to run has numbers that cannot begin one.
const OPENING: u64 = 1;
/// A session that was silent for this long is not used again: the replicas may have forgotten it, which would
/// cost a refusal.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// What a command is known by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Name {
    session: u64,
    sequence: u64,
}

impl Name {
    /// The message that has a command of this name carried out.
    pub fn submit(self) -> Body {
        Body::Submit(Submit {
            session: self.session,
            sequence: self.sequence,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// There is none, and none before this moment.
    Closed(Since),
    /// The opening is on its way.
    Opening,
    Open,
    #[default]
    None,
}

/// The session in use.
#[derive(Default)]
pub struct Session {
    id: u64,
    state: State,
    next_sequence: u64,
    /// Numbers of commands that are not settled.
    unsettled: BTreeSet<u64>,
    used_at: Since,
}

impl Session {
    /// Whether a new one is to be opened before another command can be named.
    pub fn wants_opening(&self, now: Since) -> bool {
        match self.state {
            State::None => true,
            State::Closed(not_before) => now >= not_before,
            State::Opening => false,
            State::Open => now.saturating_sub(self.used_at) > IDLE_MAX,
        }
    }

    /// When an opening is tried again, if it waits.
    pub fn next_try(&self) -> Option<Since> {
        match self.state {
            State::Closed(not_before) => Some(not_before),
            State::None | State::Opening | State::Open => None,
        }
    }

    /// Begins a new one. An opening has a name that was never used, so none is ever sent twice.
    pub fn open(&mut self, names: &mut ChaCha8Rng) -> Name {
        self.id = names.next_u64().max(1);
        self.state = State::Opening;
        self.next_sequence = WINDOW + 1;
        self.unsettled.clear();
        Name {
            session: self.id,
            sequence: OPENING,
        }
    }

    /// The replicas know it.
    pub fn opened(&mut self, now: Since) {
        if self.state == State::Opening {
            self.state = State::Open;
            self.used_at = now;
        }
    }

    /// What became of the opening is not known: it is none.
    pub fn discard(&mut self) {
        if self.state == State::Opening {
            self.state = State::None;
        }
    }

    /// The opening was refused.
    pub fn refused(&mut self, try_again_at: Since) {
        if self.state == State::Opening {
            self.state = State::Closed(try_again_at);
        }
    }

    /// The replicas do not know the session of this name any more.
    pub fn forgotten(&mut self, name: Name) {
        if self.id == name.session && self.state == State::Open {
            self.state = State::None;
        }
    }

    /// The next command's name, unless the session must wait for an earlier one.
    pub fn next_name(&mut self, now: Since) -> Option<Name> {
        let oldest = self.unsettled.first().copied();
        let span = self.next_sequence - oldest.unwrap_or(self.next_sequence);
        let is_fresh = now.saturating_sub(self.used_at) <= IDLE_MAX;
        if self.state != State::Open || span >= WINDOW || !is_fresh {
            return None;
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.unsettled.insert(sequence);
        self.used_at = now;
        Some(Name {
            session: self.id,
            sequence,
        })
    }

    /// A command will not be sent again.
    pub fn settled(&mut self, name: Name) {
        if self.id == name.session {
            self.unsettled.remove(&name.sequence);
        }
    }
}
