//! Why a replica ends whose program has: a supervisor is to know whether another start helps.
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use thiserror::Error;

/// What stands in the log ends the program, as far as is known: it would again.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EndedByLog(String);

/// One that somebody else has killed, such as the kernel for want of memory, or that has done no turn is not
/// ended by the log.
#[must_use]
pub fn by_whom(error: anyhow::Error, status: Option<ExitStatus>, turn: u64) -> anyhow::Error {
    let is_killed = status.is_some_and(|it| it.signal() == Some(Signal::KILL.as_raw()));
    if is_killed || turn == 0 {
        return error;
    }
    EndedByLog(format!("{error:#}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_blamed_for_what_it_does_again() {
        let blames = |status: Option<i32>, turn| {
            let why = anyhow::anyhow!("it has ended");
            by_whom(why, status.map(ExitStatus::from_raw), turn).is::<EndedByLog>()
        };
        assert!(blames(Some(Signal::SEGV.as_raw()), 7));
        assert!(blames(Some(0), 1));
        assert!(blames(None, 7), "it may not go on");
        assert!(!blames(Some(Signal::KILL.as_raw()), 7));
        assert!(!blames(Some(1 << 8), 0), "it does not begin");
    }
}
