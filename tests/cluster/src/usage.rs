//! What a process takes of the machine, as the kernel counts it. Reads; limits nothing.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The field of `/proc/PID/stat` behind the name that holds the user time; the system time is next.
const USER_TIME_FIELD: usize = 11;

/// Forgets how much memory the process has had: the peak counts from now.
pub fn reset_peak(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").with_context(|| path)
}

/// The memory the process has now, in bytes.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// The most memory the process has had since [`reset_peak`], or since it began, in bytes.
pub fn peak_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmHWM:")
}

/// The processor time all threads of the process have taken since it began, in steps of the kernel's
/// clock (10 ms).
pub fn processor_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path)?;
    ticks(&stat)
        .map(|ticks| Duration::from_millis(1000 * ticks / rustix::param::clock_ticks_per_second()))
        .with_context(|| format!("no processor time in {stat}"))
}

/// The name stands in brackets and may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(USER_TIME_FIELD);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn status_bytes(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path)?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: u64 = kib
        .with_context(|| format!("no {field} in {status}"))?
        .parse()?;
    Ok(kib << 10)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_peak_outlives_the_memory_and_is_forgotten() {
        const BYTES: usize = 256 << 20;
        let pid = std::process::id();
        reset_peak(pid).expect("a process may ask this of itself");
        let before = peak_bytes(pid).expect("peak");
        drop(black_box(vec![1_u8; BYTES]));
        let grown = peak_bytes(pid).expect("peak") - before;
        assert!(grown > (BYTES as u64) * 9 / 10, "{grown}");
        reset_peak(pid).expect("again");
        let now = resident_bytes(pid).expect("resident");
        assert!(now < before + (BYTES as u64) / 2, "{now} after {before}");
        assert!(peak_bytes(pid).expect("peak") < before + (BYTES as u64) / 2);
    }

    #[test]
    fn work_takes_processor_time() {
        let pid = std::process::id();
        let before = processor_time(pid).expect("before");
        let end = Instant::now() + Duration::from_secs(10);
        while processor_time(pid).expect("during") < before + Duration::from_millis(30) {
            assert!(Instant::now() < end, "ten seconds of work cost nothing");
        }
    }

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4 100 0 0 0 25 17 0 0 20 0 9";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
    }
}
