//! Options that give a value its life, and conditions of `SET`. Changes nothing.
use super::{Arguments, At, Fault, Life, Moment, SYNTAX, number};

/// Whose options.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Allowed {
    Set,
    Getex,
}

/// How a time is written.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct Unit {
    /// Else in milliseconds.
    pub(super) is_seconds: bool,
    /// It counts from now.
    pub(super) is_relative: bool,
}

impl Unit {
    /// The unit of an option.
    fn of(word: &[u8]) -> Option<Self> {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let (is_seconds, is_relative) = match () {
            () if is(b"EX") => (true, true),
            () if is(b"PX") => (false, true),
            () if is(b"EXAT") => (true, false),
            () if is(b"PXAT") => (false, false),
            () => return None,
        };
        Some(Self {
            is_seconds,
            is_relative,
        })
    }
}

/// What stands behind a key and its value.
#[derive(Default)]
pub(super) struct Options<'w> {
    pub(super) if_missing: bool,
    pub(super) if_there: bool,
    pub(super) shows_value: bool,
    pub(super) keeps_life: bool,
    pub(super) persists: bool,
    time: Option<(Unit, &'w [u8])>,
}

impl<'w> Options<'w> {
    pub(super) fn read(words: &Arguments<'w>, allowed: Allowed) -> Result<Self, Fault> {
        let mut options = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            options.take(word, &mut rest, allowed).ok_or(SYNTAX)?;
        }
        Ok(options)
    }

    fn take(
        &mut self,
        word: &[u8],
        rest: &mut std::slice::Iter<'_, &'w [u8]>,
        allowed: Allowed,
    ) -> Option<()> {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let is_set = allowed == Allowed::Set;
        if is(b"NX") && is_set && !self.if_there {
            self.if_missing = true;
        } else if is(b"XX") && is_set && !self.if_missing {
            self.if_there = true;
        } else if is(b"GET") && is_set {
            self.shows_value = true;
        } else if is(b"KEEPTTL") && is_set && self.time.is_none() {
            self.keeps_life = true;
        } else if is(b"PERSIST") && !is_set && self.time.is_none() {
            self.persists = true;
        } else {
            let unit = Unit::of(word)?;
            let is_other = self.time.is_some_and(|(before, _)| before != unit);
            if self.keeps_life || self.persists || is_other {
                return None;
            }
            self.time = Some((unit, rest.next()?));
        }
        Some(())
    }

    /// Whether they depend on what is there, or show it.
    pub(super) const fn looks(&self) -> bool {
        self.if_missing || self.if_there || self.shows_value
    }

    /// The life that a time gives, if there is one.
    pub(super) fn life(&self, command: &str, at: At) -> Result<Option<Life>, Fault> {
        let Some((unit, written)) = self.time else {
            return Ok(None);
        };
        let written = number(written)?;
        if written <= 0 {
            return Err(invalid_time(command));
        }
        end_ms(written, unit, at.moment())
            .map(|end_ms| {
                Some(Life {
                    end_ms: u64::try_from(end_ms).unwrap_or(0),
                    awaits: at.awaits(unit.is_relative),
                })
            })
            .ok_or_else(|| invalid_time(command))
    }
}

/// The log's time in milliseconds that is meant; `None` if there is no such.
pub(super) fn end_ms(written: i64, unit: Unit, moment: Moment) -> Option<i64> {
    let ms = if unit.is_seconds {
        written.checked_mul(1000)?
    } else {
        written
    };
    if unit.is_relative {
        ms.checked_add(i64::try_from(moment.now_ms).ok()?)
    } else {
        Some(ms.saturating_add(moment.ahead_ms))
    }
}

pub(super) fn invalid_time(command: &str) -> Fault {
    format!("ERR invalid expire time in '{command}' command").into()
}
