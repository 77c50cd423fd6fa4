//! The process's two clocks. `control` and the state machine see neither: they are handed readings.
use quorumwire_control::Now;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Time since boot. Runs on while the machine sleeps, so that a lease cannot outlive a suspended
/// leader; never set back.
pub fn now() -> Now {
    Now(duration(clock_gettime(ClockId::Boottime)))
}

/// Time since 1970-01-01; may jump when somebody sets the clock.
pub fn wall() -> Duration {
    duration(clock_gettime(ClockId::Realtime))
}

/// The same in milliseconds.
pub fn wall_ms() -> u64 {
    u64::try_from(wall().as_millis()).unwrap_or(u64::MAX)
}

/// Processor time that this thread has used.
pub fn worked() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// Processor time that the process has used for itself and in the kernel, in seconds.
pub fn processor_times() -> Option<[f64; 2]> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in brackets, may hold blanks.
    let mut behind_name = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks_per_second = f64::from(u32::try_from(clock_ticks_per_second()).ok()?);
    let mut seconds = || {
        let ticks: u32 = behind_name.next()?.parse().ok()?;
        Some(f64::from(ticks) / ticks_per_second)
    };
    Some([seconds()?, seconds()?])
}

/// Memory that the process has now, in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1);
    let pages: Option<u64> = pages.and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

fn duration(time: Timespec) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
