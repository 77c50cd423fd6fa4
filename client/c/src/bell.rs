//! A descriptor that is readable once somebody has rung.
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

/// It. As a waker it is rung by whoever has something for its owner.
pub struct Bell(OwnedFd);

impl Bell {
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    /// Its number in this process.
    pub fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub fn ring(&self) {
        write(&self.0, &1_u64.to_ne_bytes()).ok(); // full: it has been rung often enough
    }

    /// Forgets that it was rung.
    pub fn still(&self) {
        read(&self.0, &mut [0; 8]).ok(); // nothing to read: it was not
    }

    /// Waits until somebody rings, or this time is over; none: for as long as it takes.
    pub fn wait(&self, at_most: Option<Duration>) -> io::Result<()> {
        let timeout = at_most.and_then(|it| Timespec::try_from(it).ok());
        let mut descriptors = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}
