//! CPU time that processes have used, as the kernel counts it (in steps of 10 ms). Linux only.
use anyhow::Context as _;
use std::time::Duration;

/// CPU time of a few processes together, user and system.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CpuTime {
    /// The sum.
    pub total: Duration,
}

impl CpuTime {
    /// What these processes have used since they started; an error if one is gone.
    pub fn of(pids: &[u32]) -> anyhow::Result<Self> {
        let mut total = Duration::ZERO;
        for pid in pids {
            let path = format!("/proc/{pid}/stat");
            let stat = std::fs::read_to_string(&path)
                .with_context(|| format!("process {pid}: reading {path}"))?;
            let used = ticks(&stat).with_context(|| format!("{path} is not understood"))?;
            total += Duration::from_secs(used) / ticks_per_second()?;
        }
        Ok(Self { total })
    }

    /// What was used between an earlier moment and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            total: self.total.saturating_sub(earlier.total),
        }
    }
}

fn ticks_per_second() -> anyhow::Result<u32> {
    Ok(u32::try_from(rustix::param::clock_ticks_per_second())?.max(1))
}

/// `utime` and `stime` of `/proc/PID/stat`: the 14th and 15th field. The second, the program's name,
/// is in parentheses and may contain anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::{CpuTime, ticks};

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 700 50 9 9 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(750));
        assert_eq!(ticks("42 (cut) S 1 42"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn a_process_uses_time_and_a_missing_one_is_named() {
        let own = [std::process::id()];
        let before = CpuTime::of(&own).unwrap();
        let mut sum = 0_u64;
        while CpuTime::of(&own).unwrap().since(&before).total.is_zero() {
            sum = (0..100_000).fold(sum, u64::wrapping_add);
        }
        assert_eq!(
            before.since(&CpuTime::of(&own).unwrap()),
            CpuTime::default()
        );
        let error = CpuTime::of(&[u32::MAX]).unwrap_err();
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
