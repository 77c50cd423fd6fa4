//! How a host reads what programs change, has them change it, and waits until they have done.
use crate::ffi::{MapMemory, full_barrier, run, wait_for_programs};
use crate::mutants::mutant;
use crate::shared::{CPUS_MAX, IN_STEP_BYTES, IN_STEP_COPIES_DONE_AT, IN_STEP_COPIES_ORDERED_AT};
use quorumwire_interfaces::PlaneError;
use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A fence waits for packets' steps that are under way for this long by looking; then for the kernel's grace
/// period.
const FENCE_LOOKS_FOR: Duration = Duration::from_millis(1);
/// Where the kernel cannot be asked for that, a fence waits for this long. No packet's step takes so long;
/// but should a virtual machine's processor stand still for longer in the middle of one, behind its lock,
/// what leaves when it goes on is in the registers all the same.
const FENCE_WITHOUT_GRACE: Duration = Duration::from_millis(500);
/// Registers are read again, and orders given again, for this long because a step is changing the group. A
/// step takes less than a microsecond, but a virtual machine's processor may stand still in the middle of
/// one.
const BUSY_FOR: Duration = Duration::from_secs(10);
/// Looks without giving the processor to others.
const LOOKS_AT_ONCE: u32 = 1000;
const FAILED: PlaneError =
    PlaneError::Failed(Cow::Borrowed("the kernel did not run the plane's program"));
const HELD: PlaneError = PlaneError::Failed(Cow::Borrowed(
    "another processor holds the group and does not let go",
));

/// Reads what programs change only while this version is odd.
pub fn read_whole<T>(version: &AtomicU64, read: impl Fn() -> T) -> T {
    let mut looks = 0;
    let mut begun = None;
    loop {
        let before = version.load(Ordering::Acquire);
        if before.is_multiple_of(2) {
            let found = read();
            std::sync::atomic::fence(Ordering::Acquire);
            if mutant("xdp-registers-whole") || version.load(Ordering::Relaxed) == before {
                return found;
            }
        }
        looks += 1;
        if looks < LOOKS_AT_ONCE {
            std::hint::spin_loop();
            continue;
        }
        let waited = begun.get_or_insert_with(Instant::now).elapsed();
        assert!(
            waited < BUSY_FOR,
            "the registers are being changed without end"
        );
        std::thread::yield_now();
    }
}

/// What of one group is under way in the programs.
pub struct Fence {
    in_step: MapMemory,
    /// Fences that had to wait for the grace period.
    slow_fences: u64,
    /// Copies that were ordered and never made, by processor.
    copies_lost: Vec<u64>,
}

impl Fence {
    pub fn new(in_step: MapMemory) -> Self {
        Self {
            in_step,
            slow_fences: 0,
            copies_lost: Vec::new(),
        }
    }

    /// Fences that had to wait for the kernel's grace period.
    pub fn slow_fences(&self) -> u64 {
        self.slow_fences
    }

    /// Copies done and copies ordered, over all processors.
    pub fn copies(&self) -> (u64, u64) {
        let sum = |offset| {
            let number = |cpu| self.in_step.number(cpu * IN_STEP_BYTES + offset);
            let each = (0..CPUS_MAX).map(|cpu| number(cpu).load(Ordering::Acquire));
            each.sum()
        };
        // In this order, so that what is done was ordered.
        (sum(IN_STEP_COPIES_DONE_AT), sum(IN_STEP_COPIES_ORDERED_AT))
    }

    /// Waits until no packet's step is under way that began before now, and no copy of one that it ordered.
    pub fn wait_for_steps(&mut self) {
        full_barrier();
        let begun = Instant::now();
        for cpu in 0..CPUS_MAX {
            while !self.is_quiet(cpu) {
                if begun.elapsed() > FENCE_LOOKS_FOR {
                    self.slow_fences += 1;
                    return self.wait_for_grace_period();
                }
                std::hint::spin_loop();
            }
        }
    }

    /// Whether a processor was at rest. What is under way now and began after the plane was stopped moves
    /// nothing, but is waited for, too: nobody can tell it apart.
    fn is_quiet(&self, cpu: usize) -> bool {
        let at = cpu * IN_STEP_BYTES;
        let number = |offset| self.in_step.number(at + offset);
        let copies_lost = self.copies_lost.get(cpu).copied().unwrap_or(0);
        let rests = mutant("xdp-steps-over") || number(0).load(Ordering::Acquire) == 0;
        rests
            && number(IN_STEP_COPIES_DONE_AT).load(Ordering::Acquire) + copies_lost
                >= number(IN_STEP_COPIES_ORDERED_AT).load(Ordering::Acquire)
    }

    /// The kernel's way, some milliseconds. Copies that are not done after it were lost: the kernel had no
    /// memory for them.
    fn wait_for_grace_period(&mut self) {
        wait_for_all_programs();
        self.forget_copies();
    }

    /// Waits no more for copies that are not done by now.
    pub fn forget_copies(&mut self) {
        self.copies_lost = (0..CPUS_MAX)
            .map(|cpu| {
                let at = cpu * IN_STEP_BYTES;
                let number = |offset| self.in_step.number(at + offset).load(Ordering::Acquire);
                number(IN_STEP_COPIES_ORDERED_AT).saturating_sub(number(IN_STEP_COPIES_DONE_AT))
            })
            .collect();
    }
}

/// Waits until every program that runs now has ended, some milliseconds.
pub fn wait_for_all_programs() {
    // The kernel cannot be asked where processors run without a timer: time must do there.
    if wait_for_programs().is_err() {
        std::thread::sleep(FENCE_WITHOUT_GRACE);
    }
}

/// What the host's programs return: they have done what they were told.
const DONE: u32 = 2;
/// They have done nothing, because another processor held the group.
const BUSY: u32 = 1;

/// Has a program carry out what stands in the control map.
pub fn give(program: &OwnedFd, group_slot: u32) -> Result<(), PlaneError> {
    let begun = Instant::now();
    loop {
        match run(program.as_fd(), group_slot) {
            Ok(DONE) => return Ok(()),
            Ok(BUSY) if begun.elapsed() < BUSY_FOR => std::thread::yield_now(),
            Ok(BUSY) => return Err(HELD),
            Ok(_) | Err(_) => return Err(FAILED),
        }
    }
}
