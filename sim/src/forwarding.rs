//! How a follower passes on what its clients ask, and what a leader does with it. All that decides is the
//! group's. Not as in the server: a read never waits for time, what has nowhere to go is refused at once, and
//! a queue to another replica is never full.
use crate::machine::{Group, Origin};
use crate::network::Saying;
use crate::queue::MILLISECOND;
use crate::world::{Event, World};
use bytes::{Bytes, BytesMut};
use quorumwire_control::Peer;
use quorumwire_group::{
    self as group, Driver as _, Effect, Follower, FollowerRead, ForwardKind, PassedOn, ReadState,
    SubmitOutcome, put_in_session,
};
use quorumwire_linearizability::history::Operation;

/// Something has come from this replica.
pub fn note_heard(group: &mut Group, from: Peer) {
    if let Some(connected) = group.peers.connected.get_mut(&from.id) {
        connected.heard = group.now;
    }
}

impl World {
    /// A client asks a replica that does not lead.
    pub fn pass_on(&mut self, machine: usize, operation: u32) {
        if !self.plan.settings.forwards() {
            return self.refuse(machine, operation);
        }
        if self.send_to_leader(machine, operation).is_err() {
            self.refuse(machine, operation); // a server lets it wait for a while
        }
    }

    /// Passes a request on; the number that it has then. The error is what to do with it instead.
    pub fn send_to_leader(&mut self, machine: usize, operation: u32) -> Result<u64, SubmitOutcome> {
        let (kind, bytes) = match self.asked[operation as usize].operation {
            Operation::Get => {
                let known = self.checks.known_upto();
                self.asked[operation as usize].needed = known;
                (ForwardKind::Read, self.query_of(operation).into())
            }
            Operation::Set(_)
            | Operation::Add(_)
            | Operation::Cas { .. }
            | Operation::Delete
            | Operation::Increment(_) => {
                let command = self.command_of(operation);
                match self.name_of(operation) {
                    None => (ForwardKind::Write, command),
                    Some(name) => {
                        let mut whole = BytesMut::new();
                        put_in_session(&mut whole, name, &command);
                        (ForwardKind::Session, whole.freeze())
                    }
                }
            }
        };
        let sent = self.drive(machine, |group| {
            let leader = group.leader_to_ask()?;
            group
                .forward(leader, Origin::Operation(operation), kind, bytes)
                .ok_or(SubmitOutcome::NoRoom)
        });
        let sent = sent.unwrap_or(Err(SubmitOutcome::NoRoom));
        if sent.is_ok() {
            let asked = &self.asked[operation as usize];
            if asked.value_bytes > 0 {
                self.counts.see("long value passed on");
            }
            self.counts.see(match kind {
                ForwardKind::Read => "read passed on",
                ForwardKind::Write => "write passed on",
                ForwardKind::Session => "write passed on with its session",
            });
        }
        sent
    }

    /// Another replica says something about a request that was passed on.
    pub fn take_passed_on(&mut self, machine: usize, from: Peer, message: PassedOn) {
        self.drive(machine, |group| note_heard(group, from));
        match message {
            PassedOn::Request(id, kind, bytes) => {
                let from = Follower { peer: from, id };
                let before = self.drive(machine, |group| {
                    let is_write_here = kind != ForwardKind::Read && group.leads();
                    let is_late = is_write_here && !group.takes_writes_of(id.term);
                    (is_late, group.tickets_given())
                });
                let Some((is_late, given)) = before else {
                    return;
                };
                if is_late {
                    self.counts.see("write sent before others led");
                }
                group::take_request(&mut self.host(machine), from, kind, bytes);
                self.note_ticket(machine, given);
            }
            PassedOn::Reply(id, said, answer) => {
                let returned = self.drive(machine, |group| group.take_reply(from, id, said));
                if let Some(returned) = returned.flatten() {
                    self.host(machine).take_returned(returned, &answer);
                }
            }
        }
    }

    /// What the state machine shows a follower now.
    pub fn answer_follower_read(&mut self, machine: usize, read: &FollowerRead) {
        self.counts.see("read of a follower answered");
        self.drive(machine, |group| {
            let mut answer = Vec::new();
            group.set_read_clock();
            group.store.query(&read.line, &mut answer);
            group.answer_follower_read(read.from, answer.into());
        });
    }

    /// A read that was passed on is to be asked for anew. It had this number.
    pub fn ask_leader_again(&mut self, machine: usize, operation: u32, again: (u64, bool)) {
        let (number, at_once) = again;
        self.counts.see("read passed on anew");
        if let Some(burst) = self.burst_of(operation) {
            return self.pipe_reads_anew(machine, burst, ReadState::Forwarded(number));
        }
        let client = self.asked[operation as usize].client;
        if self.clients[usize::from(client)].waits_for != Some(operation) {
            return; // it has gone on
        }
        let delay = if at_once { 0 } else { 20 * MILLISECOND };
        let again = Event::Request(machine, operation);
        self.queue.set(self.now + delay, again);
    }

    /// A connection is gone.
    pub fn peer_is_gone(&mut self, machine: usize, peer: Peer) {
        self.drive(machine, |group| group.peers.connected.remove(&peer.id));
        group::peer_is_gone(&mut self.host(machine), peer);
    }

    /// Sends what the group wants sent.
    pub fn carry_out_effects(&mut self, machine: usize) {
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        if process.group.effects.is_empty() {
            return;
        }
        for connected in process.group.peers.connected.values_mut() {
            connected.queued_bytes = 0; // the network takes all at once
        }
        for effect in std::mem::take(&mut process.group.effects) {
            match effect {
                Effect::Send {
                    to,
                    message,
                    attachment,
                } => {
                    let attachment: Bytes = attachment.concat().into();
                    self.send(machine, to, Saying::PassedOn(Box::new(message), attachment));
                }
                Effect::SendKey { to, message } => self.send_key(machine, to, message),
            }
        }
    }
}
