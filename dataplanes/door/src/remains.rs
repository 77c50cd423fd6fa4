//! What of a plane runs on when its process has ended, until the system has closed what that held.
use std::io;
use std::sync::Arc;

/// A program of a plane in the system, at a network interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProgramAt {
    /// The interface's name.
    pub interface: String,
    /// The interface's number.
    pub index: u32,
    /// The program's number, which no other has until the machine starts anew.
    pub program: u32,
}

/// Told where a program is about to be attached. If that fails, it is not attached.
pub type Note = dyn Fn(&ProgramAt) -> io::Result<()> + Send + Sync;

/// It is noted nowhere: no later process asks.
#[must_use]
pub fn noted_nowhere() -> Arc<Note> {
    Arc::new(|_| Ok(()))
}

/// How a later process finds what an earlier one has left.
#[derive(Clone, Copy)]
pub struct Remains {
    /// Those of these programs that an interface of the caller's network namespace has now.
    pub still_attached: fn(&[u32]) -> io::Result<Vec<ProgramAt>>,
    /// How one gets rid of one, for people.
    pub how_to_detach: fn(&ProgramAt) -> String,
    /// Returns when none that was taken off its interface is at its last packet any more.
    pub wait_for_last: fn(),
}
