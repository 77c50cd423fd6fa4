//! What a program holds: one of the three processes, and how far it was given values.
use crate::bell::Bell;
use crate::evpaxos::follower::Follower;
use crate::evpaxos::history::Found;
use crate::evpaxos::host::{self, Host, HostOptions};
use crate::evpaxos::log;
use crate::evpaxos::relay::Relay;
use quorumwire_paxos_process::VALUE_BYTES_MAX;
use std::net::SocketAddr;
use std::sync::Arc;

/// Values have numbers up to here: the programs' are of 32 bits.
const NUMBER_MAX: u64 = u32::MAX as u64;

enum Process {
    Host(Host),
    Learner(Follower),
    /// It does its work by itself, until it is dropped.
    Proposer {
        _relay: Relay,
    },
}

/// It.
pub struct Node {
    process: Process,
    bell: Arc<Bell>,
    /// The number of the next value to be given, of a host; nothing: whichever comes next once it takes part.
    next: Option<u64>,
    /// The value that was given last, with a 0 behind it.
    value: Vec<u8>,
    has_complained: bool,
}

fn bell() -> Result<Arc<Bell>, String> {
    let bell = Bell::new().map_err(|error| format!("no eventfd: {error}"))?;
    Ok(Arc::new(bell))
}

impl Node {
    fn new(process: Process, bell: Arc<Bell>, next: Option<u64>) -> Self {
        Self {
            process,
            bell,
            next,
            value: Vec::new(),
            has_complained: false,
        }
    }

    /// A replica's or an acceptor's process.
    pub fn host(options: HostOptions, is_to_catch_up: bool) -> Result<Self, String> {
        let bell = bell()?;
        let rung = Arc::clone(&bell);
        let host = Host::begin(options, Box::new(move || rung.ring()))?;
        let next = is_to_catch_up.then_some(1);
        Ok(Self::new(Process::Host(host), bell, next))
    }

    /// A learner's process.
    pub fn learner(
        acceptors: &[SocketAddr],
        is_to_catch_up: bool,
        nodelay: bool,
    ) -> Result<Self, String> {
        host::check(acceptors)?;
        let bell = bell()?;
        let rung = Arc::clone(&bell);
        let listener = Box::new(move || rung.ring());
        let follower = Follower::begin(acceptors, is_to_catch_up, nodelay, listener);
        let follower = follower.map_err(|error| format!("no thread: {error}"))?;
        Ok(Self::new(Process::Learner(follower), bell, None))
    }

    /// A proposer's process.
    pub fn proposer(
        own: SocketAddr,
        number: usize,
        acceptors: &[SocketAddr],
        nodelay: bool,
    ) -> Result<Self, String> {
        host::check(acceptors)?;
        let relay = Relay::begin(own, number, acceptors, nodelay);
        let relay = relay.map_err(|error| format!("cannot listen on {own}: {error}"))?;
        Ok(Self::new(
            Process::Proposer { _relay: relay },
            bell()?,
            None,
        ))
    }

    /// A descriptor that is readable when there may be a value.
    pub fn descriptor(&self) -> i32 {
        self.bell.number()
    }

    /// The number of the next value, which [`Self::value`] gives then; none: there is none now.
    pub fn take(&mut self) -> Option<u32> {
        let mut taken = self.find();
        if taken.is_none() {
            // Whoever rings from now on is heard; who rang before has put it there.
            self.bell.still();
            taken = self.find();
        }
        u32::try_from(taken?).ok()
    }

    /// The value that was taken last, with a 0 behind it.
    pub fn value(&mut self) -> &mut [u8] {
        &mut self.value
    }

    /// Puts the next value where it is given from.
    fn find(&mut self) -> Option<u64> {
        let (number, value) = match &self.process {
            Process::Host(host) => {
                let next = match self.next {
                    Some(next) => next,
                    None if host.is_ready() => host.history().last() + 1,
                    None => return None,
                };
                self.next = Some(next);
                match host.history().get(next) {
                    Found::Value(entry) => (next, entry.value.to_vec()),
                    Found::NotYet => return None,
                    Found::Gone(upto) => {
                        self.complain(&format!(
                            "Values up to number {upto} are not kept any more, and number {next} is the next: \
                             evpaxos_replica_set_instance_id says where to go on"
                        ));
                        return None;
                    }
                }
            }
            Process::Learner(follower) => follower.take()?,
            Process::Proposer { .. } => return None,
        };
        if number > NUMBER_MAX {
            self.complain(
                "There are no more numbers: this was the last value that can be delivered",
            );
            return None;
        }
        self.next = Some(number + 1);
        self.value = value;
        self.value.push(0);
        Some(number)
    }

    fn complain(&mut self, text: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            log::error(text);
        }
    }

    /// Goes on behind this number.
    pub fn go_on_behind(&mut self, number: u32) {
        let next = u64::from(number) + 1;
        self.has_complained = false;
        match &self.process {
            Process::Host(_) => self.next = Some(next),
            Process::Learner(follower) => follower.go_on_with(next),
            Process::Proposer { .. } => {}
        }
        self.bell.ring();
    }

    /// Has a value decided. What is too long, or too much, is not taken, and said.
    pub fn submit(&self, value: &[u8]) {
        let (Process::Host(host), true) = (&self.process, value.len() <= VALUE_BYTES_MAX) else {
            log::error(&format!(
                "A value of {} bytes is not taken; allowed: at most {VALUE_BYTES_MAX}",
                value.len()
            ));
            return;
        };
        if !host.submit(value.to_vec()) {
            log::error("A value is not taken: too many wait to be decided");
        }
    }

    /// Nobody needs values up to this number any more.
    pub fn trim(&self, upto: u32) {
        match &self.process {
            Process::Host(host) => host.trim(upto.into()),
            Process::Learner(_) | Process::Proposer { .. } => {}
        }
    }
}

#[cfg(test)]
#[path = "node_test.rs"]
mod tests;
