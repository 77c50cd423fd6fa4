//! Leadership goes away and comes back, while requests that followers have passed on to the old leader are on
//! their way.
use crate::clients::{ClientOperation, MANY};
use crate::fault::Class;
use crate::machine::Arrival;
use crate::queue::Nanos;
use crate::spelling::Spelling;
use crate::world::{Event, World};
use quorumwire_control::Input;
use quorumwire_interfaces::{Index, ReplicaId};
use quorumwire_linearizability::history::Operation;

/// Their keys are nobody else's.
const KEYS_BEGIN: u32 = 1 << 28;
/// So many of a thousand requests are reads.
const READS_PERMILLE: u64 = 400;
/// What is too long for anybody is none of theirs.
const PIPE_VALUE_BYTES_MAX: usize = 8_000;

impl World {
    /// One client asks a follower for several things, which reach the leader late. Meanwhile another one is
    /// to lead.
    pub fn leadership_goes_away(&mut self, follower: usize, requests: u8, lasts: Nanos) {
        let Some(leader) = self.leader() else {
            return;
        };
        let now = self.now;
        if follower != leader {
            self.network.clog((follower, leader), now + lasts);
        }
        let burst = u32::try_from(self.bursts.len()).unwrap_or(u32::MAX);
        self.bursts.push(Vec::new());
        self.burst(follower, burst, requests);
        self.transfer(leader, None);
        let (then, back) = (now + lasts / 3, now + lasts / 2);
        self.queue
            .set(then, Event::Burst(follower, burst, requests));
        self.queue.set(back, Event::Returns(leader));
        self.queue.set(now + lasts, Event::Returned(leader));
    }

    /// Whoever leads now transfers leadership to the one that led before.
    pub fn leadership_comes_back(&mut self, to: usize) {
        let id = self.machines[to].peer.id;
        if let Some(leader) = self.leader().filter(|leader| *leader != to) {
            self.transfer(leader, Some(id));
        }
    }

    /// Whether it has, before all that was sent to it when it led before has come.
    pub fn leadership_came_back(&mut self, to: usize) {
        let Some(leader) = self.machines[to].process.as_ref() else {
            return;
        };
        let (peer, term) = (self.machines[to].peer, leader.group.replica.term());
        let others = self.machines.iter().filter_map(|it| it.process.as_ref());
        let still_wait = others.map(|it| it.group.forwards.sent_before(peer, term));
        if still_wait.sum::<usize>() > 0 && self.leader() == Some(to) {
            self.counts.hit(Class::F29Returns);
        }
    }

    fn transfer(&mut self, machine: usize, to: Option<ReplicaId>) {
        self.drive(machine, |group| {
            let ticket = group.next_ticket();
            group.step(Input::Transfer(ticket, to));
        });
        self.carry_out_all(machine);
        self.plan_ahead(machine);
    }

    /// A client that waits for no answer asks a machine for so many things.
    pub fn burst(&mut self, machine: usize, burst: u32, requests: u8) {
        let mut operations = Vec::new();
        for _ in 0..requests {
            let operation = u32::try_from(self.asked.len()).unwrap_or(u32::MAX);
            let (what, value_bytes) = if self.random.permille(READS_PERMILLE) {
                (Operation::Get, 0)
            } else {
                let value_bytes = self.plan.settings.value_bytes(operation);
                let what = Operation::Set(u64::from(operation) + 1);
                (what, value_bytes.min(PIPE_VALUE_BYTES_MAX))
            };
            self.asked.push(ClientOperation {
                client: MANY,
                burst,
                key: KEYS_BEGIN + burst,
                operation: what,
                spelling: Spelling::Classic,
                unique: 0,
                invoked: self.now,
                outcome: None,
                withdrawn: false,
                attempts: 0,
                value_bytes,
                needed: Index(0),
            });
            operations.push(operation);
        }
        self.counts.operations += u64::from(requests);
        self.bursts[burst as usize].extend(&operations);
        self.arrive(machine, Arrival::Pipe(burst, operations));
    }
}
