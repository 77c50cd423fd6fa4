//! Switches safety checks off by name, so that tests can show that each check is needed. Compiled
//! only with the feature `mutants`; otherwise `mutant` is the constant `false`.

#[cfg(feature = "mutants")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
        static REACHED: Cell<bool> = const { Cell::new(false) };
    }

    /// Chooses the check to leave out on this thread; `None` for the real thing.
    pub fn activate(name: Option<&'static str>) {
        ACTIVE.set(name);
        REACHED.set(false);
    }

    /// Whether the place of the chosen check was reached since [`activate`].
    #[must_use]
    pub fn reached() -> bool {
        REACHED.get()
    }

    pub(crate) fn mutant(name: &'static str) -> bool {
        let active = ACTIVE.get() == Some(name);
        if active {
            REACHED.set(true);
        }
        active
    }
}

#[cfg(feature = "mutants")]
pub(crate) use switch::mutant;
#[cfg(feature = "mutants")]
pub use switch::{activate, reached};

/// Whether the named check is to be left out: never, outside the mutants' own tests.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn mutant(_name: &'static str) -> bool {
    false
}
