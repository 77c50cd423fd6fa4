//! Makes a process slow, whatever machine it runs on: it stands still most of the time, in short turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

/// In each turn it runs for so long.
const RUNS: Duration = Duration::from_millis(10);
/// Before that it stands still for so long: then it gets a tenth of the time.
pub const TENTH: Duration = Duration::from_millis(90);
/// The same for a thirtieth.
pub const THIRTIETH: Duration = Duration::from_millis(290);
/// The same for a fiftieth.
pub const FIFTIETH: Duration = Duration::from_millis(490);

/// It is never slowed for longer, whatever becomes of the test.
const SLOWED_MAX: Duration = Duration::from_mins(2);

/// Does `body` while this process, which must live until then, gets a part of the time only. It stands still
/// at first, and runs freely afterwards.
pub fn while_slow<T>(
    pid: u32,
    stands_still: Duration,
    body: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let pid = Pid::from_raw(i32::try_from(pid)?).context("a process has an id")?;
    let stop = AtomicBool::new(false);
    let end = Instant::now() + SLOWED_MAX;
    kill_process(pid, Signal::STOP)?;
    thread::scope(|scope| {
        let slowing = scope.spawn(|| -> Result<()> {
            loop {
                thread::sleep(stands_still);
                kill_process(pid, Signal::CONT)?;
                if stop.load(Ordering::Relaxed) || Instant::now() >= end {
                    return Ok(());
                }
                thread::sleep(RUNS);
                kill_process(pid, Signal::STOP)?;
            }
        });
        let guard = StopWhenDropped(&stop);
        let result = body();
        drop(guard);
        let slowed = slowing.join().expect("it does not panic");
        let value = result?; // says more, if the process has ended
        slowed?;
        Ok(value)
    })
}

/// Whatever becomes of the body: nobody is left standing still.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::usage::processor_time;

    /// A process that takes all the time that it gets.
    fn busy() -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        command.stdin(Stdio::null()).spawn().expect("a shell")
    }

    #[test]
    fn a_slow_process_gets_little_time_and_runs_freely_afterwards() {
        const WATCHED: Duration = Duration::from_millis(1500);
        let mut child = busy();
        let pid = child.id();
        let taken = while_slow(pid, TENTH, || {
            let before = processor_time(pid)?;
            thread::sleep(WATCHED);
            Ok(processor_time(pid)?.saturating_sub(before))
        });
        let taken = taken.expect("slowed");
        let end = Instant::now() + Duration::from_secs(20);
        let before = processor_time(pid).expect("it runs");
        while processor_time(pid).expect("it runs") < before + WATCHED / 4 {
            assert!(Instant::now() < end, "it does not run freely");
            thread::sleep(Duration::from_millis(10));
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert!(taken < WATCHED / 3, "{taken:?} of {WATCHED:?}");
    }
}
