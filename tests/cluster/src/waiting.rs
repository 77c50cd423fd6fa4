//! Waiting for a condition, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often a wait looks again.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Waits until `condition` holds, or fails after this time, naming what was waited for.
pub fn wait_within(
    what: &str,
    deadline: Duration,
    mut condition: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let end = Instant::now() + deadline;
    while !condition()? {
        if Instant::now() >= end {
            bail!("waited {deadline:?} in vain for {what}");
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
