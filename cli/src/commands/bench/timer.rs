//! Wakes a poll to the microsecond: its own timeout counts milliseconds, which a request of an open loop
//! would be late by.
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::time::{Duration, Instant};

/// A timer that makes a poll return.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    /// When it is to go off, so that it is set only where that changes.
    set_to: Option<Instant>,
}

impl Timer {
    /// One that is not set, and tells this token when it goes off.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { fd, set_to: None })
    }

    /// Has it go off then, and not when it was to before.
    pub fn set(&mut self, at: Instant, now: Instant) -> io::Result<()> {
        if self.set_to == Some(at) {
            return Ok(());
        }
        // Nothing at all would mean never.
        let wait = at.saturating_duration_since(now);
        let wait = wait.max(Duration::from_nanos(1));
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &value)?;
        self.set_to = Some(at);
        Ok(())
    }

    /// It has gone off.
    pub fn went_off(&mut self) {
        self.set_to = None;
    }
}
