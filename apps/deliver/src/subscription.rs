//! What somebody who is given values hears next: all of them in their order, as far as its credit goes.
use crate::limits::OVERHEAD_BYTES;
use crate::mutants::mutant;
use crate::{Instance, Next};

/// Somebody who is given values.
#[derive(Clone, Copy, Debug)]
pub struct Subscription {
    /// It has been given all before this instance.
    next: Instance,
    /// Bytes that may still be on their way; less than 0 after a value that is longer.
    credit: i64,
    /// It has heard something.
    is_told: bool,
}

/// What it is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Given<'a> {
    /// The value of this instance; there may be more.
    Value(Instance, &'a [u8]),
    /// There is no value up to this instance that it has not been given.
    Upto(Instance),
    /// It cannot go on: nothing up to this instance is kept, and it lacks some of that.
    Trimmed(Instance),
    /// Nothing for now.
    Nothing,
    /// There is a value for which there is no room.
    NoRoom,
}

impl Subscription {
    /// One that begins with this instance; so many bytes of values may be on their way.
    #[must_use]
    pub fn new(from: Instance, credit_bytes: u64) -> Self {
        Self {
            next: from + u64::from(mutant("subscription-skips-one")),
            credit: signed(credit_bytes),
            is_told: false,
        }
    }

    /// It has been given all before this instance.
    #[must_use]
    pub const fn next(&self) -> Instance {
        self.next
    }

    /// More may be on their way.
    pub fn add_credit(&mut self, bytes: u64) {
        self.credit = self.credit.saturating_add(signed(bytes));
    }

    /// What it is told, where this comes next for it.
    pub fn give<'a>(&mut self, next: Next<'a>, has_room: bool) -> Given<'a> {
        match next {
            Next::Value(..) if self.credit <= 0 && !mutant("credit-not-looked-at") => {
                Given::Nothing
            }
            Next::Value(..) if !has_room => Given::NoRoom,
            Next::Value(instance, value) => {
                let counts = signed(value.len() as u64 + OVERHEAD_BYTES);
                self.credit = self.credit.saturating_sub(counts);
                self.next = instance + u64::from(!mutant("value-given-again"));
                self.is_told = true;
                Given::Value(instance, value)
            }
            Next::None(last) if self.is_told && last < self.next => Given::Nothing,
            Next::None(last) => {
                self.next = self.next.max(last + 1);
                self.is_told = true;
                Given::Upto(last)
            }
            Next::Trimmed(upto) => Given::Trimmed(upto),
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
