//! What every host has of the machine it runs on: a socket, a clock, somebody who reads the log, and for an
//! acceptor a disk. One thread takes its turns: time that has passed, packets that have come, then it sleeps.
use crate::reporter::Reporter;
use crate::waiting::{Bell, wait};
use quorumwire_datagrams::{Datagrams, Incoming};
use quorumwire_fastpath::Outbox;
use quorumwire_paxos_hosts::{Driver, Happened, Since};
use quorumwire_storage::VoteLog;
use quorumwire_wire::PaxosRecord;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Datagrams taken in before what they have led to is made durable, sent and given on.
const BATCH_MAX: usize = 256;
/// How often a host looks at the time.
const TICK: Duration = Duration::from_millis(2);

/// What an acceptor has on disk.
pub(crate) struct Votes {
    pub(crate) log: VoteLog,
    /// All up to this number was appended.
    pub(crate) appended: u64,
}

pub(crate) struct Station {
    pub(crate) wire: Datagrams,
    pub(crate) votes: Option<Votes>,
    pub(crate) reporter: Reporter,
    incoming: Incoming,
    begun: Instant,
    next_tick: Since,
    busy_poll: Duration,
    heard_at: Instant,
    /// The last batch ended before the datagrams did.
    is_more: bool,
}

/// What a host drives.
pub(crate) struct Around<'a> {
    wire: &'a mut Datagrams,
    votes: &'a mut Option<Votes>,
    reporter: &'a mut Reporter,
}

impl Outbox for Around<'_> {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.wire.send(to, datagram);
    }
}

impl Driver for Around<'_> {
    fn keep(&mut self, record: PaxosRecord, number: u64) {
        if let Some(votes) = self.votes {
            votes.log.append(&record);
            votes.appended = votes.appended.max(number);
        }
    }

    fn happened(&mut self, what: Happened) {
        self.reporter.happened(&what);
    }
}

impl Station {
    /// Where packets come to this socket. It looks for them for `busy_poll` before it sleeps.
    pub(crate) fn new(wire: Datagrams, log: Option<VoteLog>, busy_poll: Duration) -> Self {
        let begun = Instant::now();
        Self {
            wire,
            votes: log.map(|log| Votes { log, appended: 0 }),
            reporter: Reporter::default(),
            incoming: Incoming::default(),
            begun,
            next_tick: Since::ZERO,
            busy_poll,
            heard_at: begun,
            is_more: false,
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> Since {
        self.begun.elapsed()
    }

    /// What a host drives now.
    pub(crate) fn driver(&mut self) -> Around<'_> {
        Around {
            wire: &mut self.wire,
            votes: &mut self.votes,
            reporter: &mut self.reporter,
        }
    }

    /// The time, if the host is to look at it again.
    pub(crate) fn tick(&mut self) -> Option<Since> {
        let now = self.now();
        if now < self.next_tick {
            return None;
        }
        self.next_tick = now + TICK;
        self.reporter.tick(now);
        Some(now)
    }

    /// Takes in what has come, a batch at most.
    pub(crate) fn receive(
        &mut self,
        mut take: impl FnMut(Since, SocketAddr, &[u8], &mut Around<'_>),
    ) {
        let now = self.now();
        let before = self.wire.counters().received;
        let (votes, reporter) = (&mut self.votes, &mut self.reporter);
        let mut take = |from, datagram: &[u8], wire: &mut Datagrams| {
            let mut around = Around {
                wire,
                votes,
                reporter,
            };
            take(now, from, datagram, &mut around);
        };
        self.is_more = self.incoming.receive(&mut self.wire, BATCH_MAX, &mut take);
        if self.wire.counters().received > before {
            self.heard_at = Instant::now();
        }
    }

    /// Sleeps until there is something to do.
    pub(crate) fn wait(&self, bell: Option<&Bell>) -> io::Result<()> {
        if self.is_more || self.heard_at.elapsed() < self.busy_poll {
            return Ok(());
        }
        let left = self.next_tick.saturating_sub(self.now());
        wait(&self.wire, bell, left)
    }
}
