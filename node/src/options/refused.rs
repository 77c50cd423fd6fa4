//! What is wrong with options, in words: all of it at once, each by the option's name.
use super::Origin;
use std::num::NonZeroU32;

/// An option that makes no sense: exit code 2.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// The option's name, without dashes in front.
    pub option: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The value; empty if none was given.
    pub given: String,
    /// What would be accepted; of a [`Fault::Reason`] that.
    pub allowed: String,
    /// The line of the configuration file, if it stands there.
    pub line: Option<NonZeroU32>,
    /// What is wrong with it.
    pub fault: Fault,
    /// What else is wrong.
    others: Option<Box<Others>>,
}

/// In a box: nearly always there are none, and errors are moved often.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Others {
    faults: Vec<Refused>,
}

/// What is wrong with an option.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// Its value, or that there is none.
    Value,
    /// There is none of this name.
    Name,
    /// What it stands in.
    Format,
    /// Its value, for a reason: what would be accepted instead is no list.
    Reason,
}

/// So many faults are told at once; the rest is counted.
const FAULTS_SHOWN_MAX: usize = 16;

impl std::error::Error for Refused {}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write(f)?;
        let others = self.others.as_ref();
        let others = others.map_or(&[][..], |others| &others.faults[..]);
        for other in others.iter().take(FAULTS_SHOWN_MAX - 1) {
            f.write_str("\nerror: ")?;
            other.write(f)?;
        }
        match (others.len() + 1).saturating_sub(FAULTS_SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nerror: and {more} more"),
        }
    }
}

impl Refused {
    /// Of a flag.
    pub fn flag(option: &str, given: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::of(option, Origin::Flag, given, allowed)
    }

    /// Of a flag, for this reason.
    pub fn because(option: &str, given: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            fault: Fault::Reason,
            ..Self::flag(option, given, why)
        }
    }

    /// Of an option from there.
    pub fn of(
        option: &str,
        origin: Origin,
        given: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            option: option.to_owned(),
            origin,
            given: given.into(),
            allowed: allowed.into(),
            line: None,
            fault: Fault::Value,
            others: None,
        }
    }

    /// All of them in one: those of the file first, in its order. `None` if there is none.
    pub(super) fn all(mut faults: Vec<Self>) -> Option<Self> {
        faults.sort_by_key(|fault| fault.line.unwrap_or(NonZeroU32::MAX));
        let mut faults = faults.into_iter();
        let mut first = faults.next()?;
        let faults: Vec<Self> = faults.collect();
        first.others = (!faults.is_empty()).then(|| Box::new(Others { faults }));
        Some(first)
    }

    /// In one line.
    fn write(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            option,
            origin,
            given,
            allowed,
            ..
        } = self;
        let line = self.line.map(|line| format!(", line {line}"));
        let line = line.unwrap_or_default();
        match (self.fault, origin) {
            (Fault::Name, Origin::File(path)) => {
                write!(f, "{}{line}: no key {option:?}; {allowed}", path.display())
            }
            (Fault::Format, Origin::File(path)) => {
                write!(f, "{}{line}: {given}; allowed: {allowed}", path.display())
            }
            _ if given.is_empty() && *origin == Origin::Default => {
                write!(f, "--{option} must be given; allowed: {allowed}")
            }
            (Fault::Reason, _) => write!(f, "option {option}: {given:?} is refused: {allowed}"),
            (Fault::Value | Fault::Name | Fault::Format, _) => write!(
                f,
                "{option} (from {origin}{line}): {given:?} is refused; allowed: {allowed}"
            ),
        }
    }
}
