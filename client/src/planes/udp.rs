//! A client with a socket and a clock: blocks until answers come. What to send when is decided in
//! `requests.rs`.
use super::Error;
use super::requests::{Counters, Requests, Ticket};
use super::settings::Settings;
use quorumwire_interfaces::PlaneKeyPair;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Longest datagram taken: more than any answer has.
const DATAGRAM_BYTES_MAX: usize = 2048;
/// Shortest wait for a datagram: zero would mean for ever.
const WAIT_MIN: Duration = Duration::from_micros(100);

/// A client of the replicas' planes. Not shared between threads: each has its own, with its own session.
pub struct PlaneClient {
    socket: UdpSocket,
    requests: Requests,
    begun: Instant,
    read_timeout: Duration,
}

impl PlaneClient {
    /// Opens a socket and begins a session; sends nothing. Refused: settings out of their ranges.
    pub fn connect(settings: Settings) -> io::Result<Self> {
        settings
            .check()
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let socket = socket_to(&settings.replicas)?;
        let seed = match settings.seed {
            Some(seed) => seed,
            None => getrandom::u64()?,
        };
        Ok(Self {
            socket,
            requests: Requests::new(settings, seed),
            begun: Instant::now(),
            read_timeout: Duration::ZERO,
        })
    }

    /// Sends a command; waits only while as many as a session may have are unanswered. The first one waits,
    /// too, until a replica has said which cluster it is of, or for about [`Settings::retry`].
    pub fn submit(&mut self, command: &[u8]) -> Result<Ticket, Error> {
        self.submit_when_possible(command, false)
    }

    /// The same for a blind write: answered as soon as it is committed, before it is carried out. Its answer
    /// is empty, whatever the state machine says or would say, so it is for commands whose answer nobody
    /// needs: of the key-value store's, `set`, `delete`, `touch` and `flush_all`, which cannot fail once they
    /// are committed (a `set` at a memory limit can), but not `add`, `cas`, `incr` or `append`.
    ///
    /// A command that replicas could refuse is not sent blind but waits until it is carried out: the first of
    /// a session until one is answered, those after a refusal, those after 30 s without such an answer, and
    /// commands too long for one packet.
    pub fn submit_blind(&mut self, command: &[u8]) -> Result<Ticket, Error> {
        self.submit_when_possible(command, true)
    }

    /// Sends a command if that is possible without waiting. As long as it is not known which cluster this is,
    /// it leaves with the next [`wait`](Self::wait).
    pub fn try_submit(&mut self, command: &[u8]) -> Result<Ticket, Error> {
        self.submit_now(command, false)
    }

    /// Waits for the answer to a command; each can be had once.
    pub fn wait(&mut self, ticket: Ticket) -> Result<Vec<u8>, Error> {
        loop {
            if let Some(result) = self.requests.take(ticket) {
                return result;
            }
            self.turn()?;
        }
    }

    /// Sends a command and waits for its answer.
    pub fn execute(&mut self, command: &[u8]) -> Result<Vec<u8>, Error> {
        let ticket = self.submit(command)?;
        self.wait(ticket)
    }

    /// Signs and checks with these from now on. In a rotation clients get the new key, as one accepted,
    /// before the replicas use it, and the one before is taken from them after.
    pub fn set_keys(&mut self, keys: PlaneKeyPair) {
        self.requests.set_keys(keys);
    }

    /// Commands without an answer.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.requests.pending_count()
    }

    /// What was done and not done.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.requests.counters
    }

    fn submit_when_possible(&mut self, command: &[u8], blind: bool) -> Result<Ticket, Error> {
        loop {
            match self.submit_now(command, blind) {
                Err(Error::WindowFull) => self.turn()?,
                Err(error) => return Err(error),
                Ok(ticket) => {
                    while self.requests.has_unsent() {
                        self.turn()?;
                    }
                    return Ok(ticket);
                }
            }
        }
    }

    fn submit_now(&mut self, command: &[u8], blind: bool) -> Result<Ticket, Error> {
        let now = self.begun.elapsed();
        let ticket = self.requests.submit(now, command, blind)?;
        self.send_all();
        Ok(ticket)
    }

    /// Takes in what has come, or waits for it until something is to be sent again.
    fn turn(&mut self) -> Result<(), Error> {
        let now = self.begun.elapsed();
        let wake = self.requests.next_wake().unwrap_or(now);
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        if wake > now {
            let received = self.receive(wake.saturating_sub(now), &mut buffer);
            let received = received.map_err(|error| Error::Socket(error.to_string()))?;
            if let Some((bytes, from)) = received {
                let now = self.begun.elapsed();
                self.requests.receive(now, from, &buffer[..bytes]);
            }
        }
        self.requests.time_passed(self.begun.elapsed());
        self.send_all();
        Ok(())
    }

    fn receive(
        &mut self,
        wait: Duration,
        buffer: &mut [u8],
    ) -> io::Result<Option<(usize, SocketAddr)>> {
        let wait = wait.max(WAIT_MIN);
        if wait != self.read_timeout {
            self.socket.set_read_timeout(Some(wait))?;
            self.read_timeout = wait;
        }
        match self.socket.recv_from(buffer) {
            Ok(received) => Ok(Some(received)),
            // The last: a replica that does not run. It is asked again, or another is.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock
                        | ErrorKind::TimedOut
                        | ErrorKind::Interrupted
                        | ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A datagram that cannot be sent counts as lost.
    fn send_all(&mut self) {
        for (to, datagram) in std::mem::take(&mut self.requests.out) {
            if self.socket.send_to(&datagram, to).is_err() {
                self.requests.counters.send_failed += 1;
            }
        }
    }
}

/// A socket that can send to all of these.
pub(super) fn socket_to(replicas: &[SocketAddr]) -> io::Result<UdpSocket> {
    let any: IpAddr = if replicas.iter().all(SocketAddr::is_ipv4) {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    UdpSocket::bind((any, 0))
}
