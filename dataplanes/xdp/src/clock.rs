//! Deadlines that the programs are told. The time since boot that they see is the kernel's; in a time
//! namespace (`time_namespaces(7)`) a process sees another one.
use crate::kernel_registers::KernelRegisters;
use crate::mutants::mutant;
use quorumwire_interfaces::PlaneError;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// The two clocks are compared so often; the comparison that took least counts.
const COMPARISONS: usize = 16;

/// How the kernel's clock goes beside the process's. That does not change while the process runs.
#[derive(Clone, Copy, Debug)]
pub struct KernelsClock {
    /// So many nanoseconds it is ahead of the process's at least; negative: behind.
    ahead: i64,
}

impl KernelsClock {
    pub fn of(registers: &KernelRegisters) -> Result<Self, PlaneError> {
        let mut comparisons = Vec::with_capacity(COMPARISONS);
        for _ in 0..COMPARISONS {
            let before = own_nanoseconds();
            let kernels = nanoseconds(registers.kernels_time()?);
            comparisons.push((before, kernels, own_nanoseconds()));
        }
        let clock = Self::by(&comparisons);
        Ok(if mutant("xdp-clock") {
            Self { ahead: 0 }
        } else {
            clock
        })
    }

    /// By readings of the process's clock, then of the kernel's, and again of the process's. The kernel's was
    /// read before the last one, so a deadline that is moved by this is early by what the comparison took at
    /// most, and never late.
    fn by(comparisons: &[(i64, i64, i64)]) -> Self {
        let quickest = comparisons
            .iter()
            .min_by_key(|(before, _, after)| after - before);
        let ahead = quickest.map_or(i64::MIN, |(_, kernels, after)| kernels - after);
        Self { ahead }
    }

    /// A deadline of the process's clock in nanoseconds of the kernel's, early by some microseconds. One that
    /// is long over stays so.
    pub fn deadline(self, until: Duration) -> u64 {
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        until.saturating_add_signed(self.ahead)
    }
}

/// As `node` reads it: what it allows is told in this.
fn own_nanoseconds() -> i64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    tv_sec.saturating_mul(1_000_000_000).saturating_add(tv_nsec)
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_comparison_counts_and_a_deadline_is_never_late() {
        let clock = KernelsClock::by(&[(100, 5_110, 190), (200, 5_203, 206), (300, 5_390, 400)]);
        // The kernel's clock was ahead by 4,997 to 5,003.
        assert_eq!(clock.deadline(Duration::from_nanos(1_001)), 5_998);
        let behind = KernelsClock::by(&[(5_200, 203, 5_206)]);
        assert_eq!(behind.deadline(Duration::from_nanos(6_001)), 998);
    }

    #[test]
    fn what_is_over_stays_over_and_nothing_is_later_than_time_can_be() {
        let [ahead, behind] = [5_000, -5_000].map(|ahead| KernelsClock { ahead });
        // The process's clock has gone since 0, so the kernel's is 5,000 at least.
        assert_eq!(ahead.deadline(Duration::ZERO), 5_000);
        assert_eq!(behind.deadline(Duration::ZERO), 0);
        assert_eq!(ahead.deadline(Duration::MAX), u64::MAX);
        assert_eq!(KernelsClock::by(&[]).deadline(Duration::from_hours(1)), 0);
    }
}
