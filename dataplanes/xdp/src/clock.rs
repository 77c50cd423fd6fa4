//! Deadlines that the programs are told. The time since boot that they see is the kernel's; in a time namespace
//! (`time_namespaces(7)`) a process sees another one.
use crate::mutants::mutant;
use crate::place::KernelPlace;
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
    pub fn of(place: &mut KernelPlace) -> Result<Self, PlaneError> {
        let (mut least, mut ahead) = (i64::MAX, 0);
        for _ in 0..COMPARISONS {
            let before = own_nanoseconds();
            let kernels = nanoseconds(place.kernels_time()?);
            let after = own_nanoseconds();
            // The kernel's was read before `after`, so a deadline that is moved by this is early by what the
            // comparison took, and never late.
            if after - before < least {
                (least, ahead) = (after - before, kernels - after);
            }
        }
        let ahead = if mutant("xdp-clock") { 0 } else { ahead };
        Ok(Self { ahead })
    }

    /// A deadline of the process's clock in nanoseconds of the kernel's, early by some microseconds. One that is long
    /// over stays so.
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
