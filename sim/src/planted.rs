//! Bugs that the simulator plants in what it joins itself, one at a time, to show that its checks notice
//! them. Only with the feature `mutants`; otherwise there are none.

/// All of them: sessions that run every command they are given, planes that answer blind writes as soon as
/// they have stored them, and processes that promise less than the ones before them, at once.
#[cfg(feature = "mutants")]
pub const PLANTED: &[&str] = &[
    "session-forgets",
    "blind-before-commit",
    "shorter-promise-at-once",
];

#[cfg(feature = "mutants")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
        static REACHED: Cell<bool> = const { Cell::new(false) };
    }

    /// Chooses the bug of this thread; `None` for none.
    pub fn activate(name: Option<&'static str>) {
        ACTIVE.set(name);
        REACHED.set(false);
    }

    /// Whether the place of the chosen bug was reached since [`activate`].
    #[must_use]
    pub fn reached() -> bool {
        REACHED.get()
    }

    pub(crate) fn planted(name: &'static str) -> bool {
        let active = ACTIVE.get() == Some(name);
        if active {
            REACHED.set(true);
        }
        active
    }
}

#[cfg(feature = "mutants")]
pub(crate) use switch::planted;
#[cfg(feature = "mutants")]
pub use switch::{activate, reached};

/// Whether this bug is there: never, outside of hunts.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn planted(_name: &'static str) -> bool {
    false
}
