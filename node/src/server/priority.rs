//! The server's claim to a processor: a leader that is not scheduled in time looks dead to its followers. It
//! asks for a better place among what runs at ordinary priority, not for one above everything:
//! docs/decisions/0007.
use rustix::process::nice;
use std::fs;
use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

/// Linux gives every session its share of the processors first (`sched_autogroup_enabled`), and only within
/// it do the priorities of processes matter. This is where a session's own stands.
const SESSION: &str = "/proc/self/autogroup";
/// Somebody who is not root must wait for so long after anybody else has changed the priority of a session.
const SESSION_PAUSE: Duration = Duration::from_millis(110);
/// How often it is tried: all servers of a machine may start at once.
const SESSION_TRIES_MAX: usize = 10;

/// Lowers the nice value of the process, and that of its session if the session is its own, as it is under a
/// service manager. A shell's is left alone: what else runs there has no part in this.
pub fn raise(by: i32) {
    if by <= 0 {
        return;
    }
    if let Err(error) = nice(-by) {
        tracing::info!(%error, "the scheduling priority stays as it is (option raise-priority)");
    }
    if leads_session() == Some(true)
        && let Err(error) = raise_session(by)
    {
        tracing::info!(%error, "the session's scheduling priority stays as it is (option raise-priority)");
    }
}

/// Whether the process has begun its session. In a container, the process that has may be outside, where it
/// has no number: Linux says 0 then, which `rustix::process::getsid` cannot tell.
fn leads_session() -> Option<bool> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in brackets, may hold blanks.
    let (before_name, _) = text.split_once('(')?;
    let (_, behind_name) = text.rsplit_once(')')?;
    let session = behind_name.split_whitespace().nth(3)?;
    Some(session == before_name.trim())
}

fn raise_session(by: i32) -> io::Result<()> {
    for _ in 1..SESSION_TRIES_MAX {
        match fs::write(SESSION, (-by).to_string()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(SESSION_PAUSE),
            // A kernel without them.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            done => return done,
        }
    }
    fs::write(SESSION, (-by).to_string())
}
