//! What every host has of the machine it runs on: a socket, a clock, somebody who reads the log, and for an
//! acceptor a disk. One thread takes its turns: time that has passed, packets that have come, then it sleeps.
use crate::reporter::Reporter;
use crate::waiting::{Bell, wait};
use quorumwire_datagrams::{Datagrams, Incoming, SocketCounters};
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
    /// Where all acceptors hear, too. Nothing is sent from it.
    together: Option<Datagrams>,
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
            together: None,
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

    /// It hears at this socket, too.
    pub(crate) fn hear_together(&mut self, socket: Datagrams) {
        self.together = Some(socket);
    }

    /// What its sockets have counted together.
    pub(crate) fn socket_counters(&self) -> SocketCounters {
        let mut counters = *self.wire.counters();
        if let Some(together) = &self.together {
            let more = together.counters();
            counters.received += more.received;
            counters.cut += more.cut;
            counters.receive_errors += more.receive_errors;
        }
        counters
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
        let heard = |it: &Datagrams| it.counters().received;
        let before = heard(&self.wire) + self.together.as_ref().map_or(0, heard);
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
        if let Some(together) = &mut self.together {
            let wire = &mut self.wire;
            let mut take = |from, datagram: &[u8], _: &mut Datagrams| take(from, datagram, wire);
            self.is_more |= self.incoming.receive(together, BATCH_MAX, &mut take);
        }
        if heard(&self.wire) + self.together.as_ref().map_or(0, heard) > before {
            self.heard_at = Instant::now();
        }
    }

    /// Sleeps until there is something to do.
    pub(crate) fn wait(&self, bell: Option<&Bell>) -> io::Result<()> {
        if self.is_more || self.heard_at.elapsed() < self.busy_poll {
            return Ok(());
        }
        let left = self.next_tick.saturating_sub(self.now());
        wait(&self.wire, self.together.as_ref(), bell, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddrV4};

    /// What goes to the address of all acceptors is taken in, and wakes who waits.
    #[test]
    fn what_goes_to_all_is_heard_beside_what_goes_to_one() {
        let own = Ipv4Addr::LOCALHOST;
        let wire = Datagrams::bind((own, 0).into()).expect("a port");
        let at = wire.local_address().expect("bound");
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 77, 3, 4), at.port());
        let mut sender = Datagrams::bind((own, 0).into()).expect("a port");
        sender.send_to_groups_by(own).expect("loopback");
        let mut station = Station::new(wire, None, Duration::ZERO);
        station.next_tick = Duration::from_mins(5);
        station.hear_together(Datagrams::bind_group(group, own).expect("loopback"));
        for to in [group.into(), at] {
            sender.send(to, b"proposal");
            sender.flush();
            station.wait(None).expect("it sleeps");
            let mut heard = Vec::new();
            station.receive(|_, _, datagram, around| {
                heard.push(datagram.to_vec());
                around.send(at, b"answer");
            });
            assert_eq!(heard, [b"proposal"], "at {to}");
            // What is sent leaves by the socket that has its own address.
            station.wire.flush();
            station.wait(None).expect("it sleeps");
            let mut from = Vec::new();
            station.receive(|_, sender, _, _| from.push(sender));
            assert_eq!(from, [at]);
        }
        assert_eq!(station.socket_counters().received, 4, "at both");
    }
}
