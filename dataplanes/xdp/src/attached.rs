//! Where a plane's program is attached: for a later process that has to know that an earlier one's is gone.
//! The kernel takes a program off its interface when it closes what a process held, which may be a little
//! after the process ended.
use crate::links::Links;
pub use crate::orders::wait_for_all_programs;
use crate::refused::remedy;
pub use quorumwire_plane_door::{Note, ProgramAt};
use std::io;

/// Those of these programs that an interface of the caller's network namespace has now. Takes no privileges.
pub fn still_attached(programs: &[u32]) -> io::Result<Vec<ProgramAt>> {
    let all = Links::new()?.all()?;
    let at = all.iter().flat_map(|one| {
        one.programs.iter().map(|program| ProgramAt {
            interface: one.name.clone(),
            index: one.index,
            program: *program,
        })
    });
    Ok(at.filter(|at| programs.contains(&at.program)).collect())
}

/// What takes a program away.
#[must_use]
pub fn how_to_detach(at: &ProgramAt) -> String {
    remedy(&at.interface, at.index, at.program)
}
