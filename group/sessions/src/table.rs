//! Which commands of which sessions have run, and what was answered.
use crate::{ANSWER_BYTES_MAX, IDLE_MS_MIN, Name, SESSIONS_MAX, SessionRefusal, WINDOW};
use quorumwire_interfaces::LogTime;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// All sessions. A copy is cheap: it shares them until they change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    sessions: BTreeMap<u64, Arc<Session>>,
    /// Sessions by the number of their newest command.
    by_use: BTreeMap<u64, u64>,
}

/// The `used_ms` of a session that was used since the last tick.
const NOT_KNOWN: u64 = u64::MAX;

/// What a command was answered. Most answers are a word or a number, for which nothing is allocated.
pub(crate) type Answer = SmallVec<[u8; 16]>;

/// One client's commands that may still be repeated.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Session {
    /// The number of its newest command.
    pub(crate) used_at: u64,
    /// The log's time of the tick after that, or [`NOT_KNOWN`].
    pub(crate) used_ms: u64,
    /// Those that ran, sequences ascending, all within [`WINDOW`] of the highest. `None`: the answer was
    /// too long to keep.
    pub(crate) ran: VecDeque<(u64, Option<Answer>)>,
}

/// What is known of a command that is about to run.
pub(crate) enum Before {
    New,
    Ran(Answer),
    Refused(SessionRefusal),
}

impl Session {
    fn highest(&self) -> u64 {
        self.ran.back().map_or(0, |(sequence, _)| *sequence)
    }

    /// Where a command stands in `ran`, or would.
    fn find(&self, sequence: u64) -> Result<usize, usize> {
        if sequence > self.highest() {
            return Err(self.ran.len()); // nearly always
        }
        self.ran
            .binary_search_by_key(&sequence, |(sequence, _)| *sequence)
    }
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, &**session))
    }

    /// Puts a session back that a snapshot held. False: there is one of this name, or of this use.
    pub(crate) fn insert(&mut self, id: u64, session: Session) -> bool {
        self.by_use.insert(session.used_at, id).is_none()
            && self.sessions.insert(id, Arc::new(session)).is_none()
    }

    /// The number of the newest command of any session.
    pub(crate) fn last_use(&self) -> u64 {
        self.by_use
            .last_key_value()
            .map_or(0, |(number, _)| *number)
    }

    /// Whether sessions have been used since the last tick only if no other was used after them.
    pub(crate) fn is_sound(&self) -> bool {
        let used = |id: &u64| self.sessions.get(id).map_or(0, |session| session.used_ms);
        let mut newest_first = self.by_use.values().rev().map(used);
        let mut known = newest_first.by_ref().skip_while(|ms| *ms == NOT_KNOWN);
        known.all(|ms| ms != NOT_KNOWN)
    }

    /// Whether a session was used since the last tick.
    pub(crate) fn awaits_time(&self) -> bool {
        let newest = self.by_use.last_key_value();
        let newest = newest.and_then(|(_, id)| self.sessions.get(id));
        newest.is_some_and(|session| session.used_ms == NOT_KNOWN)
    }

    /// A tick: what was used since the last one was used by now. That is later than it was, so no session
    /// is idle too early.
    pub(crate) fn advance(&mut self, log_time: LogTime) {
        for id in self.by_use.values().rev() {
            let Some(session) = self.sessions.get_mut(id) else {
                continue;
            };
            if session.used_ms != NOT_KNOWN {
                return;
            }
            Arc::make_mut(session).used_ms = log_time.0.min(NOT_KNOWN - 1);
        }
    }

    /// Whether a command of a session is known to have run.
    pub(crate) fn has_run(&self, name: Name) -> bool {
        let session = self.sessions.get(&name.session);
        session.is_some_and(|session| session.find(name.sequence).is_ok())
    }

    /// Looks a command up, and makes room for its session. After [`Before::New`] it must be finished.
    pub(crate) fn begin(&mut self, number: u64, log_time: LogTime, name: Name) -> Before {
        if !self.sessions.contains_key(&name.session) {
            if name.sequence == 0 || name.sequence > WINDOW {
                return Before::Refused(SessionRefusal::UnknownSession);
            }
            if self.sessions.len() >= SESSIONS_MAX && !self.drop_idle(log_time) {
                return Before::Refused(SessionRefusal::TooManySessions);
            }
        }
        let session = self.sessions.entry(name.session).or_default();
        let session = Arc::make_mut(session);
        self.by_use.remove(&session.used_at);
        self.by_use.insert(number, name.session);
        session.used_at = number;
        session.used_ms = NOT_KNOWN;
        if name.sequence == 0 || session.highest().saturating_sub(name.sequence) >= WINDOW {
            return Before::Refused(SessionRefusal::TooOld);
        }
        match session.find(name.sequence) {
            Err(_) => Before::New,
            Ok(at) => match &session.ran[at].1 {
                Some(answer) => Before::Ran(answer.clone()),
                None => Before::Refused(SessionRefusal::AnswerGone),
            },
        }
    }

    /// The command ran.
    pub(crate) fn finish(&mut self, name: Name, answer: &[u8]) {
        let session = self.sessions.entry(name.session).or_default();
        let session = Arc::make_mut(session);
        let kept = (answer.len() <= ANSWER_BYTES_MAX).then(|| Answer::from_slice(answer));
        if let Err(at) = session.find(name.sequence) {
            session.ran.insert(at, (name.sequence, kept));
        }
        let highest = session.highest();
        while let Some((oldest, _)) = session.ran.front()
            && highest - oldest >= WINDOW
        {
            session.ran.pop_front();
        }
    }

    /// Drops the session that was used longest ago, if that is long enough ago.
    fn drop_idle(&mut self, log_time: LogTime) -> bool {
        let Some((&used_at, &id)) = self.by_use.first_key_value() else {
            return false;
        };
        let used_ms = self.sessions.get(&id).map_or(0, |session| session.used_ms);
        let is_idle = log_time.0.saturating_sub(used_ms) >= IDLE_MS_MIN;
        if is_idle {
            self.by_use.remove(&used_at);
            self.sessions.remove(&id);
        }
        is_idle
    }
}
