//! How a follower passes on what its clients ask, and what a leader does with it. All that decides is the
//! group's. Not as in the server: a read never waits for time, what has nowhere to go is refused at once, and
//! a queue to another replica is never full.
use crate::clients::{Fate, Told};
use crate::machine::{Group, Origin};
use crate::network::Saying;
use crate::queue::{MILLISECOND, Nanos};
use crate::spelling;
use crate::world::{Event, World};
use bytes::Bytes;
use quorumwire_control::{Input, Peer, RoleChange, Ticket};
use quorumwire_group::{
    Effect, Follower, FollowerRead, ForwardKind, PassedOn, ReadState, Returned, Said, Submitted,
    Taken,
};
use quorumwire_interfaces::{Executed, Index, Reason};
use quorumwire_linearizability::history::{Answer, Operation};
use quorumwire_sessions::Outcome;
use std::time::Duration;

/// How often what has waited for too long is looked for, as in the server.
const LOOKED_FOR_LATE: Nanos = 20 * MILLISECOND;

/// Something has come from this replica.
pub fn note_heard(group: &mut Group, from: Peer) {
    if let Some(connected) = group.peers.connected.get_mut(&from.id) {
        connected.heard = group.now;
    }
}

impl World {
    /// A client asks a replica that does not lead.
    pub fn pass_on(&mut self, place: usize, operation: u32) {
        if !self.plan.settings.forwards() {
            return self.refuse(place, operation);
        }
        if self.send_to_leader(place, operation).is_err() {
            self.refuse(place, operation); // a server lets it wait for a while
        }
    }

    /// Passes a request on; the number that it has then. The error is what to do with it instead.
    pub fn send_to_leader(&mut self, place: usize, operation: u32) -> Result<u64, Submitted> {
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
            | Operation::Increment(_) => (ForwardKind::Write, self.command_of(operation)),
        };
        let sent = self.drive(place, |group| {
            let leader = group.leader_to_ask()?;
            group
                .forward(leader, Origin::Operation(operation), kind, bytes)
                .ok_or(Submitted::NoRoom)
        });
        let sent = sent.unwrap_or(Err(Submitted::NoRoom));
        if sent.is_ok() {
            self.counts.see(match kind {
                ForwardKind::Read => "read passed on",
                ForwardKind::Write | ForwardKind::Session => "write passed on",
            });
        }
        sent
    }

    /// Another replica says something about a request that was passed on.
    pub fn take_passed_on(&mut self, place: usize, from: Peer, message: PassedOn) {
        self.drive(place, |group| note_heard(group, from));
        match message {
            PassedOn::Request(id, kind, bytes) => {
                let from = Follower { peer: from, id };
                let taken = self.drive(place, |group| {
                    let is_write_here = kind != ForwardKind::Read && group.leads();
                    let is_late = is_write_here && !group.takes_writes_of(id.term);
                    let given = group.tickets_given();
                    let taken = group.take_request(from, kind, bytes);
                    let asked = (group.tickets_given() > given).then(|| group.tickets_given());
                    (is_late, asked, taken)
                });
                if let Some((_, Some(ticket), _)) = taken {
                    self.checks
                        .asks_read(self.machines[place].peer, Ticket(ticket));
                }
                if matches!(taken, Some((true, ..))) {
                    self.counts.see("write sent before others led");
                }
                match taken.map(|(_, _, taken)| taken) {
                    None | Some(Taken::Settled) => {}
                    Some(Taken::Read(_, read)) => self.answer_follower_read(place, &read),
                    Some(Taken::Write(_, true, _)) => panic!("no client here has a session"),
                    Some(Taken::Write(from, false, bytes)) => {
                        self.drive(place, |group| {
                            let origin = Origin::Follower(from);
                            let submitted = group.write(origin, bytes.len(), |buffer| {
                                buffer.extend_from_slice(&bytes);
                            });
                            group.answer_unless_pending(from, submitted);
                        });
                    }
                }
            }
            PassedOn::Reply(id, said, answer) => {
                let returned = self.drive(place, |group| group.take_reply(from, id, said));
                self.take_returned(place, returned.flatten(), &answer);
            }
        }
    }

    /// A follower's read has leave to be answered once this is applied.
    pub fn follower_read_granted(&mut self, place: usize, read: FollowerRead, index: Index) {
        let read = self.drive(place, |group| group.follower_read_at(index, read));
        if let Some(read) = read.flatten() {
            self.answer_follower_read(place, &read);
        }
    }

    fn answer_follower_read(&mut self, place: usize, read: &FollowerRead) {
        self.counts.see("read of a follower answered");
        self.drive(place, |group| {
            let mut answer = Vec::new();
            group.set_read_clock();
            group.store.query(&read.line, &mut answer);
            group.answer_follower_read(read.from, answer.into());
        });
    }

    /// A follower is told what became of a write that it passed on.
    pub fn tell_follower(&mut self, place: usize, to: Follower, fate: Fate) {
        let said = match fate {
            Fate::Unknown => Said::Refused(Reason::OutcomeUnknown),
            Fate::NotDone => Said::Refused(Reason::NotCommitted),
            Fate::Applied(Outcome::Applied) => Said::Answer,
            Fate::Applied(Outcome::Repeated) => Said::Repeated,
            Fate::Applied(Outcome::AnswerTooLong) => Said::Refused(Reason::AnswerTooLong),
            Fate::Applied(Outcome::Refused(refusal)) => Said::Refused(refusal.reason()),
            Fate::Applied(Outcome::Incomplete) => Said::Refused(Reason::PiecesGone),
        };
        let reply = std::mem::take(&mut self.reply);
        self.drive(place, |group| group.answer_follower(to, said, &reply));
        self.reply = reply;
    }

    /// What was passed on has come back: with this answer, or without one.
    fn take_returned(
        &mut self,
        place: usize,
        returned: impl IntoIterator<Item = Returned<Origin>>,
        answer: &[u8],
    ) {
        for returned in returned {
            match returned {
                Returned::Answered(forward, said) => {
                    let Origin::Operation(operation) = forward.origin else {
                        panic!("only clients' requests are passed on");
                    };
                    self.tell_returned(place, operation, said, answer);
                }
                Returned::Again {
                    forward,
                    number,
                    at_once,
                } => {
                    let Origin::Operation(operation) = forward.origin else {
                        panic!("only clients' requests are passed on");
                    };
                    self.counts.see("read passed on anew");
                    if let Some(burst) = self.burst_of(operation) {
                        self.pipe_reads_anew(place, burst, ReadState::Forwarded(number));
                        continue;
                    }
                    let client = self.asked[operation as usize].client;
                    if self.clients[usize::from(client)].waits_for != Some(operation) {
                        continue; // it has gone on
                    }
                    let delay = if at_once { 0 } else { 20 * MILLISECOND };
                    let again = Event::Request(place, operation);
                    self.queue.set(self.now + delay, again);
                }
            }
        }
    }

    fn tell_returned(&mut self, place: usize, operation: u32, said: Said, answer: &[u8]) {
        let asked = self.asked[operation as usize];
        let told = match said {
            Said::Refused(reason) => match reason.executed() {
                Executed::No => {
                    self.counts.see("refused by the leader it was passed on to");
                    Some(Told::NotDone(None))
                }
                Executed::Yes | Executed::Unknown => {
                    self.counts.see("passed on, outcome unknown");
                    Some(Told::Unknown)
                }
            },
            Said::Answer | Said::Repeated if asked.operation == Operation::Get => {
                let key = format!("key{}", asked.key);
                let value = spelling::value_of(&asked, &key, operation, answer);
                value.map(|(value, unique)| Told::Done(Answer::Value(value), unique))
            }
            Said::Answer | Said::Repeated => {
                let answer = spelling::answer_of(&asked, operation, answer);
                answer.map(|answer| Told::Done(answer, 0))
            }
        };
        let what = asked.operation;
        self.checks.require(told.is_some(), || {
            format!("I6: {what:?} is answered {}", answer.escape_ascii())
        });
        if let Some(told) = told {
            self.answer(place, operation, told);
        }
    }

    /// Leadership changed hands, or may have.
    pub fn role_changed(&mut self, place: usize, change: &RoleChange) {
        let patience = Duration::from_nanos(self.plan.settings.election_timeout);
        let returned = self.drive(place, |group| group.role_changed(change, patience));
        self.take_returned(place, returned.into_iter().flatten(), b"");
        self.attend_to_all_pipes(place);
    }

    /// A connection is gone.
    pub fn peer_is_gone(&mut self, place: usize, peer: Peer) {
        let returned = self.drive(place, |group| {
            group.peers.connected.remove(&peer.id);
            group.step(Input::PeerDown(peer));
            group.give_up_sent_to(peer)
        });
        self.take_returned(place, returned.into_iter().flatten(), b"");
    }

    /// What has waited for too long is given up.
    pub fn give_up_late(&mut self, place: usize) {
        let now = self.now;
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if now < process.looked_for_late_at + LOOKED_FOR_LATE {
            return;
        }
        process.looked_for_late_at = now;
        let patience = Duration::from_nanos(self.plan.settings.election_timeout);
        let returned = self.drive(place, |group| group.give_up_left_behind(patience));
        let returned = returned.into_iter().flatten();
        self.take_returned(place, returned, b"");
        self.give_up_pipes(place);
        let late = self.drive(place, Group::take_late).unwrap_or_default();
        for (origin, reason) in late {
            self.counts.see("waited for too long");
            if let Origin::Follower(from) = origin {
                self.drive(place, |group| group.refuse_follower(from, reason));
                continue;
            }
            let fate = match reason.executed() {
                Executed::No => Fate::NotDone,
                Executed::Yes | Executed::Unknown => Fate::Unknown,
            };
            self.tell_origin(place, origin, Index(0), b"", fate);
        }
    }

    /// Sends what the group wants sent.
    pub fn carry_out_effects(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
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
                    self.send(place, to, Saying::PassedOn(Box::new(message), attachment));
                }
                Effect::SendKey { .. } => panic!("keys do not come from the group"),
            }
        }
    }
}
