//! The process's two clocks. `control` and the state machine see neither: they are handed readings.
use quorumwire_control::Now;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Time since boot. Runs on while the machine sleeps, so that a lease cannot outlive a suspended
/// leader; never set back.
pub fn now() -> Now {
    Now(duration(clock_gettime(ClockId::Boottime)))
}

/// Milliseconds since 1970-01-01; may jump when somebody sets the clock.
pub fn wall_ms() -> u64 {
    u64::try_from(duration(clock_gettime(ClockId::Realtime)).as_millis()).unwrap_or(u64::MAX)
}

/// Processor time that this thread has used.
pub fn worked() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

fn duration(time: Timespec) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
