//! Switches safety checks off by name, so that tests can show that each check is needed. Other crates know
//! it only with their feature `mutants`; which checks there are is said where they stand.
use std::cell::Cell;

thread_local! {
    static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
    static REACHED: Cell<bool> = const { Cell::new(false) };
}

/// Chooses the check to leave out on this thread, whichever crate it stands in; `None` for the real thing.
pub fn activate(name: Option<&'static str>) {
    ACTIVE.set(name);
    REACHED.set(false);
}

/// Whether the place of the chosen check was reached on this thread since [`activate`].
#[must_use]
pub fn reached() -> bool {
    REACHED.get()
}

/// The check that is left out on this thread.
#[must_use]
pub fn active() -> Option<&'static str> {
    ACTIVE.get()
}

/// Whether the named check is to be left out now. Asked at the place of the check, which is then reached.
#[must_use]
pub fn mutant(name: &'static str) -> bool {
    let active = ACTIVE.get() == Some(name);
    if active {
        REACHED.set(true);
    }
    active
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_check_is_left_out_on_one_thread_until_another_is_chosen() {
        assert!(!mutant("this") && !reached());
        activate(Some("this"));
        assert!(!mutant("that") && !reached());
        assert!(mutant("this") && reached());
        assert_eq!(active(), Some("this"));
        let elsewhere = std::thread::spawn(|| mutant("this") || reached());
        assert!(!elsewhere.join().unwrap());
        activate(Some("that"));
        assert!(!reached());
        assert!(!mutant("this") && mutant("that") && reached());
        activate(None);
        assert!(!reached() && !mutant("that") && !reached());
    }
}
