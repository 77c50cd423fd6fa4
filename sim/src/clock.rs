//! What a machine's clocks show: they drift, jump, and stand still. True time is the world's alone.
use crate::machine::Machine;
use crate::queue::{Nanos, SECOND};
use quorumwire_control::Now;
use std::time::Duration;

impl Machine {
    /// What its clock shows.
    #[must_use]
    pub fn clock(&self, time: Nanos) -> Now {
        let time = self.clock_stopped_at.map_or(time, |at| time.min(at));
        let local = (time + self.clock_offset).saturating_add_signed(self.gained(time));
        let local = local.saturating_sub(self.clock_lost);
        Now(Duration::from_nanos(local))
    }

    /// By how much it has gone faster than true time until now.
    fn gained(&self, time: Nanos) -> i64 {
        let since = time.saturating_sub(self.clock_slewed_at);
        // Some days of nanoseconds times the largest drift fit 64 bits.
        let shift = i64::try_from(since).unwrap_or(i64::MAX) / 1_000 * self.clock_ppm / 1_000;
        self.clock_gained.saturating_add(shift)
    }

    /// A time daemon has it go at another speed from now on.
    pub fn slew_clock(&mut self, now: Nanos, ppm: i64) {
        self.clock_gained = self.gained(now);
        self.clock_slewed_at = now;
        self.clock_ppm = ppm;
    }

    /// The true time at which its clock shows this.
    #[must_use]
    pub fn true_time(&self, local: Now) -> Nanos {
        let local = local.0.as_secs() * SECOND + u64::from(local.0.subsec_nanos());
        let shown = (local + self.clock_lost).saturating_sub(self.clock_offset);
        let since = shown
            .saturating_add_signed(self.clock_gained.saturating_neg())
            .saturating_sub(self.clock_slewed_at);
        let rate = u64::try_from(1_000_000 + self.clock_ppm).unwrap_or(1_000_000);
        // The clock moves in steps of a few microseconds of true time at most.
        self.clock_slewed_at + since.saturating_mul(1_000).div_ceil(rate) * 1_000 + 2_000
    }

    /// Its clock goes on from where it has stood still.
    pub fn restart_clock(&mut self, now: Nanos) {
        let shown = self.clock(now);
        if self.clock_stopped_at.take().is_some() {
            let lost = self.clock(now).0.saturating_sub(shown.0);
            self.clock_lost += u64::try_from(lost.as_nanos()).unwrap_or(0);
        }
    }

    /// The time of day as it believes.
    #[must_use]
    pub fn wall(&self, time: Nanos) -> Duration {
        /// The day of the first simulated second.
        const DAY_MS: u64 = 1_700_000_000_000;
        let time = self.clock_stopped_at.map_or(time, |at| time.min(at));
        let wall_ms = (DAY_MS + time / 1_000_000).saturating_add_signed(self.wall_offset_ms);
        Duration::from_millis(wall_ms)
    }
}
