//! Sleeping until a packet comes, somebody rings, or it is time for something.
use quorumwire_datagrams::Datagrams;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;
use std::{io, iter};

/// Wakes a thread that waits.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    pub(crate) fn ring(&self) {
        // That it rings already is as good.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// Until there is a packet, the bell rings, a signal comes, or so much time has passed.
pub(crate) fn wait(
    wire: &Datagrams,
    together: Option<&Datagrams>,
    bell: Option<&Bell>,
    at_most: Duration,
) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    let sockets = iter::once(wire).chain(together);
    let sockets = sockets.map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN));
    let mut fds: Vec<_> = sockets.collect();
    fds.extend(bell.map(|it| PollFd::from_borrowed_fd(it.0.as_fd(), PollFlags::IN)));
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if let Some(bell) = bell {
        let _ = read(&bell.0, &mut [0; 8]);
    }
    Ok(())
}
