//! A client that is hung up on while it may still be sending. Closed at once, with bytes of it unread, its
//! connection would be reset, and it would hear of a broken pipe instead of what was wrong. So what it sends
//! is thrown away for a while.
use super::{Connection, Intake, READ_BYTES_PER_TURN, SlotKind, clock, io};
use quorumwire_control::Now;
use std::io::Read as _;
use std::net::Shutdown;
use std::time::Duration;

/// For so long, once all has been said.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// So many bytes at most.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub struct Linger {
    bytes_left: usize,
    /// Since all has been said.
    until: Option<Now>,
}

impl Connection {
    /// Takes no request any more, and closes once all is answered. Whoever is told why has time to read it.
    pub fn hang_up(&mut self, is_told_why: bool) {
        self.push(SlotKind::Quit, None);
        self.closing = true;
        if is_told_why && !self.ended {
            self.linger = Some(Linger {
                bytes_left: LINGER_BYTES_MAX,
                until: None,
            });
        }
    }

    /// Whether there is something to throw away.
    pub(super) fn has_to_drain(&self) -> bool {
        self.readable && self.linger.is_some_and(|linger| linger.bytes_left > 0)
    }

    /// Throws away what came.
    pub(super) fn drain(&mut self, scratch: &mut [u8]) -> Intake {
        let mut taken = 0;
        while self.readable && taken < READ_BYTES_PER_TURN {
            match self.stream.read(scratch) {
                Ok(0) => {
                    self.readable = false;
                    self.ended = true;
                }
                Ok(count) => {
                    taken += count;
                    self.bytes_in += count as u64;
                    self.readable = count == scratch.len() || self.has_more();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Intake::Broken,
            }
        }
        if let Some(linger) = &mut self.linger {
            linger.bytes_left = linger.bytes_left.saturating_sub(taken);
        }
        if self.readable {
            Intake::More
        } else {
            Intake::Drained
        }
    }

    /// Once all is said: says that this was all, and whether its client still has time to read it.
    pub(super) fn lingers(&mut self) -> bool {
        let Some(linger) = &mut self.linger else {
            return false;
        };
        let now = clock::now();
        let until = *linger.until.get_or_insert_with(|| {
            self.stream.say_end();
            self.stream.socket().shutdown(Shutdown::Write).ok(); // gone already if it fails
            Now(now.0 + LINGER_TIME)
        });
        !self.ended && linger.bytes_left > 0 && now < until
    }

    /// Whether it has had that time.
    pub(super) fn has_lingered(&self, now: Now) -> bool {
        let until = self.linger.and_then(|linger| linger.until);
        until.is_some_and(|until| now >= until)
    }
}
