//! The safety checks that a test build can leave out one at a time, to show that each is needed: those of
//! the C, which `checks.toml` lists, and those of the engine around it, by name. Without the feature
//! `mutants` nothing can be left out.

#[cfg(feature = "mutants")]
mod switch {
    use crate::checks::Mutant;
    use crate::ffi;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<bool> = const { Cell::new(false) };
    }

    /// Chooses the check to leave out on this thread; `None` for the real thing.
    pub fn activate(mutant: Option<Mutant>) {
        ACTIVE.set(mutant.is_some());
        ffi::mutant_set(mutant.map_or(0, |mutant| mutant as i32));
    }

    /// Leaves a check out on this thread until dropped.
    pub struct Without;

    impl Without {
        /// Leaves this one out.
        #[must_use]
        pub fn check(mutant: Mutant) -> Self {
            activate(Some(mutant));
            Self
        }
    }

    impl Drop for Without {
        fn drop(&mut self) {
            activate(None);
        }
    }

    /// Whether leaving the chosen check out has made a difference to a branch since [`activate`].
    #[must_use]
    pub fn reached() -> bool {
        ffi::mutant_was_reached()
    }

    pub(crate) fn any_active() -> bool {
        ACTIVE.get()
    }
}

#[cfg(feature = "mutants")]
pub(crate) use quorumwire_mutants::mutant;
#[cfg(feature = "mutants")]
pub(crate) use switch::any_active;
#[cfg(feature = "mutants")]
pub use switch::{Without, activate, reached};

/// Whether the named check of the engine is to be left out: never, outside the mutants' own tests.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn mutant(_name: &'static str) -> bool {
    false
}

#[cfg(all(test, feature = "mutants"))]
mod tests {
    use super::*;
    use crate::checks::Mutant;
    use crate::step::tests::{assert_the_c_takes_nothing_cut, form, packet};
    use quorumwire_wire::packet::PacketReason;

    /// Else the end of a cut packet would be read behind it.
    #[test]
    fn without_exact_length_only_what_is_longer_is_taken() {
        activate(Some(Mutant::ExactLength));
        let longer = [packet(), vec![0]].concat();
        assert_eq!(form(&longer).0, PacketReason::None);
        assert_the_c_takes_nothing_cut();
        activate(None);
        assert_eq!(form(&longer).0, PacketReason::Malformed);
    }
}
